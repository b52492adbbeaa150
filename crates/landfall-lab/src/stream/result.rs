//! What the experiment found, as it stands in the results document.
//!
//! MB are 10^6 bytes, as disks are sold and as the published figures were given; MiB are 2^20.

use landfall_os::DirtyLimits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Strategy;
use super::saving::SavingResults;
use crate::claim::ClaimResult;
use crate::disturbance::Disturbance;
use crate::stats::{Estimate, Spread};
use crate::{PlanKind, Preparation};

/// What the bytes of the state look like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Data {
    /// Pseudo-random: nothing can make less of it.
    #[default]
    Incompressible,
    /// Zeros, which a filesystem or a device may leave out.
    Zeros,
}

/// Everything that experiment `stream` found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamResults {
    /// Which plan was run.
    pub plan: PlanKind,
    /// How often each strategy was measured.
    pub rounds: u32,
    /// What the bytes look like.
    pub data: Data,
    /// How many bytes of dirty data the kernel takes in before it slows writers down; absent where
    /// it does not tell.
    pub dirty_limits: Option<DirtyLimits>,
    /// Sizes of the plan that were left out, in bytes, for want of space, memory or time.
    pub sizes_left_out: Vec<u64>,
    /// What the measuring loop reaches where no disk is involved.
    pub ceilings: Vec<Ceiling>,
    /// The strategies, in plan order.
    pub strategies: Vec<StrategyResult>,
    /// Where hand-over collapses as the size grows; one for each method and allocation that does.
    pub walls: Vec<Wall>,
    /// Dump against log; absent when it was not asked for.
    pub saving: Option<SavingResults>,
    /// The published claims, with verdicts.
    pub claims: Vec<ClaimResult>,
}

/// What the measuring loop reaches without a disk: an upper end for any hand-over here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ceiling {
    /// `generator` for making the bytes alone; otherwise the method, into a file in main memory.
    pub what: String,
    /// Bytes in a chunk.
    pub chunk: u64,
    /// MB per second, the best of several tries.
    pub mb_per_s: f64,
    /// The slowest of them. Where it is far below, memory itself is slow to be had: a hypervisor
    /// provides it when it is first touched.
    pub slowest_mb_per_s: f64,
}

/// One strategy: what it is and what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StrategyResult {
    /// Name, unique in the document and stable across runs.
    pub key: String,
    /// How the space was allocated.
    pub allocation: String,
    /// How the bytes were handed over.
    pub method: String,
    /// Bytes of the state.
    pub size: u64,
    /// Bytes handed over by one call.
    pub chunk: u64,
    /// Why it could not be measured here; then there are no trials.
    pub unsupported: Option<String>,
    /// Figures over the rounds; absent when nothing was measured.
    pub summary: Option<Summary>,
    /// The rounds.
    pub trials: Vec<Trial>,
}

impl StrategyResult {
    /// A strategy of which nothing was measured yet.
    pub(super) fn new(strategy: &Strategy) -> StrategyResult {
        StrategyResult {
            key: strategy.key(),
            allocation: strategy.allocation.to_string(),
            method: strategy.method.to_string(),
            size: strategy.size,
            chunk: strategy.chunk,
            unsupported: None,
            summary: None,
            trials: Vec::new(),
        }
    }
}

/// Figures over the rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Until the program may go on. Its MB/s are those of the whole state.
    pub hand_over: Phase,
    /// From there until the state is durable. Its MB/s are those of the bytes that the hand-over left
    /// to it, and absent where it left next to nothing (under 5%).
    pub sync: Phase,
    /// Both phases. Its MB/s are those of the whole state.
    pub total: Phase,
    /// The longest single call of the hand-over, in milliseconds.
    pub longest_stall_ms: Estimate,
    /// Bytes that the hand-over left in the page cache, in MiB.
    pub left_mib: Estimate,
    /// Peak resident memory of the process, in MiB; mapped file pages count. Absent where the kernel
    /// does not tell.
    pub peak_resident_mib: Option<Estimate>,
    /// CPU time of this process, user and system, in seconds per GiB.
    pub cpu_s_per_gib: Estimate,
    /// What the trial cost the device: the medians; absent when there is no device to ask.
    pub device: Option<StreamDevice>,
}

/// A phase over the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Seconds that it took.
    pub seconds: Spread,
    /// MB per second.
    pub mb_per_s: Option<Spread>,
}

/// What one trial cost the device that the directory stands on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamDevice {
    /// MiB written.
    pub written_mib: f64,
    /// Write requests as the kernel counts them, empty flushes included.
    pub write_requests: f64,
    /// Flushes that the device executed.
    pub flushes: f64,
    /// MiB read.
    pub read_mib: f64,
}

/// One strategy measured once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// The round, from 1.
    pub round: u32,
    /// Seconds until all bytes were handed over.
    pub hand_over_seconds: f64,
    /// Seconds from there until they were durable.
    pub sync_seconds: f64,
    /// MB per second of the hand-over.
    pub hand_over_mb_per_s: f64,
    /// MB per second of the sync, of what the hand-over had left; absent where that is next to nothing.
    pub sync_mb_per_s: Option<f64>,
    /// MB per second of both phases together.
    pub total_mb_per_s: f64,
    /// The longest single call of the hand-over, in milliseconds.
    pub longest_stall_ms: f64,
    /// MiB that were dirty or being written back when the hand-over ended, beyond those at its start.
    pub left_mib: f64,
    /// MiB that others had left dirty when the trial began.
    pub dirty_before_mib: f64,
    /// Peak resident memory of the process, in MiB.
    pub peak_resident_mib: Option<f64>,
    /// CPU time of this process, in seconds per GiB.
    pub cpu_s_per_gib: f64,
    /// What the trial cost the device.
    pub device: Option<StreamDevice>,
    /// Seconds from the start at which each of equal parts of the state had been handed over.
    pub pace: Vec<f64>,
    /// Preparing this trial's file, which is not part of any phase.
    pub preparation: Preparation,
    /// CPU that others took during the trial, in processors.
    pub foreign_cpus: f64,
    /// Time that a hypervisor took away, in processors.
    pub stolen_cpus: f64,
    /// What disturbed the trial, if anything did.
    pub disturbances: Vec<Disturbance>,
}

/// Where hand-over collapses as the size grows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wall {
    /// The method.
    pub method: String,
    /// How the space was allocated.
    pub allocation: String,
    /// The largest size before it, in bytes.
    pub size_before: u64,
    /// The smallest size beyond it, in bytes.
    pub size_after: u64,
    /// MB per second of the hand-over at the size before.
    pub before_mb_per_s: Estimate,
    /// MB per second of the hand-over at the size after.
    pub after_mb_per_s: Estimate,
    /// MiB handed over when the pace of the size after it broke, over the rounds in which it did.
    pub at_mib: Option<Estimate>,
    /// Bytes that were dirty when the size after it had been handed over, over the kernel's limit at which it
    /// begins to slow writers down. Well below 1, something else than that limit made the wall.
    pub share_of_limit: Option<f64>,
}

impl Wall {
    /// Whether the kernel's limit made it: the state is large enough to reach the limit, and so much was
    /// dirty in the end that writers were slowed down. They are held at the limit while the disk drains,
    /// and the last of a state may find some room again, so half of it is enough. A state that is smaller
    /// than the limit never meets it, though most of it be dirty; a tenth is for what others have dirty,
    /// and for a limit that moves with the memory that is available.
    pub fn is_at_limit(&self, limits: &DirtyLimits) -> bool {
        self.size_after as f64 >= 0.9 * limits.throttle_bytes as f64
            && self.share_of_limit.is_some_and(|share| share >= 0.5)
    }
}
