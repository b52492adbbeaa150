//! The files of a log's directory: which segment each holds, and whether all are there that must be.
//!
//! Nothing is changed here. A file is one of four things: a segment that is needed; one that was truncated away, whose
//! file can be used again; one that was being made when a process died, whose header is still zeros; or damage. Segments
//! follow each other without a gap, since the header of one is durable before that of the next is written; and the
//! last of them was never written to, since a segment is entered only when there is another behind it. So no file that
//! holds a record can go without being missed.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use super::format::{
    BlockHeader, CONTROL_DRAFT, CONTROL_NAME, Control, Geometry, SegmentHeader, segment_name,
    segment_number, unreachable_number,
};
use crate::Error;
use crate::environment::Buffer;
use crate::environment::{Environment, File, FileOf, Storage, planted};

/// Segments that a log is made with: one to write to, the one behind it that must always be there, and one more, or a log
/// on a full disk could never leave the first one.
pub(crate) const FIRST_SEGMENTS: u64 = 3;

/// Bytes of a file without a header that are searched at once: of whole granules, whatever these are.
const SEARCHED: usize = 64 << 10;

/// A segment that is needed, or was made ahead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentFile {
    pub number: u64,
    pub header: SegmentHeader,
}

/// The segment files of a directory.
#[derive(Debug)]
pub(crate) struct Files {
    /// By their sequence, without a gap.
    pub segments: BTreeMap<u64, SegmentFile>,
    /// Files whose segment is not needed any more.
    pub free: Vec<SegmentFile>,
    /// Numbers of files that never became a segment.
    pub unfinished: Vec<u64>,
    /// The number of the next file.
    pub next_number: u64,
}

impl Files {
    /// The name of a segment's file.
    pub fn name(&self, sequence: u64) -> Option<String> {
        let found = self.segments.get(&sequence)?;
        Some(segment_name(found.number))
    }

    /// Opens the file of a segment, if it has one.
    pub fn open<E: Environment>(
        &self,
        environment: &E,
        sequence: u64,
    ) -> io::Result<Option<FileOf<E>>> {
        let name = self.name(sequence);
        name.map(|name| environment.storage().open(&name))
            .transpose()
    }
}

/// Names in the directory.
pub(crate) fn names<E: Environment>(environment: &E) -> Result<Vec<String>, Error> {
    let mut names = environment
        .storage()
        .names()
        .map_err(Error::io("read the directory of the log"))?;
    // What is found first is reported: the same at every attempt.
    names.sort_unstable();
    Ok(names)
}

/// Whether these are the names of a directory that has no log yet, or of one with a log.
pub(crate) fn has_log(names: &[String]) -> Result<bool, Error> {
    if names.iter().any(|name| name == CONTROL_NAME) {
        return Ok(true);
    }
    if names.iter().any(|name| segment_number(name).is_some()) {
        // It is there before the first segment is.
        return Err(Error::Corrupt {
            file: PathBuf::from(CONTROL_NAME),
            offset: 0,
            what: "it is missing, and there are segments of a log".to_owned(),
        });
    }
    match names.iter().find(|name| *name != CONTROL_DRAFT) {
        Some(other) => Err(Error::NotALog {
            name: other.clone(),
        }),
        None => Ok(false),
    }
}

/// Looks at all segment files.
pub(crate) fn find<E: Environment>(
    environment: &E,
    geometry: Geometry,
    record: &Control,
    names: &[String],
) -> Result<Files, Error> {
    let mut files = Files {
        segments: BTreeMap::new(),
        free: Vec::new(),
        unfinished: Vec::new(),
        next_number: 1,
    };
    let mut buffer = Buffer::new(SEARCHED);
    let mut numbers: Vec<u64> = names.iter().filter_map(|one| segment_number(one)).collect();
    numbers.sort_unstable();
    if let Some(number) = unreachable_number(&numbers) {
        let what = "no log has had so many files as its name says";
        return Err(corrupt(&segment_name(number), 0, what));
    }
    files.next_number = numbers.last().map_or(1, |last| last + 1);
    for number in numbers {
        let name = &segment_name(number);
        let found = look_at(environment, geometry, record, name, &mut buffer)?;
        let Some(header) = found else {
            files.unfinished.push(number);
            continue;
        };
        let file = SegmentFile { number, header };
        if header.sequence < record.first_segment {
            files.free.push(file);
            continue;
        }
        if files.segments.insert(header.sequence, file).is_some() {
            return Err(corrupt(name, 0, "another file is the same segment"));
        }
    }
    if !planted!(environment, IgnoreGap) {
        require_no_gap(geometry, record, &files)?;
    }
    Ok(files)
}

/// What a file says it is; `None`: it never became a segment.
fn look_at<E: Environment>(
    environment: &E,
    geometry: Geometry,
    record: &Control,
    name: &str,
    buffer: &mut Buffer,
) -> Result<Option<SegmentHeader>, Error> {
    let reading = || Error::io(format!("read {name}"));
    let file = environment.storage().open(name).map_err(reading())?;
    let size = file.size().map_err(reading())?;
    if size < geometry.granule {
        return Ok(None);
    }
    let granule = 0..geometry.granule as usize;
    file.read(buffer.bytes_mut(granule.clone()), 0)
        .map_err(reading())?;
    let bytes = buffer.bytes(granule);
    let Some(header) = SegmentHeader::decode(bytes) else {
        let is_zero = bytes.iter().all(|byte| *byte == 0);
        let mut search = || has_block(&file, geometry, record, size, buffer);
        if is_zero && !search().map_err(reading())? {
            return Ok(None);
        }
        return Err(corrupt(name, 0, "its header is not valid"));
    };
    if header.log != record.log {
        return Err(corrupt(name, 0, "it belongs to another log"));
    }
    if !geometry.has(header.sequence) {
        return Err(corrupt(name, 0, "its numbers make no sense"));
    }
    // It has its size before it has a header.
    if size < geometry.segment {
        return Err(corrupt(name, size, "it is cut off"));
    }
    Ok(Some(header))
}

/// Whether a file has a block of the log: then it was a segment, and what it holds must not be removed.
fn has_block<F: File>(
    file: &F,
    geometry: Geometry,
    record: &Control,
    size: u64,
    buffer: &mut Buffer,
) -> io::Result<bool> {
    let size = size / geometry.granule * geometry.granule;
    for at in (0..size).step_by(buffer.capacity()) {
        let part = 0..(size - at).min(buffer.capacity() as u64) as usize;
        file.read(buffer.bytes_mut(part.clone()), at)?;
        let mut granules = buffer.bytes(part).chunks(geometry.granule as usize);
        let is_block = |granule: &[u8]| {
            let block = BlockHeader::decode(granule);
            block.is_some_and(|(block, _)| block.log == record.log)
        };
        if granules.any(is_block) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Every segment is there from the first that is needed to the last that was made.
fn require_no_gap(geometry: Geometry, record: &Control, files: &Files) -> Result<(), Error> {
    let last = files.segments.keys().next_back().copied().unwrap_or(0);
    if record.epoch == 0 {
        // It is being made: any of its first segments may be missing, and there are no others.
        if last > FIRST_SEGMENTS {
            let what = "there are segments that came later, so it is older than the log";
            return Err(super::control::corrupt(0, what));
        }
        return Ok(());
    }
    let mut next = record.first_segment;
    while files.segments.contains_key(&next) {
        next += 1;
    }
    if next <= last.max(geometry.entered(record.end)) {
        return Err(Error::MissingSegment {
            segment: next,
            empty: files.unfinished.first().map(|&number| segment_name(number)),
        });
    }
    Ok(())
}

fn corrupt(name: &str, offset: u64, what: &str) -> Error {
    Error::Corrupt {
        file: PathBuf::from(name),
        offset,
        what: what.to_owned(),
    }
}
