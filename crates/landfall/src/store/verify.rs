//! Reading everything that a store has on its disk, and comparing it with its checksums and with where it belongs.

use std::ops::Bound;
use std::sync::Arc;

use super::data_file::DataFile;
use super::leaf::Leaf;
use super::runs::{Reader, Run};
use super::tree::{Keyspace, Leaves, Page, Place, Slot};
use crate::Error;
use crate::environment::Environment;

/// What [`Store::verify`](crate::Store::verify) found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StoreVerification {
    /// Leaves that were read, and blocks of runs.
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

/// Reads a leaf of the disk.
pub(super) type ReadLeaf<'a, E> = dyn FnMut(&Page<E>) -> Result<Leaf, Error> + 'a;

/// Reads every leaf of these keyspaces. Others can go on meanwhile: what is looked at stays as long as it is held.
pub(super) fn verify<E: Environment>(
    keyspaces: &[Arc<Keyspace<E>>],
    data: Option<&DataFile<E>>,
    reader: &dyn Reader<E>,
    read: &mut ReadLeaf<'_, E>,
) -> StoreVerification {
    let mut found = StoreVerification::default();
    for keyspace in keyspaces {
        // As they are at one moment: meanwhile leaves go from one group to others, and runs into leaves.
        let groups: Vec<_> = {
            let places = E::share(&keyspace.groups);
            let as_it_is = |place: &Place<E>| {
                let group = E::share(&place.group);
                (place.low.clone(), group.leaves.clone(), group.runs.clone())
            };
            places.iter().map(as_it_is).collect()
        };
        for (index, (low, _, runs)) in groups.iter().enumerate() {
            let next = groups.get(index + 1).map(|(low, ..)| &**low);
            let low = (index > 0).then_some(&**low);
            for run in runs.iter() {
                verify_run(keyspace, run, (low, next), data, reader, read, &mut found);
            }
        }
        let leaves = groups.iter().map(|(low, leaves, _)| (low, leaves));
        for placed in placed(leaves) {
            found.leaves += 1;
            match verify_leaf(keyspace, &placed, data, read) {
                Ok(entries) => found.entries += entries,
                Err(damaged) => found.damage.push(*damaged),
            }
        }
    }
    found
}

/// Reads every block of a run, whose keys are from one on and before another.
fn verify_run<E: Environment>(
    keyspace: &Keyspace<E>,
    run: &Run<E>,
    (low, next): (Option<&[u8]>, Option<&[u8]>),
    data: Option<&DataFile<E>>,
    reader: &dyn Reader<E>,
    read: &mut ReadLeaf<'_, E>,
    found: &mut StoreVerification,
) {
    let owned = |low: Option<&[u8]>| low.map(<[u8]>::to_vec);
    let damaged = |low: Option<&[u8]>, next: Option<&[u8]>, offset, error| DamagedLeaf {
        keyspace: keyspace.name.clone(),
        keys: (
            owned(low).map_or(Bound::Unbounded, Bound::Included),
            owned(next).map_or(Bound::Unbounded, Bound::Excluded),
        ),
        offset,
        error,
    };
    // What is in memory says nothing of the disk.
    let index = match run.index_on_disk(reader) {
        Ok(index) => index,
        Err(error) => {
            let offset = run.entry.index.offset;
            return found.damage.push(damaged(low, next, offset, error));
        }
    };
    let blocks = &index.blocks;
    for (place, slot) in blocks.iter().enumerate() {
        found.leaves += 1;
        let behind = blocks.get(place + 1).map(|next| &*next.low).or(next);
        let low = low.map_or(&*slot.low, |low| low.max(&slot.low));
        let entries = read(&slot.page).and_then(|leaf| {
            let entries = entries_between(&leaf, Some(low), behind);
            entries.ok_or_else(|| misplaced(data, &slot.page))
        });
        match entries {
            Ok(entries) => found.entries += entries,
            Err(error) => {
                let offset = slot.page.pointer.offset;
                found.damage.push(damaged(Some(low), behind, offset, error));
            }
        }
    }
}

/// A leaf, and the keys that belong to it: from one on, and before another.
struct Placed<E: Environment> {
    slot: Slot<E>,
    low: Option<Arc<[u8]>>,
    next: Option<Arc<[u8]>>,
}

/// The leaves of a keyspace, from the first keys of its groups and their leaves. What is behind the last leaf of a group belongs to the next
/// group, also if that has no leaf.
fn placed<'g, E: Environment>(
    groups: impl Iterator<Item = (&'g Arc<[u8]>, &'g Arc<Leaves<E>>)>,
) -> Vec<Placed<E>> {
    let mut all: Vec<Placed<E>> = Vec::new();
    for (low, leaves) in groups {
        if let Some(last) = all.last_mut() {
            last.next.get_or_insert_with(|| low.clone());
        }
        for slot in leaves.iter() {
            if let Some(last) = all.last_mut() {
                last.next.get_or_insert_with(|| slot.low.clone());
            }
            all.push(Placed {
                slot: slot.clone(),
                low: (!all.is_empty()).then(|| slot.low.clone()),
                next: None,
            });
        }
    }
    all
}

/// Reads one leaf of a keyspace: how many entries it has.
fn verify_leaf<E: Environment>(
    keyspace: &Keyspace<E>,
    placed: &Placed<E>,
    data: Option<&DataFile<E>>,
    read: &mut ReadLeaf<'_, E>,
) -> Result<u64, Box<DamagedLeaf>> {
    let page = &placed.slot.page;
    let (low, next) = (placed.low.as_deref(), placed.next.as_deref());
    let entries = read(page).and_then(|leaf| match entries_between(&leaf, low, next) {
        Some(entries) => Ok(entries),
        None => Err(misplaced(data, page)),
    });
    entries.map_err(|error| {
        Box::new(DamagedLeaf {
            keyspace: keyspace.name.clone(),
            keys: (
                low.map_or(Bound::Unbounded, |low| Bound::Included(low.to_vec())),
                next.map_or(Bound::Unbounded, |next| Bound::Excluded(next.to_vec())),
            ),
            offset: page.pointer.offset,
            error,
        })
    })
}

/// Looks again at the leaf that has these keys now, while no leaves are written: one at its home may have got keys that came to
/// it since somebody looked which it has.
pub(super) fn verify_again<E: Environment>(
    keyspace: &Keyspace<E>,
    damaged: &DamagedLeaf,
    data: Option<&DataFile<E>>,
    read: &mut ReadLeaf<'_, E>,
) -> Result<u64, Box<DamagedLeaf>> {
    let groups: Vec<_> = {
        let places = E::share(&keyspace.groups);
        let as_it_is = |place: &Place<E>| {
            let leaves = E::share(&place.group).leaves.clone();
            (place.low.clone(), leaves)
        };
        places.iter().map(as_it_is).collect()
    };
    let all = placed(groups.iter().map(|(low, leaves)| (low, leaves)));
    let key = match &damaged.keys.0 {
        Bound::Included(key) | Bound::Excluded(key) => &key[..],
        Bound::Unbounded => &[],
    };
    let behind = all.partition_point(|placed| *placed.slot.low <= *key);
    match all.get(behind.saturating_sub(1)) {
        Some(placed) => verify_leaf(keyspace, placed, data, read),
        None => Ok(0),
    }
}

/// A leaf has keys that belong elsewhere.
pub(super) fn misplaced<E: Environment>(data: Option<&DataFile<E>>, page: &Page<E>) -> Error {
    match data {
        Some(data) => data.corrupt(page.pointer, "a leaf has keys that belong elsewhere"),
        None => Error::Closed,
    }
}

/// How many entries a leaf has, if all of them belong there.
pub(super) fn entries_between(leaf: &Leaf, low: Option<&[u8]>, next: Option<&[u8]>) -> Option<u64> {
    let mut entries = 0;
    for entry in leaf.entries() {
        let is_behind = low.is_none_or(|low| low <= entry.key);
        let is_before = next.is_none_or(|next| entry.key < next);
        if !is_behind || !is_before {
            return None;
        }
        entries += 1;
    }
    Some(entries)
}
