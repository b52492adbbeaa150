//! Runs the commands that the repository's pages name, where that is cheap and safe.
//!
//! Each runs in a directory of its own, in which there is what the pages name: a log, a state, a store, two results documents. Of an
//! experiment the plan is listed, or a few operations are measured. The rest is only parsed, by a test inside the program
//! (`src/args/documented.rs`), for the reason that [`treatment`] gives.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::pages::{Documented, are_here, documented_commands, repository};
use common::{Ended, is_root, landfall, measure, run, scratch, skip};
use landfall::{Journaled, Log, Options, Serde, SerdeState, StateOptions, Store, StoreOptions};
use tempfile::TempDir;

/// What is done with a command.
#[derive(Debug, PartialEq)]
enum Treatment {
    /// Run with these words behind it.
    Run(&'static [&'static str]),
    /// Only parsed, and why.
    Parsed(&'static str),
}

fn treatment(words: &[String], in_block: bool) -> Treatment {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
    let names = words.iter().filter(|word| !word.starts_with('-')).count();
    match (word(0), word(1)) {
        _ if has(&["--help"]) => Treatment::Run(&[]),
        _ if has(&["--witness"]) => {
            Treatment::Parsed("the verdict is one of the reader's disk; tests/witness.rs makes one")
        }
        // The one before is asked for, and there is none.
        ("compare", "") => Treatment::Parsed("it compares with the run before"),
        ("log" | "state" | "store" | "compare" | "completions", _) if !in_block && names < 3 => {
            Treatment::Parsed("a command's name in a sentence")
        }
        (
            "inspect" | "subjects" | "man" | "completions" | "compare" | "log" | "state" | "store",
            _,
        ) => Treatment::Run(&[]),
        ("witness", _) => Treatment::Parsed(
            "it takes another host, a token, and a disk whose power is cut; tests/witness.rs cuts it",
        ),
        ("clean", _) if has(&["--dry-run"]) => Treatment::Run(&[]),
        ("clean", _) => Treatment::Parsed("it removes what other people's killed runs left"),
        ("show", "") => Treatment::Parsed("it shows the last run, and there is none"),
        ("show", _) => Treatment::Run(&[]),
        ("prove", _) if has(&["--list"]) => Treatment::Run(&[]),
        ("prove", _) => Treatment::Parsed(
            "it takes root or User-mode Linux, and often a server; tests/prove.rs proves",
        ),
        ("advise", _) if has(&["--list"]) => Treatment::Run(&[]),
        ("advise", "--check") if in_block => Treatment::Run(&[]),
        ("advise", _) => Treatment::Parsed(
            "it measures for minutes what was not measured; tests/advise.rs advises",
        ),
        ("lab", _) if has(&["--config"]) => Treatment::Parsed("the configuration is the reader's"),
        ("lab", _) if has(&["--scale"]) => Treatment::Parsed("it takes hundreds of gigabytes"),
        ("lab", "sync") if !has(&["--on", "--prove", "--ops", "--rounds", "--list"]) => {
            Treatment::Run(&["--ops", "16", "--rounds", "1", "--no-report"])
        }
        ("lab", _) if has(&["--list"]) => Treatment::Run(&[]),
        // A plan says what would run, how long and where, and runs nothing.
        ("lab", _) => Treatment::Run(&["--list"]),
        _ => Treatment::Parsed("no command of its own"),
    }
}

#[derive(Default, serde::Serialize, serde::Deserialize, Clone)]
struct Counter(u64);

impl SerdeState for Counter {
    type Command = u64;
    type Output = ();

    fn apply(&mut self, more: u64) {
        self.0 += more;
    }
}

/// A directory with everything that commands on the pages read.
fn place() -> TempDir {
    let place = scratch();
    let at = |name: &str| place.path().join(name);
    let log = Log::open(at("log"), Options::default()).unwrap();
    log.append_durable(b"a record").unwrap();
    log.close().unwrap();
    let state = Journaled::<Serde<Counter>>::open(at("state"), StateOptions::default()).unwrap();
    state.apply(1).unwrap();
    state.close().unwrap();
    let store = Store::open(at("events"), StoreOptions::default()).unwrap();
    store.close().unwrap();
    fs::create_dir(at("data")).unwrap();
    fs::write(at("my.cnf"), "[mariadbd]\nlog_bin\nsync_binlog=0\n").unwrap();
    for name in ["before.json", "after.json"] {
        let document = measure(&at("data"), "--ops 16 --rounds 1 --allocation append");
        fs::write(at(name), document.to_string()).unwrap();
    }
    place
}

/// The words as they are run in `place`: disks of the reader's are a directory in it.
fn here(documented: &Documented) -> Vec<String> {
    let kind = documented.words[0].as_str();
    let words = documented
        .words
        .iter()
        .map(|word| match (kind, word.as_str()) {
            ("log" | "state", ".") => kind,
            (_, "/mnt/data" | "/srv/db" | ".") => "data",
            (_, "/etc/mysql/my.cnf") => "my.cnf",
            (_, word) => word,
        });
    words.map(str::to_owned).collect()
}

fn assert_done(place: &Path, documented: &Documented, further: &[&str]) {
    let words = here(documented);
    let words = words
        .iter()
        .map(String::as_str)
        .chain(further.iter().copied());
    let ended: Ended = run(place, words);
    // What takes root is refused in one sentence; the configuration that is checked risks something.
    let is_refused = ended.code == Some(4) && !is_root() && documented.as_root;
    let is_risk = ended.code == Some(3) && documented.words.iter().any(|word| word == "--check");
    assert!(
        matches!(ended.code, Some(0 | 5)) || is_refused || is_risk,
        "{}: {:?} {further:?}: {ended:#?}",
        documented.place,
        documented.words
    );
}

#[test]
fn what_is_cheap_and_safe_is_run() {
    if !are_here() {
        return println!("a package has no pages");
    }
    let place = place();
    let mut done: Vec<Vec<String>> = Vec::new();
    let mut run = 0;
    for documented in documented_commands() {
        let Treatment::Run(further) = treatment(&documented.words, documented.in_block) else {
            continue;
        };
        if done.contains(&documented.words) {
            continue;
        }
        // Salvaging makes a new directory, which must not be there yet.
        let _ = fs::remove_dir_all(place.path().join("new"));
        assert_done(place.path(), &documented, further);
        run += 1;
        done.push(documented.words);
    }
    println!("{run} different commands were run");
    assert!(run >= 20, "only {run} commands were run");
}

/// The programs of a page, in its own order.
fn programs(page: &str, language: &str) -> Vec<String> {
    let text = fs::read_to_string(repository().join(page)).unwrap();
    let fence = format!("```{language}\n");
    let blocks = text.split(&fence).skip(1);
    let blocks = blocks.map(|rest| rest.split("```").next().unwrap().to_owned());
    blocks.collect()
}

/// The README's program is the first of the engine's, which is compiled with its documentation and run outside of the workspace.
#[test]
fn the_program_in_the_readme_is_that_of_the_engine() {
    if !are_here() {
        return println!("a package has no pages");
    }
    let ours = programs("README.md", "rust");
    let engine = programs("crates/landfall/README.md", "rust,no_run");
    assert_eq!(ours, engine[..1]);
}

#[test]
fn the_tutorial_finds_its_bug_and_mends_it() {
    if !are_here() {
        return println!("a package has no pages");
    }
    if !is_root() {
        return skip("a proof needs root");
    }
    if Command::new("python3").arg("--version").output().is_err() {
        return skip("there is no python3");
    }
    let page = "docs/tutorial/first-bug.md";
    let [broken, checker, mended] = programs(page, "python").try_into().unwrap();
    let half = broken.replace(
        "    os.rename",
        "        file.flush()\n        os.fsync(file.fileno())\n    os.rename",
    );
    assert_ne!(half, broken);
    let command = documented_commands()
        .into_iter()
        .find(|one| one.place.starts_with(page) && one.words[0] == "prove")
        .expect("the tutorial cuts the power");
    let place = scratch();
    fs::write(place.path().join("check.py"), checker).unwrap();
    for (program, code, says) in [
        (broken, 3, "lost up to 40 acknowledged transactions"),
        (
            half,
            3,
            "lost the last acknowledged transaction, and only that",
        ),
        (mended, 0, "lost nothing"),
    ] {
        fs::write(place.path().join("save.py"), program).unwrap();
        let mut landfall = landfall();
        // Fewer states than on the page: the first ones are enough to tell.
        let words = command
            .words
            .iter()
            .map(|word| if word == "200" { "30" } else { word });
        let output = landfall
            .args(words)
            .arg("--no-report")
            .current_dir(place.path())
            .output();
        let ended: Ended = output.unwrap().into();
        assert_eq!(ended.code, Some(code), "{ended:#?}");
        assert!(ended.stdout.contains(says), "{says}: {ended:#?}");
    }
}
