//! Published claims with their verdicts.

use landfall_lab::claim::{ClaimResult, Verdict};
use landfall_lab::numbers::{interval, two};

use super::layout::{align, at_least, lines, or_nothing, plain_table};
use crate::terminal::style::{BAD, DOUBT, GOOD, styled};

/// A row for each claim.
pub(super) fn claims<'a>(claims: impl Iterator<Item = &'a ClaimResult>) -> String {
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
