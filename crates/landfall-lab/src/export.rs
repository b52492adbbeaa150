//! One line per trial, for spreadsheets and for people who grep.
//!
//! All experiments share one header, so that a run of several is one table: a column that means
//! nothing for a trial is empty in its line.

use crate::Experiment;
use crate::Results;
use crate::row::Row;
use landfall_results::{Series, Trial};

const COLUMNS: [&str; 53] = [
    "experiment",
    "series",
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
pub fn tsv_line(row: &Row) -> String {
    lines(b'\t', std::iter::once(fields(row)))
}

fn header() -> Vec<String> {
    COLUMNS.map(str::to_owned).to_vec()
}

fn rows(experiment: &Experiment) -> Vec<Row> {
    match experiment {
        Experiment::Sync(sync) => rows_of("sync", &sync.series),
        Experiment::Stream(stream) => {
            let saving = stream.saving.iter().flat_map(|saving| saving.trials());
            let saving = saving.map(|(key, trial)| row("stream", &key, &trial));
            let mut rows = rows_of("stream", &stream.series);
            rows.extend(saving);
            rows
        }
        Experiment::Binlog(_) | Experiment::Amplify(_) | Experiment::Torn(_) => {
            let all = experiment.measurements().into_iter();
            let configurations = all.flat_map(|all| &all.configurations);
            let name = experiment.name();
            configurations
                .flat_map(|one| one.trials.iter().map(|trial| trial.row(name, &one.key)))
                .collect()
        }
        // Crash states are no trials: nothing is timed.
        Experiment::Prove(_) => Vec::new(),
    }
}

fn rows_of(experiment: &str, series: &[Series]) -> Vec<Row> {
    let trials = |one: &Series| -> Vec<Row> {
        let trials = one.trials.iter();
        trials
            .map(|trial| row(experiment, &one.key, trial))
            .collect()
    };
    series.iter().flat_map(trials).collect()
}

fn row(experiment: &str, series: &str, trial: &Trial) -> Row {
    Row::of(&landfall_results::Row {
        experiment,
        series,
        trial,
    })
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
fn fields(row: &Row) -> Vec<String> {
    let field = |column: &&str| row.figure(column).unwrap_or_default().to_owned();
    COLUMNS.iter().map(field).collect()
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
        for metric in [
            landfall_results::Metric::Drift,
            landfall_results::Metric::PreparationSeconds,
        ] {
            sync.series[0].trials[0].figures.set(metric, 1.0);
        }
        let experiments = [
            Experiment::Sync(sync),
            Experiment::Stream(Box::new(with_saving_trials(stream_results()))),
        ];
        let of_database = crate::amplify::fixtures::measured("innodb 16k", 16.0, 100);
        let rows: Vec<Row> = experiments
            .iter()
            .flat_map(rows)
            .chain([of_database.trials[0].row("binlog", "one")])
            .collect();
        let mut filled = [false; COLUMNS.len()];
        for row in &rows {
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
