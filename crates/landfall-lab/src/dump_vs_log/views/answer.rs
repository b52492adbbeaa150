//! Whether to dump a state or to log its changes, on one screen: how long the program stands still, how long a restart
//! takes, and where the cheaper one changes.

use landfall_os::humanize::bytes_text;
use landfall_results::view::{Block, Column, Row, Table};
use landfall_results::{Metric, Saving};

use crate::dump_vs_log::summary_text::{crossing, percent};
use crate::dump_vs_log::{Cost, DumpVsLogResults};
use crate::numbers::NOTHING;
use crate::stream::summary_text::seconds_text;

/// What stands beside each way.
const SHOWN: [(Saving, &str); 3] = [
    (Saving::Dump, "dump, program stopped"),
    (Saving::LogEveryUpdate, "log, each update synced"),
    (Saving::SnapshotEveryUpdate, "snapshot, program goes on"),
];

/// The answer; nothing where none of these was measured.
pub(crate) fn answer(found: &DumpVsLogResults) -> Option<Vec<Block>> {
    let rows = SHOWN.iter().filter_map(|(saving, label)| {
        let series = found.find(*saving).filter(|one| one.is_measured())?;
        let time = |metric, unit: f64| {
            let time = series.median(metric).map(|time| seconds_text(time * unit));
            time.unwrap_or_else(|| NOTHING.to_owned())
        };
        let cheaper = crossing(found, *saving, Cost::Seconds);
        let cheaper = cheaper.map_or_else(String::new, |point| {
            format!(
                "cheaper if less than {} changes",
                percent(point.share.median)
            )
        });
        Some(Row::of(
            *label,
            [
                time(Metric::LongestStallMs, 1e-3),
                time(Metric::RestartSeconds, 1.0),
                cheaper,
            ],
        ))
    });
    let rows: Vec<Row> = rows.collect();
    let mut columns: Vec<Column> = ["longest stall", "restart takes"].map(Column::new).into();
    columns.push(Column::text(""));
    let title = format!("Dump or log, {}", bytes_text(found.state_bytes));
    let table = Table::new(title.clone(), title, columns).with_rows(rows);
    (!table.rows.is_empty()).then(|| vec![Block::Table(table)])
}
