//! What the experiment found, as it stands in the results document.

use landfall_results::Series;
use landfall_results::view::{Block, Part};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Updates, views};
use crate::claim::ClaimResult;
use crate::configuration::Measurements;
use crate::{Findings, PlanKind, Results};

/// Everything that experiment `amplify` found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AmplifyResults {
    /// Which plan was run.
    pub plan: PlanKind,
    /// Ids of nodes that were loaded.
    pub ids: u64,
    /// Clients that asked at the same time.
    pub clients: u32,
    /// Bytes of what a database kept in memory, where its data did not fit.
    pub pool_bytes: u64,
    /// What was updated at random, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updates: Option<Updates>,
    /// The drive whose wear was reckoned.
    pub drive: String,
    /// Sites and configurations.
    #[serde(flatten)]
    pub measurements: Measurements,
    /// The published claims, with verdicts.
    pub claims: Vec<ClaimResult>,
}

impl Findings for AmplifyResults {
    fn plan(&self) -> PlanKind {
        self.plan
    }

    fn rounds(&self) -> u32 {
        self.measurements.rounds
    }

    fn series(&self) -> &[Series] {
        &self.measurements.series
    }

    fn claims(&self) -> &[ClaimResult] {
        &self.claims
    }

    fn claims_mut(&mut self) -> &mut Vec<ClaimResult> {
        &mut self.claims
    }

    fn brief(&self, _: &Results) -> Vec<Block> {
        views::brief(self)
    }

    fn part(&self, _: &Results) -> Part {
        views::part(self)
    }

    fn measurements(&self) -> Option<&Measurements> {
        Some(&self.measurements)
    }
}
