//! The filesystem that a directory is on, and the device below it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use procfs::FromRead as _;
use procfs::process::{MountInfo, MountInfos};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags};

use crate::BlockDevice;
use crate::journal::has_journal;

/// `STATX_WRITE_ATOMIC`, since Linux 6.11; not in the libraries yet.
const STATX_WRITE_ATOMIC: u32 = 0x0001_0000;

/// Where a filesystem keeps its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)
)]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Medium {
    /// A block device of this machine.
    Device,
    /// Main memory.
    Memory,
    /// Another machine.
    Network,
    /// The host of this virtual machine, or a process (9p, virtiofs, FUSE).
    Passthrough,
    /// Block devices that the filesystem manages by itself and does not name (ZFS), or not known.
    Unknown,
}

/// Alignments that direct I/O needs, in bytes (`STATX_DIOALIGN`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)
)]
pub struct DirectIo {
    /// Of the buffer in memory.
    pub memory_bytes: u32,
    /// Of file offset and length.
    pub offset_bytes: u32,
}

/// How full a filesystem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)
)]
pub struct Space {
    /// Size of the filesystem in bytes.
    pub total_bytes: u64,
    /// What an ordinary user may still write, in bytes.
    pub available_bytes: u64,
}

impl Space {
    /// The space of the filesystem that `path` is on.
    pub fn of(path: &Path) -> io::Result<Space> {
        let stat = rustix::fs::statvfs(path)?;
        Ok(Space {
            total_bytes: stat.f_blocks * stat.f_frsize,
            available_bytes: stat.f_bavail * stat.f_frsize,
        })
    }
}

/// A mounted filesystem.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)
)]
pub struct Filesystem {
    /// Type: `ext4`, `xfs`, `overlay`, ….
    pub kind: String,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// What is mounted there.
    pub source: String,
    /// Mount options in force, those of the mount and those of the filesystem, sorted.
    pub options: Vec<String>,
    /// Where it keeps its data.
    pub medium: Medium,
    /// Whether an overwrite goes to a new place on the device.
    pub copy_on_write: bool,
    /// Transparent compression, if it is on.
    pub compression: Option<String>,
    /// Whether it has a journal; absent where the kernel does not tell, or there is no such thing.
    #[cfg_attr(feature = "serde", serde(default))]
    pub journal: Option<bool>,
    /// What direct I/O needs; absent when it is not supported or the kernel does not tell.
    pub direct_io: Option<DirectIo>,
    /// Largest write to a file here that is promised to be untorn (`RWF_ATOMIC`), in bytes.
    pub atomic_write_bytes: u64,
    /// How full it is.
    pub space: Space,
    /// For an overlay: the filesystem that holds what is written.
    pub upper: Option<Box<Filesystem>>,
    /// The block devices it is on, when it has any.
    pub devices: Vec<BlockDevice>,
}

impl Filesystem {
    /// Describes the filesystem that the directory `dir` is on.
    pub fn of(dir: &Path) -> io::Result<Filesystem> {
        // A thread may have mounts of its own.
        let mounts =
            MountInfos::from_file("/proc/thread-self/mountinfo").map_err(io::Error::other)?;
        Self::of_in(dir, &mounts.0, 0)
    }

    fn of_in(dir: &Path, mounts: &[MountInfo], depth: u32) -> io::Result<Filesystem> {
        let dir = fs::canonicalize(dir)?;
        let mount = mount_of(&dir, mounts)?;
        let mut options = options_of(mount);
        let kind = mount.fs_type.clone();
        let source = mount.mount_source.clone().unwrap_or_default();
        let upper = match mount.super_options.get("upperdir") {
            // Overlays may be stacked; the kernel allows two levels.
            Some(Some(upper)) if kind == "overlay" && depth < 4 => {
                Self::of_in(Path::new(upper), mounts, depth + 1).ok()
            }
            _ => None,
        };
        let devices = match &upper {
            Some(upper) => upper.devices.clone(),
            None => devices_of(&kind, &source, &mount.majmin),
        };
        if let (true, [device]) = (matches!(kind.as_str(), "ext3" | "ext4"), devices.as_slice()) {
            options.extend(superblock_options(&device.name, &options));
        }
        let medium = match &upper {
            Some(upper) => upper.medium,
            None => medium_of(&kind, &devices),
        };
        let alignment = write_alignment(&dir);
        Ok(Filesystem {
            copy_on_write: match &upper {
                Some(upper) => upper.copy_on_write,
                None => is_copy_on_write(&kind, &options),
            },
            compression: match &upper {
                Some(upper) => upper.compression.clone(),
                None => compression_of(&options),
            },
            journal: match (&upper, devices.as_slice()) {
                (Some(upper), _) => upper.journal,
                (None, [device]) => has_journal(&kind, device),
                (None, _) => None,
            },
            direct_io: alignment.and_then(|(direct, _)| direct),
            atomic_write_bytes: alignment.map_or(0, |(_, atomic)| atomic),
            space: Space::of(&dir)?,
            mount_point: mount.mount_point.clone(),
            upper: upper.map(Box::new),
            kind,
            source,
            options,
            medium,
            devices,
        })
    }

    /// The filesystem that really stores the data: this one, or an overlay's upper one.
    pub fn storage(&self) -> &Filesystem {
        self.upper.as_ref().map_or(self, |upper| upper.storage())
    }

    /// The value of a mount option: `option("data")` is `Some("journal")` for `data=journal`, and
    /// `Some("")` for an option without a value.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find_map(|option| {
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            (key == name).then_some(value)
        })
    }
}

/// By mount id where the kernel tells it (5.8), else by the longest mount point that leads to `dir`.
fn mount_of<'a>(dir: &Path, mounts: &'a [MountInfo]) -> io::Result<&'a MountInfo> {
    let id = rustix::fs::statx(CWD, dir, AtFlags::empty(), StatxFlags::MNT_ID)
        .ok()
        .filter(|stat| stat.stx_mask & StatxFlags::MNT_ID.bits() != 0)
        .map(|stat| stat.stx_mnt_id);
    let by_id = mounts
        .iter()
        .find(|mount| id.is_some_and(|id| u64::try_from(mount.mnt_id) == Ok(id)));
    by_id
        .or_else(|| {
            mounts
                .iter()
                .filter(|mount| dir.starts_with(&mount.mount_point))
                // Of several mounts on one point the last one is seen, and max_by_key takes the last.
                .max_by_key(|mount| mount.mount_point.as_os_str().len())
        })
        .ok_or_else(|| io::Error::other(format!("no mount is known for {}", dir.display())))
}

fn options_of(mount: &MountInfo) -> Vec<String> {
    let mut options: Vec<String> = mount
        .mount_options
        .iter()
        .chain(&mount.super_options)
        .map(|(key, value)| match value {
            Some(value) => format!("{key}={value}"),
            None => key.clone(),
        })
        .collect();
    options.sort();
    options.dedup();
    options
}

/// Options of an ext filesystem that its superblock sets by default: the mount table does not show
/// them. Only those that change what a sync means.
fn superblock_options(device: &str, known: &[String]) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/fs/ext4/{device}/options")).unwrap_or_default();
    text.lines()
        .filter(|option| *option == "nobarrier" || option.starts_with("data="))
        .filter(|option| !known.iter().any(|known| known == option))
        .map(str::to_owned)
        .collect()
}

fn medium_of(kind: &str, devices: &[BlockDevice]) -> Medium {
    match kind {
        "tmpfs" | "ramfs" | "devtmpfs" | "hugetlbfs" => Medium::Memory,
        "nfs" | "nfs4" | "cifs" | "smb3" | "ceph" | "glusterfs" | "lustre" | "afs" | "gfs2"
        | "ocfs2" | "fuse.sshfs" | "fuse.glusterfs" | "fuse.ceph" | "fuse.s3fs" => Medium::Network,
        "9p" | "virtiofs" | "vboxsf" | "drvfs" => Medium::Passthrough,
        kind if kind == "fuse" || kind.starts_with("fuse.") => Medium::Passthrough,
        _ if devices.is_empty() => Medium::Unknown,
        _ => Medium::Device,
    }
}

fn is_copy_on_write(kind: &str, options: &[String]) -> bool {
    match kind {
        "btrfs" => !options.iter().any(|option| option == "nodatacow"),
        "zfs" | "bcachefs" | "nilfs2" | "f2fs" => true,
        _ => false,
    }
}

fn compression_of(options: &[String]) -> Option<String> {
    options.iter().find_map(|option| {
        let (key, value) = option.split_once('=').unwrap_or((option, "on"));
        let named = matches!(
            key,
            "compress" | "compress-force" | "compression" | "compress_algorithm"
        );
        (named && value != "no" && value != "none").then(|| value.to_owned())
    })
}

fn devices_of(kind: &str, source: &str, number: &str) -> Vec<BlockDevice> {
    if kind == "btrfs" {
        let members = btrfs_members(source);
        if !members.is_empty() {
            return members;
        }
    }
    if let Some(device) = BlockDevice::from_number(number) {
        return vec![device];
    }
    // Filesystems with device numbers of their own (btrfs, bcachefs) name their devices as source.
    source
        .split(':')
        .filter(|name| name.starts_with('/'))
        .filter_map(|name| fs::canonicalize(name).ok())
        .filter_map(|path| BlockDevice::from_name(&path.file_name()?.to_string_lossy()))
        .collect()
}

/// The devices of the btrfs filesystem that has `source` as one of its devices.
fn btrfs_members(source: &str) -> Vec<BlockDevice> {
    let Some(name) = fs::canonicalize(source)
        .ok()
        .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
    else {
        return Vec::new();
    };
    let names = |dir: PathBuf| -> Vec<String> {
        fs::read_dir(dir)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect()
    };
    names("/sys/fs/btrfs".into())
        .into_iter()
        .map(|id| names(Path::new("/sys/fs/btrfs").join(id).join("devices")))
        .find(|members| members.contains(&name))
        .unwrap_or_default()
        .iter()
        .filter_map(|member| BlockDevice::from_name(member))
        .collect()
}

/// Direct I/O alignment and untorn-write limit of a file in `dir`.
///
/// Both are properties of a file, so one without a name is opened; where that is not possible
/// (no permission, or a filesystem without `O_TMPFILE`) nothing is known.
fn write_alignment(dir: &Path) -> Option<(Option<DirectIo>, u64)> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::open(dir, flags, Mode::RUSR | Mode::WUSR).ok()?;
    let atomic = StatxFlags::from_bits_retain(STATX_WRITE_ATOMIC);
    let mask = StatxFlags::DIOALIGN | atomic;
    let stat = rustix::fs::statx(&file, "", AtFlags::EMPTY_PATH, mask).ok()?;
    let told = |flag: StatxFlags| stat.stx_mask & flag.bits() != 0;
    let direct =
        (told(StatxFlags::DIOALIGN) && stat.stx_dio_offset_align > 0).then_some(DirectIo {
            memory_bytes: stat.stx_dio_mem_align,
            offset_bytes: stat.stx_dio_offset_align,
        });
    let atomic = if told(atomic) {
        stat.stx_atomic_write_unit_max
    } else {
        0
    };
    Some((direct, u64::from(atomic)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_is_found_by_the_longest_path() {
        let line = |id: u32, point: &str, kind: &str| {
            MountInfo::from_line(&format!(
                "{id} 1 0:{id} / {point} rw,noatime - {kind} src rw"
            ))
            .unwrap()
        };
        // Ids that no real mount has, so that the paths decide.
        let mounts = [
            line(900_001, "/", "ext4"),
            line(900_002, "/proc", "proc"),
            line(900_003, "/tm", "xfs"),
        ];
        assert_eq!(
            mount_of(Path::new("/proc/self"), &mounts).unwrap().fs_type,
            "proc"
        );
        assert_eq!(
            mount_of(Path::new("/tmp"), &mounts).unwrap().fs_type,
            "ext4"
        );
    }

    #[test]
    fn shared_memory_is_memory() {
        let shm = Path::new("/dev/shm");
        if !shm.is_dir() {
            println!("skipped: there is no /dev/shm");
            return;
        }
        let filesystem = Filesystem::of(shm).unwrap();
        assert_eq!(filesystem.medium, Medium::Memory);
        assert!(filesystem.devices.is_empty());
    }

    #[test]
    fn options_are_looked_up_by_name() {
        let mut filesystem = Filesystem::of(Path::new("/")).unwrap();
        filesystem.options = vec!["data=journal".into(), "rw".into()];
        assert_eq!(filesystem.option("data"), Some("journal"));
        assert_eq!(filesystem.option("rw"), Some(""));
        assert_eq!(filesystem.option("barrier"), None);
    }

    #[test]
    fn compression_and_copy_on_write_come_from_the_options() {
        let options = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(
            compression_of(&options("rw,compress=zstd:3")).as_deref(),
            Some("zstd:3")
        );
        assert_eq!(compression_of(&options("rw,compress=no")), None);
        assert!(is_copy_on_write("btrfs", &options("rw")));
        assert!(!is_copy_on_write("btrfs", &options("rw,nodatacow")));
        assert!(!is_copy_on_write("ext4", &options("rw")));
    }
}
