//! What is written: blocks that say which write they are.
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 8 | magic: `LFWITBLK` |
//! | 8 | 4 | version: 1 |
//! | 12 | 4 | CRC-32C of the whole block, with zeros here |
//! | 16 | 16 | the run |
//! | 32 | 8 | number of the write in its run, from 1 |
//! | 40 | 4 | number of the block |
//! | 44 | 4 | bytes of the block |
//! | 48 | 8 | when the run began, in microseconds since 1970, by the witness's clock: that of the host under test may begin anew with its power |
//! | 56 | 8 | when the block was written, the same, by the writer's clock |
//! | 64 | | bytes that only this write has: of SplitMix64, from the run, the block and the write |
//!
//! Numbers are little-endian. A block is whole if the checksum is right, whatever run it is of: a torn one never is.

use landfall_os::Payload;
use landfall_results::witness::Found;

const MAGIC: &[u8; 8] = b"LFWITBLK";
const VERSION: u32 = 1;
const HEADER: usize = 64;
/// Bytes of a block that are the fewest, and what its size is a multiple of: as much as disks write whole, or make anew.
pub(crate) const UNIT: u32 = 4096;
/// Bytes of a block that are the most.
pub(crate) const MOST_BYTES: u32 = 1 << 20;

/// A run of a writer, by which its blocks are told from those of all others.
pub(crate) type Run = [u8; 16];

/// Which write it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub run: Run,
    pub write: u64,
    pub block: u32,
    /// When the run began.
    pub begun: u64,
    /// When it was written.
    pub at: u64,
}

impl Stamp {
    /// Makes the block of it; returns its checksum.
    pub fn fill(&self, payload: &mut Payload) -> u32 {
        let bytes = payload.bytes_mut();
        let len = bytes.len() as u32;
        let (header, rest) = bytes.split_at_mut(HEADER);
        let mut state = u64::from_le_bytes(half(&self.run, 0))
            ^ u64::from_le_bytes(half(&self.run, 8)).rotate_left(17)
            ^ self.write.rotate_left(40)
            ^ u64::from(self.block);
        for word in rest.chunks_mut(8) {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = state;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            word.copy_from_slice(&(mixed ^ (mixed >> 31)).to_le_bytes()[..word.len()]);
        }
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[12..16].fill(0);
        header[16..32].copy_from_slice(&self.run);
        header[32..40].copy_from_slice(&self.write.to_le_bytes());
        header[40..44].copy_from_slice(&self.block.to_le_bytes());
        header[44..48].copy_from_slice(&len.to_le_bytes());
        header[48..56].copy_from_slice(&self.begun.to_le_bytes());
        header[56..64].copy_from_slice(&self.at.to_le_bytes());
        let checksum = crc32c::crc32c(bytes);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        checksum
    }

    /// Which write a block says that it is, with its checksum; `None` if it is not whole.
    pub fn read(bytes: &[u8]) -> Option<(Stamp, u32)> {
        let header = bytes.get(..HEADER)?;
        let word = |at: usize| -> Option<u32> {
            Some(u32::from_le_bytes(header.get(at..at + 4)?.try_into().ok()?))
        };
        let number = |at: usize| -> Option<u64> {
            Some(u64::from_le_bytes(header.get(at..at + 8)?.try_into().ok()?))
        };
        let is_known = &header[..8] == MAGIC && word(8)? == VERSION;
        if !is_known || word(44)? as usize != bytes.len() {
            return None;
        }
        let checksum = word(12)?;
        let own = crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &[0; 4]);
        if crc32c::crc32c_append(own, &bytes[16..]) != checksum {
            return None;
        }
        let stamp = Stamp {
            run: header[16..32].try_into().ok()?,
            write: number(32)?,
            block: word(40)?,
            begun: number(48)?,
            at: number(56)?,
        };
        Some((stamp, checksum))
    }
}

/// What was promised of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Promise {
    pub run: Run,
    pub write: u64,
    pub block: u32,
    pub begun: u64,
    pub checksum: u32,
}

impl Promise {
    /// What there is in its place.
    pub fn compare(&self, bytes: &[u8]) -> Found {
        let Some((stamp, checksum)) = Stamp::read(bytes) else {
            return if bytes.iter().all(|byte| *byte == 0) {
                Found::Zeros
            } else {
                Found::Damaged
            };
        };
        if stamp.run != self.run {
            // By the witness's clock.
            return if stamp.begun > self.begun {
                Found::Foreign
            } else {
                Found::EarlierRun
            };
        }
        if stamp.block != self.block {
            // A write of this run that went to another place.
            return Found::Damaged;
        }
        match stamp.write.cmp(&self.write) {
            std::cmp::Ordering::Less => Found::Older(stamp.write),
            std::cmp::Ordering::Equal if checksum == self.checksum => Found::Kept,
            // The writer waits for each acknowledgement: it made no such write.
            std::cmp::Ordering::Equal | std::cmp::Ordering::Greater => Found::Foreign,
        }
    }
}

fn half(run: &Run, at: usize) -> [u8; 8] {
    let mut half = [0; 8];
    half.copy_from_slice(&run[at..at + 8]);
    half
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STAMP: Stamp = Stamp {
        run: [7; 16],
        write: 9,
        block: 3,
        begun: 100,
        at: 200,
    };

    fn block(stamp: Stamp) -> (Vec<u8>, u32) {
        let mut payload = Payload::zeros(4096);
        let checksum = stamp.fill(&mut payload);
        (payload.bytes_mut().to_vec(), checksum)
    }

    fn promise() -> Promise {
        Promise {
            run: STAMP.run,
            write: STAMP.write,
            block: STAMP.block,
            begun: STAMP.begun,
            checksum: block(STAMP).1,
        }
    }

    #[test]
    fn a_block_says_which_write_it_is() {
        let (bytes, checksum) = block(STAMP);
        assert_eq!(Stamp::read(&bytes), Some((STAMP, checksum)));
        assert_eq!(promise().compare(&bytes), Found::Kept);
        let found = |change: fn(&mut Stamp)| {
            let mut stamp = STAMP;
            change(&mut stamp);
            promise().compare(&block(stamp).0)
        };
        assert_eq!(found(|one| one.write = 5), Found::Older(5));
        assert_eq!(found(|one| one.write = 13), Found::Foreign);
        assert_eq!(found(|one| one.at = 201), Found::Foreign);
        assert_eq!(found(|one| one.block = 4), Found::Damaged);
        let other = |begun| Stamp {
            run: [8; 16],
            begun,
            ..STAMP
        };
        assert_eq!(promise().compare(&block(other(99)).0), Found::EarlierRun);
        assert_eq!(promise().compare(&block(other(101)).0), Found::Foreign);
        assert_eq!(promise().compare(&[0; 4096]), Found::Zeros);
    }

    #[test]
    fn each_sector_of_a_torn_block_counts() {
        let (new, _) = block(STAMP);
        let (old, _) = block(Stamp { write: 5, ..STAMP });
        for sector in 0..8 {
            let mut torn = new.clone();
            let range = sector * 512..(sector + 1) * 512;
            torn[range.clone()].copy_from_slice(&old[range]);
            assert_eq!(promise().compare(&torn), Found::Damaged, "{sector}");
        }
    }

    proptest! {
        #[test]
        fn anything_at_all_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..300), cut in 0..4096usize) {
            prop_assert!(Stamp::read(&bytes).is_none());
            prop_assert!(Stamp::read(&block(STAMP).0[..cut]).is_none());
        }

        #[test]
        fn a_changed_bit_is_seen(at in 0..4096usize, bit in 0..8u8) {
            let (mut bytes, _) = block(STAMP);
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(promise().compare(&bytes), Found::Damaged);
        }
    }
}
