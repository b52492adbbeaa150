//! Checksums in a row of bytes, which are made right again after it was changed.
//!
//! A checksum may be repeated elsewhere: that of a block in the next one, that of a page in the page that points to it. What
//! repeats one has its own checksum made right behind it.

use std::collections::BTreeSet;

use crate::log::format::HEADER;

/// A checksum in a row of bytes that is right.
#[derive(Clone, Debug)]
pub struct Checksum {
    /// Where it is.
    pub(super) at: usize,
    /// Bytes of what it is of, with itself.
    pub(super) len: usize,
    /// It is of a block, behind which are records that have one too.
    pub(super) is_of_block: bool,
    /// Where other checksums are repeated in what it is of, and where those are.
    pub(super) repeats: Vec<(usize, usize)>,
}

impl Checksum {
    /// The one that is there; `None`: it is not right.
    pub(super) fn right(
        bytes: &[u8],
        at: usize,
        len: usize,
        is_of_block: bool,
    ) -> Option<Checksum> {
        let found = bytes.get(at..at.checked_add(len)?)?;
        let is_right = u32_at(found, 0) == Some(crc32c::crc32c(found.get(4..)?));
        is_right.then(|| Checksum {
            at,
            len,
            is_of_block,
            repeats: Vec::new(),
        })
    }

    /// The same where so many bytes are before the row.
    pub(super) fn behind(mut self, bytes: usize) -> Checksum {
        self.at += bytes;
        for (place, of) in &mut self.repeats {
            *place += bytes;
            *of += bytes;
        }
        self
    }
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

/// Each behind those that it repeats.
pub(super) fn in_order(mut rest: Vec<Checksum>) -> Vec<Checksum> {
    let mut ordered: Vec<Checksum> = Vec::new();
    while !rest.is_empty() {
        let done: BTreeSet<usize> = ordered.iter().map(|one| one.at).collect();
        let is_next = |one: &Checksum| one.repeats.iter().all(|(_, of)| done.contains(of));
        let (next, later): (Vec<_>, Vec<_>) = rest.into_iter().partition(is_next);
        if next.is_empty() {
            // They repeat each other in a circle, by chance.
            ordered.extend(later);
            break;
        }
        ordered.extend(next);
        rest = later;
    }
    ordered
}

/// Makes checksums right again where they were, those of records among them, and repeats them where they were repeated.
pub fn correct(bytes: &mut [u8], right: &[Checksum]) {
    for one in right {
        let &Checksum { at, len, .. } = one;
        if at + len > bytes.len() {
            continue;
        }
        if one.is_of_block {
            let length = u32_at(bytes, at + 12).unwrap_or(0) as usize;
            let payload = bytes.get(at + HEADER..(at + HEADER).saturating_add(length));
            if let Some(payload) = payload {
                let crc = crc32c::crc32c(payload).to_le_bytes();
                bytes[at + 4..at + 8].copy_from_slice(&crc);
            }
        }
        for &(place, of) in &one.repeats {
            if of + 4 <= bytes.len() {
                bytes.copy_within(of..of + 4, place);
            }
        }
        let crc = crc32c::crc32c(&bytes[at + 4..at + len]).to_le_bytes();
        bytes[at..at + 4].copy_from_slice(&crc);
    }
}
