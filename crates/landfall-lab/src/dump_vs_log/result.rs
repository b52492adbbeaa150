//! What the experiment found, as it stands in the results document.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::PlanKind;
use crate::claim::ClaimResult;
use crate::stats::Estimate;

/// When the log is made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Never: the kernel writes it when it likes.
    Never,
    /// By another thread, once a second.
    EverySecond,
    /// All updates that have come in, together, whenever the last sync is done; an update is accepted
    /// when it is durable.
    Group,
    /// Each update on its own; it is accepted when it is durable.
    EveryUpdate,
}

impl Policy {
    /// All of them, the laxest first.
    pub const ALL: [Policy; 4] = [
        Policy::Never,
        Policy::EverySecond,
        Policy::Group,
        Policy::EveryUpdate,
    ];

    /// The name in documents and tables.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Never => "never",
            Policy::EverySecond => "every-second",
            Policy::Group => "group",
            Policy::EveryUpdate => "every-update",
        }
    }

    /// Which accepted updates a power cut may take, by what the system calls promise: no power has been
    /// cut to see it.
    pub fn loses(self) -> &'static str {
        match self {
            Policy::Never => "about half a minute of updates, as long as the kernel waits to write",
            Policy::EverySecond => "up to a second of updates, and as long as a sync takes",
            Policy::Group | Policy::EveryUpdate => {
                "nothing that was accepted, if the disk keeps its word"
            }
        }
    }
}

/// Everything that experiment `dump-vs-log` found, of one state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DumpVsLogResults {
    /// Which plan was run.
    pub plan: PlanKind,
    /// Bytes of the state.
    pub state_bytes: u64,
    /// Bytes of a record of it, as they stand in the log with their header.
    pub record_bytes: u64,
    /// Updates that come in per second.
    pub updates_per_second: f64,
    /// Seconds for which each policy logged them.
    pub log_seconds: f64,
    /// How often everything was measured.
    pub rounds: u32,
    /// Whether restarts read from the disk: their files had been evicted from the page cache, and were
    /// seen to be gone.
    pub cold: bool,
    /// Writing the whole state.
    pub dump: DumpResult,
    /// Logging its updates, by policy.
    pub logs: Vec<LogResult>,
    /// Reading a log that changes as many records as the state has.
    pub replay: Replay,
    /// How much must change before a dump is cheaper than each policy, by each cost.
    pub break_even: Vec<BreakEven>,
    /// The published claims, with verdicts: so far there are none.
    pub claims: Vec<ClaimResult>,
}

/// The whole state written to a temporary file, synced, renamed, and its directory synced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DumpResult {
    /// Seconds of the hand-over, during which the state must not change.
    pub hand_over_seconds: Estimate,
    /// Seconds until the new dump is durable under its name.
    pub seconds: Estimate,
    /// The longest single call of the hand-over, in milliseconds.
    pub longest_call_ms: Estimate,
    /// KiB that the device wrote; absent when there is no device to ask.
    pub device_kib: Option<f64>,
    /// Flushes that the device executed.
    pub flushes: Option<f64>,
    /// Seconds to read the state back.
    pub restart_seconds: Estimate,
    /// The rounds.
    pub trials: Vec<DumpTrial>,
}

/// One dump.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DumpTrial {
    /// The round, from 1.
    pub round: u32,
    /// Seconds of the hand-over.
    pub hand_over_seconds: f64,
    /// Seconds until the new dump is durable under its name.
    pub seconds: f64,
    /// The longest single call of the hand-over, in milliseconds.
    pub longest_call_ms: f64,
    /// KiB that the device wrote.
    pub device_kib: Option<f64>,
    /// Flushes that the device executed.
    pub flushes: Option<f64>,
    /// Seconds to read the state back.
    pub restart_seconds: f64,
}

/// Updates logged under one policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogResult {
    /// The policy.
    pub policy: Policy,
    /// Updates that were accepted per second.
    pub accepted_per_second: Estimate,
    /// Whether they were accepted as fast as they came in, in most rounds.
    pub kept_up: bool,
    /// The longest time from when an update came in until it was accepted, in milliseconds.
    pub longest_stall_ms: Estimate,
    /// The 99th percentile of those times.
    pub p99_stall_ms: Estimate,
    /// Microseconds that the program spends in the log per update.
    pub us_per_update: Estimate,
    /// Bytes that the program wrote per update.
    pub bytes_per_update: f64,
    /// Bytes that the device wrote per update, what was still in the page cache at the end included;
    /// absent when there is no device to ask.
    pub device_bytes_per_update: Option<f64>,
    /// Flushes that the device executed per update.
    pub flushes_per_update: Option<f64>,
    /// Seconds to read back the last dump and this log.
    pub restart_seconds: Estimate,
    /// The rounds.
    pub trials: Vec<LogTrial>,
}

/// One policy, measured once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogTrial {
    /// The round, from 1.
    pub round: u32,
    /// Updates accepted.
    pub updates: u64,
    /// Seconds that it took.
    pub seconds: f64,
    /// The longest time from when an update came in until it was accepted, in milliseconds.
    pub longest_stall_ms: f64,
    /// The 99th percentile of those times.
    pub p99_stall_ms: f64,
    /// Microseconds that the program spends in the log per update.
    pub us_per_update: f64,
    /// Syncs that the policy asked for.
    pub syncs: u64,
    /// Bytes that the program wrote.
    pub bytes: u64,
    /// KiB that the device wrote.
    pub device_kib: Option<f64>,
    /// Flushes that the device executed.
    pub flushes: Option<f64>,
    /// Seconds to read back the last dump and this log.
    pub restart_seconds: f64,
}

/// Reading back a log that changes as many records as the state has.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Replay {
    /// Records in the log.
    pub records: u64,
    /// Seconds that it took.
    pub seconds: Estimate,
}

/// By what a dump and a log are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cost {
    /// Bytes that the device writes; that the program writes, where there is no device to ask.
    Bytes,
    /// Seconds that the program spends.
    Seconds,
}

/// How much must change between two saves before a dump is cheaper than a log.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BreakEven {
    /// The log's policy.
    pub policy: Policy,
    /// By what they are compared.
    pub cost: Cost,
    /// Updates that cost the log as much as one dump costs.
    pub updates: Estimate,
    /// The share of the state that they change, if none changes a record twice. Above 1 the dump is
    /// dearer unless records change more than once.
    pub share: Estimate,
    /// Seconds in which that many updates come in: the dump is cheaper when it is made less often.
    pub seconds: f64,
}
