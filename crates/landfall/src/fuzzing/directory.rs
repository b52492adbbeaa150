//! A directory as one row of bytes: the control file's two copies, cut to what is read of them, and then
//! segments, each of [`SEGMENT`] bytes, the last of which may be shorter.

use std::collections::BTreeMap;

use super::checksums::{Checksum, in_order, u32_at};
use super::memory::GRANULE;
use crate::log::format::{self, CONTROL_FILE, CONTROL_NAME, HEADER, SegmentHeader, segment_name};

/// Bytes of a copy of the control record that mean something.
pub(crate) const CONTROL: usize = format::Control::SIZE;
/// Where the second copy begins.
const COPY: usize = format::CONTROL;
/// Bytes of a segment.
pub(crate) const SEGMENT: usize = 4096;

/// The files that are in a row of bytes.
pub(crate) fn files(bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let (copies, segments) = bytes.split_at(bytes.len().min(2 * CONTROL));
    let mut control = vec![0; CONTROL_FILE];
    for (index, copy) in copies.chunks(CONTROL).enumerate() {
        control[index * COPY..index * COPY + copy.len()].copy_from_slice(copy);
    }
    let named = segments.chunks(SEGMENT).zip(1..);
    let mut files: BTreeMap<String, Vec<u8>> = named
        .map(|(bytes, number)| (segment_name(number), bytes.to_vec()))
        .collect();
    files.insert(CONTROL_NAME.to_owned(), control);
    files
}

/// The row of bytes of a directory whose files are numbered without a gap.
#[cfg(test)]
pub(crate) fn bytes(files: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let control = &files[CONTROL_NAME];
    let mut bytes = [&control[..CONTROL], &control[COPY..COPY + CONTROL]].concat();
    let segments = files.iter().filter(|(name, _)| *name != CONTROL_NAME);
    segments.for_each(|(_, segment)| bytes.extend_from_slice(segment));
    bytes
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// Whether there is a block that belongs behind where it is, or is of an epoch to come: no log has ever written one.
pub(crate) fn has_impossible_block(bytes: &[u8]) -> bool {
    let number = |at| u64_at(bytes, at).unwrap_or(0);
    let right = right_checksums(bytes);
    let mut blocks = right.iter().filter(|one| one.is_of_block);
    blocks.any(|&Checksum { at, .. }| {
        let file = (at - 2 * CONTROL) / SEGMENT * SEGMENT + 2 * CONTROL;
        let begin = number(file + 32).saturating_mul(SEGMENT as u64);
        let place = begin.saturating_add((at - file) as u64);
        number(at + 32) > place || number(at + 24) > number(40).max(number(CONTROL + 40))
    })
}

/// The checksums that are right, each behind the one that it repeats.
pub fn right_checksums(bytes: &[u8]) -> Vec<Checksum> {
    let copies = [(0, CONTROL), (CONTROL, CONTROL)];
    let blocks = (2 * CONTROL..bytes.len()).step_by(GRANULE as usize);
    let all = blocks.flat_map(|at| [(at, HEADER), (at, SegmentHeader::SIZE)]);
    let mut right: Vec<Checksum> = copies
        .into_iter()
        .chain(all)
        .filter_map(|(at, len)| {
            let is_of_block = at >= 2 * CONTROL && len == HEADER;
            Checksum::right(bytes, at, len, is_of_block)
        })
        .collect();
    let blocks: BTreeMap<Option<u32>, usize> = right
        .iter()
        .filter(|one| one.is_of_block)
        .map(|one| (u32_at(bytes, one.at), one.at))
        .collect();
    for one in &mut right {
        let place = match one.len {
            HEADER => one.at + 8,
            CONTROL => one.at + 92,
            _ => continue,
        };
        let repeated = blocks.get(&u32_at(bytes, place));
        one.repeats = repeated.map(|&block| (place, block)).into_iter().collect();
    }
    in_order(right)
}
