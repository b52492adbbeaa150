//! A block device that holds one crash state after the other.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use landfall_os::{LoopDevice, PrivateDirectory};

use super::image::Image;
use crate::event::Span;
use crate::fault::Refusal;
use crate::fuse_device::{Answer, Device, Due, FuseDevice};
use crate::spill_file::nameless;
use crate::{EventKind, Recording};

/// Bytes that arrived after the last flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where on the device.
    pub offset: u64,
    /// Where in the spill file.
    pub data: Span,
}

/// A block device, `/dev/loopN`, that holds one crash state of a recording after the other. What is
/// written to it, by a recovering filesystem say, is gone with the next. Needs root, FUSE and loop
/// devices.
///
/// A disk goes through the epochs in one direction only; several workers have a disk each.
#[derive(Debug)]
pub struct CrashDisk {
    device: FuseDevice,
    shared: Arc<Shared>,
    /// The epoch whose durable contents the disk holds, and the first event in it.
    cut: u32,
    event: usize,
    // Holds the mount point: goes last.
    _private: PrivateDirectory,
}

#[derive(Debug)]
struct Shared {
    size: u64,
    image: Mutex<Image>,
}

impl CrashDisk {
    /// Makes a disk that holds what was there before the first event. Up to `memory` bytes it is kept
    /// in memory, else in a nameless file in `directory`, which also gets the mount point. The calling
    /// thread gets mounts of its own, as with [`Recorder::start`](crate::Recorder::start).
    pub fn start(recording: &Recording, memory: u64, directory: &Path) -> io::Result<CrashDisk> {
        let size = recording.size();
        let base = nameless(size <= memory, directory)?;
        base.set_len(size)?;
        recording.copy_base(&base)?;
        let keep = vec![base.as_raw_fd()];
        let shared = Arc::new(Shared {
            size,
            image: Mutex::new(Image::new(base)),
        });
        let private = PrivateDirectory::create_in(directory)?;
        let mount = private.open_directory("device")?;
        let device = FuseDevice::start(shared.clone(), keep, &mount)?;
        Ok(CrashDisk {
            device,
            shared,
            cut: 0,
            event: 0,
            _private: private,
        })
    }

    /// The block device.
    pub fn device(&self) -> &LoopDevice {
        self.device.device()
    }

    /// Makes the crash state of epoch `cut` in which, of what was written in that epoch, these `pieces`
    /// arrived, in this order. No filesystem may be mounted on the device. `cut` never goes back.
    pub fn load(&mut self, recording: &Recording, cut: u32, pieces: &[Piece]) -> io::Result<()> {
        let mut image = self.shared.lock();
        image.reset();
        while self.cut < cut {
            let event = recording
                .events()
                .get(self.event)
                .ok_or(io::ErrorKind::InvalidInput)?;
            self.event += 1;
            match event.kind {
                EventKind::Write { offset, data } => {
                    image.settle(offset, &recording.bytes(data)?)?
                }
                EventKind::Flush => self.cut += 1,
                EventKind::LyingFlush | EventKind::Refused | EventKind::Mark(_) => {}
            }
        }
        if self.cut != cut {
            return Err(io::Error::other("a disk does not go back in time"));
        }
        for piece in pieces {
            image.write(piece.offset, &recording.bytes(piece.data)?)?;
        }
        drop(image);
        self.device().forget_cached()
    }

    /// Writes what the device holds now into a new file, with holes where there is nothing.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let file = File::create(path)?;
        file.set_len(self.shared.size)?;
        self.shared.lock().copy_to(&file, self.shared.size)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Image> {
        self.image.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Device for Shared {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<Due, Refusal> {
        self.lock().read(offset, into).map_err(|_| Refusal::Io)?;
        Ok(None)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<Due, Refusal> {
        if offset + bytes.len() as u64 > self.size {
            return Err(Refusal::NoSpace);
        }
        self.lock().write(offset, bytes).map_err(|_| Refusal::Io)?;
        Ok(None)
    }

    fn flush(&self) -> Result<Due, Refusal> {
        Ok(None)
    }

    fn mark(&self, _: &[u8], _: Answer) {}
}
