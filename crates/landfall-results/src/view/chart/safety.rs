//! Cost against safety.

use std::borrow::Cow;

use serde::Serialize;

/// Operations per second, by what power cuts did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Whether the scale is logarithmic.
    pub log: bool,
    /// What is written beside the row that the text names, which is marked as the best.
    pub named: Cow<'static, str>,
    /// Names of the groups that marks refer to: lost nothing, lost, not proven.
    pub groups: Vec<Cow<'static, str>>,
    /// From the top down.
    pub rows: Vec<ComparisonMark>,
}

/// How fast one is, and what it lost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparisonMark {
    /// What it is called.
    pub label: String,
    /// Index into the chart's groups.
    pub group: usize,
    /// Whether what is acknowledged is meant to survive a power cut.
    pub durable: bool,
    /// Whether it is the one that the text names as the cheapest.
    pub best: bool,
    /// The median.
    pub value: f64,
    /// Lower end of the 95% interval.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
    /// The median, and what was lost, in words.
    pub text: String,
}

impl Comparison {
    /// Marks of a complete drawing: one for each row.
    pub fn marks(&self) -> usize {
        self.rows.len()
    }
}
