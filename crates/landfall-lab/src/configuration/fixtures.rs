//! Results for tests that need some.

use landfall_os::Medium;
use landfall_results::metric::Figures;
use landfall_results::{Axes, Metric, Series, Trial};

use super::Measurements;
use crate::sync::fixtures::filesystem;
use crate::{Preparation, SiteDescription};
use crate::{SiteResult, SiteSpec};

/// A trial of one second.
pub(crate) fn trial(round: u32, rate: f64, kib: f64, flushes: f64) -> Trial {
    let us = 1e6 / rate;
    let bytes = f64::from(100 << 20);
    Trial {
        round,
        figures: Figures::default()
            .with(Metric::Requests, rate.floor())
            .with(Metric::Conflicts, 0.0)
            .with(Metric::Seconds, 1.0)
            .with(Metric::RequestsPerSecond, rate)
            .with(Metric::P50Us, us)
            .with(Metric::P90Us, us * 2.0)
            .with(Metric::P99Us, us * 4.0)
            .with(Metric::P999Us, us * 8.0)
            .with(Metric::MaxUs, us * 16.0)
            .with(Metric::ServerCpuUs, 200.0)
            .with(Metric::ClientCpuUs, 20.0)
            .with(Metric::Writes, 3.0)
            .with(Metric::WriteRequests, 3.0 + flushes)
            .with(Metric::Kib, kib)
            .with(Metric::Flushes, flushes)
            .with(Metric::Reads, 0.0)
            .with(Metric::DatabaseBytes, bytes)
            .with(Metric::PreparationSeconds, 2.0)
            .with(Metric::PreparationBytes, bytes)
            .with(Metric::ForeignCpus, 0.1)
            .with(Metric::StolenCpus, 0.0),
        ..Trial::default()
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
) -> Series {
    let database = name.split(' ').next().unwrap_or_default();
    let mut series = Series::new(Axes {
        site: Some(site.to_owned()),
        case: Some(name.to_owned()),
        database: Some(database.to_owned()),
        workload: Some("oltp_write_only".to_owned()),
        clients: Some(clients),
        ..Axes::default()
    });
    series.empty_bytes = Some(20 << 20);
    series.loaded_bytes = Some(100 << 20);
    let rounds = rates.iter().zip(1..);
    series.trials = rounds
        .map(|(rate, round)| trial(round, *rate, kib, flushes))
        .collect();
    series.summarize();
    series
}

/// What a run with these configurations found.
pub(crate) fn measurements(series: Vec<Series>) -> Measurements {
    let sites = series.iter().filter_map(|one| one.axes.site.as_deref());
    let mut keys: Vec<&str> = sites.collect();
    keys.dedup();
    let sites = keys.iter().map(|key| SiteResult {
        key: (*key).to_owned(),
        label: key
            .parse()
            .map_or_else(|_| (*key).to_owned(), |spec: SiteSpec| spec.label()),
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
        series,
    }
}
