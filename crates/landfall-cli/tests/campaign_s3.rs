//! Campaigns whose results are in an object store: a real endpoint, on a port of this machine's own.

mod common;

use std::fs;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::Barrier;

use common::campaign::{assert_equals_one_run, plan, run_shard};
use common::s3::{S3, free_port, give_credentials, landfall_at};
use common::{Ended, is_root, scratch, skip};
use landfall_campaign::{Plan, ResultStore};
use rustix::process::{Pid, Signal, kill_process};

const RESULTS: &str = "s3://fleet/proofs of/ours";
/// A campaign that no test has planned.
const NOBODYS: &str = "0123456789abcdef";
/// Set where a test runs itself.
const RACING: &str = "LANDFALL_TEST_RACING";
/// What needs no root to be planned.
const MEASUREMENT: &str = "[[run]]\ncommand = \"landfall lab sync /srv/db\"\n";

#[test]
fn three_shards_find_what_one_run_finds() {
    if !is_root() {
        return skip("a proof needs root");
    }
    let Some(s3) = S3::start() else { return };
    let cwd = scratch();
    let (location, _) = plan(s3.landfall(), cwd.path(), RESULTS, 3, &[]);
    run_shard(s3.landfall(), cwd.path(), &location, "3/3");
    // Two machines are given the same shard.
    std::thread::scope(|both| {
        for work in ["one", "other"] {
            let (s3, cwd, location) = (&s3, cwd.path(), &location);
            both.spawn(move || {
                fs::create_dir(cwd.join(work)).unwrap();
                run_shard(s3.landfall(), &cwd.join(work), location, "1/3");
            });
        }
    });
    let incomplete = common::campaign::merge(s3.landfall(), cwd.path(), &location, 3);
    let missing = serde_json::json!([{"index": 2, "of": 3}]);
    assert_eq!(incomplete["missing"], missing, "{incomplete:#}");
    run_shard(s3.landfall(), cwd.path(), &location, "2/3");
    assert_equals_one_run(|| s3.landfall(), cwd.path(), &location, 3);

    // What is done is not done again, and nothing is written.
    let written = s3.answers("PUT", "", 200);
    let again = run_shard(s3.landfall(), cwd.path(), &location, "2/3");
    assert!(
        again.stderr.contains("shard 2/3 has been run"),
        "{again:#?}"
    );
    assert_eq!(s3.answers("PUT", "", 200), written, "{}", s3.log());
}

#[test]
fn of_sixteen_that_create_the_same_one_does() {
    // A library asks the environment for credentials: this test runs itself once more, with those of a server.
    if std::env::var_os(RACING).is_some() {
        return race();
    }
    let Some(s3) = S3::start() else { return };
    let mut racing = Command::new(std::env::current_exe().expect("this program has a path"));
    give_credentials(&mut racing, &s3.endpoint());
    racing.args(["--exact", "of_sixteen_that_create_the_same_one_does"]);
    let output = racing
        .env(RACING, "yes")
        .output()
        .expect("this program can be run");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(s3.answers("PUT", "/plan.json", 200), 1, "{}", s3.log());
    assert_eq!(s3.answers("PUT", "/plan.json", 412), 15, "{}", s3.log());
}

/// Sixteen put one plan at once. All of them are content: it is there.
fn race() {
    let plan = Plan::new("race".to_owned(), 1, Vec::new());
    let begin = Barrier::new(16);
    std::thread::scope(|racing| {
        for _ in 0..16 {
            racing.spawn(|| {
                let store = ResultStore::open(RESULTS).expect("it is a place");
                begin.wait();
                store.put_plan(&plan).expect("it is there");
            });
        }
    });
}

#[test]
fn who_is_stopped_does_not_wait_for_a_store_that_never_answers() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    let cwd = scratch();
    let campaign = format!("{RESULTS}/{NOBODYS}");
    let child = landfall_at(&endpoint)
        .args(["campaign", "run", &campaign, "--shard", "1/1"])
        .current_dir(cwd.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It has asked, and waits.
    let _asked = silent.accept().unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let ended: Ended = child.wait_with_output().unwrap().into();
    ended.assert_refused(130);
    assert!(ended.stderr.contains("stopped"), "{ended:#?}");
}

#[test]
fn what_is_wrong_with_a_store_is_said_in_a_sentence() {
    let Some(s3) = S3::start() else { return };
    let cwd = scratch();
    let file = cwd.path().join("plan.toml");
    let plan = |bucket: &str| {
        let text = format!(
            "name = \"nightly\"\nshards = 1\nresults = \"s3://{bucket}/here\"\n{MEASUREMENT}"
        );
        fs::write(&file, text).unwrap();
        vec![
            "campaign".to_owned(),
            "plan".to_owned(),
            "plan.toml".to_owned(),
        ]
    };
    let words = |command: &str, bucket: &str| -> Vec<String> {
        let location = format!("s3://{bucket}/here/{NOBODYS}");
        let mut words = vec!["campaign".to_owned(), command.to_owned(), location];
        if command == "run" {
            words.extend(["--shard", "1/1"].map(str::to_owned));
        }
        words
    };
    let ask = |mut program: Command, words: Vec<String>, named: &str| {
        let output = program.args(&words).current_dir(cwd.path()).output();
        let ended: Ended = output.expect("the program can be run").into();
        ended.assert_refused(1);
        assert!(ended.stderr.contains(named), "{words:?}: {ended:#?}");
    };
    // A bucket that is not there.
    ask(
        s3.landfall(),
        plan("nobodys"),
        "bucket does not exist' (NoSuchBucket)",
    );
    // A campaign that is not there.
    ask(s3.landfall(), words("run", "fleet"), NOBODYS);
    ask(s3.landfall(), words("merge", "fleet"), NOBODYS);
    // Nobody who listens.
    let nowhere = format!("http://127.0.0.1:{}", free_port());
    ask(landfall_at(&nowhere), plan("fleet"), "s3://fleet/here");
    // A key that the store does not know.
    s3.distrust_everybody();
    ask(s3.landfall(), plan("fleet"), "(InvalidAccessKeyId)");
    ask(s3.landfall(), words("run", "fleet"), "s3://fleet/here");
    ask(s3.landfall(), words("merge", "fleet"), "s3://fleet/here");
    assert_eq!(s3.answers("PUT", "/plan.json", 200), 0, "{}", s3.log());
}
