//! The tables of experiment `binlog`.

use std::fmt::Write as _;

use landfall_lab::binlog::{BinlogResults, Section, beside, sections, summary_text};
use landfall_lab::numbers::{interval, thousands, two};
use landfall_results::Metric;

use super::configuration::{configurations, from_to, preparation};
use super::layout::{at_least, or_nothing, plain_table, with_notes, wrapped};
use crate::terminal::style::{STRONG, styled};

/// Everything that the experiment found, without its claims.
pub(super) fn tables(binlog: &BinlogResults) -> String {
    let mut text = String::new();
    let said: String = summary_text::sentences(binlog)
        .iter()
        .map(|sentence| wrapped(0, sentence))
        .collect();
    if !said.is_empty() {
        let _ = write!(text, "\n{said}");
    }
    for section in sections(binlog) {
        let title = format!(
            "{}: sync_binlog 0 against 1, and what a transaction costs the device",
            section.title
        );
        let _ = write!(
            text,
            "\n{}\n{}",
            styled(STRONG, &title),
            of_section(&section)
        );
    }
    for (title, rows) in beside(binlog) {
        let table = configurations(&rows, "requests");
        let _ = write!(text, "\n{}\n{table}", styled(STRONG, &title));
    }
    text + &preparation(&binlog.measurements)
}

fn of_section(section: &Section<'_>) -> String {
    let mut table = plain_table();
    let header = vec![
        "",
        "0\ntps",
        "1\ntps",
        "95%\ninterval",
        "\n1/0",
        "95%\ninterval",
        "flushes\n0 → 1",
        "writes\n0 → 1",
        "KiB\n0 → 1",
    ];
    let columns = header.len();
    table.set_header(header);
    let mut notes: Vec<String> = Vec::new();
    for row in &section.rows {
        for reason in [row.without, row.with]
            .iter()
            .filter_map(|one| one.unsupported.as_ref())
        {
            let note = format!("{}: {reason}", row.label);
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        if !row.without.is_measured() && !row.with.is_measured() {
            continue;
        }
        let rate = row.with.estimate(Metric::RequestsPerSecond);
        table.add_row(vec![
            row.label.clone(),
            row.without.text(Metric::RequestsPerSecond),
            row.with.text(Metric::RequestsPerSecond),
            or_nothing(rate.map(|rate| interval(&rate, thousands))),
            or_nothing(row.left.map(|left| two(left.median))),
            or_nothing(row.left.map(|left| interval(&left, two))),
            from_to(
                row.without.text(Metric::Flushes),
                row.with.text(Metric::Flushes),
            ),
            from_to(row.without.writes_text(), row.with.writes_text()),
            from_to(row.without.text(Metric::Kib), row.with.text(Metric::Kib)),
        ]);
    }
    at_least(&mut table, 0, 20);
    with_notes(table, columns, notes)
}
