//! The chart of what a dump and logs ask for.

use crate::dump_vs_log::{DumpVsLogResults, LogResult};
use crate::numbers::{Print, short, thousands, two};
use landfall_results::view::chart::{Bar, Chart, Costs, Drawing, Panel};

/// What each way asks for, a panel per kind; the dump has no cost per update.
pub(super) fn costs(found: &DumpVsLogResults) -> Option<Chart> {
    type Of = fn(&LogResult) -> Option<f64>;
    let dump = &found.dump;
    let kinds: [(&'static str, Option<f64>, Of, Print); 5] = [
        (
            "longest stall, ms",
            Some(dump.hand_over_seconds.median * 1e3),
            |log| Some(log.longest_stall_ms.median),
            short,
        ),
        (
            "restart, seconds",
            Some(dump.restart_seconds.median),
            |log| Some(log.restart_seconds.median),
            two,
        ),
        (
            "µs per update",
            None,
            |log| Some(log.us_per_update.median),
            short,
        ),
        (
            "bytes per update",
            None,
            |log| log.device_bytes_per_update.or(Some(log.bytes_per_update)),
            thousands,
        ),
        (
            "flushes per update",
            None,
            |log| log.flushes_per_update,
            two,
        ),
    ];
    let panels: Vec<Panel> = kinds
        .into_iter()
        .map(|(name, of_dump, of_log, print)| {
            let of_dump = of_dump.map(|value| ("dump", value));
            let of_logs = found
                .logs
                .iter()
                .filter_map(|log| Some((log.policy.name(), of_log(log)?)));
            let bars = of_dump.into_iter().chain(of_logs);
            Panel {
                name: name.into(),
                bars: bars
                    .map(|(label, value)| Bar {
                        label: label.to_owned(),
                        value,
                        bound: false,
                        text: print(value),
                    })
                    .collect(),
            }
        })
        .filter(|panel| !panel.bars.is_empty())
        .collect();
    let policies = found.logs.iter().map(|log| log.policy.name());
    let labels = ["dump"].into_iter().chain(policies).map(str::to_owned);
    let costs = Costs {
        labels: labels.collect(),
        panels,
    };
    Chart::new("saving-cost", Drawing::Costs(costs)).if_any()
}
