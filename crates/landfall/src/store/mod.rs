//! An ordered key-value store on the log.
//!
//! - `page` is a page of the data file, `leaf` what is in one with entries, `root` in those that say where others are;
//!   `control` leads to the root, `record` is a commit in the log; `bytes` has what they are made of;
//! - `tree` is what of it is in memory: keyspaces, groups, and where leaves are; `changes` are those that are in no leaf yet, in
//!   `block`s of memory, and ranges of keys that were `removed` at once;
//!   `homes` writes leaves again where they are, as a `protection` says, and `repair` finds what was torn by that;
//!   `extents` says which bytes of the data file are free, `cache` which leaves are kept in memory;
//! - `shared` is what all users share: committing, and looking; `snapshots` who reads as of which commit, `piece` what
//!   they see, `iterate` goes through keys, `transaction` commits only if nobody came between;
//! - `checkpoint` writes changes into leaves, by `groups` whose leaves `merge` makes; `restart` opens a store, `replay` reads what was
//!   committed since in `backlog`s, of which `rebuild` makes changes; `counters` says what was done, and
//!   `verify` whether all of it can be read; `inspect` looks from outside.

mod backlog;
mod block;
pub(crate) mod bytes;
mod cache;
mod changes;
pub(crate) mod checkpoint;
mod choose;
pub(crate) mod control;
mod counters;
pub(crate) mod data_file;
mod extents;
mod filter;
mod gaps;
mod groups;
mod heads;
mod homes;
#[cfg(all(test, target_os = "linux"))]
mod in_place;
pub(crate) mod inspect;
mod install;
pub(crate) mod iterate;
mod leaf;
mod merge;
mod options;
mod pace;
pub(crate) mod page;
mod piece;
mod protection;
#[cfg(test)]
mod public;
#[cfg(all(test, target_os = "linux"))]
mod range_removals;
mod read_ahead;
mod rebuild;
pub(crate) mod record;
pub(crate) mod removed;
mod repair;
mod replay;
mod restart;
pub(crate) mod root;
pub(crate) mod runs;
pub(crate) mod shared;
pub(crate) mod snapshots;
mod together;
pub(crate) mod transaction;
pub(crate) mod tree;
mod verify;

use std::fmt;
use std::ops::RangeBounds;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub use counters::StoreCounters;
pub use inspect::{KeyspaceInspection, StoreInspection};
pub use options::{KeyspaceOptions, MOST_BUFFER_PERCENT, StoreBuffer, StoreOptions};
pub use protection::{Protection, ProtectionChoice, ProtectionCosts};
pub use restart::StoreRestart;
pub use runs::auto::BufferChoice;
pub use runs::expected::ExpectedWrites;
pub use verify::{DamagedLeaf, StoreVerification};

use self::checkpoint::Goal;
use self::iterate::Bounds;
use self::record::{Write, Writes};
use self::removed::KeyRange;
use self::runs::expected::Rows;
use self::shared::Shared;
use self::snapshots::View;
use crate::environment::{Environment, Machine, machine};
use crate::{Commit, Error};

/// Bytes of the longest key, and of the longest name of a keyspace.
const MOST_KEY: usize = 64 << 10;
/// The number of a keyspace that no store has: what is written to it is refused.
const NOT_HERE: u32 = 0;
/// Bytes of the longest value.
const MOST_VALUE: usize = 256 << 20;

/// An ordered key-value store in its own directory: keys and values are bytes, and keys are in the order of their bytes.
///
/// Keys are in *keyspaces*, each with its own [options](KeyspaceOptions). Writes are committed alone, in a [batch](Batch), or in a
/// [transaction](Transaction), over any keyspaces. A commit is durable when it returns, unless the [`Policy`](crate::Policy)
/// says otherwise: it survives a power cut, whole. A commit that is not durable yet may survive one, but never without all
/// commits before it, and never in part.
///
/// Many threads can call all methods at once; those that commit at the same time share a flush. The store is closed when it and
/// everything that was made with it is dropped. [`close`](Store::close) does the same and returns whether that succeeded.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path().join("shop");
/// use landfall::{KeyspaceOptions, Store, StoreOptions};
///
/// let store = Store::open(&directory, StoreOptions::default())?;
/// let stock = store.keyspace("stock", KeyspaceOptions::default())?;
/// stock.insert("apples", "7")?;
/// stock.insert("pears", "2")?;
/// stock.remove("pears")?;
/// assert_eq!(stock.get("apples")?.as_deref(), Some(&b"7"[..]));
///
/// // Several writes, of which a power cut takes all or none.
/// let sold = store.keyspace("sold", KeyspaceOptions::default())?;
/// let mut batch = store.batch();
/// batch.insert(&stock, "apples", "6");
/// batch.insert(&sold, "apples", "1");
/// batch.commit()?;
///
/// for pair in stock.range::<&str>(..) {
///     let (key, value) = pair?;
///     println!("{} bytes under {}", value.len(), String::from_utf8_lossy(&key));
/// }
/// # Ok(())
/// # }
/// ```
pub struct Store {
    handle: Arc<Handle<Machine>>,
}

impl Store {
    /// Opens the store in `directory`, or makes one there. It makes the directory if its parent exists.
    ///
    /// Opening reads the log, and where leaves are; leaves are read when they are needed. What is damaged among all that is
    /// reported, and nothing was changed. Returns [`Error::Locked`] if another handle has the store open.
    pub fn open(directory: impl AsRef<Path>, options: StoreOptions) -> Result<Store, Error> {
        let handle = Handle::open(&machine(directory.as_ref()), options)?;
        Ok(Store {
            handle: Arc::new(handle),
        })
    }

    /// What opening found.
    pub fn restart(&self) -> &StoreRestart {
        &self.handle.restart
    }

    /// Opens the keyspace of this name, or makes one, durably. One that is there keeps the options that it was made with.
    pub fn keyspace(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace, Error> {
        let tree = self.handle.shared.open_keyspace(name, &options)?;
        Ok(Keyspace {
            store: self.handle.clone(),
            tree,
        })
    }

    /// Names of the keyspaces that there are.
    pub fn keyspaces(&self) -> Vec<String> {
        self.handle.keyspaces()
    }

    /// Removes a keyspace and everything in it, durably. Whoever still has it gets [`Error::NoKeyspace`].
    pub fn remove_keyspace(&self, keyspace: Keyspace) -> Result<(), Error> {
        let tree = keyspace.of(&self.handle)?;
        self.handle.shared.remove_keyspace(tree)
    }

    /// Writes that will be committed together.
    pub fn batch(&self) -> Batch {
        Batch {
            store: self.handle.clone(),
            writes: Writes::default(),
        }
    }

    /// Begins a transaction with snapshot isolation: it reads as of now, and its commit returns [`Error::Conflict`] if a
    /// key that it writes was written by others meanwhile, or was in a range that they removed.
    pub fn transaction(&self) -> Transaction {
        Transaction {
            inner: transaction::Transaction::new(&self.handle, false),
        }
    }

    /// Begins a transaction that is serialisable: its commit returns [`Error::Conflict`] also if anything that it read was
    /// written by others meanwhile: any key that it asked for, and any in a range that it asked for, however little of it was
    /// taken.
    pub fn serialisable_transaction(&self) -> Transaction {
        Transaction {
            inner: transaction::Transaction::new(&self.handle, true),
        }
    }

    /// Does something in a [transaction](Store::transaction), commits it, and returns what `work` did. If others came between,
    /// all of it is done again: `work` must do nothing else that cannot be repeated.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let store = landfall::Store::open(directory.path().join("counts"), Default::default())?;
    /// let counts = store.keyspace("counts", Default::default())?;
    /// let visits = store.transact(|transaction| {
    ///     let before = transaction.get(&counts, "visits")?;
    ///     let before = before.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes);
    ///     transaction.insert(&counts, "visits", (before + 1).to_be_bytes());
    ///     Ok(before + 1)
    /// })?;
    /// assert_eq!(visits, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn transact<T>(
        &self,
        mut work: impl FnMut(&mut Transaction) -> Result<T, Error>,
    ) -> Result<T, Error> {
        loop {
            let mut transaction = self.transaction();
            let done = work(&mut transaction)?;
            match transaction.commit() {
                Err(Error::Conflict) => {}
                committed => return committed.map(|()| done),
            }
        }
    }

    /// The store as it is now, to be read as long as this is kept. Versions that it needs take space meanwhile.
    pub fn snapshot(&self) -> StoreSnapshot {
        StoreSnapshot {
            view: Arc::new(View::new(&self.handle)),
        }
    }

    /// Makes everything durable that was committed so far.
    pub fn commit(&self) -> Result<(), Error> {
        self.handle.shared.log.commit().map(drop)
    }

    /// Writes all changes that wait in memory into leaves, and waits for it. Checkpoints are also made automatically, by
    /// [`memory_bytes`](StoreOptions::memory_bytes) and [`max_recovery_time`](StoreOptions::max_recovery_time).
    ///
    /// If it fails, nothing is lost: the log still has everything.
    pub fn checkpoint(&self) -> Result<(), Error> {
        self.handle.shared.checkpoint(Goal::Everything)
    }

    /// Reads every leaf from the disk, and compares it with its checksum and with where it belongs. Damage is what it returns, and
    /// no error. Others can go on meanwhile. Nothing is changed.
    pub fn verify(&self) -> StoreVerification {
        self.handle.verify()
    }

    /// What keeps leaves whole in keyspaces that are [in place](KeyspaceOptions::in_place), and why it was chosen.
    pub fn protection(&self) -> ProtectionChoice {
        self.handle.shared.protection()
    }

    /// Gives the store another protection: durably when this returns, and used from the next checkpoint on. Others can go on
    /// meanwhile. Returns what it is; with [`Protection::Auto`] that takes a quarter of a second or so.
    ///
    /// [`Protection::Atomic`] is refused ([`Error::Options`]) where the filesystem does not promise it for the leaves of all
    /// keyspaces.
    pub fn set_protection(&self, protection: Protection) -> Result<ProtectionChoice, Error> {
        self.handle.shared.set_protection(protection)
    }

    /// Lets runs take another share of what leaves take, from the next checkpoint on; durably when this returns. With less than before,
    /// what is too much is merged meanwhile. Others can go on.
    pub fn set_buffer(&self, buffer: StoreBuffer) -> Result<(), Error> {
        buffer.check()?;
        match buffer {
            StoreBuffer::Percent(percent) => self.handle.shared.set_buffer_percent(percent),
            StoreBuffer::Auto { most } => self.handle.shared.set_buffer_auto(most),
        }
    }

    /// The share that runs may take, and why if the store chooses it.
    pub fn buffer(&self) -> BufferChoice {
        self.handle.shared.buffer()
    }

    /// What is written into leaves and runs for each byte that is updated at random, by a formula: to be compared with
    /// [`StoreCounters::tree_amplification`]. It reads up to 64 leaves, evenly spread, to tell what rows are like. Keyspaces that are
    /// [in place](KeyspaceOptions::in_place) or charged for [whole leaves](KeyspaceOptions::whole_leaves) do not count. `None`:
    /// there is no leaf yet, none can be read, or changes of half of all rows fit into memory.
    pub fn expected_writes(&self) -> Option<ExpectedWrites> {
        self.handle.expected_writes()
    }

    /// Counts of what was done since the store was opened.
    pub fn counters(&self) -> StoreCounters {
        self.handle.counters()
    }

    /// Makes everything durable that was committed, records the clean end of the log, and unlocks the directory. Whatever
    /// was made with the store gets [`Error::Closed`] as soon as it needs the store again. It makes no checkpoint: opening reads the log
    /// again.
    pub fn close(self) -> Result<(), Error> {
        self.handle.shared.close()
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("keyspaces", &self.keyspaces())
            .field("log", &self.handle.shared.log)
            .finish_non_exhaustive()
    }
}

/// Keys and values of one kind. [`Store::keyspace`] makes one; clones are the same keyspace.
#[derive(Clone)]
pub struct Keyspace {
    store: Arc<Handle<Machine>>,
    tree: Arc<tree::Keyspace<Machine>>,
}

impl Keyspace {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.tree.name
    }

    /// The options that it was made with.
    pub fn options(&self) -> &KeyspaceOptions {
        &self.tree.options
    }

    /// The value of a key, if it has one: the newest, which may not be durable yet.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, Error> {
        self.store.shared.get(&self.tree, key.as_ref(), None)
    }

    /// Gives a key a value. A key has at most 64 KiB, a value 256 MiB; see [`Error::TooLarge`].
    ///
    /// Waits while changes take more memory than they may. Returns [`Error::NoSpace`] if the disk is full: nothing was
    /// written, and it can be tried again. More than half a [segment](crate::Options::segment_bytes) of the log at once may end
    /// this handle instead, with [`Error::Poisoned`]: open the store again.
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), Error> {
        self.write(key.as_ref(), Some(value.as_ref()))
    }

    /// Removes a key, whether or not it is there. That writes, too: see [`insert`](Keyspace::insert).
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<(), Error> {
        self.write(key.as_ref(), None)
    }

    /// Removes all keys in a range: it writes one entry to the log, however many there are, and reads nothing. A range without keys, or
    /// one that ends before it begins, is nothing to remove. It waits and fails as [`insert`](Keyspace::insert).
    ///
    /// The next checkpoint that writes their leaves drops those that have nothing else, unread, and what they took is free for other
    /// rows; [`Store::checkpoint`] makes one at once. A [snapshot](Store::snapshot) that sees the keys keeps their space: then it is
    /// free when their leaves are written after the snapshot was dropped.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let store = landfall::Store::open(directory.path().join("events"), Default::default())?;
    /// let events = store.keyspace("events", Default::default())?;
    /// for day in 1..30_u8 {
    ///     events.insert([day], "what happened")?;
    /// }
    /// // Nobody needs what was before the 22nd.
    /// events.remove_range(..[22])?;
    /// assert_eq!(events.iter().count(), 8);
    /// # Ok(())
    /// # }
    /// ```
    pub fn remove_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<(), Error> {
        self.remove_bounds(&Bounds::of(&range))
    }

    /// Removes all keys that begin with `prefix`: see [`remove_range`](Keyspace::remove_range). `user1` is also a prefix of `user10`.
    pub fn remove_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<(), Error> {
        self.remove_bounds(&Bounds::prefix(prefix.as_ref()))
    }

    fn remove_bounds(&self, bounds: &Bounds) -> Result<(), Error> {
        let mut writes = Writes::default();
        if let Some(keys) = KeyRange::of(bounds) {
            writes.remove_range(self.tree.id, keys);
        }
        self.store.shared.commit(writes, None)
    }

    fn write(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), Error> {
        let write = self.write_to(&self.store, key, value);
        self.store.shared.commit(vec![write], None)
    }

    /// What it is in this store.
    fn of(&self, store: &Arc<Handle<Machine>>) -> Result<&Arc<tree::Keyspace<Machine>>, Error> {
        if Arc::ptr_eq(&self.store, store) {
            Ok(&self.tree)
        } else {
            Err(Error::NoKeyspace)
        }
    }

    /// Its number in this store.
    fn number_in(&self, store: &Arc<Handle<Machine>>) -> u32 {
        self.of(store).map_or(NOT_HERE, |tree| tree.id)
    }

    fn write_to(&self, store: &Arc<Handle<Machine>>, key: &[u8], value: Option<&[u8]>) -> Write {
        Write {
            keyspace: self.number_in(store),
            key: key.to_vec(),
            value: value.map(<[u8]>::to_vec),
        }
    }

    /// All keys and their values, in the order of the keys, as of now. Backwards: `.rev()`.
    pub fn iter(&self) -> Pairs {
        self.range::<&[u8]>(..)
    }

    /// The keys in a range and their values, in the order of the keys, as of now. The last before a key: `range(..key).rev()`.
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Pairs {
        self.pairs(Bounds::of(&range))
    }

    /// The keys that begin with `prefix` and their values, in the order of the keys, as of now.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Pairs {
        self.pairs(Bounds::prefix(prefix.as_ref()))
    }

    fn pairs(&self, bounds: Bounds) -> Pairs {
        let view = Arc::new(View::new(&self.store));
        Pairs::new(view, self, bounds)
    }
}

impl fmt::Debug for Keyspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyspace")
            .field("name", &self.tree.name)
            .finish_non_exhaustive()
    }
}

/// Keys and their values, from either end, as of one commit. It does not borrow: it can be kept while others write.
///
/// After an error nothing more comes.
pub struct Pairs {
    /// Or why there is none, which is told once.
    range: Result<iterate::Range<Machine>, Option<Error>>,
}

impl Pairs {
    fn new(view: Arc<View<Machine>>, keyspace: &Keyspace, bounds: Bounds) -> Pairs {
        let own = Default::default();
        let tree = keyspace.of(&view.store).cloned();
        Pairs::of(tree.map(|tree| iterate::Range::new(view, tree, bounds, own)))
    }

    fn of(range: Result<iterate::Range<Machine>, Error>) -> Pairs {
        Pairs {
            range: range.map_err(Some),
        }
    }
}

impl Iterator for Pairs {
    type Item = Result<(Vec<u8>, Vec<u8>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.range {
            Ok(range) => range.next(),
            Err(error) => error.take().map(Err),
        }
    }
}

impl DoubleEndedIterator for Pairs {
    fn next_back(&mut self) -> Option<Self::Item> {
        match &mut self.range {
            Ok(range) => range.next_back(),
            Err(error) => error.take().map(Err),
        }
    }
}

impl fmt::Debug for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pairs").finish_non_exhaustive()
    }
}

/// Writes that are committed together, in any keyspaces: a power cut takes all of them or none. The last write to a key counts, and
/// a range removes what the batch wrote before it, not after. Dropped, it is forgotten.
pub struct Batch {
    store: Arc<Handle<Machine>>,
    writes: Writes,
}

impl Batch {
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

    /// Commits all of it; what this returns is ready when it is durable, whatever the policy. `None`: nothing was to be
    /// written.
    pub fn commit_async(self) -> Result<Option<Commit>, Error> {
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
/// [`Store::transaction`] begins one, [`Store::transact`] does all of what is below. Dropped, it is forgotten.
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

    /// Commits all that it wrote; what this returns is ready when it is durable, whatever the policy. `None`: nothing was to
    /// be written.
    pub fn commit_async(self) -> Result<Option<Commit>, Error> {
        self.inner.commit_async()
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").finish_non_exhaustive()
    }
}

/// The store as it was at one commit. [`Store::snapshot`] makes one; clones are the same snapshot.
#[derive(Clone)]
pub struct StoreSnapshot {
    view: Arc<View<Machine>>,
}

impl StoreSnapshot {
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

/// A store wherever it is: on this machine, or in a test's simulator. Dropped, it is closed.
pub(crate) struct Handle<E: Environment> {
    pub shared: Arc<Shared<E>>,
    pub restart: StoreRestart,
}

impl<E: Environment> Handle<E> {
    pub fn open(environment: &E, options: StoreOptions) -> Result<Handle<E>, Error> {
        let (shared, restart) = restart::open(environment, options)?;
        Ok(Handle { shared, restart })
    }

    pub fn verify(&self) -> StoreVerification {
        let keyspaces = E::share(&self.shared.keyspaces);
        let all: Vec<_> = keyspaces.all.values().cloned().collect();
        drop(keyspaces);
        let data = self.shared.data.get();
        let read = &mut |page: &tree::Page<E>| self.shared.read_leaf(page);
        let mut found = verify::verify(&all, data, &*self.shared, read);
        if found.damage.is_empty() {
            return found;
        }
        let _no_checkpoint = E::lock(&self.shared.checkpoints);
        for damaged in std::mem::take(&mut found.damage) {
            let keyspace = all.iter().find(|one| one.name == damaged.keyspace);
            match keyspace.filter(|keyspace| keyspace.options.in_place) {
                Some(keyspace) => match verify::verify_again(keyspace, &damaged, data, read) {
                    Ok(entries) => found.entries += entries,
                    Err(damaged) => found.damage.push(*damaged),
                },
                None => found.damage.push(damaged),
            }
        }
        found
    }

    pub fn expected_writes(&self) -> Option<ExpectedWrites> {
        let shared = &self.shared;
        let rows = Rows::of(&shared.all_keyspaces(), |page| shared.read_leaf(page))?;
        rows.expected(shared.most_changes(), shared.buffer_percent())
    }

    pub fn keyspaces(&self) -> Vec<String> {
        let keyspaces = E::share(&self.shared.keyspaces);
        let names = keyspaces.all.values();
        names.map(|keyspace| keyspace.name.clone()).collect()
    }

    pub fn counters(&self) -> StoreCounters {
        let shared = &self.shared;
        let tally = E::lock(&shared.tally).clone();
        let buffered = shared.buffered();
        StoreCounters {
            log: shared.log.shared.counters(),
            commits: shared.commits.load(Ordering::Relaxed),
            logical_bytes: shared.logical_bytes.load(Ordering::Relaxed),
            checkpoints: tally.checkpoints,
            flushes: tally.flushes,
            failed_checkpoints: tally.failed_checkpoints,
            leaves: tally.written.leaves,
            runs: tally.written.runs,
            merges: tally.written.merges,
            leaf_bytes: tally.written.leaf_bytes,
            merge_bytes: tally.written.merge_bytes,
            run_bytes: tally.written.run_bytes,
            tier_bytes: tally.written.tier_bytes,
            home_bytes: tally.written.home_bytes,
            doublewrite_bytes: tally.written.doublewrite_bytes,
            image_bytes: tally.written.image_bytes,
            group_bytes: tally.written.group_bytes,
            root_bytes: tally.written.root_bytes,
            control_bytes: tally.written.control_bytes,
            waiting_bytes: shared.changes.load(Ordering::Relaxed) as u64,
            cached_bytes: shared.space.cached.load(Ordering::Relaxed) as u64,
            filter_bytes: shared.space.filters.load(Ordering::Relaxed) as u64,
            tree_bytes: buffered.leaf_bytes,
            buffered_bytes: buffered.run_bytes,
            file_bytes: shared.space.end(),
            free_bytes: shared.space.free_bytes(),
        }
    }
}

impl<E: Environment> Drop for Handle<E> {
    fn drop(&mut self) {
        if let Err(error) = self.shared.close() {
            tracing::error!(%error, "what was committed to the store could not be made durable");
        }
    }
}
