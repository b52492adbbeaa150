//! Where a device was written, in order, without what was written.

use std::fs::File;
use std::io;

use crate::event::SECTOR;
use crate::recording::next_written;
use crate::{EventKind, Recording};

/// Sectors that a device may have: their numbers fit into 32 bits.
const MOST_SECTORS: u64 = u32::MAX as u64;

/// The places of write commands, 8 bytes each, and what a device held before them. An experiment that
/// runs for long can keep these where it could not keep a [`Recording`].
#[derive(Clone, Debug, Default)]
pub struct Writes {
    size: u64,
    before: Vec<Run>,
    writes: Vec<Run>,
    bytes: u64,
}

/// Sectors of one command.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: u32,
    count: u32,
}

impl Writes {
    /// None yet, to a device of `size` bytes that holds nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if the device is of 2 TiB or more.
    pub fn new(size: u64) -> io::Result<Writes> {
        if size.div_ceil(SECTOR as u64) > MOST_SECTORS {
            let text = "writes are noted of devices below 2 TiB; take a smaller one";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Ok(Writes {
            size,
            ..Writes::default()
        })
    }

    /// The writes among `events[from..to]` of a recording. What the device held when the recording began
    /// and what was written before `from` is [held](Writes::hold).
    ///
    /// # Errors
    ///
    /// As [`new`](Writes::new), and those of looking for holes in the recording's
    /// [base](Recording::base).
    pub fn of(recording: &Recording, from: usize, to: usize) -> io::Result<Writes> {
        let mut writes = Writes::new(recording.size())?;
        writes.hold_written(recording.base())?;
        for (offset, len) in recording.writes(0, from) {
            writes.hold(offset, len);
        }
        for (offset, len) in recording.writes(from, to) {
            writes.push(offset, len);
        }
        Ok(writes)
    }

    /// The device's size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Before all writes, and after what was held so far, the device was written here. Its flash holds
    /// that from the beginning; that it was written costs nothing.
    pub fn hold(&mut self, offset: u64, len: u64) {
        self.before.extend(self.run(offset, len));
    }

    /// Holds what is no hole of a file with the device's contents.
    pub(crate) fn hold_written(&mut self, contents: &File) -> io::Result<()> {
        let mut place = 0;
        while let Some(range) = next_written(contents, place, self.size)? {
            self.hold(range.start, range.end - range.start);
            place = range.end;
        }
        Ok(())
    }

    /// One write command of `len` bytes at `offset`. What is not on the device does not count; sectors
    /// count whole.
    pub fn push(&mut self, offset: u64, len: u64) {
        if let Some(run) = self.run(offset, len) {
            self.bytes += u64::from(run.count) * SECTOR as u64;
            self.writes.push(run);
        }
    }

    /// How many commands there are.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Bytes that the commands wrote.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Offset and length of each command, in bytes, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.writes.iter().map(|run| run.bytes())
    }

    /// Offset and length of what was held before, in bytes, in order.
    pub fn held(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.before.iter().map(|run| run.bytes())
    }

    fn run(&self, offset: u64, len: u64) -> Option<Run> {
        let offset = offset.min(self.size);
        let len = len.min(self.size - offset);
        let first = offset / SECTOR as u64;
        let end = (offset + len).div_ceil(SECTOR as u64);
        (len > 0).then_some(Run {
            first: first as u32,
            count: (end - first) as u32,
        })
    }
}

impl Run {
    fn bytes(self) -> (u64, u64) {
        let bytes = |sectors| u64::from(sectors) * SECTOR as u64;
        (bytes(self.first), bytes(self.count))
    }
}

impl Recording {
    /// Offset and length in bytes of each write among `events[from..to]`, in order.
    pub fn writes(&self, from: usize, to: usize) -> impl Iterator<Item = (u64, u64)> + '_ {
        let events = self.events()[from..to].iter();
        events.filter_map(|event| match event.kind {
            EventKind::Write { offset, data } => Some((offset, u64::from(data.len))),
            _ => None,
        })
    }

    /// The place among the events, from `from` on, of the first mark that says `text`.
    pub fn find_mark(&self, text: &[u8], from: usize) -> io::Result<Option<usize>> {
        for (place, event) in self.events().iter().enumerate().skip(from) {
            if let EventKind::Mark(span) = event.kind
                && span.len as usize == text.len()
                && self.bytes(span)? == text
            {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }
}
