//! The tables beneath the charts of experiment `sync`.

use crate::numbers::{NOTHING, interval, short, thousands, two};
use crate::report::charts::{Chart, Drawing};
use crate::report::table::{self, MOST_ROWS, Row, Table};
use crate::section::Section;
use crate::stats::median;
use crate::sync::SyncResults;
use crate::sync::safety::lost_in;
use landfall_os::humanize::bytes_text;
use landfall_results::{Metric, Series};

/// Percentiles that get a column, with its heading.
const PERCENTILES: [(f64, &str); 9] = [
    (0.0, "least"),
    (5.0, "5%"),
    (25.0, "25%"),
    (50.0, "50%"),
    (75.0, "75%"),
    (90.0, "90%"),
    (99.0, "99%"),
    (99.9, "99.9%"),
    (100.0, "greatest"),
];

/// The table that belongs to `chart`, which shows `section`.
pub(super) fn of(chart: &Chart, section: &Section<'_>) -> Table {
    let mut table = match &chart.drawing {
        Drawing::Latency { .. } => latency(section),
        Drawing::Costs { .. } => costs(section),
        _ => rates(section),
    };
    if section.rows.len() > MOST_ROWS {
        table.notes.push(format!(
            "The first {MOST_ROWS} of {} strategies; results.json has them all.",
            section.rows.len()
        ));
    }
    let lax = |(_, series): &(String, &Series)| !section.is_durable(series) && series.is_measured();
    if section.rows.iter().any(lax) {
        table
            .notes
            .push("* Not durable: a power cut loses these writes.".to_owned());
    }
    table
}

fn or_nothing(text: Option<String>) -> String {
    text.unwrap_or_else(|| NOTHING.to_owned())
}

fn of_section(
    section: &Section<'_>,
    caption: &str,
    columns: Vec<&'static str>,
    cells: impl Fn(&Series) -> Vec<String>,
) -> Table {
    let rows = section
        .rows
        .iter()
        .take(MOST_ROWS)
        .map(|(label, strategy)| {
            let mark = if section.is_durable(strategy) {
                ""
            } else {
                " *"
            };
            Row {
                head: format!("{label}{mark}"),
                spans: !strategy.is_measured(),
                cells: match &strategy.unsupported {
                    _ if strategy.is_measured() => cells(strategy),
                    Some(reason) => vec![format!("not measured: {reason}")],
                    None => vec!["not measured".to_owned()],
                },
            }
        })
        .collect();
    Table {
        caption: format!("{caption}. {}", section.title),
        corner: "Strategy",
        columns,
        rows,
        ..Table::default()
    }
}

fn rates(section: &Section<'_>) -> Table {
    let mut columns = vec![
        "ops/s",
        "95% interval",
        "p50 µs",
        "p99 µs",
        "first ms",
        "CPU µs",
        "drift",
    ];
    let is_proven = section.rows.iter().any(|(_, one)| one.proof.is_some());
    if is_proven {
        columns.push("lost in");
    }
    let mut table = of_section(
        section,
        "Operations per second, latencies in microseconds and CPU time per operation",
        columns,
        |series| {
            let rate = series.estimate(Metric::OpsPerSecond);
            let first = series.median(Metric::FirstUs);
            let mut cells = vec![
                series.text(Metric::OpsPerSecond),
                or_nothing(rate.map(|rate| interval(&rate, thousands))),
                series.text(Metric::P50Us),
                series.text(Metric::P99Us),
                or_nothing(first.map(|first| short(first / 1e3))),
                series.text(Metric::CpuUs),
                series.text(Metric::Drift),
            ];
            if is_proven {
                cells.push(lost_in(series));
            }
            cells
        },
    );
    if is_proven {
        table.notes.push(format!(
            "Lost in: crash states in which an acknowledged write was missing, of those that were tried; {NOTHING} where nothing was proven."
        ));
    }
    table
}

fn latency(section: &Section<'_>) -> Table {
    of_section(
        section,
        "Latency in microseconds at percentiles, over all rounds, without first operations",
        PERCENTILES.iter().map(|(_, name)| *name).collect(),
        |series| {
            let at = |wanted: f64| {
                let (_, latency) = series
                    .distribution
                    .iter()
                    .find(|(percentile, _)| *percentile == wanted)?;
                Some(short(*latency))
            };
            PERCENTILES
                .iter()
                .map(|(percentile, _)| at(*percentile).unwrap_or(NOTHING.to_owned()))
                .collect()
        },
    )
}

fn costs(section: &Section<'_>) -> Table {
    of_section(
        section,
        "Writes, KiB, flushes and reads per operation, as the device counts them",
        vec!["writes", "requests", "KiB", "flushes", "reads"],
        |series| {
            vec![
                series.writes_text(),
                series.text(Metric::WriteRequests),
                series.text(Metric::Kib),
                series.text(Metric::Flushes),
                series.text(Metric::Reads),
            ]
        },
    )
}

/// Strategies that could not be measured, and why; nothing if all were.
pub(super) fn unmeasured(sync: &SyncResults) -> Option<Table> {
    let strategies = sync.series.iter().filter(|s| !s.is_measured());
    table::unmeasured(strategies.map(|s| (s.key.as_str(), s.unsupported.as_deref())))
}

/// What preparations cost, which no figure of a trial holds.
pub(super) fn preparation(sync: &SyncResults) -> Table {
    let mut rows = vec![Row {
        head: "files kept for overwriting, once for the run".to_owned(),
        cells: vec![
            bytes_text(sync.preparation.bytes),
            two(sync.preparation.seconds),
        ],
        spans: false,
    }];
    for strategy in &sync.series {
        let of = |metric| median(&strategy.values(metric)).unwrap_or(0.0);
        let bytes = of(Metric::PreparationBytes);
        if bytes > 0.0 && rows.len() < MOST_ROWS {
            rows.push(Row {
                head: format!("{}, per trial", strategy.key),
                cells: vec![
                    bytes_text(bytes as u64),
                    two(of(Metric::PreparationSeconds)),
                ],
                spans: false,
            });
        }
    }
    Table {
        caption: "Bytes written and seconds taken to prepare files".to_owned(),
        corner: "Files",
        columns: vec!["written", "seconds"],
        rows,
        ..Table::default()
    }
}
