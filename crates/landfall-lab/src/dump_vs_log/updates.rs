//! Making updates durable for a time, under a policy.
//!
//! **What is timed.** The stall of an update lasts from when it was due (see `pace`) until it is accepted: until the
//! call that logs it has returned where nobody waits for a commit, and until it is durable where the program does.
//! Making the record is part of that; of a state that is not the engine's, putting it into the state comes afterwards
//! and is in no figure, as in any write-ahead log. What a policy costs the program is the time spent in the calls
//! that log and commit. A commit on another thread is not the program's time, though an append may have to wait for
//! it: then it is.
//!
//! **When a log cannot keep up** it goes on until its time is over, with a backlog that grows. The updates
//! that were never accepted are in no figure, and the stalls are then those of a log this long: a longer
//! one would have longer ones.
//!
//! **Threads.** One makes updates. [`beside`] is for one that does something else meanwhile, which ends when the
//! updates do, or ends them.

use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use landfall::{Journaled, Log};
use landfall_results::Policy;

use super::pace::{Pace, wait_until};
use super::restored::Changed;
use super::state::{Changes, Command, Part};
use super::{CHUNK, engine, interrupted_if};
use crate::Stop;

const SECOND: Duration = Duration::from_secs(1);
/// Longest stall that is told apart, in nanoseconds: longer ones count as this.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Where updates go.
#[derive(Clone, Copy)]
pub(super) enum Target<'a> {
    /// To a plain file that was opened to append: what a program writes by hand.
    File(&'a File),
    /// To the engine's log.
    Log(&'a Log),
    /// To the engine's state, by its log of commands.
    State(&'a Journaled<Part>),
}

/// What is to be done.
pub(super) struct Task<'a> {
    pub target: Target<'a>,
    pub policy: Policy,
    pub pace: Pace,
    pub stop: &'a Stop,
    /// Set by whoever wants it to end early.
    pub over: &'a AtomicBool,
}

/// What happened.
pub(super) struct Logged {
    /// Updates accepted.
    pub updates: u64,
    /// From the start until the time was over and nothing was under way.
    pub elapsed: Duration,
    /// Spent in calls that log and commit, by the thread that makes updates.
    pub in_calls: Duration,
    pub longest_stall: Duration,
    /// In nanoseconds.
    pub stalls: Histogram<u64>,
    /// How often the program waited for a sync or a commit.
    pub commits: u64,
}

/// Makes changes as they come in, until the time is over or somebody says so; notes which.
pub(super) fn run(
    task: &Task<'_>,
    changes: &mut Changes,
    changed: &mut Changed,
) -> io::Result<Logged> {
    let Task { policy, pace, .. } = task;
    let is_over = || task.over.load(Ordering::Acquire);
    let record_bytes = changes.record_bytes();
    let at_once = match policy {
        // No more than this, or memory would grow with the backlog.
        Policy::Group => (CHUNK / record_bytes).max(1) as u64,
        _ => 1,
    };
    let mut buffer = Vec::with_capacity(CHUNK.max(record_bytes));
    let mut logged = Logged::nothing()?;
    let start = Instant::now();
    while logged.updates < pace.updates && !(is_over() && logged.updates > 0) {
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
        task.target.take(&buffer, record_bytes, policy.waits())?;
        let accepted = Instant::now();

        logged.in_calls += accepted - begin;
        logged.commits += u64::from(policy.waits());
        logged.updates += come_in;
        for index in first..first + come_in {
            logged.stalled((accepted - start).saturating_sub(pace.due(index)));
        }
        for record in buffer.chunks_exact(record_bytes) {
            changed.note(record)?;
        }
    }
    if !is_over() {
        // So that all policies have the same time, and one that keeps up has the rate of the updates.
        wait_until(start + pace.time, task.stop)?;
    }
    logged.elapsed = start.elapsed();
    Ok(logged)
}

impl Target<'_> {
    /// Logs these records, and makes them durable if that is waited for.
    fn take(&self, records: &[u8], record_bytes: usize, waits: bool) -> io::Result<()> {
        let each = records.chunks_exact(record_bytes);
        match self {
            Target::File(file) => {
                let mut file = *file;
                file.write_all(records)?;
                if waits {
                    file.sync_data()?;
                }
                Ok(())
            }
            Target::Log(log) if waits && records.len() == record_bytes => {
                log.append_durable(records).map(drop).map_err(engine)
            }
            Target::Log(log) => {
                for record in each {
                    log.append(record).map_err(engine)?;
                }
                self.commit_if(waits)
            }
            Target::State(state) => {
                for record in each {
                    let put = Command::Put(record.to_vec());
                    state.apply(put).map_err(engine)??;
                }
                self.commit_if(waits)
            }
        }
    }

    fn commit_if(&self, waits: bool) -> io::Result<()> {
        if waits { self.commit() } else { Ok(()) }
    }

    /// Makes everything durable that was logged.
    pub fn commit(&self) -> io::Result<()> {
        match self {
            Target::File(file) => file.sync_data(),
            Target::Log(log) => log.commit().map(drop).map_err(engine),
            Target::State(state) => state.commit().map_err(engine),
        }
    }
}

impl Logged {
    fn nothing() -> io::Result<Logged> {
        Ok(Logged {
            updates: 0,
            elapsed: Duration::ZERO,
            in_calls: Duration::ZERO,
            longest_stall: Duration::ZERO,
            stalls: Histogram::new_with_bounds(1, LONGEST_NS, 3).map_err(io::Error::other)?,
            commits: 0,
        })
    }

    fn stalled(&mut self, stall: Duration) {
        self.longest_stall = self.longest_stall.max(stall);
        let nanoseconds = u64::try_from(stall.as_nanos()).unwrap_or(u64::MAX);
        self.stalls.saturating_record(nanoseconds);
    }
}

/// Runs `other` on a thread while `updates` runs here. `other` is told to end when updates have, and `over` is set when
/// it has failed; returns both of what they return, or why one failed.
pub(super) fn beside<A: Send, B>(
    over: &AtomicBool,
    other: impl FnOnce(&AtomicBool) -> io::Result<A> + Send,
    updates: impl FnOnce() -> io::Result<B>,
) -> io::Result<(A, B)> {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, || {
            let done = other(&ended);
            if done.is_err() {
                over.store(true, Ordering::Release);
            }
            done
        })?;
        let end = EndOnDrop {
            ended: &ended,
            thread: thread.thread().clone(),
        };
        let updated = updates();
        drop(end);
        let panicked = |_| Err(io::Error::other("the thread beside the updates panicked"));
        let done = thread.join().unwrap_or_else(panicked);
        let updated = updated?;
        Ok((done?, updated))
    })
}

/// Ends the other thread on every way out, so that nobody waits for it for ever.
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

/// Commits a second after the start and then every second, or as often as commits allow, until `ended`.
pub(super) fn commit_every_second(target: Target<'_>, ended: &AtomicBool) -> io::Result<()> {
    let mut next = Instant::now() + SECOND;
    while !ended.load(Ordering::Acquire) {
        let left = next.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            // It may end early for no reason.
            thread::park_timeout(left);
            continue;
        }
        target.commit()?;
        next = (next + SECOND).max(Instant::now());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::restart;
    use super::super::restored::tests::copy;
    use super::super::state::tests::{plan, state};
    use super::*;
    use landfall::{Lsn, Options};
    use std::path::Path;

    fn options() -> Options {
        Options::default().segment_bytes(1 << 20).spare_segments(1)
    }

    fn task<'a>(
        target: Target<'a>,
        policy: Policy,
        pace: Pace,
        stop: &'a Stop,
        over: &'a AtomicBool,
    ) -> Task<'a> {
        Task {
            target,
            policy,
            pace,
            stop,
            over,
        }
    }

    /// Logs to the engine's log on a disk; checks that what was accepted is in it.
    fn log(policy: Policy, pace: Pace) -> (Logged, landfall::Counters) {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("log");
        let (state, mut changes) = state(directory.path());
        let mut restored = copy(&state);
        let mut changed = Changed::default();
        let (stop, over) = (Stop::default(), AtomicBool::new(false));
        let log = Log::open(&path, options()).unwrap();
        let target = Target::Log(&log);
        let task = task(target, policy, pace, &stop, &over);
        let mut run = || run(&task, &mut changes, &mut changed);
        let logged = match policy {
            Policy::EverySecond => {
                let commits = |ended: &AtomicBool| commit_every_second(target, ended);
                beside(&over, commits, run).unwrap().1
            }
            _ => run().unwrap(),
        };
        let counters = log.counters();
        log.close().unwrap();
        let (_log, replayed) =
            restart::replay_log(&path, options(), Lsn(1), &mut restored).unwrap();
        assert_eq!(replayed, logged.updates);
        assert_eq!(logged.stalls.len(), logged.updates);
        restored.verify(&state, &changed).unwrap();
        (logged, counters)
    }

    #[test]
    fn a_log_that_is_never_committed_is_not() {
        let (logged, counters) = log(Policy::Never, Pace::new(2_000.0, 0.1));
        assert_eq!((logged.commits, counters.commits), (0, 0));
    }

    #[test]
    fn every_update_is_committed_on_its_own() {
        let (logged, counters) = log(Policy::EveryUpdate, Pace::new(200.0, 0.1));
        assert!(logged.updates > 0);
        assert_eq!(logged.commits, logged.updates);
        assert_eq!(counters.flushes, logged.updates);
    }

    #[test]
    fn a_group_is_committed_together() {
        // More than any disk can sync one by one: they must share.
        let (logged, _) = log(Policy::Group, Pace::new(2_000_000.0, 0.1));
        assert!(logged.commits > 0 && logged.commits < logged.updates);
        let most = (CHUNK / plan().record_bytes as usize) as u64 * logged.commits;
        assert!(logged.updates <= most);
    }

    #[test]
    fn another_thread_commits_every_second() {
        let (logged, counters) = log(Policy::EverySecond, Pace::new(100.0, 1.3));
        assert_eq!(logged.commits, 0);
        assert!(counters.commits <= 1, "{counters:?}");
    }

    #[test]
    fn a_log_that_cannot_keep_up_ends_when_its_time_is_over() {
        let pace = Pace::new(1e9, 0.05);
        let (logged, _) = log(Policy::Never, pace);
        assert!(logged.updates < pace.updates);
        assert!(logged.elapsed >= pace.time);
    }

    fn changes_in(directory: &Path) -> Changes {
        state(directory).1
    }

    /// A pipe takes writes and cannot be synced, a file opened to read cannot be written.
    #[test]
    fn the_first_failure_of_either_thread_ends_the_updates() {
        let directory = tempfile::tempdir().unwrap();
        let mut changes = changes_in(directory.path());
        let mut changed = Changed::default();
        let (stop, over) = (Stop::default(), AtomicBool::new(false));
        let hours = Pace::new(10.0, 3_600.0);
        let (_reader, writer) = io::pipe().unwrap();
        let unsyncable = File::from(std::os::fd::OwnedFd::from(writer));
        let target = Target::File(&unsyncable);
        let task_of_file = task(target, Policy::EverySecond, hours, &stop, &over);
        let commits = |ended: &AtomicBool| commit_every_second(target, ended);
        let failed = beside(&over, commits, || {
            run(&task_of_file, &mut changes, &mut changed)
        });
        assert!(failed.is_err());

        let over = AtomicBool::new(false);
        let unwritable = File::open("/dev/null").unwrap();
        let target = Target::File(&unwritable);
        let task = task(target, Policy::EverySecond, hours, &stop, &over);
        let commits = |ended: &AtomicBool| commit_every_second(target, ended);
        let failed = beside(&over, commits, || run(&task, &mut changes, &mut changed));
        assert!(failed.is_err());
    }

    #[test]
    fn updates_end_when_somebody_says_so_but_not_before_the_first() {
        let directory = tempfile::tempdir().unwrap();
        let (state, mut changes) = state(directory.path());
        let mut changed = Changed::default();
        let (stop, over) = (Stop::default(), AtomicBool::new(true));
        let pace = Pace::without_end(1.0);
        let task = task(
            Target::State(&state),
            Policy::EverySecond,
            pace,
            &stop,
            &over,
        );
        let logged = run(&task, &mut changes, &mut changed).unwrap();
        assert_eq!(logged.updates, 1);
    }

    #[test]
    fn a_request_to_stop_ends_every_policy() {
        let directory = tempfile::tempdir().unwrap();
        let mut changes = changes_in(directory.path());
        let (stop, over) = (Stop::default(), AtomicBool::new(false));
        stop.flag().store(true, Ordering::Relaxed);
        let file = tempfile::tempfile().unwrap();
        for policy in [
            Policy::Never,
            Policy::EverySecond,
            Policy::Group,
            Policy::EveryUpdate,
        ] {
            let pace = Pace::new(1.0, 3_600.0);
            let task = task(Target::File(&file), policy, pace, &stop, &over);
            let error = run(&task, &mut changes, &mut Changed::default())
                .err()
                .unwrap();
            assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        }
    }
}
