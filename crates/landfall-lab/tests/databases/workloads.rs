//! Every workload on every database that it suits: it is loaded, clients ask at the same time, and what
//! is there afterwards agrees with itself.

use std::collections::BTreeSet;
use std::time::Duration;

use landfall_databases::workload::{self, Workload, clients};
use landfall_databases::{Running, Session, Value};
use landfall_lab::Stop;

use crate::{alone, create, durable, left, present, start};

const CLIENTS: u32 = 4;
/// Requests after which it is enough.
const REQUESTS: u64 = 400;

fn workload(name: &str) -> Box<dyn Workload> {
    let settings: &[(&str, &str)] = match name {
        "puts" => &[("keys", "1000"), ("batch", "3")],
        "linkbench" => &[("ids", "3000")],
        _ => &[("rows", "3000")],
    };
    let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
    let settings: Vec<_> = settings.iter().map(owned).collect();
    workload::named(name, &settings).unwrap()
}

/// Lets clients ask until they have asked enough; says which kinds of requests there were.
fn ask(running: &dyn Running, workload: &dyn Workload) -> BTreeSet<&'static str> {
    let client = |number| {
        let session = running.session().unwrap();
        workload.client(session, number, 1).unwrap()
    };
    let mut clients: Vec<_> = (0..CLIENTS).map(client).collect();
    let kinds = workload.requests();
    let mut is_enough = |_: Duration, done| done >= REQUESTS;
    let stop = Stop::default();
    let ((), worked) =
        clients::work(&mut clients, kinds.len(), &stop, || (), &mut is_enough).unwrap();
    assert!(worked.requests() >= REQUESTS);
    let asked = kinds.iter().zip(&worked.latencies);
    let asked = asked.filter(|(_, latencies)| !latencies.is_empty());
    asked.map(|(kind, _)| *kind).collect()
}

/// Counts that a query returns, in one row.
fn numbers(running: &dyn Running, query: &str) -> Option<Vec<i64>> {
    let Session::Sql(mut sql) = running.session().unwrap() else {
        return None;
    };
    let statement = sql.prepare(query).unwrap();
    let rows = sql.query(statement, &[]).unwrap();
    Some(rows[0].iter().filter_map(Value::integer).collect())
}

/// Holds what the workload left against what it must leave.
fn look(name: &str, running: &dyn Running) {
    match name {
        "puts" => {
            let found = numbers(running, "SELECT count(*), count(DISTINCT v) FROM puts");
            assert!(found.is_none_or(|found| found == [1000, 1000]));
        }
        "linkbench" => {
            let differing = "SELECT count(*) FROM counttable WHERE count <>
                (SELECT count(*) FROM linktable WHERE id1 = id AND visibility = 1
                 AND linktable.link_type = counttable.link_type)";
            assert!(numbers(running, differing).is_none_or(|found| found == [0]));
            let uncounted = "SELECT count(*) FROM linktable WHERE NOT EXISTS
                (SELECT 1 FROM counttable WHERE id = id1
                 AND linktable.link_type = counttable.link_type)";
            assert!(numbers(running, uncounted).is_none_or(|found| found == [0]));
        }
        "oltp_insert" => {
            let found = numbers(running, "SELECT count(*), max(id) FROM sbtest1").unwrap();
            assert!(found[0] >= 3000 + REQUESTS as i64 && found[1] >= found[0]);
        }
        _ => {
            let found = numbers(running, "SELECT count(*), min(id), max(id) FROM sbtest1");
            assert_eq!(found.unwrap(), [3000, 1, 3000]);
        }
    }
}

#[test]
fn every_workload_runs_on_every_database_that_it_suits() {
    let _alone = alone();
    for (name, _) in present() {
        let database = durable(name);
        for description in workload::list() {
            let workload = workload(description.name);
            if workload.suits(database.interface()).is_err() {
                continue;
            }
            let directory = tempfile::tempdir().unwrap();
            create(&*database, directory.path());
            let running = start(&*database, directory.path());
            let loaded = workload.load(&*running, CLIENTS, &Stop::default());
            loaded.unwrap_or_else(|error| panic!("{name} {}: {error}", description.name));
            let asked = ask(&*running, &*workload);
            let least = workload.requests().len().min(8);
            assert!(
                asked.len() >= least,
                "{name} {}: {asked:?}",
                description.name
            );
            look(description.name, &*running);
            assert_eq!(
                running.verify(&Stop::default()),
                Ok(None),
                "{name} {}",
                description.name
            );
            running.stop().unwrap();
            left::assert_nothing(directory.path());
        }
    }
}

#[test]
fn innodb_compresses_links_and_counts_at_half_a_page() {
    let _alone = alone();
    if !present().iter().any(|(name, _)| *name == "mariadb") {
        return;
    }
    let settings = [("ids", "3000"), ("compression", "yes")];
    let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let workload = workload::named("linkbench", &settings).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let database = durable("mariadb");
    create(&*database, directory.path());
    let running = start(&*database, directory.path());
    workload.load(&*running, CLIENTS, &Stop::default()).unwrap();
    ask(&*running, &*workload);
    look("linkbench", &*running);
    let compressed =
        "SELECT count(*) FROM information_schema.tables WHERE row_format = 'Compressed'
        AND create_options LIKE '%key_block_size=8%' AND table_name IN ('linktable', 'counttable')";
    assert_eq!(numbers(&*running, compressed).unwrap(), [2]);
    let node = "SELECT count(*) FROM information_schema.tables WHERE row_format = 'Compressed'
        AND table_name = 'nodetable'";
    assert_eq!(numbers(&*running, node).unwrap(), [0]);
    running.stop().unwrap();

    // MyRocks compresses by settings of its own.
    if present().iter().any(|(name, _)| *name == "myrocks") {
        let directory = tempfile::tempdir().unwrap();
        let database = durable("myrocks");
        create(&*database, directory.path());
        let running = start(&*database, directory.path());
        let refused = workload.load(&*running, CLIENTS, &Stop::default());
        assert!(
            refused
                .unwrap_err()
                .to_string()
                .starts_with("compression=yes is of InnoDB")
        );
        running.stop().unwrap();
    }
}
