//! What the error of a write means: that this system cannot write that way, or that something failed.

use std::io;

use crate::{SyncCall, SyncMethod};

/// A way to write, as far as it decides what an error means.
#[derive(Debug)]
pub struct WriteCall {
    /// Its name.
    pub name: String,
    /// What is written at once, if it is written directly.
    pub direct: Option<String>,
    /// Whether it stores into a mapping.
    pub mapped: bool,
    /// Whether it goes through io_uring.
    pub ring: bool,
}

impl WriteCall {
    /// A write of `size` bytes at `offset` that `method` makes durable.
    pub fn of(method: SyncMethod, size: u64, offset: u64) -> WriteCall {
        let direct = || format!("{size} bytes at offset {offset}");
        WriteCall {
            name: method.to_string(),
            direct: method.direct.then(direct),
            mapped: method.call == SyncCall::Msync,
            ring: method.call == SyncCall::IoUring,
        }
    }

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
                        || error.raw_os_error() == Some(libc::ENODEV)) =>
            {
                Some("this filesystem has no shared writable mappings".into())
            }
            _ => None,
        }
    }
}
