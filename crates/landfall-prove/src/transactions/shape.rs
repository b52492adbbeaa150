//! What a transaction of a store changes, and what its remains say.
//!
//! Transaction n of a client adds two *entries*, (n, 0) and (n, 1), to a table that grows, and puts its
//! number into two of the client's *slots*, rows that are overwritten again and again: so that old pages
//! are written as well as new ones. All bytes follow from the numbers.
//!
//! A transaction is whole if both its entries are there and each of its slots has its number or a later
//! one; whatever else is there of it is a part. A client's transactions follow each other, so that the
//! slots of one client say of each which was the last. Where a store keeps the *numbers* of transactions
//! besides, a whole one has its number there.

use std::collections::{BTreeMap, BTreeSet};

use super::pseudo_random;
use crate::subject::Recovered;

/// Entries of a transaction.
pub(crate) const ENTRIES: u64 = 2;

/// How large transactions are.
pub(crate) struct Shape {
    /// Slots of each client, at least two.
    pub rows: u64,
    /// Bytes of an entry, and of a slot.
    pub size: usize,
}

/// A row of the table that grows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub transaction: u64,
    pub number: u64,
    pub client: u64,
    pub bytes: Vec<u8>,
}

/// A row that is overwritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub client: u64,
    pub number: u64,
    /// The last that wrote it; 0: none.
    pub transaction: u64,
    pub bytes: Vec<u8>,
}

/// Everything that is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Remains {
    pub entries: Vec<Entry>,
    pub slots: Vec<Slot>,
    /// The numbers of transactions that are kept besides; `None`: none are.
    pub numbers: Option<Vec<u64>>,
    /// What else there is that nobody made, each in a sentence.
    pub strange: Vec<String>,
}

impl Shape {
    fn bytes(&self, kind: u64, transaction: u64, number: u64) -> Vec<u8> {
        let mut bytes = vec![0; self.size];
        let seed = (transaction << 20 | number) << 1 | kind;
        pseudo_random(&mut bytes, seed);
        bytes
    }

    /// The bytes of an entry.
    pub fn entry(&self, transaction: u64, number: u64) -> Vec<u8> {
        self.bytes(0, transaction, number)
    }

    /// The bytes that a transaction puts into a slot.
    pub fn slot(&self, transaction: u64, number: u64) -> Vec<u8> {
        self.bytes(1, transaction, number)
    }

    /// The slots of its client that a transaction overwrites, in ascending order.
    pub fn slots(&self, transaction: u64) -> [u64; 2] {
        let first = transaction.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let one = first % self.rows;
        let other = (one + 1 + (first >> 16) % (self.rows - 1)) % self.rows;
        [one.min(other), one.max(other)]
    }
}

impl Remains {
    /// What the remains say of transactions.
    pub fn found(&self, shape: &Shape, clients: u32) -> Recovered {
        let mut found = Recovered {
            invented: self.strange.clone(),
            ..Recovered::default()
        };
        let mut by_number: BTreeMap<u64, (u64, BTreeSet<u64>)> = BTreeMap::new();
        for entry in &self.entries {
            let (transaction, number) = (entry.transaction, entry.number);
            let expected = shape.entry(transaction, number);
            let known = number < ENTRIES && transaction > 0 && entry.client < clients.into();
            if !known || entry.bytes != expected {
                let text = format!("entry {number} of transaction {transaction} holds other bytes");
                found.invented.push(text);
                continue;
            }
            let (client, numbers) = by_number
                .entry(transaction)
                .or_insert((entry.client, BTreeSet::new()));
            if *client != entry.client {
                let text = format!("transaction {transaction} has entries of two clients");
                found.invented.push(text);
            }
            if !numbers.insert(number) {
                let text = format!("entry {number} of transaction {transaction} is there twice");
                found.invented.push(text);
            }
        }
        let mut last: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        for (&transaction, (client, numbers)) in &by_number {
            if numbers.len() as u64 == ENTRIES {
                found.whole.insert(transaction)
            } else {
                found.partial.insert(transaction)
            };
            for slot in shape.slots(transaction) {
                last.insert((*client, slot), transaction);
            }
        }
        let mut seen = BTreeSet::new();
        for slot in &self.slots {
            let place = (slot.client, slot.number);
            let (client, number) = place;
            if client >= clients.into() || number >= shape.rows {
                let text = format!("slot {number} of client {client} is nobody's");
                found.invented.push(text);
                continue;
            }
            if !seen.insert(place) {
                let text = format!("slot {number} of client {client} is there twice");
                found.invented.push(text);
                continue;
            }
            let transaction = slot.transaction;
            let is_its = transaction == 0 || shape.slots(transaction).contains(&slot.number);
            if !is_its || slot.bytes != shape.slot(transaction, slot.number) {
                let text = format!("slot {number} of client {client} holds other bytes");
                found.invented.push(text);
                continue;
            }
            let expected = last.get(&place).copied().unwrap_or(0);
            if transaction != expected {
                // Of the later one the entries are there and not the slot, or the other way round.
                let part = transaction.max(expected);
                found.whole.remove(&part);
                found.partial.insert(part);
            }
        }
        let all = u64::from(clients) * shape.rows;
        if (seen.len() as u64) < all {
            let missing = all - seen.len() as u64;
            found.damage = Some(format!(
                "{missing} of {all} rows that were there are missing"
            ));
        }
        if let Some(numbers) = &self.numbers {
            hold_against_numbers(&mut found, by_number.into_keys().collect(), numbers);
        }
        found
    }
}

/// Takes for a part what has entries and no number, or a number and no `entries`.
fn hold_against_numbers(found: &mut Recovered, entries: BTreeSet<u64>, numbers: &[u64]) {
    let mut seen = BTreeSet::new();
    for &number in numbers {
        if !seen.insert(number) {
            let text = format!("the number of transaction {number} is there twice");
            found.invented.push(text);
        }
    }
    for &part in entries.symmetric_difference(&seen) {
        found.whole.remove(&part);
        found.partial.insert(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { rows: 4, size: 32 };

    /// What two clients leave that run transactions 1 to `last` in turn.
    fn remains(last: u64) -> Remains {
        let mut remains = Remains::default();
        for client in 0..2 {
            for number in 0..SHAPE.rows {
                remains.slots.push(Slot {
                    client,
                    number,
                    transaction: 0,
                    bytes: SHAPE.slot(0, number),
                });
            }
        }
        for transaction in 1..=last {
            let client = transaction % 2;
            for number in 0..ENTRIES {
                remains.entries.push(Entry {
                    transaction,
                    number,
                    client,
                    bytes: SHAPE.entry(transaction, number),
                });
            }
            for slot in &mut remains.slots {
                if slot.client == client && SHAPE.slots(transaction).contains(&slot.number) {
                    slot.transaction = transaction;
                    slot.bytes = SHAPE.slot(transaction, slot.number);
                }
            }
        }
        remains
    }

    #[test]
    fn what_was_done_is_found_whole() {
        for last in [0, 1, 2, 9] {
            let found = remains(last).found(&SHAPE, 2);
            let expected = Recovered {
                whole: (1..=last).collect(),
                ..Recovered::default()
            };
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_transaction_that_is_gone_whole_is_no_part() {
        let (before, mut now) = (remains(8), remains(9));
        now.entries.retain(|entry| entry.transaction != 9);
        now.slots = before.slots;
        assert_eq!(now.found(&SHAPE, 2), before_found());
        fn before_found() -> Recovered {
            remains(8).found(&SHAPE, 2)
        }
    }

    #[test]
    fn each_part_that_is_missing_makes_a_half() {
        let without_an_entry = {
            let mut remains = remains(9);
            remains
                .entries
                .retain(|entry| (entry.transaction, entry.number) != (9, 1));
            remains
        };
        let old_slots = Remains {
            slots: remains(8).slots,
            ..remains(9)
        };
        let only_slots = Remains {
            entries: remains(8).entries,
            ..remains(9)
        };
        for half in [without_an_entry, old_slots, only_slots] {
            let found = half.found(&SHAPE, 2);
            assert_eq!(found.partial, [9].into());
            assert_eq!(found.whole, (1..=8).collect());
            assert!(found.invented.is_empty() && found.damage.is_none());
        }
    }

    #[test]
    fn other_bytes_are_invented_and_missing_rows_are_damage() {
        let mut torn = remains(3);
        torn.entries[0].bytes[5] ^= 1;
        torn.slots[0].bytes[5] ^= 1;
        assert_eq!(torn.found(&SHAPE, 2).invented.len(), 2);
        let mut moved = remains(3);
        moved.slots[0].client = 2;
        assert_eq!(
            moved.found(&SHAPE, 2).invented,
            ["slot 0 of client 2 is nobody's"]
        );
        let mut short = remains(3);
        short.slots.remove(0);
        assert_eq!(
            short.found(&SHAPE, 2).damage.as_deref(),
            Some("1 of 8 rows that were there are missing")
        );
    }

    #[test]
    fn what_is_there_twice_is_invented() {
        let mut twice = remains(3);
        twice.entries.push(twice.entries[0].clone());
        twice.slots.push(twice.slots[1].clone());
        twice.numbers = Some(vec![1, 2, 3, 2]);
        let found = twice.found(&SHAPE, 2);
        let expected = [
            "entry 0 of transaction 1 is there twice",
            "slot 1 of client 0 is there twice",
            "the number of transaction 2 is there twice",
        ];
        assert_eq!(found.invented, expected);
        assert_eq!(found.whole, [1, 2, 3].into());
        assert!(found.damage.is_none());
    }

    #[test]
    fn a_number_without_entries_and_entries_without_a_number_are_halves() {
        for numbers in [(1..=8).collect(), (1..=10).collect()] {
            let kept = Remains {
                numbers: Some(numbers),
                ..remains(9)
            };
            let found = kept.found(&SHAPE, 2);
            let part = if found.whole.contains(&9) { 10 } else { 9 };
            assert_eq!(found.partial, [part].into());
            assert_eq!(found.whole, (1..part).collect());
        }
        let kept = Remains {
            numbers: Some((1..=9).collect()),
            ..remains(9)
        };
        assert_eq!(kept.found(&SHAPE, 2), remains(9).found(&SHAPE, 2));
    }

    #[test]
    fn slots_are_two_different_ones_of_all() {
        let mut hit = BTreeSet::new();
        for transaction in 1..200 {
            let [one, other] = SHAPE.slots(transaction);
            assert!(one < other && other < SHAPE.rows);
            hit.extend([one, other]);
        }
        assert_eq!(hit.len() as u64, SHAPE.rows);
    }
}
