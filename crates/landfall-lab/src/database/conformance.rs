//! What every database that is linked in must do, whatever its settings.
//!
//! A copy of the directory, made while the database runs and nobody writes, is what a process that is
//! killed leaves behind: everything that it handed to the kernel.

use std::rc::Rc;
use std::thread;

use super::template::copy_directory;
use super::*;

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

pub(crate) fn database(name: &str, settings: &str) -> Result<Box<dyn Database>, crate::Error> {
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
        copy_directory(self.directory.path(), directory.path()).unwrap();
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
    let debt = fixture.running.debt().unwrap();
    assert_eq!(debt.dirty_bytes.unwrap_or(0), 0, "{name} {settings}");
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
    assert_eq!(fixture.running.verify().unwrap(), None);
}
