//! What the experiment found, as it stands in the results document.

use landfall_results::view::{Block, Part};
use landfall_results::{Metric, Saving, Series};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::views;
use crate::claim::ClaimResult;
use crate::stats::Estimate;
use crate::views::in_sentences;
use crate::{Findings, PlanKind, Results};

/// A log that accepts less than this share of the updates that come in does not keep up.
const KEEPS_UP: f64 = 0.95;

/// Everything that experiment `dump-vs-log` found, of one state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DumpVsLogResults {
    /// Which plan was run.
    pub plan: PlanKind,
    /// Bytes of the state.
    pub state_bytes: u64,
    /// Bytes of a record of it, with its header.
    pub record_bytes: u64,
    /// Updates that come in per second.
    pub updates_per_second: f64,
    /// Seconds for which each log takes them.
    pub log_seconds: f64,
    /// How often everything was measured.
    pub rounds: u32,
    /// Whether restarts read from the disk: their files had been evicted from the page cache, and were
    /// seen to be gone.
    pub cold: bool,
    /// What was measured of each way of keeping the state.
    pub series: Vec<Series>,
    /// How much must change before a dump is cheaper than each log, by each cost.
    pub break_even: Vec<BreakEven>,
    /// The published claims, with verdicts: there are none.
    pub claims: Vec<ClaimResult>,
}

/// By what a dump and a log are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cost {
    /// Bytes that the device writes; that the program writes, where there is no device to ask.
    Bytes,
    /// Seconds that the program spends.
    Seconds,
}

/// How much must change between two saves before a dump is cheaper than a log.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BreakEven {
    /// The log.
    pub saving: Saving,
    /// By what they are compared.
    pub cost: Cost,
    /// Updates that cost the log as much as one dump costs.
    pub updates: Estimate,
    /// The share of the state that they change, if none changes a record twice. Above 1 the dump is
    /// dearer unless records change more than once.
    pub share: Estimate,
    /// Seconds in which that many updates come in: the dump is cheaper when it is made less often.
    pub seconds: f64,
}

impl DumpVsLogResults {
    /// What was measured of a way.
    pub fn find(&self, saving: Saving) -> Option<&Series> {
        let mut series = self.series.iter();
        series.find(|one| one.axes.saving == Some(saving))
    }

    /// Those of these that were measured.
    pub fn measured<'a>(
        &'a self,
        savings: &'a [Saving],
    ) -> impl Iterator<Item = (Saving, &'a Series)> {
        let found = savings
            .iter()
            .filter_map(|one| Some((*one, self.find(*one)?)));
        found.filter(|(_, series)| series.is_measured())
    }

    /// Whether a log accepted updates as fast as they came in, in most rounds.
    pub fn keeps_up(&self, log: &Series) -> bool {
        let due = self.updates_per_second * self.log_seconds;
        let accepted = log.values(Metric::Operations);
        let slow = accepted.iter().filter(|count| **count < KEEPS_UP * due);
        slow.count() * 2 < accepted.len()
    }
}

impl Findings for DumpVsLogResults {
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
        views::brief(self)
    }

    fn part(&self, results: &Results) -> Part {
        views::part(results, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump_vs_log::fixtures::dump_vs_log_results;

    #[test]
    fn a_log_keeps_up_if_it_does_in_most_rounds() {
        let mut found = dump_vs_log_results();
        (found.updates_per_second, found.log_seconds) = (1_000.0, 1.5);
        let keeps_up = |updates: &[f64]| {
            let mut log = found.find(Saving::LogGroup).unwrap().clone();
            log.trials.truncate(updates.len());
            for (trial, count) in log.trials.iter_mut().zip(updates) {
                trial.figures.set(Metric::Operations, *count);
            }
            found.keeps_up(&log)
        };
        assert!(keeps_up(&[1_500.0, 1_425.0, 300.0]));
        assert!(!keeps_up(&[1_500.0, 1_424.0, 300.0]));
        assert!(!keeps_up(&[1_500.0, 300.0]));
    }
}
