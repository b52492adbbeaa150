//! Job files as they are, for a reader to judge, and held against what their schedulers publish of them.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::job;
use jsonschema::Validator;
use landfall_campaign::emit::{Job, Scheduler, emit};
use serde_json::Value;

const OBJECT_STORE: &str = "s3://fleet/landfall";
const DIRECTORY: &str = "/srv/landfall results";

/// A file in `tests/emitted`, or what it is to become where LANDFALL_UPDATE is set.
fn assert_is_kept(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/emitted")
        .join(name);
    if std::env::var_os("LANDFALL_UPDATE").is_some() {
        fs::create_dir_all(path.parent().expect("it is in a directory")).unwrap();
        fs::write(&path, text).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == text,
        "{name} is emitted otherwise; LANDFALL_UPDATE=1 writes it anew:\n{text}"
    );
}

#[test]
fn job_files_are_those_that_are_kept() {
    for (place, results) in [("object-store", OBJECT_STORE), ("directory", DIRECTORY)] {
        for scheduler in Scheduler::ALL {
            let file = Path::new(scheduler.file_name())
                .extension()
                .expect("it has one");
            let name = format!("{place}/{scheduler}.{}", file.to_str().unwrap());
            assert_is_kept(&name, &emit(scheduler, &job(results)));
        }
    }
}

/// The documents of a file of YAML.
pub fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn validator(schema: &str) -> Validator {
    let schema: Value = serde_json::from_str(schema).expect("a schema is JSON");
    jsonschema::validator_for(&schema).expect("a schema is one")
}

#[track_caller]
fn assert_valid(validator: &Validator, document: &Value) {
    let errors: Vec<String> = validator
        .iter_errors(document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}\n{document:#}");
}

/// Jobs of every kind: where results go, few and many shards, and names that nobody should give.
fn jobs() -> Vec<Job> {
    let mut jobs = Vec::new();
    for results in [
        OBJECT_STORE,
        DIRECTORY,
        "/a:b\n'\"${{ {{ $(x) \\",
        "s3://b/%!#&*: - |>",
    ] {
        for shards in [1, 4, 256, 257, 1000] {
            for name in [
                "nightly",
                "..",
                "A_name.with-63-characters-or-more-that-goes-on-and-on-and-on-and-on",
                "é\n: #",
            ] {
                jobs.push(Job {
                    name: name.to_owned(),
                    shards,
                    ..job(results)
                });
            }
        }
    }
    jobs
}

const KUBERNETES: &str = include_str!("schemas/kubernetes-job.json");
const GITHUB: &str = include_str!("schemas/github-workflow.json");

#[test]
fn manifests_are_what_kubernetes_publishes() {
    let schema = validator(KUBERNETES);
    for job in jobs() {
        let documents = documents(&emit(Scheduler::Kubernetes, &job));
        assert_eq!(documents.len(), 2);
        for document in &documents {
            assert_valid(&schema, document);
            // What no schema says: the name of a host, with room for the index of a pod.
            let name = document["metadata"]["name"].as_str().unwrap();
            assert!(name.len() <= 63 - "-99999".len(), "{name}");
            assert!(
                name.chars()
                    .all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-')),
                "{name}"
            );
            assert!(!name.starts_with('-') && !name.ends_with('-'), "{name}");
        }
        assert_eq!(documents[0]["spec"]["completions"], job.shards);
        assert_eq!(documents[0]["spec"]["completionMode"], "Indexed");
    }
}

#[test]
fn workflows_are_what_github_publishes() {
    let schema = validator(GITHUB);
    for job in jobs() {
        let documents = documents(&emit(Scheduler::Github, &job));
        assert_eq!(documents.len(), 1);
        assert_valid(&schema, &documents[0]);
        let matrix = &documents[0]["jobs"]["shard"]["strategy"]["matrix"]["shard"];
        let expected: Vec<u32> = (1..=job.shards.min(256)).collect();
        assert_eq!(*matrix, serde_json::json!(expected));
    }
}

#[test]
fn schemas_refuse_what_is_wrong() {
    let manifest = &documents(&emit(Scheduler::Kubernetes, &job(OBJECT_STORE)))[0];
    let mut misspelt = manifest.clone();
    misspelt["spec"]["template"]["spec"]["restartPolice"] = "Never".into();
    assert!(!validator(KUBERNETES).is_valid(&misspelt));
    let mut text = manifest.clone();
    text["spec"]["completions"] = "4".into();
    assert!(!validator(KUBERNETES).is_valid(&text));
    let workflow = &documents(&emit(Scheduler::Github, &job(OBJECT_STORE)))[0];
    let mut misspelt = workflow.clone();
    misspelt["jobs"]["shard"]["run-on"] = "ubuntu-latest".into();
    assert!(!validator(GITHUB).is_valid(&misspelt));
}

#[test]
fn shells_read_the_scripts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("script");
    for job in jobs() {
        for scheduler in [Scheduler::Slurm, Scheduler::Sh] {
            fs::write(&path, emit(scheduler, &job)).unwrap();
            for shell in ["sh", "bash"] {
                let output = Command::new(shell).arg("-n").arg(&path).output().unwrap();
                assert!(output.status.success(), "{shell} {scheduler}: {output:?}");
            }
        }
    }
}

#[test]
fn no_file_is_wider_than_a_screen_or_has_an_end_of_line_that_nobody_sees() {
    for results in [OBJECT_STORE, DIRECTORY] {
        for scheduler in Scheduler::ALL {
            let text = emit(scheduler, &job(results));
            for line in text.lines() {
                assert!(line.chars().count() <= 128, "{scheduler}: {line}");
                assert!(!line.ends_with(' '), "{scheduler}: '{line}'");
            }
            assert!(
                text.ends_with('\n') && !text.ends_with("\n\n"),
                "{scheduler}"
            );
        }
    }
}

#[test]
fn schedulers_are_found_by_their_names() {
    for scheduler in Scheduler::ALL {
        assert_eq!(scheduler.to_string().parse(), Ok(scheduler));
    }
    let error = "cron".parse::<Scheduler>().unwrap_err().to_string();
    for scheduler in Scheduler::ALL {
        assert!(error.contains(scheduler.name()), "{error}");
    }
}
