//! Reading blocks one after the other, each checked against the one before.
//!
//! A block counts if its header and its records have their checksums, it belongs to this log and to this
//! place, it names the checksum of the block before it, and its epoch is none that went before. What is
//! not such a block is the end, or the part of a segment that was left empty because the next block did
//! not fit: then the chain goes on at the beginning of the next segment.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::buffer::Buffer;
use super::format::{BlockHeader, Geometry, HEADER, MOST, MOST_BLOCK, payload_crc};
use crate::environment::{Environment, Fault, File};

/// Bytes that are read at once.
const CHUNK: usize = 1 << 20;

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
    file: Option<(u64, Arc<E::File>)>,
}

impl<E: Environment> Scanner<E> {
    pub fn new(
        environment: &E,
        geometry: Geometry,
        log: u64,
        last_epoch: u64,
        place: Place,
    ) -> Self {
        let chunk = CHUNK.min((geometry.segment - geometry.granule) as usize);
        Scanner {
            environment: environment.clone(),
            geometry,
            log,
            last_epoch,
            place,
            buffer: Buffer::new(chunk),
            base: 0,
            filled: 0,
            file: None,
        }
    }

    /// Bytes of the last block's records, or of any part of them.
    #[inline]
    pub fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.buffer.bytes(range)
    }

    /// The next block; `None` where the chain ends. Nothing at or behind `limit` is looked at.
    pub fn next(
        &mut self,
        limit: u64,
        segment: &mut dyn FnMut(u64) -> Option<Arc<E::File>>,
    ) -> io::Result<Option<Block>> {
        let here = self.place.position;
        if let Some(block) = self.chained_at(here, limit, segment)? {
            return Ok(Some(block));
        }
        if self.place.chain.is_none() {
            // Any block would do there, also one before which something is missing.
            return Ok(None);
        }
        let next = self.behind(here);
        self.chained_at(next, limit, segment)
    }

    /// The first block of the next segment.
    fn behind(&self, position: u64) -> u64 {
        let sequence = self.geometry.sequence(position);
        match self.geometry.offset(position) {
            0 => self.geometry.first_block(sequence),
            _ => self.geometry.first_block(sequence + 1),
        }
    }

    fn chained_at(
        &mut self,
        position: u64,
        limit: u64,
        segment: &mut dyn FnMut(u64) -> Option<Arc<E::File>>,
    ) -> io::Result<Option<Block>> {
        let Some((header, crc)) = self.header_at(position, limit, segment)? else {
            return Ok(None);
        };
        let is_chained = self
            .place
            .chain
            .is_none_or(|chain| chain == header.previous)
            || self.environment.is_planted(Fault::UnchainedChecksum);
        if !is_chained || header.epoch < self.place.epoch || header.epoch > self.last_epoch {
            return Ok(None);
        }
        let end = HEADER as u64 + u64::from(header.length);
        if !self.fill(position, end as usize, limit, segment)? {
            return Ok(None);
        }
        let start = (position - self.base) as usize + HEADER;
        let payload = start..start + header.length as usize;
        let is_whole = payload_crc(self.buffer.bytes(payload.clone())) == header.payload_crc
            || self.environment.is_planted(Fault::HeaderChecksumOnly);
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

    /// A header of this log at a position, whatever was before it and whatever is behind it, of any epoch.
    pub fn header_at(
        &mut self,
        position: u64,
        limit: u64,
        segment: &mut dyn FnMut(u64) -> Option<Arc<E::File>>,
    ) -> io::Result<Option<(BlockHeader, u32)>> {
        let found = self.any_header_at(position, limit, segment)?;
        Ok(found.filter(|(header, _)| {
            header.position == position
                && header.size(self.geometry.granule)
                    <= self.geometry.room(position).min(MOST_BLOCK)
                && header.lsn.max(header.epoch) < MOST
        }))
    }

    /// As that, also of a block that was there before the segment's file was used again.
    pub fn any_header_at(
        &mut self,
        position: u64,
        limit: u64,
        segment: &mut dyn FnMut(u64) -> Option<Arc<E::File>>,
    ) -> io::Result<Option<(BlockHeader, u32)>> {
        if !self.fill(position, HEADER, limit, segment)? {
            return Ok(None);
        }
        let at = (position - self.base) as usize;
        let decoded = BlockHeader::decode(self.buffer.bytes(at..at + HEADER));
        Ok(decoded.filter(|(header, _)| {
            header.log == self.log
                && header.durable <= header.position
                && header.position <= position
        }))
    }

    /// Has `len` bytes from `position` on in the buffer; `false` if there are not so many before the end of
    /// the segment, or before `limit`.
    fn fill(
        &mut self,
        position: u64,
        len: usize,
        limit: u64,
        segment: &mut dyn FnMut(u64) -> Option<Arc<E::File>>,
    ) -> io::Result<bool> {
        let granule = self.geometry.granule;
        let needed = (len as u64).next_multiple_of(granule);
        let most = self
            .geometry
            .room(position)
            .min(limit.saturating_sub(position));
        if needed > most {
            return Ok(false);
        }
        let is_there =
            position >= self.base && position + len as u64 <= self.base + self.filled as u64;
        if is_there {
            return Ok(true);
        }
        let sequence = self.geometry.sequence(position);
        let file = match &self.file {
            Some((open, file)) if *open == sequence => file.clone(),
            _ => {
                let Some(file) = segment(sequence) else {
                    return Ok(false);
                };
                self.file = Some((sequence, file.clone()));
                file
            }
        };
        let most = most / granule * granule;
        // What is there of it already, whole granules, is not read again.
        let held = match position.checked_sub(self.base) {
            Some(skip) if skip < self.filled as u64 => self.filled - skip as usize,
            _ => 0,
        };
        let skip = self.filled - held;
        // Whatever goes wrong, nothing of it is taken for what was there before.
        self.filled = 0;
        match needed as usize > self.buffer.capacity() {
            true => {
                let mut larger = Buffer::new(needed as usize);
                larger
                    .bytes_mut(0..held)
                    .copy_from_slice(self.buffer.bytes(skip..skip + held));
                self.buffer = larger;
            }
            false if held > 0 => self.buffer.bytes_mut(0..skip + held).copy_within(skip.., 0),
            false => {}
        }
        let read = most.min(self.buffer.capacity() as u64) as usize;
        if held < read {
            let offset = self.geometry.offset(position) + held as u64;
            file.read(self.buffer.bytes_mut(held..read), offset)?;
        }
        (self.base, self.filled) = (position, read);
        Ok(true)
    }

    /// Forgets what was read ahead: it may have been written since.
    pub fn forget(&mut self) {
        self.filled = 0;
    }
}
