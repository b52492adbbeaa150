//! A figure of many, a dot for each.

use std::borrow::Cow;

use serde::Serialize;

use crate::stats::Estimate;

/// Dots on one scale, in rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Dots {
    /// What the axis shows.
    pub unit: Cow<'static, str>,
    /// Whether the scale is logarithmic.
    pub log: bool,
    /// From the top down.
    pub rows: Vec<DotRow>,
}

/// The dots of a row, and the median over them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DotRow {
    /// What they have in common.
    pub label: String,
    /// The median over them.
    pub value: f64,
    /// Lower end of its 95% interval.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
    /// In any order.
    pub dots: Vec<Dot>,
}

/// One of many.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Dot {
    /// Its place on the scale.
    pub value: f64,
    /// What it is called; shown of those that are named.
    pub label: String,
    /// How it differs from the others; absent of most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub named: Option<Named>,
}

/// Why a dot is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Named {
    /// It is worse than the others.
    Worse,
    /// It is better.
    Better,
}

impl DotRow {
    /// A row with the median over its dots.
    pub fn new(label: impl Into<String>, median: Estimate, dots: Vec<Dot>) -> DotRow {
        DotRow {
            label: label.into(),
            value: median.median,
            low: median.low,
            high: median.high,
            dots,
        }
    }
}

impl Dots {
    /// Marks of a complete drawing: the dots.
    pub fn marks(&self) -> usize {
        self.rows.iter().map(|row| row.dots.len()).sum()
    }
}
