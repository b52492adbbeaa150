//! What a run measures: the plan of one experiment or of several.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{stream, sync};

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
            PlanKind::Chosen => "chosen strategies",
            PlanKind::Short => "short plan",
        }
    }
}

/// The plan of one experiment.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// What does one durable write cost?
    Sync(sync::Plan),
    /// How fast can a large state be handed over and made durable?
    Stream(stream::Plan),
}

impl Plan {
    /// What `landfall lab` runs unless an experiment is named: `sync`, then a short `stream`.
    pub fn standard() -> Vec<Plan> {
        vec![
            Plan::Sync(sync::Plan::standard()),
            Plan::Stream(stream::Plan::short()),
        ]
    }

    /// Trials in all.
    pub fn trials(&self) -> usize {
        match self {
            Plan::Sync(plan) => plan.trials(),
            Plan::Stream(plan) => plan.trials(),
        }
    }
}
