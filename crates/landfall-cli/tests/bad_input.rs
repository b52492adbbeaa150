//! Proves that whatever is wrong with the command line, or with a file named on it, is said in one
//! sentence with the documented exit code, and that nothing is left behind.

mod common;

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use common::{Ended, is_root, landfall, measure, names, run, scratch, skip};
use serde_json::Value;

/// Exit code 2 with an explanation from the parser of the command line: one sentence, a hint perhaps,
/// and how to get help.
#[track_caller]
fn assert_misused(ended: &Ended, names_it: &str) {
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert_eq!(ended.stdout, "", "{ended:#?}");
    assert!(ended.stderr.starts_with("error: "), "{ended:#?}");
    assert!(ended.stderr.contains(names_it), "{names_it}: {ended:#?}");
    assert!(!ended.stderr.contains("panicked"), "{ended:#?}");
    assert!(ended.stderr.len() < 600, "short: {ended:#?}");
}

#[test]
fn wrong_words_are_named() {
    let dir = scratch();
    for (line, names_it) in [
        ("", "Usage"),
        ("measure", "measure"),
        ("lab --fast", "--fast"),
        ("lab sync --allocation preallocated", "preallocated"),
        ("lab sync --allocation step-0m", "step-0m"),
        ("lab sync --allocation append,", "--allocation"),
        ("lab sync --sync fsink", "fsink"),
        ("lab sync --sync direct+msync", "direct+msync"),
        ("lab sync --size 0", "from 1 byte"),
        ("lab sync --size 8X", "8X"),
        ("lab sync --size 65M", "64 MiB"),
        ("lab sync --size 99999999999G", "99999999999G"),
        ("lab sync --threads 0", "0"),
        ("lab sync --threads many", "many"),
        ("lab sync --threads 1025", "1025"),
        ("lab sync --files both", "both"),
        ("lab sync --placement random", "random"),
        ("lab sync --cache lukewarm", "lukewarm"),
        ("lab sync --rounds 0", "0"),
        ("lab sync --rounds 1.5", "1.5"),
        ("lab sync --seconds -1", "-1"),
        ("lab sync --seconds=-1", "0.001 to 86400"),
        ("lab sync --seconds nan", "0.001 to 86400"),
        ("lab sync --seconds inf", "0.001 to 86400"),
        ("lab sync --ops 0", "0"),
        ("lab sync --ops=-1", "-1"),
        ("lab sync --settle abc", "0.001 to 86400"),
        ("lab sync --ops 10 --seconds 1", "--seconds"),
        ("lab --no-report --report here", "--report"),
        ("lab --json", "--json"),
        ("lab one two", "two"),
        (
            "lab --rounds 3",
            "it is an option of 'lab sync' or 'lab stream'",
        ),
        (
            "lab --quiet --allocation append",
            "it is an option of 'lab sync'",
        ),
        ("lab --method write", "it is an option of 'lab stream'"),
        ("lab sync --method write", "--method"),
        ("lab stream --method writ", "writ"),
        ("lab stream --method direct+mmap", "direct+mmap"),
        ("lab stream --size 1K", "from 4K"),
        ("lab stream --size 99999G", "16384G"),
        ("lab stream --chunk 100", "from 512 bytes"),
        ("lab stream --chunk 65M", "64 MiB"),
        ("lab stream --allocation preallocated", "preallocated"),
        ("lab stream --data ones", "ones"),
        ("lab stream --part sizes", "--part"),
        ("lab stream --rounds 0", "0"),
        ("lab dump-vs-log --state 1", "from 4K"),
        ("lab dump-vs-log --record x", "x"),
        ("lab dump-vs-log --updates 0", "0.1 to"),
        ("lab dump-vs-log --updates nan", "0.1 to"),
        ("lab dump-vs-log --seconds 0", "0.001 to"),
        ("lab stream one two", "two"),
        (
            "lab stream --state 1M",
            "it is an option of 'lab dump-vs-log'",
        ),
        ("lab sync one two", "two"),
        ("prove --self-test --fs xfs", "--fs"),
        ("prove --self-test --seeds 4", "--seeds"),
        ("prove files --seeds 4 --states 9", "--seeds"),
        ("prove --self-test --cuts all", "--cuts"),
        ("prove --self-test --catalogue", "--catalogue"),
        ("prove --catalogue --seed 4", "--seed"),
        ("prove --catalogue --json -", "--json"),
        ("prove --catalogue --report kept", "--report"),
        ("prove --catalogue --no-report", "--no-report"),
        ("prove files --list", "[SUBJECT]"),
        ("prove --list --json -", "--json"),
        ("prove nats --nodes 3 --order epochs", "--order"),
        ("prove files --fua --cuts all", "--cuts"),
        ("prove files --fua --shard 1/2", "--shard"),
        ("advise --check mariadb=my.cnf --list", "--list"),
        ("advise --list --json -", "--json"),
        ("advise --list --for mariadb", "--for"),
        ("advise --write mariadb=-", "name one"),
        ("prove --list --in-uml", "--in-uml"),
        ("advise --list --write my.cnf", "--write"),
        ("compare a.json b.json --report kept", "--report"),
        ("witness write . host --size 6K", "multiple of 4K"),
        ("witness write . host --size 8G", "up to 1M"),
        ("witness write . host --blocks 1", "2..=65536"),
        ("witness serve known --after 3..9", "--cut-with"),
        ("witness serve known --off 9", "--cut-with"),
        ("witness serve known --seed 9", "--cut-with"),
        ("inspect one two", "two"),
        ("inspect --deep", "--deep"),
        ("completions", "<SHELL>"),
        ("completions dosshell", "dosshell"),
    ] {
        let ended = run(dir.path(), line.split_whitespace());
        if line.is_empty() {
            // Help for those who do not know what to say.
            assert_eq!(ended.code, Some(2), "{ended:#?}");
            assert!(ended.stderr.contains(names_it), "{ended:#?}");
        } else {
            assert_misused(&ended, names_it);
        }
        assert_eq!(names(dir.path()), [""; 0], "after: {line}");
    }
}

#[test]
fn requests_that_make_no_sense_are_refused_before_anything_is_made() {
    let dir = scratch();
    fs::write(dir.path().join("file"), "data").unwrap();
    fs::create_dir(dir.path().join("directory")).unwrap();
    let before = names(dir.path());
    for (line, says) in [
        ("lab --json - --csv -", "standard output"),
        ("lab --json - --tsv", "standard output"),
        ("lab --csv - --tsv", "standard output"),
        ("lab --tables --json -", "standard output"),
        ("show file --tables --csv -", "standard output"),
        ("advise --json - --tables", "standard output"),
        (
            "advise file --workload commits=1,size=1K --missing",
            "--tables",
        ),
        ("lab --json landfall-report/results.json", "same file"),
        ("lab --report new --csv new/index.html", "same file"),
        (
            "lab missing --report missing/report",
            "there is no directory missing",
        ),
        ("prove files --recording file --json file", "same file"),
        ("show file --markdown ./file", "same file"),
        ("advise --json same --write mariadb=same", "same file"),
        (
            "advise --check mariadb=file --write mariadb=./file",
            "same file",
        ),
        ("advise file --json file", "same file"),
        ("lab --json same --csv same", "same file"),
        ("lab --json same --csv ./same", "same file"),
        ("lab missing", "there is no directory missing"),
        (
            "lab missing --report missing-too/report",
            "there is no directory missing",
        ),
        ("lab file", "not a directory"),
        (
            "lab --json missing/results.json",
            "there is no directory missing",
        ),
        ("lab --csv directory", "is a directory"),
        ("show --markdown same --csv same", "same file"),
        ("show --markdown - --csv -", "standard output"),
        ("lab --csv file/results.csv", "there is no directory file"),
        ("lab --report file", "not a directory"),
        ("lab --report file/report", "--report"),
        (
            "lab sync --allocation append --sync msync",
            "a mapping cannot make a file grow",
        ),
        ("lab sync --size 100 --sync direct+fdatasync", "direct"),
        (
            "lab stream --size 1M --allocation append --method mmap",
            "cannot make a file grow",
        ),
        (
            "lab stream --size 1M --allocation recycled --method write",
            "nor over an old log",
        ),
        ("lab stream --size 1M --chunk 2M", "larger than"),
        ("lab dump-vs-log --list --state 1M --record 4", "--record"),
        ("lab dump-vs-log --state 1M --record 4", "--record"),
        ("lab dump-vs-log --state 1M --record 2M", "--record"),
        (
            "lab sync --full --allocation append --placement unaligned",
            "placement",
        ),
        ("inspect missing", "there is no directory missing"),
        ("inspect file", "not a directory"),
    ] {
        let ended = run(dir.path(), line.split_whitespace());
        ended.assert_refused(2);
        assert!(ended.stderr.contains(says), "{line}: {ended:#?}");
        assert_eq!(names(dir.path()), before, "after: {line}");
    }
}

#[test]
fn a_directory_that_may_not_be_written_is_refused() {
    let dir = scratch();
    // Where a user without rights can reach the program as well.
    let program = std::env::temp_dir();
    let program = tempfile::tempdir_in(program).unwrap();
    let (closed, open) = (program.path().join("closed"), program.path().join("open"));
    for (path, mode) in [(&closed, 0o555), (&open, 0o777)] {
        fs::create_dir(path).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(program.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = program.path().join("landfall");
    // By another process: were the copy open for writing in this one, a program that another test starts
    // just then would inherit it, and nobody could run the copy as long as that has it.
    let copied = Command::new("cp")
        .args([Path::new(env!("CARGO_BIN_EXE_landfall")), &copy])
        .status();
    assert!(copied.unwrap().success());
    let as_nobody = |cwd: &Path, arguments: &[&str]| -> Option<Ended> {
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
            command.arg(&copy);
            command
        } else {
            Command::new(&copy)
        };
        match command.args(arguments).current_dir(cwd).output() {
            Ok(output) => Some(output.into()),
            Err(error) => {
                skip(&format!("setpriv: {error}"));
                None
            }
        }
    };
    let Some(version) = as_nobody(&open, &["--version"]) else {
        return;
    };
    if version.code != Some(0) {
        return skip(&format!(
            "the program cannot be run without rights: {version:?}"
        ));
    }
    for (cwd, arguments, code, says) in [
        (&open, &["lab", "../closed"][..], 4, "may not be written"),
        (&closed, &["lab"], 4, "may not be written"),
        (&closed, &["lab", "../open"], 2, "--no-report"),
        (
            &open,
            &["lab", "--json", "../closed/results.json"],
            2,
            "../closed",
        ),
        (
            &open,
            &["lab", "--csv", "../closed/results.csv"],
            2,
            "../closed",
        ),
    ] {
        let ended = as_nobody(cwd, arguments).unwrap();
        ended.assert_refused(code);
        assert!(ended.stderr.contains(says), "{arguments:?}: {ended:#?}");
        assert_eq!(names(&closed), [""; 0]);
        assert_eq!(names(&open), [""; 0]);
    }
    // A check writes nothing, and may be of a directory in memory.
    let set_mode = |mode| fs::set_permissions(&closed, fs::Permissions::from_mode(mode));
    set_mode(0o755).unwrap();
    fs::write(closed.join("redis.conf"), "appendonly yes\n").unwrap();
    set_mode(0o555).unwrap();
    let checked = as_nobody(&closed, &["advise", "--check", "redis.conf"]).unwrap();
    set_mode(0o755).unwrap();
    assert!(matches!(checked.code, Some(3 | 4)), "{checked:#?}");
    let refused = "may not be written";
    assert!(!checked.stderr.contains(refused), "{checked:#?}");
    assert_eq!(names(&closed), ["redis.conf"]);
    drop(dir);
}

#[test]
fn documents_that_cannot_be_compared_are_refused() {
    let dir = scratch();
    let options = "--ops 20 --rounds 2 --allocation overwrite,append";
    let good = measure(dir.path(), options).to_string();
    let mut other: Value = serde_json::from_str(&good).unwrap();
    other["schema"] = "landfall-results/99".into();
    let mut shapeless: Value = serde_json::from_str(&good).unwrap();
    shapeless["experiments"] = "many".into();
    let mut stranger: Value = serde_json::from_str(&good).unwrap();
    for strategy in stranger["experiments"][0]["series"].as_array_mut().unwrap() {
        strategy["key"] = format!("{}/elsewhere", strategy["key"].as_str().unwrap()).into();
    }
    let mut nothing: Value = serde_json::from_str(&good).unwrap();
    nothing["experiments"] = Value::Array(Vec::new());
    fs::create_dir(dir.path().join("directory")).unwrap();
    for (name, text) in [
        ("good.json", good.as_str()),
        ("empty.json", ""),
        ("text.json", "not JSON at all"),
        ("truncated.json", &good[..good.len() / 2]),
        ("other.json", &other.to_string()),
        ("shapeless.json", &shapeless.to_string()),
        ("stranger.json", &stranger.to_string()),
        ("nothing.json", &nothing.to_string()),
        ("array.json", "[1, 2, 3]"),
        ("object.json", "{}"),
    ] {
        fs::write(dir.path().join(name), text).unwrap();
    }
    fs::write(dir.path().join("binary.json"), [0xFF, 0xFE, 0x00, 0x80]).unwrap();
    for (bad, says) in [
        ("missing.json", "cannot read missing.json"),
        ("directory", "cannot read directory"),
        ("binary.json", "binary.json"),
        ("empty.json", "is not a results document"),
        ("text.json", "is not a results document"),
        ("truncated.json", "is not a results document"),
        ("array.json", "is not a results document"),
        ("object.json", "is not a results document"),
        ("shapeless.json", "is not a results document"),
        ("other.json", "landfall-results/99"),
        ("stranger.json", "no strategy was measured in both"),
        ("nothing.json", "same experiments"),
    ] {
        for pair in [["compare", "good.json", bad], ["compare", bad, "good.json"]] {
            let ended = run(dir.path(), pair);
            ended.assert_refused(2);
            assert!(ended.stderr.contains(bad), "names the file: {ended:#?}");
            assert!(ended.stderr.contains(says), "{says}: {ended:#?}");
        }
    }
}

#[test]
fn what_cannot_be_printed_is_a_failure() {
    let Ok(full) = fs::File::options().write(true).open("/dev/full") else {
        return skip("there is no /dev/full");
    };
    let dir = scratch();
    let small = "lab sync --no-report --ops 20 --rounds 1 --sync fdatasync";
    for line in [
        "inspect".to_owned(),
        small.to_owned(),
        format!("{small} --tsv"),
        format!("{small} --json -"),
    ] {
        let mut command = landfall();
        command
            .args(line.split_whitespace())
            .current_dir(dir.path());
        command.stdout(full.try_clone().unwrap());
        let ended: Ended = command.output().unwrap().into();
        ended.assert_refused(1);
        assert!(ended.stderr.contains("standard output"), "{ended:#?}");
        assert_eq!(names(dir.path()), [""; 0], "after: {line}");
    }
}

#[test]
fn a_recording_or_an_image_is_put_in_the_place_of_a_plain_file_only() {
    let dir = scratch();
    let node = dir.path().join("node");
    let _listener = UnixListener::bind(&node).unwrap();
    symlink("node", dir.path().join("link")).unwrap();
    for option in ["--keep-recording", "--keep-image"] {
        for name in ["node", "link", "-"] {
            let words = ["prove", "files", "--no-report", option, name];
            let ended = run(dir.path(), words);
            ended.assert_refused(2);
            assert!(ended.stderr.contains(name), "names it: {ended:#?}");
        }
    }
    assert!(node.metadata().unwrap().file_type().is_socket());
    assert_eq!(names(dir.path()), ["link", "node"]);
}

#[test]
fn a_first_run_can_write_into_the_report_that_it_makes() {
    let dir = scratch();
    let line = "lab sync --ops 20 --rounds 1 --sync fdatasync --quiet --csv landfall-report/a.csv";
    let ended = run(dir.path(), line.split_whitespace());
    assert!(matches!(ended.code, Some(0 | 5)), "{ended:#?}");
    let written = names(&dir.path().join("landfall-report"));
    assert_eq!(written, ["a.csv", "history", "index.html", "results.json"]);
}

#[test]
fn manual_pages_need_a_directory() {
    let dir = scratch();
    let ended = run(dir.path(), ["man", "missing"]);
    ended.assert_refused(2);
    assert!(ended.stderr.contains("missing"), "{ended:#?}");
    assert_eq!(names(dir.path()), [""; 0]);
}
