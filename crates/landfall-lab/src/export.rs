//! One line per trial, for spreadsheets and for people who grep.
//!
//! All experiments share one header, so that a run of several is one table: a column that means
//! nothing for a trial is empty in its line.

use crate::Experiment;
use crate::Results;
use crate::stream::saving::{DumpTrial, LogTrial, Policy};
use crate::{configuration, stream, sync};

const COLUMNS: [&str; 53] = [
    "experiment",
    "strategy",
    "round",
    "seconds",
    // Of sync, the device's figures per operation.
    "operations",
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
    "drift",
    "cut",
    // Of stream, the device's figures per trial.
    "hand_over_seconds",
    "sync_seconds",
    "hand_over_mb_per_s",
    "sync_mb_per_s",
    "total_mb_per_s",
    "longest_stall_ms",
    "p99_stall_ms",
    "left_mib",
    "peak_resident_mib",
    "cpu_s_per_gib",
    "device_written_mib",
    "device_read_mib",
    "device_write_requests",
    "device_flushes",
    "updates",
    "us_per_update",
    "restart_seconds",
    // Of databases, the device's figures per request.
    "requests",
    "requests_per_second",
    "conflicts",
    "server_cpu_us",
    "client_cpu_us",
    "owed_kib",
    "database_bytes",
    "steady",
    "nand_kib",
    "amplification",
    "rewrites",
    "years",
    // Of all.
    "preparation_seconds",
    "foreign_cpus",
    "stolen_cpus",
];

/// One trial of any experiment, with the name of its strategy.
#[derive(Clone, Copy, Debug)]
pub enum Row<'a> {
    /// Of experiment `sync`.
    Sync(&'a str, &'a sync::Trial),
    /// A state handed over and synced, of experiment `stream`.
    Stream(&'a str, &'a stream::Trial),
    /// A dump, of experiment `stream`.
    Dump(&'a DumpTrial),
    /// Updates logged, of experiment `stream`.
    Log(Policy, &'a LogTrial),
    /// A configuration of the experiment of this name.
    Configuration(&'static str, &'a str, &'a configuration::Trial),
}

/// All trials as comma-separated values, with a header line. An empty field was not measured.
pub fn csv(results: &Results) -> String {
    let rows = results.experiments.iter().flat_map(rows);
    lines(
        b',',
        std::iter::once(header()).chain(rows.map(|row| fields(&row))),
    )
}

/// The header line of the tab-separated form.
pub fn tsv_header() -> String {
    lines(b'\t', std::iter::once(header()))
}

/// One trial in the tab-separated form.
pub fn tsv_line(row: &Row<'_>) -> String {
    lines(b'\t', std::iter::once(fields(row)))
}

fn header() -> Vec<String> {
    COLUMNS.map(str::to_owned).to_vec()
}

fn rows(experiment: &Experiment) -> Vec<Row<'_>> {
    match experiment {
        Experiment::Sync(sync) => sync
            .strategies
            .iter()
            .flat_map(|s| s.trials.iter().map(|trial| Row::Sync(&s.key, trial)))
            .collect(),
        Experiment::Stream(stream) => stream
            .strategies
            .iter()
            .flat_map(|s| s.trials.iter().map(|trial| Row::Stream(&s.key, trial)))
            .chain(stream.saving.iter().flat_map(of_saving))
            .collect(),
        Experiment::Binlog(_) | Experiment::Amplify(_) | Experiment::Torn(_) => {
            let all = experiment.measurements().into_iter();
            let configurations = all.flat_map(|all| &all.configurations);
            let name = experiment.name();
            configurations
                .flat_map(|one| {
                    one.trials
                        .iter()
                        .map(|t| Row::Configuration(name, &one.key, t))
                })
                .collect()
        }
        // Crash states are no trials: nothing is timed.
        Experiment::Prove(_) => Vec::new(),
    }
}

/// The trials of dump against log.
pub(crate) fn of_saving(saving: &stream::saving::SavingResults) -> Vec<Row<'_>> {
    let logs = saving
        .logs
        .iter()
        .flat_map(|log| log.trials.iter().map(|trial| Row::Log(log.policy, trial)));
    saving
        .dump
        .trials
        .iter()
        .map(Row::Dump)
        .chain(logs)
        .collect()
}

fn lines(delimiter: u8, rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut writer = csv::WriterBuilder::new()
        .delimiter(delimiter)
        .from_writer(Vec::new());
    for row in rows {
        // Writing to memory, rows of equal length: neither can fail.
        let _ = writer.write_record(row);
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

/// A field for every column; those that a trial does not have are empty.
fn fields(row: &Row<'_>) -> Vec<String> {
    let cells = cells(row);
    let cell = |column: &&str| {
        let found = cells.iter().find(|(name, _)| name == column);
        found.map(|(_, text)| text.clone()).unwrap_or_default()
    };
    COLUMNS.iter().map(cell).collect()
}

fn cells(row: &Row<'_>) -> Cells {
    match row {
        Row::Sync(key, trial) => of_sync(key, trial),
        Row::Stream(key, trial) => of_stream(key, trial),
        Row::Dump(trial) => of_dump(trial),
        Row::Log(policy, trial) => of_log(*policy, trial),
        Row::Configuration(experiment, key, trial) => of_configuration(experiment, key, trial),
    }
}

type Cells = Vec<(&'static str, String)>;

fn number(value: f64) -> String {
    format!("{value:.3}")
}

fn seconds(value: f64) -> String {
    format!("{value:.6}")
}

fn maybe(value: Option<f64>) -> String {
    value.map(number).unwrap_or_default()
}

fn of_sync(key: &str, trial: &sync::Trial) -> Cells {
    let (latency, device) = (trial.latency, trial.device);
    vec![
        ("experiment", "sync".to_owned()),
        ("strategy", key.to_owned()),
        ("round", trial.round.to_string()),
        ("seconds", seconds(trial.seconds)),
        ("operations", trial.operations.to_string()),
        ("ops_per_second", number(trial.ops_per_second)),
        ("first_us", number(trial.first_us)),
        ("p50_us", maybe(latency.map(|l| l.p50))),
        ("p90_us", maybe(latency.map(|l| l.p90))),
        ("p99_us", maybe(latency.map(|l| l.p99))),
        ("p999_us", maybe(latency.map(|l| l.p999))),
        ("max_us", maybe(latency.map(|l| l.max))),
        ("cpu_us", number(trial.cpu_us)),
        ("writes", maybe(device.and_then(|d| d.writes))),
        ("write_requests", maybe(device.map(|d| d.write_requests))),
        ("kib", maybe(device.map(|d| d.kib))),
        ("flushes", maybe(device.map(|d| d.flushes))),
        ("reads", maybe(device.map(|d| d.reads))),
        ("extension_seconds", number(trial.extension_seconds)),
        ("drift", maybe(trial.drift)),
        ("cut", trial.cut.to_string()),
        ("preparation_seconds", number(trial.preparation.seconds)),
        ("foreign_cpus", number(trial.foreign_cpus)),
        ("stolen_cpus", number(trial.stolen_cpus)),
    ]
}

fn of_stream(key: &str, trial: &stream::Trial) -> Cells {
    let device = trial.device;
    vec![
        ("experiment", "stream".to_owned()),
        ("strategy", key.to_owned()),
        ("round", trial.round.to_string()),
        (
            "seconds",
            seconds(trial.hand_over_seconds + trial.sync_seconds),
        ),
        ("hand_over_seconds", seconds(trial.hand_over_seconds)),
        ("sync_seconds", seconds(trial.sync_seconds)),
        ("hand_over_mb_per_s", number(trial.hand_over_mb_per_s)),
        ("sync_mb_per_s", maybe(trial.sync_mb_per_s)),
        ("total_mb_per_s", number(trial.total_mb_per_s)),
        ("longest_stall_ms", number(trial.longest_stall_ms)),
        ("left_mib", number(trial.left_mib)),
        ("peak_resident_mib", maybe(trial.peak_resident_mib)),
        ("cpu_s_per_gib", number(trial.cpu_s_per_gib)),
        ("device_written_mib", maybe(device.map(|d| d.written_mib))),
        ("device_read_mib", maybe(device.map(|d| d.read_mib))),
        (
            "device_write_requests",
            maybe(device.map(|d| d.write_requests)),
        ),
        ("device_flushes", maybe(device.map(|d| d.flushes))),
        ("preparation_seconds", number(trial.preparation.seconds)),
        ("foreign_cpus", number(trial.foreign_cpus)),
        ("stolen_cpus", number(trial.stolen_cpus)),
    ]
}

fn of_dump(trial: &DumpTrial) -> Cells {
    vec![
        ("experiment", "stream".to_owned()),
        ("strategy", "dump".to_owned()),
        ("round", trial.round.to_string()),
        ("seconds", seconds(trial.seconds)),
        ("hand_over_seconds", seconds(trial.hand_over_seconds)),
        ("longest_stall_ms", number(trial.longest_call_ms)),
        (
            "device_written_mib",
            maybe(trial.device_kib.map(|kib| kib / 1024.0)),
        ),
        ("device_flushes", maybe(trial.flushes)),
        ("restart_seconds", seconds(trial.restart_seconds)),
    ]
}

fn of_log(policy: Policy, trial: &LogTrial) -> Cells {
    vec![
        ("experiment", "stream".to_owned()),
        ("strategy", format!("log/{}", policy.name())),
        ("round", trial.round.to_string()),
        ("seconds", seconds(trial.seconds)),
        ("longest_stall_ms", number(trial.longest_stall_ms)),
        ("p99_stall_ms", number(trial.p99_stall_ms)),
        (
            "device_written_mib",
            maybe(trial.device_kib.map(|kib| kib / 1024.0)),
        ),
        ("device_flushes", maybe(trial.flushes)),
        ("updates", trial.updates.to_string()),
        ("us_per_update", number(trial.us_per_update)),
        ("restart_seconds", seconds(trial.restart_seconds)),
    ]
}

fn of_configuration(experiment: &str, key: &str, trial: &configuration::Trial) -> Cells {
    let (latency, device) = (trial.latency, trial.device);
    let owed = trial.owed.and_then(|owed| owed.kib);
    let (steadiness, wear) = (trial.steadiness.as_ref(), trial.wear);
    vec![
        ("experiment", experiment.to_owned()),
        ("strategy", key.to_owned()),
        ("round", trial.round.to_string()),
        ("seconds", seconds(trial.seconds)),
        ("requests", trial.requests.to_string()),
        ("requests_per_second", number(trial.requests_per_second)),
        ("conflicts", trial.conflicts.to_string()),
        ("p50_us", maybe(latency.map(|l| l.p50))),
        ("p90_us", maybe(latency.map(|l| l.p90))),
        ("p99_us", maybe(latency.map(|l| l.p99))),
        ("p999_us", maybe(latency.map(|l| l.p999))),
        ("max_us", maybe(latency.map(|l| l.max))),
        ("server_cpu_us", number(trial.server_cpu_us)),
        ("client_cpu_us", number(trial.client_cpu_us)),
        ("writes", maybe(device.and_then(|d| d.writes))),
        ("write_requests", maybe(device.map(|d| d.write_requests))),
        ("kib", maybe(device.map(|d| d.kib))),
        ("flushes", maybe(device.map(|d| d.flushes))),
        ("reads", maybe(device.map(|d| d.reads))),
        ("owed_kib", maybe(owed)),
        ("database_bytes", trial.database_bytes.to_string()),
        (
            "steady",
            steadiness.map_or(String::new(), |steady| steady.reached.to_string()),
        ),
        ("nand_kib", maybe(wear.map(|wear| wear.nand_kib))),
        ("amplification", maybe(wear.map(|wear| wear.amplification))),
        ("rewrites", maybe(wear.map(|wear| wear.rewrites))),
        ("years", maybe(wear.map(|wear| wear.years))),
        ("preparation_seconds", number(trial.preparation.seconds)),
        ("foreign_cpus", number(trial.foreign_cpus)),
        ("stolen_cpus", number(trial.stolen_cpus)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::fixtures::{stream_results, with_saving_trials};
    use crate::sync::Strategy;
    use crate::sync::fixtures::{measured, sync_results};

    #[test]
    fn every_field_has_its_column_and_every_column_a_field() {
        let mut sync = sync_results(vec![measured(Strategy::BASELINE, &[1_000.0], 1.0, 1.0)]);
        sync.strategies[0].trials[0].drift = Some(1.0);
        let experiments = [
            Experiment::Sync(sync),
            Experiment::Stream(Box::new(with_saving_trials(stream_results()))),
        ];
        let of_database = crate::amplify::fixtures::measured("innodb 16k", 16.0, 100);
        let rows: Vec<Row<'_>> = experiments
            .iter()
            .flat_map(rows)
            .chain([Row::Configuration("binlog", "one", &of_database.trials[0])])
            .collect();
        let mut filled = [false; COLUMNS.len()];
        for row in &rows {
            for (name, _) in cells(row) {
                assert!(COLUMNS.contains(&name), "{name}");
            }
            for (filled, field) in filled.iter_mut().zip(fields(row)) {
                *filled |= !field.is_empty();
            }
        }
        let empty: Vec<_> = COLUMNS
            .iter()
            .zip(filled)
            .filter(|(_, full)| !full)
            .collect();
        assert!(empty.is_empty(), "{empty:?}");
    }
}
