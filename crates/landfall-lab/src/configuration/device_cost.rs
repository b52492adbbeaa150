//! How many of a device's write requests carried data.
//!
//! The kernel's count of write requests includes flushes that carry no data. A commit of the journal brings
//! its flushes along with data: two, or one on a device with FUA; every other flush is empty. So, as long as
//! flushes are not shared, which one client's are not:
//!
//! - writes with data = requests - (flushes - k·commits)
//!
//! A recorder tells them itself. Where nothing of this holds they are not known, and at most as many as there
//! were requests.

use landfall_os::{DeviceCounters, JournalCounter};

use crate::{Site, facts};

/// Write requests by so many clients that carried data, where that is known.
pub(super) fn writes(
    site: &Site,
    device: &DeviceCounters,
    commits: Option<u64>,
    clients: u32,
) -> Option<u64> {
    device
        .data_writes
        .or_else(|| inferred(site, device, commits).filter(|_| clients == 1))
}

fn inferred(site: &Site, device: &DeviceCounters, commits: Option<u64>) -> Option<u64> {
    let disk = site.device()?;
    let flushing =
        facts::dangerous_option(site.filesystem().storage()).is_none() && disk.has_volatile_cache();
    if disk.splits_flushes() {
        return None;
    }
    let empty = match (flushing, site.journal()) {
        (false, _) => Some(0),
        (true, journal) => empty_flushes(journal, disk.has_fua(), device.flushes, commits),
    };
    Some(device.write_requests.saturating_sub(empty?))
}

fn empty_flushes(
    journal: &JournalCounter,
    fua: bool,
    flushes: u64,
    commits: Option<u64>,
) -> Option<u64> {
    if flushes == 0 {
        // Nothing was synced, or the driver does not count flushes: it cannot be told.
        return None;
    }
    let of_commit = if fua { 1 } else { 2 };
    match journal {
        JournalCounter::Unknown => None,
        // Each commit is an empty flush and a superblock written FUA.
        JournalCounter::Btrfs => Some(flushes / of_commit),
        _ => flushes.checked_sub(of_commit * commits?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_that_no_commit_brought_are_empty() {
        let xfs = JournalCounter::Xfs("stats".into());
        assert_eq!(empty_flushes(&xfs, false, 3_000, Some(1_000)), Some(1_000));
        assert_eq!(empty_flushes(&xfs, true, 2_000, Some(1_000)), Some(1_000));
        assert_eq!(empty_flushes(&xfs, false, 1_000, Some(1_000)), None);
        let none = JournalCounter::None;
        assert_eq!(empty_flushes(&none, false, 2_000, Some(0)), Some(2_000));
        // A driver that counts no flush, as one that takes no requests.
        for journal in [&none, &JournalCounter::Btrfs] {
            assert_eq!(empty_flushes(journal, false, 0, Some(0)), None);
        }
        let unknown = JournalCounter::Unknown;
        assert_eq!(empty_flushes(&unknown, false, 2_000, None), None);
        assert_eq!(
            empty_flushes(&JournalCounter::Btrfs, false, 2_000, None),
            Some(1_000)
        );
    }
}
