//! The tables of configurations.

use landfall_os::humanize::bytes_text;
use landfall_results::view::{Row, SeriesColumn, Table, series_table, with_interval};
use landfall_results::{Metric, Series};

use crate::configuration::Measurements;
use crate::numbers::{NOTHING, two};
use crate::views;

/// Everything that was measured of these, each under its label.
pub(crate) fn measured<'a>(
    caption: String,
    rows: impl Iterator<Item = (String, &'a Series)>,
) -> Table {
    let mut columns = Vec::from(with_interval(Metric::RequestsPerSecond));
    columns.extend(
        [
            Metric::P50Us,
            Metric::P99Us,
            Metric::ServerCpuUs,
            Metric::ClientCpuUs,
        ]
        .map(SeriesColumn::median),
    );
    columns.extend(with_interval(Metric::Flushes));
    columns.extend(with_interval(Metric::Kib));
    columns.extend([Metric::Writes, Metric::Reads].map(SeriesColumn::median));
    series_table(caption, "Configuration", columns, rows)
}

/// What fits a terminal: a row for each number of clients, beneath the settings that those have in common.
pub(crate) fn brief(caption: &str, rows: &[&Series]) -> Table {
    let varied = varied(rows);
    let named = |one: &Series| one.axes.varied_text(varied);
    let mut columns = Vec::from(with_interval(Metric::RequestsPerSecond));
    columns.extend(
        [
            Metric::P50Us,
            Metric::P99Us,
            Metric::ServerCpuUs,
            Metric::Writes,
            Metric::Kib,
            Metric::Flushes,
        ]
        .map(SeriesColumn::median),
    );
    let labelled = rows.iter().map(|one| (clients_text(one), *one));
    let mut table = series_table(caption, "", columns, labelled);
    table.corner = varied.unwrap_or_default().to_owned().into();
    let mut grouped = Vec::new();
    let mut last = None;
    for (row, one) in table.rows.drain(..).zip(rows) {
        let name = named(one);
        match row {
            Row::Without { head, reason } => {
                let but = match one.trials.len() {
                    0 => String::new(),
                    some => format!(" (after {some} rounds)"),
                };
                grouped.push(Row::without(
                    format!("{name}, {head}"),
                    format!("{reason}{but}"),
                ));
            }
            row => {
                if last.as_ref() != Some(&name) {
                    grouped.push(Row::Group(name.as_str().into()));
                    last = Some(name);
                }
                grouped.push(row);
            }
        }
    }
    table.with_rows(grouped)
}

/// The setting that all of them vary first, if there is one.
fn varied<'a>(rows: &[&'a Series]) -> Option<&'a str> {
    let mut first = rows.iter().map(|one| one.axes.varied.first());
    let (key, _) = first.next()??;
    let is_same = |other: Option<&(String, String)>| other.is_some_and(|(other, _)| other == key);
    first.all(is_same).then_some(key.as_str())
}

/// A number of clients in words.
pub(crate) fn clients_text(one: &Series) -> String {
    match one.axes.clients.unwrap_or(1) {
        1 => "1 client".to_owned(),
        some => format!("{some} clients"),
    }
}

/// Figures of two series side by side.
pub(crate) fn from_to(one: &Series, other: &Series, metric: Metric) -> String {
    let of = |series: &Series| match metric {
        Metric::Writes => series.writes_text(),
        _ => series.text(metric),
    };
    let (one, other) = (of(one), of(other));
    if one == NOTHING && other == NOTHING {
        one
    } else {
        format!("{one}→{other}")
    }
}

/// What preparations cost.
pub(crate) fn preparation(all: &Measurements) -> Option<Table> {
    let mut rows = views::images(&all.sites);
    for load in &all.loads {
        let version = load.version.as_deref().unwrap_or_default();
        rows.push(Row::of(
            format!("{} {version}, loaded with {}", load.database, load.workload),
            [bytes_text(load.bytes), two(load.seconds)],
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
            [bytes_text(bytes as u64), two(seconds)],
        ));
    }
    let caption = "Bytes written and seconds taken to make filesystems and databases";
    views::preparation(caption, rows)
}
