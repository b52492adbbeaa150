//! What a block device, and the journal on it, did between two moments.

use std::fs;
use std::io;
use std::ops::Add;
use std::path::{Path, PathBuf};

use crate::device::list;
use crate::journal::{has_journal, journal_of};
use crate::{BlockDevice, Filesystem};

const SECTOR: u64 = 512;

/// A block device's counters since it appeared, from its `stat` in sysfs (Documentation/block/stat.rst); summed
/// where a filesystem stands on several devices, or NVMe multipath leads to one by several paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Read requests completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Write requests completed. **Includes empty flush requests**: a flush that carries no data is
    /// a write of no bytes to this counter, a flush in front of or behind a data write is not.
    pub write_requests: u64,
    /// Write requests that carried data, where the device itself tells (a recorder); the kernel does
    /// not.
    pub data_writes: Option<u64>,
    /// Bytes written.
    pub write_bytes: u64,
    /// Flush commands that the device executed. Requests may share one, and a write that must be
    /// on the medium itself (FUA), on a device that cannot promise that, costs one more.
    pub flushes: u64,
    /// Requests under way at that moment.
    pub in_flight: u64,
}

impl DeviceCounters {
    /// Reads the counters of the devices that requests to `device` end up on.
    pub fn read(device: &BlockDevice) -> io::Result<DeviceCounters> {
        let mut sum = DeviceCounters::default();
        for disk in device.counted_on() {
            for path in stats_of(Path::new("/sys"), &disk.name, &disk.number) {
                let one = DeviceCounters::parse(&fs::read_to_string(path)?)
                    .ok_or(io::ErrorKind::InvalidData)?;
                sum = sum + one;
            }
        }
        Ok(sum)
    }

    fn parse(stat: &str) -> Option<DeviceCounters> {
        let fields: Vec<u64> = stat
            .split_ascii_whitespace()
            .map_while(|field| field.parse().ok())
            .collect();
        Some(DeviceCounters {
            reads: *fields.first()?,
            read_bytes: fields.get(2)? * SECTOR,
            write_requests: *fields.get(4)?,
            data_writes: None,
            write_bytes: fields.get(6)? * SECTOR,
            in_flight: *fields.get(8)?,
            // Since Linux 5.5.
            flushes: *fields.get(15)?,
        })
    }

    /// What happened from `earlier` to `self`; `in_flight` is that of `self`.
    pub fn since(&self, earlier: &DeviceCounters) -> DeviceCounters {
        DeviceCounters {
            reads: self.reads.saturating_sub(earlier.reads),
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            write_requests: self.write_requests.saturating_sub(earlier.write_requests),
            data_writes: self
                .data_writes
                .zip(earlier.data_writes)
                .map(|(now, then)| now.saturating_sub(then)),
            write_bytes: self.write_bytes.saturating_sub(earlier.write_bytes),
            flushes: self.flushes.saturating_sub(earlier.flushes),
            in_flight: self.in_flight,
        }
    }
}

impl Add for DeviceCounters {
    type Output = DeviceCounters;

    fn add(self, other: DeviceCounters) -> DeviceCounters {
        DeviceCounters {
            reads: self.reads + other.reads,
            read_bytes: self.read_bytes + other.read_bytes,
            write_requests: self.write_requests + other.write_requests,
            data_writes: self
                .data_writes
                .zip(other.data_writes)
                .map(|(one, more)| one + more),
            write_bytes: self.write_bytes + other.write_bytes,
            flushes: self.flushes + other.flushes,
            in_flight: self.in_flight + other.in_flight,
        }
    }
}

/// Where the counters of a whole disk are. Those of one that NVMe multipath makes (`nvme0n1`) are of the hidden disks of
/// its paths (`nvme0c1n1`): it queues no requests itself, and the kernel counts no flush of it.
fn stats_of(sysfs: &Path, name: &str, number: &str) -> Vec<PathBuf> {
    let paths = paths_of(sysfs, name);
    if paths.is_empty() {
        return vec![sysfs.join("dev/block").join(number).join("stat")];
    }
    // Hidden disks have no number.
    let stat = |path: String| sysfs.join("block").join(path).join("stat");
    paths.into_iter().map(stat).collect()
}

/// Disks that are paths to this one.
fn paths_of(sysfs: &Path, disk: &str) -> Vec<String> {
    let Some((subsystem, namespace)) = disk
        .strip_prefix("nvme")
        .and_then(|rest| rest.split_once('n'))
    else {
        return Vec::new();
    };
    let is_path = |name: &String| {
        name.strip_prefix("nvme")
            .and_then(|rest| rest.strip_prefix(subsystem)?.strip_prefix('c'))
            .and_then(|rest| rest.split_once('n'))
            .is_some_and(|(_, its)| its == namespace)
    };
    list(&sysfs.join("block"))
        .into_iter()
        .filter(is_path)
        .collect()
}

/// How often a filesystem's journal has been committed, where the filesystem tells.
///
/// With it the number of *empty* flush requests can be told: a sync that finds a transaction to
/// commit sends the flush with the commit record, any other sync sends an empty one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalCounter {
    /// The filesystem has no journal (ext2, ext4 without one, FAT): every sync is an empty flush.
    None,
    /// ext3 and ext4.
    Jbd2 {
        /// File of `/proc/fs/jbd2` that counts transactions.
        transactions: PathBuf,
        /// File of `/proc/fs/ext4` that counts fast commits (since Linux 5.10; off by default).
        fast: PathBuf,
    },
    /// XFS: log writes, from this file of `/sys/fs/xfs`.
    Xfs(PathBuf),
    /// btrfs: each log or superblock commit is an empty flush and a superblock written FUA.
    Btrfs,
    /// Not known: empty flushes cannot be told from writes.
    Unknown,
}

impl JournalCounter {
    /// The journal of `filesystem` on `device`.
    pub fn of(filesystem: &Filesystem, device: &BlockDevice) -> JournalCounter {
        match filesystem.kind.as_str() {
            "ext3" | "ext4" => {
                match (
                    journal_of(&device.name),
                    has_journal(&filesystem.kind, device),
                ) {
                    // Journalled data takes other paths to the device than those reckoned with.
                    (Some(_), _) if filesystem.option("data") == Some("journal") => {
                        JournalCounter::Unknown
                    }
                    (Some(journal), _) => JournalCounter::Jbd2 {
                        transactions: journal.join("info"),
                        fast: format!("/proc/fs/ext4/{}/fc_info", device.name).into(),
                    },
                    (None, Some(false)) => JournalCounter::None,
                    (None, _) => JournalCounter::Unknown,
                }
            }
            "ext2" | "vfat" | "exfat" => JournalCounter::None,
            "xfs" if filesystem.option("logdev").is_some() => JournalCounter::Unknown,
            "xfs" => JournalCounter::Xfs(format!("/sys/fs/xfs/{}/stats/stats", device.name).into()),
            "btrfs" => JournalCounter::Btrfs,
            _ => JournalCounter::Unknown,
        }
    }

    /// Commits since the filesystem was mounted; `None` where it does not tell.
    pub fn commits(&self) -> Option<u64> {
        match self {
            JournalCounter::None => Some(0),
            // "2034 transactions (2034 requested), each up to 1365 blocks"
            JournalCounter::Jbd2 { transactions, fast } => {
                let transactions = first_number(&fs::read_to_string(transactions).ok()?)?;
                // "fc stats:", then "12 commits".
                let fast = fs::read_to_string(fast).unwrap_or_default();
                let fast = fast
                    .lines()
                    .find(|line| line.trim_end().ends_with(" commits"));
                Some(transactions + fast.and_then(first_number).unwrap_or(0))
            }
            // "log 2034 4119 0 2034 2034": log writes come first.
            JournalCounter::Xfs(path) => {
                let stats = fs::read_to_string(path).ok()?;
                let line = stats.lines().find_map(|line| line.strip_prefix("log "))?;
                first_number(line)
            }
            JournalCounter::Btrfs | JournalCounter::Unknown => None,
        }
    }
}

fn first_number(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_lines_are_read_by_position() {
        let stat = " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n";
        let counters = DeviceCounters::parse(stat).unwrap();
        assert_eq!(counters.reads, 1);
        assert_eq!(counters.read_bytes, 3 * 512);
        assert_eq!(counters.write_requests, 5);
        assert_eq!(counters.write_bytes, 7 * 512);
        assert_eq!(counters.in_flight, 9);
        assert_eq!(counters.flushes, 16);
    }

    #[test]
    fn nvme_multipath_is_counted_on_its_paths() {
        let sysfs = tempfile::tempdir().unwrap();
        let names = [
            "nvme0n1",
            "nvme0c0n1",
            "nvme0c1n1",
            "nvme0n2",
            "nvme0c0n2",
            "nvme1n1",
            "nvme10c2n1",
            "sda",
        ];
        for name in names {
            fs::create_dir_all(sysfs.path().join("block").join(name)).unwrap();
        }
        let stats = |name: &str| -> Vec<String> {
            let files = stats_of(sysfs.path(), name, "259:0").into_iter();
            let below = |file: PathBuf| {
                file.strip_prefix(sysfs.path())
                    .unwrap()
                    .display()
                    .to_string()
            };
            files.map(below).collect()
        };
        let both = ["block/nvme0c0n1/stat", "block/nvme0c1n1/stat"];
        assert_eq!(stats("nvme0n1"), both);
        assert_eq!(stats("nvme0n2"), ["block/nvme0c0n2/stat"]);
        for without in ["nvme1n1", "sda"] {
            assert_eq!(stats(without), ["dev/block/259:0/stat"], "{without}");
        }
    }

    #[test]
    fn a_kernel_without_flush_counts_is_no_zero() {
        assert_eq!(DeviceCounters::parse("1 2 3 4 5 6 7 8 9 10 11"), None);
    }

    #[test]
    fn differences_never_wrap() {
        let early = DeviceCounters {
            reads: 5,
            ..Default::default()
        };
        assert_eq!(DeviceCounters::default().since(&early).reads, 0);
    }
}
