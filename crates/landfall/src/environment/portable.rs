//! A directory, by the standard library alone: the page cache, and `File::sync_data` behind each write that is to be
//! durable (`fdatasync` on Linux, `F_FULLFSYNC` on macOS, `FlushFileBuffers` on Windows).
//!
//! Files are the same as those that are written with direct I/O. What differs is what the system promises: this was
//! proven on Linux only; elsewhere it is the same code. And files are found by the path of the directory, which must not be moved
//! while it is open.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::storage::{self, ALIGNMENT, Durability, Method, Storage};

/// Offsets and lengths: a page, so that no write touches another's.
const PAGE: u32 = ALIGNMENT as u32;
/// Bytes of zeros that are written at once.
const ZEROS: u64 = 1 << 20;
/// What is locked where a directory cannot be opened.
const LOCK_NAME: &str = "landfall-lock";

/// A directory.
#[derive(Clone)]
pub(crate) struct Portable(Arc<Inner>);

struct Inner {
    /// From the root on, so that it is the same one wherever the program goes.
    directory: PathBuf,
    is_read_only: bool,
    /// What is locked, as long as it is.
    locked: Mutex<Option<File>>,
}

impl Portable {
    pub fn new(directory: &Path, is_read_only: bool) -> Portable {
        let absolute = std::path::absolute(directory);
        Portable(Arc::new(Inner {
            directory: absolute.unwrap_or_else(|_| directory.to_owned()),
            is_read_only,
            locked: Mutex::new(None),
        }))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.directory.join(name)
    }

    fn locked(&self) -> MutexGuard<'_, Option<File>> {
        self.0.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What stands for the directory when it is locked: itself, but on Windows, which opens none.
    fn lock_file(&self) -> io::Result<File> {
        if !cfg!(windows) {
            return File::open(&self.0.directory);
        }
        let path = self.path(LOCK_NAME);
        let mut options = OpenOptions::new();
        // Who only looks makes nothing.
        options.append(true).create(!self.0.is_read_only).open(path)
    }
}

/// An open file. It has one place at which it reads and writes, so one thread at a time does.
pub(crate) struct PortableFile(Mutex<File>);

impl PortableFile {
    fn file(&self) -> MutexGuard<'_, File> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn at(&self, offset: u64) -> io::Result<MutexGuard<'_, File>> {
        let mut file = self.file();
        file.seek(SeekFrom::Start(offset))?;
        Ok(file)
    }
}

impl storage::File for PortableFile {
    /// The standard library has none.
    fn write_atomic(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.file().metadata()?.len())
    }

    /// The standard library reserves no space: zeros do.
    fn allocate(&self, len: u64) -> io::Result<()> {
        let zeros = vec![0; ZEROS.min(len) as usize];
        // Behind what is there already.
        let mut at = self.size()?;
        while at < len {
            let part = ZEROS.min(len - at);
            self.write(&zeros[..part as usize], at, Durability::Later)?;
            at += part;
        }
        Ok(())
    }

    fn read_some(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.at(offset)?.read(buffer)
    }

    fn write_some(&self, bytes: &[u8], offset: u64, _: Durability) -> io::Result<usize> {
        self.at(offset)?.write(bytes)
    }

    fn settle(&self) -> io::Result<()> {
        self.sync()
    }

    fn sync(&self) -> io::Result<()> {
        self.file().sync_data()
    }
}

impl Storage for Portable {
    type File = PortableFile;

    fn atomic_writes(&self) -> io::Result<RangeInclusive<u32>> {
        Ok(0..=0)
    }

    fn make_directory(&self) -> io::Result<()> {
        match fs::create_dir(&self.0.directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        }
    }

    fn sync_parent(&self) -> io::Result<()> {
        sync_directory(&self.path(".."))
    }

    fn available(&self) -> Option<u64> {
        None
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.0.directory)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != LOCK_NAME {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn lock(&self) -> io::Result<bool> {
        let mut locked = self.locked();
        if locked.is_some() {
            return Ok(false);
        }
        let file = self.lock_file()?;
        match file.try_lock() {
            Ok(()) => {
                *locked = Some(file);
                Ok(true)
            }
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn unlock(&self) {
        // A program that is being started beside has a copy of the handle until it runs: closing alone would unlock
        // only then.
        if let Some(file) = self.locked().take() {
            let _ = file.unlock();
        }
    }

    fn process(&self) -> u64 {
        std::process::id().into()
    }

    fn create(&self, name: &str) -> io::Result<PortableFile> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create_new(true);
        Ok(PortableFile(Mutex::new(options.open(self.path(name))?)))
    }

    fn open(&self, name: &str) -> io::Result<PortableFile> {
        // Whatever has the name, a pipe perhaps: it is not waited for.
        if !fs::metadata(self.path(name))?.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        let mut options = OpenOptions::new();
        let options = options.read(true).write(!self.0.is_read_only);
        Ok(PortableFile(Mutex::new(options.open(self.path(name))?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    fn sync(&self) -> io::Result<()> {
        sync_directory(&self.0.directory)
    }

    fn device(&self) -> io::Result<u64> {
        Ok(0)
    }

    fn granule(&self) -> io::Result<u32> {
        Ok(PAGE)
    }

    fn calibrate(&self, _: &PortableFile, _: u64, _: u32) -> io::Result<Method> {
        Ok(Method::Buffered)
    }

    fn use_method(&self, _: Method) {}
}

/// Makes durable which files a directory has. Windows has no call for it: its filesystems log their names.
fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(windows) {
        return Ok(());
    }
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_the_same_wherever_the_program_goes() {
        let here = std::env::current_dir().unwrap();
        let found = Portable::new(Path::new("log"), false);
        assert_eq!(found.path("landfall-log"), here.join("log/landfall-log"));
    }

    #[test]
    fn it_is_unlocked_although_a_child_has_a_copy_of_the_handle() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let first = Portable::new(directory.path(), false);
        assert!(first.lock().unwrap());
        // What a child has between fork and exec.
        let copy = first.locked().as_ref().unwrap().try_clone().unwrap();
        let second = Portable::new(directory.path(), false);
        assert!(!second.lock().unwrap());
        first.unlock();
        assert!(second.lock().unwrap());
        drop(copy);
    }
}
