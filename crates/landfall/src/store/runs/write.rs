//! Writing a run: what was frozen of a group, and with it the newest runs, if there are many of their tier.
//!
//! So that a group never has more than `MOST_OF_TIER - 1` runs of a tier, and each change is written again only once for each
//! tier.

use std::ops::Bound;
use std::sync::Arc;

use super::super::choose::Effort;
use super::super::counters::Written;
use super::super::data_file::Pages;
use super::super::groups::{Chosen, Failure, Piece, Writing};
use super::super::leaf::Leaf;
use super::super::merge::{Builder, Shape};
use super::super::page::{Kind, Sealed};
use super::super::shared::Shared;
use super::entry::{BlockEntry, RunEntry, encode_index, fingerprint};
use super::sources::Sources;
use super::{Run, Runs};
use crate::environment::{Buffer, Environment, File, planted};
use crate::{Compression, Error};

/// Runs of a tier that are written as one of the next.
#[cfg(not(test))]
pub(super) const MOST_OF_TIER: usize = 8;
#[cfg(test)]
pub(super) const MOST_OF_TIER: usize = 3;

/// How many of these runs, the newest first, go into the next one that is written, and the tier of that.
fn taken(tiers: impl Iterator<Item = u32> + Clone) -> (usize, u32) {
    let (mut taken, mut tier) = (0, 0);
    loop {
        let same = tiers.clone().skip(taken);
        let same = same.take_while(|one| *one == tier).count();
        if same + 1 < MOST_OF_TIER {
            return (taken, tier);
        }
        taken += same;
        tier += 1;
    }
}

impl<E: Environment> Shared<E> {
    /// Writes what was frozen of a group as a run.
    pub(in super::super) fn write_run(
        &self,
        chosen: &Chosen<E>,
        writing: &Writing<E>,
        written: &mut Written,
    ) -> Result<Piece<E>, Failure> {
        assert!(
            chosen.frozen.removed().is_empty() || planted!(self.environment, RunForgetsRanges),
            "a run has no ranges that were removed"
        );
        let (taken, tier) = match writing.order.effort {
            Effort::Usual { .. } => taken(chosen.runs.iter().map(|run| run.entry.tier)),
            // Those that there are take their space until the checkpoint is durable.
            Effort::Least | Effort::Keyspaces | Effort::Removals => (0, 0),
        };
        let (newer, older) = chosen.runs.split_at(taken);
        let newer = newer.iter().map(|run| self.read_run(run, |_, _| false));
        let sources = Sources {
            changes: &chosen.frozen,
            runs: newer
                .collect::<Result<_, Error>>()
                .map_err(Failure::to_read)?,
            oldest: None,
            drops_parts: false,
        };
        let options = &chosen.keyspace.options;
        let shape = Shape {
            leaf_bytes: options.leaf_bytes as usize,
            most_bytes: usize::MAX,
            snapshots: if planted!(self.environment, RunForgetsSnapshots) {
                &[]
            } else {
                &writing.order.snapshots
            },
            keeps_removals: !planted!(self.environment, RunDropsRemovals),
            drops_removals: false,
            ignores_cuts: false,
        };
        let mut builder = Builder::new(shape);
        for (key, versions) in sources.within(Bound::Unbounded, Bound::Unbounded) {
            builder.add(key, &versions);
        }
        let number = writing.order.number;
        let low = Arc::default();
        let blocks = builder.finish(&low);
        let run = self.put_run(blocks, options.compression, number, tier)?;
        written.runs += 1;
        match tier {
            0 => written.run_bytes += run.entry.bytes,
            _ => written.tier_bytes += run.entry.bytes,
        }
        let mut runs: Runs<E> = vec![run];
        runs.extend(older.iter().cloned());
        if planted!(self.environment, TierForgetsOlder) && taken > 0 {
            runs.truncate(1);
        }
        if planted!(self.environment, TierBehindOlder) && taken > 0 {
            runs.rotate_left(1);
        }
        let spans = chosen.frozen.span.into_iter();
        let watermark = spans.map(|(_, last)| last + 1).max();
        let watermark = if planted!(self.environment, RunWatermarkTooHigh) {
            watermark.map(|watermark| watermark + 1)
        } else {
            watermark
        };
        Ok(Piece {
            low: chosen.low.clone(),
            leaves: chosen.leaves.clone(),
            runs: Arc::new(runs),
            page: chosen.page.clone(),
            watermark: watermark.unwrap_or(chosen.watermark),
        })
    }

    /// Writes blocks, and behind them what leads to them.
    fn put_run(
        &self,
        blocks: impl Iterator<Item = (Arc<[u8]>, Vec<u8>, u32)>,
        compression: Compression,
        number: u64,
        tier: u32,
    ) -> Result<Arc<Run<E>>, Error> {
        let store = self.log.shared.log;
        let mut sealed = Vec::new();
        let mut list = Vec::new();
        let (mut entries, mut removals) = (0, 0);
        for (_, raw, _) in blocks {
            let page = Sealed::new(Kind::Leaf, compression, store, number, &raw)?;
            let leaf = Leaf::decode(raw).ok_or_else(|| Error::broken("a block is none"))?;
            let first = leaf.entry(0);
            let Some(first) = first else { continue };
            removals += leaf.entries().filter(|one| one.value.is_none()).count() as u64;
            let prints = leaf.entries().map(|entry| fingerprint(entry.key));
            let prints: Box<[u16]> = prints.collect();
            entries += prints.len() as u64;
            list.push(BlockEntry {
                low: first.key.into(),
                pointer: page.pointer(),
                fingerprints: prints,
            });
            sealed.push(page);
        }
        let index = Sealed::new(
            Kind::Run,
            Compression::None,
            store,
            number,
            &encode_index(&list),
        )?;
        let padded = |page: &Sealed| page.len().next_multiple_of(self.granule);
        let bytes = sealed.iter().map(padded).sum::<u64>() + padded(&index);
        let extent = self.take_extent(bytes)?;
        let mut pages = Pages::new();
        let mut offset = extent.start;
        for (page, block) in sealed.into_iter().zip(&mut list) {
            let behind = offset + padded(&page);
            let (pointer, bytes) = page.at(offset);
            block.pointer = pointer;
            pages.push((offset, bytes));
            offset = behind;
        }
        if planted!(self.environment, FingerprintOfOther)
            && let Some(print) = list[0].fingerprints.first_mut()
        {
            *print = !*print;
        }
        let index = Sealed::new(
            Kind::Run,
            Compression::None,
            store,
            number,
            &encode_index(&list),
        )?;
        let (index, bytes_of_index) = index.at(offset);
        pages.push((offset, bytes_of_index));
        self.write_pages(&mut pages)?;
        let entry = RunEntry {
            index,
            bytes,
            tier,
            entries,
            removals,
        };
        debug_assert_eq!(entry.start(self.granule), extent.start);
        Ok(Run::written(entry, extent, list))
    }

    /// Reads all of a run: its blocks in their order, but those whose keys, from one on and before another, are removed. Nothing of
    /// these is read: they may be damaged.
    pub(in super::super) fn read_run(
        &self,
        run: &Run<E>,
        is_removed: impl Fn(&[u8], Option<&[u8]>) -> bool,
    ) -> Result<Vec<Leaf>, Error> {
        let index = run.index(self)?;
        let next_of = |place: usize| index.blocks.get(place + 1).map(|next| &*next.low);
        let is_kept = |place: usize| !is_removed(&index.blocks[place].low, next_of(place));
        let kept: Vec<usize> = (0..index.blocks.len())
            .filter(|place| is_kept(*place))
            .collect();
        let data = self.data.get().ok_or(Error::Closed)?;
        let is_right = |place: usize, leaf: &Leaf| {
            let low = &*index.blocks[place].low;
            leaf.entry(0).is_some_and(|first| first.key == low)
                && next_of(place).is_none_or(|next| leaf.last_key().is_some_and(|last| last < next))
        };
        let require_right = |place: usize, leaf: Leaf| {
            if is_right(place, &leaf) {
                return Ok(leaf);
            }
            let what = "a block has keys that belong elsewhere";
            Err(data.corrupt(index.blocks[place].page.pointer, what))
        };
        let (Some(first), Some(last)) = (kept.first(), kept.last()) else {
            return Ok(Vec::new());
        };
        let page_of = |place: usize| &index.blocks[place].page;
        let start = page_of(*first).pointer.offset;
        let last = page_of(*last).pointer;
        let mut buffer = Buffer::new((last.offset + last.extent(self.granule) - start) as usize);
        let whole = 0..buffer.capacity();
        if let Err(error) = data.file.read(buffer.bytes_mut(whole.clone()), start) {
            if kept.len() == index.blocks.len() {
                return Err(Error::io("read a run of the store")(error));
            }
            // It may be of what is not needed.
            let alone = |place: usize| require_right(place, self.read_leaf(page_of(place))?);
            return kept.into_iter().map(alone).collect();
        }
        let bytes = buffer.bytes(whole);
        let decode = |place: usize| {
            let pointer = page_of(place).pointer;
            let own = &bytes[(pointer.offset - start) as usize..];
            require_right(place, self.decode_leaf(pointer, own)?)
        };
        kept.into_iter().map(decode).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_runs_of_a_tier_become_one_of_the_next() {
        let taken = |tiers: &[u32]| taken(tiers.iter().copied());
        assert_eq!(taken(&[]), (0, 0));
        assert_eq!(taken(&[0]), (0, 0));
        assert_eq!(taken(&[0, 0]), (2, 1));
        assert_eq!(taken(&[0, 0, 1]), (2, 1));
        assert_eq!(taken(&[0, 0, 1, 1]), (4, 2));
        assert_eq!(taken(&[0, 0, 1, 1, 2]), (4, 2));
        assert_eq!(taken(&[0, 1, 1, 2]), (0, 0));
        assert_eq!(taken(&[1, 1]), (0, 0));
        // What another version left.
        assert_eq!(taken(&[0, 0, 0, 0, 1]), (4, 1));
    }
}
