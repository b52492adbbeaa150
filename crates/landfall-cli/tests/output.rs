//! Proves the shape of what the program prints and writes: documents that programs read, tables that
//! fit a terminal, and nothing where nothing was asked for.

mod common;

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use common::documents::{assert_conforms, assert_narrow, lines_of};
use common::{landfall, measure, names, notice, run, scratch, skip, strategy};
use landfall_results::metric::{Better, METRICS, Rounds};
use serde_json::Value;

const SMALL: [&str; 6] = [
    "--ops",
    "20",
    "--rounds",
    "2",
    "--allocation",
    "append,overwrite",
];

/// `lab` with a small plan and more options.
fn small<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["lab", "sync"];
    words.extend(SMALL);
    words.extend(more);
    words
}

#[test]
fn the_schemas_in_the_documentation_are_the_programs_own() {
    for (name, schema) in [
        ("results", landfall_lab::json_schema()),
        ("advice", landfall_lab::advice::advice_schema()),
        ("witness", landfall_results::witness::witness_schema()),
    ] {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
        let path = docs.join(format!("{name}.schema.json"));
        if std::env::var_os("LANDFALL_UPDATE").is_some() {
            fs::write(&path, &schema).unwrap();
        }
        let documented = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            documented == schema,
            "docs/reference/{name}.schema.json is stale: LANDFALL_UPDATE=1 cargo test -p landfall-cli --test output"
        );
    }
}

/// The table of metrics as a page.
fn page_of_metrics() -> String {
    let mut page = String::from(
        "# Metrics\n\nEvery figure of a trial, as it is called in the results document, in CSV and in TSV. Where *rounds* says median, a \
         series' summary has the median over its rounds, with its 95% interval, mean and standard deviation; *of most* needs more \
         than half of the rounds. By what is *compared*, `landfall compare` holds two runs against each other.\n\n\
         | name | unit | better | rounds | compared | what it is |\n|---|---|---|---|---|---|\n",
    );
    for one in METRICS {
        let better = match one.better {
            Better::More => "more",
            Better::Less => "less",
            Better::Neither => "",
        };
        let rounds = match one.rounds {
            Rounds::Apart => "",
            Rounds::Median => "median",
            Rounds::MedianOfMost => "median of most",
        };
        let compared = if one.is_compared { "yes" } else { "" };
        page += &format!(
            "| `{}` | {} | {better} | {rounds} | {compared} | {} |\n",
            one.name, one.unit, one.documentation
        );
    }
    page
}

#[test]
fn the_page_of_metrics_is_that_of_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/metrics.md");
    let page = page_of_metrics();
    if std::env::var_os("LANDFALL_UPDATE").is_some() {
        fs::write(&path, &page).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap_or_default() == page,
        "docs/reference/metrics.md is stale: LANDFALL_UPDATE=1 cargo test -p landfall-cli --test output"
    );
}

#[test]
fn a_document_on_standard_output_is_alone_there_and_fits_the_schema() {
    let dir = scratch();
    // One that this filesystem may not support, one that is left out, one with a single operation.
    for options in [
        "--ops 60 --rounds 2 --allocation append,overwrite,write-zeroes,step-1m --threads 1,2",
        "--ops 20 --rounds 1 --allocation append,overwrite --sync fdatasync,msync,direct+o_dsync",
        "--ops 1 --rounds 1 --size 1,8K",
        "--seconds 0.01 --rounds 1 --settle 0.01 --allocation zero-filled-settled",
        "--ops 20 --rounds 2 --placement unaligned,spaced --cache warm,cold",
    ] {
        let document = measure(dir.path(), options);
        assert_conforms(&document);
        let command = document["command"].as_str().unwrap();
        assert!(
            command.starts_with("landfall lab sync ") && command.contains(options),
            "{command}"
        );
    }
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn every_trial_is_one_line() {
    let dir = scratch();
    let ended = run(dir.path(), small(&["--no-report", "--csv", "-"]));
    ended.assert_measured();
    let lines = lines_of(&ended.stdout, b',');
    assert_eq!(lines.len(), 1 + 2 * 2, "{ended:#?}");
    assert_eq!(lines[0][..2], ["experiment", "series"]);
    assert_eq!(lines[1][..2], ["sync", "append/fdatasync/8K"]);

    let ended = run(dir.path(), small(&["--no-report", "--tsv"]));
    ended.assert_measured();
    let tabbed = lines_of(&ended.stdout, b'\t');
    assert_eq!(tabbed.len(), 1 + 2 * 2, "{ended:#?}");
    assert_eq!(tabbed[0], lines[0], "the same columns in both");
    let column = |name: &str| {
        let found = tabbed[0].iter().position(|column| column == name);
        found.expect("the column is there")
    };
    for line in &tabbed[1..] {
        assert_eq!(line[column("operations")], "20", "{line:?}");
        let rate: f64 = line[column("ops_per_second")]
            .parse()
            .expect("a number with a point");
        assert!(rate > 0.0);
    }

    let ended = run(dir.path(), small(&["--no-report", "--csv", "trials.csv"]));
    ended.assert_measured();
    assert!(
        ended.stdout.contains("Writes of"),
        "and the screen as usual"
    );
    let written = fs::read_to_string(dir.path().join("trials.csv")).unwrap();
    assert_eq!(lines_of(&written, b',').len(), 1 + 2 * 2);
    assert_eq!(names(dir.path()), ["trials.csv"]);
}

#[test]
fn documents_go_where_they_are_told_and_agree() {
    let dir = scratch();
    let words = small(&[
        "--json",
        "copy.json",
        "--csv",
        "-",
        "--report",
        "a/b/report",
    ]);
    for _again in 0..2 {
        run(dir.path(), &words).assert_measured();
        assert_eq!(names(dir.path()), ["a", "copy.json"]);
        let report = names(&dir.path().join("a/b/report"));
        assert!(report.contains(&"results.json".to_owned()), "{report:?}");
        let copy = fs::read(dir.path().join("copy.json")).unwrap();
        let original = fs::read(dir.path().join("a/b/report/results.json")).unwrap();
        assert!(copy == original, "the documents differ");
    }
    run(dir.path(), small(&["--quiet"])).assert_measured();
    assert!(dir.path().join("landfall-report/results.json").is_file());
}

#[test]
fn only_plain_files_are_replaced() {
    let dir = scratch();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("target.json"), "old").unwrap();
    std::os::unix::fs::symlink("target.json", at("link.json")).unwrap();
    // Our own null device, as it were: a pipe with a reader.
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let pipe = at("pipe");
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        fs::File::open(pipe).and_then(|mut pipe| pipe.read_to_string(&mut text))?;
        std::io::Result::Ok(text)
    });
    let words = small(&[
        "--no-report",
        "--quiet",
        "--json",
        "link.json",
        "--csv",
        "pipe",
    ]);
    run(dir.path(), words).assert_measured();
    assert!(at("link.json").symlink_metadata().unwrap().is_symlink());
    let document = fs::read_to_string(at("target.json")).unwrap();
    assert!(serde_json::from_str::<Value>(&document).is_ok());
    let lines = reader.join().unwrap().unwrap();
    assert_eq!(lines_of(&lines, b',').len(), 1 + 2 * 2);
    assert_eq!(names(dir.path()), ["link.json", "pipe", "target.json"]);
}

#[test]
fn a_plan_is_listed_without_running_it() {
    let dir = scratch();
    for (line, says) in [
        ("lab --list", "step-64m/fdatasync/8K"),
        ("lab --list", "sparse/mmap/512M"),
        ("lab stream --list", "append/direct+io_uring/4G"),
        ("lab dump-vs-log --list --state 1G", "dump against log"),
        (
            "lab stream --list --method mmap --allocation append",
            "left out",
        ),
        (
            "lab sync --list --ops 131072 --allocation append",
            "131072 operations",
        ),
        (
            "lab sync --list --sync msync --allocation append,overwrite",
            "left out",
        ),
        ("lab sync --list --full", "16-threads-each"),
        ("lab --list missing", "overwrite/fdatasync/8K"),
    ] {
        let ended = run(dir.path(), line.split_whitespace());
        assert_eq!(ended.code, Some(0), "{ended:#?}");
        assert!(ended.stdout.contains(says), "{says}: {}", ended.stdout);
        let last = ended.stdout.lines().last().unwrap();
        assert!(
            last.contains("about ") && last.contains(" written"),
            "{last}"
        );
        assert_eq!(ended.stderr, "");
        assert_eq!(names(dir.path()), [""; 0], "after: {line}");
    }
}

#[test]
fn a_run_ends_with_one_screen_and_its_tables_fit_a_hundred_columns() {
    let dir = scratch();
    let standard = [
        "lab",
        "sync",
        "--ops",
        "20",
        "--rounds",
        "2",
        "--json",
        "results.json",
    ];
    let ended = run(dir.path(), standard);
    ended.assert_measured();
    assert_eq!(ended.stderr, "", "progress is for terminals");
    let screen = &ended.stdout;
    for part in [
        "Writes of 8 KiB",
        "append with fdatasync",
        " threads, ",
        "not synced",
        "Trust",
        "sudo landfall lab sync --prove",
        "landfall-report/index.html",
    ] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    assert!(screen.lines().count() <= 40, "{screen}");
    // Where a directory's name allows.
    let wide = |line: &&str| line.chars().count() > 80 && !line.contains("--prove");
    assert_eq!(screen.lines().find(wide), None);

    // The same run again, whole.
    let shown = run(dir.path(), ["show", "--tables", "results.json"]);
    assert_eq!(shown.code, Some(0), "{shown:#?}");
    assert_narrow(&shown.stdout);
    for part in [
        "By allocation",
        "By sync method",
        "By size of a write",
        "By threads",
        "By pages touched",
        "Published claims",
    ] {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
    let again = run(dir.path(), ["show"]);
    let without = |text: &str| -> Vec<String> {
        let lines = text.lines().map(str::to_owned);
        lines.filter(|line| !line.contains("Report")).collect()
    };
    assert_eq!(without(&again.stdout), without(screen));
    let inspected = run(dir.path(), ["inspect"]);
    assert_eq!(inspected.code, Some(0));
    assert_narrow(&inspected.stdout);

    // With the rest of it missing in one, and other circumstances: everything compare has to say.
    let mut other: Value =
        serde_json::from_slice(&fs::read(dir.path().join("results.json")).unwrap()).unwrap();
    other["host"]["kernel"] = "1.0".into();
    other["filesystem"]["options"] = Value::Array(vec!["some-long-option=value".into(); 12]);
    let strategies = other["experiments"][0]["series"].as_array_mut().unwrap();
    strategies.truncate(3);
    fs::write(dir.path().join("other.json"), other.to_string()).unwrap();
    let compared = run(dir.path(), ["compare", "results.json", "other.json"]);
    assert_eq!(compared.code, Some(0), "{compared:#?}");
    assert!(compared.stdout.contains("Only in A"), "{compared:#?}");
    assert!(compared.stdout.contains("the kernel"), "{compared:#?}");
    assert_narrow(&compared.stdout);
}

#[test]
fn tables_are_written_as_markdown() {
    let dir = scratch();
    let printed = run(dir.path(), small(&["--no-report", "--markdown", "-"]));
    printed.assert_measured();
    for part in ["\n## By allocation", "\n| append |", "\n|:--|--:|"] {
        assert!(printed.stdout.contains(part), "{part}: {}", printed.stdout);
    }
    let words = ["--no-report", "--quiet", "--markdown", "tables.md"];
    run(dir.path(), small(&words)).assert_measured();
    let written = fs::read_to_string(dir.path().join("tables.md")).unwrap();
    assert!(written.contains("\n| overwrite |"), "{written}");
    for (words, why) in [
        (["--json", "a", "--markdown", "a"], "name the same file"),
        (
            ["--json", "-", "--markdown", "-"],
            "can have standard output",
        ),
    ] {
        let refused = run(dir.path(), small(&words));
        assert_eq!(refused.code, Some(2), "{refused:#?}");
        assert!(refused.stderr.contains(why), "{refused:#?}");
    }
    assert_eq!(names(dir.path()), ["tables.md"]);
}

#[test]
fn two_runs_are_compared_in_a_table_and_in_json() {
    let dir = scratch();
    for name in ["a.json", "b.json"] {
        run(
            dir.path(),
            small(&["--no-report", "--quiet", "--json", name]),
        )
        .assert_measured();
    }
    let table = run(dir.path(), ["compare", "a.json", "b.json"]);
    assert_eq!(table.code, Some(0), "{table:#?}");
    assert_eq!(table.stderr, "");
    for word in [
        "B/A",
        "95% interval",
        "append/fdatasync/8K",
        "overwrite/fdatasync/8K",
    ] {
        assert!(table.stdout.contains(word), "{word}: {}", table.stdout);
    }
    let json = run(dir.path(), ["compare", "--json", "a.json", "b.json"]);
    let comparison: Value = serde_json::from_str(&json.stdout).unwrap();
    let rows = comparison["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        let ratio = &row["ratio"];
        let [low, median, high] =
            ["low", "median", "high"].map(|name| ratio[name].as_f64().unwrap());
        assert!(low <= median && median <= high, "{row:#}");
    }
    // A run and itself differ in nothing.
    let same = run(dir.path(), ["compare", "--json", "a.json", "a.json"]);
    let comparison: Value = serde_json::from_str(&same.stdout).unwrap();
    assert_eq!(comparison["differences"], Value::Array(Vec::new()));
    assert_eq!(comparison["rows"][0]["ratio"]["median"], 1.0);
}

#[test]
fn quiet_and_colourless_are_so() {
    let dir = scratch();
    let forced = |more: &[&str]| {
        let mut command = landfall();
        command.args(small(&["--no-report"])).args(more);
        command.current_dir(dir.path()).env("CLICOLOR_FORCE", "1");
        command
    };
    let output = forced(&["--quiet"]).output().unwrap();
    assert!(output.stderr.is_empty());
    assert!(output.stdout.contains(&0x1B), "colours can be forced");
    let no_color = forced(&["--no-color"]).output().unwrap();
    assert!(!no_color.stdout.contains(&0x1B) && !no_color.stderr.contains(&0x1B));
    let variable = forced(&[]).env("NO_COLOR", "1").output().unwrap();
    assert!(!variable.stdout.contains(&0x1B) && !variable.stderr.contains(&0x1B));
    // Complaints have no colours either.
    let complaint = forced(&["--no-color", "missing"]).output().unwrap();
    assert_eq!(complaint.status.code(), Some(2));
    assert!(!complaint.stderr.contains(&0x1B));
    // Machine-readable forms never have any.
    let json = forced(&["--json", "-"]).output().unwrap();
    assert!(!json.stdout.contains(&0x1B));
}

#[test]
fn memory_is_a_danger_and_no_claim_is_judged_there() {
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else {
        return skip("there is no /dev/shm");
    };
    let document = measure(
        dir.path(),
        "--ops 50 --rounds 2 --allocation append,overwrite",
    );
    if document["filesystem"]["medium"] != "memory" {
        return skip("/dev/shm is no memory here");
    }
    assert_eq!(notice(&document, "memory"), Some("danger"));
    let claims = document["experiments"][0]["claims"].as_array().unwrap();
    assert!(!claims.is_empty());
    for claim in claims {
        let verdict = claim["verdict"].as_str().unwrap();
        assert!(
            matches!(verdict, "cannot-be-told" | "does-not-apply"),
            "{claim:#}"
        );
    }
    let overwrite = strategy(&document, "overwrite/fdatasync/8K");
    assert_eq!(overwrite["summary"]["flushes"], Value::Null);
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let dir = scratch();
    let small_table = small(&["--no-report"]);
    let small_lines = small(&["--no-report", "--tsv"]);
    for words in [
        &small_table[..],
        &small_lines,
        &["lab", "sync", "--list", "--full"],
        &["inspect"],
        &["subjects"],
        &["man"],
        &["completions", "bash"],
        &["--help"],
    ] {
        let mut child = landfall()
            .args(words)
            .current_dir(dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(
            matches!(output.status.code(), Some(0 | 5)),
            "{words:?}: {output:?}"
        );
        assert!(output.stderr.is_empty(), "{words:?}: {output:?}");
        assert_eq!(names(dir.path()), [""; 0]);
    }
}

#[test]
fn help_version_manual_and_completions_know_every_subcommand() {
    let dir = scratch();
    let subcommands = [
        "lab",
        "prove",
        "subjects",
        "clean",
        "inspect",
        "compare",
        "completions",
        "man",
    ];
    let print = |words: &[&str]| {
        let ended = run(dir.path(), words);
        assert_eq!(ended.code, Some(0), "{words:?}: {ended:#?}");
        assert_eq!(ended.stderr, "", "{words:?}");
        assert!(!ended.stdout.trim().is_empty(), "{words:?}");
        ended.stdout
    };
    for form in [&["--help"][..], &["-h"], &["man"]] {
        let text = print(form);
        for name in subcommands {
            assert!(text.contains(name), "{form:?} does not mention {name}");
        }
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = print(&["completions", shell]);
        for name in subcommands {
            assert!(script.contains(name), "{shell} does not complete {name}");
        }
        assert!(
            script.contains("allocation"),
            "{shell} does not complete options"
        );
    }
    for command in [
        &[][..],
        &["lab"],
        &["lab", "sync"],
        &["lab", "stream"],
        &["lab", "dump-vs-log"],
        &["inspect"],
        &["compare"],
    ] {
        let help = print(&[command, &["--help"]].concat());
        assert!(help.contains("Exit codes: 0 "), "{command:?}: {help}");
    }
    for command in ["completions", "man"] {
        print(&[command, "--help"]);
    }
    let version = print(&["--version"]);
    assert_eq!(
        version.trim(),
        format!("landfall {}", env!("CARGO_PKG_VERSION"))
    );

    print_pages(dir.path());
}

/// A page for each command, in a directory.
fn print_pages(dir: &Path) {
    let pages = dir.join("pages");
    fs::create_dir(&pages).unwrap();
    let ended = run(dir, ["man", "pages"]);
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    let names = names(&pages);
    for page in [
        "landfall.1",
        "landfall-lab.1",
        "landfall-lab-sync.1",
        "landfall-lab-stream.1",
        "landfall-compare.1",
    ] {
        assert!(names.contains(&page.to_owned()), "{page}: {names:?}");
    }
}

#[test]
fn what_is_written_may_be_read_by_others() {
    let dir = scratch();
    let words = small(&["--quiet", "--json", "results.json", "--csv", "trials.csv"]);
    run(dir.path(), words).assert_measured();
    let mode = |name: &str| {
        let metadata = fs::metadata(dir.path().join(name)).unwrap();
        metadata.permissions().mode() & 0o777
    };
    // What the umask of these tests makes of any other new file.
    fs::write(dir.path().join("plain"), "").unwrap();
    for name in ["results.json", "trials.csv", "landfall-report/results.json"] {
        assert_eq!(mode(name), mode("plain"), "{name}");
    }
}

#[test]
fn a_report_that_cannot_be_written_keeps_no_other_file_from_being_written() {
    let dir = scratch();
    // In the place of the page.
    fs::create_dir_all(dir.path().join("landfall-report/index.html")).unwrap();
    let mut words = small(&["--quiet", "--json", "results.json"]);
    words.extend(["--markdown", "tables.md", "--csv", "trials.csv"]);
    let ended = run(dir.path(), words);
    assert_eq!(ended.code, Some(1), "{ended:#?}");
    assert!(ended.stderr.contains("index.html"), "{ended:#?}");
    assert!(!ended.stdout.is_empty(), "{ended:#?}");
    for name in ["results.json", "tables.md", "trials.csv"] {
        assert!(dir.path().join(name).is_file(), "{name}");
    }
}
