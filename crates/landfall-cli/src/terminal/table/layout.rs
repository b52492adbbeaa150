//! How every table is laid out.

use std::fmt::Write as _;

use comfy_table::presets;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width};
use landfall_lab::numbers::NOTHING;

use crate::terminal::style::{FAINT, styled};

/// No table is wider, in columns.
const WIDTH: u16 = 100;

pub(super) fn or_nothing(text: Option<String>) -> String {
    text.unwrap_or_else(|| NOTHING.to_owned())
}

pub(super) fn plain_table() -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH);
    table
}

/// A paragraph, indented by this many columns.
pub(super) fn wrapped(indent: u16, text: &str) -> String {
    let mut table = plain_table();
    table.add_row(vec![text]);
    for column in table.column_iter_mut() {
        column.set_padding((indent, 0));
    }
    lines(&table)
}

/// Numbers to the right, from the second column to before column `end`; narrow gaps everywhere.
pub(super) fn align(table: &mut Table, end: usize) {
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((1, 0));
        if (1..end).contains(&index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

pub(super) fn at_least(table: &mut Table, column: usize, width: u16) {
    set_width(
        table,
        column,
        ColumnConstraint::LowerBoundary(Width::Fixed(width)),
    );
}

pub(super) fn set_width(table: &mut Table, column: usize, constraint: ColumnConstraint) {
    if let Some(column) = table.column_mut(column) {
        column.set_constraint(constraint);
    }
}

/// The table without trailing blanks.
pub(super) fn lines(table: &Table) -> String {
    table
        .lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

/// The table, its numbers to the right, and what must be said beneath it.
pub(super) fn with_notes(mut table: Table, columns: usize, notes: Vec<String>) -> String {
    align(&mut table, columns);
    let mut text = lines(&table);
    for note in notes {
        let _ = writeln!(text, "{}", styled(FAINT, wrapped(2, &note).trim_end()));
    }
    text
}
