//! Made-up results for tests.

use landfall_os::{Filesystem, Medium, Space};

use super::{DeviceCost, Preparation, Strategy, StrategyResult, Trial};
use crate::sync::summary;
use crate::sync::trial::new_histogram;

/// A trial of 1,000 operations at `rate` per second, with this much writing and flushing for each.
pub(crate) fn trial(round: u32, rate: f64, writes: f64, flushes: f64) -> Trial {
    Trial {
        round,
        operations: 1_000,
        seconds: 1_000.0 / rate,
        ops_per_second: rate,
        first_us: 100.0,
        latency: None,
        cpu_us: 10.0,
        device: Some(DeviceCost {
            writes: Some(writes),
            write_requests: writes + flushes,
            kib: 8.0 * writes,
            flushes,
            reads: 0.0,
        }),
        extension_seconds: 0.0,
        drift: None,
        cut: false,
        preparation: Preparation::default(),
        foreign_cpus: 0.1,
        stolen_cpus: 0.0,
        disturbances: Vec::new(),
    }
}

/// A strategy measured in one round for each rate.
pub(crate) fn measured(
    strategy: Strategy,
    rates: &[f64],
    writes: f64,
    flushes: f64,
) -> StrategyResult {
    let trials: Vec<Trial> = rates
        .iter()
        .enumerate()
        .map(|(index, rate)| trial(index as u32 + 1, *rate, writes, flushes))
        .collect();
    StrategyResult {
        key: strategy.key(),
        allocation: strategy.allocation.to_string(),
        method: strategy.method.to_string(),
        durable: strategy.method.is_durable(),
        size: strategy.size,
        threads: strategy.threads,
        files: strategy.files,
        placement: strategy.placement,
        cache: strategy.cache,
        unsupported: None,
        summary: summary::summary(&trials, &new_histogram()),
        trials,
    }
}

/// A filesystem of this type on a disk.
pub(crate) fn filesystem(kind: &str, medium: Medium) -> Filesystem {
    Filesystem {
        kind: kind.to_owned(),
        mount_point: "/data".into(),
        source: "/dev/sda1".to_owned(),
        options: vec!["rw".to_owned()],
        medium,
        copy_on_write: kind == "btrfs",
        compression: None,
        direct_io: None,
        atomic_write_bytes: 0,
        space: Space {
            total_bytes: 1 << 40,
            available_bytes: 1 << 39,
        },
        upper: None,
        devices: Vec::new(),
    }
}
