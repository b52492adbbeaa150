//! The engine's environment on a simulated disk, with threads that a seed schedules.
//!
//! Each operation of the disk is a moment at which another thread may go on, before and after it.

use std::io;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex as Plain};
use std::time::Duration;

use fastrand::Rng;
use shuttle::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use shuttle::thread::{self, JoinHandle};

use super::Fault;
use super::disk::Disk;
use crate::environment::{Durability, Environment, File, Method, Storage};

/// How a directory is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub granule: u32,
    pub method: Method,
}

impl Way {
    pub const ALL: [Way; 4] = [
        Way {
            granule: 512,
            method: Method::DirectDsync,
        },
        Way {
            granule: 512,
            method: Method::DirectFdatasync,
        },
        Way {
            granule: 4096,
            method: Method::DirectDsync,
        },
        // Through the page cache, whose device may have smaller blocks.
        Way {
            granule: 4096,
            method: Method::Buffered,
        },
    ];

    pub fn any(rng: &mut Rng) -> Way {
        // The smaller blocks are, the more there is to go wrong.
        Way::ALL[if rng.bool() { 0 } else { rng.usize(0..4) }]
    }

    /// Bytes that the device writes whole.
    pub fn block(self) -> u32 {
        if self.method == Method::Buffered {
            512
        } else {
            self.granule
        }
    }
}

#[derive(Clone)]
pub(crate) struct Simulated(Arc<Inner>);

struct Inner {
    disk: Disk,
    way: Way,
    process: u64,
    planted: Option<Fault>,
    rng: Plain<Rng>,
    clock: AtomicU64,
    /// How many threads are started before starting one fails.
    threads: AtomicU64,
}

impl Simulated {
    /// For the process that lives on this disk.
    pub fn new(disk: &Disk, way: Way, planted: Option<Fault>, seed: u64) -> Simulated {
        Simulated(Arc::new(Inner {
            process: disk.process(),
            disk: disk.clone(),
            way,
            planted,
            rng: Plain::new(Rng::with_seed(seed)),
            clock: AtomicU64::new(0),
            threads: AtomicU64::new(u64::MAX),
        }))
    }

    /// Of the threads that it starts, so many start and the next one does not.
    pub fn fail_thread(self, threads: u64) -> Simulated {
        self.0.threads.store(threads, Ordering::Relaxed);
        self
    }

    fn of(&self, inode: usize) -> SimulatedFile {
        SimulatedFile {
            environment: self.clone(),
            inode,
        }
    }
}

pub(crate) struct SimulatedFile {
    environment: Simulated,
    inode: usize,
}

impl SimulatedFile {
    fn inner(&self) -> &Inner {
        &self.environment.0
    }
}

/// A number, and those who wait for it to be raised.
#[derive(Default)]
pub(crate) struct Epochs {
    epoch: Mutex<u32>,
    raised: Condvar,
}

/// Moments after which a wait that is limited is over.
const PATIENCE: usize = 6;

fn others() {
    thread::yield_now();
}

impl File for SimulatedFile {
    fn size(&self) -> io::Result<u64> {
        self.inner().disk.len(self.inner().process, self.inode)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        others();
        self.inner()
            .disk
            .allocate(self.inner().process, self.inode, len)
    }

    fn read_some(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let inner = self.inner();
        inner.disk.read(inner.process, self.inode, buffer, offset)
    }

    fn write_some(&self, bytes: &[u8], offset: u64, durability: Durability) -> io::Result<usize> {
        others();
        let inner = self.inner();
        let block = u64::from(inner.way.block());
        assert_eq!((offset % block, bytes.len() as u64 % block), (0, 0));
        let written = inner.disk.write(inner.process, self.inode, bytes, offset)?;
        others();
        if durability == Durability::OnReturn && inner.way.method == Method::DirectDsync {
            inner
                .disk
                .settle(inner.process, self.inode, offset, written)?;
        }
        Ok(written)
    }

    fn settle(&self) -> io::Result<()> {
        if self.inner().way.method == Method::DirectDsync {
            Ok(())
        } else {
            self.sync()
        }
    }

    fn sync(&self) -> io::Result<()> {
        others();
        let synced = self.inner().disk.sync(self.inner().process, self.inode);
        others();
        synced
    }

    fn write_atomic(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let promised = self.environment.atomic_writes()?;
        assert!(promised.contains(&(bytes.len() as u32)), "not promised");
        assert!(bytes.len().is_power_of_two() && offset.is_multiple_of(bytes.len() as u64));
        others();
        let inner = self.inner();
        let written = inner
            .disk
            .write_whole(inner.process, self.inode, bytes, offset);
        others();
        written
    }
}

impl Storage for Simulated {
    type File = SimulatedFile;

    fn make_directory(&self) -> io::Result<()> {
        self.0.disk.make(self.0.process)
    }

    fn sync_parent(&self) -> io::Result<()> {
        self.0.disk.sync_parent(self.0.process)
    }

    fn available(&self) -> Option<u64> {
        Some(self.0.disk.space())
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = self.0.disk.names(self.0.process)?;
        // A directory has no order.
        self.0.rng.lock().unwrap().shuffle(&mut names);
        Ok(names)
    }

    fn lock(&self) -> io::Result<bool> {
        self.0.disk.lock(self.0.process)
    }

    fn unlock(&self) {
        self.0.disk.unlock(self.0.process);
    }

    fn process(&self) -> u64 {
        self.0.process
    }

    fn create(&self, name: &str) -> io::Result<SimulatedFile> {
        others();
        Ok(self.of(self.0.disk.create(self.0.process, name)?))
    }

    fn open(&self, name: &str) -> io::Result<SimulatedFile> {
        Ok(self.of(self.0.disk.open(self.0.process, name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        others();
        self.0.disk.rename(self.0.process, from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        others();
        self.0.disk.remove(self.0.process, name)
    }

    fn sync(&self) -> io::Result<()> {
        others();
        self.0.disk.sync_names(self.0.process)
    }

    fn device(&self) -> io::Result<u64> {
        Ok(1)
    }

    fn granule(&self) -> io::Result<u32> {
        Ok(self.0.way.granule)
    }

    fn atomic_writes(&self) -> io::Result<RangeInclusive<u32>> {
        // Through the page cache nothing is promised.
        Ok(match self.0.way.method {
            Method::Buffered => 0..=0,
            _ => self.0.way.granule..=16 << 10,
        })
    }

    fn calibrate(&self, _: &SimulatedFile, _: u64, _: u32) -> io::Result<Method> {
        Ok(self.0.way.method)
    }

    fn use_method(&self, _: Method) {}
}

impl Environment for Simulated {
    type Storage = Simulated;
    type Mutex<T: Send + 'static> = Mutex<T>;
    type Guard<'a, T: Send + 'static> = MutexGuard<'a, T>;
    type RwLock<T: Send + Sync + 'static> = RwLock<T>;
    type Shared<'a, T: Send + Sync + 'static> = RwLockReadGuard<'a, T>;
    type Exclusive<'a, T: Send + Sync + 'static> = RwLockWriteGuard<'a, T>;
    type Condvar = Condvar;
    type Epochs = Epochs;
    type Thread = JoinHandle<()>;

    fn storage(&self) -> &Simulated {
        self
    }

    fn mutex<T: Send + 'static>(value: T) -> Mutex<T> {
        Mutex::new(value)
    }

    fn lock<T: Send + 'static>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap()
    }

    fn rw_lock<T: Send + Sync + 'static>(value: T) -> RwLock<T> {
        RwLock::new(value)
    }

    fn share<T: Send + Sync + 'static>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
        lock.read().unwrap()
    }

    fn exclude<T: Send + Sync + 'static>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
        lock.write().unwrap()
    }

    fn condvar() -> Condvar {
        Condvar::new()
    }

    fn wait<'a, T: Send + 'static>(
        condvar: &Condvar,
        guard: Self::Guard<'a, T>,
    ) -> Self::Guard<'a, T> {
        condvar.wait(guard).unwrap()
    }

    fn notify_one(condvar: &Condvar) {
        condvar.notify_one();
    }

    fn notify_all(condvar: &Condvar) {
        condvar.notify_all();
    }

    fn epochs() -> Epochs {
        Epochs::default()
    }

    fn epoch(epochs: &Epochs) -> u32 {
        *epochs.epoch.lock().unwrap()
    }

    fn wait_for_epoch(epochs: &Epochs, epoch: u32, at_most: Option<Duration>) {
        if at_most.is_some() {
            for _ in 0..PATIENCE {
                if Simulated::epoch(epochs) != epoch {
                    return;
                }
                others();
            }
            return;
        }
        let mut now = epochs.epoch.lock().unwrap();
        while *now == epoch {
            now = epochs.raised.wait(now).unwrap();
        }
    }

    fn raise_for_one(epochs: &Epochs) {
        *epochs.epoch.lock().unwrap() += 1;
        epochs.raised.notify_one();
    }

    fn raise_for_all(epochs: &Epochs) {
        *epochs.epoch.lock().unwrap() += 1;
        epochs.raised.notify_all();
    }

    fn spawn(
        &self,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        let left = self.0.threads.load(Ordering::Relaxed);
        if left == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.0.threads.store(left - 1, Ordering::Relaxed);
        thread::Builder::new().name(name.to_owned()).spawn(work)
    }

    fn join(thread: JoinHandle<()>) {
        thread.join().unwrap();
    }

    fn yield_now(&self) {
        others();
    }

    fn now(&self) -> Duration {
        Duration::from_micros(self.0.clock.fetch_add(1, Ordering::Relaxed))
    }

    fn random(&self) -> u64 {
        self.0.rng.lock().unwrap().u64(..)
    }

    fn is_planted(&self, fault: Fault) -> bool {
        self.0.planted == Some(fault)
    }
}
