//! What is done before a trial and charged to none, and what a system turns out not to support.

use std::fs::File;
use std::io;

use landfall_os::{Allocation, allocate_unwritten, allocate_write_zeroes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// No such device: what mmap answers where a filesystem has no shared writable mappings.
const ENODEV: i32 = 19;

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

/// Gives the new, empty `file` the `len` bytes of space that it has by `allocation` before anything is
/// written to it: none, if it comes by its space by being written.
pub(crate) fn reserve(file: &File, allocation: Allocation, len: u64) -> Result<(), PrepareError> {
    match allocation {
        Allocation::Unwritten => {
            allocate_unwritten(file, len).map_err(|error| unsupported("fallocate", error))
        }
        Allocation::WriteZeroes => allocate_write_zeroes(file, len)
            .map_err(|error| unsupported("FALLOC_FL_WRITE_ZEROES", error)),
        Allocation::Sparse => Ok(file.set_len(len)?),
        _ => Ok(()),
    }
}

/// Tells "not supported here" from other failures of allocating space by `what`.
fn unsupported(what: &str, error: io::Error) -> PrepareError {
    match error.kind() {
        io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput => PrepareError::Unsupported(
            format!("{what} is not supported by this filesystem and device"),
        ),
        _ => PrepareError::Io(error),
    }
}

/// A way to write, as far as it decides what an error means.
pub(crate) struct Call {
    /// Its name.
    pub name: String,
    /// What is written at once, if it is written directly.
    pub direct: Option<String>,
    /// Whether it stores into a mapping.
    pub mapped: bool,
    /// Whether it goes through io_uring.
    pub ring: bool,
}

impl Call {
    /// Why this system does not support it, if that is what the error means.
    pub fn unsupported(&self, error: &io::Error) -> Option<String> {
        match (error.kind(), &self.direct) {
            (io::ErrorKind::Unsupported, _) => Some(format!("{} is not supported here", self.name)),
            (io::ErrorKind::InvalidInput, Some(what)) => {
                Some(format!("this filesystem takes no direct writes of {what}"))
            }
            (io::ErrorKind::PermissionDenied, _) if self.ring => {
                Some("io_uring is switched off on this system".into())
            }
            // Some network and FUSE filesystems have no shared writable mappings.
            (kind, _)
                if self.mapped
                    && (kind == io::ErrorKind::InvalidInput
                        || error.raw_os_error() == Some(ENODEV)) =>
            {
                Some("this filesystem has no shared writable mappings".into())
            }
            _ => None,
        }
    }
}
