//! Dump against log: its charts and tables.

use super::crossing;
use crate::numbers::{NOTHING, Print, interval, short, thousands, two};
use crate::stats::Estimate;
use crate::stream::saving::{Cost, LogResult, Policy, SavingResults};
use crate::stream::summary_text::{self, percent};
use landfall_os::humanize::{bytes_text, duration_text};
use landfall_results::view::chart::{Bar, Chart, Costs, Drawing, Panel};
use landfall_results::view::{Block, Chapter, Column, Figure, Row, Table, or_nothing};

/// The chapters of dump against log.
pub(super) fn chapters(saving: &SavingResults, in_memory: bool) -> Vec<Chapter> {
    let mut figures = Vec::new();
    for (cost, heading) in [
        (Cost::Seconds, "By the seconds that the program spends"),
        (Cost::Bytes, "By the bytes that are written"),
    ] {
        let Some(chart) = crossing::chart(saving, cost) else {
            continue;
        };
        let table = break_even_table(saving, cost, heading);
        figures.push(Figure::new(heading, chart, "", table));
    }
    let introduction = "A dump costs the same whatever has changed since the last one; a log costs the more, the more changes. Policies differ in when the log is synced: never, every second, for a group of updates, or for every update. Left of a crossing the log is cheaper, right of it the dump; the figures beside the policies are those shares. Beyond 100% records have changed more than once. Both scales are logarithmic.";
    let break_even =
        Chapter::of_figures("When a dump is cheaper than a log", introduction, figures);
    let costs = costs(saving)
        .map(|chart| Figure::new(heading(saving), chart, losses(in_memory), table(saving)));
    let introduction = "A dump stops the program for its hand-over, and a log for as long as an update waits to be accepted. A restart reads the last dump, and the log that came after it.";
    let costs = costs.into_iter().collect();
    let costs = Chapter::of_figures("What a dump and a log ask for", introduction, costs);
    [break_even, costs].into_iter().flatten().collect()
}

fn heading(saving: &SavingResults) -> String {
    format!(
        "{} in records of {}, of which {} a second change for {}",
        bytes_text(saving.state_bytes),
        bytes_text(saving.record_bytes),
        thousands(saving.updates_per_second),
        duration_text(saving.log_seconds)
    )
}

/// What a power cut may take, by policy.
fn losses(in_memory: bool) -> String {
    if in_memory {
        return "In main memory a power cut takes everything.".to_owned();
    }
    let policies = Policy::ALL.map(|policy| format!("{}: {}", policy.name(), policy.loses()));
    format!(
        "What a power cut may take. Dump: all changes since the last one; {}.",
        policies.join("; ")
    )
}

/// What each way asks for, a panel per kind; the dump has no cost per update.
fn costs(saving: &SavingResults) -> Option<Chart> {
    type Of = fn(&LogResult) -> Option<f64>;
    let dump = &saving.dump;
    let kinds: [(&'static str, Option<f64>, Of, Print); 5] = [
        (
            "longest stall, ms",
            Some(dump.hand_over_seconds.median * 1e3),
            |log| Some(log.longest_stall_ms.median),
            short,
        ),
        (
            "restart, seconds",
            Some(dump.restart_seconds.median),
            |log| Some(log.restart_seconds.median),
            two,
        ),
        (
            "µs per update",
            None,
            |log| Some(log.us_per_update.median),
            short,
        ),
        (
            "bytes per update",
            None,
            |log| log.device_bytes_per_update.or(Some(log.bytes_per_update)),
            thousands,
        ),
        (
            "flushes per update",
            None,
            |log| log.flushes_per_update,
            two,
        ),
    ];
    let panels: Vec<Panel> = kinds
        .into_iter()
        .map(|(name, of_dump, of_log, print)| {
            let of_dump = of_dump.map(|value| ("dump", value));
            let of_logs = saving
                .logs
                .iter()
                .filter_map(|log| Some((log.policy.name(), of_log(log)?)));
            let bars = of_dump.into_iter().chain(of_logs);
            Panel {
                name: name.into(),
                bars: bars
                    .map(|(label, value)| Bar {
                        label: label.to_owned(),
                        value,
                        bound: false,
                        text: print(value),
                    })
                    .collect(),
            }
        })
        .filter(|panel| !panel.bars.is_empty())
        .collect();
    let policies = saving.logs.iter().map(|log| log.policy.name());
    let labels = ["dump"].into_iter().chain(policies).map(str::to_owned);
    let costs = Costs {
        labels: labels.collect(),
        panels,
    };
    Chart::new("saving-cost", Drawing::Costs(costs)).if_any()
}

fn table(saving: &SavingResults) -> Table {
    let both =
        |estimate: &Estimate, print: Print| vec![print(estimate.median), interval(estimate, print)];
    let if_any = |value: Option<f64>, print: Print| vec![or_nothing(value.map(print))];
    let nothing = |count| vec![NOTHING.to_owned(); count];
    let dump = &saving.dump;
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
    rows.extend(saving.logs.iter().map(|log| {
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
        thousands(saving.replay.records as f64),
        two(saving.replay.seconds.median),
        interval(&saving.replay.seconds, two),
    )];
    if saving.logs.iter().any(|log| !log.kept_up) {
        notes.push("* Did not accept updates as fast as they came in.".to_owned());
    }
    if !saving.cold {
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

fn break_even_table(saving: &SavingResults, cost: Cost, caption: &str) -> Table {
    let rows = Policy::ALL.into_iter().filter_map(|policy| {
        let point = summary_text::crossing(saving, policy, cost)?;
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
pub(super) fn brief(saving: &SavingResults) -> Vec<Block> {
    let title = format!("Dump against log ({})", heading(saving));
    let mut blocks = vec![Block::Heading(title)];
    blocks.extend(Block::prose(1, [of_dump(saving)]));
    blocks.push(Block::Table(of_logs(saving)));
    let crossings = crossings(saving);
    if !crossings.rows.is_empty() {
        blocks.extend(Block::prose(1, [crossings.caption.clone()]));
        blocks.push(Block::Table(crossings));
    }
    blocks
}

fn of_dump(saving: &SavingResults) -> String {
    let dump = &saving.dump;
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
        thousands(saving.replay.records as f64),
        with_interval(&saving.replay.seconds),
    )
}

fn of_logs(saving: &SavingResults) -> Table {
    let rows = saving.logs.iter().map(|log| {
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
    if saving.logs.iter().any(|log| !log.kept_up) {
        table.note("* did not accept updates as fast as they came in");
    }
    if !saving.cold {
        table.note("restarts may have read from the page cache");
    }
    table
}

fn crossings(saving: &SavingResults) -> Table {
    let known = |policy: &Policy| saving.break_even.iter().any(|one| one.policy == *policy);
    let rows = Policy::ALL.into_iter().filter(known).map(|policy| {
        let cells = |cost| match summary_text::crossing(saving, policy, cost) {
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
