//! Dumps and logs as rows.

use super::{DumpTrial, LogTrial, Policy, SavingResults};
use crate::row::{Row, maybe, number, seconds};

impl DumpTrial {
    pub(crate) fn row(&self) -> Row {
        Row::new(
            "stream",
            "dump",
            self.round,
            vec![
                ("seconds", seconds(self.seconds)),
                ("hand_over_seconds", seconds(self.hand_over_seconds)),
                ("longest_stall_ms", number(self.longest_call_ms)),
                (
                    "device_written_mib",
                    maybe(self.device_kib.map(|kib| kib / 1024.0)),
                ),
                ("device_flushes", maybe(self.flushes)),
                ("restart_seconds", seconds(self.restart_seconds)),
            ],
        )
    }
}

impl LogTrial {
    pub(crate) fn row(&self, policy: Policy) -> Row {
        Row::new(
            "stream",
            &format!("log/{}", policy.name()),
            self.round,
            vec![
                ("seconds", seconds(self.seconds)),
                ("longest_stall_ms", number(self.longest_stall_ms)),
                ("p99_stall_ms", number(self.p99_stall_ms)),
                (
                    "device_written_mib",
                    maybe(self.device_kib.map(|kib| kib / 1024.0)),
                ),
                ("device_flushes", maybe(self.flushes)),
                ("updates", self.updates.to_string()),
                ("us_per_update", number(self.us_per_update)),
                ("restart_seconds", seconds(self.restart_seconds)),
            ],
        )
    }
}

impl SavingResults {
    /// All trials.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let logs = self.logs.iter();
        let logs = logs.flat_map(|log| log.trials.iter().map(|trial| trial.row(log.policy)));
        self.dump
            .trials
            .iter()
            .map(DumpTrial::row)
            .chain(logs)
            .collect()
    }
}
