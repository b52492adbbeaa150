//! What the experiment found, as it stands in the results document.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CacheState, Files, Operations, Placement, Strategy};
use crate::claim::ClaimResult;
use crate::disturbance::Disturbance;
use crate::numbers::two;
use crate::stats::Estimate;
use crate::{PlanKind, Preparation};

/// Everything that experiment `sync` found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SyncResults {
    /// Which plan was run.
    pub plan: PlanKind,
    /// How often each strategy was measured.
    pub rounds: u32,
    /// How long a trial was meant to take, in seconds.
    pub seconds_per_trial: f64,
    /// How the number of operations was chosen.
    pub operations: Operations,
    /// Seconds waited after zero-filling for `zero-filled-settled`; absent when the zeros were synced
    /// instead.
    pub settle_seconds: Option<f64>,
    /// The short run that it was chosen from; absent when the user gave the number.
    pub pilot: Option<Pilot>,
    /// Preparing files that are kept for the whole run, which no trial is charged with.
    pub preparation: Preparation,
    /// The strategies, in plan order.
    pub strategies: Vec<StrategyResult>,
    /// The published claims, with verdicts.
    pub claims: Vec<ClaimResult>,
}

/// The short run of the plan's centre that sizes the trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pilot {
    /// Operations done.
    pub operations: u64,
    /// Durable 8 KiB overwrites with fdatasync per second.
    pub ops_per_second: f64,
}

/// One strategy: what it is and what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StrategyResult {
    /// Name, unique in the document and stable across runs.
    pub key: String,
    /// How the space was allocated.
    pub allocation: String,
    /// How the write was made durable.
    pub method: String,
    /// Whether a write that returned is meant to survive a power cut.
    pub durable: bool,
    /// Bytes in a write.
    pub size: u64,
    /// Threads that wrote.
    pub threads: u32,
    /// One file or a file each.
    pub files: Files,
    /// Where writes landed.
    pub placement: Placement,
    /// What the page cache held.
    pub cache: CacheState,
    /// Why it could not be measured here; then there are no trials.
    pub unsupported: Option<String>,
    /// Medians over the rounds; absent when nothing was measured.
    pub summary: Option<Summary>,
    /// What became of it when the power was cut; absent when that was not tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<StrategyProof>,
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
            durable: strategy.method.is_durable(),
            size: strategy.size,
            threads: strategy.threads,
            files: strategy.files,
            placement: strategy.placement,
            cache: strategy.cache,
            unsupported: None,
            summary: None,
            proof: None,
            trials: Vec::new(),
        }
    }
}

/// What power cuts did to one strategy, on the recorder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StrategyProof {
    /// The filesystem that was made for it.
    pub recipe: String,
    /// Distinct crash states that were checked.
    pub states: u64,
    /// States in which an acknowledged write was not there.
    pub losing: u64,
    /// Acknowledged writes that were missing in the worst of them.
    pub worst_lost: u64,
    /// Why it was not proven, if it was not.
    pub not_proven: Option<String>,
}

impl StrategyProof {
    /// Whether it was proven, and no acknowledged write was ever missing.
    pub fn lost_nothing(&self) -> bool {
        self.not_proven.is_none() && self.states > 0 && self.losing == 0
    }
}

/// Medians over the rounds, with 95% bootstrap intervals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Operations per second, the first one included.
    pub ops_per_second: Estimate,
    /// Latency of the first operation, in microseconds.
    pub first_us: Estimate,
    /// Median latency of the others, in microseconds.
    pub p50_us: Estimate,
    /// 99th percentile of their latency, in microseconds.
    pub p99_us: Estimate,
    /// CPU time per operation, user and system, in microseconds.
    pub cpu_us: Estimate,
    /// What one operation cost the device: the medians; absent when there is no device to ask.
    pub device: Option<DeviceCost>,
    /// Rate of the last third of a trial over that of its first third.
    pub drift: Option<Estimate>,
    /// Latency in microseconds at each of these percentiles, over all rounds together, without first
    /// operations: pairs of percentile and latency.
    pub distribution: Vec<(f64, f64)>,
}

/// What one operation cost the device that the directory stands on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceCost {
    /// Write requests that carried data; absent where empty flushes cannot be told from them.
    pub writes: Option<f64>,
    /// Write requests as the kernel counts them, empty flushes included.
    pub write_requests: f64,
    /// KiB written.
    pub kib: f64,
    /// Flushes that the device executed.
    pub flushes: f64,
    /// Read requests.
    pub reads: f64,
}

impl DeviceCost {
    /// Writes per operation, to be read: at most as many as there were requests, where empty flushes cannot be told
    /// from writes.
    pub fn writes_text(&self) -> String {
        match self.writes {
            Some(writes) => two(writes),
            None => format!("≤{}", two(self.write_requests)),
        }
    }
}

/// Latencies of a trial's operations but the first, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// The slowest.
    pub max: f64,
}

/// One strategy measured once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// The round, from 1.
    pub round: u32,
    /// Operations done.
    pub operations: u64,
    /// Seconds they took together.
    pub seconds: f64,
    /// Operations per second, the first one included.
    pub ops_per_second: f64,
    /// Latency of the first operation, in microseconds. After zero-filling it carries the flush of
    /// all the zeros.
    pub first_us: f64,
    /// Latency of the others; absent when there was only one.
    pub latency: Option<Latency>,
    /// CPU time per operation, user and system, of this process, in microseconds.
    pub cpu_us: f64,
    /// What one operation cost the device.
    pub device: Option<DeviceCost>,
    /// Seconds of the trial spent on extending files in steps, part of `seconds`; summed over files,
    /// where threads have a file each.
    pub extension_seconds: f64,
    /// Rate of the last third over that of the first; absent for very short trials.
    pub drift: Option<f64>,
    /// Whether the trial was stopped before all its operations were done.
    pub cut: bool,
    /// Preparing this trial's file, which is not part of `seconds`.
    pub preparation: Preparation,
    /// CPU that others took during the trial, in processors.
    pub foreign_cpus: f64,
    /// Time that a hypervisor took away, in processors.
    pub stolen_cpus: f64,
    /// What disturbed the trial, if anything did.
    pub disturbances: Vec<Disturbance>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_that_cannot_be_told_are_bounded() {
        let cost = DeviceCost {
            writes: None,
            write_requests: 2.0,
            kib: 8.0,
            flushes: 1.0,
            reads: 0.0,
        };
        assert_eq!(cost.writes_text(), "≤2.00");
    }
}
