//! What all users of a log share, and who does the work.
//!
//! Threads: any number append and commit. Appending puts a record into the group that is being *gathered*,
//! under the one lock. Whoever wants a commit while nobody writes takes the driver, writes the group that
//! was gathered and makes it durable, while the next one is gathered; those who come meanwhile wait for
//! that one. So the device is asked again as soon as it is free, with everything that came, and who is alone
//! hands nothing over to anybody. Two threads of the log's own are started when they are needed: `segments`
//! makes segments ahead of need, `writer` writes for those who do not wait.
//!
//! The lock is never held while a file is touched, a callback is called, or somebody waits for another
//! lock; the lock of the control file is taken before it, never after.
//!
//! After a failed write or flush nobody knows what is on the disk. The log is poisoned: nothing more is
//! appended or acknowledged by this handle.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::control::ControlFile;
use super::counters::{Counters, Tally};
use super::driver::Driver;
use super::format::{Control, Geometry};
use super::gate::Gate;
use super::group::Group;
use super::segments::{Segments, Task};
use super::waiters::Waiters;
use crate::environment::{Environment, Fault};
use crate::{Error, Lsn, Options};

/// What is true of the log's beginning and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Durable {
    /// LSN of the first record that is not durable with its batch.
    pub lsn: u64,
    /// Everything before this position is durable.
    pub position: u64,
}

/// A group that is being written.
#[derive(Clone, Copy)]
pub(super) struct Flight {
    pub(super) parity: usize,
    /// LSN after its last whole unit.
    pub(super) end: u64,
    pub(super) is_synced: bool,
    /// Threads that came when it was under way, and wait for it.
    pub(super) joined: u32,
}

pub(crate) struct State<E: Environment> {
    pub(super) filling: Group<E>,
    /// There unless somebody is writing.
    pub(super) driver: Option<Driver<E>>,
    pub(super) flight: Option<Flight>,
    /// Where the next block goes, unless one is open.
    pub(super) next_position: u64,
    pub(super) next_lsn: u64,
    /// LSN after the last whole unit that was appended.
    pub(super) unit_end: u64,
    /// A thread is appending a unit that does not fit into a block.
    pub(super) is_unit_open: bool,
    pub durable: Durable,
    /// Threads that lately committed at the same time.
    pub(super) committers: u32,
    /// Until when the group waits for the others, if it does.
    pub(super) gather_until: Option<Duration>,
    /// Nobody waited for the last group to be durable: segments are gone through faster than zeros
    /// could be written ahead, and those would only take the disk's time.
    pub is_streaming: bool,
    /// Groups that are not waited for, and how many that will be when it is in vain the next time: nearly twice
    /// as many.
    pub(super) groups_to_skip: u32,
    pub(super) in_vain: u32,
    /// How long a group takes to become durable, lately.
    pub(super) flush_time: Duration,
    pub segments: Segments<E>,
    pub first_lsn: u64,
    pub(super) poison: Option<(&'static str, Arc<std::io::Error>)>,
    pub is_closing: bool,
    /// Somebody follows the end.
    pub followers: u32,
    pub(super) has_writer: bool,
    pub(super) threads: Vec<E::Thread>,
    pub(super) tally: Tally,
}

impl<E: Environment> State<E> {
    pub fn is_poisoned(&self) -> bool {
        self.poison.is_some()
    }

    /// LSN after the last whole unit that was appended.
    pub fn appended(&self) -> u64 {
        self.unit_end
    }

    /// What is to be done for the segments.
    pub fn next_task(&mut self) -> Option<Task<E>> {
        self.segments.task(!self.is_streaming)
    }
}

pub(crate) struct Shared<E: Environment> {
    pub environment: E,
    pub geometry: Geometry,
    pub options: Options,
    pub log: u64,
    pub epoch: u64,
    pub(super) block_bytes: u64,
    pub state: E::Mutex<State<E>>,
    pub control: E::Mutex<ControlFile<E>>,
    /// Those who wait for one of the two groups to be durable.
    pub(super) done: [Gate<E>; 2],
    /// Those who cannot append now: no room in the buffer, no segment, another one's unit.
    pub space: Waiters<E>,
    /// The thread that makes segments.
    pub work: Waiters<E>,
    /// The thread that writes for those who do not wait.
    pub(super) writing: Waiters<E>,
    /// Those who follow the end.
    pub durable: Waiters<E>,
    /// Bytes of the log that are promised to who has not appended yet.
    pub(super) reserved: AtomicU64,
    /// What `State::durable.lsn` was lately, for who only asks.
    pub(super) durable_lsn: AtomicU64,
}

/// What a log begins with.
pub(crate) struct Begin<E: Environment> {
    pub environment: E,
    pub geometry: Geometry,
    pub options: Options,
    pub log: u64,
    pub epoch: u64,
    pub control: ControlFile<E>,
    pub segments: Segments<E>,
    pub tail: super::scan::Place,
    pub next_lsn: u64,
    pub first_lsn: u64,
}

pub(super) type StateOf<'a, E> = <E as Environment>::Guard<'a, State<E>>;

impl<E: Environment> Shared<E> {
    pub fn new(begin: Begin<E>) -> Shared<E> {
        let Begin {
            environment,
            geometry,
            options,
            log,
            epoch,
            control,
            segments,
            tail,
            next_lsn,
            first_lsn,
        } = begin;
        let spare = Group::new(options.buffer_bytes, 1);
        let driver = Driver::new(&environment, geometry, log, epoch, tail, spare);
        let state = State {
            filling: Group::new(options.buffer_bytes, 0),
            driver: Some(driver),
            flight: None,
            next_position: tail.position,
            next_lsn,
            unit_end: next_lsn,
            is_unit_open: false,
            durable: Durable {
                lsn: next_lsn,
                position: tail.position,
            },
            committers: 1,
            gather_until: None,
            is_streaming: false,
            groups_to_skip: 0,
            in_vain: 0,
            flush_time: Duration::ZERO,
            segments,
            first_lsn,
            poison: None,
            is_closing: false,
            followers: 0,
            has_writer: false,
            threads: Vec::new(),
            tally: Tally::default(),
        };
        Shared {
            block_bytes: options.block_bytes(geometry.segment, geometry.granule),
            environment,
            geometry,
            options,
            log,
            epoch,
            state: E::mutex(state),
            control: E::mutex(control),
            done: [Gate::new(), Gate::new()],
            space: Waiters::new(),
            work: Waiters::new(),
            writing: Waiters::new(),
            durable: Waiters::new(),
            reserved: AtomicU64::new(0),
            durable_lsn: AtomicU64::new(next_lsn),
        }
    }

    /// LSN of the first record that is not durable.
    pub fn durable_lsn(&self) -> u64 {
        self.durable_lsn.load(Ordering::Acquire)
    }

    pub(super) fn refusal(&self, state: &State<E>) -> Option<Error> {
        if let Some((doing, source)) = &state.poison {
            return Some(Error::Poisoned {
                doing,
                source: source.clone(),
            });
        }
        state.is_closing.then_some(Error::Closed)
    }

    pub fn poison(&self, state: &mut State<E>, doing: &'static str, error: std::io::Error) {
        tracing::error!(doing, %error, "the log is poisoned");
        state.poison.get_or_insert((doing, Arc::new(error)));
        // Whatever they wait for will not come.
        for gate in &self.done {
            gate.open_for_all();
        }
        for waiting in [&self.space, &self.work, &self.durable] {
            waiting.wake_all();
        }
    }

    /// Gives up the records before `lsn`, durably, and the segments that have no others.
    pub fn truncate_before(&self, lsn: u64) -> Result<(), Error> {
        let mut control = E::lock(&self.control);
        let state = E::lock(&self.state);
        if let Some(error) = self.refusal(&state) {
            return Err(error);
        }
        if lsn <= state.first_lsn {
            return Ok(());
        }
        if lsn > state.durable.lsn {
            return Err(Error::NotThereYet {
                asked: Lsn(lsn),
                next: Lsn(state.durable.lsn),
            });
        }
        let needed = state.segments.first_needed(lsn, state.durable.position);
        drop(state);
        let record = Control {
            first_segment: needed,
            first_lsn: lsn,
            ..control.record
        };
        let release = || {
            let mut state = E::lock(&self.state);
            state.first_lsn = lsn;
            state.segments.release_before(needed);
            drop(state);
            self.work.wake_all();
        };
        if self.environment.is_planted(Fault::ReuseBeforeTruncate) {
            release();
            self.environment.yield_now();
        }
        if let Err(error) = control.write(record) {
            let mut state = E::lock(&self.state);
            self.poison(
                &mut state,
                "truncating",
                std::io::Error::other(error.to_string()),
            );
            return Err(error);
        }
        release();
        Ok(())
    }

    /// LSN after the last whole unit.
    pub fn appended(&self) -> u64 {
        E::lock(&self.state).unit_end
    }

    pub fn counters(&self) -> Counters {
        E::lock(&self.state).tally.counters()
    }

    pub fn keep_thread(&self, thread: E::Thread) {
        E::lock(&self.state).threads.push(thread);
    }

    /// Commits what was appended, ends the log's threads, and waits for them.
    pub fn close(self: &Arc<Self>) -> Result<(), Error> {
        let end = self.appended();
        let committed = self.commit(end);
        let threads = {
            let mut state = E::lock(&self.state);
            state.is_closing = true;
            std::mem::take(&mut state.threads)
        };
        self.work.wake_all();
        self.writing.wake_all();
        self.space.wake_all();
        self.durable.wake_all();
        let is_first = !threads.is_empty();
        threads.into_iter().for_each(E::join);
        if is_first {
            self.environment.unlock_directory();
        }
        committed
    }
}
