//! A directory in memory, for which opening a log costs next to nothing.

use std::collections::BTreeMap;
use std::io;
use std::ops::{Range, RangeInclusive};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::environment::{Durability, File, Method, Storage};
use crate::log::format::CONTROL_FILE;

/// The granule of whatever is in it.
pub(crate) const GRANULE: u32 = 512;
/// Bytes of the largest file that there is memory for.
const MOST_FILE: u64 = 4 << 20;

type Bytes = Arc<Mutex<Vec<u8>>>;

/// The files, by their names.
#[derive(Clone, Default)]
pub(crate) struct Memory {
    files: Arc<Mutex<BTreeMap<String, Bytes>>>,
    device: Arc<Device>,
}

/// What was asked that changes something, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Write {
        name: String,
        range: Range<u64>,
        durability: Durability,
    },
    Rename(String),
    Remove(String),
    /// Of the directory.
    Sync,
}

/// What is done while a write is under way.
type During = Box<dyn FnOnce() + Send>;

/// What the files are on, and what was asked of it.
pub(crate) struct Device {
    pub id: AtomicU64,
    /// The process that asks.
    pub process: AtomicU64,
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
    /// The largest read, of those that went well.
    pub largest_read: AtomicU64,
    /// Syncs of the directory fail.
    pub no_sync: AtomicBool,
    /// Why no file can be made, and why none can be removed.
    pub no_create: Mutex<Option<io::ErrorKind>>,
    pub no_remove: Mutex<Option<io::ErrorKind>>,
    /// The byte of each segment, or of files whose names begin so, that cannot be read, and how often it was asked for.
    pub bad_byte: AtomicU64,
    pub bad_files: Mutex<Option<String>>,
    pub bad_reads: AtomicU64,
    /// Bytes that are free, where it says so.
    pub available: Mutex<Option<u64>>,
    /// How files were to be written, and how much had been read by then.
    pub methods: Mutex<Vec<(Method, u64)>>,
    pub calls: Mutex<Vec<Call>>,
    /// What comes between when the next write is made that is durable on return.
    pub during: Mutex<Option<During>>,
    /// What comes between when the read of this number is made.
    pub during_read: Mutex<Option<(u64, During)>>,
}

impl Device {
    fn note(&self, call: Call) {
        if cfg!(test) {
            lock(&self.calls).push(call);
        }
    }
}

impl Default for Device {
    fn default() -> Device {
        Device {
            id: AtomicU64::new(1),
            process: AtomicU64::new(1),
            granule: AtomicU32::new(GRANULE),
            read: AtomicU64::new(0),
            written: AtomicU64::new(0),
            largest_write: AtomicU64::new(0),
            calibrations: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            wrong_read: AtomicU64::new(0),
            failing_read: AtomicU64::new(0),
            largest_read: AtomicU64::new(0),
            no_sync: AtomicBool::new(false),
            no_create: Mutex::default(),
            no_remove: Mutex::default(),
            bad_byte: AtomicU64::new(u64::MAX),
            bad_files: Mutex::default(),
            bad_reads: AtomicU64::new(0),
            available: Mutex::default(),
            methods: Mutex::default(),
            calls: Mutex::default(),
            during: Mutex::default(),
            during_read: Mutex::default(),
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

    fn file(&self, name: &str, bytes: Bytes) -> MemoryFile {
        MemoryFile {
            name: name.to_owned(),
            bytes,
            device: self.device.clone(),
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

/// Whole granules only, as every file of the engine is asked for.
fn require_granules(len: usize, offset: u64) {
    let granule = u64::from(GRANULE);
    assert!(offset.is_multiple_of(granule) && (len as u64).is_multiple_of(granule));
}

fn refusal(why: &Mutex<Option<io::ErrorKind>>) -> io::Result<()> {
    lock(why).map_or(Ok(()), |kind| Err(kind.into()))
}

fn absent() -> io::Error {
    io::ErrorKind::NotFound.into()
}

pub(crate) struct MemoryFile {
    name: String,
    bytes: Bytes,
    device: Arc<Device>,
}

impl File for MemoryFile {
    fn size(&self) -> io::Result<u64> {
        Ok(lock(&self.bytes).len() as u64)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        if len > MOST_FILE {
            return Err(io::ErrorKind::StorageFull.into());
        }
        lock(&self.bytes).resize(len as usize, 0);
        Ok(())
    }

    fn read_some(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        require_granules(buffer.len(), offset);
        let (device, bad) = (&self.device, self.device.bad_byte.load(Relaxed));
        let number = 1 + device.reads.fetch_add(1, Relaxed);
        let during = lock(&device.during_read).take_if(|(at, _)| *at == number);
        during.into_iter().for_each(|(_, during)| during());
        let bytes = lock(&self.bytes);
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        let len = rest.len().min(buffer.len());
        let is_bad_file = match &*lock(&device.bad_files) {
            Some(begin) => self.name.starts_with(begin),
            // The control file is smaller than a segment that is not.
            None => bytes.len() != CONTROL_FILE,
        };
        let is_bad = (offset..offset + len as u64).contains(&bad) && is_bad_file;
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
        device.largest_read.fetch_max(len as u64, Relaxed);
        Ok(len)
    }

    fn write_some(&self, bytes: &[u8], offset: u64, durability: Durability) -> io::Result<usize> {
        require_granules(bytes.len(), offset);
        let device = &self.device;
        if durability == Durability::OnReturn {
            let during = lock(&device.during).take();
            during.into_iter().for_each(|during| during());
        }
        let end = offset + bytes.len() as u64;
        device.note(Call::Write {
            name: self.name.clone(),
            range: offset..end,
            durability,
        });
        let mut all = lock(&self.bytes);
        let len = all.len().max(end as usize);
        all.resize(len, 0);
        all[offset as usize..end as usize].copy_from_slice(bytes);
        device.written.fetch_add(bytes.len() as u64, Relaxed);
        device.largest_write.fetch_max(bytes.len() as u64, Relaxed);
        Ok(bytes.len())
    }

    fn settle(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn write_atomic(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_some(bytes, offset, Durability::Later).map(drop)
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

    fn process(&self) -> u64 {
        self.device.process.load(Relaxed)
    }

    fn create(&self, name: &str) -> io::Result<MemoryFile> {
        refusal(&self.device.no_create)?;
        let bytes = Bytes::default();
        lock(&self.files).insert(name.to_owned(), bytes.clone());
        Ok(self.file(name, bytes))
    }

    fn open(&self, name: &str) -> io::Result<MemoryFile> {
        let files = lock(&self.files);
        let bytes = files.get(name).ok_or_else(absent)?;
        Ok(self.file(name, bytes.clone()))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.device.note(Call::Rename(to.to_owned()));
        let mut files = lock(&self.files);
        let bytes = files.remove(from).ok_or_else(absent)?;
        files.insert(to.to_owned(), bytes);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.device.note(Call::Remove(name.to_owned()));
        refusal(&self.device.no_remove)?;
        let removed = lock(&self.files).remove(name);
        removed.map(drop).ok_or_else(absent)
    }

    fn sync(&self) -> io::Result<()> {
        self.device.note(Call::Sync);
        if self.device.no_sync.load(Relaxed) {
            return Err(io::Error::other("the directory cannot be synced"));
        }
        Ok(())
    }

    fn available(&self) -> Option<u64> {
        *lock(&self.device.available)
    }

    fn device(&self) -> io::Result<u64> {
        Ok(self.device.id.load(Relaxed))
    }

    fn granule(&self) -> io::Result<u32> {
        Ok(self.device.granule.load(Relaxed))
    }

    fn atomic_writes(&self) -> io::Result<RangeInclusive<u32>> {
        Ok(GRANULE..=GRANULE << 5)
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
