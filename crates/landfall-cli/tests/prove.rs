//! `landfall prove` on the kernel's own filesystems: what is safe loses nothing, what is not is caught.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{Ended, comes_true, is_root, landfall, run, scratch, skip};
use serde_json::Value;

/// Runs a proof that writes its document to standard output; nothing where none can be made.
fn prove(cwd: &Path, arguments: &str) -> Option<Ended> {
    if !is_root() {
        skip("a proof needs root");
        return None;
    }
    let fixed = ["prove", "--json", "-", "--no-report"];
    Some(run(cwd, fixed.into_iter().chain(arguments.split(' '))))
}

fn document(ended: &Ended, code: i32) -> Value {
    assert_eq!(ended.code, Some(code), "{ended:#?}");
    serde_json::from_str(&ended.stdout).expect("standard output is JSON and nothing else")
}

fn proof(document: &Value) -> &Value {
    &document["experiments"][0]
}

#[test]
fn what_is_safe_is_told_from_what_is_not() {
    let cwd = scratch();
    let Some(ended) = prove(cwd.path(), "--self-test") else {
        return;
    };
    let document = document(&ended, 0);
    assert_eq!(document["notices"], Value::Array(vec![]));
    let proofs = document["experiments"].as_array().unwrap();
    assert!(proofs.len() > 20);
    for proof in proofs {
        assert!(proof["expected"].is_string(), "{proof}");
        assert_eq!(proof["unchecked"], Value::Null, "{proof}");
        assert_eq!(
            proof["coverage"]["checked"], proof["coverage"]["planned"],
            "{proof}"
        );
    }
}

#[test]
fn a_lost_transaction_is_shown_again_and_kept() {
    let cwd = scratch();
    let lossy = "files --set acknowledge=early --transactions 8 --states 200";
    let keep = format!("{lossy} --keep-recording recording --keep-image image");
    let Some(ended) = prove(cwd.path(), &keep) else {
        return;
    };
    let found = document(&ended, 3);
    let found = proof(&found);
    assert_eq!(found["only_last"], true);
    assert_eq!(found["worst_lost"], 1);
    assert_eq!(found["workload"]["acknowledged"], 8);
    let shortest = &found["shortest"];
    let name = shortest["name"].as_str().unwrap();
    let again = shortest["command"].as_str().unwrap();
    assert_eq!(
        again,
        format!(
            "landfall prove files --set acknowledge=early --recording recording --state {name}"
        )
    );
    let timeline = shortest["timeline"].as_array().unwrap();
    let lost = |moment: &&Value| moment["event"] == "acknowledge" && moment["after_cut"] == false;
    assert!(timeline.iter().any(|moment| lost(&moment)), "{timeline:#?}");

    // Of another subject, or on another filesystem, it would say nothing.
    for other in [
        "files",
        "pages",
        "files --set acknowledge=early --fs ext4,barrier=0",
    ] {
        let other = prove(cwd.path(), &format!("{other} --recording recording")).unwrap();
        assert_eq!(other.code, Some(2), "{other:#?}");
        assert!(
            other.stderr.contains("acknowledge=early' on 'ext4'"),
            "{other:#?}"
        );
    }

    // From the recording the same state comes back, with the same image.
    let show = format!(
        "files --set acknowledge=early --recording recording --state {name} --keep-image again"
    );
    let shown = document(&prove(cwd.path(), &show).unwrap(), 3);
    assert_eq!(proof(&shown)["coverage"]["checked"], 1);
    assert_eq!(proof(&shown)["shortest"]["details"], shortest["details"]);
    let read = |name: &str| fs::read(cwd.path().join(name)).unwrap();
    assert_eq!(read("image").len(), 64 << 20);
    assert!(read("image") == read("again"));
}

#[test]
fn a_loss_is_said_also_where_it_cannot_be_written() {
    if !is_root() {
        return skip("a proof needs root");
    }
    if !Path::new("/dev/full").exists() {
        return skip("there is no /dev/full");
    }
    let cwd = scratch();
    let lossy = "prove files --set acknowledge=early --transactions 4 --states 100";
    let nowhere = ["--no-report", "--json", "/dev/full"];
    let ended = run(cwd.path(), lossy.split(' ').chain(nowhere));
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    assert!(ended.stdout.contains("files"), "{ended:#?}");
    assert!(ended.stderr.contains("/dev/full"), "{ended:#?}");
}

/// Whatever keeps it from being proven: it is not proven.
#[test]
fn a_proof_in_a_directory_that_cannot_be_opened_has_failed() {
    let cwd = scratch();
    std::os::unix::fs::symlink("circle", cwd.path().join("circle")).unwrap();
    let words = ["prove", "files", "--no-report", "--directory", "circle"];
    let ended = run(cwd.path(), words);
    ended.assert_refused(1);
    assert!(ended.stderr.contains("cannot open circle"), "{ended:#?}");
}

#[test]
fn a_proof_says_which_pages_it_tore() {
    let cwd = scratch();
    let happened = |arguments: &str, code: i32, what: &str| {
        let found = document(&prove(cwd.path(), arguments)?, code);
        let all = proof(&found)["exercised"].as_array().unwrap();
        let one = all.iter().find(|one| one["what"] == what).unwrap().clone();
        Some((one["happened"].as_u64(), one["states"].as_u64()))
    };
    let Some(torn) = happened("pages --transactions 6 --states 60", 3, "page-torn") else {
        return;
    };
    assert_eq!(torn.0, Some(6));
    assert!(torn.1 > Some(20), "{torn:?}");
    // Sectors that nobody has written before hold nothing that could be torn.
    let appended = "files --set allocation=append --transactions 6 --states 60";
    assert_eq!(happened(appended, 0, "page-torn"), Some((Some(0), Some(0))));
    // What is written whole is written over all the same.
    let small = "pages --set size=512 --transactions 6 --states 60";
    assert_eq!(happened(small, 0, "page-torn"), Some((Some(0), Some(0))));
    let over = happened(small, 0, "page-overwritten").unwrap();
    assert!(over.0 == Some(6) && over.1 > Some(4), "{over:?}");
}

#[test]
fn a_proof_of_nothing_is_none() {
    let cwd = scratch();
    // The first write fails, so that nothing is ever acknowledged.
    let Some(ended) = prove(cwd.path(), "files --fault write-error=1 --transactions 3") else {
        return;
    };
    let document = document(&ended, 1);
    assert_eq!(proof(&document)["workload"]["acknowledged"], 0);
    assert_eq!(proof(&document)["failing_states"], 0);
}

#[test]
fn each_model_is_held_to_what_it_says() {
    let cwd = scratch();
    for (model, code) in [("flushed", 3), ("prefix", 3), ("subset", 3)] {
        let lossy = format!("files --set acknowledge=early --transactions 4 --model {model}");
        let Some(ended) = prove(cwd.path(), &lossy) else {
            return;
        };
        document(&ended, code);
    }
    // A page is torn by a disk that writes in order, and by one that does not, and by none that keeps
    // nothing.
    for (model, code) in [("flushed", 0), ("prefix", 3), ("subset", 3)] {
        let torn = format!("pages --transactions 8 --model {model} --states 300");
        document(&prove(cwd.path(), &torn).unwrap(), code);
    }
}

/// The example of docs/how-to/prove-your-program.md, as it stands there.
#[test]
fn a_disk_that_writes_whole_pages_tears_none() {
    let cwd = scratch();
    for (atomic, code) in [("512", 3), ("4K", 0)] {
        let line = format!("pages --set size=4K --transactions 10 --states 100 --atomic {atomic}");
        let Some(ended) = prove(cwd.path(), &line) else {
            return;
        };
        let found = document(&ended, code);
        assert_eq!(
            proof(&found)["atomic_bytes"],
            if code == 0 { 4096 } else { 512 }
        );
        assert_eq!(proof(&found)["unchecked"], Value::Null);
    }
}

#[test]
fn the_documented_program_is_proven_and_its_fault_is_caught() {
    if !is_root() {
        return skip("a proof needs root");
    }
    if Command::new("python3").arg("--version").output().is_err() {
        return skip("there is no python3");
    }
    let cwd = scratch();
    let page = include_str!("../docs/prove-your-program.md");
    let mut programs = page
        .split("```python\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap());
    let (writer, checker) = (programs.next().unwrap(), programs.next().unwrap());
    fs::write(cwd.path().join("checker.py"), checker).unwrap();
    let (send, sync) = (
        "    os.write(ack, b\"send %d\\n\" % number)\n",
        "    os.fdatasync(log)\n",
    );
    assert!(writer.contains(send) && writer.contains(sync));
    for (writer, code) in [
        (writer.to_owned(), 0),
        (writer.replace("    os.fdatasync(log)\n", ""), 3),
        // What is durable before it is sent was invented.
        (
            writer
                .replace(send, "")
                .replace(sync, &format!("{sync}{send}")),
            3,
        ),
    ] {
        fs::write(cwd.path().join("writer.py"), writer).unwrap();
        let place = cwd.path().display();
        let output = landfall()
            .args(["prove", "--json", "-", "--no-report", "--transactions", "8"])
            .args(["--states", "40", "--cmd"])
            .arg(format!("python3 {place}/writer.py {{dir}} {{ack}}"))
            .arg("--check")
            .arg(format!("python3 {place}/checker.py {{dir}}"))
            .current_dir(cwd.path())
            .output()
            .unwrap();
        let document = document(&output.into(), code);
        assert!(
            proof(&document)["workload"]["acknowledged"]
                .as_u64()
                .unwrap()
                >= 8
        );
    }
}

#[test]
fn a_strategy_that_is_timed_is_proven_beside() {
    if !is_root() {
        return skip("a proof needs root");
    }
    let cwd = scratch();
    let arguments = "lab sync --on recorder:ext4 --prove --prove-states 60 --allocation overwrite \
                     --sync fdatasync,none,direct+none --rounds 1 --ops 50 --json - --no-report";
    let document = run(cwd.path(), arguments.split_whitespace()).document();
    let losing = |key: &str| {
        let proof = &common::strategy(&document, key)["proof"];
        assert!(proof["states"].as_u64().unwrap() > 0, "{proof}");
        proof["losing"].as_u64().unwrap()
    };
    assert_eq!(losing("overwrite/fdatasync/8K"), 0);
    assert!(losing("overwrite/none/8K") > 0);
    assert!(losing("overwrite/direct+none/8K") > 0);
}

/// Mounted as it is after a power cut, its bitmaps contradict its inodes.
#[test]
fn a_filesystem_without_a_journal_is_repaired_before_it_is_judged() {
    let cwd = scratch();
    let files = "files --writeback --transactions 30 --states 80 --model prefix --fs ext2";
    let Some(ended) = prove(cwd.path(), files) else {
        return;
    };
    document(&ended, 0);
}

/// A mapped file on a filesystem that fails would end us.
#[test]
fn a_failing_device_ends_the_workload_and_not_the_proof() {
    let cwd = scratch();
    let wal =
        "sqlite --set journal_mode=wal --fs ext4,data=journal --fault read-only=30 --model flushed";
    let Some(ended) = prove(cwd.path(), wal) else {
        return;
    };
    let document = document(&ended, 0);
    assert!(proof(&document)["workload"]["ended"].is_string());
}

/// In some states LMDB reads mapped pages that its file does not have, or aborts, and that would end us.
#[test]
fn a_linked_in_store_that_crashes_is_damaged() {
    let cwd = scratch();
    let lmdb = "lmdb --set sync=no --writeback --transactions 24 --states 600";
    let Some(ended) = prove(cwd.path(), lmdb) else {
        return;
    };
    let document = document(&ended, 3);
    assert_eq!(proof(&document)["unchecked"], Value::Null);
}

#[test]
fn nonsense_is_refused_in_one_sentence() {
    let cwd = scratch();
    for wrong in [
        "nothing",
        "files --set colour=red",
        "files --set method=hope",
        "files --fault fire",
        "files --state 1:2",
        "files --model best",
        "files --fs ntfs",
        "files --recording nowhere",
        "files --states 0",
        "files --states 18446744073709551615",
        "files --minutes nan",
        "files --minutes inf",
        "files --minutes 0",
        "command",
    ] {
        let ended = run(
            cwd.path(),
            ["prove", "--no-report"].into_iter().chain(wrong.split(' ')),
        );
        assert_eq!(ended.code, Some(2), "{wrong}: {ended:#?}");
        assert!(!ended.stderr.contains("panicked"), "{wrong}: {ended:#?}");
    }
    assert_eq!(common::names(cwd.path()), [""; 0]);
}

#[test]
fn a_state_that_the_recording_does_not_have_is_refused() {
    let cwd = scratch();
    for wrong in ["1:9999:none", "1:1:first99"] {
        let line = format!("files --transactions 3 --state {wrong}");
        let Some(ended) = prove(cwd.path(), &line) else {
            return;
        };
        assert_eq!(ended.code, Some(2), "{ended:#?}");
        assert!(ended.stderr.contains("no such state"), "{ended:#?}");
    }
}

#[test]
fn subjects_are_listed_to_everybody() {
    let cwd = scratch();
    let ended = run(cwd.path(), ["prove", "--list"]);
    assert_eq!(ended.code, Some(0));
    for subject in ["files", "pages", "replace", "sqlite", "command"] {
        assert!(ended.stdout.contains(subject), "{}", ended.stdout);
    }
}

#[test]
fn an_ordinary_user_is_told_what_is_missing() {
    let cwd = scratch();
    let mut command = landfall();
    command.args(["prove", "files", "--no-report"]);
    // Where there is no User-mode Linux.
    command.env("PATH", "/nowhere");
    if is_root() {
        let program = command.get_program().to_owned();
        let mut dropped = Command::new("setpriv");
        dropped.args(["--reuid", "65534", "--clear-groups", "--"]);
        dropped.args(["env", "PATH=/nowhere"]);
        dropped.arg(program).args(command.get_args());
        command = dropped;
    }
    let output = command.current_dir("/").stdin(Stdio::null()).output();
    let ended: Ended = output.unwrap().into();
    if ended.stderr.contains("failed to execute") {
        // The build's directory is closed to others.
        return println!("skipped: {}", ended.stderr);
    }
    ended.assert_refused(1);
    let said = "run it with sudo, or install Debian package user-mode-linux";
    assert!(ended.stderr.contains(said), "{ended:#?}");
    drop(cwd);
}

#[test]
fn a_signal_ends_a_proof_and_leaves_nothing() {
    if !is_root() {
        return skip("a proof needs root");
    }
    let cwd = scratch();
    let mut child = landfall()
        .args(["prove", "files", "--states", "1000000", "--no-report"])
        .args(["--transactions", "2000", "--set", "records=4000"])
        .args(["--directory", "."])
        .current_dir(cwd.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(comes_true(|| !common::names(cwd.path()).is_empty()));
    std::thread::sleep(std::time::Duration::from_millis(700));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(common::names(cwd.path()), [""; 0]);
}
