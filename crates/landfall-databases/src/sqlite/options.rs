//! How a connection to SQLite is set up, for the database and for the subject of proofs.
//!
//! Every PRAGMA is read back: SQLite ignores what it does not know or cannot do, and a result under
//! other settings than those asked for would be worth nothing.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};

use crate::SettingError;
use crate::setting::{Chosen, Setting};

/// SQLite's way to files that keeps the index of a write-ahead log in memory of its own. Otherwise it is
/// in a mapped file, and a filesystem that fails ends whoever touches that with SIGBUS: all of us.
/// Recovery never uses the index, and what is written to the log and the database is the same. All
/// connections of this process share it, and no other process can open the database meanwhile.
pub const VFS: &str = "unix-excl";

/// What a transaction waits for.
pub const SYNCHRONOUS: Setting = Setting {
    name: "synchronous",
    default: Some("full"),
    about: "off, normal, full or extra",
    always_shown: true,
};
/// How large pages are.
pub const PAGE_SIZE: Setting = Setting {
    name: "page_size",
    default: Some("4K"),
    about: "bytes of a page, a power of two from 512 to 64K",
    always_shown: false,
};
/// How much is read through a mapping.
pub const MMAP_SIZE: Setting = Setting {
    name: "mmap_size",
    default: Some("0"),
    about: "bytes of the database that are read through a mapping",
    always_shown: false,
};
/// When the write-ahead log is checkpointed.
pub const WAL_AUTOCHECKPOINT: Setting = Setting {
    name: "wal_autocheckpoint",
    default: Some("1000"),
    about: "pages in the write-ahead log before it is checkpointed; 0: never",
    always_shown: false,
};

/// Says which journal mode there is if none is chosen.
pub const fn journal_mode(default: &'static str) -> Setting {
    Setting {
        name: "journal_mode",
        default: Some(default),
        about: "delete, truncate, persist, wal, memory or off",
        always_shown: true,
    }
}

/// What is set of every connection.
#[derive(Clone)]
pub struct Options {
    /// Bytes of a page.
    pub page_size: u32,
    /// In this order; each is read back as the same value.
    pragmas: Vec<(&'static str, Value)>,
}

impl Options {
    /// What the settings above say.
    pub fn of(chosen: &Chosen) -> Result<Options, SettingError> {
        let page_size = chosen.size(PAGE_SIZE.name, 512, 64 << 10)?;
        if !page_size.is_power_of_two() {
            return Err(chosen.wrong(PAGE_SIZE.name, "it is a power of two"));
        }
        let modes = ["delete", "truncate", "persist", "wal", "memory", "off"];
        let mode = chosen.one_of("journal_mode", &modes.map(|mode| (mode, mode)))?;
        let levels = [("off", 0), ("normal", 1), ("full", 2), ("extra", 3)];
        let level = chosen.one_of(SYNCHRONOUS.name, &levels)?;
        // More than SQLite maps by itself.
        let mmap_size = chosen.size(MMAP_SIZE.name, 0, i32::MAX as u64)?;
        let checkpoint = chosen.number(WAL_AUTOCHECKPOINT.name, 0, i32::MAX as u64)?;
        Ok(Options {
            page_size: page_size as u32,
            pragmas: vec![
                ("journal_mode", Value::Text(mode.to_owned())),
                (SYNCHRONOUS.name, Value::Integer(level)),
                (MMAP_SIZE.name, Value::Integer(mmap_size as i64)),
                (WAL_AUTOCHECKPOINT.name, Value::Integer(checkpoint as i64)),
            ],
        })
    }

    /// Another PRAGMA, set before the others.
    pub fn first(&mut self, name: &'static str, value: Value) {
        self.pragmas.insert(0, (name, value));
    }

    /// A connection with every setting, each of which took. One that is not new must be there.
    pub fn connect(&self, path: &Path, is_new: bool) -> Result<Connection, ConnectError> {
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        if is_new {
            flags |= OpenFlags::SQLITE_OPEN_CREATE;
        }
        let failed = |doing: String| move |error| ConnectError::Failed { doing, error };
        let connection = Connection::open_with_flags_and_vfs(path, flags, VFS)
            .map_err(failed("cannot open the database".to_owned()))?;
        let page_size = ("page_size", Value::Integer(i64::from(self.page_size)));
        let new = is_new.then_some(&page_size);
        for (name, value) in new.into_iter().chain(&self.pragmas) {
            let set = connection.pragma_update(None, name, value);
            set.map_err(failed(format!("cannot set {name}")))?;
        }
        for (name, value) in [&page_size].into_iter().chain(&self.pragmas) {
            let read = connection.pragma_query_value(None, name, |row| row.get::<_, Value>(0));
            let read = read.map_err(failed(format!("cannot read {name}")))?;
            if read != *value {
                return Err(ConnectError::Ignored {
                    name,
                    asked: shown(value),
                    says: shown(&read),
                });
            }
        }
        Ok(connection)
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// SQLite failed.
    #[error("{doing}: {error}")]
    Failed {
        /// What was being done, as "cannot …".
        doing: String,
        /// What it said.
        error: rusqlite::Error,
    },
    /// It did not take a setting.
    #[error("SQLite does not do {name}={asked} here: it says {says}")]
    Ignored {
        /// The setting.
        name: &'static str,
        /// What it was to be.
        asked: String,
        /// What it is.
        says: String,
    },
}

fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}
