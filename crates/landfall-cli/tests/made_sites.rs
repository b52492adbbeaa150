//! Proves that what is measured on a filesystem made for the purpose is exact, and the same every time.
//!
//! Counts are asserted, times never are. Needs root, FUSE and the `mkfs` programs; a test that cannot
//! have its filesystem says so and passes.

mod common;

use std::path::Path;

use common::{Ended, landfall, names, notice, run, scratch, skip, strategy};
use serde_json::Value;

/// The results of `lab sync --on site` in `dir`; says why and returns nothing where the site cannot be
/// made.
fn measured(dir: &Path, site: &str, options: &str) -> Option<Value> {
    let mut command = landfall();
    command.args(["lab", "sync", "--json", "-", "--no-report", "--quiet"]);
    command
        .args(["--on", site])
        .args(options.split_whitespace());
    let ended: Ended = command
        .arg(dir)
        .output()
        .expect("the program can be run")
        .into();
    if ended.code == Some(4) {
        skip(&format!("no {site}: {}", ended.stderr));
        return None;
    }
    let document = ended.document();
    assert_eq!(names(dir), [""; 0], "left behind");
    Some(document)
}

/// Writes, KiB and flushes of one operation.
fn cost(document: &Value, key: &str) -> [f64; 3] {
    let summary = &strategy(document, key)["summary"];
    ["writes", "kib", "flushes"].map(|what| {
        let value = summary[what]["median"].as_f64();
        value.unwrap_or_else(|| panic!("{key} was not counted: {summary}"))
    })
}

#[track_caller]
fn assert_costs(document: &Value, key: &str, expected: [f64; 3], slack: f64) {
    let counted = cost(document, key);
    for (value, expected) in counted.into_iter().zip(expected) {
        assert!(
            (value - expected).abs() <= slack * expected,
            "{key}: {counted:?}, not {expected} to within {slack}"
        );
    }
}

#[test]
fn two_runs_on_a_recorder_count_the_same_and_what_is_known() {
    let dir = scratch();
    let options = "--ops 400 --rounds 3 --size 4K --allocation append,overwrite,unwritten";
    for (kind, append, unwritten) in [
        ("ext4", [3.0, 24.0, 2.0], [3.0, 16.0, 2.0]),
        ("xfs", [2.0, 5.0, 2.0], [2.0, 5.0, 2.0]),
    ] {
        let site = format!("recorder:{kind}");
        let Some(first) = measured(dir.path(), &site, options) else {
            return;
        };
        let second = measured(dir.path(), &site, options).expect("what could be made can be again");
        for (allocation, expected) in [
            ("append", append),
            ("unwritten", unwritten),
            ("overwrite", [1.0, 4.0, 1.0]),
        ] {
            let key = format!("{allocation}/fdatasync/4K");
            assert_costs(&first, &key, expected, 0.03);
            assert_costs(&second, &key, cost(&first, &key), 0.01);
        }
    }
}

#[test]
fn a_recorder_counts_where_the_kernel_does_not_tell() {
    // Of journalled data it cannot be inferred which requests were empty.
    let dir = scratch();
    let options = "--ops 400 --rounds 3 --size 4K --allocation append";
    let Some(exact) = measured(dir.path(), "recorder:ext4,data=journal", options) else {
        return;
    };
    assert_costs(&exact, "append/fdatasync/4K", [3.0, 28.0, 3.0], 0.03);
    let Some(inferred) = measured(dir.path(), "loop:ext4,size=128M,data=journal", options) else {
        return;
    };
    let summary = &strategy(&inferred, "append/fdatasync/4K")["summary"];
    assert!(summary["write_requests"].is_object(), "{summary}");
    assert!(summary["writes"].is_null(), "{summary}");
}

#[test]
fn a_site_says_what_it_is() {
    let dir = scratch();
    let options = "--ops 20 --rounds 1 --allocation overwrite";
    let Some(document) = measured(dir.path(), "recorder:xfs,noatime,-m reflink=0", options) else {
        return;
    };
    assert_eq!(document["site"]["kind"], "recorder");
    assert_eq!(
        document["site"]["filesystem_spec"],
        "xfs,noatime,-m reflink=0"
    );
    assert_eq!(document["site"]["size_bytes"], 1_u64 << 30);
    assert!(document["site"]["latency"].is_null());
    let full = dir.path().canonicalize().unwrap();
    assert_eq!(document["directory"], full.to_str().unwrap());
    assert_eq!(document["filesystem"]["kind"], "xfs");
    assert_eq!(document["filesystem"]["medium"], "device");
    assert_eq!(document["filesystem"]["devices"][0]["kind"], "recorder");
    assert_eq!(notice(&document, "made-on-recorder"), Some("warning"));
    for of_disks in ["memory", "memory-disk", "virtual-disk", "passthrough"] {
        assert_eq!(notice(&document, of_disks), None);
    }

    let site = "loop:ext4,size=64M";
    let document = measured(dir.path(), site, options).expect("an image can be made as well");
    assert_eq!(document["site"]["kind"], "loop");
    assert_eq!(document["site"]["size_bytes"], 64 << 20);
    assert_eq!(notice(&document, "made-on-image"), Some("note"));

    let site = "memory:ext4,size=64M";
    let document = measured(dir.path(), site, options).expect("memory can be had as well");
    assert_eq!(document["site"]["kind"], "memory");
    assert_eq!(document["filesystem"]["devices"][0]["kind"], "memory");
    assert_eq!(notice(&document, "memory-disk"), Some("danger"));
    assert_eq!(notice(&document, "made-on-image"), None);
}

#[test]
fn it_is_said_in_the_terminal_and_in_the_report() {
    let (dir, cwd) = (scratch(), scratch());
    let command = "lab sync --on recorder:ext4,size=64M --ops 20 --rounds 1 --allocation overwrite";
    let dir_name = dir.path().to_str().unwrap();
    let ended = run(cwd.path(), command.split(' ').chain([dir_name]));
    if ended.code == Some(4) {
        return skip(&ended.stderr);
    }
    ended.assert_measured();
    let made = "ext4,size=64M on a recorder of 64 MiB";
    assert!(ended.stdout.contains(made), "{}", ended.stdout);
    let report = cwd.path().join("landfall-report/index.html");
    let report = std::fs::read_to_string(report).unwrap();
    assert!(report.contains(made));
}

#[test]
fn what_cannot_be_made_is_refused_in_one_sentence_and_leaves_nothing() {
    let (dir, cwd) = (scratch(), scratch());
    let refused = |options: &str, code: i32| {
        let mut command = landfall();
        command.args(["lab", "sync", "--rounds", "1"]);
        command.args(options.split(' ')).arg(dir.path());
        let ended = command.current_dir(cwd.path()).output();
        let ended: Ended = ended.expect("the program can be run").into();
        assert_eq!(ended.code, Some(code), "{options}: {ended:#?}");
        assert_eq!(names(dir.path()), [""; 0]);
        assert_eq!(names(cwd.path()), [""; 0]);
        ended
    };
    for wrong in ["--on ext4", "--on recorder:zfs", "--on loop:ext4,size=much"] {
        assert!(refused(wrong, 2).stderr.contains("is no"), "{wrong}");
    }
    let alone = refused("--latency hdd-7200", 2).stderr;
    assert!(alone.contains("latency"), "{alone}");
    for (impossible, why) in [
        ("--on recorder:ext4,no_such_option", "does not mount"),
        ("--on recorder:xfs,size=64M", "mkfs.xfs"),
        ("--on loop:ext4,size=16M --ops 100000", "size="),
    ] {
        let ended = refused(impossible, 4);
        ended.assert_refused(4);
        if common::is_root() && Path::new("/dev/fuse").exists() {
            assert!(ended.stderr.contains(why), "{impossible}: {ended:#?}");
        }
    }
}
