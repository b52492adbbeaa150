//! Which keys a leaf may have: a Bloom filter that stays in memory when the leaf goes, so that nobody reads it for a key that is not there.
//!
//! A filter is of what the leaf had when it was read or written. Who looks for a key after that has looked through all that is
//! newer than the leaf, so what is not in the filter is not in the leaf for anybody.
//!
//! A filter goes with the page of its leaf. Where all that there may be are there, leaves that come later have none.

use crc32c::crc32c;

/// Bits for each key.
const BITS: usize = 10;
/// Bits of them that a key sets: of a hundred keys that are not there about one finds all its bits set by others.
const PROBES: u64 = 6;

#[derive(Debug)]
pub(crate) struct Filter {
    bits: Box<[u64]>,
}

/// Which bits of so many a key has.
fn places(key: &[u8], bits: usize) -> impl Iterator<Item = usize> {
    // Two numbers of one: the upper half of a product depends on all that was multiplied.
    let mixed = u64::from(crc32c(key)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let (first, step) = (mixed >> 32, (mixed & 0xFFFF_FFFF) | 1);
    (0..PROBES).map(move |probe| {
        let place = first.wrapping_add(probe.wrapping_mul(step)) & 0xFFFF_FFFF;
        ((place * bits as u64) >> 32) as usize
    })
}

impl Filter {
    /// Of so many keys, about.
    pub fn of<'k>(count: usize, keys: impl Iterator<Item = &'k [u8]>) -> Filter {
        let mut bits = vec![0; (count * BITS).div_ceil(64).max(1)].into_boxed_slice();
        for key in keys {
            for place in places(key, bits.len() * 64) {
                bits[place / 64] |= 1 << (place % 64);
            }
        }
        Filter { bits }
    }

    /// Bytes of memory that one of so many keys takes.
    pub fn memory_of(count: usize) -> usize {
        (count * BITS).div_ceil(64).max(1) * 8
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        self.bits.len() * 8
    }

    /// Whether it may have a key; one that was put in it has.
    pub fn may_have(&self, key: &[u8]) -> bool {
        places(key, self.bits.len() * 64)
            .all(|place| (self.bits[place / 64] >> (place % 64)) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_put_in_is_there(keys: Vec<Vec<u8>>, count in 0..50_usize) {
            let filter = Filter::of(count, keys.iter().map(|key| &**key));
            prop_assert!(keys.iter().all(|key| filter.may_have(key)));
            prop_assert_eq!(filter.memory(), Filter::memory_of(count));
        }
    }

    #[test]
    fn what_was_not_is_there_seldom() {
        // Neighbours, which differ in few bits.
        let key = |number: u64| number.to_be_bytes();
        for (leaf, count) in [(0, 5), (1, 20), (2, 140), (3, 1_000)] {
            let first = leaf << 32;
            let keys: Vec<_> = (0..count).map(|number| key(first + 2 * number)).collect();
            let filter = Filter::of(keys.len(), keys.iter().map(|key| &key[..]));
            let wrong = (0..10_000).map(|number| key(first + 2 * number + 1));
            let wrong = wrong.filter(|key| filter.may_have(key)).count();
            assert!(wrong < 300, "{wrong} of 10,000 beside {count}");
        }
    }
}
