//! What a made filesystem is on: a block device of our own.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use landfall_os::{
    BlockNode, LoopDevice, PrivateDirectory, Space, available_memory, evict, isolate_mounts,
    zero_fill,
};
use landfall_recorder::{Offer, Options, Recorder};

use super::requirements;
use crate::{Error, Stop};
use landfall_os::humanize::bytes_text;

/// Bytes of a directory's filesystem that are left to others.
const SPARE: u64 = 64 << 20;
/// The first network block device.
const NBD: &str = "/dev/nbd0";

/// A block device to make a filesystem on; gone when dropped.
#[derive(Debug)]
pub enum BackingDevice {
    /// An image file on a loop device.
    Loop(Image),
    /// Main memory as a block device.
    Memory(Memory),
    /// A device that counts and remembers.
    Recorder(Recorder),
}

/// A block device in main memory, so that what a filesystem costs besides its disk can be told.
#[derive(Debug)]
pub struct Memory {
    device: LoopDevice,
    directory: PathBuf,
}

/// A file that was filled with written zeros, as a block device: what is written to it costs the
/// filesystem below no allocation.
#[derive(Debug)]
pub struct Image {
    // Let go of before the file is removed.
    device: LoopDevice,
    private: PrivateDirectory,
    directory: PathBuf,
}

impl BackingDevice {
    /// An image of `size` bytes in a private directory in `directory`. Refused where there is no room
    /// for it.
    pub fn image(directory: &Path, size: u64, stop: &Stop) -> Result<BackingDevice, Error> {
        isolate_mounts().map_err(requirements::isolating)?;
        requirements::require_device("/dev/loop-control", "loop")?;
        require_space(directory, size, "an image")?;
        let failed = || format!("cannot write an image in {}", directory.display());
        let private = PrivateDirectory::create_in(directory).map_err(Error::io(failed()))?;
        let path = private.path().join("image");
        let made = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        made.and_then(|file| {
            zero_fill(&file, 0, size, &|| stop.is_requested())?;
            file.sync_all()?;
            // Or each direct write would have to look for what is cached.
            evict(&file)
        })
        .map_err(Error::io(failed()))?;
        let device =
            LoopDevice::attach(&path).map_err(|error| requirements::attaching(directory, error))?;
        Ok(BackingDevice::Loop(Image {
            device,
            private,
            directory: directory.to_owned(),
        }))
    }

    /// `size` bytes of main memory; the filesystem is mounted in `directory`. Refused where there is not so
    /// much memory to spare.
    pub fn memory(directory: &Path, size: u64) -> Result<BackingDevice, Error> {
        isolate_mounts().map_err(requirements::isolating)?;
        requirements::require_device("/dev/loop-control", "loop")?;
        let available = available_memory().unwrap_or(0);
        if size > available / 4 * 3 {
            return Err(Error::Refused(format!(
                "a device of {} in main memory is more than three quarters of the {} that is available: measure less, or name another site",
                bytes_text(size),
                bytes_text(available),
            )));
        }
        let device = LoopDevice::in_memory(size)
            .map_err(|error| requirements::attaching(directory, error))?;
        Ok(BackingDevice::Memory(Memory {
            device,
            directory: directory.to_owned(),
        }))
    }

    /// A recorder, to which `expected` bytes are likely to be written: it takes no more than what is.
    /// Refused where there is no room for those.
    pub fn recorder(options: &Options, expected: u64) -> Result<BackingDevice, Error> {
        isolate_mounts().map_err(requirements::isolating)?;
        requirements::require_device("/dev/fuse", "fuse")?;
        match options.offer {
            Offer::Flushes => requirements::require_device("/dev/loop-control", "loop")?,
            Offer::ForceUnitAccess => requirements::require_device(NBD, "nbd")?,
        }
        if options.size > options.memory {
            let expected = expected.min(options.size);
            require_space(&options.directory, expected, "a recording")?;
        }
        Recorder::start(options)
            .map(BackingDevice::Recorder)
            .map_err(|error| requirements::starting(&options.directory, error))
    }

    /// The block device.
    pub fn device(&self) -> &BlockNode {
        match self {
            BackingDevice::Loop(image) => image.device.node(),
            BackingDevice::Memory(memory) => memory.device.node(),
            BackingDevice::Recorder(recorder) => recorder.device(),
        }
    }

    /// The recorder, if it is one.
    pub fn as_recorder(&self) -> Option<&Recorder> {
        match self {
            BackingDevice::Loop(_) | BackingDevice::Memory(_) => None,
            BackingDevice::Recorder(recorder) => Some(recorder),
        }
    }

    /// The directory that was named for it.
    pub fn directory(&self) -> &Path {
        match self {
            BackingDevice::Loop(image) => &image.directory,
            BackingDevice::Memory(memory) => &memory.directory,
            BackingDevice::Recorder(recorder) => recorder.directory(),
        }
    }

    /// Takes the device away, and says so if something stays.
    pub fn close(self) -> Result<(), Error> {
        match self {
            BackingDevice::Loop(Image {
                device, private, ..
            }) => {
                drop(device);
                let path = private.path().to_owned();
                private
                    .close()
                    .map_err(Error::io(format!("cannot remove {}", path.display())))
            }
            // Nothing of these has a name.
            BackingDevice::Memory(_) | BackingDevice::Recorder(_) => Ok(()),
        }
    }
}

fn require_space(directory: &Path, size: u64, what: &str) -> Result<(), Error> {
    let space = Space::of(directory).map_err(Error::io(format!(
        "cannot find out how much is free in {}",
        directory.display()
    )))?;
    if space.available_bytes.saturating_sub(SPARE) >= size {
        Ok(())
    } else {
        Err(Error::Refused(format!(
            "{} has {} free and {what} of {} is to be made there: free some space, measure less, or name another directory",
            directory.display(),
            bytes_text(space.available_bytes),
            bytes_text(size),
        )))
    }
}
