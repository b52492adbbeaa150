//! One line per trial, for spreadsheets and for people who grep.
//!
//! All experiments share one header, so that a run of several is one table: a column that means
//! nothing for a trial is empty in its line.

use landfall_results::Row;

use crate::Results;

/// All trials as comma-separated values, with a header line. An empty field was not measured.
pub fn csv(results: &Results) -> String {
    let mut all = vec![header()];
    for experiment in &results.experiments {
        for series in experiment.series() {
            all.extend(series.trials.iter().map(|trial| {
                let row = Row {
                    experiment: experiment.name(),
                    series: &series.key,
                    trial,
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
    use crate::dump_vs_log::fixtures::dump_vs_log_results;
    use crate::stream::fixtures::stream_results;
    use crate::sync::Strategy;
    use crate::sync::fixtures::{measured, results};

    #[test]
    fn every_trial_of_every_experiment_is_a_line_of_one_table() {
        let mut all = results(vec![measured(Strategy::BASELINE, &[1_000.0], 1.0, 1.0)]);
        let stream = stream_results();
        let trials: usize = stream.series.iter().map(|one| one.trials.len()).sum();
        all.experiments.push(stream.into());
        let saved = dump_vs_log_results();
        let trials = trials + 5 * saved.series.len();
        all.experiments.push(saved.into());
        let csv = csv(&all);
        // One of sync, those of stream, and of each way of saving five.
        assert_eq!(csv.lines().count(), 1 + 1 + trials);
        assert_eq!(
            csv.lines().next(),
            Some(tsv_header().trim().replace('\t', ",").as_str())
        );
    }
}
