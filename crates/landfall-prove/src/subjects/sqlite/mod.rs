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

use std::num::NonZeroU64;
use std::path::Path;

use rusqlite::{Connection, types::Value};

use super::name_of;
use crate::Stop;
use crate::subject::{
    AckSink, Hazard, Mark, Promise, Recovered, Subject, SubjectError, SubjectName,
};
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
            Setting {
                name: "checkpoint-every",
                default: Some("20"),
                about: "transactions between two checkpoints of a write-ahead log, after which it is written from its beginning again; 0: none is asked for",
                always_shown: false,
            },
        ],
    },
    make,
};

struct Sqlite {
    name: SubjectName,
    options: Options,
    has_wal: bool,
    /// Transactions between two checkpoints that are asked for.
    checkpoint_every: Option<NonZeroU64>,
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
        has_wal: chosen.text("journal_mode") == "wal",
        checkpoint_every: NonZeroU64::new(chosen.number("checkpoint-every", 0, 1_000_000)?),
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

/// Writes what is in the write-ahead log to the pages, so that the next transaction writes the log from its beginning.
/// Returns whether it did all of it.
fn checkpoint(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "PRAGMA wal_checkpoint(RESTART)";
    connection.query_row(sql, (), |row| {
        let (is_busy, pages): (bool, i64) = (row.get(0)?, row.get(1)?);
        let written: i64 = row.get(2)?;
        Ok(!is_busy && pages > 0 && written == pages)
    })
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

    fn reads_times(&self) -> bool {
        false
    }

    fn hazards(&self) -> Vec<(Hazard, &'static [&'static str])> {
        let mut hazards: Vec<(Hazard, &'static [&'static str])> = vec![
            (Hazard::PageTorn, &["journal_mode"]),
            (Hazard::PageOverwritten, &[]),
        ];
        if self.has_wal {
            hazards.push((Hazard::Checkpoint, &["synchronous"]));
        }
        hazards
    }

    fn page_size(&self, file: &str) -> Option<NonZeroU64> {
        let size = NonZeroU64::new(self.options.page_size.into());
        size.filter(|_| file == DATABASE)
    }

    fn prepare(&self, directory: &Path, _: &Stop) -> Result<(), SubjectError> {
        let connection = self.connect(&directory.join(DATABASE), true)?;
        create(&connection).map_err(|error| failed("cannot create tables", &error))?;
        close(connection)
    }

    fn run(&self, directory: &Path, sink: &mut dyn AckSink, _: &Stop) -> Result<(), SubjectError> {
        let connection = self.connect(&directory.join(DATABASE), false)?;
        let mut checkpoints = 0;
        while let Some(transaction) = sink.send() {
            commit(&connection, transaction)
                .map_err(|error| failed(&format!("cannot commit {transaction}"), &error))?;
            sink.acknowledge(transaction);
            let is_time = |every: NonZeroU64| transaction.is_multiple_of(every.get());
            if self.has_wal && self.checkpoint_every.is_some_and(is_time) {
                sink.tell(Mark::Began(Hazard::Checkpoint));
                let is_done = checkpoint(&connection);
                checkpoints +=
                    u64::from(is_done.map_err(|error| failed("cannot checkpoint", &error))?);
                sink.tell(Mark::Ended(Hazard::Checkpoint));
            }
        }
        if self.has_wal {
            sink.tell(Mark::Counted(Hazard::Checkpoint, checkpoints));
        }
        close(connection)
    }

    fn check(&self, directory: &Path, _: &Stop) -> Result<Recovered, SubjectError> {
        check::check(&directory.join(DATABASE))
    }
}

#[cfg(test)]
mod tests;
