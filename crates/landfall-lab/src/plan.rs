//! What a run measures: the plan of one experiment or of several.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{amplify, binlog, stream, sync, torn};

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

/// The plan of one experiment.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// What does one durable write cost?
    Sync(sync::Plan),
    /// How fast can a large state be handed over and made durable?
    Stream(stream::Plan),
    /// What does syncing a growing commit log cost?
    Binlog(binlog::Plan),
    /// What does protection against torn pages cost?
    Torn(torn::Plan),
    /// How many bytes reach the device per request?
    Amplify(Box<amplify::Plan>),
}

impl Plan {
    /// What `landfall lab` runs unless an experiment is named: `sync`, then a short `stream`.
    pub fn standard() -> Vec<Plan> {
        vec![
            Plan::Sync(sync::Plan::standard()),
            Plan::Stream(stream::Plan::short()),
        ]
    }

    /// The experiment's name.
    pub fn name(&self) -> &'static str {
        match self {
            Plan::Sync(_) => "sync",
            Plan::Stream(_) => "stream",
            Plan::Binlog(_) => "binlog",
            Plan::Torn(_) => "torn",
            Plan::Amplify(_) => "amplify",
        }
    }

    /// How long it is expected to take, before anything is known about the disk.
    pub fn expected(&self) -> Duration {
        let seconds = match self {
            Plan::Sync(plan) => plan.seconds * plan.trials() as f64 * 1.2,
            Plan::Stream(plan) if !plan.sweep => 0.0,
            Plan::Stream(plan) => plan.most_seconds.unwrap_or(600.0) * 0.6,
            Plan::Binlog(plan) => return plan.configurations().expected(),
            Plan::Torn(plan) => return plan.configurations().expected(),
            Plan::Amplify(plan) => return plan.configurations().expected(),
        };
        let saving = match self {
            Plan::Stream(stream::Plan {
                saving: Some(plan), ..
            }) => plan.expected(),
            _ => Duration::ZERO,
        };
        saving + Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    /// Bytes that a run may need in its directory at once, whatever the disk turns out to be like.
    pub fn required_bytes(&self) -> u64 {
        match self {
            Plan::Sync(plan) => sync::required_bytes(plan, f64::INFINITY),
            Plan::Stream(plan) => plan.required_bytes(),
            Plan::Binlog(plan) => plan.configurations().required_bytes(),
            Plan::Torn(plan) => plan.configurations().required_bytes(),
            Plan::Amplify(plan) => plan.configurations().required_bytes(),
        }
    }

    /// Trials in all.
    pub fn trials(&self) -> usize {
        match self {
            Plan::Sync(plan) => plan.trials(),
            Plan::Stream(plan) => plan.trials(),
            Plan::Binlog(plan) => plan.configurations().trials(),
            Plan::Torn(plan) => plan.configurations().trials(),
            Plan::Amplify(plan) => plan.configurations().trials(),
        }
    }
}
