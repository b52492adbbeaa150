//! Errors, each with what can be done about it.

use std::io;

/// Why something did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What was asked for makes no sense.
    #[error("{0}")]
    Usage(String),
    /// The target is unsuitable, or is another one than the witness knows.
    #[error("{0}")]
    Refused(String),
    /// A call of the operating system failed.
    #[error("cannot {doing}: {source}")]
    Io {
        /// The operation.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// There is no connection to the witness, or there is none any more.
    #[error("{0}")]
    Unreachable(String),
    /// The witness does not do it.
    #[error("the witness refuses: {0}")]
    Witness(String),
    /// What came over the network is not from who has the token, or is no message.
    #[error("what came over the network is refused: {0}")]
    Forged(&'static str),
    /// The witness cannot keep what it is told.
    #[error("the witness cannot keep it: {0}")]
    Log(#[from] landfall::Error),
    /// A command of the operator's failed.
    #[error("{0}")]
    Hook(String),
    /// It was told to stop.
    #[error("stopped")]
    Stopped,
}

impl Error {
    /// Of an operation.
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let doing = doing.into();
        move |source| Error::Io { doing, source }
    }
}
