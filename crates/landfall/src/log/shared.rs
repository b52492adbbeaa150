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

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::control::ControlFile;
use super::counters::{Counters, Tally};
use super::driver::{Asked, Driver, Failed};
use super::format::{Control, FRAME, Frame, Geometry, HEADER};
use super::group::{Callback, Group};
use super::segments::Segments;
use super::waiters::Waiters;
use crate::environment::{Environment, Fault};
use crate::{Error, Lsn, Options};

/// Groups that are not waited for when waiting was in vain again and again, at most.
const MOST_SKIPPED: u32 = 63;

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
struct Flight {
    parity: usize,
    /// LSN after its last whole unit.
    end: u64,
    is_synced: bool,
    /// Threads that came when it was under way, and wait for it.
    joined: u32,
}

pub(crate) struct State<E: Environment> {
    filling: Group<E>,
    /// There unless somebody is writing.
    driver: Option<Driver<E>>,
    flight: Option<Flight>,
    /// Where the next block goes, unless one is open.
    next_position: u64,
    next_lsn: u64,
    /// LSN after the last whole unit that was appended.
    unit_end: u64,
    /// A thread is appending a unit that does not fit into a block.
    is_unit_open: bool,
    pub durable: Durable,
    /// Threads that lately committed at the same time.
    committers: u32,
    /// One of them waits for the others, and will write.
    is_gathering: bool,
    /// Groups that are not waited for, and how many that will be when it is in vain the next time: nearly twice
    /// as many.
    groups_to_skip: u32,
    in_vain: u32,
    /// How long a group takes to become durable, lately.
    flush_time: Duration,
    pub segments: Segments<E>,
    pub first_lsn: u64,
    poison: Option<(&'static str, Arc<std::io::Error>)>,
    pub is_closing: bool,
    /// Somebody follows the end.
    pub followers: u32,
    has_writer: bool,
    threads: Vec<E::Thread>,
    tally: Tally,
}

impl<E: Environment> State<E> {
    pub fn is_poisoned(&self) -> bool {
        self.poison.is_some()
    }

    /// LSN after the last whole unit that was appended.
    pub fn appended(&self) -> u64 {
        self.unit_end
    }
}

pub(crate) struct Shared<E: Environment> {
    pub environment: E,
    pub geometry: Geometry,
    pub options: Options,
    pub log: u64,
    pub epoch: u64,
    block_bytes: u64,
    pub state: E::Mutex<State<E>>,
    pub control: E::Mutex<ControlFile<E>>,
    /// Those who wait for one of the two groups to be durable.
    done: [Waiters<E>; 2],
    /// Those who cannot append now: no room in the buffer, no segment, another one's unit.
    pub space: Waiters<E>,
    /// The thread that makes segments.
    pub work: Waiters<E>,
    /// The thread that writes for those who do not wait.
    writing: Waiters<E>,
    /// Those who follow the end.
    pub durable: Waiters<E>,
    /// What `State::durable.lsn` was lately, for who only asks.
    durable_lsn: AtomicU64,
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

type StateOf<'a, E> = <E as Environment>::Guard<'a, State<E>>;

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
            is_gathering: false,
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
            done: [Waiters::new(), Waiters::new()],
            space: Waiters::new(),
            work: Waiters::new(),
            writing: Waiters::new(),
            durable: Waiters::new(),
            durable_lsn: AtomicU64::new(next_lsn),
        }
    }

    /// LSN of the first record that is not durable.
    pub fn durable_lsn(&self) -> u64 {
        self.durable_lsn.load(Ordering::Acquire)
    }

    fn refusal(&self, state: &State<E>) -> Option<Error> {
        if let Some((doing, source)) = &state.poison {
            return Some(Error::Poisoned {
                doing,
                source: source.clone(),
            });
        }
        state.is_closing.then_some(Error::Closed)
    }

    /// Appends a unit and returns its first record's LSN. `callback` gets that of its last record.
    pub fn append(
        self: &Arc<Self>,
        records: &[&[u8]],
        callback: Option<Callback>,
    ) -> Result<u64, Error> {
        let count = u32::try_from(records.len()).unwrap_or(u32::MAX);
        if count == u32::MAX {
            return Err(Error::BatchTooLarge { most: u32::MAX - 1 });
        }
        let mut state = E::lock(&self.state);
        loop {
            if let Some(error) = self.refusal(&state) {
                return Err(error);
            }
            let is_full = callback.is_some()
                && state.filling.callbacks.len() >= self.options.waiting_commits as usize;
            if state.is_unit_open {
                state = self.space.wait(state);
            } else if is_full {
                state = self.make_room(state)?;
            } else {
                break;
            }
        }
        if records.is_empty() {
            return Ok(state.next_lsn);
        }
        let whole: usize = records.iter().map(|record| FRAME + record.len()).sum();
        let whole = whole as u64 + HEADER as u64;
        let mut state = match whole <= self.block_bytes {
            true => self.append_whole(state, records, whole)?,
            false => self.append_in_parts(state, records)?,
        };
        if let Some(error) = self.refusal(&state) {
            return Err(error);
        }
        // Nobody has come between: the lock was not let go of since the last of them was put there.
        let last = Lsn(state.next_lsn - 1);
        let first = state.next_lsn - u64::from(count);
        let is_waited_for = callback.is_some();
        if let Some(callback) = callback {
            state.filling.callbacks.push((last, callback));
        }
        if is_waited_for || state.filling.bytes() >= self.options.write_bytes {
            self.ask_writer(&mut state);
        }
        Ok(first)
    }

    /// Appends a unit that fits into a block, into one block.
    fn append_whole<'a>(
        self: &'a Arc<Self>,
        mut state: StateOf<'a, E>,
        records: &[&[u8]],
        whole: u64,
    ) -> Result<StateOf<'a, E>, Error> {
        loop {
            if state.filling.room(self.geometry, self.block_bytes) >= whole - HEADER as u64 {
                break;
            }
            let (waited, is_begun) = self.begin_block(state, whole, 0)?;
            state = waited;
            if !is_begun {
                // Others were let in meanwhile.
                while state.is_unit_open && self.refusal(&state).is_none() {
                    state = self.space.wait(state);
                }
                if let Some(error) = self.refusal(&state) {
                    return Err(error);
                }
            }
        }
        for (index, record) in records.iter().enumerate() {
            let frame = Frame {
                begins_record: true,
                ends_record: true,
                begins_unit: index == 0,
                ends_unit: index + 1 == records.len(),
                length: record.len() as u32,
            };
            state.filling.push(frame, record);
        }
        state.next_lsn += records.len() as u64;
        state.unit_end = state.next_lsn;
        Ok(state)
    }

    /// Appends a unit block by block, while nobody else can append.
    fn append_in_parts<'a>(
        self: &'a Arc<Self>,
        mut state: StateOf<'a, E>,
        records: &[&[u8]],
    ) -> Result<StateOf<'a, E>, Error> {
        state.is_unit_open = true;
        let first = state.next_lsn;
        for (index, record) in records.iter().enumerate() {
            let mut at = 0;
            loop {
                let rest = record.len() - at;
                let least = (FRAME + rest.min(1)) as u64;
                while state.filling.room(self.geometry, self.block_bytes) < least {
                    let back = (state.next_lsn - first) as u32;
                    let begun = self.begin_block(state, HEADER as u64 + least, back);
                    state = match begun {
                        Ok((state, _)) => state,
                        Err(error) => return Err(self.abandon(first, error)),
                    };
                }
                let room = state.filling.room(self.geometry, self.block_bytes) as usize - FRAME;
                let length = rest.min(room).min(Frame::MOST as usize - 1);
                let frame = Frame {
                    begins_record: at == 0,
                    ends_record: length == rest,
                    begins_unit: at == 0 && index == 0,
                    ends_unit: length == rest && index + 1 == records.len(),
                    length: length as u32,
                };
                if at == 0 {
                    state.next_lsn += 1;
                }
                state.filling.push(frame, &record[at..at + length]);
                at += length;
                if at == record.len() {
                    break;
                }
            }
        }
        state.unit_end = state.next_lsn;
        state.is_unit_open = false;
        self.space.wake_all();
        Ok(state)
    }

    /// A unit of which a part is written cannot be ended: if any was, the log cannot go on behind it.
    fn abandon(&self, first: u64, error: Error) -> Error {
        let mut state = E::lock(&self.state);
        state.is_unit_open = false;
        if state.next_lsn > first && state.poison.is_none() {
            let source = std::io::Error::other(error.to_string());
            self.poison(&mut state, "making a segment for a large batch", source);
        }
        self.space.wake_all();
        self.refusal(&state).unwrap_or(error)
    }

    /// Begins a block for at least so many bytes; `false`: it had to wait, and others may have come first.
    fn begin_block<'a>(
        self: &'a Arc<Self>,
        mut state: StateOf<'a, E>,
        bytes: u64,
        unit_back: u32,
    ) -> Result<(StateOf<'a, E>, bool), Error> {
        let granule = self.geometry.granule;
        if let Some(next) = state.filling.close(granule) {
            state.next_position = next;
        }
        if !state.filling.takes(bytes, granule) {
            return Ok((self.make_room(state)?, false));
        }
        let mut position = state.next_position;
        if self.geometry.room(position) < bytes {
            let sequence = self.geometry.sequence(position);
            position = match self.geometry.offset(position) {
                0 => self.geometry.first_block(sequence),
                _ => self.geometry.first_block(sequence + 1),
            };
        }
        let sequence = self.geometry.sequence(position);
        let (lsn, heedless) = (
            state.next_lsn,
            self.environment.is_planted(Fault::ZeroBehindWriter),
        );
        if let Some(file) = state.segments.enter(sequence, lsn, heedless) {
            if self.geometry.offset(position) == granule {
                // Another one is to be made ahead.
                self.work.wake_all();
            }
            state.filling.begin(position, lsn, unit_back, file);
            return Ok((state, true));
        }
        if let Some(error) = state.segments.take_failure() {
            // So that it is tried again.
            self.work.wake_all();
            return Err(match error.kind() {
                std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                    Error::NoSpace {
                        bytes: self.geometry.segment,
                    }
                }
                _ => Error::Io {
                    doing: "make a segment".into(),
                    source: error,
                },
            });
        }
        if let Some(error) = self.refusal(&state) {
            return Err(error);
        }
        state.tally.segment_waits += 1;
        self.work.wake_all();
        Ok((self.space.wait(state), false))
    }

    /// Has what was gathered written, by this thread or by the one that is at it.
    fn make_room<'a>(self: &'a Arc<Self>, state: StateOf<'a, E>) -> Result<StateOf<'a, E>, Error> {
        if let Some(error) = self.refusal(&state) {
            return Err(error);
        }
        match state.driver.is_some() {
            true => Ok(self.drive(state, false)),
            false => Ok(self.space.wait(state)),
        }
    }

    /// Waits until every record before `end` is durable.
    pub fn commit(self: &Arc<Self>, end: u64) -> Result<(), Error> {
        if self.durable_lsn() >= end {
            return Ok(());
        }
        let mut state = E::lock(&self.state);
        // The group that it was counted in.
        let mut counted = None;
        loop {
            if state.durable.lsn >= end {
                // Who was woken to write, and need not, wakes another.
                if state.driver.is_some() && state.filling.waiting > 0 {
                    self.done[state.filling.parity].wake_one();
                }
                return Ok(());
            }
            if let Some((doing, source)) = &state.poison {
                return Err(Error::Poisoned {
                    doing,
                    source: source.clone(),
                });
            }
            let flight = state.flight.as_mut();
            let parity = match flight.filter(|flight| flight.is_synced && end <= flight.end) {
                Some(flight) => {
                    if counted != Some(flight.parity) {
                        counted = Some(flight.parity);
                        flight.joined += 1;
                    }
                    flight.parity
                }
                None => {
                    let parity = state.filling.parity;
                    if counted != Some(parity) {
                        counted = Some(parity);
                        state.filling.waiting += 1;
                    }
                    parity
                }
            };
            if state.driver.is_some() && !state.is_gathering {
                state = self.gather(state);
                if state.driver.is_some() && state.durable.lsn < end && state.poison.is_none() {
                    state = self.drive(state, true);
                }
                continue;
            }
            state = self.done[parity].wait(state);
        }
    }

    /// Lets those come that committed with this thread lately, for no longer than a flush takes.
    ///
    /// If all of them come within that time, one flush for all of them is sooner done than two for half of them
    /// each. If they take longer (there are many for few processors), they had better do their work while the
    /// device does its own: then it is not tried again for a while.
    fn gather<'a>(self: &'a Arc<Self>, mut state: StateOf<'a, E>) -> StateOf<'a, E> {
        if state.committers <= state.filling.waiting || state.flush_time.is_zero() {
            return state;
        }
        if state.groups_to_skip > 0 {
            state.groups_to_skip -= 1;
            return state;
        }
        state.is_gathering = true;
        let begin = self.environment.now();
        while state.filling.waiting < state.committers
            && state.driver.is_some()
            && state.poison.is_none()
        {
            if self.environment.now() - begin > state.flush_time {
                state.in_vain = (2 * state.in_vain + 1).min(MOST_SKIPPED);
                state.groups_to_skip = state.in_vain;
                break;
            }
            drop(state);
            self.environment.yield_now();
            state = E::lock(&self.state);
        }
        state.is_gathering = false;
        if state.filling.waiting >= state.committers {
            state.in_vain = 0;
        }
        state
    }

    /// Writes what was gathered; nobody else is at it. `sync`: and makes it durable.
    fn drive<'a>(self: &'a Arc<Self>, mut state: StateOf<'a, E>, sync: bool) -> StateOf<'a, E> {
        let Some(mut driver) = state.driver.take() else {
            return state;
        };
        let Some(other) = driver.spare.take() else {
            state.driver = Some(driver);
            return state;
        };
        if let Some(next) = state.filling.close(self.geometry.granule) {
            state.next_position = next;
        }
        let gathered = state.filling.bytes();
        let sync = sync
            || state.filling.waiting > 0
            || !state.filling.callbacks.is_empty()
            || driver.unsynced_bytes() + gathered > self.options.unsynced_bytes;
        let parity = state.filling.parity;
        let mut group = std::mem::replace(&mut state.filling, other);
        state.filling.parity = 1 - parity;
        let end = state.unit_end;
        state.flight = Some(Flight {
            parity,
            end,
            is_synced: sync,
            joined: 0,
        });
        if self.environment.is_planted(Fault::AcknowledgeEarly) && sync {
            self.set_durable(&mut state, end, driver.durable);
        }
        drop(state);
        // There is room in the other one.
        self.space.wake_all();
        let begin = self.environment.now();
        let written = driver.write(&mut group, sync);
        let took = self.environment.now().saturating_sub(begin);
        let callbacks = std::mem::take(&mut group.callbacks);
        let committers = group.waiting;
        let mut state = E::lock(&self.state);
        let joined = state.flight.take().map_or(0, |flight| flight.joined);
        let result = match written {
            Ok(asked) => {
                self.count(&mut state, &group, asked, took, sync);
                if sync {
                    self.set_durable(&mut state, end, driver.durable);
                    state.flush_time = (state.flush_time * 3 + took) / 4;
                    state.committers = committers + state.filling.waiting + joined;
                }
                Ok(())
            }
            Err(Failed { doing, error }) => {
                self.poison(&mut state, doing, error);
                if self.environment.is_planted(Fault::NotPoisoned) {
                    state.poison = None;
                    self.set_durable(&mut state, end, driver.durable);
                }
                Err(())
            }
        };
        group.clear();
        driver.spare = Some(group);
        state.driver = Some(driver);
        self.wake(&state, parity);
        if callbacks.is_empty() {
            return state;
        }
        let failure = result.err().and_then(|()| self.refusal(&state));
        drop(state);
        for (lsn, callback) in callbacks {
            call(
                callback,
                match &failure {
                    None => Ok(lsn),
                    Some(error) => Err(error.clone()),
                },
            );
        }
        E::lock(&self.state)
    }

    fn set_durable(&self, state: &mut State<E>, lsn: u64, position: u64) {
        state.durable = Durable { lsn, position };
        self.durable_lsn.store(lsn, Ordering::Release);
        if state.followers > 0 {
            self.durable.wake_all();
        }
    }

    /// After a group was written: those whose it was, one of the next to write that, and the others.
    fn wake(&self, state: &State<E>, parity: usize) {
        self.done[parity].wake_all();
        if state.filling.waiting > 0 {
            self.done[1 - parity].wake_one();
        }
        self.space.wake_all();
        if self.has_work(state) {
            self.writing.wake_one();
        }
    }

    pub fn poison(&self, state: &mut State<E>, doing: &'static str, error: std::io::Error) {
        tracing::error!(doing, %error, "the log is poisoned");
        state.poison.get_or_insert((doing, Arc::new(error)));
        // Whatever they wait for will not come.
        for waiting in [
            &self.done[0],
            &self.done[1],
            &self.space,
            &self.work,
            &self.durable,
        ] {
            waiting.wake_all();
        }
    }

    fn count(
        &self,
        state: &mut State<E>,
        group: &Group<E>,
        asked: Asked,
        took: Duration,
        sync: bool,
    ) {
        let tally = &mut state.tally;
        tally.writes += asked.writes;
        tally.flushes += asked.flushes;
        tally.bytes += asked.bytes;
        tally.record_bytes += group
            .blocks
            .iter()
            .map(|block| block.length as u64)
            .sum::<u64>();
        if sync {
            tally.groups += 1;
            tally.record_flush(took);
        }
    }

    /// Whether there is something for the writer.
    fn has_work(&self, state: &State<E>) -> bool {
        let bytes = state.filling.bytes();
        !state.filling.callbacks.is_empty() || bytes >= self.options.write_bytes
    }

    /// Has the log's own thread write, which is started if it does not run yet.
    fn ask_writer(self: &Arc<Self>, state: &mut State<E>) {
        if !state.has_writer {
            let shared = self.clone();
            let started = self
                .environment
                .spawn("landfall-writer", move || shared.write_for_others());
            match started {
                Ok(thread) => {
                    state.has_writer = true;
                    state.threads.push(thread);
                }
                // Whoever needs room, or commits, writes himself; callbacks wait for that.
                Err(error) => tracing::warn!(%error, "the log's writer cannot be started"),
            }
        }
        if state.driver.is_some() {
            self.writing.wake_one();
        }
    }

    fn write_for_others(self: Arc<Self>) {
        let mut state = E::lock(&self.state);
        loop {
            if state.poison.is_some() {
                self.fail_callbacks(state);
                return;
            }
            if state.driver.is_some() && self.has_work(&state) {
                state = self.drive(state, false);
            } else if state.is_closing {
                return;
            } else {
                state = self.writing.wait(state);
            }
        }
    }

    /// Those who wait for a log that is poisoned are told so.
    fn fail_callbacks(&self, mut state: StateOf<'_, E>) {
        let callbacks = std::mem::take(&mut state.filling.callbacks);
        let error = self.refusal(&state).unwrap_or(Error::Closed);
        drop(state);
        for (_, callback) in callbacks {
            call(callback, Err(error.clone()));
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

/// Calls a callback; if it panics that is nobody else's trouble.
fn call(callback: Callback, result: Result<Lsn, Error>) {
    if catch_unwind(AssertUnwindSafe(|| callback(result))).is_err() {
        tracing::error!("a callback of the log panicked");
    }
}
