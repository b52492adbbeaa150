//! Results for tests that need some.

use super::AmplifyResults;
use crate::PlanKind;
use crate::configuration::fixtures;
use crate::configuration::{
    ConfigurationResult, FlashWear, Measurements, Owed, Steadiness, Trial, Window,
};

/// A configuration whose requests cost so many KiB, with a database of so many MB.
pub(crate) fn measured(name: &str, kib: f64, megabytes: u64) -> ConfigurationResult {
    let trial = Trial {
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
            kib: vec![kib * 2.0, kib],
        }),
        wear: Some(FlashWear {
            nand_kib: kib * 2.5,
            amplification: 2.5,
            rounding: 1.25,
            copying: 2.0,
            rewrites: 8.0,
            data_bytes: megabytes << 20,
            steady: true,
            years: 3.0,
        }),
        owed: Some(Owed {
            kib: Some(0.5),
            ..Owed::default()
        }),
        database_bytes: megabytes << 20,
        ..fixtures::trial(1, 1_000.0, kib, 1.0)
    };
    let mut one = fixtures::measured("recorder:ext4", name, 4, &[], kib, 1.0);
    one.workload = "linkbench ids=100000".to_owned();
    one.loaded_bytes = Some((megabytes - 5) << 20);
    one.trials = vec![trial];
    fixtures::summarised(one)
}

/// What a run with these configurations found.
pub(crate) fn measurements(configurations: Vec<ConfigurationResult>) -> Measurements {
    Measurements {
        rounds: 1,
        ..fixtures::measurements(configurations)
    }
}

/// The results of such a run.
pub(crate) fn results(configurations: Vec<ConfigurationResult>) -> AmplifyResults {
    let measurements = measurements(configurations);
    AmplifyResults {
        plan: PlanKind::Standard,
        ids: 100_000,
        clients: 4,
        pool_bytes: 10 << 20,
        drive: landfall_recorder::wear::Drive::default().to_string(),
        claims: super::claims::judge(&measurements, 100_000),
        measurements,
    }
}
