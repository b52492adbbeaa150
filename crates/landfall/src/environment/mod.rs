//! What the engine asks of the world: files in one directory, threads, time and chance.
//!
//! [`Storage`] is the directory, [`Environment`] everything else that is not computing. There is one implementation
//! for programs, [`System`], over a [`Storage`] of this machine: [`Linux`](linux::Linux) with direct I/O, or
//! [`Portable`](portable::Portable) on the standard library alone. Tests have a simulator that loses, tears,
//! reorders, fails and damages, and decides which thread runs next, all from a seed. Nothing else in the engine
//! reads a clock, starts a thread or touches a file.

mod buffer;
#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod linux;
#[cfg(any(not(target_os = "linux"), feature = "portable"))]
mod portable;
mod storage;
mod system;

use std::io;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::time::Duration;

pub(crate) use buffer::Buffer;
pub(crate) use storage::{ALIGNMENT, Durability, File, Method, Storage};
pub(crate) use system::System;

/// The files of this machine.
#[cfg(all(target_os = "linux", not(feature = "portable")))]
pub(crate) type Disk = linux::Linux;
/// The files of this machine.
#[cfg(any(not(target_os = "linux"), feature = "portable"))]
pub(crate) type Disk = portable::Portable;

/// This machine, and a directory of it.
pub(crate) type Machine = System<Disk>;

/// A directory of this machine, which may be yet to make.
pub(crate) fn machine(directory: &Path) -> Machine {
    System::new(Disk::new(directory, false))
}

/// A directory of this machine, in which nothing is changed: files are opened to be read, and none is made.
pub(crate) fn read_only_machine(directory: &Path) -> Machine {
    System::new(Disk::new(directory, true))
}

/// A file of an environment's directory.
pub(crate) type FileOf<E> = <<E as Environment>::Storage as Storage>::File;

/// Everything that is not computing.
pub(crate) trait Environment: Clone + Send + Sync + 'static {
    /// A directory.
    type Storage: Storage;
    /// A lock.
    type Mutex<T: Send + 'static>: Send + Sync;
    /// A lock that is held.
    type Guard<'a, T: Send + 'static>: DerefMut<Target = T>;
    /// A lock that many can hold to look, or one to change.
    type RwLock<T: Send + Sync + 'static>: Send + Sync;
    /// Such a lock, held to look.
    type Shared<'a, T: Send + Sync + 'static>: Deref<Target = T>;
    /// Such a lock, held to change.
    type Exclusive<'a, T: Send + Sync + 'static>: DerefMut<Target = T>;
    /// What threads that hold a lock wait for.
    type Condvar: Send + Sync;
    /// A number that threads without a lock wait for to be raised.
    type Epochs: Send + Sync;
    /// A thread that was started.
    type Thread: Send;

    /// The directory.
    fn storage(&self) -> &Self::Storage;

    /// A lock around `value`.
    fn mutex<T: Send + 'static>(value: T) -> Self::Mutex<T>;
    /// Takes a lock.
    fn lock<T: Send + 'static>(mutex: &Self::Mutex<T>) -> Self::Guard<'_, T>;
    /// A lock around `value`, to look or to change.
    fn rw_lock<T: Send + Sync + 'static>(value: T) -> Self::RwLock<T>;
    /// Takes it to look.
    fn share<T: Send + Sync + 'static>(lock: &Self::RwLock<T>) -> Self::Shared<'_, T>;
    /// Takes it to change.
    fn exclude<T: Send + Sync + 'static>(lock: &Self::RwLock<T>) -> Self::Exclusive<'_, T>;
    /// A condition.
    fn condvar() -> Self::Condvar;
    /// Waits until somebody says so, and now and then without reason.
    fn wait<'a, T: Send + 'static>(
        condvar: &Self::Condvar,
        guard: Self::Guard<'a, T>,
    ) -> Self::Guard<'a, T>;
    /// Wakes one that waits.
    fn notify_one(condvar: &Self::Condvar);
    /// Wakes all that wait.
    fn notify_all(condvar: &Self::Condvar);
    /// Such a number, at first 0.
    fn epochs() -> Self::Epochs;
    /// What it is.
    fn epoch(epochs: &Self::Epochs) -> u32;
    /// Waits until it is another than `epoch`, or for so long, and now and then returns without reason.
    fn wait_for_epoch(epochs: &Self::Epochs, epoch: u32, at_most: Option<Duration>);
    /// Raises it and wakes one that waits, and whoever has asked for it and does not wait yet.
    fn raise_for_one(epochs: &Self::Epochs);
    /// Raises it and wakes all.
    fn raise_for_all(epochs: &Self::Epochs);
    /// Starts a thread.
    fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<Self::Thread>;
    /// Waits for a thread's end.
    fn join(thread: Self::Thread);
    /// Lets others go first.
    #[cfg(any(test, feature = "mistakes"))]
    fn yield_now(&self);
    /// Time since some moment.
    fn now(&self) -> Duration;
    /// A number that nobody else has.
    fn random(&self) -> u64;

    /// Whether this mistake is to be made: the tests must find each of them.
    #[cfg(any(test, feature = "mistakes"))]
    fn is_planted(&self, _: crate::mistakes::Fault) -> bool {
        false
    }
}

/// Whether the environment makes this mistake: never, but in tests that must find it.
#[cfg(any(test, feature = "mistakes"))]
macro_rules! planted {
    ($environment:expr, $fault:ident) => {
        $environment.is_planted(crate::mistakes::Fault::$fault)
    };
}

/// Whether the environment makes this mistake: never, but in tests that must find it.
#[cfg(not(any(test, feature = "mistakes")))]
macro_rules! planted {
    ($environment:expr, $fault:ident) => {
        false
    };
}

pub(crate) use planted;
