//! Proves that a run can be stopped at any moment and leaves nothing behind; and that one which was
//! killed, and had to leave something, is mentioned by the next.

mod common;

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use common::{Ended, comes_true, has_begun, landfall, measure, names, notice, scratch};
use rustix::process::{Pid, Signal, kill_process};

/// Starts a run that would take hours, and waits until it has made its first files.
fn start(dir: &Path, cwd: &Path, options: &str) -> Child {
    let mut child = landfall()
        .arg("lab")
        .args(options.split_whitespace())
        .arg(dir)
        .current_dir(cwd)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be run");
    if !comes_true(|| has_begun(dir)) {
        let _ = child.kill();
        panic!("it never began: {:?}", child.wait_with_output());
    }
    child
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_child(child);
    kill_process(pid, signal).expect("our own child can be sent a signal");
}

/// Waits for the end; a child that does not end is killed, and the test fails.
fn end(mut child: Child) -> Ended {
    if !comes_true(|| matches!(child.try_wait(), Ok(Some(_)))) {
        let _ = child.kill();
        panic!("it does not end");
    }
    child.wait_with_output().expect("it has ended").into()
}

#[track_caller]
fn assert_stops_cleanly(options: &str, signal: Signal) {
    let (dir, cwd) = (scratch(), scratch());
    let child = start(dir.path(), cwd.path(), options);
    send(&child, signal);
    let ended = end(child);
    ended.assert_refused(130);
    assert!(ended.stderr.contains("stopped"), "{ended:#?}");
    assert_eq!(names(dir.path()), [""; 0], "left in the directory");
    assert_eq!(names(cwd.path()), [""; 0], "left in the current directory");
}

#[test]
fn a_signal_stops_a_run_and_nothing_is_left() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        assert_stops_cleanly("sync --ops 20000 --rounds 1000 --sync fdatasync", signal);
    }
}

#[test]
fn so_it_does_with_many_threads_while_zeros_settle_and_while_files_are_prepared() {
    assert_stops_cleanly(
        "sync --ops 20000 --rounds 1000 --threads 16 --files each",
        Signal::INT,
    );
    assert_stops_cleanly(
        "sync --ops 20 --rounds 2 --allocation zero-filled-settled --settle 3600",
        Signal::INT,
    );
    // 1 GiB, which no disk writes before the signal comes.
    assert_stops_cleanly("sync --ops 131072 --allocation zero-filled", Signal::INT);
}

#[test]
fn so_it_does_while_a_large_state_is_written_and_while_one_is_logged() {
    let many = "--rounds 1000";
    for options in [
        format!("stream --size 64M --method write,mmap {many}"),
        format!("stream --size 64M --method io_uring --allocation overwrite {many}"),
        format!("dump-vs-log --state 32M {many}"),
        "dump-vs-log --state 4M --updates 0.1 --seconds 3600".to_owned(),
    ] {
        for signal in [Signal::INT, Signal::TERM] {
            assert_stops_cleanly(&options, signal);
        }
    }
}

#[test]
fn what_was_there_before_stays() {
    let (dir, cwd) = (scratch(), scratch());
    std::fs::write(dir.path().join("mine"), "data").unwrap();
    std::fs::create_dir_all(cwd.path().join("reports/empty")).unwrap();
    let options = "sync --rounds 1000 --ops 20000 --sync fdatasync --report";
    for (report, left) in [
        ("reports/new/one", vec!["empty"]),
        ("reports/empty", vec!["empty"]),
    ] {
        let child = start(dir.path(), cwd.path(), &format!("{options} {report}"));
        assert!(cwd.path().join(report).is_dir(), "made before measuring");
        send(&child, Signal::INT);
        end(child).assert_refused(130);
        assert_eq!(names(dir.path()), ["mine"]);
        assert_eq!(names(&cwd.path().join("reports")), left);
    }
}

#[test]
fn a_killed_run_is_mentioned_by_the_next_which_does_not_touch_what_it_left() {
    let (dir, cwd) = (scratch(), scratch());
    let child = start(
        dir.path(),
        cwd.path(),
        "sync --no-report --ops 20000 --rounds 1000 --sync fdatasync",
    );
    // A run under way is not a leftover.
    let options = "--ops 20 --rounds 1 --sync fdatasync";
    let meanwhile = measure(dir.path(), options);
    assert_eq!(notice(&meanwhile, "leftover"), None);

    send(&child, Signal::KILL);
    assert_eq!(end(child).code, None);
    let left = names(dir.path());
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].starts_with(".landfall-"), "{left:?}");

    let document = measure(dir.path(), options);
    assert_eq!(notice(&document, "leftover"), Some("note"));
    let notices = document["notices"].as_array().unwrap();
    let text = notices
        .iter()
        .find(|notice| notice["code"] == "leftover")
        .and_then(|notice| notice["text"].as_str())
        .unwrap();
    assert!(text.contains(&left[0]), "names what to remove: {text}");
    assert_eq!(names(dir.path()), left);
}

#[test]
fn a_signal_before_anything_was_measured_is_no_crash() {
    let (dir, cwd) = (scratch(), scratch());
    for delay in [0, 2, 5, 10, 20] {
        let child = landfall()
            .args([
                "lab",
                "sync",
                "--ops",
                "20000",
                "--rounds",
                "1000",
                "--sync",
                "fdatasync",
            ])
            .arg(dir.path())
            .current_dir(cwd.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be run");
        std::thread::sleep(Duration::from_millis(delay));
        // Not an interrupt: whatever a shell runs in the background begins with those ignored.
        send(&child, Signal::TERM);
        let ended = end(child);
        // Before the handler is in place the signal itself ends the program: nothing was made yet.
        assert!(matches!(ended.code, Some(130) | None), "{ended:#?}");
        assert_eq!(names(dir.path()), [""; 0]);
        assert_eq!(names(cwd.path()), [""; 0]);
    }
}
