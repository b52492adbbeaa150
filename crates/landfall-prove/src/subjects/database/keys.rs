//! Transactions on a database with keys: each is one atomic batch.

use super::Commit;
use crate::transactions::Pair;
use crate::transactions::pairs::{self, ENTRY, SLOT, entry_key, numbers, slot_key};
use crate::transactions::shape::{ENTRIES, Entry, Remains, Shape, Slot};
use landfall_databases::{Batch, DatabaseError, KeyValue};

/// Transactions that may be missing one after the other before it is concluded that none follows. Keys
/// need not have an order in which all could be found, so each is asked for.
const GAP: u64 = 1000;
/// Slots that are made in one batch.
const CHUNK: usize = 256;
/// Where the search for other keys ends: a greater one is nobody's but who makes it on purpose.
const GREATEST: [u8; 32] = [u8::MAX; 32];

/// Makes every slot as no transaction has left it yet.
pub(super) fn create(
    keys: &mut dyn KeyValue,
    shape: &Shape,
    clients: u32,
) -> Result<(), DatabaseError> {
    let slots: Vec<Pair> = (0..u64::from(clients))
        .flat_map(|client| pairs::initial(shape, client))
        .collect();
    slots
        .chunks(CHUNK)
        .try_for_each(|chunk| keys.commit(&batch(chunk.iter().cloned())))
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
        for (transaction, number) in found(keys, ENTRY, &mut remains)? {
            if !look_at_entry(keys, transaction, number, &mut remains)? {
                remains.strange.push(format!(
                    "entry {number} of transaction {transaction} is listed and not there"
                ));
            }
        }
        for (client, number) in found(keys, SLOT, &mut remains)? {
            if !look_at_slot(keys, client, number, &mut remains)? {
                remains.strange.push(format!(
                    "slot {number} of client {client} is listed and not there"
                ));
            }
        }
        find_others(keys, &mut remains)?;
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
    let asked = (remains.entries.len() + remains.slots.len()) as u64;
    let others = keys.count()?.map_or(0, |all| all.saturating_sub(asked));
    if others > 0 {
        remains.strange.push(format!(
            "it counts {others} keys besides those that were written"
        ));
    }
    Ok(remains)
}

/// Looks for keys before, between and after those of either kind.
fn find_others(keys: &mut dyn KeyValue, remains: &mut Remains) -> Result<(), DatabaseError> {
    let gaps: [(&[u8], &[u8]); 3] = [
        (&[0], &[ENTRY]),
        (&[ENTRY + 1], &[SLOT]),
        (&[SLOT + 1], &GREATEST),
    ];
    let mut visit = |key: &[u8], _: &[u8]| {
        remains.strange.push(format!("nobody wrote key {key:?}"));
        true
    };
    for (from, to) in gaps {
        keys.scan(from, to, &mut visit)?;
    }
    Ok(())
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

/// Asks for an entry; whether it is there.
fn look_at_entry(
    keys: &mut dyn KeyValue,
    transaction: u64,
    number: u64,
    remains: &mut Remains,
) -> Result<bool, DatabaseError> {
    let value = keys.get(&entry_key(transaction, number))?;
    let is_there = value.is_some();
    let entry = value.map(|value| Entry::read(transaction, number, &value));
    remains.entries.extend(entry);
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
    let slot = value.map(|value| Slot::read(client, number, &value));
    remains.slots.extend(slot);
    Ok(is_there)
}

fn batch(pairs: impl Iterator<Item = Pair>) -> Batch {
    let mut batch = Batch::default();
    for (key, value) in pairs {
        batch.put(key, value);
    }
    batch
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
        self.keys
            .commit(&batch(pairs::of(shape, self.number, transaction)))
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
        /// How many keys it says that it has.
        counted: Option<u64>,
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

        fn count(&mut self) -> Result<Option<u64>, DatabaseError> {
            Ok(self.counted)
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
        let entries = pairs::of(&SHAPE, 0, 1).take(ENTRIES as usize);
        store.commit(&batch(entries)).unwrap();
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
        for key in [&b"a"[..], b"key", b"table", b"\xff\xff"] {
            let mut other = store();
            other.listed.push(key.to_vec());
            assert_eq!(invented(other), [format!("nobody wrote key {key:?}")]);
        }
    }

    #[test]
    fn keys_that_are_counted_and_not_found_are_invented() {
        let invented = |counted: u64| {
            let mut store = store();
            store.counted = Some(counted);
            let remains = read(&mut store, &SHAPE, 1, false).unwrap();
            remains.found(&SHAPE, 1).invented
        };
        let all = SHAPE.rows + ENTRIES;
        assert_eq!(invented(all), [""; 0]);
        assert_eq!(
            invented(all + 2),
            ["it counts 2 keys besides those that were written"]
        );
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
