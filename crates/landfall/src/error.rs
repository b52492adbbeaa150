//! Errors, and what to do about each.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::Lsn;
use crate::log::format::Geometry;

/// Why an operation failed. The text says what is wrong, and what to do where there is something to do.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A call of the operating system failed.
    #[error("cannot {doing}: {source}")]
    Io {
        /// The operation.
        doing: String,
        /// What the system said.
        #[source]
        source: Arc<io::Error>,
    },
    /// There is no space for a segment, or for pages of a store. Nothing was appended and nothing is lost. Free some space,
    /// truncating the log for example, and try again.
    #[error("there is no space for {bytes} bytes more: free some")]
    NoSpace {
        /// Bytes of a segment, or of the pages.
        bytes: u64,
    },
    /// Another handle has the log open, in this process or another. A store is open as long as there is anything that was made with
    /// it: a [`Keyspace`](crate::Keyspace), an iterator, a batch, a transaction or a snapshot.
    #[error(
        "the log is open elsewhere: only one handle at a time can have it, so close that one (of a store, drop its keyspaces, iterators, batches and snapshots as well)"
    )]
    Locked,
    /// The handle was opened before this process was forked, and is its parent's. Nothing was written.
    #[error("the log was opened by another process: open it after forking")]
    Forked,
    /// The directory has no log, and the operation does not make one.
    #[error("the directory holds no log: name one that does")]
    NoLog,
    /// The directory for a new log is not empty.
    #[error("the directory holds '{name}': name one that is empty, or not there yet")]
    NotEmpty {
        /// A file in it.
        name: String,
    },
    /// The directory holds other files and no log. Nothing was changed.
    #[error(
        "the directory holds '{name}' and no log: name one with a log, or for a new log one that is empty"
    )]
    NotALog {
        /// A file in it.
        name: String,
    },
    /// The files have a format version that this program cannot read. Nothing was changed.
    #[error(
        "the files have format version {found}, and this program reads version {known}: open them with a version of landfall that reads it"
    )]
    Version {
        /// Its version.
        found: u32,
        /// The one that is read.
        known: u32,
    },
    /// A file of the log is damaged, in a way that no power cut causes. Nothing was changed. See
    /// [what is reported](crate::docs::log_crash_argument).
    #[error(
        "{} is damaged at byte {offset}: {what}; restore the whole directory from a copy, or copy what can still be read (of a log or a state: `Salvage` and `StateSalvage`; `landfall log salvage`, `landfall state salvage`; of a store whose data file is damaged: `landfall store dump`)",
        file.display()
    )]
    Corrupt {
        /// The file, by its name in the directory.
        file: PathBuf,
        /// The byte in the file.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// A segment of the log is in none of its files. Nothing was changed.
    #[error(
        "no file holds segment {segment} of the log{}; restore the whole directory from a copy, or copy what can still be read of a log or a state (`Salvage` and `StateSalvage`; `landfall log salvage`, `landfall state salvage`)",
        empty.as_ref().map(|name| format!(" ({name} is empty)")).unwrap_or_default()
    )]
    MissingSegment {
        /// Its place in the log, from 1; not the number in the name of its file.
        segment: u64,
        /// A file of a segment's name that holds nothing, and may have been this one.
        empty: Option<String>,
    },
    /// The directory holds another kind than was to be opened: a log, a state or a store. Nothing was changed.
    #[error(
        "the directory holds a {found}, and a {wanted} was to be opened: open it as what it is"
    )]
    OtherKind {
        /// What it holds: `log`, `state` or `store`.
        found: &'static str,
        /// What was to be opened.
        wanted: &'static str,
    },
    /// A write or a flush failed, so what is on the disk is unknown; or the disk was full in the middle of a record or batch larger than
    /// a block, and then `source` says so. Readers go on; this handle acknowledges nothing more. Open the log again to get what is durable.
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
    /// The record was truncated.
    #[error("record {asked} was truncated away: the first that is there is {first}")]
    Truncated {
        /// The record that was asked for.
        asked: Lsn,
        /// The first record that is there.
        first: Lsn,
    },
    /// The record was not appended yet, or is not durable yet where it must be.
    #[error(
        "record {asked} is not there yet, or not durable where it must be: the next one is {next}"
    )]
    NotThereYet {
        /// The record that was asked for.
        asked: Lsn,
        /// The record behind the last that is there.
        next: Lsn,
    },
    /// An option is out of range, or does not fit what is in the directory.
    #[error("{0}")]
    Options(String),
    /// A batch has too many records.
    #[error("a batch has at most {most} records")]
    BatchTooLarge {
        /// The maximum.
        most: u32,
    },
    /// The log, or the store, was closed.
    #[error("the log was closed: open it again")]
    Closed,
    /// A key or a value of a store is too long, and nothing was written. Or a key has more versions that snapshots read than a leaf
    /// can have: it stays in memory and in the log until they are dropped.
    #[error("a {what} of {bytes} bytes is too long: it may have {most}")]
    TooLarge {
        /// What is too long.
        what: &'static str,
        /// Its bytes.
        bytes: usize,
        /// The maximum.
        most: usize,
    },
    /// The keyspace was removed, or is of another store, or of an earlier opening of this one. Nothing was written.
    #[error(
        "the store has no such keyspace: it was removed, or comes from another store; open it with `Store::keyspace`"
    )]
    NoKeyspace,
    /// Another commit wrote what this transaction writes, or read. Nothing was written: try it again from its beginning.
    #[error("another commit came between: try the transaction again")]
    Conflict,
    /// A command panicked, or could not be logged, after it was applied to this part of a state. The part differs from
    /// what a restart would make of it, so this handle applies nothing more to it, and takes no snapshots.
    #[error(
        "a command panicked or could not be logged, so this part takes no more commands and no snapshot is taken: open the state again"
    )]
    Unlogged,
    /// A command could not be encoded, or not be read back from what was encoded. It was not applied.
    #[error("the command cannot be written to the log: {0}")]
    Encode(String),
    /// A command of the log could not be decoded, or panicked, when the state was opened. Nothing was changed.
    #[error(
        "command {lsn} cannot be applied again: {what}; open the state with a program that can"
    )]
    Command {
        /// Its number.
        lsn: Lsn,
        /// What is wrong.
        what: String,
    },
    /// A snapshot is whole, and the state cannot read it: it was written by another type. Nothing was changed.
    #[error(
        "{snapshot} is whole and the state cannot read it: {what}; open it with the program that wrote it"
    )]
    Unreadable {
        /// The snapshot's name.
        snapshot: String,
        /// What the state said.
        what: String,
    },
    /// A snapshot of a state is damaged. Opening uses the one before it, with more of the log.
    #[error("{} is damaged at byte {offset}: {what}", file.display())]
    Snapshot {
        /// The file, by its name in the directory.
        file: PathBuf,
        /// Where in it.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// The directory could not be synced, so a power cut may or may not leave the last snapshot. Commands continue. This
    /// handle takes no more snapshots.
    #[error(
        "no snapshot is taken since publishing one failed ({0}): open the state again to have others taken"
    )]
    Unpublished(#[source] Arc<io::Error>),
    /// The log of a state or a store ends before what a snapshot or a checkpoint has. No power cut causes that. Nothing was changed.
    #[error(
        "the log ends before command {next} and {snapshot} has all before {end}: the log is damaged at its end, so restore the whole directory from a copy, or copy what can still be read (of a state: `StateSalvage`, `landfall state salvage`)"
    )]
    LogLost {
        /// The snapshot's name.
        snapshot: String,
        /// The first command that is not in it.
        end: Lsn,
        /// The first that is not in the log.
        next: Lsn,
    },
    /// The log of a state was truncated, and no snapshot can be read that has the commands before. Nothing was changed.
    #[error(
        "the log begins at command {first} and no snapshot can be read: restore the whole directory from a copy{}",
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
        let Some(file) = file else {
            return Error::MissingSegment {
                segment: sequence,
                empty: None,
            };
        };
        Error::Corrupt {
            file: PathBuf::from(file),
            offset: geometry.offset(position),
            what: what.to_owned(),
        }
    }

    /// What cannot be, unless there is a mistake in this crate: nothing was done.
    pub(crate) fn broken(what: &str) -> Error {
        Error::Io {
            doing: "go on".to_owned(),
            source: Arc::new(io::Error::other(format!("{what}: a mistake in the engine"))),
        }
    }

    /// Why something else failed because of this: what the system said, if it was that.
    pub(crate) fn into_source(self) -> Arc<io::Error> {
        match self {
            Error::Io { source, .. } => source,
            Error::NoSpace { .. } => Arc::new(io::Error::new(io::ErrorKind::StorageFull, self)),
            error => Arc::new(io::Error::other(error)),
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
