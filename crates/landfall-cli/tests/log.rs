//! `landfall log`: a log of the engine's looked at from outside.

mod common;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use common::{Ended, run, scratch};
use landfall::{Log, Options};

fn small() -> Options {
    Options::default()
        .segment_bytes(64 << 10)
        .buffer_bytes(32 << 10)
        .max_unwritten_bytes(16 << 10)
}

fn landfall_log(dir: &Path, what: &str) -> Ended {
    run(dir, ["log", what, "log"])
}

/// Every file with its bytes, once the log has made all the segments that it makes ahead.
fn settled(dir: &Path) -> BTreeMap<OsString, Vec<u8>> {
    let read = || {
        let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
        let files = entries.map(|entry| (entry.file_name(), std::fs::read(entry.path()).unwrap()));
        files.collect::<BTreeMap<_, _>>()
    };
    let mut before = read();
    loop {
        thread::sleep(Duration::from_millis(100));
        let now = read();
        if now == before {
            return now;
        }
        before = now;
    }
}

#[test]
fn a_log_is_dumped_and_verified() {
    let dir = scratch();
    let log = Log::open(dir.path().join("log"), small()).unwrap();
    log.append_durable(b"a first record").unwrap();
    log.append_batch(&[b"one of two", b"the other\n"]).unwrap();
    log.append(&[7; 100_000]).unwrap();
    let open = landfall_log(dir.path(), "verify");
    assert_eq!(open.code, Some(4), "{open:#?}");
    assert!(open.stderr.contains("open elsewhere"), "{open:#?}");
    // What a killed process leaves.
    let killed = dir.path().join("killed");
    std::fs::create_dir(&killed).unwrap();
    for (name, bytes) in settled(&dir.path().join("log")) {
        std::fs::write(killed.join(name), bytes).unwrap();
    }
    log.close().unwrap();
    let verified = run(dir.path(), ["log", "verify", "killed"]);
    assert_eq!(verified.code, Some(0), "{verified:#?}");
    assert!(
        verified
            .stdout
            .contains("opened 1 time, not closed cleanly"),
        "{verified:#?}"
    );

    let dumped = landfall_log(dir.path(), "dump");
    assert_eq!(dumped.code, Some(0), "{dumped:#?}");
    for part in [
        "a first record",
        "[batch begins] one of two",
        "[batch ends] the other\\n",
        "[begins] \\x07",
        "[ends] \\x07",
        "opened 1 time, closed cleanly; records 1 to 4",
        "segment-000001  segment 1",
    ] {
        assert!(dumped.stdout.contains(part), "{part}: {}", dumped.stdout);
    }
    let verified = landfall_log(dir.path(), "verify");
    assert_eq!(verified.code, Some(0), "{verified:#?}");
    assert!(
        verified.stdout.starts_with("whole: 4 records of "),
        "{verified:#?}"
    );
}

#[test]
fn a_log_without_records_has_none() {
    let dir = scratch();
    let log = Log::open(dir.path().join("log"), small()).unwrap();
    log.close().unwrap();
    let verified = landfall_log(dir.path(), "verify");
    assert_eq!(verified.code, Some(0), "{verified:#?}");
    let said = "opened 1 time, closed cleanly; no records; blocks of ";
    assert!(verified.stdout.contains(said), "{verified:#?}");
}

#[test]
fn what_is_damaged_or_no_log_is_said_in_a_sentence() {
    let dir = scratch();
    let missing = landfall_log(dir.path(), "dump");
    assert_eq!(missing.code, Some(2), "{missing:#?}");
    assert!(
        missing.stderr.contains("there is no directory"),
        "{missing:#?}"
    );
    std::fs::create_dir(dir.path().join("log")).unwrap();
    let empty = landfall_log(dir.path(), "verify");
    assert_eq!(empty.code, Some(2), "{empty:#?}");
    assert!(empty.stderr.contains("holds no log"), "{empty:#?}");
    std::fs::write(dir.path().join("log/letters"), "mine").unwrap();
    let other = landfall_log(dir.path(), "verify");
    assert_eq!(other.code, Some(2), "{other:#?}");
    assert!(other.stderr.contains("holds no log"), "{other:#?}");
    std::fs::remove_file(dir.path().join("log/letters")).unwrap();

    let log = Log::open(dir.path().join("log"), small()).unwrap();
    for _ in 0..300 {
        log.append_durable(&[1; 300]).unwrap();
    }
    log.close().unwrap();
    let segment = dir.path().join("log/segment-000001");
    let file = OpenOptions::new().write(true).open(segment).unwrap();
    file.write_all_at(b"rot", 4096 + 100).unwrap();
    let damaged = landfall_log(dir.path(), "verify");
    assert_eq!(damaged.code, Some(1), "{damaged:#?}");
    assert!(
        damaged
            .stderr
            .contains("segment-000001 is damaged at byte 4096"),
        "{damaged:#?}"
    );
}

#[test]
fn what_is_left_of_a_damaged_log_is_copied() {
    let dir = scratch();
    let log = Log::open(dir.path().join("log"), small()).unwrap();
    for number in 0..100u8 {
        log.append_durable(&[number; 4000]).unwrap();
    }
    log.close().unwrap();
    let salvage = || run(dir.path(), ["log", "salvage", "log", "--to", "new"]);
    let whole = salvage();
    assert_eq!(whole.code, Some(0), "{whole:#?}");
    assert!(whole.stdout.contains("copied 100 records"), "{whole:#?}");
    assert!(whole.stdout.contains("nothing is missing"), "{whole:#?}");
    let refused = salvage();
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("new holds"), "{refused:#?}");

    std::fs::remove_dir_all(dir.path().join("new")).unwrap();
    std::fs::remove_file(dir.path().join("log/segment-000003")).unwrap();
    let before = settled(&dir.path().join("log"));
    let part = salvage();
    assert_eq!(part.code, Some(0), "{part:#?}");
    assert!(
        part.stdout.contains(" are missing; the one behind is "),
        "{part:#?}"
    );
    assert!(settled(&dir.path().join("log")) == before);
    // What was copied is a log like any other, and says which records it has.
    let new = Log::open(dir.path().join("new"), small()).unwrap();
    let mut reader = new.read(new.first_lsn()).unwrap();
    let (mut copied, mut last) = (0, None);
    while let Some(record) = reader.next().unwrap() {
        assert!(record.bytes.len() == 4000 && Some(record.bytes[0]) > last);
        (copied, last) = (copied + 1, Some(record.bytes[0]));
    }
    assert!(
        (70..100).contains(&copied) && last == Some(99),
        "{copied} {last:?}"
    );
}
