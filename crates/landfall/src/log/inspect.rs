//! A log looked at from outside, without changing anything.

use std::path::Path;

use super::batch_tracker::frame_at;
use super::directory::{Directory, Examined};
use super::examine::Visited;
use super::format::{Shutdown, segment_name};
use crate::environment::{Environment, Method, read_only_machine};
use crate::{Error, Lsn};

/// A log as it is in its directory, read without changing anything.
#[derive(Debug)]
pub struct Inspection {
    /// The log's random id, which its blocks hold.
    pub log: u64,
    /// How often the log was opened for writing.
    pub epoch: u64,
    /// Bytes of a granule. A block takes whole granules.
    pub granule: u32,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// How the log is written, such as `direct+rwf_dsync`.
    pub method: &'static str,
    /// The first record that was not truncated.
    pub first_lsn: Lsn,
    /// The LSN of the next record.
    pub next_lsn: Lsn,
    /// Whether the log was closed cleanly.
    pub is_closed: bool,
    /// The segment files.
    pub segments: Vec<SegmentFile>,
}

/// A file of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentFile {
    /// Its name.
    pub name: String,
    /// The sequence of its segment; `None` if the file holds no segment that is needed.
    pub sequence: Option<u64>,
    /// Whether the log has come to it; otherwise it was made ahead, or is not needed.
    pub is_used: bool,
}

/// A block of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The name of its file.
    pub file: String,
    /// The offset in the file.
    pub offset: u64,
    /// Bytes, in whole granules.
    pub size: u64,
    /// The epoch in which it was written.
    pub epoch: u64,
    /// Records and fragments of records.
    pub fragments: Vec<Fragment>,
}

/// A record in a block, or a fragment of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The record's LSN.
    pub lsn: Lsn,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Whether the record begins with it.
    pub begins_record: bool,
    /// Whether the record ends with it.
    pub ends_record: bool,
    /// Whether a batch begins with it.
    pub begins_batch: bool,
    /// Whether a batch ends with it.
    pub ends_batch: bool,
}

impl Inspection {
    /// Reads the log in `directory` from its first block to its last, and calls `visit` for each. It checks everything
    /// that [`Log::open`](crate::Log::open) checks.
    ///
    /// Returns [`Error::Corrupt`] if the log is damaged, after the blocks before the damage were visited, and
    /// [`Error::Locked`] if the log is open elsewhere.
    pub fn read(
        directory: impl AsRef<Path>,
        visit: &mut dyn FnMut(&Block),
    ) -> Result<Inspection, Error> {
        let directory = Directory::lock(&read_only_machine(directory.as_ref()))?;
        Inspection::of(&directory, visit)
    }

    pub(crate) fn of<E: Environment>(
        directory: &Directory<E>,
        visit: &mut dyn FnMut(&Block),
    ) -> Result<Inspection, Error> {
        let mut show = |visited: Visited<'_>| {
            visit(&block(&visited)?);
            Ok(())
        };
        let examined = directory.examine(&mut show)?;
        let control = directory.record().ok_or(Error::NoLog)?;
        Ok(Inspection {
            log: control.log,
            epoch: control.epoch,
            granule: control.granule,
            segment_bytes: control.segment,
            method: Method::of_code(control.method).map_or("unknown", Method::name),
            first_lsn: Lsn(control.first_lsn),
            next_lsn: Lsn(examined.end.next_lsn),
            is_closed: control.shutdown == Shutdown::Closed,
            segments: segment_files(&examined),
        })
    }
}

/// A block with its fragments, of which the numbers follow from that of its first record.
fn block(visited: &Visited<'_>) -> Result<Block, Error> {
    let (header, geometry) = (visited.header, visited.geometry);
    let mut block = Block {
        file: visited.file_name(),
        offset: geometry.offset(header.position),
        size: header.size(geometry.granule),
        epoch: header.epoch,
        fragments: Vec::new(),
    };
    let (mut at, mut next_lsn) = (0, header.lsn);
    while at < visited.payload.len() {
        let read = frame_at(visited.payload, at);
        let (frame, range) = read.map_err(Error::broken)?;
        at = range.end;
        next_lsn += u64::from(frame.begins_record);
        block.fragments.push(Fragment {
            lsn: Lsn(next_lsn - 1),
            bytes: visited.payload[range].to_vec(),
            begins_record: frame.begins_record,
            ends_record: frame.ends_record,
            begins_batch: frame.begins_batch,
            ends_batch: frame.ends_batch,
        });
    }
    Ok(block)
}

fn segment_files(examined: &Examined) -> Vec<SegmentFile> {
    let (files, geometry) = (&examined.files, examined.geometry);
    let last = geometry.entered(examined.end.place.position);
    let known = files.segments.iter().map(|(&sequence, found)| SegmentFile {
        name: segment_name(found.number),
        sequence: Some(sequence),
        is_used: sequence <= last,
    });
    let free = files.free.iter().map(|file| file.number);
    let others = free.chain(files.unfinished.iter().copied());
    let others = others.map(|number| SegmentFile {
        name: segment_name(number),
        sequence: None,
        is_used: false,
    });
    known.chain(others).collect()
}
