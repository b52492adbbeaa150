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
        match self.method.call {
            SyncCall::Fdatasync => {
                self.file.write_all_at(bytes, offset)?;
                self.file.sync_data()
            }
            SyncCall::Fsync => {
                self.file.write_all_at(bytes, offset)?;
                self.file.sync_all()
            }
            SyncCall::ODsync | SyncCall::OSync | SyncCall::None => {
                self.file.write_all_at(bytes, offset)
            }
            SyncCall::RwfDsync => write_rwf_dsync(&self.file, bytes, offset),
            SyncCall::SyncFileRange => {
                self.file.write_all_at(bytes, offset)?;
                // Waits until the pages have been handed to the device.
                let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
                    | libc::SYNC_FILE_RANGE_WRITE
                    | libc::SYNC_FILE_RANGE_WAIT_AFTER;
                sync_file_range(&self.file, offset, bytes.len() as u64, flags)
            }
            SyncCall::IoUring => match &mut self.ring {
                Some(ring) => ring.write_durable(&self.file, bytes, offset),
                None => Err(io::ErrorKind::InvalidInput.into()),
            },
            SyncCall::Msync => match &mut self.mapping {
                Some(mapping) => match mapping.write_durable(bytes, offset) {
                    Err(error) if error.raw_os_error() == Some(libc::EFAULT) => {
                        // No page to store to, and no word why: a write says it (no space, most
                        // likely). If it has nothing to say, the mapping still failed.
                        self.file.write_all_at(bytes, offset)?;
                        Err(error)
                    }
                    result => result,
                },
                None => Err(io::ErrorKind::InvalidInput.into()),
            },
        }
    }
}

impl AsFd for SyncedFile {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.file.as_fd()
    }
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
