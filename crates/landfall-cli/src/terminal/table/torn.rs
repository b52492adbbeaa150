//! The tables of experiment `torn`.

use std::fmt::Write as _;

use landfall_lab::numbers::{interval, short, thousands, two};
use landfall_lab::stats::Estimate;
use landfall_lab::torn::{
    Protection, TornProof, TornResults, base, conditions, disk_text, disks, sections, summary_text,
};

use landfall_results::{Metric, Series};

use super::configuration::{from_to, preparation};
use super::layout::{at_least, or_nothing, plain_table, with_notes, wrapped};
use crate::terminal::style::{BAD, FAINT, GOOD, STRONG, styled};

/// Everything that the experiment found, without its claims.
pub(super) fn tables(torn: &TornResults) -> String {
    let mut text = String::new();
    let said: String = summary_text::sentences(torn)
        .iter()
        .map(|sentence| wrapped(0, sentence))
        .collect();
    if !said.is_empty() {
        let _ = write!(text, "\n{said}");
    }
    let mut add = |title: &str, table: String| {
        if !table.is_empty() {
            let _ = write!(text, "\n{}\n{table}", styled(STRONG, title));
        }
    };
    let title = "MariaDB: who protects pages from being torn, and what that costs, disk by disk";
    add(title, of_disks(torn));
    let disk = base(torn).map_or("", disk_text);
    let title =
        format!("data=journal over the doublewrite buffer, on {disk} but for one condition");
    add(&title, of_conditions(torn));
    add("PostgreSQL: full_page_writes on and off", of_postgres(torn));
    add(
        "What power cuts did, with torn pages",
        of_proofs(&torn.proofs),
    );
    text + &preparation(&torn.measurements)
}

/// Why a configuration was not measured (any more), as a note.
fn note(label: &str, one: &Series, notes: &mut Vec<String>) {
    if let Some(reason) = &one.unsupported {
        let note = format!("{label}: {reason}");
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
}

fn of_disks(torn: &TornResults) -> String {
    let all = disks(torn);
    if all.is_empty() {
        return String::new();
    }
    let mut table = plain_table();
    let header = vec![
        "",
        "\ntps",
        "95%\ninterval",
        "p50\nms",
        "p99\nms",
        "\nflushes",
        "\nwrites",
        "\nKiB",
        "over\ndoublewrite",
    ];
    let columns = header.len();
    table.set_header(header);
    let mut notes = Vec::new();
    for sides in &all {
        table.add_row(vec![disk_text(sides.disk)]);
        for (protection, one) in &sides.protections {
            let label = protection.text();
            note(
                &format!("{}, {label}", disk_text(sides.disk)),
                one,
                &mut notes,
            );
            if !one.is_measured() {
                continue;
            }
            let over = match protection {
                Protection::Journal => sides.gain,
                Protection::Nobody => sides.freedom,
                Protection::Doublewrite | Protection::Both => None,
            };
            let rate = one.estimate(Metric::RequestsPerSecond);
            let milliseconds = |metric| or_nothing(one.median(metric).map(|us| short(us / 1e3)));
            table.add_row(vec![
                format!("  {label}"),
                one.text(Metric::RequestsPerSecond),
                or_nothing(rate.map(|rate| interval(&rate, thousands))),
                milliseconds(Metric::P50Us),
                milliseconds(Metric::P99Us),
                one.text(Metric::Flushes),
                one.writes_text(),
                one.text(Metric::Kib),
                or_nothing(over.map(|over| two(over.median))),
            ]);
        }
    }
    at_least(&mut table, 0, 31);
    with_notes(table, columns, notes)
}

/// Rows of a label, two configurations, and the ratio of the second to the first.
fn of_pairs<'a>(
    header: [&str; 3],
    rows: impl Iterator<Item = (String, &'a Series, &'a Series, Option<Estimate>)>,
) -> String {
    let mut table = plain_table();
    let [first, second, ratio] = header;
    let header = vec![
        "",
        first,
        second,
        ratio,
        "95%\ninterval",
        "\nflushes",
        "\nKiB",
    ];
    let columns = header.len();
    table.set_header(header);
    let mut notes = Vec::new();
    let mut widest = 0;
    for (label, one, other, gain) in rows {
        note(&label, one, &mut notes);
        note(&label, other, &mut notes);
        if !one.is_measured() && !other.is_measured() {
            continue;
        }
        let both = |metric| from_to(one.text(metric), other.text(metric));
        widest = widest.max(label.chars().count());
        table.add_row(vec![
            label,
            one.text(Metric::RequestsPerSecond),
            other.text(Metric::RequestsPerSecond),
            or_nothing(gain.map(|gain| two(gain.median))),
            or_nothing(gain.map(|gain| interval(&gain, two))),
            both(Metric::Flushes),
            both(Metric::Kib),
        ]);
    }
    if widest == 0 && notes.is_empty() {
        return String::new();
    }
    at_least(&mut table, 0, widest as u16 + 1);
    with_notes(table, columns, notes)
}

fn of_conditions(torn: &TornResults) -> String {
    let pairs = conditions(torn);
    of_pairs(
        ["doublewrite\ntps", "data=journal\ntps", "\ngain"],
        pairs
            .iter()
            .map(|pair| (pair.label.clone(), pair.usual, pair.cure, pair.gain)),
    )
}

fn of_postgres(torn: &TornResults) -> String {
    let all = sections(torn);
    of_pairs(
        ["on\ntps", "off\ntps", "\noff/on"],
        all.iter()
            .map(|one| (disk_text(one.disk).to_owned(), one.on, one.off, one.gain)),
    )
}

fn of_proofs(proofs: &[TornProof]) -> String {
    if proofs.is_empty() {
        return String::new();
    }
    let mut table = plain_table();
    let header = vec![
        "",
        "filesystem",
        "model",
        "did not\nrecover",
        "recovered\nwrong",
        "lost some\ntransaction",
    ];
    let columns = header.len();
    table.set_header(header);
    let mut notes = Vec::new();
    for proof in proofs {
        let name = summary_text::text(proof);
        if let Some(why) = &proof.not_proven {
            notes.push(format!("{name}: not proven: {why}"));
            continue;
        }
        let count = |count: u64| {
            let style = if count == 0 { GOOD } else { BAD };
            styled(
                style,
                &format!(
                    "{}/{}",
                    thousands(count as f64),
                    thousands(proof.states as f64)
                ),
            )
        };
        table.add_row(vec![
            name,
            proof.recipe.clone(),
            proof.model.clone(),
            count(proof.damaged),
            count(proof.wrong),
            count(proof.losing),
        ]);
    }
    notes.push("crash states with pages torn at 512 bytes, of those tried; what survived them is not proven to survive all".to_owned());
    let mut text = with_notes(table, columns, notes);
    for proof in proofs.iter().filter(|proof| !proof.is_whole()) {
        let again = format!("{}: {}", summary_text::text(proof), proof.again);
        let _ = writeln!(text, "{}", styled(FAINT, wrapped(2, &again).trim_end()));
    }
    text
}
