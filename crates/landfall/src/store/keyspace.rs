//! What a user has of a keyspace: its keys' values, single writes, and going through keys from either end.
//!
//! A keyspace is of one store, which it keeps open. One of another store is [`Error::NoKeyspace`] wherever it is read; what is written to
//! it has a number that no store has, so that its commit is refused.

use std::fmt;
use std::ops::RangeBounds;
use std::sync::Arc;

use super::iterate::{self, Bounds};
use super::record::{Write, Writes};
use super::removed::KeyRange;
use super::snapshots::View;
use super::{Handle, KeyspaceOptions, tree};
use crate::Error;
use crate::environment::Machine;

/// The number of a keyspace that no store has: what is written to it is refused.
const NOT_HERE: u32 = 0;

/// Keys and values of one kind. [`Store::keyspace`](super::Store::keyspace) makes one; clones are the same keyspace.
#[derive(Clone)]
pub struct Keyspace {
    store: Arc<Handle<Machine>>,
    pub(super) tree: Arc<tree::Keyspace<Machine>>,
}

impl Keyspace {
    pub(super) fn new(store: Arc<Handle<Machine>>, tree: Arc<tree::Keyspace<Machine>>) -> Keyspace {
        Keyspace { store, tree }
    }

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
    /// written, and it can be tried again. More than a megabyte at once, than half a
    /// [buffer](crate::Options::buffer_bytes), or than a segment, may end this handle instead, with [`Error::Poisoned`]: open the store again.
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
    /// rows; [`Store::checkpoint`](super::Store::checkpoint) makes one at once. A [snapshot](super::Store::snapshot) that sees the keys keeps their space: then it is
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
    pub(super) fn of(
        &self,
        store: &Arc<Handle<Machine>>,
    ) -> Result<&Arc<tree::Keyspace<Machine>>, Error> {
        if Arc::ptr_eq(&self.store, store) {
            Ok(&self.tree)
        } else {
            Err(Error::NoKeyspace)
        }
    }

    /// Its number in this store.
    pub(super) fn number_in(&self, store: &Arc<Handle<Machine>>) -> u32 {
        self.of(store).map_or(NOT_HERE, |tree| tree.id)
    }

    /// A write to it, of this store.
    pub(super) fn write_to(
        &self,
        store: &Arc<Handle<Machine>>,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Write {
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
    pub(super) fn new(view: Arc<View<Machine>>, keyspace: &Keyspace, bounds: Bounds) -> Pairs {
        let own = Default::default();
        let tree = keyspace.of(&view.store).cloned();
        Pairs::of(tree.map(|tree| iterate::Range::new(view, tree, bounds, own)))
    }

    pub(super) fn of(range: Result<iterate::Range<Machine>, Error>) -> Pairs {
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
