//! A directory in memory, for which opening a log costs next to nothing.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{
    Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use landfall::environment::{Durability, Environment, File, Method, System};

/// The granule of whatever is in it.
pub const GRANULE: u32 = 512;
/// Bytes of the largest file that there is memory for.
const MOST_FILE: u64 = 1 << 20;

type Bytes = Arc<Mutex<Vec<u8>>>;

#[derive(Clone, Default)]
pub struct Memory(Arc<Inner>);

#[derive(Default)]
struct Inner {
    files: Mutex<BTreeMap<String, Bytes>>,
    clock: AtomicU64,
}

impl Memory {
    pub fn new(files: BTreeMap<String, Vec<u8>>) -> Memory {
        let files = files
            .into_iter()
            .map(|(name, bytes)| (name, Arc::new(Mutex::new(bytes))));
        Memory(Arc::new(Inner {
            files: Mutex::new(files.collect()),
            clock: AtomicU64::new(0),
        }))
    }

    /// What it holds now.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let files = lock(&self.0.files);
        let copies = files
            .iter()
            .map(|(name, bytes)| (name.clone(), lock(bytes).clone()));
        copies.collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn absent() -> io::Error {
    io::ErrorKind::NotFound.into()
}

pub struct MemoryFile(Bytes);

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

    fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let bytes = lock(&self.0);
        let found = bytes.get(offset as usize..offset as usize + buffer.len());
        buffer.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write(&self, bytes: &[u8], offset: u64, _: Durability) -> io::Result<()> {
        let mut all = lock(&self.0);
        let end = offset as usize + bytes.len();
        let len = all.len().max(end);
        all.resize(len, 0);
        all[offset as usize..end].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Environment for Memory {
    type File = MemoryFile;
    type Mutex<T: Send + 'static> = Mutex<T>;
    type Guard<'a, T: Send + 'static> = MutexGuard<'a, T>;
    type RwLock<T: Send + Sync + 'static> = RwLock<T>;
    type Shared<'a, T: Send + Sync + 'static> = RwLockReadGuard<'a, T>;
    type Exclusive<'a, T: Send + Sync + 'static> = RwLockWriteGuard<'a, T>;
    type Condvar = Condvar;
    type Gate = AtomicU32;
    type Thread = JoinHandle<()>;

    fn make_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_parent(&self) -> io::Result<()> {
        Ok(())
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(lock(&self.0.files).keys().cloned().collect())
    }

    fn lock_directory(&self) -> io::Result<bool> {
        Ok(true)
    }

    fn unlock_directory(&self) {}

    fn create(&self, name: &str) -> io::Result<MemoryFile> {
        let bytes = Bytes::default();
        lock(&self.0.files).insert(name.to_owned(), bytes.clone());
        Ok(MemoryFile(bytes))
    }

    fn open(&self, name: &str) -> io::Result<MemoryFile> {
        let files = lock(&self.0.files);
        Ok(MemoryFile(files.get(name).ok_or_else(absent)?.clone()))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = lock(&self.0.files);
        let bytes = files.remove(from).ok_or_else(absent)?;
        files.insert(to.to_owned(), bytes);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let removed = lock(&self.0.files).remove(name);
        removed.map(drop).ok_or_else(absent)
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn device(&self) -> io::Result<u64> {
        Ok(1)
    }

    fn granule(&self) -> io::Result<u32> {
        Ok(GRANULE)
    }

    fn calibrate(&self, _: &MemoryFile, _: u64, _: u32) -> io::Result<Method> {
        Ok(Method::DirectDsync)
    }

    fn use_method(&self, _: Method) {}

    fn mutex<T: Send + 'static>(value: T) -> Mutex<T> {
        System::mutex(value)
    }

    fn lock<T: Send + 'static>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        System::lock(mutex)
    }

    fn rw_lock<T: Send + Sync + 'static>(value: T) -> RwLock<T> {
        System::rw_lock(value)
    }

    fn share<T: Send + Sync + 'static>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
        System::share(lock)
    }

    fn exclude<T: Send + Sync + 'static>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
        System::exclude(lock)
    }

    fn condvar() -> Condvar {
        System::condvar()
    }

    fn wait<'a, T: Send + 'static>(
        condvar: &Condvar,
        guard: Self::Guard<'a, T>,
    ) -> Self::Guard<'a, T> {
        System::wait(condvar, guard)
    }

    fn notify_one(condvar: &Condvar) {
        System::notify_one(condvar);
    }

    fn notify_all(condvar: &Condvar) {
        System::notify_all(condvar);
    }

    fn gate() -> AtomicU32 {
        System::gate()
    }

    fn openings(gate: &AtomicU32) -> u32 {
        System::openings(gate)
    }

    fn wait_at(gate: &AtomicU32, openings: u32, at_most: Option<Duration>) {
        System::wait_at(gate, openings, at_most);
    }

    fn open_for_one(gate: &AtomicU32) {
        System::open_for_one(gate);
    }

    fn open_for_all(gate: &AtomicU32) {
        System::open_for_all(gate);
    }

    fn spawn(
        &self,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        thread::Builder::new().name(name.to_owned()).spawn(work)
    }

    fn join(thread: JoinHandle<()>) {
        thread.join().expect("a thread of the log does not panic");
    }

    fn yield_now(&self) {
        thread::yield_now();
    }

    fn now(&self) -> Duration {
        Duration::from_micros(self.0.clock.fetch_add(1, Ordering::Relaxed))
    }

    fn random(&self) -> u64 {
        7
    }
}
