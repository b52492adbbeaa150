//! The durable log.
//!
//! - `format` are its bytes;
//! - `control` and `files` are what lies in its directory; `scan`, `batch_tracker`, `batch_assembler` and `examine` tell
//!   what that holds, and change nothing;
//! - `directory` opens or makes it; `segments`, `preallocator` and `zeros` make segments ahead of need;
//! - `group` is what is gathered, `gathering` says for how long, `group_writer` writes it; `shared` is what all users
//!   share, `append` and `commit` are what they do with it, `event_count` and `waiters` those who wait;
//! - `reader` reads records back; `counters` says what was done; `inspect` looks from outside, `salvage` copies what a
//!   damaged one still has.

mod ahead;
pub(crate) mod append;
#[cfg(test)]
mod bad_reads;
pub(crate) mod batch_assembler;
mod batch_tracker;
mod commit;
mod control;
mod counters;
#[cfg(test)]
mod cut_off;
#[cfg(test)]
mod damage;
pub(crate) mod directory;
pub(crate) mod event_count;
pub(crate) mod examine;
mod files;
#[cfg(test)]
mod flights;
pub(crate) mod format;
mod future;
mod gathering;
mod group;
mod group_writer;
mod inspect;
pub(crate) mod interval;
#[cfg(test)]
mod invariants;
#[cfg(test)]
mod opening;
mod preallocator;
#[cfg(test)]
mod public;
pub(crate) mod reader;
#[cfg(test)]
mod reads;
pub(crate) mod salvage;
#[cfg(test)]
mod salvaging;
mod scan;
mod segments;
pub(crate) mod shared;
pub(crate) mod waiters;
#[cfg(test)]
mod without_control;
mod zeros;

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

pub use counters::{Counters, FlushTimes};
pub use future::Commit;
pub use inspect::{Block, Fragment, Inspection, SegmentFile};
pub use salvage::{Missing, Salvage};

use self::append::Room;
use self::format::Kind;
use self::shared::Shared;
use crate::environment::{Environment, Machine, machine};
use crate::{Error, Options};

/// The number of a record (log sequence number). The first record of a log is 1, the next one 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl Lsn {
    /// The number of the record behind it. No log comes to the largest, which has none behind it.
    #[must_use]
    pub fn next(self) -> Lsn {
        Lsn(self.0.saturating_add(1))
    }
}

impl From<u64> for Lsn {
    fn from(number: u64) -> Lsn {
        Lsn(number)
    }
}

impl From<Lsn> for u64 {
    fn from(lsn: Lsn) -> u64 {
        lsn.0
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A durable log in its own directory. Records are appended at its end and truncated at its beginning.
///
/// A record is *durable* once a commit of it has returned: it survives a power cut, whole and in its place. A record
/// that was not committed may survive one, but never without all records before it.
///
/// Many threads can call all methods at once. Dropping the log commits what was appended. [`close`](Log::close) does the
/// same and returns whether that succeeded.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path().join("log");
/// use landfall::{Log, Lsn, Options};
///
/// let log = Log::open(&directory, Options::default())?;
/// let first = log.append_durable(b"a record that has made landfall")?;
/// log.append(b"one that has not yet")?;
/// log.commit()?;
///
/// let mut records = log.read(first)?;
/// while let Some(record) = records.next()? {
///     println!("{}: {} bytes", record.lsn, record.bytes.len());
/// }
/// # assert_eq!(log.next_lsn(), Lsn(3));
/// # Ok(())
/// # }
/// ```
pub struct Log {
    handle: Handle<Machine>,
}

impl Log {
    /// Opens the log in `directory`, or makes one there. It makes the directory if its parent exists.
    ///
    /// Opening reads the whole log, about a gigabyte a second, and compares it with its checksums. It changes nothing if
    /// it returns one of these:
    ///
    /// - [`Error::Corrupt`]: the log is damaged.
    /// - [`Error::NotALog`]: the directory holds other files.
    /// - [`Error::Version`]: the log has another format version.
    /// - [`Error::Locked`]: another handle has the log open.
    ///
    /// Open it after forking: what was opened before writes nothing for the other process ([`Error::Forked`]).
    pub fn open(directory: impl AsRef<Path>, options: Options) -> Result<Log, Error> {
        let machine = machine(directory.as_ref());
        directory::check_for_any_disk(&machine, &options)?;
        let handle = Handle::open(&machine, options)?;
        Ok(Log { handle })
    }

    /// Appends a record of any length. It becomes durable with a commit.
    ///
    /// Blocks while buffers are full, or a segment is being made. Returns [`Error::NoSpace`] if the disk is full; then
    /// nothing was appended. If the space ends within a record or a batch of more than a megabyte, half a buffer or a segment,
    /// the handle is [`Error::Poisoned`] instead: open the log again.
    pub fn append(&self, record: &[u8]) -> Result<Lsn, Error> {
        self.handle.append(record)
    }

    /// Appends several records as a batch, and returns their LSNs. After a power cut all of them are there, or none.
    pub fn append_batch(&self, records: &[&[u8]]) -> Result<Range<Lsn>, Error> {
        self.handle.append_batch(records)
    }

    /// Makes everything durable that was appended so far. Returns the LSN of the next record.
    pub fn commit(&self) -> Result<Lsn, Error> {
        self.handle.commit()
    }

    /// Makes everything durable up to and including this record.
    pub fn commit_to(&self, lsn: Lsn) -> Result<(), Error> {
        self.handle.commit_to(lsn)
    }

    /// Appends a record and waits until it is durable.
    pub fn append_durable(&self, record: &[u8]) -> Result<Lsn, Error> {
        self.handle.append_durable(record)
    }

    /// Appends a record. `done` is called when it is durable, or when this handle can no longer make it so.
    ///
    /// A thread of the log calls `done`, or one that appends or commits. `done` must not block, use this log, or own it.
    pub fn append_then(
        &self,
        record: &[u8],
        done: impl FnOnce(Result<Lsn, Error>) + Send + 'static,
    ) -> Result<Lsn, Error> {
        self.handle.append_then(record, done)
    }

    /// Appends a record and returns a future that is ready when it is durable. Blocks as [`append`](Log::append) does.
    pub fn append_async(&self, record: &[u8]) -> Result<Commit, Error> {
        self.handle.append_async(record)
    }

    /// Reads durable records from `from` on, which may be the next record.
    ///
    /// Returns [`Error::Truncated`] if that record was truncated.
    pub fn read(&self, from: Lsn) -> Result<Reader, Error> {
        let records = self.handle.read(from)?;
        Ok(Reader { records })
    }

    /// Reads as [`read`](Log::read) does, and waits for more at the end, until the log is closed.
    pub fn tail(&self, from: Lsn) -> Result<Tail, Error> {
        let records = self.handle.read(from)?;
        Ok(Tail { records })
    }

    /// Discards the records before `lsn`, which must not exceed [`durable_end`](Log::durable_end). Segments without
    /// other records are used again.
    pub fn truncate_before(&self, lsn: Lsn) -> Result<(), Error> {
        self.handle.truncate_before(lsn)
    }

    /// The LSN of the first record that was not truncated, or of the next record if there is none.
    pub fn first_lsn(&self) -> Lsn {
        self.handle.first_lsn()
    }

    /// The LSN behind the last durable record. Every record before it is durable.
    pub fn durable_end(&self) -> Lsn {
        self.handle.durable_end()
    }

    /// The LSN of the next record that is appended.
    pub fn next_lsn(&self) -> Lsn {
        self.handle.next_lsn()
    }

    /// Counts of what was done since the log was opened.
    pub fn counters(&self) -> Counters {
        self.handle.shared.counters()
    }

    /// Commits what was appended, records the clean end, and unlocks the directory. Of a log that was closed, even the
    /// loss of its last record is reported when it is opened.
    pub fn close(self) -> Result<(), Error> {
        self.handle.close()
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.fmt(f)
    }
}

/// A log wherever it is: on this machine, or in a test's simulator. Dropped, it is closed.
pub(crate) struct Handle<E: Environment> {
    pub shared: Arc<Shared<E>>,
}

impl<E: Environment> Handle<E> {
    pub fn open(environment: &E, options: Options) -> Result<Handle<E>, Error> {
        let shared = directory::open(environment, options, 1, Kind::Log)?;
        Ok(Handle { shared })
    }

    pub fn append(&self, record: &[u8]) -> Result<Lsn, Error> {
        self.append_in(Room::Usual, record)
    }

    pub fn append_in(&self, room: Room, record: &[u8]) -> Result<Lsn, Error> {
        self.shared.append(&[record], None, room).map(Lsn)
    }

    pub fn append_batch(&self, records: &[&[u8]]) -> Result<Range<Lsn>, Error> {
        let first = self.shared.append(records, None, Room::Usual)?;
        Ok(Lsn(first)..Lsn(first + records.len() as u64))
    }

    pub fn commit(&self) -> Result<Lsn, Error> {
        let end = self.shared.appended();
        self.shared.commit(end)?;
        Ok(Lsn(end))
    }

    pub fn commit_to(&self, lsn: Lsn) -> Result<(), Error> {
        let end = self.shared.appended();
        if lsn.0 >= end {
            return Err(Error::NotThereYet {
                asked: lsn,
                next: Lsn(end),
            });
        }
        self.shared.commit(lsn.0 + 1)
    }

    pub fn append_durable(&self, record: &[u8]) -> Result<Lsn, Error> {
        self.shared.append_durable(record).map(Lsn)
    }

    pub fn append_then(
        &self,
        record: &[u8],
        done: impl FnOnce(Result<Lsn, Error>) + Send + 'static,
    ) -> Result<Lsn, Error> {
        self.append_then_in(Room::Usual, record, done)
    }

    pub fn append_then_in(
        &self,
        room: Room,
        record: &[u8],
        done: impl FnOnce(Result<Lsn, Error>) + Send + 'static,
    ) -> Result<Lsn, Error> {
        let done = Box::new(done);
        self.shared.append(&[record], Some(done), room).map(Lsn)
    }

    pub fn append_async(&self, record: &[u8]) -> Result<Commit, Error> {
        let (commit, done) = Commit::new();
        self.append_then(record, done)?;
        Ok(commit)
    }

    pub fn read(&self, from: Lsn) -> Result<reader::Reader<E>, Error> {
        reader::Reader::new(&self.shared, from.0)
    }

    pub fn truncate_before(&self, lsn: Lsn) -> Result<(), Error> {
        self.shared.truncate_before(lsn.0)
    }

    pub fn first_lsn(&self) -> Lsn {
        Lsn(self.shared.first_lsn())
    }

    pub fn durable_end(&self) -> Lsn {
        Lsn(self.shared.durable_lsn())
    }

    pub fn next_lsn(&self) -> Lsn {
        Lsn(self.shared.appended())
    }

    pub fn close(&self) -> Result<(), Error> {
        self.shared.close()
    }
}

impl<E: Environment> Drop for Handle<E> {
    fn drop(&mut self) {
        if let Err(error) = self.shared.close() {
            tracing::error!(%error, "what was appended to the log could not be committed");
        }
    }
}

impl<E: Environment> fmt::Debug for Handle<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("log", &self.shared.log)
            .field("epoch", &self.shared.epoch)
            .field("durable_end", &self.durable_end())
            .finish_non_exhaustive()
    }
}

/// A record that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its LSN.
    pub lsn: Lsn,
    /// The bytes that were appended.
    pub bytes: &'a [u8],
}

fn record((lsn, bytes): (u64, &[u8])) -> Record<'_> {
    Record {
        lsn: Lsn(lsn),
        bytes,
    }
}

/// Reads durable records in order. [`Log::read`] makes one.
pub struct Reader {
    records: reader::Reader<Machine>,
}

impl Reader {
    /// The next durable record, or `None` if there is none yet. It can be called again later, also when the log was closed.
    ///
    /// A record borrows from the reader: `while let Some(record) = records.next()? { … }`.
    ///
    /// Returns [`Error::Truncated`] if the record was truncated meanwhile. No record is ever passed over.
    #[expect(
        clippy::should_implement_trait,
        reason = "what an iterator gives cannot borrow from it"
    )]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, Error> {
        Ok(self.records.next()?.map(record))
    }
}

/// Reads durable records in order, and waits for more. [`Log::tail`] makes one.
pub struct Tail {
    records: reader::Reader<Machine>,
}

impl Tail {
    /// Waits for the next durable record. Returns `None` once the log was closed, or can no longer be written.
    ///
    /// Returns [`Error::Truncated`] if the record was truncated meanwhile. No record is ever passed over.
    #[expect(
        clippy::should_implement_trait,
        reason = "what an iterator gives cannot borrow from it"
    )]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, Error> {
        Ok(self.records.next_or_wait()?.map(record))
    }
}
