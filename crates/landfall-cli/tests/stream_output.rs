//! Proves that what `landfall lab stream` and `landfall lab dump-vs-log` print and write is complete, fits the schema, and can be
//! compared.

mod common;

use std::fs;

use common::documents::{assert_conforms, assert_narrow, lines_of};
use common::{names, run, scratch};
use serde_json::Value;

/// A little of everything that experiment `stream` does.
const SMALL_STREAM: &str =
    "lab stream --size 1M,2M --method write,mmap,direct+write --rounds 2 --no-report";
const SMALL_DUMP: &str =
    "lab dump-vs-log --state 1M --updates 200 --seconds 0.1 --rounds 2 --no-report";

/// Every way of keeping a state, in the document's order.
const SAVED: [&str; 9] = [
    "dump",
    "replay",
    "log/never",
    "log/every-second",
    "log/group",
    "log/every-update",
    "file/every-update",
    "snapshot/every-second",
    "snapshot/every-update",
];

#[test]
fn a_stream_is_printed_and_written_in_every_form() {
    let dir = scratch();
    let words = |more: &'static str| {
        SMALL_STREAM
            .split_whitespace()
            .chain(more.split_whitespace())
    };
    let ended = run(dir.path(), words("--tables --json results.json"));
    ended.assert_measured();
    assert_narrow(&ended.stdout);
    assert_eq!(ended.stderr, "", "progress is for terminals");
    for part in [
        "hand-over",
        "write",
        "mmap",
        "Published claims",
        "main memory",
    ] {
        assert!(ended.stdout.contains(part), "{part}: {}", ended.stdout);
    }
    let text = fs::read_to_string(dir.path().join("results.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_conforms(&document);
    assert_eq!(document["experiments"][0]["experiment"], "stream");
    let strategies = document["experiments"][0]["series"].as_array().unwrap();
    assert_eq!(strategies.len(), 6);

    // Two rounds of six strategies, in both separated forms.
    let expected = 1 + 2 * 6;
    let csv = run(dir.path(), words("--csv -"));
    csv.assert_measured();
    let lines = lines_of(&csv.stdout, b',');
    assert_eq!(lines.len(), expected, "{csv:#?}");
    assert!(lines[1..].iter().all(|line| line[0] == "stream"));
    let tsv = run(dir.path(), words("--tsv"));
    tsv.assert_measured();
    let tabbed = lines_of(&tsv.stdout, b'\t');
    assert_eq!((tabbed.len(), &tabbed[0]), (expected, &lines[0]));

    // A run can be held against itself.
    let compared = run(dir.path(), ["compare", "results.json", "results.json"]);
    assert_eq!(compared.code, Some(0), "{compared:#?}");
    assert_narrow(&compared.stdout);
    for part in ["append/write/1M", "until durable", "hand-over"] {
        assert!(
            compared.stdout.contains(part),
            "{part}: {}",
            compared.stdout
        );
    }
    assert_eq!(names(dir.path()), ["results.json"]);
}

#[test]
fn a_dump_and_its_logs_are_printed_and_written_in_every_form() {
    let dir = scratch();
    let words = |more: &'static str| {
        let small = SMALL_DUMP.split_whitespace();
        small.chain(more.split_whitespace())
    };
    let ended = run(dir.path(), words("--tables --json results.json"));
    ended.assert_measured();
    assert_narrow(&ended.stdout);
    assert_eq!(ended.stderr, "", "progress is for terminals");
    for part in ["Dump against log (1 MiB", "every-update"] {
        assert!(ended.stdout.contains(part), "{part}: {}", ended.stdout);
    }
    let text = fs::read_to_string(dir.path().join("results.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_conforms(&document);
    let found = &document["experiments"][0];
    assert_eq!(found["experiment"], "dump-vs-log");
    assert_eq!(found["plan"], "chosen");
    let series = found["series"].as_array().unwrap();
    let saved: Vec<&str> = series
        .iter()
        .map(|one| one["axes"]["saving"].as_str().unwrap())
        .collect();
    assert_eq!(saved, SAVED);

    // Two rounds of each way, in both separated forms.
    let expected = 1 + 2 * SAVED.len();
    let csv = run(dir.path(), words("--csv -"));
    csv.assert_measured();
    let lines = lines_of(&csv.stdout, b',');
    assert_eq!(lines.len(), expected, "{csv:#?}");
    assert!(lines[1..].iter().all(|line| line[0] == "dump-vs-log"));
    let tsv = run(dir.path(), words("--tsv"));
    tsv.assert_measured();
    let tabbed = lines_of(&tsv.stdout, b'\t');
    assert_eq!((tabbed.len(), &tabbed[0]), (expected, &lines[0]));

    // A run can be held against itself, by times as well as by rates.
    let compared = run(dir.path(), ["compare", "results.json", "results.json"]);
    assert_eq!(compared.code, Some(0), "{compared:#?}");
    assert_narrow(&compared.stdout);
    for part in ["log/every-update/1M", "time per update", "restart, s"] {
        assert!(
            compared.stdout.contains(part),
            "{part}: {}",
            compared.stdout
        );
    }
    assert_eq!(names(dir.path()), ["results.json"]);
}
