//! The charts of experiment `sync`.

use landfall_results::view::chart::{
    Chart, Curve, Drawing, Latency, Lines, MOST_ROWS, Point, Rate, Rates, is_wide,
};
use landfall_results::{Axis, Files, Metric, Series};

use crate::numbers::thousands;
use crate::section::Section;
use crate::views::device_costs;
use landfall_os::humanize::size_name;

/// Fewer reads per operation than this are somebody else's.
const SOME_READS: f64 = 0.05;

/// The rates of a section, if any of its strategies was measured.
pub(super) fn rates(section: &Section<'_>) -> Option<Chart> {
    let id = format!("rate-{}", section.name());
    let drawing = match section.axis {
        Some(Axis::Size) => lines(section, "bytes in a write", Axis::Size),
        Some(Axis::Threads) => lines(section, "threads", Axis::Threads),
        _ => named(section),
    };
    Chart::new(id, drawing).if_any()
}

/// Latency distributions of a section.
pub(super) fn latency(section: &Section<'_>) -> Option<Chart> {
    let curves: Vec<Curve> = section
        .rows
        .iter()
        .filter(|(_, series)| !series.distribution.is_empty())
        .map(|(label, series)| Curve {
            label: label.clone(),
            durable: section.is_durable(series),
            points: series.distribution.clone(),
        })
        .collect();
    let id = format!("latency-{}", section.name());
    Chart::new(id, Drawing::Latency(Latency { curves })).if_any()
}

/// Device costs of a section, if the device's counters could be read.
pub(super) fn costs(section: &Section<'_>) -> Option<Chart> {
    let reads = |series: &Series| series.median(Metric::Reads);
    let some = |(_, series): &(String, &Series)| reads(series) >= Some(SOME_READS);
    let mut metrics = vec![Metric::Writes, Metric::Kib, Metric::Flushes];
    metrics.extend(section.rows.iter().any(some).then_some(Metric::Reads));
    device_costs(
        format!("cost-{}", section.name()),
        section
            .rows
            .iter()
            .map(|(label, series)| (label.as_str(), *series)),
        &metrics,
    )
}

/// The rows of a section that a chart has room for.
fn drawn<'a>(section: &Section<'a>) -> Vec<(String, &'a Series)> {
    let mut rows = section.rows.clone();
    if rows.len() > MOST_ROWS {
        let key = |series: &Series| {
            let rate = series.median(Metric::OpsPerSecond).unwrap_or(0.0);
            (section.is_durable(series), rate)
        };
        rows.sort_by(|(_, a), (_, b)| {
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
        .map(|(label, series)| {
            let rate = series.estimate(Metric::OpsPerSecond);
            Rate::of(label, section.is_durable(series), rate, thousands)
        })
        .collect();
    Drawing::Rates(Rates {
        unit: Metric::OpsPerSecond.description().label.into(),
        reference: None,
        log: is_wide(rows.iter().filter_map(|row| row.value)),
        rows,
    })
}

fn lines(section: &Section<'_>, title: &str, axis: Axis) -> Drawing {
    let threads = axis == Axis::Threads;
    let mut points: Vec<Point> = section
        .rows
        .iter()
        .filter_map(|(_, series)| {
            let rate = series.estimate(Metric::OpsPerSecond)?;
            let axes = &series.axes;
            Some(Point {
                x: axes.position(axis) as f64,
                name: if threads {
                    axes.threads?.to_string()
                } else {
                    size_name(axes.size?)
                },
                series: match (threads, axes.threads, axes.files) {
                    (true, Some(1), _) => None,
                    (true, _, Some(Files::Each)) => Some(1),
                    _ => Some(0),
                },
                durable: section.is_durable(series),
                value: rate.median,
                low: rate.low,
                high: rate.high,
                text: thousands(rate.median),
            })
        })
        .collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    Drawing::Lines(Lines {
        axis: title.to_owned(),
        series: if threads {
            vec!["one file".into(), "a file each".into()]
        } else {
            vec!["".into()]
        },
        points,
    })
}
