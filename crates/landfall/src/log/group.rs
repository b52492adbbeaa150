//! Records that are gathered in memory, as the blocks that they will be written as.

use std::sync::Arc;

use super::format::{BlockHeader, FRAME, Frame, Geometry, HEADER, payload_crc_on};
use crate::environment::Buffer;
use crate::environment::{Environment, FileOf};
use crate::{Error, Lsn};

/// Segments that a group is spread over, at most: each is an open file.
pub(crate) const MOST_SEGMENTS: u32 = 8;

/// What is called when a record is durable, or never will be by this handle.
pub(crate) type Callback = Box<dyn FnOnce(Result<Lsn, Error>) + Send>;

/// A block to be written.
pub(crate) struct PendingBlock<E: Environment> {
    /// Where it begins in the buffer.
    pub start: usize,
    /// Bytes of its records, and their checksum: reckoned as they come, by who appends, while others write.
    pub length: usize,
    payload_crc: u32,
    pub position: u64,
    pub lsn: u64,
    pub batch_back: u32,
    pub file: Arc<FileOf<E>>,
}

impl<E: Environment> PendingBlock<E> {
    fn len(&self) -> usize {
        HEADER + self.length
    }

    pub fn size(&self, granule: u64) -> u64 {
        (self.len() as u64).next_multiple_of(granule)
    }
}

/// What is written at once.
pub(crate) struct Group<E: Environment> {
    buffer: Buffer,
    pub blocks: Vec<PendingBlock<E>>,
    /// Whether records may still be added to the last block.
    is_open: bool,
    /// Bytes of the blocks before the open one.
    used: usize,
    /// Segments that it is spread over.
    segments: u32,
    pub callbacks: Vec<(Lsn, Callback)>,
    /// Threads that wait for it to be durable.
    pub waiting: u32,
    /// Which of the two it is.
    pub parity: usize,
}

impl<E: Environment> Group<E> {
    pub fn new(bytes: u64, parity: usize) -> Group<E> {
        Group {
            buffer: Buffer::new(bytes as usize),
            blocks: Vec::new(),
            is_open: false,
            used: 0,
            segments: 0,
            callbacks: Vec::new(),
            waiting: 0,
            parity,
        }
    }

    /// Bytes that it takes so far.
    pub fn bytes(&self) -> u64 {
        let open = self.open().map_or(0, PendingBlock::len);
        (self.used + open) as u64
    }

    /// The position behind what the open block has.
    pub fn end(&self) -> Option<u64> {
        self.open().map(|open| open.position + open.len() as u64)
    }

    fn open(&self) -> Option<&PendingBlock<E>> {
        self.blocks.last().filter(|_| self.is_open)
    }

    /// Bytes that the open block still takes, of at most `most` bytes in all.
    pub fn room(&self, geometry: Geometry, most: u64) -> u64 {
        let Some(open) = self.open() else { return 0 };
        let in_buffer =
            (self.buffer.capacity() - open.start) as u64 / geometry.granule * geometry.granule;
        let whole = most.min(geometry.room(open.position)).min(in_buffer);
        whole.saturating_sub(open.len() as u64)
    }

    /// Whether a block of so many bytes at this position may be one of the group's.
    pub fn takes(&self, bytes: u64, position: u64, geometry: Geometry, most_extent: u64) -> bool {
        let bytes = bytes.next_multiple_of(geometry.granule);
        let has_room = self.used as u64 + bytes <= self.buffer.capacity() as u64;
        let (Some(first), Some(last)) = (self.blocks.first(), self.blocks.last()) else {
            return has_room;
        };
        let is_new_segment = geometry.sequence(last.position) != geometry.sequence(position);
        has_room
            && position + bytes - first.position <= most_extent
            && self.segments + u32::from(is_new_segment) <= MOST_SEGMENTS
    }

    /// Begins a block behind the others; none is open.
    pub fn begin(
        &mut self,
        geometry: Geometry,
        position: u64,
        lsn: u64,
        batch_back: u32,
        file: Arc<FileOf<E>>,
    ) -> Result<(), Error> {
        let is_behind = self
            .blocks
            .last()
            .is_none_or(|last| last.position + last.size(geometry.granule) <= position);
        let is_aligned = position.is_multiple_of(geometry.granule) && geometry.room(position) > 0;
        if self.is_open || !is_behind || !is_aligned {
            return Err(Error::broken("a block begins where it must not"));
        }
        let is_new_segment = self
            .blocks
            .last()
            .is_none_or(|last| geometry.sequence(last.position) != geometry.sequence(position));
        self.segments += u32::from(is_new_segment);
        self.blocks.push(PendingBlock {
            start: self.used,
            length: 0,
            payload_crc: 0,
            position,
            lsn,
            batch_back,
            file,
        });
        self.is_open = true;
        Ok(())
    }

    /// Adds a fragment to the open block, which has room for it.
    pub fn push(&mut self, frame: Frame, fragment: &[u8]) -> Result<(), Error> {
        let Some(block) = self.blocks.last_mut().filter(|_| self.is_open) else {
            return Err(Error::broken("a record is added to no block"));
        };
        let at = block.start + HEADER + block.length;
        let end = at + FRAME + fragment.len();
        if end > self.buffer.capacity() {
            return Err(Error::broken(
                "a record is added to a block that has no room",
            ));
        }
        let bytes = self.buffer.bytes_mut(at..end);
        bytes[..FRAME].copy_from_slice(&frame.encode());
        bytes[FRAME..].copy_from_slice(fragment);
        block.payload_crc = payload_crc_on(block.payload_crc, bytes);
        block.length += FRAME + fragment.len();
        Ok(())
    }

    /// Ends the open block; returns where the next one would be.
    pub fn close(&mut self, granule: u64) -> Option<u64> {
        if !std::mem::replace(&mut self.is_open, false) {
            return None;
        }
        let block = self.blocks.last()?;
        let size = block.size(granule);
        self.used = block.start + size as usize;
        Some(block.position + size)
    }

    /// Completes a block: header, its checksum, zeros to the end of its last granule. Returns the checksum of
    /// the header.
    pub fn seal(&mut self, index: usize, granule: u64, fill: impl FnOnce(&mut BlockHeader)) -> u32 {
        let block = &self.blocks[index];
        let end_of_payload = block.start + block.len();
        let end = block.start + block.size(granule) as usize;
        let mut header = BlockHeader {
            payload_crc: block.payload_crc,
            length: block.length as u32,
            position: block.position,
            lsn: block.lsn,
            batch_back: block.batch_back,
            previous: 0,
            log: 0,
            epoch: 0,
            durable: 0,
        };
        fill(&mut header);
        let start = block.start;
        self.buffer.bytes_mut(end_of_payload..end).fill(0);
        header.encode(self.buffer.bytes_mut(start..start + HEADER))
    }

    /// The bytes of a block, or of several that follow each other.
    pub fn bytes_of(&self, from: usize, to: usize, granule: u64) -> &[u8] {
        let (first, last) = (&self.blocks[from], &self.blocks[to]);
        self.buffer
            .bytes(first.start..last.start + last.size(granule) as usize)
    }

    /// Makes it empty, for other records.
    pub fn clear(&mut self) {
        self.blocks.clear();
        self.is_open = false;
        self.used = 0;
        self.segments = 0;
        self.waiting = 0;
    }
}
