//! What a user has for several writes and reads at once: batches, transactions, and snapshots.

use std::fmt;
use std::ops::RangeBounds;
use std::sync::Arc;

use super::iterate::Bounds;
use super::keyspace::{Keyspace, Pairs};
use super::record::Writes;
use super::removed::KeyRange;
use super::snapshots::View;
use super::{Handle, transaction};
use crate::environment::Machine;
use crate::{Commit, Error};

/// Writes that are committed together, in any keyspaces: a power cut takes all of them or none. The last write to a key counts, and
/// a range removes what the batch wrote before it, not after. Dropped, it is forgotten.
pub struct Batch {
    store: Arc<Handle<Machine>>,
    writes: Writes,
}

impl Batch {
    pub(super) fn new(store: Arc<Handle<Machine>>) -> Batch {
        Batch {
            store,
            writes: Writes::default(),
        }
    }

    /// Gives a key a value.
    pub fn insert(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        let value = Some(value.as_ref());
        let write = keyspace.write_to(&self.store, key.as_ref(), value);
        self.writes.push(write);
    }

    /// Removes a key, whether or not it is there.
    pub fn remove(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) {
        let write = keyspace.write_to(&self.store, key.as_ref(), None);
        self.writes.push(write);
    }

    /// Removes all keys in a range, and what this batch has given them before: see [`Keyspace::remove_range`].
    pub fn remove_range<K: AsRef<[u8]>>(
        &mut self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
    ) {
        self.remove_bounds(keyspace, &Bounds::of(&range));
    }

    /// Removes all keys that begin with `prefix`, likewise.
    pub fn remove_prefix(&mut self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) {
        self.remove_bounds(keyspace, &Bounds::prefix(prefix.as_ref()));
    }

    fn remove_bounds(&mut self, keyspace: &Keyspace, bounds: &Bounds) {
        if let Some(keys) = KeyRange::of(bounds) {
            let number = keyspace.number_in(&self.store);
            self.writes.remove_range(number, keys);
        }
    }

    /// Commits all of it, as the store's policy says.
    pub fn commit(self) -> Result<(), Error> {
        self.store.shared.commit(self.writes, None)
    }

    /// Commits all of it; what this returns is ready when it is durable, whatever the policy. If nothing was to be written it is
    /// ready at once, with the number of the last commit that is durable.
    pub fn commit_async(self) -> Result<Commit, Error> {
        self.store.shared.commit_async(self.writes, None)
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("writes", &self.writes.len())
            .finish_non_exhaustive()
    }
}

/// Reads as of one commit, and writes that are committed together unless others came between. One thread has it.
/// [`Store::transaction`](super::Store::transaction) begins one, [`Store::transact`](super::Store::transact) does all of what is below. Dropped, it is forgotten.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let store = landfall::Store::open(directory.path().join("bank"), Default::default())?;
/// use landfall::Error;
///
/// let accounts = store.keyspace("accounts", Default::default())?;
/// accounts.insert("alice", [5])?;
/// loop {
///     let mut transfer = store.transaction();
///     let alice = transfer.get(&accounts, "alice")?.map_or(0, |value| value[0]);
///     let bob = transfer.get(&accounts, "bob")?.map_or(0, |value| value[0]);
///     transfer.insert(&accounts, "alice", [alice - 1]);
///     transfer.insert(&accounts, "bob", [bob + 1]);
///     match transfer.commit() {
///         // Somebody else has written one of the two: look again.
///         Err(Error::Conflict) => {}
///         committed => break committed?,
///     }
/// }
/// assert_eq!(accounts.get("bob")?, Some(vec![1]));
/// # Ok(())
/// # }
/// ```
pub struct Transaction {
    inner: transaction::Transaction<Machine>,
}

impl Transaction {
    pub(super) fn new(store: &Arc<Handle<Machine>>, serialisable: bool) -> Transaction {
        Transaction {
            inner: transaction::Transaction::new(store, serialisable),
        }
    }

    /// The value of a key, if it has one: as this transaction wrote it, or as of its beginning.
    pub fn get(
        &self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let tree = keyspace.of(self.inner.store())?;
        self.inner.get(tree, key.as_ref())
    }

    /// Gives a key a value.
    pub fn insert(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        let number = keyspace.number_in(self.inner.store());
        let value = Some(value.as_ref());
        self.inner.write(number, key.as_ref(), value);
    }

    /// Removes a key, whether or not it is there.
    pub fn remove(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) {
        let number = keyspace.number_in(self.inner.store());
        self.inner.write(number, key.as_ref(), None);
    }

    /// Removes all keys in a range, and what this transaction gave them before: see [`Keyspace::remove_range`]. Its commit returns
    /// [`Error::Conflict`] if any key in the range was written by others meanwhile.
    pub fn remove_range<K: AsRef<[u8]>>(
        &mut self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
    ) {
        self.remove_bounds(keyspace, &Bounds::of(&range));
    }

    /// Removes all keys that begin with `prefix`, likewise.
    pub fn remove_prefix(&mut self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) {
        self.remove_bounds(keyspace, &Bounds::prefix(prefix.as_ref()));
    }

    fn remove_bounds(&mut self, keyspace: &Keyspace, bounds: &Bounds) {
        if let Some(keys) = KeyRange::of(bounds) {
            let number = keyspace.number_in(self.inner.store());
            self.inner.remove_range(number, &keys);
        }
    }

    /// The keys in a range and their values, in the order of the keys, with what this transaction wrote so far.
    pub fn range<K: AsRef<[u8]>>(&self, keyspace: &Keyspace, range: impl RangeBounds<K>) -> Pairs {
        self.pairs(keyspace, Bounds::of(&range))
    }

    fn pairs(&self, keyspace: &Keyspace, bounds: Bounds) -> Pairs {
        let tree = keyspace.of(self.inner.store());
        Pairs::of(tree.map(|tree| self.inner.range(tree, bounds)))
    }

    /// The keys that begin with `prefix` and their values, likewise.
    pub fn prefix(&self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> Pairs {
        self.pairs(keyspace, Bounds::prefix(prefix.as_ref()))
    }

    /// Commits all that it wrote, as the store's policy says. Returns [`Error::Conflict`] if others came between: nothing
    /// was written, and it can be tried again from its beginning.
    pub fn commit(self) -> Result<(), Error> {
        self.inner.commit()
    }

    /// Commits all that it wrote; what this returns is ready when it is durable, whatever the policy. If nothing was to be
    /// written it is ready at once, with the number of the last commit that is durable. Returns [`Error::Conflict`] as
    /// [`commit`](Transaction::commit) does.
    pub fn commit_async(self) -> Result<Commit, Error> {
        self.inner.commit_async()
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").finish_non_exhaustive()
    }
}

/// The store as it was at one commit. [`Store::snapshot`](super::Store::snapshot) makes one; clones are the same snapshot.
#[derive(Clone)]
pub struct StoreSnapshot {
    view: Arc<View<Machine>>,
}

impl StoreSnapshot {
    pub(super) fn new(store: &Arc<Handle<Machine>>) -> StoreSnapshot {
        StoreSnapshot {
            view: Arc::new(View::new(store)),
        }
    }

    /// The value that a key had.
    pub fn get(
        &self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let tree = keyspace.of(&self.view.store)?;
        let shared = &self.view.store.shared;
        shared.get(tree, key.as_ref(), Some(self.view.at))
    }

    /// The keys that were in a range and their values, in the order of the keys.
    pub fn range<K: AsRef<[u8]>>(&self, keyspace: &Keyspace, range: impl RangeBounds<K>) -> Pairs {
        Pairs::new(self.view.clone(), keyspace, Bounds::of(&range))
    }

    /// The keys that began with `prefix` and their values, in the order of the keys.
    pub fn prefix(&self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> Pairs {
        Pairs::new(self.view.clone(), keyspace, Bounds::prefix(prefix.as_ref()))
    }
}

impl fmt::Debug for StoreSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreSnapshot")
            .field("at", &self.view.at)
            .finish_non_exhaustive()
    }
}
