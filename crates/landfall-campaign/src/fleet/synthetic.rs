//! Made-up fleets, for tests and examples: disks of some models with log-normal scatter, and whatever is planted among them.

use landfall_lab::sync::{Operations, Strategy, SyncResults};
use landfall_lab::{PlanKind, Preparation, Results, SCHEMA_NAME, SiteDescription};
use landfall_os::{
    Allocation, BlockDevice, DeviceKind, Filesystem, Host, Medium, Space, SyncCall, SyncMethod,
    WriteCache,
};
use landfall_results::metric::Figures;
use landfall_results::{Metric, Series, Trial};

/// A normal deviate, by Box and Muller.
pub fn normal(random: &mut fastrand::Rng) -> f64 {
    let (u, v) = (1.0 - random.f64(), random.f64());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// What a disk of a made-up fleet is like.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Model.
    pub model: &'static str,
    /// Firmware.
    pub firmware: &'static str,
    /// Filesystem.
    pub filesystem: &'static str,
    /// Kernel.
    pub kernel: &'static str,
    /// Microseconds of a write that reaches the device.
    pub write_us: f64,
    /// Microseconds that a flush adds.
    pub flush_us: f64,
    /// How many times as long the 99th percentile takes as the median.
    pub tail: f64,
    /// Standard deviation of the logarithm from disk to disk.
    pub scatter: f64,
}

impl Recipe {
    /// A fast disk as data centres have it.
    pub const NVME: Recipe = Recipe {
        model: "Samsung PM983",
        firmware: "EDA5702Q",
        filesystem: "ext4",
        kernel: "6.12.8",
        write_us: 22.0,
        flush_us: 96.0,
        tail: 3.0,
        scatter: 0.06,
    };
}

/// What a machine with such a disk measures: two writes that are durable, and one that is not.
pub fn results(recipe: &Recipe, random: &mut fastrand::Rng) -> Results {
    let of_disk = (recipe.scatter * normal(random)).exp();
    let tail_of_disk = (recipe.scatter * normal(random)).exp();
    let synced = recipe.write_us + recipe.flush_us;
    let strategies = [
        (Strategy::BASELINE, synced, 1.0),
        (
            Strategy::BASELINE.allocated(Allocation::Append),
            2.2 * synced,
            2.0,
        ),
        (
            Strategy::BASELINE.synced(SyncMethod::direct(SyncCall::Fdatasync)),
            synced,
            1.0,
        ),
        (
            Strategy::BASELINE.synced(SyncMethod::direct(SyncCall::None)),
            recipe.write_us,
            0.0,
        ),
    ];
    let series = strategies.map(|(strategy, us, flushes)| {
        let mut series = Series::new(strategy.into());
        for round in 1..=5 {
            let us = us * of_disk * (0.02 * normal(random)).exp();
            let tail = recipe.tail * tail_of_disk * (0.03 * normal(random)).exp();
            series.trials.push(trial(round, us, tail, flushes));
        }
        // Without a summary, whose intervals take longer than all of the report: that needs none.
        series
    });
    document(recipe, series.into())
}

fn trial(round: u32, us: f64, tail: f64, flushes: f64) -> Trial {
    Trial {
        round,
        figures: Figures::default()
            .with(Metric::Operations, 2_000.0)
            .with(Metric::OpsPerSecond, 1e6 / us)
            .with(Metric::P50Us, us)
            .with(Metric::P99Us, us * tail)
            .with(Metric::P999Us, us * tail * 1.7)
            .with(Metric::Flushes, flushes),
        ..Trial::default()
    }
}

fn document(recipe: &Recipe, series: Vec<Series>) -> Results {
    let found = SyncResults {
        plan: PlanKind::Standard,
        rounds: 5,
        seconds_per_trial: 0.25,
        operations: Operations::ByTime,
        settle_seconds: None,
        pilot: None,
        preparation: Preparation::default(),
        series,
        claims: Vec::new(),
    };
    Results {
        schema: SCHEMA_NAME.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: "landfall lab sync".to_owned(),
        started: "2026-01-02T03:04:05Z".to_owned(),
        seconds: 75.0,
        host: Host {
            kernel: recipe.kernel.to_owned(),
            architecture: "x86_64".to_owned(),
            cpu: None,
            cpus: 32,
            memory_bytes: 128 << 30,
            hypervisor: None,
        },
        directory: "/srv/data".to_owned(),
        site: SiteDescription::default(),
        filesystem: Filesystem {
            kind: recipe.filesystem.to_owned(),
            mount_point: "/srv".into(),
            source: "/dev/nvme0n1".to_owned(),
            options: vec!["rw".to_owned()],
            medium: Medium::Device,
            copy_on_write: false,
            compression: None,
            journal: Some(true),
            direct_io: None,
            atomic_write_bytes: 0,
            space: Space {
                total_bytes: 1 << 40,
                available_bytes: 1 << 39,
            },
            upper: None,
            devices: vec![device(recipe)],
        },
        notices: Vec::new(),
        experiments: vec![found.into()],
    }
}

fn device(recipe: &Recipe) -> BlockDevice {
    BlockDevice {
        name: "nvme0n1".to_owned(),
        number: "259:0".to_owned(),
        kind: DeviceKind::Disk,
        below: Vec::new(),
        model: Some(recipe.model.to_owned()),
        firmware: Some(recipe.firmware.to_owned()),
        virtual_driver: None,
        size_bytes: 1 << 40,
        write_cache: Some(WriteCache::Volatile),
        fua: Some(true),
        logical_block_bytes: 512,
        physical_block_bytes: 4096,
        atomic_write_bytes: 0,
        write_zeroes_bytes: 0,
        rotational: false,
        scheduler: Some("none".to_owned()),
    }
}
