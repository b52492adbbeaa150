//! Copying what can still be read of a damaged log.
//!
//! Nothing is believed here but checksums: not that a file is the segment that its name, its header or its neighbours
//! say, nor that the control record is there. Every granule of every file is looked at for a block of the log. Those that
//! are whole are gone through in the order of their positions, and where one does not follow the one before, something is
//! missing: which records that are is told by the numbers on both sides. The damaged log is not changed.
//!
//! - `source` finds the blocks and gives out their records, with a `window` into each file; `clues` is what the files say
//!   of the log; `copy` is the new one.

mod clues;
mod copy;
mod source;
mod window;

use std::ops::Range;
use std::path::Path;

pub(crate) use self::copy::Copy;
pub(crate) use self::source::Source;
use super::format::Kind;
use crate::environment::{Environment, Storage, machine, read_only_machine};
use crate::{Error, Lsn};

/// What was copied of a damaged log, and what was not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Salvage {
    /// The first record that the new log has: its number in both logs.
    pub first_lsn: Lsn,
    /// Records that were copied. The new log numbers them one by one, without gaps.
    pub copied: u64,
    /// Records that could not be read, in order. Those before [`first_lsn`](Salvage::first_lsn) are among them only if the
    /// control file could be read.
    pub missing: Vec<Missing>,
    /// Whether the damaged log was closed cleanly, and its records end where it says.
    pub ends_cleanly: bool,
}

/// Records that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missing {
    /// Their numbers in the damaged log; of those at the end it may not be known how many there were.
    pub lsns: Range<Lsn>,
    /// The number in the new log of the record behind them.
    pub new_lsn: Lsn,
}

impl Salvage {
    /// Copies every record that can be read of the log in `from`, damaged or not, into a new log in `to`, which must
    /// not be there or be empty. Nothing in `from` is changed.
    ///
    /// A record of which a part is missing is left out, and so is one of a batch that is not there whole. Without a
    /// control file that can be read, records that were truncated away may be there again. Of a state the commands are
    /// copied, as the records of a log; [`StateSalvage`](crate::StateSalvage) copies the state. If it fails, nothing is
    /// left in `to`.
    /// [`Error::Locked`]: somebody has one of the two open. [`Error::NoLog`]: there is no block of a log in `from`.
    pub fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Salvage, Error> {
        copy(&read_only_machine(from.as_ref()), &machine(to.as_ref()))
    }
}

pub(crate) fn copy<E: Environment, T: Environment>(from: &E, to: &T) -> Result<Salvage, Error> {
    with_source(from, |source| {
        let mut copy = Copy::new(
            source,
            to,
            Kind::Log,
            source.control.map(|one| one.first_lsn),
        );
        let copied = source
            .records(&mut |lsn, bytes| copy.append(lsn, bytes))
            .and_then(|()| copy.finish(source.control.as_ref()));
        copied.inspect_err(|_| copy.remove(|_| false))
    })
}

/// Looks at a damaged log, which nobody else has meanwhile.
pub(crate) fn with_source<E: Environment, R>(
    from: &E,
    look: impl FnOnce(&Source<'_, E>) -> Result<R, Error>,
) -> Result<R, Error> {
    let storage = from.storage();
    let is_ours = storage
        .lock()
        .map_err(Error::io("lock the directory of the damaged log"))?;
    if !is_ours {
        return Err(Error::Locked);
    }
    let seen = Source::open(from).and_then(|source| look(&source));
    storage.unlock();
    seen
}
