//! The tables of experiment `dump-vs-log`: those beneath its charts, and those of a terminal.

use crate::dump_vs_log::summary_text::{self, loses, percent};
use crate::dump_vs_log::{Cost, DumpVsLogResults};
use crate::numbers::{NOTHING, interval, short, thousands, two};
use landfall_os::humanize::{bytes_text, duration_text};
use landfall_results::view::{
    Block, Column, Row, SeriesColumn, Table, series_table, with_interval,
};
use landfall_results::{Metric, Saving, Series};

/// What was saved, and how it changed.
pub(super) fn heading(found: &DumpVsLogResults) -> String {
    format!(
        "{} in records of {}, of which {} a second change for {}",
        bytes_text(found.state_bytes),
        bytes_text(found.record_bytes),
        thousands(found.updates_per_second),
        duration_text(found.log_seconds)
    )
}

/// Every way, by all that is known of it.
pub(super) fn table(found: &DumpVsLogResults) -> Table {
    let mut columns = Vec::from(with_interval(Metric::LongestStallMs));
    columns.extend(with_interval(Metric::UsPerUpdate));
    columns.extend(
        [
            Metric::OpsPerSecond,
            Metric::ProgramKib,
            Metric::Kib,
            Metric::Flushes,
            Metric::Seconds,
            Metric::DeviceWrittenMib,
            Metric::DeviceFlushes,
            Metric::LongestCaptureMs,
        ]
        .map(SeriesColumn::median),
    );
    columns.extend(with_interval(Metric::RestartSeconds));
    let rows = found
        .measured(&Saving::ALL)
        .map(|(saving, series)| (name(found, saving, series), series));
    let mut table = series_table("Every way of keeping the state", "Way", columns, rows);
    table.notes = of_replay(found).into_iter().chain(notes(found)).collect();
    table
}

/// The name of a way, with a mark where it does not keep up.
fn name(found: &DumpVsLogResults, saving: Saving, series: &Series) -> String {
    let is_behind = Saving::LOGS.contains(&saving) && !found.keeps_up(series);
    format!("{}{}", saving.name(), if is_behind { " *" } else { "" })
}

fn notes(found: &DumpVsLogResults) -> Vec<String> {
    let mut notes = Vec::new();
    let mut logs = found.measured(&Saving::LOGS);
    if logs.any(|(_, log)| !found.keeps_up(log)) {
        notes.push("* did not accept updates as fast as they came in".to_owned());
    }
    if !found.cold {
        notes.push("restarts may have read from the page cache".to_owned());
    }
    notes
}

/// Where a dump and each log cost the same.
pub(super) fn break_even_table(found: &DumpVsLogResults, cost: Cost, caption: &str) -> Table {
    let rows = Saving::LOGS.into_iter().filter_map(|log| {
        let point = summary_text::crossing(found, log, cost)?;
        Some(Row::of(
            log.name(),
            vec![
                percent(point.share.median),
                interval(&point.share, percent),
                thousands(point.updates.median),
                interval(&point.updates, thousands),
                short(point.seconds),
            ],
        ))
    });
    let columns = [
        "share of the state",
        "95% interval",
        "updates",
        "95% interval",
        "seconds",
    ];
    let caption = format!(
        "Where a dump and a log cost the same. {caption}; the last column is how long that many updates take to come in"
    );
    Table::new(caption, "Log", columns.map(Column::new).into()).with_rows(rows)
}

/// What a terminal shows of it.
pub(crate) fn brief(found: &DumpVsLogResults) -> Vec<Block> {
    let title = format!("Dump against log ({})", heading(found));
    let mut blocks = vec![Block::Heading(title)];
    blocks.push(Block::Table(of_wholes(found)));
    blocks.push(Block::Table(of_logs(found)));
    if let Some(replay) = of_replay(found) {
        blocks.extend(Block::prose(1, [replay]));
    }
    let crossings = crossings(found);
    if !crossings.rows.is_empty() {
        blocks.extend(Block::prose(1, [crossings.caption.clone()]));
        blocks.push(Block::Table(crossings));
    }
    blocks
}

/// What is written as a whole.
fn of_wholes(found: &DumpVsLogResults) -> Table {
    let mut columns = Vec::from(with_interval(Metric::LongestStallMs));
    columns.extend(
        [
            Metric::Seconds,
            Metric::DeviceWrittenMib,
            Metric::DeviceFlushes,
        ]
        .map(SeriesColumn::median),
    );
    columns.extend(with_interval(Metric::RestartSeconds));
    let wholes = [&[Saving::Dump][..], &Saving::SNAPSHOTS].concat();
    let rows = found.measured(&wholes);
    let rows: Vec<_> = rows
        .map(|(saving, series)| (saving.name(), series))
        .collect();
    let mut table = series_table("", "", columns, rows);
    table.note("dump: the program stands still until all is handed over");
    table.note(
        "snapshot: taken by the engine while updates go on, which are in its MiB and flushes",
    );
    table
}

/// What takes updates one by one.
fn of_logs(found: &DumpVsLogResults) -> Table {
    let mut columns = Vec::from(with_interval(Metric::LongestStallMs));
    columns.extend(with_interval(Metric::UsPerUpdate));
    let measured: Vec<_> = found.measured(&Saving::LOGS).collect();
    // Where there is no device to ask, at least what was given to the system.
    let is_counted = measured
        .iter()
        .any(|(_, log)| log.median(Metric::Kib).is_some());
    let kib = if is_counted {
        Metric::Kib
    } else {
        Metric::ProgramKib
    };
    columns.extend([kib, Metric::Flushes].map(SeriesColumn::median));
    columns.extend(with_interval(Metric::RestartSeconds));
    let rows = measured
        .iter()
        .map(|(saving, log)| (name(found, *saving, log), *log));
    let mut table = series_table("", "", columns, rows);
    for saving in Saving::LOGS {
        table.note(format!(
            "{}: a power cut may take {}",
            saving.name(),
            loses(saving)
        ));
    }
    notes(found).into_iter().for_each(|note| table.note(note));
    table
}

fn of_replay(found: &DumpVsLogResults) -> Option<String> {
    let replay = found.find(Saving::Replay)?;
    let records = replay.trials.first()?.get(Metric::Operations)?;
    let seconds = replay.estimate(Metric::RestartSeconds)?;
    Some(format!(
        "Replaying a log of {} records takes {} s ({}).",
        thousands(records),
        two(seconds.median),
        interval(&seconds, two)
    ))
}

fn crossings(found: &DumpVsLogResults) -> Table {
    let known = |log: &Saving| found.break_even.iter().any(|one| one.saving == *log);
    let rows = Saving::LOGS.into_iter().filter(known).map(|log| {
        let cells = |cost| match summary_text::crossing(found, log, cost) {
            Some(point) => vec![
                percent(point.share.median),
                interval(&point.share, percent),
                thousands(point.updates.median),
                duration_text(point.seconds),
            ],
            None => vec![NOTHING.to_owned(); 4],
        };
        Row::of(
            log.name(),
            [cells(Cost::Seconds), cells(Cost::Bytes)].concat(),
        )
    });
    let columns = [
        "by seconds spent",
        "95% interval",
        "updates",
        "every",
        "by bytes written",
        "95% interval",
        "updates",
        "every",
    ];
    let caption = "A dump is cheaper than the log once this share of the state changes between two saves, so many updates, or made less often than every:";
    Table::new(caption, "", columns.map(Column::new).into()).with_rows(rows)
}
