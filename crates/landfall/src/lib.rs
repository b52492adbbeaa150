// The README links to files; of two definitions of a link the first one counts.
#![doc = "[arguments]: docs::log_crash_argument\n[formats]: docs::log_format\n"]
#![doc = include_str!("../README.md")]

mod compression;
pub mod docs;
mod environment;
mod error;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(all(test, not(fuzzing)))]
mod fuzzing;
mod log;
#[cfg(feature = "mistakes")]
#[doc(hidden)]
pub mod mistakes;
#[cfg(all(test, not(feature = "mistakes")))]
mod mistakes;
mod options;
#[cfg(test)]
mod simulation;
mod state;
mod store;

pub use compression::Compression;
pub use error::Error;
pub use log::{
    Block, Commit, Counters, FlushTimes, Fragment, Inspection, Log, Lsn, Missing, Reader, Record,
    Salvage, SegmentFile, Tail,
};
pub use options::Options;
pub use state::{
    BoxedError, Journaled, Policy, Restart, Snapshot, SnapshotFile, State, StateCounters,
    StateInspection, StateOptions, StateSalvage, part_of,
};
#[cfg(feature = "serde")]
pub use state::{Serde, SerdeState};
pub use store::{
    Batch, BufferChoice, DamagedLeaf, ExpectedWrites, Keyspace, KeyspaceInspection,
    KeyspaceOptions, MOST_BUFFER_PERCENT, Pairs, Protection, ProtectionChoice, ProtectionCosts,
    Store, StoreBuffer, StoreCounters, StoreInspection, StoreOptions, StoreRestart, StoreSnapshot,
    StoreVerification, Transaction,
};
