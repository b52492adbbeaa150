//! Whether to dump a state or to log its changes, on one screen: how long the program stands still, how long a restart
//! takes, and when the log costs less.

use landfall_os::humanize::bytes_text;
use landfall_results::view::{Block, Cell, Column, Row, Table, Tone};
use landfall_results::{Metric, Saving};

use crate::Results;
use crate::dump_vs_log::summary_text::{crossing, percent};
use crate::dump_vs_log::{Cost, DumpVsLogResults};
use crate::facts::may_lose_new_files;
use crate::numbers::NOTHING;
use crate::stream::summary_text::seconds_text;

/// What stands beside each way.
const SHOWN: [(Saving, &str, &str); 3] = [
    (Saving::Dump, "dump, records encoded", "all since the dump"),
    (Saving::LogEveryUpdate, "log over zeros, synced", "nothing"),
    (
        Saving::SnapshotEveryUpdate,
        "log, during a snapshot",
        "nothing",
    ),
];

/// The answer; nothing where none of these was measured.
pub(crate) fn answer(results: &Results, found: &DumpVsLogResults) -> Option<Vec<Block>> {
    let is_in_memory = results.is_in_memory();
    let is_at_risk = may_lose_new_files(&results.filesystem) && !is_in_memory;
    let is_in_doubt = results.is_in_doubt() && !is_in_memory;
    let rows = SHOWN.iter().filter_map(|(saving, label, lost)| {
        let series = found.find(*saving).filter(|one| one.is_measured())?;
        let time = |metric, unit: f64| {
            let time = series.median(metric).map(|time| seconds_text(time * unit));
            time.unwrap_or_else(|| NOTHING.to_owned())
        };
        let stall = time(Metric::LongestStallMs, 1e-3);
        let restart = time(Metric::RestartSeconds, 1.0);
        let (lost, risk) = match (is_at_risk, saving) {
            (false, _) => (*lost, ""),
            (true, Saving::Dump) => (*lost, "*"),
            (true, _) => ("nothing, or a new log file", "*"),
        };
        let lost = match (is_in_memory, is_in_doubt) {
            (true, _) => Cell::toned(Tone::Bad, "everything"),
            (false, true) => Cell::toned(Tone::Doubt, format!("{lost}{risk}?")),
            (false, false) => Cell::from(format!("{lost}{risk}")),
        };
        Some(Row::of(*label, [stall.into(), restart.into(), lost]))
    });
    let rows: Vec<Row> = rows.collect();
    let mut columns: Vec<Column> = ["longest pause", "restart"].map(Column::new).into();
    columns.push(Column::text("lost in a power cut"));
    let title = format!("Dump or log {}", bytes_text(found.state_bytes));
    let mut table = Table::new(title.clone(), title, columns).with_rows(rows);
    if is_at_risk {
        // A log begins new files too.
        table.note("* Without a journal new files can be lost too: a dump, or the log's next one.");
    }
    if is_in_doubt {
        table.note("? As documented; a danger that was noticed here may take more.");
    }
    cheaper(found).into_iter().for_each(|text| table.note(text));
    (!table.rows.is_empty()).then(|| vec![Block::Table(table)])
}

/// Below which changes a log of every update costs less than dumping everything.
fn cheaper(found: &DumpVsLogResults) -> Option<String> {
    let below = |cost| {
        let point = crossing(found, Saving::LogEveryUpdate, cost)?;
        Some(percent(point.share.median))
    };
    let (share, what) = match below(Cost::Seconds) {
        Some(share) => (share, "takes less time"),
        None => (below(Cost::Bytes)?, "writes less"),
    };
    Some(format!(
        "A synced log {what} than dumps if under {share} changes between two."
    ))
}
