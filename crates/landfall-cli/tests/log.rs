//! `landfall log`: a log of the engine's looked at from outside.

mod common;

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use common::{Ended, run, scratch};
use landfall::{Log, Options};

fn small() -> Options {
    Options {
        segment_bytes: 64 << 10,
        buffer_bytes: 32 << 10,
        write_bytes: 16 << 10,
        ..Options::default()
    }
}

fn landfall_log(dir: &std::path::Path, what: &str) -> Ended {
    run(dir, ["log", what, "log"])
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
    log.close().unwrap();

    let dumped = landfall_log(dir.path(), "dump");
    assert_eq!(dumped.code, Some(0), "{dumped:#?}");
    for part in [
        "a first record",
        "[batch begins] one of two",
        "[batch ends] the other\\n",
        "[begins] \\x07",
        "[ends] \\x07",
        "records 1 to 4",
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
