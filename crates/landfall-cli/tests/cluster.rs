//! `landfall prove --nodes`: real servers, and a user's own programs, whose power goes at the same moment.
//!
//! Where no recorded filesystem can be made, or a server is not installed, a test is skipped, which `LANDFALL_NO_SKIP` makes a
//! failure.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{Ended, comes_true, is_root, landfall, names, run, scratch, skip};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// Three files beside each other: a record is written to all, synced in two of them or in none.
const WRITER: &str = "#!/bin/sh
ack=$1; shift
n=1
while :; do
  echo \"send $n\" >\"$ack\"
  for dir; do echo $n >>\"$dir/log\"; done
  SYNC
  echo \"ack $n\" >\"$ack\"
  n=$((n + 1))
done
";
/// How two of them are synced.
const SYNCED: &str = "sync -d \"$1/log\" \"$2/log\"";
/// What is there is what any of them has.
const CHECKER: &str = "#!/bin/sh
boot=$1; shift
case $boot in together|late[0-2]) ;; *) exit 1 ;; esac
for dir; do cat \"$dir/log\" 2>/dev/null; done | grep -x '[0-9][0-9]*' | sort -nu
exit 0
";

fn script(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    fs::write(&path, text).unwrap();
    format!("sh {}", path.display())
}

fn prove(directory: &Path, arguments: &[&str]) -> Option<Ended> {
    if !is_root() {
        skip("a cluster's disks and network need root");
        return None;
    }
    let more = ["--no-report", "--quiet", "--json", "-"];
    Some(run(
        directory,
        ["prove"].iter().chain(arguments).chain(&more),
    ))
}

fn document(ended: &Ended, code: i32) -> Value {
    assert_eq!(ended.code, Some(code), "{ended:#?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn somebodys_cluster_is_proven_by_two_commands() {
    let directory = scratch();
    let check = script(directory.path(), "check", CHECKER) + " {boot} {dirs}";
    for (sync, code) in [(SYNCED, 0), (":", 3)] {
        let writer = script(directory.path(), "write", &WRITER.replace("SYNC", sync));
        let writer = writer + " {ack} {dirs}";
        let own = ["--nodes", "3", "--cmd", &writer, "--check", &check];
        let few = ["--transactions", "6", "--states", "40"];
        let Some(ended) = prove(directory.path(), &[&own[..], &few].concat()) else {
            return;
        };
        let found = document(&ended, code);
        let proof = &found["experiments"][0];
        let subject = proof["subject"].as_str().unwrap();
        assert!(subject.starts_with("command nodes=3 "), "{subject}");
        assert_eq!(proof["cluster"]["nodes"], 3);
        assert_eq!(proof["unchecked"], Value::Null);
        assert!(proof["workload"]["acknowledged"].as_u64().unwrap() >= 6);
        // Who keeps power has what it wrote, synced or not.
        let lost = proof["cluster"]["by_victims"].as_array().unwrap();
        let lost: Vec<bool> = lost.iter().map(|cuts| cuts["losing"] != 0).collect();
        assert_eq!(lost, [false, false, code != 0]);
        let held = proof["cluster"]["held"].as_array().unwrap();
        assert_eq!(held.len(), 5);
        let on = if code == 0 {
            [true, true, false]
        } else {
            [false; 3]
        };
        assert!(
            held.iter().all(|record| record["nodes"] == json!(on)),
            "{held:?}"
        );
    }
}

#[test]
fn the_manual_shows_these_programs() {
    // Which a package does not have.
    let page = "../../docs/how-to/prove-a-cluster.md";
    if let Ok(page) = fs::read_to_string(page) {
        let writer = WRITER.replace("SYNC", SYNCED);
        for program in [writer.as_str(), CHECKER] {
            let block = format!("```sh\n{program}```\n");
            assert!(page.contains(&block), "{block}");
        }
    }
}

#[test]
fn a_cluster_of_servers_that_never_sync_is_caught() {
    let directory = scratch();
    let etcd = ["etcd", "--nodes", "3", "--set", "unsafe-no-fsync=true"];
    let few = [
        "--cuts",
        "all",
        "--transactions",
        "12",
        "--states",
        "6",
        "--replicas",
        "0",
    ];
    let keep = ["--keep-recording", "recording"];
    let Some(ended) = prove(directory.path(), &[&etcd[..], &few, &keep].concat()) else {
        return;
    };
    let found = document(&ended, 3);
    let proof = &found["experiments"][0];
    assert!(proof["losing_states"].as_u64().unwrap() > 0, "{proof:#}");
    let shortest = &proof["shortest"];
    let name = shortest["name"].as_str().unwrap();
    let again = [&etcd[..], &["--recording", "recording", "--state", name]].concat();
    let again = document(&prove(directory.path(), &again).unwrap(), 3);
    assert_eq!(again["experiments"][0]["losing_states"], 1, "{again:#}");
    assert_eq!(again["experiments"][0]["workload"], proof["workload"]);
}

#[test]
fn what_makes_no_sense_is_said_before_anything_is_started() {
    let directory = scratch();
    for (arguments, says) in [
        (&["etcd", "--nodes", "1"][..], "a cluster has 2 to 7 nodes"),
        (&["etcd", "--nodes", "3", "--fua"], "--fua"),
        (
            &["files", "--nodes", "3"],
            "no cluster is called 'files'; there are: ",
        ),
        (
            &["etcd", "--nodes", "3", "--state", "1:2:none"],
            "is a state of one disk",
        ),
        (
            &["etcd", "--nodes", "3", "--state", "1:2:none,none:together"],
            "is a state of 2 nodes, and the cluster has 3",
        ),
        (
            &[
                "--nodes",
                "3",
                "--cuts",
                "rolling",
                "--cmd",
                "x {ack} {dirs}",
                "--check",
                "y {boot} {dirs}",
            ],
            "leave out --cuts rolling",
        ),
        (
            &["etcd", "--state", "1:2:none,none:together"],
            "is a state of a cluster",
        ),
        (&["etcd", "--cuts", "all"], "--nodes"),
        (
            &["etcd", "--nodes", "3", "--model", "prefix"],
            "flushed or subset",
        ),
        (
            &["replicated-log", "--nodes", "3", "--set", "mistake=many"],
            "it is one of: none, ",
        ),
        (
            &[
                "--nodes",
                "3",
                "--cmd",
                "x {ack} {dirs}",
                "--check",
                "y {dirs}",
            ],
            "{boot}",
        ),
    ] {
        let ended = run(directory.path(), ["prove"].iter().chain(arguments));
        assert_eq!(ended.code, Some(2), "{ended:#?}");
        assert!(ended.stderr.contains(says), "{says}: {ended:#?}");
    }
}

/// Processes of this name that have `directory` in their arguments or their environment.
fn servers(name: &str, directory: &Path) -> Vec<u32> {
    let marked = directory.to_string_lossy().into_owned();
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_one = |id: &u32| {
        let read = |what: &str| fs::read(format!("/proc/{id}/{what}")).unwrap_or_default();
        let told = [read("cmdline"), read("environ")].concat();
        let comm = String::from_utf8_lossy(&read("comm")).trim().to_owned();
        comm == name && String::from_utf8_lossy(&told).contains(&marked)
    };
    ids.filter(is_one).collect()
}

#[test]
fn one_that_is_killed_leaves_no_server_no_mount_and_no_device() {
    if !is_root() {
        skip("a cluster's disks and network need root");
        return;
    }
    let directory = scratch();
    let mut child: std::process::Child = landfall()
        .args(["prove", "etcd", "--nodes", "3", "--states", "500"])
        .args(["--no-report", "--quiet", "--directory"])
        .arg(directory.path())
        .env("TMPDIR", directory.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let running = || servers("etcd", directory.path()).len();
    // One alone may be asked for its version, and be gone.
    let mut has_ended = false;
    let run_or_end = || {
        has_ended = child.try_wait().unwrap().is_some();
        has_ended || running() == 3
    };
    let is_there = comes_true(run_or_end);
    if has_ended {
        skip("etcd is not installed");
        return;
    }
    assert!(is_there);
    std::thread::sleep(Duration::from_millis(300));
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    assert!(comes_true(|| running() == 0));
    let marked = directory.path().to_string_lossy().into_owned();
    let loops = || {
        let listed = Command::new("losetup")
            .args(["-l", "-n", "-O", "BACK-FILE"])
            .output()
            .unwrap();
        String::from_utf8_lossy(&listed.stdout).contains(&marked)
    };
    assert!(comes_true(|| !loops()));
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&marked));
    // What is left is removed by the next run.
    let left = names(directory.path());
    assert!(
        left.iter().all(|name| name.starts_with(".landfall-")),
        "{left:?}"
    );
}
