//! How a checkpoint writes its groups: each by itself, two at a time.
//!
//! What fails ends it. A group with a leaf or a run that is damaged, or cannot be read, is left out, and the others are written.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::changes::Changes;
use super::choose::Effort;
use super::counters::Written;
use super::data_file::Pages;
use super::leaf::keys_of;
use super::merge::{Merged, New, Shape, merge};
use super::options::KeyspaceOptions;
use super::pace::{Pace, Steps};
use super::page::{self, Kind, Sealed, room_at_home};
use super::protection::Protection;
use super::read_ahead::ReadAhead;
use super::removed::Removed;
use super::root::put_leaves;
use super::runs::budget::How;
use super::runs::sources::Sources;
use super::runs::{Runs, bytes_of};
use super::shared::Shared;
use super::tree::{Group, Keyspace, Leaves, Page, Slot};
use super::verify::{entries_between, misplaced};
use crate::environment::{Environment, planted};
use crate::{Compression, Error};

/// Leaves of a group: one that has more is cut into groups of half as many.
#[cfg(not(test))]
const MOST_LEAVES: usize = 128;
#[cfg(test)]
const MOST_LEAVES: usize = 4;
/// Leaves of a group that may have runs, at the most: the larger it is, the larger are its runs.
#[cfg(not(test))]
const MOST_OF_BUFFERED: usize = 4096;
#[cfg(test)]
const MOST_OF_BUFFERED: usize = 8;
/// What part of the memory leaves take at the most that wait to be written together, or were read before they are asked for: each for each
/// group that is being written. It comes on top of what may be used.
const PART_AT_HAND: usize = 64;
/// Bytes that they take at the most.
#[cfg(not(test))]
const MOST_AT_HAND: usize = 1 << 20;
#[cfg(test)]
const MOST_AT_HAND: usize = 1 << 10;

/// Keys of leaves that are written for each key that they are given, up to which runs would spare nothing.
const DENSE: u64 = 3;

/// A group that is being written.
pub(super) struct Chosen<E: Environment> {
    pub keyspace: Arc<Keyspace<E>>,
    pub low: Arc<[u8]>,
    /// The first key behind it.
    pub high: Option<Arc<[u8]>>,
    pub group: Arc<E::RwLock<Group<E>>>,
    pub leaves: Arc<Leaves<E>>,
    pub runs: Arc<Runs<E>>,
    pub page: Option<Arc<Page<E>>>,
    pub watermark: u64,
    pub how: How,
    /// It is merged because runs are too many.
    pub is_debt: bool,
    pub frozen: Arc<Changes>,
    /// What was flushed of it before.
    pub flushed: Option<(u64, u64)>,
    /// Its last leaf is not written at home.
    pub is_widened: bool,
}

impl<E: Environment> Chosen<E> {
    /// Bytes that writing it takes, about; of leaves without runs only what they are given counts, as if each byte of all cost
    /// the same.
    pub fn work(&self) -> u64 {
        let of_runs = match self.how {
            How::Merge if !self.runs.is_empty() => self.leaves.bytes + bytes_of(&self.runs),
            _ => 0,
        };
        self.frozen.bytes as u64 + of_runs
    }

    /// Whether it may have runs, or has: without them it is written as takes the least space in any case.
    pub fn has_choice(&self, percent: u8) -> bool {
        !self.keyspace.options.in_place && (percent > 0 || !self.runs.is_empty())
    }

    /// Where a leaf may be written again that has the same keys: what that destroys is the same keys, as they were, in the last
    /// durable checkpoint as well.
    fn home(&self, of: Option<&Arc<Page<E>>>) -> Option<Arc<Page<E>>> {
        let page = of.filter(|page| page.pointer.home.is_some())?;
        let last = self.leaves.last().filter(|_| self.is_widened);
        let is_widened = last.is_some_and(|last| Arc::ptr_eq(&last.page, page));
        (!is_widened).then(|| page.clone())
    }
}

/// What is written of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Leaves that have changes, wherever, and where all of them are.
    Everything,
    /// Leaves at their homes: groups of which all can be. Where they are stays as it is.
    Homes,
}

/// What a group is cut into, or all of it.
pub(super) struct Piece<E: Environment> {
    pub low: Arc<[u8]>,
    pub leaves: Arc<Leaves<E>>,
    pub runs: Arc<Runs<E>>,
    pub page: Option<Arc<Page<E>>>,
    pub watermark: u64,
}

/// Of each group that was chosen what it is now; `None`: it stays as it was, since something of it is damaged, or one has no home.
pub(super) type Pieces<E> = Vec<Option<Vec<Piece<E>>>>;

/// Groups that were written.
pub(super) struct Groups<E: Environment> {
    pub pieces: Pieces<E>,
    pub written: Written,
}

/// Why a group is not written.
pub(super) enum Failure {
    /// Something of it is damaged, the disk cannot read it, or a key has more versions that somebody reads than a leaf can have,
    /// perhaps for now: others can be written all the same.
    Damage(Error),
    Other(Error),
}

/// Whether it may be that some groups cannot be read.
fn is_damage(error: &Error) -> bool {
    // Of a log that lost its end it may be what nobody knows of any more.
    matches!(
        error,
        Error::Corrupt { .. } | Error::Io { .. } | Error::LogLost { .. }
    )
}

/// Whether it may be that some groups cannot be written, and others can.
pub(super) fn is_of_groups(error: &Error) -> bool {
    is_damage(error) || matches!(error, Error::TooLarge { .. })
}

impl Failure {
    /// Something of it was to be read.
    pub fn to_read(error: Error) -> Failure {
        if is_damage(&error) {
            Failure::Damage(error)
        } else {
            Failure::Other(error)
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::TooLarge { .. } => Failure::Damage(error),
            error => Failure::Other(error),
        }
    }
}

/// How groups are written.
pub(super) struct Order {
    /// As of which commits somebody reads, in their order.
    pub snapshots: Vec<u64>,
    /// The number of the checkpoint.
    pub number: u64,
    /// That of leaves at home: nothing that was there before has as high a one.
    pub generation: u64,
    /// What keeps leaves whole.
    pub protection: Protection,
    pub scope: Scope,
    pub effort: Effort,
    /// The share that runs might take when groups were chosen.
    pub percent: u8,
}

/// The groups of a checkpoint while they are written.
pub(super) struct Writing<E: Environment> {
    pub chosen: Vec<Chosen<E>>,
    pub order: Order,
    /// The newest commit that any of the groups has a change of; 0: they have none.
    pub newest: u64,
    pace: Pace,
    progress: E::Mutex<Progress<E>>,
}

struct Progress<E: Environment> {
    /// What groups that were begun take.
    begun: u64,
    pieces: Pieces<E>,
    written: Written,
    damage: Option<Error>,
    /// Changes of those that are damaged were to be written.
    is_damage_of_changes: bool,
}

impl<E: Environment> Shared<E> {
    pub(super) fn writing(&self, chosen: Vec<Chosen<E>>, order: Order) -> Writing<E> {
        let spans = chosen.iter().filter_map(|chosen| chosen.frozen.span);
        Writing {
            newest: spans.map(|(_, last)| last).max().unwrap_or(0),
            pace: Pace {
                begin: self.changes.load(Ordering::Relaxed),
                most: self.most_changes(),
                work: chosen.iter().map(Chosen::work).sum(),
            },
            progress: E::mutex(Progress {
                begun: 0,
                pieces: chosen.iter().map(|_| None).collect(),
                written: Written::default(),
                damage: None,
                is_damage_of_changes: false,
            }),
            chosen,
            order,
        }
    }

    /// Leaves that a group has at the most. One that may have runs has as many as a quarter of the memory holds, so that reading
    /// its runs takes little of that.
    fn most_leaves(&self, options: &KeyspaceOptions) -> usize {
        if self.buffer_percent() == 0 || options.in_place {
            return MOST_LEAVES;
        }
        let most = self.options.memory_bytes / 4 / options.leaf_bytes as usize;
        most.clamp(MOST_LEAVES, MOST_OF_BUFFERED)
    }

    /// Bytes of leaves that wait to be written together, or were read before they are asked for.
    pub(super) fn at_hand(&self) -> u64 {
        (self.options.memory_bytes / PART_AT_HAND).min(MOST_AT_HAND) as u64
    }

    /// Writes all groups, by two threads: one waits for the disk while the other merges. It fails if all of them are damaged, and one
    /// has changes, unless others are written elsewhere next.
    pub(super) fn write_groups(
        self: &Arc<Self>,
        writing: &Arc<Writing<E>>,
    ) -> Result<Groups<E>, Error> {
        let (own, theirs) = (self.clone(), writing.clone());
        let write = move |index| own.write_one(&theirs, index);
        let groups = writing.chosen.len();
        let written = self.helper.together(&self.environment, groups, write);
        let mut progress = E::lock(&writing.progress);
        // A helper that has nothing left to do may still have all of it: what was written in vain is free again now.
        let pieces = std::mem::take(&mut progress.pieces);
        written?;
        match progress.damage.take() {
            // Of those that have no homes others may be written all the same.
            Some(error)
                if progress.is_damage_of_changes
                    && writing.order.scope == Scope::Everything
                    && pieces.iter().all(Option::is_none) =>
            {
                Err(error)
            }
            _ => Ok(Groups {
                pieces,
                written: progress.written,
            }),
        }
    }

    /// Writes one of them.
    pub(super) fn write_one(
        self: &Arc<Self>,
        writing: &Writing<E>,
        index: usize,
    ) -> Result<(), Error> {
        let chosen = &writing.chosen[index];
        let mut steps = Steps::new(chosen.work(), chosen.leaves.len());
        let mut written = Written::default();
        let made = self.write_group(chosen, writing, &mut steps, &mut written);
        self.tell(writing, steps.rest());
        let keys = chosen.frozen.range(Bound::Unbounded, Bound::Unbounded);
        written.given_keys = keys.count() as u64;
        let of_runs = chosen.runs.iter().map(|run| run.entry.entries);
        let given = written.given_keys + of_runs.sum::<u64>();
        if chosen.how == How::Merge && written.leaf_keys <= DENSE * given {
            written.dense_given_keys = written.given_keys;
            written.dense_leaf_bytes = written.leaf_bytes;
        }
        if let Ok(Some(pieces)) = &made
            && chosen.how == How::Merge
        {
            let after: u64 = pieces.iter().map(|piece| piece.leaves.keys).sum();
            let (new, given) = (after.saturating_sub(chosen.leaves.keys), written.given_keys);
            if 8 * new >= 7 * given && 8 * written.leaf_keys <= 9 * given {
                written.appended_keys = given;
            }
        }
        let mut progress = E::lock(&writing.progress);
        progress.written.add(written);
        match made {
            Err(Failure::Damage(error)) => {
                let keyspace = &*chosen.keyspace.name;
                tracing::warn!(%error, keyspace, "the changes of a group cannot be written into its leaves");
                let mut group = E::exclude(&chosen.group);
                // What was removed meanwhile may be what is damaged: it is tried again.
                if group.active.removed().is_empty() {
                    group.damage = Some(error.clone());
                }
                drop(group);
                progress.damage = Some(error);
                progress.is_damage_of_changes |= !chosen.frozen.is_empty();
                Ok(())
            }
            Err(Failure::Other(error)) => Err(error),
            Ok(pieces) => {
                progress.pieces[index] = pieces;
                Ok(())
            }
        }
    }

    /// Those who commit may go on as far as so much of the work is.
    fn tell(&self, writing: &Writing<E>, more: u64) {
        if more > 0 {
            let mut progress = E::lock(&writing.progress);
            progress.begun += more;
            self.set_limit(writing.pace.limit(progress.begun));
        }
    }

    /// Writes the leaves of a group that have changes, and where all of them are; or those at their homes alone. `None`: one of
    /// them has no home.
    fn write_group(
        self: &Arc<Self>,
        chosen: &Chosen<E>,
        writing: &Writing<E>,
        steps: &mut Steps,
        written: &mut Written,
    ) -> Result<Option<Vec<Piece<E>>>, Failure> {
        if chosen.how == How::Run {
            self.tell(writing, steps.rest());
            return Ok(Some(vec![self.write_run(chosen, writing, written)?]));
        }
        let options = &chosen.keyspace.options;
        let Order {
            number, generation, ..
        } = writing.order;
        let (low, high) = (&chosen.low, chosen.high.as_deref());
        let oldest = writing.order.snapshots.first().copied();
        let oldest = oldest.filter(|_| !planted!(self.environment, RangeForgetsOlder));
        let removed = chosen.frozen.removed().of_keys(low, high, oldest);
        // Of what is all removed nothing is read.
        let runs = chosen.runs.iter().filter(|_| removed != Removed::All);
        let is_removed = |low: &[u8], next: Option<&[u8]>| {
            let removed = chosen.frozen.removed();
            removed.of_keys(low, next.or(high), oldest) == Removed::All
        };
        let runs = runs.map(|run| self.read_run(run, is_removed));
        let runs = runs.collect::<Result<Vec<_>, Error>>();
        let mut runs = runs.map_err(Failure::to_read)?;
        if planted!(self.environment, MergeForgetsRun) {
            runs.truncate(1);
        }
        let keeps_runs = planted!(self.environment, MergeKeepsRuns);
        if keeps_runs {
            runs.clear();
        }
        let sources = Sources {
            changes: &chosen.frozen,
            runs,
            oldest,
            drops_parts: planted!(self.environment, RangeDropsLeaf),
        };
        let (leaf_bytes, most_bytes) = if options.in_place {
            let room = room_at_home(options.leaf_bytes);
            (room, room)
        } else {
            (options.leaf_bytes as usize, usize::MAX)
        };
        let shape = Shape {
            leaf_bytes,
            most_bytes,
            snapshots: &writing.order.snapshots,
            keeps_removals: false,
            drops_removals: planted!(self.environment, DropRemoval),
            ignores_cuts: planted!(self.environment, HomeOfCutLeaf),
        };
        let leaves_before = &chosen.leaves;
        let mut ahead = ReadAhead::new(self, (low, leaves_before, high), &sources);
        let read = |page: &Arc<Page<E>>, low: &[u8], high: Option<&[u8]>| {
            let leaf = ahead.leaf(page).map_err(Failure::to_read)?;
            // Otherwise leaves were made that nobody finds.
            match entries_between(&leaf, Some(low), high) {
                Some(_) => Ok(leaf),
                None => Err(Failure::Damage(misplaced(self.data.get(), page))),
            }
        };
        let mut pages = Pages::new();
        let mut waiting = 0;
        let mut leaves = Vec::with_capacity(chosen.leaves.len());
        let is_flush = writing.order.scope == Scope::Homes;
        let mut emit = |leaf| {
            self.tell(writing, steps.leaf());
            leaves.push(match leaf {
                Merged::Kept(slot) => slot,
                Merged::New(New { low, raw, keys, of }) => {
                    written.leaves += 1;
                    written.leaf_keys += u64::from(keys);
                    let is_shadow = writing.order.protection == Protection::Shadow;
                    let home = chosen.home(of.as_ref()).filter(|_| !is_shadow);
                    let for_home = || {
                        let store = self.log.shared.log;
                        let written_at = page::Written {
                            generation,
                            newest: writing.newest,
                        };
                        Sealed::for_home(options.leaf_bytes, store, written_at, &raw)
                    };
                    let sealed = options.in_place.then(for_home).flatten();
                    let keep_filter = |page: &Page<E>| match of.as_deref() {
                        Some(of) if planted!(self.environment, FilterOfBefore) => {
                            page.take_filter_of(of);
                        }
                        _ => page.keep_filter(keys as usize, keys_of(&raw), self.most_filters()),
                    };
                    let page = match (sealed, home) {
                        (Some(sealed), Some(home)) => {
                            let (pointer, bytes) = sealed.at(home.pointer.offset);
                            let page = (pointer.offset, bytes);
                            self.write_home(page, writing.order.protection, writing.newest)?;
                            written.leaf_bytes += pointer.extent(self.granule);
                            let page = home.again(pointer);
                            keep_filter(&page);
                            leaves.push(Slot { low, page, keys });
                            return Ok(());
                        }
                        (Some(sealed), None) => self.settle(sealed, &mut pages)?,
                        (None, _) => {
                            let compression = options.compression;
                            self.place(Kind::Leaf, compression, number, &raw, &mut pages)?
                        }
                    };
                    keep_filter(&page);
                    let extent = page.pointer.extent(self.granule);
                    written.leaf_bytes += extent;
                    if !chosen.runs.is_empty() {
                        written.merge_bytes += extent;
                    }
                    waiting += extent;
                    if waiting > self.at_hand() {
                        self.write_pages(&mut std::mem::take(&mut pages))?;
                        waiting = 0;
                    }
                    Slot { low, page, keys }
                }
            });
            Ok(())
        };
        let frozen = &chosen.frozen;
        if is_flush {
            let mut all = Vec::with_capacity(leaves_before.len());
            let mut keep = |leaf| {
                all.push(leaf);
                Ok(())
            };
            merge(low, leaves_before, high, &sources, shape, read, &mut keep)?;
            let is_at_home = |leaf: &Merged<E>| match leaf {
                Merged::Kept(_) => true,
                Merged::New(New { raw, of, .. }) => {
                    chosen.home(of.as_ref()).is_some() && raw.len() <= most_bytes
                }
            };
            // One that got empty is gone, and its keys belong to the one before.
            let is_emptied = all.len() < leaves_before.len();
            let is_allowed = !is_emptied || planted!(self.environment, FlushEmptied);
            if !is_allowed || !all.iter().all(is_at_home) {
                return Ok(None);
            }
            all.into_iter().try_for_each(&mut emit)?;
            debug_assert!(pages.is_empty());
            return Ok(Some(vec![Piece {
                low: chosen.low.clone(),
                leaves: Leaves::new(leaves),
                runs: Arc::default(),
                page: None,
                watermark: 0,
            }]));
        }
        merge(low, leaves_before, high, &sources, shape, read, &mut emit)?;
        let spans = [frozen.span, chosen.flushed].into_iter().flatten();
        let watermark = spans.map(|(_, last)| last + 1).max().unwrap_or(0);
        let watermark = if planted!(self.environment, WatermarkTooHigh) {
            watermark + 1
        } else {
            watermark
        };
        let watermark = watermark.max(chosen.watermark);
        let most = self.most_leaves(options);
        let most = if leaves.len() > most { most / 2 } else { most };
        let mut pieces = Vec::new();
        let mut rest = &leaves[..];
        loop {
            let (leaves, behind) = rest.split_at(rest.len().min(most));
            let low = match leaves.first() {
                Some(first) if !pieces.is_empty() => first.low.clone(),
                _ => chosen.low.clone(),
            };
            let page = if leaves.is_empty() {
                None
            } else {
                let mut raw = Vec::new();
                let list = leaves.iter();
                let list = list.map(|slot| (&*slot.low, slot.page.pointer, slot.keys));
                put_leaves(&mut raw, self.granule, list);
                let page = self.place(Kind::Group, Compression::Lz4, number, &raw, &mut pages)?;
                written.group_bytes += page.pointer.extent(self.granule);
                Some(page)
            };
            pieces.push(Piece {
                low,
                leaves: Leaves::new(leaves.to_vec()),
                runs: if keeps_runs && pieces.is_empty() {
                    chosen.runs.clone()
                } else {
                    Arc::default()
                },
                page,
                watermark,
            });
            rest = behind;
            if rest.is_empty() {
                break;
            }
        }
        self.write_pages(&mut pages)?;
        written.merges += u64::from(!chosen.runs.is_empty());
        Ok(Some(pieces))
    }
}
