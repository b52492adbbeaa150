//! The charts of configurations: along the number of clients, and beside each other.

use serde::Serialize;

use crate::configuration::ConfigurationResult;
use crate::configuration::DeviceCost;
use crate::numbers::{short, thousands, two};
use crate::report::charts::{Bar, Chart, Drawing, MOST_ROWS, Panel, Print, is_wide};
use crate::report::sync::charts::Rate;
use crate::stats::Estimate;

/// A figure against the number of clients, a panel per site.
#[derive(Clone, Debug, Serialize)]
pub(in crate::report) struct Clients {
    /// What the vertical axis shows.
    axis: String,
    log: bool,
    /// Names of the series that points refer to.
    series: Vec<String>,
    panels: Vec<ClientsPanel>,
}

#[derive(Clone, Debug, Serialize)]
struct ClientsPanel {
    label: String,
    points: Vec<Point>,
}

#[derive(Clone, Debug, Serialize)]
struct Point {
    clients: u32,
    /// Index into the chart's series.
    series: usize,
    value: f64,
    low: f64,
    high: f64,
}

impl Clients {
    /// Marks of a complete drawing.
    pub fn marks(&self) -> usize {
        self.panels.iter().map(|panel| panel.points.len()).sum()
    }
}

/// One series of a panel: its number, and the configurations that it goes through.
pub(in crate::report) type Series<'a> = (usize, Vec<&'a ConfigurationResult>);

/// A chart of `figure` against the number of clients; `panels` are labels and what they show.
pub(in crate::report) fn clients(
    id: &str,
    axis: &str,
    series: &[&str],
    panels: &[(String, Vec<Series<'_>>)],
    figure: impl Fn(&ConfigurationResult) -> Option<Estimate>,
) -> Option<Chart> {
    let point = |series: usize, one: &ConfigurationResult| {
        let estimate = figure(one)?;
        Some(Point {
            clients: one.clients,
            series,
            value: estimate.median,
            low: estimate.low,
            high: estimate.high,
        })
    };
    let panels: Vec<ClientsPanel> = panels
        .iter()
        .map(|(label, all)| ClientsPanel {
            label: label.clone(),
            points: all
                .iter()
                .flat_map(|(series, ones)| ones.iter().filter_map(|one| point(*series, one)))
                .collect(),
        })
        .filter(|panel| !panel.points.is_empty())
        .collect();
    let values = panels.iter().flat_map(|panel| &panel.points);
    let drawing = Drawing::Clients(Clients {
        axis: axis.to_owned(),
        log: is_wide(values.map(|point| point.value)),
        series: series.iter().map(|name| (*name).to_owned()).collect(),
        panels,
    });
    let id = id.to_owned();
    Chart { id, drawing }.if_any()
}

/// A configuration as a chart names it; what it acknowledges may not be durable.
pub(in crate::report) struct Row<'a> {
    pub label: String,
    pub one: &'a ConfigurationResult,
    pub durable: bool,
}

/// Requests per second of named configurations, with intervals.
pub(in crate::report) fn rates(id: &str, rows: &[Row<'_>]) -> Option<Chart> {
    let rows: Vec<Rate> = rows
        .iter()
        .take(MOST_ROWS)
        .map(|row| {
            let rate = row.one.summary.as_ref().map(|one| one.requests_per_second);
            Rate {
                label: row.label.clone(),
                durable: row.durable,
                value: rate.map(|rate| rate.median),
                low: rate.map(|rate| rate.low),
                high: rate.map(|rate| rate.high),
                text: rate.map_or("not measured here".to_owned(), |rate| {
                    thousands(rate.median)
                }),
            }
        })
        .collect();
    let drawing = Drawing::Rates {
        unit: "requests per second",
        reference: None,
        log: is_wide(rows.iter().filter_map(|row| row.value)),
        rows,
    };
    let id = id.to_owned();
    Chart { id, drawing }.if_any()
}

/// What a request of named configurations costs the device.
pub(in crate::report) fn costs(id: &str, rows: &[Row<'_>]) -> Option<Chart> {
    let counted: Vec<(&str, DeviceCost)> = rows
        .iter()
        .take(MOST_ROWS)
        .filter_map(|row| Some((row.label.as_str(), row.one.summary.as_ref()?.device?)))
        .collect();
    let panel = |name, value: fn(&DeviceCost) -> f64, print: Print| Panel {
        name,
        bars: counted
            .iter()
            .map(|(label, device)| Bar {
                label: (*label).to_owned(),
                value: value(device),
                bound: false,
                text: print(value(device)),
            })
            .collect(),
    };
    let of_writes = Panel {
        name: "writes",
        bars: counted
            .iter()
            .map(|(label, device)| Bar {
                label: (*label).to_owned(),
                value: device.writes.unwrap_or(device.write_requests),
                bound: device.writes.is_none(),
                text: device.writes_text(),
            })
            .collect(),
    };
    let drawing = Drawing::Costs {
        labels: counted
            .iter()
            .map(|(label, _)| (*label).to_owned())
            .collect(),
        panels: vec![
            panel("flushes", |device| device.flushes, two),
            panel("KiB written", |device| device.kib, short),
            of_writes,
        ],
    };
    let id = id.to_owned();
    Chart { id, drawing }.if_any()
}
