//! Filesystems that Landfall makes for itself: by a *spec*, on a *backing device*.
//!
//! - [`FilesystemSpec`]: which filesystem, with which options of `mkfs` and `mount`;
//! - [`BackingDevice`]: an image file on a loop device, main memory, or a recorder;
//! - [`ScratchFilesystem`]: a spec made and mounted on a backing device.
//!
//! It needs root. Mounts are seen by the thread that makes them, and by those that it starts
//! afterwards, and by nobody else (see [`landfall_os::isolate_mounts`]): when the process ends, however
//! it ends, the mount goes, and with it the loop device. What a killed process can leave is a private
//! directory, with an image file in it at most; [`landfall_os::abandoned_in`] finds those.

mod backing_device;
pub(crate) mod ext;
mod matching_spec;
mod mkfs;
mod requirements;
pub(crate) mod superblock;

pub use backing_device::{BackingDevice, Image, Memory};
pub use landfall_results::{FilesystemSpec, Kind};
pub use matching_spec::{NO_JOURNAL, like, matters};

use std::path::Path;

use landfall_os::{BlockNode, Mount, PrivateDirectory};
use landfall_recorder::{Offer, Options, Recorder};

use crate::{Error, Stop};

/// A device only to see whether one can be made.
const TRIAL_BYTES: u64 = 16 << 20;

/// Refused where no filesystem can be made on a recorder that offers this: found out before an hour of measuring.
pub fn require_recorder(directory: &Path, offer: Offer) -> Result<(), Error> {
    let options = Options {
        directory: directory.to_owned(),
        offer,
        ..Options::new(TRIAL_BYTES)
    };
    BackingDevice::recorder(&options, 0)?.close()
}

/// Mounts the filesystem on `device` at the directory `target`, in the calling thread's mounts; see
/// [`landfall_os::isolate_mounts`].
pub(crate) fn mount(spec: &FilesystemSpec, device: &Path, target: &Path) -> Result<Mount, Error> {
    Mount::new(device, target, spec.kind.name(), &spec.mount_options)
        .map_err(|error| requirements::mounting(spec, error))
}

/// A filesystem made and mounted; unmounted and gone when dropped.
#[derive(Debug)]
pub struct ScratchFilesystem {
    // Dropped in this order: unmounted, the mount point removed, the device taken away.
    mount: Mount,
    private: PrivateDirectory,
    backing: BackingDevice,
    spec: FilesystemSpec,
}

impl ScratchFilesystem {
    /// Makes the filesystem on `backing`, and mounts it in the directory of that.
    pub fn make(
        spec: &FilesystemSpec,
        backing: BackingDevice,
        stop: &Stop,
    ) -> Result<ScratchFilesystem, Error> {
        if spec.is_rotational {
            let failed = "cannot have the device say that it rotates";
            let set = backing.device().set_rotational();
            set.map_err(Error::io(failed))?;
        }
        let device = backing.device().path();
        match mkfs::run(spec.kind, &spec.mkfs_options, device) {
            // Ctrl-C goes to every program of the terminal, and ends `mkfs`.
            _ if stop.is_requested() => return Err(Error::Stopped),
            made => made?,
        }
        let directory = backing.directory();
        let failed = || format!("cannot make a mount point in {}", directory.display());
        let private = PrivateDirectory::create_in(directory).map_err(Error::io(failed()))?;
        let target = private
            .open_directory("mounted")
            .map_err(Error::io(failed()))?;
        let mount = mount(spec, device, &target)?;
        Ok(ScratchFilesystem {
            mount,
            private,
            backing,
            spec: spec.clone(),
        })
    }

    /// Where it is mounted.
    pub fn directory(&self) -> &Path {
        self.mount.target()
    }

    /// The device that it is on.
    pub fn device(&self) -> &BlockNode {
        self.backing.device()
    }

    /// What it is on.
    pub fn backing(&self) -> &BackingDevice {
        &self.backing
    }

    /// The recorder, if it is on one.
    pub fn recorder(&self) -> Option<&Recorder> {
        self.backing.as_recorder()
    }

    /// How it was made.
    pub fn spec(&self) -> &FilesystemSpec {
        &self.spec
    }

    /// Unmounts it and gives its backing back.
    pub fn unmount(self) -> Result<BackingDevice, Error> {
        let path = self.private.path().to_owned();
        let failed = |what: &str| format!("cannot {what} {}", path.display());
        self.mount
            .unmount()
            .map_err(Error::io(failed("unmount what is in")))?;
        self.private.close().map_err(Error::io(failed("remove")))?;
        Ok(self.backing)
    }

    /// Unmounts it and removes everything, and says so if something stays.
    pub fn close(self) -> Result<(), Error> {
        self.unmount()?.close()
    }
}
