//! Proves what `landfall advise` prints, writes and refuses, by recorded results and by a small run.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::documents::assert_narrow;
use common::{measure, names, run, scratch};
use serde_json::Value;

/// A recording, as a path.
fn recorded(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    path.join(format!("{name}.json")).display().to_string()
}

fn advice(dir: &Path, words: &[&str]) -> Value {
    let ended = run(dir, [&["advise"], words, &["--json", "-"]].concat());
    assert_eq!(ended.stderr, "", "{ended:#?}");
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    let schema: Value = serde_json::from_str(&landfall_lab::advice::advice_schema()).unwrap();
    assert!(jsonschema::is_valid(&schema, &document), "{document:#}");
    document
}

/// Lines that a terminal breaks, and nobody else: commands, which are to be copied, and addresses.
fn is_broken(line: &&str) -> bool {
    let line = line.trim_start();
    !["sudo ", "# ", "https://"]
        .iter()
        .any(|start| line.starts_with(start))
}

#[test]
fn the_answer_comes_first_on_one_screen() {
    let dir = scratch();
    let disk = recorded("disk");
    let systems = "mariadb,postgres,sqlite,redis,etcd,mount";
    let ended = run(dir.path(), ["advise", &disk, "--for", systems]);
    ended.assert_measured();
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(lines[2].contains("What to change here"), "{ended:#?}");
    let binlog = lines.iter().find(|line| line.contains("sync_binlog"));
    let binlog: Vec<&str> = binlog.expect("a change").split_whitespace().collect();
    assert_eq!(binlog[..3], ["sync_binlog", "0", "1"], "{ended:#?}");
    assert_eq!(binlog[5..], ["39", "of", "52"], "{ended:#?}");
    assert!(ended.stdout.contains("Right as it is"), "{ended:#?}");
    assert!(!ended.stdout.contains("Documents"), "{ended:#?}");
    assert!(lines.len() <= 40, "{} lines: {ended:#?}", lines.len());
    let wide = |line: &&&str| line.chars().count() > 80 && is_broken(line);
    assert_eq!(lines.iter().find(wide), None);
}

#[test]
fn what_is_not_installed_is_one_line_unless_it_is_named() {
    let dir = scratch();
    let disk = recorded("disk");
    // Nobody has a Kafka broker where tests run.
    let ended = run(dir.path(), ["advise", &disk]);
    ended.assert_measured();
    let mut folded = ended.stdout.lines();
    let folded = folded.find(|line| line.contains("Kafka"));
    assert!(
        folded.is_some_and(|line| line.contains("not installed")),
        "{ended:#?}"
    );
    assert!(!ended.stdout.contains("log.flush"), "{ended:#?}");
    // However many systems are installed.
    assert!(ended.stdout.lines().count() <= 40, "{ended:#?}");
    let ended = run(dir.path(), ["advise", &disk, "--for", "kafka"]);
    assert!(ended.stdout.contains("log.flush"), "{ended:#?}");
    assert!(!ended.stdout.contains("not installed"), "{ended:#?}");
}

/// What such writes to a plain file would gain is a bound, and no figure of a database.
#[test]
fn writes_to_a_file_are_not_shown_as_a_gain() {
    let dir = scratch();
    let ended = run(dir.path(), ["advise", &recorded("ext4"), "--tables"]);
    ended.assert_measured();
    assert!(!ended.stdout.contains('≤'), "{ended:#?}");
    assert!(ended.stdout.contains("not measured here"), "{ended:#?}");
}

#[test]
fn advice_is_a_table_and_a_document() {
    let dir = scratch();
    let disk = recorded("disk");
    let ended = run(dir.path(), ["advise", &disk, "--tables"]);
    ended.assert_measured();
    for words in [
        "MariaDB\n",
        "MySQL\n",
        "sync_binlog = 1",
        "unsafe",
        "Not known here",
        "Documents",
    ] {
        assert!(ended.stdout.contains(words), "{words}: {ended:#?}");
    }
    let table: Vec<&str> = ended.stdout.lines().filter(is_broken).collect();
    assert_narrow(&table.join("\n"));
    let document = advice(dir.path(), &[&disk, "--for", "redis,etcd"]);
    let settings = document["settings"].as_array().unwrap();
    assert!(settings.len() > 2);
    let is_of = |one: &Value| one["system"] == "redis" || one["system"] == "etcd";
    assert!(settings.iter().all(is_of));
    assert_eq!(names(dir.path()), [""; 0], "nothing is written unasked");
}

#[test]
fn where_nothing_is_durable_that_is_the_advice() {
    let dir = scratch();
    for (name, why) in [("memory", "main memory"), ("no-barrier", "does not flush")] {
        let ended = run(dir.path(), ["advise", &recorded(name)]);
        assert_eq!(ended.code, Some(4), "{ended:#?}");
        assert!(
            ended.stdout.contains("No setting is advised here."),
            "{ended:#?}"
        );
        assert!(ended.stdout.contains(why), "{ended:#?}");
        assert!(!ended.stdout.contains("innodb"), "{ended:#?}");
    }
}

/// As a compiler does: a line for each finding, one for all of them, and nothing else.
#[test]
fn a_configuration_is_checked_and_a_risk_is_exit_3() {
    let dir = scratch();
    let disk = recorded("disk");
    let path = dir.path().join("my.cnf");
    fs::write(&path, "[mysqld]\ninnodb_flush_log_at_trx_commit=0\n").unwrap();
    let words = ["advise", &disk, "--check", "mariadb=my.cnf"];
    let ended = run(dir.path(), words);
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    let [risk, summary] = lines.as_slice() else {
        panic!("{ended:#?}");
    };
    assert_eq!(
        *risk,
        "my.cnf:2: innodb_flush_log_at_trx_commit=0 risks the commits of about the last second: lost in 45 of 53 power cuts; set 1"
    );
    assert!(
        summary.starts_with("1 of ") && summary.contains(" settings risks data"),
        "{summary}"
    );
    // What is not told by the file is told by what is installed, and both ways there is something to say.
    let ended = run(dir.path(), ["advise", &disk, "--check", "my.cnf"]);
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    assert!(
        ended
            .stdout
            .starts_with("my.cnf:2: innodb_flush_log_at_trx_commit=0 risks"),
        "{ended:#?}"
    );
    fs::write(&path, "[mysqld]\ninnodb_page_size=16K\n").unwrap();
    let document = advice(dir.path(), &[&disk, "--check", "mariadb=my.cnf"]);
    assert_eq!(document["checks"][0]["risks"], Value::Array(Vec::new()));
    // What is named counts more than what is installed.
    fs::write(&path, "[mysqld]\nsync_binlog=0\n").unwrap();
    let ended = run(
        dir.path(),
        ["advise", &disk, "--for", "mysql", "--check", "my.cnf"],
    );
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    assert!(ended.stdout.contains("(MySQL; "), "{ended:#?}");
    assert!(!ended.stdout.contains("(MariaDB; "), "{ended:#?}");
    for (words, says) in [
        ("none.cnf", "cannot read none.cnf"),
        ("something.conf", "write mariadb=something.conf"),
    ] {
        let ended = run(dir.path(), ["advise", &disk, "--check", words]);
        assert_eq!(ended.code, Some(2), "{ended:#?}");
        assert!(ended.stderr.contains(says), "{ended:#?}");
    }
}

#[test]
fn a_fragment_is_written_and_what_others_wrote_is_kept() {
    let dir = scratch();
    let disk = recorded("disk");
    for _again in 0..2 {
        let words = [
            "advise",
            &disk,
            "--write",
            "mariadb.cnf",
            "--write",
            "postgres=pg.txt",
        ];
        let ended = run(dir.path(), words);
        assert_eq!(ended.code, Some(0), "{ended:#?}");
        assert_eq!(names(dir.path()), ["mariadb.cnf", "pg.txt"]);
    }
    let ended = run(dir.path(), ["advise", &disk, "--check", "mariadb.cnf"]);
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    let mine = "[mysqld]\nport=1\n";
    fs::write(dir.path().join("my.cnf"), mine).unwrap();
    let ended = run(dir.path(), ["advise", &disk, "--write", "my.cnf"]);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert!(
        ended
            .stderr
            .contains("write mariadb=my.cnf or mysql=my.cnf")
    );
    let ended = run(dir.path(), ["advise", &disk, "--write", "mariadb=my.cnf"]);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert!(
        ended.stderr.contains("was not written by landfall"),
        "{ended:#?}"
    );
    assert_eq!(fs::read_to_string(dir.path().join("my.cnf")).unwrap(), mine);
    let ended = run(dir.path(), ["advise", &disk, "--write", "mount=fstab"]);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
}

#[test]
fn a_workload_is_held_against_the_disk() {
    let dir = scratch();
    let disk = recorded("disk");
    let words = [
        "advise",
        &disk,
        "--workload",
        "commits=20,size=1K",
        "--drive",
        "tbw=2PB",
    ];
    let ended = run(dir.path(), words);
    ended.assert_measured();
    assert!(
        ended
            .stdout
            .starts_with("Yes: this disk carries 20 durable commits"),
        "{ended:#?}"
    );
    assert!(!ended.stdout.contains("innodb_flush"), "{ended:#?}");
    // The page has what the terminal has, and names the directory that it is in.
    let mut with_report = words.to_vec();
    with_report.extend(["--report", "kept"]);
    run(dir.path(), with_report).assert_measured();
    let page = fs::read_to_string(dir.path().join("kept/index.html")).unwrap();
    assert!(page.contains("Yes: this disk carries 20 durable commits"));
    assert!(page.contains("--json kept/") && !page.contains("landfall-report/"));
    for (workload, says) in [("commits=20", "needs size"), ("speed=3", "has no 'speed'")] {
        let ended = run(dir.path(), ["advise", &disk, "--workload", workload]);
        assert_eq!(ended.code, Some(2), "{ended:#?}");
        assert!(ended.stderr.contains(says), "{ended:#?}");
    }
}

/// What was measured of a directory is found again, and not measured twice; what another run adds counts.
#[test]
fn what_is_known_of_a_directory_is_found_in_the_report() {
    let dir = scratch();
    let report = dir.path().join("landfall-report");
    let mut document = measure(
        dir.path(),
        "--ops 30 --rounds 5 --sync fdatasync,none --allocation append,overwrite",
    );
    fs::create_dir(&report).unwrap();
    let keep = |name: &str, document: &Value| {
        fs::write(report.join(name), document.to_string()).unwrap();
    };
    keep("sync.json", &document);
    // Whatever else lies there is passed over.
    fs::write(report.join("broken.json"), "{").unwrap();
    let in_memory = document["notices"].to_string().contains("main memory");
    let ended = run(dir.path(), ["advise"]);
    assert_eq!(
        ended.code,
        Some(if in_memory { 4 } else { 0 }),
        "{ended:#?}"
    );
    let written = names(&report);
    assert_eq!(
        written,
        ["broken.json", "index.html", "results.json", "sync.json"]
    );
    let page = fs::read_to_string(report.join("index.html")).unwrap();
    assert!(page.contains("What to change"));
    // Of another machine nothing is taken.
    fs::remove_file(report.join("results.json")).unwrap();
    document["host"]["cpus"] = 4096.into();
    keep("other.json", &document);
    let ended = run(dir.path(), ["advise", "."]);
    assert_eq!(
        ended.code,
        Some(if in_memory { 4 } else { 0 }),
        "{ended:#?}"
    );
    let two = [
        PathBuf::from("landfall-report/sync.json"),
        "landfall-report/other.json".into(),
    ];
    let ended = run(dir.path(), [Path::new("advise"), &two[0], &two[1]]);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert!(ended.stderr.contains("of two machines"), "{ended:#?}");
}

/// What was measured on another filesystem, which was mounted there then, says nothing of the one that is there now.
#[test]
fn what_was_measured_before_something_else_was_mounted_does_not_count() {
    let dir = scratch();
    let report = dir.path().join("landfall-report");
    let mut document = measure(
        dir.path(),
        "--ops 5 --rounds 5 --sync fdatasync --allocation overwrite",
    );
    fs::create_dir(&report).unwrap();
    let list = |document: &Value| {
        fs::write(report.join("sync.json"), document.to_string()).unwrap();
        run(dir.path(), ["advise", "--list"]).stdout
    };
    let known = list(&document);
    assert!(known.starts_with("Nothing: "), "{known}");
    let filesystem = &mut document["filesystem"];
    filesystem["source"] = "/dev/other".into();
    if filesystem["upper"].is_object() {
        filesystem["upper"]["source"] = "/dev/other".into();
    }
    let unknown = list(&document);
    assert!(unknown.contains("Nothing is measured in"), "{unknown}");
}

/// Documents of a directory in memory that do not say so: it is looked at again.
#[test]
fn how_a_directory_is_mounted_now_counts() {
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else {
        return;
    };
    let report = dir.path().join("landfall-report");
    let mut document = measure(
        dir.path(),
        "--ops 5 --rounds 5 --sync fdatasync --allocation overwrite",
    );
    document["notices"] = Value::Array(Vec::new());
    fs::create_dir(&report).unwrap();
    fs::write(report.join("sync.json"), document.to_string()).unwrap();
    let ended = run(dir.path(), ["advise"]);
    assert_eq!(ended.code, Some(4), "{ended:#?}");
}

/// A check is quick: where nothing is known of a directory, documentation is what it goes by.
#[test]
fn a_check_measures_nothing() {
    let dir = scratch();
    fs::write(dir.path().join("redis.conf"), "appendonly yes\n").unwrap();
    let ended = run(dir.path(), ["advise", "--check", "redis.conf"]);
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    let risk = "redis.conf: appendfsync=everysec (the default) risks the writes of about the last second, by its documentation; set always";
    assert_eq!(ended.stdout.lines().next(), Some(risk), "{ended:#?}");
    assert_eq!(names(dir.path()), ["redis.conf"], "nothing is written");
}

/// Also where something was measured before.
#[test]
fn a_check_writes_no_report() {
    let dir = scratch();
    let report = dir.path().join("landfall-report");
    let document = measure(
        dir.path(),
        "--ops 5 --rounds 5 --sync fdatasync --allocation overwrite",
    );
    fs::create_dir(&report).unwrap();
    fs::write(report.join("sync.json"), document.to_string()).unwrap();
    fs::write(dir.path().join("redis.conf"), "appendonly yes\n").unwrap();
    let ended = run(dir.path(), ["advise", "--check", "redis.conf"]);
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    assert!(!ended.stderr.contains("nothing is measured"), "{ended:#?}");
    assert_eq!(names(&report), ["sync.json"]);
}

#[test]
fn a_risk_is_said_also_where_it_cannot_be_written() {
    if !Path::new("/dev/full").exists() {
        return common::skip("there is no /dev/full");
    }
    let dir = scratch();
    fs::write(
        dir.path().join("my.cnf"),
        "[mysqld]\nlog_bin\nsync_binlog=0\n",
    )
    .unwrap();
    let disk = recorded("disk");
    let words = ["advise", &disk, "--check", "mariadb=my.cnf"];
    let ended = run(dir.path(), words.into_iter().chain(["--json", "/dev/full"]));
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    assert!(ended.stdout.starts_with("my.cnf:3: "), "{ended:#?}");
    assert!(ended.stderr.contains("/dev/full"), "{ended:#?}");
}

/// An option that the command does not have helps nobody.
#[test]
fn a_report_that_cannot_be_written_is_refused_with_what_helps() {
    let dir = scratch();
    let disk = recorded("disk");
    fs::write(dir.path().join("file"), "mine").unwrap();
    for words in [["advise", &disk], ["show", &disk]] {
        let ended = run(dir.path(), words.into_iter().chain(["--report", "file"]));
        ended.assert_refused(2);
        assert!(ended.stderr.contains("another with --report"), "{ended:#?}");
        assert!(!ended.stderr.contains("--no-report"), "{ended:#?}");
    }
}

#[test]
fn a_plan_is_listed_and_not_run() {
    let dir = scratch();
    let ended = run(dir.path(), ["advise", "--list"]);
    ended.assert_measured();
    assert!(ended.stdout.contains(" minutes: "), "{ended:#?}");
    assert!(
        ended.stdout.contains("overwrite/fdatasync/8K"),
        "{ended:#?}"
    );
    assert_eq!(names(dir.path()), [""; 0], "nothing is left behind");
    let ended = run(dir.path(), ["advise", "--list", &recorded("disk")]);
    assert!(ended.stdout.starts_with("Nothing: "), "{ended:#?}");
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_measured() {
    let dir = scratch();
    let disk = recorded("disk");
    for (words, says) in [
        (vec!["advise", "nowhere"], "nowhere"),
        (vec!["advise", ".", &disk], "one directory"),
        (
            vec!["advise", &disk, "--for", "oracle"],
            "no advice on 'oracle'",
        ),
        (vec!["advise", "--drive", "tbw=1PB"], "--workload"),
        (
            vec!["advise", &disk, "--check", "landfall-store=my.conf"],
            "not set in a file of its own",
        ),
        (
            vec!["advise", &disk, "--write", "landfall-store=my.conf"],
            "'landfall advise --for landfall-store'",
        ),
        (
            vec!["advise", "--json", "no/where.json"],
            "there is no directory no",
        ),
        (
            vec!["lab", "binlog", "--set", "a=b"],
            "name it, as in --database",
        ),
        (
            vec!["lab", "binlog", "--config", "x.conf"],
            "cannot be told by its name",
        ),
    ] {
        let ended = run(dir.path(), &words);
        assert_eq!(ended.code, Some(2), "{words:?} {ended:#?}");
        assert!(ended.stderr.contains(says), "{words:?} {ended:#?}");
        assert_eq!(names(dir.path()), [""; 0], "{words:?}");
    }
}

/// When a rule speaks.
fn condition(condition: &landfall_lab::rules::Condition) -> String {
    use landfall_lab::rules::Condition;
    match condition {
        Condition::Faster { of, over, times } => {
            format!("`{of}` is {times} × as fast as `{over}`, or more")
        }
        Condition::Rare { of, per_second } => {
            format!("`{of}` reaches less than {per_second} a second")
        }
        Condition::Slow { of, us } => format!("the p99 of `{of}` is above {us} µs"),
        Condition::CopyOnWrite => "the filesystem is copy-on-write".to_owned(),
        Condition::InPlace => "it is not copy-on-write".to_owned(),
        Condition::Untorn(bytes) => format!("the device promises to write {bytes} bytes whole"),
        Condition::Torn(bytes) => format!("it does not promise to write {bytes} bytes whole"),
        Condition::Filesystem(kinds) => kinds.join(", "),
        Condition::Journal => "it has a journal".to_owned(),
        Condition::NoJournal => "it has no journal".to_owned(),
    }
}

/// The table of rules as a page: what each document says of each value.
fn page_of_rules() -> String {
    use landfall_lab::rules::{self, System};
    use landfall_lab::rules::{Promise, Value};
    let mut page = String::from(
        "# The rules of `landfall advise`\n\nMade from the table in `crates/landfall-lab/src/rules`; the documents were read in November 2026. When each of them\nspeaks, and by what it is decided, is in [advice.md](advice.md).\n",
    );
    for system in System::ALL {
        page += &format!("\n## {}\n\n", system.name());
        page += "| setting | unless set | values, and what may be lost | where | document |\n|---|---|---|---|---|\n";
        for rule in rules::of(system) {
            let values = rule.choices.iter().map(|choice| {
                let value = match choice.value {
                    Value::Fixed(value) => format!("`{value}`"),
                    Value::Flushes(times) => format!("{times} × the time of a flush"),
                    Value::PageWrites(share) => format!("{share} × the page writes a second"),
                    Value::HourOfWrites => "an hour of writes".to_owned(),
                    Value::Above(least) => format!("above {least}"),
                    Value::AnyTime => "any other time".to_owned(),
                };
                match choice.promise {
                    Promise::Durable => format!("{value}: nothing"),
                    Promise::Neutral | Promise::Fits => value,
                    Promise::Loses(what) | Promise::Replicated(what) => format!("{value}: {what}"),
                    Promise::Damages(what) => format!("{value}: damages {what}"),
                }
            });
            let values: Vec<String> = values.collect();
            // Ours is a file of the repository, and the page is in `docs/reference`.
            let source = match rule.source.address.strip_prefix("crates/") {
                Some(own) => format!("../../crates/{own}"),
                None => rule.source.address.to_owned(),
            };
            page += &format!(
                "| `{}` | {} | {} | {} | [{}]({source}) |\n",
                rule.setting,
                rule.default,
                values.join("; "),
                rule.when
                    .iter()
                    .map(condition)
                    .collect::<Vec<_>>()
                    .join("; "),
                rule.source.title
            );
        }
    }
    page
}

#[test]
fn the_page_of_rules_is_that_of_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/advice-rules.md");
    let page = page_of_rules();
    if std::env::var_os("LANDFALL_UPDATE").is_some() {
        fs::write(&path, &page).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap_or_default() == page,
        "docs/reference/advice-rules.md is stale: LANDFALL_UPDATE=1 cargo test -p landfall-cli --test advise"
    );
}
