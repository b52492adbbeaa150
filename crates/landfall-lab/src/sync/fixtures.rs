//! Made-up results for tests.

use landfall_os::{Filesystem, Host, Medium, Space};
use landfall_results::{FilesystemSpec, Kind};

use landfall_results::metric::Figures;
use landfall_results::{Metric, Series, SeriesProof, Trial};

use super::{Operations, Strategy, SyncResults};
use crate::sync::summary;
use crate::sync::trial::merging_histogram;
use crate::{PlanKind, Preparation, Results, SCHEMA_NAME, SiteDescription};

/// A trial of 1,000 operations at `rate` per second, with this much writing and flushing for each.
pub(crate) fn trial(round: u32, rate: f64, writes: f64, flushes: f64) -> Trial {
    Trial {
        round,
        figures: Figures::default()
            .with(Metric::Operations, 1_000.0)
            .with(Metric::Seconds, 1_000.0 / rate)
            .with(Metric::OpsPerSecond, rate)
            .with(Metric::FirstUs, 2e6 / rate)
            .with(Metric::P50Us, 1e6 / rate)
            .with(Metric::P90Us, 1.5e6 / rate)
            .with(Metric::P99Us, 3e6 / rate)
            .with(Metric::P999Us, 4e6 / rate)
            .with(Metric::MaxUs, 5e6 / rate)
            .with(Metric::CpuUs, 10.0)
            .with(Metric::Writes, writes)
            .with(Metric::WriteRequests, writes + flushes)
            .with(Metric::Kib, 8.0 * writes)
            .with(Metric::Flushes, flushes)
            .with(Metric::Reads, 0.0)
            .with(Metric::ExtensionSeconds, 0.0)
            .with(Metric::ForeignCpus, 0.1)
            .with(Metric::StolenCpus, 0.0),
        ..Trial::default()
    }
}

/// A strategy measured in one round for each rate.
pub(crate) fn measured(strategy: Strategy, rates: &[f64], writes: f64, flushes: f64) -> Series {
    let mut rest = merging_histogram();
    let mut series = Series::new(strategy.into());
    for (rate, round) in rates.iter().zip(1..) {
        series.trials.push(trial(round, *rate, writes, flushes));
        rest.saturating_record((1e9 / rate) as u64);
    }
    series.summarize();
    series.distribution = summary::distribution(&rest);
    series
}

/// The strategy, which lost nothing in so many crash states.
pub(crate) fn proven(strategy: Series, states: u64) -> Series {
    losing(strategy, 0, states)
}

/// The strategy, which lost an acknowledged write in some of so many crash states.
pub(crate) fn losing(strategy: Series, losing: u64, states: u64) -> Series {
    Series {
        proof: Some(SeriesProof {
            filesystem_spec: FilesystemSpec::plain(Kind::Ext4),
            states,
            losing,
            worst_lost: losing.min(3),
            not_proven: None,
        }),
        ..strategy
    }
}

/// The strategy, of which nothing could be proven.
pub(crate) fn unproven(strategy: Series) -> Series {
    let mut strategy = losing(strategy, 0, 0);
    if let Some(proof) = &mut strategy.proof {
        proof.not_proven = Some("it cannot be carried out there".to_owned());
    }
    strategy
}

/// A strategy that could not be measured.
pub(crate) fn unmeasured(strategy: Strategy) -> Series {
    Series {
        unsupported: Some("not supported here".to_owned()),
        ..Series::new(strategy.into())
    }
}

/// Found `sync` with these strategies.
pub(crate) fn sync_results(series: Vec<Series>) -> SyncResults {
    SyncResults {
        plan: PlanKind::Standard,
        rounds: 5,
        seconds_per_trial: 0.25,
        operations: Operations::ByTime,
        settle_seconds: None,
        pilot: None,
        preparation: Preparation::default(),
        series,
        claims: Vec::new(),
    }
}

/// A document with these strategies.
pub(crate) fn results(series: Vec<Series>) -> Results {
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
        experiments: vec![sync_results(series).into()],
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
