//! Configurations measured for real, small: SQLite, which is always there, and MariaDB, where it is.
//!
//! Rows and counts are asserted, times never are. Filesystems that are made need root; where they or a server
//! cannot be had a test says so and passes, which `LANDFALL_NO_SKIP` makes a failure.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use landfall_lab::configuration::{Configuration, Measurements, Plan, run};
use landfall_lab::{Error, Progress, Silent, Site, Stop};
use landfall_results::{Metric, Row, Series};

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

fn puts(site: &str, database: &str, set: &[(&str, &str)], clients: u32) -> Configuration {
    let words = set.iter().map(|(key, value)| format!(" {key}={value}"));
    Configuration {
        name: format!("{database}{}", words.collect::<String>()),
        site: site.parse().unwrap(),
        database: database.to_owned(),
        settings: settings(set),
        workload: "puts".to_owned(),
        workload_settings: settings(&[("keys", "200")]),
        clients,
        ..Configuration::default()
    }
}

fn plan(configurations: Vec<Configuration>) -> Plan {
    Plan {
        configurations,
        rounds: 2,
        warm_up_seconds: 0.05,
        steady: None,
        seconds: 0.2,
        shares_starts: true,
        settles: true,
        drive: None,
        loads_in_place: false,
        loaded_bytes: 200 << 20,
        added_bytes: 16 << 20,
    }
}

fn measured(directory: &Path, plan: &Plan) -> Measurements {
    let site = Site::open(directory).unwrap();
    let (measurements, _) =
        run(&site, plan, "test", &Stop::default(), &mut Silent).unwrap_or_else(|e| panic!("{e}"));
    assert!(is_empty(site.private(), &["loaded"]), "a database was left");
    site.close().unwrap();
    assert!(is_empty(directory, &[]), "something was left");
    measurements
}

fn is_empty(directory: &Path, but: &[&str]) -> bool {
    let mut entries = fs::read_dir(directory).unwrap();
    entries.all(|entry| but.contains(&entry.unwrap().file_name().to_str().unwrap()))
}

fn assert_measured(one: &Series) {
    assert_eq!(one.unsupported, None, "{}", one.key);
    assert_eq!(one.trials.len(), 2);
    assert!(one.median(Metric::RequestsPerSecond) > Some(0.0));
    assert!(one.loaded_bytes.unwrap() > 0);
    for trial in &one.trials {
        for metric in [Metric::Requests, Metric::DatabaseBytes, Metric::P50Us] {
            assert!(trial.get(metric) > Some(0.0), "{metric:?}");
        }
        assert!(trial.get(Metric::OwedSeconds).is_some());
    }
}

#[test]
fn what_cannot_be_had_is_a_row_and_the_rest_is_measured() {
    let directory = scratch();
    let plan = plan(vec![
        puts("dir", "sqlite", &[], 1),
        puts("dir", "sqlite", &[], 2),
        puts("dir", "sqlite", &[("no_such_setting", "1")], 1),
        puts("dir", "no-such-database", &[], 1),
        puts("loop:ext4,size=16M,no_such_option", "sqlite", &[], 1),
    ]);
    let found = measured(directory.path(), &plan);
    assert_eq!(found.series.len(), 5);
    assert_measured(&found.series[0]);
    assert_measured(&found.series[1]);
    // Both trials of a round had one start, and one of them was charged with it.
    let copies = |one: &Series| {
        let copied = one.values(Metric::PreparationBytes).into_iter();
        copied.filter(|bytes| *bytes > 0.0).count()
    };
    assert_eq!(copies(&found.series[0]) + copies(&found.series[1]), 2);
    for (index, why) in [(2, "no_such_setting"), (3, "no-such-database"), (4, "")] {
        let one = &found.series[index];
        let reason = one.unsupported.as_deref().unwrap();
        assert!(reason.contains(why), "{}: {reason}", one.key);
        assert!(one.trials.is_empty() && !one.is_measured());
    }
    assert_eq!(found.sites.len(), 2);
    assert!(found.sites[1].refused.is_some() && found.sites[1].filesystem.is_none());
    assert_eq!(found.loads.len(), 1);
    assert_eq!(found.loads[0].database, "sqlite");
}

#[test]
fn where_no_site_can_be_had_or_no_space_the_run_is_refused() {
    let directory = scratch();
    let site = Site::open(directory.path()).unwrap();
    let refused = |plan: &Plan| match run(&site, plan, "test", &Stop::default(), &mut Silent) {
        Err(Error::Refused(text)) => text,
        other => panic!("{other:?}"),
    };
    let mut plan = plan(vec![puts("loop:ext4,no_such_option", "sqlite", &[], 1)]);
    refused(&plan);
    plan.configurations[0].site = "dir".parse().unwrap();
    plan.loaded_bytes = 1 << 60;
    assert!(refused(&plan).contains("fewer rows"));
    drop(site);
    assert!(is_empty(directory.path(), &[]));
}

/// Requests a stop when the first trial begins.
struct Impatient(Stop);

impl Progress for Impatient {
    fn doing(&mut self, what: &str, _: usize, _: usize, _: Duration) {
        if what.contains('/') {
            self.0.flag().store(true, Ordering::Relaxed);
        }
    }

    fn measured(&mut self, row: &Row<'_>) {
        panic!("{row:?} was measured all the same");
    }
}

#[test]
fn a_run_that_is_stopped_leaves_nothing() {
    let directory = scratch();
    let site = Site::open(directory.path()).unwrap();
    let plan = plan(vec![puts("dir", "sqlite", &[], 1)]);
    let stop = Stop::default();
    let stopped = run(&site, &plan, "test", &stop, &mut Impatient(stop.clone()));
    assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
    site.close().unwrap();
    assert!(is_empty(directory.path(), &[]));
}

#[test]
fn a_server_is_measured_on_filesystems_of_its_own_and_counts_are_as_known() {
    let directory = scratch();
    let mariadb = |site: &str, sync: &str| {
        let small = [
            ("innodb_log_file_size", "16M"),
            ("innodb_buffer_pool_size", "32M"),
        ];
        let mut one = puts(site, "mariadb", &[("sync_binlog", sync)], 1);
        one.loaded_with = settings(&small);
        one
    };
    let sites = ["loop:ext2", "loop:ext4", "memory:ext3"];
    let all = sites
        .iter()
        .flat_map(|site| ["0", "1"].map(|sync| mariadb(site, sync)));
    let plan = Plan {
        settles: false,
        seconds: 1.0,
        ..plan(all.collect())
    };
    let site = Site::open(directory.path()).unwrap();
    let found = match run(&site, &plan, "test", &Stop::default(), &mut Silent) {
        Ok((found, _)) => found,
        Err(Error::Refused(why)) => return skip(&why),
        Err(error) => panic!("{error}"),
    };
    let missing = found.series.iter().find_map(|one| one.unsupported.as_ref());
    if let Some(why) = missing {
        return skip(why);
    }
    // A log that is preallocated costs a flush; one that grows costs one more without a journal, and two
    // with one.
    for (site, without, with) in [
        ("loop:ext2", 1.0, 2.0),
        ("loop:ext4", 1.0, 3.0),
        ("memory:ext3", 1.0, 3.0),
    ] {
        for (sync, expected) in [("0", without), ("1", with)] {
            let one = found
                .find(site, &format!("mariadb sync_binlog={sync}"), 1)
                .unwrap();
            let flushes = one.median(Metric::Flushes).unwrap();
            assert!(
                (flushes - expected).abs() < 0.3,
                "{}: {flushes}, not {expected} flushes",
                one.key
            );
        }
    }
    site.close().unwrap();
    assert!(is_empty(directory.path(), &[]));
}
