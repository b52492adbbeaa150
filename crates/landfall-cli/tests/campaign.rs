//! A campaign in a directory that its shards share: what it comes to does not depend on how many machines, how often, or
//! how rudely they were stopped.
//!
//! What proves needs root and FUSE, or User-mode Linux; says so and passes elsewhere.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{Ended, landfall, run, scratch, skip};
use landfall_campaign::{Campaign, Digest};
use landfall_lab::Results;
use landfall_results::proof::merge::verdict_of;
use landfall_results::proof::{ProofResults, Unchecked, Violation, ViolationCount};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const LOSING: &str = "prove files --set method=none --writeback --transactions 12 --states 48";
const SAFE: &str = "prove files --transactions 12 --states 24";

/// Plans a campaign of these commands; returns how it is called, or nothing where nothing can be proven.
fn plan(dir: &Path, shards: u32, runs: &[&str]) -> Option<String> {
    let mut text = format!("name = \"test\"\nshards = {shards}\nresults = \"results\"\n");
    for command in runs {
        text += &format!("[[run]]\ncommand = \"landfall {command}\"\n");
    }
    plan_of(dir, &text)
}

/// Plans the campaign of this file.
fn plan_of(dir: &Path, text: &str) -> Option<String> {
    fs::write(dir.join("plan.toml"), text).unwrap();
    let ended = run(dir, ["campaign", "plan", "plan.toml"]);
    if ended.code == Some(1) && ended.stderr.contains("root") {
        skip(&format!("nothing can be proven here: {}", ended.stderr));
        return None;
    }
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    let line = ended
        .stdout
        .lines()
        .find(|line| line.contains("campaign merge"));
    let place = line.and_then(|line| line.split_whitespace().last());
    Some(place.expect("it says how it is called").to_owned())
}

fn shard(dir: &Path, place: &str, shard: &str) -> Ended {
    run(dir, ["campaign", "run", "-q", place, "--shard", shard])
}

fn start(dir: &Path, place: &str, shard: &str) -> Child {
    let mut command = landfall();
    command.args(["campaign", "run", "-q", "--again", place, "--shard", shard]);
    command
        .current_dir(dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().expect("the program can be run")
}

/// What all of it came to.
fn merged(dir: &Path, place: &str) -> (Option<i32>, Value) {
    let ended = run(dir, ["campaign", "merge", "--json", "-", place]);
    let document: Value =
        serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:#?}"));
    let schema = serde_json::from_str(&Campaign::json_schema()).unwrap();
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    let errors: Vec<_> = validator.iter_errors(&document).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    (ended.code, document)
}

/// The verdicts of its proofs, each to the byte.
fn verdicts(campaign: &Value) -> Vec<String> {
    let proofs = campaign["proofs"].as_array().expect("it has proofs").iter();
    let verdict = |proof: &Value| -> String {
        let results: ProofResults = serde_json::from_value(proof["results"].clone()).unwrap();
        text(&results)
    };
    proofs.map(verdict).collect()
}

fn text(proof: &ProofResults) -> String {
    serde_json::to_string_pretty(&verdict_of(proof)).unwrap()
}

#[test]
fn shards_come_to_what_a_single_run_finds_however_often_they_are_run_and_killed() {
    let dir = scratch();
    let dir = dir.path();
    let Some(place) = plan(dir, 3, &[LOSING, SAFE]) else {
        return;
    };
    for (index, code) in [("2/3", 3), ("1/3", 3), ("3/3", 3)] {
        let ended = shard(dir, &place, index);
        assert_eq!(ended.code, Some(code), "{ended:#?}");
    }
    let (code, campaign) = merged(dir, &place);
    assert_eq!(code, Some(3));
    assert_eq!(campaign["missing"], Value::Array(Vec::new()));
    let once = verdicts(&campaign);

    // By one machine alone, of the same recordings.
    for (number, command) in [LOSING, SAFE].into_iter().enumerate() {
        let recording = campaign["proofs"][number]["recording"].as_str().unwrap();
        let fetched = run(dir, ["campaign", "fetch", &place, recording]);
        assert_eq!(fetched.code, Some(0), "{fetched:#?}");
        let made = ["--writeback", "--transactions", "12"];
        let words = command.split(' ').filter(|word| !made.contains(word));
        let more = [
            "-q",
            "--no-report",
            "--json",
            "-",
            "--recording",
            fetched.stdout.trim(),
        ];
        let single = run(dir, words.chain(more));
        let single = Results::from_json(&single.stdout).unwrap();
        assert_eq!(text(single.proofs().next().unwrap()), once[number]);
    }

    // Killed at some moment, run again by two at once: nothing changes.
    let kills = std::env::var("LANDFALL_CAMPAIGN_KILLS").ok();
    let kills = kills.map_or(3, |kills| kills.parse::<u32>().unwrap());
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..kills {
        let index = format!("{}/3", random.u32(1..=3));
        let mut killed = start(dir, &place, &index);
        std::thread::sleep(Duration::from_millis(random.u64(0..1500)));
        let _ = kill_process(Pid::from_child(&killed), Signal::KILL);
        killed.wait().unwrap();
        let both = [start(dir, &place, &index), start(dir, &place, &index)];
        for mut one in both {
            assert_eq!(one.wait().unwrap().code(), Some(3));
        }
        let (code, campaign) = merged(dir, &place);
        assert_eq!(code, Some(3));
        assert_eq!(verdicts(&campaign), once);
        assert_eq!(campaign["disagreeing"], Value::Array(Vec::new()));
    }
}

#[test]
fn a_shard_that_is_missing_is_named_and_what_cannot_be_done_is_said() {
    let dir = scratch();
    let dir = dir.path();
    let Some(place) = plan(dir, 2, &[SAFE]) else {
        return;
    };
    let ended = shard(dir, &place, "1/2");
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    // A second run finds it done.
    let document = |place: &str| {
        let mut names = common::names(&dir.join(place).join("shards/000001"));
        names.retain(|name| name.ends_with(".json"));
        names
    };
    let before = document(&place);
    assert_eq!(shard(dir, &place, "1/2").stdout, ended.stdout);
    assert_eq!(document(&place), before);

    let ended = run(dir, ["campaign", "merge", &place]);
    assert_eq!(ended.code, Some(1), "{ended:#?}");
    assert!(ended.stdout.contains("not proven yet"), "{ended:#?}");
    let again = format!("landfall campaign run {place} --shard 2/2");
    assert!(ended.stdout.contains(&again), "{ended:#?}");

    // Where nothing can be kept, that is found out before anything is run. To root nothing is forbidden.
    let shards = dir.join(&place).join("shards");
    fs::rename(&shards, dir.join("kept")).unwrap();
    fs::write(&shards, "").unwrap();
    shard(dir, &place, "2/2").assert_refused(1);
    fs::remove_file(&shards).unwrap();
    fs::rename(dir.join("kept"), &shards).unwrap();

    // A job file once more, of the same campaign.
    let emitted = run(dir, ["campaign", "emit", &place, "sh"]);
    assert_eq!(emitted.code, Some(0), "{emitted:#?}");
    let line = format!("{place} --shard 2/2\n");
    assert!(emitted.stdout.contains(&line), "{emitted:#?}");
    assert_eq!(run(dir, ["campaign", "emit", &place, "cron"]).code, Some(2));

    // One page of all of it.
    let report = run(dir, ["campaign", "report", &place]);
    assert_eq!(report.code, Some(0), "{report:#?}");
    let page = fs::read_to_string(dir.join("landfall-campaign/report/index.html")).unwrap();
    assert!(page.contains("That is what 1 of 2 shards found"));
    assert!(page.contains(" UTC"), "when it was run is said");

    shard(dir, &place, "1/3").assert_refused(2);
    run(dir, ["campaign", "merge", "results/0123456789abcdef"]).assert_refused(1);
    assert_eq!(run(dir, ["campaign", "merge", "results"]).code, Some(2));

    // What is damaged is said, and not believed.
    let name = dir.join(&place).join("shards/000001").join(&before[0]);
    let bytes = fs::read(&name).unwrap();
    fs::write(&name, &bytes[..bytes.len() - 9]).unwrap();
    let ended = run(dir, ["campaign", "merge", &place]);
    assert_eq!(ended.code, Some(1), "{ended:#?}");
    assert!(ended.stdout.contains("by 0 of 2 shards"), "{ended:#?}");
    assert!(ended.stdout.contains("is damaged"), "{ended:#?}");
    // A pipe is not waited for.
    fs::remove_file(&name).unwrap();
    let made = Command::new("mkfifo").arg(&name).status().unwrap();
    assert!(made.success());
    let ended = run(dir, ["campaign", "merge", &place]);
    assert_eq!(ended.code, Some(1), "{ended:#?}");
    assert!(ended.stdout.contains("is no regular file"), "{ended:#?}");
    fs::remove_file(&name).unwrap();
    // It is mended by running the shards, whatever lies there.
    for index in ["1/2", "2/2"] {
        assert_eq!(shard(dir, &place, index).code, Some(0));
    }
    assert_eq!(run(dir, ["campaign", "merge", &place]).code, Some(0));
}

/// What a shard has left.
fn documents(dir: &Path, place: &str, index: &str) -> Vec<PathBuf> {
    let shard = dir.join(place).join("shards").join(index);
    let mut names = common::names(&shard);
    names.retain(|name| name.ends_with(".json"));
    names.iter().map(|name| shard.join(name)).collect()
}

/// Puts another document in the place of the only one of shard 1, as whoever can write there may: called as it should be.
fn forge(dir: &Path, place: &str, change: impl FnOnce(&mut Value, &mut ProofResults)) {
    let name = documents(dir, place, "000001").remove(0);
    let mut document: Value = serde_json::from_slice(&fs::read(&name).unwrap()).unwrap();
    let at = "/outcomes/0/done/results/experiments/0";
    let mut proof = serde_json::from_value(document.pointer(at).unwrap().clone()).unwrap();
    change(&mut document, &mut proof);
    let changed = serde_json::to_value(proof).unwrap();
    let known = document.pointer_mut(at).unwrap().as_object_mut().unwrap();
    known.extend(changed.as_object().unwrap().clone());
    let text = document.to_string();
    fs::remove_file(&name).unwrap();
    let digest = Digest::of(text.as_bytes());
    fs::write(name.with_file_name(format!("{digest}.json")), text).unwrap();
}

#[test]
fn a_shard_that_is_not_proven_is_run_again() {
    let dir = scratch();
    let dir = dir.path();
    let Some(place) = plan(dir, 1, &[SAFE]) else {
        return;
    };
    assert_eq!(shard(dir, &place, "1/1").code, Some(0));
    forge(dir, &place, |_, proof| {
        proof.unchecked = Some(Unchecked {
            states: std::mem::take(&mut proof.coverage.checked),
            reason: "there was no memory".to_owned(),
        });
    });
    assert_eq!(merged(dir, &place).0, Some(1));
    assert_eq!(shard(dir, &place, "1/1").code, Some(0));
    assert_eq!(documents(dir, &place, "000001").len(), 2);
    assert_eq!(merged(dir, &place).0, Some(0));
    assert_eq!(shard(dir, &place, "1/1").code, Some(0));
    assert_eq!(documents(dir, &place, "000001").len(), 2);
}

#[test]
fn what_is_to_be_typed_is_of_the_plan_and_not_of_a_document() {
    let dir = scratch();
    let dir = dir.path();
    let Some(place) = plan(dir, 1, &[LOSING]) else {
        return;
    };
    assert_eq!(shard(dir, &place, "1/1").code, Some(3));
    forge(dir, &place, |document, proof| {
        document["machine"] = "a\u{8}b".into();
        proof.shortest.as_mut().unwrap().command = "echo x; touch y".to_owned();
        proof.violations.push(ViolationCount {
            violation: Violation::Invented,
            states: 1,
            example: "\u{8}".to_owned(),
            detail: "\u{8}".to_owned(),
            place: None,
            crashed: false,
        });
    });
    let merge = run(dir, ["campaign", "merge", &place]);
    let report = run(dir, ["campaign", "report", &place]);
    let page = fs::read_to_string(dir.join("landfall-campaign/report/index.html")).unwrap();
    let again = run(dir, ["campaign", "run", &place, "--shard", "1/1"]);
    for text in [
        &merge.stdout,
        &report.stdout,
        &page,
        &again.stdout,
        &again.stderr,
    ] {
        assert!(!text.contains("touch y"), "{text}");
        assert!(!text.contains('\u{8}'), "{text}");
    }
    // What is shown instead shows the state.
    let typed = |what: &str| {
        let line = merge.stdout.lines().find(|line| line.contains(what));
        let words = shlex::split(line.expect("there is such a command")).unwrap();
        run(dir, &words[1..])
    };
    assert_eq!(typed("landfall campaign fetch").code, Some(0));
    let shown = typed("--state=");
    assert_eq!(shown.code, Some(3), "{shown:#?}");
    // A loss is said also where it cannot be written.
    if Path::new("/dev/full").exists() {
        let unwritten = ["campaign", "merge", &place, "--json", "/dev/full"];
        let ended = run(dir, unwritten);
        assert_eq!((ended.code, ended.stdout), (Some(3), merge.stdout));
        assert!(ended.stderr.contains("/dev/full"), "{}", ended.stderr);
    }
    // A name that is none is no word of a command.
    forge(dir, &place, |_, proof| {
        proof.shortest.as_mut().unwrap().name = "x; touch y".to_owned();
    });
    let merge = run(dir, ["campaign", "merge", &place]);
    assert!(!merge.stdout.contains("touch y"), "{merge:#?}");
}

/// Puts a shard's document back where it is kept when nobody can be told of it, and the recording that it tells of.
fn unsend(dir: &Path, place: &str, index: &str) -> PathBuf {
    let shard = dir.join(place).join("shards").join(index);
    let mut names = common::names(&shard);
    names.retain(|name| name.ends_with(".json"));
    let (_, id) = place.rsplit_once('/').unwrap();
    let kept = dir.join(format!("work/unsent-{id}-{index}-{}", names[0]));
    fs::rename(shard.join(&names[0]), &kept).unwrap();
    for name in common::names(&dir.join(place).join("recordings")) {
        let from = dir.join(place).join("recordings").join(&name);
        fs::rename(from, dir.join(format!("work/{name}.recording"))).unwrap();
    }
    kept
}

#[test]
fn a_directory_to_work_in_may_begin_with_a_hyphen() {
    let dir = scratch();
    let dir = dir.path();
    fs::create_dir(dir.join("results")).unwrap();
    let command = "landfall lab sync . --sync fdatasync --ops 20 --rounds 2";
    let text = format!(
        "name = \"test\"\nshards = 1\nresults = \"results\"\n[[run]]\ncommand = \"{command}\"\n"
    );
    let Some(place) = plan_of(dir, &text) else {
        return;
    };
    let ended = run(
        dir,
        ["campaign", "run", &place, "--shard", "1/1", "--work=-x"],
    );
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert!(ended.stdout.contains(": measured"), "{ended:#?}");
}

#[test]
fn what_could_not_be_sent_is_kept_and_sent_by_the_next_run() {
    let dir = scratch();
    let dir = dir.path();
    let text = format!(
        "name = \"test\"\nshards = 1\nresults = \"results\"\n[[run]]\ncommand = \"landfall {LOSING}\"\nrecording = \"own\"\n"
    );
    fs::create_dir(dir.join("results")).unwrap();
    fs::create_dir(dir.join("work")).unwrap();
    let Some(place) = plan_of(dir, &text) else {
        return;
    };
    let arguments = [
        "campaign", "run", &place, "--shard", "1/1", "--work", "work",
    ];
    let run_it = || run(dir, arguments);

    // While it runs, what is shared goes away: a directory that is not mounted any more.
    let mut one = landfall();
    one.args(arguments).current_dir(dir);
    let one = one.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let one = one.expect("the program can be run");
    let begun = dir.join(&place).join("shards/000001/begun");
    while !begun.exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let (there, away) = (dir.join("results"), dir.join("away"));
    fs::rename(&there, &away).unwrap();
    let ended = one.wait_with_output().unwrap();
    fs::rename(&away, &there).unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("run it again on this machine"), "{said}");
    let sent = || {
        let ended = run_it();
        assert_eq!(ended.code, Some(3), "{ended:#?}");
        assert!(
            ended.stderr.contains("sending what shard 1/1 did here"),
            "{ended:#?}"
        );
        assert!(ended.stderr.contains("has been run"), "{ended:#?}");
        assert_eq!(common::names(&dir.join("work")), [""; 0]);
        let (code, campaign) = merged(dir, &place);
        assert_eq!(code, Some(3));
        let digest = campaign["proofs"][0]["recording"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(dir.join(&place).join("recordings").join(digest).exists());
        campaign
    };
    let first = sent();
    unsend(dir, &place, "000001");
    assert_eq!(sent(), first);

    // In a directory that others can write to it may be theirs.
    let kept = unsend(dir, &place, "000001");
    let work = dir.join("work");
    let may = |mode| fs::set_permissions(&work, fs::Permissions::from_mode(mode)).unwrap();
    may(0o777);
    let ended = run_it();
    ended.assert_refused(2);
    assert!(
        ended.stderr.contains("others can write to work"),
        "{ended:#?}"
    );
    may(0o755);
    // Nor is it taken for sent where something else has its name, or the name of its recording.
    let names = common::names(&work);
    let recording = names
        .iter()
        .find_map(|name| name.strip_suffix(".recording"));
    let there = dir.join(&place).join("recordings").join(recording.unwrap());
    fs::write(&there, "something else").unwrap();
    let ended = run_it();
    assert_eq!(ended.code, Some(1), "{ended:#?}");
    assert!(
        ended.stderr.contains("is damaged: remove it; what"),
        "{ended:#?}"
    );
    assert!(ended.stderr.contains("is kept in /"), "{ended:#?}");
    assert_eq!(common::names(&work), names);
    fs::remove_file(&there).unwrap();
    let (_, name) = kept.to_str().unwrap().rsplit_once('-').unwrap();
    let there = dir.join(&place).join("shards/000001").join(name);
    fs::write(&there, "").unwrap();
    assert_eq!(run_it().code, Some(1));
    assert_eq!(common::names(&work), names);
    fs::remove_file(&there).unwrap();
    assert_eq!(sent(), first);

    // What is damaged is not sent, and nothing else is run.
    let kept = unsend(dir, &place, "000001");
    let bytes = fs::read(&kept).unwrap();
    fs::write(&kept, &bytes[..bytes.len() - 9]).unwrap();
    let ended = run_it();
    ended.assert_refused(1);
    assert!(ended.stderr.contains("is damaged: remove it"), "{ended:#?}");
    // A pipe is not waited for.
    fs::remove_file(&kept).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(&kept)
            .status()
            .unwrap()
            .success()
    );
    let ended = run_it();
    ended.assert_refused(1);
    assert!(ended.stderr.contains("is no regular file"), "{ended:#?}");
    fs::remove_file(&kept).unwrap();
    // Nor without its recording.
    fs::write(&kept, &bytes).unwrap();
    for name in common::names(&dir.join("work")) {
        if name.ends_with(".recording") {
            fs::remove_file(dir.join("work").join(name)).unwrap();
        }
    }
    let ended = run_it();
    assert_eq!(ended.code, Some(1), "{ended:#?}");
    assert!(ended.stderr.contains("is gone, of which"), "{ended:#?}");
}

#[test]
fn what_acknowledges_nothing_is_not_planned() {
    let dir = scratch();
    let dir = dir.path();
    let text = "name = \"a\"\nshards = 2\nresults = \"results\"\n[[run]]\n\
        command = \"landfall prove command --cmd 'true {dir} {ack}' --check 'true {dir} {out}'\"\n";
    fs::write(dir.join("plan.toml"), text).unwrap();
    let ended = run(dir, ["campaign", "plan", "plan.toml"]);
    // What is being recorded is told before.
    assert_eq!(ended.code, Some(1), "{ended:#?}");
    if ended.stderr.contains("root") {
        return skip(&format!("nothing can be proven here: {}", ended.stderr));
    }
    assert!(
        ended.stderr.contains("no transaction was acknowledged"),
        "{ended:#?}"
    );
    assert!(!dir.join("results").join("shards").exists());
}

#[test]
fn a_plan_that_makes_no_sense_is_refused_before_anything_is_recorded() {
    let dir = scratch();
    let dir = dir.path();
    let planned = |command: &str| {
        let text = format!(
            "name = \"a\"\nshards = 2\nresults = \"r\"\n[[run]]\ncommand = \"{command}\"\n"
        );
        fs::write(dir.join("plan.toml"), text).unwrap();
        run(dir, ["campaign", "plan", "plan.toml"])
    };
    for (command, why) in [
        (
            "landfall prove nothing-of-that-name --state 1:2:none",
            "leave out --state",
        ),
        (
            "landfall prove files --no-such-option",
            "unexpected argument",
        ),
        ("landfall prove files --minutes 3", "--minutes"),
        (
            "landfall prove files --keep-recording r",
            "--keep-recording",
        ),
        ("landfall lab sync --json x .", "--json"),
        ("landfall prove --list", "name what is to be proven"),
        ("landfall clean", "only landfall prove"),
        ("rm -rf x", "not a command of landfall's"),
    ] {
        let ended = planned(command);
        ended.assert_refused(2);
        assert!(ended.stderr.contains(why), "{command}: {ended:#?}");
    }
    assert_eq!(common::names(dir), ["plan.toml"]);
    run(dir, ["campaign", "plan", "absent.toml"]).assert_refused(2);
    fs::write(dir.join("plan.toml"), "name = 3").unwrap();
    run(dir, ["campaign", "plan", "plan.toml"]).assert_refused(2);
}
