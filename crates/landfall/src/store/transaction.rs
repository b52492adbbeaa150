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
use super::iterate::{Bounds, Range};
use super::record::Write;
use super::snapshots::{Begun, Committing};
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
}

impl Checks {
    /// Whether nobody came between; `writes` are in the order of keyspaces and keys.
    pub fn require_valid(
        &self,
        committing: &Committing,
        writes: &[Write],
        is_there: impl Fn(u32) -> bool,
    ) -> Result<(), Error> {
        // What was read of a keyspace that was removed is there no more.
        let reads = self.reads.iter().flat_map(Reads::keyspaces);
        if !reads.into_iter().all(is_there) {
            return Err(Error::Conflict);
        }
        for written in committing.written_since(self.at) {
            let order = |write: &Write| (write.keyspace, &write.key).cmp(&(written.0, &written.1));
            let is_written = writes.binary_search_by(order).is_ok();
            let is_read = self.reads.as_ref().is_some_and(|reads| {
                let in_range = |(keyspace, bounds): &(u32, Bounds)| {
                    *keyspace == written.0 && bounds.contains(&written.1)
                };
                reads.keys.contains(written) || reads.ranges.iter().any(in_range)
            });
            if is_written || is_read {
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
    reads: Option<RefCell<Reads>>,
}

impl<E: Environment> Transaction<E> {
    pub fn new(store: &Arc<Handle<E>>, is_serialisable: bool) -> Transaction<E> {
        Transaction {
            begun: Begun::new(store),
            writes: BTreeMap::new(),
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
        let own = own.collect();
        Range::new(self.begun.view.clone(), keyspace.clone(), bounds, own)
    }

    /// What it would write, and what must not have been written by others.
    pub fn finish(self) -> (Begun<E>, Vec<Write>, Checks) {
        let writes = self.writes.into_iter();
        let writes = writes.map(|((keyspace, key), value)| Write {
            keyspace,
            key,
            value,
        });
        let checks = Checks {
            at: self.begun.view.at,
            reads: self.reads.map(RefCell::into_inner),
        };
        (self.begun, writes.collect(), checks)
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
