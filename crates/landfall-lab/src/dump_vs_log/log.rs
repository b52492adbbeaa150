//! Logging updates for a time, under a policy.
//!
//! **What is timed.** The stall of an update lasts from when it was due (see `pace`) until it is accepted:
//! until its write has returned where nobody waits for a sync, and until it is durable where the program
//! does. Making the record is part of that; putting it into the state comes afterwards, as in a write-ahead
//! log. What a policy costs the program is the time spent in `write` and `fdatasync` alone. A sync on
//! another thread is not the program's time, though a write may have to wait for it: then it is.
//!
//! **When a log cannot keep up** it goes on until its time is over, with a backlog that grows. The updates
//! that were never accepted are in no figure, and the stalls are then those of a log this long: a longer
//! one would have longer ones.
//!
//! **Threads.** One writes. Under `every-second` a second one syncs; it ends when the writer does, however
//! that ends, and the first of the two that fails stops the other.

use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::pace::{Pace, wait_until};
use super::state::{Changes, State};
use super::{CHUNK, Policy, interrupted_if};
use crate::Stop;

const SECOND: Duration = Duration::from_secs(1);
/// Longest stall that is told apart, in nanoseconds: longer ones count as this.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// What is to be logged, and where.
pub(super) struct Task<'a> {
    pub policy: Policy,
    pub pace: Pace,
    /// Opened to append.
    pub file: &'a File,
    pub stop: &'a Stop,
}

/// What happened.
pub(super) struct Logged {
    /// Updates accepted.
    pub updates: u64,
    /// From the start until the time was over and nothing was under way.
    pub elapsed: Duration,
    /// Spent in calls of the kernel, by the thread that writes.
    pub in_calls: Duration,
    pub longest_stall: Duration,
    /// In nanoseconds.
    pub stalls: Histogram<u64>,
    pub syncs: u64,
    /// Bytes written.
    pub bytes: u64,
}

/// Logs changes of `state`, and makes them.
pub(super) fn run(task: &Task<'_>, changes: &mut Changes, state: &mut State) -> io::Result<Logged> {
    let failed = AtomicBool::new(false);
    if task.policy != Policy::EverySecond {
        return write_updates(task, changes, state, &failed);
    }
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let syncer = thread::Builder::new()
            .spawn_scoped(scope, || sync_every_second(task.file, &ended, &failed))?;
        let end_syncer = EndOnDrop {
            ended: &ended,
            thread: syncer.thread().clone(),
        };
        let logged = write_updates(task, changes, state, &failed);
        drop(end_syncer);
        let panicked = |_| Err(io::Error::other("the thread that syncs panicked"));
        let syncs = syncer.join().unwrap_or_else(panicked);
        let mut logged = logged?;
        logged.syncs += syncs?;
        Ok(logged)
    })
}

/// Writes the updates as they come in, until the time is over or the other thread has failed.
fn write_updates(
    task: &Task<'_>,
    changes: &mut Changes,
    state: &mut State,
    failed: &AtomicBool,
) -> io::Result<Logged> {
    let Task { policy, pace, .. } = task;
    let record_bytes = state.record_bytes();
    let at_once = match policy {
        // No more than this, or memory would grow with the backlog.
        Policy::Group => (CHUNK / record_bytes).max(1) as u64,
        _ => 1,
    };
    let waits = matches!(policy, Policy::Group | Policy::EveryUpdate);
    let mut file = task.file;
    let mut buffer = Vec::with_capacity(CHUNK.max(record_bytes));
    let mut logged = Logged::nothing()?;
    let start = Instant::now();
    while logged.updates < pace.updates && !failed.load(Ordering::Relaxed) {
        let first = logged.updates;
        interrupted_if(task.stop)?;
        wait_until(start + pace.due(first), task.stop)?;
        let now = start.elapsed();
        if now >= pace.time && first > 0 {
            break;
        }
        let come_in = pace.due_by(now).saturating_sub(first).clamp(1, at_once);
        buffer.clear();
        (0..come_in).for_each(|_| changes.append(&mut buffer));

        let begin = Instant::now();
        file.write_all(&buffer)?;
        if waits {
            file.sync_data()?;
            logged.syncs += 1;
        }
        let accepted = Instant::now();

        logged.in_calls += accepted - begin;
        logged.bytes += buffer.len() as u64;
        logged.updates += come_in;
        for index in first..first + come_in {
            logged.stalled((accepted - start).saturating_sub(pace.due(index)));
        }
        for record in buffer.chunks_exact(record_bytes) {
            state.apply(record)?;
        }
    }
    if !failed.load(Ordering::Relaxed) {
        // So that all policies have the same time, and one that keeps up has the rate of the updates.
        wait_until(start + pace.time, task.stop)?;
    }
    logged.elapsed = start.elapsed();
    Ok(logged)
}

impl Logged {
    fn nothing() -> io::Result<Logged> {
        Ok(Logged {
            updates: 0,
            elapsed: Duration::ZERO,
            in_calls: Duration::ZERO,
            longest_stall: Duration::ZERO,
            stalls: Histogram::new_with_bounds(1, LONGEST_NS, 3).map_err(io::Error::other)?,
            syncs: 0,
            bytes: 0,
        })
    }

    fn stalled(&mut self, stall: Duration) {
        self.longest_stall = self.longest_stall.max(stall);
        let nanoseconds = u64::try_from(stall.as_nanos()).unwrap_or(u64::MAX);
        self.stalls.saturating_record(nanoseconds);
    }
}

/// Ends the thread that syncs on every way out, so that nobody waits for it for ever.
struct EndOnDrop<'a> {
    ended: &'a AtomicBool,
    thread: Thread,
}

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Syncs a second after the start and then every second, or as often as syncs allow; returns how often.
fn sync_every_second(file: &File, ended: &AtomicBool, failed: &AtomicBool) -> io::Result<u64> {
    let mut syncs = 0;
    let mut next = Instant::now() + SECOND;
    while !ended.load(Ordering::Acquire) {
        let left = next.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            // It may end early for no reason.
            thread::park_timeout(left);
            continue;
        }
        if let Err(error) = file.sync_data() {
            failed.store(true, Ordering::Relaxed);
            return Err(error);
        }
        syncs += 1;
        next = (next + SECOND).max(Instant::now());
    }
    Ok(syncs)
}

#[cfg(test)]
mod tests {
    use super::super::{Plan, restart};
    use super::*;
    use std::fs::OpenOptions;

    const RECORD: u64 = 100;
    const RECORDS: u64 = 1000;

    fn state_and_changes() -> (State, Changes) {
        let plan = Plan {
            state_bytes: RECORDS * RECORD,
            record_bytes: RECORD,
            ..Plan::short()
        };
        let mut state = State::new(&plan).unwrap();
        let mut changes = Changes::of(&state, 1);
        state.fill(&mut changes, &Stop::default()).unwrap();
        (state, changes)
    }

    /// Logs to a file on a disk; checks that what was accepted is in the log.
    fn log(policy: Policy, pace: Pace) -> Logged {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("log");
        let file = OpenOptions::new()
            .create_new(true)
            .append(true)
            .open(&path)
            .unwrap();
        let (mut state, mut changes) = state_and_changes();
        let mut restored = state.like(state.bytes().to_vec());
        let stop = Stop::default();
        let task = Task {
            policy,
            pace,
            file: &file,
            stop: &stop,
        };
        let logged = run(&task, &mut changes, &mut state).unwrap();
        let replayed = restart::replay(&path, &mut restored, &stop).unwrap();
        assert_eq!(replayed.records, logged.updates);
        assert_eq!(logged.bytes, logged.updates * RECORD);
        assert_eq!(logged.stalls.len(), logged.updates);
        restart::verify(restored.bytes(), &state).unwrap();
        logged
    }

    #[test]
    fn a_log_that_is_never_synced_is_not() {
        assert_eq!(log(Policy::Never, Pace::new(2_000.0, 0.1)).syncs, 0);
    }

    #[test]
    fn every_update_is_synced_on_its_own() {
        let logged = log(Policy::EveryUpdate, Pace::new(200.0, 0.1));
        assert!(logged.updates > 0);
        assert_eq!(logged.syncs, logged.updates);
    }

    #[test]
    fn a_group_is_synced_together() {
        // More than any disk can sync one by one: they must share.
        let logged = log(Policy::Group, Pace::new(2_000_000.0, 0.1));
        assert!(logged.syncs > 0 && logged.syncs < logged.updates);
        let most = (CHUNK as u64 / RECORD) * logged.syncs;
        assert!(logged.updates <= most);
    }

    #[test]
    fn another_thread_syncs_every_second() {
        let logged = log(Policy::EverySecond, Pace::new(100.0, 1.3));
        assert!(logged.syncs <= 1, "{}", logged.syncs);
        assert_eq!(log(Policy::EverySecond, Pace::new(100.0, 0.1)).syncs, 0);
    }

    #[test]
    fn a_log_that_cannot_keep_up_ends_when_its_time_is_over() {
        let pace = Pace::new(1e9, 0.05);
        let logged = log(Policy::Never, pace);
        assert!(logged.updates < pace.updates);
        assert!(logged.elapsed >= pace.time);
    }

    /// A pipe takes writes and cannot be synced, a file opened to read cannot be written.
    #[test]
    fn the_first_failure_of_either_thread_ends_the_log() {
        let (mut state, mut changes) = state_and_changes();
        let stop = Stop::default();
        let (_reader, writer) = io::pipe().unwrap();
        let unsyncable = File::from(std::os::fd::OwnedFd::from(writer));
        let task = Task {
            policy: Policy::EverySecond,
            pace: Pace::new(10.0, 3_600.0),
            file: &unsyncable,
            stop: &stop,
        };
        assert!(run(&task, &mut changes, &mut state).is_err());

        let unwritable = File::open("/dev/null").unwrap();
        let task = Task {
            file: &unwritable,
            ..task
        };
        assert!(run(&task, &mut changes, &mut state).is_err());
    }

    #[test]
    fn a_request_to_stop_ends_every_policy() {
        let (mut state, mut changes) = state_and_changes();
        let stop = Stop::default();
        stop.flag().store(true, Ordering::Relaxed);
        let file = tempfile::tempfile().unwrap();
        for policy in Policy::ALL {
            let task = Task {
                policy,
                pace: Pace::new(1.0, 3_600.0),
                file: &file,
                stop: &stop,
            };
            let error = run(&task, &mut changes, &mut state).err().unwrap();
            assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        }
    }
}
