//! What is measured of every disk: a metric of a series, under one name on all machines.

use landfall_lab::numbers::thousands;
use landfall_os::Allocation;
use landfall_os::SyncMethod;
use landfall_os::humanize::bytes_text;
use landfall_results::metric::{Better, METRICS};
use landfall_results::{Axes, Axis, CacheState, Metric, Placement};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Latencies of which the slowest are looked at, with the operations that a trial needs for them: of fewer, a percentile is
/// its longest one.
const TAILS: [(Metric, f64); 3] = [
    (Metric::P99Us, 100.0),
    (Metric::P999Us, 1_000.0),
    (Metric::P99StallMs, 0.0),
];

/// A metric of a series.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// The experiment.
    pub experiment: String,
    /// Key of the series.
    pub series: String,
    /// The metric.
    pub metric: Metric,
    /// What the series does, in words: `a durable 8 KiB overwrite`.
    pub what: String,
    /// Whether what it writes is meant to survive a power cut.
    pub durable: bool,
}

impl Figure {
    /// That of a series with these axes.
    pub(super) fn new(experiment: &str, series: &str, axes: &Axes, metric: Metric) -> Figure {
        Figure {
            experiment: experiment.to_owned(),
            series: series.to_owned(),
            metric,
            what: what(axes).unwrap_or_else(|| series.replace('/', " ")),
            durable: axes.is_durable(),
        }
    }

    /// Whether it says how slow the slowest are, and not how fast all of them.
    pub fn is_tail(&self) -> bool {
        TAILS.iter().any(|(metric, _)| *metric == self.metric)
    }

    /// How many times as slow the first value is as the second.
    pub(super) fn slowness(&self, value: f64, than: f64) -> f64 {
        match self.metric.description().better {
            Better::More => than / value,
            Better::Less | Better::Neither => value / than,
        }
    }

    /// A value with its unit: `2,900 ops/s`, `p99 1,210 µs`.
    pub(super) fn text(&self, value: f64) -> String {
        let description = self.metric.description();
        let (heading, text) = (description.heading, self.number(value));
        match heading.strip_suffix(description.unit) {
            // The unit stands at the end of the heading: `p99 µs`.
            Some(name) if !description.unit.is_empty() && !name.is_empty() => {
                let name = name.trim_end();
                format!("{name} {text} {}", description.unit)
            }
            _ => format!("{text} {heading}"),
        }
    }

    /// A value without its unit.
    pub(super) fn number(&self, value: f64) -> String {
        if value >= 1e3 {
            thousands(value)
        } else {
            (self.metric.description().print)(value)
        }
    }
}

/// The metrics that disks are compared by, each with the operations that a trial needs for it.
pub(super) fn compared() -> impl Iterator<Item = (Metric, f64)> {
    let rates = METRICS.iter().filter(|one| one.is_compared);
    rates.map(|one| (one.metric, 0.0)).chain(TAILS)
}

/// What a durable write is, in words; `None` of what has no short name.
fn what(axes: &Axes) -> Option<String> {
    let (allocation, method) = (axes.allocation?, axes.sync_method?);
    let size = bytes_text(axes.size?);
    let is_plain = axes
        .placement
        .is_none_or(|one| one == Placement::Sequential)
        && axes.cache.is_none_or(|one| one == CacheState::Warm);
    if !is_plain {
        return None;
    }
    let kind = if axes.is_durable() {
        "a durable"
    } else {
        "an unsynced"
    };
    let mut text = match allocation {
        Allocation::Overwrite => format!("{kind} {size} overwrite"),
        Allocation::Append => format!("{kind} {size} append"),
        other => format!("{kind} {size} write into {other} space"),
    };
    if method != SyncMethod::FDATASYNC && axes.is_durable() {
        text += &format!(" by {method}");
    } else if method.direct {
        text += " past the page cache";
    }
    if axes.threads.is_some_and(|threads| threads > 1) {
        let threads = axes.text(Axis::Threads);
        let threads = threads.replacen(',', " threads,", 1);
        text += &format!(" ({threads})");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_lab::sync::Strategy;

    fn figure(strategy: Strategy, metric: Metric) -> Figure {
        let axes = Axes::from(strategy);
        Figure::new("sync", &axes.key(), &axes, metric)
    }

    #[test]
    fn a_write_has_a_name_that_people_understand() {
        let of = |strategy| figure(strategy, Metric::P99Us).what;
        assert_eq!(of(Strategy::BASELINE), "a durable 8 KiB overwrite");
        let append = Strategy::BASELINE.allocated(Allocation::Append);
        assert_eq!(of(append), "a durable 8 KiB append");
        let busy = Strategy {
            threads: 16,
            ..Strategy::BASELINE
        };
        assert_eq!(of(busy), "a durable 8 KiB overwrite (16 threads, one file)");
        let cold = Strategy {
            cache: CacheState::Cold,
            ..Strategy::BASELINE
        };
        assert_eq!(of(cold), "overwrite fdatasync 8K cold");
    }

    #[test]
    fn slower_is_more_of_a_time_and_less_of_a_rate() {
        let time = figure(Strategy::BASELINE, Metric::P99Us);
        assert_eq!(time.slowness(300.0, 100.0), 3.0);
        assert_eq!(time.text(1_210.0), "p99 1,210 µs");
        let rate = figure(Strategy::BASELINE, Metric::OpsPerSecond);
        assert_eq!(rate.slowness(100.0, 300.0), 3.0);
        assert_eq!(rate.text(2_900.0), "2,900 ops/s");
        assert!(time.is_tail() && !rate.is_tail());
    }
}
