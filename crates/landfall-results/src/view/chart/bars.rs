//! Dots with intervals, and bars.

use std::borrow::Cow;

use serde::Serialize;

use crate::numbers::Print;
use crate::stats::Estimate;

/// Rates of what has names, such as operations per second of strategies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rates {
    /// What the axis shows.
    pub unit: Cow<'static, str>,
    /// Where there is neither gain nor loss, of ratios.
    pub reference: Option<f64>,
    /// Whether the scale is logarithmic.
    pub log: bool,
    /// From the top down.
    pub rows: Vec<Rate>,
}

/// A rate, in the chart's unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// What it is of.
    pub label: String,
    /// Whether what is acknowledged survives a power cut.
    pub durable: bool,
    /// The median; absent when it could not be measured.
    pub value: Option<f64>,
    /// Lower end of the 95% interval.
    pub low: Option<f64>,
    /// Upper end of it.
    pub high: Option<f64>,
    /// The median in words.
    pub text: String,
}

impl Rate {
    /// A rate with its interval, or that there is none.
    pub fn of(label: String, durable: bool, rate: Option<Estimate>, print: Print) -> Rate {
        Rate {
            label,
            durable,
            value: rate.map(|rate| rate.median),
            low: rate.map(|rate| rate.low),
            high: rate.map(|rate| rate.high),
            text: rate.map_or_else(|| "not measured here".to_owned(), |rate| print(rate.median)),
        }
    }
}

impl Rates {
    /// Marks of a complete drawing: one for each rate that is known.
    pub fn marks(&self) -> usize {
        self.rows.iter().filter(|row| row.value.is_some()).count()
    }
}

/// What something costs, a panel per kind of cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Costs {
    /// Every row, also those that some panel has no bar for.
    pub labels: Vec<String>,
    /// One for each kind of cost.
    pub panels: Vec<Panel>,
}

/// Bars of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Panel {
    /// What they show, with its unit.
    pub name: Cow<'static, str>,
    /// At most one for each row.
    pub bars: Vec<Bar>,
}

/// A bar.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bar {
    /// The row that it stands in.
    pub label: String,
    /// Its length, in the panel's unit.
    pub value: f64,
    /// Whether the value is only an upper bound.
    pub bound: bool,
    /// The value in words.
    pub text: String,
}

impl Costs {
    /// Marks of a complete drawing: the bars.
    pub fn marks(&self) -> usize {
        self.panels.iter().map(|panel| panel.bars.len()).sum()
    }
}
