//! Made-up results for tests.

use landfall_os::{Filesystem, Host, Medium, Space};

use super::{
    DeviceCost, Latency, Operations, Strategy, StrategyProof, StrategyResult, SyncResults, Trial,
};
use crate::sync::summary;
use crate::sync::trial::merging_histogram;
use crate::{Experiment, PlanKind, Preparation, Results, SCHEMA_NAME, SiteDescription};

/// A trial of 1,000 operations at `rate` per second, with this much writing and flushing for each.
pub(crate) fn trial(round: u32, rate: f64, writes: f64, flushes: f64) -> Trial {
    Trial {
        round,
        operations: 1_000,
        seconds: 1_000.0 / rate,
        ops_per_second: rate,
        first_us: 2e6 / rate,
        latency: Some(Latency {
            p50: 1e6 / rate,
            p90: 1.5e6 / rate,
            p99: 3e6 / rate,
            p999: 4e6 / rate,
            max: 5e6 / rate,
        }),
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
    let mut rest = merging_histogram();
    for rate in rates {
        rest.saturating_record((1e9 / rate) as u64);
    }
    StrategyResult {
        summary: summary::summary(&trials, &rest),
        trials,
        ..StrategyResult::new(&strategy)
    }
}

/// The strategy, which lost nothing in so many crash states.
pub(crate) fn proven(strategy: StrategyResult, states: u64) -> StrategyResult {
    losing(strategy, 0, states)
}

/// The strategy, which lost an acknowledged write in some of so many crash states.
pub(crate) fn losing(strategy: StrategyResult, losing: u64, states: u64) -> StrategyResult {
    StrategyResult {
        proof: Some(StrategyProof {
            recipe: "ext4".to_owned(),
            states,
            losing,
            worst_lost: losing.min(3),
            not_proven: None,
        }),
        ..strategy
    }
}

/// The strategy, of which nothing could be proven.
pub(crate) fn unproven(strategy: StrategyResult) -> StrategyResult {
    let mut strategy = losing(strategy, 0, 0);
    if let Some(proof) = &mut strategy.proof {
        proof.not_proven = Some("it cannot be carried out there".to_owned());
    }
    strategy
}

/// A strategy that could not be measured.
pub(crate) fn unmeasured(strategy: Strategy) -> StrategyResult {
    StrategyResult {
        unsupported: Some("not supported here".to_owned()),
        ..StrategyResult::new(&strategy)
    }
}

/// Experiment `sync` with these strategies.
pub(crate) fn sync_results(strategies: Vec<StrategyResult>) -> SyncResults {
    SyncResults {
        plan: PlanKind::Standard,
        rounds: 5,
        seconds_per_trial: 0.25,
        operations: Operations::ByTime,
        settle_seconds: None,
        pilot: None,
        preparation: Preparation::default(),
        strategies,
        claims: Vec::new(),
    }
}

/// A document with these strategies.
pub(crate) fn results(strategies: Vec<StrategyResult>) -> Results {
    Results {
        schema: SCHEMA_NAME.to_owned(),
        version: "0.0.0".to_owned(),
        command: "landfall lab".to_owned(),
        started: "2026-01-02T03:04:05Z".to_owned(),
        seconds: 12.0,
        host: Host {
            kernel: "6.18".to_owned(),
            architecture: "x86_64".to_owned(),
            cpu: None,
            cpus: 4,
            memory_bytes: 8 << 30,
            hypervisor: None,
        },
        directory: "/data".to_owned(),
        site: SiteDescription::default(),
        filesystem: filesystem("ext4", Medium::Device),
        notices: Vec::new(),
        experiments: vec![Experiment::Sync(sync_results(strategies))],
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
        journal: None,
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
