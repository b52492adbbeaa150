//! The trials: what is prepared for each, what is timed and counted, and that all comes back.
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
use landfall_results::{Policy, Saving, Trial, Way};

use super::dump::{self, DUMP};
use super::pace::Pace;
use super::restored::Changed;
use super::state::{self, Changes, Part};
use super::trial::{Measured, of_replay};
use super::updates::{self, Target, Task, beside, commit_every_second};
use super::{Plan, engine, interrupted_if, restart};
use crate::readings::Readings;
use crate::{Site, Stop};

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

/// What is open from one trial to the next.
pub(super) struct Run<'a> {
    site: &'a Site,
    plan: &'a Plan,
    stop: &'a Stop,
    /// Absent while it is opened again, and for good if that fails: then the run ends.
    state: Option<Journaled<Part>>,
    log: Option<Log>,
    changes: Changes,
    /// Whether every file was gone from the page cache before it was read back.
    pub is_cold: bool,
}

impl<'a> Run<'a> {
    /// Gives the state a content, and the first dump and snapshot something to replace.
    pub fn begin(site: &'a Site, plan: &'a Plan, stop: &'a Stop) -> io::Result<Run<'a>> {
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

    /// Closes what is open, which fails where the last flush does, and removes what was written. How that went is
    /// returned: what is left behind makes no figure wrong.
    pub fn end(mut self) -> io::Result<io::Result<()>> {
        let log = self.log.take().map(Log::close);
        let state = self.state.take().map(Journaled::close);
        for closed in [log, state].into_iter().flatten() {
            closed.map_err(engine)?;
        }
        Ok(self.remove())
    }

    fn remove(&self) -> io::Result<()> {
        let log = fs::remove_dir_all(self.path(LOG));
        let state = fs::remove_dir_all(self.path(STATE));
        let dump = fs::remove_file(self.path(DUMP));
        log.and(state).and(dump)
    }

    pub fn trial(&mut self, saving: Saving, round: u32) -> io::Result<Trial> {
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
    use super::*;

    #[test]
    fn a_log_with_too_few_records_is_refused() {
        all_came_back(5, 5).unwrap();
        assert!(all_came_back(4, 5).is_err());
    }
}
