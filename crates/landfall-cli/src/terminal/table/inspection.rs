//! What `landfall inspect` prints.

use std::fmt::Write as _;

use comfy_table::{ColumnConstraint, Table, Width};
use landfall_lab::Notice;
use landfall_lab::facts::Fact;

use super::layout::{lines, plain_table, set_width};
use super::notices::notices_table;
use crate::terminal::style::{STRONG, styled};

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
