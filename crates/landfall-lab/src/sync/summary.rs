//! From what one trial measured to its figures, and from all latencies to their distribution.

use hdrhistogram::Histogram;
use landfall_os::DeviceCounters;
use landfall_results::metric::Figures;
use landfall_results::{Metric, Trial};

use super::trial::Measured;
use crate::Preparation;

const PERCENTILES: [f64; 15] = [
    0.0, 1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.9, 99.99, 100.0,
];

/// The trial of `round`, from what was measured; `writes` are the requests that carried data, if that is known.
pub(super) fn trial(
    round: u32,
    measured: &Measured,
    writes: Option<u64>,
    preparation: Preparation,
) -> Trial {
    let operations = measured.operations as f64;
    let seconds = measured.elapsed.as_secs_f64();
    let each = |count: u64| count as f64 / operations;
    let device = |pick: fn(&DeviceCounters) -> u64| measured.device.as_ref().map(pick).map(each);
    let first_us = measured.first.as_secs_f64() * 1e6;
    let rest = &measured.rest;
    // The latency of a single operation is its own.
    let latency = |of_rest: u64| {
        let none = rest.is_empty();
        Some(if none {
            first_us
        } else {
            microseconds(of_rest)
        })
    };
    let at = |quantile: f64| latency(rest.value_at_quantile(quantile));
    let (foreign_cpus, stolen_cpus) = measured.foreign;
    Trial {
        round,
        figures: Figures::default()
            .with(Metric::Operations, operations)
            .with(Metric::Seconds, seconds)
            .with(Metric::OpsPerSecond, operations / seconds)
            .with(Metric::FirstUs, first_us)
            .with(Metric::P50Us, at(0.5))
            .with(Metric::P90Us, at(0.9))
            .with(Metric::P99Us, at(0.99))
            .with(Metric::P999Us, at(0.999))
            .with(Metric::MaxUs, latency(rest.max()))
            .with(Metric::CpuUs, measured.cpu.as_secs_f64() * 1e6 / operations)
            .with(Metric::Writes, writes.map(each))
            .with(Metric::WriteRequests, device(|d| d.write_requests))
            .with(
                Metric::Kib,
                device(|d| d.write_bytes).map(|bytes| bytes / 1024.0),
            )
            .with(Metric::Flushes, device(|d| d.flushes))
            .with(Metric::Reads, device(|d| d.reads))
            .with(Metric::ExtensionSeconds, measured.extending.as_secs_f64())
            .with(Metric::Drift, measured.drift)
            .with(Metric::PreparationSeconds, preparation.seconds)
            .with(Metric::PreparationBytes, preparation.bytes as f64)
            .with(Metric::ForeignCpus, foreign_cpus)
            .with(Metric::StolenCpus, stolen_cpus),
        cut: measured.cut,
        ..Trial::default()
    }
}

fn microseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e3
}

/// The percentiles of the latencies of all trials.
pub(super) fn distribution(rest: &Histogram<u64>) -> Vec<(f64, f64)> {
    let percentiles = PERCENTILES.iter().filter(|_| !rest.is_empty());
    percentiles
        .map(|&p| (p, microseconds(rest.value_at_quantile(p / 100.0))))
        .collect()
}
