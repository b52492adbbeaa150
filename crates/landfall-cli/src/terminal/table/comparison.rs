//! The table of `landfall compare`.

use std::fmt::Write as _;

use landfall_lab::compare::{Comparison, Difference};
use landfall_lab::numbers::{interval, thousands, two};

use super::layout::{align, lines, plain_table, wrapped};
use crate::terminal::style::{BAD, FAINT, GOOD, STRONG, styled};

/// Two runs side by side.
pub fn comparison(comparison: &Comparison) -> String {
    let mut table = plain_table();
    table.set_header(vec!["", "A", "B", "B/A", "95% interval", "B is"]);
    let mut quantity = None;
    for row in &comparison.rows {
        // Said once, above the rows that it is about.
        if quantity.replace(row.metric) != Some(row.metric) {
            table.add_row(vec![styled(STRONG, row.metric.description().label)]);
        }
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
