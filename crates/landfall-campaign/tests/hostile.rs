//! Whatever a job's texts contain, the program is called with them as they are, and nothing else is run.
//!
//! Each file is read as its scheduler reads it: the shell's scripts by a shell, YAML by a parser, then Kubernetes' variables and
//! GitHub's expressions by what their documentation says of them. What is left is run.

mod common;

use std::process::Command;

use common::{Noting, job, merge_and_report, run};
use landfall_campaign::emit::{Job, Scheduler, emit};
use proptest::prelude::*;
use serde_json::Value;

/// What means something to a shell, to YAML, to Kubernetes, to GitHub or to Ansible; and some that does not.
const PIECES: &[&str] = &[
    "'",
    "\"",
    "$",
    "$(",
    ")",
    "$$",
    "${{",
    "}}",
    "{{",
    "{%",
    "{#",
    "`",
    "\\",
    "\n",
    "\t",
    " ",
    "#",
    ": ",
    "- ",
    "|",
    ">",
    "&",
    "*",
    "!",
    "%",
    ";",
    "\r",
    "\u{85}",
    "\u{2028}",
    "\u{feff}",
    "\u{7f}",
    "\u{1b}",
    "é",
    "😀",
    "EOF",
    "a",
    "$HOME",
    "$(touch broken)",
    "${{ secrets.AWS_SECRET_ACCESS_KEY }}",
    "$(CAMPAIGN)",
    "{{ 1 + 1 }}",
    "\n---\n",
    "\n#SBATCH --wrap=x\n",
    "'; touch broken; '",
];

fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(PIECES).prop_map(str::to_owned),
        // A program is not given a word with a byte that ends it.
        1 => any::<char>().prop_filter("no NUL", |c| *c != '\0').prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

/// Runs `script` with these variables, as a job would.
fn play(noting: &Noting, shell: &[&str], script: &str, variables: &[(&str, &str)]) {
    let mut command = Command::new(shell[0]);
    command.args(&shell[1..]).args(["-c", script]);
    noting.around(&mut command);
    command.envs(variables.iter().copied());
    let output = command.output().expect("a shell can be run");
    assert!(output.status.success(), "{output:?}\n{script}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{script}");
    assert!(!noting.dir().join("broken").exists(), "{script}");
}

/// What Kubernetes makes of a command or a variable: `$(NAME)` is the variable of that name, or stays; `$$` is a dollar.
fn kubernetes(text: &str, variables: &[(&str, &str)]) -> String {
    let mut read = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        read.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            read.push('$');
            rest = after;
        } else if let Some((name, after)) =
            rest.strip_prefix('(').and_then(|rest| rest.split_once(')'))
        {
            match variables.iter().find(|variable| variable.0 == name) {
                Some(variable) => read.push_str(variable.1),
                None => read.push_str(&format!("$({name})")),
            }
            rest = after;
        } else {
            read.push('$');
        }
    }
    read + rest
}

/// What GitHub makes of a value: each expression is what it evaluates to.
fn github(text: &str, matrix_shard: &str) -> String {
    let mut read = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${{") {
        // A text in an expression may contain what ends one.
        let (value, after) = match after.strip_prefix(" '${{' }}") {
            Some(after) => ("${{", after),
            None => {
                let (name, after) = after.split_once("}}").expect("an expression ends");
                assert_eq!(name.trim(), "matrix.shard", "{text}");
                (matrix_shard, after)
            }
        };
        read.push_str(before);
        read.push_str(value);
        rest = after;
    }
    read + rest
}

fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is a text"))
}

fn yaml(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn container(manifest: &Value) -> (&str, &str) {
    let container = &manifest["spec"]["template"]["spec"]["containers"][0];
    (
        text(&container["args"][0]),
        text(&container["env"][0]["value"]),
    )
}

fn location(job: &Job) -> String {
    format!("{}/{}", job.results.trim_end_matches('/'), job.campaign)
}

fn assert_kubernetes(noting: &Noting, job: &Job) {
    let manifests = yaml(&emit(Scheduler::Kubernetes, job));
    // A directory is mounted where pods expect it: its path is the volume's.
    let (seen, is_directory) = match job.results.strip_prefix('/') {
        Some(_) => (format!("/results/{}", job.campaign), true),
        None => (location(job), false),
    };
    if is_directory {
        for manifest in &manifests {
            let volumes = manifest["spec"]["template"]["spec"]["volumes"]
                .as_array()
                .unwrap();
            let results = volumes
                .iter()
                .find(|volume| volume["name"] == "results")
                .unwrap();
            assert_eq!(text(&results["hostPath"]["path"]), job.results);
        }
    }
    let play = |manifest: &Value| {
        let (script, campaign) = container(manifest);
        let campaign = kubernetes(campaign, &[("HOME", "/"), ("JOB_COMPLETION_INDEX", "1")]);
        let variables = [
            ("CAMPAIGN", campaign.as_str()),
            ("JOB_COMPLETION_INDEX", "1"),
        ];
        play(noting, &["sh"], &kubernetes(script, &variables), &variables);
    };
    play(&manifests[0]);
    assert_eq!(noting.calls(), [run(&seen, 2, job.shards)]);
    play(&manifests[1]);
    assert_eq!(noting.calls(), merge_and_report(&seen));
}

fn assert_github(noting: &Noting, job: &Job) {
    let workflow = &yaml(&emit(Scheduler::Github, job))[0];
    let campaign = github(text(&workflow["env"]["CAMPAIGN"]), "");
    let variables = [("CAMPAIGN", campaign.as_str()), ("SHARD", "2")];
    let play = |step: &Value| {
        play(
            noting,
            &["bash", "-e"],
            &github(text(&step["run"]), "2"),
            &variables,
        );
    };
    let steps = |job: &str| workflow["jobs"][job]["steps"].as_array().unwrap().clone();
    play(&steps("shard")[0]);
    assert_eq!(noting.calls(), [["--version"]]);
    assert_eq!(github(text(&steps("shard")[1]["env"]["SHARD"]), "2"), "2");
    play(&steps("shard")[1]);
    let shards = (2..=job.shards).step_by(256);
    let mut expected: Vec<_> = shards
        .map(|shard| run(&location(job), shard, job.shards))
        .collect();
    expected.sort();
    assert_eq!(noting.calls(), expected);
    play(&steps("report")[1]);
    assert_eq!(noting.calls(), merge_and_report(&location(job)));
}

fn assert_shells(noting: &Noting, job: &Job) {
    let slurm = emit(Scheduler::Slurm, job);
    // What Slurm itself reads: up to the first command.
    let options: Vec<&str> = slurm
        .lines()
        .take_while(|line| line.starts_with('#') || line.is_empty())
        .filter(|line| line.starts_with("#SBATCH"))
        .collect();
    assert_eq!(options.len(), 9, "{options:#?}");
    play(noting, &["sh"], &slurm, &[("SLURM_ARRAY_TASK_ID", "2")]);
    assert_eq!(noting.calls(), [run(&location(job), 2, job.shards)]);
    play(noting, &["sh"], &slurm, &[("SLURM_ARRAY_TASK_ID", "0")]);
    assert_eq!(noting.calls(), merge_and_report(&location(job)));
    if job.shards < 10 {
        play(noting, &["sh"], &emit(Scheduler::Sh, job), &[]);
        let mut expected = merge_and_report(&location(job)).to_vec();
        expected.extend((1..=job.shards).map(|shard| run(&location(job), shard, job.shards)));
        expected.sort();
        assert_eq!(noting.calls(), expected);
    }
}

fn assert_ansible(job: &Job) {
    let playbook = emit(Scheduler::Ansible, job);
    let plays = &yaml(&playbook)[0];
    for play in plays.as_array().unwrap() {
        assert_eq!(text(&play["vars"]["campaign"]), location(job));
        assert_eq!(text(&play["vars"]["landfall"]), job.program);
        assert_eq!(play["vars"]["shards"], job.shards);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_named_reaches_the_program_as_it_is(
        name in hostile(),
        results in hostile(),
        in_object_store in any::<bool>(),
        shards in prop_oneof![2..6_u32, 257..600_u32],
        program in hostile(),
    ) {
        let program = program.replace('/', "");
        // A file name has at most 255 bytes.
        let noting = Noting::named(&format!("landfall{program}"));
        let results = format!("{}{results}", if in_object_store { "s3://" } else { "/" });
        let job = Job { name, shards, results, program: noting.program().to_owned(), ..job("") };
        assert_shells(&noting, &job);
        assert_kubernetes(&noting, &job);
        assert_github(&noting, &job);
        assert_ansible(&job);
    }
}
