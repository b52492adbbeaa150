//! Where an experiment runs: a directory of the user's, or a filesystem made for the purpose; and a
//! private directory in it.

mod several;
mod spec;

pub use several::SiteResult;
pub(crate) use several::Sites;
pub use spec::{SiteDescription, SiteKind, SiteSpec};

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use landfall_os::{
    BlockDevice, DeviceCounters, DeviceKind, Filesystem, Host, JournalCounter, PrivateDirectory,
    Space, abandoned_in, available_memory, sync_filesystem,
};
use landfall_recorder::{Options, Recorder};

use crate::scratch_fs::{BackingDevice, FilesystemSpec, ScratchFilesystem};
use crate::{Error, Notice, Stop, Weight, facts};
use landfall_os::humanize::bytes_text;

/// How long to wait for a device to finish what it is doing.
const QUIET_WAIT: Duration = Duration::from_millis(500);
/// A backing with less than this left on its disk has filled it.
const FULL: u64 = 4 << 20;

/// A directory to measure in, what it stands on, and the private directory that holds every file
/// that is made. Dropping a site removes the private directory, and the filesystem if one was made.
pub struct Site {
    directory: PathBuf,
    description: SiteDescription,
    // Dropped in this order: first what is on the filesystem.
    private: PrivateDirectory,
    made: Option<ScratchFilesystem>,
    host: Host,
    filesystem: Filesystem,
    journal: JournalCounter,
}

impl Site {
    /// Looks at `directory` and creates the private directory in it.
    pub fn open(directory: &Path) -> Result<Site, Error> {
        Self::new(
            canonical_directory(directory)?,
            None,
            SiteDescription::default(),
        )
    }

    /// The site that `spec` asks for, at `directory`: a filesystem that is made has at least `needed`
    /// bytes free, unless the spec tells its size.
    ///
    /// To make one needs root. The calling thread, and those that it starts afterwards, then get mounts
    /// of their own (see [`landfall_os::isolate_mounts`]).
    pub fn make(
        spec: &SiteSpec,
        directory: &Path,
        needed: u64,
        stop: &Stop,
    ) -> Result<Site, Error> {
        let (kind, filesystem_spec, latency) = match spec {
            SiteSpec::Directory => return Self::open(directory),
            SiteSpec::Loop(filesystem_spec) => (SiteKind::Loop, filesystem_spec, None),
            SiteSpec::Memory(filesystem_spec) => (SiteKind::Memory, filesystem_spec, None),
            SiteSpec::Recorder(filesystem_spec, latency) => {
                (SiteKind::Recorder, filesystem_spec, latency.as_ref())
            }
        };
        let directory = canonical_directory(directory)?;
        let size = filesystem_spec.size_for(needed).map_err(Error::Refused)?;
        let backing = match kind {
            SiteKind::Recorder => {
                let options = Options {
                    directory: directory.clone(),
                    latency: latency.cloned(),
                    memory: recorder_memory(),
                    ..Options::new(size)
                };
                BackingDevice::recorder(&options, needed)
            }
            SiteKind::Memory => BackingDevice::memory(&directory, size),
            _ => BackingDevice::image(&directory, size, stop),
        }?;
        let made = ScratchFilesystem::make(filesystem_spec, backing, stop)?;
        // What cannot be told of it is no reason to measure nothing.
        let below = || Filesystem::of(&directory).ok().as_ref().map(facts::place);
        let description = SiteDescription {
            kind,
            filesystem_spec: Some(filesystem_spec.clone()),
            size_bytes: Some(size),
            latency: latency.map(ToString::to_string),
            below: (kind == SiteKind::Loop).then(below).flatten(),
        };
        Self::new(directory, Some(made), description)
    }

    fn new(
        directory: PathBuf,
        made: Option<ScratchFilesystem>,
        description: SiteDescription,
    ) -> Result<Site, Error> {
        let root = made
            .as_ref()
            .map_or(&*directory, ScratchFilesystem::directory);
        let mut filesystem = Filesystem::of(root).map_err(Error::io(format!(
            "cannot find out what {} stands on",
            root.display()
        )))?;
        // To the kernel it is a loop device.
        let known = match description.kind {
            SiteKind::Recorder => Some(DeviceKind::Recorder),
            SiteKind::Memory => Some(DeviceKind::Memory),
            SiteKind::Directory | SiteKind::Loop => None,
        };
        if let Some(kind) = known {
            for device in &mut filesystem.devices {
                device.kind = kind.clone();
            }
        }
        let private =
            PrivateDirectory::create_in(root).map_err(|error| cannot_write(root, &error))?;
        let storage = filesystem.storage();
        let journal = match storage.devices.as_slice() {
            [device] => JournalCounter::of(storage, device),
            _ => JournalCounter::Unknown,
        };
        Ok(Site {
            directory,
            description,
            private,
            made,
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

    /// A new directory in the private one, where a program may be run as another user.
    pub(crate) fn open_directory(&self, name: &str) -> Result<PathBuf, Error> {
        self.private.open_directory(name).map_err(Error::io(format!(
            "cannot make a directory in {}",
            self.private().display()
        )))
    }

    /// What sort of site it is.
    pub fn description(&self) -> &SiteDescription {
        &self.description
    }

    /// The recorder below it, if there is one.
    pub fn recorder(&self) -> Option<&Recorder> {
        self.made.as_ref().and_then(ScratchFilesystem::recorder)
    }

    /// How the filesystem was made, if it was made for the purpose.
    pub fn filesystem_spec(&self) -> Option<&FilesystemSpec> {
        self.made.as_ref().map(ScratchFilesystem::spec)
    }

    /// The machine.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The filesystem that is measured on.
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
    ///
    /// A recorder's are exact: it knows which writes carried data. Only what it cannot know, requests
    /// without data and those under way, is the kernel's word.
    pub fn counters(&self) -> Option<DeviceCounters> {
        let devices = &self.filesystem.storage().devices;
        if devices.is_empty() {
            return None;
        }
        let counters = devices
            .iter()
            .map(|device| DeviceCounters::read(device).ok())
            .reduce(|sum, device| Some(sum? + device?))??;
        Some(match self.recorder().map(Recorder::counts) {
            None => counters,
            Some(exact) => DeviceCounters {
                reads: exact.reads,
                read_bytes: exact.read_bytes,
                data_writes: Some(exact.writes),
                write_bytes: exact.written_bytes,
                flushes: exact.flushes,
                ..counters
            },
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

    /// How full the filesystem is that is measured on.
    pub fn space(&self) -> Result<Space, Error> {
        Space::of(self.private()).map_err(Error::io(format!(
            "cannot find out how much is free in {}",
            self.directory.display()
        )))
    }

    /// Refuses when fewer than `needed` bytes are free; `remedy` is what makes the plan need less.
    pub fn require_space(&self, needed: u64, remedy: &str) -> Result<(), Error> {
        let space = self.space()?;
        if space.available_bytes >= needed {
            return Ok(());
        }
        let (what, otherwise) = match self.made.as_ref().map(ScratchFilesystem::spec) {
            None => (
                self.directory.display().to_string(),
                format!("free some space, {remedy}, or name another directory"),
            ),
            Some(FilesystemSpec { kind, .. }) => (
                format!("the {kind} that was made"),
                format!("{remedy}, or make it larger with size="),
            ),
        };
        Err(Error::Refused(format!(
            "{what} has {} free and this plan needs {}: {otherwise}",
            bytes_text(space.available_bytes),
            bytes_text(needed),
        )))
    }

    /// The error itself, or, where the disk below the filesystem that was made is full, that: it is what
    /// then makes the device fail.
    pub fn explain(&self, error: Error) -> Error {
        let full = |made: &ScratchFilesystem| {
            Space::of(made.backing().directory()).is_ok_and(|space| space.available_bytes < FULL)
        };
        match error {
            Error::Io { .. } if self.made.as_ref().is_some_and(full) => Error::Refused(format!(
                "{} is full, so that the device of the filesystem that was made there fails: free some space, measure less, or name another directory",
                self.directory.display()
            )),
            error => error,
        }
    }

    /// What must be known about the site, besides what its filesystem tells.
    pub(crate) fn notices(&self) -> Vec<Notice> {
        let mut notices = self.leftover_notices();
        let place = self.directory.display();
        notices.extend(match (self.description.kind, &self.description.latency) {
            // Of memory its device tells.
            (SiteKind::Directory | SiteKind::Memory, _) => None,
            (SiteKind::Loop, _) => Some(Notice::new(
                "made-on-image",
                Weight::Note,
                format!("This filesystem was made on an image file in {place}: counted is what reaches the image, and times have another filesystem and the disk beneath in them."),
            )),
            (SiteKind::Recorder, None) => Some(
                Notice::new(
                    "made-on-recorder",
                    Weight::Warning,
                    "Measured on a recorder: writes, bytes and flushes are exact, times say nothing about a disk.",
                )
                .because(
                    "A recorder is a block device in user space; --latency gives it the times of a disk.",
                ),
            ),
            (SiteKind::Recorder, Some(latency)) => Some(Notice::new(
                "made-on-recorder",
                Weight::Note,
                format!("This filesystem was made on a recorder, a device in user space: writes, bytes and flushes are exact, and times are a model's ({latency})."),
            )),
        });
        notices
    }

    /// A notice for each directory that a killed run has left here.
    fn leftover_notices(&self) -> Vec<Notice> {
        abandoned_in(&self.directory)
            .unwrap_or_default()
            .iter()
            .map(|path| {
                let text = format!(
                    "{} was left by a run that was killed; 'landfall clean' removes it.",
                    path.display()
                );
                Notice::new("leftover", Weight::Note, text)
            })
            .collect()
    }

    /// Removes the private directory, and the filesystem if one was made, and says so if that fails.
    pub fn close(self) -> Result<(), Error> {
        let path = self.private.path().to_owned();
        let removed = self
            .private
            .close()
            .map_err(Error::io(format!("cannot remove {}", path.display())));
        match self.made {
            // Whatever is on it goes with it.
            Some(made) => made.close(),
            None => removed,
        }
    }
}

/// Bytes that a recorder may keep in memory. It takes as many as were written to it, and what it keeps
/// on disk instead takes its time from that disk.
fn recorder_memory() -> u64 {
    available_memory().unwrap_or(0) / 4
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
