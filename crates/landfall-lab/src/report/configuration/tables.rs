//! The tables of configurations.

use crate::configuration::Measurements;
use crate::numbers::{NOTHING, interval, two};
use crate::report::table::{self, MOST_ROWS, Row, Table};
use landfall_os::humanize::bytes_text;
use landfall_results::{Metric, Series};

/// Everything that was measured of these, each under its label.
pub(in crate::report) fn measured<'a>(
    caption: String,
    rows: impl Iterator<Item = (String, &'a Series)>,
) -> Table {
    let rows = rows.take(MOST_ROWS).map(|(label, one)| {
        if one.is_measured() {
            Row::of(label, cells(one))
        } else {
            let reason = one.unsupported.as_deref().unwrap_or(NOTHING);
            Row::without(label, format!("not measured: {reason}"))
        }
    });
    Table {
        caption,
        corner: "Configuration",
        columns: vec![
            "requests/s",
            "95% interval",
            "p50 µs",
            "p99 µs",
            "server CPU µs",
            "our CPU µs",
            "flushes",
            "95% interval",
            "KiB",
            "95% interval",
            "writes",
            "reads",
        ],
        rows: rows.collect(),
        ..Table::default()
    }
}

fn cells(one: &Series) -> Vec<String> {
    let with_interval = |metric: Metric| {
        let print = metric.description().print;
        let range = one.estimate(metric).map(|range| interval(&range, print));
        [one.text(metric), range.unwrap_or(NOTHING.to_owned())]
    };
    let mut cells = with_interval(Metric::RequestsPerSecond).to_vec();
    cells.extend(
        [
            Metric::P50Us,
            Metric::P99Us,
            Metric::ServerCpuUs,
            Metric::ClientCpuUs,
        ]
        .map(|metric| one.text(metric)),
    );
    cells.extend(with_interval(Metric::Flushes));
    cells.extend(with_interval(Metric::Kib));
    cells.extend([one.writes_text(), one.text(Metric::Reads)]);
    cells
}

/// Configurations that could not be measured, and why; nothing if all were.
pub(in crate::report) fn unmeasured(all: &Measurements) -> Option<Table> {
    let some = all.series.iter().filter(|one| !one.is_measured());
    table::unmeasured(some.map(|one| (one.key.as_str(), one.unsupported.as_deref())))
}

/// What preparations cost, which no figure of a trial holds.
pub(in crate::report) fn preparation(all: &Measurements) -> Option<Table> {
    let mut rows = Vec::new();
    for site in all.sites.iter().filter(|site| site.preparation.bytes > 0) {
        let made = site.preparation;
        rows.push(Row::of(
            format!("{}, an image for the run", site.key),
            vec![bytes_text(made.bytes), two(made.seconds)],
        ));
    }
    for load in &all.loads {
        let version = load.version.as_deref().unwrap_or_default();
        rows.push(Row::of(
            format!("{} {version}, loaded with {}", load.database, load.workload),
            vec![bytes_text(load.bytes), two(load.seconds)],
        ));
    }
    let of = |metric| all.series.iter().flat_map(move |one| one.values(metric));
    let copies = of(Metric::PreparationBytes).filter(|bytes| *bytes > 0.0);
    let starts = copies.count();
    if starts > 0 {
        let bytes: f64 = of(Metric::PreparationBytes).sum();
        let seconds: f64 = of(Metric::PreparationSeconds).sum();
        rows.push(Row::of(
            format!("{starts} starts of a copy, with warm-ups"),
            vec![bytes_text(bytes as u64), two(seconds)],
        ));
    }
    (!rows.is_empty()).then(|| Table {
        caption: "Bytes written and seconds taken to make filesystems and databases".to_owned(),
        corner: "What",
        columns: vec!["written", "seconds"],
        rows,
        ..Table::default()
    })
}
