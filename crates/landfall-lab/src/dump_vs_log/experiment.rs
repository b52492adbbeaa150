//! The run: a dump, a replay and a log for each policy, round after round.
//!
//! A dump that is there is always replaced by the next one, in the first round too, so that all of them pay
//! for freeing the old one. The state gets a new content before each. Logs are read back upon the dump of
//! their round; therefore the state goes back to that dump before each of them, and is checked against a
//! checksum of what was dumped: otherwise a dump that was damaged since would be held against itself.
//!
//! Each round begins its logs with another policy: whatever the replay's long log leaves behind, on the
//! device, in memory or in the host of a virtual machine, then ends up in the intervals of all policies, and
//! not in the median of one.
//!
//! Before each trial the filesystem is synced and the device is quiet, so that no trial pays for what the
//! one before it left in the page cache, or is counted for it.
//!
//! **Flushes** are counted until the time of a log is over, and are the policy's; **bytes** until the log
//! has been synced once more, since what a policy leaves in the page cache will be written too. What a
//! journal writes back to its place later is in neither, of a log nor of a dump.
//!
//! Restarts include the memory that they read into, since a program that starts has none yet. The replay
//! does not: it is what a longer log adds to a restart.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use landfall_os::DeviceCounters;

use super::dump::{self, DUMP};
use super::log::{self, Task};
use super::room::of_smaller_state;
use super::state::{Changes, State};
use super::summary::{self, Measured};
use super::{CHUNK, DumpTrial, DumpVsLogResults, LogTrial, Plan, Policy, interrupted_if, restart};
use crate::room::Room;
use crate::{Error, Experiment, Findings, Found, Notice, Progress, Site, Stop};
use landfall_os::humanize::bytes_text;
use landfall_results::Row;

const LOG: &str = "log";
/// The same changes in every run, so that one run can be held against another.
const SEED: u64 = 1;

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
        let trials = plan.trials();
        let begin = Instant::now();
        let mut tell = |what: &str, done: usize| {
            let left = match done {
                0 => plan.expected(),
                _ => begin.elapsed() / done as u32 * trials.saturating_sub(done) as u32,
            };
            progress.doing(what, done, trials, left);
        };
        let (found, more) = measure(site, &plan, stop, &mut tell)?;
        for (series, trial) in found.trials() {
            progress.measured(&Row {
                experiment: "dump-vs-log",
                series: &series,
                trial: &trial,
            });
        }
        progress.doing("done", trials, trials, Duration::ZERO);
        let mut notices: Vec<Notice> = of_smaller_state(self, &plan, &room).into_iter().collect();
        notices.extend(more);
        Ok((found.into(), notices))
    }
}

/// Runs `plan` on `site`; returns what was found and what must be known about it. `progress` hears what is
/// about to be measured and how many of [`Plan::trials`] are done.
///
/// Needs [`Plan::required_bytes`] of space, which the caller asks for, and memory for two states.
fn measure(
    site: &Site,
    plan: &Plan,
    stop: &Stop,
    progress: &mut dyn FnMut(&str, usize),
) -> Result<(DumpVsLogResults, Vec<Notice>), Error> {
    let state = State::new(plan)?;
    let mut run = Run {
        site,
        plan,
        stop,
        directory: site.private(),
        changes: Changes::of(&state, SEED),
        state,
        measured: Measured {
            dumps: Vec::new(),
            replays: Vec::new(),
            logs: Policy::ALL.map(|policy| (policy, Vec::new())).into(),
            cold: true,
        },
        dumped: 0,
    };
    let size = bytes_text(plan.saved_bytes());
    progress(&format!("a state of {size}"), 0);
    run.new_state().map_err(Error::io("cannot make a state"))?;
    let mut done = 0;
    for round in 1..=plan.rounds {
        progress(&format!("dump {size}"), done);
        run.dump(round)
            .map_err(Error::io("cannot measure a dump"))?;
        progress("replay", done + 1);
        run.replay()
            .map_err(Error::io("cannot measure the replay of a log"))?;
        for (position, index) in order_of(round).into_iter().enumerate() {
            let name = Policy::ALL[index].name();
            progress(&format!("log, {name}"), done + 2 + position);
            run.log(round, index)
                .map_err(Error::io(format!("cannot measure a log, {name}")))?;
        }
        done += 2 + Policy::ALL.len();
    }
    fs::remove_file(run.dump_path()).map_err(Error::io("cannot remove the dump"))?;
    let nothing = || Error::Usage("nothing was measured: at least one round is needed".into());
    summary::results(plan, run.measured).ok_or_else(nothing)
}

/// Indices of the policies in the order in which a round measures them: each round begins with another.
fn order_of(round: u32) -> [usize; Policy::ALL.len()] {
    let mut order = std::array::from_fn(|index| index);
    order.rotate_left((round.saturating_sub(1) as usize) % Policy::ALL.len());
    order
}

struct Run<'a> {
    site: &'a Site,
    plan: &'a Plan,
    stop: &'a Stop,
    directory: &'a Path,
    state: State,
    changes: Changes,
    measured: Measured,
    /// Checksum of the state that the dump is of.
    dumped: u32,
}

impl Run<'_> {
    /// Gives the state a content, and the first dump something to replace.
    fn new_state(&mut self) -> io::Result<()> {
        self.state.fill(&mut self.changes, self.stop)?;
        dump::write(self.state.bytes(), self.directory, self.stop).map(drop)
    }

    fn dump(&mut self, round: u32) -> io::Result<()> {
        self.state.fill(&mut self.changes, self.stop)?;
        self.dumped = crc32fast::hash(self.state.bytes());
        self.site.drain()?;
        let before = self.site.counters();
        let dumped = dump::write(self.state.bytes(), self.directory, self.stop)?;
        let device = since(self.site.counters(), before);

        self.evict(&self.dump_path())?;
        let begin = Instant::now();
        let restored = self.read_dump()?;
        let restart = begin.elapsed();
        restart::verify(&restored, &self.state)?;

        self.measured.dumps.push(DumpTrial {
            round,
            hand_over_seconds: dumped.hand_over.as_secs_f64(),
            seconds: dumped.total.as_secs_f64(),
            longest_call_ms: milliseconds(dumped.longest_call),
            device_kib: device.map(kib_written),
            flushes: device.map(|device| device.flushes as f64),
            restart_seconds: restart.as_secs_f64(),
        });
        Ok(())
    }

    /// Replays a log of as many changes as the state has records upon the dump.
    fn replay(&mut self) -> io::Result<()> {
        let mut restored = self.state.like(self.read_dump()?);
        let path = self.directory.join(LOG);
        self.write_long_log(&path)?;
        self.evict(&path)?;
        self.site.drain()?;

        let begin = Instant::now();
        let replayed = restart::replay(&path, &mut restored, self.stop)?;
        let seconds = begin.elapsed().as_secs_f64();
        check_log(replayed, self.plan.records())?;
        restart::verify(restored.bytes(), &self.state)?;

        self.measured.replays.push(seconds);
        fs::remove_file(path)
    }

    fn log(&mut self, round: u32, index: usize) -> io::Result<()> {
        self.go_back_to_dump()?;
        let path = self.directory.join(LOG);
        let file = create_log(&path)?;
        // The name is durable before the trial begins, and what the trial before left is written.
        self.site.drain()?;
        let task = Task {
            policy: Policy::ALL[index],
            pace: self.plan.pace(),
            file: &file,
            stop: self.stop,
        };
        let before = self.site.counters();
        let logged = log::run(&task, &mut self.changes, &mut self.state)?;
        let timed = since(self.site.counters(), before);
        file.sync_data()?;
        let settled = since(self.site.counters(), before);
        drop(file);

        self.evict(&self.dump_path())?;
        self.evict(&path)?;
        let restart_seconds = self.restart(&path, logged.updates)?;
        fs::remove_file(path)?;

        let p99 = Duration::from_nanos(logged.stalls.value_at_quantile(0.99));
        self.measured.logs[index].1.push(LogTrial {
            round,
            updates: logged.updates,
            seconds: logged.elapsed.as_secs_f64(),
            longest_stall_ms: milliseconds(logged.longest_stall),
            // The histogram rounds up.
            p99_stall_ms: milliseconds(p99.min(logged.longest_stall)),
            us_per_update: logged.in_calls.as_secs_f64() * 1e6 / logged.updates as f64,
            syncs: logged.syncs,
            bytes: logged.bytes,
            device_kib: settled.map(kib_written),
            flushes: timed.map(|device| device.flushes as f64),
            restart_seconds,
        });
        Ok(())
    }

    /// Reads back the dump and the log upon it; returns the seconds that it took.
    fn restart(&self, log: &Path, updates: u64) -> io::Result<f64> {
        let begin = Instant::now();
        let mut restored = self.state.like(self.read_dump()?);
        let replayed = restart::replay(log, &mut restored, self.stop)?;
        let seconds = begin.elapsed().as_secs_f64();
        check_log(replayed, updates)?;
        restart::verify(restored.bytes(), &self.state)?;
        Ok(seconds)
    }

    /// Undoes all changes of the state since it was dumped.
    fn go_back_to_dump(&mut self) -> io::Result<()> {
        let path = self.dump_path();
        restart::read_dump_into(&path, self.state.bytes_mut(), self.stop)?;
        if crc32fast::hash(self.state.bytes()) == self.dumped {
            Ok(())
        } else {
            Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the dump is no longer what was written to it",
            ))
        }
    }

    /// Makes as many changes as the state has records, and a durable log of them.
    fn write_long_log(&mut self, path: &Path) -> io::Result<()> {
        let mut file = create_log(path)?;
        let record_bytes = self.state.record_bytes();
        let mut buffer = Vec::with_capacity(CHUNK.max(record_bytes));
        let mut left = self.state.records();
        while left > 0 {
            interrupted_if(self.stop)?;
            let records = left.min((CHUNK / record_bytes).max(1) as u64);
            buffer.clear();
            (0..records).for_each(|_| self.changes.append(&mut buffer));
            for record in buffer.chunks_exact(record_bytes) {
                self.state.apply(record)?;
            }
            file.write_all(&buffer)?;
            left -= records;
        }
        file.sync_data()
    }

    fn read_dump(&self) -> io::Result<Vec<u8>> {
        restart::read_dump(&self.dump_path(), self.state.bytes().len(), self.stop)
    }

    fn dump_path(&self) -> PathBuf {
        self.directory.join(DUMP)
    }

    /// Makes the next look at a file go to the device; remembers if that was not to be had.
    fn evict(&mut self, path: &Path) -> io::Result<()> {
        self.measured.cold &= restart::make_cold(path)?;
        Ok(())
    }
}

/// A new, empty log whose name is durable.
fn create_log(path: &Path) -> io::Result<File> {
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
fn check_log(replayed: restart::Replayed, written: u64) -> io::Result<()> {
    if replayed.records == written && replayed.torn_bytes == 0 {
        Ok(())
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!(
                "{written} records were logged, and {} came back",
                replayed.records
            ),
        ))
    }
}

fn since(now: Option<DeviceCounters>, then: Option<DeviceCounters>) -> Option<DeviceCounters> {
    now.zip(then).map(|(now, then)| now.since(&then))
}

fn kib_written(device: DeviceCounters) -> f64 {
    device.write_bytes as f64 / 1024.0
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::super::Cost;
    use super::*;
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

    #[test]
    fn a_tiny_state_is_saved_and_brought_back_in_every_way() {
        let directory = directory();
        let site = Site::open(directory.path()).unwrap();
        let mut told = Vec::new();
        let mut progress = |what: &str, done: usize| told.push((what.to_owned(), done));
        let (results, _) = measure(&site, &tiny(), &Stop::default(), &mut progress).unwrap();

        assert_eq!(results.dump.trials.len(), 2);
        assert_eq!(results.replay.records, 4096);
        let policies: Vec<Policy> = results.logs.iter().map(|log| log.policy).collect();
        assert_eq!(policies, Policy::ALL);
        for log in &results.logs {
            assert_eq!(log.bytes_per_update, 256.0);
            for trial in &log.trials {
                let each = log.policy == Policy::EveryUpdate;
                assert!(!each || trial.syncs == trial.updates);
                assert!(log.policy != Policy::Never || trial.syncs == 0);
            }
        }
        let by_seconds = |b: &&super::super::BreakEven| b.cost == Cost::Seconds;
        assert_eq!(results.break_even.iter().filter(by_seconds).count(), 4);

        assert_eq!(told[0], ("a state of 1 MiB".to_owned(), 0));
        assert_eq!(told[1], ("dump 1 MiB".to_owned(), 0));
        assert_eq!(told[12], ("log, never".to_owned(), 11));
        assert_eq!(told.len(), 1 + tiny().trials());
        assert_eq!(fs::read_dir(site.private()).unwrap().count(), 0);
    }

    #[test]
    fn a_request_to_stop_ends_the_run() {
        let directory = directory();
        let site = Site::open(directory.path()).unwrap();
        for stop_at in 0..7 {
            let stop = Stop::default();
            let mut asked = 0;
            let mut progress = |_: &str, _: usize| {
                if asked == stop_at {
                    stop.flag().store(true, Ordering::Relaxed);
                }
                asked += 1;
            };
            let error = measure(&site, &tiny(), &stop, &mut progress).unwrap_err();
            assert!(matches!(error, Error::Stopped), "{stop_at}: {error}");
            for entry in fs::read_dir(site.private()).unwrap() {
                fs::remove_file(entry.unwrap().path()).unwrap();
            }
        }
    }

    #[test]
    fn a_dump_that_was_damaged_ends_the_run() {
        for when in ["replay", "log, never", "log, group"] {
            let directory = directory();
            let site = Site::open(directory.path()).unwrap();
            let path = site.private().join(DUMP);
            let mut progress = |what: &str, _: usize| {
                if what == when {
                    let mut bytes = fs::read(&path).unwrap();
                    bytes[5_000] ^= 1;
                    fs::write(&path, bytes).unwrap();
                }
            };
            let error = measure(&site, &tiny(), &Stop::default(), &mut progress).unwrap_err();
            assert!(matches!(error, Error::Io { .. }), "{when}: {error}");
        }
    }

    #[test]
    fn each_round_begins_with_another_policy() {
        assert_eq!(order_of(1), [0, 1, 2, 3]);
        assert_eq!(order_of(2), [1, 2, 3, 0]);
        assert_eq!(order_of(5), [0, 1, 2, 3]);
    }

    #[test]
    fn a_log_with_too_few_or_torn_records_is_refused() {
        let found = |records, torn_bytes| restart::Replayed {
            records,
            torn_bytes,
        };
        check_log(found(5, 0), 5).unwrap();
        assert!(check_log(found(4, 0), 5).is_err());
        assert!(check_log(found(5, 1), 5).is_err());
    }
}
