//! What the experiment found, as it stands in the results document.

use landfall_results::proof::{Exercised, Hazard, SubjectName, has_tried};
use landfall_results::view::{Block, Part};
use landfall_results::{FilesystemSpec, Series};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::views;
use crate::claim::ClaimResult;
use crate::configuration::Measurements;
use crate::{Findings, PlanKind, Results};

/// Everything that experiment `torn` found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TornResults {
    /// Which plan was run.
    pub plan: PlanKind,
    /// Rows of the table.
    pub rows: u64,
    /// Disks, as latency profiles; `none` is the directory's own.
    pub latencies: Vec<String>,
    /// Sites and configurations.
    #[serde(flatten)]
    pub measurements: Measurements,
    /// What became of each setting when the power was cut; empty when that was not tried.
    pub proofs: Vec<TornProof>,
    /// The published claims, with verdicts.
    pub claims: Vec<ClaimResult>,
}

/// What power cuts did to one setting, with pages that are torn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TornProof {
    /// Who protects pages, and how they are written.
    pub name: String,
    /// The filesystem.
    pub filesystem_spec: FilesystemSpec,
    /// Which crash states were tried: flushed, prefix or subset.
    pub model: String,
    /// What was proven, with its settings.
    pub subject: SubjectName,
    /// Whether something is meant to protect its pages.
    pub protected: bool,
    /// Distinct crash states that were checked.
    pub states: u64,
    /// States from which the database did not recover.
    pub damaged: u64,
    /// Whether `damaged` and `wrong` are the least that they may be: how many states had either of two such failures was not
    /// counted.
    #[serde(default)]
    pub is_least: bool,
    /// States from which it recovered, to show a part of a transaction, or what was never written.
    pub wrong: u64,
    /// States in which an acknowledged transaction was missing, those above among them.
    pub losing: u64,
    /// What happened that the database must be protected from, and in how many states. Empty in documents of the time
    /// before it was counted.
    #[serde(default)]
    pub exercised: Vec<Exercised>,
    /// What the database said of the first such state.
    pub said: Option<String>,
    /// The command that makes the proof again, from a recording of its own.
    pub again: String,
    /// Why it was not proven, if it was not.
    pub not_proven: Option<String>,
}

impl TornProof {
    /// Whether nothing was seen of which the database could not say what it had promised: lost transactions
    /// are another matter, where commits are not synced.
    pub fn is_whole(&self) -> bool {
        self.damaged == 0 && self.wrong == 0
    }

    /// What stands before the number of states that were damaged or wrong.
    pub fn least_text(&self) -> &'static str {
        if self.is_least { "at least " } else { "" }
    }

    /// Whether it is whole because no page was torn, so that nothing is shown of what protects pages. `None`: it is not
    /// known whether one was.
    pub fn is_untried(&self) -> Option<bool> {
        if !self.is_whole() {
            return Some(false);
        }
        has_tried(&self.exercised, Hazard::PageTorn).map(|tried| !tried)
    }
}

impl Findings for TornResults {
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

    /// A proof is a result too: it needs nothing that was timed.
    fn is_empty(&self) -> bool {
        let is_timed = self.series().iter().any(|one| !one.trials.is_empty());
        !is_timed && self.proofs.iter().all(|proof| proof.states == 0)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::torn::fixtures::torn_results;

    #[test]
    fn a_proof_is_a_result_where_nothing_could_be_timed() {
        let mut found = torn_results();
        assert!(!found.is_empty());
        found.measurements.series.clear();
        assert!(!found.is_empty());
        for proof in &mut found.proofs {
            proof.states = 0;
        }
        assert!(found.is_empty());
    }
}
