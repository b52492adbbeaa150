//! A directory as one row of bytes: the control file's two copies, cut to what is read of them, and then
//! segments, each of [`SEGMENT`] bytes, the last of which may be shorter.

use std::collections::BTreeMap;

use landfall::{Error, Inspection, Log, Options};

use crate::memory::{GRANULE, Memory};

/// Bytes of a copy of the control record that mean something, and where the copies begin.
const CONTROL: usize = 96;
const COPY: usize = 4096;
/// Bytes of a segment.
pub const SEGMENT: usize = 4096;
/// Bytes of a block's header, and of a segment's.
const BLOCK: usize = 64;
const HEADER: usize = 40;

pub fn options() -> Options {
    Options {
        segment_bytes: SEGMENT as u64,
        buffer_bytes: 8 << 10,
        write_bytes: 4 << 10,
        spare_segments: 1,
        ..Options::default()
    }
}

/// The files that are in a row of bytes.
pub fn files(bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let (copies, segments) = bytes.split_at(bytes.len().min(2 * CONTROL));
    let mut control = vec![0; 2 * COPY];
    for (index, copy) in copies.chunks(CONTROL).enumerate() {
        control[index * COPY..index * COPY + copy.len()].copy_from_slice(copy);
    }
    let named = segments.chunks(SEGMENT).enumerate();
    let mut files: BTreeMap<String, Vec<u8>> = named
        .map(|(index, bytes)| (format!("segment-{:06}", index + 1), bytes.to_vec()))
        .collect();
    files.insert("landfall-log".into(), control);
    files
}

/// The row of bytes of a directory whose files are numbered without a gap.
#[allow(dead_code, reason = "the fuzz target does not make any")]
pub fn bytes(files: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let control = &files["landfall-log"];
    let mut bytes = [&control[..CONTROL], &control[COPY..COPY + CONTROL]].concat();
    let segments = files.iter().filter(|(name, _)| *name != "landfall-log");
    segments.for_each(|(_, segment)| bytes.extend_from_slice(segment));
    bytes
}

/// What a log must do with any of them: open it, or say what is wrong; give out no more than there is; and go on
/// behind what it has found so that both are there when it is opened again.
pub fn exercise(bytes: &[u8]) {
    let memory = Memory::new(files(bytes));
    let mut seen = 0;
    let inspected = Inspection::read_in(&memory, &mut |block| seen += block.fragments.len());
    let log = match Log::open_in(&memory, options()) {
        Ok(log) => log,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    if let Err(error) = &inspected {
        // A batch that is damaged within shows only to who reads it.
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    }
    let Ok(before) = records(&log, bytes.len()) else {
        return;
    };
    match log.append_durable(b"one more") {
        Ok(_) => {}
        // Its segments are larger than all that there is.
        Err(Error::NoSpace { .. }) => return,
        Err(error) => panic!("memory can be written: {error}"),
    }
    log.close().expect("memory can be written");
    let log = match Log::open_in(&memory, options()) {
        Ok(log) => log,
        // A file that was not needed had blocks of a time to come, and is in use now.
        Err(Error::Corrupt { .. }) if has_impossible_block(bytes) => return,
        Err(error) => panic!("it was closed: {error}"),
    };
    let after = records(&log, bytes.len() + 8).expect("it could be read before");
    let (last, rest) = after.split_last().expect("one was appended");
    assert!(last == b"one more" && rest == before, "{seen} fragments");
}

/// Whether there is a block that belongs behind where it is, or is of an epoch to come: no log has ever written one.
fn has_impossible_block(bytes: &[u8]) -> bool {
    let number = |at: usize| {
        let bytes = bytes.get(at..at + 8);
        bytes.map_or(0, |bytes| {
            u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
        })
    };
    let blocks = right_checksums(bytes)
        .into_iter()
        .filter(|&(at, len)| len == BLOCK && at >= 2 * CONTROL);
    blocks.into_iter().any(|(at, _)| {
        let file = (at - 2 * CONTROL) / SEGMENT * SEGMENT + 2 * CONTROL;
        let begin = number(file + 32).saturating_mul(SEGMENT as u64);
        let place = begin.saturating_add((at - file) as u64);
        number(at + 32) > place || number(at + 24) > number(40).max(number(CONTROL + 40))
    })
}

fn records(log: &Log<Memory>, most: usize) -> Result<Vec<Vec<u8>>, Error> {
    let mut reader = log.read(log.first())?;
    let (mut records, mut total) = (Vec::new(), 0);
    while let Some(record) = reader.next()? {
        total += record.bytes.len();
        assert!(total <= most, "more bytes than there are");
        records.push(record.bytes.to_vec());
    }
    Ok(records)
}

/// Where a checksum is right, and of how many bytes behind it.
pub fn right_checksums(bytes: &[u8]) -> Vec<(usize, usize)> {
    let copies = [(0, CONTROL), (CONTROL, CONTROL)];
    let blocks = (2 * CONTROL..bytes.len()).step_by(GRANULE as usize);
    let all = blocks.flat_map(|at| [(at, BLOCK), (at, HEADER)]);
    let is_right = |&(at, len): &(usize, usize)| {
        let found = bytes.get(at..at + len);
        found.is_some_and(|found| crc32c::crc32c(&found[4..]).to_le_bytes() == found[..4])
    };
    copies.into_iter().chain(all).filter(is_right).collect()
}

/// Makes checksums right again where they were, those of records among them, and the chain from block to block.
#[allow(dead_code, reason = "only the fuzz target changes them")]
pub fn correct(bytes: &mut [u8], right: &[(usize, usize)]) {
    let mut previous: Option<[u8; 4]> = None;
    for &(at, len) in right {
        if at + len > bytes.len() {
            continue;
        }
        if len == BLOCK {
            let length =
                u32::from_le_bytes(bytes[at + 12..at + 16].try_into().expect("four bytes"));
            let payload = bytes.get(at + BLOCK..(at + BLOCK).saturating_add(length as usize));
            if let Some(payload) = payload {
                let crc = crc32c::crc32c(payload).to_le_bytes();
                bytes[at + 4..at + 8].copy_from_slice(&crc);
            }
            if let Some(previous) = previous {
                bytes[at + 8..at + 12].copy_from_slice(&previous);
            }
        }
        let crc = crc32c::crc32c(&bytes[at + 4..at + len]).to_le_bytes();
        bytes[at..at + 4].copy_from_slice(&crc);
        if len == BLOCK {
            previous = Some(crc);
        }
    }
}
