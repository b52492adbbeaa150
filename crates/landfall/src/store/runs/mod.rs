//! Runs: changes of a group that are on the disk, and in none of its leaves yet.
//!
//! A run has entries in the order of their keys as leaves have, in *blocks*, and removals too. What a run has of a key counts
//! more than what older runs and leaves have. A read asks the fingerprints, which are in memory once anything of the run was
//! looked for, and reads a block only if one of them is right.
//!
//! Invariants: the leaves of a group that has runs stay as they are until all its runs are merged into them; runs of a group are
//! the newest first, and of older ones none has a lower tier.
//!
//! - `entry` is what is written of a run besides its blocks;
//! - `write` writes one, of changes and of newer runs, by tiers;
//! - `sources` are all that a group's leaves are to be given, in the order of keys;
//! - `budget` says which groups get a run, and which are merged;
//! - `auto` chooses how much all runs may take;
//! - `expected` is the formula by which bytes that are written depend on that.

pub(crate) mod auto;
pub(super) mod budget;
pub(crate) mod entry;
pub(crate) mod expected;
#[cfg(all(test, target_os = "linux"))]
mod paying;
#[cfg(all(test, target_os = "linux"))]
mod public;
pub(super) mod sources;
pub(super) mod write;

use std::ops::{Bound, Range};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use self::entry::{BlockEntry, RunEntry, decode_index, fingerprint};
use super::extents::Extent;
use super::leaf::Leaf;
use super::page::Pointer;
use super::piece::Most;
use super::tree::{Leaves, Page, Slot};
use crate::Error;
use crate::environment::Environment;

/// The runs of a group, the newest first.
pub(crate) type Runs<E> = Vec<Arc<Run<E>>>;

/// Bytes of the data file that runs take.
pub(crate) fn bytes_of<E: Environment>(runs: &[Arc<Run<E>>]) -> u64 {
    runs.iter().map(|run| run.entry.bytes).sum()
}

/// Who reads pages of the data file.
pub(crate) trait Reader<E: Environment> {
    fn granule(&self) -> u64;

    /// A block of a run, which may be in memory.
    fn block(&self, page: &Arc<Page<E>>) -> Result<Arc<Leaf>, Error>;

    /// What the index of a run holds.
    fn index(&self, pointer: Pointer) -> Result<Vec<u8>, Error>;

    /// A page makes no sense.
    fn corrupt(&self, pointer: Pointer, what: &str) -> Error;
}

pub(crate) struct Run<E: Environment> {
    pub entry: RunEntry,
    extent: Arc<Extent<E>>,
    index: OnceLock<Arc<Index<E>>>,
}

/// What of a run is of a range of keys.
pub(crate) struct Part {
    pub blocks: Vec<Arc<Leaf>>,
    /// If there may be more: the last key, from the end where this begins, that is here.
    pub last: Option<Vec<u8>>,
}

/// What is known of a run's blocks.
pub(crate) struct Index<E: Environment> {
    pub blocks: Arc<Leaves<E>>,
    fingerprints: Vec<Box<[u16]>>,
    extent: Arc<Extent<E>>,
    /// Bytes of memory that fingerprints take.
    memory: usize,
}

impl<E: Environment> Index<E> {
    fn new(extent: &Arc<Extent<E>>, blocks: Vec<BlockEntry>) -> Arc<Index<E>> {
        let mut slots = Vec::with_capacity(blocks.len());
        let mut fingerprints = Vec::with_capacity(blocks.len());
        for block in blocks {
            slots.push(Slot {
                low: block.low,
                page: Page::in_extent(block.pointer, extent.clone()),
                keys: block.fingerprints.len() as u32,
            });
            fingerprints.push(block.fingerprints);
        }
        // With what it takes to allocate them.
        let each = fingerprints.iter().map(|prints| 2 * prints.len() + 32);
        let memory = each.sum();
        extent.space.index.fetch_add(memory, Ordering::Relaxed);
        Arc::new(Index {
            blocks: Leaves::new(slots),
            fingerprints,
            extent: extent.clone(),
            memory,
        })
    }
}

impl<E: Environment> Drop for Index<E> {
    fn drop(&mut self) {
        let index = &self.extent.space.index;
        index.fetch_sub(self.memory, Ordering::Relaxed);
    }
}

impl<E: Environment> Index<E> {
    /// The blocks that may have keys of a range.
    fn of_keys(&self, range: (Bound<&[u8]>, Bound<&[u8]>)) -> Range<usize> {
        let first = match range.0 {
            Bound::Unbounded => 0,
            Bound::Included(key) | Bound::Excluded(key) => self.blocks.of_key(key).unwrap_or(0),
        };
        let end = match range.1 {
            Bound::Unbounded => self.blocks.len(),
            Bound::Included(key) => self.blocks.of_key(key).map_or(0, |block| block + 1),
            Bound::Excluded(key) => self.blocks.last_before(key).map_or(0, |block| block + 1),
        };
        first..end
    }

    /// The block with which [`part`](Run::part) begins, if there is one.
    pub fn first_of(
        &self,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        backwards: bool,
    ) -> Option<&Arc<Page<E>>> {
        let mut places = self.of_keys(range);
        let place = if backwards {
            places.next_back()
        } else {
            places.next()
        };
        place.map(|place| &self.blocks[place].page)
    }
}

impl<E: Environment> Run<E> {
    /// One that is on the disk, in this extent.
    pub fn new(entry: RunEntry, extent: Extent<E>) -> Arc<Run<E>> {
        debug_assert_eq!(extent.bytes, entry.bytes);
        Arc::new(Run {
            entry,
            extent: Arc::new(extent),
            index: OnceLock::new(),
        })
    }

    /// One that was just written.
    fn written(entry: RunEntry, extent: Extent<E>, blocks: Vec<BlockEntry>) -> Arc<Run<E>> {
        let run = Run::new(entry, extent);
        let _ = run.index.set(Index::new(&run.extent, blocks));
        run
    }

    /// Reads it, unless it is in memory.
    pub fn index(&self, reader: &(impl Reader<E> + ?Sized)) -> Result<Arc<Index<E>>, Error> {
        if let Some(index) = self.index.get() {
            return Ok(index.clone());
        }
        let read = self.index_on_disk(reader)?;
        // Others may have read it meanwhile.
        Ok(self.index.get_or_init(|| read).clone())
    }

    /// Reads it as it is on the disk, and does not keep it.
    pub fn index_on_disk(
        &self,
        reader: &(impl Reader<E> + ?Sized),
    ) -> Result<Arc<Index<E>>, Error> {
        let blocks = self.read_index(reader)?;
        Ok(Index::new(&self.extent, blocks))
    }

    fn read_index(&self, reader: &(impl Reader<E> + ?Sized)) -> Result<Vec<BlockEntry>, Error> {
        let pointer = self.entry.index;
        let raw = reader.index(pointer)?;
        let blocks = decode_index(&raw, reader.granule(), &self.entry);
        blocks.ok_or_else(|| reader.corrupt(pointer, "what is in the page makes no sense"))
    }

    /// What a key was given at a commit, if that is here; `Some(None)`: it was removed.
    pub fn find(
        &self,
        reader: &(impl Reader<E> + ?Sized),
        key: &[u8],
        at: u64,
    ) -> Result<Option<Option<Vec<u8>>>, Error> {
        let index = self.index(reader)?;
        let block = index.blocks.of_key(key);
        let print = fingerprint(key);
        let block = block.filter(|block| index.fingerprints[*block].contains(&print));
        let Some(block) = block else {
            return Ok(None);
        };
        let leaf = reader.block(&index.blocks[block].page)?;
        let found = leaf.find(key, at);
        Ok(found.map(|entry| entry.value.map(<[u8]>::to_vec)))
    }

    /// The blocks that have keys of a range, from one end on, until their entries of it fill a piece.
    pub fn part(
        &self,
        reader: &(impl Reader<E> + ?Sized),
        range: (Bound<&[u8]>, Bound<&[u8]>),
        mut most: Most,
        backwards: bool,
    ) -> Result<Part, Error> {
        let index = self.index(reader)?;
        let blocks = &index.blocks;
        let Range { start: first, end } = index.of_keys(range);
        let mut found = Vec::new();
        for step in first..end {
            let place = if backwards {
                end - 1 - (step - first)
            } else {
                step
            };
            let leaf = reader.block(&blocks[place].page)?;
            let entries = leaf.entries_of(range.0, range.1);
            // With a block that has nothing of the range no piece can end.
            let has_some = !entries.is_empty();
            let is_filled = has_some && most.is_filled_by(entries.len(), leaf.memory());
            let last = if backwards {
                entries.clone().next()
            } else {
                entries.clone().next_back()
            };
            let last = last.and_then(|last| Some(leaf.entry(last)?.key.to_vec()));
            found.push(leaf);
            if is_filled && step + 1 < end {
                if backwards {
                    found.reverse();
                }
                return Ok(Part {
                    blocks: found,
                    last,
                });
            }
        }
        if backwards {
            found.reverse();
        }
        Ok(Part {
            blocks: found,
            last: None,
        })
    }
}
