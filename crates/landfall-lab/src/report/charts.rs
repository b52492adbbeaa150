//! What the charts draw: a small document that is embedded in the page for its script.
//!
//! Every chart knows how many marks it must show ([`Chart::expected`]), counted from the results and
//! not from what the script does with them, so that a browser test can tell a chart that lost data.

use serde::Serialize;

use super::{configuration, prove, stream, sync};

/// More rows than this are no picture any more.
pub(super) const MOST_ROWS: usize = 40;
/// Rates further apart than this do not fit on one linear scale.
const WIDEST_LINEAR: f64 = 20.0;

/// How a number is written.
pub(super) type Print = fn(f64) -> String;

/// One chart.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Chart {
    /// Identifies the element that it is drawn into.
    pub id: String,
    #[serde(flatten)]
    pub drawing: Drawing,
}

#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(super) enum Drawing {
    /// Operations per second of named strategies, or requests per second of configurations, with intervals.
    Rates {
        /// What the axis shows.
        unit: &'static str,
        /// Where there is neither gain nor loss, of ratios.
        reference: Option<f64>,
        log: bool,
        rows: Vec<sync::charts::Rate>,
    },
    /// Operations per second along a numeric axis, a line per series.
    Lines {
        axis: String,
        series: Vec<&'static str>,
        points: Vec<sync::charts::Point>,
    },
    /// A figure along the number of clients, a panel per site.
    Clients(configuration::charts::Clients),
    /// Latency against percentile, a panel per strategy.
    Latency { curves: Vec<sync::charts::Curve> },
    /// What something costs, a panel per kind of cost.
    Costs {
        /// Every row, also those that some panel has no bar for.
        labels: Vec<String>,
        panels: Vec<Panel>,
    },
    /// MB/s of each phase against the size of the state, a panel per method.
    Sizes(stream::charts::Sizes),
    /// MB/s of each phase of named strategies.
    Phases(stream::charts::Phases),
    /// The cost of a dump and of logs against the share of the state that changes.
    BreakEven(stream::crossing::Crossing),
    /// Operations per second, by what power cuts did.
    Safety(sync::safety::Comparison),
    /// What happened around a power cut.
    Timeline(prove::charts::Timeline),
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Panel {
    pub name: &'static str,
    pub bars: Vec<Bar>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Bar {
    pub label: String,
    pub value: f64,
    /// Whether the value is only an upper bound.
    pub bound: bool,
    pub text: String,
}

impl Chart {
    /// Marks that a complete drawing of this chart has.
    pub fn expected(&self) -> usize {
        match &self.drawing {
            Drawing::Rates { rows, .. } => rows.iter().filter(|row| row.value.is_some()).count(),
            Drawing::Lines { points, .. } => points.len(),
            Drawing::Clients(clients) => clients.marks(),
            Drawing::Latency { curves } => curves.len(),
            Drawing::Costs { panels, .. } => panels.iter().map(|panel| panel.bars.len()).sum(),
            Drawing::Sizes(sizes) => sizes.marks(),
            Drawing::Phases(phases) => phases.marks(),
            Drawing::BreakEven(crossing) => crossing.marks(),
            Drawing::Safety(comparison) => comparison.marks(),
            Drawing::Timeline(timeline) => timeline.marks(),
        }
    }

    /// The chart, if it would show anything.
    pub fn if_any(self) -> Option<Chart> {
        (self.expected() > 0).then_some(self)
    }
}

/// Whether these values need a logarithmic scale.
pub(super) fn is_wide(values: impl Iterator<Item = f64>) -> bool {
    span(values) > WIDEST_LINEAR
}

/// The greatest of these values over the least; 0 where that says nothing.
pub(super) fn span(values: impl Iterator<Item = f64>) -> f64 {
    let (least, most) = values.fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
        (least.min(value), most.max(value))
    });
    if least > 0.0 { most / least } else { 0.0 }
}
