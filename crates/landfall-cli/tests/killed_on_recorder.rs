//! Proves that a run on a filesystem of its own can be stopped and killed at any moment: it ends, its mount
//! and its device go with it, and `landfall clean` removes what a kill had to leave.
//!
//! Needs root and FUSE; says so and passes elsewhere.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use common::{Ended, comes_true, landfall, names, run, scratch, skip};
use landfall_os::attached_loops;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const LONG: &str = "--ops 2000 --rounds 1000 --threads 1,4 --allocation append,overwrite";

/// A run that would take hours.
fn start(dir: &Path, site: &str) -> Child {
    landfall()
        .args(["lab", "sync", "--no-report", "--quiet", "--on", site])
        .args(LONG.split(' '))
        .arg(dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be run")
}

/// A directory to make `site` in; says why and returns nothing where it cannot be made.
fn directory_for(site: &str) -> Option<TempDir> {
    let dir = scratch();
    let options = ["lab", "sync", "--no-report", "--quiet", "--on", site];
    let short = ["--ops", "20", "--rounds", "1", "--allocation", "overwrite"];
    let ended = run(dir.path(), options.into_iter().chain(short));
    if ended.code == Some(4) {
        skip(&format!("no {site}: {}", ended.stderr));
        return None;
    }
    ended.assert_measured();
    Some(dir)
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("our own child can be sent a signal");
}

/// Whether all threads have ended; a zombie with a thread that hangs has not.
fn has_ended(child: &mut Child) -> bool {
    matches!(child.try_wait(), Ok(Some(_)))
}

/// Loop devices whose file is one that this process made in `dir`.
fn devices_of(process: u32, dir: &Path) -> Vec<PathBuf> {
    let dir = dir.canonicalize().expect("it is there");
    let made = (0..4).map(|number| dir.join(format!(".landfall-{process}-{number}")));
    let made: Vec<PathBuf> = made.collect();
    let attached = attached_loops().expect("there are block devices");
    let ours = attached
        .iter()
        .filter(|device| made.iter().any(|one| device.is_in(one)));
    ours.map(|device| device.path().to_owned()).collect()
}

fn is_mounted(process: u32) -> bool {
    let mounts = fs::read_to_string("/proc/mounts").expect("there are mounts");
    mounts.contains(&format!(".landfall-{process}-"))
}

#[test]
fn a_killed_run_dies_with_its_mount_and_its_device_and_the_rest_is_cleaned() {
    for site in ["recorder:ext4", "recorder:xfs", "loop:ext4,size=128M"] {
        let Some(dir) = directory_for(site) else {
            continue;
        };
        let mut random = 2_u64;
        for _ in 0..6 {
            let mut child = start(dir.path(), site);
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(99);
            std::thread::sleep(Duration::from_millis(20 + (random >> 33) % 700));
            let process = child.id();
            send(&child, Signal::KILL);
            assert!(
                comes_true(|| has_ended(&mut child)),
                "{site}: it does not die"
            );
            let ended: Ended = child.wait_with_output().expect("it has ended").into();
            assert_eq!(ended.code, None, "{site}: {ended:#?}");
            assert!(!is_mounted(process), "{site}");
            let gone = comes_true(|| devices_of(process, dir.path()).is_empty());
            assert!(gone, "{site}: {:?}", devices_of(process, dir.path()));
        }
        let left = names(dir.path());
        assert!(!left.is_empty(), "{site}: six kills leave a directory");
        let dir_name = dir.path().to_str().unwrap();
        let dry = run(dir.path(), ["clean", "--dry-run", dir_name]);
        assert_eq!(dry.code, Some(0), "{dry:#?}");
        assert_eq!(dry.stdout.lines().count(), left.len(), "{dry:#?}");
        assert_eq!(names(dir.path()), left);
        let cleaned = run(dir.path(), ["clean", dir_name]);
        assert_eq!(cleaned.code, Some(0), "{cleaned:#?}");
        assert!(left.iter().all(|name| cleaned.stdout.contains(name)));
        assert_eq!(names(dir.path()), [""; 0]);
        let again = run(dir.path(), ["clean", dir_name]);
        assert_eq!(again.stdout, "nothing was left\n");
    }
}

#[test]
fn a_run_that_is_stopped_leaves_nothing() {
    for site in ["recorder:ext4", "loop:xfs,size=304M"] {
        let Some(dir) = directory_for(site) else {
            continue;
        };
        // Before there is a device, while it is made, and while it is measured on.
        for delay in [5, 30, 100, 250, 700] {
            let mut child = start(dir.path(), site);
            std::thread::sleep(Duration::from_millis(delay));
            let process = child.id();
            send(&child, Signal::INT);
            assert!(
                comes_true(|| has_ended(&mut child)),
                "{site}: still running"
            );
            let ended: Ended = child.wait_with_output().expect("it has ended").into();
            // Before the handler is in place the signal itself ends the program.
            assert!(matches!(ended.code, Some(130) | None), "{site}: {ended:#?}");
            assert_eq!(names(dir.path()), [""; 0], "{site} after {delay} ms");
            assert!(devices_of(process, dir.path()).is_empty() && !is_mounted(process));
        }
    }
}

#[test]
fn what_is_in_use_is_not_cleaned() {
    let Some(dir) = directory_for("recorder:ext4") else {
        return;
    };
    let mut child = start(dir.path(), "recorder:ext4");
    assert!(comes_true(|| names(dir.path()).len() == 2));
    let cleaned = run(dir.path(), ["clean", "."]);
    assert_eq!(cleaned.stdout, "nothing was left\n");
    assert_eq!(names(dir.path()).len(), 2);
    assert!(!has_ended(&mut child));
    send(&child, Signal::INT);
    assert!(comes_true(|| has_ended(&mut child)));
    assert_eq!(names(dir.path()), [""; 0]);
}
