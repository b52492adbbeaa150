//! The ways of keeping a state that experiment `dump-vs-log` compares: an axis of its series.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a state in memory is kept durable, or read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Saving {
    /// All of it is written to a new file, which is synced and renamed over the old one. The program stands still until
    /// it is written.
    #[serde(rename = "dump")]
    Dump,
    /// Each update is appended to a plain file, which is synced for it.
    #[serde(rename = "file/every-update")]
    FileEveryUpdate,
    /// Updates are appended to the engine's log, and never committed.
    #[serde(rename = "log/never")]
    LogNever,
    /// The engine's log is committed once a second, by another thread.
    #[serde(rename = "log/every-second")]
    LogEverySecond,
    /// All updates that have come in are committed together, whenever the last commit is done.
    #[serde(rename = "log/group")]
    LogGroup,
    /// Each update is committed on its own.
    #[serde(rename = "log/every-update")]
    LogEveryUpdate,
    /// A long log is read back and applied.
    #[serde(rename = "replay")]
    Replay,
    /// The engine takes a snapshot of its state while updates come in, which are committed once a second.
    #[serde(rename = "snapshot/every-second")]
    SnapshotEverySecond,
    /// The engine takes a snapshot while updates come in, each of which is committed on its own.
    #[serde(rename = "snapshot/every-update")]
    SnapshotEveryUpdate,
}

/// What is done with a state or its updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The state is written as a whole, while the program stands still.
    Dump,
    /// A log is read back.
    Replay,
    /// Updates go to a plain file.
    File(Policy),
    /// Updates go to the engine's log.
    Log(Policy),
    /// The engine takes a snapshot of its state while updates go on.
    Snapshot(Policy),
}

/// When updates are made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Never: the log and the kernel write them when they like.
    Never,
    /// By another thread, once a second.
    EverySecond,
    /// All that have come in, together, whenever the last sync is done.
    Group,
    /// Each on its own.
    EveryUpdate,
}

impl Saving {
    /// All of them.
    pub const ALL: [Saving; 9] = [
        Saving::Dump,
        Saving::Replay,
        Saving::LogNever,
        Saving::LogEverySecond,
        Saving::LogGroup,
        Saving::LogEveryUpdate,
        Saving::FileEveryUpdate,
        Saving::SnapshotEverySecond,
        Saving::SnapshotEveryUpdate,
    ];

    /// Those that log updates for a time, the laxest first.
    pub const LOGS: [Saving; 5] = [
        Saving::LogNever,
        Saving::LogEverySecond,
        Saving::LogGroup,
        Saving::LogEveryUpdate,
        Saving::FileEveryUpdate,
    ];

    /// Those that take a snapshot.
    pub const SNAPSHOTS: [Saving; 2] = [Saving::SnapshotEverySecond, Saving::SnapshotEveryUpdate];

    /// Its name in documents and tables.
    pub fn name(self) -> &'static str {
        match self {
            Saving::Dump => "dump",
            Saving::FileEveryUpdate => "file/every-update",
            Saving::LogNever => "log/never",
            Saving::LogEverySecond => "log/every-second",
            Saving::LogGroup => "log/group",
            Saving::LogEveryUpdate => "log/every-update",
            Saving::Replay => "replay",
            Saving::SnapshotEverySecond => "snapshot/every-second",
            Saving::SnapshotEveryUpdate => "snapshot/every-update",
        }
    }

    /// What is done, and when updates are made durable meanwhile.
    pub fn way(self) -> Way {
        match self {
            Saving::Dump => Way::Dump,
            Saving::Replay => Way::Replay,
            Saving::FileEveryUpdate => Way::File(Policy::EveryUpdate),
            Saving::LogNever => Way::Log(Policy::Never),
            Saving::LogEverySecond => Way::Log(Policy::EverySecond),
            Saving::LogGroup => Way::Log(Policy::Group),
            Saving::LogEveryUpdate => Way::Log(Policy::EveryUpdate),
            Saving::SnapshotEverySecond => Way::Snapshot(Policy::EverySecond),
            Saving::SnapshotEveryUpdate => Way::Snapshot(Policy::EveryUpdate),
        }
    }
}

impl Policy {
    /// Whether the program waits until an update is durable.
    pub fn waits(self) -> bool {
        matches!(self, Policy::Group | Policy::EveryUpdate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_each_by_its_name() {
        for saving in Saving::ALL {
            let json = serde_json::to_string(&saving).unwrap();
            assert_eq!(json, format!("\"{}\"", saving.name()));
        }
    }
}
