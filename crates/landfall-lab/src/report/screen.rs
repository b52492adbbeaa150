//! One screen of what was found: the answers, what was claimed, what to distrust, what to run next. All figures are in the
//! tables, which [`super::brief`] has.

use landfall_os::humanize::{duration_text, quoted};
use landfall_results::claim::Verdict;
use landfall_results::view::{Block, Cell, Column, Row, Table, Tone};

use super::runs;
use crate::numbers::{NOTHING, two};
use crate::{Found, Notice, Results, Weight, facts};

/// Notices that are said.
const MOST_NOTICES: usize = 3;

/// Reasons that are said.
const MOST_REASONS: usize = 2;

/// How much is to be said: less, where that is more than there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Of claims only how many got which verdict.
    Least,
    /// Claims that do not hold, and how many others there are.
    Surprises,
    /// Every claim that was judged.
    Claims,
    /// The tables too.
    Tables,
}

impl Detail {
    /// The most first.
    pub const ALL: [Detail; 4] = [
        Detail::Tables,
        Detail::Claims,
        Detail::Surprises,
        Detail::Least,
    ];
}

/// One screen, with `proofs`, which are shown whole, and where the report was written.
pub fn screen(
    results: &Results,
    proofs: &[Block],
    report: Option<&str>,
    detail: Detail,
) -> Vec<Block> {
    let mut blocks: Vec<Block> = Block::prose(0, [measured(results)]).into_iter().collect();
    for name in Found::EXPERIMENTS {
        for found in runs(results, name) {
            let answer = found.answer(results);
            match answer.as_slice() {
                // A heading alone is no answer.
                [Block::Heading(_)] => {}
                [heading @ Block::Heading(_), rest @ ..] if blocks.contains(heading) => {
                    blocks.extend_from_slice(rest);
                }
                _ => blocks.extend(answer),
            }
        }
    }
    if detail == Detail::Tables {
        blocks.extend(super::brief(results));
    }
    blocks.extend_from_slice(proofs);
    blocks.extend(claims(results, detail));
    let mut rows: Vec<Row> = count_of_claims(results).into_iter().collect();
    if detail > Detail::Surprises || results.is_empty() {
        rows.extend(left_out(results));
    }
    rows.extend(distrust(results));
    rows.extend(next(results));
    rows.extend(report.map(|report| Row::of("Report", [report])));
    blocks.push(Block::Table(
        Table::new("", "", vec![Column::text("")]).with_rows(rows),
    ));
    blocks
}

/// Where, on what and for how long.
fn measured(results: &Results) -> String {
    let directory = &results.directory;
    let place = facts::place(&results.filesystem);
    let place = match results.site.text() {
        Some(made) => format!("On {made}, made in {directory}: {place}"),
        None => format!("In {directory}: {place}"),
    };
    let rounds = results.findings().map(|found| found.rounds());
    let rounds: Vec<u32> = rounds.collect();
    let rounds = match (rounds.iter().min(), rounds.iter().max()) {
        (Some(1), Some(1)) => "1 round".to_owned(),
        (Some(least), Some(most)) if least == most => format!("{most} rounds"),
        (Some(least), Some(most)) => format!("{least} to {most} rounds"),
        _ => "no rounds".to_owned(),
    };
    format!(
        "{place}, Linux {}; {rounds}, {}.",
        results.host.kernel,
        duration_text(results.seconds)
    )
}

/// Claims that were judged, a line each.
fn claims(results: &Results, detail: Detail) -> Option<Block> {
    let judged = results.claims().filter_map(|claim| {
        let tone = match claim.verdict {
            Verdict::DoesNotHold if detail > Detail::Least => Tone::Bad,
            Verdict::Holds if detail > Detail::Surprises => Tone::Good,
            _ => return None,
        };
        let figure = |value: Option<f64>| value.map_or_else(|| NOTHING.to_owned(), two);
        let today = claim.today.map(|today| today.median);
        let cells = [figure(claim.published).into(), figure(today).into()];
        let verdict = Cell::toned(tone, claim.verdict.name());
        Some(Row::of(
            claim.statement.as_str(),
            cells.into_iter().chain([verdict]),
        ))
    });
    let judged: Vec<Row> = judged.collect();
    let mut columns: Vec<Column> = ["published", "here"].map(Column::new).into();
    columns.push(Column::text(""));
    let title = "Published claims";
    let table = Table::new(title, title, columns).with_rows(judged);
    (!table.rows.is_empty()).then_some(Block::Table(table))
}

/// How many claims got which verdict.
fn count_of_claims(results: &Results) -> Option<Row> {
    let verdicts = [
        (Verdict::Holds, "hold"),
        (Verdict::DoesNotHold, "do not"),
        (Verdict::CannotBeTold, "cannot be told"),
        (Verdict::DoesNotApply, "not about this filesystem"),
    ];
    let count = |verdict| {
        results
            .claims()
            .filter(|claim| claim.verdict == verdict)
            .count()
    };
    let counted = verdicts.map(|(verdict, name)| (count(verdict), name));
    let counted = counted.iter().filter(|(count, _)| *count > 0);
    let counted: Vec<String> = counted
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    (!counted.is_empty()).then(|| Row::of("Claims", [counted.join(", ")]))
}

/// Why series of the plan could not be measured, each reason once.
fn left_out(results: &Results) -> Vec<Row> {
    let series = results.findings().flat_map(|found| found.series());
    let reasons = series.filter_map(|one| one.unsupported.as_deref());
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for reason in reasons {
        match counted.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => counted.push((reason, 1)),
        }
    }
    counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let shown = counted.iter().take(MOST_REASONS);
    let lines = shown.map(|(reason, count)| Cell::from(format!("{count} not measured: {reason}")));
    titled("Missing", lines)
}

/// The weightiest notices, and how many more there are.
fn distrust(results: &Results) -> Vec<Row> {
    let mut all: Vec<&Notice> = results.notices.iter().collect();
    all.sort_by_key(|notice| std::cmp::Reverse(notice.weight));
    let shown = all.iter().filter(|notice| notice.weight > Weight::Note);
    let mut said: Vec<Cell> = shown
        .take(MOST_NOTICES)
        .map(|notice| match notice.weight {
            Weight::Danger => Cell::toned(Tone::Bad, notice.text.as_str()),
            Weight::Warning => Cell::toned(Tone::Doubt, notice.text.as_str()),
            Weight::Note => Cell::from(notice.text.as_str()),
        })
        .collect();
    let more = all.len() - said.len();
    if results.is_too_noisy() {
        let text = "Too noisy to conclude: most intervals are wider than their figures.";
        said.insert(0, Cell::toned(Tone::Bad, text));
    }
    if said.is_empty() {
        said.push("Nothing was noticed that speaks against these figures.".into());
    }
    if more > 0 {
        let notices = if more == 1 { "notice" } else { "notices" };
        said.push(Cell::toned(
            Tone::Faint,
            format!("{more} more {notices}: --tables"),
        ));
    }
    titled("Distrust", said)
}

/// What to run next, by what was not done yet.
fn next(results: &Results) -> Vec<Row> {
    let is_proven = results
        .findings()
        .flat_map(|found| found.series())
        .any(|series| series.proof.is_some());
    let measures_sync = results.experiments.iter().any(|one| one.name() == "sync");
    let mut commands = Vec::new();
    if measures_sync && !is_proven && !results.is_in_memory() {
        let directory = quoted(&results.directory);
        commands.push(format!(
            "sudo landfall lab sync --prove {directory}   # simulate power cuts"
        ));
    }
    commands.push("sudo landfall advise   # settings of the databases here".to_owned());
    commands.push("landfall show --tables   # all figures of this run".to_owned());
    titled("Next", commands.into_iter().map(Cell::from))
}

/// Lines under one word at the left.
fn titled(title: &'static str, lines: impl IntoIterator<Item = Cell>) -> Vec<Row> {
    let titles = std::iter::once(title).chain(std::iter::repeat(""));
    titles
        .zip(lines)
        .map(|(title, line)| Row::of(title, [line]))
        .collect()
}
