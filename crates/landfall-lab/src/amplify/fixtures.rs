//! Results for tests that need some.

use landfall_results::{Metric, Series, Steadiness, Trial, Window};

use super::catalogue::Part;
use super::{AmplifyResults, Plan, Updates};
use crate::PlanKind;
use crate::configuration::Measurements;
use crate::configuration::fixtures;

/// A configuration whose requests cost so many KiB, with a database of so many MB.
pub(crate) fn measured(name: &str, kib: f64, megabytes: u64) -> Series {
    let mut trial = Trial {
        windows: (0..10)
            .map(|one| Window {
                requests: 100,
                bytes: (kib * (98.0 + f64::from(one % 5)) * 1024.0) as u64,
            })
            .collect(),
        steadiness: Some(Steadiness {
            reached: true,
            seconds: 8.0,
            change: Some(0.01),
            memtable_flushes: None,
            log_rounds: Some(3.0),
            buffer_filled: None,
            kib: vec![kib * 2.0, kib],
        }),
        is_wear_steady: Some(true),
        ..fixtures::trial(1, 1_000.0, kib, 1.0)
    };
    let bytes = (megabytes << 20) as f64;
    for (metric, value) in [
        (Metric::NandKib, kib * 2.5),
        (Metric::Amplification, 2.5),
        (Metric::Rounding, 1.25),
        (Metric::Copying, 2.0),
        (Metric::Rewrites, 8.0),
        (Metric::FlashBytes, bytes),
        (Metric::Years, 3.0),
        (Metric::OwedKib, 0.5),
        (Metric::OwedSeconds, 0.0),
        (Metric::DatabaseBytes, bytes),
    ] {
        trial.figures.set(metric, value);
    }
    let mut one = fixtures::measured("recorder:ext4", name, 4, &[], kib, 1.0);
    let every_part = Plan {
        parts: Part::ALL.to_vec(),
        ..Plan::standard()
    };
    let mut planned = every_part.configurations().configurations.into_iter();
    let planned = planned.find(|planned| planned.name == name);
    one.axes.part = Some(Part::Databases.name().to_owned());
    one.axes.workload = Some("linkbench ids=100000".to_owned());
    if let Some(planned) = planned {
        one.axes.part = planned.part;
        one.axes.buffer = planned.buffer;
        one.axes.database = Some(planned.database);
    }
    one.loaded_bytes = Some((megabytes - 5) << 20);
    one.trials = vec![trial];
    one.summarize();
    one
}

/// A configuration that updates rows at random, so many bytes written for each that is updated, and so many by formula.
pub(crate) fn updated(name: &str, per_byte: f64, by_formula: impl Into<Option<f64>>) -> Series {
    let (rows, row_bytes) = (100.0, 116.0);
    let mut one = measured(name, per_byte * rows * row_bytes / 1024.0, 150);
    one.axes.workload = Some("puts keys=2000000".to_owned());
    let figures = &mut one.trials[0].figures;
    figures.set(Metric::WrittenPerByte, per_byte);
    figures.set(Metric::ForecastPerByte, by_formula);
    one.summarize();
    one
}

/// What a run with these configurations found.
pub(crate) fn measurements(series: Vec<Series>) -> Measurements {
    Measurements {
        rounds: 1,
        ..fixtures::measurements(series)
    }
}

/// The results of such a run.
pub(crate) fn results(series: Vec<Series>) -> AmplifyResults {
    let measurements = measurements(series);
    AmplifyResults {
        plan: PlanKind::Standard,
        ids: 100_000,
        clients: 4,
        pool_bytes: 10 << 20,
        updates: Updates::of(&Plan {
            parts: vec![Part::Curve],
            ..Plan::standard()
        }),
        drive: landfall_recorder::wear::Drive::default().to_string(),
        claims: super::claims::judge(&measurements, 100_000),
        measurements,
    }
}
