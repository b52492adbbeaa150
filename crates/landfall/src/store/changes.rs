//! Changes that wait in memory: of each key what it was given at which commit, the newest and what snapshots need.
//!
//! They are in blocks of neighbouring keys: each has the keys from its first one to that of the next, and the first block all
//! before the second.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::block::Block;
pub(crate) use super::block::{Version, Versions};
use super::heads::Heads;
use super::piece::Most;
use super::removed::{KeyRange, RemovedRanges};

/// Whether a version of this commit is seen by somebody, when the key was given another one at `next`.
pub(crate) fn is_needed(lsn: u64, next: u64, snapshots: &[u64]) -> bool {
    let first = snapshots.partition_point(|snapshot| *snapshot < lsn);
    snapshots
        .get(first)
        .is_some_and(|snapshot| *snapshot < next)
}

/// Blocks in their order, of which none is empty.
type Blocks = Vec<Box<Block>>;

/// Changes of a group that are in no leaf.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    blocks: Blocks,
    /// Of the first keys of all blocks but the first.
    heads: Heads,
    /// Ranges that were removed: they hide what is older, here and on the disk.
    removed: RemovedRanges,
    /// That they take in memory, with what they are charged.
    pub bytes: usize,
    /// Leaves for which they are charged so many bytes each, as if these were kept whole.
    charged: BTreeSet<usize>,
    charge: usize,
    /// The commits of the first and of the last change; `None`: there are none.
    pub span: Option<(u64, u64)>,
}

fn memory_of(blocks: &[Box<Block>]) -> usize {
    blocks.iter().map(|block| block.memory()).sum()
}

/// The heads of the first keys of all blocks but the first.
fn heads_of(blocks: &[Box<Block>]) -> Heads {
    Heads::of(blocks.len().saturating_sub(1), |index| {
        blocks[index + 1].first_key()
    })
}

impl Changes {
    fn of(blocks: Blocks, span: Option<(u64, u64)>) -> Changes {
        Changes {
            heads: heads_of(&blocks),
            removed: RemovedRanges::default(),
            bytes: memory_of(&blocks),
            charged: BTreeSet::new(),
            charge: 0,
            span: span.filter(|_| !blocks.is_empty()),
            blocks,
        }
    }

    /// Those of keys that are in order, each of which is there once.
    pub fn of_sorted<'v>(all: impl Iterator<Item = (&'v [u8], Version<'v>)>) -> Changes {
        let mut span: Option<(u64, u64)> = None;
        let mut all = all
            .inspect(|(_, version)| {
                let (first, last) = span.unwrap_or((version.lsn, version.lsn));
                span = Some((first.min(version.lsn), last.max(version.lsn)));
            })
            .peekable();
        let mut blocks = Blocks::new();
        while all.peek().is_some() {
            blocks.push(Box::new(Block::of_sorted(&mut all)));
        }
        drop(all);
        Changes::of(blocks, span)
    }

    /// Those of ranges of keys, of which each is behind the one before.
    pub fn of_pieces(pieces: Vec<Changes>) -> Changes {
        let spans = pieces.iter().filter_map(|piece| piece.span);
        let span = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let blocks = pieces.into_iter().flat_map(|piece| piece.blocks).collect();
        Changes::of(blocks, span)
    }

    /// Which block has a key, if any has.
    fn block_of(&self, key: &[u8]) -> usize {
        let first_key = |index: usize| self.blocks[index + 1].first_key();
        match self.heads.find(key, first_key) {
            Ok(place) => place + 1,
            Err(place) => place,
        }
    }

    /// Adds a change that is newer than all of its key. `snapshots` are those that somebody reads, in their order: versions
    /// that none of them needs go.
    pub fn add(&mut self, key: &[u8], version: Version<'_>, snapshots: &[u64]) {
        self.insert(key, version, |lsn, next| is_needed(lsn, next, snapshots));
        self.widen_span(Some((version.lsn, version.lsn)));
    }

    /// Adds that a range was removed, after all that is here.
    pub fn remove_range(&mut self, range: &KeyRange, lsn: u64, snapshots: &[u64]) {
        self.bytes -= self.removed.bytes;
        self.removed.add(range, lsn, snapshots);
        self.bytes += self.removed.bytes;
        self.widen_span(Some((lsn, lsn)));
    }

    /// Ranges that were removed.
    pub fn removed(&self) -> &RemovedRanges {
        &self.removed
    }

    /// Takes the ranges away that were removed.
    pub fn take_removed(&mut self) -> RemovedRanges {
        let removed = std::mem::take(&mut self.removed);
        self.bytes -= removed.bytes;
        self.span = self.span.filter(|_| !self.blocks.is_empty());
        removed
    }

    /// Puts ranges where none are.
    pub fn put_removed(&mut self, removed: RemovedRanges) {
        debug_assert!(self.removed.is_empty());
        self.bytes += removed.bytes;
        self.widen_span(removed.span());
        self.removed = removed;
    }

    fn widen_span(&mut self, more: Option<(u64, u64)>) {
        let spans = [self.span, more].into_iter().flatten();
        self.span = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    }

    fn insert(&mut self, key: &[u8], version: Version<'_>, is_needed: impl Fn(u64, u64) -> bool) {
        let index = self.block_of(key);
        let before = match self.blocks.get(index) {
            Some(block) => block.memory(),
            None => {
                self.blocks.push(Box::default());
                0
            }
        };
        let is_last = index + 1 == self.blocks.len();
        let block = &mut self.blocks[index];
        let place = block.add(key, version, is_needed);
        let behind = if block.is_full() {
            block.split(place, is_last)
        } else {
            None
        };
        self.bytes = self.bytes + block.memory() - before;
        if let Some(behind) = behind {
            self.bytes += behind.memory();
            let blocks = &self.blocks;
            let first_key = |index: usize| blocks[index + 1].first_key();
            self.heads.insert(index, behind.first_key(), first_key);
            self.blocks.insert(index + 1, Box::new(behind));
        }
    }

    /// Charges them for a leaf, once.
    pub fn charge(&mut self, leaf: usize, bytes: usize) {
        debug_assert!(self.charged.is_empty() || self.charge == bytes);
        self.charge = bytes;
        if self.charged.insert(leaf) {
            self.bytes += bytes;
        }
    }

    /// Charges them for no leaf any more.
    pub fn forget_charges(&mut self) {
        self.bytes = self.records();
        self.charged.clear();
    }

    /// Bytes that they really take.
    pub fn records(&self) -> usize {
        self.bytes - self.charged.len() * self.charge
    }

    /// What a key had at this commit, as far as it is known here.
    pub fn find(&self, key: &[u8], at: u64) -> Option<Version<'_>> {
        let block = self.blocks.get(self.block_of(key))?;
        block.find(key)?.at(at)
    }

    /// Keys from and to these, with all their versions.
    pub fn range<'a>(
        &'a self,
        from: Bound<&'a [u8]>,
        to: Bound<&'a [u8]>,
    ) -> impl Iterator<Item = (&'a [u8], Versions<'a>)> {
        let first = match from {
            Bound::Unbounded => 0,
            Bound::Included(key) | Bound::Excluded(key) => self.block_of(key),
        };
        let end = match to {
            Bound::Unbounded => self.blocks.len(),
            Bound::Included(key) | Bound::Excluded(key) => self.block_of(key) + 1,
        };
        let end = end.min(self.blocks.len());
        let blocks = self.blocks[first.min(end)..end].iter();
        blocks.flat_map(move |block| block.range(from, to))
    }

    /// The key of the entry that fills a piece, from the front of a range; `None`: all of it is less.
    pub fn key_ahead(&self, from: Bound<&[u8]>, mut most: Most) -> Option<&[u8]> {
        let first = match from {
            Bound::Unbounded => 0,
            Bound::Included(key) | Bound::Excluded(key) => self.block_of(key),
        };
        let mut begin = self.blocks.get(first)?.begin(from);
        for block in &self.blocks[first..] {
            for index in begin..block.len() {
                if most.is_filled_by(1, block.bytes_of(index)) {
                    return Some(block.key(index));
                }
            }
            begin = 0;
        }
        None
    }

    /// The key of the entry that fills a piece, from the end of a range; `None`: all of it is less.
    pub fn key_back(&self, to: Bound<&[u8]>, mut most: Most) -> Option<&[u8]> {
        let last = match to {
            Bound::Unbounded => self.blocks.len().checked_sub(1)?,
            Bound::Included(key) | Bound::Excluded(key) => self.block_of(key),
        };
        let mut end = self.blocks.get(last)?.end(to);
        for (index, block) in self.blocks[..=last].iter().enumerate().rev() {
            if index < last {
                end = block.len();
            }
            for index in (0..end).rev() {
                if most.is_filled_by(1, block.bytes_of(index)) {
                    return Some(block.key(index));
                }
            }
        }
        None
    }

    /// Takes the keys from this one on away. Nobody knows of either half which commits it has: those of both.
    pub fn split_off(&mut self, key: &[u8]) -> Changes {
        let span = self.span;
        let mut removed = self.take_removed();
        let removed_behind = removed.split_off(key);
        let mut behind = self.split_off_blocks(key);
        for (half, removed) in [(&mut *self, removed), (&mut behind, removed_behind)] {
            half.put_removed(removed);
            half.span = span.filter(|_| !half.is_empty());
        }
        behind
    }

    fn split_off_blocks(&mut self, key: &[u8]) -> Changes {
        let index = self.block_of(key);
        if index == self.blocks.len() {
            return Changes::default();
        }
        let mut behind = self.blocks.split_off(index + 1);
        let cut = self.blocks[index].split_off(key);
        if !cut.is_empty() {
            behind.insert(0, Box::new(cut));
        }
        if self.blocks[index].is_empty() {
            self.blocks.pop();
        }
        let span = self.span;
        *self = Changes::of(std::mem::take(&mut self.blocks), span);
        Changes::of(behind, span)
    }

    /// Puts changes behind these that are newer.
    pub fn append(&mut self, newer: &Changes) {
        for (key, versions) in newer.range(Bound::Unbounded, Bound::Unbounded) {
            let versions: Vec<Version<'_>> = versions.newest_first().collect();
            for version in versions.into_iter().rev() {
                self.insert(key, version, |_, _| true);
            }
        }
        for leaf in &newer.charged {
            self.charge(*leaf, newer.charge);
        }
        self.bytes -= self.removed.bytes;
        self.removed.append(&newer.removed);
        self.bytes += self.removed.bytes;
        self.span = match (self.span, newer.span) {
            (Some((first, _)), Some((_, last))) => Some((first, last)),
            (span, None) | (None, span) => span,
        };
    }

    /// How many values keys were given, and what both take, but for such as were removed with a range.
    pub fn given(&self) -> (usize, usize) {
        let mut given = (0, 0);
        for (key, versions) in self.range(Bound::Unbounded, Bound::Unbounded) {
            let removed = self.removed.last(key, u64::MAX);
            let is_removed = |lsn| removed.is_some_and(|last| last > lsn);
            let there = versions
                .newest_first()
                .filter(|one| !is_removed(one.lsn))
                .filter_map(|one| one.value);
            for value in there {
                given.0 += 1;
                given.1 += key.len() + value.len();
            }
        }
        given
    }

    /// Whether no key is there, but for ranges.
    pub fn has_no_keys(&self) -> bool {
        self.blocks.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        self.has_no_keys() && self.removed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn add(changes: &mut Changes, key: &[u8], lsn: u64, snapshots: &[u64]) {
        let value = lsn.to_le_bytes();
        let value = (!lsn.is_multiple_of(4)).then_some(&value[..]);
        changes.add(key, Version { lsn, value }, snapshots);
    }

    fn all_of(changes: &Changes) -> Vec<(Vec<u8>, Vec<u64>)> {
        let all = changes.range(Bound::Unbounded, Bound::Unbounded);
        let all = all.map(|(key, versions)| {
            let mut lsns: Vec<u64> = versions.newest_first().map(|one| one.lsn).collect();
            lsns.reverse();
            (key.to_vec(), lsns)
        });
        all.collect()
    }

    fn check(changes: &Changes) {
        assert_eq!(
            changes.bytes,
            memory_of(&changes.blocks) + changes.removed.bytes
        );
        assert_eq!(changes.span.is_none(), changes.is_empty());
        let first_key = |index: usize| changes.blocks[index + 1].first_key();
        let count = changes.blocks.len().saturating_sub(1);
        changes.heads.check(count, first_key);
        assert!(changes.blocks.iter().all(|block| !block.is_empty()));
        assert!(all_of(changes).is_sorted());
    }

    #[test]
    fn versions_stay_as_long_as_a_snapshot_needs_them() {
        let mut changes = Changes::default();
        let lsns = |changes: &Changes| all_of(changes)[0].1.clone();
        add(&mut changes, b"a", 2, &[]);
        add(&mut changes, b"a", 3, &[]);
        assert_eq!(lsns(&changes), [3]);
        // The snapshot was taken at 5: it sees 3.
        add(&mut changes, b"a", 6, &[5]);
        add(&mut changes, b"a", 7, &[5]);
        assert_eq!(lsns(&changes), [3, 7]);
        assert_eq!(changes.find(b"a", 6).unwrap().lsn, 3);
        assert_eq!(changes.find(b"a", 7).unwrap().lsn, 7);
        assert_eq!(changes.find(b"a", 2), None);
        add(&mut changes, b"a", 9, &[7, 8]);
        assert_eq!(lsns(&changes), [7, 9]);
        assert_eq!(changes.span, Some((2, 9)));
    }

    #[test]
    fn leaves_are_charged_once() {
        let mut changes = Changes::default();
        add(&mut changes, b"a", 2, &[]);
        let records = changes.bytes;
        for leaf in [3, 3, 7] {
            changes.charge(leaf, 4096);
        }
        assert_eq!(
            (changes.bytes, changes.records()),
            (records + 8192, records)
        );
        let mut newer = Changes::default();
        add(&mut newer, b"b", 3, &[]);
        for leaf in [7, 9] {
            newer.charge(leaf, 4096);
        }
        changes.append(&newer);
        assert_eq!(changes.bytes, changes.records() + 3 * 4096);
        check(&newer.split_off(b"b"));
        changes.forget_charges();
        check(&changes);
    }

    #[test]
    fn removed_ranges_are_cut_and_put_together_too() {
        let range = |low: &[u8], high: &[u8]| KeyRange {
            low: low.to_vec(),
            high: Some(high.to_vec()),
        };
        let mut changes = Changes::default();
        changes.remove_range(&range(b"b", b"f"), 3, &[]);
        assert!(!changes.is_empty());
        check(&changes);
        add(&mut changes, b"a", 5, &[]);
        let mut behind = changes.split_off(b"d");
        for half in [&changes, &behind] {
            assert_eq!(half.span, Some((3, 5)));
            check(half);
        }
        assert_eq!(changes.removed().last(b"c", 9), Some(3));
        assert_eq!(changes.removed().last(b"d", 9), None);
        assert_eq!(behind.removed().last(b"d", 9), Some(3));
        let mut newer = Changes::default();
        newer.remove_range(&range(b"e", b"g"), 7, &[]);
        behind.append(&newer);
        check(&behind);
        assert_eq!(behind.removed().lsns(b"e"), [3, 7]);
        assert_eq!(behind.span, Some((3, 7)));
        let removed = behind.take_removed();
        assert!(behind.is_empty() && !removed.is_empty());
        check(&behind);
        // Of all that is left none is behind.
        assert!(changes.split_off(b"z").is_empty());
        check(&changes);
        // Where a range was all that there was, nothing is left of it.
        let mut alone = Changes::default();
        alone.remove_range(&range(b"e", b"g"), 7, &[]);
        assert_eq!(alone.split_off(b"d").span, Some((7, 7)));
        assert_eq!((alone.is_empty(), alone.span), (true, None));
    }

    proptest! {
        #[test]
        fn changes_are_cut_and_put_together(
            keys in prop::collection::vec(prop::collection::vec(0..4_u8, 0..5), 1..200),
            cut in prop::collection::vec(0..4_u8, 0..5),
            snapshots in prop::collection::btree_set(0..200_u64, 0..5),
            bounds in (prop::collection::vec(0..4_u8, 0..5), prop::collection::vec(0..4_u8, 0..5)),
        ) {
            let snapshots: Vec<u64> = snapshots.into_iter().collect();
            let mut model: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
            let mut changes = Changes::default();
            for (lsn, key) in (1..).zip(&keys) {
                add(&mut changes, key, lsn, &snapshots);
                let versions = model.entry(key.clone()).or_default();
                versions.push(lsn);
                let all = versions.clone();
                versions.retain(|one| {
                    let next = all.iter().find(|next| *next > one);
                    next.is_none_or(|next| snapshots.iter().any(|at| one <= at && at < next))
                });
            }
            check(&changes);
            let expected: Vec<_> = model.clone().into_iter().collect();
            prop_assert_eq!(all_of(&changes), expected);
            let range = (Bound::Excluded(&bounds.0[..]), Bound::Included(&bounds.1[..]));
            if bounds.0 < bounds.1 {
                let found: Vec<&[u8]> = changes.range(range.0, range.1).map(|(key, _)| key).collect();
                let expected: Vec<&[u8]> = model.range::<[u8], _>(range).map(|(key, _)| &key[..]).collect();
                prop_assert_eq!(found, expected);
            }
            // Entries are counted from either end.
            let entries: Vec<&Vec<u8>> = model.iter().flat_map(|(key, lsns)| lsns.iter().map(move |_| key)).collect();
            let ahead: Vec<&Vec<u8>> = entries.iter().copied().filter(|key| **key > bounds.0).collect();
            let back: Vec<&Vec<u8>> = entries.iter().copied().filter(|key| **key < bounds.0).rev().collect();
            for count in 1..=entries.len() + 1 {
                let bound = Bound::Excluded(&bounds.0[..]);
                let nth = |list: &[&Vec<u8>]| list.get(count - 1).map(|key| key.to_vec());
                let most = Most { entries: count, bytes: usize::MAX };
                prop_assert_eq!(changes.key_ahead(bound, most).map(<[u8]>::to_vec), nth(&ahead));
                prop_assert_eq!(changes.key_back(bound, most).map(<[u8]>::to_vec), nth(&back));
            }

            let whole = all_of(&changes);
            let span = changes.span;
            let behind = changes.split_off(&cut);
            for half in [&changes, &behind] {
                prop_assert_eq!(half.span, span.filter(|_| !half.is_empty()));
            }
            check(&changes);
            check(&behind);
            prop_assert!(all_of(&changes).iter().all(|(key, _)| *key < cut));
            prop_assert!(all_of(&behind).iter().all(|(key, _)| *key >= cut));
            prop_assert_eq!([all_of(&changes), all_of(&behind)].concat(), whole.clone());
            changes.append(&behind);
            check(&changes);
            prop_assert_eq!(all_of(&changes), whole);
            // Every key is newer once more.
            let mut newer = Changes::default();
            for (lsn, key) in (1_000..).zip(model.keys()) {
                add(&mut newer, key, lsn, &[]);
            }
            changes.append(&newer);
            check(&changes);
            let expected = span.zip(newer.span).map(|(older, newer)| (older.0, newer.1));
            prop_assert_eq!(changes.span, expected);
            for (key, lsns) in all_of(&changes) {
                prop_assert!(lsns.is_sorted() && *lsns.last().unwrap() >= 1_000);
                prop_assert_eq!(&lsns[..lsns.len() - 1], &model[&key][..]);
            }
        }
    }
}
