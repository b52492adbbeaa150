//! What must be known before a figure is believed.

use landfall_lab::{Notice, Weight};
use landfall_results::view::{Block, Cell, Column, Row, Table, Tone};

/// Notices, weightiest first, beneath a heading.
pub(super) fn notices(notices: &[Notice]) -> Vec<Block> {
    if notices.is_empty() {
        return Vec::new();
    }
    let heading = Block::Heading("Before you rely on this".to_owned());
    vec![heading, of(notices)]
}

/// These notices alone.
pub(super) fn of<'a>(notices: impl IntoIterator<Item = &'a Notice>) -> Block {
    let rows = notices.into_iter().map(|notice| {
        let (tone, word) = match notice.weight {
            Weight::Danger => (Tone::Bad, "danger"),
            Weight::Warning => (Tone::Doubt, "warning"),
            Weight::Note => (Tone::Faint, "note"),
        };
        Row::of(Cell::toned(tone, word), [notice.full()])
    });
    Block::Table(Table::new("", "", vec![Column::text("")]).with_rows(rows))
}
