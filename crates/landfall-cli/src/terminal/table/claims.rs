//! Published claims, and what became of them here.

use landfall_lab::claim::{ClaimResult, Verdict};
use landfall_lab::numbers::{interval, two};
use landfall_results::view::{Block, Cell, Column, Row, Table, Tone, or_nothing};

/// Every claim with its verdict; why, where that is another reason than that of the one above.
pub(super) fn claims<'a>(claims: impl Iterator<Item = &'a ClaimResult>) -> Vec<Block> {
    let mut last_why = "";
    let rows: Vec<Row> = claims
        .map(|claim| {
            let tone = match claim.verdict {
                Verdict::Holds => Tone::Good,
                Verdict::DoesNotHold => Tone::Bad,
                Verdict::CannotBeTold => Tone::Doubt,
            };
            let head = if claim.why == last_why {
                claim.statement.clone()
            } else {
                format!("{}\n{}", claim.statement, claim.why)
            };
            last_why = &claim.why;
            let today = claim.today;
            Row::of(
                head,
                [
                    or_nothing(claim.published.map(two)).into(),
                    or_nothing(today.map(|today| two(today.median))).into(),
                    or_nothing(today.map(|today| interval(&today, two))).into(),
                    Cell::toned(tone, claim.verdict.name()),
                ],
            )
        })
        .collect();
    let mut columns: Vec<Column> = ["published", "today", "95% interval"]
        .map(Column::new)
        .into();
    columns.push(Column::text("verdict"));
    Block::titled(Table::new("Published claims, here and today", "", columns).with_rows(rows))
}
