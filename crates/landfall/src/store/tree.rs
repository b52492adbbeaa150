//! The tree in memory: keyspaces, their groups of leaves, and what of each group is in no leaf yet.
//!
//! A keyspace is cut into groups by key, and a group into leaves. Where each leaf is stands in memory; what is in it is read
//! when somebody asks. A group has its changes: those that are *active* come in, those that are *frozen* are being
//! written by a checkpoint, and those in *runs* are on the disk. Whoever looks for a key takes the newest: active, frozen, the
//! newest run, and so on to the leaf.
//!
//! Locks: the list of groups is held to look at while a group's lock is taken, so that no group is cut meanwhile by who holds
//! the list to change it. Of several groups the locks are taken in the order of keys, and only by who commits.

use std::ops::{Bound, Deref};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::changes::{Changes, Versions};
use super::extents::Extent;
use super::filter::Filter;
use super::gaps::Gaps;
use super::heads::Heads;
use super::iterate::Bounds;
use super::leaf::Leaf;
use super::options::KeyspaceOptions;
use super::page::Pointer;
use super::piece::{Seen, overlay};
use super::removed::{KeyRange, RemovedRanges, cut_at_removed};
use super::runs::Runs;
use crate::Error;
use crate::environment::Environment;

/// Bytes of a first key that are counted with its page. [`Leaves`] count what is longer.
const SHORT: usize = 32;

/// What memory has of a leaf.
#[derive(Debug, Default)]
struct Kept {
    /// What is in it.
    leaf: Option<Arc<Leaf>>,
    /// Which keys it may have.
    filter: Option<Filter>,
}

/// A page of the data file that somebody may read.
pub(crate) struct Page<E: Environment> {
    pub pointer: Pointer,
    extent: Arc<Extent<E>>,
    kept: E::Mutex<Kept>,
    /// It was asked for since the cache last looked.
    pub is_used: AtomicBool,
}

impl<E: Environment> Page<E> {
    /// Bytes of memory that a page takes, whatever is known of what is in it: with its extent, its slot, the head of its first key and a
    /// [short](SHORT) one, and what allocating these five takes.
    pub const MEMORY: usize =
        size_of::<Page<E>>() + size_of::<Extent<E>>() + size_of::<Slot<E>>() + 8 + SHORT + 48;

    pub fn new(pointer: Pointer, extent: Extent<E>) -> Arc<Page<E>> {
        Page::of(pointer, Arc::new(extent))
    }

    /// What this page's home has when it is written again.
    pub fn again(&self, pointer: Pointer) -> Arc<Page<E>> {
        debug_assert_eq!(self.extent.start, pointer.offset);
        Page::of(pointer, self.extent.clone())
    }

    /// One that is in an extent with others.
    pub fn in_extent(pointer: Pointer, extent: Arc<Extent<E>>) -> Arc<Page<E>> {
        debug_assert!(extent.start <= pointer.offset);
        Page::of(pointer, extent)
    }

    fn of(pointer: Pointer, extent: Arc<Extent<E>>) -> Arc<Page<E>> {
        let index = &extent.space.index;
        index.fetch_add(Page::<E>::MEMORY, Ordering::Relaxed);
        Arc::new(Page {
            pointer,
            extent,
            kept: E::mutex(Kept::default()),
            is_used: AtomicBool::new(false),
        })
    }

    /// Bytes of the data file that it takes, with what is in its extent besides.
    pub fn bytes(&self) -> u64 {
        self.extent.bytes
    }

    pub fn cached(&self) -> Option<Arc<Leaf>> {
        let found = E::lock(&self.kept).leaf.clone()?;
        self.is_used.store(true, Ordering::Relaxed);
        Some(found)
    }

    /// Keeps a leaf in memory, or forgets it.
    pub fn keep(&self, leaf: Option<Arc<Leaf>>) {
        let cached = &self.extent.space.cached;
        let memory = |leaf: &Option<Arc<Leaf>>| leaf.as_ref().map_or(0, |leaf| leaf.memory());
        let more = memory(&leaf);
        let before = std::mem::replace(&mut E::lock(&self.kept).leaf, leaf);
        cached.fetch_add(more, Ordering::Relaxed);
        cached.fetch_sub(memory(&before), Ordering::Relaxed);
    }

    /// Whether it is known that no version of a key is in it.
    pub fn lacks(&self, key: &[u8]) -> bool {
        let kept = E::lock(&self.kept);
        let filter = kept.filter.as_ref();
        filter.is_some_and(|filter| !filter.may_have(key))
    }

    /// Keeps in memory which keys it may have, of which there are so many, if there is room for it and it is not there yet.
    pub fn keep_filter<'k>(&self, count: usize, keys: impl Iterator<Item = &'k [u8]>, most: usize) {
        let mut kept = E::lock(&self.kept);
        let space = &self.extent.space;
        let memory = Filter::memory_of(count);
        if kept.filter.is_none() && space.filters.load(Ordering::Relaxed) + memory <= most {
            let filter = Filter::of(count, keys);
            space.filters.fetch_add(filter.memory(), Ordering::Relaxed);
            kept.filter = Some(filter);
        }
    }

    /// Has the filter of another page: a mistake.
    pub fn take_filter_of(&self, other: &Page<E>) {
        E::lock(&self.kept).filter = E::lock(&other.kept).filter.take();
    }
}

impl<E: Environment> Drop for Page<E> {
    fn drop(&mut self) {
        self.keep(None);
        let filter = E::lock(&self.kept).filter.take();
        let space = &self.extent.space;
        let memory = filter.map_or(0, |filter| filter.memory());
        space.filters.fetch_sub(memory, Ordering::Relaxed);
        space.index.fetch_sub(Page::<E>::MEMORY, Ordering::Relaxed);
    }
}

/// A leaf of a group: it has the keys from this one on.
pub(crate) struct Slot<E: Environment> {
    pub low: Arc<[u8]>,
    pub page: Arc<Page<E>>,
    /// How many it has; about, where leaves are at home.
    pub keys: u32,
}

impl<E: Environment> Clone for Slot<E> {
    fn clone(&self) -> Slot<E> {
        Slot {
            low: self.low.clone(),
            page: self.page.clone(),
            keys: self.keys,
        }
    }
}

/// The leaves of a group, in their order; the first has all keys before the second.
pub(crate) struct Leaves<E: Environment> {
    slots: Vec<Slot<E>>,
    /// Of their first keys.
    heads: Heads,
    /// Bytes of memory that first keys take which are not short.
    long: usize,
    /// Bytes of the data file that they take.
    pub bytes: u64,
    pub keys: u64,
}

impl<E: Environment> Leaves<E> {
    pub fn new(slots: Vec<Slot<E>>) -> Arc<Leaves<E>> {
        let heads = Heads::of(slots.len(), |index| &slots[index].low);
        let bytes = slots.iter().map(|slot| slot.page.bytes()).sum();
        let keys = slots.iter().map(|slot| u64::from(slot.keys)).sum();
        let lows = slots.iter().map(|slot| slot.low.len());
        let long = lows.chain([heads.common_len()]);
        let leaves = Leaves {
            bytes,
            keys,
            long: long.map(|len| len.saturating_sub(SHORT)).sum(),
            heads,
            slots,
        };
        if let Some(index) = leaves.index() {
            index.fetch_add(leaves.long, Ordering::Relaxed);
        }
        Arc::new(leaves)
    }

    /// Where what is known of leaves is counted, if there are any.
    fn index(&self) -> Option<&AtomicUsize> {
        let slot = self.slots.first()?;
        Some(&slot.page.extent.space.index)
    }

    /// Which one has this key.
    pub fn of_key(&self, key: &[u8]) -> Option<usize> {
        let place = self.heads.find(key, |index| &self.slots[index].low);
        // What is before all belongs to the first one.
        let index = place.unwrap_or_else(|behind| behind.saturating_sub(1));
        (!self.slots.is_empty()).then_some(index)
    }

    /// The last one that has keys before this one.
    pub fn last_before(&self, key: &[u8]) -> Option<usize> {
        let place = self.heads.find(key, |index| &self.slots[index].low);
        let behind = place.unwrap_or_else(|behind| behind);
        (!self.slots.is_empty()).then(|| behind.saturating_sub(1))
    }
}

impl<E: Environment> Drop for Leaves<E> {
    fn drop(&mut self) {
        if let Some(index) = self.index() {
            index.fetch_sub(self.long, Ordering::Relaxed);
        }
    }
}

impl<E: Environment> Deref for Leaves<E> {
    type Target = [Slot<E>];

    fn deref(&self) -> &[Slot<E>] {
        &self.slots
    }
}

/// What a group is at a moment.
pub(crate) struct Group<E: Environment> {
    pub leaves: Arc<Leaves<E>>,
    /// What is on the disk and in no leaf.
    pub runs: Arc<Runs<E>>,
    /// Where it is written where its leaves are; `None`: it has none.
    pub page: Option<Arc<Page<E>>>,
    /// The leaves and runs have all its changes of commits before this one.
    pub watermark: u64,
    pub active: Changes,
    /// Where nothing is.
    pub gaps: Gaps,
    /// How often a key was given a value, or it became other leaves.
    pub turns: u64,
    pub frozen: Option<Arc<Changes>>,
    /// The first and the last commit whose changes were written at home since the page of the group was: the log is to have them
    /// until that is written again.
    pub flushed: Option<(u64, u64)>,
    /// Bytes that these changes took.
    pub flushed_bytes: usize,
    /// It has the keys of a group that was removed, and no durable checkpoint knows: its last leaf is not written at home.
    pub is_widened: bool,
    /// Why changes could not be written into its leaves, when that was tried last.
    pub damage: Option<Error>,
    /// Somebody has passed over many removals of it: it is merged when it is written next, so that they go.
    pub is_tedious: bool,
}

/// Where to look further for what a key has.
pub(crate) enum Lookup<E: Environment> {
    /// In memory: that is it; `None`: it was removed.
    Here(Option<Vec<u8>>),
    /// In one of these runs, or in this leaf, if there is one.
    Disk(Arc<Runs<E>>, Option<Arc<Page<E>>>),
}

impl<E: Environment> Group<E> {
    pub fn empty() -> Group<E> {
        Group {
            leaves: Leaves::new(Vec::new()),
            runs: Arc::default(),
            page: None,
            watermark: 0,
            active: Changes::default(),
            gaps: Gaps::default(),
            turns: 0,
            frozen: None,
            flushed: None,
            flushed_bytes: 0,
            is_widened: false,
            damage: None,
            is_tedious: false,
        }
    }

    /// The first commit of which it has a change that no page of the group knows of: it is in no leaf, or was flushed since.
    pub fn pending(&self) -> Option<u64> {
        let frozen = self.frozen.as_ref().and_then(|frozen| frozen.span);
        let oldest = self.flushed.or(frozen).or(self.active.span);
        oldest.map(|(first, _)| first)
    }

    /// Whether somebody who reads as of this commit sees all changes that are in memory.
    pub fn sees_changes(&self, at: u64) -> bool {
        let spans = self.changes().filter_map(|changes| changes.span);
        spans.map(|(_, last)| last).all(|last| last <= at)
    }

    /// Whether they see all changes that are in leaves and runs.
    pub fn sees_written(&self, at: u64) -> bool {
        self.watermark <= at + 1 && self.flushed.is_none_or(|(_, last)| last <= at)
    }

    /// What a key has at a commit.
    pub fn find(&self, key: &[u8], at: u64) -> Lookup<E> {
        let frozen = || self.frozen.as_ref()?.find(key, at);
        let removed = self.removed(key, at);
        if let Some(version) = self.active.find(key, at).or_else(frozen) {
            let is_hidden = removed.is_some_and(|removed| removed > version.lsn);
            let value = version.value.filter(|_| !is_hidden);
            return Lookup::Here(value.map(<[u8]>::to_vec));
        }
        // All that is on the disk is older than what is in memory.
        match removed {
            Some(_) => Lookup::Here(None),
            None => self.on_disk(key),
        }
    }

    /// Removes a range, which has keys of the group alone.
    pub fn remove_range(&mut self, range: &KeyRange, lsn: u64, snapshots: &[u64]) {
        // Where nothing came since it was removed before, or nothing is at all, it hides nothing.
        let has_older = || !self.has_none_on_disk() || self.frozen.is_some();
        let is_removed = || self.active.removed().has_all_of(range);
        if !self.active.has_no_keys() || has_older() && !is_removed() {
            self.active.remove_range(range, lsn, snapshots);
            // What is damaged may be gone with it.
            self.damage = None;
        }
    }

    /// Whether nothing of it is on the disk.
    pub fn has_none_on_disk(&self) -> bool {
        self.leaves.is_empty() && self.runs.is_empty()
    }

    /// The last commit that removed a key with a range, as of a commit and as far as that is in memory.
    fn removed(&self, key: &[u8], at: u64) -> Option<u64> {
        let removed = self.changes().map(Changes::removed);
        removed.filter_map(|removed| removed.last(key, at)).max()
    }

    fn removed_ranges(&self) -> Vec<&RemovedRanges> {
        let all = self.changes().map(Changes::removed);
        all.filter(|removed| !removed.is_empty()).collect()
    }

    /// Makes keys shorter, until all of them are removed by ranges as of a commit, or none is. How many ranges it took; 0: they are
    /// not removed.
    pub fn cut_at_removed(&self, keys: &mut Bounds, at: u64, backwards: bool) -> usize {
        let removed = self.removed_ranges();
        if removed.is_empty() {
            return 0;
        }
        cut_at_removed(&removed, keys, at, backwards)
    }

    /// Where to look for what is not in memory of a key.
    pub fn on_disk(&self, key: &[u8]) -> Lookup<E> {
        let leaf = self.leaves.of_key(key);
        let leaf = leaf.map(|index| self.leaves[index].page.clone());
        Lookup::Disk(self.runs.clone(), leaf)
    }

    /// What keys in this range have at a commit, as far as that is in memory, in their order.
    pub fn changes_in(&self, range: (Bound<&[u8]>, Bound<&[u8]>), at: u64) -> Vec<Seen> {
        let has_removed = !self.removed_ranges().is_empty();
        let seen = |(key, versions): (&[u8], Versions<'_>)| {
            let version = versions.at(at)?;
            let removed = || self.removed(key, at).filter(|_| has_removed);
            let value = version.value;
            let value = value.filter(|_| removed().is_none_or(|removed| removed <= version.lsn));
            Some((key.to_vec(), value.map(<[u8]>::to_vec)))
        };
        let active = self.active.range(range.0, range.1).filter_map(seen);
        match &self.frozen {
            Some(frozen) => {
                let frozen = frozen.range(range.0, range.1).filter_map(seen);
                overlay(frozen, active).collect()
            }
            None => active.collect(),
        }
    }

    /// All that is in memory.
    pub fn changes(&self) -> impl Iterator<Item = &Changes> {
        let frozen = self.frozen.iter().map(|frozen| &**frozen);
        std::iter::once(&self.active).chain(frozen)
    }
}

/// As of which commit a group has nothing, if it is said to: for who passes over it without its lock.
///
/// It is said, and taken back when a key is given a value, with the lock held alone. Whoever sees a commit sees what was taken back for it.
pub(crate) struct Emptiness(AtomicU64);

impl Emptiness {
    const NOT_SAID: u64 = u64::MAX;

    fn not_said() -> Arc<Emptiness> {
        Arc::new(Emptiness(AtomicU64::new(Emptiness::NOT_SAID)))
    }

    pub fn say(&self, as_of: u64) {
        debug_assert_ne!(as_of, Emptiness::NOT_SAID, "no commit has this number");
        self.0.store(as_of, Ordering::Release);
    }

    pub fn take_back(&self) {
        self.0.store(Emptiness::NOT_SAID, Ordering::Release);
    }

    /// Whether nothing is there as of this commit.
    pub fn is_at(&self, at: u64) -> bool {
        self.0.load(Ordering::Acquire) <= at
    }
}

/// A group, and the first key that it may have.
pub(crate) struct Place<E: Environment> {
    pub low: Arc<[u8]>,
    pub group: Arc<E::RwLock<Group<E>>>,
    pub emptiness: Arc<Emptiness>,
}

impl<E: Environment> Place<E> {
    pub fn new(low: Arc<[u8]>, group: Group<E>) -> Place<E> {
        Place {
            low,
            group: Arc::new(E::rw_lock(group)),
            emptiness: Emptiness::not_said(),
        }
    }
}

impl<E: Environment> Clone for Place<E> {
    fn clone(&self) -> Place<E> {
        Place {
            low: self.low.clone(),
            group: self.group.clone(),
            emptiness: self.emptiness.clone(),
        }
    }
}

/// A keyspace. Its first group has all keys before the second.
pub(crate) struct Keyspace<E: Environment> {
    pub id: u32,
    pub name: String,
    pub options: KeyspaceOptions,
    pub groups: E::RwLock<Vec<Place<E>>>,
    pub is_removed: AtomicBool,
}

impl<E: Environment> Keyspace<E> {
    pub fn new(
        id: u32,
        name: String,
        options: KeyspaceOptions,
        groups: Vec<(Arc<[u8]>, Group<E>)>,
    ) -> Arc<Keyspace<E>> {
        let groups = groups.into_iter();
        let groups: Vec<Place<E>> = groups.map(|(low, group)| Place::new(low, group)).collect();
        Arc::new(Keyspace {
            id,
            name,
            options,
            groups: E::rw_lock(groups),
            is_removed: AtomicBool::new(false),
        })
    }

    /// Whoever holds the lock of a group has all its changes if this says so: they go after the keyspace is said to be removed.
    pub fn require_there(&self) -> Result<(), Error> {
        if self.is_removed.load(Ordering::Acquire) {
            return Err(Error::NoKeyspace);
        }
        Ok(())
    }

    /// One in which there is nothing.
    pub fn empty(id: u32, name: String, options: KeyspaceOptions) -> Arc<Keyspace<E>> {
        Keyspace::new(id, name, options, vec![(Arc::default(), Group::empty())])
    }
}

/// The groups of a keyspace that have keys of a range, and which of them.
pub(crate) fn parts_of<E: Environment>(
    groups: &[Place<E>],
    range: &KeyRange,
) -> impl Iterator<Item = (usize, KeyRange)> {
    let first = group_of(groups, &range.low);
    (first..groups.len()).map_while(move |index| {
        let low: &[u8] = if index == 0 { &[] } else { &groups[index].low };
        let high = groups.get(index + 1).map(|next| &*next.low);
        Some((index, range.within(low, high)?))
    })
}

/// Which of a keyspace's groups has this key.
pub(crate) fn group_of<E: Environment>(groups: &[Place<E>], key: &[u8]) -> usize {
    let behind = groups.partition_point(|place| *place.low <= *key);
    behind.saturating_sub(1)
}
