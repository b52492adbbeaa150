//! The charts of configurations: along the number of clients, and beside each other.

use landfall_results::view::chart::{
    Chart, Clients, ClientsPanel, ClientsPoint, Drawing, MOST_ROWS, Rate, Rates, is_wide,
};
use landfall_results::{Metric, Series};

use crate::numbers::thousands;
use crate::views::device_costs;

/// One line of a panel: its number, and what it goes through.
pub(crate) type Line<'a> = (usize, Vec<&'a Series>);

/// A chart of `metric` against the number of clients; `panels` are labels and what they show.
pub(crate) fn clients(
    id: &str,
    axis: &str,
    series: &[&str],
    panels: &[(String, Vec<Line<'_>>)],
    metric: Metric,
) -> Option<Chart> {
    let point = |series: usize, one: &Series| {
        let estimate = one.estimate(metric)?;
        Some(ClientsPoint {
            clients: one.axes.clients?,
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
    Chart::new(id, drawing).if_any()
}

/// A configuration as a chart names it; what it acknowledges may not be durable.
pub(crate) struct Row<'a> {
    pub label: String,
    pub one: &'a Series,
    pub durable: bool,
}

/// Requests per second of named configurations, with intervals.
pub(crate) fn rates(id: &str, rows: &[Row<'_>]) -> Option<Chart> {
    let rows: Vec<Rate> = rows
        .iter()
        .take(MOST_ROWS)
        .map(|row| {
            let rate = row.one.estimate(Metric::RequestsPerSecond);
            Rate::of(row.label.clone(), row.durable, rate, thousands)
        })
        .collect();
    let drawing = Drawing::Rates(Rates {
        unit: Metric::RequestsPerSecond.description().label.into(),
        reference: None,
        log: is_wide(rows.iter().filter_map(|row| row.value)),
        rows,
    });
    Chart::new(id, drawing).if_any()
}

/// What a request of named configurations costs the device.
pub(crate) fn costs(id: &str, rows: &[Row<'_>]) -> Option<Chart> {
    let rows = rows.iter().take(MOST_ROWS);
    device_costs(
        id.to_owned(),
        rows.map(|row| (row.label.as_str(), row.one)),
        &[Metric::Flushes, Metric::Kib, Metric::Writes],
    )
}
