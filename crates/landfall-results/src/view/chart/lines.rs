//! Lines along an axis.

use std::borrow::Cow;

use serde::Serialize;

/// Operations per second along a numeric axis, a line per series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lines {
    /// What the axis shows.
    pub axis: String,
    /// Names of the series that points refer to.
    pub series: Vec<Cow<'static, str>>,
    /// In the order of the axis.
    pub points: Vec<Point>,
}

/// A rate somewhere on an axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Where on the axis.
    pub x: f64,
    /// What stands there on the axis.
    pub name: String,
    /// Index into the chart's series; absent for a point that all of them share.
    pub series: Option<usize>,
    /// Whether what is acknowledged survives a power cut.
    pub durable: bool,
    /// The median.
    pub value: f64,
    /// Lower end of the 95% interval.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
    /// The median in words.
    pub text: String,
}

impl Lines {
    /// Marks of a complete drawing: the points.
    pub fn marks(&self) -> usize {
        self.points.len()
    }
}

/// A figure against the number of clients, a panel per site.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Clients {
    /// What the vertical axis shows.
    pub axis: String,
    /// Whether its scale is logarithmic.
    pub log: bool,
    /// Names of the series that points refer to.
    pub series: Vec<String>,
    /// One for each site.
    pub panels: Vec<ClientsPanel>,
}

/// The lines of a site.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClientsPanel {
    /// What the site is called.
    pub label: String,
    /// Those of all lines.
    pub points: Vec<ClientsPoint>,
}

/// A figure at a number of clients.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClientsPoint {
    /// How many there were.
    pub clients: u32,
    /// Index into the chart's series.
    pub series: usize,
    /// The median.
    pub value: f64,
    /// Lower end of the 95% interval.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
}

impl Clients {
    /// Marks of a complete drawing: the points.
    pub fn marks(&self) -> usize {
        self.panels.iter().map(|panel| panel.points.len()).sum()
    }
}

/// Latency against percentile, a panel per curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// One for each panel.
    pub curves: Vec<Curve>,
}

/// A distribution of latencies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// What it is of.
    pub label: String,
    /// Whether what is acknowledged survives a power cut.
    pub durable: bool,
    /// Percentile and latency in microseconds.
    pub points: Vec<(f64, f64)>,
}

impl Latency {
    /// Marks of a complete drawing: the curves.
    pub fn marks(&self) -> usize {
        self.curves.len()
    }
}
