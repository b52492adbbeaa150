//! The tables beneath the charts of experiment `sync`.

use crate::numbers::{NOTHING, interval, short, thousands, two};
use crate::report::charts::{Chart, Drawing};
use crate::report::table::{self, MOST_ROWS, Row, Table};
use crate::stats;
use crate::sync::{Section, StrategyResult, Summary, SyncResults};
use landfall_os::humanize::bytes_text;

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
    let lax =
        |(_, strategy): &(String, &StrategyResult)| !strategy.durable && strategy.summary.is_some();
    if section.rows.iter().any(lax) {
        table
            .notes
            .push("* Not durable: a power cut loses these writes.".to_owned());
    }
    table
}

fn of_section(
    section: &Section<'_>,
    caption: &str,
    columns: Vec<&'static str>,
    cells: impl Fn(&StrategyResult, &Summary) -> Vec<String>,
) -> Table {
    let rows = section
        .rows
        .iter()
        .take(MOST_ROWS)
        .map(|(label, strategy)| {
            let mark = if strategy.durable { "" } else { " *" };
            Row {
                head: format!("{label}{mark}"),
                spans: strategy.summary.is_none(),
                cells: match (&strategy.summary, &strategy.unsupported) {
                    (Some(summary), _) => cells(strategy, summary),
                    (None, Some(reason)) => vec![format!("not measured: {reason}")],
                    (None, None) => vec!["not measured".to_owned()],
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
        |strategy, summary| {
            let mut cells = vec![
                thousands(summary.ops_per_second.median),
                interval(&summary.ops_per_second, thousands),
                short(summary.p50_us.median),
                short(summary.p99_us.median),
                short(summary.first_us.median / 1e3),
                short(summary.cpu_us.median),
                summary
                    .drift
                    .map_or(NOTHING.to_owned(), |drift| two(drift.median)),
            ];
            if is_proven {
                cells.push(strategy.lost_in());
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
        |_, summary| {
            let at = |wanted: f64| {
                let (_, latency) = summary
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
        |_, summary| match summary.device {
            Some(device) => vec![
                device.writes_text(),
                two(device.write_requests),
                short(device.kib),
                two(device.flushes),
                two(device.reads),
            ],
            None => vec![NOTHING.to_owned(); 5],
        },
    )
}

/// Strategies that could not be measured, and why; nothing if all were.
pub(super) fn unmeasured(sync: &SyncResults) -> Option<Table> {
    let strategies = sync.strategies.iter().filter(|s| s.summary.is_none());
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
    for strategy in &sync.strategies {
        let of = |value: fn(&crate::sync::Trial) -> f64| {
            stats::median(&strategy.trials.iter().map(value).collect::<Vec<f64>>()).unwrap_or(0.0)
        };
        let bytes = of(|trial| trial.preparation.bytes as f64);
        if bytes > 0.0 && rows.len() < MOST_ROWS {
            rows.push(Row {
                head: format!("{}, per trial", strategy.key),
                cells: vec![
                    bytes_text(bytes as u64),
                    two(of(|trial| trial.preparation.seconds)),
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
