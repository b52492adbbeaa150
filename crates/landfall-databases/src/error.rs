//! Why a database did not do what it was asked.

use std::fmt::Display;
use std::io;

/// Why a database did not do what it was asked. The text is one sentence, or the clause of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseError {
    /// It is not on this machine: a row that says so, and no failure of a run.
    #[error("{what} is not installed; {remedy}")]
    NotInstalled {
        /// What is missing.
        what: String,
        /// How to get it.
        remedy: String,
    },
    /// It does not know a setting, or does not take its value; the text names it.
    #[error("{0}")]
    Setting(String),
    /// It does not start, or recover; the text has the last lines of its log.
    #[error("{0}")]
    DoesNotStart(String),
    /// This system does not let it run: no permission, no space, a user that it refuses.
    #[error("{0}")]
    Refused(String),
    /// This transaction was rolled back because of another one, and can be tried again: a deadlock, a
    /// lock that was not got in time, a serialisation failure.
    #[error("{0}")]
    Conflict(String),
    /// It answers, and only that it had no time: on a machine that does too much else, or because it never will.
    #[error("{0}")]
    Late(String),
    /// The user asked to stop.
    #[error("stopped")]
    Stopped,
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

impl DatabaseError {
    /// That there is no space, which is what `text` says.
    pub(super) fn no_space(text: impl Display) -> DatabaseError {
        DatabaseError::Refused(format!(
            "{text}: free some space, or make the filesystem larger with size="
        ))
    }

    /// What the operating system said.
    pub(super) fn io(doing: &str, error: &io::Error) -> DatabaseError {
        let text = format!("{doing}: {error}");
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                DatabaseError::no_space(text)
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                DatabaseError::Refused(text)
            }
            _ => DatabaseError::Failed(text),
        }
    }

    /// The same, of a database that was being started: what failed is that it does not start.
    pub(super) fn at_start(self) -> DatabaseError {
        match self {
            DatabaseError::Failed(text) => DatabaseError::DoesNotStart(text),
            other => other,
        }
    }
}
