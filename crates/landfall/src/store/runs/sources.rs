//! All that the leaves of a group are to be given: changes in memory, and runs, as one list in the order of keys.

use std::iter::Peekable;
use std::ops::Bound;

use super::super::changes::{Changes, Versions};
use super::super::leaf::{Entry, Leaf};
use super::super::removed::Removed;
use super::super::tree::Slot;
use crate::environment::Environment;

/// A key with all its versions, the newest first.
pub(crate) type OfKey<'s> = (&'s [u8], Vec<(u64, Option<&'s [u8]>)>);

type Of<'s, T> = Peekable<Box<dyn Iterator<Item = T> + 's>>;

pub(crate) struct Sources<'a> {
    pub changes: &'a Changes,
    /// The blocks of each run, the newest run first.
    pub runs: Vec<Vec<Leaf>>,
    /// The oldest commit as of which somebody reads.
    pub oldest: Option<u64>,
    /// A leaf goes of which only a part is removed: a mistake.
    pub drops_parts: bool,
}

/// What of the sources is of a range of keys.
pub(crate) struct OfKeys<'s> {
    changes: Of<'s, (&'s [u8], Versions<'s>)>,
    runs: Vec<Of<'s, Entry<'s>>>,
}

/// The entries of a run from one key on and before another.
fn entries<'s>(
    blocks: &'s [Leaf],
    from: Bound<&'s [u8]>,
    to: Bound<&'s [u8]>,
) -> impl Iterator<Item = Entry<'s>> + 's {
    let first = match from {
        Bound::Unbounded => 0,
        Bound::Included(key) | Bound::Excluded(key) => {
            blocks.partition_point(|block| block.last_key().is_none_or(|last| last < key))
        }
    };
    let of_blocks = blocks[first..].iter();
    let of_blocks = of_blocks.map(move |block| (block, block.entries_of(from, to)));
    // Where one has nothing of the range those behind have nothing either.
    let of_blocks = of_blocks.take_while(|(_, entries)| !entries.is_empty());
    of_blocks.flat_map(|(block, entries)| entries.map_while(|index| block.entry(index)))
}

impl Sources<'_> {
    /// From one key on and before another.
    pub fn within<'s>(&'s self, from: Bound<&'s [u8]>, to: Bound<&'s [u8]>) -> OfKeys<'s> {
        let changes: Box<dyn Iterator<Item = _> + 's> = Box::new(self.changes.range(from, to));
        let of_run = |blocks: &'s Vec<Leaf>| {
            let entries: Box<dyn Iterator<Item = Entry<'s>> + 's> =
                Box::new(entries(blocks, from, to));
            entries.peekable()
        };
        OfKeys {
            changes: changes.peekable(),
            runs: self.runs.iter().map(of_run).collect(),
        }
    }

    /// How much of what one of a group's leaves has is removed with ranges, for everybody. The group's keys are from one on and before
    /// another.
    pub fn removed_of<E: Environment>(
        &self,
        leaves: &[Slot<E>],
        index: usize,
        low: &[u8],
        high: Option<&[u8]>,
    ) -> Removed {
        let low = match index {
            0 => low,
            _ => &leaves[index].low,
        };
        let high = leaves.get(index + 1).map(|next| &*next.low).or(high);
        let removed = self.changes.removed().of_keys(low, high, self.oldest);
        match removed {
            Removed::Some if self.drops_parts => Removed::All,
            removed => removed,
        }
    }

    /// What belongs to this one of a group's leaves; all, if it has none.
    pub fn of_leaf<'s, E: Environment>(
        &'s self,
        leaves: &'s [Slot<E>],
        index: usize,
    ) -> OfKeys<'s> {
        let (from, to) = keys_of_leaf(leaves, index);
        self.within(from, to)
    }
}

/// The keys that one of a group's leaves has; all, if the group has none.
pub(crate) fn keys_of_leaf<E: Environment>(
    leaves: &[Slot<E>],
    index: usize,
) -> (Bound<&[u8]>, Bound<&[u8]>) {
    let from = match index {
        0 => Bound::Unbounded,
        _ => Bound::Included(&*leaves[index].low),
    };
    let next = leaves.get(index + 1);
    (
        from,
        next.map_or(Bound::Unbounded, |next| Bound::Excluded(&*next.low)),
    )
}

impl<'s> Iterator for OfKeys<'s> {
    type Item = OfKey<'s>;

    fn next(&mut self) -> Option<OfKey<'s>> {
        let in_memory = self.changes.peek().map(|(key, _)| *key);
        let in_runs = self.runs.iter_mut();
        let in_runs = in_runs.filter_map(|run| run.peek().map(|entry| entry.key));
        let key = in_memory.into_iter().chain(in_runs).min()?;
        let mut all = Vec::new();
        if let Some((_, versions)) = self.changes.next_if(|(changed, _)| *changed == key) {
            let versions = versions.newest_first();
            all.extend(versions.map(|version| (version.lsn, version.value)));
        }
        for run in &mut self.runs {
            while let Some(entry) = run.next_if(|entry| entry.key == key) {
                all.push((entry.lsn, entry.value));
            }
        }
        Some((key, all))
    }
}
