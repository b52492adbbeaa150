//! Merging changes and runs into leaves: which leaves of a group have to be written, and what is in them then.
//!
//! A leaf without a change stays where it is. One that has changes is written again, in as many leaves of about equal size as
//! it takes; one that gets small takes the next one in. Nothing is kept that nobody can see any more: a version that no
//! snapshot needs, and the removal of a key that has nothing older.

use std::iter::Peekable;
use std::sync::Arc;

use super::bytes::Cursor;
use super::changes::is_needed;
use super::leaf::{Entry, Leaf};
use super::removed::{Removed, RemovedRanges};
use super::runs::sources::{OfKey, Sources};
use super::tree::{Page, Slot};
use crate::environment::Environment;

/// A leaf of the group as it will be.
pub(super) enum Merged<E: Environment> {
    /// As it is.
    Kept(Slot<E>),
    /// To be written.
    New(New<E>),
}

/// A leaf that is to be written.
pub(super) struct New<E: Environment> {
    /// Its first key.
    pub low: Arc<[u8]>,
    pub raw: Vec<u8>,
    /// How many it has.
    pub keys: u32,
    /// The leaf whose keys are those that it has, neither more nor fewer.
    pub of: Option<Arc<Page<E>>>,
}

/// How leaves are made.
#[derive(Clone, Copy)]
pub(super) struct Shape<'a> {
    /// Bytes that a leaf is to have.
    pub leaf_bytes: usize,
    /// Bytes that it may have, unless a single key has more.
    pub most_bytes: usize,
    /// Those that somebody reads, in their order.
    pub snapshots: &'a [u64],
    /// Removals stay also where nothing older does: it is elsewhere.
    pub keeps_removals: bool,
    /// Removals go even where something older stays: a mistake.
    pub drops_removals: bool,
    /// A leaf that is cut is said to have the keys that it had: a mistake.
    pub ignores_cuts: bool,
}

/// The keys of the group are from one on and before another. Tells `emit` what becomes of a group's leaves by what they are to
/// be given, one after the other. `read` reads a leaf, whose keys are from one on and before another.
pub(super) fn merge<'a, E: Environment, F>(
    low_of_group: &Arc<[u8]>,
    leaves: &[Slot<E>],
    high_of_group: Option<&[u8]>,
    sources: &'a Sources<'_>,
    shape: Shape<'a>,
    mut read: impl FnMut(&Arc<Page<E>>, &[u8], Option<&[u8]>) -> Result<Arc<Leaf>, F>,
    emit: &mut dyn FnMut(Merged<E>) -> Result<(), F>,
) -> Result<(), F> {
    let mut index = 0;
    // Without leaves all changes are those of one that is empty.
    while index < leaves.len().max(1) {
        let first = index;
        let mut builder = Builder::new(shape);
        builder.removed = Some(sources.changes.removed()).filter(|removed| !removed.is_empty());
        let mut is_changed = false;
        loop {
            let next = leaves.get(index + 1).map(|slot| slot.low.clone());
            let mut changed = sources.of_leaf(leaves, index).peekable();
            let removed = match leaves.get(index) {
                Some(_) => sources.removed_of(leaves, index, low_of_group, high_of_group),
                None => Removed::Nothing,
            };
            if index == first && changed.peek().is_none() && removed == Removed::Nothing {
                break;
            }
            is_changed = true;
            match leaves.get(index) {
                // Nobody sees anything of it.
                Some(_) if removed == Removed::All => builder.merge_none(&mut changed),
                Some(slot) => {
                    let low = if index == 0 {
                        &**low_of_group
                    } else {
                        &*slot.low
                    };
                    let leaf = read(&slot.page, low, next.as_deref().or(high_of_group))?;
                    builder.merge(&leaf, &mut changed);
                }
                None => builder.merge_none(&mut changed),
            }
            index += 1;
            let is_small = builder.bytes < shape.leaf_bytes / 4;
            if next.is_none() || !is_small {
                break;
            }
        }
        if is_changed {
            let slot = leaves.get(first);
            let low = slot.map_or(low_of_group, |slot| &slot.low);
            let mut parts = builder.finish(low).peekable();
            let mut own = slot.filter(|_| index == first + 1);
            while let Some((low, raw, keys)) = parts.next() {
                let is_only = parts.peek().is_none();
                let of = own.take().filter(|_| is_only || shape.ignores_cuts);
                let of = of.map(|slot| slot.page.clone());
                emit(Merged::New(New { low, raw, keys, of }))?;
            }
        } else {
            if let Some(slot) = leaves.get(index) {
                emit(Merged::Kept(slot.clone()))?;
            }
            index += 1;
        }
    }
    Ok(())
}

/// Entries in their order, and where leaves may be cut.
pub(super) struct Builder<'a> {
    shape: Shape<'a>,
    /// Ranges that were removed: they hide what is older of their keys.
    removed: Option<&'a RemovedRanges>,
    /// Where the entries of each key begin.
    starts: Vec<usize>,
    raw: Vec<u8>,
    bytes: usize,
}

impl<'a> Builder<'a> {
    pub fn new(shape: Shape<'a>) -> Builder<'a> {
        Builder {
            shape,
            removed: None,
            starts: Vec::new(),
            raw: Vec::new(),
            bytes: 0,
        }
    }

    /// Adds a key with all its versions, the newest first. Those of a leaf at home come behind, and may be newer: what was merged
    /// into it before is merged once more if a checkpoint failed, or if the store is opened again.
    pub fn add(&mut self, key: &[u8], versions: &[(u64, Option<&[u8]>)]) {
        let Shape {
            snapshots,
            keeps_removals,
            drops_removals,
            ..
        } = self.shape;
        let mut kept: Vec<Entry<'_>> = Vec::with_capacity(versions.len());
        let mut newer = None;
        for &(lsn, value) in versions {
            let is_kept = match newer {
                // A leaf at home was told of it by an attempt that failed.
                Some(newer) if lsn >= newer => continue,
                Some(newer) => is_needed(lsn, newer, snapshots),
                None => true,
            };
            newer = Some(lsn);
            if is_kept {
                // Everybody sees it who is not older.
                let is_seen_by_all = snapshots.first().is_none_or(|oldest| *oldest >= lsn);
                let lsn = if is_seen_by_all { 0 } else { lsn };
                kept.push(Entry { key, lsn, value });
            }
        }
        while !keeps_removals && kept.last().is_some_and(|last| last.value.is_none()) {
            kept.pop();
        }
        if drops_removals {
            kept.retain(|entry| entry.value.is_some());
        }
        if kept.is_empty() {
            return;
        }
        self.starts.push(self.raw.len());
        for entry in kept {
            entry.put(&mut self.raw);
        }
        self.bytes = self.raw.len();
    }

    fn merge_none<'c>(&mut self, changed: &mut Peekable<impl Iterator<Item = OfKey<'c>>>) {
        for (key, mut versions) in changed {
            self.hide(key, &mut versions);
            self.add(key, &versions);
        }
    }

    /// Puts the commits that removed a key with a range between its versions that are in no leaf, the newest first: one that wrote it
    /// as well did that behind. A leaf at home may have been told of the range before the store was opened again, and then
    /// be newer than these versions.
    fn hide(&self, key: &[u8], versions: &mut Vec<(u64, Option<&[u8]>)>) {
        let lsns = self.removed.map_or(&[][..], |removed| removed.lsns(key));
        for lsn in lsns {
            let place = versions.partition_point(|(version, _)| version >= lsn);
            versions.insert(place, (*lsn, None));
        }
    }

    fn merge<'c>(&mut self, leaf: &Leaf, changed: &mut Peekable<impl Iterator<Item = OfKey<'c>>>) {
        let mut entries = leaf.entries().peekable();
        let mut versions = Vec::new();
        loop {
            let of_leaf = entries.peek().map(|entry| entry.key);
            let of_changes = changed.peek().map(|(key, _)| *key);
            let key = match (of_leaf, of_changes) {
                (None, None) => return,
                (Some(key), None) | (None, Some(key)) => key,
                (Some(leaf), Some(changes)) => leaf.min(changes),
            };
            versions.clear();
            if of_changes == Some(key)
                && let Some((_, newer)) = changed.next()
            {
                versions.extend(newer);
            }
            self.hide(key, &mut versions);
            while let Some(entry) = entries.next_if(|entry| entry.key == key) {
                versions.push((entry.lsn, entry.value));
            }
            self.add(key, &versions);
        }
    }

    /// The leaves: of each the first key, the bytes, and how many keys it has. The first one begins where the leaf did that was
    /// merged.
    pub fn finish(self, low: &Arc<[u8]>) -> impl Iterator<Item = (Arc<[u8]>, Vec<u8>, u32)> {
        let parts = self.raw.len().div_ceil(self.shape.leaf_bytes).max(1);
        let target = self.raw.len().div_ceil(parts);
        let mut cuts = Vec::with_capacity(parts + 1);
        let most = self.shape.most_bytes;
        let ends = self.starts.iter().skip(1).copied();
        let ends = ends.chain([self.raw.len()]);
        for (&start, end) in self.starts.iter().zip(ends) {
            if cuts
                .last()
                .is_none_or(|last| start - last >= target || end - last > most)
            {
                cuts.push(start);
            }
        }
        let ends: Vec<usize> = cuts
            .iter()
            .skip(1)
            .copied()
            .chain([self.raw.len()])
            .collect();
        let first = low.clone();
        let (raw, starts) = (self.raw, self.starts);
        cuts.into_iter().zip(ends).map(move |(start, end)| {
            let bytes = &raw[start..end];
            let behind = |place| starts.partition_point(|one| *one < place);
            let keys = (behind(end) - behind(start)) as u32;
            let low = match start {
                0 => first.clone(),
                _ => Entry::take(&mut Cursor::new(bytes))
                    .map_or_else(Arc::default, |entry| entry.key.into()),
            };
            (low, bytes.to_vec(), keys)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ops::Bound;

    use proptest::prelude::*;

    use super::super::changes::{Changes, Version};
    use super::super::removed::KeyRange;
    use super::*;

    const KEYS: u8 = 5;

    /// What one commit does.
    #[derive(Clone, Debug)]
    enum Act {
        Write(u8, Option<u8>),
        Remove(u8, u8),
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            3 => (0..KEYS, any::<Option<u8>>()).prop_map(|(key, value)| Act::Write(key, value)),
            1 => (0..KEYS, 1..KEYS).prop_map(|(low, count)| Act::Remove(low, low + count)),
        ]
    }

    fn changes<'a>(
        acts: impl Iterator<Item = (u64, &'a Act)>,
        mut snapshots: impl FnMut(u64) -> Vec<u64>,
    ) -> Changes {
        let mut changes = Changes::default();
        for (lsn, act) in acts {
            match act {
                Act::Write(key, value) => {
                    let value = value.as_ref().map(std::slice::from_ref);
                    changes.add(&[*key], Version { lsn, value }, &snapshots(lsn));
                }
                Act::Remove(low, high) => {
                    let range = KeyRange {
                        low: vec![*low],
                        high: Some(vec![*high]),
                    };
                    changes.remove_range(&range, lsn, &snapshots(lsn));
                }
            }
        }
        changes
    }

    /// The leaf with these changes.
    fn merged(leaf: &Leaf, changes: &Changes, snapshots: &[u64]) -> Leaf {
        let mut builder = Builder::new(Shape {
            leaf_bytes: usize::MAX,
            most_bytes: usize::MAX,
            snapshots,
            keeps_removals: false,
            drops_removals: false,
            ignores_cuts: false,
        });
        builder.removed = Some(changes.removed());
        let sources = Sources {
            changes,
            runs: Vec::new(),
            oldest: snapshots.first().copied(),
            drops_parts: false,
        };
        let all = sources.within(Bound::Unbounded, Bound::Unbounded);
        builder.merge(leaf, &mut all.peekable());
        let low = Arc::default();
        let parts = builder.finish(&low);
        Leaf::decode(parts.flat_map(|(_, raw, _)| raw).collect()).unwrap()
    }

    /// What keys have after these.
    fn as_of<'a>(acts: impl Iterator<Item = (u64, &'a Act)>) -> BTreeMap<u8, u8> {
        let mut sought = BTreeMap::new();
        for (_, act) in acts {
            match act {
                Act::Write(key, Some(value)) => drop(sought.insert(*key, *value)),
                Act::Write(key, None) => drop(sought.remove(key)),
                Act::Remove(low, high) => sought.retain(|key, _| !(low..high).contains(&key)),
            }
        }
        sought
    }

    proptest! {
        // A leaf at home has what a checkpoint told it that failed, and which the next one tells it again.
        #[test]
        fn what_a_leaf_was_told_in_vain_may_be_told_again(
            acts in prop::collection::vec(act(), 1..12),
            told in 0..12_usize,
            snapshots in prop::collection::btree_set(0..12_u64, 0..4),
        ) {
            let all = || (1..).zip(&acts);
            let told = told.min(acts.len());
            let snapshots: Vec<u64> = snapshots.into_iter().filter(|at| *at <= told as u64).collect();
            let before = |lsn: u64| snapshots.iter().copied().filter(|at| *at < lsn).collect();
            let empty = Leaf::decode(Vec::new()).unwrap();
            let home = merged(&empty, &changes(all().take(told), before), &snapshots);
            let found = merged(&home, &changes(all(), before), &snapshots);
            for at in snapshots.iter().copied().chain([u64::MAX]) {
                let sought = as_of(all().filter(|(lsn, _)| *lsn <= at));
                for key in 0..KEYS {
                    let value = found.find(&[key], at).and_then(|entry| entry.value);
                    prop_assert_eq!(value.map(|value| value[0]), sought.get(&key).copied(), "{} at {}", key, at);
                }
            }
        }

        // A leaf at home has changes that the log has as well, which are applied again when the store is opened.
        #[test]
        fn what_a_leaf_was_told_before_may_be_told_again(
            acts in prop::collection::vec(act(), 1..12),
            flushed in 0..12_usize,
            snapshots in prop::collection::btree_set(0..12_u64, 0..4),
        ) {
            let all = || (1..).zip(&acts);
            let flushed = flushed.min(acts.len());
            let snapshots: Vec<u64> = snapshots.into_iter().filter(|at| *at <= flushed as u64).collect();
            let before = |lsn: u64| snapshots.iter().copied().filter(|at| *at < lsn).collect();
            let empty = Leaf::decode(Vec::new()).unwrap();
            let home = merged(&empty, &changes(all().take(flushed), before), &snapshots);
            let found = merged(&home, &changes(all(), |_| Vec::new()), &[]);
            let sought = as_of(all());
            let found: Vec<_> = found.entries().map(|entry| (entry.key[0], entry.lsn, entry.value.map(|value| value[0]))).collect();
            let sought: Vec<_> = sought.into_iter().map(|(key, value)| (key, 0, Some(value))).collect();
            prop_assert_eq!(found, sought);
        }
    }
}
