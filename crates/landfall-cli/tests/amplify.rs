//! Proves that `landfall lab amplify` measures the stores that are linked in, in a directory and on a recorder
//! with the wear of a drive; that what it prints and writes is complete; and that nonsense is refused.
//!
//! Counts are asserted where they are robust, times never are. The recorder needs root; a test that cannot
//! have it says so and passes.

mod common;

use std::fs;

use common::documents::{assert_conforms, assert_narrow, lines_of};
use common::{names, notice, run, scratch, skip};
use landfall_databases::Presence;
use serde_json::Value;

const SMALL: &str =
    "lab amplify --part databases --ids 1000 --clients 2 --seconds 0.4 --most-seconds 0.8 --tables";

fn words<'a>(line: &'a str, more: &'a str) -> impl Iterator<Item = &'a str> {
    line.split_whitespace().chain(more.split_whitespace())
}

fn configurations(document: &Value) -> &[Value] {
    let found = &document["experiments"][0]["series"];
    found.as_array().expect("an array of series")
}

/// The databases that are part of the program.
fn linked_in() -> Vec<&'static str> {
    landfall_databases::list()
        .filter(|(_, _, presence)| matches!(presence, Presence::Here { program: None, .. }))
        .map(|(database, ..)| database.name)
        .collect()
}

#[test]
fn what_is_linked_in_is_measured_in_a_directory_and_all_of_it_is_said() {
    let dir = scratch();
    let linked_in = linked_in();
    let more = format!(
        "--on dir --database {} --json results.json --csv trials.csv",
        linked_in.join(",")
    );
    let ended = run(dir.path(), words(SMALL, &more));
    ended.assert_measured();
    assert_narrow(&ended.stdout);
    for part in ["sqlite", "KiB", "owed", "TokuDB"] {
        assert!(ended.stdout.contains(part), "{part}: {}", ended.stdout);
    }
    let text = fs::read_to_string(dir.path().join("results.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_conforms(&document);
    // A directory has no log of writes.
    assert_eq!(notice(&document, "no-wear"), Some("note"));
    let all = configurations(&document);
    assert_eq!(all.len(), linked_in.len());
    for one in all {
        let name = &one["key"];
        assert_eq!(one["unsupported"], Value::Null, "{name}");
        assert!(one["summary"]["database_bytes"]["median"].as_f64() > Some(100_000.0));
        assert!(
            one["trials"][0]["figures"]["requests"].as_u64() > Some(0),
            "{name}"
        );
        assert!(one["trials"][0]["steadiness"].is_object(), "{name}");
    }
    let csv = fs::read_to_string(dir.path().join("trials.csv")).unwrap();
    let lines = lines_of(&csv, b',');
    assert_eq!(lines.len(), 1 + linked_in.len(), "{csv}");
    assert!(lines[1..].iter().all(|line| line[0] == "amplify"));
    assert_eq!(
        names(dir.path()),
        ["landfall-report", "results.json", "trials.csv"]
    );
}

#[test]
fn a_recorder_tells_what_a_drive_makes_of_it() {
    let dir = scratch();
    let more =
        "--database sqlite --drive over-provisioning=28%,tbw=2PB --json results.json --no-report";
    let ended = run(dir.path(), words(SMALL, more));
    let text = fs::read_to_string(dir.path().join("results.json")).unwrap_or_default();
    let document: Value = serde_json::from_str(&text).unwrap_or_default();
    if notice(&document, "directory-only").is_some() {
        return skip("no recorder can be made");
    }
    ended.assert_measured();
    assert_narrow(&ended.stdout);
    assert!(ended.stdout.contains("over-provisioning=28%"));
    let one = &configurations(&document)[0];
    assert_eq!(one["axes"]["site"], "recorder:ext4,rotational");
    let figures = &one["trials"][0]["figures"];
    assert!(figures["amplification"].as_f64() >= Some(1.0), "{figures}");
    // The kernel's page cache writes after the clients have ended, too.
    assert!(figures["nand_kib"].as_f64() > Some(0.0) && figures["kib"].as_f64() > Some(0.0));
}

const CURVE: &str =
    "lab amplify --part curve --ids 1000 --clients 1 --pool 6M --seconds 0.4 --most-seconds 0.8";

#[test]
fn the_curve_is_measured_and_drawn_beside_the_formula_and_others() {
    let dir = scratch();
    let more = "--on dir --json results.json --only";
    let mut line: Vec<&str> = words(CURVE, more).collect();
    line.push("buffer 0%,buffer 11%,sqlite");
    let ended = run(dir.path(), line);
    ended.assert_measured();
    assert_narrow(&ended.stdout);
    assert!(
        ended.stdout.contains("For each byte that is updated"),
        "{ended:#?}"
    );
    let text = fs::read_to_string(dir.path().join("results.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_conforms(&document);
    let updates = &document["experiments"][0]["updates"];
    assert_eq!(
        (&updates["rows"], &updates["of_request"]),
        (&Value::from(20_000), &Value::from(100))
    );
    let all = configurations(&document);
    let at = |one: &Value| one["axes"]["buffer"].as_u64();
    let buffers: Vec<_> = all.iter().map(at).collect();
    assert_eq!(buffers, [Some(0), Some(11), None]);
    for one in all {
        let figures = &one["trials"][0]["figures"];
        let of = |name: &str| figures[name].as_f64();
        // 100 rows of 116 bytes are a request.
        let (kib, per_byte) = (of("kib").unwrap(), of("written_per_byte").unwrap());
        assert!(
            (kib * 1024.0 / 11_600.0 - per_byte).abs() < 0.01 * per_byte,
            "{figures}"
        );
        // The log alone has what is updated, once.
        assert!(per_byte > 0.5, "{figures}");
    }
    let html = fs::read_to_string(dir.path().join("landfall-report/index.html")).unwrap();
    assert!(html.contains("id=\"amplify-curve\""));
    let shown = run(dir.path(), ["show", "--tables", "results.json"]);
    for part in ["bytes/byte", "by formula", "uniform buffer 11%"] {
        assert!(shown.stdout.contains(part), "{part}: {shown:#?}");
    }
}

#[test]
fn a_plan_is_listed_and_nothing_is_run() {
    let dir = scratch();
    let listed = run(dir.path(), ["lab", "amplify", "--list"]);
    assert_eq!(listed.code, Some(0), "{listed:#?}");
    for part in [
        "recorder:ext4,rotational/innodb 8k+2x",
        "recorder:ext4,rotational/innodb in pool redo=small",
        "recorder:ext4,rotational/myrocks zstd",
        "in 1 rounds: about",
    ] {
        assert!(listed.stdout.contains(part), "{part}: {}", listed.stdout);
    }
    assert!(!listed.stdout.contains("buffer"), "{listed:#?}");
    let named = run(dir.path(), words("lab amplify --list --part buffer", ""));
    for part in ["innodb 16k", "landfall buffer 0%", "landfall buffer 16%"] {
        assert!(named.stdout.contains(part), "{part}: {}", named.stdout);
    }
    let curve = run(dir.path(), words("lab amplify --list --part curve", ""));
    for part in ["uniform buffer 0%", "uniform buffer 16%", "uniform sqlite"] {
        assert!(curve.stdout.contains(part), "{part}: {}", curve.stdout);
    }
    assert!(!curve.stdout.contains("zipf"), "{curve:#?}");
    let large = words("lab amplify --list --scale 1B --part pages", "");
    let large = run(dir.path(), large);
    assert!(large.stdout.contains("dir/innodb 16k"), "{large:#?}");
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn nonsense_is_refused_before_anything_is_made() {
    let dir = scratch();
    for (line, code, names_it) in [
        ("--database oracle", 2, "it has: "),
        ("--only 64k", 2, "--list shows them all"),
        ("--database sqlite --only zstd", 2, "--list shows them all"),
        ("--drive speed=3", 2, "a drive has no 'speed'"),
        ("--drive tbw=much", 2, "tbw"),
        ("--drive page=3000", 2, "power of two"),
        ("--pool 1M", 2, "from 6M"),
        ("--ids 10", 2, "1000"),
        ("--clients 0", 2, "0"),
        ("--scale 2M", 2, "2M"),
        ("--part everything", 2, "everything"),
        ("--on dir --on loop:ext4", 2, "one site"),
        ("--latency nvme --on dir", 2, "--latency"),
        // More than any disk has, and than any memory.
        (
            "--ids 2000000000 --on dir --part pages --pool 6M",
            4,
            "needs",
        ),
        ("--pool 16384G --on dir", 4, "--pool"),
    ] {
        let ended = run(dir.path(), words("lab amplify", line));
        assert_eq!(ended.code, Some(code), "{line}: {ended:#?}");
        assert!(ended.stderr.contains(names_it), "{line}: {ended:#?}");
        assert_eq!(names(dir.path()), [""; 0], "{line}");
    }
}
