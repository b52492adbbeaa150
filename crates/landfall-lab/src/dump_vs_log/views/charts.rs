//! The chart of what a dump, logs and snapshots ask for.

use crate::dump_vs_log::DumpVsLogResults;
use landfall_results::view::chart::{Bar, Chart, Costs, Drawing, Panel};
use landfall_results::{Metric, Saving};

/// What each way asks for, a panel per metric; a dump has no cost per update.
const METRICS: [Metric; 5] = [
    Metric::LongestStallMs,
    Metric::RestartSeconds,
    Metric::UsPerUpdate,
    Metric::Kib,
    Metric::Flushes,
];

/// What each way asks for.
pub(super) fn costs(found: &DumpVsLogResults) -> Option<Chart> {
    let measured: Vec<_> = found.measured(&Saving::ALL).collect();
    let panel = |metric: Metric| {
        let bars = measured.iter().filter_map(|(saving, series)| {
            Some(Bar {
                label: saving.name().to_owned(),
                value: series.median(metric)?,
                bound: false,
                text: series.text(metric),
            })
        });
        Panel {
            name: metric.description().label.into(),
            bars: bars.collect(),
        }
    };
    let panels = METRICS.map(panel).into_iter();
    let costs = Costs {
        labels: measured
            .iter()
            .map(|(saving, _)| saving.name().to_owned())
            .collect(),
        panels: panels.filter(|panel| !panel.bars.is_empty()).collect(),
    };
    Chart::new("saving-cost", Drawing::Costs(costs)).if_any()
}
