//! The durable log.
//!
//! - `format` are its bytes; `buffer` is memory that they are written from;
//! - `control`, `segments`, `maker` and `zeros` are its files, `open` how they are found and made;
//! - `scan`, `units` and `recovery` tell what they hold;
//! - `group` is what is gathered, `driver` writes it; `shared` is what all users share, `append` and `commit`
//!   are what they do with it, `gate` and `waiters` those who wait;
//! - `reader` reads records back; `counters` says what was done; `inspect` looks from outside.

mod append;
pub(crate) mod buffer;
mod commit;
mod control;
mod counters;
mod driver;
pub(crate) mod format;
mod future;
pub(crate) mod gate;
mod group;
mod inspect;
mod maker;
mod open;
mod reader;
mod recovery;
mod scan;
mod segments;
mod shared;
mod units;
pub(crate) mod waiters;
mod zeros;

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

pub use counters::{Counters, FlushTimes};
pub use future::Commit;
pub use inspect::{Block, Fragment, Inspection, SegmentFile};

use self::shared::Shared;
use crate::environment::{Environment, System};
use crate::{Error, Options};

/// The number of a record: 1 for the first that a log ever had, and then one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A durable log in a directory of its own: records are appended at its end, and truncated at its beginning.
///
/// A record is *durable* once a commit of it has returned: it is there after a power cut, whole, in its place.
/// Records that were appended and not committed may be there after one, never without all those before them.
///
/// All methods can be called by many threads at once. Dropped, it commits what was appended; [`close`](Log::close)
/// does so and says whether that worked.
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
/// # assert_eq!(log.next(), Lsn(3));
/// # Ok(())
/// # }
/// ```
pub struct Log<E: Environment = System> {
    shared: Arc<Shared<E>>,
}

impl Log {
    /// Opens the log in `directory`, or makes one there; the directory itself is made if need be, in one that
    /// is there.
    ///
    /// Only one handle at a time can have a log: [`Error::Locked`] otherwise. A directory of anything else, of
    /// another version, or with a log that is damaged is left as it is.
    pub fn open(directory: impl AsRef<Path>, options: Options) -> Result<Log, Error> {
        Log::open_in(&System::new(directory.as_ref()), options)
    }
}

impl<E: Environment> Log<E> {
    /// Opens a log elsewhere than on this machine, as tests do.
    pub fn open_in(environment: &E, options: Options) -> Result<Log<E>, Error> {
        let shared = open::open(environment, options)?;
        Ok(Log { shared })
    }

    /// Appends a record, of any length. It is durable when it is committed.
    ///
    /// Waits while buffers are full, or a segment is made. [`Error::NoSpace`]: nothing was appended.
    pub fn append(&self, record: &[u8]) -> Result<Lsn, Error> {
        self.shared.append(&[record], None).map(Lsn)
    }

    /// Appends several records that are there after a power cut all together, or not at all. Returns their LSNs.
    pub fn append_batch(&self, records: &[&[u8]]) -> Result<Range<u64>, Error> {
        let first = self.shared.append(records, None)?;
        Ok(first..first + records.len() as u64)
    }

    /// Makes durable everything that was appended so far; returns the LSN of the record that is appended next.
    pub fn commit(&self) -> Result<Lsn, Error> {
        let end = self.shared.appended();
        self.shared.commit(end)?;
        Ok(Lsn(end))
    }

    /// Makes durable everything up to this record.
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

    /// Appends a record, and returns when it is durable.
    pub fn append_durable(&self, record: &[u8]) -> Result<Lsn, Error> {
        self.shared.append_durable(record).map(Lsn)
    }

    /// Appends a record; `done` is called when it is durable, or never will be by this handle.
    ///
    /// It is called by a thread of the log's, or by one that appends or commits: it must not wait, nor use this
    /// log, nor be what keeps it open.
    pub fn append_then(
        &self,
        record: &[u8],
        done: impl FnOnce(Result<Lsn, Error>) + Send + 'static,
    ) -> Result<Lsn, Error> {
        let done = Box::new(done);
        self.shared.append(&[record], Some(done)).map(Lsn)
    }

    /// Appends a record; the future is ready when it is durable. Waits, as [`append`](Log::append) does, before
    /// it returns one.
    pub fn append_async(&self, record: &[u8]) -> Result<Commit, Error> {
        let (commit, done) = Commit::new();
        self.append_then(record, done)?;
        Ok(commit)
    }

    /// Reads durable records from this one on, which may be the one that is appended next.
    pub fn read(&self, from: Lsn) -> Result<Reader<E>, Error> {
        let records = reader::Reader::new(&self.shared, from.0)?;
        Ok(Reader { records })
    }

    /// As [`read`](Log::read); at the end it waits for more.
    pub fn tail(&self, from: Lsn) -> Result<Tail<E>, Error> {
        let records = reader::Reader::new(&self.shared, from.0)?;
        Ok(Tail { records })
    }

    /// Gives up the records before this one, which is durable, or the first that is not. Their segments are used again; records that share one with a
    /// record that is needed stay, but are not read any more.
    pub fn truncate_before(&self, lsn: Lsn) -> Result<(), Error> {
        self.shared.truncate_before(lsn.0)
    }

    /// The first record that is there, or the one that is appended next.
    pub fn first(&self) -> Lsn {
        Lsn(E::lock(&self.shared.state).first_lsn)
    }

    /// The first record that is not durable: the one behind the last that is.
    pub fn durable(&self) -> Lsn {
        Lsn(self.shared.durable_lsn())
    }

    /// The record that is appended next.
    pub fn next(&self) -> Lsn {
        Lsn(self.shared.appended())
    }

    /// What was done since the log was opened.
    pub fn counters(&self) -> Counters {
        self.shared.counters()
    }

    /// Commits what was appended and gives the directory back.
    pub fn close(self) -> Result<(), Error> {
        self.shut()
    }

    /// As `close`, by who shares it.
    pub(crate) fn shut(&self) -> Result<(), Error> {
        self.shared.close()
    }

    /// Promises space for a record that is not appended yet.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<append::Reservation<E>, Error> {
        self.shared.reserve(bytes)
    }

    /// A number by which its blocks are known.
    pub(crate) fn id(&self) -> u64 {
        self.shared.log
    }

    /// Bytes of which offsets and lengths of its files are multiples.
    pub(crate) fn granule(&self) -> u64 {
        self.shared.geometry.granule
    }
}

impl<E: Environment> Drop for Log<E> {
    fn drop(&mut self) {
        if let Err(error) = self.shared.close() {
            tracing::error!(%error, "what was appended to the log could not be committed");
        }
    }
}

impl<E: Environment> fmt::Debug for Log<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("log", &self.shared.log)
            .field("epoch", &self.shared.epoch)
            .field("durable", &self.durable())
            .finish_non_exhaustive()
    }
}

/// A record that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its number.
    pub lsn: Lsn,
    /// What was appended.
    pub bytes: &'a [u8],
}

/// Reads durable records in their order.
pub struct Reader<E: Environment = System> {
    records: reader::Reader<E>,
}

impl<E: Environment> Reader<E> {
    /// The next record; `None`: there is none that is durable. It can be asked again later.
    #[expect(
        clippy::should_implement_trait,
        reason = "what an iterator gives cannot borrow from it"
    )]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, Error> {
        let found = self.records.next()?;
        Ok(found.map(|(lsn, bytes)| Record {
            lsn: Lsn(lsn),
            bytes,
        }))
    }
}

/// Follows the end of a log.
pub struct Tail<E: Environment = System> {
    records: reader::Reader<E>,
}

impl<E: Environment> Tail<E> {
    /// The next record, when it is durable; `None`: the log was closed, or cannot be written any more.
    #[expect(
        clippy::should_implement_trait,
        reason = "what an iterator gives cannot borrow from it"
    )]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, Error> {
        while !self.records.is_ready()? {
            if !self.records.wait() {
                return Ok(None);
            }
        }
        let found = self.records.next()?;
        Ok(found.map(|(lsn, bytes)| Record {
            lsn: Lsn(lsn),
            bytes,
        }))
    }
}
