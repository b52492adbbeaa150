//! Finding a place among keys that are in order, mostly without looking at them.
//!
//! Of each key there are the eight bytes that follow what all keys begin with. Where these are the same as those of a key
//! that is looked for, the keys are compared.

use std::cmp::Ordering;

/// The heads of keys that are kept elsewhere, in the order of the keys. A key may be there several times.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heads {
    /// What all keys begin with.
    common: Box<[u8]>,
    heads: Vec<u64>,
}

/// The bytes of a key behind the common ones, as a number that has their order.
fn head(key: &[u8], common: usize) -> u64 {
    let rest = key.get(common..).unwrap_or_default();
    let mut bytes = [0; 8];
    let len = rest.len().min(8);
    bytes[..len].copy_from_slice(&rest[..len]);
    u64::from_be_bytes(bytes)
}

/// What two keys begin with both.
fn common<'k>(a: &'k [u8], b: &[u8]) -> &'k [u8] {
    &a[..a.iter().zip(b).take_while(|(a, b)| a == b).count()]
}

impl Heads {
    /// Of keys that are in order, of which `key_of` has so many.
    pub fn of<'k>(count: usize, key_of: impl Fn(usize) -> &'k [u8]) -> Heads {
        let common = match count {
            0 => &[],
            count => common(key_of(0), key_of(count - 1)),
        };
        let heads = (0..count).map(|index| head(key_of(index), common.len()));
        Heads {
            common: common.into(),
            heads: heads.collect(),
        }
    }

    pub fn capacity(&self) -> usize {
        self.heads.capacity()
    }

    /// Bytes of what all keys begin with.
    pub fn common_len(&self) -> usize {
        self.common.len()
    }

    pub fn head(&self, index: usize) -> u64 {
        self.heads[index]
    }

    /// Where a key is first; `Err`: where it would be.
    pub fn find<'k>(&self, key: &[u8], key_of: impl Fn(usize) -> &'k [u8]) -> Result<usize, usize> {
        let common = self.common.len();
        match key[..key.len().min(common)].cmp(&self.common) {
            Ordering::Less => Err(0),
            Ordering::Greater => Err(self.heads.len()),
            Ordering::Equal => {
                let head = head(key, common);
                let mut low = self.heads.partition_point(|other| *other < head);
                let same = self.heads[low..].iter().take_while(|other| **other == head);
                // Of those with the same head.
                let mut high = low + same.count();
                let end = high;
                while low < high {
                    let middle = low + (high - low) / 2;
                    if key_of(middle) < key {
                        low = middle + 1;
                    } else {
                        high = middle;
                    }
                }
                if low < end && key_of(low) == key {
                    Ok(low)
                } else {
                    Err(low)
                }
            }
        }
    }

    /// Puts a key at a place: where it belongs, or anywhere if all are made anew afterwards. `key_of` has those that are there
    /// already.
    pub fn insert<'k>(&mut self, place: usize, key: &[u8], key_of: impl Fn(usize) -> &'k [u8]) {
        let common = if self.heads.is_empty() {
            key
        } else {
            common(key, &self.common)
        };
        if self.heads.is_empty() || common.len() < self.common.len() {
            for (index, one) in self.heads.iter_mut().enumerate() {
                *one = head(key_of(index), common.len());
            }
            self.common = common.into();
        }
        let head = head(key, common.len());
        reserve(&mut self.heads, 1, 8);
        self.heads.insert(place, head);
    }

    /// Takes some of one key away.
    pub fn remove(&mut self, places: std::ops::Range<usize>) {
        self.heads.drain(places);
    }

    #[cfg(test)]
    pub fn check<'k>(&self, count: usize, key_of: impl Fn(usize) -> &'k [u8]) {
        assert_eq!(self.heads.len(), count);
        for index in 0..self.heads.len() {
            assert!(key_of(index).starts_with(&self.common));
            assert_eq!(self.heads[index], head(key_of(index), self.common.len()));
        }
    }
}

/// Makes room for more, and not for much more: what is not used counts as memory, too.
pub(super) fn reserve<T>(list: &mut Vec<T>, more: usize, least: usize) {
    if list.capacity() - list.len() < more {
        list.reserve_exact(more.max(list.len() / 4).max(least));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_have_the_order_of_keys() {
        let keys: [&[u8]; 7] = [
            b"ab",
            b"ab\0",
            b"ab\0\0",
            b"abc",
            b"abcdefghijk",
            b"abcdefghijl",
            b"b",
        ];
        for common in [0, 2] {
            let some = &keys[..if common == 0 { 7 } else { 6 }];
            let heads = Heads::of(some.len(), |index| some[index]);
            assert_eq!(heads.common.len(), common);
            let find = |key: &[u8]| heads.find(key, |index| some[index]);
            for (index, key) in some.iter().enumerate() {
                assert_eq!(find(key), Ok(index));
            }
            assert_eq!(find(b""), Err(0));
            assert_eq!(find(b"aa"), Err(0));
            assert_eq!(find(b"abcdefghijk\0"), Err(5));
            assert_eq!(find(b"c"), Err(some.len()));
        }
        let none = Heads::default();
        assert_eq!(none.find(b"a", |_| b""), Err(0));
    }

    #[test]
    fn what_is_common_gets_less() {
        let mut keys: Vec<&[u8]> = Vec::new();
        let mut heads = Heads::default();
        for key in [&b"abcd"[..], b"abce", b"abc", b"b", b""] {
            let place = heads.find(key, |index| keys[index]).unwrap_err();
            heads.insert(place, key, |index| keys[index]);
            keys.insert(place, key);
            heads.check(keys.len(), |index| keys[index]);
            assert!(keys.is_sorted());
        }
        assert!(heads.common.is_empty());
    }
}
