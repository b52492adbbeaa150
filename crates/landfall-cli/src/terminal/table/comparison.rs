//! Two runs against each other.

use landfall_lab::compare::{Comparison, Difference};
use landfall_lab::numbers::{interval, two};
use landfall_results::view::{Block, Cell, Column, Row, Table, Tone};

/// What `landfall compare` found.
pub fn comparison(comparison: &Comparison) -> Vec<Block> {
    let mut rows = Vec::new();
    let mut quantity = None;
    for row in &comparison.rows {
        if quantity.replace(row.metric) != Some(row.metric) {
            rows.push(Row::Group(row.metric.description().label.into()));
        }
        let tone = match row.difference {
            Difference::Faster => Tone::Good,
            Difference::Slower => Tone::Bad,
            Difference::NoneShown | Difference::TooFewRounds => Tone::Faint,
        };
        let print = row.metric.description().print;
        rows.push(Row::of(
            row.key.as_str(),
            [
                print(row.a.median).into(),
                print(row.b.median).into(),
                two(row.ratio.median).into(),
                interval(&row.ratio, two).into(),
                Cell::toned(tone, row.difference.name()),
            ],
        ));
    }
    let mut columns: Vec<Column> = ["A", "B", "B/A", "95% interval"].map(Column::new).into();
    columns.push(Column::text("B is"));
    let mut blocks = vec![Block::Table(Table::new("", "", columns).with_rows(rows))];
    let only = [(&comparison.only_a, "A"), (&comparison.only_b, "B")];
    let only = only.into_iter().filter(|(keys, _)| !keys.is_empty());
    let only = only.map(|(keys, run)| format!("Only in {run}: {}", keys.join(", ")));
    blocks.extend(Block::prose(0, only));
    if !comparison.differences.is_empty() {
        blocks.push(Block::Heading("The runs also differ in".to_owned()));
        blocks.extend(Block::prose(2, comparison.differences.iter().cloned()));
    }
    blocks
}
