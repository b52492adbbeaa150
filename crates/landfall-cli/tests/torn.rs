//! Proves that `landfall lab torn` sets its protections up for real, and that what it prints and writes is
//! complete.
//!
//! That more bytes are written is asserted, and not how many times as many: that depends on how many pages a busy machine comes
//! to write in two seconds. Needs MariaDB, and root for the filesystems; where they cannot be had the
//! test says so and passes.

mod common;

use std::fs;

use common::documents::{assert_conforms, assert_narrow, lines_of};
use common::{names, run, scratch, skip};
use serde_json::Value;

const SMALL: &str = "lab torn --part disks,postgres,landfall --latency none --rows 50000 --rounds 1 --seconds 2 --tables";

fn words<'a>(line: &'a str, more: &'a str) -> impl Iterator<Item = &'a str> {
    line.split_whitespace().chain(more.split_whitespace())
}

#[test]
fn a_page_that_is_written_twice_costs_more_bytes_and_all_of_it_is_said() {
    let dir = scratch();
    let more = "--json results.json --csv trials.csv --report report";
    let ended = run(dir.path(), words(SMALL, more));
    let absent = ["is not installed", "needs root"];
    if absent
        .iter()
        .any(|why| ended.stdout.contains(why) || ended.stderr.contains(why))
    {
        return skip(&ended.stderr);
    }
    ended.assert_measured();
    assert_narrow(&ended.stdout);
    for part in [
        "MariaDB: who protects pages",
        "this disk",
        "doublewrite and data=journal",
        "PostgreSQL: full_page_writes on and off",
        "Landfall's store: each protection in one engine",
        "report/index.html",
    ] {
        assert!(ended.stdout.contains(part), "{part}: {}", ended.stdout);
    }
    let text = fs::read_to_string(dir.path().join("results.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_conforms(&document);
    let kib = |site: &str, name: &str| {
        let all = document["experiments"][0]["series"].as_array().unwrap();
        let one = all
            .iter()
            .find(|one| one["axes"]["site"] == site && one["axes"]["case"] == name);
        let one = one.unwrap_or_else(|| panic!("no {name} on {site}"));
        one["summary"]["kib"]["median"].as_f64().unwrap()
    };
    let (on, off) = (
        "mariadb innodb_doublewrite=ON",
        "mariadb innodb_doublewrite=OFF",
    );
    let (plain, journal) = ("loop:ext4", "loop:ext4,data=journal");
    let (twice, once) = (kib(plain, on), kib(plain, off));
    assert!(twice > once, "{twice} and {once} KiB");
    let (four_times, journalled) = (kib(journal, on), kib(journal, off));
    assert!(four_times > journalled, "{four_times} and {journalled} KiB");
    assert!(journalled > once, "{journalled} and {once} KiB");
    let images = kib(plain, "postgres full_page_writes=on");
    let changes = kib(plain, "postgres full_page_writes=off");
    assert!(images > changes, "{images} and {changes} KiB");
    let store = |site: &str, protection: &str| {
        kib(site, &format!("landfall-store protection={protection}"))
    };
    let (copied, bare) = (store(plain, "doublewrite"), store(plain, "none"));
    assert!(copied > bare, "{copied} and {bare} KiB");
    let journalled = store(journal, "none");
    assert!(journalled > bare, "{journalled} and {bare} KiB");
    let csv = fs::read_to_string(dir.path().join("trials.csv")).unwrap();
    let lines = lines_of(&csv, b',');
    assert_eq!(lines.len(), 1 + 4 + 2 + 5, "{csv}");
    assert!(lines[1..].iter().all(|line| line[0] == "torn"));
    assert_eq!(names(dir.path()), ["report", "results.json", "trials.csv"]);
}

#[test]
fn a_plan_is_listed_and_wrong_words_are_refused() {
    let dir = scratch();
    let listed = run(dir.path(), ["lab", "torn", "--list"]);
    assert_eq!(listed.code, Some(0), "{listed:#?}");
    for part in [
        "recorder:ext4,data=journal with hdd-7200,cache=off/mariadb innodb_doublewrite=OFF",
        "each commit synced",
        "47 configurations on 8 sites in 5 rounds",
    ] {
        assert!(listed.stdout.contains(part), "{part}: {}", listed.stdout);
    }
    for (line, names_it) in [
        ("--part disk", "disks, conditions, postgres, landfall"),
        ("--latency floppy", "floppy"),
        ("--rows 1", "1000"),
        ("--prove-states 5", "--prove"),
    ] {
        let ended = run(dir.path(), words("lab torn", line));
        assert_eq!(ended.code, Some(2), "{line}: {ended:#?}");
        assert!(ended.stderr.contains(names_it), "{line}: {ended:#?}");
    }
    assert_eq!(names(dir.path()), [""; 0]);
}
