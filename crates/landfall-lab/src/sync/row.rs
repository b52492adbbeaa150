//! A trial as a row.

use super::Trial;
use crate::row::{Row, maybe, number, seconds};

impl Trial {
    pub(crate) fn row(&self, key: &str) -> Row {
        let (latency, device) = (self.latency, self.device);
        Row::new(
            "sync",
            key,
            self.round,
            vec![
                ("seconds", seconds(self.seconds)),
                ("operations", self.operations.to_string()),
                ("ops_per_second", number(self.ops_per_second)),
                ("first_us", number(self.first_us)),
                ("p50_us", maybe(latency.map(|l| l.p50))),
                ("p90_us", maybe(latency.map(|l| l.p90))),
                ("p99_us", maybe(latency.map(|l| l.p99))),
                ("p999_us", maybe(latency.map(|l| l.p999))),
                ("max_us", maybe(latency.map(|l| l.max))),
                ("cpu_us", number(self.cpu_us)),
                ("writes", maybe(device.and_then(|d| d.writes))),
                ("write_requests", maybe(device.map(|d| d.write_requests))),
                ("kib", maybe(device.map(|d| d.kib))),
                ("flushes", maybe(device.map(|d| d.flushes))),
                ("reads", maybe(device.map(|d| d.reads))),
                ("extension_seconds", number(self.extension_seconds)),
                ("drift", maybe(self.drift)),
                ("cut", self.cut.to_string()),
                ("preparation_seconds", number(self.preparation.seconds)),
                ("foreign_cpus", number(self.foreign_cpus)),
                ("stolen_cpus", number(self.stolen_cpus)),
            ],
        )
    }
}
