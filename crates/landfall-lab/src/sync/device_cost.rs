//! How many of a device's write requests carried data.
//!
//! A recorder counts the writes that carry data, and there is nothing to infer. The kernel's count of write requests includes *empty flushes*: requests that carry no data and
//! only ask for a flush. It does not tell how many. They can be inferred. A sync that finds a
//! journal transaction to commit sends its flush along with the commit record, which is a write
//! with data; every other sync sends one empty flush. So, with S syncs and C commits:
//!
//! - empty flushes = S - C
//! - flushes executed = (S - C) + k·C, where k is 2, or 1 on a device with FUA
//!
//! The second line checks the first, except with FUA, where only "all syncs committed" and "none did"
//! are believed. It holds for one thread; when several share flushes, the first
//! is still exact as long as there are (next to) no commits, as in overwriting. Anything else is
//! reported as not known. Simply subtracting the flushes from the requests, as is often done, is
//! wrong where a journal commits: an ext4 append costs 3 requests, all with data, and 2 flushes.

use landfall_os::{DeviceCounters, JournalCounter, SyncCall};

use super::Strategy;
use super::trial::Measured;
use crate::{Site, facts};

/// One in so many flushes may be unexplained. A journal that gets full moves its tail, and each time
/// takes an empty flush and a superblock: on the 4 MiB journal of a small ext4, 2% of the flushes of
/// appends. What is inferred is off by half of that at most.
const SLACK: u64 = 20;

/// What the device below a site can do about flushes.
pub(super) struct FlushModel<'a> {
    journal: &'a JournalCounter,
    fua: bool,
    /// One disk, whose counters are those of the filesystem, and nothing between that takes requests
    /// apart.
    single: bool,
    /// Whether a sync makes the kernel send flushes at all: not without a volatile cache, nor with
    /// barriers switched off.
    flushing: bool,
}

impl<'a> FlushModel<'a> {
    pub fn of(site: &'a Site) -> FlushModel<'a> {
        FlushModel {
            journal: site.journal(),
            fua: site.device().is_some_and(|device| device.has_fua()),
            single: site.device().is_some_and(|device| !device.splits_flushes()),
            flushing: facts::dangerous_option(site.filesystem().storage()).is_none()
                && site
                    .device()
                    .is_none_or(|device| device.has_volatile_cache()),
        }
    }

    /// Write requests of a trial that carried data, where that is known.
    pub fn writes(&self, strategy: &Strategy, measured: &Measured) -> Option<u64> {
        let durable = strategy.method.is_durable();
        let syncs = if durable { measured.operations } else { 0 } + measured.extension_syncs;
        self.writes_of(strategy, &measured.device?, syncs, measured.commits)
    }

    fn writes_of(
        &self,
        strategy: &Strategy,
        device: &DeviceCounters,
        syncs: u64,
        commits: Option<u64>,
    ) -> Option<u64> {
        let inferred = || {
            let empty = self.empty_flushes(strategy, device, syncs, commits)?;
            Some(device.write_requests.saturating_sub(empty))
        };
        device.data_writes.or_else(inferred)
    }

    fn empty_flushes(
        &self,
        strategy: &Strategy,
        device: &DeviceCounters,
        syncs: u64,
        commits: Option<u64>,
    ) -> Option<u64> {
        if !self.flushing || syncs == 0 {
            return Some(0);
        }
        if device.flushes == 0 {
            // The driver does not count flushes, or something else is amiss.
            return None;
        }
        // A synchronous direct write may use FUA instead of a sync.
        let maybe_fua = strategy.method.direct
            && self.fua
            && matches!(
                strategy.method.call,
                SyncCall::ODsync | SyncCall::OSync | SyncCall::RwfDsync
            );
        if !self.single || maybe_fua {
            return None;
        }
        let flushes_per_commit = if self.fua { 1 } else { 2 };
        if *self.journal == JournalCounter::Btrfs {
            return (strategy.threads == 1).then(|| device.flushes / flushes_per_commit);
        }
        let commits = commits?;
        let empty = syncs.saturating_sub(commits);
        let slack = (syncs / SLACK).max(8);
        if self.fua {
            // A commit then costs one flush, as an empty one does, so that the count checks nothing:
            // only all or none is believed.
            return (commits <= slack || commits.abs_diff(syncs) <= slack).then_some(empty);
        }
        if strategy.threads == 1 {
            let expected = empty + flushes_per_commit * commits;
            (expected.abs_diff(device.flushes) <= slack).then_some(empty)
        } else {
            (commits <= slack).then_some(empty)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(journal: &JournalCounter, fua: bool) -> FlushModel<'_> {
        FlushModel {
            journal,
            fua,
            single: true,
            flushing: true,
        }
    }

    fn jbd2() -> JournalCounter {
        JournalCounter::Jbd2 {
            transactions: "info".into(),
            fast: "fc_info".into(),
        }
    }

    fn device(write_requests: u64, flushes: u64) -> DeviceCounters {
        DeviceCounters {
            write_requests,
            flushes,
            ..DeviceCounters::default()
        }
    }

    // The numbers are those that Linux 6.18 counted for 1,000 operations.

    #[test]
    fn overwriting_pays_an_empty_flush_each() {
        let ext4 = jbd2();
        let empty = model(&ext4, false).empty_flushes(
            &Strategy::BASELINE,
            &device(2_000, 1_000),
            1_000,
            Some(0),
        );
        assert_eq!(empty, Some(1_000));
    }

    #[test]
    fn a_journal_commit_brings_its_own_flushes() {
        let ext4 = jbd2();
        let empty = model(&ext4, false).empty_flushes(
            &Strategy::BASELINE,
            &device(3_006, 2_004),
            1_000,
            Some(1_002),
        );
        assert_eq!(empty, Some(0));
        let with_fua = model(&ext4, true).empty_flushes(
            &Strategy::BASELINE,
            &device(3_006, 1_002),
            1_000,
            Some(1_002),
        );
        assert_eq!(with_fua, Some(0));
    }

    #[test]
    fn a_small_journal_moves_its_tail_now_and_then() {
        let ext4 = jbd2();
        let empty = model(&ext4, false).empty_flushes(
            &Strategy::BASELINE,
            &device(1_216, 811),
            400,
            Some(400),
        );
        assert_eq!(empty, Some(0));
    }

    #[test]
    fn threads_that_share_flushes_still_send_one_request_each() {
        let threads = Strategy {
            threads: 16,
            ..Strategy::BASELINE
        };
        let none = JournalCounter::None;
        let empty =
            model(&none, false).empty_flushes(&threads, &device(2_000, 140), 1_000, Some(0));
        assert_eq!(empty, Some(1_000));
        // With commits among them it cannot be told.
        let ext4 = jbd2();
        let empty =
            model(&ext4, false).empty_flushes(&threads, &device(900, 500), 1_000, Some(300));
        assert_eq!(empty, None);
    }

    #[test]
    fn a_device_that_tells_its_data_writes_is_believed() {
        let unknown = JournalCounter::Unknown;
        let told = DeviceCounters {
            data_writes: Some(3_000),
            ..device(4_000, 2_000)
        };
        let writes = |device: DeviceCounters| {
            model(&unknown, false).writes_of(&Strategy::BASELINE, &device, 1_000, None)
        };
        assert_eq!(writes(told), Some(3_000));
        assert_eq!(writes(device(4_000, 2_000)), None);
    }

    #[test]
    fn counters_that_do_not_add_up_are_not_explained_away() {
        let ext4 = jbd2();
        let empty = model(&ext4, false).empty_flushes(
            &Strategy::BASELINE,
            &device(3_000, 3_000),
            1_000,
            Some(1_000),
        );
        assert_eq!(empty, None);
    }

    #[test]
    fn where_no_flush_is_sent_every_request_has_data() {
        let unknown = JournalCounter::Unknown;
        let silent = FlushModel {
            flushing: false,
            ..model(&unknown, false)
        };
        let empty = |model: &FlushModel<'_>| {
            model.empty_flushes(&Strategy::BASELINE, &device(1_000, 0), 1_000, None)
        };
        assert_eq!(empty(&silent), Some(0));
        // Where flushes are sent, none counted means that they are not counted.
        assert_eq!(empty(&model(&unknown, false)), None);
    }

    #[test]
    fn with_fua_only_all_or_none_is_believed() {
        let ext4 = jbd2();
        let empty = |commits| {
            let device = device(2_000, 1_000);
            model(&ext4, true).empty_flushes(&Strategy::BASELINE, &device, 1_000, Some(commits))
        };
        assert_eq!(empty(2), Some(998));
        assert_eq!(empty(1_000), Some(0));
        assert_eq!(empty(400), None);
    }
}
