//! A database is killed while clients write, and started again.
//!
//! A server is killed where it runs. What is linked in is killed with the process that it is in, which
//! is this program once more: it says on its standard output what was acknowledged.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use landfall_databases::{DatabaseError, Running};
use landfall_lab::Stop;

use crate::client::{Client, LOADER};
use crate::{Place, alone, create, durable, left, present, start};

/// Acknowledged rows of each client before the database is killed.
const ENOUGH: u64 = 100;
const CLIENTS: u64 = 2;
/// Bytes that a memtable may say it has when nothing was put into it.
const EMPTY: u64 = 4096;
/// Rows that are there before the clients begin.
const LOADED: u64 = 1000;
/// By these variables this program knows that it is to run a database and be killed.
const NAME: &str = "LANDFALL_TEST_DATABASE";
const DIRECTORY: &str = "LANDFALL_TEST_DIRECTORY";

/// A client and a row of it.
type Acknowledged = (u64, u64);

/// Whether every client has enough.
fn is_enough(acknowledged: &[Acknowledged]) -> bool {
    (0..CLIENTS).all(|client| acknowledged.contains(&(client, ENOUGH)))
}

/// Makes, starts and fills a database.
fn filled(name: &str, directory: &Path) -> Box<dyn Running> {
    let database = durable(name);
    create(&*database, directory);
    let running = start(&*database, directory);
    Client::load(running.session().unwrap(), LOADED);
    running
}

/// Writes one row after the other until the connection breaks.
fn write(mut client: Client, acknowledged: &Sender<Acknowledged>) {
    for row in 1.. {
        let put = loop {
            match client.put(row) {
                Err(DatabaseError::Conflict(_)) => {}
                put => break put,
            }
        };
        if put.is_err() || acknowledged.send((client.number, row)).is_err() {
            break;
        }
    }
}

/// Clients of a database that write until it ends.
fn writers(running: &dyn Running) -> Vec<Client> {
    let client = |number| Client::new(number, running.session().unwrap());
    (0..CLIENTS).map(client).collect()
}

/// What a server acknowledged before it was killed.
fn killed_server(name: &str, directory: &Path) -> Vec<Acknowledged> {
    let running = filled(name, directory);
    let clients = writers(&*running);
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        for client in clients {
            let sender = sender.clone();
            scope.spawn(move || write(client, &sender));
        }
        drop(sender);
        let mut running = Some(running);
        let mut acknowledged = Vec::new();
        for one in receiver {
            acknowledged.push(one);
            if running.is_some() && is_enough(&acknowledged) {
                running = None;
            }
        }
        acknowledged
    })
}

/// What a database acknowledged before the process was killed that it was in, or that had started it.
fn killed_process(name: &str, directory: &Path) -> Vec<Acknowledged> {
    // What it leaves behind goes with this; everybody may enter it, as the directory that stands in.
    let temporary = tempfile::tempdir().unwrap();
    fs::set_permissions(temporary.path(), fs::Permissions::from_mode(0o711)).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::is_killed", "--nocapture"])
        .env(NAME, name)
        .env(DIRECTORY, directory)
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut acknowledged = Vec::new();
    for line in lines {
        let line = line.unwrap();
        let mut words = line.split(' ').skip_while(|&word| word != "acknowledged");
        let Some(_) = words.next() else { continue };
        let numbers: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
        // The last line may be cut.
        if let Some(&[client, row, 0]) = numbers.as_deref() {
            acknowledged.push((client, row));
        }
        if is_enough(&acknowledged) {
            child.kill().unwrap();
        }
    }
    let status = child.wait().unwrap();
    assert!(is_enough(&acknowledged), "{name} ended too early: {status}");
    acknowledged
}

/// The process that is killed; nothing unless it was started for that.
#[test]
fn is_killed() {
    let (Some(name), Some(directory)) = (std::env::var_os(NAME), std::env::var_os(DIRECTORY))
    else {
        return;
    };
    let running = filled(name.to_str().unwrap(), Path::new(&directory));
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        for client in writers(&*running) {
            let sender = sender.clone();
            scope.spawn(move || write(client, &sender));
        }
        drop(sender);
        for (client, row) in receiver {
            // The zero says that the line is whole.
            println!("acknowledged {client} {row} 0");
        }
    });
    panic!("the clients ended by themselves");
}

#[test]
fn a_server_ends_with_the_process_that_started_it() {
    let _alone = alone();
    for name in crate::servers() {
        let directory = tempfile::tempdir().unwrap();
        assert!(killed_process(name, directory.path()).len() as u64 > ENOUGH);
        let begin = Instant::now();
        while let Some(server) = left::process_with(directory.path()) {
            let waited = begin.elapsed();
            assert!(
                waited < Duration::from_secs(600),
                "{name} lives on: {server}"
            );
            thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn what_was_acknowledged_outlives_a_killed_database() {
    let _alone = alone();
    for (name, place) in present() {
        let directory = tempfile::tempdir().unwrap();
        let acknowledged = match place {
            Place::Server => killed_server(name, directory.path()),
            Place::LinkedIn => killed_process(name, directory.path()),
        };
        let database = durable(name);
        let running = start(&*database, directory.path());
        let mut reader = Client::new(0, running.session().unwrap());
        let loaded = (1..=LOADED).map(|row| (LOADER, row));
        for (client, row) in acknowledged.into_iter().chain(loaded) {
            let is_there = reader.has(client, row);
            assert!(is_there, "{name} lost row {row} of client {client}");
        }
        drop(reader);
        running.drain(&Stop::default()).unwrap();
        let pending = running.pending_writes().unwrap();
        assert!(
            pending.dirty_bytes.unwrap_or(0) <= EMPTY,
            "{name} {pending:?}"
        );
        assert_eq!(
            pending.compaction_bytes.unwrap_or(0),
            0,
            "{name} {pending:?}"
        );
        assert_eq!(running.verify(&Stop::default()).unwrap(), None, "{name}");
        running.stop().unwrap();
        left::assert_nothing(directory.path());
    }
}
