//! The tables of dump against log.

use landfall_lab::numbers::{NOTHING, interval, short, thousands, two};
use landfall_lab::stats::Estimate;
use landfall_lab::stream::saving::{Cost, LogResult, Policy, SavingResults};
use landfall_lab::stream::summary_text;
use landfall_os::humanize::{bytes_text, duration_text};

use super::layout::{align, lines, or_nothing, plain_table, with_notes, wrapped};
use crate::terminal::style::{STRONG, styled};

/// Everything that was found about dumps and logs.
pub(super) fn tables(saving: &SavingResults) -> String {
    let title = format!(
        "Dump against log ({} in records of {}, {} updates a second for {} s)",
        bytes_text(saving.state_bytes),
        bytes_text(saving.record_bytes),
        thousands(saving.updates_per_second),
        saving.log_seconds
    );
    let mut table = plain_table();
    table.set_header(vec![
        "",
        "longest\nstall ms",
        "\n95% interval",
        "µs\n/update",
        "\n95% interval",
        "bytes\n/update",
        "flushes\n/update",
        "restart\ns",
        "\n95% interval",
    ]);
    for log in &saving.logs {
        table.add_row(log_row(log));
    }
    let mut notes: Vec<String> = Policy::ALL
        .iter()
        .map(|policy| format!("{}: a power cut may take {}", policy.name(), policy.loses()))
        .collect();
    if saving.logs.iter().any(|log| !log.kept_up) {
        notes.push("* did not accept updates as fast as they came in".to_owned());
    }
    if !saving.cold {
        notes.push("restarts may have read from the page cache".to_owned());
    }
    let mut text = format!(
        "\n{}\n{}\n{}",
        styled(STRONG, &title),
        wrapped(1, &dump(saving)),
        with_notes(table, 9, notes)
    );
    text.push_str(&break_even(saving));
    text
}

/// From which share of changes on a dump is cheaper, by each cost; nothing if that is not known.
fn break_even(saving: &SavingResults) -> String {
    let mut table = plain_table();
    table.set_header(vec![
        "",
        "by seconds\nspent",
        "\n95% interval",
        "\nupdates",
        "\nevery",
        "by bytes\nwritten",
        "\n95% interval",
        "\nupdates",
        "\nevery",
    ]);
    for policy in Policy::ALL {
        let cells = |cost| match summary_text::crossing(saving, policy, cost) {
            Some(point) => vec![
                summary_text::percent(point.share.median),
                interval(&point.share, summary_text::percent),
                thousands(point.updates.median),
                duration_text(point.seconds),
            ],
            None => vec![NOTHING.to_owned(); 4],
        };
        let name = vec![policy.name().to_owned()];
        if saving.break_even.iter().any(|point| point.policy == policy) {
            table.add_row([name, cells(Cost::Seconds), cells(Cost::Bytes)].concat());
        }
    }
    if table.is_empty() {
        return String::new();
    }
    align(&mut table, 9);
    format!(
        "\n{}{}",
        wrapped(
            1,
            "A dump is cheaper than the log once this share of the state changes between two saves, so many updates, or made less often than every:"
        ),
        lines(&table)
    )
}

/// The dump in a sentence: it has no costs per update.
fn dump(saving: &SavingResults) -> String {
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

fn log_row(log: &LogResult) -> Vec<String> {
    let behind = if log.kept_up { "" } else { " *" };
    let bytes = log.device_bytes_per_update.unwrap_or(log.bytes_per_update);
    vec![
        format!("{}{behind}", log.policy.name()),
        short(log.longest_stall_ms.median),
        interval(&log.longest_stall_ms, short),
        short(log.us_per_update.median),
        interval(&log.us_per_update, short),
        thousands(bytes),
        or_nothing(log.flushes_per_update.map(two)),
        two(log.restart_seconds.median),
        interval(&log.restart_seconds, two),
    ]
}
