//! One round of a series: its figures, and what is no figure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::{Figures, Metric};

/// One round of a series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// The round, from 1.
    pub round: u32,
    /// What was measured.
    pub figures: Figures,
    /// Seconds from the start at which each of equal parts of a state had been handed over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pace: Vec<f64>,
    /// The device, window by window, where it was watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Window>,
    /// The same figures for each kind of request, where the workload has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<KindOfRequest>,
    /// Whether it was waited for that the load is steady, and whether it became so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steadiness: Option<Steadiness>,
    /// Whether the amplification of the drive's model had become steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_wear_steady: Option<bool>,
    /// Whether it was stopped before all that it was to do was done.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cut: bool,
    /// What disturbed it, if anything did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbances: Vec<Disturbance>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// Something that disturbed a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Disturbance {
    /// Others used the CPU more than in the quietest round.
    ForeignCpu,
    /// The hypervisor took CPU away.
    StolenCpu,
    /// The device wrote or flushed more than this trial can have caused.
    ForeignTraffic,
}

/// One kind of request in a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KindOfRequest {
    /// Its name.
    pub name: String,
    /// Requests done, and their latencies.
    pub figures: Figures,
}

/// What was asked and written in one of the equal stretches of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// Requests done.
    pub requests: u64,
    /// Bytes that the device was given.
    pub bytes: u64,
}

/// Whether what a request cost the device still changed when the measured part of a trial began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Steadiness {
    /// Whether it did not, by the rule in `docs/reference/experiment-amplify.md`.
    pub reached: bool,
    /// Seconds that clients had asked by then.
    pub seconds: f64,
    /// By what share the KiB per request of the later half of the windows differed from those of the
    /// quarter before it; absent when nothing was asked in one of them.
    pub change: Option<f64>,
    /// Memtables that were written since the database was started; absent when it has none.
    pub memtable_flushes: Option<u64>,
    /// How often its log was gone through since then; absent when it does not tell.
    pub log_rounds: Option<f64>,
    /// What changes that wait on disk took of what they may; 1 once some were merged; absent when nothing waits there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_filled: Option<f64>,
    /// KiB per request, window by window.
    pub kib: Vec<f64>,
}

impl Trial {
    /// A figure, if it was measured.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        self.figures.get(metric)
    }
}
