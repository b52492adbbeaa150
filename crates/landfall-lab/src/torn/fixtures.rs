//! Results for tests that need some.

use landfall_results::FilesystemSpec;
use landfall_results::Series;
use landfall_results::proof::Hazard;
use landfall_results::proof::fixtures::exercised;

use super::catalogue::{Condition, Protection, StoreProtection, name, postgres_name, site};
use super::plan::latency;
use super::{Plan, TornProof, TornResults, claims};
use crate::PlanKind;
use crate::configuration::fixtures::{measured, measurements};

const RATES: [f64; 5] = [1.0, 1.02, 0.98, 1.01, 0.99];

fn one(filesystem: FilesystemSpec, disk: &str, name: &str, rate: f64, kib: f64) -> Series {
    let site = site(filesystem, latency(disk)).unwrap().key();
    let rates = RATES.map(|factor| factor * rate);
    let mut one = measured(&site, name, 8, &rates, kib, 0.3);
    one.axes
        .settings
        .insert("full_page_writes".into(), String::new());
    one
}

fn mariadb(protection: Protection, condition: Condition, disk: &str, rate: f64) -> Series {
    let kib = match protection {
        Protection::Doublewrite => 17.0,
        Protection::Nobody => 8.8,
        Protection::Both => 38.0,
        Protection::Journal => 21.7,
    };
    one(
        protection.filesystem_spec(),
        disk,
        &name(protection, condition),
        rate,
        kib,
    )
}

/// What was published, where something was.
pub(crate) fn torn_results() -> TornResults {
    let mut all = Vec::new();
    for (disk, gain) in Plan::LATENCIES.iter().zip([1.55, 1.2, 1.0, 0.9]) {
        let rates = [1_000.0, 1_300.0, 900.0, 1_000.0 * gain];
        for (protection, rate) in Protection::ALL.into_iter().zip(rates) {
            all.push(mariadb(protection, Condition::Published, disk, rate));
        }
    }
    for (condition, gain) in Condition::REMOVED
        .into_iter()
        .zip([0.4, 1.0, 1.0, 1.0, 1.0])
    {
        let disk = Plan::PUBLISHED;
        all.push(mariadb(Protection::Doublewrite, condition, disk, 500.0));
        all.push(mariadb(Protection::Journal, condition, disk, 500.0 * gain));
    }
    for disk in [Plan::PUBLISHED, "none"] {
        all.push(one(
            FilesystemSpec::plain(landfall_results::Kind::Ext4),
            disk,
            &postgres_name(true),
            700.0,
            9.0,
        ));
        all.push(one(
            FilesystemSpec::plain(landfall_results::Kind::Ext4),
            disk,
            &postgres_name(false),
            900.0,
            1.0,
        ));
    }
    for (disk, free, journal) in [
        (Plan::PUBLISHED, 1.5, 1.55),
        (Plan::SSD, 1.5, 1.0),
        (Plan::OWN, 1.5, 1.0),
    ] {
        let figures = [
            (2.0, 9.0),
            (1.0, 17.0),
            (0.8, 12.0),
            (free, 8.5),
            (journal, 17.0),
        ];
        for (protection, (gain, kib)) in StoreProtection::ALL.into_iter().zip(figures) {
            all.push(one(
                protection.filesystem_spec(),
                disk,
                &protection.name(),
                3_000.0 * gain,
                kib,
            ));
        }
    }
    let proof = |subject: &str, name: &str, filesystem_spec: &str, protected, damaged| TornProof {
        name: name.to_owned(),
        filesystem_spec: filesystem_spec.parse().unwrap(),
        model: "subset".to_owned(),
        subject: subject.into(),
        protected,
        states: 200,
        damaged,
        is_least: false,
        wrong: 0,
        losing: damaged,
        exercised: vec![exercised(
            Hazard::PageTorn,
            300,
            60,
            &["innodb_doublewrite"],
        )],
        said: (damaged > 0).then(|| "MariaDB does not start".to_owned()),
        again: format!("landfall prove {subject}"),
        not_proven: None,
    };
    let mut results = TornResults {
        plan: PlanKind::Standard,
        rows: 100_000,
        latencies: Plan::LATENCIES.map(str::to_owned).to_vec(),
        measurements: measurements(all),
        proofs: vec![
            proof("mariadb", "doublewrite, O_DIRECT", "ext4", true, 0),
            proof("mariadb", "nothing, O_DIRECT", "ext4", false, 3),
            proof(
                "mariadb",
                "data=journal, O_DIRECT, commits not synced",
                "ext4,data=journal",
                true,
                0,
            ),
            proof("landfall-store", "protection=none", "ext4", false, 2),
        ],
        claims: Vec::new(),
    };
    results.claims = claims::judge(&results);
    results
}
