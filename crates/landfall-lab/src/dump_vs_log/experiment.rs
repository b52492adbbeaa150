//! The run: a dump, a replay, a log in each way, and snapshots, round after round.
//!
//! A dump that is there is always replaced by the next one, in the first round too, so that all of them pay for freeing
//! the old one; so is a snapshot. The state gets a new content before each dump. Logs are read back upon the dump of
//! their round, and the state stays what was dumped until they have been: what they change is only noted. Snapshots come
//! last in a round, since updates of the state itself go on during them.
//!
//! Each round begins its logs, and its snapshots, with another way: whatever the replay's long log leaves behind, on the
//! device, in memory or in the host of a virtual machine, then ends up in the intervals of all, and not in the median of
//! one.

use std::time::Duration;

use landfall_os::humanize::bytes_text;
use landfall_results::{Axes, Saving, Series};

use super::run::Run;
use super::{DumpVsLogResults, Plan, break_even, notices};
use crate::room::Room;
use crate::rounds::Rounds;
use crate::{Error, Experiment, Found, Notice, Progress, Site, Stop, left_behind};

impl Experiment for Plan {
    fn name(&self) -> &'static str {
        "dump-vs-log"
    }

    fn trials(&self) -> usize {
        Plan::trials(self)
    }

    fn expected(&self) -> Duration {
        Plan::expected(self)
    }

    fn required_bytes(&self) -> u64 {
        Plan::required_bytes(self)
    }

    fn listing(&self) -> String {
        Plan::listing(self)
    }

    fn run(
        &self,
        site: &Site,
        stop: &Stop,
        progress: &mut dyn Progress,
    ) -> Result<(Found, Vec<Notice>), Error> {
        let room = Room::of(site)?;
        let plan = room.fitting(site, self)?;
        let (found, left) = measure(site, &plan, stop, progress)?;
        let mut notices = notices::of_results(&found);
        notices.extend(notices::of_smaller_state(self, &plan, &room));
        notices.extend(left);
        Ok((found.into(), notices))
    }
}

/// Runs `plan` on `site`; returns what was found, and that something could not be removed, if so.
///
/// Needs [`Plan::required_bytes`] of space, which the caller asks for, and memory for two states.
fn measure(
    site: &Site,
    plan: &Plan,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<(DumpVsLogResults, Option<Notice>), Error> {
    plan.check()?;
    let making = format!("a state of {}", bytes_text(plan.saved_bytes()));
    progress.doing(&making, 0, plan.trials(), plan.expected());
    let mut run = Run::begin(site, plan, stop).map_err(Error::io("cannot make a state"))?;
    let mut series: Vec<Series> = Saving::ALL
        .map(|saving| {
            Series::new(Axes {
                saving: Some(saving),
                size: Some(plan.saved_bytes()),
                ..Axes::default()
            })
        })
        .into();
    let guess = Duration::try_from_secs_f64(plan.log_seconds).unwrap_or(Duration::MAX);
    let rounds = Rounds::each("dump-vs-log", plan.rounds, &series, guess);
    let order = |round| order_of(round).map(place).into();
    rounds.run(&mut series, &notices::WATCH, progress, order, |group| {
        for index in group.members.clone() {
            group.begin(index);
            let saving = Saving::ALL[index];
            let doing = Error::io(format!("cannot measure {}", saving.name()));
            let trial = run.trial(saving, group.round).map_err(doing)?;
            group.measured(index, trial);
        }
        Ok(())
    })?;
    progress.doing("done", plan.trials(), plan.trials(), Duration::ZERO);
    let is_cold = run.is_cold;
    let closed = run.end();
    let removed = closed.map_err(Error::io("cannot close the log and the state"))?;
    let left = left_behind::notice(removed.map_err(Error::io("cannot remove what was written")))?;
    let found = DumpVsLogResults {
        plan: plan.kind,
        state_bytes: plan.saved_bytes(),
        record_bytes: plan.record_bytes,
        updates_per_second: plan.updates_per_second,
        log_seconds: plan.log_seconds,
        rounds: plan.rounds,
        cold: is_cold,
        break_even: break_even::all(plan, &series),
        series,
        claims: Vec::new(),
    };
    Ok((found, left))
}

/// The order in which a round measures: logs are read back upon its dump, and snapshots change the state.
fn order_of(round: u32) -> [Saving; Saving::ALL.len()] {
    let (mut logs, mut snapshots) = (Saving::LOGS, Saving::SNAPSHOTS);
    let before = round.saturating_sub(1) as usize;
    logs.rotate_left(before % Saving::LOGS.len());
    snapshots.rotate_left(before % Saving::SNAPSHOTS.len());
    let mut order = Saving::ALL;
    let (first, last) = (2, 2 + logs.len());
    order[first..last].copy_from_slice(&logs);
    order[last..].copy_from_slice(&snapshots);
    order
}

/// Where it stands among the series.
fn place(saving: Saving) -> usize {
    let mut all = Saving::ALL.into_iter();
    all.position(|one| one == saving).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::Cost;
    use super::super::dump::DUMP;
    use super::*;
    use crate::Findings;
    use landfall_results::{Metric, Row};
    use std::fs;
    use std::sync::atomic::Ordering;

    fn tiny() -> Plan {
        Plan {
            state_bytes: 1 << 20,
            updates_per_second: 200.0,
            log_seconds: 0.2,
            rounds: 2,
            ..Plan::short()
        }
    }

    fn directory() -> tempfile::TempDir {
        tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
    }

    /// Does something when it hears what is about to be measured, and keeps what it heard.
    struct Heard<F: FnMut(usize, &str)> {
        then: F,
        told: Vec<String>,
        measured: usize,
    }

    impl<F: FnMut(usize, &str)> Progress for Heard<F> {
        fn doing(&mut self, what: &str, _: usize, _: usize, _: Duration) {
            (self.then)(self.told.len(), what);
            self.told.push(what.to_owned());
        }

        fn measured(&mut self, _: &Row<'_>) {
            self.measured += 1;
        }
    }

    fn heard<F: FnMut(usize, &str)>(then: F) -> Heard<F> {
        Heard {
            then,
            told: Vec::new(),
            measured: 0,
        }
    }

    #[test]
    fn a_tiny_state_is_saved_and_brought_back_in_every_way() {
        let directory = directory();
        let site = Site::open(directory.path()).unwrap();
        let mut progress = heard(|_, _| ());
        let (results, left) = measure(&site, &tiny(), &Stop::default(), &mut progress).unwrap();

        assert_eq!(left, None);
        assert_eq!(progress.measured, tiny().trials());
        assert_eq!(progress.told[0], "a state of 1 MiB");
        assert_eq!(progress.told[1], "dump/1M");
        assert_eq!(progress.told[2], "replay/1M");
        // The second round begins with another log.
        assert_eq!(progress.told[1 + 9 + 2], "log/every-second/1M");
        let figures = [
            (Saving::Dump, Metric::HandOverMbPerS),
            (Saving::Replay, Metric::RestartSeconds),
            (Saving::FileEveryUpdate, Metric::UsPerUpdate),
            (Saving::LogEveryUpdate, Metric::UsPerUpdate),
            (Saving::SnapshotEverySecond, Metric::LongestCaptureMs),
            (Saving::SnapshotEveryUpdate, Metric::LongestStallMs),
        ];
        for (saving, metric) in figures {
            let series = results.find(saving).unwrap();
            assert_eq!(series.trials.len(), 2, "{}", series.key);
            assert!(series.median(metric).is_some(), "{}", series.key);
            assert!(series.median(Metric::RestartSeconds).is_some());
        }
        let kib = |saving| results.find(saving).unwrap().median(Metric::ProgramKib);
        assert_eq!(kib(Saving::FileEveryUpdate), Some(0.25));
        // Whole granules, with a header each.
        assert!(kib(Saving::LogEveryUpdate) >= Some(0.5));
        let by_seconds = |one: &&super::super::BreakEven| one.cost == Cost::Seconds;
        assert_eq!(results.break_even.iter().filter(by_seconds).count(), 5);
        assert!(!Findings::is_empty(&results));
        assert_eq!(fs::read_dir(site.private()).unwrap().count(), 0);
    }

    #[test]
    fn a_request_to_stop_ends_the_run() {
        let directory = directory();
        for stop_at in 0..10 {
            let site = Site::open(directory.path()).unwrap();
            let stop = Stop::default();
            let mut progress = heard(|count, _: &str| {
                if count == stop_at {
                    stop.flag().store(true, Ordering::Relaxed);
                }
            });
            let error = measure(&site, &tiny(), &stop, &mut progress).unwrap_err();
            assert!(matches!(error, Error::Stopped), "{stop_at}: {error}");
        }
    }

    #[test]
    fn a_dump_that_was_damaged_ends_the_run() {
        for when in ["replay/1M", "log/never/1M", "file/every-update/1M"] {
            let directory = directory();
            let site = Site::open(directory.path()).unwrap();
            let path = site.private().join(DUMP);
            let mut progress = heard(|_, what: &str| {
                if what == when {
                    let mut bytes = fs::read(&path).unwrap();
                    bytes[5_000] ^= 1;
                    fs::write(&path, bytes).unwrap();
                }
            });
            let error = measure(&site, &tiny(), &Stop::default(), &mut progress).unwrap_err();
            assert!(matches!(error, Error::Io { .. }), "{when}: {error}");
        }
    }

    #[test]
    fn each_round_has_everything_and_begins_its_logs_with_another() {
        for round in 1..=10 {
            let order = order_of(round);
            assert_eq!(order[..2], [Saving::Dump, Saving::Replay]);
            let mut places: Vec<usize> = order.map(place).into();
            places.sort_unstable();
            assert_eq!(places, (0..Saving::ALL.len()).collect::<Vec<usize>>());
        }
        assert_eq!(order_of(1), Saving::ALL);
        assert_eq!(order_of(2)[2], Saving::LogEverySecond);
        assert_eq!(order_of(2)[7], Saving::SnapshotEveryUpdate);
    }
}
