//! Looking: what a key has, and the leaves and indexes of runs that this reads.
//!
//! Threads: any number. Who looks holds a group's lock while he looks into what is in memory, and none while he reads a leaf: where leaves
//! and runs are is what it was when he looked, and what they take is not free as long as he has them.
//!
//! Failure: what does not match its checksum, or the place at which it belongs, is [`Error::Corrupt`] for whoever asked, and for
//! nobody else.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::leaf::Leaf;
use super::page::{Kind, Pointer, Written, unseal};
use super::runs::Reader;
use super::shared::Shared;
use super::tree::{Keyspace, Lookup, Page, Place, group_of};
use crate::Error;
use crate::environment::{Buffer, Environment, File, planted};

impl<E: Environment> Reader<E> for Shared<E> {
    fn granule(&self) -> u64 {
        self.granule
    }

    fn block(&self, page: &Arc<Page<E>>) -> Result<Arc<Leaf>, Error> {
        match page.cached() {
            Some(block) => Ok(block),
            None => Ok(self.keep_block(page, self.read_leaf(page)?)),
        }
    }

    fn index(&self, pointer: Pointer) -> Result<Vec<u8>, Error> {
        let data = self.data.get().ok_or(Error::Closed)?;
        let mut buffer = Buffer::new(pointer.extent(self.granule) as usize);
        let whole = 0..buffer.capacity();
        let read = data
            .file
            .read(buffer.bytes_mut(whole.clone()), pointer.offset);
        read.map_err(Error::io("read the index of a run"))?;
        let trusts = planted!(self.environment, SkipPageChecksum);
        let store = self.log.shared.log;
        let raw = unseal(buffer.bytes(whole), pointer, Kind::Run, store, trusts);
        raw.map_err(|what| data.corrupt(pointer, what))
    }

    fn corrupt(&self, pointer: Pointer, what: &str) -> Error {
        match self.data.get() {
            Some(data) => data.corrupt(pointer, what),
            None => Error::Closed,
        }
    }
}

impl<E: Environment> Shared<E> {
    /// What a key has: the newest, or as of a commit.
    pub fn get(
        &self,
        keyspace: &Keyspace<E>,
        key: &[u8],
        at: Option<u64>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let found = self.look_up(keyspace, key, at);
        found.map_err(|error| self.error_of_reader(error))
    }

    /// What a reader is told: what was read after the store was closed may be what somebody else wrote since, and no damage.
    pub fn error_of_reader(&self, error: Error) -> Error {
        match error {
            Error::Corrupt { .. } if self.is_closing.load(Ordering::SeqCst) => Error::Closed,
            error => error,
        }
    }

    fn look_up(
        &self,
        keyspace: &Keyspace<E>,
        key: &[u8],
        at: Option<u64>,
    ) -> Result<Option<Vec<u8>>, Error> {
        self.require_open(keyspace)?;
        let at = at.unwrap_or(u64::MAX);
        let groups = E::share(&keyspace.groups);
        let place: &Place<E> = &groups[group_of(&groups, key)];
        let group = E::share(&place.group);
        keyspace.require_there()?;
        let lookup = if planted!(self.environment, ForgetFrozen) {
            match group.active.find(key, at) {
                Some(version) => Lookup::Here(version.value.map(<[u8]>::to_vec)),
                None => group.on_disk(key),
            }
        } else {
            group.find(key, at)
        };
        drop(group);
        drop(groups);
        match lookup {
            Lookup::Here(value) => Ok(value),
            Lookup::Disk(runs, leaf) => {
                let oldest_first = planted!(self.environment, OldestRunFirst);
                for place in 0..runs.len() {
                    let place = if oldest_first {
                        runs.len() - 1 - place
                    } else {
                        place
                    };
                    if let Some(value) = runs[place].find(self, key, at)? {
                        return Ok(value);
                    }
                }
                let page = leaf.filter(|page| !page.lacks(key));
                let Some(page) = page else { return Ok(None) };
                let leaf = self.load(&page)?;
                let found = leaf.find(key, at).and_then(|entry| entry.value);
                Ok(found.map(<[u8]>::to_vec))
            }
        }
    }

    /// Whether a keyspace may be read: somebody else may have the directory of a store that was closed.
    pub fn require_open(&self, keyspace: &Keyspace<E>) -> Result<(), Error> {
        if self.is_closing.load(Ordering::SeqCst) {
            return Err(Error::Closed);
        }
        keyspace.require_there()
    }

    /// Reads a leaf, unless it is in memory.
    pub fn load(&self, page: &Arc<Page<E>>) -> Result<Arc<Leaf>, Error> {
        if let Some(leaf) = page.cached() {
            return Ok(leaf);
        }
        let leaf = self.read_leaf(page)?;
        Ok(self.keep_leaf(page, leaf))
    }

    /// Keeps a leaf that was read in memory, as long as there is room, and which keys it may have.
    pub fn keep_leaf(&self, page: &Arc<Page<E>>, leaf: Leaf) -> Arc<Leaf> {
        let keys = leaf.entries().map(|entry| entry.key);
        page.keep_filter(leaf.len(), keys, self.most_filters());
        self.keep_block(page, leaf)
    }

    /// Keeps a block of a run, or what is in a leaf. Fingerprints of what runs have are in memory anyway.
    pub fn keep_block(&self, page: &Arc<Page<E>>, block: Leaf) -> Arc<Leaf> {
        let block = Arc::new(block);
        self.cache.keep(page, block.clone());
        self.fit_leaves();
        block
    }

    /// Reads a leaf that is kept nowhere.
    pub fn read_leaf(&self, page: &Page<E>) -> Result<Leaf, Error> {
        let mut bytes = self.room_for(page.pointer);
        match self.read_bytes(page.pointer, &mut bytes) {
            Ok(()) => self.leaf_of(page, &bytes),
            Err(error) if page.pointer.home.is_some() => self.unsettled_leaf(page, || Err(error)),
            Err(error) => Err(error),
        }
    }

    /// What is to be written at a leaf's home: somebody may be writing it, who is waited for; or could not. If nothing is, `otherwise`
    /// says what to do, while nobody writes at a home.
    fn unsettled_leaf(
        &self,
        page: &Page<E>,
        otherwise: impl FnOnce() -> Result<Leaf, Error>,
    ) -> Result<Leaf, Error> {
        let unsettled = E::share(&self.unsettled);
        let offset = page.pointer.offset;
        match unsettled.binary_search_by_key(&offset, |(offset, _)| *offset) {
            Ok(place) => self.decode_leaf(page.pointer, &unsettled[place].1),
            Err(_) => otherwise(),
        }
    }

    /// The leaf whose bytes these were when they were read.
    pub fn leaf_of(&self, page: &Page<E>, bytes: &Buffer) -> Result<Leaf, Error> {
        let decode = |bytes: &Buffer| {
            let whole = 0..bytes.capacity();
            self.decode_leaf(page.pointer, bytes.bytes(whole))
        };
        match decode(bytes) {
            // It may have been read while it was written: then it is whole by now.
            Err(Error::Corrupt { .. }) if page.pointer.home.is_some() => {
                self.unsettled_leaf(page, || {
                    let mut again = self.room_for(page.pointer);
                    self.read_bytes(page.pointer, &mut again)?;
                    decode(&again)
                })
            }
            decoded => decoded,
        }
    }

    /// Room for the bytes of a page.
    pub fn room_for(&self, pointer: Pointer) -> Buffer {
        Buffer::new(pointer.extent(self.granule) as usize)
    }

    /// Reads the bytes of a page.
    pub fn read_bytes(&self, pointer: Pointer, bytes: &mut Buffer) -> Result<(), Error> {
        let data = self.data.get().ok_or(Error::Closed)?;
        let whole = 0..bytes.capacity();
        let read = data.file.read(bytes.bytes_mut(whole), pointer.offset);
        read.map_err(Error::io("read a leaf of the store"))
    }

    pub fn decode_leaf(&self, pointer: Pointer, bytes: &[u8]) -> Result<Leaf, Error> {
        let data = self.data.get().ok_or(Error::Closed)?;
        let trusts = planted!(self.environment, SkipPageChecksum);
        let store = self.log.shared.log;
        let raw = unseal(bytes, pointer, Kind::Leaf, store, trusts);
        let raw = raw.map_err(|what| data.corrupt(pointer, what))?;
        // What this process wrote was in the log before.
        let is_own = || Written::of(bytes).generation >> 32 == data.number;
        if pointer.home.is_some() && !is_own() {
            data.require_logged(pointer, bytes, self.opened_at)?;
        }
        let leaf = Leaf::decode(raw);
        leaf.ok_or_else(|| data.corrupt(pointer, "its entries make no sense"))
    }
}
