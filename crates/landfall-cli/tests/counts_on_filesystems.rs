//! Proves that what is counted is what a device got: on filesystems made for the purpose on loop
//! devices, where the number of writes and flushes of every strategy is known.
//!
//! Counts are asserted, times never are. Needs root and the `mkfs` programs; a test that cannot have
//! its filesystem says so and passes.

mod common;

use std::fs;
use std::path::Path;
use std::process::Stdio;

use common::{
    EXT4, Ended, FilesystemSpec, LoopFilesystem, Overlay, SMALL_EXT4, comes_true, fill, has_begun,
    landfall, measure, names, notice, run, strategy,
};
use landfall_os::Space;
use serde_json::Value;

/// Enough operations that a superblock written meanwhile is lost among them; the median of three
/// rounds forgives one disturbed round.
const COUNTED: &str = "--ops 400 --rounds 3";

/// What one operation cost the device.
#[track_caller]
fn cost(document: &Value, key: &str, what: &str) -> Option<f64> {
    let summary = &strategy(document, key)["summary"];
    assert!(
        summary["flushes"].is_object(),
        "{key} was not counted: {document:#}"
    );
    summary[what]["median"].as_f64()
}

#[track_caller]
fn assert_counts(document: &Value, key: &str, writes: f64, flushes: f64) {
    let counted = (
        cost(document, key, "writes"),
        cost(document, key, "flushes"),
    );
    let (Some(w), Some(f)) = counted else {
        panic!("{key}: not known: {counted:?}: {document:#}");
    };
    assert!(
        (w - writes).abs() <= 0.05,
        "{key}: {w} writes, not {writes}"
    );
    assert!(
        (f - flushes).abs() <= 0.05,
        "{key}: {f} flushes, not {flushes}"
    );
}

#[track_caller]
fn assert_near(value: Option<f64>, expected: f64, slack: f64) {
    let value = value.expect("it was counted");
    assert!((value - expected).abs() <= slack, "{value}, not {expected}");
}

fn free_bytes(path: &Path) -> u64 {
    let space = Space::of(path).expect("a filesystem tells its space");
    space.available_bytes
}

#[test]
fn on_ext4_written_blocks_cost_one_write_and_one_flush() {
    let Some(ext4) = LoopFilesystem::new(EXT4) else {
        return;
    };
    let document = measure(
        ext4.path(),
        &format!(
            "{COUNTED} --allocation append,overwrite,zero-filled,zero-filled-settled,unwritten,recycled"
        ),
    );
    assert_eq!(document["filesystem"]["kind"], "ext4");
    assert_eq!(document["filesystem"]["medium"], "device");
    assert_eq!(document["filesystem"]["devices"][0]["name"], ext4.device());
    for settled in ["overwrite", "zero-filled-settled", "recycled"] {
        let key = format!("{settled}/fdatasync/8K");
        assert_counts(&document, &key, 1.0, 1.0);
        assert_near(cost(&document, &key, "kib"), 8.0, 0.4);
    }
    // The zeros themselves are a few large writes, and as many bytes again.
    assert_counts(&document, "zero-filled/fdatasync/8K", 1.0, 1.0);
    assert_near(
        cost(&document, "zero-filled/fdatasync/8K", "kib"),
        16.0,
        0.4,
    );
    // Data, journal descriptor with its blocks, commit record; no flush comes alone.
    assert_counts(&document, "append/fdatasync/8K", 3.0, 2.0);
    assert_counts(&document, "unwritten/fdatasync/8K", 3.0, 2.0);
    assert_near(
        cost(&document, "append/fdatasync/8K", "write_requests"),
        3.0,
        0.05,
    );
    assert_eq!(names(ext4.path()), ["lost+found"]);
}

#[test]
fn a_journal_that_gets_full_meanwhile_does_not_hide_the_writes() {
    // 400 commits fill its 4 MiB, and moving the tail of the journal costs flushes of its own.
    let Some(ext4) = LoopFilesystem::new(SMALL_EXT4) else {
        return;
    };
    let document = measure(ext4.path(), &format!("{COUNTED} --allocation append"));
    assert_near(cost(&document, "append/fdatasync/8K", "writes"), 3.0, 0.1);
    assert_near(cost(&document, "append/fdatasync/8K", "flushes"), 2.0, 0.1);
}

#[test]
fn on_ext4_every_durable_method_flushes_and_the_others_do_not() {
    let Some(ext4) = LoopFilesystem::new(EXT4) else {
        return;
    };
    let document = measure(
        ext4.path(),
        &format!(
            "{COUNTED} --sync fdatasync,o_dsync,rwf_dsync,direct+fdatasync,direct+o_dsync,none,sync_file_range"
        ),
    );
    for durable in [
        "fdatasync",
        "o_dsync",
        "rwf_dsync",
        "direct+fdatasync",
        "direct+o_dsync",
    ] {
        let key = format!("overwrite/{durable}/8K");
        assert_counts(&document, &key, 1.0, 1.0);
    }
    for lax in ["none", "sync_file_range"] {
        let key = format!("overwrite/{lax}/8K");
        assert_near(cost(&document, &key, "flushes"), 0.0, 0.0);
    }
    // sync_file_range waits for the data at least; without any sync nothing has to happen at all.
    assert_near(
        cost(&document, "overwrite/sync_file_range/8K", "writes"),
        1.0,
        0.05,
    );
}

#[test]
fn threads_that_share_a_file_share_writes_and_flushes() {
    let Some(ext4) = LoopFilesystem::new(EXT4) else {
        return;
    };
    let document = measure(
        ext4.path(),
        &format!("{COUNTED} --threads 4 --files shared,each"),
    );
    for files in ["shared", "each"] {
        let key = format!("overwrite/fdatasync/8K/4-threads-{files}");
        let writes = cost(&document, &key, "writes").expect("writes can be told from flushes");
        assert!((0.2..=1.05).contains(&writes), "{key}: {writes} writes");
        let flushes = cost(&document, &key, "flushes").expect("flushes are counted");
        assert!((0.2..=1.05).contains(&flushes), "{key}: {flushes} flushes");
        assert_near(cost(&document, &key, "kib"), 8.0, 0.4);
    }
}

#[test]
fn partial_pages_that_are_not_cached_are_read_first() {
    let Some(ext4) = LoopFilesystem::new(EXT4) else {
        return;
    };
    let document = measure(
        ext4.path(),
        "--ops 200 --rounds 5 --placement spaced,unaligned --cache warm,cold",
    );
    let reads = |corner: &str| {
        cost(
            &document,
            &format!("overwrite/fdatasync/8K/{corner}"),
            "reads",
        )
    };
    assert_near(reads("unaligned/cold"), 2.0, 0.05);
    for without in ["unaligned", "spaced", "spaced/cold"] {
        assert_near(reads(without), 0.0, 0.05);
    }
    let claims = &document["experiments"][0]["claims"];
    assert_eq!(claims[0]["id"], "partial-page-must-be-read");
    assert_eq!(claims[0]["verdict"], "holds", "{claims:#}");
}

#[test]
fn on_xfs_a_commit_is_one_write_more() {
    let Some(xfs) = LoopFilesystem::new(FilesystemSpec {
        kind: "xfs",
        // The least that mkfs.xfs accepts is 300 MiB.
        mib: 304,
        mkfs: "-q -K",
        options: "noatime",
    }) else {
        return;
    };
    let document = measure(
        xfs.path(),
        &format!("{COUNTED} --allocation append,overwrite,unwritten"),
    );
    assert_counts(&document, "overwrite/fdatasync/8K", 1.0, 1.0);
    assert_counts(&document, "append/fdatasync/8K", 2.0, 2.0);
    assert_counts(&document, "unwritten/fdatasync/8K", 2.0, 2.0);
}

#[test]
fn without_a_journal_appending_flushes_once() {
    let without_journal = FilesystemSpec {
        mkfs: "-q -b 4096 -m 0 -O ^has_journal -E nodiscard,lazy_itable_init=0",
        ..EXT4
    };
    let ext2 = FilesystemSpec {
        kind: "ext2",
        mkfs: "-q -b 4096 -m 0 -E nodiscard,lazy_itable_init=0",
        ..EXT4
    };
    for filesystem_spec in [without_journal, ext2] {
        let Some(filesystem) = LoopFilesystem::new(filesystem_spec) else {
            continue;
        };
        let options = format!("{COUNTED} --allocation append,overwrite");
        let document = measure(filesystem.path(), &options);
        // Writes are not so sure here: without a journal, metadata are written back at any time.
        let overwritten = "overwrite/fdatasync/8K";
        assert_near(cost(&document, overwritten, "flushes"), 1.0, 0.05);
        // The inode's times are written once a clock tick: the slower the disk, the oftener for each.
        let writes = cost(&document, overwritten, "writes").expect("every flush is an empty one");
        assert!((0.95..2.05).contains(&writes), "{writes}");
        let appended = "append/fdatasync/8K";
        assert_near(cost(&document, appended, "flushes"), 1.0, 0.05);
        let writes = cost(&document, appended, "writes").expect("every flush is an empty one");
        assert!(writes > 1.5, "metadata must be written too: {writes}");
    }
}

#[test]
fn without_barriers_no_flush_is_counted_and_that_is_a_danger() {
    let Some(ext4) = LoopFilesystem::new(FilesystemSpec {
        options: "noatime,barrier=0",
        ..EXT4
    }) else {
        return;
    };
    let document = measure(
        ext4.path(),
        &format!("{COUNTED} --allocation append,overwrite"),
    );
    assert_near(
        cost(&document, "overwrite/fdatasync/8K", "flushes"),
        0.0,
        0.0,
    );
    assert_near(cost(&document, "append/fdatasync/8K", "flushes"), 0.0, 0.0);
    assert_near(
        cost(&document, "overwrite/fdatasync/8K", "writes"),
        1.0,
        0.05,
    );
    let weights = [
        notice(&document, "no-barrier"),
        notice(&document, "no-flush"),
    ];
    assert!(weights.contains(&Some("danger")), "{weights:?}");
    // The weightiest come first.
    assert_eq!(document["notices"][0]["weight"], "danger");
}

#[test]
fn journalled_data_is_not_explained_away() {
    let Some(ext4) = LoopFilesystem::new(FilesystemSpec {
        options: "noatime,data=journal",
        ..EXT4
    }) else {
        return;
    };
    let document = measure(
        ext4.path(),
        "--ops 200 --rounds 2 --allocation append,overwrite",
    );
    for key in ["append/fdatasync/8K", "overwrite/fdatasync/8K"] {
        assert_eq!(cost(&document, key, "writes"), None, "{key}");
        let requests = cost(&document, key, "write_requests").expect("requests are counted");
        assert!(requests > 1.5, "data goes through the journal: {requests}");
    }
}

#[test]
fn on_btrfs_overwriting_is_copying() {
    let btrfs = FilesystemSpec {
        kind: "btrfs",
        mib: 160,
        mkfs: "-q -K",
        options: "noatime",
    };
    let Some(plain) = LoopFilesystem::new(btrfs) else {
        return;
    };
    let options = "--ops 200 --rounds 5 --allocation append,overwrite";
    let document = measure(plain.path(), options);
    assert_eq!(document["filesystem"]["copy_on_write"], true);
    assert_eq!(document["filesystem"]["devices"][0]["name"], plain.device());
    assert_eq!(notice(&document, "copy-on-write"), Some("note"));
    assert_eq!(notice(&document, "compression"), None);
    for key in ["append/fdatasync/8K", "overwrite/fdatasync/8K"] {
        assert_near(cost(&document, key, "flushes"), 2.0, 0.05);
    }
    let claims = document["experiments"][0]["claims"].as_array().unwrap();
    let claim = claims
        .iter()
        .find(|claim| claim["id"] == "copy-on-write-is-indifferent")
        .expect("its strategies were measured");
    let why = claim["why"].as_str().unwrap();
    assert!(
        why.contains("flushes"),
        "judged, with its reasons: {claim:#}"
    );
    drop(plain);

    let Some(compressed) = LoopFilesystem::new(FilesystemSpec {
        options: "noatime,compress=zstd",
        ..btrfs
    }) else {
        return;
    };
    let document = measure(compressed.path(), "--ops 50 --rounds 1 --sync fdatasync");
    assert_eq!(notice(&document, "compression"), Some("note"));
    let compression = document["filesystem"]["compression"].as_str().unwrap();
    assert!(compression.starts_with("zstd"), "{compression}");
}

#[test]
fn an_overlay_is_followed_to_the_device_of_its_upper_layer() {
    let Some(ext4) = LoopFilesystem::new(EXT4) else {
        return;
    };
    let Some(overlay) = Overlay::on(&ext4) else {
        return;
    };
    let document = measure(
        overlay.path(),
        &format!("{COUNTED} --allocation append,overwrite"),
    );
    assert_eq!(document["filesystem"]["kind"], "overlay");
    assert_eq!(document["filesystem"]["medium"], "device");
    assert_eq!(document["filesystem"]["upper"]["kind"], "ext4");
    assert_eq!(
        document["filesystem"]["upper"]["devices"][0]["name"],
        ext4.device()
    );
    assert_eq!(notice(&document, "overlay"), Some("note"));
    assert_counts(&document, "overwrite/fdatasync/8K", 1.0, 1.0);
    assert_counts(&document, "append/fdatasync/8K", 3.0, 2.0);
    assert_eq!(names(overlay.path()), ["lost+found"; 0]);
}

#[test]
fn a_filesystem_without_enough_space_is_refused_before_anything_is_written() {
    let Some(ext4) = LoopFilesystem::new(SMALL_EXT4) else {
        return;
    };
    let lab = |options: &str| {
        let mut words = vec!["lab", "sync", "--no-report"];
        words.extend(options.split_whitespace());
        let dir = ext4.path().to_str().expect("temporary paths are text");
        words.push(dir);
        run(ext4.beside(), words)
    };
    let assert_names_both = |ended: &Ended| {
        ended.assert_refused(4);
        assert!(
            ended.stderr.contains(" free and this plan needs "),
            "{ended:#?}"
        );
        assert!(ended.stderr.matches("iB").count() >= 2, "{ended:#?}");
        assert_eq!(names(ext4.path()), ["lost+found"], "something was left");
    };
    for too_much in [
        "--ops 1000000",
        "--ops 20 --size 8M",
        // Steps are whole, however few operations there are.
        "--ops 20 --allocation step-64m",
        // Four files of a quarter, two of a half, and one that a single thread has all to itself.
        "--ops 4000 --threads 1,2,4 --files each",
    ] {
        assert_names_both(&lab(too_much));
    }
    assert_eq!(lab("--ops 20 --rounds 1 --sync fdatasync").code, Some(0));

    // Full to the last block.
    fill(ext4.path(), "filler", u64::MAX);
    let ended = lab("--ops 20 --sync fdatasync");
    ended.assert_refused(4);
    assert!(ended.stderr.contains("full"), "{ended:#?}");
    assert_eq!(names(ext4.path()), ["filler", "lost+found"]);
}

#[test]
fn a_nearly_full_filesystem_is_said_to_be_one() {
    let Some(ext4) = LoopFilesystem::new(FilesystemSpec {
        mib: 160,
        ..SMALL_EXT4
    }) else {
        return;
    };
    let options = "--ops 20 --rounds 1 --sync fdatasync";
    let quiet = measure(ext4.path(), options);
    assert_eq!(notice(&quiet, "nearly-full"), None);
    // More than a run of 20 operations asks for, less than a tenth.
    fill(ext4.path(), "filler", free_bytes(ext4.path()) - (11 << 20));
    let document = measure(ext4.path(), options);
    assert_eq!(notice(&document, "nearly-full"), Some("warning"));
}

#[test]
fn a_filesystem_that_fills_up_half_way_ends_the_run_in_good_order() {
    // The second by a mapping, to which a full disk is a bus error if one does not look out.
    for options in ["--allocation append", "--allocation sparse --sync msync"] {
        let Some(ext4) = LoopFilesystem::new(SMALL_EXT4) else {
            return;
        };
        let child = landfall()
            .args([
                "lab",
                "sync",
                "--no-report",
                "--ops",
                "2000",
                "--rounds",
                "1000",
            ])
            .args(options.split_whitespace())
            .arg(ext4.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be run");
        assert!(comes_true(|| has_begun(ext4.path())), "it never began");
        fill(ext4.path(), "filler", u64::MAX);
        let ended: Ended = child.wait_with_output().expect("it ends").into();
        ended.assert_refused(4);
        assert!(ended.stderr.contains("full"), "{ended:#?}");
        assert_eq!(names(ext4.path()), ["filler", "lost+found"]);
    }
}

#[test]
fn a_filesystem_mounted_read_only_is_refused() {
    let Some(ext4) = LoopFilesystem::new(FilesystemSpec {
        mib: 16,
        ..SMALL_EXT4
    }) else {
        return;
    };
    fs::write(ext4.path().join("precious"), "untouched").unwrap();
    ext4.remount("ro");
    let words = ["lab", "sync", "--no-report", "mounted"];
    let ended = run(ext4.beside(), words);
    ended.assert_refused(4);
    assert!(ended.stderr.contains("read-only"), "{ended:#?}");
    // It can still be looked at.
    let inspected = run(ext4.beside(), ["inspect", "mounted"]);
    assert_eq!(inspected.code, Some(0), "{inspected:#?}");
    assert!(inspected.stdout.contains("ext4"), "{inspected:#?}");
    assert_eq!(names(ext4.path()), ["lost+found", "precious"]);
}
