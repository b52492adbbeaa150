//! What all users of a log share, and who does the work.
//!
//! Threads: any number append and commit. Appending puts a record into the group that is being *gathered*,
//! under the one lock. Whoever wants a commit while nobody writes takes the writer, writes the group that
//! was gathered and makes it durable, while the next one is gathered; those who come meanwhile wait for
//! that one. So the device is asked again as soon as it is free, with everything that came, and who is alone
//! hands nothing over to anybody. Two threads of the log's own are started when they are needed: `segments`
//! makes segments ahead of need (`preallocator`), `writer` writes for those who do not wait.
//!
//! The lock is never held while a file is touched, a callback is called, an event is sent, or somebody waits for another
//! lock; the lock of the control file is taken before it, never after.
//!
//! After a failed write or flush nobody knows what is on the disk. The log is poisoned: nothing more is
//! appended or acknowledged by this handle.
//!
//! A process that was forked has a copy of all this, without the threads. It writes nothing: see `require_ours`.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::commit::call_all;
use super::control::ControlFile;
use super::counters::{Counters, Tally};
use super::event_count::EventCount;
use super::format::{Control, Geometry, Shutdown};
use super::gathering::Gathering;
use super::group::{Callback, Group};
use super::group_writer::{GroupWriter, WriteFrom};
use super::segments::{Segments, Task};
use super::waiters::Waiters;
use crate::environment::{Environment, Storage, planted};
use crate::{Error, Lsn, Options};

/// What is true of the log's beginning and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Durable {
    /// LSN of the first record that is not durable with its batch.
    pub lsn: u64,
    /// Everything before this position is durable.
    pub position: u64,
    /// Checksum of the header of the last block before.
    pub chain: u32,
}

impl Durable {
    /// The control record that says so.
    fn noted_in(self, record: Control) -> Control {
        Control {
            end: self.position,
            end_lsn: self.lsn,
            end_chain: self.chain,
            ..record
        }
    }
}

/// Bytes that may be durable without anything on the disk that says so, unless a segment is smaller. What is read behind
/// damage tells no more of these than a power cut leaves.
const MOST_UNPROMISED: u64 = 1 << 20;

/// A group that is being written.
#[derive(Clone, Copy)]
pub(super) struct Flight {
    pub(super) parity: usize,
    /// LSN after its last whole batch.
    pub(super) end: u64,
    pub(super) is_synced: bool,
    /// Threads that came when it was under way, and wait for it.
    pub(super) joined: u32,
}

pub(crate) struct State<E: Environment> {
    pub(super) filling: Group<E>,
    /// There unless somebody is writing.
    pub(super) writer: Option<GroupWriter<E>>,
    pub(super) flight: Option<Flight>,
    /// Where the next block goes, unless one is open.
    pub(super) next_position: u64,
    pub(super) next_lsn: u64,
    /// LSN after the last whole batch that was appended.
    pub(super) batch_end: u64,
    /// A thread is appending a batch that does not fit into a block.
    pub(super) is_batch_open: bool,
    pub durable: Durable,
    /// What is durable says that everything before this position is.
    pub(super) promised: u64,
    pub(super) gathering: Gathering,
    /// Nobody waited for the last group to be durable: segments are gone through faster than zeros
    /// could be written ahead, and those would only take the disk's time.
    pub is_streaming: bool,
    pub segments: Segments<E>,
    pub first_lsn: u64,
    pub(super) poison: Option<(&'static str, Arc<io::Error>)>,
    /// An event told of it.
    is_poison_told: bool,
    pub is_closing: bool,
    /// What was appended when it was closed is durable, or never will be.
    pub is_closed: bool,
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

    /// From here on nothing is appended or acknowledged.
    pub(super) fn fail(&mut self, doing: &'static str, error: impl Into<Arc<io::Error>>) {
        if self.poison.is_none() {
            self.poison = Some((doing, error.into()));
        }
    }

    /// LSN after the last whole batch that was appended.
    pub fn appended(&self) -> u64 {
        self.batch_end
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
    /// The process that opened it.
    process: u64,
    pub(super) block_bytes: u64,
    /// Bytes of segments that are there which are kept for [`Room::Half`] and [`Room::Kept`].
    pub(super) kept_bytes: u64,
    pub state: E::Mutex<State<E>>,
    pub control: E::Mutex<ControlFile<E>>,
    /// Those who wait for one of the two groups to be durable.
    pub(super) done: [EventCount<E>; 2],
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
    /// Those who wait until they can be promised some.
    pub(super) reserving: AtomicU32,
    /// What `State::durable.lsn` was lately, for who only asks.
    pub(super) durable_lsn: AtomicU64,
    /// What `State::first_lsn` was lately, for who only asks.
    first_lsn: AtomicU64,
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
    pub kept_bytes: u64,
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
            kept_bytes,
        } = begin;
        let spare = Group::new(options.buffer_bytes, 1);
        let from = WriteFrom {
            geometry,
            log,
            epoch,
            window: options.window(geometry),
            tail,
        };
        let writer = GroupWriter::new(&environment, from, spare);
        let state = State {
            filling: Group::new(options.buffer_bytes, 0),
            writer: Some(writer),
            flight: None,
            next_position: tail.position,
            next_lsn,
            batch_end: next_lsn,
            is_batch_open: false,
            durable: Durable {
                lsn: next_lsn,
                position: tail.position,
                chain: tail.chain.unwrap_or(0),
            },
            promised: tail.position,
            gathering: Gathering::new(),
            is_streaming: false,
            segments,
            first_lsn,
            poison: None,
            is_poison_told: false,
            is_closing: false,
            is_closed: false,
            followers: 0,
            has_writer: false,
            threads: Vec::new(),
            tally: Tally::default(),
        };
        Shared {
            block_bytes: options.block_bytes(geometry),
            kept_bytes,
            process: environment.storage().process(),
            environment,
            geometry,
            options,
            log,
            epoch,
            state: E::mutex(state),
            control: E::mutex(control),
            done: [EventCount::new(), EventCount::new()],
            space: Waiters::new(),
            work: Waiters::new(),
            writing: Waiters::new(),
            durable: Waiters::new(),
            reserved: AtomicU64::new(0),
            reserving: AtomicU32::new(0),
            durable_lsn: AtomicU64::new(next_lsn),
            first_lsn: AtomicU64::new(first_lsn),
        }
    }

    /// LSN of the first record that is not durable.
    pub fn durable_lsn(&self) -> u64 {
        self.durable_lsn.load(Ordering::Acquire)
    }

    /// Whether this process opened the log.
    pub fn is_ours(&self) -> bool {
        self.environment.storage().process() == self.process
    }

    /// Refuses a process that was forked since: it would write where its parent does, and wait for threads that it does not have.
    pub fn require_ours(&self) -> Result<(), Error> {
        if self.is_ours() {
            Ok(())
        } else {
            Err(Error::Forked)
        }
    }

    /// Refuses what was closed, or can be written no more.
    pub fn require_open(&self) -> Result<(), Error> {
        self.refusal(&E::lock(&self.state)).map_or(Ok(()), Err)
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

    /// Ends the log: whatever anybody waits for will not come.
    pub fn poison(
        &self,
        mut state: StateOf<'_, E>,
        doing: &'static str,
        error: impl Into<Arc<io::Error>>,
    ) {
        state.fail(doing, error);
        let callbacks: Vec<(Lsn, Callback)> = std::mem::take(&mut state.filling.callbacks);
        let error = self.refusal(&state).unwrap_or(Error::Closed);
        let was_told = std::mem::replace(&mut state.is_poison_told, true);
        drop(state);
        if !was_told {
            tracing::error!(%error, "the log is poisoned");
        }
        for done in &self.done {
            done.notify_all();
        }
        for waiting in [&self.space, &self.work, &self.durable, &self.writing] {
            waiting.wake_all();
        }
        call_all(callbacks, |_| Err(error.clone()));
    }

    /// Tells everybody of a failure that was noted, if there is one.
    pub(super) fn announce_poison(&self) {
        let state = E::lock(&self.state);
        if state.is_poisoned() {
            self.poison(state, "appending", io::Error::other("it failed before"));
        }
    }

    /// LSN of the first record that is there.
    pub fn first_lsn(&self) -> u64 {
        self.first_lsn.load(Ordering::Acquire)
    }

    /// Gives up the records before `lsn`, durably, and the segments that have no others.
    pub fn truncate_before(&self, lsn: u64) -> Result<(), Error> {
        self.require_ours()?;
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
        let durable = state.durable;
        let needed = state.segments.first_needed(lsn, durable.position);
        drop(state);
        let record = Control {
            first_segment: needed,
            first_lsn: lsn,
            ..durable.noted_in(control.record)
        };
        let release = || {
            let mut state = E::lock(&self.state);
            state.first_lsn = lsn;
            state.promised = state.promised.max(durable.position);
            self.first_lsn.store(lsn, Ordering::Release);
            state.segments.release_before(needed);
            drop(state);
            self.work.wake_all();
        };
        if planted!(self.environment, ReuseBeforeTruncate) {
            release();
            #[cfg(any(test, feature = "mistakes"))]
            self.environment.yield_now();
        }
        if let Err(error) = self.write_control(&mut control, record) {
            // Before anybody else can write it: what the file says now is not known.
            E::lock(&self.state).fail("truncating", error.clone().into_source());
            drop(control);
            self.announce_poison();
            return Err(error);
        }
        release();
        Ok(())
    }

    /// Whether much is durable of which nothing on the disk says so, and no block is about to.
    pub fn owes_promise(&self, state: &State<E>) -> bool {
        let most = MOST_UNPROMISED.min(self.geometry.segment);
        let is_owed = state.durable.position - state.promised >= most;
        let is_idle = state.flight.is_none()
            && state.filling.waiting == 0
            && state.filling.callbacks.is_empty();
        is_owed && is_idle && !planted!(self.environment, NoPromise)
    }

    /// Says in the control record up to where everything is durable.
    pub fn promise(&self) {
        let mut control = E::lock(&self.control);
        let state = E::lock(&self.state);
        if self.refusal(&state).is_some() {
            return;
        }
        let durable = state.durable;
        drop(state);
        let record = durable.noted_in(control.record);
        let written = self.write_control(&mut control, record);
        let mut state = E::lock(&self.state);
        match written {
            Ok(()) => state.promised = state.promised.max(durable.position),
            Err(error) => {
                // As in `truncate_before`.
                state.fail("noting what is durable", error.into_source());
                drop((state, control));
                self.announce_poison();
            }
        }
    }

    /// LSN after the last whole batch.
    pub fn appended(&self) -> u64 {
        E::lock(&self.state).batch_end
    }

    pub fn counters(&self) -> Counters {
        E::lock(&self.state).tally.counters()
    }

    pub fn keep_thread(&self, thread: E::Thread) {
        E::lock(&self.state).threads.push(thread);
    }

    /// Commits what was appended, ends the log's threads, and waits for them. If all went well, the control record
    /// says where the log ends, so that the next opening knows what must be there. In a process that was forked it does nothing:
    /// the log goes on being its parent's.
    pub fn close(self: &Arc<Self>) -> Result<(), Error> {
        if !self.is_ours() {
            return Ok(());
        }
        let (threads, end) = {
            let mut state = E::lock(&self.state);
            // From here on nothing is appended.
            state.is_closing = true;
            (std::mem::take(&mut state.threads), state.batch_end)
        };
        if threads.is_empty() {
            // Somebody has closed it, or is about to.
            return Ok(());
        }
        let committed = if planted!(self.environment, CloseWithoutCommit) {
            Ok(())
        } else {
            self.commit(end)
        };
        E::lock(&self.state).is_closed = true;
        for waiting in [&self.work, &self.writing, &self.space, &self.durable] {
            waiting.wake_all();
        }
        threads.into_iter().for_each(E::join);
        let closed = committed.and_then(|()| self.note_end());
        self.environment.storage().unlock();
        closed
    }

    fn note_end(&self) -> Result<(), Error> {
        let mut control = E::lock(&self.control);
        let state = E::lock(&self.state);
        if state.is_poisoned() {
            return self.refusal(&state).map_or(Ok(()), Err);
        }
        let durable = state.durable;
        drop(state);
        let record = Control {
            shutdown: Shutdown::Closed,
            ..durable.noted_in(control.record)
        };
        self.write_control(&mut control, record)
    }

    fn write_control(&self, control: &mut ControlFile<E>, record: Control) -> Result<(), Error> {
        let bytes = control.write(record)?;
        E::lock(&self.state).tally.control_bytes += bytes;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Handle;
    use crate::log::salvaging::{Files, World, settle, with};

    #[test]
    fn a_process_that_was_forked_writes_nothing() {
        let world = with(Files::new());
        let options = Options::default()
            .segment_bytes(64 << 10)
            .buffer_bytes(4096)
            .max_unwritten_bytes(4096);
        let log = Handle::open(&world, options).unwrap();
        log.append_durable(b"of its parent").unwrap();
        settle(&log);
        let before = world.storage().files();
        let process = &world.storage().device().process;
        process.store(2, Ordering::Relaxed);
        // What its memory takes.
        let full = (0..10).find_map(|_| log.append(&[7; 1000]).err());
        let refused = [
            full.map_or(Ok(()), Err),
            log.commit().map(drop),
            log.append_durable(b"of its child").map(drop),
            log.append_async(b"of its child").map(drop),
            log.append_batch(&[&[7; 9000]]).map(drop),
            log.truncate_before(Lsn(2)),
        ];
        for refused in refused {
            assert!(matches!(refused, Err(Error::Forked)), "{refused:?}");
        }
        log.close().unwrap();
        assert!(world.storage().files() == before);
        // Nor does it wait for what a thread of its parent was at.
        World::lock(&log.shared.state).is_batch_open = true;
        let waiting = [
            log.append(b"of its child").map(drop),
            log.shared.reserve(1).map(drop),
        ];
        for refused in waiting {
            assert!(matches!(refused, Err(Error::Forked)), "{refused:?}");
        }
        World::lock(&log.shared.state).is_batch_open = false;
        // It is still open where it was opened.
        process.store(1, Ordering::Relaxed);
        log.append_durable(b"of its parent").unwrap();
        log.close().unwrap();
    }
}
