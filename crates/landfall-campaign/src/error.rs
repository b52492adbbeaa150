//! What can go wrong with a campaign.

use std::path::PathBuf;

/// Why something of a campaign could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A plan, a name or a place makes no sense.
    #[error("{0}")]
    Usage(String),
    /// Where results are kept something is missing, damaged or of another version.
    #[error("{0}")]
    Document(String),
    /// Where results are kept could not be reached, or refused.
    #[error("cannot {doing} in {place}: {why}")]
    Store {
        /// What was tried.
        doing: &'static str,
        /// Where results are kept.
        place: String,
        /// What came of it.
        why: String,
    },
    /// A file of this machine's could not be read or written.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// Of which file.
        path: PathBuf,
        /// What came of it.
        source: std::io::Error,
    },
    /// What a shard has done could not be put where results are kept.
    #[error(
        "{}; what the shard did is kept in {}: run it again on this machine, in this directory or with the same --work, and it is sent",
        why_unsent(source), path.display()
    )]
    Unsent {
        /// Where it is.
        path: PathBuf,
        /// Why not.
        source: Box<Error>,
    },
    /// It was stopped.
    #[error("stopped; no result was kept")]
    Stopped,
}

impl Error {
    pub(crate) fn io(
        doing: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io {
            doing,
            path,
            source,
        }
    }
}

fn why_unsent(error: &Error) -> String {
    match error {
        Error::Stopped => "stopped before the store had answered".to_owned(),
        error => error.to_string(),
    }
}
