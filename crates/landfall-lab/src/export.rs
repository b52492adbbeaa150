//! One line per trial, for spreadsheets and for people who grep.

use crate::Results;
use crate::sync::{Strategy, StrategyResult, Trial};

const COLUMNS: [&str; 22] = [
    "strategy",
    "round",
    "operations",
    "seconds",
    "ops_per_second",
    "first_us",
    "p50_us",
    "p90_us",
    "p99_us",
    "p999_us",
    "max_us",
    "cpu_us",
    "writes",
    "write_requests",
    "kib",
    "flushes",
    "reads",
    "extension_seconds",
    "preparation_seconds",
    "drift",
    "foreign_cpus",
    "cut",
];

/// All trials as comma-separated values, with a header line. An empty field was not measured.
pub fn csv(results: &Results) -> String {
    let trials = results
        .sync()
        .into_iter()
        .flat_map(|sync| &sync.strategies)
        .flat_map(|StrategyResult { key, trials, .. }| {
            trials.iter().map(move |trial| fields(key, trial))
        });
    lines(
        b',',
        std::iter::once(COLUMNS.map(str::to_owned)).chain(trials),
    )
}

/// The header line of the tab-separated form.
pub fn tsv_header() -> String {
    lines(b'\t', std::iter::once(COLUMNS.map(str::to_owned)))
}

/// One trial in the tab-separated form.
pub fn tsv_line(strategy: &Strategy, trial: &Trial) -> String {
    lines(b'\t', std::iter::once(fields(&strategy.key(), trial)))
}

fn lines(delimiter: u8, rows: impl Iterator<Item = [String; COLUMNS.len()]>) -> String {
    let mut writer = csv::WriterBuilder::new()
        .delimiter(delimiter)
        .from_writer(Vec::new());
    for row in rows {
        // Writing to memory, rows of equal length: neither can fail.
        let _ = writer.write_record(row);
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

fn fields(key: &str, trial: &Trial) -> [String; COLUMNS.len()] {
    let number = |value: f64| format!("{value:.3}");
    let maybe = |value: Option<f64>| value.map(number).unwrap_or_default();
    let latency = trial.latency;
    let device = trial.device;
    [
        key.to_owned(),
        trial.round.to_string(),
        trial.operations.to_string(),
        format!("{:.6}", trial.seconds),
        number(trial.ops_per_second),
        number(trial.first_us),
        maybe(latency.map(|l| l.p50)),
        maybe(latency.map(|l| l.p90)),
        maybe(latency.map(|l| l.p99)),
        maybe(latency.map(|l| l.p999)),
        maybe(latency.map(|l| l.max)),
        number(trial.cpu_us),
        maybe(device.and_then(|d| d.writes)),
        maybe(device.map(|d| d.write_requests)),
        maybe(device.map(|d| d.kib)),
        maybe(device.map(|d| d.flushes)),
        maybe(device.map(|d| d.reads)),
        number(trial.extension_seconds),
        number(trial.preparation.seconds),
        maybe(trial.drift),
        number(trial.foreign_cpus),
        trial.cut.to_string(),
    ]
}
