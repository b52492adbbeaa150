//! Checkpoints: changes are written into leaves, and then the log need not go back to them.
//!
//! Leaves, the page of each group, and the root are written where nothing is that anybody may still need. Then they are made
//! durable, by one sync; then the log is, up to the last commit that is in them; and only then the control record is written
//! that leads to the new root. Until both copies of that are durable everything the old one leads to is held, and nothing
//! in memory has changed: a checkpoint that fails before has changed nothing, and can be tried again. After a control record
//! that could not be written, nobody knows which root counts: the store takes no more checkpoints until it is opened again.
//!
//! Groups are chosen by their oldest change, so that the log need not go back far, until enough memory is free.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::control::{Control, ControlFile};
use super::counters::Written;
use super::data_file::Pages;
use super::groups::{Chosen, Piece, Pieces, Writing};
use super::homes::Copies;
use super::page::Kind;
use super::protection::Protection;
use super::root::{GroupEntry, KeyspaceEntry, Root, Span};
use super::shared::Shared;
use super::tree::{Group, Keyspace, Leaves, Page, Place, group_of};
use crate::environment::{Environment, planted};
use crate::{Compression, Error, Lsn};

/// What part of the data file one checkpoint writes again at the most: until it is durable, the old leaves take space as well.
const PART: u64 = 8;
/// Bytes of leaves that it writes again however small the file is.
#[cfg(not(test))]
const LEAST_PART: u64 = 16 << 20;
#[cfg(test)]
const LEAST_PART: u64 = 4 << 10;

/// Where a group is written where its leaves are, and they.
type Held<E> = (Option<Arc<Page<E>>>, Arc<Leaves<E>>);

/// What the last durable control record leads to. It is held so that nobody overwrites it.
pub(crate) struct Durable<E: Environment> {
    pub root: Option<Arc<Page<E>>>,
    pub groups: Vec<Held<E>>,
    /// Those that recovery would look for.
    pub copies: Option<Copies<E>>,
}

/// What is known by who makes checkpoints, one at a time.
pub(crate) struct Checkpoints<E: Environment> {
    pub durable: Durable<E>,
    /// The number of the last one.
    pub number: u64,
    pub control: Option<ControlFile<E>>,
    /// The number of the data file.
    pub data: u64,
    /// The commit behind the last of which a page may have something.
    pub end: u64,
    /// Why none is made any more.
    pub failure: Option<Error>,
}

/// How much is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// What is due.
    Due,
    /// All changes that there are.
    Everything,
}

/// A checkpoint that is durable.
struct Done<E: Environment> {
    pieces: Pieces<E>,
    durable: Durable<E>,
    first: u64,
    end: u64,
    written: Written,
}

type Address<E> = *const <E as Environment>::RwLock<Group<E>>;

impl<E: Environment> Shared<E> {
    /// Makes them as they are due.
    pub(super) fn make_checkpoints(self: &Arc<Self>) {
        let mut work = E::lock(&self.work);
        while !work.is_closing {
            if !self.is_due.swap(false, Ordering::AcqRel) {
                work = self.due.wait(work);
                continue;
            }
            drop(work);
            // A panic has told of itself; what it leaves is not trusted.
            let made = catch_unwind(AssertUnwindSafe(|| self.checkpoint(Goal::Due)));
            let made = made.unwrap_or_else(|_| {
                let error = Error::broken("a checkpoint panicked");
                E::lock(&self.checkpoints).failure = Some(error.clone());
                self.set_limit(self.most_changes());
                Err(error)
            });
            if let Err(error) = &made {
                tracing::warn!(%error, "no checkpoint could be made");
            }
            work = E::lock(&self.work);
            work.tried += 1;
            work.failure = made.err();
            self.room.wake_all();
        }
    }

    /// Makes one, and waits for it; or as many as it takes until all is in them that was committed before.
    pub fn checkpoint(self: &Arc<Self>, goal: Goal) -> Result<(), Error> {
        let mut checkpoints = E::lock(&self.checkpoints);
        let visible = E::lock(&self.committing).visible;
        loop {
            let made = self.make(&mut checkpoints, goal);
            self.set_limit(self.most_changes());
            let mut tally = E::lock(&self.tally);
            match &made {
                Ok(None) => {}
                Ok(Some(written)) => {
                    tally.checkpoints += 1;
                    tally.written.add(*written);
                }
                Err(_) => tally.failed_checkpoints += 1,
            }
            drop(tally);
            let is_done = made?.is_none() || goal == Goal::Due;
            if is_done || !self.is_waiting(visible) {
                return Ok(());
            }
        }
    }

    /// Whether changes of this commit or an older one are in no leaf.
    fn is_waiting(&self, visible: u64) -> bool {
        let is_old = |place: &Place<E>| {
            let first = E::share(&place.group).pending();
            first.is_some_and(|first| first <= visible)
        };
        let keyspaces = self.all_keyspaces();
        let mut lists = keyspaces.iter().map(|keyspace| E::share(&keyspace.groups));
        lists.any(|groups| groups.iter().any(is_old))
    }

    fn make(
        self: &Arc<Self>,
        checkpoints: &mut Checkpoints<E>,
        goal: Goal,
    ) -> Result<Option<Written>, Error> {
        if let Some(failure) = &checkpoints.failure {
            return Err(failure.clone());
        }
        // Whatever is committed from here on is applied again, unless it is in a group that is frozen later.
        let (visible, early) = {
            let committing = E::lock(&self.committing);
            (committing.visible, committing.snapshots.numbers())
        };
        let chosen = self.choose(goal, visible);
        if chosen.is_empty() && !self.has_surplus(goal, visible) {
            return Ok(None);
        }
        // Those that come later see all that is frozen.
        let snapshots = E::lock(&self.committing).snapshots.numbers();
        let snapshots = if planted!(self.environment, ForgetSnapshots) {
            Vec::new()
        } else {
            snapshots
        };
        let is_early = planted!(self.environment, SnapshotsBeforeFreeze);
        let snapshots = if is_early { early } else { snapshots };
        let number = checkpoints.number + 1;
        let protection = E::share(&self.keyspaces).protection.protection;
        let begun = self
            .make_data_file(&mut checkpoints.data)
            .and_then(|()| self.begin_homes(protection));
        // Of what could not begin nothing is written.
        let protection = *begun.as_ref().unwrap_or(&Protection::Shadow);
        let writing = Arc::new(self.writing(chosen, snapshots, number, protection));
        let chosen = &writing.chosen;
        let made = begun.and_then(|_| self.write_all(checkpoints, &writing, visible + 1));
        match made {
            Ok(done) => {
                let first = done.first;
                let mut written = done.written;
                written.add(self.end_homes());
                checkpoints.number += 1;
                checkpoints.end = done.end;
                for (chosen, pieces) in chosen.iter().zip(done.pieces) {
                    match pieces {
                        Some(pieces) => self.install(chosen, pieces),
                        None => self.thaw(chosen),
                    }
                }
                // Only now may the old pages be overwritten.
                let before = std::mem::replace(&mut checkpoints.durable, done.durable);
                drop(before);
                self.log.truncate_before(Lsn(first))?;
                E::lock(&self.schedule).taken(first, std::time::Duration::ZERO);
                tracing::debug!(number = checkpoints.number, first, "a checkpoint was made");
                Ok(Some(written))
            }
            Err(error) => {
                for chosen in chosen {
                    self.thaw(chosen);
                }
                let next = self.log.next_lsn().0;
                E::lock(&self.schedule).failed(next);
                if let Some(failure) = E::lock(&self.homes).failure() {
                    checkpoints.failure = Some(failure);
                }
                Err(error)
            }
        }
    }

    /// Whether nothing is to be written, and the log has commits all the same: what they did was removed with its keyspace.
    fn has_surplus(&self, goal: Goal, visible: u64) -> bool {
        let most = self.options.max_recovery_time;
        let is_long = || E::lock(&self.schedule).is_due(visible + 1, most);
        self.log.first_lsn().0 <= visible && (goal == Goal::Everything || is_long())
    }

    /// Freezes the groups that are to be written.
    fn choose(&self, goal: Goal, visible: u64) -> Vec<Chosen<E>> {
        let mut found = Vec::new();
        for keyspace in self.all_keyspaces() {
            let places: Vec<Place<E>> = E::share(&keyspace.groups).clone();
            let behind = places.iter().skip(1).map(|next| Some(next.low.clone()));
            let behind: Vec<_> = behind.chain([None]).collect();
            for (place, high) in places.into_iter().zip(behind) {
                let group = E::share(&place.group);
                if let Some(first) = group.pending() {
                    let (bytes, is_damaged) = (group.active.bytes, group.is_damaged);
                    drop(group);
                    found.push((is_damaged, first, bytes, keyspace.clone(), place, high));
                }
            }
        }
        // What is damaged cannot be written, unless its damage is gone.
        found.sort_by_key(|(is_damaged, first, ..)| (*is_damaged, *first));
        let (enough, most) = (self.enough_changes(), self.most_changes());
        let target = enough.saturating_sub(most / 8);
        // Half of the commits that the log has are given up at least, where it is too long.
        let begin = self.log.first_lsn().0;
        let middle = begin + (visible + 1).saturating_sub(begin) / 2;
        let is_long = E::lock(&self.schedule).is_due(visible + 1, self.options.max_recovery_time);
        let mut left = self.changes.load(Ordering::Relaxed);
        let mut room = (self.space.end() / PART).max(LEAST_PART);
        let mut chosen = Vec::new();
        for (_, first, bytes, keyspace, place, high) in found {
            let is_needed =
                goal == Goal::Everything || left > target || (is_long && first < middle);
            if !is_needed {
                break;
            }
            let mut group = E::exclude(&place.group);
            let slots = group.leaves.iter();
            let leaves: u64 = slots
                .map(|slot| slot.page.pointer.extent(self.granule))
                .sum();
            // One is written whatever it takes.
            if leaves > room && !chosen.is_empty() {
                break;
            }
            room = room.saturating_sub(leaves);
            left = left.saturating_sub(bytes);
            let frozen = Arc::new(std::mem::take(&mut group.active));
            group.frozen = Some(frozen.clone());
            chosen.push(Chosen {
                keyspace,
                low: place.low,
                high,
                leaves: group.leaves.clone(),
                frozen,
                group: place.group.clone(),
            });
        }
        chosen
    }

    pub(super) fn all_keyspaces(&self) -> Vec<Arc<Keyspace<E>>> {
        E::share(&self.keyspaces).all.values().cloned().collect()
    }

    /// Writes everything, and makes it count.
    fn write_all(
        self: &Arc<Self>,
        checkpoints: &mut Checkpoints<E>,
        writing: &Arc<Writing<E>>,
        next: u64,
    ) -> Result<Done<E>, Error> {
        let (chosen, number) = (&writing.chosen, writing.number);
        if planted!(self.environment, FreeBeforeControl) {
            checkpoints.durable.groups.clear();
            checkpoints.durable.root = None;
        }
        let (pieces, mut written) = self.write_groups(writing)?;
        self.write_last_homes(writing.protection, writing.newest)?;
        let copies = E::lock(&self.homes).copies.clone();
        let by_address: HashMap<Address<E>, &Vec<Piece<E>>> = chosen
            .iter()
            .zip(&pieces)
            .filter_map(|(chosen, pieces)| Some((Arc::as_ptr(&chosen.group), pieces.as_ref()?)))
            .collect();
        let spans = copies.as_ref().map(Copies::spans);
        let (root, groups) = self.root(checkpoints, chosen, &by_address, next, spans);
        let (first, end) = (root.first, root.end);
        let mut pages = Pages::new();
        let raw = root.encode(self.granule);
        let root = self.place(Kind::Root, Compression::Lz4, number, &raw, &mut pages)?;
        written.root_bytes += root.pointer.extent(self.granule);
        self.write_pages(&mut pages)?;
        if !planted!(self.environment, SkipDataSync) {
            self.sync_data(&mut E::lock(&self.homes))?;
        }
        // What is in it must be in the log for ever.
        if end > 1 && !planted!(self.environment, CheckpointAheadOfLog) {
            self.log.commit_to(Lsn(end - 1))?;
        }
        if planted!(self.environment, TruncateBeforeControl) {
            self.log
                .truncate_before(Lsn(first.min(self.log.durable_end().0)))?;
        }
        let control = Control {
            checkpoint: number,
            store: self.log.shared.log,
            granule: self.granule as u32,
            root: root.pointer,
            end: self.space.end(),
            data: checkpoints.data,
        };
        let noted = match &mut checkpoints.control {
            Some(file) => {
                let forgets_one = planted!(self.environment, OneStoreControlCopy);
                file.write(control, forgets_one)
                    .map_err(|error| (error, false))
            }
            None => ControlFile::create(&self.environment, control)
                .map(|file| checkpoints.control = Some(file)),
        };
        if let Err((error, is_unchanged)) = noted {
            if is_unchanged {
                return Err(error);
            }
            // It may be there, or not: pages of both roots stay held.
            checkpoints.durable.groups.extend(groups);
            checkpoints
                .durable
                .groups
                .push((Some(root), Leaves::new(Vec::new())));
            checkpoints.failure = Some(error.clone());
            return Err(error);
        }
        written.control_bytes += 2 * super::control::COPY as u64;
        Ok(Done {
            pieces,
            durable: Durable {
                root: Some(root),
                groups,
                copies,
            },
            first,
            end,
            written,
        })
    }

    /// The root as it will be, and what it leads to. `next`: commits from it on may be in no group that was written.
    fn root(
        &self,
        checkpoints: &Checkpoints<E>,
        chosen: &[Chosen<E>],
        pieces: &HashMap<Address<E>, &Vec<Piece<E>>>,
        next: u64,
        copies: Option<[Span; 2]>,
    ) -> (Root, Vec<Held<E>>) {
        let mut first = next;
        let mut held = Vec::new();
        let mut keyspaces = Vec::new();
        let (all, next_keyspace, changed, protection) = {
            let keyspaces = E::share(&self.keyspaces);
            let all: Vec<_> = keyspaces.all.values().cloned().collect();
            (all, keyspaces.next, keyspaces.changed, keyspaces.protection)
        };
        for keyspace in all {
            let places: Vec<Place<E>> = E::share(&keyspace.groups).clone();
            let mut groups = Vec::new();
            for place in places {
                let group = E::share(&place.group);
                let written = pieces.get(&Arc::as_ptr(&place.group));
                let pending = match written {
                    Some(_) => group.active.span.map(|(first, _)| first),
                    None => group.pending(),
                };
                first = first.min(pending.unwrap_or(first));
                let entry = |low: &Arc<[u8]>, watermark, page: &Option<Arc<Page<E>>>| GroupEntry {
                    low: low.clone(),
                    watermark,
                    page: page.as_ref().map(|page| page.pointer),
                };
                match written {
                    Some(pieces) if !planted!(self.environment, SplitWithOldParent) => {
                        for piece in *pieces {
                            groups.push(entry(&piece.low, piece.watermark, &piece.page));
                            held.push((piece.page.clone(), piece.leaves.clone()));
                        }
                    }
                    Some(pieces) => {
                        let piece = &pieces[0];
                        groups.push(entry(&piece.low, piece.watermark, &piece.page));
                        held.push((piece.page.clone(), piece.leaves.clone()));
                    }
                    None => {
                        groups.push(entry(&place.low, group.watermark, &group.page));
                        held.push((group.page.clone(), group.leaves.clone()));
                    }
                }
            }
            keyspaces.push(KeyspaceEntry {
                id: keyspace.id,
                name: keyspace.name.clone(),
                options: keyspace.options.clone(),
                groups,
            });
        }
        let last = chosen.iter().filter_map(|chosen| chosen.frozen.span);
        let last = last.map(|(_, last)| last + 1).max().unwrap_or(0);
        // It has keyspaces that were made, and has not those that were removed.
        let last = if planted!(self.environment, KeyspacesAheadOfLog) {
            last
        } else {
            last.max(changed + 1)
        };
        if planted!(self.environment, FirstTooHigh) {
            first += 1;
        }
        let root = Root {
            first,
            end: last.max(checkpoints.end).max(first),
            next_keyspace,
            protection,
            copies,
            keyspaces,
        };
        (root, held)
    }

    /// The group's leaves are those that were written, and its changes are in them.
    fn install(&self, chosen: &Chosen<E>, pieces: Vec<Piece<E>>) {
        let mut places = E::exclude(&chosen.keyspace.groups);
        let index = group_of(&places, &chosen.low);
        let mut group = E::exclude(&chosen.group);
        let before = chosen.frozen.bytes + group.active.bytes;
        group.frozen = None;
        group.is_damaged = false;
        let mut behind = Vec::new();
        let mut after = 0;
        let mut pieces = pieces.into_iter();
        if let Some(first) = pieces.next() {
            (group.leaves, group.page, group.watermark) =
                (first.leaves, first.page, first.watermark);
        }
        for piece in pieces.rev() {
            let mut active = group.active.split_off(&piece.low);
            if planted!(self.environment, SplitForgets) {
                active.span = None;
            }
            after += active.bytes;
            let split = Group {
                leaves: piece.leaves,
                page: piece.page,
                watermark: piece.watermark,
                active,
                frozen: None,
                is_damaged: false,
            };
            behind.push(Place {
                low: piece.low,
                group: Arc::new(E::rw_lock(split)),
            });
        }
        after += group.active.bytes;
        self.note_changes(before, after);
        let is_empty = group.leaves.is_empty() && group.active.is_empty();
        drop(group);
        behind.reverse();
        if is_empty && behind.is_empty() && index > 0 {
            // The one before has its keys from now on.
            places.remove(index);
        } else {
            places.splice(index + 1..index + 1, behind);
        }
    }

    /// A group's changes are as they were before it was to be written.
    fn thaw(&self, chosen: &Chosen<E>) {
        let mut group = E::exclude(&chosen.group);
        let Some(frozen) = group.frozen.take() else {
            return;
        };
        if planted!(self.environment, ThawForgets) {
            return;
        }
        let is_removed = chosen.keyspace.is_removed.load(Ordering::Acquire);
        if is_removed && !planted!(self.environment, ThawRemoved) {
            // Whoever removed it has left what was frozen to this checkpoint.
            self.changes.fetch_sub(frozen.bytes, Ordering::Relaxed);
            return;
        }
        let before = frozen.bytes + group.active.bytes;
        let newer = std::mem::take(&mut group.active);
        let mut changes = (*frozen).clone();
        changes.append(&newer);
        self.note_changes(before, changes.bytes);
        group.active = changes;
    }
}
