//! Transactions as pairs of a key and a value.
//!
//! A key is `e`, for an entry, or `s`, for a slot; then two numbers, big-endian, so that keys are in the order of the
//! numbers. A value is a number, little-endian, and then bytes that follow from the numbers.
//!
//! | | first number | second | number in the value |
//! |---|---|---|---|
//! | entry | transaction | which of its entries | client |
//! | slot | client | which of its slots | the transaction that wrote it last |

use std::collections::BTreeSet;

use super::Pair;
use super::shape::{ENTRIES, Entry, Remains, Shape, Slot};

pub(crate) const ENTRY: u8 = b'e';
pub(crate) const SLOT: u8 = b's';

/// The key of an entry.
pub(crate) fn entry_key(transaction: u64, number: u64) -> Vec<u8> {
    key(ENTRY, transaction, number)
}

/// The key of a slot.
pub(crate) fn slot_key(client: u64, number: u64) -> Vec<u8> {
    key(SLOT, client, number)
}

fn key(kind: u8, one: u64, other: u64) -> Vec<u8> {
    let mut key = vec![kind];
    key.extend(one.to_be_bytes());
    key.extend(other.to_be_bytes());
    key
}

/// The numbers in a key, whatever its kind.
pub(crate) fn numbers(key: &[u8]) -> Option<(u64, u64)> {
    let number = |bytes: &[u8]| Some(u64::from_be_bytes(bytes.try_into().ok()?));
    Some((number(key.get(1..9)?)?, number(key.get(9..)?)?))
}

/// A number, then bytes.
fn value(number: u64, bytes: Vec<u8>) -> Vec<u8> {
    [number.to_le_bytes().to_vec(), bytes].concat()
}

fn parsed(value: &[u8]) -> (u64, Vec<u8>) {
    match value.split_first_chunk() {
        Some((number, bytes)) => (u64::from_le_bytes(*number), bytes.to_vec()),
        // Of nobody, and with no bytes of ours.
        None => (u64::MAX, Vec::new()),
    }
}

/// Every slot of a client as no transaction has left it yet.
pub(crate) fn initial(shape: &Shape, client: u64) -> impl Iterator<Item = Pair> {
    (0..shape.rows).map(move |number| (slot_key(client, number), value(0, shape.slot(0, number))))
}

/// What a transaction of a client puts.
pub(crate) fn of(shape: &Shape, client: u64, transaction: u64) -> impl Iterator<Item = Pair> {
    let entries = (0..ENTRIES).map(move |number| {
        let bytes = shape.entry(transaction, number);
        (entry_key(transaction, number), value(client, bytes))
    });
    let slots = shape.slots(transaction).into_iter().map(move |slot| {
        let bytes = shape.slot(transaction, slot);
        (slot_key(client, slot), value(transaction, bytes))
    });
    entries.chain(slots)
}

impl Entry {
    /// The entry whose value this is.
    pub(crate) fn read(transaction: u64, number: u64, value: &[u8]) -> Entry {
        let (client, bytes) = parsed(value);
        Entry {
            transaction,
            number,
            client,
            bytes,
        }
    }
}

impl Slot {
    /// The slot whose value this is.
    pub(crate) fn read(client: u64, number: u64, value: &[u8]) -> Slot {
        let (transaction, bytes) = parsed(value);
        Slot {
            client,
            number,
            transaction,
            bytes,
        }
    }
}

/// Everything that a store has.
pub(crate) fn remains<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    pairs: impl IntoIterator<Item = (K, V)>,
) -> Remains {
    let mut remains = Remains::default();
    let mut seen = BTreeSet::new();
    for (key, value) in pairs {
        let (key, value) = (key.as_ref(), value.as_ref());
        if !seen.insert(key.to_vec()) {
            remains
                .strange
                .push(format!("key {} is there twice", key.escape_ascii()));
            continue;
        }
        match (key.first(), numbers(key)) {
            (Some(&ENTRY), Some((transaction, number))) => {
                remains
                    .entries
                    .push(Entry::read(transaction, number, value));
            }
            (Some(&SLOT), Some((client, number))) => {
                remains.slots.push(Slot::read(client, number, value));
            }
            _ => remains
                .strange
                .push(format!("nobody wrote key {}", key.escape_ascii())),
        }
    }
    remains
}
