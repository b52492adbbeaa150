//! What cannot be done is said in one sentence, and leaves nothing.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;

use landfall_databases::{DatabaseError, Running};
use landfall_lab::Stop;

use crate::{alone, create, left, servers, with};

/// What a start ends with.
fn start(
    name: &str,
    settings: &[(&str, &str)],
    directory: &Path,
    stop: &Stop,
) -> Result<Box<dyn Running>, DatabaseError> {
    with(name, settings).unwrap().start(directory, stop)
}

/// Settings that a server refuses: those that it does not know, and values that it does not take.
fn refused(name: &str) -> &'static [(&'static str, &'static str)] {
    match name {
        "mariadb" => &[
            ("no_such_variable", "1"),
            ("innodb_flush_method", "no_such_method"),
            ("sync_binlog", "often"),
            // Rounded without a word.
            ("innodb_log_file_size", "8000001"),
            // Made the largest there is.
            ("innodb_io_capacity", "1"),
        ],
        "myrocks" => &[
            ("rocksdb_no_such_variable", "1"),
            ("rocksdb_default_cf_options", "no_such_option=1"),
            ("rocksdb_max_open_files", "-7"),
        ],
        "postgres" => &[
            ("no_such_parameter", "1"),
            ("wal_sync_method", "no_such_method"),
            // Rounded without a word.
            ("max_wal_size", "33000kB"),
        ],
        "redis" => &[
            ("no-such-directive", "1"),
            ("aof-load-truncated", "maybe"),
            // Made the largest there is.
            ("hz", "9000"),
        ],
        "etcd" => &[
            ("no-such-flag", "1"),
            ("snapshot-count", "often"),
            // Of the heartbeat's time it must be five times as long.
            ("election-timeout", "20"),
        ],
        _ => &[],
    }
}

#[test]
fn a_setting_that_the_server_refuses_is_named() {
    let _alone = alone();
    for name in servers() {
        if refused(name).is_empty() {
            continue;
        }
        let directory = tempfile::tempdir().unwrap();
        create(&*with(name, &[]).unwrap(), directory.path());
        for &(key, value) in refused(name) {
            let outcome = start(name, &[(key, value)], directory.path(), &Stop::default());
            match outcome.err() {
                Some(DatabaseError::Setting(text)) => {
                    let is_named = text.replace('-', "_").contains(&key.replace('-', "_"));
                    assert!(is_named, "{name} {key}={value}: {text}");
                }
                other => panic!("{name} {key}={value}: {other:?}"),
            }
            left::assert_nothing(directory.path());
        }
    }
}

#[test]
fn what_is_no_data_directory_is_not_started_in() {
    let _alone = alone();
    for name in servers() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("file"), "mine").unwrap();
        let outcome = start(name, &[], directory.path(), &Stop::default());
        let error = outcome.err().unwrap();
        assert!(
            matches!(error, DatabaseError::DoesNotStart(_)),
            "{name}: {error:?}"
        );
        left::assert_nothing(directory.path());
        // And nothing was put there.
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "{name}");
    }
}

#[test]
fn a_server_that_refuses_every_connection_is_not_waited_for() {
    let _alone = alone();
    if !servers().contains(&"postgres") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    create(&*with("postgres", &[]).unwrap(), directory.path());
    // It starts without this, and nobody can be let into a database.
    for database in fs::read_dir(directory.path().join("base"))
        .unwrap()
        .flatten()
    {
        fs::remove_file(database.path().join("PG_VERSION")).unwrap();
    }
    let outcome = start("postgres", &[], directory.path(), &Stop::default());
    match outcome.err() {
        Some(DatabaseError::DoesNotStart(text)) => {
            assert!(text.contains("refuses every connection"), "{text}");
            assert!(
                text.contains("PG_VERSION") || text.contains("data directory"),
                "{text}"
            );
        }
        other => panic!("{other:?}"),
    }
    left::assert_nothing(directory.path());
}

#[test]
fn a_start_is_given_up_when_the_user_asks_for_it() {
    let _alone = alone();
    let stop = Stop::default();
    stop.flag().store(true, Ordering::Relaxed);
    for name in servers() {
        let directory = tempfile::tempdir().unwrap();
        create(&*with(name, &[]).unwrap(), directory.path());
        let outcome = start(name, &[], directory.path(), &stop);
        assert_eq!(outcome.err(), Some(DatabaseError::Stopped), "{name}");
        left::assert_nothing(directory.path());
    }
}
