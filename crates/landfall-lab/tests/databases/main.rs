//! Every database there is, held to the same: it keeps what it acknowledged when it is killed, finds
//! nothing wrong with itself, and leaves nothing behind.
//!
//! Those that are not installed are skipped, which `LANDFALL_NO_SKIP` makes a failure. Tests follow each
//! other: what is left behind is told by the number of this process, which they share.

mod bad_input;
mod client;
mod left;

use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;

use landfall_lab::database::{self, Database, Presence, Running, Templates};
use landfall_lab::{Error, Stop};

use client::Client;

/// Taken by each test that starts something.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
/// Acknowledged transactions of each client before the database is killed.
const ENOUGH: u64 = 200;
const CLIENTS: u64 = 2;
/// Rows that are there before the clients begin.
const LOADED: u64 = 1000;

fn skip(why: &str) {
    let nothing_is_missing = std::env::var_os("LANDFALL_NO_SKIP").is_some();
    assert!(!nothing_is_missing, "skipped all the same: {why}");
    println!("skipped: {why}");
}

/// The names of the servers that are here.
fn servers() -> Vec<&'static str> {
    let here = database::list().filter_map(|(description, title, presence)| match presence {
        Presence::Here { version, program } => {
            println!("{title} {version}");
            // What is linked in cannot be killed without us.
            program.map(|_| description.name)
        }
        Presence::Absent { remedy } => {
            skip(&format!("{title} is not here: {remedy}"));
            None
        }
    });
    here.collect()
}

fn with(name: &str, settings: &[(&str, &str)]) -> Result<Box<dyn Database>, Error> {
    let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
    database::named(name, &settings.iter().map(owned).collect::<Vec<_>>())
}

/// A database that was just made in `directory`.
fn created(name: &str, directory: &Path) -> Box<dyn Database> {
    let database = with(name, &[]).unwrap();
    let templates = Templates::new(&std::env::temp_dir());
    database
        .create(directory, &templates, &Stop::default())
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    database
}

fn started(database: &dyn Database, directory: &Path) -> Box<dyn Running> {
    let running = database.start(directory, &Stop::default());
    running.unwrap_or_else(|error| panic!("{}: {error}", database.name()))
}

/// Runs clients until each has enough, kills the server in the middle of it, and returns what was
/// acknowledged.
fn killed(running: Box<dyn Running>) -> Vec<(u64, u64)> {
    let (sender, acknowledgements) = channel();
    let mut clients: Vec<Client> = (0..CLIENTS)
        .map(|number| Client::new(number, running.session().unwrap()))
        .collect();
    thread::scope(|scope| {
        for client in &mut clients {
            let sender = sender.clone();
            scope.spawn(move || {
                // Until the connection breaks.
                for row in 1.. {
                    match client.put(row) {
                        Ok(()) => sender.send((client.number, row)).unwrap(),
                        Err(_) => break,
                    }
                }
            });
        }
        drop(sender);
        let mut acknowledged = Vec::new();
        let mut killed = Some(running);
        for (client, row) in acknowledgements {
            acknowledged.push((client, row));
            let has_enough = |one: &u64| acknowledged.contains(&(*one, ENOUGH));
            if row == ENOUGH && (0..CLIENTS).all(|one| has_enough(&one)) {
                killed.take();
            }
        }
        acknowledged
    })
}

#[test]
fn what_was_acknowledged_outlives_a_killed_database() {
    let _alone = ONE_AT_A_TIME.lock();
    for name in servers() {
        let directory = tempfile::tempdir().unwrap();
        let database = created(name, directory.path());
        let running = started(&*database, directory.path());
        drop(Client::load(running.session().unwrap(), LOADED));
        let acknowledged = killed(running);
        assert!(acknowledged.len() as u64 >= CLIENTS * ENOUGH);

        let running = started(&*database, directory.path());
        let mut reader = Client::new(0, running.session().unwrap());
        for (client, row) in acknowledged {
            assert!(
                reader.has(client, row),
                "{name} lost row {row} of client {client}"
            );
        }
        assert!((1..=LOADED).all(|row| reader.has(client::LOADER, row)));
        drop(reader);
        running.drain(&Stop::default()).unwrap();
        let debt = running.debt().unwrap();
        assert_eq!(debt.dirty_bytes.unwrap_or(0), 0, "{name} {debt:?}");
        assert_eq!(debt.compaction_bytes.unwrap_or(0), 0, "{name} {debt:?}");
        assert_eq!(running.verify().unwrap(), None, "{name}");
        running.stop().unwrap();
        left::assert_nothing(directory.path());
    }
}
