//! The ways to ask for a durable write, and their names.
//!
//! A method is a [`SyncCall`] with or without `O_DIRECT`. The names are those that a man page uses,
//! in lower case; `direct+` marks `O_DIRECT`.

use std::fmt;
use std::str::FromStr;

/// What makes one write durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SyncCall {
    /// `write` then `fdatasync(2)`: the data, and the metadata needed to find it again.
    Fdatasync,
    /// `write` then `fsync(2)`: also times and other metadata.
    Fsync,
    /// The file is opened with `O_DSYNC`: each write behaves as if followed by `fdatasync`.
    ODsync,
    /// The file is opened with `O_SYNC`: each write behaves as if followed by `fsync`.
    OSync,
    /// `pwritev2(2)` with `RWF_DSYNC`: `O_DSYNC` for one write.
    RwfDsync,
    /// A write and an `fdatasync`, linked, in one io_uring submission.
    IoUring,
    /// A store into a shared mapping, then `msync(2)` with `MS_SYNC`.
    Msync,
    /// `write` then `sync_file_range(2)`: waits for the data pages and nothing else. **Not durable**:
    /// neither metadata nor the device's cache is flushed.
    SyncFileRange,
    /// `write` alone. **Not durable.**
    None,
}

/// A [`SyncCall`], with or without `O_DIRECT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SyncMethod {
    /// Whether the file is opened with `O_DIRECT`, so that data bypasses the page cache.
    pub direct: bool,
    /// What makes the write durable.
    pub call: SyncCall,
}

const CALLS: [(SyncCall, &str); 9] = [
    (SyncCall::Fdatasync, "fdatasync"),
    (SyncCall::Fsync, "fsync"),
    (SyncCall::ODsync, "o_dsync"),
    (SyncCall::OSync, "o_sync"),
    (SyncCall::RwfDsync, "rwf_dsync"),
    (SyncCall::IoUring, "io_uring"),
    (SyncCall::Msync, "msync"),
    (SyncCall::SyncFileRange, "sync_file_range"),
    (SyncCall::None, "none"),
];

impl SyncCall {
    /// Whether a write that returned is meant to survive a power cut.
    pub fn is_durable(self) -> bool {
        !matches!(self, SyncCall::SyncFileRange | SyncCall::None)
    }

    fn meaning(self) -> &'static str {
        match self {
            SyncCall::Fdatasync => {
                "write(2), then fdatasync(2): the data, and the metadata needed to find it again."
            }
            SyncCall::Fsync => "write(2), then fsync(2): also times and other metadata.",
            SyncCall::ODsync => {
                "The file is opened with O_DSYNC: each write acts as if fdatasync(2) followed."
            }
            SyncCall::OSync => {
                "The file is opened with O_SYNC: each write acts as if fsync(2) followed."
            }
            SyncCall::RwfDsync => "pwritev2(2) with RWF_DSYNC: O_DSYNC for one write.",
            SyncCall::IoUring => "A write and an fdatasync, linked, in one io_uring submission.",
            SyncCall::Msync => "A store into a shared mapping, then msync(2) with MS_SYNC.",
            SyncCall::SyncFileRange => {
                "write(2), then sync_file_range(2). Not durable: metadata and the device's cache are not flushed."
            }
            SyncCall::None => "write(2) and no sync. Not durable: a power cut loses it.",
        }
    }

    fn name(self) -> &'static str {
        CALLS
            .iter()
            .find(|(call, _)| *call == self)
            .map_or("", |(_, name)| name)
    }
}

impl SyncMethod {
    /// `write` and `fdatasync` through the page cache: what most databases do by default on Linux.
    pub const FDATASYNC: SyncMethod = SyncMethod::buffered(SyncCall::Fdatasync);

    /// A method through the page cache.
    pub const fn buffered(call: SyncCall) -> SyncMethod {
        SyncMethod {
            direct: false,
            call,
        }
    }

    /// A method that bypasses the page cache.
    pub const fn direct(call: SyncCall) -> SyncMethod {
        SyncMethod { direct: true, call }
    }

    /// Every method that makes sense, buffered ones first.
    ///
    /// A mapping cannot bypass the page cache, and `sync_file_range` has nothing to wait for after
    /// a direct write: those two have no `direct+` form.
    pub fn all() -> Vec<SyncMethod> {
        let buffered = CALLS.iter().map(|&(call, _)| SyncMethod {
            direct: false,
            call,
        });
        let direct = CALLS
            .iter()
            .filter(|(call, _)| !matches!(call, SyncCall::Msync | SyncCall::SyncFileRange))
            .map(|&(call, _)| SyncMethod { direct: true, call });
        buffered.chain(direct).collect()
    }

    /// Whether a write that returned is meant to survive a power cut.
    pub fn is_durable(self) -> bool {
        self.call.is_durable()
    }

    /// What it is, in a sentence or two for people who read its name.
    pub fn meaning(self) -> String {
        let call = self.call.meaning();
        if self.direct {
            format!("O_DIRECT: the data bypasses the page cache. {call}")
        } else {
            call.to_owned()
        }
    }
}

impl fmt::Display for SyncMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = if self.direct { "direct+" } else { "" };
        f.pad(&format!("{prefix}{}", self.call.name()))
    }
}

/// A name that is no sync method.
#[derive(Debug, PartialEq, Eq)]
pub struct ParseSyncMethodError(String);

impl fmt::Display for ParseSyncMethodError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = SyncMethod::all().iter().map(ToString::to_string).collect();
        write!(
            f,
            "no sync method is called '{}'; there are: {}",
            self.0,
            names.join(", ")
        )
    }
}

impl std::error::Error for ParseSyncMethodError {}

impl FromStr for SyncMethod {
    type Err = ParseSyncMethodError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        SyncMethod::all()
            .into_iter()
            .find(|method| method.to_string() == name)
            .ok_or_else(|| ParseSyncMethodError(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back() {
        let all = SyncMethod::all();
        assert_eq!(all.len(), 16);
        for method in all {
            assert_eq!(method.to_string().parse(), Ok(method));
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = "direct+msync"
            .parse::<SyncMethod>()
            .unwrap_err()
            .to_string();
        assert!(error.contains("'direct+msync'") && error.contains("direct+o_dsync"));
    }

    #[test]
    fn only_two_calls_are_not_durable() {
        let lax: Vec<String> = SyncMethod::all()
            .into_iter()
            .filter(|method| !method.is_durable())
            .map(|method| method.to_string())
            .collect();
        assert_eq!(lax, ["sync_file_range", "none", "direct+none"]);
    }
}
