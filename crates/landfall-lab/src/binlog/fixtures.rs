//! Results for tests that need some.

use landfall_results::FilesystemSpec;
use landfall_results::Series;

use super::plan::name;
use super::{BinlogResults, claims};
use crate::configuration::Measurements;
use crate::configuration::fixtures::{measured, measurements};
use crate::{PlanKind, SiteDescription, SiteKind, SiteSpec};

/// By how much rounds differ.
pub(crate) const RATES: [f64; 5] = [1.0, 1.02, 0.98, 1.01, 0.99];

/// MariaDB on a site, at about this rate.
pub(crate) fn mariadb(site: &str, sync: &str, clients: u32, rate: f64) -> Series {
    let spec: SiteSpec = site.parse().unwrap();
    let journalled = !site.contains("ext2");
    let flushes = match (sync, journalled) {
        ("0", _) => 1.0,
        (_, true) => 3.0,
        (_, false) => 2.0,
    };
    let rates = RATES.map(|factor| factor * rate);
    let name = name(sync, 1);
    let mut one = measured(
        &spec.to_string(),
        &name,
        clients,
        &rates,
        8.0 * flushes,
        flushes,
    );
    one.axes.settings.insert("sync_binlog".into(), sync.into());
    one
}

/// MariaDB on these sites, as fast as published of the filesystem where something was.
pub(crate) fn of_all(sites: &[&str]) -> Measurements {
    let mut all = Vec::new();
    for site in sites {
        let (without, one, two) = match *site {
            site if site.starts_with("memory:") => (2_350.0, 900.0, 750.0),
            site if site.contains("ext3") => (1_912.0, 1_060.0, 610.0),
            _ => (2_550.0, 2_300.0, 2_350.0),
        };
        all.push(mariadb(site, "0", 1, without));
        all.push(mariadb(site, "1", 1, one));
        all.push(mariadb(site, "0", 2, without));
        all.push(mariadb(site, "1", 2, two));
    }
    let mut all = measurements(all);
    for site in &mut all.sites {
        let (kind, filesystem_spec) = match site.key.parse().unwrap() {
            SiteSpec::Loop(filesystem_spec) => (SiteKind::Loop, filesystem_spec),
            SiteSpec::Memory(filesystem_spec) => (SiteKind::Memory, filesystem_spec),
            _ => continue,
        };
        site.description = made(kind, filesystem_spec.clone());
        let filesystem = site.filesystem.as_mut().unwrap();
        let options = filesystem_spec.mount_options.split(',');
        filesystem.options = options.map(str::to_owned).collect();
    }
    all
}

fn made(kind: SiteKind, filesystem_spec: FilesystemSpec) -> SiteDescription {
    SiteDescription {
        kind,
        filesystem_spec: Some(filesystem_spec),
        size_bytes: Some(1 << 30),
        latency: None,
        below: None,
    }
}

/// What was published, on the filesystems that it was published of.
pub(crate) fn published() -> Measurements {
    of_all(&[
        "loop:ext2",
        "loop:ext3",
        "loop:ext3,data=writeback",
        "loop:ext3,data=journal",
        "loop:ext4",
        "loop:xfs",
        "memory:ext3",
    ])
}

/// Everything that the experiment finds.
pub(crate) fn binlog_results() -> BinlogResults {
    let mut measurements = published();
    let beside = [
        ("postgres wal_sync_method=fdatasync", 1_500.0),
        ("redis appendfsync=always", 4_000.0),
    ];
    for (name, rate) in beside {
        let rates = RATES.map(|factor| factor * rate);
        measurements
            .series
            .push(measured("loop:ext4", name, 1, &rates, 12.0, 1.0));
    }
    let mut absent = measured("loop:ext4", "redis appendfsync=no", 1, &[], 0.0, 0.0);
    absent.unsupported = Some("Redis is not installed; apt install redis-server".into());
    measurements.series.push(absent);
    BinlogResults {
        plan: PlanKind::Standard,
        rows: 100_000,
        claims: claims::judge(&measurements),
        measurements,
    }
}
