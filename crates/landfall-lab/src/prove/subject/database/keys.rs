//! Transactions on a database with keys: each is one atomic batch.

use super::Commit;
use super::transactions::{ENTRIES, Entry, Remains, Shape, Slot};
use landfall_databases::{Batch, DatabaseError, KeyValue};

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

/// Reads everything: what is there by the order of the keys, if they have one, and else by asking for every
/// key that there may be.
pub(super) fn read(
    keys: &mut dyn KeyValue,
    shape: &Shape,
    clients: u32,
    in_order: bool,
) -> Result<Remains, DatabaseError> {
    let mut remains = Remains::default();
    if in_order {
        for (transaction, number) in found(keys, b'e', &mut remains)? {
            if !look_at_entry(keys, transaction, number, &mut remains)? {
                remains.strange.push(format!(
                    "entry {number} of transaction {transaction} is listed and not there"
                ));
            }
        }
        for (client, number) in found(keys, b's', &mut remains)? {
            if !look_at_slot(keys, client, number, &mut remains)? {
                remains.strange.push(format!(
                    "slot {number} of client {client} is listed and not there"
                ));
            }
        }
        return Ok(remains);
    }
    let (mut transaction, mut last) = (1, 0);
    while transaction <= last + GAP {
        for number in 0..ENTRIES {
            if look_at_entry(keys, transaction, number, &mut remains)? {
                last = transaction;
            }
        }
        transaction += 1;
    }
    for client in 0..u64::from(clients) {
        for number in 0..shape.rows {
            look_at_slot(keys, client, number, &mut remains)?;
        }
    }
    Ok(remains)
}

/// The numbers in all keys of a kind, in order.
fn found(
    keys: &mut dyn KeyValue,
    kind: u8,
    remains: &mut Remains,
) -> Result<Vec<(u64, u64)>, DatabaseError> {
    let mut found = Vec::new();
    let mut visit = |key: &[u8], _: &[u8]| {
        let numbers = numbers(key);
        match numbers {
            None => remains.strange.push(format!("nobody wrote key {key:?}")),
            Some(_) if numbers <= found.last().copied() => {
                remains.strange.push(format!("key {key:?} is out of order"));
            }
            Some(_) => found.extend(numbers),
        }
        true
    };
    keys.scan(&[kind], &[kind + 1], &mut visit)?;
    Ok(found)
}

/// The numbers in a key.
fn numbers(key: &[u8]) -> Option<(u64, u64)> {
    let number = |bytes: &[u8]| Some(u64::from_be_bytes(bytes.try_into().ok()?));
    Some((number(key.get(1..9)?)?, number(key.get(9..)?)?))
}

/// Asks for an entry; whether it is there.
fn look_at_entry(
    keys: &mut dyn KeyValue,
    transaction: u64,
    number: u64,
    remains: &mut Remains,
) -> Result<bool, DatabaseError> {
    let value = keys.get(&entry_key(transaction, number))?;
    let is_there = value.is_some();
    remains.entries.extend(value.map(|value| {
        let (client, bytes) = parsed(&value);
        Entry {
            transaction,
            number,
            client,
            bytes,
        }
    }));
    Ok(is_there)
}

/// Asks for a slot; whether it is there.
fn look_at_slot(
    keys: &mut dyn KeyValue,
    client: u64,
    number: u64,
    remains: &mut Remains,
) -> Result<bool, DatabaseError> {
    let value = keys.get(&slot_key(client, number))?;
    let is_there = value.is_some();
    remains.slots.extend(value.map(|value| {
        let (transaction, bytes) = parsed(&value);
        Slot {
            client,
            number,
            transaction,
            bytes,
        }
    }));
    Ok(is_there)
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

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { rows: 4, size: 32 };

    /// A store that is damaged: what it lists need not be what it has.
    #[derive(Default)]
    struct Store {
        listed: Vec<Vec<u8>>,
        held: Batch,
    }

    impl KeyValue for Store {
        fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DatabaseError> {
            let pair = self.held.0.iter().find(|(held, _)| held == key);
            Ok(pair.and_then(|(_, value)| value.clone()))
        }

        fn scan(
            &mut self,
            from: &[u8],
            to: &[u8],
            visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
        ) -> Result<(), DatabaseError> {
            let range = |key: &&Vec<u8>| key.as_slice() >= from && key.as_slice() < to;
            for key in self.listed.iter().filter(range) {
                visit(key, &[]);
            }
            Ok(())
        }

        fn commit(&mut self, batch: &Batch) -> Result<(), DatabaseError> {
            let keys = batch.0.iter().map(|(key, _)| key.clone());
            self.listed.extend(keys);
            self.held.0.extend(batch.0.clone());
            Ok(())
        }
    }

    /// One client's slots and its first transaction.
    fn store() -> Store {
        let mut store = Store::default();
        create(&mut store, &SHAPE, 1).unwrap();
        let mut batch = Batch::default();
        for number in 0..ENTRIES {
            batch.put(entry_key(1, number), value(0, SHAPE.entry(1, number)));
        }
        store.commit(&batch).unwrap();
        store
    }

    #[test]
    fn what_is_listed_and_not_there_or_not_in_order_or_nobodys_is_invented() {
        let invented = |mut store: Store| {
            let remains = read(&mut store, &SHAPE, 1, true).unwrap();
            remains.found(&SHAPE, 1).invented
        };
        assert_eq!(invented(store()), [""; 0]);
        let mut gone = store();
        gone.held.0.retain(|(key, _)| *key != entry_key(1, 1));
        assert_eq!(
            invented(gone),
            ["entry 1 of transaction 1 is listed and not there"]
        );
        let mut twice = store();
        twice.listed.insert(0, slot_key(0, 0));
        assert!(invented(twice)[0].ends_with("is out of order"));
        let mut other = store();
        other.listed.push(b"else".to_vec());
        assert!(invented(other)[0].starts_with("nobody wrote key"));
    }

    #[test]
    fn both_ways_of_reading_find_the_same() {
        let of = |in_order| {
            let remains = read(&mut store(), &SHAPE, 1, in_order).unwrap();
            remains.found(&SHAPE, 1)
        };
        assert_eq!(of(true), of(false));
    }
}
