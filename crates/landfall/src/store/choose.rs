//! Which groups a checkpoint writes: those with the oldest changes, so that the log need not go back far, until enough memory is
//! free. They are *frozen*: what comes from then on is for the next one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::checkpoint::Goal;
use super::groups::{Chosen, Scope};
use super::protection::Protection;
use super::shared::Shared;
use super::tree::{Keyspace, Place};
use crate::environment::Environment;

/// What part of the data file one checkpoint writes again at the most: until it is durable, the old leaves take space as well.
const PART: u64 = 8;
/// Bytes of leaves that it writes again however small the file is.
#[cfg(not(test))]
const LEAST_PART: u64 = 16 << 20;
#[cfg(test)]
const LEAST_PART: u64 = 4 << 10;

impl<E: Environment> Shared<E> {
    /// Whether nothing is to be written, and the log has commits all the same: what they did was removed with its keyspace.
    pub(super) fn has_surplus(&self, goal: Goal, visible: u64) -> bool {
        let most = self.options.max_recovery_time;
        let is_long = || E::lock(&self.schedule).is_due(visible + 1, most);
        self.log.first_lsn().0 <= visible && (goal == Goal::Everything || is_long())
    }

    /// Freezes the groups that are to be written.
    pub(super) fn choose(
        &self,
        goal: Goal,
        scope: Scope,
        visible: u64,
        protection: Protection,
    ) -> Vec<Chosen<E>> {
        let mut found = Vec::new();
        let is_flush = scope == Scope::Homes;
        let is_chosen = |keyspace: &Arc<Keyspace<E>>| !is_flush || keyspace.options.in_place;
        for keyspace in self.all_keyspaces().into_iter().filter(is_chosen) {
            let places: Vec<Place<E>> = E::share(&keyspace.groups).clone();
            let behind = places.iter().skip(1).map(|next| Some(next.low.clone()));
            let behind: Vec<_> = behind.chain([None]).collect();
            for (place, high) in places.into_iter().zip(behind) {
                let group = E::share(&place.group);
                let first = if is_flush {
                    group.active.span.map(|(first, _)| first)
                } else {
                    group.pending()
                };
                if let Some(first) = first {
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
            let is_elsewhere = !keyspace.options.in_place || protection == Protection::Shadow;
            if is_elsewhere {
                if leaves > room && !chosen.is_empty() {
                    break;
                }
                room = room.saturating_sub(leaves);
            }
            left = left.saturating_sub(bytes);
            let frozen = Arc::new(std::mem::take(&mut group.active));
            group.frozen = Some(frozen.clone());
            let (flushed, is_widened) = (group.flushed, group.is_widened);
            chosen.push(Chosen {
                keyspace,
                low: place.low,
                high,
                leaves: group.leaves.clone(),
                frozen,
                flushed,
                is_widened,
                group: place.group.clone(),
            });
        }
        chosen
    }

    pub(super) fn all_keyspaces(&self) -> Vec<Arc<Keyspace<E>>> {
        E::share(&self.keyspaces).all.values().cloned().collect()
    }
}
