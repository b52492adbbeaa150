//! This machine.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use landfall_os::{Filesystem, allocate_unwritten};
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::{Errno, ReadWriteFlags};

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
    begin: Instant,
}

impl System {
    /// For this directory, which may be yet to make.
    pub fn new(directory: &Path) -> System {
        System(Arc::new(Inner {
            directory: directory.to_owned(),
            handle: OnceLock::new(),
            method: AtomicU32::new(0),
            begin: Instant::now(),
        }))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.directory.join(name)
    }

    fn method(&self) -> Option<Method> {
        Method::of_code(self.0.method.load(Ordering::Relaxed))
    }

    fn handle(&self) -> io::Result<&OwnedFd> {
        if let Some(handle) = self.0.handle.get() {
            return Ok(handle);
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&self.0.directory, flags, Mode::empty())?;
        Ok(self.0.handle.get_or_init(|| opened))
    }

    fn open_with(&self, name: &str, options: &mut OpenOptions) -> io::Result<SystemFile> {
        let options = options.read(true).write(true).mode(0o600);
        let method = self.method();
        let direct = match method {
            Some(Method::Buffered) => None,
            _ => {
                let opened = options
                    .custom_flags(OFlags::DIRECT.bits() as i32)
                    .open(self.path(name));
                match opened {
                    Ok(file) => Some(file),
                    // What a filesystem without direct I/O says.
                    Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => None,
                    Err(error) => return Err(error),
                }
            }
        };
        Ok(match direct {
            Some(file) => SystemFile {
                file,
                method: method.unwrap_or(Method::DirectFdatasync),
            },
            None => SystemFile {
                // Made by the attempt before, where there was one.
                file: OpenOptions::new()
                    .read(true)
                    .write(true)
                    .create(true)
                    .truncate(false)
                    .mode(0o600)
                    .open(self.path(name))?,
                method: Method::Buffered,
            },
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
    type Condvar = Condvar;
    type Thread = JoinHandle<()>;

    fn make_directory(&self) -> io::Result<()> {
        let made = fs::DirBuilder::new().mode(0o700).create(&self.0.directory);
        match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
            Ok(()) => {
                let directory = fs::canonicalize(&self.0.directory)?;
                match directory.parent() {
                    Some(parent) => File::open(parent)?.sync_all(),
                    None => Ok(()),
                }
            }
        }
    }

    fn names(&self) -> io::Result<Vec<String>> {
        fs::read_dir(&self.0.directory)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    fn lock_directory(&self) -> io::Result<bool> {
        match flock(self.handle()?, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn unlock_directory(&self) {
        if let Ok(handle) = self.handle() {
            // It goes with the handle otherwise.
            let _ = flock(handle, FlockOperation::Unlock);
        }
    }

    fn create(&self, name: &str) -> io::Result<SystemFile> {
        self.open_with(name, OpenOptions::new().create_new(true))
    }

    fn open(&self, name: &str) -> io::Result<SystemFile> {
        self.open_with(name, &mut OpenOptions::new())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(self.handle()?)?)
    }

    fn device(&self) -> io::Result<u64> {
        Ok(fs::metadata(&self.0.directory)?.dev())
    }

    fn granule(&self) -> io::Result<u32> {
        let filesystem = Filesystem::of(&self.0.directory)?;
        let direct = filesystem.direct_io.map(|direct| direct.offset_bytes);
        Ok(direct.unwrap_or(PAGE).max(512))
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

    fn spawn(
        &self,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        thread::Builder::new().name(name.to_owned()).spawn(work)
    }

    fn join(thread: JoinHandle<()>) {
        // One that panicked has said so.
        let _ = thread.join();
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
