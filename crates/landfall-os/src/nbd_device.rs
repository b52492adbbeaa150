//! Network block devices: what is asked of a block device arrives at a socket.
//!
//! Unlike a loop device, one can offer force unit access (FUA): the kernel then has single writes made durable by
//! themselves, where it would else send a flush after them.
//!
//! A device is let go of when [`run`](NbdDevice::run) returns: when the other end of its socket is closed, when it is
//! told to [disconnect](NbdDevice::disconnect), or when its process dies.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use crate::block_node::BlockNode;

const NBD_SET_SOCK: libc::Ioctl = 0xab00;
const NBD_SET_BLKSIZE: libc::Ioctl = 0xab01;
const NBD_DO_IT: libc::Ioctl = 0xab03;
const NBD_CLEAR_SOCK: libc::Ioctl = 0xab04;
const NBD_SET_SIZE_BLOCKS: libc::Ioctl = 0xab07;
const NBD_DISCONNECT: libc::Ioctl = 0xab08;
const NBD_SET_FLAGS: libc::Ioctl = 0xab0a;
const HAS_FLAGS: libc::c_ulong = 1;
const SEND_FLUSH: libc::c_ulong = 4;
const SEND_FUA: libc::c_ulong = 8;
/// What a disk writes whole.
const BLOCK: u64 = 512;

/// A block device whose requests arrive at a socket, by the protocol of network block devices, with flushes and FUA.
#[derive(Debug)]
pub struct NbdDevice {
    device: File,
    node: BlockNode,
}

impl NbdDevice {
    /// Takes a free device, of `size` bytes, for what is served at the other end of `socket`. Needs root.
    ///
    /// Fails with [`NotFound`](io::ErrorKind::NotFound) where the kernel has none, and with
    /// [`ResourceBusy`](io::ErrorKind::ResourceBusy) where none is free.
    pub fn attach(socket: BorrowedFd<'_>, size: u64) -> io::Result<NbdDevice> {
        let mut result = Err(io::ErrorKind::NotFound.into());
        for number in 0.. {
            let path = PathBuf::from(format!("/dev/nbd{number}"));
            if !path.exists() {
                break;
            }
            match NbdDevice::take(path, socket, size) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => result = Err(error),
                taken => return taken,
            }
        }
        result
    }

    fn take(path: PathBuf, socket: BorrowedFd<'_>, size: u64) -> io::Result<NbdDevice> {
        let node = BlockNode::new(path);
        // It has that while it is somebody's, who would see its size change.
        if Path::new(&format!("/sys/block/{}/pid", node.name())).exists() {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let device = OpenOptions::new()
            .read(true)
            .write(true)
            .open(node.path())?;
        let device = NbdDevice { device, node };
        // Refused if it is somebody's by now.
        device.ask(NBD_SET_SOCK, socket.as_raw_fd() as libc::c_ulong)?;
        device.ask(NBD_SET_BLKSIZE, BLOCK as libc::c_ulong)?;
        device.ask(NBD_SET_SIZE_BLOCKS, (size / BLOCK) as libc::c_ulong)?;
        device.ask(NBD_SET_FLAGS, HAS_FLAGS | SEND_FLUSH | SEND_FUA)?;
        Ok(device)
    }

    /// The block device.
    pub fn node(&self) -> &BlockNode {
        &self.node
    }

    /// Has the kernel use the device; returns when it does so no more.
    pub fn run(&self) -> io::Result<()> {
        let result = self.ask(NBD_DO_IT, 0);
        let cleared = self.ask(NBD_CLEAR_SOCK, 0);
        result.and(cleared)
    }

    /// Has the kernel use a device no more.
    pub fn disconnect(node: &BlockNode) -> io::Result<()> {
        let device = OpenOptions::new()
            .read(true)
            .write(true)
            .open(node.path())?;
        ask(&device, NBD_DISCONNECT, 0)
    }

    fn ask(&self, request: libc::Ioctl, argument: libc::c_ulong) -> io::Result<()> {
        ask(&self.device, request, argument)
    }
}

fn ask(device: &File, request: libc::Ioctl, argument: libc::c_ulong) -> io::Result<()> {
    // SAFETY: all these requests take a number and no pointer, and touch no memory of this process.
    match unsafe { libc::ioctl(device.as_raw_fd(), request, argument) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
