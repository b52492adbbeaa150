//! What the experiment found, as it stands in the results document.

use landfall_results::Series;
use landfall_results::view::{Block, Part};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::views;
use crate::claim::ClaimResult;
use crate::{Findings, PlanKind, Results, SiteResult};

/// Everything that experiment `rename` found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RenameResults {
    /// Which plan was run.
    pub plan: PlanKind,
    /// How often each way was measured.
    pub rounds: u32,
    /// How long a trial was meant to take, in seconds.
    pub seconds_per_trial: f64,
    /// Bytes of the file.
    pub size: u64,
    /// The sites, in plan order.
    pub sites: Vec<SiteResult>,
    /// What was measured of each way, site by site.
    pub series: Vec<Series>,
    /// The published claims, with verdicts: there are none.
    pub claims: Vec<ClaimResult>,
}

impl Findings for RenameResults {
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

    fn brief(&self, _: &Results) -> Vec<Block> {
        views::brief(self)
    }

    fn part(&self, _: &Results) -> Part {
        views::part(self)
    }
}
