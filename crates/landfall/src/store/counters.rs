//! What was done since a store was opened, and why: bytes by cause.

use crate::Counters;

/// Counts of what was done since a store was opened.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct StoreCounters {
    /// Counts of the log.
    pub log: Counters,
    /// Commits.
    pub commits: u64,
    /// Bytes of keys and values that were committed.
    pub logical_bytes: u64,
    /// Checkpoints that were made.
    pub checkpoints: u64,
    /// Times that leaves were written at home between two checkpoints.
    pub flushes: u64,
    /// Checkpoints that failed. They changed nothing.
    pub failed_checkpoints: u64,
    /// Leaves that were written.
    pub leaves: u64,
    /// Runs of changes that were written.
    pub runs: u64,
    /// Groups whose runs were merged into their leaves.
    pub merges: u64,
    /// Bytes that were written for leaves.
    pub leaf_bytes: u64,
    /// Bytes of leaves that were written because their group's runs were merged into them.
    pub merge_bytes: u64,
    /// Bytes that were written for runs of changes.
    pub run_bytes: u64,
    /// Bytes that were written for runs that replaced other runs.
    pub tier_bytes: u64,
    /// Bytes of leaves that were written at home, over what was there.
    pub home_bytes: u64,
    /// Bytes that were written for copies of leaves, in the doublewrite area.
    pub doublewrite_bytes: u64,
    /// Bytes of the log's records that are images of leaves; [`log`](StoreCounters::log) has these, too.
    pub image_bytes: u64,
    /// Bytes that were written for what says where leaves are.
    pub group_bytes: u64,
    /// Bytes that were written for what says where groups are.
    pub root_bytes: u64,
    /// Bytes that were written for control records.
    pub control_bytes: u64,
    /// Bytes of changes that are in memory and in no leaf.
    pub waiting_bytes: u64,
    /// Bytes of leaves that are kept in memory.
    pub cached_bytes: u64,
    /// Bytes in memory of which keys leaves may have.
    pub filter_bytes: u64,
    /// Bytes in memory of where leaves and runs are, about, and of fingerprints of what runs have.
    pub index_bytes: u64,
    /// Bytes of the data file that leaves take now, but for leaves in place.
    pub tree_bytes: u64,
    /// Bytes of the data file that runs take now.
    pub buffered_bytes: u64,
    /// Bytes of the data file.
    pub file_bytes: u64,
    /// Bytes of it that nothing needs, with those that are kept for removals on a full disk.
    pub free_bytes: u64,
}

impl StoreCounters {
    /// Bytes that were written for each byte that was committed: of the log, its zeros included, and of checkpoints.
    pub fn write_amplification(&self) -> f64 {
        (self.log.all_bytes() + self.written_by_checkpoints()) as f64 / self.logical()
    }

    /// The same without the log: what [`Store::expected_writes`](crate::Store::expected_writes) estimates, if all that was
    /// committed since the store was opened were updates at random.
    pub fn tree_amplification(&self) -> f64 {
        self.written_by_checkpoints() as f64 / self.logical()
    }

    fn written_by_checkpoints(&self) -> u64 {
        let leaves = self.leaf_bytes + self.doublewrite_bytes;
        let runs = self.run_bytes + self.tier_bytes;
        leaves + runs + self.group_bytes + self.root_bytes + self.control_bytes
    }

    fn logical(&self) -> f64 {
        self.logical_bytes.max(1) as f64
    }
}

/// What is counted as it is done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub checkpoints: u64,
    pub flushes: u64,
    pub failed_checkpoints: u64,
    pub written: Written,
}

/// What a checkpoint wrote.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    pub leaves: u64,
    pub runs: u64,
    pub merges: u64,
    pub leaf_bytes: u64,
    pub merge_bytes: u64,
    pub run_bytes: u64,
    pub tier_bytes: u64,
    pub home_bytes: u64,
    pub doublewrite_bytes: u64,
    pub image_bytes: u64,
    pub group_bytes: u64,
    pub root_bytes: u64,
    pub control_bytes: u64,
    /// Keys in leaves that were written.
    pub leaf_keys: u64,
    /// Keys of which there were changes in memory that were written, in whatever way.
    pub given_keys: u64,
    /// Of these, those of groups of whose leaves few more keys were written than they were given; and what was written of leaves
    /// for them: waiting in runs would have spared nothing.
    pub dense_given_keys: u64,
    pub dense_leaf_bytes: u64,
    /// Of these keys, those of groups to which nearly all were new, in leaves that have few others.
    pub appended_keys: u64,
}

impl Written {
    /// Whether nearly all changes were keys that were not there before, in leaves that have few others.
    pub fn is_append(&self) -> bool {
        8 * self.appended_keys >= 7 * self.given_keys
    }

    pub fn add(&mut self, more: Written) {
        self.leaves += more.leaves;
        self.runs += more.runs;
        self.merges += more.merges;
        self.leaf_bytes += more.leaf_bytes;
        self.merge_bytes += more.merge_bytes;
        self.run_bytes += more.run_bytes;
        self.tier_bytes += more.tier_bytes;
        self.home_bytes += more.home_bytes;
        self.doublewrite_bytes += more.doublewrite_bytes;
        self.image_bytes += more.image_bytes;
        self.group_bytes += more.group_bytes;
        self.root_bytes += more.root_bytes;
        self.control_bytes += more.control_bytes;
        self.leaf_keys += more.leaf_keys;
        self.given_keys += more.given_keys;
        self.dense_given_keys += more.dense_given_keys;
        self.dense_leaf_bytes += more.dense_leaf_bytes;
        self.appended_keys += more.appended_keys;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_written_for_one_cause() {
        let log = Counters {
            bytes: 1,
            zero_bytes: 2,
            control_bytes: 4,
            ..Counters::default()
        };
        let mut written = Written::default();
        for _ in 0..2 {
            written.add(Written {
                leaves: 3,
                runs: 2,
                merges: 1,
                leaf_bytes: 8,
                merge_bytes: 4,
                run_bytes: 256,
                tier_bytes: 512,
                home_bytes: 4,
                doublewrite_bytes: 128,
                image_bytes: 1,
                group_bytes: 16,
                root_bytes: 32,
                control_bytes: 64,
                ..Written::default()
            });
        }
        assert_eq!(
            (written.leaves, written.home_bytes, written.image_bytes),
            (6, 8, 2)
        );
        let counters = StoreCounters {
            log,
            logical_bytes: 2,
            leaf_bytes: written.leaf_bytes,
            merge_bytes: written.merge_bytes,
            run_bytes: written.run_bytes,
            tier_bytes: written.tier_bytes,
            home_bytes: written.home_bytes,
            doublewrite_bytes: written.doublewrite_bytes,
            image_bytes: written.image_bytes,
            group_bytes: written.group_bytes,
            root_bytes: written.root_bytes,
            control_bytes: written.control_bytes,
            ..StoreCounters::default()
        };
        assert_eq!(counters.write_amplification(), f64::from(7 + 2032) / 2.0);
        assert_eq!(counters.tree_amplification(), 1016.0);
        // Nothing was committed yet.
        let idle = StoreCounters {
            logical_bytes: 0,
            ..counters
        };
        assert_eq!(idle.write_amplification(), 2039.0);
    }
}
