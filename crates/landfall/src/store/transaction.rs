//! Transactions: reads as of one commit, writes that are made together, and whether others came between.
//!
//! A transaction reads as of the commit at which it began, and what it wrote itself. When it is committed it fails if a key
//! that it writes was written by another commit since: the first committer wins, which is snapshot isolation. One that is to be
//! serialisable fails too if something that it read was: a key, whether or not it was there, or any key in a range.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use super::Handle;
use super::iterate::{Bounds, Own, Range};
use super::record::{OrderedWrites, RemovedRange, Write, Writes};
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
    ranges: Vec<(u32, Bounds)>,
}

impl Reads {
    fn keyspaces(&self) -> BTreeSet<u32> {
        let keys = self.keys.iter().map(|(keyspace, _)| *keyspace);
        let ranges = self.ranges.iter().map(|(keyspace, _)| *keyspace);
        keys.chain(ranges).collect()
    }

    /// Whether a commit wrote any of it.
    fn has_any_of(&self, written: &Written) -> bool {
        let is_key_read = |name: &(u32, Vec<u8>)| {
            let in_range = |(keyspace, bounds): &(u32, Bounds)| {
                *keyspace == name.0 && bounds.contains(&name.1)
            };
            self.keys.contains(name) || self.ranges.iter().any(in_range)
        };
        let is_range_read = |removed: &RemovedRange| {
            let overlaps = |(keyspace, bounds): &(u32, Bounds)| {
                let read = KeyRange::of(bounds);
                let overlaps = |read: KeyRange| read.overlaps(&removed.keys);
                *keyspace == removed.keyspace && read.is_some_and(overlaps)
            };
            let keys = self
                .keys
                .range((removed.keyspace, removed.keys.low.clone())..);
            let mut keys = keys.take_while(|(keyspace, _)| *keyspace == removed.keyspace);
            let has_key = keys
                .next()
                .is_some_and(|(_, key)| removed.keys.contains(key));
            has_key || self.ranges.iter().any(overlaps)
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
    // Of ranges that are disjoint those that may have a key or what is behind it, until the first that begins behind.
    let ranges_at = |keyspace: u32, low: &[u8]| {
        let behind = writes
            .ranges
            .partition_point(|range| (range.keyspace, &*range.keys.low) <= (keyspace, low));
        let near = behind.saturating_sub(1)..writes.ranges.len().min(behind + 1);
        let near = writes.ranges[near].iter();
        near.filter(move |range| range.keyspace == keyspace)
    };
    let is_written = |(keyspace, key): &(u32, Vec<u8>)| {
        let own = first_of(*keyspace, key);
        let mut ranges = ranges_at(*keyspace, key);
        own.is_some_and(|own| own.key == *key) || ranges.any(|range| range.keys.contains(key))
    };
    let is_removed = |removed: &RemovedRange| {
        let own = first_of(removed.keyspace, &removed.keys.low);
        let mut ranges = ranges_at(removed.keyspace, &removed.keys.low);
        own.is_some_and(|own| removed.keys.contains(&own.key))
            || ranges.any(|range| range.keys.overlaps(&removed.keys))
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
        let from = (keyspace, keys.low.clone());
        let own = self.writes.range(from..).map(|(name, _)| name);
        let own = own.take_while(|(own, key)| *own == keyspace && keys.contains(key));
        for name in own.cloned().collect::<Vec<_>>() {
            self.writes.remove(&name);
        }
        // It has no commit yet.
        self.removed.entry(keyspace).or_default().add(keys, 0, &[]);
    }

    /// What is in a range, with what this transaction wrote so far.
    pub fn range(&self, keyspace: &Arc<Keyspace<E>>, bounds: Bounds) -> Range<E> {
        if let Some(reads) = &self.reads {
            reads
                .borrow_mut()
                .ranges
                .push((keyspace.id, bounds.clone()));
        }
        let id = keyspace.id;
        // Of this keyspace, from its first key on.
        let of_keyspace = (
            Bound::Included((id, Vec::new())),
            id.checked_add(1)
                .map_or(Bound::Unbounded, |next| Bound::Excluded((next, Vec::new()))),
        );
        let own = self.writes.range(of_keyspace);
        let own = own.filter(|((_, key), _)| bounds.contains(key));
        let own = own.map(|((_, key), value)| (key.clone(), value.clone()));
        let own = Own {
            writes: own.collect(),
            removed: self.removed.get(&id).cloned().unwrap_or_default(),
        };
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
            reads: self.reads.map(RefCell::into_inner),
        };
        (self.begun, writes, checks)
    }

    pub fn commit(self) -> Result<(), Error> {
        // It is open until it is committed, so that what others write is remembered.
        let (begun, writes, checks) = self.finish();
        begun.view.store.shared.commit(writes, Some(&checks))
    }

    pub fn commit_async(self) -> Result<Option<Commit>, Error> {
        let (begun, writes, checks) = self.finish();
        begun.view.store.shared.commit_async(writes, Some(&checks))
    }
}
