//! Results of earlier runs: what is kept of them, what is removed, and what `compare` takes for the one before.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{Ended, names, run, scratch};
use serde_json::Value;

const MEASURE: &str = "lab sync --rounds 5 --ops 5 --allocation overwrite --sync fdatasync";

fn measure(cwd: &Path) {
    let ended = run(cwd, MEASURE.split(' '));
    assert!(matches!(ended.code, Some(0 | 5)), "{ended:#?}");
}

fn history(cwd: &Path) -> PathBuf {
    cwd.join("landfall-report/history")
}

fn newest(cwd: &Path) -> Value {
    let text = fs::read_to_string(cwd.join("landfall-report/results.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Puts a document there that began on this day of the year 2000, measured in `directory`.
fn put(place: &Path, document: &Value, day: usize, directory: Option<&str>) -> String {
    let mut document = document.clone();
    document["started"] = format!("2000-01-{day:02}T00:00:00Z").into();
    if let Some(directory) = directory {
        document["directory"] = directory.into();
    }
    let name = format!("results-200001{day:02}000000.json");
    fs::write(place.join(&name), document.to_string()).unwrap();
    name
}

fn compare(cwd: &Path, arguments: &str) -> Ended {
    let arguments = arguments.split(' ').filter(|word| !word.is_empty());
    run(cwd, ["compare"].into_iter().chain(arguments))
}

#[test]
fn the_last_twenty_runs_are_kept_and_what_nobody_did_again() {
    let cwd = scratch();
    let cwd = cwd.path();
    measure(cwd);
    assert_eq!(names(&history(cwd)).len(), 1);
    let document = newest(cwd);
    // Of long ago, and of another directory.
    let other = put(&history(cwd), &document, 1, Some("/other"));
    let repeated: Vec<String> = (2..=25)
        .map(|day| put(&history(cwd), &document, day, None))
        .collect();
    for strange in ["results-mine.json", "notes.json", "results-1.json"] {
        fs::write(history(cwd).join(strange), "{}").unwrap();
    }

    measure(cwd);
    let kept = names(&history(cwd));
    assert_eq!(kept.len(), 20 + 1 + 3, "{kept:?}");
    assert!(kept.contains(&other), "{kept:?}");
    let (gone, stay) = repeated.split_at(6);
    assert!(gone.iter().all(|name| !kept.contains(name)), "{kept:?}");
    assert!(stay.iter().all(|name| kept.contains(name)), "{kept:?}");
    let report = names(&cwd.join("landfall-report"));
    assert_eq!(report, ["history", "index.html", "results.json"]);
}

#[test]
fn documents_of_before_there_was_a_history_are_taken_over() {
    let cwd = scratch();
    let cwd = cwd.path();
    measure(cwd);
    let report = cwd.join("landfall-report");
    let document = newest(cwd);
    fs::remove_dir_all(history(cwd)).unwrap();
    let old = put(&report, &document, 1, None);
    fs::write(report.join("results-mine.json"), "{}").unwrap();

    measure(cwd);
    let kept = names(&history(cwd));
    assert_eq!(kept.len(), 3, "{kept:?}");
    assert!(kept.contains(&old), "{kept:?}");
    let left = names(&report);
    assert!(left.contains(&"results-mine.json".to_owned()), "{left:?}");
    assert!(!left.contains(&old), "{left:?}");
}

/// As where none of the strategies that were asked for are supported.
#[test]
fn a_run_that_measured_nothing_is_passed_over_and_not_kept() {
    let cwd = scratch();
    let cwd = cwd.path();
    measure(cwd);
    let before = put(&history(cwd), &newest(cwd), 1, None);
    let mut nothing = newest(cwd);
    nothing["started"] = "2999-01-01T00:00:00Z".into();
    let series = nothing["experiments"][0]["series"].as_array_mut();
    for one in series.unwrap() {
        one["trials"] = Value::Array(Vec::new());
    }
    let report = cwd.join("landfall-report");
    fs::write(report.join("results.json"), nothing.to_string()).unwrap();
    let compared = compare(cwd, "");
    assert_eq!(compared.code, Some(0), "{compared:#?}");
    let said = format!("A is landfall-report/history/{before}, B is landfall-report/history/");
    assert!(compared.stderr.contains(&said), "{compared:#?}");
    // Nor is it taken for a measurement of the directory.
    let listed = run(cwd, ["advise", "--list"]);
    assert!(listed.stdout.starts_with("Nothing: "), "{listed:#?}");
    fs::remove_dir_all(history(cwd)).unwrap();
    let listed = run(cwd, ["advise", "--list"]);
    assert!(!listed.stdout.starts_with("Nothing: "), "{listed:#?}");

    measure(cwd);
    let kept = names(&history(cwd));
    assert!(
        kept.len() == 1 && !kept[0].starts_with("results-2999"),
        "{kept:?}"
    );
}

#[test]
fn compare_finds_the_run_before() {
    let cwd = scratch();
    let cwd = cwd.path();
    let nothing = compare(cwd, "");
    nothing.assert_refused(2);
    assert!(nothing.stderr.contains("run landfall lab twice"));

    measure(cwd);
    let alone = compare(cwd, "");
    alone.assert_refused(2);
    assert!(alone.stderr.contains("once more"), "{alone:#?}");
    compare(cwd, "landfall-report/results.json").assert_refused(2);
    let missing = compare(cwd, "one");
    missing.assert_refused(2);
    assert!(missing.stderr.contains("cannot read one"), "{missing:#?}");

    // Another directory's is not the one before.
    let other = put(&history(cwd), &newest(cwd), 2, Some("/other"));
    compare(cwd, "").assert_refused(2);
    compare(cwd, &format!("landfall-report/history/{other}")).assert_refused(2);
    let before = put(&history(cwd), &newest(cwd), 1, None);
    for arguments in [
        String::new(),
        format!("landfall-report/history/{before}"),
        "--report landfall-report".to_owned(),
    ] {
        let compared = compare(cwd, &arguments);
        assert_eq!(compared.code, Some(0), "{compared:#?}");
        assert!(compared.stdout.contains("overwrite/fdatasync/8K"));
        let said = format!("A is landfall-report/history/{before}, B is landfall-report/history/");
        assert!(compared.stderr.contains(&said), "{compared:#?}");
    }
}

#[test]
fn compare_prefers_the_run_that_measured_the_same_and_no_more() {
    let cwd = scratch();
    let cwd = cwd.path();
    measure(cwd);
    let document = newest(cwd);
    let mut more = document.clone();
    let series = more["experiments"][0]["series"].as_array_mut().unwrap();
    let mut other = series[0].clone();
    other["key"] = "another".into();
    series.push(other);
    let more = put(&history(cwd), &more, 2, None);
    let is_before = |name: &str| {
        let compared = compare(cwd, "");
        assert_eq!(compared.code, Some(0), "{compared:#?}");
        let said = format!("A is landfall-report/history/{name}, B is landfall-report/history/");
        assert!(compared.stderr.contains(&said), "{compared:#?}");
    };
    is_before(&more);
    let same = put(&history(cwd), &document, 1, None);
    is_before(&same);
}
