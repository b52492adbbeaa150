//! Results as tables of at most 100 columns.

use std::fmt::Write as _;

use comfy_table::presets;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width};
use landfall_lab::claim::{ClaimResult, Verdict};
use landfall_lab::compare::{Comparison, Difference};
use landfall_lab::facts::{Fact, place};
use landfall_lab::numbers::{NOTHING, interval, short, thousands, two, writes};
use landfall_lab::sync::{Section, StrategyResult, Summary, SyncResults, sections};
use landfall_lab::{Notice, Results, Weight, bytes_text, duration_text};

use super::style::{BAD, DOUBT, FAINT, GOOD, STRONG, styled};

const WIDTH: u16 = 100;

/// Everything that a run found.
pub fn results(results: &Results) -> String {
    let mut text = header(results);
    // What makes every figure worthless is said before the first one, and again below.
    for notice in results
        .notices
        .iter()
        .filter(|notice| notice.weight == Weight::Danger)
    {
        let _ = writeln!(
            text,
            "{}",
            notices_lines(std::slice::from_ref(notice)).trim_end()
        );
    }
    if let Some(sync) = results.sync() {
        for section in sections(sync) {
            let _ = write!(
                text,
                "\n{}\n{}",
                styled(STRONG, &section.title),
                section_table(&section)
            );
        }
        text.push_str(&preparation(sync));
        if !sync.claims.is_empty() {
            let _ = write!(
                text,
                "\n{}\n{}",
                styled(STRONG, "Published claims, here and today"),
                claims(&sync.claims)
            );
        }
    }
    text.push_str(&notices_table(&results.notices));
    text
}

fn header(results: &Results) -> String {
    let place = place(&results.filesystem);
    let mut text = format!(
        "{}: {place}, Linux {}",
        results.directory, results.host.kernel
    );
    if let Some(sync) = results.sync() {
        let _ = write!(
            text,
            "; {} round{} in {}",
            sync.rounds,
            if sync.rounds == 1 { "" } else { "s" },
            duration_text(results.seconds)
        );
    }
    wrapped(0, &text)
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

fn claims(claims: &[ClaimResult]) -> String {
    let mut table = plain_table();
    table.set_header(vec!["", "published", "today", "95% interval", "verdict"]);
    let mut last_why = "";
    for claim in claims {
        let style = match claim.verdict {
            Verdict::Holds => GOOD,
            Verdict::DoesNotHold => BAD,
            Verdict::CannotBeTold => DOUBT,
        };
        // Neighbours often have one reason: it is said once.
        let why = if claim.why == last_why {
            String::new()
        } else {
            format!("\n{}", claim.why)
        };
        last_why = &claim.why;
        table.add_row(vec![
            format!("{}{why}", claim.statement),
            or_nothing(claim.published.map(two)),
            or_nothing(claim.today.map(|today| two(today.median))),
            or_nothing(claim.today.map(|today| interval(&today, two))),
            styled(style, claim.verdict.name()),
        ]);
    }
    align(&mut table, 4);
    at_least(&mut table, 0, 55);
    at_least(&mut table, 3, 13);
    at_least(&mut table, 4, 15);
    lines(&table)
}

/// Notices, weightiest first.
fn notices_table(notices: &[Notice]) -> String {
    let mut text = String::new();
    if notices.is_empty() {
        return text;
    }
    let _ = writeln!(text, "\n{}", styled(STRONG, "Before you believe a figure"));
    text + &notices_lines(notices)
}

fn notices_lines(notices: &[Notice]) -> String {
    let mut table = plain_table();
    for notice in notices {
        let (style, word) = match notice.weight {
            Weight::Danger => (BAD, "danger"),
            Weight::Warning => (DOUBT, "warning"),
            Weight::Note => (FAINT, "note"),
        };
        table.add_row(vec![styled(style, word), notice.text.clone()]);
    }
    at_least(&mut table, 0, 9);
    lines(&table)
}

/// What `landfall inspect` found.
pub fn inspection(directory: &str, facts: &[Fact], notices: &[Notice]) -> String {
    format!(
        "{directory}\n\n{}{}",
        facts_table(facts),
        notices_table(notices).trim_start()
    )
}

fn facts_table(facts: &[Fact]) -> String {
    let mut text = String::new();
    let mut subject = "";
    let mut table = plain_table();
    let mut finish = |table: &mut Table, subject: &str| {
        if !subject.is_empty() {
            for (column, width) in [16, 36, 48].into_iter().enumerate() {
                set_width(
                    table,
                    column,
                    ColumnConstraint::Absolute(Width::Fixed(width)),
                );
            }
            let _ = write!(text, "{}\n{}\n", styled(STRONG, subject), lines(table));
        }
        *table = plain_table();
    };
    for fact in facts {
        if fact.subject != subject {
            finish(&mut table, subject);
            subject = &fact.subject;
        }
        table.add_row(vec![
            fact.name.clone(),
            fact.value.clone(),
            fact.meaning.clone(),
        ]);
    }
    finish(&mut table, subject);
    text
}

/// Two runs side by side.
pub fn comparison(comparison: &Comparison) -> String {
    let mut table = plain_table();
    table.set_header(vec![
        "",
        "A ops/s",
        "B ops/s",
        "B/A",
        "95% interval",
        "B is",
    ]);
    for row in &comparison.rows {
        let style = match row.difference {
            Difference::Faster => GOOD,
            Difference::Slower => BAD,
            Difference::NoneShown | Difference::TooFewRounds => FAINT,
        };
        table.add_row(vec![
            row.key.clone(),
            thousands(row.a.median),
            thousands(row.b.median),
            two(row.ratio.median),
            interval(&row.ratio, two),
            styled(style, row.difference.name()),
        ]);
    }
    align(&mut table, 5);
    let mut text = lines(&table);
    for (keys, run) in [(&comparison.only_a, "A"), (&comparison.only_b, "B")] {
        if !keys.is_empty() {
            text.push_str(&wrapped(0, &format!("Only in {run}: {}", keys.join(", "))));
        }
    }
    if !comparison.differences.is_empty() {
        let _ = writeln!(text, "\n{}", styled(STRONG, "The runs also differ in"));
        for difference in &comparison.differences {
            text.push_str(&wrapped(2, difference));
        }
    }
    text
}

fn or_nothing(text: Option<String>) -> String {
    text.unwrap_or_else(|| NOTHING.to_owned())
}

fn plain_table() -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH);
    table
}

/// A paragraph, indented by this many columns.
fn wrapped(indent: u16, text: &str) -> String {
    let mut table = plain_table();
    table.add_row(vec![text]);
    for column in table.column_iter_mut() {
        column.set_padding((indent, 0));
    }
    lines(&table)
}

/// Numbers to the right, from the second column to before column `end`; narrow gaps everywhere.
fn align(table: &mut Table, end: usize) {
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((1, 0));
        if (1..end).contains(&index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

fn at_least(table: &mut Table, column: usize, width: u16) {
    set_width(
        table,
        column,
        ColumnConstraint::LowerBoundary(Width::Fixed(width)),
    );
}

fn set_width(table: &mut Table, column: usize, constraint: ColumnConstraint) {
    if let Some(column) = table.column_mut(column) {
        column.set_constraint(constraint);
    }
}

/// The table without trailing blanks.
fn lines(table: &Table) -> String {
    table
        .lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}
