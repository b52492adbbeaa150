use std::fs;

use super::super::DatabaseError;
use super::super::Value;
use super::super::conformance::*;
use super::FILE;
use landfall_os::Stop;

#[test]
fn what_was_acknowledged_is_kept_under_all_settings() {
    for mode in ["wal", "delete", "truncate", "persist"] {
        for level in ["off", "normal", "full", "extra"] {
            keeps_rows(
                "sqlite",
                &format!("journal_mode={mode} synchronous={level}"),
            );
        }
    }
    keeps_rows("sqlite", "page_size=64K cache_size=1M mmap_size=1M");
    keeps_rows("sqlite", "page_size=512 wal_autocheckpoint=0");
    keeps_rows("sqlite", "wal_autocheckpoint=1");
}

#[test]
fn values_come_back_as_they_were_and_changes_are_counted() {
    let fixture = fixture("sqlite", "");
    let mut session = sql(&*fixture.running);
    session
        .run("CREATE TABLE t (id INTEGER PRIMARY KEY, v BLOB); CREATE TABLE words (w CHAR(3));")
        .unwrap();
    let insert = session.prepare("INSERT INTO t (v) VALUES (?)").unwrap();
    let values = [
        Value::Null,
        Value::Integer(i64::MIN),
        Value::Bytes(vec![0, 255]),
    ];
    for (index, value) in values.iter().enumerate() {
        session
            .execute(insert, std::slice::from_ref(value))
            .unwrap();
        assert_eq!(session.last_id().unwrap(), index as i64 + 1);
    }
    let query = session.prepare("SELECT v FROM t ORDER BY id").unwrap();
    let rows = session.query(query, &[]).unwrap();
    assert_eq!(rows, values.map(|value| vec![value]));
    let update = session.prepare("UPDATE t SET v = 1 WHERE id < ?").unwrap();
    assert_eq!(session.execute(update, &[Value::Integer(3)]).unwrap(), 2);
    session.run("INSERT INTO words VALUES ('abc')").unwrap();
    let words = session.prepare("SELECT w FROM words").unwrap();
    let rows = session.query(words, &[]).unwrap();
    assert_eq!(rows, [[Value::Bytes(b"abc".to_vec())]]);
}

#[test]
fn what_was_rolled_back_is_not_there() {
    let fixture = fixture("sqlite", "");
    let mut session = sql(&*fixture.running);
    session.run("CREATE TABLE t (n BIGINT)").unwrap();
    session
        .run("BEGIN IMMEDIATE; INSERT INTO t VALUES (1); ROLLBACK")
        .unwrap();
    let query = session.prepare("SELECT n FROM t").unwrap();
    assert!(session.query(query, &[]).unwrap().is_empty());
}

#[test]
fn a_lock_that_is_not_got_in_time_is_a_conflict() {
    let fixture = fixture("sqlite", "busy_timeout=1");
    let mut one = sql(&*fixture.running);
    let mut other = sql(&*fixture.running);
    one.run("BEGIN IMMEDIATE").unwrap();
    let refused = other.run("BEGIN IMMEDIATE").unwrap_err();
    assert!(matches!(refused, DatabaseError::Conflict(_)), "{refused}");
    one.run("COMMIT").unwrap();
    other.run("BEGIN IMMEDIATE; COMMIT").unwrap();
}

#[test]
fn what_is_only_in_the_log_is_owed() {
    let fixture = fixture("sqlite", "wal_autocheckpoint=0");
    let mut session = sql(&*fixture.running);
    let pending = || {
        fixture
            .running
            .pending_writes()
            .unwrap()
            .dirty_bytes
            .unwrap()
    };
    let before = pending();
    session.run("CREATE TABLE t (n BIGINT)").unwrap();
    assert_eq!(pending() - before, 2 * 4096);
    fixture.running.drain(&Stop::default()).unwrap();
    assert_eq!(pending(), 0);
}

#[test]
fn a_checkpoint_is_waited_for_until_it_is_stopped() {
    let fixture = fixture("sqlite", "wal_autocheckpoint=0 busy_timeout=1");
    let mut session = sql(&*fixture.running);
    session.run("CREATE TABLE t (n BIGINT)").unwrap();
    session.run("BEGIN; SELECT * FROM t").unwrap();
    let stop = Stop::default();
    stop.flag()
        .store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(fixture.running.drain(&stop), Err(DatabaseError::Stopped));
}

#[test]
fn damage_is_found() {
    let fixture = fixture("sqlite", "");
    let mut session = sql(&*fixture.running);
    session
        .run("CREATE TABLE t (n BIGINT); CREATE INDEX i ON t (n); INSERT INTO t VALUES (1)")
        .unwrap();
    drop(session);
    let Fixture {
        running,
        database,
        directory,
    } = fixture;
    running.stop().unwrap();
    let path = directory.path().join(FILE);
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let running = database.start(directory.path(), &Stop::default()).unwrap();
    let said = running.verify(&Stop::default()).unwrap().unwrap();
    assert!(said.contains("index i"), "{said}");

    drop(running);
    fs::write(&path, vec![7; 8192]).unwrap();
    let refused = database.start(directory.path(), &Stop::default());
    let refused = refused.err().unwrap();
    assert!(
        matches!(refused, DatabaseError::DoesNotStart(_)),
        "{refused}"
    );
    fs::remove_file(&path).unwrap();
    assert!(database.start(directory.path(), &Stop::default()).is_err());
}

#[test]
fn what_cannot_be_set_is_refused() {
    let error = |settings| database("sqlite", settings).err().unwrap().to_string();
    assert_eq!(
        error("page_size=1000"),
        "sqlite page_size=1000: it is a power of two"
    );
    assert_eq!(
        error("cache_size=1500"),
        "sqlite cache_size=1500: it is a multiple of 1K"
    );
}
