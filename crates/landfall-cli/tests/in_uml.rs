//! `prove --in-uml` on the machine inside: its verdicts, its exit codes, and what is left behind.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{Ended, comes_true, is_root, landfall, names, run, scratch, skip};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn is_installed() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|directory| directory.join("linux.uml").exists());
    if !found {
        skip("there is no linux.uml");
    }
    found && can_run()
}

/// Whether it can run on this processor. That it cannot is no fault of who installs what tests need.
fn can_run() -> bool {
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap();
    if !processor.contains("amx_tile") {
        return true;
    }
    let cwd = scratch();
    let ended = prove(cwd.path(), "landfall-log --transactions 2 --states 2");
    let can = ended.code == Some(0);
    if !can {
        ended.assert_refused(1);
        assert!(ended.stderr.contains("prove as root, or on"), "{ended:#?}");
        eprintln!("left out: {}", ended.stderr);
    }
    can
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
fn an_ordinary_user_gets_there_without_asking() {
    if !is_installed() {
        return;
    }
    if !is_root() {
        return skip("only root can be another user");
    }
    // The build's directory may be closed to others.
    let place = tempfile::tempdir_in("/tmp").unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = place.path().join("landfall");
    fs::copy(landfall().get_program(), &program).unwrap();
    let prove = |subject: &str| -> Ended {
        let output = Command::new("setpriv")
            .args([
                "--reuid",
                "65534",
                "--regid",
                "65534",
                "--clear-groups",
                "--",
            ])
            .arg(&program)
            .args(["prove", subject, "--no-report"])
            .args(["--transactions", "4", "--states", "20"])
            .current_dir("/")
            .env_remove("TMPDIR")
            .output();
        output.unwrap().into()
    };
    let ended = prove("landfall-log");
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert!(ended.stdout.contains("lost nothing in"), "{ended:#?}");
    let said = "you are not root: the proof runs inside User-mode Linux";
    assert!(ended.stderr.starts_with(said), "{ended:#?}");

    let refused = prove("mariadb");
    refused.assert_refused(1);
    assert!(
        refused.stderr.contains("mariadb needs root"),
        "{refused:#?}"
    );
}

/// Few kernels have network block devices loaded: it goes inside by itself, also as root.
#[test]
fn a_disk_with_force_unit_access_makes_single_writes_durable() {
    if !is_installed() {
        return;
    }
    let cwd = scratch();
    let output = landfall()
        .args(["prove", "files", "--fua", "--no-report"])
        .args([
            "--set",
            "method=direct+o_dsync",
            "--set",
            "allocation=overwrite",
        ])
        .args(["--transactions", "12", "--states", "30"])
        .current_dir(cwd.path())
        .output();
    let ended: Ended = output.unwrap().into();
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    let forced = "12 single writes were durable when answered";
    assert!(ended.stdout.contains(forced), "{ended:#?}");
    assert!(ended.stdout.contains("and 0 flushes"), "{ended:#?}");
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
