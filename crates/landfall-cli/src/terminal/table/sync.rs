//! The tables of experiment `sync`.

use std::fmt::Write as _;

use landfall_lab::bytes_text;
use landfall_lab::numbers::{interval, short, thousands, two, writes};
use landfall_lab::sync::{Section, StrategyResult, Summary, SyncResults, sections};

use super::layout::{align, lines, or_nothing, plain_table, wrapped};
use crate::terminal::style::{FAINT, STRONG, styled};

/// Everything that the experiment found, without its claims.
pub(super) fn tables(sync: &SyncResults) -> String {
    let mut text = String::new();
    for section in sections(sync) {
        let _ = write!(
            text,
            "\n{}\n{}",
            styled(STRONG, &section.title),
            section_table(&section)
        );
    }
    text + &preparation(sync)
}

fn section_table(section: &Section<'_>) -> String {
    let reads = section.axis == "pages";
    let mut table = plain_table();
    table.set_header(vec![
        "",
        "ops/s",
        "95% interval",
        "p50 µs",
        "p99 µs",
        // The pages axis is about reads; elsewhere there are none.
        if reads { "reads" } else { "first ms" },
        "CPU µs",
        "writes",
        "KiB",
        "flushes",
    ]);
    let mut notes = Vec::new();
    for (label, strategy) in &section.rows {
        match (&strategy.summary, &strategy.unsupported) {
            (Some(summary), _) => {
                let mark = if strategy.durable { "" } else { " *" };
                table.add_row(strategy_row(format!("{label}{mark}"), summary, reads));
            }
            (None, reason) => notes.push(format!(
                "{label}: {}",
                reason.as_deref().unwrap_or("not measured")
            )),
        }
    }
    if section.rows.iter().any(|(_, strategy)| is_lax(strategy)) {
        notes.push("* not durable: a power cut loses these writes".to_owned());
    }
    align(&mut table, 10);
    let mut text = lines(&table);
    for note in notes {
        let _ = writeln!(text, "{}", styled(FAINT, &format!("  {note}")));
    }
    text
}

/// What preparations cost, since no figure of a trial holds it.
fn preparation(sync: &SyncResults) -> String {
    let mut costs = Vec::new();
    if sync.preparation.bytes > 0 {
        costs.push(format!(
            "files kept for overwriting {} in {:.1} s",
            bytes_text(sync.preparation.bytes),
            sync.preparation.seconds
        ));
    }
    for strategy in &sync.strategies {
        let total = strategy
            .trials
            .iter()
            .map(|trial| trial.preparation.bytes)
            .sum::<u64>();
        if total > 0 {
            let seconds: f64 = strategy
                .trials
                .iter()
                .map(|trial| trial.preparation.seconds)
                .sum();
            costs.push(format!(
                "{} {} in {seconds:.1} s",
                strategy.key,
                bytes_text(total)
            ));
        }
    }
    if costs.is_empty() {
        return String::new();
    }
    let text = format!(
        "Preparation, in none of these figures: {}.",
        costs.join("; ")
    );
    format!("\n{}", wrapped(1, &text))
}

fn is_lax(strategy: &StrategyResult) -> bool {
    !strategy.durable && strategy.summary.is_some()
}

fn strategy_row(label: String, summary: &Summary, reads: bool) -> Vec<String> {
    let device = summary.device;
    vec![
        label,
        thousands(summary.ops_per_second.median),
        interval(&summary.ops_per_second, thousands),
        short(summary.p50_us.median),
        short(summary.p99_us.median),
        match (reads, device) {
            (false, _) => short(summary.first_us.median / 1e3),
            (true, device) => or_nothing(device.map(|device| two(device.reads))),
        },
        short(summary.cpu_us.median),
        or_nothing(device.as_ref().map(writes)),
        or_nothing(device.map(|device| short(device.kib))),
        or_nothing(device.map(|device| two(device.flushes))),
    ]
}
