//! Checkpoints: changes are written into leaves, and then the log need not go back to them.
//!
//! Leaves, the page of each group, and the root are written where nothing is that anybody may still need. Then they are made
//! durable, by one sync; then the log is, up to the last commit that is in them; and only then the control record is written
//! that leads to the new root. Until both copies of that are durable everything the old one leads to is held, and nothing
//! in memory has changed: a checkpoint that fails before has changed nothing, and can be tried again. After a control record
//! that could not be written, nobody knows which root counts: the store takes no more checkpoints until it is opened again.
//!
//! Where leaves have homes they can be *flushed* instead: written there, and nothing else. The log keeps their changes, so that
//! a checkpoint is made before long.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::changes::Changes;
use super::choose::Effort;
use super::control::{Control, ControlFile, Draft};
use super::counters::Written;
use super::data_file::Pages;
use super::groups::{Chosen, Groups, Order, Piece, Pieces, Scope, Writing};
use super::homes::Copies;
use super::page::Kind;
use super::protection::Protection;
use super::root::{GroupEntry, KeyspaceEntry, Root, Span};
use super::runs::Runs;
use super::runs::budget::How;
use super::shared::Shared;
use super::tree::{Group, Leaves, Page, Place};
use crate::environment::{Environment, planted};
use crate::{Compression, Error, Lsn};

/// Where a group is written where its leaves are, and they, and its runs.
pub(crate) type Held<E> = (Option<Arc<Page<E>>>, Arc<Leaves<E>>, Arc<Runs<E>>);

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
    /// What that is made of, where there is none yet.
    pub draft: Option<Draft<E>>,
    /// The number of the data file.
    pub data: u64,
    /// Attempts to write leaves since the store was opened.
    pub attempts: u64,
    /// The commit behind the last of which a page may have something.
    pub end: u64,
    /// Bytes of leaves and runs that one merges at the most because runs are too many: fewer once there was no space for them.
    pub most_debt: u64,
    /// Groups that one writes at the most: fewer once there was no space for more.
    pub most_groups: usize,
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

/// What was made.
pub(super) struct Made {
    scope: Scope,
    written: Written,
}

/// A checkpoint that is durable.
struct Done<E: Environment> {
    pieces: Pieces<E>,
    durable: Durable<E>,
    first: u64,
    /// The first commit that is not in the log for what is damaged alone.
    first_writable: u64,
    end: u64,
    written: Written,
}

fn panicked() -> Error {
    Error::broken("a checkpoint panicked")
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
            // A panic has told of itself.
            let made = catch_unwind(AssertUnwindSafe(|| self.checkpoint(Goal::Due)));
            let made = made.unwrap_or_else(|_| Err(panicked()));
            if let Err(error) = &made
                && !matches!(error, Error::Closed)
            {
                tracing::warn!(%error, "no checkpoint could be made");
            }
            work = E::lock(&self.work);
            work.tried += 1;
            if made.is_ok() {
                (work.taken_by_keys, work.taken_by_ranges) = (0, 0);
            }
            work.failure = made.err();
            self.room.wake_all();
        }
    }

    /// Makes one, and waits for it; or as many as it takes until all is in them that was committed before.
    pub fn checkpoint(self: &Arc<Self>, goal: Goal) -> Result<(), Error> {
        let mut checkpoints = E::lock(&self.checkpoints);
        let make = AssertUnwindSafe(|| self.make_all(&mut checkpoints, goal));
        catch_unwind(make).unwrap_or_else(|panic| {
            // What it leaves is not trusted.
            checkpoints.failure = Some(panicked());
            self.set_limit(self.most_changes());
            resume_unwind(panic)
        })
    }

    fn make_all(
        self: &Arc<Self>,
        checkpoints: &mut Checkpoints<E>,
        goal: Goal,
    ) -> Result<(), Error> {
        let visible = E::lock(&self.committing).visible;
        loop {
            // Who closes the store waits for this one, and not for others.
            if self.is_closing.load(Ordering::SeqCst) {
                return Err(Error::Closed);
            }
            let made = self.make(checkpoints, goal);
            self.set_limit(self.most_changes());
            let mut tally = E::lock(&self.tally);
            match &made {
                Ok(None) => {}
                Ok(Some(made)) => {
                    match made.scope {
                        Scope::Everything => tally.checkpoints += 1,
                        Scope::Homes => tally.flushes += 1,
                    }
                    tally.written.add(made.written);
                }
                Err(_) => tally.failed_checkpoints += 1,
            }
            drop(tally);
            let is_whole = matches!(&made, Ok(Some(made)) if made.scope == Scope::Everything);
            // The checkpoint is made all the same, and it is tried again after others.
            if is_whole && let Err(error) = self.choose_buffer() {
                tracing::warn!(%error, "the buffer cannot be turned");
            }
            if made?.is_none() || goal != Goal::Everything {
                return Ok(());
            }
            if !self.is_waiting(visible) {
                // What is damaged waits for ever. Why, was found when it was tried last: there may have been no room for that this time.
                return self.damage_of_waiting(visible).map_or(Ok(()), Err);
            }
        }
    }

    /// Whether changes of this commit or an older one are in no leaf, and can be.
    fn is_waiting(&self, visible: u64) -> bool {
        let found = self.find_waiting(visible, |group| group.damage.is_none().then_some(()));
        found.is_some()
    }

    /// Why some are in no leaf, and cannot be.
    fn damage_of_waiting(&self, visible: u64) -> Option<Error> {
        self.find_waiting(visible, |group| group.damage.clone())
    }

    /// What is found first of a group of which such changes wait.
    fn find_waiting<T>(&self, visible: u64, find: impl Fn(&Group<E>) -> Option<T>) -> Option<T> {
        let of_group = |place: &Place<E>| {
            let group = E::share(&place.group);
            let is_old = group.pending().is_some_and(|first| first <= visible);
            is_old.then(|| find(&group)).flatten()
        };
        let keyspaces = self.all_keyspaces();
        let mut lists = keyspaces.iter().map(|keyspace| E::share(&keyspace.groups));
        lists.find_map(|groups| groups.iter().find_map(of_group))
    }

    pub(super) fn make(
        self: &Arc<Self>,
        checkpoints: &mut Checkpoints<E>,
        goal: Goal,
    ) -> Result<Option<Made>, Error> {
        if let Some(failure) = &checkpoints.failure {
            return Err(failure.clone());
        }
        E::lock(&self.homes).try_all();
        let most_debt = checkpoints.most_debt;
        let effort = Effort::Usual { most_debt };
        if goal == Goal::Due && self.may_flush() {
            let flushed = self.write_chosen(checkpoints, goal, Scope::Homes, effort)?;
            let is_enough = self.changes.load(Ordering::Relaxed) <= self.enough_changes();
            if flushed.is_some() && is_enough && self.debt() == 0 {
                return Ok(flushed);
            }
        }
        self.write_chosen(checkpoints, goal, Scope::Everything, effort)
    }

    /// Whether enough can be written at home, while the log stays as it is: what opening the store would have to apply again
    /// takes no more memory, and no more time, than it may.
    fn may_flush(&self) -> bool {
        let is_protected = self.protection().protection != Protection::Shadow;
        let visible = E::lock(&self.committing).visible;
        let most = self.options.max_recovery_time;
        let is_long = || E::lock(&self.schedule).is_due(visible + 1, most);
        is_protected && self.records() <= self.most_changes() && !is_long()
    }

    /// Bytes that changes would take which opening the store would have to apply again.
    fn records(&self) -> usize {
        let of_group = |place: &Place<E>| {
            let group = E::share(&place.group);
            group.flushed_bytes + group.changes().map(Changes::records).sum::<usize>()
        };
        let keyspaces = self.all_keyspaces();
        let lists = keyspaces.iter().map(|keyspace| E::share(&keyspace.groups));
        lists
            .map(|groups| groups.iter().map(of_group).sum::<usize>())
            .sum()
    }

    /// Writes what is chosen; where there is no space for all of it, what waits in memory alone, and then fewer and fewer groups of it:
    /// what they took before is free for the next ones. `None`: there was nothing to write.
    fn write_chosen(
        self: &Arc<Self>,
        checkpoints: &mut Checkpoints<E>,
        goal: Goal,
        scope: Scope,
        effort: Effort,
    ) -> Result<Option<Made>, Error> {
        // Whatever is committed from here on is applied again, unless it is in a group that is frozen later.
        let (visible, early) = {
            let committing = E::lock(&self.committing);
            (committing.visible, committing.snapshots.numbers())
        };
        let begun = self
            .make_data_file(&mut checkpoints.data)
            .and_then(|()| self.begin_homes(self.protection().protection));
        let protection = begun.inspect_err(|_| self.note_failure(checkpoints))?;
        if scope == Scope::Homes && protection == Protection::Shadow {
            return Ok(None);
        }
        let most_groups = match scope {
            Scope::Everything => checkpoints.most_groups,
            Scope::Homes => usize::MAX,
        };
        let effort = match effort {
            Effort::Usual { .. } if most_groups < usize::MAX => Effort::Least,
            effort => effort,
        };
        let percent = self.buffer_percent();
        let chosen = self.choose(goal, scope, visible, protection, effort, most_groups);
        let is_idle = match effort {
            _ if scope == Scope::Homes => true,
            // A root without the keyspaces that are gone frees what they had.
            Effort::Keyspaces => !self.lacks_change(checkpoints),
            Effort::Removals => true,
            _ => !self.has_surplus(goal, visible),
        };
        if chosen.is_empty() && is_idle {
            return Ok(None);
        }
        let frees = matches!(effort, Effort::Keyspaces | Effort::Removals);
        if frees {
            self.space.let_go();
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
        checkpoints.attempts += 1;
        // No two attempts have the same, of whatever life of the store: each gives the data file the next number.
        let generation = checkpoints.data << 32 | checkpoints.attempts;
        let order = Order {
            snapshots,
            number,
            generation,
            protection,
            scope,
            effort,
            percent,
        };
        let writing = Arc::new(self.writing(chosen, order));
        let made = match scope {
            Scope::Everything => self.complete(checkpoints, &writing, visible + 1),
            Scope::Homes => self.flush(&writing),
        };
        let debts = writing.chosen.iter().filter(|chosen| chosen.is_debt);
        let debt: u64 = debts.map(Chosen::work).sum();
        let written = match made {
            Ok(made) => made,
            Err(error) => {
                for chosen in &writing.chosen {
                    self.thaw(chosen);
                }
                let lacks_images = self.lacks_images(&writing);
                // Who waits for the other thread may say something else.
                let is_full = lacks_images || matches!(error, Error::NoSpace { .. });
                let lacks_protection =
                    is_full && (lacks_images || E::lock(&self.homes).give_up_copies());
                if is_full && !lacks_protection && debt > 0 {
                    checkpoints.most_debt = debt / 2;
                }
                let less = if !is_full || !self.may_be_tried_again(checkpoints) {
                    None
                } else if lacks_protection {
                    Some(effort)
                } else {
                    self.less(checkpoints, &writing)
                };
                let groups = writing.chosen.len();
                // What was written is free again.
                drop(writing);
                if frees {
                    self.keep_spare(checkpoints);
                }
                let Some(less) = less else {
                    self.note_failure(checkpoints);
                    return Err(error);
                };
                tracing::warn!(%error, groups, ?less, "no space for so much at once: less is written");
                E::lock(&self.tally).failed_checkpoints += 1;
                return match self.write_chosen(checkpoints, goal, scope, less) {
                    // Nothing can be written at home for now: it is written elsewhere, with everything.
                    Ok(None) if scope == Scope::Homes => Ok(None),
                    // There was nothing less, or nothing that can be written.
                    Ok(None) | Err(Error::Corrupt { .. } | Error::LogLost { .. }) => {
                        self.note_failure(checkpoints);
                        Err(error)
                    }
                    made => made,
                };
            }
        };
        if written.given_keys > 0 {
            self.is_appended_to
                .store(written.is_append(), Ordering::Relaxed);
        }
        if scope == Scope::Everything {
            self.keep_spare(checkpoints);
        }
        if scope == Scope::Everything && effort != Effort::Keyspaces {
            checkpoints.most_groups = if writing.chosen.len() < most_groups {
                usize::MAX
            } else {
                most_groups.saturating_mul(2)
            };
        }
        if debt > 0 {
            // Not at once as much as there was no space for.
            let more = checkpoints.most_debt / 4;
            checkpoints.most_debt = checkpoints.most_debt.saturating_add(more);
        }
        Ok(Some(Made { scope, written }))
    }

    fn note_failure(&self, checkpoints: &mut Checkpoints<E>) {
        let next = self.log.next_lsn().0;
        E::lock(&self.schedule).failed(next);
        self.is_appended_to.store(false, Ordering::Relaxed);
        if let Some(failure) = E::lock(&self.homes).failure() {
            checkpoints.failure = Some(failure);
        }
    }

    /// Writes groups wherever, and makes them count.
    fn complete(
        self: &Arc<Self>,
        checkpoints: &mut Checkpoints<E>,
        writing: &Arc<Writing<E>>,
        next: u64,
    ) -> Result<Written, Error> {
        let done = self.write_all(checkpoints, writing, next)?;
        let first = done.first;
        let mut written = done.written;
        written.add(self.end_homes(true));
        checkpoints.number += 1;
        checkpoints.end = done.end;
        // The root has groups as they were when this began.
        for keyspace in self.all_keyspaces() {
            for place in E::share(&keyspace.groups).iter() {
                let is_widened = E::share(&place.group).is_widened;
                if is_widened {
                    E::exclude(&place.group).is_widened = false;
                }
            }
        }
        let mut has_merged = false;
        for (chosen, pieces) in writing.chosen.iter().zip(done.pieces) {
            match pieces {
                Some(pieces) => {
                    has_merged |= chosen.how == How::Merge && !chosen.runs.is_empty();
                    self.install(chosen, pieces);
                }
                None => self.thaw(chosen),
            }
        }
        // Only now may the old pages be overwritten.
        let before = std::mem::replace(&mut checkpoints.durable, done.durable);
        drop(before);
        // A log that is long for what is damaged alone is no reason to make one after the other.
        E::lock(&self.schedule).taken(done.first_writable, std::time::Duration::ZERO);
        tracing::debug!(number = checkpoints.number, first, "a checkpoint was made");
        // It merges no more at once than there is room for; and it may have written runs while it was said that there be fewer.
        let is_turned_down = self.buffer_percent() < writing.order.percent;
        if (has_merged || is_turned_down) && self.debt() > 0 {
            self.ask();
        }
        // What it no longer needs of the log would be applied again, and change nothing.
        self.log.truncate_before(Lsn(first))?;
        Ok(written)
    }

    /// Writes groups at home. The log has their changes until the next checkpoint.
    fn flush(self: &Arc<Self>, writing: &Arc<Writing<E>>) -> Result<Written, Error> {
        let Groups {
            pieces,
            mut written,
        } = self.write_groups(writing)?;
        self.write_last_homes(writing.order.protection, writing.newest)?;
        written.add(self.end_homes(false));
        for (chosen, pieces) in writing.chosen.iter().zip(pieces) {
            match pieces.and_then(|pieces| pieces.into_iter().next()) {
                Some(piece) => self.install_flushed(chosen, piece),
                None => self.thaw(chosen),
            }
        }
        Ok(written)
    }

    /// Writes everything, and makes it count.
    fn write_all(
        self: &Arc<Self>,
        checkpoints: &mut Checkpoints<E>,
        writing: &Arc<Writing<E>>,
        next: u64,
    ) -> Result<Done<E>, Error> {
        let (chosen, number) = (&writing.chosen, writing.order.number);
        if planted!(self.environment, FreeBeforeControl) {
            checkpoints.durable.groups.clear();
            checkpoints.durable.root = None;
        }
        let Groups {
            pieces,
            mut written,
        } = self.write_groups(writing)?;
        self.write_last_homes(writing.order.protection, writing.newest)?;
        let copies = E::lock(&self.homes).copies.clone();
        let by_address: HashMap<Address<E>, &Vec<Piece<E>>> = chosen
            .iter()
            .zip(&pieces)
            .filter_map(|(chosen, pieces)| Some((Arc::as_ptr(&chosen.group), pieces.as_ref()?)))
            .collect();
        let spans = copies.as_ref().map(Copies::spans);
        let (root, first_writable, groups) =
            self.root(checkpoints, chosen, &by_address, next, spans);
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
            None => ControlFile::create(&self.environment, control, checkpoints.draft.take())
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
                .push((Some(root), Leaves::new(Vec::new()), Arc::default()));
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
            first_writable,
            end,
            written,
        })
    }

    /// The root as it will be, the first commit that is not in the log for what is damaged alone, and what the root leads to. `next`:
    /// commits from it on may be in no group that was written.
    fn root(
        &self,
        checkpoints: &Checkpoints<E>,
        chosen: &[Chosen<E>],
        pieces: &HashMap<Address<E>, &Vec<Piece<E>>>,
        next: u64,
        copies: Option<[Span; 2]>,
    ) -> (Root, u64, Vec<Held<E>>) {
        let (mut first, mut first_writable) = (next, next);
        let mut held = Vec::new();
        let mut keyspaces = Vec::new();
        let skipped = usize::from(planted!(self.environment, RunNotListed));
        // Until all is read: a keyspace is either gone from it, or whole, and not on its way.
        let mut known = E::share(&self.keyspaces);
        let changed = known.changed;
        let all: Vec<_> = known.all.values().cloned().collect();
        if planted!(self.environment, LetKeyspacesGo) {
            drop(known);
            known = E::share(&self.keyspaces);
        }
        for keyspace in all {
            let places: Vec<Place<E>> = E::share(&keyspace.groups).clone();
            let mut groups = Vec::new();
            for place in places {
                let group = E::share(&place.group);
                let written = pieces.get(&Arc::as_ptr(&place.group));
                let pending = match written {
                    // What was flushed is in what is written, too.
                    Some(_) => group.active.span.map(|(first, _)| first),
                    None if planted!(self.environment, ForgetLeftOut) => None,
                    None => group.pending(),
                };
                first = first.min(pending.unwrap_or(first));
                if written.is_some() || group.damage.is_none() {
                    first_writable = first_writable.min(pending.unwrap_or(next));
                }
                let entry = |low: &Arc<[u8]>,
                             watermark,
                             page: &Option<Arc<Page<E>>>,
                             runs: &Arc<Runs<E>>| GroupEntry {
                    low: low.clone(),
                    watermark,
                    page: page.as_ref().map(|page| page.pointer),
                    runs: runs.iter().skip(skipped).map(|run| run.entry).collect(),
                };
                match written {
                    Some(pieces) if !planted!(self.environment, SplitWithOldParent) => {
                        for piece in *pieces {
                            let (page, runs) = (&piece.page, &piece.runs);
                            groups.push(entry(&piece.low, piece.watermark, page, runs));
                            held.push((page.clone(), piece.leaves.clone(), runs.clone()));
                        }
                    }
                    Some(pieces) => {
                        let piece = &pieces[0];
                        let (page, runs) = (&piece.page, &piece.runs);
                        groups.push(entry(&piece.low, piece.watermark, page, runs));
                        held.push((page.clone(), piece.leaves.clone(), runs.clone()));
                    }
                    None => {
                        let (page, runs) = (&group.page, &group.runs);
                        groups.push(entry(&place.low, group.watermark, page, runs));
                        held.push((page.clone(), group.leaves.clone(), runs.clone()));
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
        let last = chosen
            .iter()
            .flat_map(|chosen| [chosen.frozen.span, chosen.flushed])
            .flatten();
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
        if planted!(self.environment, RunsNotHeld) {
            held.iter_mut()
                .for_each(|(_, _, runs)| *runs = Arc::default());
        }
        let root = Root {
            first,
            end: last.max(checkpoints.end).max(first),
            next_keyspace: known.next,
            protection: known.protection,
            buffer_percent: known.buffer_percent,
            copies,
            keyspaces,
        };
        (root, first_writable, held)
    }
}
