//! Proves that `landfall lab binlog` counts what is known, on filesystems of its own and with a real server;
//! that what it prints and writes is complete; and that stopped it leaves nothing, no server either.
//!
//! Counts are asserted, times never are. Needs MariaDB, and root for the filesystems; a test that cannot have
//! them says so and passes.

mod common;

use std::fs;
use std::path::Path;
use std::process::Stdio;

use common::documents::{assert_conforms, assert_narrow, lines_of};
use common::{Ended, comes_true, landfall, names, run, scratch, skip, strategy};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const SMALL: &str =
    "lab binlog --database mariadb --clients 1,2 --rows 1000 --seconds 0.5 --tables";

fn words<'a>(line: &'a str, more: &'a str) -> impl Iterator<Item = &'a str> {
    line.split_whitespace().chain(more.split_whitespace())
}

/// Whether a run has something to check; says why where it has not.
fn has_measured(ended: &Ended) -> bool {
    let absent = ["is not installed", "needs root", "apt install"];
    if ended.code == Some(4) && absent.iter().any(|why| ended.stderr.contains(why)) {
        skip(&ended.stderr);
        return false;
    }
    if ended.stdout.contains("is not installed") {
        skip(&ended.stdout);
        return false;
    }
    ended.assert_measured();
    true
}

#[test]
fn a_growing_log_costs_two_flushes_more_on_ext4_and_all_of_it_is_said() {
    let dir = scratch();
    let more = "--rounds 2 --fs ext4,size=512M --json results.json --csv trials.csv";
    let ended = run(dir.path(), words(SMALL, more));
    if !has_measured(&ended) {
        return;
    }
    assert_narrow(&ended.stdout);
    assert_eq!(ended.stderr, "", "progress is for terminals");
    for part in [
        "Per transaction of one client",
        "MariaDB with 1 client",
        "MariaDB with 2 clients",
        "flushes",
        "Published claims",
        "On ext4 as well",
        "landfall-report/index.html",
    ] {
        assert!(ended.stdout.contains(part), "{part}: {}", ended.stdout);
    }
    let text = fs::read_to_string(dir.path().join("results.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_conforms(&document);
    // The preallocated log is synced in either case, the one that grows only when it is to be.
    for (sync, expected) in [("0", 1.0), ("1", 3.0)] {
        let key = format!("loop:ext4,size=512M/mariadb sync_binlog={sync}/1 client");
        let summary = &strategy(&document, &key)["summary"];
        let flushes = summary["flushes"]["median"].as_f64().unwrap();
        assert!((flushes - expected).abs() < 0.3, "{key}: {summary}");
    }
    let csv = fs::read_to_string(dir.path().join("trials.csv")).unwrap();
    let lines = lines_of(&csv, b',');
    assert_eq!(lines.len(), 1 + 2 * 2 * 2, "{csv}");
    assert!(lines[1..].iter().all(|line| line[0] == "binlog"));

    let compared = run(dir.path(), ["compare", "results.json", "results.json"]);
    assert_eq!(compared.code, Some(0), "{compared:#?}");
    assert_narrow(&compared.stdout);
    for part in ["requests per second", "mariadb sync_binlog=1/2"] {
        assert!(
            compared.stdout.contains(part),
            "{part}: {}",
            compared.stdout
        );
    }
    assert_eq!(
        names(dir.path()),
        ["landfall-report", "results.json", "trials.csv"]
    );
}

#[test]
fn a_plan_is_listed_with_its_time_and_bytes_and_nothing_is_run() {
    let dir = scratch();
    let listed = run(dir.path(), ["lab", "binlog", "--list"]);
    assert_eq!(listed.code, Some(0), "{listed:#?}");
    for part in [
        "loop:ext3,data=journal/mariadb sync_binlog=1",
        "redis appendfsync=everysec",
        "77 configurations on 9 sites in 5 rounds: about",
        "must be free",
    ] {
        assert!(listed.stdout.contains(part), "{part}: {}", listed.stdout);
    }
    assert_eq!(names(dir.path()), [""; 0]);
}

/// Of a database that is linked in, so that no server is needed.
#[test]
fn settings_are_tried_against_what_is_durable_without_them() {
    let dir = scratch();
    let line =
        "lab binlog --on dir --database sqlite --rounds 2 --seconds 0.05 --json results.json";
    fs::write(
        dir.path().join("sqlite.sql"),
        "PRAGMA synchronous = NORMAL;\n",
    )
    .unwrap();
    for more in ["--set synchronous=normal", "--config sqlite.sql"] {
        let ended = run(dir.path(), words(line, more));
        ended.assert_measured();
        assert!(
            ended.stdout.contains("With synchronous=normal, one client"),
            "{ended:#?}"
        );
        let text = fs::read_to_string(dir.path().join("results.json")).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        assert_conforms(&document);
        let synchronous = |name: &str| {
            let one = strategy(&document, &format!("dir/{name}/1 client"));
            assert!(
                one["trials"]
                    .as_array()
                    .is_some_and(|trials| trials.len() == 2)
            );
            one["axes"]["settings"]["synchronous"].clone()
        };
        let durable = "sqlite journal_mode=wal synchronous=full";
        assert_eq!(synchronous(durable), "full");
        assert_eq!(
            synchronous(&format!("{durable} with synchronous=normal")),
            "normal"
        );
    }
}

#[test]
fn a_database_that_is_not_there_is_named_with_how_to_get_it() {
    let dir = scratch();
    let nowhere = scratch();
    let ended = landfall()
        .args(words(SMALL, "--on dir --no-report"))
        .current_dir(dir.path())
        .env("PATH", nowhere.path())
        .output();
    let ended: Ended = ended.expect("the program can be run").into();
    if ended.code == Some(0) {
        return skip("MariaDB is found wherever PATH leads");
    }
    assert_eq!(ended.code, Some(4), "{ended:#?}");
    assert!(
        ended.stdout.contains("apt install mariadb-server"),
        "{ended:#?}"
    );
    assert!(ended.stderr.contains("nothing was measured"), "{ended:#?}");
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn wrong_words_are_refused_before_anything_is_made() {
    let dir = scratch();
    for (line, code, names_it) in [
        ("--database oracle", 2, "mariadb, postgres, redis"),
        ("--clients 0", 2, "0"),
        ("--clients 65", 2, "65"),
        ("--rows 1", 2, "100"),
        ("--on ext4", 2, "is no site"),
        ("--fs zfs", 2, "zfs"),
        ("--latency hdd-7200 --on loop:ext4", 2, "--latency"),
        ("--seconds 0", 2, "seconds"),
        ("--fs ext4 --rows 100000000", 4, "free"),
    ] {
        let ended = run(dir.path(), words("lab binlog", line));
        assert_eq!(ended.code, Some(code), "{line}: {ended:#?}");
        assert!(ended.stderr.contains(names_it), "{line}: {ended:#?}");
        assert_eq!(names(dir.path()), [""; 0], "{line}");
    }
}

/// Processes whose command line speaks of `directory`, but for the run itself.
fn servers_in(directory: &Path) -> Vec<String> {
    let directory = directory.to_str().expect("a plain path");
    let processes = fs::read_dir("/proc").expect("processes can be listed");
    let lines = processes.flatten().filter_map(|process| {
        let line = fs::read(process.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    });
    lines
        .filter(|line| line.contains(directory) && !line.contains("lab binlog"))
        .collect()
}

#[test]
fn a_signal_stops_the_server_too_and_nothing_is_left() {
    let (dir, cwd) = (scratch(), scratch());
    // Its path is short, as that of a socket must be.
    let sockets = tempfile::tempdir().expect("a temporary directory can be made");
    for site in ["dir", "loop:ext4,size=512M"] {
        let mut child = landfall()
            .args(words(SMALL, "--rounds 1000 --quiet --on"))
            .arg(site)
            .arg(dir.path())
            .current_dir(cwd.path())
            .env("TMPDIR", sockets.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be run");
        let mut ended = || matches!(child.try_wait(), Ok(Some(_)));
        // A server of a trial or of the load: both must go.
        let began = comes_true(|| !servers_in(dir.path()).is_empty() || ended());
        assert!(began, "no server was ever started");
        std::thread::sleep(std::time::Duration::from_millis(300));
        if !ended() {
            kill_process(Pid::from_child(&child), Signal::INT).expect("our own child");
        }
        let output = child.wait_with_output().expect("it ends");
        let ended: Ended = output.into();
        if ended.code == Some(4) {
            return skip(&ended.stderr);
        }
        ended.assert_refused(130);
        assert_eq!(servers_in(dir.path()), [""; 0], "a server lives on");
        assert_eq!(names(dir.path()), [""; 0], "left in the directory");
        assert_eq!(names(cwd.path()), [""; 0], "left in the current directory");
        assert_eq!(names(sockets.path()), [""; 0], "left of a socket");
    }
}
