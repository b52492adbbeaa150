//! What can go wrong, and what to do about it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::Lsn;
use crate::log::format::Geometry;

/// Why something was not done. Each text is one sentence that says what to do.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused something.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// What the system said.
        #[source]
        source: Arc<io::Error>,
    },
    /// There is no space for another segment. Nothing was appended, and nothing is lost; it can be tried
    /// again when some was freed.
    #[error(
        "there is no space for another segment of {bytes} bytes: free some, or truncate what is not needed"
    )]
    NoSpace {
        /// Bytes of a segment.
        bytes: u64,
    },
    /// Another handle has the log open, in this process or another.
    #[error("the log is open elsewhere: only one handle at a time can have it, so close that one")]
    Locked,
    /// The directory holds something else.
    #[error("the directory holds '{name}' and no log: name an empty directory, or one with a log")]
    NotALog {
        /// A file in it.
        name: String,
    },
    /// The log is of a version that this one cannot read.
    #[error(
        "its files have version {found} of their format and this program reads version {known}: use the one that wrote them"
    )]
    Version {
        /// Its version.
        found: u32,
        /// The one that is read.
        known: u32,
    },
    /// The log is damaged where it had been durable, which no power cut does. Nothing was changed.
    #[error("{} is damaged at byte {offset}: {what}; what was durable there is lost, so restore it from elsewhere", file.display())]
    Corrupt {
        /// The file, by its name in the directory.
        file: PathBuf,
        /// Where in it.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// A write or a flush failed, so that nobody knows what is on the disk. Nothing more is acknowledged;
    /// open the log again to have what is there.
    #[error(
        "the log cannot be written any more since {doing} failed ({source}): open it again to have what is durable"
    )]
    Poisoned {
        /// What failed.
        doing: &'static str,
        /// What the system said.
        #[source]
        source: Arc<io::Error>,
    },
    /// The record was truncated away.
    #[error("record {asked} was truncated away: the first that is there is {first}")]
    Truncated {
        /// The record that was asked for.
        asked: Lsn,
        /// The first one that is there.
        first: Lsn,
    },
    /// No such record was appended yet.
    #[error("record {asked} is not there yet: all before {next} are")]
    NotThereYet {
        /// The record that was asked for.
        asked: Lsn,
        /// The one behind the last that is there.
        next: Lsn,
    },
    /// The options make no sense.
    #[error("{0}")]
    Options(String),
    /// The batch has too many records.
    #[error("a batch has at most {most} records")]
    BatchTooLarge {
        /// How many it may have.
        most: u32,
    },
    /// The log is being closed.
    #[error("the log is closed")]
    Closed,
    /// A command was applied to this part of a state, and is not in the log: there was no space, or it panicked.
    /// Nothing more is applied to the part, which is not what it would be after a restart.
    #[error(
        "a command was applied to the state and is not in its log: open it again to have what is durable"
    )]
    Unlogged,
    /// A command cannot be written as bytes. It was not applied.
    #[error("the command cannot be written to the log: {0}")]
    Encode(String),
    /// A command that is in the log cannot be applied again.
    #[error(
        "command {lsn} cannot be applied again: {what}; open the state with a program that can"
    )]
    Command {
        /// Its number.
        lsn: Lsn,
        /// What is wrong.
        what: String,
    },
    /// A snapshot of a state is damaged. The one before it is as good, with more of the log.
    #[error("{} is damaged at byte {offset}: {what}", file.display())]
    Snapshot {
        /// The file, by its name in the directory.
        file: PathBuf,
        /// Where in it.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// The directory could not be synced, so nobody knows whether a snapshot is there after a power cut. Commands go
    /// on.
    #[error(
        "no snapshot is taken since publishing one failed ({0}): open the state again to have others taken"
    )]
    Unpublished(#[source] Arc<io::Error>),
    /// A snapshot of a state has commands that had been durable in its log, and are not there.
    #[error(
        "the log ends before command {next} and {snapshot} has all before {end}: the log is damaged at its end, so restore it from elsewhere"
    )]
    LogLost {
        /// The snapshot's name.
        snapshot: String,
        /// The first command that is not in it.
        end: Lsn,
        /// The first that is not in the log.
        next: Lsn,
    },
    /// The log of a state goes back to a snapshot that is not there, or cannot be read.
    #[error(
        "the log begins at command {first} and no snapshot can be read: restore one from elsewhere{}",
        why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default()
    )]
    NoSnapshot {
        /// The first command that is in the log.
        first: Lsn,
        /// Why the newest one cannot be read, if there is one.
        why: Option<Box<Error>>,
    },
}

impl Error {
    /// What is at this position, in this file if there is one, is damaged.
    pub(crate) fn corrupt(
        geometry: Geometry,
        position: u64,
        file: Option<String>,
        what: &str,
    ) -> Error {
        let sequence = geometry.sequence(position);
        let file =
            file.unwrap_or_else(|| format!("segment {sequence}, of which there is no file,"));
        Error::Corrupt {
            file: PathBuf::from(file),
            offset: geometry.offset(position),
            what: what.to_owned(),
        }
    }

    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let doing = doing.into();
        move |source| Error::Io {
            doing,
            source: Arc::new(source),
        }
    }
}
