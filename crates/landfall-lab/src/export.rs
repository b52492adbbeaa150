//! One line per trial, for spreadsheets and for people who grep.
//!
//! All experiments share one header, so that a run of several is one table: a column that means
//! nothing for a trial is empty in its line.

use landfall_results::Row;

use crate::{Findings, Results};

/// All trials as comma-separated values, with a header line. An empty field was not measured.
pub fn csv(results: &Results) -> String {
    let mut all = vec![header()];
    for experiment in &results.experiments {
        let trials = experiment.findings().map(Findings::trials);
        for (series, trial) in trials.into_iter().flatten() {
            let row = Row {
                experiment: experiment.name(),
                series: &series,
                trial: &trial,
            };
            all.push(row.fields().collect());
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
    use crate::dump_vs_log::fixtures::{dump_vs_log_results, with_trials};
    use crate::stream::fixtures::stream_results;
    use crate::sync::Strategy;
    use crate::sync::fixtures::{measured, results};

    #[test]
    fn every_trial_of_every_experiment_is_a_line_of_one_table() {
        let mut all = results(vec![measured(Strategy::BASELINE, &[1_000.0], 1.0, 1.0)]);
        let stream = stream_results();
        let trials: usize = stream.series.iter().map(|one| one.trials.len()).sum();
        all.experiments.push(stream.into());
        all.experiments
            .push(with_trials(dump_vs_log_results()).into());
        let csv = csv(&all);
        // One of sync, those of stream, a dump and four policies.
        assert_eq!(csv.lines().count(), 1 + 1 + trials + 5);
        assert_eq!(
            csv.lines().next(),
            Some(tsv_header().trim().replace('\t', ",").as_str())
        );
    }
}
