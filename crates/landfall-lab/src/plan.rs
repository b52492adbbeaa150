//! Which plan of an experiment is run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Experiment, dump_vs_log, stream, sync};

/// Which plan of an experiment it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlanKind {
    /// What is measured unless something else is asked for.
    Standard,
    /// The product of all axes.
    Full,
    /// What the user chose.
    Chosen,
    /// A shorter form of the standard plan, for a run of several experiments.
    Short,
}

impl PlanKind {
    /// The plan in words.
    pub fn name(self) -> &'static str {
        match self {
            PlanKind::Standard => "standard plan",
            PlanKind::Full => "full plan",
            PlanKind::Chosen => "chosen plan",
            PlanKind::Short => "short plan",
        }
    }
}

/// What `landfall lab` runs unless an experiment is named: `sync`, then a short `stream` and a short
/// `dump-vs-log`.
pub fn standard_plans() -> Vec<Box<dyn Experiment>> {
    vec![
        Box::new(sync::Plan::standard()),
        Box::new(stream::Plan::short()),
        Box::new(dump_vs_log::Plan::short()),
    ]
}
