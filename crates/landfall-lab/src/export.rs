//! One line per trial, for spreadsheets and for people who grep.
//!
//! All experiments share one header, so that a run of several is one table: a column that means
//! nothing for a trial is empty in its line.

use landfall_results::Row;

use crate::Results;
use crate::stream::StreamResults;

/// All trials as comma-separated values, with a header line. An empty field was not measured.
pub fn csv(results: &Results) -> String {
    let mut all = vec![header()];
    for experiment in &results.experiments {
        for series in experiment.series() {
            let rows = series.trials.iter().map(|trial| Row {
                experiment: experiment.name(),
                series: &series.key,
                trial,
            });
            all.extend(rows.map(|row| row.fields().collect::<Vec<_>>()));
        }
        if let Some(stream) = experiment.of::<StreamResults>() {
            let saving = stream.saving.iter().flat_map(|saving| saving.trials());
            all.extend(saving.map(|(series, trial)| {
                let row = Row {
                    experiment: experiment.name(),
                    series: &series,
                    trial: &trial,
                };
                row.fields().collect()
            }));
        }
    }
    lines(b',', all)
}

/// The header line of the tab-separated form.
pub fn tsv_header() -> String {
    lines(b'\t', vec![header()])
}

/// One trial in the tab-separated form.
pub fn tsv_line(row: &Row<'_>) -> String {
    lines(b'\t', vec![row.fields().collect()])
}

fn header() -> Vec<String> {
    Row::header().map(str::to_owned).collect()
}

fn lines(delimiter: u8, rows: Vec<Vec<String>>) -> String {
    let mut writer = csv::WriterBuilder::new()
        .delimiter(delimiter)
        .from_writer(Vec::new());
    for row in rows {
        // Writing to memory, rows of equal length: neither can fail.
        let _ = writer.write_record(row);
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::fixtures::{stream_results, with_saving_trials};
    use crate::sync::Strategy;
    use crate::sync::fixtures::{measured, results};

    #[test]
    fn every_trial_of_every_experiment_is_a_line_of_one_table() {
        let mut all = results(vec![measured(Strategy::BASELINE, &[1_000.0], 1.0, 1.0)]);
        let stream = with_saving_trials(stream_results());
        let trials: usize = stream.series.iter().map(|one| one.trials.len()).sum();
        all.experiments.push(stream.into());
        let csv = csv(&all);
        // One of sync, those of stream, a dump and four policies.
        assert_eq!(csv.lines().count(), 1 + 1 + trials + 5);
        assert_eq!(
            csv.lines().next(),
            Some(tsv_header().trim().replace('\t', ",").as_str())
        );
    }
}
