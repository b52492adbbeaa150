//! Transactions: reads as of one commit, writes that are made together, and whether others came between.
//!
//! A transaction reads as of the commit at which it began, and what it wrote itself. When it is committed it fails if a key
//! that it writes was written by another commit since: the first committer wins, which is snapshot isolation. One that is to be
//! serialisable fails too if something that it read was: a key, whether or not it was there, or any key in a range.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Handle;
use super::iterate::{Bounds, Own, Range};
use super::record::{KeyspaceRange, OrderedWrites, Write, Writes, ranges_near};
use super::removed::{KeyRange, RemovedRanges};
use super::snapshots::{Begun, Committing, Written};
use super::tree::Keyspace;
use crate::environment::Environment;
use crate::{Commit, Error};

/// What a transaction must not have read, or written, if others wrote it meanwhile.
pub(crate) struct Checks {
    /// The commit at which it began.
    at: u64,
    /// What it read; `None`: it need not be serialisable.
    reads: Option<Reads>,
}

/// What a transaction has read.
#[derive(Debug, Default)]
struct Reads {
    keys: BTreeSet<(u32, Vec<u8>)>,
    ranges: Vec<KeyspaceRange>,
}

impl Reads {
    fn keyspaces(&self) -> BTreeSet<u32> {
        let keys = self.keys.iter().map(|(keyspace, _)| *keyspace);
        let ranges = self.ranges.iter().map(|range| range.keyspace);
        keys.chain(ranges).collect()
    }

    /// The same with ranges that are disjoint, and in their order.
    fn in_order(mut self) -> Reads {
        let first = |range: &KeyspaceRange| (range.keyspace, range.keys.low.clone());
        self.ranges.sort_by_cached_key(first);
        self.ranges.dedup_by(|next, before| {
            before.keyspace == next.keyspace && before.keys.take_in(&next.keys)
        });
        self
    }

    /// Whether a commit wrote any of it. The ranges are in their order.
    fn has_any_of(&self, written: &Written) -> bool {
        let is_key_read = |name: &(u32, Vec<u8>)| {
            let mut near = ranges_near(&self.ranges, name.0, &name.1);
            self.keys.contains(name) || near.any(|range| range.keys.contains(&name.1))
        };
        let is_range_read = |removed: &KeyspaceRange| {
            let first = (removed.keyspace, removed.keys.low.clone());
            let key = self.keys.range(first..).next();
            let has_key = key.is_some_and(|(keyspace, key)| {
                *keyspace == removed.keyspace && removed.keys.contains(key)
            });
            let mut near = ranges_near(&self.ranges, removed.keyspace, &removed.keys.low);
            has_key || near.any(|range| range.keys.overlaps(&removed.keys))
        };
        written.keys.iter().any(is_key_read) || written.ranges.iter().any(is_range_read)
    }
}

/// Whether one commit writes something that another wrote.
fn meet(writes: &OrderedWrites, written: &Written) -> bool {
    let first_of = |keyspace: u32, low: &[u8]| {
        let place = writes
            .writes
            .partition_point(|write| (write.keyspace, &*write.key) < (keyspace, low));
        writes
            .writes
            .get(place)
            .filter(|one| one.keyspace == keyspace)
    };
    let is_written = |(keyspace, key): &(u32, Vec<u8>)| {
        let own = first_of(*keyspace, key);
        let mut near = ranges_near(&writes.ranges, *keyspace, key);
        own.is_some_and(|own| own.key == *key) || near.any(|range| range.keys.contains(key))
    };
    let is_removed = |removed: &KeyspaceRange| {
        let own = first_of(removed.keyspace, &removed.keys.low);
        let mut near = ranges_near(&writes.ranges, removed.keyspace, &removed.keys.low);
        own.is_some_and(|own| removed.keys.contains(&own.key))
            || near.any(|range| range.keys.overlaps(&removed.keys))
    };
    written.keys.iter().any(is_written) || written.ranges.iter().any(is_removed)
}

impl Checks {
    /// Whether nobody came between.
    pub fn require_valid(
        &self,
        committing: &Committing,
        writes: &OrderedWrites,
        is_there: impl Fn(u32) -> bool,
    ) -> Result<(), Error> {
        // What was read of a keyspace that was removed is there no more.
        let reads = self.reads.iter().flat_map(Reads::keyspaces);
        if !reads.into_iter().all(is_there) {
            return Err(Error::Conflict);
        }
        for written in committing.written_since(self.at) {
            let is_read = |reads: &Reads| reads.has_any_of(written);
            if meet(writes, written) || self.reads.as_ref().is_some_and(is_read) {
                return Err(Error::Conflict);
            }
        }
        Ok(())
    }
}

/// A transaction wherever its store is.
pub(crate) struct Transaction<E: Environment> {
    begun: Begun<E>,
    writes: BTreeMap<(u32, Vec<u8>), Option<Vec<u8>>>,
    /// Ranges that it removed before these writes, by keyspace.
    removed: BTreeMap<u32, RemovedRanges>,
    reads: Option<RefCell<Reads>>,
}

impl<E: Environment> Transaction<E> {
    pub fn new(store: &Arc<Handle<E>>, is_serialisable: bool) -> Transaction<E> {
        Transaction {
            begun: Begun::new(store),
            writes: BTreeMap::new(),
            removed: BTreeMap::new(),
            reads: is_serialisable.then(RefCell::default),
        }
    }

    /// The commit as of which it reads.
    #[cfg(test)]
    pub fn at(&self) -> u64 {
        self.begun.view.at
    }

    pub fn get(&self, keyspace: &Keyspace<E>, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let name = (keyspace.id, key.to_vec());
        if let Some(value) = self.writes.get(&name) {
            return Ok(value.clone());
        }
        let removed = self.removed.get(&keyspace.id);
        if removed.is_some_and(|removed| !removed.lsns(key).is_empty()) {
            return Ok(None);
        }
        if let Some(reads) = &self.reads {
            reads.borrow_mut().keys.insert(name);
        }
        let shared = &self.begun.view.store.shared;
        shared.get(keyspace, key, Some(self.begun.view.at))
    }

    /// The store that it is of.
    pub fn store(&self) -> &Arc<Handle<E>> {
        &self.begun.view.store
    }

    /// `keyspace`: the number of one.
    pub fn write(&mut self, keyspace: u32, key: &[u8], value: Option<&[u8]>) {
        let value = value.map(<[u8]>::to_vec);
        self.writes.insert((keyspace, key.to_vec()), value);
    }

    /// `keyspace`: the number of one.
    pub fn remove_range(&mut self, keyspace: u32, keys: &KeyRange) {
        let own = self.own_of(keyspace, keys).map(|(key, _)| key.to_vec());
        for key in own.collect::<Vec<_>>() {
            self.writes.remove(&(keyspace, key));
        }
        // It has no commit yet.
        self.removed.entry(keyspace).or_default().add(keys, 0, &[]);
    }

    /// What it wrote of some keys.
    fn own_of(
        &self,
        keyspace: u32,
        keys: &KeyRange,
    ) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let own = self.writes.range((keyspace, keys.low.clone())..);
        let own = own.take_while(move |((own, key), _)| *own == keyspace && keys.contains(key));
        own.map(|((_, key), value)| (&**key, value.as_deref()))
    }

    /// What is in a range, with what this transaction wrote so far.
    pub fn range(&self, keyspace: &Arc<Keyspace<E>>, bounds: Bounds) -> Range<E> {
        let mut own = Own::default();
        if let Some(keys) = KeyRange::of(&bounds) {
            let id = keyspace.id;
            let writes = self.own_of(id, &keys);
            let writes = writes.map(|(key, value)| (key.to_vec(), value.map(<[u8]>::to_vec)));
            own.writes = writes.collect();
            if let Some(removed) = self.removed.get(&id) {
                own.removed = removed.within(&keys);
            }
            if let Some(reads) = &self.reads {
                let keyspace = id;
                let range = KeyspaceRange { keyspace, keys };
                reads.borrow_mut().ranges.push(range);
            }
        }
        Range::new(self.begun.view.clone(), keyspace.clone(), bounds, own)
    }

    /// What it would write, and what must not have been written by others.
    pub fn finish(self) -> (Begun<E>, Writes, Checks) {
        let mut writes = Writes::default();
        for (keyspace, removed) in &self.removed {
            let ranges = removed.ranges();
            ranges.for_each(|keys| writes.remove_range(*keyspace, keys));
        }
        for ((keyspace, key), value) in self.writes {
            writes.push(Write {
                keyspace,
                key,
                value,
            });
        }
        let checks = Checks {
            at: self.begun.view.at,
            reads: self.reads.map(|reads| reads.into_inner().in_order()),
        };
        (self.begun, writes, checks)
    }

    pub fn commit(self) -> Result<(), Error> {
        // It is open until it is committed, so that what others write is remembered.
        let (begun, writes, checks) = self.finish();
        begun.view.store.shared.commit(writes, Some(&checks))
    }

    pub fn commit_async(self) -> Result<Commit, Error> {
        let (begun, writes, checks) = self.finish();
        begun.view.store.shared.commit_async(writes, Some(&checks))
    }
}
