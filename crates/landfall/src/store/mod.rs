//! An ordered key-value store on the log.
//!
//! - `page` is a page of the data file, `leaf` what is in one with entries, `root` in those that say where others are;
//!   `control` leads to the root, `record` is a commit in the log; `bytes` has what they are made of;
//! - `tree` is what of it is in memory: keyspaces, groups, and where leaves are; `changes` are those that are in no leaf yet, in
//!   `block`s of memory, and ranges of keys that were `removed` at once;
//!   `homes` writes leaves again where they are, as a `protection` says, and `repair` finds what was torn by that;
//!   `extents` says which bytes of the data file are free, `cache` which leaves are kept in memory;
//! - `keyspace` and `sessions` are what users have of it, `handle` is what any of them keeps open;
//! - `shared` is what all users share, and committing; `reading` is looking, `readers` read several pages at a time, `keyspaces` makes and removes them, `due` says when
//!   a checkpoint is; `snapshots` who reads as of which commit, `piece` what
//!   they see, `iterate` goes through keys, `transaction` commits only if nobody came between;
//! - `checkpoint` writes changes into leaves, by `groups` whose leaves `merge` makes, or less where there is `no_space`; `restart` opens a store, `replay` reads what was
//!   committed since in `backlog`s, of which `rebuild` makes changes; `counters` says what was done, and
//!   `verify` whether all of it can be read; `inspect` looks from outside.

mod backlog;
#[cfg(test)]
mod bad_reads;
mod block;
pub(crate) mod bytes;
mod cache;
mod changes;
pub(crate) mod checkpoint;
mod choose;
pub(crate) mod control;
mod counters;
pub(crate) mod data_file;
mod due;
mod extents;
mod filter;
mod gaps;
mod groups;
mod handle;
mod heads;
mod homes;
#[cfg(all(test, target_os = "linux"))]
mod in_place;
pub(crate) mod inspect;
mod install;
pub(crate) mod iterate;
mod keyspace;
pub(crate) mod keyspaces;
mod leaf;
#[cfg(test)]
mod many_versions;
mod merge;
mod no_space;
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
mod readers;
mod reading;
mod rebuild;
pub(crate) mod record;
pub(crate) mod removed;
mod repair;
mod replay;
mod restart;
pub(crate) mod root;
pub(crate) mod runs;
mod sessions;
pub(crate) mod shared;
pub(crate) mod snapshots;
mod together;
pub(crate) mod transaction;
pub(crate) mod tree;
mod verify;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

pub use counters::StoreCounters;
pub(crate) use handle::Handle;
pub use inspect::{KeyspaceInspection, StoreInspection};
pub use keyspace::{Keyspace, Pairs};
pub use options::{KeyspaceOptions, MOST_BUFFER_PERCENT, StoreBuffer, StoreOptions};
pub use protection::{Protection, ProtectionChoice, ProtectionCosts};
pub use restart::StoreRestart;
pub use runs::auto::BufferChoice;
pub use runs::expected::ExpectedWrites;
pub use sessions::{Batch, StoreSnapshot, Transaction};
pub use verify::{DamagedLeaf, StoreVerification};

use self::checkpoint::Goal;
use crate::Error;
use crate::environment::{Machine, machine};
use crate::log::directory::check_for_any_disk;

/// Bytes of the longest key, and of the longest name of a keyspace.
const MOST_KEY: usize = 64 << 10;
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
    /// reported, and nothing was changed. Returns [`Error::Locked`] if another handle has the store open. Open it after forking:
    /// what was opened before writes nothing for the other process ([`Error::Forked`]).
    pub fn open(directory: impl AsRef<Path>, options: StoreOptions) -> Result<Store, Error> {
        let machine = machine(directory.as_ref());
        check_for_any_disk(&machine, &options.log)?;
        let handle = Handle::open(&machine, options)?;
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
        Ok(Keyspace::new(self.handle.clone(), tree))
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
        Batch::new(self.handle.clone())
    }

    /// Begins a transaction with snapshot isolation: it reads as of now, and its commit returns [`Error::Conflict`] if a
    /// key that it writes was written by others meanwhile, or was in a range that they removed.
    pub fn transaction(&self) -> Transaction {
        Transaction::new(&self.handle, false)
    }

    /// Begins a transaction that is serialisable: its commit returns [`Error::Conflict`] also if anything that it read was
    /// written by others meanwhile: any key that it asked for, and any in a range that it asked for, however little of it was
    /// taken.
    pub fn serialisable_transaction(&self) -> Transaction {
        Transaction::new(&self.handle, true)
    }

    /// Does something in a [transaction](Store::transaction), commits it, and returns what `work` did. If others came between,
    /// all of it is done again: `work` must do nothing else that cannot be repeated. It is also done again if `work` returns
    /// [`Error::Conflict`] itself.
    ///
    /// A key that the transaction writes `work` must write in no other way: each time that would be somebody else who came
    /// between, and this would never return.
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
            let done = work(&mut transaction);
            match done.and_then(|done| transaction.commit().map(|()| done)) {
                Err(Error::Conflict) => {}
                done => return done,
            }
        }
    }

    /// The store as it is now, to be read as long as this is kept. Versions that it needs take space meanwhile.
    pub fn snapshot(&self) -> StoreSnapshot {
        StoreSnapshot::new(&self.handle)
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
        let shared = &self.handle.shared;
        shared.log.shared.require_ours()?;
        shared.checkpoint(Goal::Everything)
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
    /// meanwhile. Returns what it is; with [`Protection::Auto`] that takes a quarter of a second or so, between checkpoints.
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
