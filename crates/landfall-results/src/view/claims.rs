//! Published claims, and what became of them here.

use super::{Cell, Column, Reference, References, Row, Table, Tone, or_nothing};
use crate::claim::{ClaimResult, Verdict};
use crate::numbers::{interval, two};

/// Published claims with their verdicts, and what they cite.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// In the order in which they were judged.
    pub rows: Vec<Claim>,
    /// Where they were published.
    pub sources: References,
}

/// The published value in words: many a claim was published without one.
pub fn published(claim: &ClaimResult) -> String {
    claim.published.map_or_else(|| "no figure".to_owned(), two)
}

/// A claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// What is claimed, in one sentence.
    pub statement: String,
    /// The figure that it is judged by.
    pub quantity: String,
    /// Why the verdict is what it is; may be empty.
    pub why: String,
    /// Number of its source.
    pub source: usize,
    /// The published value, or that there is none.
    pub published: String,
    /// The median of today.
    pub today: String,
    /// Its 95% interval.
    pub interval: String,
    /// Whether it holds here.
    pub verdict: Cell,
}

impl Claims {
    /// These claims, each source once.
    pub fn of<'a>(claims: impl Iterator<Item = &'a ClaimResult>) -> Claims {
        let mut sources = References::default();
        let rows = claims.map(|claim| {
            let tone = match claim.verdict {
                Verdict::Holds => Tone::Good,
                Verdict::DoesNotHold => Tone::Bad,
                Verdict::CannotBeTold => Tone::Doubt,
                Verdict::DoesNotApply => Tone::Faint,
            };
            Claim {
                statement: claim.statement.clone(),
                quantity: claim.quantity.clone(),
                why: claim.why.clone(),
                source: sources.cite(Reference::of(&claim.source)),
                published: published(claim),
                today: or_nothing(claim.today.map(|today| two(today.median))),
                interval: or_nothing(claim.today.map(|today| interval(&today, two))),
                verdict: Cell::toned(tone, claim.verdict.name()),
            }
        });
        let rows = rows.collect();
        Claims { rows, sources }
    }

    /// Every claim with its verdict; why, where that is another reason than that of the one above.
    pub fn table(&self) -> Table {
        let mut last_why = "";
        let rows = self.rows.iter().map(|claim| {
            let head = if claim.why == last_why {
                claim.statement.clone()
            } else {
                format!("{}\n{}", claim.statement, claim.why)
            };
            last_why = &claim.why;
            let figures = [&claim.published, &claim.today, &claim.interval];
            let cells = figures.map(|figure| Cell::from(figure.as_str()));
            Row::of(head, cells.into_iter().chain([claim.verdict.clone()]))
        });
        let rows: Vec<Row> = rows.collect();
        let mut columns: Vec<Column> = ["published", "measured here", "its 95% interval"]
            .map(Column::new)
            .into();
        columns.push(Column::text("verdict"));
        Table::new("Published claims, and what was measured here", "", columns).with_rows(rows)
    }
}
