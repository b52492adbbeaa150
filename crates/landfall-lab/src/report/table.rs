//! A table of the page: what a chart shows, in digits, for those who do not see it.

/// More rows than this make a page that no browser likes; the results document has them all.
pub(super) const MOST_ROWS: usize = 400;

/// A table of numbers with a heading per row.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub caption: String,
    /// Heading of the first column.
    pub corner: &'static str,
    pub columns: Vec<&'static str>,
    pub rows: Vec<Row>,
    /// What must be said beneath.
    pub notes: Vec<String>,
    /// Whether its cells are words, which are read from the left and may break.
    pub is_prose: bool,
}

impl Table {
    /// The heading of a cell's column.
    pub fn column(&self, index: &usize) -> &'static str {
        self.columns.get(*index).copied().unwrap_or_default()
    }
}

#[derive(Clone, Debug)]
pub(super) struct Row {
    pub head: String,
    /// A cell per column; or one that spans all of them, saying why there are none.
    pub cells: Vec<String>,
    pub spans: bool,
}

impl Row {
    /// A row with a cell for each column.
    pub fn of(head: impl Into<String>, cells: Vec<String>) -> Row {
        Row {
            head: head.into(),
            cells,
            spans: false,
        }
    }

    /// A row of which there is nothing but a reason.
    pub fn without(head: impl Into<String>, reason: impl Into<String>) -> Row {
        Row {
            head: head.into(),
            cells: vec![reason.into()],
            spans: true,
        }
    }
}

/// Strategies that could not be measured, by key, and why; nothing if all were.
pub(super) fn unmeasured<'a>(
    strategies: impl Iterator<Item = (&'a str, Option<&'a str>)>,
) -> Option<Table> {
    let rows: Vec<Row> = strategies
        .take(MOST_ROWS)
        .map(|(key, reason)| Row::without(key, reason.unwrap_or(crate::numbers::NOTHING)))
        .collect();
    (!rows.is_empty()).then(|| Table {
        caption: "Strategies of the plan that could not be measured".to_owned(),
        corner: "Strategy",
        columns: vec!["Why"],
        rows,
        ..Table::default()
    })
}
