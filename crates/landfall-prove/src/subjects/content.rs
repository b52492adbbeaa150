//! The bytes of a transaction: each sector tells by itself whose it is and where it belongs.
//!
//! | bytes | of a sector |
//! |---|---|
//! | 0..4 | CRC-32 of the rest |
//! | 4..8 | its number in its place |
//! | 8..16 | its place: a slot, a page |
//! | 16..24 | the transaction that wrote it; 0: what was there before the first |
//! | 24..512 | pseudo-random bytes, made from these three numbers |
//!
//! Numbers are little-endian. A disk writes a sector whole or not at all, and nothing larger: so a
//! sector of an older transaction among those of a newer one is seen, one that lies where another
//! should is seen, and zeros, which a filesystem may leave, belong to no transaction.
//!
//! A sector that begins as a transaction's does and goes on otherwise is counted as begun by it: a page
//! that a program changes while the kernel writes it out may reach the disk like that.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use landfall_recorder::SECTOR;

use crate::transactions::pseudo_random;

const CHECKSUM: Range<usize> = 0..4;
const NUMBER: Range<usize> = 4..8;
const PLACE: Range<usize> = 8..16;
const TRANSACTION: Range<usize> = 16..24;
/// Bytes that must be a transaction's for a broken sector to count as begun by it: the header, and
/// enough of the content that nobody has them by chance.
const BEGUN: Range<usize> = 4..40;

/// Fills `bytes` with what `transaction` writes to `place`.
pub(super) fn fill(bytes: &mut [u8], transaction: u64, place: u64) {
    for (number, sector) in (0u32..).zip(bytes.chunks_mut(SECTOR)) {
        let whole = sector_of(transaction, place, number);
        sector.copy_from_slice(&whole[..sector.len()]);
    }
}

fn sector_of(transaction: u64, place: u64, number: u32) -> [u8; SECTOR] {
    let mut sector = [0; SECTOR];
    // Far from each other: near seeds would do, but equal sums of the three would not.
    let seed = transaction
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(place << 32)
        .wrapping_add(u64::from(number));
    pseudo_random(&mut sector, seed);
    sector[NUMBER].copy_from_slice(&number.to_le_bytes());
    sector[PLACE].copy_from_slice(&place.to_le_bytes());
    sector[TRANSACTION].copy_from_slice(&transaction.to_le_bytes());
    let checksum = crc32fast::hash(&sector[CHECKSUM.end..]);
    sector[CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
    sector
}

/// What a sector holds.
#[derive(Debug, PartialEq, Eq)]
enum Sector {
    /// Zeros.
    Blank,
    /// What this transaction wrote here.
    Of(u64),
    /// What this transaction wrote here, but not to its end.
    Begun(u64),
    /// What nobody wrote here.
    Foreign,
}

impl Sector {
    fn read(bytes: &[u8], place: u64, number: u32) -> Sector {
        if bytes.iter().all(|&byte| byte == 0) {
            return Sector::Blank;
        }
        let Some(transaction) = bytes
            .get(TRANSACTION)
            .and_then(|bytes| bytes.try_into().ok())
            .map(u64::from_le_bytes)
        else {
            return Sector::Foreign;
        };
        let expected = sector_of(transaction, place, number);
        if bytes == expected {
            Sector::Of(transaction)
        } else if bytes.get(BEGUN) == Some(&expected[BEGUN]) {
            Sector::Begun(transaction)
        } else {
            Sector::Foreign
        }
    }
}

/// What a place holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    /// Sectors that the place has.
    pub sectors: usize,
    /// Sectors of each transaction.
    pub of: BTreeMap<u64, usize>,
    /// Transactions that wrote a sector, but not to its end.
    pub begun: BTreeSet<u64>,
    /// Sectors of zeros.
    pub blank: usize,
    /// Sectors that nobody wrote here.
    pub foreign: usize,
    /// Sectors beyond the end of the file.
    pub missing: usize,
}

impl Contents {
    /// Reads the `len` bytes of `place` that begin at `start` of a file.
    pub fn of_place(file: &[u8], start: usize, len: usize, place: u64) -> Contents {
        let start = start.min(file.len());
        let end = start.saturating_add(len).min(file.len());
        let mut contents = Contents {
            sectors: len.div_ceil(SECTOR),
            ..Contents::default()
        };
        let mut there = 0;
        for (number, bytes) in (0u32..).zip(file[start..end].chunks(SECTOR)) {
            there += 1;
            match Sector::read(bytes, place, number) {
                Sector::Blank => contents.blank += 1,
                Sector::Of(transaction) => *contents.of.entry(transaction).or_default() += 1,
                Sector::Begun(transaction) => {
                    contents.begun.insert(transaction);
                }
                Sector::Foreign => contents.foreign += 1,
            }
        }
        contents.missing = contents.sectors - there;
        contents
    }

    /// The transaction that all of it is of.
    pub fn whole(&self) -> Option<u64> {
        let (&transaction, &sectors) = self.of.first_key_value()?;
        (sectors == self.sectors).then_some(transaction)
    }

    /// Every transaction that something of it is of.
    pub fn transactions(&self) -> BTreeSet<u64> {
        self.of.keys().chain(&self.begun).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 8 * SECTOR;

    fn written(transaction: u64, place: u64) -> Vec<u8> {
        let mut bytes = vec![0; LEN];
        fill(&mut bytes, transaction, place);
        bytes
    }

    fn read(bytes: &[u8], place: u64) -> Contents {
        Contents::of_place(bytes, 0, LEN, place)
    }

    #[test]
    fn every_sector_differs_and_tells_whose_it_is() {
        let mut seen = BTreeSet::new();
        for transaction in 0..20 {
            for place in 0..4 {
                let bytes = written(transaction, place);
                assert_eq!(read(&bytes, place).whole(), Some(transaction));
                for sector in bytes.chunks(SECTOR) {
                    assert!(seen.insert(sector.to_vec()));
                }
            }
        }
    }

    #[test]
    fn a_sector_of_another_transaction_is_seen() {
        let mut bytes = written(5, 1);
        bytes[3 * SECTOR..][..SECTOR].copy_from_slice(&written(1, 1)[3 * SECTOR..][..SECTOR]);
        let contents = read(&bytes, 1);
        assert_eq!(contents.whole(), None);
        assert_eq!(contents.of, BTreeMap::from([(1, 1), (5, 7)]));
    }

    #[test]
    fn a_sector_that_lies_elsewhere_is_foreign() {
        assert_eq!(read(&written(5, 1), 2).foreign, 8);
        let mut bytes = written(5, 1);
        bytes.rotate_left(SECTOR);
        assert_eq!(read(&bytes, 1).foreign, 8);
    }

    #[test]
    fn any_flipped_bit_is_seen() {
        let mut bytes = written(5, 1);
        for bit in (0..LEN * 8).step_by(13) {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let contents = read(&bytes, 1);
            assert_eq!(contents.whole(), None);
            assert_eq!(contents.of, BTreeMap::from([(5, 7)]));
            assert_eq!(contents.begun.len() + contents.foreign, 1);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn a_sector_that_was_changed_under_way_is_begun() {
        let mut bytes = written(5, 1);
        bytes[100..SECTOR].copy_from_slice(&written(1, 1)[100..SECTOR]);
        let contents = read(&bytes, 1);
        assert_eq!(contents.begun, BTreeSet::from([5]));
        assert_eq!(contents.transactions(), BTreeSet::from([5]));
    }

    #[test]
    fn zeros_and_what_is_missing_are_nobodys() {
        let mut bytes = written(5, 1);
        bytes[..SECTOR].fill(0);
        bytes.truncate(6 * SECTOR);
        let contents = read(&bytes, 1);
        assert_eq!((contents.blank, contents.missing), (1, 2));
        assert_eq!(contents.of, BTreeMap::from([(5, 5)]));
        assert_eq!(read(&[], 1).missing, 8);
        assert_eq!(Contents::of_place(&bytes, 9999999, LEN, 1).missing, 8);
    }

    #[test]
    fn a_sector_cut_short_is_begun_or_foreign() {
        let bytes = written(5, 1);
        assert_eq!(read(&bytes[..100], 1).begun, BTreeSet::from([5]));
        assert_eq!(read(&bytes[..20], 1).foreign, 1);
    }
}
