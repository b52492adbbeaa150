//! A device that the kernel is served, and beside it a file for marks.

use std::io;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use landfall_os::{BlockNode, LoopDevice};

use crate::device::{Device, LARGEST_REQUEST};
use crate::fuse_device::FuseMount;
use crate::nbd_device::ServedNbd;

/// What the kernel is offered besides writes and flushes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offer {
    /// Nothing: a loop device on a file that is served by FUSE. Where the kernel wants one write durable by itself it
    /// sends a flush after it.
    #[default]
    Flushes,
    /// Force unit access (FUA): a network block device, of which the kernel must have one. Where it wants one write
    /// durable by itself it says so, and nothing else becomes durable.
    ForceUnitAccess,
}

/// The device, and where marks are taken.
#[derive(Debug)]
pub(crate) struct ServedDevice {
    // Dropped in this order: the loop device lets go of the file, then nothing holds the mount.
    attached: Attached,
    mount: FuseMount,
}

#[derive(Debug)]
enum Attached {
    Loop(LoopDevice),
    Nbd(ServedNbd),
}

impl ServedDevice {
    /// Serves `device`, and takes marks at the empty directory `mount`. `keep` is what the device reads and writes: it
    /// must use no other descriptor, and keep these open. The mount is seen by the calling thread and by those that it
    /// starts afterwards.
    pub fn start(
        device: Arc<dyn Device>,
        keep: Vec<RawFd>,
        mount: &Path,
        offer: Offer,
    ) -> io::Result<ServedDevice> {
        let mount = FuseMount::start(device.clone(), keep.clone(), mount)?;
        let attached = match offer {
            Offer::Flushes => {
                let device = LoopDevice::attach(&mount.disk_path())?;
                // So that no request is split between the filesystem and here.
                device.node().set_largest_request(LARGEST_REQUEST)?;
                Attached::Loop(device)
            }
            Offer::ForceUnitAccess => Attached::Nbd(ServedNbd::start(device, keep)?),
        };
        Ok(ServedDevice { attached, mount })
    }

    /// The block device.
    pub fn node(&self) -> &BlockNode {
        match &self.attached {
            Attached::Loop(device) => device.node(),
            Attached::Nbd(device) => device.node(),
        }
    }

    /// Writes out and forgets whatever the page cache holds of the device, so that the next mount reads what it holds by
    /// then.
    pub fn forget_cached(&self) -> io::Result<()> {
        match &self.attached {
            Attached::Loop(device) => device.forget_cached(),
            // Its contents are never replaced.
            Attached::Nbd(_) => Ok(()),
        }
    }

    /// The file that takes marks.
    pub fn mark_path(&self) -> PathBuf {
        self.mount.mark_path()
    }
}
