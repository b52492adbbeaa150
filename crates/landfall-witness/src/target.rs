//! What is written to: a file in a directory, or a whole block device that was named for destruction twice.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use landfall_os::{BlockDevice, DiskIdentity, Filesystem, Medium, machine_id};
use landfall_results::witness::{MountedFilesystem, Strategy, Target};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::Error;
use crate::block::UNIT;

/// What the file in a directory is called, with a part of the stream's name: several may be written in one directory.
const FILE: &str = "landfall-witness";

/// A directory or a device, as it is now.
#[derive(Clone, Debug)]
pub struct Place {
    /// What it is, and which disks it is on.
    target: Target,
    /// The file or device that is written.
    path: PathBuf,
    /// What the witness calls it.
    stream: String,
    /// Bytes that fewer than which the disk writes only with others.
    physical_block_bytes: u64,
}

impl Place {
    /// What is named. The witness calls it by `name`, or else by this machine and its path.
    pub fn find(named: &Path, name: Option<&str>) -> Result<Place, Error> {
        let text = named.display();
        let cannot = |error| Error::Usage(format!("cannot look at {text}: {error}"));
        let kind = fs::metadata(named).map_err(cannot)?.file_type();
        if !kind.is_dir() && !kind.is_block_device() {
            let text =
                format!("{text} is neither a directory nor a block device; name the directory");
            return Err(Error::Usage(text));
        }
        // A device by the name that was given: that of `/dev/disk/by-id` stays with the disk.
        let path = if kind.is_dir() {
            fs::canonicalize(named)
        } else {
            std::path::absolute(named)
        };
        let path = path.map_err(cannot)?;
        let stream = match name {
            Some(name) => name.to_owned(),
            None => format!("{}:{}", machine_id(), path.display()),
        };
        if kind.is_dir() {
            Place::in_directory(path, stream)
        } else {
            Place::on_device(path, stream)
        }
    }

    fn in_directory(path: PathBuf, stream: String) -> Result<Place, Error> {
        let doing = format!("find out what {} stands on", path.display());
        let filesystem = Filesystem::of(&path).map_err(Error::io(doing))?;
        let storage = filesystem.storage();
        match storage.medium {
            Medium::Memory => {
                let text = format!(
                    "{} is in main memory: a power cut loses all of it",
                    path.display()
                );
                return Err(Error::Refused(text));
            }
            Medium::Device | Medium::Network | Medium::Passthrough | Medium::Unknown => {}
        }
        let device_bytes = match storage.devices.as_slice() {
            [device] => device.size_bytes,
            _ => 0,
        };
        let checksum = crc32c::crc32c(stream.as_bytes());
        Ok(Place {
            target: Target {
                path: path.display().to_string(),
                filesystem: Some(MountedFilesystem {
                    kind: storage.kind.clone(),
                    mount_point: storage.mount_point.display().to_string(),
                }),
                device_bytes,
                disks: disks(&storage.devices),
            },
            path: path.join(format!("{FILE}-{checksum:08x}.data")),
            physical_block_bytes: physical(&storage.devices),
            stream,
        })
    }

    fn on_device(path: PathBuf, stream: String) -> Result<Place, Error> {
        let doing = format!("look at {}", path.display());
        let device = BlockDevice::from_node(&path).map_err(Error::io(doing))?;
        let devices: Vec<BlockDevice> = device.into_iter().collect();
        let Some(device_bytes) = devices.first().map(|device| device.size_bytes) else {
            let text = format!("{} has no device", path.display());
            return Err(Error::Refused(text));
        };
        Ok(Place {
            target: Target {
                path: path.display().to_string(),
                filesystem: None,
                device_bytes,
                disks: disks(&devices),
            },
            physical_block_bytes: physical(&devices),
            path,
            stream,
        })
    }

    /// What it is, and which disks it is on.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// What the witness calls it.
    pub fn stream(&self) -> &str {
        &self.stream
    }

    /// The file or device that is written and checked.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a block device.
    pub fn is_device(&self) -> bool {
        self.target.filesystem.is_none()
    }

    /// Refuses a device that was not named for destruction a second time, and a directory that was.
    pub fn confirm(&self, named: &Path, destroy: Option<&Path>) -> Result<(), Error> {
        let text = named.display();
        match destroy {
            None if self.is_device() => Err(Error::Usage(format!(
                "everything on {text} would be destroyed; if that is meant, name it twice: --destroy {text}"
            ))),
            Some(again) if again != named => Err(Error::Usage(format!(
                "{text} and {} are named to be destroyed; name one device, twice alike",
                again.display()
            ))),
            Some(_) if !self.is_device() => Err(Error::Usage(format!(
                "{text} is a directory, of which nothing is destroyed; leave out --destroy"
            ))),
            _ => Ok(()),
        }
    }

    /// Whether it can be written so; nothing is changed yet. What this returns keeps others from mounting or claiming a device.
    pub(crate) fn examine(&self, strategy: &Strategy) -> Result<Option<File>, Error> {
        let bytes = u64::from(strategy.block_bytes) * u64::from(strategy.blocks);
        if u64::from(strategy.block_bytes) < self.physical_block_bytes {
            let text = format!(
                "the disk writes {} bytes at once, and a block would be smaller; name a larger --size",
                self.physical_block_bytes
            );
            return Err(Error::Refused(text));
        }
        if self.is_device() {
            let has = self.target.device_bytes;
            if bytes > has {
                let text = format!(
                    "{} has {has} bytes, and {bytes} would be written; name fewer --blocks",
                    self.path.display()
                );
                return Err(Error::Refused(text));
            }
            return self.claim().map(Some);
        }
        Ok(None)
    }

    /// Makes the file anew, with its name durable; a device is there.
    pub(crate) fn make(&self, strategy: &Strategy) -> Result<(), Error> {
        if self.is_device() {
            return Ok(());
        }
        let bytes = u64::from(strategy.block_bytes) * u64::from(strategy.blocks);
        let cannot = || format!("make {}", self.path.display());
        match fs::symlink_metadata(&self.path) {
            Ok(there) if !there.is_file() => {
                let text = format!("{} is no plain file; remove it", self.path.display());
                return Err(Error::Refused(text));
            }
            Ok(_) => fs::remove_file(&self.path).map_err(Error::io(cannot()))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io(cannot())(error)),
        }
        let file = File::create_new(&self.path).map_err(Error::io(cannot()))?;
        // A mapping cannot grow a file, and blocks may be written in any order.
        file.set_len(bytes).map_err(Error::io(cannot()))?;
        file.sync_all().map_err(Error::io(cannot()))?;
        let directory = self.path.parent().unwrap_or(Path::new("."));
        let directory = File::open(directory).map_err(Error::io(cannot()))?;
        directory.sync_all().map_err(Error::io(cannot()))
    }

    /// Where a writer that gave up leaves its [note](crate::note): behind the blocks. `None`: a device has no room for it.
    pub(crate) fn note_at(&self, strategy: &Strategy) -> Option<u64> {
        let bytes = u64::from(strategy.block_bytes) * u64::from(strategy.blocks);
        let has_room = bytes + u64::from(UNIT) <= self.target.device_bytes;
        (has_room || !self.is_device()).then_some(bytes)
    }

    fn claim(&self) -> Result<File, Error> {
        let name = self.path.display();
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(OFlags::EXCL.bits() as i32)
            .open(&self.path);
        opened.map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::BUSY) => Error::Refused(format!(
                "{name} is in use: it, or a part of it, is mounted, is swap, or belongs to a volume or another program"
            )),
            _ => Error::Io { doing: format!("open {name}"), source: error },
        })
    }
}

/// The disks below, each once.
fn disks(devices: &[BlockDevice]) -> Vec<DiskIdentity> {
    let mut known: Vec<&str> = Vec::new();
    let mut disks = Vec::new();
    for disk in devices.iter().flat_map(BlockDevice::counted_on) {
        if !known.contains(&disk.number.as_str()) {
            known.push(&disk.number);
            disks.push(DiskIdentity::of(disk));
        }
    }
    disks
}

fn physical(devices: &[BlockDevice]) -> u64 {
    let disks = devices.iter().flat_map(BlockDevice::counted_on);
    disks
        .map(|disk| disk.physical_block_bytes)
        .max()
        .unwrap_or(0)
}
