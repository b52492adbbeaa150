//! Reading everything that a store has on its disk, and comparing it with its checksums and with where it belongs.

use std::ops::Bound;
use std::sync::Arc;

use super::leaf::Leaf;
use super::shared::Shared;
use super::tree::{Keyspace, Slot};
use crate::Error;
use crate::environment::Environment;

/// What [`Store::verify`](crate::Store::verify) found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StoreVerification {
    /// Leaves that were read.
    pub leaves: u64,
    /// Entries of them: keys with a value, removed ones, and older versions.
    pub entries: u64,
    /// Leaves that are damaged.
    pub damage: Vec<DamagedLeaf>,
}

/// A leaf that cannot be read, or is not where it belongs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DamagedLeaf {
    /// Its keyspace.
    pub keyspace: String,
    /// The keys whose values were in it, unless changes in memory say otherwise.
    pub keys: (Bound<Vec<u8>>, Bound<Vec<u8>>),
    /// The byte of the data file.
    pub offset: u64,
    /// What is wrong.
    pub error: Error,
}

impl<E: Environment> Shared<E> {
    /// Reads every leaf. Others can go on meanwhile.
    pub fn verify(&self) -> StoreVerification {
        let mut found = StoreVerification::default();
        let all: Vec<_> = E::share(&self.keyspaces).all.values().cloned().collect();
        for keyspace in all {
            let places = E::share(&keyspace.groups).clone();
            // Of each leaf the first key, and the page, which stays as long as it is held.
            let mut slots: Vec<Slot<E>> = Vec::new();
            for place in places {
                let leaves = E::share(&place.group).leaves.clone();
                slots.extend(leaves.iter().cloned());
            }
            for (index, slot) in slots.iter().enumerate() {
                let next = slots.get(index + 1).map(|next| next.low.clone());
                let low = (index > 0).then(|| slot.low.clone());
                self.verify_leaf(&keyspace, slot, low, next, &mut found);
            }
        }
        found
    }

    fn verify_leaf(
        &self,
        keyspace: &Keyspace<E>,
        slot: &Slot<E>,
        low: Option<Arc<[u8]>>,
        next: Option<Arc<[u8]>>,
        found: &mut StoreVerification,
    ) {
        found.leaves += 1;
        let offset = slot.page.pointer.offset;
        let error = match self.read_leaf(&slot.page) {
            Ok(leaf) if is_between(&leaf, low.as_deref(), next.as_deref()) => {
                found.entries += leaf.from(b"").count() as u64;
                return;
            }
            Ok(_) => super::shared::corrupt(offset, "it has keys that belong elsewhere"),
            Err(error) => error,
        };
        let from = low.map_or(Bound::Unbounded, |low| Bound::Included(low.to_vec()));
        let to = next.map_or(Bound::Unbounded, |next| Bound::Excluded(next.to_vec()));
        found.damage.push(DamagedLeaf {
            keyspace: keyspace.name.clone(),
            keys: (from, to),
            offset,
            error,
        });
    }
}

fn is_between(leaf: &Leaf, low: Option<&[u8]>, next: Option<&[u8]>) -> bool {
    leaf.from(b"").all(|entry| {
        low.is_none_or(|low| low <= entry.key) && next.is_none_or(|next| entry.key < next)
    })
}
