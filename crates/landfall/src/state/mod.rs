//! An in-memory structure that is there again after a power cut: snapshots, and a log of what came since.
//!
//! - `format` is the bytes of a snapshot, `writer` and `pipe` write them, `reader` reads them back, both with
//!   `compression`, which is the crate's; `hand_over` is how their threads go hand in hand;
//! - `shared` is what all users share; applying, and looking;
//! - `snapshots` takes them, publishes them and removes old ones; `schedule` says when one is due;
//! - `restart` makes the state out of the newest good one, `replay` out of the log since;
//! - `serde` is for states that serde can write; `inspect` looks from outside, `salvage` copies what a damaged one still has.

#[cfg(test)]
mod drafts;
#[cfg(test)]
mod fixtures;
mod format;
mod hand_over;
pub(crate) mod inspect;
#[cfg(test)]
mod inspecting;
mod options;
mod pipe;
#[cfg(test)]
mod public;
mod reader;
mod replay;
mod restart;
pub(crate) mod salvage;
#[cfg(test)]
mod salvaging;
pub(crate) mod schedule;
#[cfg(feature = "serde")]
mod serde;
mod shared;
mod snapshots;
mod writer;

use std::fmt;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use inspect::{SnapshotFile, StateInspection};
pub use options::{Policy, StateOptions};
pub use salvage::StateSalvage;
#[cfg(feature = "serde")]
pub use serde::{Serde, SerdeState};

use self::shared::Shared;
use crate::environment::{Environment, Machine, machine};
use crate::log::Counters;
use crate::log::directory::check_for_any_disk;
use crate::{Commit, Error, Lsn};

/// An error of the user's code.
pub type BoxedError = Box<dyn std::error::Error + Send + Sync>;

/// A structure in memory: how it is changed, written and read.
///
/// A state has one or more [`PARTS`](State::PARTS). Each part is a value of this type, with its own lock and its own place
/// in a snapshot. Each command is for one part. A snapshot blocks the commands of one part at a time, while
/// [`capture`](State::capture) runs for it.
///
/// [`apply`](State::apply) must be deterministic: it depends on the state and the command alone. A restart applies the same
/// commands again, those of a part in the same order, and must get the same result.
///
/// A restart calls `decode` and `apply`, a snapshot that is read back calls `read`, and those that are taken automatically call
/// `capture` and `write`, on threads of the library, with stacks of 8 MiB, or of what the variable `RUST_MIN_STACK` says.
pub trait State: Default + Send + Sync + Sized + 'static {
    /// A change of the state.
    type Command;
    /// What a command returns.
    type Output;
    /// What a snapshot of a part is written from: a copy, or a structure that shares with the part what does not change.
    type Capture;

    /// Number of parts. It cannot be changed once there is a snapshot.
    const PARTS: u32 = 1;

    /// The part that a command is for, modulo [`PARTS`](State::PARTS). It must always be the same for the same command. See
    /// [`part_of`].
    fn part(_command: &Self::Command) -> u64 {
        0
    }

    /// Applies a command to its part.
    ///
    /// If it panics, the command is not in the log, and not in the state after a restart. The part may be half changed, so
    /// this handle applies nothing more to it.
    fn apply(&mut self, command: Self::Command) -> Self::Output;

    /// Appends the bytes of a command to `out`. If it fails, the command is not applied.
    fn encode(command: &Self::Command, out: &mut Vec<u8>) -> Result<(), BoxedError>;

    /// Reads a command from the bytes that [`encode`](State::encode) wrote. The first command of each handle, and one in 64
    /// behind it, is decoded before it is applied: if that fails, it is not applied.
    fn decode(bytes: &[u8]) -> Result<Self::Command, BoxedError>;

    /// Captures this part for a snapshot. Nobody can change the part meanwhile, so a command waits for a snapshot at most
    /// as long as this takes.
    fn capture(&self) -> Self::Capture;

    /// Writes a captured part. No command waits for it.
    fn write(capture: Self::Capture, out: &mut dyn Write) -> io::Result<()>;

    /// Reads a part from `input`, to its end.
    fn read(input: &mut dyn Read) -> io::Result<Self>;
}

/// A number for a key: the same on every machine, so that the key always belongs to the same part.
pub fn part_of(key: &[u8]) -> u64 {
    u64::from(crc32c::crc32c(key))
}

/// What opening a state found, and how long it took.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Restart {
    /// The name of the snapshot that was read; `None` if there was none.
    pub snapshot: Option<String>,
    /// Snapshots that were passed over, and why, the newest first. Those that are damaged are removed when another one has been taken;
    /// those that the disk could not read stay until it can.
    pub skipped: Vec<(String, Error)>,
    /// Bytes of the state that were read from the snapshot.
    pub bytes: u64,
    /// How long reading the snapshot took.
    pub load: Duration,
    /// Commands of the log that were applied again.
    pub commands: u64,
    /// How long reading the log and applying them took.
    pub replay: Duration,
}

/// A snapshot that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Its name in the directory.
    pub name: String,
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes of the state, before compression.
    pub raw_bytes: u64,
    /// Time until the snapshot was durable.
    pub took: Duration,
    /// The longest time for which a part could not be changed.
    pub longest_capture: Duration,
}

/// Counts of what was done since a state was opened.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct StateCounters {
    /// Counts of the log of commands.
    pub log: Counters,
    /// Snapshots that were taken.
    pub snapshots: u64,
    /// Snapshots that failed. They changed nothing.
    pub failed_snapshots: u64,
    /// The last snapshot.
    pub last_snapshot: Option<Snapshot>,
}

/// A durable state in memory. Each command goes to a log, and snapshots keep opening short.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path().join("stock");
/// use std::collections::HashMap;
/// use std::io::{self, Read, Write};
/// use landfall::{BoxedError, Journaled, State, StateOptions};
///
/// /// How many there are of what.
/// #[derive(Default)]
/// struct Stock(HashMap<u32, i64>);
///
/// impl State for Stock {
///     type Command = (u32, i64);
///     type Output = i64;
///     type Capture = Vec<(u32, i64)>;
///
///     fn apply(&mut self, (what, more): (u32, i64)) -> i64 {
///         let count = self.0.entry(what).or_default();
///         *count += more;
///         *count
///     }
///     fn encode((what, more): &(u32, i64), out: &mut Vec<u8>) -> Result<(), BoxedError> {
///         out.extend(what.to_le_bytes());
///         out.extend(more.to_le_bytes());
///         Ok(())
///     }
///     fn decode(bytes: &[u8]) -> Result<(u32, i64), BoxedError> {
///         let (what, more) = bytes.split_first_chunk().ok_or("too short")?;
///         Ok((u32::from_le_bytes(*what), i64::from_le_bytes(more.try_into()?)))
///     }
///     fn capture(&self) -> Vec<(u32, i64)> {
///         self.0.iter().map(|(what, count)| (*what, *count)).collect()
///     }
///     fn write(capture: Vec<(u32, i64)>, out: &mut dyn Write) -> io::Result<()> {
///         let mut bytes = Vec::new();
///         for one in &capture {
///             Stock::encode(one, &mut bytes).map_err(io::Error::other)?;
///         }
///         out.write_all(&bytes)
///     }
///     fn read(input: &mut dyn Read) -> io::Result<Stock> {
///         let mut bytes = Vec::new();
///         input.read_to_end(&mut bytes)?;
///         let all = bytes.chunks(12).map(Stock::decode);
///         all.collect::<Result<_, _>>().map(Stock).map_err(io::Error::other)
///     }
/// }
///
/// let stock = Journaled::<Stock>::open(&directory, StateOptions::default())?;
/// stock.apply((7, 100))?;
/// assert_eq!(stock.apply((7, -1))?, 99);
/// stock.close()?;
///
/// let stock = Journaled::<Stock>::open(&directory, StateOptions::default())?;
/// assert_eq!(stock.read(0, |stock| stock.0[&7]), 99);
/// # Ok(())
/// # }
/// ```
///
/// With the feature `serde`, a state that serde can write takes ten lines: see `SerdeState`.
pub struct Journaled<S: State> {
    handle: Handle<S, Machine>,
}

impl<S: State> Journaled<S> {
    /// Opens the state in `directory`, or begins one there. It makes the directory if its parent exists.
    ///
    /// Opening reads the newest snapshot that is not damaged and the whole log, and compares both with their checksums. If it
    /// reports damage, it has changed nothing. Returns [`Error::Locked`] if another handle has the state open. Open it after
    /// forking: what was opened before writes nothing for the other process ([`Error::Forked`]).
    pub fn open(directory: impl AsRef<Path>, options: StateOptions) -> Result<Self, Error> {
        let machine = machine(directory.as_ref());
        check_for_any_disk(&machine, &options.log)?;
        let handle = Handle::open(&machine, options)?;
        Ok(Journaled { handle })
    }

    /// What opening found.
    pub fn restart(&self) -> &Restart {
        &self.handle.restart
    }

    /// Applies a command and returns its output. The command becomes durable as the [`Policy`] says.
    ///
    /// Other threads see its effect as soon as it is applied, which may be before it is durable.
    ///
    /// Returns [`Error::NoSpace`] if the disk is full: the command was not applied, and can be tried again. Returns
    /// [`Error::Encode`] if it cannot be written, or was found not to be readable again: it was not applied. Returns
    /// [`Error::Unlogged`] if an earlier command was applied to the part and is not in the log.
    pub fn apply(&self, command: S::Command) -> Result<S::Output, Error> {
        self.handle.shared.apply(command)
    }

    /// Applies a command and returns its output, with a future that is ready when the command is durable, whatever the
    /// policy. The waker that the future calls must not use the state, as with
    /// [`append_then`](crate::Log::append_then).
    pub fn apply_async(&self, command: S::Command) -> Result<(S::Output, Commit), Error> {
        self.handle.shared.apply_async(command)
    }

    /// Makes everything durable that was applied so far.
    pub fn commit(&self) -> Result<(), Error> {
        self.handle.commit()
    }

    /// Calls `look` with the part of this number, modulo [`PARTS`](State::PARTS). Others can read it meanwhile, and nobody
    /// can change it. `look` must not use this state at all, not even to read the same part: it could deadlock.
    ///
    /// If nothing more can be applied to the part ([`Error::Unlogged`]), `look` sees what the failed command left.
    pub fn read<R>(&self, part: u64, look: impl FnOnce(&S) -> R) -> R {
        self.handle.read(part, look)
    }

    /// Calls `look` with all parts, one after the other. Commands may be applied in between. `look` must not use this state.
    pub fn read_all(&self, mut look: impl FnMut(&S)) {
        for part in 0..S::PARTS {
            self.read(part.into(), &mut look);
        }
    }

    /// Takes a snapshot now and waits for it. Snapshots are also taken automatically, by
    /// [`max_recovery_time`](StateOptions::max_recovery_time).
    ///
    /// If it fails, the snapshot before and the log since are still there. The first one of a handle is
    /// read back before it takes the place of anything: that needs the memory of another part, and fails if the state cannot
    /// read it.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        self.handle.shared.snapshot()
    }

    /// The LSN of the next command.
    pub fn next_lsn(&self) -> Lsn {
        self.handle.shared.log.next_lsn()
    }

    /// Counts of what was done since the state was opened.
    pub fn counters(&self) -> StateCounters {
        self.handle.shared.counters()
    }

    /// Makes everything durable that was applied, records the clean end of the log, and unlocks the directory.
    pub fn close(self) -> Result<(), Error> {
        self.handle.shared.close()
    }
}

impl<S: State> fmt::Debug for Journaled<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journaled")
            .field("parts", &S::PARTS)
            .field("log", &self.handle.shared.log)
            .finish_non_exhaustive()
    }
}

/// A state wherever it is: on this machine, or in a test's simulator. Dropped, it is closed.
pub(crate) struct Handle<S: State, E: Environment> {
    pub shared: Arc<Shared<S, E>>,
    pub restart: Restart,
}

impl<S: State, E: Environment> Handle<S, E> {
    pub fn open(environment: &E, options: StateOptions) -> Result<Self, Error> {
        let (shared, restart) = restart::open(environment, options)?;
        Ok(Handle { shared, restart })
    }

    pub fn commit(&self) -> Result<(), Error> {
        self.shared.log.commit().map(drop)
    }

    pub fn read<R>(&self, part: u64, look: impl FnOnce(&S) -> R) -> R {
        look(&self.shared.share(part).state)
    }
}

impl<S: State, E: Environment> Drop for Handle<S, E> {
    fn drop(&mut self) {
        if let Err(error) = self.shared.close() {
            tracing::error!(%error, "what was applied to the state could not be committed");
        }
    }
}
