//! A device served to the kernel: a FUSE filesystem with two files in it, and a loop device on one.
//!
//! `disk` is the device, `mark` takes clients' marks. One thread takes the requests, in the order in
//! which the kernel sends them, and does each at once; a second one sends the answers that are due
//! later. Both have descriptors of their own (see [`serve_block_device`]) and no mounts (see
//! [`leave_mounts`]), so that they can always die, and what hangs on the device with them.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr,
    ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, SessionACL, TimeOrNow,
    WriteFlags,
};
use landfall_os::{LoopDevice, isolate_mounts, leave_mounts, serve_block_device, unmount};

use crate::fault::Refusal;

/// The largest request; larger ones are split by the kernel.
const MOST_BYTES: u32 = 1 << 20;
/// Requests that the kernel may have under way.
const IN_FLIGHT: u16 = 256;
/// Nothing changes behind the kernel's back.
const FOR_EVER: Duration = Duration::from_secs(1 << 30);

const ROOT: INodeNo = INodeNo::ROOT;
const DISK: INodeNo = INodeNo(2);
const MARK: INodeNo = INodeNo(3);

/// When a request that has been done is answered; `None`: at once.
pub(crate) type Due = Option<Instant>;

/// What became of a write.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    /// When it is answered.
    pub due: Due,
    /// What [`Device::answering`] is told of it; `None`: nothing.
    pub event: Option<u64>,
}

/// What is behind the file `disk`.
pub(crate) trait Device: Send + Sync + 'static {
    /// Its size in bytes.
    fn size(&self) -> u64;
    /// Fills `into` from `offset`.
    fn read(&self, offset: u64, into: &mut [u8]) -> Result<Due, Refusal>;
    /// Writes the bytes at `offset`.
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<Written, Refusal>;
    /// A write is about to be answered: a flush that arrives later counts it in.
    fn answering(&self, event: u64);
    /// Makes durable what was written.
    fn flush(&self) -> Result<Due, Refusal>;
    /// Takes a client's mark. The client waits until `answer` is dropped.
    fn mark(&self, bytes: &[u8], answer: Answer);
}

/// Lets a client that has written a mark go on, when dropped.
pub struct Answer(Option<(Sender<Later>, Later)>);

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some((sender, later)) = self.0.take() {
            // Without a server there is no client either.
            let _ = sender.send(later);
        }
    }
}

/// A device that the kernel is served.
#[derive(Debug)]
pub(crate) struct FuseDevice {
    // Dropped in this order: the loop device lets go of the file, then nothing holds the mount.
    device: LoopDevice,
    server: Server,
}

impl FuseDevice {
    /// Serves `device` at the empty directory `mount`, and attaches a loop device to it. `keep` is what
    /// the device reads and writes: it must use no other descriptor, and keep these open. The mount is
    /// seen by the calling thread and by those that it starts afterwards.
    pub fn start(
        device: Arc<dyn Device>,
        keep: Vec<RawFd>,
        mount: &Path,
    ) -> io::Result<FuseDevice> {
        isolate_mounts()?;
        let server = Server::start(device, keep, mount)?;
        let device = LoopDevice::attach(&mount.join("disk"))?;
        // So that no request is split between the filesystem and here.
        let limit = format!("/sys/block/{}/queue/max_sectors_kb", device.name());
        std::fs::write(limit, (MOST_BYTES >> 10).to_string())?;
        Ok(FuseDevice { device, server })
    }

    /// The block device.
    pub fn device(&self) -> &LoopDevice {
        &self.device
    }

    /// The file that takes marks.
    pub fn mark_path(&self) -> PathBuf {
        self.server.mount.join("mark")
    }
}

/// The thread that serves, and where it is mounted; unmounted when dropped.
#[derive(Debug)]
struct Server {
    mount: PathBuf,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Server {
    fn start(device: Arc<dyn Device>, keep: Vec<RawFd>, mount: &Path) -> io::Result<Server> {
        let (ready, is_ready) = channel();
        let place = mount.to_owned();
        let thread = std::thread::Builder::new()
            .name("landfall-device".into())
            .spawn(move || serve(device, &keep, &place, ready))?;
        let mut server = Server {
            mount: mount.to_owned(),
            thread: Some(thread),
        };
        if is_ready.recv().is_err() {
            // It never came so far: its result says why.
            server.join()?;
        }
        Ok(server)
    }

    fn join(&mut self) -> io::Result<()> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(io::Error::other("the device's server panicked")),
            None => Ok(()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.thread.is_some() && unmount(&self.mount).is_ok() {
            let _ = self.join();
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
    let (later, due) = channel();
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("landfall-recorder".into()),
        MountOption::NoAtime,
    ];
    // A subject may run as another user, and its acknowledgements are marks.
    config.acl = SessionACL::All;
    let behind = device.clone();
    let front = Front { device, later };
    let session = fuser::Session::new(front, mount, &config)?;
    leave_mounts()?;
    let answers = std::thread::Builder::new()
        .name("landfall-answer".into())
        .spawn(move || answer(behind.as_ref(), &due))?;
    let _ = ready.send(());
    drop(ready);
    let result = session.run();
    // The last sender went with the session.
    let _ = answers.join();
    result
}

/// An answer that is not sent at once.
struct Later {
    due: Instant,
    reply: Reply,
}

enum Reply {
    /// How many bytes, and what the device is told of it.
    Written(ReplyWrite, u32, Option<u64>),
    Read(ReplyData, Vec<u8>),
    Flushed(ReplyEmpty),
}

impl Reply {
    fn send(self, device: &dyn Device) {
        match self {
            Reply::Written(reply, len, event) => {
                // First: the kernel may send a flush as soon as it has the answer.
                if let Some(event) = event {
                    device.answering(event);
                }
                reply.written(len);
            }
            Reply::Read(reply, bytes) => reply.data(&bytes),
            Reply::Flushed(reply) => reply.ok(),
        }
    }
}

/// The one that is due first is the greatest.
impl Ord for Later {
    fn cmp(&self, other: &Later) -> Ordering {
        other.due.cmp(&self.due)
    }
}

impl PartialOrd for Later {
    fn partial_cmp(&self, other: &Later) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Later {
    fn eq(&self, other: &Later) -> bool {
        self.due == other.due
    }
}

impl Eq for Later {}

/// Sends each answer when it is due, until nobody is left who might want one sent.
fn answer(device: &dyn Device, arriving: &Receiver<Later>) {
    let mut waiting: BinaryHeap<Later> = BinaryHeap::new();
    loop {
        let now = Instant::now();
        while waiting.peek().is_some_and(|first| first.due <= now) {
            if let Some(first) = waiting.pop() {
                first.reply.send(device);
            }
        }
        let next = match waiting.peek() {
            Some(first) => arriving.recv_timeout(first.due.saturating_duration_since(now)),
            None => arriving.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match next {
            Ok(later) => waiting.push(later),
            Err(RecvTimeoutError::Timeout) => {}
            // Whoever could be answered is gone.
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// The filesystem that the kernel sees.
struct Front {
    device: Arc<dyn Device>,
    later: Sender<Later>,
}

impl Front {
    fn answer(&self, due: Due, reply: Reply) {
        match due {
            None => reply.send(self.device.as_ref()),
            // Fails when the answering thread is gone, and the client with it.
            Some(due) => drop(self.later.send(Later { due, reply })),
        }
    }

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
        let _ = config.set_max_write(MOST_BYTES);
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
            Ok(due) => self.answer(due, Reply::Read(reply, bytes)),
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
            let later = Later {
                due: Instant::now(),
                reply: Reply::Written(reply, len, None),
            };
            self.device
                .mark(bytes, Answer(Some((self.later.clone(), later))));
            return;
        }
        match self.device.write(offset, bytes) {
            Ok(Written { due, event }) => self.answer(due, Reply::Written(reply, len, event)),
            Err(refusal) => reply.error(errno(refusal)),
        }
    }

    fn fsync(&self, _: &Request, node: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        if node != DISK {
            return reply.ok();
        }
        match self.device.flush() {
            Ok(due) => self.answer(due, Reply::Flushed(reply)),
            Err(refusal) => reply.error(errno(refusal)),
        }
    }
}
