//! Dumps and logs as trials, for the lines of a spreadsheet.

use landfall_results::metric::Figures;
use landfall_results::{Metric, Trial};

use super::{DumpTrial, LogTrial, SavingResults};

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

impl SavingResults {
    /// All trials, with what they are of: `dump`, or `log` by its policy.
    pub fn trials(&self) -> Vec<(String, Trial)> {
        let dumps = self.dump.trials.iter();
        let dumps = dumps.map(|dump| ("dump".to_owned(), dump.trial()));
        let logs = self.logs.iter().flat_map(|log| {
            let key = format!("log/{}", log.policy.name());
            let trials = log.trials.iter();
            trials.map(move |trial| (key.clone(), trial.trial()))
        });
        dumps.chain(logs).collect()
    }
}
