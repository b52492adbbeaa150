//! A trial as a row.

use super::Trial;
use crate::row::{Row, maybe, number, seconds};

impl Trial {
    pub(crate) fn row(&self, experiment: &str, key: &str) -> Row {
        let (latency, device) = (self.latency, self.device);
        let owed = self.owed.and_then(|owed| owed.kib);
        let (steadiness, wear) = (self.steadiness.as_ref(), self.wear);
        Row::new(
            experiment,
            key,
            self.round,
            vec![
                ("seconds", seconds(self.seconds)),
                ("requests", self.requests.to_string()),
                ("requests_per_second", number(self.requests_per_second)),
                ("conflicts", self.conflicts.to_string()),
                ("p50_us", maybe(latency.map(|l| l.p50))),
                ("p90_us", maybe(latency.map(|l| l.p90))),
                ("p99_us", maybe(latency.map(|l| l.p99))),
                ("p999_us", maybe(latency.map(|l| l.p999))),
                ("max_us", maybe(latency.map(|l| l.max))),
                ("server_cpu_us", number(self.server_cpu_us)),
                ("client_cpu_us", number(self.client_cpu_us)),
                ("writes", maybe(device.and_then(|d| d.writes))),
                ("write_requests", maybe(device.map(|d| d.write_requests))),
                ("kib", maybe(device.map(|d| d.kib))),
                ("flushes", maybe(device.map(|d| d.flushes))),
                ("reads", maybe(device.map(|d| d.reads))),
                ("owed_kib", maybe(owed)),
                ("database_bytes", self.database_bytes.to_string()),
                (
                    "steady",
                    steadiness.map_or(String::new(), |steady| steady.reached.to_string()),
                ),
                ("nand_kib", maybe(wear.map(|wear| wear.nand_kib))),
                ("amplification", maybe(wear.map(|wear| wear.amplification))),
                ("rewrites", maybe(wear.map(|wear| wear.rewrites))),
                ("years", maybe(wear.map(|wear| wear.years))),
                ("preparation_seconds", number(self.preparation.seconds)),
                ("foreign_cpus", number(self.foreign_cpus)),
                ("stolen_cpus", number(self.stolen_cpus)),
            ],
        )
    }
}
