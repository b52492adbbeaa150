//! From what was measured and proven to settings: the fastest that lost nothing, with the evidence.
//!
//! - `evidence`: what a results document says of a rule of [`rules`];
//! - `judge`: from both to [`Advice`], by one rule: the fastest that lost nothing;
//! - [`mod@merge`]: several documents of one machine as one;
//! - [`Target`], [`Capacity`]: what the disk can carry of a workload, and how long its flash lasts;
//! - [`Change`]: what to change of what is usual, [`Scope`]: on which systems advice is shown;
//! - [`fragment`]: advice as a configuration file;
//! - [`mod@check`]: what a configuration file that is there risks, and leaves unused.
//!
//! Nothing is measured here and nothing is written: advice is made from results and from nothing else, and the
//! same results always give the same advice. Where flushes do not reach the disk, or it is memory, that is the
//! only advice there is.

mod capacity;
mod change;
pub mod check;
mod commands;
mod evidence;
#[cfg(test)]
pub(crate) mod fixtures;
mod flash;
pub mod fragment;
mod judge;
pub mod merge;
mod result;
mod scope;
mod subject;
mod summary_text;
mod target;
#[cfg(test)]
mod tests;

pub use crate::rules::System;
pub use capacity::{Capacity, Verdict};
pub use change::Change;
pub use commands::Commands;
pub use flash::Flash;
pub use merge::{heed_mount, is_same_machine, is_same_storage, merge};
pub use result::{
    ADVICE_SCHEMA, Advice, Basis, Choice, Gain, Lack, Missing, Proof, Quantity, Recommendation,
    Setting, advice_schema,
};
pub use scope::Scope;
pub use summary_text::{
    NOT_MEASURED, choice_text, gain_text, legend, losses, marks, proof_text, sentence,
};
pub use target::Target;

use std::time::Duration;

use landfall_recorder::wear::Drive;

use crate::rules;
use crate::{Experiment, Results, Site, Weight, dump_vs_log, facts, proof, stream, sync};
use evidence::Evidence;

/// What is advised on what `results` are of. `report` is the directory that holds documents, for the commands
/// that get what is missing; a `target` is held against the disk and the flash of `drive`.
pub fn advise(results: &Results, report: &str, target: Option<(&Target, &Drive)>) -> Advice {
    let mut advice = Advice {
        schema: ADVICE_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        directory: results.directory.clone(),
        place: facts::place(&results.filesystem),
        flushes: None,
        refused: refusal(results),
        settings: Vec::new(),
        missing: Vec::new(),
        capacity: None,
        checks: Vec::new(),
    };
    if advice.refused.is_some() {
        return advice;
    }
    let evidence = Evidence {
        results,
        hour: target.map(|(target, _)| target.bytes_per_second() * 3600.0),
    };
    let commands = Commands::new(results, report);
    let mut missing = Vec::new();
    for system in System::ALL {
        for rule in rules::of(system) {
            let judged = judge::judge(rule, &evidence, &commands);
            advice.settings.extend(judged.setting);
            missing.extend(judged.missing);
        }
    }
    judge::withdraw_lacking(&mut advice.settings);
    advice.missing = judge::gathered(missing);
    advice.capacity = target.map(|(target, drive)| capacity::capacity(target, drive, &evidence));
    advice
}

/// Why there can be no advice on settings: what is durable here is in doubt itself.
fn refusal(results: &Results) -> Option<String> {
    let danger = results
        .notices
        .iter()
        .find(|notice| notice.weight == Weight::Danger)?;
    Some(danger.text.clone())
}

/// What is measured in a directory of which nothing is known.
pub struct Plans {
    /// The standard plan, in order.
    pub plans: Vec<Box<dyn Experiment>>,
    /// Strategies that are held against power cuts.
    pub proofs: usize,
    /// Why none is, if that is so.
    pub unproven: Option<String>,
}

/// The standard plan, with the proof of every strategy where one can be made.
pub fn plans(site: &Site) -> Plans {
    let unproven = proof::filesystem_like(site)
        .err()
        .map(|error| error.to_string());
    let proven = unproven
        .is_none()
        .then_some(sync::Plan::PROOF_STATES as usize);
    let sync = sync::Plan {
        proof_states: proven,
        ..sync::Plan::standard()
    };
    Plans {
        proofs: sync.proofs(),
        plans: vec![
            Box::new(sync),
            Box::new(stream::Plan::short()),
            Box::new(dump_vs_log::Plan::short()),
        ],
        unproven,
    }
}

impl Plans {
    /// How long it takes.
    pub fn expected(&self) -> Duration {
        self.plans.iter().map(|plan| plan.expected()).sum()
    }

    /// What is done, and how long it takes, in a sentence or two.
    pub fn sentence(&self, site: &Site) -> String {
        let trials: usize = self.plans.iter().map(|plan| plan.trials()).sum();
        let minutes = self.expected().as_secs().div_ceil(60);
        let mut text = format!(
            "Nothing is measured in {} yet. That takes about {minutes} minutes: {trials} trials",
            site.directory().display()
        );
        match &self.unproven {
            None => {
                text += &format!(
                    ", and {} proofs of up to {} simulated power cuts each",
                    self.proofs,
                    sync::Plan::PROOF_STATES
                );
            }
            Some(why) => text += &format!(". No proofs: {why}"),
        }
        text
    }
}
