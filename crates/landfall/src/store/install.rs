//! What memory knows of groups once they were written, or could not be.
//!
//! A group that was cut gets new ones behind it; one that got empty goes, and the one before has its keys. What was frozen of a
//! group that was not written is active again.

use std::sync::atomic::Ordering;

use super::changes::Changes;
use super::gaps::Gaps;
use super::groups::{Chosen, Piece};
use super::shared::Shared;
use super::tree::{Group, Place, group_of};
use crate::environment::{Environment, planted};

impl<E: Environment> Shared<E> {
    /// The group's leaves are those that were written, and its changes are in them.
    pub(super) fn install(&self, chosen: &Chosen<E>, pieces: Vec<Piece<E>>) {
        let mut places = E::exclude(&chosen.keyspace.groups);
        let index = group_of(&places, &chosen.low);
        let mut group = E::exclude(&chosen.group);
        let before = chosen.frozen.bytes + group.active.bytes;
        group.frozen = None;
        (group.flushed, group.flushed_bytes) = (None, 0);
        (group.damage, group.is_tedious) = (None, false);
        // It may have fewer keys from now on.
        group.gaps.clear();
        places[index].emptiness.take_back();
        group.turns += 1;
        let leaves_before = group.leaves.len();
        let mut behind = Vec::new();
        let mut after = 0;
        // Those of a keyspace that was removed meanwhile are nobody's.
        let is_removed = chosen.keyspace.is_removed.load(Ordering::Acquire);
        let pieces = if is_removed { Vec::new() } else { pieces };
        let mut pieces = pieces.into_iter();
        if let Some(first) = pieces.next() {
            (group.leaves, group.runs) = (first.leaves, first.runs);
            (group.page, group.watermark) = (first.page, first.watermark);
        }
        let is_cut = pieces.len() > 0 && !planted!(self.environment, CutForgetsWidened);
        let mut widened = is_cut && std::mem::take(&mut group.is_widened);
        for piece in pieces.rev() {
            let mut active = group.active.split_off(&piece.low);
            if planted!(self.environment, SplitForgets) {
                active.span = None;
            }
            after += active.bytes;
            let split = Group {
                flushed: None,
                flushed_bytes: 0,
                // Of what was cut the last piece has the keys of who went behind it.
                is_widened: std::mem::take(&mut widened),
                leaves: piece.leaves,
                runs: piece.runs,
                page: piece.page,
                watermark: piece.watermark,
                active,
                gaps: Gaps::default(),
                turns: 0,
                frozen: None,
                damage: None,
                is_tedious: false,
            };
            behind.push(Place::new(piece.low, split));
        }
        if group.leaves.len() != leaves_before {
            // They were charged for leaves that are others now.
            group.active.forget_charges();
        }
        if group.has_none_on_disk() && group.active.has_no_keys() {
            // Ranges that were removed meanwhile hide nothing.
            group.active = Changes::default();
        }
        after += group.active.bytes;
        self.note_changes(before, after);
        let is_empty = group.has_none_on_disk() && group.active.is_empty();
        drop(group);
        behind.reverse();
        if is_empty && behind.is_empty() && index > 0 {
            // The one before has its keys from now on.
            places.remove(index);
            let before = &places[index - 1];
            let mut widened = E::exclude(&before.group);
            widened.is_widened = !planted!(self.environment, HomeOfWidened);
            // What was said of it was not said of these keys.
            before.emptiness.take_back();
            widened.turns += 1;
        } else {
            places.splice(index + 1..index + 1, behind);
        }
    }

    /// The group's changes are at home; what says where that is stays, and so does the log.
    pub(super) fn install_flushed(&self, chosen: &Chosen<E>, piece: Piece<E>) {
        let mut group = E::exclude(&chosen.group);
        let Some(frozen) = group.frozen.take() else {
            return;
        };
        self.changes.fetch_sub(frozen.bytes, Ordering::Relaxed);
        if chosen.keyspace.is_removed.load(Ordering::Acquire) {
            return;
        }
        group.leaves = piece.leaves;
        group.damage = None;
        group.flushed_bytes += frozen.records();
        group.flushed = match (group.flushed, frozen.span) {
            (Some((first, _)), Some((_, last))) => Some((first, last)),
            (before, span) => before.or(span),
        };
    }

    /// A group's changes are as they were before it was to be written.
    pub(super) fn thaw(&self, chosen: &Chosen<E>) {
        let mut group = E::exclude(&chosen.group);
        let Some(frozen) = group.frozen.take() else {
            return;
        };
        debug_assert!(group.flushed == chosen.flushed);
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
