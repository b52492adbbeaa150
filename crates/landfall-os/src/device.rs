//! Block devices, and what they stand on.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What a device says about its write cache (`queue/write_cache`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)
)]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum WriteCache {
    /// Completed writes may sit in a volatile cache: the kernel sends flushes.
    Volatile,
    /// Completed writes are safe, says the device: the kernel sends no flushes.
    NoneOrProtected,
}

/// What sort of device it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)
)]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum DeviceKind {
    /// A whole disk.
    Disk,
    /// A part of one.
    Partition,
    /// A file dressed up as a disk; `backing_file` is the file.
    Loop {
        /// The file behind it, as the kernel names it.
        backing_file: PathBuf,
    },
    /// Device-mapper (LVM, LUKS, multipath).
    Mapper,
    /// Linux software RAID.
    Raid,
    /// Main memory (zram, brd).
    Memory,
    /// A program that serves a device and counts what it is asked to do. The kernel calls it a loop
    /// device; whoever made it knows better.
    Recorder,
}

/// A block device as sysfs describes it.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)
)]
pub struct BlockDevice {
    /// Kernel name: `sda1`, `nvme0n1`, `dm-0`.
    pub name: String,
    /// `major:minor`.
    pub number: String,
    /// What sort of device it is.
    pub kind: DeviceKind,
    /// The devices that it stands on: a partition's disk, a volume's members.
    pub below: Vec<BlockDevice>,
    /// Model as the device or its driver states it.
    pub model: Option<String>,
    /// Revision of its firmware as the device states it.
    #[cfg_attr(feature = "serde", serde(default))]
    pub firmware: Option<String>,
    /// The virtual driver behind it (virtio, Xen, Hyper-V, VMware), if it is not hardware.
    pub virtual_driver: Option<String>,
    /// Size in bytes.
    pub size_bytes: u64,
    /// What it says about its write cache.
    pub write_cache: Option<WriteCache>,
    /// Whether a single write can be sent straight to the medium (Force Unit Access).
    pub fua: Option<bool>,
    /// Smallest addressable unit, in bytes.
    pub logical_block_bytes: u64,
    /// Smallest unit written without a read-modify-write, in bytes, as stated.
    pub physical_block_bytes: u64,
    /// Largest write promised to be untorn, in bytes; 0 when nothing is promised.
    pub atomic_write_bytes: u64,
    /// Largest range that one command can turn into zeros without writing them, in bytes.
    pub write_zeroes_bytes: u64,
    /// What it says about itself; virtual disks often say `true` without cause.
    pub rotational: bool,
    /// I/O scheduler in force.
    pub scheduler: Option<String>,
}

impl BlockDevice {
    /// Describes the device with this `major:minor`, if sysfs knows it.
    pub fn from_number(number: &str) -> Option<BlockDevice> {
        Self::from_sysfs(&fs::canonicalize(format!("/sys/dev/block/{number}")).ok()?)
    }

    /// Describes the device that the file at `path` (`/dev/sda`) stands for; `None` if it stands for none, or sysfs does
    /// not know it.
    pub fn from_node(path: &Path) -> std::io::Result<Option<BlockDevice>> {
        let metadata = fs::metadata(path)?;
        if !metadata.file_type().is_block_device() {
            return Ok(None);
        }
        let number = metadata.rdev();
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        Ok(Self::from_number(&format!("{major}:{minor}")))
    }

    /// Describes the device with this kernel name.
    pub fn from_name(name: &str) -> Option<BlockDevice> {
        Self::from_sysfs(&fs::canonicalize(format!("/sys/class/block/{name}")).ok()?)
    }

    fn from_sysfs(dir: &Path) -> Option<BlockDevice> {
        let name = dir.file_name()?.to_string_lossy().into_owned();
        let partition = dir.join("partition").exists();
        // A partition's queue is its disk's.
        let disk_dir = if partition { dir.parent()? } else { dir };
        let queue = |file: &str| read_trimmed(&disk_dir.join("queue").join(file));
        let queue_number = |file: &str| queue(file).and_then(|text| text.parse().ok()).unwrap_or(0);
        let kind = if partition {
            DeviceKind::Partition
        } else if let Some(file) = read_trimmed(&dir.join("loop/backing_file")) {
            DeviceKind::Loop {
                backing_file: file.into(),
            }
        } else if dir.join("dm").exists() {
            DeviceKind::Mapper
        } else if dir.join("md").exists() {
            DeviceKind::Raid
        } else if name.starts_with("zram") || name.starts_with("ram") {
            DeviceKind::Memory
        } else {
            DeviceKind::Disk
        };
        let below = if partition {
            Self::from_sysfs(disk_dir).into_iter().collect()
        } else {
            list(&dir.join("slaves"))
                .iter()
                .filter_map(|slave| Self::from_name(slave))
                .collect()
        };
        Some(BlockDevice {
            number: read_trimmed(&dir.join("dev"))?,
            model: read_trimmed(&disk_dir.join("device/model")),
            firmware: firmware(disk_dir),
            virtual_driver: virtual_driver(disk_dir),
            size_bytes: read_trimmed(&dir.join("size"))?.parse::<u64>().ok()? * 512,
            write_cache: queue("write_cache").and_then(|text| match text.as_str() {
                "write back" => Some(WriteCache::Volatile),
                "write through" => Some(WriteCache::NoneOrProtected),
                _ => None,
            }),
            fua: queue("fua").map(|text| text == "1"),
            logical_block_bytes: queue_number("logical_block_size"),
            physical_block_bytes: queue_number("physical_block_size"),
            atomic_write_bytes: queue_number("atomic_write_unit_max_bytes"),
            write_zeroes_bytes: queue_number("write_zeroes_unmap_max_hw_bytes"),
            rotational: queue("rotational").is_some_and(|text| text == "1"),
            scheduler: queue("scheduler").and_then(|text| {
                let (_, rest) = text.split_once('[')?;
                Some(rest.split_once(']')?.0.to_owned())
            }),
            name,
            kind,
            below,
        })
    }

    /// The devices whose counters tell what reached hardware (or what plays hardware).
    ///
    /// The kernel counts flushes for whole disks that queue requests, and neither for partitions nor
    /// for device-mapper and RAID, so those are looked through. A loop device queues requests and is
    /// counted itself: it is the disk that the filesystem sees. Of NVMe multipath it is the disk that is seen;
    /// [`DeviceCounters::read`](crate::DeviceCounters::read) knows its paths.
    pub fn counted_on(&self) -> Vec<&BlockDevice> {
        if self.below.is_empty() {
            vec![self]
        } else {
            let mut disks: Vec<&BlockDevice> = Vec::new();
            for disk in self.below.iter().flat_map(BlockDevice::counted_on) {
                if !disks.iter().any(|known| known.number == disk.number) {
                    disks.push(disk);
                }
            }
            disks
        }
    }

    /// Whether device-mapper or RAID stands between, which sends a write that brings its own flush on
    /// as two requests.
    pub fn splits_flushes(&self) -> bool {
        matches!(self.kind, DeviceKind::Mapper | DeviceKind::Raid)
            || self.below.iter().any(BlockDevice::splits_flushes)
    }

    /// Whether any of the disks below is volatile: has a cache that must be flushed.
    pub fn has_volatile_cache(&self) -> bool {
        self.counted_on()
            .iter()
            .any(|disk| disk.write_cache == Some(WriteCache::Volatile))
    }

    /// Whether every disk below can write straight to its medium (FUA).
    pub fn has_fua(&self) -> bool {
        self.counted_on().iter().all(|disk| disk.fua == Some(true))
    }
}

/// The revision of a disk's firmware: SCSI and SATA disks call it `rev`; an NVMe controller has it whole, as `firmware_rev`, and
/// so have MMC cards, some by another name.
fn firmware(disk_dir: &Path) -> Option<String> {
    let files = ["firmware_rev", "rev", "fwrev"];
    let device = disk_dir.join("device");
    files
        .iter()
        .find_map(|file| read_trimmed(&device.join(file)))
}

/// The driver of a virtual disk, read from where the device hangs in the device tree.
fn virtual_driver(disk_dir: &Path) -> Option<String> {
    let device = fs::canonicalize(disk_dir.join("device")).ok()?;
    let path = device.to_string_lossy();
    let known = [
        ("virtio", "virtio"),
        ("vbd-", "Xen"),
        ("VMBUS", "Hyper-V"),
        ("vmbus", "Hyper-V"),
    ];
    if let Some((_, driver)) = known.iter().find(|(mark, _)| path.contains(mark)) {
        return Some((*driver).to_owned());
    }
    let vendor = read_trimmed(&device.join("vendor"))?;
    let model = read_trimmed(&device.join("model")).unwrap_or_default();
    ["QEMU", "VMware", "VBOX", "Msft", "Google", "Amazon"]
        .iter()
        .find(|mark| vendor.contains(**mark) || model.contains(**mark))
        .map(|mark| (*mark).to_owned())
}

fn read_trimmed(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Names of what is in a directory, sorted.
pub(crate) fn list(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sysfs tree in a temporary directory: a disk, its partition, and a volume on both.
    fn sysfs() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("sda/dev", "8:0\n");
        write("sda/size", "2048\n");
        write("sda/device/model", "Samsung SSD 870 \n");
        write("sda/device/rev", "2B6Q\n");
        write("sda/queue/write_cache", "write back\n");
        write("sda/queue/fua", "1\n");
        write("sda/queue/logical_block_size", "512\n");
        write("sda/queue/scheduler", "none [mq-deadline] kyber\n");
        write("sda/sda1/dev", "8:1\n");
        write("sda/sda1/size", "1024\n");
        write("sda/sda1/partition", "1\n");
        dir
    }

    #[test]
    fn a_partition_has_its_disks_queue_and_counters() {
        let dir = sysfs();
        let partition = BlockDevice::from_sysfs(&dir.path().join("sda/sda1")).unwrap();
        assert_eq!(partition.kind, DeviceKind::Partition);
        assert_eq!(partition.size_bytes, 1024 * 512);
        assert_eq!(partition.model.as_deref(), Some("Samsung SSD 870"));
        assert_eq!(partition.firmware.as_deref(), Some("2B6Q"));
        assert_eq!(partition.write_cache, Some(WriteCache::Volatile));
        assert_eq!(partition.scheduler.as_deref(), Some("mq-deadline"));
        let counted: Vec<&str> = partition
            .counted_on()
            .iter()
            .map(|d| d.name.as_str())
            .collect();
        assert_eq!(counted, ["sda"]);
        assert!(partition.has_volatile_cache() && partition.has_fua());
    }

    #[test]
    fn firmware_has_other_names_elsewhere() {
        let dir = sysfs();
        let device = dir.path().join("nvme0n1/device");
        fs::create_dir_all(&device).unwrap();
        let of = || firmware(&dir.path().join("nvme0n1"));
        assert_eq!(of(), None);
        fs::write(device.join("firmware_rev"), "EDA5702Q  \n").unwrap();
        assert_eq!(of().as_deref(), Some("EDA5702Q"));
    }

    #[test]
    fn disks_shared_by_members_are_counted_once() {
        let dir = sysfs();
        let partition = BlockDevice::from_sysfs(&dir.path().join("sda/sda1")).unwrap();
        let mut volume = partition.clone();
        volume.kind = DeviceKind::Mapper;
        volume.below = vec![partition.clone(), partition];
        assert_eq!(volume.counted_on().len(), 1);
    }
}
