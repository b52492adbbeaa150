//! Keys and values: made from the number of a row, and checked when they are read.
//!
//! A value begins with its version and goes on with bytes that follow from its key and that version. Whoever reads it can
//! tell whether it belongs to its key and is whole.

use crate::Fallible;
use crate::engines::Write;

const GOLD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Another number for each number; in an order that looks random.
pub fn mix(number: u64) -> u64 {
    let mut x = number.wrapping_add(GOLD);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// What keys look like.
#[derive(Clone, Copy)]
pub enum Keys {
    /// 8 bytes, which ascend with the rows.
    Sorted,
    /// 8 bytes, which do not.
    Random,
    /// 24 bytes, of which no two have a beginning in common.
    Wide,
    /// 24 bytes: `user` and 20 digits.
    User,
}

/// Rows of one kind.
#[derive(Clone, Copy)]
pub struct Rows {
    pub keys: Keys,
    /// Bytes of a value, at least 8.
    pub value: usize,
    /// Bytes of it that do not compress: the first ones. The others are zeros.
    pub random: usize,
}

impl Rows {
    /// Rows of which a half compresses.
    pub const fn new(keys: Keys, value: usize) -> Rows {
        Rows {
            keys,
            value,
            random: value / 2,
        }
    }

    pub fn key(&self, row: u64) -> Vec<u8> {
        match self.keys {
            Keys::Sorted => row.to_be_bytes().to_vec(),
            Keys::Random => mix(row).to_be_bytes().to_vec(),
            Keys::Wide => {
                let first = mix(row);
                let all = [first, mix(first ^ 1), mix(first ^ 2)];
                all.iter().flat_map(|word| word.to_be_bytes()).collect()
            }
            Keys::User => format!("user{:020}", mix(row)).into_bytes(),
        }
    }

    /// Bytes of a key and its value.
    pub fn bytes(&self) -> u64 {
        (self.key(0).len() + self.value) as u64
    }

    pub fn write(&self, row: u64, version: u64) -> Write {
        let key = self.key(row);
        let seed = seed(&key);
        let mut value = vec![0; self.value];
        let (head, body) = value[..self.random].split_at_mut(8);
        head.copy_from_slice(&(version ^ seed).to_le_bytes());
        for (bytes, word) in body.chunks_mut(8).zip(words(seed, version)) {
            bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
        }
        Write {
            key,
            value: Some(value),
        }
    }

    pub fn check(&self, key: &[u8], value: &[u8]) -> Fallible<()> {
        if self.belongs(key, value) {
            return Ok(());
        }
        Err("a value was read that was never written under its key".into())
    }

    fn belongs(&self, key: &[u8], value: &[u8]) -> bool {
        let Some((random, zeros)) = value.split_at_checked(self.random) else {
            return false;
        };
        let Some((head, body)) = random.split_first_chunk() else {
            return false;
        };
        let seed = seed(key);
        let version = u64::from_le_bytes(*head) ^ seed;
        let mut pairs = body.chunks(8).zip(words(seed, version));
        value.len() == self.value
            && pairs.all(|(bytes, word)| *bytes == word.to_le_bytes()[..bytes.len()])
            && zeros.iter().all(|&byte| byte == 0)
    }
}

fn seed(key: &[u8]) -> u64 {
    key.chunks(8).fold(0, |hash, bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        mix(hash ^ u64::from_le_bytes(word))
    })
}

fn words(seed: u64, version: u64) -> impl Iterator<Item = u64> {
    let first = seed ^ mix(version);
    (1..).map(move |number: u64| mix(first.wrapping_add(number.wrapping_mul(GOLD))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_belongs_to_its_key_alone() {
        for keys in [Keys::Sorted, Keys::Random, Keys::Wide, Keys::User] {
            for rows in [Rows::new(keys, 108), Rows::new(keys, 1000)] {
                let write = rows.write(7, 3);
                let mut value = write.value.unwrap();
                assert!(rows.belongs(&write.key, &value));
                assert!(!rows.belongs(&rows.key(8), &value));
                assert!(!rows.belongs(&write.key, &value[1..]));
                for at in 0..value.len() {
                    value[at] ^= 1;
                    assert!(!rows.belongs(&write.key, &value), "{at}");
                    value[at] ^= 1;
                }
            }
        }
    }
}
