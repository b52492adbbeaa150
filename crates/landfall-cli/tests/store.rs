//! `landfall store`: a key-value store of the engine's looked at from outside.

mod common;

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use common::{names, run, scratch};
use landfall::{KeyspaceOptions, Store, StoreOptions};

#[test]
fn a_store_is_shown_dumped_and_verified_and_what_is_damaged_is_said() {
    let dir = scratch();
    let path = dir.path().join("store");
    let store = Store::open(&path, StoreOptions::default()).unwrap();
    let small = KeyspaceOptions::default().leaf_bytes(256);
    let stock = store.keyspace("stock", small).unwrap();
    for number in 0..40 {
        stock.insert(format!("apple {number:02}"), "many").unwrap();
    }
    let early = run(dir.path(), ["store", "stat", "store"]);
    assert_eq!(early.code, Some(4), "open elsewhere: {early:#?}");
    store.checkpoint().unwrap();
    stock.remove("apple 07").unwrap();
    stock.insert("pear", [0, 255]).unwrap();
    drop(stock);
    store.close().unwrap();
    let before = files(&path);

    let shown = run(dir.path(), ["store", "stat", "store"]);
    assert_eq!(shown.code, Some(0), "{shown:#?}");
    for part in [
        "stock: 3 leaves in 1 group, ",
        "leaves of 256 bytes, compression lz4",
        "checkpoint 1;",
        ", 2 to apply again",
        "; closed",
    ] {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
    let dumped = run(dir.path(), ["store", "dump", "store"]);
    let lines: Vec<&str> = dumped.stdout.lines().collect();
    assert_eq!(lines.len(), 40, "{dumped:#?}");
    assert_eq!(lines[0], r#"stock  "apple 00"  "many""#);
    assert_eq!(lines[39], r#"stock  "pear"  "\x00\xff""#);
    assert!(!dumped.stdout.contains("apple 07"));
    let other = run(dir.path(), ["store", "dump", "store", "--keyspace", "sold"]);
    other.assert_refused(2);
    assert!(other.stderr.contains("it has: stock"), "{other:#?}");
    let verified = run(dir.path(), ["store", "verify", "store"]);
    assert_eq!(verified.code, Some(0), "{verified:#?}");
    let end = "whole: the log, and 3 leaves with 40 entries\n";
    assert!(verified.stdout.ends_with(end), "{verified:#?}");
    assert_eq!(files(&path), before, "nothing is changed");

    let data = names(&path)
        .into_iter()
        .find(|name| name.starts_with("data-"));
    let data = path.join(data.unwrap());
    // Its first occurrence is stored as it is, and pages above leaves have no first key.
    let key = b"apple 00";
    let bytes = std::fs::read(&data).unwrap();
    let at = bytes.windows(key.len()).position(|part| part == key);
    let data = OpenOptions::new().write(true).open(data).unwrap();
    data.write_all_at(b"rot", at.unwrap() as u64).unwrap();
    let damaged = run(dir.path(), ["store", "verify", "store"]);
    assert_eq!(damaged.code, Some(1), "{damaged:#?}");
    let said = "of 3 leaves 1 cannot be read; all other keys, and the log, are whole";
    assert!(damaged.stderr.contains(said), "{damaged:#?}");
    let which = r#"stock: keys from the first before "apple 14" are in a leaf at byte "#;
    assert!(damaged.stdout.contains(which), "{damaged:#?}");
}

#[test]
fn what_updates_would_write_is_said_for_the_memory_that_is_asked_for() {
    let dir = scratch();
    let path = dir.path().join("store");
    let options = StoreOptions::default().buffer_percent(5);
    let store = Store::open(&path, options).unwrap();
    let rows = store.keyspace("rows", KeyspaceOptions::default()).unwrap();
    let mut batch = store.batch();
    for number in 0..20_000 {
        batch.insert(&rows, format!("{number:08}"), [7; 92]);
    }
    batch.commit().unwrap();
    store.checkpoint().unwrap();
    drop(rows);
    store.close().unwrap();

    let shown = run(dir.path(), ["store", "stat", "store", "--memory", "64K"]);
    assert_eq!(shown.code, Some(0), "{shown:#?}");
    let of_memory =
        "expected with 64 KiB of memory: leaves and runs, for each byte updated at random, ";
    assert!(shown.stdout.contains(of_memory), "{shown:#?}");
    let formula = " = c (1 + tiers + (1 - e^-u) / (2b + m)), c 0.";
    assert!(shown.stdout.contains(formula), "{shown:#?}");
    assert!(shown.stdout.contains("b 5.0%, m 0."), "{shown:#?}");
    // All of it fits into the default.
    let shown = run(dir.path(), ["store", "stat", "store"]);
    assert!(!shown.stdout.contains("expected"), "{shown:#?}");
    let refused = run(dir.path(), ["store", "stat", "store", "--memory", "1K"]);
    assert_eq!(refused.code, Some(2), "{refused:#?}");
}

#[test]
fn what_is_no_store_is_said() {
    let dir = scratch();
    let missing = run(dir.path(), ["store", "stat", "missing"]);
    missing.assert_refused(2);
    let empty = run(dir.path(), ["store", "stat", "."]);
    empty.assert_refused(2);
    assert!(empty.stderr.contains("holds no store"), "{empty:#?}");
    let log = landfall::Log::open(dir.path().join("log"), Default::default()).unwrap();
    log.close().unwrap();
    let other = run(dir.path(), ["store", "verify", "log"]);
    other.assert_refused(2);
    let said = "the directory holds a log, and a store was to be opened";
    assert!(other.stderr.contains(said), "{other:#?}");
    let store = Store::open(dir.path().join("store"), StoreOptions::default()).unwrap();
    store.close().unwrap();
    for found in ["log", "store"] {
        for look in [
            &["state", "verify", found][..],
            &["state", "salvage", found, "--to", "to"],
        ] {
            let other = run(dir.path(), look);
            other.assert_refused(2);
            let said = format!("the directory holds a {found}, and a state was to be opened");
            assert!(other.stderr.contains(&said), "{other:#?}");
        }
        assert!(!dir.path().join("to").exists());
    }
}

fn files(path: &std::path::Path) -> Vec<Vec<u8>> {
    let read = |name: String| fs::read(path.join(name)).unwrap();
    names(path).into_iter().map(read).collect()
}
