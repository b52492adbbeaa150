//! Filesystems that Landfall makes for itself: by a *recipe*, on a *carrier*.
//!
//! - [`Recipe`]: which filesystem, with which options of `mkfs` and `mount`;
//! - [`Carrier`]: an image file on a loop device, main memory, or a recorder;
//! - [`MadeFilesystem`]: a recipe made and mounted on a carrier.
//!
//! It needs root. Mounts are seen by the thread that makes them, and by those that it starts
//! afterwards, and by nobody else (see [`landfall_os::isolate_mounts`]): when the process ends, however
//! it ends, the mount goes, and with it the loop device. What a killed process can leave is a private
//! directory, with an image file in it at most; [`landfall_os::abandoned_in`] finds those.

mod carrier;
pub(crate) mod ext;
mod likeness;
mod mkfs;
mod recipe;
mod trouble;

pub use carrier::{Carrier, Image, Memory};
pub(crate) use likeness::{NO_JOURNAL, is_telling, like};
pub use recipe::{Kind, Recipe};

use std::path::Path;

use landfall_os::{LoopDevice, Mount, PrivateDirectory};
use landfall_recorder::Recorder;

use crate::{Error, Stop};

/// A filesystem made and mounted; unmounted and gone when dropped.
#[derive(Debug)]
pub struct MadeFilesystem {
    // Dropped in this order: unmounted, the mount point removed, the device taken away.
    mount: Mount,
    private: PrivateDirectory,
    carrier: Carrier,
    recipe: Recipe,
}

impl MadeFilesystem {
    /// Makes the filesystem on `carrier` and mounts it in the carrier's directory.
    pub fn make(recipe: &Recipe, carrier: Carrier, stop: &Stop) -> Result<MadeFilesystem, Error> {
        if recipe.is_rotational {
            let failed = "cannot have the device say that it rotates";
            let set = carrier.device().set_rotational();
            set.map_err(Error::io(failed))?;
        }
        let device = carrier.device().path();
        match recipe.mkfs(device) {
            // Ctrl-C goes to every program of the terminal, and ends `mkfs`.
            _ if stop.is_requested() => return Err(Error::Stopped),
            made => made?,
        }
        let directory = carrier.directory();
        let failed = || format!("cannot make a mount point in {}", directory.display());
        let private = PrivateDirectory::create_in(directory).map_err(Error::io(failed()))?;
        let target = private
            .open_directory("mounted")
            .map_err(Error::io(failed()))?;
        let mount = recipe.mount(device, &target)?;
        Ok(MadeFilesystem {
            mount,
            private,
            carrier,
            recipe: recipe.clone(),
        })
    }

    /// Where it is mounted.
    pub fn directory(&self) -> &Path {
        self.mount.target()
    }

    /// The device that it is on.
    pub fn device(&self) -> &LoopDevice {
        self.carrier.device()
    }

    /// What it is on.
    pub fn carrier(&self) -> &Carrier {
        &self.carrier
    }

    /// The recorder, if it is on one.
    pub fn recorder(&self) -> Option<&Recorder> {
        self.carrier.as_recorder()
    }

    /// How it was made.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Unmounts it and gives its carrier back.
    pub fn unmount(self) -> Result<Carrier, Error> {
        let path = self.private.path().to_owned();
        let failed = |what: &str| format!("cannot {what} {}", path.display());
        self.mount
            .unmount()
            .map_err(Error::io(failed("unmount what is in")))?;
        self.private.close().map_err(Error::io(failed("remove")))?;
        Ok(self.carrier)
    }

    /// Unmounts it and removes everything, and says so if something stays.
    pub fn close(self) -> Result<(), Error> {
        self.unmount()?.close()
    }
}
