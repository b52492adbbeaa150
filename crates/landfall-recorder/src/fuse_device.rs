//! A FUSE filesystem with two files in it: `disk` is the device, to which a loop device is attached, and `mark` takes
//! clients' marks.
//!
//! One thread takes the requests, in the order in which the kernel sends them, and does each at once; a second one sends
//! the answers that are due later. Both have descriptors of their own (see [`serve_block_device`]) and no mounts (see
//! [`leave_mounts`]), so that they can always die, and what hangs on the device with them.

use std::ffi::OsStr;
use std::io;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr,
    ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, SessionACL, TimeOrNow,
    WriteFlags,
};
use landfall_os::{isolate_mounts, leave_mounts, serve_block_device, unmount};

use crate::answer::Answers;
use crate::device::{Access, Device, Done, LARGEST_REQUEST};
use crate::fault::Refusal;
use crate::server::Server;

/// Requests that the kernel may have under way.
const IN_FLIGHT: u16 = 256;
/// Nothing changes behind the kernel's back.
const FOR_EVER: Duration = Duration::from_secs(1 << 30);

const ROOT: INodeNo = INodeNo::ROOT;
const DISK: INodeNo = INodeNo(2);
const MARK: INodeNo = INodeNo(3);

/// The filesystem, and the thread that serves it; unmounted when dropped.
#[derive(Debug)]
pub(crate) struct FuseMount {
    mount: PathBuf,
    server: Server,
}

impl FuseMount {
    /// Serves `device` at the empty directory `mount`. `keep` is what the device reads and writes: it must use no other
    /// descriptor, and keep these open. The mount is seen by the calling thread and by those that it starts afterwards.
    pub fn start(device: Arc<dyn Device>, keep: Vec<RawFd>, mount: &Path) -> io::Result<FuseMount> {
        isolate_mounts()?;
        let place = mount.to_owned();
        let (server, ()) = Server::start(move |ready| serve(device, &keep, &place, ready))?;
        Ok(FuseMount {
            mount: mount.to_owned(),
            server,
        })
    }

    /// The file that is the device.
    pub fn disk_path(&self) -> PathBuf {
        self.mount.join("disk")
    }

    /// The file that takes marks.
    pub fn mark_path(&self) -> PathBuf {
        self.mount.join("mark")
    }
}

impl Drop for FuseMount {
    fn drop(&mut self) {
        if unmount(&self.mount).is_ok() {
            let _ = self.server.join();
        }
    }
}

fn serve(
    device: Arc<dyn Device>,
    keep: &[RawFd],
    mount: &Path,
    ready: Sender<()>,
) -> io::Result<()> {
    serve_block_device(keep)?;
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("landfall-recorder".into()),
        MountOption::NoAtime,
    ];
    // A subject may run as another user, and its acknowledgements are marks.
    config.acl = SessionACL::All;
    let (answers, sending) = Answers::new();
    let session = fuser::Session::new(Front { device, answers }, mount, &config)?;
    leave_mounts()?;
    let thread = sending.start()?;
    let _ = ready.send(());
    drop(ready);
    let result = session.run();
    // The answers went with the session.
    let _ = thread.join();
    result
}

/// The filesystem that the kernel sees.
struct Front {
    device: Arc<dyn Device>,
    answers: Answers,
}

impl Front {
    fn attributes(&self, node: INodeNo) -> Option<FileAttr> {
        let (kind, perm, size) = match node {
            ROOT => (FileType::Directory, 0o755, 0),
            DISK => (FileType::RegularFile, 0o600, self.device.size()),
            MARK => (FileType::RegularFile, 0o666, 0),
            _ => return None,
        };
        Some(FileAttr {
            ino: node,
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    /// Answers a request when that is due.
    fn answer(&self, done: Done, reply: impl FnOnce() + Send + 'static) {
        let device = self.device.clone();
        self.answers.send(done.due, move || {
            // First: the kernel may send another request as soon as it has the answer.
            done.request.inspect(|&request| device.answering(request));
            reply();
        });
    }

    fn reply_attributes(&self, node: INodeNo, reply: ReplyAttr) {
        match self.attributes(node) {
            Some(attributes) => reply.attr(&FOR_EVER, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }
}

fn errno(refusal: Refusal) -> Errno {
    match refusal {
        Refusal::Io => Errno::EIO,
        Refusal::NoSpace => Errno::ENOSPC,
        Refusal::ReadOnly => Errno::EROFS,
    }
}

impl Filesystem for Front {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Several requests of the loop device at once.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        // Each names the nearest possible value if this one is not, and that will do.
        let _ = config.set_max_write(LARGEST_REQUEST);
        let _ = config.set_max_background(IN_FLIGHT);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let node = match name.to_str() {
            Some("disk") if parent == ROOT => DISK,
            Some("mark") if parent == ROOT => MARK,
            _ => return reply.error(Errno::ENOENT),
        };
        if let Some(attributes) = self.attributes(node) {
            reply.entry(&FOR_EVER, &attributes, Generation(0));
        }
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.reply_attributes(node, reply);
    }

    fn setattr(
        &self,
        _: &Request,
        node: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        // `echo 1 > mark` truncates first; there is nothing to truncate.
        self.reply_attributes(node, reply);
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(0), flags);
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // close(2), which makes nothing durable.
        reply.ok();
    }

    fn read(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if node != DISK {
            return reply.data(&[]);
        }
        let left = self.device.size().saturating_sub(offset);
        let mut bytes = vec![0; usize::try_from(left.min(u64::from(size))).unwrap_or(0)];
        match self.device.read(offset, &mut bytes) {
            Ok(due) => self.answers.send(due, move || reply.data(&bytes)),
            Err(refusal) => reply.error(errno(refusal)),
        }
    }

    fn write(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let len = bytes.len() as u32;
        if node == MARK {
            let answer = self.answers.on_drop(move || reply.written(len));
            self.device.mark(bytes, answer);
            return;
        }
        // Whoever wants a write durable by itself is not served a file: there is no way to say so.
        match self.device.write(offset, bytes, Access::Cached) {
            Ok(done) => self.answer(done, move || reply.written(len)),
            Err(refusal) => reply.error(errno(refusal)),
        }
    }

    fn fsync(&self, _: &Request, node: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        if node != DISK {
            return reply.ok();
        }
        match self.device.flush() {
            Ok(done) => self.answer(done, move || reply.ok()),
            Err(refusal) => reply.error(errno(refusal)),
        }
    }
}
