//! The tables of experiment `dump-vs-log`: those beneath its charts, and those of a terminal.

use crate::dump_vs_log::summary_text::{self, percent};
use crate::dump_vs_log::{Cost, DumpVsLogResults, Policy};
use crate::numbers::{NOTHING, Print, interval, short, thousands, two};
use crate::stats::Estimate;
use landfall_os::humanize::{bytes_text, duration_text};
use landfall_results::view::{Block, Column, Row, Table, or_nothing};

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

/// A dump, and a log by policy.
pub(super) fn table(found: &DumpVsLogResults) -> Table {
    let both =
        |estimate: &Estimate, print: Print| vec![print(estimate.median), interval(estimate, print)];
    let if_any = |value: Option<f64>, print: Print| vec![or_nothing(value.map(print))];
    let nothing = |count| vec![NOTHING.to_owned(); count];
    let dump = &found.dump;
    let ms = |estimate: &Estimate| Estimate {
        median: estimate.median * 1e3,
        low: estimate.low * 1e3,
        high: estimate.high * 1e3,
    };
    let whole = [
        both(&ms(&dump.hand_over_seconds), short),
        nothing(4),
        nothing(1),
        if_any(dump.device_kib.map(|kib| kib * 1024.0), thousands),
        if_any(dump.flushes, short),
        both(&dump.restart_seconds, two),
    ];
    let mut rows = vec![Row::of(
        "dump (bytes and flushes of a whole one)",
        whole.concat(),
    )];
    rows.extend(found.logs.iter().map(|log| {
        let behind = if log.kept_up { "" } else { " *" };
        let cells = [
            both(&log.longest_stall_ms, short),
            both(&log.us_per_update, short),
            both(&log.accepted_per_second, thousands),
            vec![thousands(log.bytes_per_update)],
            if_any(log.device_bytes_per_update, thousands),
            if_any(log.flushes_per_update, two),
            both(&log.restart_seconds, two),
        ];
        Row::of(format!("{}{behind}", log.policy.name()), cells.concat())
    }));
    let mut notes = vec![format!(
        "A dump is synced under its name after {} s ({}); its longest single call takes {} ms. Replaying a log of {} records takes {} s ({}).",
        two(dump.seconds.median),
        interval(&dump.seconds, two),
        short(dump.longest_call_ms.median),
        thousands(found.replay.records as f64),
        two(found.replay.seconds.median),
        interval(&found.replay.seconds, two),
    )];
    if found.logs.iter().any(|log| !log.kept_up) {
        notes.push("* Did not accept updates as fast as they came in.".to_owned());
    }
    if !found.cold {
        notes.push(
            "Restarts may have read from the page cache: files could not be evicted from it."
                .to_owned(),
        );
    }
    let columns = [
        "longest stall ms",
        "95% interval",
        "µs per update",
        "95% interval",
        "accepted/s",
        "95% interval",
        "bytes per update",
        "device bytes",
        "flushes",
        "restart s",
        "95% interval",
    ];
    let caption = "A dump, and a log by policy: medians with 95% intervals";
    let mut table = Table::new(caption, "Way", columns.map(Column::new).into()).with_rows(rows);
    table.notes = notes;
    table
}

/// Where a dump and each log cost the same.
pub(super) fn break_even_table(found: &DumpVsLogResults, cost: Cost, caption: &str) -> Table {
    let rows = Policy::ALL.into_iter().filter_map(|policy| {
        let point = summary_text::crossing(found, policy, cost)?;
        Some(Row::of(
            policy.name(),
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
    Table::new(caption, "Policy", columns.map(Column::new).into()).with_rows(rows)
}

/// What a terminal shows of it.
pub(crate) fn brief(found: &DumpVsLogResults) -> Vec<Block> {
    let title = format!("Dump against log ({})", heading(found));
    let mut blocks = vec![Block::Heading(title)];
    blocks.extend(Block::prose(1, [of_dump(found)]));
    blocks.push(Block::Table(of_logs(found)));
    let crossings = crossings(found);
    if !crossings.rows.is_empty() {
        blocks.extend(Block::prose(1, [crossings.caption.clone()]));
        blocks.push(Block::Table(crossings));
    }
    blocks
}

fn of_dump(found: &DumpVsLogResults) -> String {
    let dump = &found.dump;
    let with_interval =
        |seconds: &Estimate| format!("{} s ({})", two(seconds.median), interval(seconds, two));
    let written = match (dump.device_kib, dump.flushes) {
        (Some(kib), Some(flushes)) => format!(
            ", the disk writes {} and is flushed {flushes:.0} times",
            bytes_text((kib * 1024.0) as u64)
        ),
        _ => String::new(),
    };
    format!(
        "A dump stops the program for {} and is synced under its name after {}{written}; a restart from it takes {}. Replaying a log of {} records takes {}.",
        with_interval(&dump.hand_over_seconds),
        with_interval(&dump.seconds),
        with_interval(&dump.restart_seconds),
        thousands(found.replay.records as f64),
        with_interval(&found.replay.seconds),
    )
}

fn of_logs(found: &DumpVsLogResults) -> Table {
    let rows = found.logs.iter().map(|log| {
        let behind = if log.kept_up { "" } else { " *" };
        let bytes = log.device_bytes_per_update.unwrap_or(log.bytes_per_update);
        let cells = [
            short(log.longest_stall_ms.median),
            interval(&log.longest_stall_ms, short),
            short(log.us_per_update.median),
            interval(&log.us_per_update, short),
            thousands(bytes),
            or_nothing(log.flushes_per_update.map(two)),
            two(log.restart_seconds.median),
            interval(&log.restart_seconds, two),
        ];
        Row::of(format!("{}{behind}", log.policy.name()), cells)
    });
    let columns = [
        "longest stall ms",
        "95% interval",
        "µs /update",
        "95% interval",
        "bytes /update",
        "flushes /update",
        "restart s",
        "95% interval",
    ];
    let mut table = Table::new("", "", columns.map(Column::new).into()).with_rows(rows);
    for policy in Policy::ALL {
        let (name, loses) = (policy.name(), policy.loses());
        table.note(format!("{name}: a power cut may take {loses}"));
    }
    if found.logs.iter().any(|log| !log.kept_up) {
        table.note("* did not accept updates as fast as they came in");
    }
    if !found.cold {
        table.note("restarts may have read from the page cache");
    }
    table
}

fn crossings(found: &DumpVsLogResults) -> Table {
    let known = |policy: &Policy| found.break_even.iter().any(|one| one.policy == *policy);
    let rows = Policy::ALL.into_iter().filter(known).map(|policy| {
        let cells = |cost| match summary_text::crossing(found, policy, cost) {
            Some(point) => vec![
                percent(point.share.median),
                interval(&point.share, percent),
                thousands(point.updates.median),
                duration_text(point.seconds),
            ],
            None => vec![NOTHING.to_owned(); 4],
        };
        Row::of(
            policy.name(),
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
