//! SQLite, compiled in, with its journal modes and synchronous levels.
//!
//! Transaction n inserts row n into `history` and writes n into three of the sixteen rows of `slots`,
//! which ones follows from n. So what a slot must hold follows from the history, and a transaction of
//! which only a part was applied shows in their disagreement, as long as no later one has written the
//! same slots.
//!
//! A connection is closed before its files go away, on every way out: SQLite keeps state by device and
//! inode number, and the next crash state may have the same two.

mod check;

use std::path::Path;

use rusqlite::{Connection, types::Value};

use super::name_of;
use crate::Stop;
use crate::subject::{AckSink, Promise, Recovered, Subject, SubjectError, SubjectName};
use crate::transactions::pseudo_random;
use landfall_databases::registry::Kind;
use landfall_databases::setting::{Chosen, Description, Setting, SettingError};
use landfall_databases::sqlite::options::{self, Options};

const DATABASE: &str = "database";
const SLOTS: u64 = 16;
/// Bytes of a payload, the checksum in front among them.
const PAYLOAD: usize = 300;

pub(super) static KIND: Kind<dyn Subject> = Kind {
    listed: (),
    description: Description {
        name: "sqlite",
        about: "SQLite: transactions of one INSERT and three UPDATEs",
        passes_on: None,
        settings: &[
            options::journal_mode("delete"),
            options::SYNCHRONOUS,
            options::PAGE_SIZE,
            Setting {
                name: "locking_mode",
                default: Some("normal"),
                about: "normal or exclusive",
                always_shown: false,
            },
            options::MMAP_SIZE,
            options::WAL_AUTOCHECKPOINT,
        ],
    },
    make,
};

struct Sqlite {
    name: SubjectName,
    options: Options,
}

fn make(chosen: &Chosen) -> Result<Box<dyn Subject>, SettingError> {
    let mut options = Options::of(chosen)?;
    let modes = ["normal", "exclusive"].map(|mode| (mode, mode));
    let mode = chosen.one_of("locking_mode", &modes)?;
    // Before the journal mode: an exclusive connection keeps its WAL index to itself.
    options.first("locking_mode", Value::Text(mode.to_owned()));
    Ok(Box::new(Sqlite {
        name: name_of(chosen),
        options,
    }))
}

/// The row that transaction n inserts.
fn payload(transaction: u64) -> [u8; PAYLOAD] {
    let mut payload = [0; PAYLOAD];
    pseudo_random(&mut payload[4..], transaction);
    let checksum = crc32fast::hash(&payload[4..]);
    payload[..4].copy_from_slice(&checksum.to_le_bytes());
    payload
}

/// The slots that transaction n writes: each time others, and all of them in sixteen transactions.
fn slots(transaction: u64) -> [u64; 3] {
    [0, 5, 11].map(|apart| (transaction % SLOTS * 3 + apart) % SLOTS)
}

impl Sqlite {
    fn connect(&self, path: &Path, is_new: bool) -> Result<Connection, SubjectError> {
        let connection = self.options.connect(path, is_new);
        connection.map_err(|error| SubjectError(error.to_string()))
    }
}

/// One transaction of several rows.
fn commit(connection: &Connection, transaction: u64) -> rusqlite::Result<()> {
    let number = transaction as i64;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    connection.execute(
        "INSERT INTO history VALUES (?1, ?2)",
        (number, payload(transaction)),
    )?;
    for slot in slots(transaction) {
        let update = "UPDATE slots SET n = ?1 WHERE slot = ?2";
        connection.execute(update, (number, slot as i64))?;
    }
    connection.execute_batch("COMMIT")
}

fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "BEGIN;
         CREATE TABLE history (n INTEGER PRIMARY KEY, payload BLOB NOT NULL);
         CREATE TABLE slots (slot INTEGER PRIMARY KEY, n INTEGER NOT NULL);",
    )?;
    for slot in 0..SLOTS {
        connection.execute("INSERT INTO slots VALUES (?1, 0)", (slot as i64,))?;
    }
    connection.execute_batch("COMMIT")
}

fn close(connection: Connection) -> Result<(), SubjectError> {
    let closed = connection.close();
    closed.map_err(|(_, error)| failed("cannot close the database", &error))
}

fn failed(doing: &str, error: &rusqlite::Error) -> SubjectError {
    SubjectError(format!("{doing}: {error}"))
}

impl Subject for Sqlite {
    fn name(&self) -> SubjectName {
        self.name.clone()
    }

    fn promise(&self) -> Promise {
        Promise::STRICT
    }

    fn prepare(&self, directory: &Path, _: &Stop) -> Result<(), SubjectError> {
        let connection = self.connect(&directory.join(DATABASE), true)?;
        create(&connection).map_err(|error| failed("cannot create tables", &error))?;
        close(connection)
    }

    fn run(&self, directory: &Path, sink: &mut dyn AckSink, _: &Stop) -> Result<(), SubjectError> {
        let connection = self.connect(&directory.join(DATABASE), false)?;
        while let Some(transaction) = sink.send() {
            commit(&connection, transaction)
                .map_err(|error| failed(&format!("cannot commit {transaction}"), &error))?;
            sink.acknowledge(transaction);
        }
        close(connection)
    }

    fn check(&self, directory: &Path, _: &Stop) -> Result<Recovered, SubjectError> {
        check::check(&directory.join(DATABASE))
    }
}

#[cfg(test)]
mod tests;
