//! The engine's environment on a simulated disk, with threads that a seed schedules.
//!
//! Each operation of the disk is a moment at which another thread may go on, before and after it.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex as Plain};
use std::time::Duration;

use fastrand::Rng;
use landfall::environment::{Durability, Environment, Fault, File, Method};
use shuttle::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use shuttle::thread::{self, JoinHandle};

use crate::disk::Disk;

#[derive(Clone)]
pub struct Simulated(Arc<Inner>);

struct Inner {
    disk: Disk,
    process: u64,
    planted: Option<Fault>,
    rng: Plain<Rng>,
    clock: AtomicU64,
}

impl Simulated {
    /// For the process that lives on this disk.
    pub fn new(disk: &Disk, planted: Option<Fault>, seed: u64) -> Simulated {
        Simulated(Arc::new(Inner {
            process: disk.process(),
            disk: disk.clone(),
            planted,
            rng: Plain::new(Rng::with_seed(seed)),
            clock: AtomicU64::new(0),
        }))
    }

    fn of(&self, inode: usize) -> SimulatedFile {
        SimulatedFile {
            environment: self.clone(),
            inode,
        }
    }
}

pub struct SimulatedFile {
    environment: Simulated,
    inode: usize,
}

impl SimulatedFile {
    fn inner(&self) -> &Inner {
        &self.environment.0
    }
}

/// How often it was opened, and those who wait for that.
#[derive(Default)]
pub struct Gate {
    openings: Mutex<u32>,
    opened: Condvar,
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

    fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.inner()
            .disk
            .read(self.inner().process, self.inode, buffer, offset)
    }

    fn write(&self, bytes: &[u8], offset: u64, durability: Durability) -> io::Result<()> {
        others();
        let inner = self.inner();
        let mut rng = inner.rng.lock().unwrap().fork();
        let end = offset + bytes.len() as u64;
        if inner.disk.len(inner.process, self.inode)? < end {
            inner.disk.allocate(inner.process, self.inode, end)?;
        }
        inner
            .disk
            .write(inner.process, self.inode, bytes, offset, &mut rng)?;
        others();
        match durability {
            Durability::Later => Ok(()),
            Durability::OnReturn => {
                inner
                    .disk
                    .settle(inner.process, self.inode, offset, bytes.len())
            }
        }
    }

    fn sync(&self) -> io::Result<()> {
        others();
        let synced = self.inner().disk.sync(self.inner().process, self.inode);
        others();
        synced
    }
}

impl Environment for Simulated {
    type File = SimulatedFile;
    type Mutex<T: Send + 'static> = Mutex<T>;
    type Guard<'a, T: Send + 'static> = MutexGuard<'a, T>;
    type RwLock<T: Send + Sync + 'static> = RwLock<T>;
    type Shared<'a, T: Send + Sync + 'static> = RwLockReadGuard<'a, T>;
    type Exclusive<'a, T: Send + Sync + 'static> = RwLockWriteGuard<'a, T>;
    type Condvar = Condvar;
    type Gate = Gate;
    type Thread = JoinHandle<()>;

    fn make_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_parent(&self) -> io::Result<()> {
        Ok(())
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = self.0.disk.names(self.0.process)?;
        // A directory has no order.
        self.0.rng.lock().unwrap().shuffle(&mut names);
        Ok(names)
    }

    fn lock_directory(&self) -> io::Result<bool> {
        self.0.disk.lock(self.0.process)
    }

    fn unlock_directory(&self) {
        self.0.disk.unlock(self.0.process);
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

    fn sync_directory(&self) -> io::Result<()> {
        others();
        self.0.disk.sync_names(self.0.process)
    }

    fn device(&self) -> io::Result<u64> {
        Ok(1)
    }

    fn granule(&self) -> io::Result<u32> {
        Ok(512)
    }

    fn calibrate(&self, _: &SimulatedFile, _: u64, _: u32) -> io::Result<Method> {
        Ok(Method::DirectDsync)
    }

    fn use_method(&self, _: Method) {}

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

    fn gate() -> Gate {
        Gate::default()
    }

    fn openings(gate: &Gate) -> u32 {
        *gate.openings.lock().unwrap()
    }

    fn wait_at(gate: &Gate, openings: u32, at_most: Option<Duration>) {
        if at_most.is_some() {
            for _ in 0..PATIENCE {
                if Simulated::openings(gate) != openings {
                    return;
                }
                others();
            }
            return;
        }
        let mut now = gate.openings.lock().unwrap();
        while *now == openings {
            now = gate.opened.wait(now).unwrap();
        }
    }

    fn open_for_one(gate: &Gate) {
        *gate.openings.lock().unwrap() += 1;
        gate.opened.notify_one();
    }

    fn open_for_all(gate: &Gate) {
        *gate.openings.lock().unwrap() += 1;
        gate.opened.notify_all();
    }

    fn spawn(
        &self,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
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
