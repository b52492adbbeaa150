//! Transactions for a store's own proof, as bytes: what [`Subject::run`](crate::Subject::run) hands to the store, and how
//! [`Subject::check`](crate::Subject::check) recognises what is left of it.
//!
//! - A store of keys puts the [`pairs`] of each transaction; [`Recovered::from_pairs`] tells from all pairs that are
//!   there which transactions are whole, and which only in part.
//! - A log appends the [`record`] of each; [`Recovered::from_records`] does the same with what is read back.
//!
//! All bytes follow from the transaction's number, so that nothing but the store is needed to recognise them.

pub(crate) mod pairs;
mod records;
pub(crate) mod shape;

use crate::subject::Recovered;

pub use records::record;

/// A key and its value.
pub type Pair = (Vec<u8>, Vec<u8>);

/// The transactions of a store's own proof: one client, so many rows that are overwritten, and bytes of a value.
const SHAPE: shape::Shape = shape::Shape {
    rows: 16,
    size: 200,
};

/// What `transaction` puts, in one transaction of the store: two keys that are its own, and two of sixteen that every
/// transaction overwrites. Number 0 makes those sixteen: [`Subject::prepare`](crate::Subject::prepare) puts it.
pub fn pairs(transaction: u64) -> Vec<Pair> {
    match transaction {
        0 => pairs::initial(&SHAPE, 0).collect(),
        _ => pairs::of(&SHAPE, 0, transaction).collect(),
    }
}

impl Recovered {
    /// What `pairs`, which are all that the store has, say of the transactions that put them.
    pub fn from_pairs<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Recovered {
        pairs::remains(pairs).found(&SHAPE, 1)
    }

    /// What `records`, which are all that the log has, say of the transactions that appended them.
    pub fn from_records<R: AsRef<[u8]>>(records: impl IntoIterator<Item = R>) -> Recovered {
        records::found(records)
    }
}

/// Bytes that are like no other seed's.
pub(crate) fn pseudo_random(bytes: &mut [u8], seed: u64) {
    fastrand::Rng::with_seed(seed).fill(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_by(
        transactions: std::ops::RangeInclusive<u64>,
    ) -> std::collections::BTreeMap<Vec<u8>, Vec<u8>> {
        transactions.flat_map(pairs).collect()
    }

    #[test]
    fn pairs_that_were_put_are_recognised() {
        for last in [0, 1, 7, 40] {
            let found = Recovered::from_pairs(left_by(0..=last));
            let expected = Recovered {
                whole: (1..=last).collect(),
                ..Recovered::default()
            };
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn each_pair_that_is_missing_or_old_is_seen() {
        let before = left_by(0..=8);
        for (key, _) in pairs(9) {
            let mut torn = left_by(0..=9);
            match before.get(&key) {
                Some(old) => torn.insert(key, old.clone()),
                None => torn.remove(&key),
            };
            let found = Recovered::from_pairs(torn);
            assert_eq!(found.partial, [9].into());
            assert_eq!(found.whole, (1..=8).collect());
        }
    }

    #[test]
    fn what_nobody_put_is_invented_and_what_was_there_first_is_damage() {
        let invented = |change: &dyn Fn(&mut Vec<Pair>)| {
            let mut all: Vec<Pair> = left_by(0..=3).into_iter().collect();
            change(&mut all);
            Recovered::from_pairs(all).invented.len()
        };
        assert_eq!(invented(&|_| {}), 0);
        assert_eq!(invented(&|all| all[0].1[9] ^= 1), 1);
        assert_eq!(invented(&|all| all.push((b"key".to_vec(), Vec::new()))), 1);
        assert_eq!(invented(&|all| all.push(all[0].clone())), 1);
        assert!(Recovered::from_pairs(left_by(1..=3)).damage.is_some());
    }
}
