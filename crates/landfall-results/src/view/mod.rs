//! What is to be shown, as data: tables, prose and charts that a terminal, a page and a Markdown file each lay out in their
//! own way. A terminal shows [`Block`]s, one beneath the other, and a browser a [`Page`]. Nothing here knows an experiment,
//! and no back end knows more than this.

mod advised;
pub mod chart;
mod claims;
mod columns;
mod page;
mod part;
mod reference;
mod table;

pub use advised::{
    Advised, AdvisedChoice, AdvisedGroup, AdvisedSetting, CheckedFile, CheckedSetting, Lacking,
    Workload,
};
pub use claims::{Claim, Claims, published};
pub use columns::{SeriesColumn, series_table, with_interval};
pub use page::Page;
pub use part::{Chapter, Figure, Part, Suggestion};
pub use reference::{Reference, References};
pub use table::{Cell, Column, Row, Table, Tone, or_nothing};

/// Something to be shown beneath what came before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// A line above others.
    Heading(String),
    /// Sentences that stand together, each a paragraph.
    Prose {
        /// Columns by which they are indented, where something can be.
        indent: u16,
        /// The sentences.
        sentences: Vec<(Tone, String)>,
    },
    /// A line that is to be copied, so it is not broken.
    Command(String),
    /// Where something is on the web; not broken either.
    Address(String),
    /// A table; its caption is for those who see no heading above it.
    Table(Table),
    /// What is seldom read: a page shows its summary and opens the rest on demand, everything else shows all of it.
    Fold {
        /// What is in there, and how many.
        summary: String,
        /// What is in there.
        blocks: Vec<Block>,
    },
}

impl Block {
    /// Plain sentences, if there are any.
    pub fn prose(indent: u16, sentences: impl IntoIterator<Item = String>) -> Option<Block> {
        let sentences: Vec<_> = sentences
            .into_iter()
            .map(|sentence| (Tone::Plain, sentence))
            .collect();
        (!sentences.is_empty()).then_some(Block::Prose { indent, sentences })
    }

    /// A table under its caption, if it says anything.
    pub fn titled(table: Table) -> Vec<Block> {
        if table.rows.is_empty() {
            return Vec::new();
        }
        vec![Block::Heading(table.caption.clone()), Block::Table(table)]
    }

    /// A fold, if there is anything in it.
    pub fn fold(summary: impl Into<String>, blocks: Vec<Block>) -> Option<Block> {
        let summary = summary.into();
        (!blocks.is_empty()).then_some(Block::Fold { summary, blocks })
    }
}
