//! The ways to hand a large amount of data to the kernel, and their names.
//!
//! A method is a [`StreamCall`] with or without `O_DIRECT`; `direct+` marks `O_DIRECT`, as in the names
//! of [`SyncMethod`](crate::SyncMethod). Whatever the method, the data is durable only after the sync
//! that follows.

use std::fmt;
use std::str::FromStr;

/// What hands a chunk to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StreamCall {
    /// `write(2)`.
    Write,
    /// `write(2)`, with `sync_file_range(2)` behind it, so that the kernel writes all the time and
    /// little is left to sync at the end.
    Paced,
    /// A store into a shared mapping: each first touch of a page is a page fault.
    Mmap,
    /// The same, with the pages asked for by `madvise(MADV_POPULATE_WRITE)` before the store.
    MmapPopulate,
    /// Writes through io_uring, several in flight.
    IoUring,
}

/// A [`StreamCall`], with or without `O_DIRECT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamMethod {
    /// Whether the file is opened with `O_DIRECT`, so that data bypasses the page cache.
    pub direct: bool,
    /// What hands a chunk over.
    pub call: StreamCall,
}

const CALLS: [(StreamCall, &str); 5] = [
    (StreamCall::Write, "write"),
    (StreamCall::Paced, "paced"),
    (StreamCall::Mmap, "mmap"),
    (StreamCall::MmapPopulate, "mmap-populate"),
    (StreamCall::IoUring, "io_uring"),
];

impl StreamCall {
    fn meaning(self) -> &'static str {
        match self {
            StreamCall::Write => "write(2), chunk by chunk.",
            StreamCall::Paced => {
                "write(2), with sync_file_range(2) behind it: the kernel writes all the time, and little is left to sync."
            }
            StreamCall::Mmap => {
                "Stores into a shared mapping: each first touch of a page is a page fault."
            }
            StreamCall::MmapPopulate => {
                "Stores into a shared mapping whose pages madvise(MADV_POPULATE_WRITE) fetched before."
            }
            StreamCall::IoUring => "Writes through io_uring, several in flight.",
        }
    }
}

impl StreamMethod {
    /// `write(2)` through the page cache.
    pub const WRITE: StreamMethod = StreamMethod::buffered(StreamCall::Write);
    /// Stores into a shared mapping.
    pub const MMAP: StreamMethod = StreamMethod::buffered(StreamCall::Mmap);

    /// A method through the page cache.
    pub const fn buffered(call: StreamCall) -> StreamMethod {
        StreamMethod {
            direct: false,
            call,
        }
    }

    /// A method that bypasses the page cache.
    pub const fn direct(call: StreamCall) -> StreamMethod {
        StreamMethod { direct: true, call }
    }

    /// Every method that makes sense, buffered ones first. A mapping cannot bypass the page cache, and
    /// pacing has nothing to pace where nothing is cached.
    pub fn all() -> Vec<StreamMethod> {
        let buffered = CALLS.iter().map(|&(call, _)| StreamMethod::buffered(call));
        let direct = [StreamCall::Write, StreamCall::IoUring].map(StreamMethod::direct);
        buffered.chain(direct).collect()
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

    /// Whether data is stored into a mapping of the file.
    pub fn is_mapped(self) -> bool {
        matches!(self.call, StreamCall::Mmap | StreamCall::MmapPopulate)
    }
}

impl fmt::Display for StreamMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = CALLS
            .iter()
            .find(|(call, _)| *call == self.call)
            .map_or("", |(_, name)| name);
        let prefix = if self.direct { "direct+" } else { "" };
        f.pad(&format!("{prefix}{name}"))
    }
}

impl FromStr for StreamMethod {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let all = StreamMethod::all();
        let found = all.iter().find(|method| method.to_string() == name);
        found.copied().ok_or_else(|| {
            let names: Vec<String> = all.iter().map(ToString::to_string).collect();
            format!(
                "no stream method is called '{name}'; there are: {}",
                names.join(", ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back() {
        let all = StreamMethod::all();
        assert_eq!(all.len(), 7);
        for method in all {
            assert_eq!(method.to_string().parse(), Ok(method));
        }
        let error = "direct+mmap".parse::<StreamMethod>().unwrap_err();
        assert!(error.contains("'direct+mmap'") && error.contains("direct+io_uring"));
    }
}
