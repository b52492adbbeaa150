//! How many percent of what leaves take runs may take, chosen anew by what was written and read.
//!
//! What moves is bytes: leaves that are written again, runs that are written, and blocks of runs that whoever goes through keys has to
//! read besides leaves. What another setting would have moved of the same load follows from what this one did: leaves are
//! written again in proportion to `1 / (2b + m)`, and without runs to `1 / 2m`, where *m* is the mean share of the data whose
//! changes are in memory and *b* that of runs; but for those that were given nearly as much as they have, as where rows are appended, which are written once
//! in any case. The least share is taken that comes within a tenth of the best; more than now only if that saves a
//! fifth, and only if two choices, one after the other, agree on the direction: a load that changes is not followed at each turn.

use std::cmp::Ordering;
use std::fmt;

use super::expected::{OF_TIER, changed, most_runs, tiers};

/// Shares that are tried, in percent.
const TRIED: [u8; 8] = [0, 1, 2, 3, 5, 8, 11, 16];
/// Times that the memory for changes must have been filled, or that many bytes of leaves gone through, between two choices.
pub(super) const FILLS: u64 = if cfg!(test) { 2 } else { 8 };
/// Of the bytes of a change in memory, those that a row has on the disk, about; and half of them wait on average.
const MEAN_SHARE: f64 = 0.2;

/// Which share a store has for its runs, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BufferChoice {
    /// Percent of what leaves take.
    pub percent: u8,
    /// The most that it may be, if the store chooses; `None`: it is as it was set.
    pub auto_most: Option<u8>,
    /// What each share would have moved of the load since the choice before, in bytes. Nothing, before the first choice.
    pub expected: Vec<(u8, u64)>,
}

impl fmt::Display for BufferChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.percent)?;
        let Some(most) = self.auto_most else {
            return Ok(());
        };
        write!(f, ", chosen from 0 to {most}%")?;
        for (index, (percent, bytes)) in self.expected.iter().enumerate() {
            let separator = if index == 0 { ": bytes moved at" } else { "," };
            write!(f, "{separator} {percent}% {bytes}")?;
        }
        Ok(())
    }
}

/// What was done since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moved {
    /// Bytes that were committed.
    pub updated: u64,
    /// Bytes of leaves that were written, but for dense ones.
    pub leaf_bytes: u64,
    /// Bytes of dense ones: they were given nearly as much as they have.
    pub dense_leaf_bytes: u64,
    /// Keys of changes that were written, and of those that were given to dense leaves.
    pub given_keys: u64,
    pub dense_given_keys: u64,
    /// Pieces of ranges that were read, each of one leaf.
    pub pieces: u64,
}

impl Moved {
    fn since(self, before: Moved) -> Moved {
        Moved {
            updated: self.updated.saturating_sub(before.updated),
            leaf_bytes: self.leaf_bytes.saturating_sub(before.leaf_bytes),
            dense_leaf_bytes: self
                .dense_leaf_bytes
                .saturating_sub(before.dense_leaf_bytes),
            given_keys: self.given_keys.saturating_sub(before.given_keys),
            dense_given_keys: self
                .dense_given_keys
                .saturating_sub(before.dense_given_keys),
            pieces: self.pieces.saturating_sub(before.pieces),
        }
    }
}

/// What the store is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// Bytes of all leaves, and how many there are.
    pub leaf_bytes: u64,
    pub leaves: u64,
    /// Bytes of changes that there may be.
    pub most_changes: u64,
    /// Bytes of leaves and blocks that may be in memory.
    pub most_cached: u64,
}

impl Size {
    /// The mean share of the data whose changes are in memory.
    fn in_memory(&self) -> f64 {
        MEAN_SHARE * self.most_changes as f64 / self.leaf_bytes.max(1) as f64
    }

    /// What a share would have moved, where another one moved this.
    fn expected(&self, moved: Moved, percent: u8, with: u8) -> u64 {
        let m = self.in_memory();
        let b = f64::from(percent) / 100.0;
        let share = |percent: u8| changed(m, f64::from(percent) / 100.0);
        let dense = moved.dense_leaf_bytes as f64;
        let leaf_bytes = dense + moved.leaf_bytes as f64 * share(with) / share(percent);
        if percent == 0 {
            return leaf_bytes as u64;
        }
        let runs = most_runs(m, b);
        let tiers = tiers(m, b);
        let looked_at = (runs / 2.0).min((OF_TIER - 1.0) / 2.0 * (tiers + 1.0));
        let dense_given = moved.dense_given_keys as f64 / moved.given_keys.max(1) as f64;
        let run_bytes = moved.updated as f64 * (1.0 - dense_given) * (1.0 + tiers);
        let block = self.leaf_bytes as f64 / self.leaves.max(1) as f64;
        let missing = 1.0 - (self.most_cached as f64 / self.leaf_bytes.max(1) as f64).min(1.0);
        let read = moved.pieces as f64 * looked_at * block * missing;
        (leaf_bytes + run_bytes + read) as u64
    }

    /// Whether so much was moved that a choice can be made.
    fn is_enough(&self, moved: Moved) -> bool {
        let block = self.leaf_bytes / self.leaves.max(1);
        moved.updated + moved.pieces * block >= self.most_changes.saturating_mul(FILLS)
    }
}

/// Who turns the knob.
#[derive(Debug)]
pub(crate) struct Auto {
    pub most: u8,
    /// What had been done at the last choice.
    before: Moved,
    /// What was wanted then, but for what the share is.
    wanted: Ordering,
    pub expected: Vec<(u8, u64)>,
}

impl Auto {
    pub(super) fn new(most: u8, now: Moved) -> Auto {
        Auto {
            most,
            before: now,
            wanted: Ordering::Equal,
            expected: Vec::new(),
        }
    }

    /// What the share is to be, if it is this now; `None`: too little was done since the last choice to say.
    pub(super) fn choose(&mut self, now: Moved, size: &Size, percent: u8) -> Option<u8> {
        let moved = now.since(self.before);
        if !size.is_enough(moved) {
            return None;
        }
        self.before = now;
        let tried = TRIED.into_iter().filter(|tried| *tried < self.most);
        let expected = |tried| (tried, size.expected(moved, tried, percent));
        self.expected = tried.chain([self.most]).map(expected).collect();
        let best = self.expected.iter().map(|(_, bytes)| *bytes).min()?;
        let is_good = |bytes: u64| bytes <= best + best / 10;
        let (least, _) = *self.expected.iter().find(|(_, bytes)| is_good(*bytes))?;
        let as_it_is = size.expected(moved, percent, percent);
        let is_more_worth_it = best < as_it_is / 5 * 4;
        let wanted = match least.cmp(&percent) {
            Ordering::Greater if !is_more_worth_it => Ordering::Equal,
            wanted => wanted,
        };
        let is_again = wanted == std::mem::replace(&mut self.wanted, wanted);
        let is_turned = is_again && wanted != Ordering::Equal || percent > self.most;
        Some(if is_turned { least } else { percent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const SIZE: Size = Size {
        leaf_bytes: 1000 * MIB,
        leaves: 128_000,
        most_changes: 32 * MIB,
        most_cached: 32 * MIB,
    };

    /// What a store settles at that writes leaves and reads by these laws, in bytes for each window; without a spread: rows are
    /// appended.
    fn settled(size: &Size, updated: u64, spread: f64, pieces: u64, from: u8, most: u8) -> u8 {
        let mut percent = from;
        let mut now = Moved::default();
        let mut auto = Auto::new(most, now);
        for _ in 0..20 {
            let share = size.in_memory() + f64::from(percent) / 100.0;
            now.updated += updated;
            now.given_keys += updated;
            if spread > 0.0 {
                now.leaf_bytes += (updated as f64 * spread / (2.0 * share)) as u64;
            } else {
                now.dense_leaf_bytes += updated;
                now.dense_given_keys += updated;
            }
            now.pieces += pieces;
            percent = auto.choose(now, size, percent).unwrap_or(percent);
        }
        percent
    }

    #[test]
    fn random_updates_of_much_data_get_runs_and_others_do_not() {
        let updates = 300 * MIB;
        // Of which most bytes of a leaf are others'.
        assert!(settled(&SIZE, updates, 0.5, 0, 0, 16) >= 5);
        assert_eq!(settled(&SIZE, updates, 0.5, 0, 0, 2), 2);
        // More than it may be is given up.
        assert!(settled(&SIZE, updates, 0.5, 0, 16, 2) <= 2);
        // Appended rows.
        for before in [0, 5, 16] {
            assert_eq!(settled(&SIZE, updates, 0.0, 0, before, 16), 0);
        }
        // Data that fits into memory.
        let small = Size {
            leaf_bytes: 16 * MIB,
            leaves: 2000,
            ..SIZE
        };
        assert_eq!(settled(&small, updates, 0.5, 0, 0, 16), 0);
        // Who reads alone has no use for them.
        assert_eq!(settled(&SIZE, 0, 0.5, 1_000_000, 16, 16), 0);
        assert!(settled(&SIZE, updates, 0.5, 2_000_000, 0, 16) <= 1);
    }

    #[test]
    fn what_was_done_before_it_chooses_is_no_load() {
        let some = |bytes| Moved {
            updated: bytes,
            leaf_bytes: bytes,
            dense_leaf_bytes: bytes,
            given_keys: bytes,
            dense_given_keys: bytes,
            pieces: bytes,
        };
        let mut auto = Auto::new(16, some(300 * MIB));
        assert_eq!(auto.choose(some(299 * MIB), &SIZE, 5), None);
        assert_eq!(auto.expected, []);
    }

    #[test]
    fn a_choice_waits_until_something_was_done_and_for_a_second_one() {
        let mut auto = Auto::new(16, Moved::default());
        let little = Moved {
            updated: MIB,
            leaf_bytes: 50 * MIB,
            ..Moved::default()
        };
        assert_eq!(auto.choose(little, &SIZE, 0), None);
        let windows = (1..4).map(|window| Moved {
            updated: 300 * MIB * window,
            leaf_bytes: 9000 * MIB * window,
            ..Moved::default()
        });
        let chosen: Vec<_> = windows.map(|now| auto.choose(now, &SIZE, 0)).collect();
        assert_eq!(chosen[0], Some(0));
        assert!(chosen[1] > Some(2) && chosen[1] == chosen[2], "{chosen:?}");
        assert_eq!(auto.expected.len(), TRIED.len());
        let choice = BufferChoice {
            percent: 8,
            auto_most: Some(16),
            expected: vec![(0, 30), (8, 4)],
        };
        let text = "8%, chosen from 0 to 16%: bytes moved at 0% 30, 8% 4";
        assert_eq!(choice.to_string(), text);
    }
}
