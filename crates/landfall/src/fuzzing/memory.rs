//! A directory in memory, for which opening a log costs next to nothing.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::environment::{Durability, File, Method, Storage};
use crate::log::format::CONTROL_FILE;

/// The granule of whatever is in it.
pub(crate) const GRANULE: u32 = 512;
/// Bytes of the largest file that there is memory for.
const MOST_FILE: u64 = 1 << 20;

type Bytes = Arc<Mutex<Vec<u8>>>;

/// The files, by their names.
#[derive(Clone, Default)]
pub(crate) struct Memory {
    files: Arc<Mutex<BTreeMap<String, Bytes>>>,
    device: Arc<Device>,
}

/// What the files are on, and what was asked of it.
pub(crate) struct Device {
    pub id: AtomicU64,
    pub granule: AtomicU32,
    pub read: AtomicU64,
    pub written: AtomicU64,
    pub largest_write: AtomicU64,
    pub calibrations: AtomicU64,
    pub reads: AtomicU64,
    /// The read, by its number, that gives a wrong bit.
    pub wrong_read: AtomicU64,
    /// The read that fails, once.
    pub failing_read: AtomicU64,
    /// Syncs of the directory fail.
    pub no_sync: AtomicBool,
    /// The byte of each segment that cannot be read, and how often it was asked for.
    pub bad_byte: AtomicU64,
    pub bad_reads: AtomicU64,
    /// How files were to be written, and how much had been read by then.
    pub methods: Mutex<Vec<(Method, u64)>>,
}

impl Default for Device {
    fn default() -> Device {
        Device {
            id: AtomicU64::new(1),
            granule: AtomicU32::new(GRANULE),
            read: AtomicU64::new(0),
            written: AtomicU64::new(0),
            largest_write: AtomicU64::new(0),
            calibrations: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            wrong_read: AtomicU64::new(0),
            failing_read: AtomicU64::new(0),
            no_sync: AtomicBool::new(false),
            bad_byte: AtomicU64::new(u64::MAX),
            bad_reads: AtomicU64::new(0),
            methods: Mutex::default(),
        }
    }
}

impl Memory {
    pub fn new(files: BTreeMap<String, Vec<u8>>) -> Memory {
        let files = files
            .into_iter()
            .map(|(name, bytes)| (name, Arc::new(Mutex::new(bytes))));
        Memory {
            files: Arc::new(Mutex::new(files.collect())),
            device: Arc::default(),
        }
    }

    /// What it holds now.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let files = lock(&self.files);
        let copies = files
            .iter()
            .map(|(name, bytes)| (name.clone(), lock(bytes).clone()));
        copies.collect()
    }

    /// What they are on.
    #[cfg(test)]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Has it hold these.
    #[cfg(test)]
    pub fn replace(&self, files: BTreeMap<String, Vec<u8>>) {
        *lock(&self.files) = Memory::new(files)
            .files
            .lock()
            .expect("nobody else has it")
            .clone();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn absent() -> io::Error {
    io::ErrorKind::NotFound.into()
}

pub(crate) struct MemoryFile(Bytes, Arc<Device>);

impl File for MemoryFile {
    fn size(&self) -> io::Result<u64> {
        Ok(lock(&self.0).len() as u64)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        if len > MOST_FILE {
            return Err(io::ErrorKind::StorageFull.into());
        }
        lock(&self.0).resize(len as usize, 0);
        Ok(())
    }

    fn read_some(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = lock(&self.0);
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        let len = rest.len().min(buffer.len());
        let (device, bad) = (&self.1, self.1.bad_byte.load(Relaxed));
        let number = 1 + device.reads.fetch_add(1, Relaxed);
        // The control file is smaller than a segment that is not.
        let is_bad = (offset..offset + len as u64).contains(&bad) && bytes.len() != CONTROL_FILE;
        if is_bad {
            device.bad_reads.fetch_add(1, Relaxed);
        }
        if is_bad || number == device.failing_read.load(Relaxed) {
            return Err(io::Error::other("it cannot be read"));
        }
        buffer[..len].copy_from_slice(&rest[..len]);
        if number == device.wrong_read.load(Relaxed) && len > 100 {
            buffer[100] ^= 1;
        }
        device.read.fetch_add(len as u64, Relaxed);
        Ok(len)
    }

    fn write_some(&self, bytes: &[u8], offset: u64, _: Durability) -> io::Result<usize> {
        let mut all = lock(&self.0);
        let end = offset as usize + bytes.len();
        let len = all.len().max(end);
        all.resize(len, 0);
        all[offset as usize..end].copy_from_slice(bytes);
        self.1.written.fetch_add(bytes.len() as u64, Relaxed);
        self.1.largest_write.fetch_max(bytes.len() as u64, Relaxed);
        Ok(bytes.len())
    }

    fn settle(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Storage for Memory {
    type File = MemoryFile;

    fn make_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_parent(&self) -> io::Result<()> {
        Ok(())
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(lock(&self.files).keys().cloned().collect())
    }

    /// Who has it opens one log after the other.
    fn lock(&self) -> io::Result<bool> {
        Ok(true)
    }

    fn unlock(&self) {}

    fn create(&self, name: &str) -> io::Result<MemoryFile> {
        let bytes = Bytes::default();
        lock(&self.files).insert(name.to_owned(), bytes.clone());
        Ok(MemoryFile(bytes, self.device.clone()))
    }

    fn open(&self, name: &str) -> io::Result<MemoryFile> {
        let files = lock(&self.files);
        let bytes = files.get(name).ok_or_else(absent)?;
        Ok(MemoryFile(bytes.clone(), self.device.clone()))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = lock(&self.files);
        let bytes = files.remove(from).ok_or_else(absent)?;
        files.insert(to.to_owned(), bytes);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let removed = lock(&self.files).remove(name);
        removed.map(drop).ok_or_else(absent)
    }

    fn sync(&self) -> io::Result<()> {
        if self.device.no_sync.load(Relaxed) {
            return Err(io::Error::other("the directory cannot be synced"));
        }
        Ok(())
    }

    fn device(&self) -> io::Result<u64> {
        Ok(self.device.id.load(Relaxed))
    }

    fn granule(&self) -> io::Result<u32> {
        Ok(self.device.granule.load(Relaxed))
    }

    fn calibrate(&self, _: &MemoryFile, _: u64, _: u32) -> io::Result<Method> {
        self.device.calibrations.fetch_add(1, Relaxed);
        Ok(Method::DirectDsync)
    }

    fn use_method(&self, method: Method) {
        let read = self.device.read.load(Relaxed);
        lock(&self.device.methods).push((method, read));
    }
}
