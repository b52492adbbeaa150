//! From single trials to medians.

use super::{Latency, Summary, Trial};
use crate::configuration::DeviceCost;
use crate::stats::{Estimate, median};

/// Medians over `trials`; nothing of nothing.
pub(super) fn summary(trials: &[Trial]) -> Option<Summary> {
    let over = |figure: &dyn Fn(&Trial) -> Option<f64>| -> Option<Estimate> {
        Estimate::of(&trials.iter().filter_map(figure).collect::<Vec<f64>>())
    };
    let latency = |pick: fn(&Latency) -> f64| over(&|trial| trial.latency.as_ref().map(pick));
    Some(Summary {
        requests_per_second: over(&|trial| Some(trial.requests_per_second))?,
        p50_us: latency(|latency| latency.p50)?,
        p99_us: latency(|latency| latency.p99)?,
        server_cpu_us: over(&|trial| Some(trial.server_cpu_us))?,
        client_cpu_us: over(&|trial| Some(trial.client_cpu_us))?,
        kib: over(&|trial| trial.device.map(|device| device.kib)),
        flushes: over(&|trial| trial.device.map(|device| device.flushes)),
        device: device(trials),
        nand_kib: over(&|trial| trial.wear.map(|wear| wear.nand_kib)),
        owed_kib: over(&|trial| trial.owed.and_then(|owed| owed.kib)),
        database_bytes: over(&|trial| Some(trial.database_bytes as f64)),
    })
}

fn device(trials: &[Trial]) -> Option<DeviceCost> {
    let costs: Vec<DeviceCost> = trials.iter().filter_map(|trial| trial.device).collect();
    let middle = |pick: fn(&DeviceCost) -> f64| median(&costs.iter().map(pick).collect::<Vec<_>>());
    let writes: Vec<f64> = costs.iter().filter_map(|cost| cost.writes).collect();
    Some(DeviceCost {
        writes: median(&writes).filter(|_| writes.len() * 2 > costs.len()),
        write_requests: middle(|cost| cost.write_requests)?,
        kib: middle(|cost| cost.kib)?,
        flushes: middle(|cost| cost.flushes)?,
        reads: middle(|cost| cost.reads)?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::trial;
    use super::*;

    #[test]
    fn medians_are_taken_figure_by_figure() {
        let trials = [
            trial(1, 900.0, 16.0, 2.0),
            trial(2, 1_100.0, 20.0, 3.0),
            trial(3, 1_000.0, 18.0, 1.0),
        ];
        let summary = summary(&trials).unwrap();
        assert_eq!(summary.requests_per_second.median, 1_000.0);
        assert_eq!(summary.kib.unwrap().median, 18.0);
        assert_eq!(summary.device.unwrap().flushes, 2.0);
        assert_eq!(summary.owed_kib, None);
        assert!(super::summary(&[]).is_none());
    }
}
