//! What must be known before a figure is believed.

use std::fmt::Write as _;

use landfall_lab::{Notice, Weight};

use super::layout::{at_least, lines, plain_table};
use crate::terminal::style::{BAD, DOUBT, FAINT, STRONG, styled};

/// Notices, weightiest first.
pub(super) fn notices_table(notices: &[Notice]) -> String {
    let mut text = String::new();
    if notices.is_empty() {
        return text;
    }
    let _ = writeln!(text, "\n{}", styled(STRONG, "Before you believe a figure"));
    text + &notices_lines(notices)
}

pub(super) fn notices_lines(notices: &[Notice]) -> String {
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
