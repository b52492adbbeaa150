//! From single trials to medians.

use hdrhistogram::Histogram;

use super::trial::Measured;
use super::{DeviceCost, Latency, Summary, Trial};
use crate::Preparation;
use crate::stats::{Estimate, median};

const PERCENTILES: [f64; 15] = [
    0.0, 1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.9, 99.99, 100.0,
];

/// The trial of `round`, from what was measured.
pub(super) fn trial(
    round: u32,
    measured: &Measured,
    device: Option<DeviceCost>,
    preparation: Preparation,
) -> Trial {
    let operations = measured.operations as f64;
    let seconds = measured.elapsed.as_secs_f64();
    let cpu = measured.cpu.as_secs_f64();
    let (foreign_cpus, stolen_cpus) = measured.foreign;
    Trial {
        round,
        operations: measured.operations,
        seconds,
        ops_per_second: operations / seconds,
        first_us: measured.first.as_secs_f64() * 1e6,
        latency: latency(&measured.rest),
        cpu_us: cpu * 1e6 / operations,
        device,
        extension_seconds: measured.extending.as_secs_f64(),
        drift: measured.drift,
        cut: measured.cut,
        preparation,
        foreign_cpus,
        stolen_cpus,
        disturbances: Vec::new(),
    }
}

fn microseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e3
}

fn latency(rest: &Histogram<u64>) -> Option<Latency> {
    let at = |quantile| microseconds(rest.value_at_quantile(quantile));
    (!rest.is_empty()).then(|| Latency {
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p999: at(0.999),
        max: microseconds(rest.max()),
    })
}

/// Medians over `trials`; `rest` holds the latencies of all of them.
pub(super) fn summary(trials: &[Trial], rest: &Histogram<u64>) -> Option<Summary> {
    let over = |value: &dyn Fn(&Trial) -> Option<f64>| -> Option<Estimate> {
        Estimate::of(&trials.iter().filter_map(value).collect::<Vec<f64>>())
    };
    // A trial of a single operation has a first one only.
    let latency =
        |pick: fn(&Latency) -> f64| over(&|t| Some(t.latency.as_ref().map_or(t.first_us, pick)));
    Some(Summary {
        ops_per_second: over(&|t| Some(t.ops_per_second))?,
        first_us: over(&|t| Some(t.first_us))?,
        p50_us: latency(|l| l.p50)?,
        p99_us: latency(|l| l.p99)?,
        cpu_us: over(&|t| Some(t.cpu_us))?,
        device: device(trials),
        drift: over(&|t| t.drift),
        distribution: PERCENTILES
            .iter()
            .filter(|_| !rest.is_empty())
            .map(|&p| (p, microseconds(rest.value_at_quantile(p / 100.0))))
            .collect(),
    })
}

fn device(trials: &[Trial]) -> Option<DeviceCost> {
    let costs: Vec<DeviceCost> = trials.iter().filter_map(|trial| trial.device).collect();
    let middle = |pick: fn(&DeviceCost) -> f64| median(&costs.iter().map(pick).collect::<Vec<_>>());
    let writes: Vec<f64> = costs.iter().filter_map(|cost| cost.writes).collect();
    Some(DeviceCost {
        // A minority of trials may have been disturbed beyond telling.
        writes: median(&writes).filter(|_| writes.len() * 2 > costs.len()),
        write_requests: middle(|cost| cost.write_requests)?,
        kib: middle(|cost| cost.kib)?,
        flushes: middle(|cost| cost.flushes)?,
        reads: middle(|cost| cost.reads)?,
    })
}
