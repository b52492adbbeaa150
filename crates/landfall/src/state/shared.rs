//! What all users of a state share; applying to it, and looking at it.
//!
//! Threads: any number apply and look. A command takes the lock of its part, changes it, and is appended to the log before
//! the lock is let go of: so the log has the commands of a part in the order in which they were applied, and what
//! others see is in the log. Waiting until it is durable is done without the lock; only where the log's buffers are full,
//! or too many futures wait, is the disk waited for with it. Two threads of the state's own: `snapshots`
//! takes them when they are due, `interval` commits for the policy of that name.
//!
//! Locks are taken in this order: that of taking snapshots, a part's, the schedule's or the log's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::options::{Policy, StateOptions};
use super::schedule::Schedule;
use super::snapshots::Taking;
use super::{State, StateCounters};
use crate::environment::{Environment, planted};
use crate::log::Handle;
use crate::log::event_count::EventCount;
use crate::log::interval::commit_at_intervals;
use crate::log::waiters::Waiters;
use crate::{Commit, Error};

/// Commands between two that are decoded and timed.
const SAMPLE: u64 = 64;

/// A part of the state.
pub(crate) struct Part<S> {
    pub state: S,
    /// Whether everything that was done to it is in the log.
    pub is_logged: bool,
}

/// What the thread that takes snapshots waits for.
pub(crate) struct Work<T> {
    pub is_due: bool,
    pub is_closing: bool,
    pub threads: Vec<T>,
}

pub(crate) struct Shared<S: State, E: Environment> {
    pub environment: E,
    pub options: StateOptions,
    pub log: Handle<E>,
    pub parts: Vec<E::RwLock<Part<S>>>,
    pub taking: E::Mutex<Taking>,
    pub schedule: E::Mutex<Schedule>,
    pub counters: E::Mutex<StateCounters>,
    pub work: E::Mutex<Work<E::Thread>>,
    pub due: Waiters<E>,
    /// Opened when the state is closed: the interval is over before its time.
    closing: EventCount<E>,
    pub is_closing: AtomicBool,
    /// Commands that came; 0 until one could be read back.
    applied: AtomicU64,
}

/// What a state begins with.
pub(crate) struct Begin<S, E: Environment> {
    pub environment: E,
    pub options: StateOptions,
    pub log: Handle<E>,
    pub parts: Vec<S>,
    pub taking: Taking,
    pub schedule: Schedule,
}

impl<S: State, E: Environment> Shared<S, E> {
    pub fn new(begin: Begin<S, E>) -> Shared<S, E> {
        let Begin {
            environment,
            options,
            log,
            parts,
            taking,
            schedule,
        } = begin;
        let parts = parts.into_iter().map(|state| {
            let is_logged = true;
            E::rw_lock(Part { state, is_logged })
        });
        Shared {
            environment,
            options,
            log,
            parts: parts.collect(),
            taking: E::mutex(taking),
            schedule: E::mutex(schedule),
            counters: E::mutex(StateCounters::default()),
            work: E::mutex(Work {
                is_due: false,
                is_closing: false,
                threads: Vec::new(),
            }),
            due: Waiters::new(),
            closing: EventCount::new(),
            is_closing: AtomicBool::new(false),
            applied: AtomicU64::new(0),
        }
    }

    fn index(part: u64) -> usize {
        (part % u64::from(S::PARTS)) as usize
    }

    pub fn share(&self, part: u64) -> E::Shared<'_, Part<S>> {
        E::share(&self.parts[Self::index(part)])
    }

    pub fn apply(&self, command: S::Command) -> Result<S::Output, Error> {
        match self.options.policy {
            Policy::EveryCommit => {
                let (output, lsn) =
                    self.log_and_apply(command, |log, record| log.append(record))?;
                self.log.commit_to(lsn)?;
                Ok(output)
            }
            // Nobody asks what becomes of it: if it cannot be durable, the next command cannot be logged.
            Policy::Group => {
                let append = |log: &Handle<E>, record: &[u8]| log.append_then(record, drop);
                Ok(self.log_and_apply(command, append)?.0)
            }
            Policy::Interval(_) => {
                let applied = self.log_and_apply(command, |log, record| log.append(record));
                Ok(applied?.0)
            }
        }
    }

    pub fn apply_async(&self, command: S::Command) -> Result<(S::Output, Commit), Error> {
        self.log_and_apply(command, |log, record| log.append_async(record))
    }

    fn log_and_apply<L>(
        &self,
        command: S::Command,
        append: impl FnOnce(&Handle<E>, &[u8]) -> Result<L, Error>,
    ) -> Result<(S::Output, L), Error> {
        let mut record = Vec::new();
        S::encode(&command, &mut record).map_err(|error| Error::Encode(error.to_string()))?;
        let is_sample = self.is_sample();
        let decoding = is_sample.then(|| self.read_back(&record)).transpose()?;
        // Once it is applied it must find its place.
        let reservation = self.log.shared.reserve(record.len())?;
        let part = Self::index(S::part(&command));
        let mut part = E::exclude(&self.parts[part]);
        if !part.is_logged && !planted!(self.environment, PartStaysUsable) {
            return Err(Error::Unlogged);
        }
        // Until it is in the log: also if one of the two panics.
        part.is_logged = false;
        let (output, applying) = if is_sample {
            self.time(|| part.state.apply(command))
        } else {
            (part.state.apply(command), Duration::ZERO)
        };
        let appended = append(&self.log, &record).map_err(|error| match error {
            // It says that nothing was done.
            Error::NoSpace { .. } => Error::Unlogged,
            error => error,
        })?;
        part.is_logged = true;
        drop((part, reservation));
        if let Some(decoding) = decoding {
            self.note(record.len(), decoding + applying);
        }
        Ok((output, appended))
    }

    /// Whether this command is one of those that are decoded and timed. Until one could be read back all are: a type that
    /// never can be read back is refused before anything is logged.
    fn is_sample(&self) -> bool {
        self.applied.load(Ordering::Relaxed) == 0
            || self
                .applied
                .fetch_add(1, Ordering::Relaxed)
                .is_multiple_of(SAMPLE)
    }

    /// Decodes a command, as a restart will, and says how long that took.
    fn read_back(&self, record: &[u8]) -> Result<Duration, Error> {
        let (decoded, took) = self.time(|| S::decode(record).map(drop));
        match decoded {
            Ok(()) => {
                self.applied.fetch_max(1, Ordering::Relaxed);
                Ok(took)
            }
            Err(error) => {
                self.applied.store(0, Ordering::Relaxed);
                Err(Error::Encode(format!("it cannot be read back: {error}")))
            }
        }
    }

    pub(super) fn time<R>(&self, work: impl FnOnce() -> R) -> (R, Duration) {
        let begin = self.environment.now();
        let done = work();
        (done, self.environment.now().saturating_sub(begin))
    }

    /// Takes note of what a command takes, and asks for a snapshot if one is due.
    fn note(&self, bytes: usize, took: Duration) {
        let next = self.log.next_lsn().0;
        let mut schedule = E::lock(&self.schedule);
        schedule.note(bytes, took);
        let is_due = schedule.is_due(next, self.options.max_recovery_time);
        drop(schedule);
        if is_due {
            E::lock(&self.work).is_due = true;
            self.due.wake_all();
        }
    }

    pub fn counters(&self) -> StateCounters {
        StateCounters {
            log: self.log.shared.counters(),
            ..E::lock(&self.counters).clone()
        }
    }

    /// Starts the threads that it needs.
    pub fn start(self: &Arc<Self>) -> Result<(), Error> {
        let spawn = |name: &str, work: fn(&Arc<Self>)| {
            let own = self.clone();
            let thread = self.environment.spawn(name, move || work(&own));
            thread.map_err(Error::io("start a thread of the state"))
        };
        let snapshots = spawn("landfall-snapshots", Self::take_snapshots)?;
        E::lock(&self.work).threads.push(snapshots);
        if matches!(self.options.policy, Policy::Interval(_)) {
            let interval = spawn("landfall-interval", Self::commit_now_and_then)?;
            E::lock(&self.work).threads.push(interval);
        }
        Ok(())
    }

    fn commit_now_and_then(self: &Arc<Self>) {
        if let Policy::Interval(interval) = self.options.policy {
            let (is_closing, closing) = (&self.is_closing, &self.closing);
            commit_at_intervals(&self.log, &self.environment, interval, is_closing, closing);
        }
    }

    /// Ends the state's threads, and closes its log. A process that was forked has neither.
    pub fn close(&self) -> Result<(), Error> {
        if !self.log.shared.is_ours() {
            return Ok(());
        }
        self.is_closing.store(true, Ordering::SeqCst);
        let threads = {
            let mut work = E::lock(&self.work);
            work.is_closing = true;
            std::mem::take(&mut work.threads)
        };
        self.due.wake_all();
        self.closing.notify_all();
        threads.into_iter().for_each(E::join);
        self.log.close()
    }
}
