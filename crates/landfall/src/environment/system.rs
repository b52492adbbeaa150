//! Threads, locks, time and chance of this machine.

use std::hash::{BuildHasher, RandomState};
use std::hint;
use std::io;
use std::sync::{
    Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
    TryLockError,
};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{Environment, Storage};

/// How often whoever finds a lock held looks again at once: who holds it is mostly running, and done in a microsecond or two.
const SPINS: usize = 20;
/// How often it lets others run then, before it sleeps.
const YIELDS: usize = 4;
/// Bytes of a thread's stack, since code of the users runs on it: as much as a program's first thread has on Linux.
const STACK: usize = 8 << 20;

/// This machine, with a directory.
#[derive(Clone)]
pub(crate) struct System<S> {
    storage: S,
    begin: Arc<Instant>,
}

impl<S: Storage> System<S> {
    pub fn new(storage: S) -> System<S> {
        System {
            storage,
            begin: Arc::new(Instant::now()),
        }
    }
}

impl<S: Storage> Environment for System<S> {
    type Storage = S;
    type Mutex<T: Send + 'static> = Mutex<T>;
    type Guard<'a, T: Send + 'static> = MutexGuard<'a, T>;
    type RwLock<T: Send + Sync + 'static> = RwLock<T>;
    type Shared<'a, T: Send + Sync + 'static> = RwLockReadGuard<'a, T>;
    type Exclusive<'a, T: Send + Sync + 'static> = RwLockWriteGuard<'a, T>;
    type Condvar = Condvar;
    type Epochs = Epochs;
    type Thread = JoinHandle<()>;

    fn storage(&self) -> &S {
        &self.storage
    }

    fn mutex<T: Send + 'static>(value: T) -> Mutex<T> {
        Mutex::new(value)
    }

    fn lock<T: Send + 'static>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        // Whoever holds it is mostly about to give it back, once it has a processor: sleeping and being woken takes longer.
        for round in 0..SPINS + YIELDS {
            match mutex.try_lock() {
                Ok(guard) => return guard,
                Err(TryLockError::Poisoned(error)) => return error.into_inner(),
                Err(TryLockError::WouldBlock) if round < SPINS => hint::spin_loop(),
                Err(TryLockError::WouldBlock) => thread::yield_now(),
            }
        }
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

    fn epochs() -> Epochs {
        Epochs::default()
    }

    fn epoch(epochs: &Epochs) -> u32 {
        epochs.get()
    }

    fn wait_for_epoch(epochs: &Epochs, epoch: u32, at_most: Option<Duration>) {
        epochs.wait(epoch, at_most);
    }

    fn raise_for_one(epochs: &Epochs) {
        epochs.raise(false);
    }

    fn raise_for_all(epochs: &Epochs) {
        epochs.raise(true);
    }

    fn spawn(
        &self,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        let thread = thread::Builder::new().name(name.to_owned());
        // Who sets the variable knows better.
        let thread = match std::env::var_os("RUST_MIN_STACK") {
            Some(_) => thread,
            None => thread.stack_size(STACK),
        };
        thread.spawn(work)
    }

    fn join(thread: JoinHandle<()>) {
        // Who is called back by it may be the one that closes the log.
        if thread.thread().id() != thread::current().id() {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }

    #[cfg(any(test, feature = "mistakes"))]
    fn yield_now(&self) {
        thread::yield_now();
    }

    fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    fn random(&self) -> u64 {
        // Not a generator that the program may have seeded, nor one that is the same in a process that was forked.
        RandomState::new().hash_one(std::process::id())
    }

    #[cfg(feature = "mistakes")]
    fn is_planted(&self, fault: crate::mistakes::Fault) -> bool {
        crate::mistakes::is_planted(fault)
    }
}

#[cfg(all(target_os = "linux", not(feature = "portable")))]
pub(crate) use futex::Epochs;
#[cfg(any(not(target_os = "linux"), feature = "portable"))]
pub(crate) use locked::Epochs;

/// By a futex: who is woken takes no lock.
#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod futex {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use rustix::thread::futex::{Flags, Timespec, wait, wake};

    #[derive(Default)]
    pub(crate) struct Epochs(AtomicU32);

    impl Epochs {
        pub fn get(&self) -> u32 {
            self.0.load(Ordering::SeqCst)
        }

        pub fn wait(&self, epoch: u32, at_most: Option<Duration>) {
            let at_most = at_most.and_then(|time| Timespec::try_from(time).ok());
            // Whatever it says, it is over: raised meanwhile, interrupted, the time has passed.
            let _ = wait(&self.0, Flags::PRIVATE, epoch, at_most.as_ref());
        }

        pub fn raise(&self, for_all: bool) {
            self.0.fetch_add(1, Ordering::SeqCst);
            let most = if for_all { i32::MAX as u32 } else { 1 };
            let _ = wake(&self.0, Flags::PRIVATE, most);
        }
    }
}

/// By the standard library's own.
#[cfg(any(not(target_os = "linux"), feature = "portable"))]
mod locked {
    use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
    use std::time::Duration;

    #[derive(Default)]
    pub(crate) struct Epochs {
        epoch: Mutex<u32>,
        raised: Condvar,
    }

    impl Epochs {
        fn lock(&self) -> MutexGuard<'_, u32> {
            self.epoch.lock().unwrap_or_else(PoisonError::into_inner)
        }

        pub fn get(&self) -> u32 {
            *self.lock()
        }

        pub fn wait(&self, epoch: u32, at_most: Option<Duration>) {
            let now = self.lock();
            if *now != epoch {
                return;
            }
            // Whatever it says, it is over: raised meanwhile, interrupted, the time has passed.
            match at_most {
                Some(time) => drop(self.raised.wait_timeout(now, time)),
                None => drop(self.raised.wait(now)),
            }
        }

        pub fn raise(&self, for_all: bool) {
            let mut epoch = self.lock();
            *epoch = epoch.wrapping_add(1);
            drop(epoch);
            if for_all {
                self.raised.notify_all();
            } else {
                self.raised.notify_one();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing::memory::Memory;

    #[test]
    fn a_number_is_another_one_whatever_the_program_has_seeded() {
        let system = System::new(Memory::default());
        let number = || {
            fastrand::seed(7);
            system.random()
        };
        assert_ne!(number(), number());
    }
}
