//! What all users of a store share, and committing.
//!
//! Threads: any number commit and look. A commit takes the lock of those who commit, is appended to the log as one record,
//! and is applied to its groups, whose locks it holds all together: so the log has commits in the order in which they are
//! seen, and nobody sees a part of one. Waiting until it is durable is done without any lock. A thread of the store's own,
//! `landfall-checkpoints`, writes changes into leaves when they take too much memory, or too long to be applied again; whoever makes
//! a checkpoint is helped by another one, `landfall-groups`.
//!
//! Locks are taken in this order: that of checkpoints, of those who commit, of the keyspaces, a list of groups, groups; the
//! cache, the free space and the log's own are taken last, and nothing is waited for with them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::cache::Cache;
use super::changes::Version;
use super::checkpoint::Checkpoints;
use super::counters::Tally;
use super::data_file::{DataFile, Pages};
use super::due::{RoomMade, SAMPLE, Work};
use super::extents::Space;
use super::homes::Homes;
use super::keyspaces::Keyspaces;
use super::options::StoreOptions;
use super::record::{OrderedWrites, Write, Writes};
use super::runs::auto::Auto;
use super::snapshots::Committing;
use super::together::Helpers;
use super::transaction::Checks;
use super::tree::{Keyspace, Place, group_of, parts_of};
use super::{MOST_KEY, MOST_VALUE};
use crate::environment::{Environment, planted};
use crate::log::Handle as Log;
use crate::log::append::Room;
use crate::log::event_count::EventCount;
use crate::log::interval::commit_at_intervals;
use crate::log::waiters::Waiters;
use crate::state::schedule::Schedule;
use crate::{Commit, Error, Lsn, Policy};

pub(crate) struct Shared<E: Environment> {
    pub environment: E,
    pub options: StoreOptions,
    pub log: Log<E>,
    /// Bytes of which offsets and lengths in the data file are multiples.
    pub granule: u64,
    /// The next commit when the store was opened.
    pub opened_at: u64,
    pub space: Arc<Space<E>>,
    /// Held by who makes the data file longer.
    pub growing: E::Mutex<()>,
    /// There once there is a page.
    pub data: OnceLock<DataFile<E>>,
    pub homes: E::Mutex<Homes<E>>,
    /// Leaves that are being written at home, or could not be, in the order of their offsets.
    pub unsettled: E::RwLock<Arc<Pages>>,
    pub cache: Cache<E>,
    pub keyspaces: E::RwLock<Keyspaces<E>>,
    pub committing: E::Mutex<Committing>,
    /// Bytes of changes that are in no leaf.
    pub changes: AtomicUsize,
    pub checkpoints: E::Mutex<Checkpoints<E>>,
    /// Writes groups as well, for whoever makes a checkpoint.
    pub helper: Helpers<E>,
    /// Read pages as well, once somebody has needed several at a time.
    pub readers: Helpers<E>,
    pub has_readers: AtomicBool,
    pub work: E::Mutex<Work<E::Thread>>,
    /// A checkpoint was asked for, and none has begun since; set under the lock of `work`.
    pub is_due: AtomicBool,
    /// The thread that makes checkpoints waits for something to do.
    pub due: Waiters<E>,
    /// Bytes of changes with which whoever commits waits: the fewer, the less of the present checkpoint has been written. It is
    /// changed under the lock of `work`.
    pub limit: AtomicUsize,
    /// Nearly all that the last checkpoint wrote were keys that were not there before, and leaves of them alone.
    pub is_appended_to: AtomicBool,
    /// Those who wait for it to rise.
    pub room: Waiters<E>,
    pub schedule: E::Mutex<Schedule>,
    pub tally: E::Mutex<Tally>,
    /// Commits, and bytes of their keys and values.
    pub commits: AtomicU64,
    pub room_made: E::Mutex<RoomMade>,
    pub logical_bytes: AtomicU64,
    /// Pieces of ranges that were read.
    pub pieces: AtomicU64,
    /// Who chooses how much runs may take; `None`: it is as it was set.
    pub auto: E::Mutex<Option<Auto>>,
    pub closing: EventCount<E>,
    pub is_closing: AtomicBool,
}

/// Which part of a store's memory leaves may have that were read, whatever else takes it.
const LEAST_LEAVES: usize = 8;

/// Bytes of changes for which a checkpoint is begun early, at the least: each writes and syncs more than leaves.
const LEAST_EARLY: usize = 4 << 20;

/// What changes may take of a store's memory.
pub(super) fn most_changes(memory_bytes: usize) -> usize {
    memory_bytes / 2
}

fn check_sizes(writes: &Writes) -> Result<(), Error> {
    let require = |what, bytes, most| {
        if bytes > most {
            return Err(Error::TooLarge { what, bytes, most });
        }
        Ok(())
    };
    for write in writes.writes() {
        require("key", write.key.len(), MOST_KEY)?;
        let value = write.value.as_ref().map_or(0, Vec::len);
        require("value", value, MOST_VALUE)?;
    }
    for range in writes.ranges() {
        // The first key behind the longest one is longer.
        for end in [Some(&range.keys.low), range.keys.high.as_ref()] {
            require("key", end.map_or(0, Vec::len), MOST_KEY + 1)?;
        }
    }
    Ok(())
}

impl<E: Environment> Shared<E> {
    /// Bytes of changes with which whoever commits waits for a checkpoint to end.
    pub fn most_changes(&self) -> usize {
        most_changes(self.options.memory_bytes)
    }

    /// Bytes that filters of leaves take at the most.
    pub fn most_filters(&self) -> usize {
        self.options.memory_bytes / 8
    }

    /// Bytes of changes from which on a checkpoint is due. Waiting for more spares nothing where keys are new, and in leaves of their own:
    /// then the next one begins early, so that those who commit need not wait for it. What is written over again waits: it becomes one
    /// change of several.
    pub fn enough_changes(&self) -> usize {
        let quarter = self.most_changes() / 4;
        if self.is_appended_to.load(Ordering::Relaxed) {
            quarter.max(LEAST_EARLY).min(3 * quarter)
        } else {
            3 * quarter
        }
    }

    /// Commits writes, as the store's policy says.
    pub fn commit(
        self: &Arc<Self>,
        writes: impl Into<Writes>,
        checks: Option<&Checks>,
    ) -> Result<(), Error> {
        let writes = writes.into();
        match self.options.policy {
            Policy::EveryCommit => match self.write(writes, checks)? {
                Some(lsn) => self.log.shared.commit(lsn.0 + 1),
                None => Ok(()),
            },
            // Nobody asks what becomes of it: if it cannot be durable, the next one cannot be logged.
            Policy::Group => {
                let append = |log: &Log<E>, room, record: &[u8]| {
                    Ok((log.append_then_in(room, record, drop)?, ()))
                };
                self.log_and_apply(writes, checks, append).map(drop)
            }
            Policy::Interval(_) => self.write(writes, checks).map(drop),
        }
    }

    /// Commits writes, and does not wait until they are durable. The number of the commit; `None`: there were none.
    pub fn write(
        self: &Arc<Self>,
        writes: impl Into<Writes>,
        checks: Option<&Checks>,
    ) -> Result<Option<Lsn>, Error> {
        let append = |log: &Log<E>, room, record: &[u8]| Ok((log.append_in(room, record)?, ()));
        let applied = self.log_and_apply(writes.into(), checks, append)?;
        Ok(applied.map(|(lsn, ())| lsn))
    }

    /// Commits writes; the future is ready when they are durable, whatever the policy. Where there are none it is ready at once, with
    /// the last commit that is durable.
    pub fn commit_async(
        self: &Arc<Self>,
        writes: Writes,
        checks: Option<&Checks>,
    ) -> Result<Commit, Error> {
        let append = |log: &Log<E>, room, record: &[u8]| {
            let (commit, done) = Commit::new();
            Ok((log.append_then_in(room, record, done)?, commit))
        };
        Ok(match self.log_and_apply(writes, checks, append)? {
            Some((_, commit)) => commit,
            None => Commit::ready(Lsn(self.log.durable_end().0 - 1)),
        })
    }

    fn log_and_apply<T>(
        self: &Arc<Self>,
        writes: Writes,
        checks: Option<&Checks>,
        append: impl Fn(&Log<E>, Room, &[u8]) -> Result<(Lsn, T), Error>,
    ) -> Result<Option<(Lsn, T)>, Error> {
        check_sizes(&writes)?;
        let writes = writes.in_order();
        // Where removing one key after the other has taken all that it may, a range can be removed still.
        let has_keys = !writes.writes.is_empty();
        let room = if !writes.gives_nothing() {
            Room::Usual
        } else if has_keys && !planted!(self.environment, KeptForKeys) {
            Room::Half
        } else {
            Room::Kept
        };
        if writes.is_empty() {
            // Nobody is to be told that all is well where nothing can be committed any more.
            self.log.shared.require_open()?;
        } else {
            self.wait_for_room(room, &writes)?;
        }
        let encoded = writes.record().encode();
        let append = |log: &Log<E>, record: &[u8]| append(log, room, record);
        self.with_room_in_log(|| self.log_and_apply_now(&writes, &encoded, checks, append))
    }

    fn log_and_apply_now<T>(
        &self,
        writes: &OrderedWrites,
        encoded: &[u8],
        checks: Option<&Checks>,
        append: impl FnOnce(&Log<E>, &[u8]) -> Result<(Lsn, T), Error>,
    ) -> Result<Option<(Lsn, T)>, Error> {
        let found = self.keyspaces_of(writes);
        let mut committing = E::lock(&self.committing);
        if let Some(checks) = checks.filter(|_| !planted!(self.environment, NoConflicts)) {
            let is_there = |keyspace| E::share(&self.keyspaces).all.contains_key(&keyspace);
            checks.require_valid(&committing, writes, is_there)?;
        }
        if writes.is_empty() {
            return Ok(None);
        }
        let keyspaces = found?;
        let is_removed = |one: &Arc<Keyspace<E>>| one.is_removed.load(Ordering::Acquire);
        if keyspaces.iter().any(is_removed) {
            return Err(Error::NoKeyspace);
        }
        let appended = if planted!(self.environment, RecordPerWrite) {
            let mut records = writes.one_by_one();
            let last = records.pop().ok_or(Error::Closed)?;
            for record in records {
                self.log.append(&record.encode())?;
            }
            append(&self.log, &last.encode())?
        } else {
            append(&self.log, encoded)?
        };
        let lsn = appended.0;
        let is_timed = lsn.0.is_multiple_of(SAMPLE);
        let begin = is_timed.then(|| self.environment.now());
        let snapshots = if planted!(self.environment, ForgetSnapshots) {
            Vec::new()
        } else {
            committing.snapshots.numbers()
        };
        self.apply(&keyspaces, writes, lsn.0, &snapshots);
        committing.visible = lsn.0;
        committing.remember(lsn.0, writes);
        drop(committing);
        if let Some(begin) = begin {
            let took = self.environment.now().saturating_sub(begin);
            // Decoding a record takes about as long as applying it.
            E::lock(&self.schedule).note(encoded.len(), 2 * took);
        }
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.logical_bytes
            .fetch_add(writes.bytes(), Ordering::Relaxed);
        self.fit_leaves();
        self.ask_if_due(lsn.0);
        Ok(Some(appended))
    }

    /// The keyspaces that are written, in their order.
    fn keyspaces_of(
        &self,
        writes: &OrderedWrites,
    ) -> Result<SmallVec<[Arc<Keyspace<E>>; 2]>, Error> {
        let all = E::share(&self.keyspaces);
        let of_number = |number: &u32| all.all.get(number).cloned().ok_or(Error::NoKeyspace);
        writes.keyspaces().iter().map(of_number).collect()
    }

    /// Applies writes, which are in order, so that all of them are seen at once.
    fn apply(
        &self,
        keyspaces: &[Arc<Keyspace<E>>],
        writes: &OrderedWrites,
        lsn: u64,
        snapshots: &[u64],
    ) {
        let OrderedWrites { ranges, writes } = writes;
        // Nobody cuts a group as long as the lists are held.
        let lists: SmallVec<[_; 2]> = keyspaces.iter().map(|one| E::share(&one.groups)).collect();
        let list_of = |number: u32| keyspaces.partition_point(|one| one.id < number);
        // Of each range the groups of which it has keys, and what of it they have.
        let mut parts: SmallVec<[_; 1]> = SmallVec::new();
        for range in ranges {
            let list = list_of(range.keyspace);
            let of_range = parts_of(&lists[list], &range.keys);
            let most = if planted!(self.environment, RangeInOneGroup) {
                1
            } else {
                usize::MAX
            };
            parts.extend(
                of_range
                    .take(most)
                    .map(|(index, part)| ((list, index), part)),
            );
        }
        // The first group of a list has all keys before the second.
        let mut last = (0, 0);
        let place_of = |write: &Write| {
            let list = list_of(write.keyspace);
            // Keys ascend: mostly it is in the group of the one before.
            let next = lists[list].get(last.1 + 1);
            let is_same = list == last.0 && next.is_none_or(|next| *next.low > *write.key);
            if !is_same {
                last = (list, group_of(&lists[list], &write.key));
            }
            last
        };
        let mut targets: SmallVec<[(usize, usize); 2]> = writes.iter().map(place_of).collect();
        // In the order in which locks are taken.
        let mut places = targets.clone();
        places.extend(parts.iter().map(|(place, _)| *place));
        places.sort_unstable();
        places.dedup();
        for target in &mut targets {
            target.0 = places.partition_point(|place| place < target);
        }
        let groups: SmallVec<[&Place<E>; 2]> = places
            .iter()
            .map(|(list, index)| &lists[*list][*index])
            .collect();
        let whole_leaves = keyspaces.iter().filter(|one| one.options.whole_leaves);
        let whole_leaves: BTreeMap<u32, usize> = whole_leaves
            .map(|one| (one.id, one.options.leaf_bytes as usize))
            .collect();
        let mut locked: SmallVec<[_; 2]> =
            groups.iter().map(|one| E::exclude(&one.group)).collect();
        // Bytes; where they are fewer, it wraps.
        let mut more = 0_usize;
        for (place, part) in parts {
            let group = &mut *locked[places.partition_point(|one| *one < place)];
            let before = group.active.bytes;
            group.remove_range(&part, lsn, snapshots);
            more = more.wrapping_add(group.active.bytes).wrapping_sub(before);
        }
        for (write, (target, _)) in writes.iter().zip(targets) {
            let group = &mut *locked[target];
            let value = write.value.as_deref();
            if value.is_some() {
                group.turns += 1;
                if !planted!(self.environment, GapStays) {
                    group.gaps.fill(&write.key);
                }
                if !planted!(self.environment, EmptyStays) {
                    groups[target].emptiness.take_back();
                }
            }
            let changes = &mut group.active;
            let before = changes.bytes;
            changes.add(&write.key, Version { lsn, value }, snapshots);
            if let Some(bytes) = whole_leaves.get(&write.keyspace) {
                let leaf = group.leaves.of_key(&write.key).unwrap_or(0);
                changes.charge(leaf, *bytes);
            }
            more = more.wrapping_add(changes.bytes).wrapping_sub(before);
        }
        self.changes.fetch_add(more, Ordering::Relaxed);
    }

    /// Forgets leaves that were read until they take no more than all else leaves of the memory.
    pub fn fit_leaves(&self) {
        let changes = self.changes.load(Ordering::Relaxed);
        let filters = self.space.filters.load(Ordering::Relaxed);
        let index = self.space.index.load(Ordering::Relaxed);
        let memory = self.options.memory_bytes;
        let most = memory.saturating_sub(changes + filters + index);
        // Where the index alone takes too much, a few leaves stay: else each read would read one that was just read.
        self.cache.fit(&self.space, most.max(memory / LEAST_LEAVES));
    }

    /// Whether what changes are said to take is what they take: while nobody commits, and no checkpoint is made.
    #[cfg(test)]
    pub fn require_counted(&self) {
        let keyspaces = E::share(&self.keyspaces);
        let groups = keyspaces
            .all
            .values()
            .flat_map(|one| E::share(&one.groups).clone());
        let all = groups.map(|place| {
            let group = E::share(&place.group);
            group.changes().map(|changes| changes.bytes).sum::<usize>()
        });
        assert_eq!(
            all.sum::<usize>(),
            self.changes.load(Ordering::Relaxed),
            "bytes of changes"
        );
    }

    /// Changes took so many bytes of memory, and take so many now.
    pub fn note_changes(&self, before: usize, after: usize) {
        self.changes
            .fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Starts the threads that it needs.
    pub fn start(self: &Arc<Self>) -> Result<(), Error> {
        let spawn = |name: &str, work: fn(&Arc<Self>)| {
            let own = self.clone();
            let thread = self.environment.spawn(name, move || work(&own));
            thread.map_err(Error::io("start a thread of the store"))
        };
        let checkpoints = spawn("landfall-checkpoints", Self::make_checkpoints)?;
        E::lock(&self.work).threads.push(checkpoints);
        let helper = spawn("landfall-groups", |own| own.helper.work())?;
        E::lock(&self.work).threads.push(helper);
        if matches!(self.options.policy, Policy::Interval(_)) {
            let interval = spawn("landfall-interval", Self::commit_now_and_then)?;
            E::lock(&self.work).threads.push(interval);
        }
        Ok(())
    }

    fn commit_now_and_then(self: &Arc<Self>) {
        if let Policy::Interval(interval) = self.options.policy {
            let (is_closing, closing) = (&self.is_closing, &self.closing);
            commit_at_intervals(&self.log, &self.environment, interval, is_closing, closing);
        }
    }

    /// Ends the store's threads, waits for those of others that are writing, and closes its log. A process that was forked has neither.
    pub fn close(&self) -> Result<(), Error> {
        if !self.log.shared.is_ours() {
            return Ok(());
        }
        self.is_closing.store(true, Ordering::SeqCst);
        let threads = {
            let mut work = E::lock(&self.work);
            work.is_closing = true;
            std::mem::take(&mut work.threads)
        };
        self.due.wake_all();
        self.room.wake_all();
        self.helper.end();
        self.readers.end();
        self.closing.notify_all();
        threads.into_iter().for_each(E::join);
        // Who has a keyspace may be in the middle of a commit, or of a checkpoint that it needed. It ends that first: once the directory
        // is unlocked somebody else may have it, and the log's end is what is said to be it.
        let _checkpoints = E::lock(&self.checkpoints);
        let _committing = E::lock(&self.committing);
        self.log.close()
    }
}
