//! What the bytes of a directory promise, read by another reader than the engine's.
//!
//! It knows the format by `docs/log-format.md` alone, looks at every granule of every file, and believes whatever has
//! the right checksum. So it says what must be there whatever else is damaged.

use std::collections::BTreeMap;

use crc32c::crc32c;

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn is_right(bytes: &[u8], len: usize) -> bool {
    bytes.len() >= len && u32_at(bytes, 0) == crc32c(&bytes[4..len])
}

/// The control record that counts.
struct Control<'a>(&'a [u8]);

impl Control<'_> {
    fn of(files: &BTreeMap<String, Vec<u8>>) -> Option<Control<'_>> {
        let file = files.get("landfall-log")?;
        let copies = [0, 4096]
            .into_iter()
            .filter_map(|at| file.get(at..at + 4096));
        let valid = copies.filter(|copy| is_right(copy, 128));
        valid.max_by_key(|copy| u64_at(copy, 24)).map(Control)
    }
}

/// Everything before this position was durable, by what is there.
///
/// With the `end` that the engine has found only that counts which it looks at: behind the end no more than can have
/// been in flight, and first blocks. On a disk that lies there may be more.
pub(crate) fn promised_in(files: &BTreeMap<String, Vec<u8>>, end: Option<u64>) -> u64 {
    let Some(control) = Control::of(files) else {
        return 0;
    };
    let (log, segment) = (u64_at(control.0, 32), u64_at(control.0, 48));
    let granule = u32_at(control.0, 80) as usize;
    let is_closed = u32_at(control.0, 88) == 2;
    let window = if is_closed { 1 } else { u64_at(control.0, 112) };
    let seen = end.map_or(u64::MAX, |end| end.saturating_add(window));
    let mut promised = u64_at(control.0, 96);
    let segments = files
        .iter()
        .filter(|(name, _)| name.starts_with("segment-"));
    for (_, bytes) in segments {
        let mut sequence = None;
        if is_right(bytes, 48) && bytes[4..16] == *b"Landfall seg" && u64_at(bytes, 24) == log {
            sequence = Some(u64_at(bytes, 32));
            promised = promised.max(u64_at(bytes, 40));
        }
        for at in (granule..bytes.len()).step_by(granule) {
            let block = &bytes[at..];
            if !is_right(block, 64) || u64_at(block, 16) != log {
                continue;
            }
            let position = u64_at(block, 32);
            let is_at_its_place = position % segment == at as u64
                && sequence.is_none_or(|sequence| position / segment == sequence);
            if is_at_its_place && (position < seen || at == granule) {
                promised = promised.max(u64_at(block, 48));
            }
        }
    }
    promised
}
