//! Loop devices: a file as a block device.
//!
//! A [`LoopDevice`] detaches when it is dropped and its filesystem has been unmounted, and also when
//! this process dies: it is set up to clear itself with its last user (`LO_FLAGS_AUTOCLEAR`), and this
//! process is one.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::dirty::cached_pages;

const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4C82;
/// Since Linux 5.8.
const LOOP_CONFIGURE: libc::Ioctl = 0x4C0A;
const BLKFLSBUF: libc::Ioctl = 0x1261;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;
/// Another process may take the device that was free a moment ago.
const ATTEMPTS: usize = 64;
/// How long somebody may hold on to a page of the device.
const FORGET_WAIT: Duration = Duration::from_secs(2);

/// A file as a block device, with direct I/O: nothing of it stays in the page cache between the two.
#[derive(Debug)]
pub struct LoopDevice {
    device: File,
    path: PathBuf,
}

/// `struct loop_info64` of `linux/loop.h`.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config` of `linux/loop.h`.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

impl LoopDevice {
    /// Attaches the file at `path`, with logical blocks of 512 bytes and direct I/O. Needs root.
    ///
    /// Fails with `EINVAL` where the file's filesystem cannot do direct I/O (tmpfs before Linux 6.6).
    pub fn attach(path: &Path) -> io::Result<LoopDevice> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let control = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/loop-control")?;
        let mut name = [0; 64];
        let bytes = path.as_os_str().as_encoded_bytes();
        let len = bytes.len().min(name.len() - 1);
        name[..len].copy_from_slice(&bytes[..len]);
        let mut result = Err(io::ErrorKind::ResourceBusy.into());
        for _ in 0..ATTEMPTS {
            // SAFETY: takes no argument, and touches no memory of this process.
            let number = check(unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) })?;
            let path = PathBuf::from(format!("/dev/loop{number}"));
            let device = OpenOptions::new().read(true).write(true).open(&path)?;
            match configure(device.as_raw_fd(), file.as_raw_fd(), name) {
                Ok(()) => return Ok(LoopDevice { device, path }),
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => result = Err(error),
                Err(error) => return Err(error),
            }
        }
        result
    }

    /// The device's path, `/dev/loopN`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The device's name, `loopN`.
    pub fn name(&self) -> &str {
        self.path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default()
    }

    /// Writes out and forgets whatever the page cache holds of the device, so that the next mount reads
    /// what the file holds by then.
    pub fn forget_cached(&self) -> io::Result<()> {
        let begin = Instant::now();
        loop {
            // SAFETY: takes no argument, and touches no memory of this process.
            check(unsafe { libc::ioctl(self.device.as_raw_fd(), BLKFLSBUF) })?;
            // Now and then a page is still held by somebody, and stays. The next mount would read it.
            if cached_pages(&self.device)? == 0 {
                return Ok(());
            }
            if begin.elapsed() > FORGET_WAIT {
                let text = "the page cache does not let go of the device";
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, text));
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

fn configure(device: RawFd, file: RawFd, file_name: [u8; 64]) -> io::Result<()> {
    let config = LoopConfig {
        fd: u32::try_from(file).map_err(io::Error::other)?,
        block_size: 512,
        info: LoopInfo {
            device: 0,
            inode: 0,
            rdevice: 0,
            offset: 0,
            size_limit: 0,
            number: 0,
            encrypt_type: 0,
            encrypt_key_size: 0,
            flags: LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO,
            file_name,
            crypt_name: [0; 64],
            encrypt_key: [0; 32],
            init: [0; 2],
        },
        reserved: [0; 8],
    };
    // SAFETY: `config` is laid out as the kernel's and lives until the call returns; the kernel only
    // reads it.
    check(unsafe { libc::ioctl(device, LOOP_CONFIGURE, &raw const config) }).map(drop)
}

fn check(result: i32) -> io::Result<i32> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        number => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_is_as_large_as_the_kernels() {
        assert_eq!(size_of::<LoopInfo>(), 232);
        assert_eq!(size_of::<LoopConfig>(), 304);
    }

    #[test]
    fn a_file_that_is_not_there_is_an_error() {
        assert!(LoopDevice::attach(Path::new("/nowhere/at/all")).is_err());
    }
}
