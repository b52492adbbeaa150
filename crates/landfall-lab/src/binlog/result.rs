//! What the experiment found, as it stands in the results document.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::PlanKind;
use crate::claim::ClaimResult;
use crate::configuration::Measurements;

/// Everything that experiment `binlog` found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BinlogResults {
    /// Which plan was run.
    pub plan: PlanKind,
    /// Rows of the table.
    pub rows: u64,
    /// Sites and configurations.
    #[serde(flatten)]
    pub measurements: Measurements,
    /// The published claims, with verdicts.
    pub claims: Vec<ClaimResult>,
}
