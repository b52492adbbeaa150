//! The charts of phases and costs.

use std::borrow::Cow;

use crate::section::Section;
use crate::stream::StreamResults;
use landfall_os::humanize::size_name;
use landfall_results::view::chart::{
    Bar, Chart, Costs, Drawing, MOST_ROWS, Panel, PhaseMark, PhaseRow, Phases, SizePanel,
    SizePoint, Sizes, is_wide, span,
};
use landfall_results::{Axis, Metric, Series};

/// Rates further apart than this do not fit on the linear scale of a small panel.
const WIDEST_LINEAR: f64 = 4.0;

/// The phases of a save, by their rates.
const RATES: [Metric; 3] = [
    Metric::HandOverMbPerS,
    Metric::SyncMbPerS,
    Metric::TotalMbPerS,
];

fn phase_names(in_memory: bool) -> [Cow<'static, str>; 3] {
    let total = if in_memory {
        "total"
    } else {
        "total, until durable"
    };
    ["hand-over", "sync", total].map(Cow::Borrowed)
}

/// The mark of a phase, and of the rounds in which it had a rate.
fn mark(series: &Series, rate: Metric) -> Option<PhaseMark> {
    let estimate = series.estimate(rate)?;
    let rounds = series.values(rate);
    Some(PhaseMark {
        phase: RATES.iter().position(|one| *one == rate)?,
        value: estimate.median,
        low: estimate.low,
        high: estimate.high,
        rounds: if rounds.len() > 1 { rounds } else { Vec::new() },
        text: series.text(rate),
    })
}

/// MB/s by size, if anything was measured.
pub(super) fn sizes(
    stream: &StreamResults,
    section: &Section<'_>,
    in_memory: bool,
) -> Option<Chart> {
    let mut panels: Vec<SizePanel> = Vec::new();
    let mut ticks: Vec<(f64, String)> = Vec::new();
    for (_, series) in section
        .rows
        .iter()
        .filter(|(_, series)| series.is_measured())
    {
        let axes = &series.axes;
        let size = axes.size?;
        let x = size as f64;
        let points = RATES
            .into_iter()
            .filter_map(|rate| mark(series, rate))
            .map(|mark| SizePoint { x, mark });
        let method = axes.text(Axis::Method);
        match panels.iter_mut().find(|panel| panel.label == method) {
            Some(panel) => panel.points.extend(points),
            None => panels.push(SizePanel {
                label: method,
                points: points.collect(),
                wall: stream
                    .walls
                    .iter()
                    .find(|wall| {
                        (Some(wall.method), Some(wall.allocation))
                            == (axes.stream_method, axes.allocation)
                    })
                    .map(|wall| (wall.size_before as f64, wall.size_after as f64)),
            }),
        }
        if !ticks.iter().any(|(known, _)| *known == x) {
            ticks.push((x, size_name(size)));
        }
    }
    ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (least, most) = (ticks.first()?.0, ticks.last()?.0);
    let limit = stream
        .dirty_limits
        .map(|limits| limits.throttle_bytes as f64)
        .filter(|limit| (least..=most).contains(limit));
    let points = panels.iter().flat_map(|panel| &panel.points);
    let sizes = Sizes {
        log: span(points.flat_map(|point| point.mark.values())) > WIDEST_LINEAR,
        phases: phase_names(in_memory),
        ticks,
        limit,
        panels,
    };
    Chart::new("stream-size", Drawing::Sizes(sizes)).if_any()
}

/// MB/s of hand-over and total of a section, if any of its strategies was measured.
pub(super) fn phases(section: &Section<'_>, in_memory: bool) -> Option<Chart> {
    let rows: Vec<PhaseRow> = drawn(section)
        .into_iter()
        .map(|(label, strategy)| PhaseRow {
            label,
            marks: [Metric::HandOverMbPerS, Metric::TotalMbPerS]
                .into_iter()
                .filter_map(|rate| mark(strategy, rate))
                .collect(),
        })
        .collect();
    let marks = rows.iter().flat_map(|row| &row.marks);
    let phases = Phases {
        log: is_wide(marks.flat_map(PhaseMark::values)),
        phases: phase_names(in_memory),
        rows,
    };
    let id = format!("stream-{}", section.name());
    Chart::new(id, Drawing::Phases(phases)).if_any()
}

/// The rows of a section that a chart has room for.
fn drawn<'a>(section: &Section<'a>) -> Vec<(String, &'a Series)> {
    let mut rows = section.rows.clone();
    if rows.len() > MOST_ROWS {
        let rate = |(_, series): &(String, &Series)| {
            let total = series.median(Metric::TotalMbPerS);
            total.unwrap_or(0.0)
        };
        rows.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
        rows.truncate(MOST_ROWS);
    }
    rows
}

/// What a save costs besides its time.
const COSTS: [Metric; 5] = [
    Metric::LongestStallMs,
    Metric::PeakResidentMib,
    Metric::CpuSPerGib,
    Metric::DeviceWrittenMib,
    Metric::DeviceFlushes,
];

/// What a save costs besides its time, if any strategy of the section was measured.
pub(super) fn costs(section: &Section<'_>) -> Option<Chart> {
    let mut measured = drawn(section);
    measured.retain(|(_, series)| series.is_measured());
    let panels: Vec<Panel> = COSTS
        .into_iter()
        .map(|metric| Panel {
            name: metric.description().label.into(),
            bars: measured
                .iter()
                .filter_map(|(label, series)| {
                    Some(Bar {
                        label: label.clone(),
                        value: series.median(metric)?,
                        bound: false,
                        text: series.text(metric),
                    })
                })
                .collect(),
        })
        .filter(|panel| !panel.bars.is_empty())
        .collect();
    let costs = Costs {
        labels: measured.into_iter().map(|(label, _)| label).collect(),
        panels,
    };
    let id = format!("stream-cost-{}", section.name());
    Chart::new(id, Drawing::Costs(costs)).if_any()
}
