//! A table as data.

use std::borrow::Cow;

use crate::numbers::NOTHING;

/// What a text is meant to look like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Like all others.
    #[default]
    Plain,
    /// What is read first.
    Strong,
    /// What may be relied upon.
    Good,
    /// What must not be.
    Bad,
    /// What is not known.
    Doubt,
    /// What is read last.
    Faint,
}

/// The text where a row and a column meet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// What it says.
    pub text: String,
    /// What it looks like.
    pub tone: Tone,
}

impl Cell {
    /// A text that is not like others.
    pub fn toned(tone: Tone, text: impl Into<String>) -> Cell {
        Cell {
            text: text.into(),
            tone,
        }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell::toned(Tone::Plain, text)
    }
}

/// The text, or what stands where there is none.
pub fn or_nothing(text: Option<String>) -> String {
    text.unwrap_or_else(|| NOTHING.to_owned())
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// What stands above it; may be broken into lines between its words.
    pub heading: Cow<'static, str>,
    /// Whether its cells are words, which are read from the left and may be broken.
    pub is_text: bool,
}

impl Column {
    /// A column of figures.
    pub fn new(heading: impl Into<Cow<'static, str>>) -> Column {
        Column {
            heading: heading.into(),
            is_text: false,
        }
    }

    /// A column of words.
    pub fn text(heading: impl Into<Cow<'static, str>>) -> Column {
        Column {
            is_text: true,
            ..Column::new(heading)
        }
    }
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// What those beneath it have in common.
    Group(Cell),
    /// A sentence about the rows around it.
    Said(String),
    /// A heading, and a cell for each column.
    Cells {
        /// The heading.
        head: Cell,
        /// As many as there are columns.
        cells: Vec<Cell>,
    },
    /// One of which there is nothing but a reason why.
    Without {
        /// The heading.
        head: String,
        /// The reason.
        reason: String,
    },
}

impl Row {
    /// A row with a cell for each column.
    pub fn of<T: Into<Cell>>(head: impl Into<Cell>, cells: impl IntoIterator<Item = T>) -> Row {
        Row::Cells {
            head: head.into(),
            cells: cells.into_iter().map(Into::into).collect(),
        }
    }

    /// A row of which there is nothing but a reason.
    pub fn without(head: impl Into<String>, reason: impl Into<String>) -> Row {
        Row::Without {
            head: head.into(),
            reason: reason.into(),
        }
    }
}

/// Rows that each have a heading, under columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// What it is of.
    pub caption: String,
    /// What stands above the headings of rows.
    pub corner: Cow<'static, str>,
    /// The columns, without that of the headings.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Row>,
    /// What must be said beneath.
    pub notes: Vec<String>,
}

impl Table {
    /// A table without rows yet.
    pub fn new(
        caption: impl Into<String>,
        corner: impl Into<Cow<'static, str>>,
        columns: Vec<Column>,
    ) -> Table {
        Table {
            caption: caption.into(),
            corner: corner.into(),
            columns,
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The same with these rows.
    pub fn with_rows(mut self, rows: impl IntoIterator<Item = Row>) -> Table {
        self.rows = rows.into_iter().collect();
        self.check();
        self
    }

    /// Says something beneath, once.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Whether its cells are words rather than figures.
    pub fn is_prose(&self) -> bool {
        self.columns.iter().any(|column| column.is_text)
    }

    /// Every row has a cell for each column.
    pub fn check(&self) {
        for row in &self.rows {
            if let Row::Cells { head, cells } = row {
                assert_eq!(
                    cells.len(),
                    self.columns.len(),
                    "row {:?} of table {:?}",
                    head.text,
                    self.caption
                );
            }
        }
    }
}
