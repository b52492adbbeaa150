//! What the engine asks of the world: files in one directory, threads, time and chance.
//!
//! There are two implementations: [`System`], this machine, and the simulator of the tests, which loses,
//! tears, reorders, fails and corrupts, and decides which thread runs next, all from a seed. Nothing else
//! in the engine reads a clock, starts a thread or touches a file.

mod system;

use std::io;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

pub use system::System;

/// When a write must be durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Once the file was synced.
    Later,
    /// When the call returns.
    OnReturn,
}

/// How writes are made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `O_DIRECT`, and a write that is durable when it returns (`RWF_DSYNC`).
    DirectDsync,
    /// `O_DIRECT`, and `fdatasync` behind it.
    DirectFdatasync,
    /// Through the page cache, and `fdatasync` behind it: where direct I/O cannot be had.
    Buffered,
}

impl Method {
    /// As it is called elsewhere: `direct+rwf_dsync`.
    pub fn name(self) -> &'static str {
        match self {
            Method::DirectDsync => "direct+rwf_dsync",
            Method::DirectFdatasync => "direct+fdatasync",
            Method::Buffered => "fdatasync",
        }
    }

    /// As it is kept in a file.
    pub(crate) fn code(self) -> u32 {
        match self {
            Method::DirectDsync => 1,
            Method::DirectFdatasync => 2,
            Method::Buffered => 3,
        }
    }

    pub(crate) fn of_code(code: u32) -> Option<Method> {
        let all = [
            Method::DirectDsync,
            Method::DirectFdatasync,
            Method::Buffered,
        ];
        all.into_iter().find(|method| method.code() == code)
    }
}

/// A file of the directory. Offsets and lengths of writes are multiples of the directory's granule, and
/// buffers begin at multiples of [`landfall_os::ALIGNMENT`].
pub trait File: Send + Sync + 'static {
    /// Bytes that it has.
    fn size(&self) -> io::Result<u64>;
    /// Makes it `len` bytes long, with the space for them.
    fn allocate(&self, len: u64) -> io::Result<()>;
    /// Fills `buffer`, which is aligned as for a write, from `offset` on.
    fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all of `bytes`; a file that ends before them is longer then.
    fn write(&self, bytes: &[u8], offset: u64, durability: Durability) -> io::Result<()>;
    /// Makes durable what was written, and the length.
    fn sync(&self) -> io::Result<()>;
}

/// Everything that is not computing.
pub trait Environment: Clone + Send + Sync + 'static {
    /// An open file.
    type File: File;
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
    /// What threads without a lock wait at until it is opened; it is shut again at once.
    type Gate: Send + Sync;
    /// A thread that was started.
    type Thread: Send;

    /// Makes the directory if it is not there.
    fn make_directory(&self) -> io::Result<()>;
    /// Makes durable that the directory is there.
    fn sync_parent(&self) -> io::Result<()>;
    /// Names of everything in the directory.
    fn names(&self) -> io::Result<Vec<String>>;
    /// Takes the directory for this handle and its clones; `false`: somebody has it.
    fn lock_directory(&self) -> io::Result<bool>;
    /// Gives the directory back.
    fn unlock_directory(&self);
    /// Makes a file that is not there.
    fn create(&self, name: &str) -> io::Result<Self::File>;
    /// Opens a file that is there.
    fn open(&self, name: &str) -> io::Result<Self::File>;
    /// Gives a file another name, which may be that of one that then goes.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes durable which files there are.
    fn sync_directory(&self) -> io::Result<()>;
    /// What the directory is on: another one may want another method.
    fn device(&self) -> io::Result<u64>;
    /// Bytes of which offsets and lengths are multiples, and which a device writes whole.
    fn granule(&self) -> io::Result<u32>;
    /// Which method is the soonest durable for `granule` bytes at `offset` of `file`, which are overwritten.
    fn calibrate(&self, file: &Self::File, offset: u64, granule: u32) -> io::Result<Method>;
    /// Has files that are opened from now on use it.
    fn use_method(&self, method: Method);

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
    /// A gate.
    fn gate() -> Self::Gate;
    /// How often it was opened.
    fn openings(gate: &Self::Gate) -> u32;
    /// Waits until it was opened once more than so often, or for so long, and now and then returns without reason.
    fn wait_at(gate: &Self::Gate, openings: u32, at_most: Option<Duration>);
    /// Opens it for one that waits, and for whoever has asked for its openings and does not wait yet.
    fn open_for_one(gate: &Self::Gate);
    /// Opens it for all.
    fn open_for_all(gate: &Self::Gate);
    /// Starts a thread.
    fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<Self::Thread>;
    /// Waits for a thread's end.
    fn join(thread: Self::Thread);
    /// Lets others go first.
    fn yield_now(&self);
    /// Time since some moment.
    fn now(&self) -> Duration;
    /// A number that nobody else has.
    fn random(&self) -> u64;

    /// Whether this mistake is to be made: the tests must find each of them.
    #[inline]
    fn is_planted(&self, _: Fault) -> bool {
        false
    }
}

/// Mistakes that the engine can be told to make, so that it is seen whether tests catch them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Commits are written and not made durable.
    SkipFlush,
    /// A commit is acknowledged before it is written.
    AcknowledgeEarly,
    /// A sync leaves out the segment before the last.
    SyncLastSegmentOnly,
    /// A commit does not make durable what was appended before it without one.
    ForgetUnsynced,
    /// The epoch is the one of the last time the log was opened.
    KeepEpoch,
    /// A new epoch is written and not made durable before it is used.
    EpochNotDurable,
    /// The directory is not synced when a segment is made.
    SkipDirectorySync,
    /// The length of a new segment is not made durable.
    SkipSegmentSync,
    /// Segments are taken for new records before it is durable that theirs are not needed.
    ReuseBeforeTruncate,
    /// A block's checksum does not depend on the block before.
    UnchainedChecksum,
    /// A block's checksum does not cover the records.
    HeaderChecksumOnly,
    /// A failed flush is tried again as if nothing had happened.
    RetryFlush,
    /// After a failure commits are still acknowledged.
    NotPoisoned,
    /// Recovery takes a batch for whole of which only a part is there.
    TornBatch,
    /// Recovery continues behind a block that is not valid.
    SkipBadBlock,
    /// Recovery takes a damaged block that was durable for the end.
    CutCorruption,
    /// Zeros are still written to a segment that is already in use.
    ZeroBehindWriter,
    /// What is found when a log is opened is taken for durable.
    TrustWhatIsThere,
    /// A snapshot is published before it is durable.
    PublishBeforeSync,
    /// The directory is not synced when a snapshot is published.
    SkipSnapshotDirectorySync,
    /// A snapshot has commands that the log can lose.
    SnapshotAheadOfLog,
    /// The log is truncated before the snapshot is published that makes up for it.
    TruncateBeforePublish,
    /// The first command that is not in a part is asked for when the part can be changed again.
    LateCapture,
    /// The log is truncated up to the newest snapshot, not to the oldest that is kept.
    ForgetOlderSnapshots,
    /// A chunk's checksum is not compared.
    SkipChunkChecksum,
    /// Commands that a part has are applied to it again.
    ApplyTwice,
}

impl Fault {
    /// Those of a log.
    pub const LOG: [Fault; 18] = [
        Fault::SkipFlush,
        Fault::AcknowledgeEarly,
        Fault::SyncLastSegmentOnly,
        Fault::ForgetUnsynced,
        Fault::KeepEpoch,
        Fault::EpochNotDurable,
        Fault::SkipDirectorySync,
        Fault::SkipSegmentSync,
        Fault::ReuseBeforeTruncate,
        Fault::UnchainedChecksum,
        Fault::HeaderChecksumOnly,
        Fault::RetryFlush,
        Fault::NotPoisoned,
        Fault::TornBatch,
        Fault::SkipBadBlock,
        Fault::CutCorruption,
        Fault::ZeroBehindWriter,
        Fault::TrustWhatIsThere,
    ];
    /// Those of a state.
    pub const STATE: [Fault; 8] = [
        Fault::PublishBeforeSync,
        Fault::SkipSnapshotDirectorySync,
        Fault::SnapshotAheadOfLog,
        Fault::TruncateBeforePublish,
        Fault::LateCapture,
        Fault::ForgetOlderSnapshots,
        Fault::SkipChunkChecksum,
        Fault::ApplyTwice,
    ];
}
