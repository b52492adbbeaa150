//! `landfall subjects`: it answers everywhere, whatever is installed.

mod common;

use common::{run, scratch};
use serde_json::Value;

fn databases() -> Vec<&'static str> {
    landfall_databases::descriptions()
        .map(|database| database.name)
        .collect()
}

fn print(words: &[&str]) -> String {
    let ended = run(scratch().path(), words);
    assert_eq!(ended.code, Some(0), "{words:?}: {ended:#?}");
    assert_eq!(ended.stderr, "", "{words:?}");
    ended.stdout
}

#[test]
fn every_database_is_somewhere_or_can_be_got() {
    let document: Value = serde_json::from_str(&print(&["subjects", "--json"])).unwrap();
    let entries = document["databases"].as_array().unwrap();
    let names: Vec<_> = entries.iter().map(|entry| &entry["name"]).collect();
    assert_eq!(names, databases());
    let table = print(&["subjects"]);
    for entry in entries {
        let told = match (entry["version"].as_str(), entry["remedy"].as_str()) {
            (Some(version), None) => version,
            (None, Some(remedy)) => remedy,
            _ => panic!("{entry:#}"),
        };
        let name = entry["name"].as_str().unwrap();
        let line = table.lines().find(|line| line.trim().starts_with(name));
        let line = line.unwrap_or_else(|| panic!("{name} is not in {table}"));
        // A long one has more lines than one.
        let begin = told.split(' ').next().unwrap();
        assert!(line.contains(begin), "{line}");
    }
    let about = |name| {
        let entry = entries.iter().find(|entry| entry["name"] == name);
        entry.unwrap()["about"].as_str().unwrap()
    };
    assert!(about("myrocks").contains("TokuDB"));
}

#[test]
fn without_a_server_it_says_how_to_get_it() {
    let mut command = common::landfall();
    // Where nothing is: administrators' places are looked into all the same.
    command.args(["subjects", "--json"]).env("PATH", "/nowhere");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let entries = document["databases"].as_array().unwrap();
    let redis = entries.iter().find(|entry| entry["name"] == "redis");
    assert_eq!(redis.unwrap()["remedy"], "apt install redis-server");
}

#[test]
fn settings_are_told_by_name() {
    let told = print(&["subjects", "mariadb"]);
    for part in [
        "innodb_page_size=16K",
        "any other",
        "a server variable",
        "clients=3",
    ] {
        assert!(told.contains(part), "{told}");
    }
    assert!(print(&["subjects", "files"]).contains("method=fdatasync"));
    let listed = print(&["prove", "--list"]);
    assert!(
        databases().iter().all(|name| listed.contains(name)),
        "{listed}"
    );
    let cwd = scratch();
    let ended = run(cwd.path(), ["subjects", "nothing"]);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert!(ended.stderr.contains("there is no 'nothing'"), "{ended:#?}");
}
