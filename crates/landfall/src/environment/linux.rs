//! A directory of a Linux machine: direct I/O where it can be had, and writes that are durable on return.

use std::fs::{self, File};
use std::io::{self, IoSlice};
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, CWD, Dir, FallocateFlags, FileType, FlockOperation, Mode, OFlags, StatxFlags,
    fallocate, flock, fstat, fstatvfs, fsync, openat, renameat, statx, unlinkat,
};
use rustix::io::{Errno, ReadWriteFlags, pwritev2, retry_on_intr};

use super::storage::{self, ALIGNMENT, Durability, Method, Storage};
use crate::environment::Buffer;

/// Offsets and lengths where direct I/O cannot be had: a page, so that no write touches another's.
const PAGE: u32 = ALIGNMENT as u32;
/// `RWF_ATOMIC` and `STATX_WRITE_ATOMIC`, since Linux 6.11; not in the libraries yet.
const RWF_ATOMIC: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x40);
const STATX_WRITE_ATOMIC: StatxFlags = StatxFlags::from_bits_retain(0x0001_0000);
/// How long methods are tried against each other.
const CALIBRATION: Duration = Duration::from_millis(60);
/// Writes of each method after which no more are needed.
const ENOUGH: usize = 24;

/// A directory. Its files are found through its open descriptor, whatever it is called by now.
#[derive(Clone)]
pub(crate) struct Linux(Arc<Inner>);

struct Inner {
    directory: PathBuf,
    /// The directory itself, which is what is locked.
    handle: OnceLock<OwnedFd>,
    /// A [`Method`]'s code; 0: not chosen yet.
    method: AtomicU32,
    is_locked: AtomicBool,
    is_read_only: bool,
}

impl Linux {
    pub fn new(directory: &Path, is_read_only: bool) -> Linux {
        Linux(Arc::new(Inner {
            directory: directory.to_owned(),
            handle: OnceLock::new(),
            method: AtomicU32::new(0),
            is_locked: AtomicBool::new(false),
            is_read_only,
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

    fn open_with(&self, name: &str, more: OFlags) -> io::Result<LinuxFile> {
        let access = if self.0.is_read_only {
            OFlags::RDONLY
        } else {
            OFlags::RDWR
        };
        let open = |flags: OFlags| {
            // Whatever has the name, a pipe perhaps: it is not waited for.
            let flags = flags | access | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
            let file = openat(self.handle()?, name, flags, Mode::RUSR | Mode::WUSR)?;
            let found = fstat(&file)?;
            if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
                return Err(io::Error::other("it is no regular file"));
            }
            // What is written by one name would change what is read by the other.
            if found.st_nlink > 1 {
                return Err(io::Error::other(
                    "the file has another name (a hard link): remove that",
                ));
            }
            Ok(file)
        };
        let method = self.method();
        if method != Some(Method::Buffered) {
            match open(more | OFlags::DIRECT) {
                Ok(file) => {
                    return Ok(LinuxFile {
                        file: file.into(),
                        method: method.unwrap_or(Method::DirectFdatasync),
                    });
                }
                // What a filesystem without direct I/O says, when it has made the file.
                Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
                    tracing::warn!(name, "no direct I/O here: files go through the page cache");
                }
                Err(error) => return Err(error),
            }
        }
        let more = if method == Some(Method::Buffered) {
            more
        } else {
            more.difference(OFlags::EXCL)
        };
        Ok(LinuxFile {
            file: open(more)?.into(),
            method: Method::Buffered,
        })
    }
}

/// An open file, and how it is written.
pub(crate) struct LinuxFile {
    file: File,
    method: Method,
}

impl storage::File for LinuxFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let allocated = retry_on_intr(|| fallocate(&self.file, FallocateFlags::empty(), 0, len));
        match allocated.map_err(io::Error::from) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                // Behind what is there already.
                let buffer = Buffer::new(PAGE as usize);
                for at in (self.size()?..len).step_by(PAGE as usize) {
                    let most = (len - at).min(PAGE.into()) as usize;
                    self.write(buffer.bytes(0..most), at, Durability::Later)?;
                }
                Ok(())
            }
            allocated => allocated,
        }
    }

    fn read_some(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn write_some(&self, bytes: &[u8], offset: u64, durability: Durability) -> io::Result<usize> {
        let is_durable = durability == Durability::OnReturn && self.method == Method::DirectDsync;
        let flags = if is_durable {
            ReadWriteFlags::DSYNC
        } else {
            ReadWriteFlags::empty()
        };
        Ok(pwritev2(&self.file, &[IoSlice::new(bytes)], offset, flags)?)
    }

    fn settle(&self) -> io::Result<()> {
        if self.method == Method::DirectDsync {
            Ok(())
        } else {
            self.file.sync_data()
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write_atomic(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let write = || pwritev2(&self.file, &[IoSlice::new(bytes)], offset, RWF_ATOMIC);
        match retry_on_intr(write)? {
            written if written == bytes.len() => Ok(()),
            // Two writes would be torn between them.
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }
}

impl Storage for Linux {
    type File = LinuxFile;

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

    fn lock(&self) -> io::Result<bool> {
        // The kernel's lock is that of the open directory, which clones of this share.
        if self.0.is_locked.swap(true, Ordering::AcqRel) {
            return Ok(false);
        }
        let locked = self.handle().and_then(|handle| {
            let operation = FlockOperation::NonBlockingLockExclusive;
            match retry_on_intr(|| flock(handle, operation)) {
                Ok(()) => Ok(true),
                Err(Errno::WOULDBLOCK) => Ok(false),
                Err(error) => Err(error.into()),
            }
        });
        if !matches!(locked, Ok(true)) {
            self.0.is_locked.store(false, Ordering::Release);
        }
        locked
    }

    fn unlock(&self) {
        if let Ok(handle) = self.handle() {
            // It goes with the handle otherwise.
            let _ = flock(handle, FlockOperation::Unlock);
        }
        self.0.is_locked.store(false, Ordering::Release);
    }

    fn process(&self) -> u64 {
        std::process::id().into()
    }

    fn create(&self, name: &str) -> io::Result<LinuxFile> {
        self.open_with(name, OFlags::CREATE | OFlags::EXCL)
    }

    fn open(&self, name: &str) -> io::Result<LinuxFile> {
        self.open_with(name, OFlags::empty())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let directory = self.handle()?;
        Ok(renameat(directory, from, directory, to)?)
    }

    fn available(&self) -> Option<u64> {
        let stat = fstatvfs(self.handle().ok()?).ok()?;
        // One that has no blocks does not say how many it has.
        (stat.f_blocks > 0).then(|| stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(self.handle()?, name, AtFlags::empty())?)
    }

    fn sync(&self) -> io::Result<()> {
        let directory = self.handle()?;
        Ok(retry_on_intr(|| fsync(directory))?)
    }

    fn device(&self) -> io::Result<u64> {
        Ok(fstat(self.handle()?)?.st_dev)
    }

    /// What direct I/O takes: a property of files, so one without a name is asked (`STATX_DIOALIGN`, Linux 6.1).
    fn granule(&self) -> io::Result<u32> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = openat(self.handle()?, ".", flags, Mode::RUSR | Mode::WUSR);
        let told = file
            .and_then(|file| statx(&file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN))
            .ok()
            .filter(|told| told.stx_mask & StatxFlags::DIOALIGN.bits() != 0);
        match told {
            // The two copies of the control record are a page each, and groups begin at any granule in memory.
            Some(told)
                if told.stx_dio_offset_align.is_power_of_two()
                    && told.stx_dio_offset_align <= PAGE
                    && told.stx_dio_mem_align <= told.stx_dio_offset_align.max(512) =>
            {
                Ok(told.stx_dio_offset_align.max(512))
            }
            _ => {
                self.use_method(Method::Buffered);
                Ok(PAGE)
            }
        }
    }

    /// A property of files, so one without a name is asked.
    fn atomic_writes(&self) -> io::Result<RangeInclusive<u32>> {
        if self.method() == Some(Method::Buffered) {
            return Ok(0..=0);
        }
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::DIRECT;
        let file = openat(self.handle()?, ".", flags, Mode::RUSR | Mode::WUSR);
        let told = file
            .and_then(|file| statx(&file, "", AtFlags::EMPTY_PATH, STATX_WRITE_ATOMIC))
            .ok()
            .filter(|told| told.stx_mask & STATX_WRITE_ATOMIC.bits() != 0);
        Ok(told.map_or(0..=0, |told| {
            told.stx_atomic_write_unit_min..=told.stx_atomic_write_unit_max
        }))
    }

    fn calibrate(&self, file: &LinuxFile, offset: u64, granule: u32) -> io::Result<Method> {
        use storage::File;
        if file.method == Method::Buffered {
            return Ok(Method::Buffered);
        }
        let buffer = Buffer::new(granule as usize);
        let zeros = buffer.bytes(0..granule as usize);
        let mut times = [Vec::new(), Vec::new()];
        let begin = Instant::now();
        while begin.elapsed() < CALIBRATION && times[1].len() < ENOUGH {
            for (flags, times) in [ReadWriteFlags::DSYNC, ReadWriteFlags::empty()]
                .into_iter()
                .zip(&mut times)
            {
                let begin = Instant::now();
                let written =
                    retry_on_intr(|| pwritev2(&file.file, &[IoSlice::new(zeros)], offset, flags));
                match written {
                    // Not every filesystem knows the flag.
                    Err(Errno::OPNOTSUPP) if flags == ReadWriteFlags::DSYNC => {
                        return Ok(Method::DirectFdatasync);
                    }
                    written => written?,
                };
                if flags.is_empty() {
                    file.sync()?;
                }
                times.push(begin.elapsed());
            }
        }
        let [mut dsync, mut fdatasync] = times;
        Ok(if middle(&mut dsync) <= middle(&mut fdatasync) {
            Method::DirectDsync
        } else {
            Method::DirectFdatasync
        })
    }

    fn use_method(&self, method: Method) {
        self.0.method.store(method.code(), Ordering::Relaxed);
    }
}

fn middle(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(Duration::MAX)
}
