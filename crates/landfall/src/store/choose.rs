//! Which groups a checkpoint writes: those with the oldest changes, so that the log need not go back far, until enough memory is
//! free; and those whose runs take the most, until runs take no more than they may. They are *frozen*: what comes from then on
//! is for the next one.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::checkpoint::Goal;
use super::groups::{Chosen, Scope};
use super::protection::Protection;
use super::removed::Removed;
use super::runs::budget::{Buffered, How, how, how_to_spare_space};
use super::runs::bytes_of;
use super::shared::Shared;
use super::tree::{Keyspace, Place};
use crate::environment::{Environment, planted};

/// What part of the data file one checkpoint writes again at the most: until it is durable, the old leaves take space as well.
const PART: u64 = 8;
/// Bytes of leaves that it writes again however small the file is.
#[cfg(not(test))]
const LEAST_PART: u64 = 16 << 20;
#[cfg(test)]
const LEAST_PART: u64 = 4 << 10;

/// Bytes that merging runs that are too many may take of one checkpoint, for each byte of changes that there may be: so many that
/// those who commit wait no longer for it than where nothing is kept in runs.
const MERGED_FOR_EACH: u64 = 16;

/// What a checkpoint may take space for, until it is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// For what spares writing later; and for groups of so many bytes at the most that are merged because runs are too many, or
    /// one group.
    Usual { most_debt: u64 },
    /// For what waits in memory alone.
    Least,
    /// For no group: a root without the keyspaces that are gone frees what they had.
    Keyspaces,
    /// For groups that free more than they take.
    Removals,
}

/// A group that may be written.
struct Candidate<E: Environment> {
    keyspace: Arc<Keyspace<E>>,
    place: Place<E>,
    /// The first key behind it.
    high: Option<Arc<[u8]>>,
    /// The first commit of which it has a change that is to be written.
    first: Option<u64>,
    /// What its changes take in memory.
    bytes: usize,
    is_damaged: bool,
    buffered: Buffered,
    /// All that it has on the disk was removed with ranges.
    is_removed: bool,
    /// It has nothing at all: a checkpoint before had it, since it got empty with that one.
    is_empty: bool,
}

impl<E: Environment> Candidate<E> {
    fn is_elsewhere(&self, protection: Protection) -> bool {
        !self.keyspace.options.in_place || protection == Protection::Shadow
    }

    /// Bytes that merging it writes again at most, about.
    fn merged(&self) -> u64 {
        if self.is_removed {
            0
        } else {
            self.buffered.all()
        }
    }

    /// Whether writing it frees more than it takes: nothing of its changes gives a key a value, or leaves that were removed whole took
    /// more than that. Each leaf that is given something may become two.
    fn frees_more(&self, oldest: Option<u64>, granule: u64) -> bool {
        let group = E::share(&self.place.group);
        let removed = group.active.removed();
        let ends = group.leaves.iter().skip(1).map(|next| Some(&*next.low));
        let leaves = group.leaves.iter().zip(ends.chain([self.high.as_deref()]));
        let gone =
            leaves.filter(|(leaf, end)| removed.of_keys(&leaf.low, *end, oldest) == Removed::All);
        let freed: u64 = gone.map(|(leaf, _)| leaf.page.bytes()).sum();
        let (values, bytes) = group.active.given();
        let takes = bytes as u64 + 2 * granule * values.min(group.leaves.len()) as u64;
        values == 0 || freed > takes
    }

    /// What is best made of its changes.
    fn how(&self, percent: u8, effort: Effort, forgets_ranges: bool) -> How {
        let group = E::share(&self.place.group);
        // What is damaged is merged, if it can be written at all: then it is damaged no more.
        if self.keyspace.options.in_place || self.is_damaged {
            return How::Merge;
        }
        // Only leaves can do without what a range hides.
        if !group.active.removed().is_empty() && !forgets_ranges {
            return How::Merge;
        }
        match effort {
            Effort::Usual { .. } => how(&group, percent),
            Effort::Least => how_to_spare_space(&group, percent),
            // In a run a removal frees nothing.
            Effort::Keyspaces | Effort::Removals => How::Merge,
        }
    }

    fn freeze(&self, how: How, is_debt: bool, forgets_ranges: bool) -> Chosen<E> {
        let mut group = E::exclude(&self.place.group);
        let frozen = Arc::new(std::mem::take(&mut group.active));
        group.frozen = Some(frozen.clone());
        // A range may have come since it was looked at, which no run can have.
        let how = if frozen.removed().is_empty() || forgets_ranges {
            how
        } else {
            How::Merge
        };
        Chosen {
            keyspace: self.keyspace.clone(),
            low: self.place.low.clone(),
            high: self.high.clone(),
            leaves: group.leaves.clone(),
            runs: group.runs.clone(),
            page: group.page.clone(),
            watermark: group.watermark,
            how,
            is_debt,
            frozen,
            flushed: group.flushed,
            is_widened: group.is_widened,
            group: self.place.group.clone(),
        }
    }
}

impl<E: Environment> Shared<E> {
    /// Whether nothing is to be written, and the log has commits all the same: what they did was removed with its keyspace.
    pub(super) fn has_surplus(&self, goal: Goal, visible: u64) -> bool {
        let most = self.options.max_recovery_time;
        let is_long = || E::lock(&self.schedule).is_due(visible + 1, most);
        self.log.first_lsn().0 <= visible && (goal == Goal::Everything || is_long())
    }

    /// Groups that have changes that are to be written, or runs.
    fn candidates(&self, scope: Scope, oldest: Option<u64>) -> Vec<Candidate<E>> {
        let mut found = Vec::new();
        let is_flush = scope == Scope::Homes;
        let is_chosen = |keyspace: &Arc<Keyspace<E>>| !is_flush || keyspace.options.in_place;
        for keyspace in self.all_keyspaces().into_iter().filter(is_chosen) {
            let places: Vec<Place<E>> = E::share(&keyspace.groups).clone();
            let behind = places.iter().skip(1).map(|next| Some(next.low.clone()));
            let behind: Vec<_> = behind.chain([None]).collect();
            for (index, (place, high)) in places.into_iter().zip(behind).enumerate() {
                let group = E::share(&place.group);
                let first = if is_flush {
                    group.active.span.map(|(first, _)| first)
                } else {
                    group.pending()
                };
                let buffered = Buffered {
                    leaf_bytes: group.leaves.bytes,
                    run_bytes: bytes_of(&group.runs),
                };
                let is_empty = group.has_none_on_disk() && group.active.is_empty();
                let is_empty = is_empty && index > 0 && !is_flush;
                if first.is_some() || buffered.leaf_bytes > 0 || is_empty {
                    let (bytes, is_damaged) = (group.active.bytes, group.damage.is_some());
                    let removed = group.active.removed();
                    let removed = removed.of_keys(&place.low, high.as_deref(), oldest);
                    drop(group);
                    found.push(Candidate {
                        keyspace: keyspace.clone(),
                        place,
                        high,
                        first,
                        bytes,
                        is_damaged,
                        buffered,
                        is_removed: removed == Removed::All,
                        is_empty,
                    });
                }
            }
        }
        found
    }

    /// Freezes the groups that are to be written; not more than `most_groups`, and then those that are given the least.
    pub(super) fn choose(
        &self,
        goal: Goal,
        scope: Scope,
        visible: u64,
        protection: Protection,
        effort: Effort,
        most_groups: usize,
    ) -> Vec<Chosen<E>> {
        let oldest = E::lock(&self.committing).snapshots.oldest();
        let mut found = self.candidates(scope, oldest);
        let mut buffered = Buffered::default();
        // What is damaged cannot be merged, and is no debt that can be paid.
        let may_owe = |one: &&Candidate<E>| !one.keyspace.options.in_place && !one.is_damaged;
        for one in found.iter().filter(may_owe) {
            buffered.leaf_bytes += one.buffered.leaf_bytes;
            buffered.run_bytes += one.buffered.run_bytes;
        }
        let mut room = (self.space.end() / PART).max(LEAST_PART);
        let mut chosen = Vec::new();
        let forgets_ranges = planted!(self.environment, RunForgetsRanges);
        let percent = self.buffer_percent();
        let mut debt = buffered.debt(percent);
        if let Effort::Usual { most_debt } = effort
            && debt > 0
        {
            let most = self.most_changes() as u64;
            let for_each = MERGED_FOR_EACH + 100 / u64::from(percent).max(1);
            let most = most.saturating_mul(for_each).max(LEAST_PART);
            let mut room_of_debt = (room / 2).min(most).min(most_debt);
            room -= room_of_debt;
            // The fullest first.
            found.sort_by_key(|one| {
                let Buffered {
                    leaf_bytes,
                    run_bytes,
                } = one.buffered;
                let fullness = u128::from(run_bytes << 16) / u128::from(leaf_bytes.max(1));
                Reverse(fullness)
            });
            found.retain(|one| {
                let has_room = one.buffered.all() <= room_of_debt || chosen.is_empty();
                let owes = may_owe(&one) && one.buffered.run_bytes > 0;
                let is_merged = debt > 0 && owes && has_room;
                if is_merged {
                    room_of_debt = room_of_debt.saturating_sub(one.buffered.all());
                    debt = debt.saturating_sub(one.buffered.run_bytes);
                    chosen.push(one.freeze(How::Merge, true, false));
                }
                !is_merged
            });
            room += room_of_debt;
        }
        // Half of the commits that the log has are given up at least, where it is too long. Those that it has for what is damaged
        // alone are not counted: they stay.
        let begin = E::lock(&self.schedule).first();
        let begin = self.log.first_lsn().0.max(begin);
        let middle = begin + (visible + 1).saturating_sub(begin) / 2;
        let is_long = E::lock(&self.schedule).is_due(visible + 1, self.options.max_recovery_time);
        let is_old = |one: &Candidate<E>| is_long && one.first.is_some_and(|first| first < middle);
        // Those that nobody waits for come last, or whoever waits for all others might wait for ever.
        let is_later = |one: &Candidate<E>| one.first.is_some_and(|first| first > visible);
        found.retain(|one| match effort {
            Effort::Usual { .. } => one.first.is_some() || one.is_empty,
            Effort::Least => one.first.is_some(),
            Effort::Keyspaces => false,
            Effort::Removals => {
                let is_asked_for = one.first.is_some() && !is_later(one) && !one.is_damaged;
                is_asked_for && one.frees_more(oldest, self.granule)
            }
        });
        if found.len() > most_groups {
            // What was removed whole frees more than it takes; then removals of much of a group's leaves, or what is given the least.
            found.sort_by_cached_key(|one| {
                let bytes = one.bytes as u64;
                let takes = match effort {
                    Effort::Removals => (one.buffered.all() << 10) / bytes.max(1),
                    _ => bytes,
                };
                let (is_later, is_old) = (is_later(one), is_old(one));
                (one.is_damaged, is_later, !is_old, !one.is_removed, takes)
            });
            found.truncate(most_groups);
        }
        // What is damaged cannot be written, unless its damage is gone.
        found.sort_by_key(|one| (one.is_damaged, one.first));
        let (enough, most) = (self.enough_changes(), self.most_changes());
        let target = enough.saturating_sub(most / 8);
        let mut left = self.changes.load(Ordering::Relaxed);
        let frozen = chosen.iter().map(|chosen| chosen.frozen.bytes);
        left = left.saturating_sub(frozen.sum());
        // One is written whatever it takes, besides those that were merged for the sake of others: else it would wait for ever.
        let mut is_first = true;
        for one in found {
            if goal != Goal::Everything && left <= target && !is_old(&one) {
                break;
            }
            let how = one.how(percent, effort, forgets_ranges);
            if how == How::Merge && one.is_elsewhere(protection) {
                if one.merged() > room && !is_first {
                    room = 0;
                    continue;
                }
                room = room.saturating_sub(one.merged());
            }
            is_first &= one.is_empty;
            left = left.saturating_sub(one.bytes);
            chosen.push(one.freeze(how, false, forgets_ranges));
        }
        chosen
    }

    pub(super) fn all_keyspaces(&self) -> Vec<Arc<Keyspace<E>>> {
        E::share(&self.keyspaces).all.values().cloned().collect()
    }
}
