//! How much a device was asked to do.

use std::ops::{Add, Sub};

/// Requests and bytes, exactly as the device saw them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Read requests.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Write requests; flushes are not among them.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Flushes, those that a fault made a lie among them.
    pub flushes: u64,
}

impl Add for Counts {
    type Output = Counts;

    fn add(self, other: Counts) -> Counts {
        Counts {
            reads: self.reads + other.reads,
            read_bytes: self.read_bytes + other.read_bytes,
            writes: self.writes + other.writes,
            written_bytes: self.written_bytes + other.written_bytes,
            flushes: self.flushes + other.flushes,
        }
    }
}

impl Sub for Counts {
    type Output = Counts;

    /// What happened from `earlier` to `self`.
    fn sub(self, earlier: Counts) -> Counts {
        Counts {
            reads: self.reads - earlier.reads,
            read_bytes: self.read_bytes - earlier.read_bytes,
            writes: self.writes - earlier.writes,
            written_bytes: self.written_bytes - earlier.written_bytes,
            flushes: self.flushes - earlier.flushes,
        }
    }
}
