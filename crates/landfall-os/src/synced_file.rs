//! One open file and one way to make writes to it durable.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::io::ReadWriteFlags;

use crate::io_ring::IoRing;
use crate::mapping::Mapping;
use crate::stream_file::sync_file_range;
use crate::{SyncCall, SyncMethod};

/// `RWF_ATOMIC`, since Linux 6.11; not in the libraries yet.
const RWF_ATOMIC: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x40);

/// A file opened for one [`SyncMethod`]; one thread's handle on it.
///
/// Several threads that write the same file open one each. After an error from
/// [`write`](SyncedFile::write) the fate of that write is unknown and must not be guessed by
/// retrying: the kernel reports a failed write-back once and then forgets it.
pub struct SyncedFile {
    file: File,
    method: SyncMethod,
    ring: Option<IoRing>,
    mapping: Option<Mapping>,
}

impl SyncedFile {
    /// Opens an existing file.
    ///
    /// `len` is how far the file will be written; only a mapping needs it. Errors that mean "not
    /// supported here" are `EINVAL` (no direct I/O on this filesystem), and `ENOSYS` or `EPERM`
    /// (io_uring switched off).
    pub fn open(path: &Path, method: SyncMethod, len: u64) -> io::Result<SyncedFile> {
        let mut flags = match method.call {
            SyncCall::ODsync => libc::O_DSYNC,
            SyncCall::OSync => libc::O_SYNC,
            _ => 0,
        };
        if method.direct {
            flags |= libc::O_DIRECT;
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags)
            .open(path)?;
        let ring = match method.call {
            SyncCall::IoUring => Some(IoRing::new()?),
            _ => None,
        };
        let mapping = match method.call {
            SyncCall::Msync => Some(Mapping::new(&file, len)?),
            _ => None,
        };
        Ok(SyncedFile {
            file,
            method,
            ring,
            mapping,
        })
    }

    /// Writes all of `bytes` at `offset` and makes them as durable as the method promises.
    #[inline]
    pub fn write(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_and(bytes, offset, || ())
    }

    /// As [`write`](SyncedFile::write), and calls `too_early` when nothing has been made durable yet:
    /// between the write and the sync where these are two calls, before the call that does both
    /// otherwise. A program that acknowledges there is wrong; this is how to be wrong on purpose.
    #[inline]
    pub fn write_and(
        &mut self,
        bytes: &[u8],
        offset: u64,
        too_early: impl FnOnce(),
    ) -> io::Result<()> {
        match self.method.call {
            SyncCall::Fdatasync => {
                self.file.write_all_at(bytes, offset)?;
                too_early();
                self.file.sync_data()
            }
            SyncCall::Fsync => {
                self.file.write_all_at(bytes, offset)?;
                too_early();
                self.file.sync_all()
            }
            SyncCall::ODsync | SyncCall::OSync | SyncCall::None => {
                too_early();
                self.file.write_all_at(bytes, offset)
            }
            SyncCall::RwfDsync => {
                too_early();
                write_rwf_dsync(&self.file, bytes, offset)
            }
            SyncCall::SyncFileRange => {
                self.file.write_all_at(bytes, offset)?;
                too_early();
                wait_for_pages(&self.file, bytes, offset)
            }
            SyncCall::IoUring => match &mut self.ring {
                Some(ring) => {
                    too_early();
                    ring.write_durable(&self.file, bytes, offset)
                }
                None => Err(io::ErrorKind::InvalidInput.into()),
            },
            SyncCall::Msync => match &mut self.mapping {
                Some(mapping) => match mapping.write_populated(bytes, offset) {
                    Ok(()) => {
                        too_early();
                        mapping.sync(offset, bytes.len())
                    }
                    Err(error) if error.raw_os_error() == Some(libc::EFAULT) => {
                        // No page to store to, and no word why: a write says it (no space, most
                        // likely). If it has nothing to say, the mapping still failed.
                        self.file.write_all_at(bytes, offset)?;
                        Err(error)
                    }
                    Err(error) => Err(error),
                },
                None => Err(io::ErrorKind::InvalidInput.into()),
            },
        }
    }

    /// As [`write`](SyncedFile::write), with `RWF_ATOMIC`: after a power cut all of `bytes` are there or
    /// none (Linux 6.11).
    ///
    /// Needs a length that is a power of two and an offset that is a multiple of it.
    /// [`io::ErrorKind::Unsupported`] or `InvalidInput` where the filesystem, its device, the length or
    /// the method (io_uring, a mapping) cannot do it.
    pub fn write_atomic(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let flags = match self.method.call {
            SyncCall::IoUring | SyncCall::Msync => return Err(io::ErrorKind::Unsupported.into()),
            SyncCall::RwfDsync => RWF_ATOMIC | ReadWriteFlags::DSYNC,
            _ => RWF_ATOMIC,
        };
        // In one call or not at all: two would be two writes. It is not interrupted once it has begun.
        let written = rustix::io::pwritev2(&self.file, &[IoSlice::new(bytes)], offset, flags)?;
        if written != bytes.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        match self.method.call {
            SyncCall::Fdatasync => self.file.sync_data(),
            SyncCall::Fsync => self.file.sync_all(),
            SyncCall::SyncFileRange => wait_for_pages(&self.file, bytes, offset),
            _ => Ok(()),
        }
    }
}

impl AsFd for SyncedFile {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Waits until the pages that hold `bytes` have been handed to the device.
fn wait_for_pages(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    sync_file_range(file, offset, bytes.len() as u64, flags)
}

fn write_rwf_dsync(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::pwritev2(file, &[IoSlice::new(bytes)], offset, ReadWriteFlags::DSYNC) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = &bytes[written..];
                offset += written as u64;
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Payload;

    #[test]
    fn every_method_writes_what_it_was_given() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        for method in SyncMethod::all() {
            let path = dir.path().join(method.to_string());
            File::create(&path).unwrap().set_len(64 << 10).unwrap();
            let mut file = match SyncedFile::open(&path, method, 64 << 10) {
                Ok(file) => file,
                Err(error) => {
                    println!("skipped: {method} is not supported here: {error}");
                    continue;
                }
            };
            let mut payload = Payload::new(8192, 3);
            for number in 0..4 {
                file.write(payload.stamped(number), number * 8192).unwrap();
            }
            let read = std::fs::read(&path).unwrap();
            for number in 0..4usize {
                assert_eq!(
                    &read[number * 8192..][..8192],
                    payload.stamped(number as u64),
                    "{method}"
                );
            }
        }
    }

    #[test]
    fn what_is_too_early_is_done_once_by_every_method() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = dir.path().join("file");
        for method in SyncMethod::all() {
            File::create(&path).unwrap().set_len(4096).unwrap();
            let Ok(mut file) = SyncedFile::open(&path, method, 4096) else {
                println!("skipped: {method} is not supported here");
                continue;
            };
            let mut payload = Payload::new(4096, 3);
            let mut calls = 0;
            file.write_and(payload.stamped(1), 0, || calls += 1)
                .unwrap();
            assert_eq!(calls, 1, "{method}");
            assert_eq!(std::fs::read(&path).unwrap(), payload.stamped(1));
        }
    }

    #[test]
    fn an_atomic_write_is_whole_or_refused() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = dir.path().join("file");
        for method in SyncMethod::all() {
            std::fs::write(&path, [0; 8192]).unwrap();
            let Ok(mut file) = SyncedFile::open(&path, method, 8192) else {
                println!("skipped: {method} is not supported here");
                continue;
            };
            let mut payload = Payload::new(4096, 3);
            let bytes = payload.stamped(1);
            let expected = match file.write_atomic(bytes, 4096) {
                Ok(()) => bytes,
                Err(error) => {
                    println!("skipped: RWF_ATOMIC with {method}: {error}");
                    &[0; 4096]
                }
            };
            assert_eq!(&std::fs::read(&path).unwrap()[4096..], expected, "{method}");
        }
    }

    #[test]
    fn a_mapping_refuses_to_write_beyond_itself() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = dir.path().join("file");
        File::create(&path).unwrap().set_len(8192).unwrap();
        let method = "msync".parse().unwrap();
        let mut file = SyncedFile::open(&path, method, 8192).unwrap();
        assert!(file.write(&[1; 4096], 6000).is_err());
        assert!(file.write(&[1; 4096], u64::MAX).is_err());
        // Not page-aligned, but inside.
        file.write(&[1; 100], 5000).unwrap();
    }
}
