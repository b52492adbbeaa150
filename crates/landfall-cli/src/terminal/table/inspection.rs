//! What `landfall inspect` prints.

use landfall_lab::Notice;
use landfall_report::text::text;
use landfall_results::Fact;
use landfall_results::view::{Block, Column, Row, Table};

use super::notices::notices;

/// What `landfall inspect` found.
pub fn inspection(directory: &str, facts: &[Fact], of: &[Notice]) -> String {
    let mut blocks = Vec::new();
    for facts in facts.chunk_by(|one, next| one.subject == next.subject) {
        let rows = facts.iter().map(|fact| {
            let cells = [fact.value.as_str(), fact.meaning.as_str()];
            Row::of(fact.name.as_str(), cells)
        });
        let columns = vec![Column::text(""), Column::text("")];
        let caption = facts.first().map_or("", |fact| &fact.subject);
        blocks.extend(Block::titled(
            Table::new(caption, "", columns).with_rows(rows),
        ));
    }
    blocks.extend(notices(of));
    format!("{directory}\n{}", text(&blocks))
}
