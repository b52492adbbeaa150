//! Leaves of a group that are to be merged, read before they are asked for: several at a time, as each by itself waits for the
//! disk alone.
//!
//! Their bytes are in memory until they are asked for, few of them for each group that is being written; one is read whatever it has.

use std::collections::HashMap;
use std::sync::Arc;

use super::leaf::Leaf;
use super::removed::Removed;
use super::runs::sources::Sources;
use super::shared::Shared;
use super::tree::{Page, Slot};
use crate::Error;
use crate::environment::{Buffer, Environment};

pub(super) struct ReadAhead<E: Environment> {
    store: Arc<Shared<E>>,
    /// Leaves that will be asked for, in this order, and perhaps others between them.
    wanted: Vec<Arc<Page<E>>>,
    /// The bytes of those that were read and not asked for yet, by their places.
    read: HashMap<u64, Buffer>,
}

impl<E: Environment> ReadAhead<E> {
    /// For those of a group's leaves that are to be given something. The group has the keys from one on and before another.
    pub fn new(
        store: &Arc<Shared<E>>,
        (low, leaves, high): (&[u8], &[Slot<E>], Option<&[u8]>),
        sources: &Sources<'_>,
    ) -> ReadAhead<E> {
        let is_wanted = |index: &usize| match sources.removed_of(leaves, *index, low, high) {
            Removed::Nothing => sources.of_leaf(leaves, *index).next().is_some(),
            Removed::Some => true,
            Removed::All => false,
        };
        let wanted = (0..leaves.len()).filter(is_wanted);
        ReadAhead {
            store: store.clone(),
            wanted: wanted.map(|index| leaves[index].page.clone()).collect(),
            read: HashMap::new(),
        }
    }

    /// What is in a leaf. It is needed once, and not kept.
    pub fn leaf(&mut self, page: &Arc<Page<E>>) -> Result<Arc<Leaf>, Error> {
        // Those before it are not asked for any more.
        let is_page = |wanted: &Arc<Page<E>>| Arc::ptr_eq(wanted, page);
        if let Some(behind) = self.wanted.iter().position(is_page) {
            self.wanted.drain(..=behind);
        }
        if let Some(bytes) = self.read.remove(&page.pointer.offset) {
            return self.decoded(page, &bytes);
        }
        if let Some(leaf) = page.cached() {
            return Ok(leaf);
        }
        // What is at hand already counts.
        let at_hand = self.read.values().map(|bytes| bytes.capacity() as u64);
        let mut bytes = at_hand.sum::<u64>() + page.pointer.extent(self.store.granule);
        let is_missing = |page: &&Arc<Page<E>>| {
            !self.read.contains_key(&page.pointer.offset) && page.cached().is_none()
        };
        let others = self.wanted.iter().filter(is_missing);
        let others = others.take_while(|page| {
            bytes += page.pointer.extent(self.store.granule);
            bytes <= self.store.at_hand()
        });
        let pages: Vec<_> = [page].into_iter().chain(others).cloned().collect();
        for (index, (read, bytes)) in pages
            .iter()
            .zip(self.store.read_together(&pages)?)
            .enumerate()
        {
            match bytes {
                Ok(bytes) => drop(self.read.insert(read.pointer.offset, bytes)),
                Err(error) if index == 0 => return Err(error),
                // It is said when that one is asked for, if it still cannot be read.
                Err(_) => {}
            }
        }
        let bytes = self.read.remove(&page.pointer.offset);
        let bytes = bytes.ok_or_else(|| Error::broken("a leaf was read and is not there"))?;
        self.decoded(page, &bytes)
    }

    fn decoded(&self, page: &Page<E>, bytes: &Buffer) -> Result<Arc<Leaf>, Error> {
        self.store.leaf_of(page, bytes).map(Arc::new)
    }
}
