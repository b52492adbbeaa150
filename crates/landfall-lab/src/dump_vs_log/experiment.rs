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
//!
//! The engine's log is one log for all trials. When a trial is over its records are truncated, as a program truncates
//! them that has dumped its state, and the segments are used again: so a trial finds them written, as it would in a log
//! that has been in use for long.
//!
//! Before each trial the filesystem is synced and the device is quiet, so that no trial pays for what the one before it
//! left in the page cache, or is counted for it.
//!
//! **Requests and flushes** of a log are counted until its time is over, and are the policy's; **bytes** until the log
//! has been committed once more, since what a policy leaves in memory will be written too. What a journal writes back to
//! its place later is in neither, of a log nor of a dump.
//!
//! Restarts include the memory that they read into, since a program that starts has none yet. The replay does not: it is
//! what a longer log adds to a restart.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use landfall::{Journaled, Log};
use landfall_os::humanize::bytes_text;
use landfall_results::{Axes, Policy, Saving, Series, Trial, Way};

use super::dump::{self, DUMP};
use super::pace::Pace;
use super::state::{self, Changed, Changes, Part};
use super::trial::{Measured, of_replay};
use super::updates::{self, Target, Task, beside, commit_every_second};
use super::{DumpVsLogResults, Plan, break_even, engine, interrupted_if, notices, restart};
use crate::readings::Readings;
use crate::room::Room;
use crate::rounds::Rounds;
use crate::{Error, Experiment, Found, Notice, Progress, Site, Stop};

/// Names of what is written, besides the dump: the plain file, the logs, and the state.
const FILE: &str = "file";
const LOG: &str = "log";
const REPLAYED: &str = "replayed";
const STATE: &str = "state";
/// The same changes in every run, so that one run can be held against another.
const SEED: u64 = 1;
/// How long the device must not have written before a trial, and how often that is waited for: a log makes segments
/// ahead on a thread of its own.
const QUIET: Duration = Duration::from_millis(20);
const MOST_LOOKS: u32 = 25;

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
        let found = measure(site, &plan, stop, progress)?;
        let mut notices = notices::of_results(&found);
        notices.extend(notices::of_smaller_state(self, &plan, &room));
        Ok((found.into(), notices))
    }
}

/// Runs `plan` on `site`.
///
/// Needs [`Plan::required_bytes`] of space, which the caller asks for, and memory for two states.
fn measure(
    site: &Site,
    plan: &Plan,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<DumpVsLogResults, Error> {
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
    run.end()
        .map_err(Error::io("cannot remove what was written"))?;
    Ok(DumpVsLogResults {
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
    })
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

struct Run<'a> {
    site: &'a Site,
    plan: &'a Plan,
    stop: &'a Stop,
    /// Absent while it is opened again, and for good if that fails: then the run ends.
    state: Option<Journaled<Part>>,
    log: Option<Log>,
    changes: Changes,
    /// Whether every file was gone from the page cache before it was read back.
    is_cold: bool,
}

impl<'a> Run<'a> {
    /// Gives the state a content, and the first dump and snapshot something to replace.
    fn begin(site: &'a Site, plan: &'a Plan, stop: &'a Stop) -> io::Result<Run<'a>> {
        let directory = site.private();
        let options = state::options(plan.other_log_options());
        let state = Journaled::open(directory.join(STATE), options).map_err(engine)?;
        let mut changes = Changes::of(plan, SEED);
        state::fill(&state, plan, &mut changes, stop)?;
        interrupted_if(stop)?;
        state.snapshot().map_err(engine)?;
        dump::write(&state, directory, stop)?;
        let log = Log::open(directory.join(LOG), plan.log_options()).map_err(engine)?;
        Ok(Run {
            site,
            plan,
            stop,
            state: Some(state),
            log: Some(log),
            changes,
            is_cold: true,
        })
    }

    /// Removes what was written.
    fn end(mut self) -> io::Result<()> {
        let log = self.log.take().map(Log::close);
        let state = self.state.take().map(Journaled::close);
        for closed in [log, state].into_iter().flatten() {
            closed.map_err(engine)?;
        }
        fs::remove_dir_all(self.path(LOG))?;
        fs::remove_dir_all(self.path(STATE))?;
        fs::remove_file(self.path(DUMP))
    }

    fn trial(&mut self, saving: Saving, round: u32) -> io::Result<Trial> {
        match saving.way() {
            Way::Dump => self.dump(round),
            Way::Replay => self.replay(round),
            Way::File(policy) => self.file(round, policy),
            Way::Log(policy) => self.log(round, policy),
            Way::Snapshot(policy) => self.snapshot(round, policy),
        }
    }

    fn dump(&mut self, round: u32) -> io::Result<Trial> {
        let state = held(&self.state)?;
        state::fill(state, self.plan, &mut self.changes, self.stop)?;
        self.settle()?;
        let before = Readings::take(self.site);
        let dumped = dump::write(state, self.site.private(), self.stop)?;
        let measured = self.since(&before, round);

        let is_cold = restart::make_cold(&self.path(DUMP))?;
        let begin = Instant::now();
        let restored = restart::read_dump(&self.path(DUMP), self.plan, self.stop)?;
        let took = begin.elapsed();
        restored.verify(state, &Changed::default())?;
        self.is_cold &= is_cold;
        Ok(measured.dump(&dumped, self.plan.saved_bytes(), took))
    }

    /// Replays a long log upon the dump.
    fn replay(&mut self, round: u32) -> io::Result<Trial> {
        let options = self.plan.other_log_options();
        let path = self.path(REPLAYED);
        let log = Log::open(&path, options.clone()).map_err(engine)?;
        let first = log.next_lsn();
        let mut changed = Changed::default();
        let mut record = Vec::new();
        for _ in 0..self.plan.replayed() {
            interrupted_if(self.stop)?;
            record.clear();
            self.changes.append(&mut record);
            changed.note(&record)?;
            log.append(&record).map_err(engine)?;
        }
        log.close().map_err(engine)?;
        let mut restored = restart::read_dump(&self.path(DUMP), self.plan, self.stop)?;
        self.is_cold &= restart::make_all_cold(&path)?;
        self.site.drain()?;

        let begin = Instant::now();
        let (log, records) = restart::replay_log(&path, options, first, &mut restored)?;
        let took = begin.elapsed();
        all_came_back(records, self.plan.replayed())?;
        restored.verify(held(&self.state)?, &changed)?;
        log.close().map_err(engine)?;
        fs::remove_dir_all(path)?;
        Ok(of_replay(round, records, took))
    }

    fn log(&mut self, round: u32, policy: Policy) -> io::Result<Trial> {
        let mut changed = Changed::default();
        let log = held(&self.log)?;
        let (first, written) = (log.next_lsn(), log.counters().bytes);
        self.settle()?;
        let over = AtomicBool::new(false);
        let target = Target::Log(log);
        let task = self.task(target, policy, self.plan.pace(), &over);
        let before = Readings::take(self.site);
        let mut updates = || updates::run(&task, &mut self.changes, &mut changed);
        let logged = match policy {
            Policy::EverySecond => {
                let commits = |ended: &AtomicBool| commit_every_second(target, ended);
                beside(&over, commits, updates)?.1
            }
            _ => updates()?,
        };
        let timed = Readings::take(self.site);
        target.commit()?;
        let measured = Measured {
            round,
            timed: timed.since(&before),
            settled: Readings::take(self.site).since(&before),
        };
        let written = log.counters().bytes - written;

        let path = self.path(LOG);
        self.log.take().map_or(Ok(()), Log::close).map_err(engine)?;
        self.is_cold &= restart::make_cold(&self.path(DUMP))?;
        self.is_cold &= restart::make_all_cold(&path)?;
        let begin = Instant::now();
        let mut restored = restart::read_dump(&self.path(DUMP), self.plan, self.stop)?;
        let options = self.plan.log_options();
        let (log, records) = restart::replay_log(&path, options, first, &mut restored)?;
        let took = begin.elapsed();
        all_came_back(records, logged.updates)?;
        restored.verify(held(&self.state)?, &changed)?;
        log.truncate_before(log.durable_end()).map_err(engine)?;
        self.log = Some(log);
        Ok(measured.log(&logged, written, took))
    }

    /// Appends to a plain file, as a program does that has no log of its own.
    fn file(&mut self, round: u32, policy: Policy) -> io::Result<Trial> {
        let mut changed = Changed::default();
        let path = self.path(FILE);
        let file = create(&path)?;
        // The name is durable before the trial begins.
        self.settle()?;
        let over = AtomicBool::new(false);
        let task = self.task(Target::File(&file), policy, self.plan.pace(), &over);
        let before = Readings::take(self.site);
        let logged = updates::run(&task, &mut self.changes, &mut changed)?;
        let measured = self.since(&before, round);
        let written = file.metadata()?.len();
        drop(file);

        self.is_cold &= restart::make_cold(&self.path(DUMP))?;
        self.is_cold &= restart::make_cold(&path)?;
        let begin = Instant::now();
        let mut restored = restart::read_dump(&self.path(DUMP), self.plan, self.stop)?;
        let record_bytes = self.changes.record_bytes();
        let replayed = restart::replay_file(&path, record_bytes, &mut restored, self.stop)?;
        let took = begin.elapsed();
        all_came_back(replayed.records, logged.updates)?;
        restored.verify(held(&self.state)?, &changed)?;
        fs::remove_file(path)?;
        Ok(measured.log(&logged, written, took))
    }

    /// The engine takes a snapshot of the state, and updates go on until it is durable.
    fn snapshot(&mut self, round: u32, policy: Policy) -> io::Result<Trial> {
        let state = held(&self.state)?;
        self.settle()?;
        let over = AtomicBool::new(false);
        let pace = Pace::without_end(self.plan.updates_per_second);
        let task = self.task(Target::State(state), policy, pace, &over);
        let before = Readings::take(self.site);
        let snapshot = |_: &AtomicBool| {
            let taken = state.snapshot().map_err(engine);
            over.store(true, Ordering::Release);
            taken
        };
        // What is changed is in the state itself.
        let mut changed = Changed::default();
        let updates = || updates::run(&task, &mut self.changes, &mut changed);
        let (snapshot, logged) = beside(&over, snapshot, updates)?;
        let timed = Readings::take(self.site);
        state.commit().map_err(engine)?;
        let measured = Measured {
            round,
            timed: timed.since(&before),
            settled: Readings::take(self.site).since(&before),
        };

        let checksum = state::checksum(state);
        let path = self.path(STATE);
        let closed = self.state.take().map_or(Ok(()), Journaled::close);
        closed.map_err(engine)?;
        self.is_cold &= restart::make_all_cold(&path)?;
        let options = state::options(self.plan.other_log_options());
        let begin = Instant::now();
        let state = Journaled::open(&path, options).map_err(engine)?;
        let took = begin.elapsed();
        if state::checksum(&state) != checksum {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "it did not bring back the state that had been saved",
            ));
        }
        self.state = Some(state);
        Ok(measured.snapshot(&snapshot, &logged, self.plan.saved_bytes(), took))
    }

    fn task<'t>(
        &self,
        target: Target<'t>,
        policy: Policy,
        pace: Pace,
        over: &'t AtomicBool,
    ) -> Task<'t>
    where
        'a: 't,
    {
        Task {
            target,
            policy,
            pace,
            stop: self.stop,
            over,
        }
    }

    /// What happened since `before`, where nothing was left to be written.
    fn since(&self, before: &Readings, round: u32) -> Measured {
        let timed = Readings::take(self.site).since(before);
        Measured {
            round,
            settled: timed.clone(),
            timed,
        }
    }

    /// Has everything written that was left, and waits until logs have made their segments.
    fn settle(&self) -> io::Result<()> {
        self.site.drain()?;
        let mut last = self.site.counters();
        for _ in 0..MOST_LOOKS {
            interrupted_if(self.stop)?;
            let Some(before) = last else { break };
            std::thread::sleep(QUIET);
            last = self.site.counters();
            if last.is_none_or(|now| now.since(&before).write_requests == 0) {
                break;
            }
        }
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.site.private().join(name)
    }
}

/// What is open between trials.
fn held<T>(held: &Option<T>) -> io::Result<&T> {
    let gone = || io::Error::other("an earlier trial did not open it again");
    held.as_ref().ok_or_else(gone)
}

/// A new, empty file whose name is durable.
fn create(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .append(true)
        .create_new(true)
        .open(path)?;
    file.sync_all()?;
    if let Some(directory) = path.parent() {
        File::open(directory)?.sync_all()?;
    }
    Ok(file)
}

/// Refuses a log that has not exactly the records that were written to it.
fn all_came_back(records: u64, written: u64) -> io::Result<()> {
    if records == written {
        Ok(())
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{written} records were logged, and {records} came back"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cost;
    use super::*;
    use crate::Findings;
    use landfall_results::{Metric, Row};

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
        let results = measure(&site, &tiny(), &Stop::default(), &mut progress).unwrap();

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

    #[test]
    fn a_log_with_too_few_records_is_refused() {
        all_came_back(5, 5).unwrap();
        assert!(all_came_back(4, 5).is_err());
    }
}
