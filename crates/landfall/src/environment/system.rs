//! This machine.

use std::fs::{self, File};
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{
    Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard,
    RwLockWriteGuard,
};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use landfall_os::{Filesystem, allocate_unwritten};
use rustix::fs::{
    AtFlags, CWD, Dir, FlockOperation, Mode, OFlags, flock, fstat, fsync, openat, renameat,
    unlinkat,
};
use rustix::io::{Errno, ReadWriteFlags, retry_on_intr};
use rustix::thread::futex::{self, Timespec};

use super::{Durability, Environment, Method};
use crate::log::buffer::Buffer;

/// Offsets and lengths where direct I/O cannot be had: a page, so that no write touches another's.
const PAGE: u32 = 4096;
/// How long methods are tried against each other.
const CALIBRATION: Duration = Duration::from_millis(60);
/// Writes of each method after which no more are needed.
const ENOUGH: usize = 24;

/// A directory of this machine.
#[derive(Clone)]
pub struct System(Arc<Inner>);

struct Inner {
    directory: PathBuf,
    /// The directory itself, which is what is locked.
    handle: OnceLock<OwnedFd>,
    /// A [`Method`]'s code; 0: not chosen yet.
    method: AtomicU32,
    is_locked: AtomicBool,
    is_read_only: bool,
    begin: Instant,
}

impl System {
    /// For this directory, which may be yet to make.
    pub fn new(directory: &Path) -> System {
        System::with(directory, false)
    }

    /// For this directory, in which nothing is to be changed: files are opened to be read, and none is made.
    pub fn read_only(directory: &Path) -> System {
        System::with(directory, true)
    }

    fn with(directory: &Path, is_read_only: bool) -> System {
        System(Arc::new(Inner {
            directory: directory.to_owned(),
            handle: OnceLock::new(),
            method: AtomicU32::new(0),
            is_locked: AtomicBool::new(false),
            is_read_only,
            begin: Instant::now(),
        }))
    }

    fn method(&self) -> Option<Method> {
        Method::of_code(self.0.method.load(Ordering::Relaxed))
    }

    fn handle(&self) -> io::Result<&OwnedFd> {
        if let Some(handle) = self.0.handle.get() {
            return Ok(handle);
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(CWD, &self.0.directory, flags, Mode::empty())?;
        Ok(self.0.handle.get_or_init(|| opened))
    }

    /// Opens a file of the directory that was locked, whatever that is called by now.
    fn open_with(&self, name: &str, more: OFlags) -> io::Result<SystemFile> {
        let access = match self.0.is_read_only {
            true => OFlags::RDONLY,
            false => OFlags::RDWR,
        };
        let open = |flags: OFlags| {
            let flags = flags | access | OFlags::CLOEXEC;
            let mode = Mode::RUSR | Mode::WUSR;
            openat(self.handle()?, name, flags, mode).map_err(io::Error::from)
        };
        let method = self.method();
        if method != Some(Method::Buffered) {
            match open(more | OFlags::DIRECT) {
                Ok(file) => {
                    return Ok(SystemFile {
                        file: file.into(),
                        method: method.unwrap_or(Method::DirectFdatasync),
                    });
                }
                // What a filesystem without direct I/O says, when it has made the file.
                Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
                    tracing::warn!(
                        name,
                        "no direct I/O here: the log is written through the page cache"
                    );
                }
                Err(error) => return Err(error),
            }
        }
        let more = match method {
            Some(Method::Buffered) => more,
            _ => more.difference(OFlags::EXCL),
        };
        Ok(SystemFile {
            file: open(more)?.into(),
            method: Method::Buffered,
        })
    }
}

/// An open file, and how it is written.
pub struct SystemFile {
    file: File,
    method: Method,
}

impl SystemFile {
    fn write_by(&self, bytes: &[u8], offset: u64, dsync: bool) -> io::Result<()> {
        let flags = match dsync {
            true => ReadWriteFlags::DSYNC,
            false => ReadWriteFlags::empty(),
        };
        let mut done = 0;
        while done < bytes.len() {
            let rest = [IoSlice::new(&bytes[done..])];
            match rustix::io::pwritev2(&self.file, &rest, offset + done as u64, flags) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => done += written,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl super::File for SystemFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        match allocate_unwritten(&self.file, len) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                let buffer = Buffer::new(PAGE as usize);
                for at in (0..len).step_by(PAGE as usize) {
                    let most = (len - at).min(PAGE.into()) as usize;
                    self.write_by(buffer.bytes(0..most), at, false)?;
                }
                Ok(())
            }
            allocated => allocated,
        }
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    fn write(&self, bytes: &[u8], offset: u64, durability: Durability) -> io::Result<()> {
        match (durability, self.method) {
            (Durability::Later, _) => self.write_by(bytes, offset, false),
            (Durability::OnReturn, Method::DirectDsync) => self.write_by(bytes, offset, true),
            (Durability::OnReturn, _) => {
                self.write_by(bytes, offset, false)?;
                self.file.sync_data()
            }
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

impl Environment for System {
    type File = SystemFile;
    type Mutex<T: Send + 'static> = Mutex<T>;
    type Guard<'a, T: Send + 'static> = MutexGuard<'a, T>;
    type RwLock<T: Send + Sync + 'static> = RwLock<T>;
    type Shared<'a, T: Send + Sync + 'static> = RwLockReadGuard<'a, T>;
    type Exclusive<'a, T: Send + Sync + 'static> = RwLockWriteGuard<'a, T>;
    type Condvar = Condvar;
    type Gate = AtomicU32;
    type Thread = JoinHandle<()>;

    fn make_directory(&self) -> io::Result<()> {
        let made = fs::DirBuilder::new().mode(0o700).create(&self.0.directory);
        match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        }
    }

    fn sync_parent(&self) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = openat(self.handle()?, "..", flags, Mode::empty())?;
        Ok(retry_on_intr(|| fsync(&parent))?)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(self.handle()?)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn lock_directory(&self) -> io::Result<bool> {
        // The kernel's lock is that of the open directory, which clones of this share.
        if self.0.is_locked.swap(true, Ordering::AcqRel) {
            return Ok(false);
        }
        match flock(self.handle()?, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(error) => {
                self.0.is_locked.store(false, Ordering::Release);
                match error {
                    Errno::WOULDBLOCK => Ok(false),
                    error => Err(error.into()),
                }
            }
        }
    }

    fn unlock_directory(&self) {
        if let Ok(handle) = self.handle() {
            // It goes with the handle otherwise.
            let _ = flock(handle, FlockOperation::Unlock);
        }
        self.0.is_locked.store(false, Ordering::Release);
    }

    fn create(&self, name: &str) -> io::Result<SystemFile> {
        self.open_with(name, OFlags::CREATE | OFlags::EXCL)
    }

    fn open(&self, name: &str) -> io::Result<SystemFile> {
        self.open_with(name, OFlags::empty())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let directory = self.handle()?;
        Ok(renameat(directory, from, directory, to)?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(self.handle()?, name, AtFlags::empty())?)
    }

    fn sync_directory(&self) -> io::Result<()> {
        let directory = self.handle()?;
        Ok(retry_on_intr(|| fsync(directory))?)
    }

    fn device(&self) -> io::Result<u64> {
        Ok(fstat(self.handle()?)?.st_dev)
    }

    fn granule(&self) -> io::Result<u32> {
        let filesystem = Filesystem::of(&self.0.directory)?;
        match filesystem.direct_io {
            // The two copies of the control record are a page each, and groups begin at any granule in memory.
            Some(direct)
                if direct.offset_bytes.is_power_of_two()
                    && direct.offset_bytes <= PAGE
                    && direct.memory_bytes <= direct.offset_bytes.max(512) =>
            {
                Ok(direct.offset_bytes.max(512))
            }
            _ => {
                self.use_method(Method::Buffered);
                Ok(PAGE)
            }
        }
    }

    fn calibrate(&self, file: &SystemFile, offset: u64, granule: u32) -> io::Result<Method> {
        if file.method == Method::Buffered {
            return Ok(Method::Buffered);
        }
        let mut buffer = Buffer::new(granule as usize);
        let zeros = buffer.bytes_mut(0..granule as usize);
        let mut times = [Vec::new(), Vec::new()];
        let begin = Instant::now();
        while begin.elapsed() < CALIBRATION && times[1].len() < ENOUGH {
            for (dsync, times) in [true, false].into_iter().zip(&mut times) {
                let begin = Instant::now();
                match file.write_by(zeros, offset, dsync) {
                    // Not every filesystem knows the flag.
                    Err(error) if dsync && error.kind() == io::ErrorKind::Unsupported => {
                        return Ok(Method::DirectFdatasync);
                    }
                    written => written?,
                }
                if !dsync {
                    file.file.sync_data()?;
                }
                times.push(begin.elapsed());
            }
        }
        let [mut dsync, mut fdatasync] = times;
        Ok(match middle(&mut dsync) <= middle(&mut fdatasync) {
            true => Method::DirectDsync,
            false => Method::DirectFdatasync,
        })
    }

    fn use_method(&self, method: Method) {
        self.0.method.store(method.code(), Ordering::Relaxed);
    }

    fn mutex<T: Send + 'static>(value: T) -> Mutex<T> {
        Mutex::new(value)
    }

    fn lock<T: Send + 'static>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rw_lock<T: Send + Sync + 'static>(value: T) -> RwLock<T> {
        RwLock::new(value)
    }

    fn share<T: Send + Sync + 'static>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
        lock.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn exclude<T: Send + Sync + 'static>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
        lock.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn condvar() -> Condvar {
        Condvar::new()
    }

    fn wait<'a, T: Send + 'static>(
        condvar: &Condvar,
        guard: Self::Guard<'a, T>,
    ) -> Self::Guard<'a, T> {
        condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    fn notify_one(condvar: &Condvar) {
        condvar.notify_one();
    }

    fn notify_all(condvar: &Condvar) {
        condvar.notify_all();
    }

    fn gate() -> AtomicU32 {
        AtomicU32::new(0)
    }

    fn openings(gate: &AtomicU32) -> u32 {
        gate.load(Ordering::SeqCst)
    }

    fn wait_at(gate: &AtomicU32, openings: u32, at_most: Option<Duration>) {
        let at_most = at_most.and_then(|time| Timespec::try_from(time).ok());
        // Whatever it says, it is over: opened meanwhile, interrupted, the time has passed.
        let _ = futex::wait(gate, futex::Flags::PRIVATE, openings, at_most.as_ref());
    }

    fn open_for_one(gate: &AtomicU32) {
        gate.fetch_add(1, Ordering::SeqCst);
        let _ = futex::wake(gate, futex::Flags::PRIVATE, 1);
    }

    fn open_for_all(gate: &AtomicU32) {
        gate.fetch_add(1, Ordering::SeqCst);
        let _ = futex::wake(gate, futex::Flags::PRIVATE, i32::MAX as u32);
    }

    fn spawn(
        &self,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        thread::Builder::new().name(name.to_owned()).spawn(work)
    }

    fn join(thread: JoinHandle<()>) {
        // Who is called back by it may be the one that closes the log.
        if thread.thread().id() != thread::current().id() {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }

    fn yield_now(&self) {
        thread::yield_now();
    }

    fn now(&self) -> Duration {
        self.0.begin.elapsed()
    }

    fn random(&self) -> u64 {
        fastrand::u64(..)
    }
}

fn middle(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(Duration::MAX)
}
