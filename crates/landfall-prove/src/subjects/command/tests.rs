use std::fs;
use std::path::PathBuf;

use super::super::fixtures::*;
use super::super::named;
use super::*;
use crate::subject::{Mark, parse_marks};

/// Writes N to a log and says so, for ever.
const WRITER: &str = r#"n=0; while :; do n=$((n+1))
    echo "send $n" >> {ack}; echo $n >> {dir}/log; echo "ack $n" >> {ack}; done"#;
const CHECKER: &str = "cat {dir}/log";

/// Takes marks in a plain file, until there are so many acknowledgements.
struct Marked(PathBuf, usize);

impl Marked {
    fn marks(&self) -> Vec<Mark> {
        parse_marks(&fs::read(&self.0).unwrap_or_default()).unwrap()
    }

    fn acknowledged(&self) -> Vec<u64> {
        let number = |mark| match mark {
            Mark::Acknowledged(transaction) => Some(transaction),
            _ => None,
        };
        self.marks().into_iter().filter_map(number).collect()
    }
}

impl AckSink for Marked {
    fn send(&mut self) -> Option<u64> {
        unreachable!("it reports to the mark file")
    }

    fn acknowledge(&mut self, _: u64) {
        unreachable!("it reports to the mark file")
    }

    fn mark_file(&self) -> Option<PathBuf> {
        Some(self.0.clone())
    }

    fn is_enough(&self) -> bool {
        self.acknowledged().len() >= self.1
    }
}

fn program(settings: &[(&str, &str)]) -> Box<dyn Subject> {
    let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
    let settings: Vec<_> = settings.iter().map(owned).collect();
    named("command", &settings).unwrap()
}

/// One that runs these scripts.
fn scripts(writer: &str, checker: &str) -> Box<dyn Subject> {
    let shell = |script: &str| format!("sh -c '{script}'");
    program(&[("cmd", &shell(writer)), ("check", &shell(checker))])
}

/// Runs it in a directory, until it is enough; and the sink.
fn run(subject: &dyn Subject, enough: usize) -> (tempfile::TempDir, Marked, Result<(), String>) {
    let directory = directory();
    let place = directory.path().join("dir");
    fs::create_dir(&place).unwrap();
    subject.prepare(&place, &Stop::default()).unwrap();
    let mut sink = Marked(directory.path().join("marks"), enough);
    fs::write(&sink.0, "").unwrap();
    let outcome = subject.run(&place, &mut sink, &Stop::default());
    (directory, sink, outcome.map_err(|error| error.to_string()))
}

fn found(checker: &str) -> Result<Recovered, String> {
    let subject = scripts(WRITER, checker);
    let found = subject.check(directory().path(), &Stop::default());
    found.map_err(|error| error.to_string())
}

#[test]
fn a_program_runs_until_it_is_enough() {
    let subject = scripts(WRITER, CHECKER);
    let (directory, sink, outcome) = run(subject.as_ref(), 20);
    assert_eq!(outcome, Ok(()));
    let acknowledged = sink.acknowledged();
    let last = acknowledged.len() as u64;
    assert!(last >= 20);
    assert_eq!(acknowledged, (1..=last).collect::<Vec<_>>());
    let mut found = check(subject.as_ref(), &directory.path().join("dir"));
    // It may have been told to end between writing the next one and saying so.
    found.whole.remove(&(last + 1));
    assert_eq!(found, all_whole(last));
}

#[test]
fn a_program_may_end_by_itself() {
    let writer = WRITER.replace("while :", "while [ $n -lt 5 ]");
    let subject = scripts(&writer, CHECKER);
    let (directory, sink, outcome) = run(subject.as_ref(), 20);
    assert_eq!((outcome, sink.marks().len()), (Ok(()), 10));
    let found = check(subject.as_ref(), &directory.path().join("dir"));
    assert_eq!(found, all_whole(5));
}

#[test]
fn a_program_that_fails_says_why() {
    let subject = scripts("echo no luck {dir} {ack} >&2; exit 3", CHECKER);
    let (_directory, sink, outcome) = run(subject.as_ref(), 1);
    let error = outcome.unwrap_err();
    assert!(
        error.starts_with("the program failed: no luck /"),
        "{error}"
    );
    assert!(error.ends_with(" (exit status: 3)"), "{error}");
    assert!(sink.marks().is_empty());
}

#[test]
fn a_program_is_prepared_first() {
    let cmd = "sh -c 'cat {dir}/old > {ack}'";
    let settings = [("cmd", cmd), ("check", "ls {dir}")];
    let prepared = [&settings[..], &[("prepare", "sh -c 'echo 7 > {dir}/old'")]].concat();
    let (_directory, sink, outcome) = run(program(&prepared).as_ref(), 9);
    assert_eq!(outcome, Ok(()));
    assert_eq!(sink.acknowledged(), [7]);
    let failing = [&settings[..], &[("prepare", "sh -c 'echo {dir}; exit 1'")]].concat();
    let error = program(&failing)
        .prepare(directory().path(), &Stop::default())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "it could not be prepared: exit status: 1"
    );
}

#[test]
fn a_program_needs_somewhere_to_report_and_to_be_there() {
    let error = |subject: &dyn Subject, sink: &mut dyn AckSink| {
        let outcome = subject.run(directory().path(), sink, &Stop::default());
        outcome.unwrap_err().to_string()
    };
    let subject = scripts(WRITER, CHECKER);
    let text = error(subject.as_ref(), &mut Counting::new(1));
    assert!(text.contains("there is no mark file"), "{text}");
    let nothing = program(&[("cmd", "/no/such {dir} {ack}"), ("check", "/no/such {dir}")]);
    let text = error(nothing.as_ref(), &mut Marked("/dev/null".into(), 1));
    assert!(text.starts_with("cannot start /no/such: "), "{text}");
    // Nor is a checker that is not there anybody's loss.
    assert!(nothing.check(directory().path(), &Stop::default()).is_err());
}

#[test]
fn a_report_says_what_is_there() {
    let found = parse_report(
        "1\n2\n 4 \r\n\npartial 3\npartial 4\ninvented key  x=7\ninvented\ndamage bad sum\ndamage 2\n",
    );
    let expected = Recovered {
        whole: set(&[1, 2]),
        partial: set(&[3, 4]),
        invented: vec!["key  x=7".into(), String::new()],
        damage: Some("bad sum".into()),
        crashed: false,
        diverged: None,
    };
    assert_eq!(found, Ok(expected));
    assert_eq!(parse_report(""), Ok(Recovered::default()));
}

#[test]
fn a_report_that_says_something_else_is_no_report() {
    for wrong in [
        "0",
        "one",
        "1 2",
        "partial",
        "partial x",
        "ok",
        "-1",
        "whole 1",
    ] {
        let error = parse_report(&format!("1\n{wrong}\n")).unwrap_err();
        assert!(
            error.starts_with(&format!("the checker printed '{wrong}': ")),
            "{error}"
        );
    }
    assert!(
        found("echo {dir}")
            .unwrap_err()
            .starts_with("the checker printed '/")
    );
}

#[test]
fn a_checker_that_fails_is_damage() {
    let damage = |checker| found(checker).unwrap().damage.unwrap();
    assert_eq!(
        damage("echo 1; echo cannot open {dir} | cut -c 1-11 >&2; exit 2"),
        "the checker failed: cannot open (exit status: 2)"
    );
    let killed = damage("ls {dir}; kill -SEGV $$");
    assert!(
        killed.starts_with("the checker failed: signal: 11"),
        "{killed}"
    );
    assert!(
        found("echo 1; ls {dir} > {dir}; exit 2")
            .unwrap()
            .whole
            .is_empty()
    );
}

#[test]
fn a_checker_that_hangs_is_killed_and_damage() {
    let settings = [
        ("cmd", "true {dir} {ack}"),
        ("check", "sh -c 'echo 1; sleep 600; ls {dir}'"),
        ("check-timeout", "1"),
    ];
    let found = program(&settings)
        .check(directory().path(), &Stop::default())
        .unwrap();
    let damage = "the checker had not ended after 1 s and was killed";
    assert_eq!(found, Recovered::damaged(damage));
}

#[test]
fn who_stops_does_not_wait_for_a_checker() {
    let slow = scripts(WRITER, "ls {dir}; exec sleep 600");
    let stop = Stop::default();
    stop.flag()
        .store(true, std::sync::atomic::Ordering::Relaxed);
    let error = slow.check(directory().path(), &stop).unwrap_err();
    assert_eq!(error.to_string(), "stopped");
}

#[test]
fn a_checker_that_prints_without_end_is_stopped() {
    let error = found("ls {dir}; exec yes 1").unwrap_err();
    assert_eq!(error, "the program printed more than 64 MiB");
}

#[test]
fn paths_are_put_where_their_names_are() {
    let (dir, ack) = (["/a b{ack}".into()], ["/m".into()]);
    let paths: [Place<'_>; 2] = [("{dir}", &dir), ("{ack}", &ack)];
    assert_eq!(
        put("--dir={dir}/x:{ack},{dir}", &paths),
        "--dir=/a b{ack}/x:/m,/a b{ack}"
    );
    assert_eq!(put("{other}", &paths), "{other}");
    assert_eq!(put("", &paths), "");
}

#[test]
fn what_cannot_be_run_is_refused() {
    let check = ("check", "c {dir}");
    assert_eq!(
        refusal("command", &[check]).split(':').next().unwrap(),
        "command needs cmd"
    );
    assert!(refusal("command", &[("cmd", "p {dir}"), check]).contains("it has no {ack}, so"));
    let unpaired = refusal("command", &[("cmd", "p 'a {dir} {ack}"), check]);
    assert!(unpaired.ends_with("with quotes in pairs"), "{unpaired}");
    assert!(refusal("command", &[("cmd", ""), check]).ends_with("with quotes in pairs"));
    let name = program(&[("cmd", "p {dir} {ack}"), check])
        .name()
        .to_string();
    assert_eq!(name, "command cmd='p {dir} {ack}' check='c {dir}'");
}

/// The two programs of the page for users, as it has them.
#[test]
fn the_example_on_the_page_runs() {
    if Command::new("python3").arg("-V").output().is_err() {
        println!("skipped: python3 is not installed");
        return;
    }
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/prove-your-program.md");
    let page = fs::read_to_string(page).unwrap();
    let sources: Vec<&str> = page
        .split("```python\n")
        .skip(1)
        .map(|part| part.split("```").next().unwrap())
        .collect();
    let programs = directory();
    let commands: Vec<String> = ["writer", "checker"]
        .iter()
        .zip(&sources)
        .map(|(name, source)| {
            let path = programs.path().join(name);
            fs::write(&path, source).unwrap();
            format!("python3 '{}' {{dir}}", path.display())
        })
        .collect();
    let cmd = format!("{} {{ack}}", commands[0]);
    let settings = [
        ("cmd", cmd.as_str()),
        ("check", &commands[1]),
        ("ordered", "yes"),
    ];
    let subject = program(&settings);
    let (directory, sink, outcome) = run(subject.as_ref(), 20);
    assert_eq!(outcome, Ok(()));
    let last = sink.acknowledged().len() as u64;
    let place = directory.path().join("dir");
    let mut found = check(subject.as_ref(), &place);
    found.whole.remove(&(last + 1));
    assert_eq!(found, all_whole(last));

    // A torn end is no harm, a hole before it is; and without the log there is nothing.
    let log = place.join("log");
    let bytes = fs::read(&log).unwrap();
    fs::write(&log, &bytes[..bytes.len() - 20]).unwrap();
    assert_eq!(check(subject.as_ref(), &place).damage, None);
    let mut hole = bytes.clone();
    hole[100..120].fill(0);
    fs::write(&log, hole).unwrap();
    assert!(check(subject.as_ref(), &place).damage.is_some());
    fs::remove_file(&log).unwrap();
    assert_eq!(check(subject.as_ref(), &place), Recovered::default());
}
