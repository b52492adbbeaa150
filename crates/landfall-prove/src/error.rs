//! What can end a proof, or an experiment, early.

use std::io;

/// Why there is no result. The text is one sentence for the user.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The user asked to stop; everything that was made has been removed.
    #[error("stopped; nothing was left behind")]
    Stopped,
    /// The request makes no sense.
    #[error("{0}")]
    Usage(String),
    /// The target is unsuitable: no space, no permission.
    #[error("{0}")]
    Refused(String),
    /// The subject could not be prepared or run: nothing is known of what it loses.
    #[error("{0}")]
    Subject(String),
    /// The machine failed us.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done, as "cannot …".
        doing: String,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    /// Wraps a system error with what was being done; recognises a full disk and a request to stop.
    pub fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        move |source| match source.kind() {
            io::ErrorKind::Interrupted => Error::Stopped,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::Refused(format!(
                "{}: the filesystem (or the quota) is full; free some space, or ask for less",
                doing.into()
            )),
            _ => Error::Io {
                doing: doing.into(),
                source,
            },
        }
    }
}

#[cfg(feature = "subjects")]
impl From<landfall_databases::SettingError> for Error {
    fn from(error: landfall_databases::SettingError) -> Error {
        Error::Usage(error.0)
    }
}
