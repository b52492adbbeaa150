//! What is found, as every experiment gives it: dumps and logs as trials, for the lines of a spreadsheet.

use std::borrow::Cow;

use landfall_results::metric::Figures;
use landfall_results::view::{Block, Part};
use landfall_results::{Metric, Series, Trial};

use super::{DumpTrial, DumpVsLogResults, LogTrial, views};
use crate::claim::ClaimResult;
use crate::{Findings, PlanKind, Results};

impl DumpTrial {
    fn trial(&self) -> Trial {
        Trial {
            round: self.round,
            figures: Figures::default()
                .with(Metric::Seconds, self.seconds)
                .with(Metric::HandOverSeconds, self.hand_over_seconds)
                .with(Metric::LongestStallMs, self.longest_call_ms)
                .with(
                    Metric::DeviceWrittenMib,
                    self.device_kib.map(|kib| kib / 1024.0),
                )
                .with(Metric::DeviceFlushes, self.flushes)
                .with(Metric::RestartSeconds, self.restart_seconds),
            ..Trial::default()
        }
    }
}

impl LogTrial {
    fn trial(&self) -> Trial {
        Trial {
            round: self.round,
            figures: Figures::default()
                .with(Metric::Seconds, self.seconds)
                .with(Metric::LongestStallMs, self.longest_stall_ms)
                .with(Metric::P99StallMs, self.p99_stall_ms)
                .with(
                    Metric::DeviceWrittenMib,
                    self.device_kib.map(|kib| kib / 1024.0),
                )
                .with(Metric::DeviceFlushes, self.flushes)
                .with(Metric::Updates, self.updates as f64)
                .with(Metric::UsPerUpdate, self.us_per_update)
                .with(Metric::RestartSeconds, self.restart_seconds),
            ..Trial::default()
        }
    }
}

impl Findings for DumpVsLogResults {
    fn plan(&self) -> PlanKind {
        self.plan
    }

    fn rounds(&self) -> u32 {
        self.rounds
    }

    /// None: what varies is the policy, and a dump is measured by other figures than a log.
    fn series(&self) -> &[Series] {
        &[]
    }

    /// `dump`, and `log` by its policy.
    fn trials(&self) -> Vec<(Cow<'_, str>, Cow<'_, Trial>)> {
        let dumps = self.dump.trials.iter();
        let dumps = dumps.map(|dump| (Cow::from("dump"), Cow::Owned(dump.trial())));
        let logs = self.logs.iter().flat_map(|log| {
            let key = format!("log/{}", log.policy.name());
            let trials = log.trials.iter();
            trials.map(move |trial| (Cow::from(key.clone()), Cow::Owned(trial.trial())))
        });
        dumps.chain(logs).collect()
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

    fn part(&self, results: &Results) -> Part {
        views::part(results, self)
    }

    /// Every round measures everything, and there is at least one.
    fn is_empty(&self) -> bool {
        false
    }
}
