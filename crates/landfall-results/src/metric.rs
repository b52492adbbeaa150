//! The figures of a trial: one table that says of each what it is called, and how it is handled.
//!
//! The document, its schema, the lines of a spreadsheet, comparisons, tables and charts derive from [`METRICS`].
//! MB are 10^6 bytes, as disks are sold and as published figures were given; MiB are 2^20 and KiB 2^10.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};

use crate::numbers::{Print, short, thousands, two};

/// Which way a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is.
    More,
    /// Less is.
    Less,
    /// It only describes the trial.
    Neither,
}

/// What the rounds of a series come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounds {
    /// Nothing: the figure is of single trials.
    Apart,
    /// The median of those that have it.
    Median,
    /// The same, if more than half of them have it: a minority may have been disturbed beyond telling.
    MedianOfMost,
}

/// All that is to be known of a metric.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// Which one it is.
    pub metric: Metric,
    /// Its name in documents and spreadsheets.
    pub name: &'static str,
    /// Its unit; empty of counts and ratios.
    pub unit: &'static str,
    /// What it is in a few words, with the unit.
    pub label: &'static str,
    /// The same as the heading of a column: no longer than it must be.
    pub heading: &'static str,
    /// Which way it is better.
    pub better: Better,
    /// How it is printed for people.
    pub print: Print,
    /// Decimals in spreadsheets.
    pub decimals: usize,
    /// What the rounds come to.
    pub rounds: Rounds,
    /// Whether two runs are compared by it.
    pub is_compared: bool,
    /// What it is, in a sentence.
    pub documentation: &'static str,
}

macro_rules! metrics {
    ($($metric:ident $name:literal, $unit:literal, $label:literal, $heading:literal, $better:ident, $print:ident, $decimals:literal,
       $rounds:ident, $is_compared:literal, $documentation:literal;)*) => {
        /// A figure that is measured of every trial of some experiment.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum Metric {
            $(#[doc = $documentation] #[serde(rename = $name)] $metric,)*
        }

        /// All metrics, in the order in which spreadsheets have them.
        pub const METRICS: &[Description] = &[$(Description {
            metric: Metric::$metric,
            name: $name,
            unit: $unit,
            label: $label,
            heading: $heading,
            better: Better::$better,
            print: $print,
            decimals: $decimals,
            rounds: Rounds::$rounds,
            is_compared: $is_compared,
            documentation: $documentation,
        },)*];
    };
}

metrics! {
    Seconds "seconds", "s", "seconds", "seconds", Neither, two, 6, Median, false,
        "Seconds that was measured for.";
    Operations "operations", "", "operations", "operations", Neither, thousands, 0, Apart, false,
        "Operations done.";
    OpsPerSecond "ops_per_second", "1/s", "operations per second", "ops/s", More, thousands, 3, Median, true,
        "Operations per second, the first one included.";
    FirstUs "first_us", "µs", "first operation, µs", "first µs", Less, short, 3, Median, false,
        "Latency of the first operation, in microseconds. After zero-filling it carries the flush of all the zeros.";
    P50Us "p50_us", "µs", "median latency, µs", "p50 µs", Less, short, 3, Median, false,
        "Median latency, in microseconds; without the first operation, unless it was the only one.";
    P90Us "p90_us", "µs", "90th percentile of the latency, µs", "p90 µs", Less, short, 3, Apart, false,
        "90th percentile of the same latencies, in microseconds.";
    P99Us "p99_us", "µs", "99th percentile of the latency, µs", "p99 µs", Less, short, 3, Median, false,
        "99th percentile of the same latencies, in microseconds.";
    P999Us "p999_us", "µs", "99.9th percentile of the latency, µs", "p99.9 µs", Less, short, 3, Apart, false,
        "99.9th percentile of the same latencies, in microseconds.";
    MaxUs "max_us", "µs", "longest latency, µs", "longest µs", Less, short, 3, Apart, false,
        "The longest of the same latencies, in microseconds.";
    CpuUs "cpu_us", "µs", "CPU time, µs", "CPU µs", Less, short, 3, Median, false,
        "CPU time per operation, user and system, of this process, in microseconds.";
    Writes "writes", "", "writes", "writes", Less, two, 3, MedianOfMost, false,
        "Write requests that carried data, per operation or request; absent where empty flushes cannot be told from them.";
    WriteRequests "write_requests", "", "write requests", "requests", Less, two, 3, Median, false,
        "Write requests as the kernel counts them, empty flushes included, per operation or request.";
    Kib "kib", "KiB", "KiB written", "KiB", Less, short, 3, Median, false,
        "KiB that the device was given to write, per operation or request.";
    WrittenPerByte "written_per_byte", "", "bytes written per byte updated", "bytes/byte", Less, two, 3, Median, false,
        "Bytes that the device was given to write for each byte of the rows that were updated, keys and values; absent where requests do anything but update rows.";
    ForecastPerByte "forecast_per_byte", "", "the same by formula", "by formula", Less, two, 3, Median, false,
        "The same by the database's own formula for updates at random, and its own count of its log; absent where it has none, or rows are not updated equally often.";
    Flushes "flushes", "", "flushes", "flushes", Less, two, 3, Median, false,
        "Flushes that the device executed, per operation or request.";
    Reads "reads", "", "reads", "reads", Less, two, 3, Median, false,
        "Read requests, per operation or request.";
    ExtensionSeconds "extension_seconds", "s", "seconds of extending", "seconds of extending", Less, two, 3, Apart, false,
        "Seconds of the trial spent on extending files in steps; summed over files, where threads have a file each.";
    Drift "drift", "", "drift", "drift", Neither, two, 3, Median, false,
        "Rate of the last third of the trial over that of its first; absent for very short trials.";
    HandOverSeconds "hand_over_seconds", "s", "hand-over, s", "hand-over s", Less, two, 6, Median, false,
        "Seconds until all bytes were handed over, and the program may go on.";
    SyncSeconds "sync_seconds", "s", "sync, s", "sync s", Less, two, 6, Median, false,
        "Seconds from there until they were durable.";
    TotalMbPerS "total_mb_per_s", "MB/s", "until durable, MB per second", "total MB/s", More, thousands, 3, Median, true,
        "MB per second of hand-over and sync together.";
    HandOverMbPerS "hand_over_mb_per_s", "MB/s", "hand-over, MB per second", "hand-over MB/s", More, thousands, 3, Median, true,
        "MB per second of the hand-over.";
    SyncMbPerS "sync_mb_per_s", "MB/s", "sync, MB per second", "sync MB/s", More, thousands, 3, MedianOfMost, false,
        "MB per second of the sync, of what the hand-over had left; absent where that is next to nothing (under 5%).";
    LongestStallMs "longest_stall_ms", "ms", "longest stall, ms", "longest stall ms", Less, short, 3, Median, false,
        "The longest single call of the hand-over; or the longest time until an update was accepted, which a dump keeps waiting for its whole hand-over. In milliseconds.";
    LongestCaptureMs "longest_capture_ms", "ms", "longest capture, ms", "longest capture ms", Less, short, 3, Median, false,
        "The longest time for which a snapshot kept a part of the state from being changed, in milliseconds.";
    P99StallMs "p99_stall_ms", "ms", "99th percentile of stalls, ms", "p99 stall ms", Less, short, 3, Median, false,
        "The 99th percentile of the times until an update was accepted, in milliseconds.";
    LeftMib "left_mib", "MiB", "left to sync, MiB", "left to sync MiB", Neither, short, 3, Median, false,
        "MiB that were dirty or being written back when the hand-over ended, beyond those at its start.";
    DirtyBeforeMib "dirty_before_mib", "MiB", "dirty before, MiB", "dirty before MiB", Neither, short, 3, Apart, false,
        "MiB that others had left dirty when the trial began.";
    PeakResidentMib "peak_resident_mib", "MiB", "peak memory, MiB", "peak MiB", Less, short, 3, Median, false,
        "Peak resident memory of the process, in MiB; mapped file pages count. Absent where the kernel does not tell.";
    CpuSPerGib "cpu_s_per_gib", "s/GiB", "CPU s per GiB", "CPU s/GiB", Less, two, 3, Median, false,
        "CPU time of this process, user and system, in seconds per GiB.";
    DeviceWrittenMib "device_written_mib", "MiB", "device, MiB", "device MiB", Less, short, 3, Median, false,
        "MiB that the device was given to write in the trial.";
    DeviceReadMib "device_read_mib", "MiB", "device read, MiB", "read MiB", Less, short, 3, Median, false,
        "MiB that were read from the device in the trial.";
    DeviceWriteRequests "device_write_requests", "", "device write requests", "requests", Less, thousands, 3, Median, false,
        "Write requests of the trial as the kernel counts them, empty flushes included.";
    DeviceFlushes "device_flushes", "", "flushes", "flushes", Less, short, 3, Median, false,
        "Flushes that the device executed in the trial.";
    UsPerUpdate "us_per_update", "µs", "time per update, µs", "µs per update", Less, short, 3, Median, true,
        "Microseconds that the program spends on making an update durable; what another thread spends is not in it.";
    ProgramKib "program_kib", "KiB", "KiB of the program", "KiB of the program", Less, short, 3, Median, false,
        "KiB that the program wrote, per update.";
    RestartSeconds "restart_seconds", "s", "restart, s", "restart s", Less, two, 6, Median, true,
        "Seconds to read the state back.";
    Requests "requests", "", "requests", "requests", Neither, thousands, 0, Apart, false,
        "Requests done; those that were rolled back are not among them.";
    RequestsPerSecond "requests_per_second", "1/s", "requests per second", "requests/s", More, thousands, 3, Median, true,
        "Requests per second, of all clients together.";
    Conflicts "conflicts", "", "conflicts", "conflicts", Less, thousands, 0, Apart, false,
        "Requests that were rolled back because of another one.";
    ServerCpuUs "server_cpu_us", "µs", "server CPU, µs", "server CPU µs", Less, short, 3, Median, false,
        "CPU time of the database's own processes per request, in microseconds.";
    ClientCpuUs "client_cpu_us", "µs", "our CPU, µs", "our CPU µs", Less, short, 3, Median, false,
        "CPU time of this process per request, in microseconds: of the clients, of a database that is part of this program, and of a recorder.";
    OwedKib "owed_kib", "KiB", "owed, KiB", "owed KiB", Less, short, 3, Median, false,
        "KiB per request that were written after the trial for it, once the database had to.";
    OwedSeconds "owed_seconds", "s", "owed, s", "owed s", Less, two, 3, Apart, false,
        "Seconds which that took.";
    DirtyBytes "dirty_bytes", "B", "dirty pages, bytes", "dirty pages bytes", Less, thousands, 0, Apart, false,
        "Bytes of pages that were newer in memory than in their files at the end; absent where the database does not tell.";
    CompactionBytes "compaction_bytes", "B", "to be compacted, bytes", "to be compacted bytes", Less, thousands, 0, Apart, false,
        "Bytes that compaction had still to rewrite, by the database's own estimate; absent where it does not tell.";
    MemtableFlushes "memtable_flushes", "", "memtables written", "memtables written", Neither, thousands, 0, Apart, false,
        "Memtables that the database had written out since it was started; absent where it has none.";
    DatabaseBytes "database_bytes", "B", "bytes of the database", "bytes of the database", Less, thousands, 0, Median, false,
        "Bytes of the database's files at the end.";
    NandKib "nand_kib", "KiB", "NAND, KiB", "flash KiB", Less, short, 3, Median, false,
        "KiB programmed into the flash of the plan's drive per request, by the model of docs/explanation/wear-model.md; absent where no recorder could tell where was written.";
    Amplification "amplification", "", "NAND over written", "NAND bytes per byte", Less, two, 3, Apart, false,
        "Bytes programmed per byte that the device was given: the product of the next two.";
    Rounding "rounding", "", "of rounding", "by rounding", Less, two, 3, Apart, false,
        "The part of it that comes from writes that do not cover whole flash pages.";
    Copying "copying", "", "of copying", "by copying", Less, two, 3, Apart, false,
        "The part that comes from garbage collection.";
    Rewrites "rewrites", "", "rewrites", "rewrites", Neither, two, 3, Apart, false,
        "How often a flash page was written, of those that were. Below 2 the amplification is that of the same writes coming again in the same order: too good, unless they do.";
    FlashBytes "flash_bytes", "B", "bytes on flash", "bytes on flash", Neither, thousands, 0, Apart, false,
        "Bytes of flash pages in use: what was ever written on the device.";
    Years "years", "a", "years", "drive years", More, short, 3, Apart, false,
        "Years until the drive is worn out, if requests came as fast as in this trial for ever.";
    ForeignKib "foreign_kib", "KiB", "KiB of others", "KiB of others", Neither, short, 3, Apart, false,
        "KiB per request that others wrote to the disk below, where the site is on an image.";
    PreparationSeconds "preparation_seconds", "s", "seconds of preparation", "seconds of preparation", Neither, two, 3, Apart, false,
        "Seconds of preparing for this trial, which are not measured.";
    PreparationBytes "preparation_bytes", "B", "bytes of preparation", "bytes of preparation", Neither, thousands, 0, Apart, false,
        "Bytes written in preparing for it.";
    ForeignCpus "foreign_cpus", "", "processors of others", "processors of others", Neither, two, 3, Apart, false,
        "CPU that others took during the trial, in processors.";
    StolenCpus "stolen_cpus", "", "stolen processors", "stolen processors", Neither, two, 3, Apart, false,
        "Time that a hypervisor took away, in processors.";
}

impl Metric {
    /// All that is to be known of it.
    pub fn description(self) -> &'static Description {
        // The macro makes both in one order.
        &METRICS[self as usize]
    }

    /// Its name in documents and spreadsheets.
    pub fn name(self) -> &'static str {
        self.description().name
    }
}

/// The figures of one trial; what was not measured is not among them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Figures(BTreeMap<Metric, f64>);

impl Figures {
    /// One of them.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        self.0.get(&metric).copied()
    }

    /// With one more, if it was measured.
    pub fn with(mut self, metric: Metric, value: impl Into<Option<f64>>) -> Figures {
        self.set(metric, value);
        self
    }

    /// Adds one, if it was measured, or takes it away.
    pub fn set(&mut self, metric: Metric, value: impl Into<Option<f64>>) {
        match value.into() {
            Some(value) => self.0.insert(metric, value),
            None => self.0.remove(&metric),
        };
    }
}

/// Counts are written without a decimal point.
impl Serialize for Figures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(untagged)]
        enum Number {
            Whole(u64),
            Any(f64),
        }
        serializer.collect_map(self.0.iter().map(|(metric, &value)| {
            let is_whole = value.fract() == 0.0 && (0.0..9e15).contains(&value);
            let number = if is_whole {
                Number::Whole(value as u64)
            } else {
                Number::Any(value)
            };
            (metric, number)
        }))
    }
}

impl JsonSchema for Figures {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Figures".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let properties: serde_json::Map<String, serde_json::Value> = METRICS
            .iter()
            .map(|one| {
                let property =
                    serde_json::json!({ "type": "number", "description": one.documentation });
                (one.name.to_owned(), property)
            })
            .collect();
        json_schema!({
            "type": "object",
            "description": "The figures of one trial; what was not measured is not among them.",
            "properties": properties,
            "additionalProperties": false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_metric_finds_its_own_description() {
        for one in METRICS {
            assert_eq!(one.metric.description().name, one.name);
            let json = serde_json::to_string(&one.metric).unwrap();
            assert_eq!(json, format!("\"{}\"", one.name));
        }
    }

    #[test]
    fn figures_are_read_back_and_counts_stay_whole() {
        let figures = Figures::default()
            .with(Metric::Operations, 1_000.0)
            .with(Metric::Drift, None)
            .with(Metric::Kib, 8.5);
        let json = serde_json::to_string(&figures).unwrap();
        assert_eq!(json, r#"{"operations":1000,"kib":8.5}"#);
        assert_eq!(serde_json::from_str::<Figures>(&json).unwrap(), figures);
    }
}
