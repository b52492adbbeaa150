//! Results for tests that need some.

use std::collections::BTreeMap;

use super::{ConfigurationResult, Latency, Measurements, SiteResult, Trial, summary};
use crate::configuration::DeviceCost;
use crate::sync::fixtures::filesystem;
use crate::{Preparation, SiteDescription};
use landfall_os::Medium;

/// A trial of one second.
pub(crate) fn trial(round: u32, rate: f64, kib: f64, flushes: f64) -> Trial {
    let us = 1e6 / rate;
    Trial {
        round,
        requests: rate as u64,
        conflicts: 0,
        seconds: 1.0,
        requests_per_second: rate,
        latency: Some(Latency {
            p50: us,
            p90: us * 2.0,
            p99: us * 4.0,
            p999: us * 8.0,
            max: us * 16.0,
        }),
        kinds: Vec::new(),
        server_cpu_us: 200.0,
        client_cpu_us: 20.0,
        device: Some(DeviceCost {
            writes: Some(3.0),
            write_requests: 3.0 + flushes,
            kib,
            flushes,
            reads: 0.0,
        }),
        windows: Vec::new(),
        steadiness: None,
        wear: None,
        owed: None,
        database_bytes: 100 << 20,
        preparation: Preparation {
            seconds: 2.0,
            bytes: 100 << 20,
        },
        foreign_cpus: 0.1,
        stolen_cpus: 0.0,
        foreign_kib: None,
        disturbances: Vec::new(),
    }
}

/// A configuration with a trial for each of `rates`, each with these KiB and flushes per request.
pub(crate) fn measured(
    site: &str,
    name: &str,
    clients: u32,
    rates: &[f64],
    kib: f64,
    flushes: f64,
) -> ConfigurationResult {
    let trials: Vec<Trial> = rates
        .iter()
        .zip(1..)
        .map(|(rate, round)| trial(round, *rate, kib, flushes))
        .collect();
    ConfigurationResult {
        key: format!("{site}/{name}/{clients}"),
        name: name.to_owned(),
        site: site.to_owned(),
        database: name.split(' ').next().unwrap_or_default().to_owned(),
        settings: BTreeMap::new(),
        workload: "oltp_write_only".to_owned(),
        clients,
        busy: 0,
        empty_bytes: Some(20 << 20),
        loaded_bytes: Some(100 << 20),
        unsupported: None,
        summary: summary::summary(&trials),
        trials,
    }
}

/// The configuration with the summary of the trials that it has.
pub(crate) fn summarised(one: ConfigurationResult) -> ConfigurationResult {
    ConfigurationResult {
        summary: summary::summary(&one.trials),
        ..one
    }
}

/// What a run with these configurations found.
pub(crate) fn measurements(configurations: Vec<ConfigurationResult>) -> Measurements {
    let mut keys: Vec<&str> = configurations.iter().map(|one| one.site.as_str()).collect();
    keys.dedup();
    let sites = keys.iter().map(|key| SiteResult {
        key: (*key).to_owned(),
        description: SiteDescription::default(),
        filesystem: Some(filesystem("ext4", Medium::Device)),
        refused: None,
        preparation: Preparation::default(),
    });
    Measurements {
        rounds: 5,
        warm_up_seconds: 0.5,
        seconds_per_trial: 1.0,
        sites: sites.collect(),
        loads: Vec::new(),
        configurations,
    }
}
