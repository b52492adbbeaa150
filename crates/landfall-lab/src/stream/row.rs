//! A state handed over and synced, as a row.

use super::Trial;
use crate::row::{Row, maybe, number, seconds};

impl Trial {
    pub(crate) fn row(&self, key: &str) -> Row {
        let device = self.device;
        Row::new(
            "stream",
            key,
            self.round,
            vec![
                (
                    "seconds",
                    seconds(self.hand_over_seconds + self.sync_seconds),
                ),
                ("hand_over_seconds", seconds(self.hand_over_seconds)),
                ("sync_seconds", seconds(self.sync_seconds)),
                ("hand_over_mb_per_s", number(self.hand_over_mb_per_s)),
                ("sync_mb_per_s", maybe(self.sync_mb_per_s)),
                ("total_mb_per_s", number(self.total_mb_per_s)),
                ("longest_stall_ms", number(self.longest_stall_ms)),
                ("left_mib", number(self.left_mib)),
                ("peak_resident_mib", maybe(self.peak_resident_mib)),
                ("cpu_s_per_gib", number(self.cpu_s_per_gib)),
                ("device_written_mib", maybe(device.map(|d| d.written_mib))),
                ("device_read_mib", maybe(device.map(|d| d.read_mib))),
                (
                    "device_write_requests",
                    maybe(device.map(|d| d.write_requests)),
                ),
                ("device_flushes", maybe(device.map(|d| d.flushes))),
                ("preparation_seconds", number(self.preparation.seconds)),
                ("foreign_cpus", number(self.foreign_cpus)),
                ("stolen_cpus", number(self.stolen_cpus)),
            ],
        )
    }
}
