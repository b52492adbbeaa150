//! The tables of configurations.

use crate::configuration::DeviceCost;
use crate::configuration::{ConfigurationResult, Measurements, Summary};
use crate::numbers::{NOTHING, interval, short, thousands, two};
use crate::report::table::{self, MOST_ROWS, Row, Table};
use landfall_os::humanize::bytes_text;

/// Everything that was measured of these, each under its label.
pub(in crate::report) fn measured<'a>(
    caption: String,
    rows: impl Iterator<Item = (String, &'a ConfigurationResult)>,
) -> Table {
    let rows = rows.take(MOST_ROWS).map(|(label, one)| match &one.summary {
        Some(summary) => Row::of(label, cells(summary)),
        None => {
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

fn cells(summary: &Summary) -> Vec<String> {
    let rate = &summary.requests_per_second;
    let mut cells = vec![
        thousands(rate.median),
        interval(rate, thousands),
        short(summary.p50_us.median),
        short(summary.p99_us.median),
        short(summary.server_cpu_us.median),
        short(summary.client_cpu_us.median),
    ];
    let nothing = || NOTHING.to_owned();
    for (estimate, print) in [
        (summary.flushes, two as fn(f64) -> String),
        (summary.kib, short),
    ] {
        cells.push(estimate.map_or_else(nothing, |one| print(one.median)));
        cells.push(estimate.map_or_else(nothing, |one| interval(&one, print)));
    }
    cells.push(
        summary
            .device
            .as_ref()
            .map_or_else(nothing, DeviceCost::writes_text),
    );
    cells.push(
        summary
            .device
            .map_or_else(nothing, |device| two(device.reads)),
    );
    cells
}

/// Configurations that could not be measured, and why; nothing if all were.
pub(in crate::report) fn unmeasured(all: &Measurements) -> Option<Table> {
    let some = all
        .configurations
        .iter()
        .filter(|one| one.summary.is_none());
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
    let trials = || all.configurations.iter().flat_map(|one| &one.trials);
    let starts = trials().filter(|trial| trial.preparation.bytes > 0).count();
    if starts > 0 {
        let bytes: u64 = trials().map(|trial| trial.preparation.bytes).sum();
        let seconds: f64 = trials().map(|trial| trial.preparation.seconds).sum();
        rows.push(Row::of(
            format!("{starts} starts of a copy, with warm-ups"),
            vec![bytes_text(bytes), two(seconds)],
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
