//! Where an experiment runs: a directory of the user's, and a private directory in it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use landfall_os::{
    BlockDevice, DeviceCounters, Filesystem, Host, JournalCounter, PrivateDirectory, Space,
    abandoned_in, sync_filesystem,
};

use crate::units::bytes_text;
use crate::{Error, Notice, Weight};

/// How long to wait for a device to finish what it is doing.
const QUIET_WAIT: Duration = Duration::from_millis(500);

/// A directory to measure in, what it stands on, and the private directory that holds every file
/// that is made. Dropping a site removes the private directory.
pub struct Site {
    directory: PathBuf,
    private: PrivateDirectory,
    host: Host,
    filesystem: Filesystem,
    journal: JournalCounter,
}

impl Site {
    /// Looks at `directory` and creates the private directory in it.
    pub fn open(directory: &Path) -> Result<Site, Error> {
        let directory = canonical_directory(directory)?;
        let filesystem = Filesystem::of(&directory).map_err(Error::io(format!(
            "cannot find out what {} stands on",
            directory.display()
        )))?;
        let private = PrivateDirectory::create_in(&directory)
            .map_err(|error| cannot_write(&directory, &error))?;
        let storage = filesystem.storage();
        let journal = match storage.devices.as_slice() {
            [device] => JournalCounter::of(storage, device),
            _ => JournalCounter::Unknown,
        };
        Ok(Site {
            directory,
            private,
            host: Host::this(),
            filesystem,
            journal,
        })
    }

    /// The directory that the user named, in full.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The directory that files may be made in.
    pub fn private(&self) -> &Path {
        self.private.path()
    }

    /// The machine.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The filesystem that the directory is on.
    pub fn filesystem(&self) -> &Filesystem {
        &self.filesystem
    }

    /// The only device that the data goes to; `None` when there are several or none.
    pub fn device(&self) -> Option<&BlockDevice> {
        match self.filesystem.storage().devices.as_slice() {
            [device] if device.counted_on().len() == 1 => Some(device),
            _ => None,
        }
    }

    /// The counters of all devices that data goes to; `None` when there are none to ask.
    pub fn counters(&self) -> Option<DeviceCounters> {
        let devices = &self.filesystem.storage().devices;
        if devices.is_empty() {
            return None;
        }
        devices
            .iter()
            .try_fold(DeviceCounters::default(), |sum, device| {
                Some(sum + DeviceCounters::read(device).ok()?)
            })
    }

    /// Waits until the device has nothing under way, or half a second: others may keep it busy for ever.
    pub(crate) fn wait_until_quiet(&self) {
        let begin = Instant::now();
        let is_busy = |counters: DeviceCounters| counters.in_flight > 0;
        while begin.elapsed() < QUIET_WAIT && self.counters().is_some_and(is_busy) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Writes out whatever is dirty on the filesystem, and waits until the device is quiet, so that no
    /// trial pays for what the one before it left, or is counted for it.
    pub(crate) fn drain(&self) -> io::Result<()> {
        sync_filesystem(&File::open(self.private())?)?;
        self.wait_until_quiet();
        Ok(())
    }

    /// The journal's commit counter.
    pub fn journal(&self) -> &JournalCounter {
        &self.journal
    }

    /// Refuses when fewer than `needed` bytes are free; `remedy` is what makes the plan need less.
    pub fn require_space(&self, needed: u64, remedy: &str) -> Result<(), Error> {
        let space = Space::of(&self.directory).map_err(Error::io(format!(
            "cannot find out how much is free in {}",
            self.directory.display()
        )))?;
        if space.available_bytes >= needed {
            return Ok(());
        }
        Err(Error::Refused(format!(
            "{} has {} free and this plan needs {}: free some space, {remedy}, or name another directory",
            self.directory.display(),
            bytes_text(space.available_bytes),
            bytes_text(needed),
        )))
    }

    /// A notice for each directory that a killed run has left here.
    pub(crate) fn leftover_notices(&self) -> Vec<Notice> {
        abandoned_in(&self.directory)
            .unwrap_or_default()
            .iter()
            .map(|path| {
                let text = format!(
                    "{} was left by a run that was killed; it can be removed, unless another machine or container is measuring in this directory.",
                    path.display()
                );
                Notice::new("leftover", Weight::Note, text)
            })
            .collect()
    }

    /// Removes the private directory, and says so if that fails.
    pub fn close(self) -> Result<(), Error> {
        let path = self.private.path().to_owned();
        self.private
            .close()
            .map_err(Error::io(format!("cannot remove {}", path.display())))
    }
}

/// The directory in full, or why it is none.
pub fn canonical_directory(directory: &Path) -> Result<PathBuf, Error> {
    let name = directory.display();
    let full = directory
        .canonicalize()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::Usage(format!("there is no directory {name}")),
            _ => Error::Refused(format!("cannot open {name}: {error}")),
        })?;
    if !full.is_dir() {
        return Err(Error::Usage(format!("{name} is not a directory")));
    }
    Ok(full)
}

fn cannot_write(directory: &Path, error: &io::Error) -> Error {
    let name = directory.display();
    Error::Refused(match error.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("{name} may not be written by you; name a directory that may")
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            format!("{name} is on a filesystem mounted read-only; name another directory")
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            format!("{name} is on a full filesystem; free some space or name another directory")
        }
        _ => format!("cannot create a directory in {name}: {error}"),
    })
}
