//! What the experiment found, as it stands in the results document.
//!
//! MB are 10^6 bytes, as disks are sold and as the published figures were given; MiB are 2^20.

use landfall_os::{Allocation, DirtyLimits, StreamMethod};
use landfall_results::view::{Block, Part};
use landfall_results::{Data, Series};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::views;
use crate::claim::ClaimResult;
use crate::stats::Estimate;
use crate::views::in_sentences;
use crate::{Findings, PlanKind, Results};

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
    /// What was measured of each strategy, in plan order.
    pub series: Vec<Series>,
    /// Where hand-over collapses as the size grows; one for each method and allocation that does.
    pub walls: Vec<Wall>,
    /// The published claims, with verdicts.
    pub claims: Vec<ClaimResult>,
}

/// What the measuring loop reaches without a disk: an upper end for any hand-over here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ceiling {
    /// The method, into a file in main memory; absent of making the bytes alone.
    pub method: Option<StreamMethod>,
    /// Bytes in a chunk.
    pub chunk: u64,
    /// MB per second, the best of several tries.
    pub mb_per_s: f64,
    /// The slowest of them. Where it is far below, memory itself is slow to be had: a hypervisor
    /// provides it when it is first touched.
    pub slowest_mb_per_s: f64,
}

/// Where hand-over collapses as the size grows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wall {
    /// The method.
    pub method: StreamMethod,
    /// How the space was allocated.
    pub allocation: Allocation,
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

impl Findings for StreamResults {
    fn plan(&self) -> PlanKind {
        self.plan
    }

    fn rounds(&self) -> u32 {
        self.rounds
    }

    fn series(&self) -> &[Series] {
        &self.series
    }

    fn claims(&self) -> &[ClaimResult] {
        &self.claims
    }

    fn claims_mut(&mut self) -> &mut Vec<ClaimResult> {
        &mut self.claims
    }

    fn answer(&self, results: &Results) -> Vec<Block> {
        let answer = views::answer::answer(results, self);
        answer.unwrap_or_else(|| in_sentences(self.part(results)))
    }

    fn brief(&self, _: &Results) -> Vec<Block> {
        views::tables::brief(self)
    }

    fn part(&self, results: &Results) -> Part {
        views::part(results, self)
    }
}
