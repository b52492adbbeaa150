//! `prove --in-uml` on the machine inside: its verdicts, its exit codes, and what is left behind.

mod common;

use std::path::Path;
use std::process::Stdio;

use common::{Ended, comes_true, landfall, names, run, scratch, skip};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn is_installed() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|directory| directory.join("linux.uml").exists());
    if !found {
        skip("there is no linux.uml");
    }
    found
}

fn prove(cwd: &Path, arguments: &str) -> Ended {
    let fixed = ["prove", "--in-uml", "--json", "-", "--no-report"];
    run(cwd, fixed.into_iter().chain(arguments.split(' ')))
}

#[test]
fn what_was_lost_is_found_by_a_kernel_of_its_own() {
    if !is_installed() {
        return;
    }
    let cwd = scratch();
    let arguments = "files --set acknowledge=early --transactions 4 --states 20";
    let ended = prove(cwd.path(), arguments);
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    let document: Value = serde_json::from_str(&ended.stdout).expect("the document, alone");
    assert_eq!(document["experiments"][0]["only_last"], true, "{document}");
    assert_eq!(document["host"]["cpu"], "UML", "{document}");
    assert_eq!(names(cwd.path()), [""; 0]);

    let refused = prove(cwd.path(), "nosuch");
    refused.assert_refused(2);
}

#[test]
fn a_signal_stops_it_and_nothing_is_left() {
    if !is_installed() {
        return;
    }
    let (temporary, cwd) = (scratch(), scratch());
    let mut child = landfall()
        .args(["prove", "files", "--in-uml", "--states", "1000000"])
        .current_dir(cwd.path())
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(comes_true(|| !names(temporary.path()).is_empty()));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ends = comes_true(|| matches!(child.try_wait(), Ok(Some(_))));
    if !ends {
        let _ = child.kill();
    }
    let ended: Ended = child.wait_with_output().unwrap().into();
    assert_eq!(ended.code, Some(130), "{ended:#?}");
    assert_eq!(ended.stdout, "", "{ended:#?}");
    assert!(!ended.stderr.contains("panicked"), "{ended:#?}");
    assert_eq!(names(temporary.path()), [""; 0]);
    assert_eq!(names(cwd.path()), [""; 0]);
}
