//! A block device that holds one crash state after the other.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use landfall_os::{BlockNode, PrivateDirectory, write_whole_file};

use super::epoch::{Epoch, epochs};
use super::image::Image;
use crate::Recording;
use crate::answer::{Answer, Due};
use crate::device::{Access, Answered, Device, Done};
use crate::event::Span;
use crate::fault::Refusal;
use crate::served_device::{Offer, ServedDevice};
use crate::spill_file::{SpillFile, nameless};
use crate::{Event, EventKind};

/// Bytes that arrived after the last flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where on the device.
    pub offset: u64,
    /// Where in the spill file.
    pub data: Span,
}

/// A block device, `/dev/loopN`, that holds one crash state of a recording after the other. What is
/// written to it, by a recovering filesystem say, is gone with the next, and can be recorded: then the power can be cut
/// during the recovery too. Needs root, FUSE and loop devices.
///
/// A disk goes through the epochs in one direction only; several workers have a disk each.
#[derive(Debug)]
pub struct CrashDisk {
    device: ServedDevice,
    shared: Arc<Shared>,
    epochs: Vec<Epoch>,
    /// The epoch whose durable contents the disk holds.
    cut: u32,
    memory: u64,
    directory: PathBuf,
    /// What the disk held when its own recording began.
    recorded_over: Option<File>,
    // Holds the mount point: goes last.
    _private: PrivateDirectory,
}

#[derive(Debug)]
struct Shared {
    size: u64,
    contents: Mutex<Contents>,
}

#[derive(Debug)]
struct Contents {
    image: Image,
    /// What is done to the disk, if that is recorded.
    transcript: Option<Transcript>,
}

/// Events in memory, as they stand in a spill file: the thread that serves the device can open no file.
#[derive(Debug)]
struct Transcript {
    begin: Instant,
    bytes: Vec<u8>,
    most: u64,
    /// There were more than are kept.
    is_too_long: bool,
}

impl Transcript {
    fn put(&mut self, kind: EventKind, data: &[u8]) {
        let at = self.begin.elapsed();
        let header = Event { kind, at }.header();
        let len = self.bytes.len() + header.len() + data.len();
        self.is_too_long |= len as u64 > self.most;
        if !self.is_too_long {
            self.bytes.extend_from_slice(&header);
            self.bytes.extend_from_slice(data);
        }
    }
}

impl CrashDisk {
    /// Makes a disk that holds what was there before the first event. Up to `memory` bytes it is kept
    /// in memory, else in a nameless file in `directory`, which also gets the mount point. The calling
    /// thread gets mounts of its own, as with [`Recorder::start`](crate::Recorder::start).
    pub fn start(recording: &Recording, memory: u64, directory: &Path) -> io::Result<CrashDisk> {
        let size = recording.size();
        let epochs = epochs(recording)?;
        let base = nameless(size <= memory, directory)?;
        base.set_len(size)?;
        recording.copy_base(&base)?;
        let keep = vec![base.as_raw_fd()];
        let shared = Arc::new(Shared {
            size,
            contents: Mutex::new(Contents {
                image: Image::new(base),
                transcript: None,
            }),
        });
        let private = PrivateDirectory::create_in(directory)?;
        let mount = private.open_directory("device")?;
        let device = ServedDevice::start(shared.clone(), keep, &mount, Offer::Flushes)?;
        Ok(CrashDisk {
            device,
            shared,
            epochs,
            cut: 0,
            memory,
            directory: directory.to_owned(),
            recorded_over: None,
            _private: private,
        })
    }

    /// The block device.
    pub fn device(&self) -> &BlockNode {
        self.device.node()
    }

    /// Makes the crash state of epoch `cut` in which, of what was written in that epoch, these `pieces`
    /// arrived, in this order. The recording is the one that the disk was started with. No filesystem may
    /// be mounted on the device. `cut` never goes back.
    pub fn load(&mut self, recording: &Recording, cut: u32, pieces: &[Piece]) -> io::Result<()> {
        let mut contents = self.shared.lock();
        contents.transcript = None;
        let image = &mut contents.image;
        image.reset();
        while self.cut < cut {
            let number = self.cut as usize;
            let next = self
                .epochs
                .get(number + 1)
                .ok_or(io::ErrorKind::InvalidInput)?;
            for piece in self.epochs[number].settled(recording, next) {
                image.settle(piece.offset, &recording.bytes(piece.data)?)?;
            }
            self.cut += 1;
        }
        if self.cut != cut {
            return Err(io::Error::other("a disk does not go back in time"));
        }
        for piece in pieces {
            image.write(piece.offset, &recording.bytes(piece.data)?)?;
        }
        drop(contents);
        self.device.forget_cached()
    }

    /// Begins to record what is done to the disk, over the state that was loaded last; the next that is loaded ends it.
    pub fn record(&mut self) -> io::Result<()> {
        let size = self.shared.size;
        let base = nameless(size <= self.memory, &self.directory)?;
        base.set_len(size)?;
        let mut contents = self.shared.lock();
        contents.image.copy_to(&base, size)?;
        contents.transcript = Some(Transcript {
            begin: Instant::now(),
            bytes: Vec::new(),
            most: self.memory,
            is_too_long: false,
        });
        self.recorded_over = Some(base);
        Ok(())
    }

    /// What was done to the disk since [`record`](CrashDisk::record); the disk goes on.
    ///
    /// Fails if it was more than is kept in memory, or if nothing was being recorded.
    pub fn finish(&mut self) -> io::Result<Recording> {
        let transcript = self.shared.lock().transcript.take();
        let (Some(base), Some(transcript)) = (self.recorded_over.take(), transcript) else {
            return Err(io::Error::other("nothing is being recorded"));
        };
        if transcript.is_too_long {
            let most = transcript.most >> 20;
            return Err(io::Error::other(format!(
                "more than {most} MiB were written"
            )));
        }
        let mut spill = SpillFile::new(self.memory, &self.directory)?;
        spill.append(&transcript.bytes)?;
        Recording::new(self.shared.size, base, spill)
    }

    /// Writes what the device holds now into a file, with holes where there is nothing.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        write_whole_file(path, |file| {
            file.set_len(self.shared.size)?;
            self.shared.lock().image.copy_to(file, self.shared.size)
        })
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Device for Shared {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<Due, Refusal> {
        let contents = self.lock();
        contents.image.read(offset, into).map_err(|_| Refusal::Io)?;
        Ok(None)
    }

    fn write(&self, offset: u64, bytes: &[u8], _: Access) -> Result<Done, Refusal> {
        if offset + bytes.len() as u64 > self.size {
            return Err(Refusal::NoSpace);
        }
        let mut contents = self.lock();
        contents
            .image
            .write(offset, bytes)
            .map_err(|_| Refusal::Io)?;
        if let Some(transcript) = &mut contents.transcript {
            let data = Span::of(bytes);
            transcript.put(EventKind::Write { offset, data }, bytes);
        }
        Ok(Done::default())
    }

    fn answering(&self, _: Answered) {}

    fn flush(&self) -> Result<Done, Refusal> {
        if let Some(transcript) = &mut self.lock().transcript {
            // Writes are answered at once: it finds none in flight.
            transcript.put(EventKind::FLUSH, &[]);
        }
        Ok(Done::default())
    }

    fn mark(&self, _: &[u8], _: Answer) {}
}
