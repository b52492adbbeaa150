//! Experiment `rename`: what it counts on filesystems that were made for it, and what is lost.

mod common;

use common::run;
use serde_json::Value;

/// The series of a way on a site.
#[track_caller]
fn series<'a>(document: &'a Value, key: &str) -> &'a Value {
    let all = document["experiments"][0]["series"].as_array().unwrap();
    let one = all.iter().find(|one| one["key"] == key);
    one.unwrap_or_else(|| panic!("no {key}: {document:#}"))
}

fn flushes(document: &Value, key: &str) -> f64 {
    let median = &series(document, key)["summary"]["flushes"]["median"];
    median
        .as_f64()
        .unwrap_or_else(|| panic!("{key} was not counted: {document:#}"))
}

/// A journal commit costs two flushes on a device without FUA: one for the file, one for the directory.
#[test]
fn each_sync_costs_a_commit_and_the_proof_says_which_are_needed() {
    if !common::is_root() {
        common::skip("needs root: makes a filesystem on a recorder");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let line = "lab rename . --on recorder:ext4 --rounds 3 --seconds 0.2 --prove --prove-states 60 --no-report --quiet --json -";
    let document = run(directory.path(), line.split(' ')).document();
    let key = |way: &str| format!("recorder:ext4/{way}/4K");
    for (way, expected) in [
        ("truncate+fdatasync", 2.0),
        ("rename", 0.0),
        ("rename+directory", 2.0),
        ("fdatasync+rename", 2.0),
        ("fdatasync+rename+directory", 4.0),
    ] {
        let counted = flushes(&document, &key(way));
        // A commit of the timer, and writing out what was left, are among hundreds.
        assert!(
            (counted - expected).abs() < 0.3,
            "{way}: {counted} flushes, not {expected}"
        );
    }
    let losing = |way: &str| {
        let proof = &series(&document, &key(way))["proof"];
        assert!(proof["states"].as_u64() > Some(0), "{way}: {proof}");
        proof["losing"].as_u64().unwrap()
    };
    assert_eq!(losing("fdatasync+rename+directory"), 0);
    for way in ["rename", "rename+directory", "fdatasync+rename"] {
        assert!(losing(way) > 0, "{way}");
    }
}

#[test]
fn in_a_directory_every_way_is_measured_and_nothing_is_left() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let line =
        "lab rename . --on dir --rounds 1 --seconds 0.01 --size 100 --no-report --quiet --json -";
    let document = run(directory.path(), line.split(' ')).document();
    for way in ["truncate+fdatasync", "fdatasync+rename+directory"] {
        let one = series(&document, &format!("dir/{way}/100"));
        assert!(
            one["trials"][0]["figures"]["operations"].as_f64() >= Some(1.0),
            "{one:#}"
        );
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_way_that_there_is_not_is_refused_with_those_that_there_are() {
    let directory = tempfile::tempdir().unwrap();
    let ended = run(directory.path(), ["lab", "rename", "--way", "link"]);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert!(
        ended.stderr.contains("fdatasync+rename+directory"),
        "{ended:#?}"
    );
}
