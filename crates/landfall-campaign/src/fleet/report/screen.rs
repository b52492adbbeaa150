//! One screen of a fleet: what was lost, what is missing, what is strange, and the models.

use landfall_results::view::{Block, Cell, Column, Row, Table, Tone};

use super::sentences::{capital, counted, extent};
use super::{Report, Shown, sentences, shown};
use crate::fleet::{By, Fleet};
use landfall_lab::Weight;

/// Outliers that are told; the page has all.
const MOST_OUTLIERS: usize = 6;
/// Of everything else.
const MOST_OTHERS: usize = 3;
/// Models that have a line.
const MOST_MODELS: usize = 6;

/// At most about 40 lines at 100 columns.
pub fn screen(report: &Report<'_>) -> Vec<Block> {
    let fleet = report.fleet;
    // Proofs alone say nothing of machines.
    let first = if fleet.documents > 0 || report.proofs.is_none() {
        format!("Campaign {}: {}.", report.name, extent(fleet))
    } else {
        format!("Campaign {}.", report.name)
    };
    let mut blocks: Vec<Block> = Block::prose(0, [first]).into_iter().collect();
    let mut rows = Vec::new();
    rows.extend(titled("Proofs", sentences::proofs(report)));
    let missing = sentences::missing(report).map(|text| Cell::toned(Tone::Bad, text));
    rows.extend(titled(
        "Missing",
        missing.into_iter().chain(first_of(
            report.missing.lines().map(Cell::from),
            MOST_OTHERS,
        )),
    ));
    let reasons = fleet.outliers.iter().map(|one| Cell::from(&one.reason));
    let outliers = sentences::outliers(fleet).into_iter();
    rows.extend(titled(
        "Outliers",
        outliers.chain(first_of(reasons, MOST_OUTLIERS)),
    ));
    let apart = fleet
        .apart
        .iter()
        .map(|one| Cell::toned(Tone::Doubt, &one.reason));
    rows.extend(titled("Groups", first_of(apart, MOST_OTHERS)));
    let slower = fleet.differences.iter();
    let slower = slower.map(|one| Cell::toned(Tone::Doubt, &one.reason));
    rows.extend(titled("Slower", first_of(slower, MOST_OTHERS)));
    rows.extend(titled("Flushes", flushes(fleet)));
    rows.extend(titled("Trust", trust(fleet)));
    let column = vec![Column::text("")];
    blocks.push(Block::Table(Table::new("", "", column).with_rows(rows)));
    if let Some(first) = shown(fleet).first() {
        blocks.push(Block::Table(models(fleet, first)));
    }
    blocks
}

fn flushes(fleet: &Fleet) -> Vec<Cell> {
    let Some(text) = sentences::suspicions(fleet) else {
        return Vec::new();
    };
    let said = Cell::toned(Tone::Doubt, format!("{text} {}", sentences::of_flushes()));
    let reasons = fleet.suspicions.iter().map(|one| Cell::from(&one.reason));
    let reasons = first_of(reasons, MOST_OTHERS);
    std::iter::once(said).chain(reasons).collect()
}

/// What machines noticed, the weightiest first.
fn trust(fleet: &Fleet) -> Vec<Cell> {
    let doubts = fleet.doubts.iter().map(|doubt| {
        let tone = match doubt.weight {
            Weight::Danger => Tone::Bad,
            Weight::Warning | Weight::Note => Tone::Doubt,
        };
        Cell::toned(
            tone,
            format!("On {}: {}", some(&doubt.machines), doubt.text),
        )
    });
    first_of(doubts, MOST_OTHERS)
}

/// Machines, by one of them.
pub(super) fn some(machines: &[String]) -> String {
    match machines {
        [] => String::new(),
        [one] => one.clone(),
        [first, ..] => format!(
            "{}, such as {first}",
            counted(machines.len(), "machine", "machines")
        ),
    }
}

/// The models with most disks, by the figures that most of them have.
fn models(fleet: &Fleet, first: &Shown) -> Table {
    // A rate and a tail have room.
    let narrow = Shown {
        figures: first.figures.iter().copied().take(2).collect(),
        ..first.clone()
    };
    let mut table = super::tables::groups(fleet, &narrow, By::Model, MOST_MODELS);
    let models = fleet.groups.iter().filter(|group| group.by == By::Model);
    let more = models.count() - table.rows.len();
    table.corner = capital(&first.what).into();
    if more > 0 {
        table.note(format!(
            "{}: see the page.",
            counted(more, "more model", "more models")
        ));
    }
    table
}

/// The first of some lines, and how many there are besides.
fn first_of(lines: impl Iterator<Item = Cell>, most: usize) -> Vec<Cell> {
    let mut lines: Vec<Cell> = lines.collect();
    let more = lines.len().saturating_sub(most);
    lines.truncate(most);
    if more > 0 {
        lines.push(Cell::toned(
            Tone::Faint,
            format!("and {more} more: see the page"),
        ));
    }
    lines
}

/// Lines under one word at the left.
fn titled(title: &'static str, lines: impl IntoIterator<Item = Cell>) -> Vec<Row> {
    let titles = std::iter::once(title).chain(std::iter::repeat(""));
    let lines = titles.zip(lines);
    lines.map(|(title, line)| Row::of(title, [line])).collect()
}
