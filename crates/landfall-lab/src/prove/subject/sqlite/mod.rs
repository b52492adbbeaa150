//! SQLite, compiled in, with its journal modes and synchronous levels.
//!
//! Transaction n inserts row n into `history` and writes n into three of the sixteen rows of `slots`,
//! which ones follows from n. So what a slot must hold follows from the history, and a transaction of
//! which only a part was applied shows in their disagreement, as long as no later one has written the
//! same slots.
//!
//! Every PRAGMA is read back: SQLite ignores what it does not know or cannot do, and a proof of other
//! settings than those asked for would prove nothing.
//!
//! A connection is closed before its files go away, on every way out: SQLite keeps state by device and
//! inode number, and the next crash state may have the same two.

mod check;

use std::path::Path;

use rusqlite::{Connection, OpenFlags, types::Value};

use super::content;
use super::registry::Kind;
use super::{Found, Promise, Subject, SubjectError, Witness};
use crate::Error;
use crate::setting::{Chosen, Description, Setting};

const DATABASE: &str = "database";
/// SQLite's way to files that keeps the index of a write-ahead log in memory of its own. Otherwise it is
/// in a mapped file, and a filesystem that fails ends whoever touches that with SIGBUS: all of us.
/// Recovery never uses the index, and what is written to the log and the database is the same.
const VFS: &str = "unix-excl";
const SLOTS: u64 = 16;
/// Bytes of a payload, the checksum in front among them.
const PAYLOAD: usize = 300;

pub(super) static KIND: Kind = Kind {
    description: Description {
        name: "sqlite",
        about: "SQLite: transactions of one INSERT and three UPDATEs",
        passes_on: None,
        settings: &[
            Setting {
                name: "journal_mode",
                default: Some("delete"),
                about: "delete, truncate, persist, wal, memory or off",
                telling: true,
            },
            Setting {
                name: "synchronous",
                default: Some("full"),
                about: "off, normal, full or extra",
                telling: true,
            },
            Setting {
                name: "page_size",
                default: Some("4K"),
                about: "bytes of a page, a power of two from 512 to 64K",
                telling: false,
            },
            Setting {
                name: "locking_mode",
                default: Some("normal"),
                about: "normal or exclusive",
                telling: false,
            },
            Setting {
                name: "mmap_size",
                default: Some("0"),
                about: "bytes of the database that are read through a mapping",
                telling: false,
            },
            Setting {
                name: "wal_autocheckpoint",
                default: Some("1000"),
                about: "pages in the write-ahead log before it is checkpointed; 0: never",
                telling: false,
            },
        ],
    },
    make,
};

struct Sqlite {
    name: String,
    page_size: i64,
    /// What is set of every connection, in this order, and read back as the same value.
    pragmas: Vec<(&'static str, Value)>,
}

fn make(chosen: &Chosen) -> Result<Box<dyn Subject>, Error> {
    let journal_modes = ["delete", "truncate", "persist", "wal", "memory", "off"];
    let page_size = chosen.size("page_size", 512, 64 << 10)?;
    if !page_size.is_power_of_two() {
        return Err(chosen.wrong("page_size", "it is a power of two"));
    }
    let text = |setting, values: &[&'static str]| {
        let values: Vec<_> = values.iter().map(|&value| (value, value)).collect();
        let value = chosen.one_of(setting, &values)?;
        Ok::<_, Error>(Value::Text(value.to_owned()))
    };
    let levels = [("off", 0), ("normal", 1), ("full", 2), ("extra", 3)];
    // More than SQLite maps by itself.
    let mmap_size = chosen.size("mmap_size", 0, i32::MAX as u64)?;
    let checkpoint = chosen.number("wal_autocheckpoint", 0, i32::MAX as u64)?;
    Ok(Box::new(Sqlite {
        name: chosen.name(),
        page_size: page_size as i64,
        pragmas: vec![
            // Before the journal mode: an exclusive connection keeps its WAL index to itself.
            (
                "locking_mode",
                text("locking_mode", &["normal", "exclusive"])?,
            ),
            ("journal_mode", text("journal_mode", &journal_modes)?),
            (
                "synchronous",
                Value::Integer(chosen.one_of("synchronous", &levels)?),
            ),
            ("mmap_size", Value::Integer(mmap_size as i64)),
            ("wal_autocheckpoint", Value::Integer(checkpoint as i64)),
        ],
    }))
}

/// The row that transaction n inserts.
fn payload(transaction: u64) -> [u8; PAYLOAD] {
    let mut payload = [0; PAYLOAD];
    content::pseudo_random(&mut payload[4..], transaction);
    let checksum = crc32fast::hash(&payload[4..]);
    payload[..4].copy_from_slice(&checksum.to_le_bytes());
    payload
}

/// The slots that transaction n writes: each time others, and all of them in sixteen transactions.
fn slots(transaction: u64) -> [u64; 3] {
    [0, 5, 11].map(|apart| (transaction % SLOTS * 3 + apart) % SLOTS)
}

impl Sqlite {
    /// A connection with every setting, each of which took.
    fn connect(&self, path: &Path, is_new: bool) -> Result<Connection, SubjectError> {
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        if is_new {
            flags |= OpenFlags::SQLITE_OPEN_CREATE;
        }
        let connection = Connection::open_with_flags_and_vfs(path, flags, VFS)
            .map_err(|error| failed("cannot open the database", &error))?;
        let page_size = ("page_size", Value::Integer(self.page_size));
        let new = is_new.then_some(&page_size);
        for (name, value) in new.into_iter().chain(&self.pragmas) {
            let set = connection.pragma_update(None, name, value);
            set.map_err(|error| failed(&format!("cannot set {name}"), &error))?;
        }
        for (name, value) in [&page_size].into_iter().chain(&self.pragmas) {
            let read = connection.pragma_query_value(None, name, |row| row.get::<_, Value>(0));
            let read = read.map_err(|error| failed(&format!("cannot read {name}"), &error))?;
            if read != *value {
                return Err(SubjectError(format!(
                    "SQLite does not do {name}={} here: it says {}",
                    shown(value),
                    shown(&read)
                )));
            }
        }
        Ok(connection)
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

fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}

impl Subject for Sqlite {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn promise(&self) -> Promise {
        Promise::STRICT
    }

    fn prepare(&self, directory: &Path) -> Result<(), SubjectError> {
        let connection = self.connect(&directory.join(DATABASE), true)?;
        create(&connection).map_err(|error| failed("cannot create tables", &error))?;
        close(connection)
    }

    fn run(&self, directory: &Path, witness: &mut dyn Witness) -> Result<(), SubjectError> {
        let connection = self.connect(&directory.join(DATABASE), false)?;
        while let Some(transaction) = witness.send() {
            commit(&connection, transaction)
                .map_err(|error| failed(&format!("cannot commit {transaction}"), &error))?;
            witness.acknowledge(transaction);
        }
        close(connection)
    }

    fn check(&self, directory: &Path) -> Result<Found, SubjectError> {
        check::check(&directory.join(DATABASE))
    }
}

#[cfg(test)]
mod tests;
