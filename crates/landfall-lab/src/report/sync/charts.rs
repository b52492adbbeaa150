//! The charts of experiment `sync`.

use serde::Serialize;

use crate::numbers::{short, thousands, two};
use crate::report::charts::{Bar, Chart, Drawing, MOST_ROWS, Panel, is_wide};
use crate::sync::{DeviceCost, Files, Section, StrategyResult};
use landfall_os::humanize::size_name;

/// Fewer reads per operation than this are somebody else's.
const SOME_READS: f64 = 0.05;

#[derive(Clone, Debug, Serialize)]
pub(in crate::report) struct Rate {
    pub label: String,
    pub durable: bool,
    /// Absent when it could not be measured.
    pub value: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub text: String,
}

#[derive(Clone, Debug, Serialize)]
pub(in crate::report) struct Point {
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
pub(in crate::report) struct Curve {
    label: String,
    durable: bool,
    /// Percentile and latency in microseconds.
    points: Vec<(f64, f64)>,
}

/// The rates of a section, if any of its strategies was measured.
pub(super) fn rates(section: &Section<'_>) -> Option<Chart> {
    let id = format!("rate-{}", section.axis);
    let drawing = match section.axis {
        "size" => lines(section, "bytes in a write", |strategy| strategy.size as f64),
        "threads" => lines(section, "threads", |strategy| f64::from(strategy.threads)),
        _ => named(section),
    };
    Chart { id, drawing }.if_any()
}

/// Latency distributions of a section.
pub(super) fn latency(section: &Section<'_>) -> Option<Chart> {
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
pub(super) fn costs(section: &Section<'_>) -> Option<Chart> {
    let costs: Vec<_> = section
        .rows
        .iter()
        .filter_map(|(label, strategy)| Some((label, strategy.summary.as_ref()?.device?)))
        .collect();
    let panel = |name, bar: &dyn Fn(&DeviceCost) -> (f64, bool, String)| Panel {
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
            (value, cost.writes.is_none(), cost.writes_text())
        }),
        panel("KiB written", &|cost| (cost.kib, false, short(cost.kib))),
        panel("flushes", &|cost| (cost.flushes, false, two(cost.flushes))),
    ];
    if costs.iter().any(|(_, cost)| cost.reads >= SOME_READS) {
        panels.push(panel("reads", &|cost| (cost.reads, false, two(cost.reads))));
    }
    (!costs.is_empty()).then(|| Chart {
        id: format!("cost-{}", section.axis),
        drawing: Drawing::Costs {
            labels: costs.iter().map(|(label, _)| (*label).clone()).collect(),
            panels,
        },
    })
}

/// The rows of a section that a chart has room for.
fn drawn<'a>(section: &Section<'a>) -> Vec<(String, &'a StrategyResult)> {
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

fn named(section: &Section<'_>) -> Drawing {
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
    Drawing::Rates {
        unit: "operations per second",
        reference: None,
        log: is_wide(rows.iter().filter_map(|row| row.value)),
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
                name: if threads {
                    strategy.threads.to_string()
                } else {
                    size_name(strategy.size)
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
        series: if threads {
            vec!["one file", "a file each"]
        } else {
            vec![""]
        },
        points,
    }
}
