//! A small campaign of two proofs, one of which loses something, and what must come of it however it is cut.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{Ended, landfall};

/// What its shards run: each takes less than a second.
const COMMANDS: [&str; 2] = [
    "landfall prove files --set acknowledge=early --transactions 8 --states 60",
    "landfall prove files --transactions 8 --states 60",
];

/// Plans it with `program`, in `cwd`; returns RESULTS/CAMPAIGN, and what was printed besides.
#[track_caller]
pub fn plan(
    mut program: Command,
    cwd: &Path,
    results: &str,
    shards: u32,
    options: &[&str],
) -> (String, Ended) {
    let runs = COMMANDS.map(|command| format!("\n[[run]]\ncommand = \"{command}\"\n"));
    let file = format!(
        "name = \"two-proofs\"\nshards = {shards}\nresults = \"{results}\"\n{}{}",
        runs[0], runs[1]
    );
    fs::write(cwd.join("plan.toml"), file).unwrap();
    program
        .args(["campaign", "plan", "plan.toml"])
        .args(options)
        .current_dir(cwd);
    let ended: Ended = program.output().expect("the program can be run").into();
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    // Where a job file is printed, the rest goes to standard error.
    let said = ended.stdout.lines().chain(ended.stderr.lines());
    let named = said
        .into_iter()
        .find_map(|line| line.strip_prefix("Campaign "));
    let id = named.and_then(|line| line.split_whitespace().next());
    let id = id.expect("it names the campaign").to_owned();
    (format!("{results}/{id}"), ended)
}

/// Runs a shard of it in `cwd`. That it loses something is what is expected.
#[track_caller]
pub fn run_shard(mut program: Command, cwd: &Path, location: &str, shard: &str) -> Ended {
    program
        .args(["campaign", "run", location, "--shard", shard])
        .current_dir(cwd);
    let ended: Ended = program.output().expect("the program can be run").into();
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    ended
}

/// What it came to, as a document.
#[track_caller]
pub fn merge(mut program: Command, cwd: &Path, location: &str, code: i32) -> Value {
    program
        .args(["campaign", "merge", location, "--json", "-"])
        .current_dir(cwd);
    let ended: Ended = program.output().expect("the program can be run").into();
    assert_eq!(ended.code, Some(code), "{ended:#?}");
    serde_json::from_str(&ended.stdout).expect("standard output is JSON and nothing else")
}

/// All shards have found what one run of each proof finds in the same recording.
#[track_caller]
pub fn assert_equals_one_run(
    program: impl Fn() -> Command,
    cwd: &Path,
    location: &str,
    shards: u32,
) {
    let merged = merge(program(), cwd, location, 3);
    assert_eq!(merged["missing"], Value::Array(vec![]), "{merged:#}");
    assert_eq!(merged["failed"], Value::Array(vec![]), "{merged:#}");
    assert_eq!(merged["disagreeing"], Value::Array(vec![]), "{merged:#}");
    for (number, (command, code)) in COMMANDS.into_iter().zip([3, 0]).enumerate() {
        let proof = &merged["proofs"][number];
        assert_eq!(proof["shards"], shards, "{proof:#}");
        let recording = proof["recording"].as_str().expect("they share a recording");
        let mut fetch = program();
        fetch
            .args(["campaign", "fetch", location, recording])
            .current_dir(cwd);
        let fetched: Ended = fetch.output().unwrap().into();
        assert_eq!(fetched.code, Some(0), "{fetched:#?}");
        let words = command
            .split(' ')
            .skip(1)
            .filter(|word| !["--transactions", "8"].contains(word));
        let ended: Ended = landfall()
            .args(words)
            .args([
                "--recording",
                fetched.stdout.trim(),
                "--json",
                "-",
                "--no-report",
            ])
            .current_dir(cwd)
            .output()
            .unwrap()
            .into();
        assert_eq!(ended.code, Some(code), "{ended:#?}");
        let document: Value = serde_json::from_str(&ended.stdout).unwrap();
        let alone = &document["experiments"][0];
        let found = &proof["results"];
        for what in [
            "violations",
            "failing_states",
            "losing_states",
            "first_failing",
            "worst_lost",
            "only_last",
            "workload",
        ] {
            assert_eq!(found[what], alone[what], "{what} of {command}");
        }
        for what in ["planned", "checked", "possible", "surveyed", "sampled"] {
            assert_eq!(
                found["coverage"][what], alone["coverage"][what],
                "{what} of {command}"
            );
        }
        assert_eq!(
            found["shortest"]["name"], alone["shortest"]["name"],
            "{command}"
        );
    }
}
