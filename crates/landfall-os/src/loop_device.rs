//! Loop devices: a file, or a piece of main memory, as a block device.
//!
//! A [`LoopDevice`] detaches when it is dropped and its filesystem has been unmounted, and also when
//! this process dies: it is set up to clear itself with its last user (`LO_FLAGS_AUTOCLEAR`), and this
//! process is one.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};

use crate::allocation::allocate_unwritten;
use crate::block_node::BlockNode;
use crate::dirty::cached_pages;

const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4C82;
const LOOP_CLR_FD: libc::Ioctl = 0x4C01;
const LOOP_GET_STATUS64: libc::Ioctl = 0x4C05;
/// Since Linux 5.8.
const LOOP_CONFIGURE: libc::Ioctl = 0x4C0A;
const BLKFLSBUF: libc::Ioctl = 0x1261;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;
/// Bytes that the kernel keeps of a file's name, with the zero at its end.
const NAME: usize = 64;
/// Files in private directories that loop devices are attached to: of an image, of a recorder.
const FILES: [&str; 2] = ["image", "device/disk"];
/// What a device in main memory is called.
const MEMORY: &str = "landfall";
/// Another process may take the device that was free a moment ago.
const ATTEMPTS: usize = 64;
/// How long somebody may hold on to a page of the device.
const FORGET_WAIT: Duration = Duration::from_secs(2);

/// A file as a block device, with direct I/O: nothing of it stays in the page cache between the two. Or
/// main memory as one.
#[derive(Debug)]
pub struct LoopDevice {
    device: File,
    node: BlockNode,
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
    file_name: [u8; NAME],
    crypt_name: [u8; NAME],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

impl LoopInfo {
    fn default_for(flags: u32, file_name: [u8; NAME]) -> LoopInfo {
        LoopInfo {
            device: 0,
            inode: 0,
            rdevice: 0,
            offset: 0,
            size_limit: 0,
            number: 0,
            encrypt_type: 0,
            encrypt_key_size: 0,
            flags,
            file_name,
            crypt_name: [0; NAME],
            encrypt_key: [0; 32],
            init: [0; 2],
        }
    }
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
        attach_file(&file, tail(path), LO_FLAGS_DIRECT_IO)
    }

    /// A device of `size` bytes in main memory, which is taken at once and given back when the device is
    /// gone; nothing of it has a name. Needs root.
    ///
    /// Fails with `ENOMEM` or `ENOSPC` where there is not so much.
    pub fn in_memory(size: u64) -> io::Result<LoopDevice> {
        let file = File::from(memfd_create(MEMORY, MemfdFlags::CLOEXEC)?);
        allocate_unwritten(&file, size)?;
        file.set_len(size)?;
        // Nothing lies below whose cache direct I/O would go around.
        attach_file(&file, MEMORY.as_bytes(), 0)
    }

    /// The block device, `/dev/loopN`.
    pub fn node(&self) -> &BlockNode {
        &self.node
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

/// Attaches a file to a free device, under a name of less than [`NAME`] bytes.
fn attach_file(file: &File, called: &[u8], flags: u32) -> io::Result<LoopDevice> {
    let control = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/loop-control")?;
    let mut name = [0; NAME];
    name[..called.len()].copy_from_slice(called);
    let mut result = Err(io::ErrorKind::ResourceBusy.into());
    for _ in 0..ATTEMPTS {
        // SAFETY: takes no argument, and touches no memory of this process.
        let number = check(unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) })?;
        let path = PathBuf::from(format!("/dev/loop{number}"));
        let device = OpenOptions::new().read(true).write(true).open(&path)?;
        match configure(device.as_raw_fd(), file.as_raw_fd(), name, flags) {
            Ok(()) => {
                let node = BlockNode::new(path);
                return Ok(LoopDevice { device, node });
            }
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => result = Err(error),
            Err(error) => return Err(error),
        }
    }
    result
}

/// As much of a path as the kernel keeps: its end, which tells more than its beginning.
fn tail(path: &Path) -> &[u8] {
    let bytes = path.as_os_str().as_encoded_bytes();
    &bytes[bytes.len().saturating_sub(NAME - 1)..]
}

/// A loop device that somebody has attached.
#[derive(Debug)]
pub struct AttachedLoop {
    path: PathBuf,
    /// What its file was called.
    name: Vec<u8>,
    /// The device that its file is on.
    below: u64,
}

impl AttachedLoop {
    fn of(path: PathBuf) -> io::Result<AttachedLoop> {
        let device = File::open(&path)?;
        let mut info = LoopInfo::default_for(0, [0; NAME]);
        // SAFETY: `info` is laid out as the kernel's, which fills it in before the call returns.
        check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64, &raw mut info) })?;
        let name = info.file_name.into_iter().take_while(|byte| *byte != 0);
        Ok(AttachedLoop {
            path,
            name: name.collect(),
            below: info.device,
        })
    }

    /// Its path, `/dev/loopN`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether its file is one that is made in a private directory at `path`: an image, or a recorder's.
    pub fn is_in(&self, path: &Path) -> bool {
        let mut files = FILES.iter().map(|file| path.join(file));
        files.any(|file| tail(&file) == self.name)
    }

    /// The file of `/sys/fs/fuse` that makes a FUSE server let go of everything, if this device is on such
    /// a server's file; the filesystem fusectl may not be mounted there.
    pub fn fuse_abort(&self) -> Option<PathBuf> {
        // As the kernel encodes a device: FUSE mounts have major number 0.
        let major = (self.below >> 8) & 0xfff;
        let minor = (self.below & 0xff) | ((self.below >> 12) & 0xf_ff00);
        let file = format!("/sys/fs/fuse/connections/{minor}/abort");
        (major == 0).then(|| file.into())
    }

    /// Takes the file away from the device, as soon as nobody uses it.
    pub fn detach(&self) -> io::Result<()> {
        let device = File::open(&self.path)?;
        // SAFETY: takes no argument, and touches no memory of this process.
        match check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CLR_FD) }) {
            // It went by itself meanwhile.
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(()),
            result => result.map(drop),
        }
    }
}

/// The loop devices that are attached to files such as are made in private directories; those that cannot
/// be asked are left out. Needs root.
pub fn attached_loops() -> io::Result<Vec<AttachedLoop>> {
    let mut attached = Vec::new();
    for entry in fs::read_dir("/sys/block")? {
        let entry = entry?;
        // Others' devices are not even opened: while that lasts they cannot detach.
        let file = fs::read_to_string(entry.path().join("loop/backing_file")).unwrap_or_default();
        let name = file.trim_end().trim_end_matches(" (deleted)");
        // Of a mount that is nowhere any more only the last part of a path is told.
        if ["/image", "/disk"].iter().any(|file| name.ends_with(file)) {
            let path = Path::new("/dev").join(entry.file_name());
            attached.extend(AttachedLoop::of(path));
        }
    }
    Ok(attached)
}

fn configure(device: RawFd, file: RawFd, file_name: [u8; NAME], flags: u32) -> io::Result<()> {
    let config = LoopConfig {
        fd: u32::try_from(file).map_err(io::Error::other)?,
        block_size: 512,
        info: LoopInfo::default_for(LO_FLAGS_AUTOCLEAR | flags, file_name),
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
    fn a_device_is_known_by_the_end_of_its_files_name() {
        let directory = Path::new("/a/directory/with/a/name/that/is/rather/long/.landfall-12345-0");
        let of = |file: &str, below: u64| AttachedLoop {
            path: "/dev/loop0".into(),
            name: tail(&directory.join(file)).to_owned(),
            below,
        };
        let recorder = of("device/disk", 42);
        assert!(recorder.is_in(directory) && of("image", 0xfe00).is_in(directory));
        assert!(!recorder.is_in(&directory.with_extension("1")));
        let abort = recorder.fuse_abort().unwrap();
        assert_eq!(abort, Path::new("/sys/fs/fuse/connections/42/abort"));
        assert_eq!(of("image", 0xfe00).fuse_abort(), None);
    }

    #[test]
    fn a_file_that_is_not_there_is_an_error() {
        assert!(LoopDevice::attach(Path::new("/nowhere/at/all")).is_err());
    }
}
