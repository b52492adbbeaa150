//! Which groups get a run, and which are merged.
//!
//! Runs may take a share of what leaves take. What was frozen of a group becomes a run, unless merging it at once writes less
//! than keeping it would in the end. When all runs take more than they may, the groups that are fullest are merged: those
//! whose runs take the most in proportion to their leaves. On average a group has half of what it has then: so each byte of
//! an update is written about `1 / (2 * share)` times into leaves.

use std::sync::atomic::Ordering;

use super::super::changes::Changes;
use super::super::record::Record;
use super::super::shared::Shared;
use super::super::tree::{Group, Leaves, Place};
use super::auto::{Auto, BufferChoice, Moved, Size};
use super::sources::keys_of_leaf;
use super::{Runs, bytes_of};
use crate::Error;
use crate::environment::Environment;

/// What becomes of a group that a checkpoint writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// All that it has goes into its leaves.
    Merge,
    /// What was frozen becomes a run.
    Run,
}

/// Removals in runs for each hundred keys of leaves from which on a group is merged: what they cover takes space, and time of
/// whoever goes through it.
const MOST_REMOVALS: u64 = 20;

/// How much of a store's leaves and runs there is, but for leaves in place.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Buffered {
    /// Bytes of the data file.
    pub leaf_bytes: u64,
    pub run_bytes: u64,
}

impl Buffered {
    /// What merging it reads, and about what it writes.
    pub fn all(&self) -> u64 {
        self.leaf_bytes + self.run_bytes
    }

    /// Bytes of runs that are too many, if they may take so many percent of leaves.
    pub fn debt(&self, percent: u8) -> u64 {
        let most = self.leaf_bytes / 100 * u64::from(percent);
        self.run_bytes.saturating_sub(most)
    }
}

/// How much fuller than its share a group gets before it is merged for itself: of those that fill evenly, the fullest have twice
/// the share when all runs have theirs.
const OVERFULL: u64 = 4;

/// The share at which merging is cheap only if it writes no more keys than it is given: so that a run would take as much.
const AS_SMALL: u8 = 50;

/// Whether merging a group of so many leaves at once would write less than keeping a run of these changes would cost.
fn merging_is_cheap<E: Environment>(
    leaves: &Leaves<E>,
    runs: &Runs<E>,
    changes: &Changes,
    percent: u8,
) -> bool {
    if leaves.is_empty() || percent == 0 {
        return true;
    }
    let mut given = 0;
    let mut rewritten = 0;
    for index in 0..leaves.len() {
        let (from, to) = keys_of_leaf(leaves, index);
        let (mut values, mut removals) = (0, 0);
        for (_, versions) in changes.range(from, to) {
            match versions.newest_first().next() {
                Some(version) if version.value.is_none() => removals += 1,
                _ => values += 1,
            }
        }
        if values + removals > 0 {
            // Of a leaf that gets empty nothing is written.
            let left = u64::from(leaves[index].keys).saturating_sub(removals);
            rewritten += left.max(values);
        }
        given += values + removals;
    }
    // In keys, as if all took the same. What is given is written in either way.
    let percent = u64::from(percent);
    if runs.is_empty() {
        return rewritten * 2 * percent <= given * 100;
    }
    // Leaves that its runs have something for are rewritten as well: perhaps all. One that is given more than it has, as where
    // rows are appended, would have runs that are larger than the group, and would not get smaller groups.
    let in_runs: u64 = runs.iter().map(|run| run.entry.entries).sum();
    // Small rows may get large values.
    let is_overfull = bytes_of(runs) * 100 > leaves.bytes * OVERFULL * percent;
    is_overfull || (leaves.keys + given) * OVERFULL * percent <= (in_runs + given) * 100
}

/// What becomes of a group that may have runs, and of its changes.
pub(crate) fn how<E: Environment>(group: &Group<E>, percent: u8) -> How {
    let Group {
        leaves,
        runs,
        active,
        ..
    } = group;
    let removals: u64 = runs.iter().map(|run| run.entry.removals).sum();
    let is_merged = percent == 0
        || group.is_tedious
        || removals * 100 > leaves.keys * MOST_REMOVALS
        || merging_is_cheap(leaves, runs, active, percent);
    if is_merged { How::Merge } else { How::Run }
}

/// How such a group takes the least space until the checkpoint is durable.
pub(crate) fn how_to_spare_space<E: Environment>(group: &Group<E>, percent: u8) -> How {
    let Group {
        leaves,
        runs,
        active,
        ..
    } = group;
    let is_small = || percent == 0 || merging_is_cheap(leaves, runs, active, AS_SMALL);
    // One that has runs may have another, whatever they may take: it is merged when there is space.
    let is_merged = leaves.is_empty() || runs.is_empty() && is_small();
    if is_merged { How::Merge } else { How::Run }
}

impl<E: Environment> Shared<E> {
    /// How many percent of what leaves take runs may take.
    pub fn buffer_percent(&self) -> u8 {
        E::share(&self.keyspaces).buffer_percent
    }

    /// Lets runs take so many percent from the next checkpoint on, and remembers it durably. Nobody chooses any more.
    pub fn set_buffer_percent(&self, percent: u8) -> Result<(), Error> {
        let mut auto = E::lock(&self.auto);
        self.turn_buffer(percent)?;
        *auto = None;
        Ok(())
    }

    /// Chooses how many percent runs may take, up to so many, from now on.
    pub fn set_buffer_auto(&self, most: u8) -> Result<(), Error> {
        let mut auto = E::lock(&self.auto);
        if self.buffer_percent() > most {
            self.turn_buffer(most)?;
        }
        // Under the lock: nobody who chooses has seen more.
        *auto = Some(Auto::new(most, self.moved()));
        Ok(())
    }

    /// What runs may take, and why.
    pub fn buffer(&self) -> BufferChoice {
        let auto = E::lock(&self.auto);
        BufferChoice {
            percent: self.buffer_percent(),
            auto_most: auto.as_ref().map(|auto| auto.most),
            expected: auto
                .as_ref()
                .map_or(Vec::new(), |auto| auto.expected.clone()),
        }
    }

    /// Turns the knob, if it is time for that and the store chooses.
    pub fn choose_buffer(&self) -> Result<(), Error> {
        let mut auto = E::lock(&self.auto);
        let now = self.moved();
        let Some(chooser) = auto.as_mut() else {
            return Ok(());
        };
        let percent = self.buffer_percent();
        let chosen = chooser.choose(now, &self.size(), percent);
        // Whoever sets it meanwhile comes after.
        match chosen.filter(|chosen| *chosen != percent) {
            Some(chosen) => {
                tracing::debug!(percent, chosen, "runs may take another share");
                self.turn_buffer(chosen)
            }
            None => Ok(()),
        }
    }

    fn moved(&self) -> Moved {
        let written = E::lock(&self.tally).written;
        Moved {
            updated: self.logical_bytes.load(Ordering::Relaxed),
            leaf_bytes: written.leaf_bytes - written.dense_leaf_bytes,
            dense_leaf_bytes: written.dense_leaf_bytes,
            given_keys: written.given_keys,
            dense_given_keys: written.dense_given_keys,
            pieces: self.pieces.load(Ordering::Relaxed),
        }
    }

    fn size(&self) -> Size {
        let mut size = Size {
            leaf_bytes: 0,
            leaves: 0,
            most_changes: self.most_changes() as u64,
            most_cached: (self.options.memory_bytes - self.most_changes()) as u64,
        };
        self.for_each_buffered(|group| {
            size.leaf_bytes += group.leaves.bytes;
            size.leaves += group.leaves.len() as u64;
        });
        size
    }

    /// Under the lock of who chooses.
    fn turn_buffer(&self, percent: u8) -> Result<(), Error> {
        let mut committing = E::lock(&self.committing);
        if self.buffer_percent() != percent {
            self.change_keyspaces(&mut committing, &Record::Buffer(percent), |keyspaces| {
                keyspaces.buffer_percent = percent;
            })?;
        }
        drop(committing);
        self.require_changes_durable()?;
        if self.debt() > 0 {
            self.ask();
        }
        Ok(())
    }

    /// Groups that may have runs.
    fn for_each_buffered(&self, mut visit: impl FnMut(&Group<E>)) {
        for keyspace in self.all_keyspaces() {
            if keyspace.options.in_place {
                continue;
            }
            let places: Vec<Place<E>> = E::share(&keyspace.groups).clone();
            for place in places {
                visit(&E::share(&place.group));
            }
        }
    }

    /// Bytes of runs that are too many, and can be merged.
    pub fn debt(&self) -> u64 {
        let sound = self.buffered_in(|group| group.damage.is_none());
        sound.debt(self.buffer_percent())
    }

    pub fn buffered(&self) -> Buffered {
        self.buffered_in(|_| true)
    }

    fn buffered_in(&self, is_counted: impl Fn(&Group<E>) -> bool) -> Buffered {
        let mut all = Buffered::default();
        self.for_each_buffered(|group| {
            if is_counted(group) {
                all.leaf_bytes += group.leaves.bytes;
                all.run_bytes += bytes_of(&group.runs);
            }
        });
        all
    }
}
