//! A record as it stands in the state, in a dump and in any log: slot number, checksum, content.
//!
//! The checksum covers the slot number and the content, so a record that was written in part, or that
//! stands where another should, is not taken for one. A record of zeros, which is what a filesystem may
//! leave at the end of a file after a power cut, has a wrong checksum too. The engine's log has checksums of its own;
//! the plain file has only this one.

use std::io;
use std::ops::Range;

use crc32fast::Hasher;

const SLOT: Range<usize> = 0..8;
const CHECKSUM: Range<usize> = 8..12;

/// Bytes in front of a record's content; a record is longer than that.
pub(super) const HEADER: usize = 12;

/// Fills `record`, which is longer than [`HEADER`], with a content that no other record has.
pub(super) fn fill(record: &mut [u8], slot: u64, random: &mut fastrand::Rng) {
    random.fill(&mut record[HEADER..]);
    record[SLOT].copy_from_slice(&slot.to_le_bytes());
    let checksum = checksum(record);
    record[CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
}

/// The slot that `record` belongs in; refuses what has not the right checksum.
pub(super) fn slot(record: &[u8]) -> io::Result<u64> {
    if record.len() <= HEADER || record[CHECKSUM] != checksum(record).to_le_bytes() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a record does not match its checksum",
        ));
    }
    let mut slot = [0; 8];
    slot.copy_from_slice(&record[SLOT]);
    Ok(u64::from_le_bytes(slot))
}

/// The checksum that a record has in it, of whatever content.
pub(super) fn checksum_of(record: &[u8]) -> u32 {
    let mut checksum = [0; 4];
    checksum.copy_from_slice(&record[CHECKSUM]);
    u32::from_le_bytes(checksum)
}

fn checksum(record: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(&record[SLOT]);
    hasher.update(&record[HEADER..]);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_flipped_bit_is_seen() {
        let mut record = [0; 13];
        fill(&mut record, 7, &mut fastrand::Rng::with_seed(1));
        assert_eq!(slot(&record).unwrap(), 7);
        for bit in 0..record.len() * 8 {
            record[bit / 8] ^= 1 << (bit % 8);
            assert!(slot(&record).is_err(), "bit {bit}");
            record[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn zeros_are_no_record() {
        assert!(slot(&[0; 256]).is_err());
        assert!(slot(&[0; HEADER]).is_err());
    }

    #[test]
    fn updates_of_one_slot_differ() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut records = [[0; 64]; 2];
        for record in &mut records {
            fill(record, 7, &mut random);
        }
        assert_ne!(records[0], records[1]);
    }
}
