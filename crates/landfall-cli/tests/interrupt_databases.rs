//! Ctrl-C while a server runs, at any moment of a proof: the server ends, and nothing is left behind.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use common::{Ended, comes_true, is_root, landfall, names, scratch, skip};
use rustix::process::{Pid, Signal, kill_process};

/// A process that was told of this directory.
fn process_with(directory: &Path) -> Option<String> {
    let directory = directory.to_string_lossy();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut commands = processes.map(|process| {
        let command = fs::read(process.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).replace('\0', " ")
    });
    commands.find(|command| command.contains(&*directory))
}

/// Begins a proof that keeps everything in `temporary`, and waits until a program of it runs; what it
/// said if it ended before.
fn begin(subject: &str, temporary: &Path, cwd: &Path) -> Result<Child, Ended> {
    let mut child = landfall()
        .args(["prove", "--no-report", "--states", "3000"])
        .args(subject.split(' '))
        .env("TMPDIR", temporary)
        .current_dir(cwd)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be run");
    let mut ended = false;
    let began = comes_true(|| {
        ended = matches!(child.try_wait(), Ok(Some(_)));
        ended || process_with(temporary).is_some()
    });
    if ended {
        return Err(child.wait_with_output().unwrap().into());
    }
    assert!(began, "{subject}: nothing was ever started");
    Ok(child)
}

#[test]
fn a_proof_of_a_server_is_stopped_at_any_moment_and_leaves_nothing() {
    if !is_root() {
        skip("a proof needs root");
        return;
    }
    let servers = [
        "mariadb",
        "myrocks",
        "postgres",
        "redis --set appendfsync=always",
        "etcd",
    ];
    // Some are stopped while the database is made or filled, some while it is asked, others while it
    // recovers from crash states.
    let runs = [(0, 100_000), (1000, 100_000), (400, 20), (5000, 20)];
    for server in servers {
        for (milliseconds, transactions) in runs {
            let (temporary, cwd) = (scratch(), scratch());
            // Also a user that a server is run as must come there.
            fs::set_permissions(temporary.path(), fs::Permissions::from_mode(0o711)).unwrap();
            let subject = format!("{server} --transactions {transactions}");
            let mut child = match begin(&subject, temporary.path(), cwd.path()) {
                Ok(child) => child,
                Err(ended) if ended.stderr.contains("is not installed") => {
                    skip(&ended.stderr);
                    break;
                }
                Err(ended) => panic!("{subject}: {ended:#?}"),
            };
            thread::sleep(Duration::from_millis(milliseconds));
            kill_process(Pid::from_child(&child), Signal::INT).unwrap();
            let has_ended = comes_true(|| matches!(child.try_wait(), Ok(Some(_))));
            if !has_ended {
                child.kill().unwrap();
            }
            let ended: Ended = child.wait_with_output().unwrap().into();
            let when = format!("{subject}, {milliseconds} ms after it began");
            assert!(has_ended, "{when}, it did not stop: {ended:#?}");
            assert_eq!(ended.code, Some(130), "{when}: {ended:#?}");
            assert_eq!(process_with(temporary.path()), None, "{when}");
            assert_eq!(names(temporary.path()), [""; 0], "{when}");
            assert_eq!(names(cwd.path()), [""; 0], "{when}");
        }
    }
}
