//! Appending: from records to blocks in memory, each with its place in a segment.
//!
//! A batch that fits into a block is put into one. Another is put into several, and while that is done nobody
//! else can append. Who finds no room in the buffer has it written, or waits for who is at it; who finds no
//! segment waits for the thread that makes them, or is told why it cannot.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::format::{FRAME, Frame, Geometry, HEADER, MOST_BLOCK};
use super::group::Callback;
use super::segments::Hurry;
use super::shared::{Shared, State, StateOf};
use crate::environment::{Environment, Storage, planted};
use crate::{Error, Lsn};

// No block has more than a frame can tell.
const _: () = assert!(MOST_BLOCK < Frame::MOST as u64);

/// Which space a batch may take where no segment can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// What is not kept.
    Usual,
    /// Half of what is kept as well: it frees something, but each of many takes some.
    Half,
    /// All that there is: it is followed by something that frees more.
    Kept,
}

/// Whether who waits for a segment has had it tried to make one.
#[derive(Default)]
struct Tries {
    has_asked: bool,
}

/// Records of a batch, of which a block can tell how many are before it.
fn count_of(records: usize) -> Result<u32, Error> {
    const MOST: u32 = u32::MAX - 1;
    let count = u32::try_from(records).ok().filter(|count| *count <= MOST);
    count.ok_or(Error::BatchTooLarge { most: MOST })
}

/// A promise of space for a record that is not appended yet.
pub(crate) struct Reservation<E: Environment> {
    shared: Arc<Shared<E>>,
    pub bytes: u64,
}

impl<E: Environment> Drop for Reservation<E> {
    fn drop(&mut self) {
        self.shared.reserved.fetch_sub(self.bytes, Ordering::SeqCst);
        if self.shared.reserving.load(Ordering::SeqCst) > 0 {
            // Who has looked before, and found too little, waits by the time that the lock is free.
            drop(E::lock(&self.shared.state));
            self.shared.space.wake_all();
        }
    }
}

impl<E: Environment> Shared<E> {
    /// Appends a batch and returns its first record's LSN. `callback` gets that of its last record.
    pub fn append(
        self: &Arc<Self>,
        records: &[&[u8]],
        callback: Option<Callback>,
        room: Room,
    ) -> Result<u64, Error> {
        self.put(records, callback, room).map(|(_, first)| first)
    }

    /// Appends a record and waits until it is durable.
    pub fn append_durable(self: &Arc<Self>, record: &[u8]) -> Result<u64, Error> {
        self.require_ours()?;
        let (state, lsn) = self.put(&[record], None, Room::Usual)?;
        self.commit_with(state, lsn + 1)?;
        Ok(lsn)
    }

    /// Appends a batch; the lock has not been let go of since it was there.
    fn put<'a>(
        self: &'a Arc<Self>,
        records: &[&[u8]],
        callback: Option<Callback>,
        room: Room,
    ) -> Result<(StateOf<'a, E>, u64), Error> {
        if callback.is_some() {
            // It would be called by a thread that there may not be.
            self.require_ours()?;
        }
        let count = count_of(records.len())?;
        let whole: usize = records.iter().map(|record| FRAME + record.len()).sum();
        let whole = whole as u64 + HEADER as u64;
        let takes_of_kept =
            |state: &State<E>| !records.is_empty() && !self.leaves_kept(state, whole, room);
        let mut tries = Tries::default();
        let mut state = E::lock(&self.state);
        loop {
            if let Some(error) = self.refusal(&state) {
                return Err(error);
            }
            let is_full = callback.is_some()
                && state.filling.callbacks.len() >= self.options.max_pending_commits as usize;
            if state.is_batch_open {
                state = self.wait_for_space(state)?;
            } else if is_full {
                state = self.make_room(state)?;
            } else if takes_of_kept(&state) {
                self.retry_segment(&mut state, &mut tries)?;
                self.work.wake_all();
                state = self.wait_for_space(state)?;
            } else {
                break;
            }
        }
        if records.is_empty() {
            let next = state.next_lsn;
            return Ok((state, next));
        }
        let appended = if whole <= self.block_bytes {
            self.append_whole(state, records, whole)
        } else {
            self.append_in_parts(state, records, room)
        };
        let mut state = appended.inspect_err(|_| self.announce_poison())?;
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
        let has_work = is_waited_for || state.filling.bytes() >= self.options.max_unwritten_bytes;
        if has_work && let Err(error) = self.ask_writer(&mut state) {
            drop(state);
            tracing::warn!(%error, "the log's writer cannot be started");
            state = E::lock(&self.state);
            if is_waited_for && state.writer.is_some() {
                // There is nobody else to do it.
                self.drive(state);
                state = E::lock(&self.state);
            }
        }
        Ok((state, first))
    }

    /// Appends a batch that fits into a block, into one block.
    fn append_whole<'a>(
        self: &'a Arc<Self>,
        mut state: StateOf<'a, E>,
        records: &[&[u8]],
        whole: u64,
    ) -> Result<StateOf<'a, E>, Error> {
        let mut tries = Tries::default();
        loop {
            if state.filling.room(self.geometry, self.block_bytes) >= whole - HEADER as u64 {
                break;
            }
            let (waited, is_begun) = self.begin_block(state, whole, 0, &mut tries)?;
            state = waited;
            if !is_begun {
                // Others were let in meanwhile.
                while state.is_batch_open && self.refusal(&state).is_none() {
                    state = self.wait_for_space(state)?;
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
                begins_batch: index == 0,
                ends_batch: index + 1 == records.len(),
                length: record.len() as u32,
            };
            self.push(&mut state, frame, record)?;
        }
        state.next_lsn += records.len() as u64;
        state.batch_end = state.next_lsn;
        Ok(state)
    }

    /// Adds to the open block. A part of a batch that is there without the rest must not be followed by anything.
    fn push(&self, state: &mut State<E>, frame: Frame, bytes: &[u8]) -> Result<(), Error> {
        state.filling.push(frame, bytes).inspect_err(|error| {
            state.fail("appending", error.clone().into_source());
        })
    }

    /// Appends a batch block by block, while nobody else can append.
    fn append_in_parts<'a>(
        self: &'a Arc<Self>,
        mut state: StateOf<'a, E>,
        records: &[&[u8]],
        room: Room,
    ) -> Result<StateOf<'a, E>, Error> {
        self.require_room(&state, records, room)?;
        state.is_batch_open = true;
        let first = state.next_lsn;
        let mut tries = Tries::default();
        for (index, record) in records.iter().enumerate() {
            let mut at = 0;
            loop {
                let rest = record.len() - at;
                let least = (FRAME + rest.min(1)) as u64;
                while state.filling.room(self.geometry, self.block_bytes) < least {
                    let back = (state.next_lsn - first) as u32;
                    let begun = self.begin_block(state, self.geometry.granule, back, &mut tries);
                    state = match begun {
                        Ok((state, _)) => state,
                        Err(error) => return Err(self.abandon(first, error)),
                    };
                }
                let room = state.filling.room(self.geometry, self.block_bytes) as usize - FRAME;
                let length = rest.min(room);
                let frame = Frame {
                    begins_record: at == 0,
                    ends_record: length == rest,
                    begins_batch: at == 0 && index == 0,
                    ends_batch: length == rest && index + 1 == records.len(),
                    length: length as u32,
                };
                if at == 0 {
                    state.next_lsn += 1;
                }
                if let Err(error) = state.filling.push(frame, &record[at..at + length]) {
                    drop(state);
                    return Err(self.abandon(first, error));
                }
                at += length;
                if at == record.len() {
                    break;
                }
            }
        }
        state.batch_end = state.next_lsn;
        state.is_batch_open = false;
        self.space.wake_all();
        Ok(state)
    }

    /// Bytes of the segment where the next record goes that nothing was put into.
    fn left_of_segment(&self, state: &State<E>) -> u64 {
        let left = self.geometry.room(state.next_position);
        left.saturating_sub(state.filling.bytes())
    }

    /// Bytes that are kept from what may take this room.
    fn kept_from(&self, room: Room) -> u64 {
        match room {
            Room::Usual => self.kept_bytes,
            Room::Half => self.kept_bytes / 2,
            Room::Kept => 0,
        }
    }

    /// Whether as much as is kept is left in segments that are there, behind a block of so many bytes: only then it may be put there. As
    /// long as all segments are made that are wanted ahead, nothing is.
    fn leaves_kept(&self, state: &State<E>, bytes: u64, room: Room) -> bool {
        let Geometry { granule, segment } = self.geometry;
        let kept = self.kept_from(room);
        if kept == 0 || state.segments.is_complete() {
            return true;
        }
        let end = state.filling.end().unwrap_or(state.next_position);
        let sequence = self.geometry.entered(end);
        let Some(behind) = state.segments.behind(sequence) else {
            return false;
        };
        let left = (sequence + 1) * segment - end;
        let behind = behind * (segment - granule);
        let bytes = bytes.min(self.block_bytes).next_multiple_of(granule);
        // What does not fit leaves the rest of the segment empty.
        let rest = if bytes <= left {
            Some(left - bytes + behind)
        } else {
            behind.checked_sub(bytes)
        };
        rest.is_some_and(|rest| rest >= kept)
    }

    /// Whether the disk has room for a batch that takes several blocks, besides what was promised to others, as far as it says how much
    /// it has. A batch that does not find it in its middle poisons the log.
    fn require_room(&self, state: &State<E>, records: &[&[u8]], room: Room) -> Result<(), Error> {
        self.require_ours()?;
        let granule = self.geometry.granule;
        let bytes: u64 = records.iter().map(|one| (FRAME + one.len()) as u64).sum();
        let bytes = self.in_several_blocks(bytes);
        let bytes = bytes + self.kept_from(room);
        // What was promised is for others, unless this was promised some itself. A record may leave as much of a segment empty as it takes.
        let is_promised = matches!(records, [record] if self.promised(record.len()) > 0);
        let bytes = match self.reserved.load(Ordering::SeqCst) {
            reserved if !is_promised => bytes + 2 * reserved,
            _ => bytes,
        };
        let left = self.left_of_segment(state);
        let whole = self.geometry.segment - 2 * granule;
        let segments = bytes.saturating_sub(left).div_ceil(whole);
        let missing = segments.saturating_sub(state.segments.at_hand());
        let bytes = missing.saturating_mul(self.geometry.segment);
        match self.environment.storage().available() {
            Some(available) if available < bytes => Err(Error::NoSpace { bytes }),
            _ => Ok(()),
        }
    }

    /// What so many bytes of frames take at the most that do not fit into a block.
    fn in_several_blocks(&self, bytes: u64) -> u64 {
        let payload = self
            .block_bytes
            .saturating_sub((HEADER + FRAME) as u64)
            .max(1);
        // Blocks are cut at ends of segments and of buffers as well.
        let blocks = 2 * bytes.div_ceil(payload) + 2;
        bytes + blocks * ((HEADER + FRAME) as u64 + self.geometry.granule)
    }

    /// A batch of which a part is written cannot be ended: if any was, the log cannot go on behind it.
    fn abandon(&self, first: u64, error: Error) -> Error {
        let mut state = E::lock(&self.state);
        state.is_batch_open = false;
        if state.next_lsn > first && !state.is_poisoned() {
            let source = error.clone().into_source();
            self.poison(state, "appending a large batch", source);
            state = E::lock(&self.state);
        }
        let refusal = self.refusal(&state);
        drop(state);
        self.space.wake_all();
        refusal.unwrap_or(error)
    }

    /// Begins a block for at least so many bytes; `false`: it had to wait, and others may have come first.
    fn begin_block<'a>(
        self: &'a Arc<Self>,
        mut state: StateOf<'a, E>,
        bytes: u64,
        batch_back: u32,
        tries: &mut Tries,
    ) -> Result<(StateOf<'a, E>, bool), Error> {
        let granule = self.geometry.granule;
        if let Some(next) = state.filling.close(granule) {
            state.next_position = next;
        }
        let mut position = state.next_position;
        if self.geometry.room(position) < bytes {
            position = self.geometry.behind(position);
        }
        let extent = self.options.group_extent();
        if !state.filling.takes(bytes, position, self.geometry, extent) {
            return Ok((self.make_room(state)?, false));
        }
        let sequence = self.geometry.sequence(position);
        let lsn = state.next_lsn;
        let hurry = Hurry {
            past_zeros: planted!(self.environment, ZeroBehindWriter),
            to_last: planted!(self.environment, EnterLastSegment),
        };
        if let Some(file) = state.segments.enter(sequence, lsn, hurry) {
            if self.geometry.offset(position) == granule {
                // Another one is to be made ahead.
                self.work.wake_all();
            }
            let begun = state
                .filling
                .begin(self.geometry, position, lsn, batch_back, file);
            begun.inspect_err(|error| {
                state.fail("appending", error.clone().into_source());
            })?;
            return Ok((state, true));
        }
        self.retry_segment(&mut state, tries)?;
        if let Some(error) = self.refusal(&state) {
            return Err(error);
        }
        state.tally.segment_waits += 1;
        self.work.wake_all();
        Ok((self.wait_for_space(state)?, false))
    }

    /// Why no segment can be made, if that was tried since this was asked first: there may be space by now.
    fn retry_segment(&self, state: &mut State<E>, tries: &mut Tries) -> Result<(), Error> {
        let Some(error) = state.segments.take_failure() else {
            return Ok(());
        };
        // So that it is tried again.
        self.work.wake_all();
        if !std::mem::replace(&mut tries.has_asked, true) {
            return Ok(());
        }
        Err(match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Error::NoSpace {
                bytes: self.geometry.segment,
            },
            _ => Error::Io {
                doing: "make a segment".into(),
                source: error,
            },
        })
    }

    /// Bytes that all promises together are at the most.
    fn most_promised(&self) -> u64 {
        (self.geometry.segment - self.geometry.granule) / 2
    }

    /// Bytes that a record of so many is promised; 0: it is too large.
    fn promised(&self, bytes: usize) -> u64 {
        let Geometry { granule, segment } = self.geometry;
        let block = (HEADER + FRAME) as u64 + bytes as u64;
        let alone = block.next_multiple_of(granule) + granule;
        // What `require_room` will ask for: twice as much as is promised is there.
        let needed = if block > self.block_bytes {
            self.in_several_blocks((FRAME + bytes) as u64) + self.kept_bytes
        } else {
            0
        };
        if alone <= self.most_promised() && needed <= segment - 2 * granule {
            alone.max(needed.div_ceil(2))
        } else {
            0
        }
    }

    /// Promises that a record of so many bytes will find space, until the promise is dropped; waits for a segment
    /// if need be, and for others when all promises together would be more than half a segment. One that is larger by
    /// itself is promised nothing.
    ///
    /// While a whole segment is ready, or half of what is left of this one would do for everybody who was promised
    /// something, it is there: records leave no more of a segment empty than one of them takes.
    pub fn reserve(self: &Arc<Self>, bytes: usize) -> Result<Reservation<E>, Error> {
        let bytes = self.promised(bytes);
        if bytes == 0 || planted!(self.environment, ReserveNothing) {
            return Ok(Reservation {
                shared: self.clone(),
                bytes: 0,
            });
        }
        let most = self.most_promised();
        let mut state = E::lock(&self.state);
        let mut tries = Tries::default();
        loop {
            if let Some(error) = self.refusal(&state) {
                return Err(error);
            }
            if state.is_batch_open {
                // Only when it ends is known what it leaves.
                state = self.wait_for_space(state)?;
                continue;
            }
            // Whoever gives a promise back looks at this after it has done so: see `Reservation`.
            self.reserving.fetch_add(1, Ordering::SeqCst);
            let all = self.reserved.load(Ordering::SeqCst) + bytes;
            let left = self.left_of_segment(&state);
            let is_there = all <= most && (all <= left / 2 || state.segments.has_spare());
            if is_there {
                self.reserved.fetch_add(bytes, Ordering::SeqCst);
                self.reserving.fetch_sub(1, Ordering::SeqCst);
                return Ok(Reservation {
                    shared: self.clone(),
                    bytes,
                });
            }
            if all <= most {
                let retried = self.retry_segment(&mut state, &mut tries);
                retried.inspect_err(|_| {
                    self.reserving.fetch_sub(1, Ordering::SeqCst);
                })?;
                self.work.wake_all();
            }
            let waited = self.wait_for_space(state);
            self.reserving.fetch_sub(1, Ordering::SeqCst);
            state = waited?;
        }
    }

    /// Waits until there may be space: in a process that was forked nobody would say so.
    fn wait_for_space<'a>(&self, state: StateOf<'a, E>) -> Result<StateOf<'a, E>, Error> {
        self.require_ours()?;
        Ok(self.space.wait(state))
    }

    /// Has what was gathered written, by the writer, the thread that is at it, or this one.
    fn make_room<'a>(self: &'a Arc<Self>, state: StateOf<'a, E>) -> Result<StateOf<'a, E>, Error> {
        if let Some(error) = self.refusal(&state) {
            return Err(error);
        }
        if state.writer.is_none() {
            return self.wait_for_space(state);
        }
        if state.has_writer && self.has_work(&state) {
            // While that writes this thread can fill the other buffer.
            self.writing.wake_one();
            return self.wait_for_space(state);
        }
        self.require_ours()?;
        self.drive(state);
        Ok(E::lock(&self.state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::log::Handle;
    use crate::log::salvaging::{Files, World, settle, with};

    #[test]
    fn a_batch_has_at_most_as_many_records_as_are_named() {
        let most = u32::MAX as usize - 1;
        assert_eq!(count_of(most).unwrap() as usize, most);
        for more in [most + 1, most + 2] {
            let refused = count_of(more);
            assert!(
                matches!(refused, Err(Error::BatchTooLarge { most: named }) if named as usize == most)
            );
        }
    }

    const SEGMENT: usize = 64 << 10;

    /// A log on a disk that is full once its segments are made, with buffers of so many bytes.
    fn on_a_full_disk(world: &World, buffer: u64) -> Handle<World> {
        let options = Options::default()
            .segment_bytes(SEGMENT as u64)
            .buffer_bytes(buffer)
            .max_unwritten_bytes(4096)
            .max_unsynced_bytes(4096);
        let log = Handle::open(world, options).unwrap();
        settle(&log);
        let device = world.storage().device();
        *device.no_create.lock().unwrap() = Some(std::io::ErrorKind::StorageFull);
        *device.available.lock().unwrap() = Some(0);
        log
    }

    #[test]
    fn a_record_of_several_blocks_finds_what_it_was_promised() {
        let mut promised = 0;
        for filled in (0..SEGMENT - (8 << 10)).step_by(1 << 10) {
            for bytes in [4 << 10, 9_000, 16_500, 21_000, 27_000, 31_000] {
                let world = with(Files::new());
                let log = on_a_full_disk(&world, 8 << 10);
                let is_filled = || {
                    let state = World::lock(&log.shared.state);
                    let left = log.shared.left_of_segment(&state) as usize;
                    !state.segments.has_spare() && left <= SEGMENT - filled
                };
                while !is_filled() {
                    log.append_durable(&[7; 400]).unwrap();
                }
                let Ok(promise) = log.shared.reserve(bytes) else {
                    continue;
                };
                if promise.bytes > 0 {
                    promised += 1;
                    log.append_durable(&vec![7; bytes]).unwrap();
                }
            }
        }
        assert!(promised > 100, "{promised}");
    }

    #[test]
    fn a_large_batch_leaves_what_was_promised_to_others() {
        let world = with(Files::new());
        let log = on_a_full_disk(&world, 16 << 10);
        let fits = |bytes: usize| {
            let state = World::lock(&log.shared.state);
            let record = &vec![7; bytes][..];
            log.shared.require_room(&state, &[record], Room::Usual)
        };
        // All that there is.
        let large = (1..).map(|granules| granules * 512);
        let large = large
            .take_while(|bytes| fits(*bytes).is_ok())
            .last()
            .unwrap();
        assert!(large > SEGMENT, "{large}");
        let promised = 20_000;
        let promise = log.shared.reserve(promised).unwrap();
        assert!(promise.bytes > 0);
        assert!(fits(promised).is_ok(), "it is its own promise");
        let refused = log.append_batch(&[&vec![7; large]]);
        assert!(matches!(refused, Err(Error::NoSpace { .. })), "{refused:?}");
        let less = large - 2 * promise.bytes as usize;
        log.append_batch(&[&vec![7; less]]).unwrap();
        log.append_durable(&vec![7; promised]).unwrap();
    }
}
