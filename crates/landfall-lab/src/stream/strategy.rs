//! One way to save a large state: a point in the space of the experiment's axes.

use std::fmt;

use landfall_os::{Allocation, StreamCall, StreamMethod};

use landfall_results::{Axes, Data};

/// One way to hand over a large state and make it durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Strategy {
    /// How the file's space was allocated.
    pub allocation: Allocation,
    /// How the bytes are handed over.
    pub method: StreamMethod,
    /// Bytes of the state.
    pub size: u64,
    /// Bytes handed over by one call.
    pub chunk: u64,
    /// What the bytes look like.
    pub data: Data,
}

impl Strategy {
    /// Bytes handed over by one call, unless chosen.
    pub const CHUNK: u64 = Axes::USUAL_CHUNK;

    /// `method` at `size`, with what is usual for it: an empty file, or a sparse one for a mapping,
    /// which cannot make a file grow.
    pub fn usual(method: StreamMethod, size: u64, data: Data) -> Strategy {
        Strategy {
            allocation: if method.is_mapped() {
                Allocation::Sparse
            } else {
                Allocation::Append
            },
            method,
            size,
            chunk: Strategy::CHUNK.min(size),
            data,
        }
    }

    /// Why this combination cannot be measured on any system, if it cannot.
    pub fn contradiction(&self) -> Option<String> {
        if self.method.is_mapped() && self.allocation == Allocation::Append {
            return Some("a mapping cannot make a file grow".into());
        }
        if matches!(
            self.allocation,
            Allocation::Recycled | Allocation::Step { .. }
        ) {
            return Some("a dump is not written in steps, nor over an old log".into());
        }
        if self.method.direct
            && !(self.chunk.is_multiple_of(4096) && self.size.is_multiple_of(4096))
        {
            return Some("direct I/O writes whole blocks".into());
        }
        (self.chunk > self.size).then(|| "a chunk is larger than the state".into())
    }

    /// Name of the strategy, unique in a plan and stable across runs: `append/write/512M`,
    /// `append/write/512M/chunk-64K`, `sparse/mmap/1G/zeros`.
    pub fn key(&self) -> String {
        Axes::from(*self).key()
    }

    /// Whether the hand-over leaves its bytes in the page cache.
    pub fn is_buffered(&self) -> bool {
        !self.method.direct && self.method.call != StreamCall::Paced
    }
}

impl From<Strategy> for Axes {
    fn from(strategy: Strategy) -> Axes {
        Axes {
            allocation: Some(strategy.allocation),
            stream_method: Some(strategy.method),
            size: Some(strategy.size),
            chunk: Some(strategy.chunk),
            data: Some(strategy.data),
            ..Axes::default()
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.key())
    }
}
