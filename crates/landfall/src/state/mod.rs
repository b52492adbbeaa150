//! An in-memory structure that is there again after a power cut: snapshots, and a log of what came since.
//!
//! - `format` is the bytes of a snapshot, `writer` and `pipe` write them, `reader` reads them back;
//! - `shared` is what all users share; applying, and looking;
//! - `snapshots` takes them, publishes them and removes old ones; `schedule` says when one is due;
//! - `restart` makes the state out of the newest good one and the log;
//! - `serde` is for states that serde can write; `inspect` looks from outside.

mod format;
mod inspect;
mod options;
mod pipe;
mod reader;
mod restart;
mod schedule;
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
pub use options::{Compression, Policy, StateOptions};
#[cfg(feature = "serde")]
pub use serde::{Serde, SerdeState};

use self::shared::Shared;
use crate::environment::{Environment, System};
use crate::log::Counters;
use crate::{Commit, Error, Lsn};

/// What a user's code may say is wrong.
pub type BoxedError = Box<dyn std::error::Error + Send + Sync>;

/// A structure in memory, and how it is changed, written and read.
///
/// It may be split into [`PARTS`](State::PARTS), each with a lock and a place in a snapshot of its own, so that a
/// snapshot never holds up who changes another part, and holds up those of one for as long as
/// [`capture`](State::capture) takes for that. Each part is a value of this type; commands say which they are for.
///
/// What [`apply`](State::apply) does must follow from the state and the command alone: after a restart the same commands are
/// applied again, those of a part in the same order, and must come to the same.
pub trait State: Default + Send + Sync + Sized + 'static {
    /// A change.
    type Command;
    /// What it gives back.
    type Output;
    /// What a snapshot of a part is written from: a copy, or something that shares with it what does not change.
    type Capture;

    /// How many parts there are. It cannot be changed once there is a snapshot.
    const PARTS: u32 = 1;

    /// Which part a command is for, modulo [`PARTS`](State::PARTS): always the same for the same command. See
    /// [`part_of`].
    fn part(_command: &Self::Command) -> u64 {
        0
    }

    /// Applies a command to the part it is for. If it panics the command has not happened, in the log or after a
    /// restart; but the part may be half changed, so nothing more can be applied to it by this handle.
    fn apply(&mut self, command: Self::Command) -> Self::Output;

    /// Appends the bytes of a command. If it cannot the command is not applied.
    fn encode(command: &Self::Command, out: &mut Vec<u8>) -> Result<(), BoxedError>;

    /// The command that has these bytes.
    fn decode(bytes: &[u8]) -> Result<Self::Command, BoxedError>;

    /// What a snapshot of this part is to be written from. Nobody can change the part meanwhile: this is the
    /// longest that a command waits for a snapshot.
    fn capture(&self) -> Self::Capture;

    /// Writes a part; nobody waits for that.
    fn write(capture: Self::Capture, out: &mut dyn Write) -> io::Result<()>;

    /// Reads a part, to the end of `input`.
    fn read(input: &mut dyn Read) -> io::Result<Self>;
}

/// A number for a key, by which it always goes to the same part, on every machine.
pub fn part_of(key: &[u8]) -> u64 {
    u64::from(crc32c::crc32c(key))
}

/// What was found when a state was opened, and how long that took.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Restart {
    /// The snapshot that it began from, by its name; `None`: from nothing.
    pub snapshot: Option<String>,
    /// Newer snapshots that could not be read, and why. They are removed when another one has been taken.
    pub skipped: Vec<(String, Error)>,
    /// Bytes of the state that were read from the snapshot.
    pub bytes: u64,
    /// How long that took.
    pub load: Duration,
    /// Commands that were applied again.
    pub commands: u64,
    /// How long that took.
    pub replay: Duration,
}

/// A snapshot that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Its name in the directory.
    pub name: String,
    /// Bytes of its file.
    pub bytes: u64,
    /// Bytes of the state.
    pub raw_bytes: u64,
    /// How long it took until it was durable.
    pub took: Duration,
    /// The longest that a part could not be changed.
    pub longest_capture: Duration,
}

/// What was done since a state was opened.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct StateCounters {
    /// Of its log.
    pub log: Counters,
    /// Snapshots that were taken.
    pub snapshots: u64,
    /// Those that failed, which changed nothing.
    pub failed_snapshots: u64,
    /// The last that was taken.
    pub last_snapshot: Option<Snapshot>,
}

/// A state that survives: each command is in a log before it is promised, and now and then everything is in a
/// snapshot.
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
/// With the feature `serde`, a state that serde can write takes [ten lines](SerdeState).
pub struct Journaled<S: State, E: Environment = System> {
    shared: Arc<Shared<S, E>>,
    restart: Restart,
}

impl<S: State> Journaled<S> {
    /// Opens the state in `directory`, or begins one there; the directory itself is made if need be, in one that is
    /// there.
    ///
    /// Only one handle at a time can have it: [`Error::Locked`] otherwise.
    pub fn open(directory: impl AsRef<Path>, options: StateOptions) -> Result<Self, Error> {
        Journaled::open_in(&System::new(directory.as_ref()), options)
    }
}

impl<S: State, E: Environment> Journaled<S, E> {
    /// Opens a state elsewhere than on this machine, as tests do.
    pub fn open_in(environment: &E, options: StateOptions) -> Result<Self, Error> {
        let (shared, restart) = restart::open(environment, options)?;
        Ok(Journaled { shared, restart })
    }

    /// What was found when it was opened.
    pub fn restart(&self) -> &Restart {
        &self.restart
    }

    /// Applies a command and returns what that gave; it is durable as the [`Policy`] says.
    ///
    /// Others see what it did as soon as it is applied, which may be before it is durable. [`Error::NoSpace`]: it was
    /// not applied, and can be tried again. [`Error::Unlogged`]: one before was applied to its part and is not in the log.
    pub fn apply(&self, command: S::Command) -> Result<S::Output, Error> {
        self.shared.apply(command)
    }

    /// Applies a command; the future is ready when it is durable, whatever the policy. Who is woken by it must not use
    /// the state before it returns, as with [`append_then`](crate::Log::append_then).
    pub fn apply_async(&self, command: S::Command) -> Result<(S::Output, Commit), Error> {
        self.shared.apply_async(command)
    }

    /// Makes durable everything that was applied so far.
    pub fn commit(&self) -> Result<(), Error> {
        self.shared.log.commit().map(drop)
    }

    /// Looks at the part with this number, modulo [`PARTS`](State::PARTS). Nobody can change it meanwhile; others can
    /// look too. `look` must not apply anything, nor look at another part: it could wait for itself.
    ///
    /// Of a part to which nothing more can be applied ([`Error::Unlogged`]) it shows what the command that failed has left.
    pub fn read<R>(&self, part: u64, look: impl FnOnce(&S) -> R) -> R {
        look(&self.shared.share(part).state)
    }

    /// Looks at all parts, one after the other: others may be changed between.
    pub fn read_all(&self, mut look: impl FnMut(&S)) {
        for part in 0..S::PARTS {
            self.read(part.into(), &mut look);
        }
    }

    /// Takes a snapshot now, and waits for it. One is taken by itself when a restart would take too long.
    ///
    /// If that fails nothing has changed: the one before, and the log since, are still there.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        self.shared.snapshot()
    }

    /// The number of the next command.
    pub fn next(&self) -> Lsn {
        self.shared.log.next()
    }

    /// What was done since it was opened.
    pub fn counters(&self) -> StateCounters {
        self.shared.counters()
    }

    /// Makes durable what was applied, and gives the directory back.
    pub fn close(self) -> Result<(), Error> {
        self.shared.close()
    }
}

impl<S: State, E: Environment> Drop for Journaled<S, E> {
    fn drop(&mut self) {
        if let Err(error) = self.shared.close() {
            tracing::error!(%error, "what was applied to the state could not be committed");
        }
    }
}

impl<S: State, E: Environment> fmt::Debug for Journaled<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journaled")
            .field("parts", &S::PARTS)
            .field("log", &self.shared.log)
            .finish_non_exhaustive()
    }
}
