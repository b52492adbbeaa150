//! Reading blocks one after the other, each checked against the one before.
//!
//! A block counts if its header and its records have their checksums, it belongs to this log and to this
//! place, it names the checksum of the block before it, and its epoch is none that went before. What is
//! not such a block is the end, or the part of a segment that was left empty because the next block did
//! not fit: then the chain goes on at the beginning of the next segment.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::ahead::Ahead;
use super::format::{BlockHeader, Geometry, HEADER, MOST, MOST_BLOCK, payload_crc};
use crate::environment::Buffer;
use crate::environment::{Environment, File, FileOf, planted};

/// Bytes that are read at once.
pub(crate) const READ_AHEAD: u64 = 1 << 20;
/// Bytes that are read at once while others are looked at.
const READ_ON: u64 = 4 << 20;
// Any block finds room in the buffer.
const _: () = assert!(READ_AHEAD >= MOST_BLOCK);
/// Bytes that every device writes whole, or not at all.
const SECTOR: u64 = 512;

/// A block that was read.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub header: BlockHeader,
    /// Its records, in the scanner's buffer.
    pub payload: Range<usize>,
}

/// Where a scanner is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Where the next block would be.
    pub position: u64,
    /// The checksum of the block before; `None`: any will do.
    pub chain: Option<u32>,
    /// The epoch of the block before.
    pub epoch: u64,
}

impl Place {
    /// At this position, whatever was before it.
    pub fn at(position: u64) -> Place {
        Place {
            position,
            chain: None,
            epoch: 0,
        }
    }
}

/// Opens the file of a segment; `None`: there is none.
pub(crate) type OpenSegment<'a, E> = dyn FnMut(u64) -> io::Result<Option<FileOf<E>>> + 'a;

pub(crate) struct Scanner<E: Environment> {
    environment: E,
    geometry: Geometry,
    log: u64,
    /// No block is of a later one.
    last_epoch: u64,
    pub place: Place,
    buffer: Buffer,
    /// What the buffer holds.
    base: u64,
    filled: usize,
    /// Bytes that are read at once, of whole granules, if no more are needed.
    read_ahead: u64,
    file: Option<(u64, Arc<FileOf<E>>)>,
    /// Whether the next bytes are read while these are looked at, and they.
    reads_on: bool,
    ahead: Option<Ahead<E>>,
    /// Whether anything was read.
    has_read: bool,
}

impl<E: Environment> Scanner<E> {
    pub fn new(
        environment: &E,
        geometry: Geometry,
        log: u64,
        last_epoch: u64,
        place: Place,
    ) -> Self {
        let chunk = READ_AHEAD.min(geometry.segment - geometry.granule);
        Scanner {
            environment: environment.clone(),
            geometry,
            log,
            last_epoch,
            place,
            buffer: Buffer::new(chunk as usize),
            base: 0,
            filled: 0,
            read_ahead: chunk,
            file: None,
            reads_on: false,
            ahead: None,
            has_read: false,
        }
    }

    /// Reads the next bytes from now on while these are looked at, where a segment has as many as are read at once.
    pub fn read_on(&mut self) {
        self.reads_on = true;
        // What is left of these, and the next.
        self.buffer = Buffer::new(self.buffer.capacity() + READ_ON as usize);
        self.filled = 0;
    }

    /// Reads no more from here on than is looked at, and so many bytes at once at the most.
    pub fn read_ahead(&mut self, bytes: u64) {
        let most = bytes.min(self.buffer.capacity() as u64) / self.geometry.granule;
        self.read_ahead = most.max(1) * self.geometry.granule;
    }

    /// Bytes of the last block's records, or of any part of them.
    #[inline]
    pub fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.buffer.bytes(range)
    }

    /// The next block; `None` where the chain ends. Nothing at or behind `limit` is looked at.
    pub fn next(&mut self, limit: u64, open: &mut OpenSegment<'_, E>) -> io::Result<Option<Block>> {
        let here = self.place.position;
        if let Some(block) = self.chained_at(here, limit, open)? {
            return Ok(Some(block));
        }
        if self.place.chain.is_none() {
            // Any block would do there, also one before which something is missing.
            return Ok(None);
        }
        // Most often there is nothing.
        let ahead = std::mem::replace(&mut self.read_ahead, self.geometry.granule);
        let found = self.chained_at(self.geometry.behind(here), limit, open);
        self.read_ahead = ahead;
        found
    }

    fn chained_at(
        &mut self,
        position: u64,
        limit: u64,
        open: &mut OpenSegment<'_, E>,
    ) -> io::Result<Option<Block>> {
        let Some((header, crc)) = self.header_at(position, limit, open)? else {
            return Ok(None);
        };
        if !self.follows(&header) {
            return Ok(None);
        }
        let end = HEADER as u64 + u64::from(header.length);
        if !self.fill(position, end as usize, limit, open)? {
            return Ok(None);
        }
        let start = (position - self.base) as usize + HEADER;
        let payload = start..start + header.length as usize;
        let is_whole = payload_crc(self.buffer.bytes(payload.clone())) == header.payload_crc
            || planted!(self.environment, HeaderChecksumOnly);
        if !is_whole {
            return Ok(None);
        }
        self.place = Place {
            position: position + header.size(self.geometry.granule),
            chain: Some(crc),
            epoch: header.epoch,
        };
        Ok(Some(Block { header, payload }))
    }

    /// Whether a block with this header can be the next.
    pub fn follows(&self, header: &BlockHeader) -> bool {
        let is_chained = self
            .place
            .chain
            .is_none_or(|chain| chain == header.previous)
            || planted!(self.environment, UnchainedChecksum);
        is_chained && (self.place.epoch..=self.last_epoch).contains(&header.epoch)
    }

    /// Whether what is where the chain ends can only be a block that was whole and is damaged: no power cut leaves
    /// a part of a sector.
    pub fn is_damaged_block(
        &mut self,
        position: u64,
        open: &mut OpenSegment<'_, E>,
    ) -> io::Result<bool> {
        if let Some((header, _)) = self.header_at(position, u64::MAX, open)? {
            // In one sector: its records were written with its header.
            let len = HEADER as u64 + u64::from(header.length);
            return Ok(len <= SECTOR && self.follows(&header));
        }
        if !self.fill(position, HEADER, u64::MAX, open)? {
            return Ok(false);
        }
        let at = (position - self.base) as usize;
        let mut bytes = [0; HEADER];
        bytes.copy_from_slice(self.buffer.bytes(at..at + HEADER));
        // One bit of a header that would fit.
        let is_flipped = (0..8 * HEADER).any(|bit| {
            let mut bytes = bytes;
            bytes[bit / 8] ^= 1 << (bit % 8);
            let decoded = BlockHeader::decode(&bytes);
            decoded
                .is_some_and(|(header, _)| self.belongs(&header, position) && self.follows(&header))
        });
        Ok(is_flipped)
    }

    /// A header of this log at a position, whatever was before it and whatever is behind it, of any epoch.
    pub fn header_at(
        &mut self,
        position: u64,
        limit: u64,
        open: &mut OpenSegment<'_, E>,
    ) -> io::Result<Option<(BlockHeader, u32)>> {
        if !self.fill(position, HEADER, limit, open)? {
            return Ok(None);
        }
        let at = (position - self.base) as usize;
        let decoded = BlockHeader::decode(self.buffer.bytes(at..at + HEADER));
        Ok(decoded.filter(|(header, _)| self.belongs(header, position)))
    }

    fn belongs(&self, header: &BlockHeader, position: u64) -> bool {
        header.log == self.log
            && header.position == position
            && header.durable <= position
            && header.size(self.geometry.granule) <= self.geometry.room(position).min(MOST_BLOCK)
            && header.lsn.max(header.epoch) < MOST
    }

    /// Has `len` bytes from `position` on in the buffer; `false`: there are not so many before the end of the
    /// segment, or the limit, or there is no such segment.
    fn fill(
        &mut self,
        position: u64,
        len: usize,
        limit: u64,
        open: &mut OpenSegment<'_, E>,
    ) -> io::Result<bool> {
        let granule = self.geometry.granule;
        let most = self
            .geometry
            .room(position)
            .min(limit.saturating_sub(position));
        let needed = (len as u64).next_multiple_of(granule);
        if needed > most {
            return Ok(false);
        }
        let is_there =
            position >= self.base && position + len as u64 <= self.base + self.filled as u64;
        if is_there {
            return Ok(true);
        }
        let sequence = self.geometry.sequence(position);
        if self.file.as_ref().is_none_or(|(open, _)| *open != sequence) {
            // One at a time: there may be more segments than descriptors.
            self.file = None;
            let Some(file) = open(sequence)? else {
                return Ok(false);
            };
            self.file = Some((sequence, Arc::new(file)));
        }
        let Some((_, file)) = &self.file else {
            return Ok(false);
        };
        let file = file.clone();
        let most = most / granule * granule;
        // What is there of it already, whole granules, is not read again.
        let held = match position.checked_sub(self.base) {
            Some(skip) if skip < self.filled as u64 => self.filled - skip as usize,
            _ => 0,
        };
        let skip = self.filled - held;
        // Whatever goes wrong, nothing of it is taken for what was there before.
        self.filled = 0;
        self.buffer.bytes_mut(0..skip + held).copy_within(skip.., 0);
        let offset = self.geometry.offset(position);
        let mut spare = None;
        let mut read = held;
        let ahead = self.ahead.take().filter(|ahead| {
            (ahead.sequence, ahead.offsets.start) == (sequence, offset + held as u64)
                && ahead.offsets.end - offset <= most
        });
        let more = ahead.as_ref().map_or(0, Ahead::len);
        if let Some(bytes) = ahead.and_then(Ahead::wait) {
            read += more;
            let all = bytes.bytes(0..more);
            self.buffer.bytes_mut(held..read).copy_from_slice(all);
            spare = Some(bytes);
        }
        if (read as u64) < needed || read == held {
            let wanted = self.read_ahead.max(needed);
            let wanted = most.min(wanted).min(self.buffer.capacity() as u64) as usize;
            if read < wanted {
                file.read(self.buffer.bytes_mut(read..wanted), offset + read as u64)?;
                read = wanted;
            }
        }
        (self.base, self.filled) = (position, read);
        let more = (most - read as u64).min(READ_ON);
        // Of a log that is short no more than it has.
        let is_behind = std::mem::replace(&mut self.has_read, true);
        let is_wanted = self.reads_on && is_behind && self.read_ahead >= READ_AHEAD;
        if is_wanted && more >= READ_AHEAD {
            let buffer = spare.unwrap_or_else(|| Buffer::new(READ_ON as usize));
            let begin = offset + read as u64;
            let next = (sequence, file);
            // Else it is read when it is asked for.
            self.ahead = Ahead::begin(&self.environment, next, begin..begin + more, buffer).ok();
        }
        Ok(true)
    }

    /// Forgets what was read ahead: it may have been written since.
    pub fn forget(&mut self) {
        self.ahead = None;
        self.filled = 0;
    }
}
