//! What is done before a trial and charged to none, and how it can fail.

use std::io;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What it took to prepare a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Preparation {
    /// Seconds.
    pub seconds: f64,
    /// Bytes written for it.
    pub bytes: u64,
}

/// Why a file could not be prepared.
#[derive(Debug)]
pub(crate) enum PrepareError {
    /// This filesystem or device cannot do it: a result.
    Unsupported(String),
    /// Something failed.
    Io(io::Error),
}

impl From<io::Error> for PrepareError {
    fn from(error: io::Error) -> Self {
        PrepareError::Io(error)
    }
}

/// Tells "not supported here" from other failures of allocating space by `what`.
pub(crate) fn unsupported(what: &str, error: io::Error) -> PrepareError {
    match error.kind() {
        io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput => PrepareError::Unsupported(
            format!("{what} is not supported by this filesystem and device"),
        ),
        _ => PrepareError::Io(error),
    }
}
