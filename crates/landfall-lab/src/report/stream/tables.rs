//! The tables beneath the charts of phases and costs.

use crate::numbers::{NOTHING, interval, short, two};
use crate::report::table::{self, MOST_ROWS, Row, Table};
use crate::section::Section;
use crate::stats::median;
use crate::stream::StreamResults;
use landfall_os::humanize::bytes_text;
use landfall_results::{Metric, Series};

/// A row for each phase of each strategy.
pub(super) fn rates(section: &Section<'_>) -> Table {
    let mut rows = Vec::new();
    for (label, strategy) in section.rows.iter().take(MOST_ROWS / 3) {
        if !strategy.is_measured() {
            rows.push(without(label, strategy));
            continue;
        }
        for (name, rate, seconds) in [
            ("hand-over", Metric::HandOverMbPerS, Metric::HandOverSeconds),
            ("sync", Metric::SyncMbPerS, Metric::SyncSeconds),
            ("total", Metric::TotalMbPerS, Metric::Seconds),
        ] {
            let cells = [rate, seconds].map(|metric| spread(strategy, metric));
            rows.push(Row::of(format!("{label}: {name}"), cells.concat()));
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
fn spread(series: &Series, metric: Metric) -> Vec<String> {
    let print = metric.description().print;
    match series.spread(metric) {
        Some(spread) => vec![
            print(spread.mean),
            print(spread.standard_deviation),
            print(spread.estimate.median),
            interval(&spread.estimate, print),
        ],
        None => vec![NOTHING.to_owned(); 4],
    }
}

fn without(label: &str, strategy: &Series) -> Row {
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
    let rows = section.rows.iter().take(MOST_ROWS).map(|(label, series)| {
        if series.is_measured() {
            Row::of(label, cost_cells(series))
        } else {
            without(label, series)
        }
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

fn cost_cells(series: &Series) -> Vec<String> {
    let pair = |metric| match series.estimate(metric) {
        Some(estimate) => vec![short(estimate.median), interval(&estimate, short)],
        None => vec![NOTHING.to_owned(); 2],
    };
    let rest = [
        Metric::LeftMib,
        Metric::DeviceWrittenMib,
        Metric::DeviceWriteRequests,
        Metric::DeviceFlushes,
        Metric::DeviceReadMib,
    ];
    [
        pair(Metric::LongestStallMs),
        pair(Metric::PeakResidentMib),
        pair(Metric::CpuSPerGib),
        rest.map(|metric| series.text(metric)).to_vec(),
    ]
    .concat()
}

/// Strategies that could not be measured, and why; nothing if all were.
pub(super) fn unmeasured(stream: &StreamResults) -> Option<Table> {
    let strategies = stream.series.iter().filter(|s| !s.is_measured());
    table::unmeasured(strategies.map(|s| (s.key.as_str(), s.unsupported.as_deref())))
}

/// What preparations cost, which no figure of a trial holds; nothing if there were none.
pub(super) fn preparation(stream: &StreamResults) -> Option<Table> {
    let rows: Vec<Row> = stream
        .series
        .iter()
        .filter_map(|strategy| {
            let of = |metric| median(&strategy.values(metric)).unwrap_or(0.0);
            let bytes = of(Metric::PreparationBytes);
            let seconds = of(Metric::PreparationSeconds);
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
