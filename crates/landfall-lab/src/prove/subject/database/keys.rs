//! Transactions on a database with keys: each is one atomic batch.

use super::Commit;
use super::transactions::{ENTRIES, Entry, Remains, Shape, Slot};
use crate::database::{Batch, DatabaseError, KeyValue};

/// Transactions that may be missing one after the other before it is concluded that none follows. Keys
/// need not have an order in which all could be found, so each is asked for.
const GAP: u64 = 1000;
/// Slots that are made in one batch.
const CHUNK: usize = 256;

fn entry_key(transaction: u64, number: u64) -> Vec<u8> {
    key(b'e', transaction, number)
}

fn slot_key(client: u64, number: u64) -> Vec<u8> {
    key(b's', client, number)
}

fn key(kind: u8, one: u64, other: u64) -> Vec<u8> {
    let mut key = vec![kind];
    key.extend(one.to_be_bytes());
    key.extend(other.to_be_bytes());
    key
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

/// Makes every slot as no transaction has left it yet.
pub(super) fn create(
    keys: &mut dyn KeyValue,
    shape: &Shape,
    clients: u32,
) -> Result<(), DatabaseError> {
    let slots: Vec<(u64, u64)> = (0..u64::from(clients))
        .flat_map(|client| (0..shape.rows).map(move |number| (client, number)))
        .collect();
    slots.chunks(CHUNK).try_for_each(|chunk| {
        let mut batch = Batch::default();
        for &(client, number) in chunk {
            batch.put(slot_key(client, number), value(0, shape.slot(0, number)));
        }
        keys.commit(&batch)
    })
}

/// Reads everything.
pub(super) fn read(
    keys: &mut dyn KeyValue,
    shape: &Shape,
    clients: u32,
) -> Result<Remains, DatabaseError> {
    let mut remains = Remains::default();
    let (mut transaction, mut last) = (1, 0);
    while transaction <= last + GAP {
        for number in 0..ENTRIES {
            if let Some(value) = keys.get(&entry_key(transaction, number))? {
                let (client, bytes) = parsed(&value);
                last = transaction;
                remains.entries.push(Entry {
                    transaction,
                    number,
                    client,
                    bytes,
                });
            }
        }
        transaction += 1;
    }
    for client in 0..u64::from(clients) {
        for number in 0..shape.rows {
            if let Some(value) = keys.get(&slot_key(client, number))? {
                let (transaction, bytes) = parsed(&value);
                remains.slots.push(Slot {
                    client,
                    number,
                    transaction,
                    bytes,
                });
            }
        }
    }
    Ok(remains)
}

/// One client.
pub(super) struct Client {
    keys: Box<dyn KeyValue>,
    number: u64,
}

impl Client {
    pub fn new(keys: Box<dyn KeyValue>, number: u32) -> Client {
        Client {
            keys,
            number: number.into(),
        }
    }
}

impl Commit for Client {
    fn commit(&mut self, shape: &Shape, transaction: u64) -> Result<(), DatabaseError> {
        let mut batch = Batch::default();
        for number in 0..ENTRIES {
            let bytes = shape.entry(transaction, number);
            batch.put(entry_key(transaction, number), value(self.number, bytes));
        }
        for slot in shape.slots(transaction) {
            let bytes = shape.slot(transaction, slot);
            batch.put(slot_key(self.number, slot), value(transaction, bytes));
        }
        self.keys.commit(&batch)
    }
}
