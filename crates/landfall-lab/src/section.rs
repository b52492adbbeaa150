//! Results in the order in which people read them: one axis at a time.

use landfall_results::{Axis, Series, Term};

/// Series that differ along one axis only.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    /// The axis; `None`: they fit no axis.
    pub axis: Option<Axis>,
    /// What is varied, and what is not.
    pub title: String,
    /// The value on the axis and the series that has it.
    pub rows: Vec<(String, &'a Series)>,
    /// Whether there are several methods, which labels then begin with.
    pub is_grouped: bool,
    /// Whether they were measured in main memory, where nothing is durable.
    pub in_memory: bool,
}

impl Section<'_> {
    /// The axis as one word for programs; `other` of those that fit none.
    pub fn name(&self) -> &'static str {
        self.axis.map_or("other", Axis::name)
    }

    /// Its rows; those that are not durable have a mark.
    pub fn marked(&self) -> impl Iterator<Item = (String, &Series)> {
        self.rows.iter().map(|(label, series)| {
            let mark = if self.is_durable(series) { "" } else { " *" };
            (format!("{label}{mark}"), *series)
        })
    }

    /// The same, with words instead of a mark.
    pub fn named(&self) -> impl Iterator<Item = (String, &Series)> {
        self.rows.iter().map(|(label, series)| {
            let mark = if self.is_durable(series) {
                ""
            } else {
                ", not durable"
            };
            (format!("{label}{mark}"), *series)
        })
    }

    /// What the names of its rows mean, where they do not say it themselves.
    pub fn terms(&self) -> Vec<Term> {
        let axes = match self.axis {
            Some(axis) => vec![axis],
            // Their names hold everything.
            None => vec![Axis::Allocation, Axis::Method, Axis::Pages, Axis::Threads],
        };
        let mut terms = Vec::new();
        for axis in axes {
            for (_, series) in &self.rows {
                terms.extend(series.axes.term(axis).filter(|term| !terms.contains(term)));
            }
        }
        terms
    }

    /// Whether some of its rows have the mark.
    pub fn has_marks(&self) -> bool {
        let mut rows = self.rows.iter();
        rows.any(|(_, series)| !self.is_durable(series) && series.is_measured())
    }

    /// Whether what a series wrote is meant to survive a power cut.
    pub fn is_durable(&self, series: &Series) -> bool {
        !self.in_memory && series.axes.is_durable()
    }
}

/// Series that none of `sections` shows, under their keys.
pub(crate) fn rest<'a>(all: &'a [Series], sections: &[Section<'_>]) -> Option<Section<'a>> {
    let is_shown = |series: &Series| {
        let mut shown = sections.iter().flat_map(|section| &section.rows);
        shown.any(|(_, other)| other.key == series.key)
    };
    let rows: Vec<_> = all
        .iter()
        .filter(|series| !is_shown(series))
        .map(|series| (series.key.replace('/', " "), series))
        .collect();
    let title = if sections.is_empty() {
        "Strategies"
    } else {
        "Other strategies"
    };
    (!rows.is_empty()).then(|| Section {
        axis: None,
        title: title.to_owned(),
        rows,
        is_grouped: false,
        in_memory: false,
    })
}
