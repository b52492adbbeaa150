//! The charts of phases and costs.

use serde::Serialize;

use crate::report::charts::{Bar, Chart, Drawing, MOST_ROWS, Panel, is_wide, span};
use crate::section::Section;
use crate::stream::StreamResults;
use landfall_os::humanize::{bytes_text, size_name};
use landfall_results::{Axis, Metric, Series};

/// Rates further apart than this do not fit on the linear scale of a small panel.
const WIDEST_LINEAR: f64 = 4.0;

/// MB/s against the size of the state, a panel per method.
#[derive(Clone, Debug, Serialize)]
pub(in crate::report) struct Sizes {
    log: bool,
    /// Names of the phases that marks refer to.
    phases: [&'static str; 3],
    /// Sizes and their names.
    ticks: Vec<(f64, String)>,
    /// Bytes of dirty data at which the kernel slows writers down, where that is in the picture.
    limit: Option<f64>,
    panels: Vec<SizePanel>,
}

#[derive(Clone, Debug, Serialize)]
struct SizePanel {
    label: String,
    points: Vec<Point>,
    /// The sizes before and after the method's wall.
    wall: Option<(f64, f64)>,
}

#[derive(Clone, Debug, Serialize)]
struct Point {
    x: f64,
    #[serde(flatten)]
    mark: Mark,
}

/// MB/s of a phase.
#[derive(Clone, Debug, Serialize)]
pub(in crate::report) struct Mark {
    /// Index into the chart's phases.
    phase: usize,
    value: f64,
    low: f64,
    high: f64,
    /// The single rounds, where there is more than one.
    rounds: Vec<f64>,
    text: String,
}

/// MB/s of each phase of named strategies.
#[derive(Clone, Debug, Serialize)]
pub(in crate::report) struct Phases {
    log: bool,
    phases: [&'static str; 3],
    rows: Vec<PhaseRow>,
}

#[derive(Clone, Debug, Serialize)]
struct PhaseRow {
    label: String,
    /// None of a strategy that was not measured.
    marks: Vec<Mark>,
}

impl Mark {
    /// The median and the rounds.
    fn marks(&self) -> usize {
        1 + self.rounds.len()
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        [self.value, self.low, self.high]
            .into_iter()
            .chain(self.rounds.iter().copied())
    }
}

impl Sizes {
    /// Marks of a complete drawing: medians, rounds, walls, and the limit in each panel.
    pub fn marks(&self) -> usize {
        let of = |panel: &SizePanel| {
            let points: usize = panel.points.iter().map(|point| point.mark.marks()).sum();
            points + usize::from(panel.wall.is_some()) + usize::from(self.limit.is_some())
        };
        self.panels.iter().map(of).sum()
    }

    /// What is drawn besides the marks.
    pub fn legend(&self) -> Vec<String> {
        let mut legend = Vec::new();
        if self.panels.iter().any(|panel| panel.wall.is_some()) {
            legend.push(
                "A wall is shaded, from the last size before it to the first beyond.".to_owned(),
            );
        }
        if let Some(limit) = self.limit {
            legend.push(format!(
                "The dashed line stands at the dirty limit of {}.",
                bytes_text(limit as u64)
            ));
        }
        legend
    }
}

impl Phases {
    /// Marks of a complete drawing: medians and rounds.
    pub fn marks(&self) -> usize {
        let marks = self.rows.iter().flat_map(|row| &row.marks);
        marks.map(Mark::marks).sum()
    }
}

/// The phases of a save, by their rates.
const RATES: [Metric; 3] = [
    Metric::HandOverMbPerS,
    Metric::SyncMbPerS,
    Metric::TotalMbPerS,
];

fn phase_names(in_memory: bool) -> [&'static str; 3] {
    let total = if in_memory {
        "total"
    } else {
        "total, until durable"
    };
    ["hand-over", "sync", total]
}

/// The mark of a phase, and of the rounds in which it had a rate.
fn mark(series: &Series, rate: Metric) -> Option<Mark> {
    let estimate = series.estimate(rate)?;
    let rounds = series.values(rate);
    Some(Mark {
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
            .map(|mark| Point { x, mark });
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
    Chart {
        id: "stream-size".to_owned(),
        drawing: Drawing::Sizes(Sizes {
            log: span(points.flat_map(|point| point.mark.values())) > WIDEST_LINEAR,
            phases: phase_names(in_memory),
            ticks,
            limit,
            panels,
        }),
    }
    .if_any()
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
    Chart {
        id: format!("stream-{}", section.name()),
        drawing: Drawing::Phases(Phases {
            log: is_wide(marks.flat_map(Mark::values)),
            phases: phase_names(in_memory),
            rows,
        }),
    }
    .if_any()
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
            name: metric.description().label,
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
    Chart {
        id: format!("stream-cost-{}", section.name()),
        drawing: Drawing::Costs {
            labels: measured.into_iter().map(|(label, _)| label).collect(),
            panels,
        },
    }
    .if_any()
}
