//! The tables of experiment `amplify`.

use std::fmt::Write as _;

use landfall_lab::amplify::{AmplifyResults, Section, sections, summary_text};
use landfall_lab::numbers::{short, two};
use landfall_results::{Metric, Series};

use super::configuration::preparation;
use super::layout::{at_least, or_nothing, plain_table, with_notes, wrapped};
use crate::terminal::style::{STRONG, styled};

/// Everything that the experiment found, without its claims.
pub(super) fn tables(amplify: &AmplifyResults) -> String {
    let mut text = String::from("\n");
    for sentence in summary_text::summary(amplify) {
        text.push_str(&wrapped(0, &sentence));
    }
    for section in sections(amplify) {
        let title = styled(STRONG, &section.title);
        let _ = write!(text, "\n{title}\n{}", table(&section));
    }
    let mut about = vec![summary_text::reading(amplify)];
    about.extend(summary_text::about_flash(amplify));
    about.push(summary_text::STANDS_FOR.to_owned());
    let _ = write!(text, "\n{}", wrapped(1, &about.join(" ")));
    text + &preparation(&amplify.measurements)
}

fn table(section: &Section<'_>) -> String {
    let mut table = plain_table();
    let header = vec![
        "",
        "KiB\nwritten",
        "\nowed",
        "\nwrites",
        "\nflushes",
        "requests\nper s",
        "NAND\nKiB",
        "NAND/\nwritten",
        "drive\nyears",
        "MB\nloaded",
        "MB at\nthe end",
    ];
    let columns = header.len();
    table.set_header(header);
    let mut notes = Vec::new();
    let mut widest = 0;
    for one in &section.rows {
        if let Some(reason) = &one.unsupported {
            notes.push(format!("{}: {reason}", one.name()));
        }
        if let Some(why) = summary_text::why_unsteady(one) {
            notes.push(format!("{}: {why}", one.name()));
        }
        if one.is_measured() {
            widest = widest.max(one.name().chars().count());
            table.add_row(row(one));
        }
    }
    at_least(&mut table, 0, widest.min(LONGEST_NAME) as u16 + 1);
    with_notes(table, columns, notes)
}

/// Columns that a name gets, if it needs them.
const LONGEST_NAME: usize = 26;

fn row(one: &Series) -> Vec<String> {
    let wear = summary_text::wear(one);
    let amplification = wear.and_then(|trial| {
        let doubtful = summary_text::is_seldom_rewritten(trial);
        let mark = if doubtful { "*" } else { "" };
        Some(format!("{}{mark}", two(trial.get(Metric::Amplification)?)))
    });
    let megabytes = |bytes: f64| short(one.data_bytes(bytes) / 1e6);
    vec![
        one.name(),
        one.text(Metric::Kib),
        one.text(Metric::OwedKib),
        one.text(Metric::Writes),
        one.text(Metric::Flushes),
        one.text(Metric::RequestsPerSecond),
        one.text(Metric::NandKib),
        or_nothing(amplification),
        or_nothing(summary_text::years(one).map(short)),
        or_nothing(one.loaded_bytes.map(|bytes| megabytes(bytes as f64))),
        or_nothing(one.median(Metric::DatabaseBytes).map(megabytes)),
    ]
}
