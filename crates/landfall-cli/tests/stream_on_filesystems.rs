//! Proves what experiment `stream` counts, on filesystems made for the purpose on loop devices: what
//! reaches the device of a state, of a dump and of a log, and that what does not fit is refused or left
//! out before anything is written.
//!
//! Counts are asserted, times never are. Needs root and the `mkfs` programs; a test that cannot have
//! its filesystem says so and passes.

mod common;

use std::fs;
use std::path::Path;
use std::process::Stdio;

use common::{
    EXT4, Ended, FilesystemSpec, LoopFilesystem, SMALL_EXT4, comes_true, fill, has_begun, landfall,
    names, notice, run, scratch, skip, strategy,
};
use serde_json::Value;

const ALL_METHODS: &str =
    "--method write,paced,mmap,mmap-populate,io_uring,direct+write,direct+io_uring";
const ALL_ALLOCATIONS: &str =
    "--allocation append,sparse,unwritten,zero-filled,zero-filled-settled,overwrite";

/// Runs `lab stream` in `dir` and returns the results document.
#[track_caller]
fn stream(dir: &Path, options: &str) -> Value {
    lab("stream", dir, options)
}

/// The document of one experiment.
fn lab(experiment: &str, dir: &Path, options: &str) -> Value {
    let mut command = landfall();
    command.args(["lab", experiment, "--json", "-", "--no-report", "--quiet"]);
    command.args(options.split_whitespace()).arg(dir);
    let ended: Ended = command.output().expect("the program can be run").into();
    ended.document()
}

#[track_caller]
fn figure(document: &Value, key: &str, name: &str) -> f64 {
    let summary = &strategy(document, key)["summary"];
    let value = summary[name]["median"].as_f64();
    value.unwrap_or_else(|| panic!("{key} has no {name}: {document:#}"))
}

#[track_caller]
fn assert_between(value: f64, low: f64, high: f64, what: &str) {
    assert!(
        (low..=high).contains(&value),
        "{what}: {value}, not {low} to {high}"
    );
}

/// Every strategy writes its state once, and flushes it.
#[track_caller]
fn assert_written_once(document: &Value, mib: f64) {
    let strategies = document["experiments"][0]["series"].as_array().unwrap();
    assert!(!strategies.is_empty());
    for strategy in strategies {
        let key = strategy["key"].as_str().unwrap();
        assert_eq!(strategy["unsupported"], Value::Null, "{key}");
        // Zeros that are dirty when the trial begins may be written in it, before they are overwritten.
        let most = if key.starts_with("zero-filled/") {
            2.1
        } else {
            1.1
        };
        let written = figure(document, key, "device_written_mib");
        assert_between(written, mib, mib * most, &format!("{key} written"));
        assert!(figure(document, key, "device_flushes") >= 1.0, "{key}");
        let summary = &strategy["summary"];
        for seconds in ["hand_over_seconds", "sync_seconds", "seconds"] {
            assert!(summary[seconds]["mean"].as_f64().unwrap() > 0.0);
        }
        let trials = strategy["trials"].as_array().unwrap();
        assert_eq!(trials.len(), 3, "{key}");
    }
}

#[test]
fn every_method_and_allocation_writes_a_state_once_on_ext4_and_xfs() {
    let xfs = FilesystemSpec {
        kind: "xfs",
        mib: 320,
        mkfs: "-q -K",
        options: "noatime",
    };
    for filesystem_spec in [EXT4, xfs] {
        let Some(made) = LoopFilesystem::new(filesystem_spec) else {
            return;
        };
        let options = format!("--size 16M --rounds 3 {ALL_METHODS} {ALL_ALLOCATIONS}");
        let document = stream(made.path(), &options);
        assert_written_once(&document, 16.0);
        assert_eq!(
            notice(&document, "left-out"),
            Some("note"),
            "mappings cannot append"
        );
        let limits = &document["experiments"][0]["dirty_limits"];
        assert!(limits["throttle_bytes"].as_u64().unwrap() > 0, "{limits}");
        // What a direct hand-over leaves is nothing, and a buffered one all; a paced one in between.
        let left = |key: &str| {
            let summary = &strategy(&document, key)["summary"];
            summary["left_mib"]["median"].as_f64().unwrap()
        };
        assert_between(left("append/write/16M"), 12.0, 16.0, "left by write");
        assert_between(
            left("append/direct+write/16M"),
            0.0,
            2.0,
            "left by direct writes",
        );
        // A mapping of an existing file reads what it is about to overwrite, and write(2) does not.
        assert_between(
            figure(&document, "overwrite/mmap/16M", "device_read_mib"),
            15.0,
            18.0,
            "read",
        );
        assert_between(
            figure(&document, "overwrite/write/16M", "device_read_mib"),
            0.0,
            1.0,
            "read",
        );
        assert_eq!(
            names(made.path())
                .iter()
                .filter(|n| n.starts_with('.'))
                .count(),
            0
        );
    }
}

#[test]
fn a_device_with_a_limit_of_its_own_is_found_out() {
    let Some(ext4) = LoopFilesystem::new(EXT4) else {
        return;
    };
    let number = ext4.device().trim_start_matches("loop");
    let bdi = format!("/sys/class/bdi/7:{number}");
    let set = |name: &str, value: &str| fs::write(format!("{bdi}/{name}"), value);
    if set("strict_limit", "1")
        .and_then(|()| set("max_bytes", "33554432"))
        .is_err()
    {
        return skip("this kernel has no strict limits for a device");
    }
    let document = stream(ext4.path(), "--size 48M --method write --rounds 1");
    let limits = &document["experiments"][0]["dirty_limits"];
    let own = limits["device_limit_bytes"].as_f64().expect("it is seen");
    assert_between(own, 33e6, 34e6, "device limit");
    assert!(limits["throttle_bytes"].as_f64().unwrap() <= own);
    // And it is in force: the kernel never let all of it be dirty.
    let trial = &strategy(&document, "append/write/48M")["trials"][0];
    assert_between(
        trial["figures"]["left_mib"].as_f64().unwrap(),
        0.0,
        36.0,
        "left",
    );
}

#[test]
fn zeros_are_left_out_by_a_filesystem_that_compresses_and_random_bytes_are_not() {
    let Some(btrfs) = LoopFilesystem::new(FilesystemSpec {
        kind: "btrfs",
        mib: 400,
        mkfs: "-q -K",
        options: "compress=zstd",
    }) else {
        return;
    };
    let options = "--size 32M --method write --rounds 3 --chunk 64K,1M";
    let zeros = stream(btrfs.path(), &format!("{options} --data zeros"));
    let random = stream(btrfs.path(), options);
    for chunk in ["", "/chunk-64K"] {
        let written = |document: &Value, tail: &str| {
            let key = format!("append/write/32M{chunk}{tail}");
            figure(document, &key, "device_written_mib")
        };
        assert_between(written(&zeros, "/zeros"), 0.0, 8.0, "zeros");
        assert_between(written(&random, ""), 31.5, 40.0, "random bytes");
    }
}

#[test]
fn a_dump_and_each_policy_cost_what_they_must_on_ext4() {
    let Some(ext4) = LoopFilesystem::new(EXT4) else {
        return;
    };
    let options = "--state 8M --record 512 --updates 200 --seconds 1 --rounds 3";
    let document = lab("dump-vs-log", ext4.path(), options);
    let found = &document["experiments"][0];
    assert_eq!(found["state_bytes"], 8 << 20);
    assert_eq!(found["cold"], true);
    let figure = |way: &str, metric| figure(&document, &format!("{way}/8M"), metric);
    assert_between(figure("dump", "device_written_mib"), 8.0, 8.6, "dump");
    let logs = [
        // The kernel may commit its journal of its own accord.
        ("log/never", 0.0..=0.05),
        ("log/every-second", 0.0..=0.1),
        ("log/group", 0.1..=1.3),
        // What is written already costs a flush; a file that grows also commits the journal.
        ("log/every-update", 0.95..=1.3),
        ("file/every-update", 1.9..=2.3),
    ];
    for (log, expected) in logs {
        let flushes = figure(log, "flushes");
        assert!(expected.contains(&flushes), "{log}: {flushes} flushes");
        assert!(figure(log, "restart_seconds") > 0.0, "{log}");
    }
    assert_eq!(figure("file/every-update", "program_kib"), 0.5);
    for snapshot in ["snapshot/every-second", "snapshot/every-update"] {
        assert_between(figure(snapshot, "device_written_mib"), 8.0, 12.0, snapshot);
        assert!(figure(snapshot, "longest_capture_ms") > 0.0, "{snapshot}");
    }
    let break_even = found["break_even"].as_array().unwrap();
    assert_eq!(break_even.len(), 10, "five logs by two costs");
}

/// On a recorder every count is exact: the engine's log costs one write and one flush, and the file that grows three
/// and two.
#[test]
fn what_a_durable_update_costs_is_counted_exactly_on_a_recorder() {
    let dir = scratch();
    // The journal is not committed meanwhile but by whoever syncs: the kernel does of its own accord every so many seconds.
    let options = "--on recorder:ext4,commit=300 --state 2M --updates 100 --seconds 0.5 --rounds 3";
    let mut words = vec![
        "lab",
        "dump-vs-log",
        "--no-report",
        "--quiet",
        "--json",
        "-",
    ];
    words.extend(options.split_whitespace());
    let ended = run(dir.path(), words);
    if ended.code == Some(4) {
        return skip(&ended.stderr);
    }
    let document = ended.document();
    let figure = |way: &str, metric| figure(&document, &format!("{way}/2M"), metric);
    let counted = |way| ["writes", "flushes", "kib"].map(|metric| figure(way, metric));
    assert_eq!(counted("log/every-update"), [1.0, 1.0, 0.5]);
    let [writes, flushes, kib] = counted("file/every-update");
    assert_eq!([writes, flushes], [3.0, 2.0]);
    assert_between(kib, 16.0, 18.0, "a page, and the journal's blocks");
    assert_eq!(figure("log/never", "flushes"), 0.0);
    assert_eq!(figure("dump", "device_flushes"), 4.0);
}

/// In memory there is no device to count, no dirty data and nothing cold.
#[test]
fn in_memory_everything_runs_and_nothing_is_durable() {
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else {
        return skip("there is no /dev/shm");
    };
    let document = stream(dir.path(), "--size 4M --method write,mmap --rounds 5");
    assert_eq!(notice(&document, "memory"), Some("danger"));
    let found = &document["experiments"][0];
    for claim in found["claims"].as_array().unwrap() {
        assert_eq!(claim["verdict"], "cannot-be-told", "{claim:#}");
    }
    let summary = &strategy(&document, "append/write/4M")["summary"];
    assert_eq!(summary["device_written_mib"], Value::Null);
    assert_eq!(
        summary["sync_mb_per_s"],
        Value::Null,
        "nothing was left to sync"
    );
    let options = "--rounds 2 --state 1M --updates 100 --seconds 0.2";
    let document = lab("dump-vs-log", dir.path(), options);
    assert_eq!(document["experiments"][0]["cold"], false);
    assert_eq!(notice(&document, "warm-restart"), Some("warning"));
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn a_state_that_does_not_fit_is_refused_or_left_out_before_anything_is_written() {
    let Some(ext4) = LoopFilesystem::new(FilesystemSpec { mib: 376, ..EXT4 }) else {
        return;
    };
    let dir = ext4.path().to_str().unwrap();
    let lab = |options: &str| {
        let mut words = vec!["lab", "--no-report", "--quiet"];
        words.splice(1..1, options.split_whitespace());
        words.push(dir);
        run(ext4.beside(), words)
    };
    for options in [
        "stream --size 4G",
        "stream --size 16M,1G",
        "dump-vs-log --state 128M",
    ] {
        let ended = lab(options);
        ended.assert_refused(4);
        assert!(
            ended.stderr.contains(" free and this plan needs "),
            "{ended:#?}"
        );
        assert!(ended.stderr.contains("name a smaller --"), "{ended:#?}");
        assert_eq!(names(ext4.path()), ["lost+found"]);
    }
    // Sizes that nobody asked for are left out, and it is said which.
    let options = "--method write --rounds 1";
    let document = stream(ext4.path(), options);
    assert_eq!(notice(&document, "sizes-left-out"), Some("note"));
    let found = &document["experiments"][0];
    let left_out: Vec<u64> = [512, 1024, 2048, 4096].map(|mib: u64| mib << 20).to_vec();
    assert_eq!(found["sizes_left_out"], serde_json::json!(left_out));
    assert_eq!(
        found["series"].as_array().unwrap().len(),
        2,
        "128 and 256 MiB"
    );
    // Where not even the smallest fits, the plan says what would.
    let filled = fill(ext4.path(), "filler", 280 << 20);
    assert!(filled >= 240 << 20, "{filled}");
    let ended = lab("stream");
    ended.assert_refused(4);
    assert!(ended.stderr.contains("name a smaller --size"), "{ended:#?}");
    assert_eq!(names(ext4.path()), ["filler", "lost+found"]);
}

#[test]
fn a_filesystem_that_fills_up_half_way_ends_the_run_in_good_order() {
    // A full disk is a bus error to a mapping, if one does not look out.
    for options in [
        "stream --size 24M --method write",
        "stream --size 24M --method mmap",
        "stream --size 24M --method mmap-populate",
        "stream --size 24M --method io_uring,direct+io_uring",
        "dump-vs-log --state 4M --updates 5000",
    ] {
        let Some(ext4) = LoopFilesystem::new(SMALL_EXT4) else {
            return;
        };
        let child = landfall()
            .arg("lab")
            .args(options.split_whitespace())
            .args(["--no-report", "--rounds", "1000"])
            .arg(ext4.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be run");
        assert!(comes_true(|| has_begun(ext4.path())), "it never began");
        // Whatever a trial gives back is taken before the next one.
        let mut child = child;
        let mut fillers = 0;
        let ended = comes_true(|| {
            fillers += 1;
            fill(ext4.path(), &format!("filler-{fillers}"), u64::MAX);
            matches!(child.try_wait(), Ok(Some(_)))
        });
        assert!(ended, "still running: {options}");
        let ended: Ended = child.wait_with_output().expect("it ends").into();
        ended.assert_refused(4);
        assert!(ended.stderr.contains("full"), "{options}: {ended:#?}");
        let hidden = names(ext4.path())
            .iter()
            .filter(|n| n.starts_with('.'))
            .count();
        assert_eq!(hidden, 0, "{options}");
    }
}

#[test]
fn the_standard_plan_of_a_small_filesystem_shrinks_and_keeps_its_shape() {
    let Some(ext4) = LoopFilesystem::new(SMALL_EXT4) else {
        return;
    };
    let report = scratch();
    let mut command = landfall();
    command.args(["lab", "--json", "-", "--quiet", "--report"]);
    command.arg(report.path()).arg(ext4.path());
    let ended: Ended = command.output().expect("the program can be run").into();
    let document = ended.document();
    let experiments = document["experiments"].as_array().unwrap();
    let kinds: Vec<&str> = experiments
        .iter()
        .map(|e| e["experiment"].as_str().unwrap())
        .collect();
    // sync keeps more files than this filesystem has room for; then the others are measured.
    assert!(kinds.contains(&"stream"), "{kinds:?}");
    if !kinds.contains(&"sync") {
        assert_eq!(notice(&document, "not-measured"), Some("warning"));
    }
    assert_eq!(notice(&document, "sizes-left-out"), Some("note"));
    assert!(kinds.contains(&"dump-vs-log"), "{kinds:?}");
    let is_stream = |one: &&Value| one["experiment"] == "stream";
    let stream = experiments.iter().find(is_stream).unwrap();
    assert_eq!(stream["series"].as_array().unwrap().len(), 21);
    assert!(report.path().join("index.html").is_file());
    assert_eq!(names(ext4.path()), ["lost+found"]);
}
