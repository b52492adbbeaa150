//! What the experiment found, as it stands in the results document.

use landfall_results::view::{Block, Part};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use landfall_results::Series;

use super::Operations;
use super::views;
use crate::claim::ClaimResult;
use crate::views::in_sentences;
use crate::{Findings, PlanKind, Preparation, Results};

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
    /// What was measured of each strategy, in plan order.
    pub series: Vec<Series>,
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

impl Findings for SyncResults {
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
        // In main memory nothing is durable, whatever it costs.
        let answer = (!results.is_in_memory()).then(|| views::answer(results, self));
        let answer = answer.flatten();
        answer.unwrap_or_else(|| in_sentences(self.part(results)))
    }

    fn brief(&self, results: &Results) -> Vec<Block> {
        views::brief(results, self)
    }

    fn part(&self, results: &Results) -> Part {
        views::part(results, self)
    }
}
