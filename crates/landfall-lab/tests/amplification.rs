//! Long trials measured for real, small: steady loads, the wear of a drive, databases loaded in place.
//!
//! Counts are asserted where they are robust, times never are. Recorders need root; where one or a server
//! cannot be had a test says so and passes, which `LANDFALL_NO_SKIP` makes a failure.

use std::fs;
use std::path::Path;

use landfall_lab::configuration::{Configuration, Measurements, Plan, UntilSteady, run};
use landfall_lab::{Error, Silent, Site, Stop};
use landfall_recorder::wear::Drive;
use landfall_results::{Metric, Series, Trial};

fn skip(why: &str) {
    let nothing_is_missing = std::env::var_os("LANDFALL_NO_SKIP").is_some();
    assert!(!nothing_is_missing, "skipped all the same: {why}");
    println!("skipped: {why}");
}

/// On the disk that the program was built on: elsewhere may be memory.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn settings(all: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
    all.iter().map(owned).collect()
}

fn puts(site: &str, name: &str, database: &str, keys: &str) -> Configuration {
    Configuration {
        name: name.to_owned(),
        site: site.parse().unwrap(),
        database: database.to_owned(),
        workload: "puts".to_owned(),
        workload_settings: settings(&[("keys", keys)]),
        clients: 2,
        ..Configuration::default()
    }
}

fn plan(configurations: Vec<Configuration>) -> Plan {
    Plan {
        configurations,
        rounds: 1,
        warm_up_seconds: 0.0,
        steady: Some(UntilSteady {
            window_seconds: 0.1,
            most_seconds: 4.0,
        }),
        seconds: 0.5,
        drive: Some(Drive::default()),
        loads_in_place: false,
        shares_starts: false,
        settles: true,
        loaded_bytes: 200 << 20,
        added_bytes: 16 << 20,
    }
}

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}

/// What the plan finds; `None` where something of it cannot be had.
fn measured(plan: &Plan) -> Option<Measurements> {
    let directory = scratch();
    let site = Site::open(directory.path()).unwrap();
    let found = match run(&site, plan, "test", &Stop::default(), &mut Silent) {
        Ok((found, _)) => found,
        Err(Error::Refused(why)) => {
            skip(&why);
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    site.close().unwrap();
    assert!(is_empty(directory.path()), "something was left");
    let mut missing = found.series.iter();
    match missing.find_map(|one| one.unsupported.as_ref()) {
        Some(why) => {
            skip(why);
            None
        }
        None => Some(found),
    }
}

fn trial(one: &Series) -> &Trial {
    assert_eq!(one.trials.len(), 1);
    &one.trials[0]
}

#[test]
fn each_start_wears_a_drive_that_holds_its_own_data_only() {
    let site = "recorder:ext4";
    let plan = plan(vec![
        puts(site, "small", "sqlite", "2000"),
        puts(site, "large", "sqlite", "100000"),
        puts(site, "small again", "sqlite", "2000"),
    ]);
    let Some(found) = measured(&plan) else { return };
    let figure = |one, metric| trial(one).get(metric).unwrap();
    let flash = |one| figure(one, Metric::FlashBytes);
    // Had they shared a device, the one that was measured last would have all of it.
    let [small, large, again] = found.series.as_slice() else {
        panic!("three were measured");
    };
    let much = f64::from(8 << 20);
    assert!(flash(large) > flash(small) + much, "{found:?}");
    assert!(flash(large) > flash(again) + much, "{found:?}");
    for one in &found.series {
        let kib = figure(one, Metric::Kib);
        assert!(figure(one, Metric::Amplification) >= 1.0, "{one:?}");
        assert!(figure(one, Metric::NandKib) >= kib * 0.95, "{one:?}");
        assert!(figure(one, Metric::Years) > 0.0);
        let trial = trial(one);
        assert!(!trial.windows.is_empty());
        let steadiness = trial.steadiness.as_ref().unwrap();
        assert!(steadiness.reached || steadiness.seconds >= 4.0);
        assert!(trial.get(Metric::OwedKib).is_some());
        assert!(one.empty_bytes.unwrap() < one.loaded_bytes.unwrap());
    }
}

#[test]
fn a_database_can_be_loaded_where_it_is_measured() {
    let plan = Plan {
        loads_in_place: true,
        ..plan(vec![
            puts("dir", "one", "sqlite", "2000"),
            puts("dir", "no such setting", "no-such-database", "2000"),
        ])
    };
    let directory = scratch();
    let site = Site::open(directory.path()).unwrap();
    let (found, _) = run(&site, &plan, "test", &Stop::default(), &mut Silent).unwrap();
    site.close().unwrap();
    assert!(is_empty(directory.path()));
    assert_eq!(found.loads.len(), 1);
    let [one, other] = found.series.as_slice() else {
        panic!("two were planned");
    };
    assert_eq!(one.unsupported, None);
    assert!(one.loaded_bytes.unwrap() > 100_000);
    assert!(trial(one).get(Metric::PreparationBytes) > Some(0.0));
    // A directory has no log of writes.
    assert_eq!(trial(one).get(Metric::NandKib), None);
    assert!(
        other
            .unsupported
            .as_ref()
            .unwrap()
            .contains("no-such-database")
    );
}

#[test]
fn a_site_serves_again_after_a_run_that_was_refused_on_it() {
    let directory = scratch();
    let site = Site::open(directory.path()).unwrap();
    let on = |spec: &str| plan(vec![puts(spec, "one", "sqlite", "2000")]);
    let refused = on("recorder:ext4,no_such_option");
    let refused = run(&site, &refused, "test", &Stop::default(), &mut Silent);
    assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
    let (found, _) = run(&site, &on("dir"), "test", &Stop::default(), &mut Silent).unwrap();
    assert_eq!(trial(&found.series[0]).round, 1);
    site.close().unwrap();
    assert!(is_empty(directory.path()));
}

#[test]
fn smaller_pages_write_less_of_data_that_does_not_fit_the_pool() {
    let innodb = |page: &str| {
        let mut one = puts("recorder:ext4", page, "mariadb", "100000");
        one.loaded_with = settings(&[
            ("innodb_page_size", page),
            ("innodb_log_file_size", "8M"),
            ("innodb_flush_log_at_trx_commit", "0"),
        ]);
        one.settings = settings(&[
            ("innodb_buffer_pool_size", "6M"),
            ("innodb_flush_log_at_trx_commit", "1"),
        ]);
        one
    };
    let pages = ["16K", "8K", "4K"];
    let Some(found) = measured(&plan(pages.map(innodb).to_vec())) else {
        return;
    };
    let kib: Vec<f64> = found
        .series
        .iter()
        .map(|one| trial(one).get(Metric::Kib).unwrap())
        .collect();
    // Those of 16 and of 8 KiB are not far enough apart to be told in so short a time.
    let smallest = kib[2];
    assert!(
        kib[..2].iter().all(|larger| *larger > smallest),
        "{kib:?} for {pages:?}"
    );
    let nand = found
        .series
        .iter()
        .map(|one| trial(one).get(Metric::NandKib).unwrap());
    assert!(nand.zip(&kib).all(|(nand, kib)| nand > *kib));
    // It tells how often its log came round.
    let steadiness = trial(&found.series[0]).steadiness.as_ref().unwrap();
    assert!(steadiness.log_rounds.is_some());
}
