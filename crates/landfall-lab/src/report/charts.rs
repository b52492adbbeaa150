//! What the charts draw: a small document that is embedded in the page for its script.
//!
//! Every chart knows how many marks it must show ([`Chart::expected`]), counted from the results and
//! not from what the script does with them, so that a browser test can tell a chart that lost data.

use serde::Serialize;

use crate::numbers::{short, thousands, two, writes};
use crate::size_name;
use crate::sync::{Files, Section, StrategyResult};

/// More rows than this are no picture any more; the fastest are drawn.
pub(super) const MOST_ROWS: usize = 40;
/// Rates further apart than this do not fit on one linear scale.
const WIDEST_LINEAR: f64 = 20.0;
/// Fewer reads per operation than this are somebody else's.
const SOME_READS: f64 = 0.05;

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
    /// Operations per second of named strategies, with intervals.
    Rates { log: bool, rows: Vec<Rate> },
    /// Operations per second along a numeric axis, a line per series.
    Lines {
        axis: String,
        series: Vec<&'static str>,
        points: Vec<Point>,
    },
    /// Latency against percentile, a panel per strategy.
    Latency { curves: Vec<Curve> },
    /// What an operation costs the device, a panel per kind of cost.
    Costs { panels: Vec<Panel> },
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Rate {
    label: String,
    durable: bool,
    /// Absent when it could not be measured.
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    text: String,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Point {
    x: f64,
    name: String,
    /// Index into the chart's series; absent for a point that all of them share.
    series: Option<usize>,
    durable: bool,
    value: f64,
    low: f64,
    high: f64,
    text: String,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Curve {
    label: String,
    durable: bool,
    /// Percentile and latency in microseconds.
    points: Vec<(f64, f64)>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Panel {
    name: &'static str,
    bars: Vec<Bar>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Bar {
    label: String,
    value: f64,
    /// Whether the value is only an upper bound.
    bound: bool,
    text: String,
}

impl Chart {
    /// Marks that a complete drawing of this chart has.
    pub fn expected(&self) -> usize {
        match &self.drawing {
            Drawing::Rates { rows, .. } => rows.iter().filter(|row| row.value.is_some()).count(),
            Drawing::Lines { points, .. } => points.len(),
            Drawing::Latency { curves } => curves.len(),
            Drawing::Costs { panels } => panels.iter().map(|panel| panel.bars.len()).sum(),
        }
    }

    /// The rates of a section, if any of its strategies was measured.
    pub fn rates(section: &Section<'_>) -> Option<Chart> {
        let id = format!("rate-{}", section.axis);
        let drawing = match section.axis {
            "size" => lines(section, "bytes in a write", |strategy| strategy.size as f64),
            "threads" => lines(section, "threads", |strategy| f64::from(strategy.threads)),
            _ => rates(section),
        };
        Some(Chart { id, drawing }).filter(|chart| chart.expected() > 0)
    }

    /// Latency distributions of a section.
    pub fn latency(section: &Section<'_>) -> Option<Chart> {
        let curves: Vec<Curve> = section
            .rows
            .iter()
            .filter_map(|(label, strategy)| {
                let points = strategy.summary.as_ref()?.distribution.clone();
                (!points.is_empty()).then(|| Curve {
                    label: label.clone(),
                    durable: strategy.durable,
                    points,
                })
            })
            .collect();
        (!curves.is_empty()).then(|| Chart {
            id: format!("latency-{}", section.axis),
            drawing: Drawing::Latency { curves },
        })
    }

    /// Device costs of a section, if the device's counters could be read.
    pub fn costs(section: &Section<'_>) -> Option<Chart> {
        let costs: Vec<_> = section
            .rows
            .iter()
            .filter_map(|(label, strategy)| Some((label, strategy.summary.as_ref()?.device?)))
            .collect();
        let panel = |name, bar: &dyn Fn(&crate::sync::DeviceCost) -> (f64, bool, String)| Panel {
            name,
            bars: costs
                .iter()
                .map(|(label, cost)| {
                    let (value, bound, text) = bar(cost);
                    Bar {
                        label: (*label).clone(),
                        value,
                        bound,
                        text,
                    }
                })
                .collect(),
        };
        let mut panels = vec![
            panel("writes", &|cost| {
                let value = cost.writes.unwrap_or(cost.write_requests);
                (value, cost.writes.is_none(), writes(cost))
            }),
            panel("KiB written", &|cost| (cost.kib, false, short(cost.kib))),
            panel("flushes", &|cost| (cost.flushes, false, two(cost.flushes))),
        ];
        if costs.iter().any(|(_, cost)| cost.reads >= SOME_READS) {
            panels.push(panel("reads", &|cost| (cost.reads, false, two(cost.reads))));
        }
        (!costs.is_empty()).then(|| Chart {
            id: format!("cost-{}", section.axis),
            drawing: Drawing::Costs { panels },
        })
    }
}

/// The rows of a section that a chart has room for.
pub(super) fn drawn<'a>(section: &Section<'a>) -> Vec<(String, &'a StrategyResult)> {
    let mut rows = section.rows.clone();
    if rows.len() > MOST_ROWS {
        let rate = |strategy: &StrategyResult| {
            strategy
                .summary
                .as_ref()
                .map_or(0.0, |summary| summary.ops_per_second.median)
        };
        rows.sort_by(|a, b| {
            let key = |row: &(String, &StrategyResult)| (row.1.durable, rate(row.1));
            let ((a_durable, a), (b_durable, b)) = (key(a), key(b));
            b_durable.cmp(&a_durable).then(b.total_cmp(&a))
        });
        rows.truncate(MOST_ROWS);
    }
    rows
}

fn rates(section: &Section<'_>) -> Drawing {
    let rows: Vec<Rate> = drawn(section)
        .into_iter()
        .map(|(label, strategy)| {
            let rate = strategy
                .summary
                .as_ref()
                .map(|summary| summary.ops_per_second);
            Rate {
                label,
                durable: strategy.durable,
                value: rate.map(|rate| rate.median),
                low: rate.map(|rate| rate.low),
                high: rate.map(|rate| rate.high),
                text: rate.map_or_else(
                    || "not measured here".to_owned(),
                    |rate| thousands(rate.median),
                ),
            }
        })
        .collect();
    let values = rows.iter().filter_map(|row| row.value);
    let (least, most) = values.fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
        (least.min(value), most.max(value))
    });
    Drawing::Rates {
        log: least > 0.0 && most / least > WIDEST_LINEAR,
        rows,
    }
}

fn lines(section: &Section<'_>, axis: &str, x: fn(&StrategyResult) -> f64) -> Drawing {
    let threads = section.axis == "threads";
    let mut points: Vec<Point> = section
        .rows
        .iter()
        .filter_map(|(_, strategy)| {
            let rate = strategy.summary.as_ref()?.ops_per_second;
            Some(Point {
                x: x(strategy),
                name: match threads {
                    true => strategy.threads.to_string(),
                    false => size_name(strategy.size),
                },
                series: match (threads, strategy.threads, strategy.files) {
                    (true, 1, _) => None,
                    (true, _, Files::Each) => Some(1),
                    _ => Some(0),
                },
                durable: strategy.durable,
                value: rate.median,
                low: rate.low,
                high: rate.high,
                text: thousands(rate.median),
            })
        })
        .collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    Drawing::Lines {
        axis: axis.to_owned(),
        series: match threads {
            true => vec!["one file", "a file each"],
            false => vec![""],
        },
        points,
    }
}
