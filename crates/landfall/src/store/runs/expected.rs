//! How many bytes of the tree are written for each byte that is updated at random, by a formula.

use std::fmt;
use std::sync::Arc;

use super::super::leaf::Leaf;
use super::super::tree::{Keyspace, Page};
use super::write::MOST_OF_TIER;
use crate::Error;
use crate::environment::Environment;

/// Runs of a tier that become one of the next.
pub(super) const OF_TIER: f64 = MOST_OF_TIER as f64;
/// Leaves that are read to tell what rows are like.
const SAMPLED: usize = 64;
/// What of the memory for changes is full on average: checkpoints begin at three quarters, and end at five eighths.
const MEAN_FULL: f64 = 11.0 / 16.0;
/// Bytes of memory that a change takes, for each byte of its key and value, and besides: `examples/change_memory.rs` counts it.
const MEMORY_OF_BYTE: f64 = 1.15;
const MEMORY_OF_CHANGE: f64 = 34.0;

/// What a store writes into leaves and runs for each byte that is updated at random, by a formula:
///
/// - c (1 + tiers + (1 − e⁻ᵘ) / (2b + m)) with a buffer;
/// - c (1 − e⁻ᵘ) / 2m without one.
///
/// Uniform updates follow it within a tenth, skewed ones write less. The log is not in it. Where
/// [`max_recovery_time`](crate::StoreOptions::max_recovery_time) asks for checkpoints before memory is full, more is written.
///
/// ```
/// use landfall::ExpectedWrites;
///
/// let without = ExpectedWrites {
///     compressed: 0.47,
///     in_memory: 0.008,
///     in_runs: 0.0,
///     leaf_rows: 130.0,
/// };
/// let with = ExpectedWrites { in_runs: 0.11, ..without };
/// assert_eq!(format!("{:.1}", without.amplification()), "25.7");
/// assert_eq!(format!("{:.1}", with.amplification()), "3.0");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedWrites {
    /// *c*: what leaves take of the bytes of their rows.
    pub compressed: f64,
    /// *m*: the mean share of all rows whose changes are in memory.
    pub in_memory: f64,
    /// *b*: what runs take of what leaves take. 0: there is no buffer.
    pub in_runs: f64,
    /// Rows of a leaf.
    pub leaf_rows: f64,
}

impl ExpectedWrites {
    /// The share of a group's rows that are changed when its leaves are written: 2b + m, or 2m without a buffer.
    pub fn changed(&self) -> f64 {
        changed(self.in_memory, self.in_runs)
    }

    /// *u*: changes that a leaf is given at once.
    pub fn leaf_changes(&self) -> f64 {
        self.changed() * self.leaf_rows
    }

    /// How often a change is written again from run to run: 0 with up to 8 runs of a group, 1 with up to 64.
    pub fn tiers(&self) -> f64 {
        tiers(self.in_memory, self.in_runs)
    }

    /// Bytes written for each byte that is updated.
    pub fn amplification(&self) -> f64 {
        let runs = if self.in_runs > 0.0 {
            1.0 + self.tiers()
        } else {
            0.0
        };
        // A leaf that is given no change is not written.
        let written = 1.0 - (-self.leaf_changes()).exp();
        self.compressed * (runs + written / self.changed())
    }
}

/// The formula, and what is in it: `4.5 = c (1 + tiers + (1 - e^-u) / (2b + m)), c 0.47, tiers 0, u 12.3, b 5.0%, m 0.80%`.
impl fmt::Display for ExpectedWrites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.amplification();
        let (c, u, m) = (self.compressed, self.leaf_changes(), 100.0 * self.in_memory);
        if self.in_runs > 0.0 {
            let (tiers, b) = (self.tiers(), 100.0 * self.in_runs);
            return write!(
                f,
                "{all:.1} = c (1 + tiers + (1 - e^-u) / (2b + m)), c {c:.2}, tiers {tiers}, u {u:.1}, b {b:.1}%, m {m:.2}%"
            );
        }
        write!(
            f,
            "{all:.1} = c (1 - e^-u) / 2m, c {c:.2}, u {u:.1}, m {m:.2}%"
        )
    }
}

/// The share of a group's rows that are changed when it is merged. Runs have twice of what they have on average then, and memory
/// what it has on average: it was written to a run at some moment before. Without runs memory has twice as much.
pub(super) fn changed(in_memory: f64, in_runs: f64) -> f64 {
    if in_runs > 0.0 {
        2.0 * in_runs + in_memory
    } else {
        2.0 * in_memory
    }
}

/// Runs that a group has when it is merged, before they are written as one: half on average. Each has what was in memory when it
/// was written, twice of what is there on average.
pub(super) fn most_runs(in_memory: f64, in_runs: f64) -> f64 {
    (in_runs / in_memory).max(1.0)
}

/// How often a change is written again from run to run.
pub(super) fn tiers(in_memory: f64, in_runs: f64) -> f64 {
    let runs = most_runs(in_memory, in_runs);
    ((runs.ln() / OF_TIER.ln()).ceil() - 1.0).max(0.0)
}

/// What leaves have, by some of them that were read; but for those in place, and those that are charged whole, whose writes follow
/// other laws.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    /// In all leaves.
    rows: f64,
    /// Of one, with its key.
    bytes: f64,
    compressed: f64,
    of_leaf: f64,
}

impl Rows {
    /// Reads some of the leaves. `None`: there are none, or none of them can be read.
    pub fn of<E: Environment>(
        keyspaces: &[Arc<Keyspace<E>>],
        mut read: impl FnMut(&Page<E>) -> Result<Leaf, Error>,
    ) -> Option<Rows> {
        let counted = keyspaces.iter().filter(|keyspace| {
            let options = &keyspace.options;
            !options.in_place && !options.whole_leaves
        });
        let groups = counted.flat_map(|keyspace| E::share(&keyspace.groups).clone());
        let groups: Vec<_> = groups
            .map(|place| E::share(&place.group).leaves.clone())
            .collect();
        let leaves: usize = groups.iter().map(|leaves| leaves.len()).sum();
        let (mut pages, mut page_bytes, mut rows, mut row_bytes) = (0, 0, 0, 0);
        // One in the middle of each part.
        let all = groups.iter().flat_map(|leaves| leaves.iter());
        let part = leaves.div_ceil(SAMPLED).max(1);
        for slot in all.skip(part / 2).step_by(part) {
            let Ok(leaf) = read(&slot.page) else {
                continue;
            };
            pages += 1;
            page_bytes += slot.page.bytes();
            for entry in leaf.entries() {
                rows += 1;
                row_bytes += entry.key.len() + entry.value.map_or(0, <[u8]>::len);
            }
        }
        let keys: u64 = groups.iter().map(|leaves| leaves.keys).sum();
        (row_bytes > 0).then(|| Rows {
            rows: keys as f64,
            bytes: row_bytes as f64 / rows as f64,
            compressed: page_bytes as f64 / row_bytes as f64,
            of_leaf: rows as f64 / f64::from(pages),
        })
    }

    /// What is written of these where so much memory is for changes, and runs may take so many percent. `None`: all rows of a
    /// leaf are changed when it is written, and there is no law of how often that is.
    pub fn expected(&self, most_changes: usize, percent: u8) -> Option<ExpectedWrites> {
        let memory = MEMORY_OF_BYTE * self.bytes + MEMORY_OF_CHANGE;
        let changes = MEAN_FULL * most_changes as f64 / memory;
        let expected = ExpectedWrites {
            compressed: self.compressed,
            in_memory: changes / self.rows,
            in_runs: f64::from(percent) / 100.0,
            leaf_rows: self.of_leaf,
        };
        Some(expected).filter(|expected| expected.changed() < 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(in_memory: f64, in_runs: f64) -> ExpectedWrites {
        ExpectedWrites {
            compressed: 0.5,
            in_memory,
            in_runs,
            leaf_rows: 1000.0,
        }
    }

    #[test]
    fn what_is_written_follows_from_memory_and_runs() {
        assert_eq!(expected(0.01, 0.0).amplification().round(), 25.0);
        // Few changes a leaf: most leaves are not written.
        let large = ExpectedWrites {
            leaf_rows: 5.0,
            ..expected(0.01, 0.0)
        };
        assert_eq!(large.leaf_changes(), 0.1);
        assert_eq!((large.amplification() * 100.0).round(), 238.0);
        // 0.5 (1 + 1 / 0.05)
        assert_eq!(expected(0.01, 0.02).tiers(), 0.0);
        assert_eq!(expected(0.01, 0.02).amplification(), 10.5);
        // One tier more for each so many runs.
        let runs = OF_TIER * OF_TIER;
        assert_eq!(expected(0.001, 0.001 * (runs - 0.5)).tiers(), 1.0);
        assert_eq!(expected(0.001, 0.001 * (runs + 0.5)).tiers(), 2.0);
    }

    #[test]
    fn the_formula_is_shown_with_what_is_in_it() {
        assert_eq!(
            expected(0.01, 0.0).to_string(),
            "25.0 = c (1 - e^-u) / 2m, c 0.50, u 20.0, m 1.00%"
        );
        assert_eq!(
            expected(0.01, 0.02).to_string(),
            "10.5 = c (1 + tiers + (1 - e^-u) / (2b + m)), c 0.50, tiers 0, u 50.0, b 2.0%, m 1.00%"
        );
    }
}
