//! How long a device takes.

use std::time::Duration;

/// What a device is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Read `len` bytes from `offset`.
    Read {
        /// The first byte.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// Write `len` bytes at `offset`.
    Write {
        /// The first byte.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// Make durable what was written.
    Flush,
}

/// The times of a kind of device.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {}

/// A device in motion.
#[derive(Debug)]
pub(crate) struct Latency {}

impl Latency {
    /// A device of `size` bytes at rest.
    pub fn new(_profile: &Profile, _size: u64) -> Latency {
        Latency {}
    }

    /// When a request is finished that arrives at `now`; both since the same beginning. `now` never
    /// goes back.
    pub fn finish(&mut self, now: Duration, _request: Request) -> Duration {
        now
    }
}
