//! What every database that is linked in must do, whatever its settings.
//!
//! A copy of the directory, made while the database runs and nobody writes, is what a process that is
//! killed leaves behind: everything that it handed to the kernel.

use std::rc::Rc;
use std::thread;

use super::*;
use landfall_os::copy_directory;

/// A database that runs in a directory of its own.
pub(crate) struct Fixture {
    pub running: Box<dyn Running>,
    pub database: Rc<dyn Database>,
    pub directory: tempfile::TempDir,
}

/// `settings` as on the command line: `sync=no page_size=8K`.
pub(crate) fn pairs(settings: &str) -> Vec<(String, String)> {
    settings
        .split_whitespace()
        .filter_map(|setting| setting.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

pub(crate) fn database(
    name: &str,
    settings: &str,
) -> Result<Box<dyn Database>, crate::SettingError> {
    named(name, &pairs(settings))
}

pub(crate) fn fixture(name: &str, settings: &str) -> Fixture {
    let database: Rc<dyn Database> = database(name, settings).unwrap().into();
    let directory = tempfile::tempdir().unwrap();
    let templates = Templates::new(directory.path());
    let stop = Stop::default();
    database
        .create(directory.path(), &templates, &stop)
        .unwrap();
    Fixture {
        running: database.start(directory.path(), &stop).unwrap(),
        database,
        directory,
    }
}

impl Fixture {
    /// The same database, started on what there would be had the process been killed.
    pub fn as_if_killed(&self) -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        copy_directory(self.directory.path(), directory.path(), &Stop::default()).unwrap();
        Fixture {
            running: start(&*self.database, directory.path()),
            database: Rc::clone(&self.database),
            directory,
        }
    }

    /// Ends it in order, and starts it again.
    pub fn restarted(self) -> Fixture {
        self.running.stop().unwrap();
        Fixture {
            running: start(&*self.database, self.directory.path()),
            ..self
        }
    }
}

fn start(database: &dyn Database, directory: &Path) -> Box<dyn Running> {
    database.start(directory, &Stop::default()).unwrap()
}

pub(crate) fn sql(running: &dyn Running) -> Box<dyn Sql> {
    match running.session().unwrap() {
        Session::Sql(session) => session,
        Session::Keys(_) => panic!("a session with keys"),
    }
}

pub(crate) fn keys(running: &dyn Running) -> Box<dyn KeyValue> {
    match running.session().unwrap() {
        Session::Keys(session) => session,
        Session::Sql(_) => panic!("a session with tables"),
    }
}

/// The version of a crate that is linked in, which must be the only one of it.
pub(super) fn linked(name: &str) -> String {
    // A package has a lock file of its own; a member of the workspace shares the one above it.
    let lock = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|directory| directory.join("Cargo.lock"))
        .find(|lock| lock.exists())
        .expect("cargo writes a lock file before it builds a test");
    let lock = std::fs::read_to_string(lock).unwrap();
    let entry = format!("name = \"{name}\"\nversion = \"");
    let versions: Vec<&str> = lock
        .split(&entry)
        .skip(1)
        .map(|package| package.split('"').next().unwrap())
        .collect();
    let [version] = versions[..] else {
        panic!("{name} is linked in these versions: {versions:?}");
    };
    version.to_owned()
}

const CLIENTS: i64 = 3;
const TRANSACTIONS: i64 = 10;

/// Several clients write at once; what each was told is done is there, after a kill and after a stop.
pub(crate) fn keeps_rows(name: &str, settings: &str) {
    let fixture = fixture(name, settings);
    let running = &*fixture.running;
    let mut first = sql(running);
    first
        .run("CREATE TABLE pairs (n BIGINT PRIMARY KEY, v BLOB NOT NULL)")
        .unwrap();
    drop(first);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            scope.spawn(move || {
                let mut session = sql(running);
                let insert = session.prepare("INSERT INTO pairs VALUES (?, ?)").unwrap();
                for transaction in 0..TRANSACTIONS {
                    session.run("BEGIN IMMEDIATE").unwrap();
                    for part in 0..2 {
                        let number = (client * TRANSACTIONS + transaction) * 2 + part;
                        let values = [Value::Integer(number), Value::Bytes(vec![7; 2000])];
                        assert_eq!(session.execute(insert, &values).unwrap(), 1);
                    }
                    session.run("COMMIT").unwrap();
                }
            });
        }
    });
    has_all_rows(&fixture.as_if_killed());
    has_all_rows(&fixture);
    fixture.running.drain(&Stop::default()).unwrap();
    let pending = fixture.running.pending_writes().unwrap();
    assert_eq!(pending.dirty_bytes.unwrap_or(0), 0, "{name} {settings}");
    has_all_rows(&fixture.restarted());
}

fn has_all_rows(fixture: &Fixture) {
    let mut session = sql(&*fixture.running);
    let query = session
        .prepare("SELECT n, v FROM pairs ORDER BY n")
        .unwrap();
    let found = session.query(query, &[]).unwrap();
    let row = |n| vec![Value::Integer(n), Value::Bytes(vec![7; 2000])];
    let expected: Vec<Row> = (0..CLIENTS * TRANSACTIONS * 2).map(row).collect();
    assert_eq!(found, expected, "{}", fixture.database.name());
    assert_eq!(fixture.running.verify(&Stop::default()).unwrap(), None);
}

/// The same with keys; and what a batch takes away is gone, and keys are visited in order.
pub(super) fn keeps_keys(name: &str, settings: &str) {
    let fixture = fixture(name, settings);
    let running = &*fixture.running;
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            scope.spawn(move || {
                let mut session = keys(running);
                for transaction in 0..TRANSACTIONS {
                    let mut batch = Batch::default();
                    for part in 0..2 {
                        batch.put(key(client * TRANSACTIONS + transaction, part), [7; 2000]);
                    }
                    session.commit(&batch).unwrap();
                    batch = Batch::default();
                    batch.delete(key(client * TRANSACTIONS + transaction, 1));
                    batch.put(key(client * TRANSACTIONS + transaction, 2), [8]);
                    session.commit(&batch).unwrap();
                }
            });
        }
    });
    has_all_keys(&fixture.as_if_killed());
    has_all_keys(&fixture);
    fixture.running.drain(&Stop::default()).unwrap();
    let pending = fixture.running.pending_writes().unwrap();
    assert_eq!(pending.dirty_bytes.unwrap_or(0), 0, "{name} {settings}");
    has_all_keys(&fixture.restarted());
}

fn key(transaction: i64, part: u8) -> Vec<u8> {
    [&transaction.to_be_bytes()[..], &[part]].concat()
}

fn has_all_keys(fixture: &Fixture) {
    let name = fixture.database.name();
    let mut session = keys(&*fixture.running);
    let all = CLIENTS * TRANSACTIONS;
    let mut found = Vec::new();
    let mut scan = |from: &[u8], to: &[u8], most: usize| {
        found.clear();
        let mut visit = |key: &[u8], value: &[u8]| {
            found.push((key.to_vec(), value.to_vec()));
            found.len() < most
        };
        session.scan(from, to, &mut visit).unwrap();
        found.clone()
    };
    let pair = |transaction| {
        [
            (key(transaction, 0), vec![7; 2000]),
            (key(transaction, 2), vec![8]),
        ]
    };
    let expected: Vec<_> = (0..all).flat_map(pair).collect();
    assert_eq!(scan(&[0], &[255], usize::MAX), expected, "{name}");
    assert_eq!(scan(&key(1, 0), &key(2, 0), 9), expected[2..4], "{name}");
    assert_eq!(scan(&key(1, 1), &key(9, 0), 1), expected[3..4], "{name}");
    assert_eq!(session.get(&key(3, 0)).unwrap(), Some(vec![7; 2000]));
    assert_eq!(session.get(&key(3, 1)).unwrap(), None);
    assert_eq!(session.get(&key(all, 0)).unwrap(), None);
    drop(session);
    assert_eq!(
        fixture.running.verify(&Stop::default()).unwrap(),
        None,
        "{name}"
    );
}

/// What the database can be told to do it does, by its own count, and what was committed is there afterwards.
pub(super) fn is_maintained(name: &str, settings: &str, expected: &[Maintenance]) {
    let stop = Stop::default();
    let fixture = fixture(name, settings);
    let running = &*fixture.running;
    let known = |running: &dyn Running| -> Vec<Maintenance> {
        let counts = running.maintenance().unwrap();
        let told = counts.into_iter().filter(|count| count.is_told);
        told.map(|count| count.what).collect()
    };
    assert_eq!(known(running), expected);
    let count = |what: Maintenance| {
        let counts = running.maintenance().unwrap();
        let found = counts.into_iter().find(|count| count.what == what);
        found.unwrap().times
    };
    let write = |round: usize| match running.session().unwrap() {
        Session::Sql(mut sql) => sql
            .run(&format!(
                "CREATE TABLE written_{round} (n BIGINT PRIMARY KEY)"
            ))
            .unwrap(),
        Session::Keys(mut keys) => {
            let mut batch = Batch::default();
            batch.put([round as u8], vec![7; 1000]);
            keys.commit(&batch).unwrap();
        }
    };
    for (round, &what) in expected.iter().enumerate() {
        write(round);
        let before = count(what);
        running.maintain(what, &stop).unwrap();
        assert!(count(what) > before, "{what:?}");
    }
    let other = [
        Maintenance::Checkpoint,
        Maintenance::LogRewrite,
        Maintenance::Compaction,
    ];
    let other = other.into_iter().find(|other| !expected.contains(other));
    assert!(running.maintain(other.unwrap(), &stop).is_err());
    assert_eq!(running.verify(&stop).unwrap(), None);
}

/// Whether a server is installed here; says so if not.
fn is_here(name: &str) -> bool {
    let kind = KINDS.iter().find(|kind| kind.description.name == name);
    let is_here =
        kind.is_some_and(|kind| matches!((kind.listed.presence)(), Presence::Here { .. }));
    if !is_here {
        eprintln!("skipped: {name} is not installed");
    }
    is_here
}

#[test]
fn servers_do_what_they_can_be_told() {
    use Maintenance::{Checkpoint, Compaction, Defragmentation, LogRewrite, LogRotation, Snapshot};
    let all: [(&str, &str, &[Maintenance]); 6] = [
        ("etcd", "", &[Compaction, Defragmentation]),
        ("redis", "", &[LogRewrite, Snapshot]),
        ("redis", "appendonly=no", &[Snapshot]),
        ("postgres", "", &[Checkpoint]),
        ("mariadb", "", &[Checkpoint]),
        ("mariadb", "sync_binlog=1", &[Checkpoint, LogRotation]),
    ];
    for (name, settings, expected) in all {
        if is_here(name) {
            is_maintained(name, settings, expected);
        }
    }
}
