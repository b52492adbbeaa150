//! Durable storage for embedding, whose write path is what was measured to be the cheapest that is still safe.
//!
//! [`Log`] is a durable log: one device write and one flush for a commit, however many threads commit at
//! once. Its bytes are described in `docs/log-format.md`, and why a power cut loses nothing of it in
//! `docs/crash-argument-log.md`.
//!
//! [`Journaled`] keeps a structure of yours in memory, by such a log and snapshots: `docs/snapshot-format.md`,
//! `docs/crash-argument-state.md`.
//!
//! Everything that they do to files goes through [`environment::Environment`], of which the tests have
//! another one, that loses power.

pub mod environment;
mod error;
mod log;
mod options;
mod state;

pub use error::Error;
pub use log::{
    Block, Commit, Counters, FlushTimes, Fragment, Inspection, Log, Lsn, Reader, Record,
    SegmentFile, Tail,
};
pub use options::Options;
pub use state::{
    BoxedError, Compression, Journaled, Policy, Restart, Snapshot, SnapshotFile, State,
    StateCounters, StateInspection, StateOptions, part_of,
};
#[cfg(feature = "serde")]
pub use state::{Serde, SerdeState};
