//! The tables beneath the charts of phases and costs.

use crate::numbers::{NOTHING, interval, short, thousands, two};
use crate::report::table::{self, MOST_ROWS, Row, Table};
use crate::stats::{Estimate, Spread, median};
use crate::stream::{Section, StrategyResult, StreamResults, Summary, Trial};
use landfall_os::humanize::bytes_text;

/// A row for each phase of each strategy.
pub(super) fn rates(section: &Section<'_>) -> Table {
    let mut rows = Vec::new();
    for (label, strategy) in section.rows.iter().take(MOST_ROWS / 3) {
        let Some(summary) = &strategy.summary else {
            rows.push(without(label, strategy));
            continue;
        };
        for (name, phase) in [
            ("hand-over", &summary.hand_over),
            ("sync", &summary.sync),
            ("total", &summary.total),
        ] {
            let cells = match phase.mb_per_s {
                Some(rate) => spread(&rate, thousands),
                None => vec![NOTHING.to_owned(); 4],
            };
            let seconds = spread(&phase.seconds, two);
            rows.push(Row::of(
                format!("{label}: {name}"),
                [cells, seconds].concat(),
            ));
        }
    }
    let notes = left_out(section, MOST_ROWS / 3);
    Table {
        caption: format!("MB/s and seconds of each phase. {}", section.title),
        corner: "Strategy and phase",
        columns: vec![
            "MB/s mean",
            "± sd",
            "median",
            "95% interval",
            "seconds mean",
            "± sd",
            "median",
            "95% interval",
        ],
        rows,
        notes,
        ..Table::default()
    }
}

/// Mean, standard deviation, median and interval.
fn spread(spread: &Spread, print: fn(f64) -> String) -> Vec<String> {
    vec![
        print(spread.mean),
        print(spread.standard_deviation),
        print(spread.estimate.median),
        interval(&spread.estimate, print),
    ]
}

fn without(label: &str, strategy: &StrategyResult) -> Row {
    let reason = match &strategy.unsupported {
        Some(reason) => format!("not measured: {reason}"),
        None => "not measured".to_owned(),
    };
    Row::without(label, reason)
}

fn left_out(section: &Section<'_>, most: usize) -> Vec<String> {
    let all = section.rows.len();
    let note = format!("The first {most} of {all} strategies; results.json has them all.");
    (all > most).then_some(note).into_iter().collect()
}

pub(super) fn costs(section: &Section<'_>) -> Table {
    let rows = section
        .rows
        .iter()
        .take(MOST_ROWS)
        .map(|(label, strategy)| match &strategy.summary {
            Some(summary) => Row::of(label, cost_cells(summary)),
            None => without(label, strategy),
        });
    Table {
        caption: format!(
            "What a save costs besides its time: medians with 95% intervals; of the device, medians. {}",
            section.title
        ),
        corner: "Strategy",
        columns: vec![
            "longest stall ms",
            "95% interval",
            "peak MiB",
            "95% interval",
            "CPU s/GiB",
            "95% interval",
            "left to sync MiB",
            "device MiB",
            "requests",
            "flushes",
            "read MiB",
        ],
        rows: rows.collect(),
        notes: left_out(section, MOST_ROWS),
        ..Table::default()
    }
}

fn cost_cells(summary: &Summary) -> Vec<String> {
    let pair = |estimate: Option<Estimate>| match estimate {
        Some(estimate) => vec![short(estimate.median), interval(&estimate, short)],
        None => vec![NOTHING.to_owned(); 2],
    };
    let device = match summary.device {
        Some(device) => vec![
            short(device.written_mib),
            thousands(device.write_requests),
            short(device.flushes),
            short(device.read_mib),
        ],
        None => vec![NOTHING.to_owned(); 4],
    };
    [
        pair(Some(summary.longest_stall_ms)),
        pair(summary.peak_resident_mib),
        pair(Some(summary.cpu_s_per_gib)),
        vec![short(summary.left_mib.median)],
        device,
    ]
    .concat()
}

/// Strategies that could not be measured, and why; nothing if all were.
pub(super) fn unmeasured(stream: &StreamResults) -> Option<Table> {
    let strategies = stream.strategies.iter().filter(|s| s.summary.is_none());
    table::unmeasured(strategies.map(|s| (s.key.as_str(), s.unsupported.as_deref())))
}

/// What preparations cost, which no figure of a trial holds; nothing if there were none.
pub(super) fn preparation(stream: &StreamResults) -> Option<Table> {
    let rows: Vec<Row> = stream
        .strategies
        .iter()
        .filter_map(|strategy| {
            let of = |value: fn(&Trial) -> f64| {
                median(&strategy.trials.iter().map(value).collect::<Vec<f64>>()).unwrap_or(0.0)
            };
            let bytes = of(|trial| trial.preparation.bytes as f64);
            let seconds = of(|trial| trial.preparation.seconds);
            (bytes > 0.0).then(|| {
                Row::of(
                    format!("{}, per trial", strategy.key),
                    vec![bytes_text(bytes as u64), two(seconds)],
                )
            })
        })
        .take(MOST_ROWS)
        .collect();
    (!rows.is_empty()).then(|| Table {
        caption: "Bytes written and seconds taken to prepare files for a large state".to_owned(),
        corner: "Files",
        columns: vec!["written", "seconds"],
        rows,
        ..Table::default()
    })
}
