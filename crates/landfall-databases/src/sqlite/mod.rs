//! SQLite, linked in.
//!
//! One file, `database`, and its log or journal beside it. Writers take turns: each session is a
//! connection of its own, and one that finds the database locked sleeps and looks again, as SQLite's
//! busy timeout does it for applications; only when that is over is it told of a conflict.
//!
//! A database that is dropped without being stopped leaves its write-ahead log as it is, and the next
//! start recovers from it. Connections are closed before their files go away: SQLite keeps state by
//! device and inode number.

pub mod options;
mod session;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode};

use self::options::{ConnectError, Options};
use self::session::SqliteSession;
use super::{
    Database, DatabaseError, Dialect, Interface, PendingWrites, Presence, Running, Session,
    Templates,
};
use crate::SettingError;
use crate::registry::Kind;
use crate::setting::{Chosen, Description, Setting};
use crate::{Form, Listed};
use landfall_os::Stop;

const FILE: &str = "database";
/// How long a checkpoint that could not be finished is waited for before the next is tried.
const PAUSE: Duration = Duration::from_millis(10);

pub(super) static KIND: Kind<dyn Database, Listed> = Kind {
    description: Description {
        name: "sqlite",
        about: "SQLite, linked in; one writer at a time",
        passes_on: None,
        settings: &[
            options::journal_mode("wal"),
            options::SYNCHRONOUS,
            options::PAGE_SIZE,
            Setting {
                name: "cache_size",
                default: Some("2000K"),
                about: "bytes of pages that each session keeps in memory",
                always_shown: false,
            },
            options::MMAP_SIZE,
            options::WAL_AUTOCHECKPOINT,
            Setting {
                name: "busy_timeout",
                default: Some("5000"),
                about: "milliseconds for which a session waits for another one's lock",
                always_shown: false,
            },
        ],
    },
    listed: Listed {
        presence: || Presence::Here {
            version: rusqlite::version().to_owned(),
            program: None,
        },
        title: "SQLite",
        form: Form::LinkedIn,
    },
    make,
};

/// SQLite with its settings.
struct Sqlite {
    name: String,
    options: Options,
}

fn make(chosen: &Chosen) -> Result<Box<dyn Database>, SettingError> {
    let mut options = Options::of(chosen)?;
    let cache_size = chosen.size("cache_size", 1 << 10, 1 << 40)?;
    if !cache_size.is_multiple_of(1 << 10) {
        return Err(chosen.wrong("cache_size", "it is a multiple of 1K"));
    }
    // A negative number is one of KiB.
    options.first("cache_size", Value::Integer(-((cache_size >> 10) as i64)));
    let busy_timeout = chosen.number("busy_timeout", 0, i32::MAX as u64)?;
    options.first("busy_timeout", Value::Integer(busy_timeout as i64));
    Ok(Box::new(Sqlite {
        name: chosen.name(),
        options,
    }))
}

fn connect(options: &Options, path: &Path, is_new: bool) -> Result<Connection, ConnectError> {
    let connection = options.connect(path, is_new)?;
    // Whoever wants a checkpoint says so; a session that ends does not.
    let set = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    set.map_err(|error| ConnectError::Failed {
        doing: "cannot configure the database".to_owned(),
        error,
    })?;
    Ok(connection)
}

impl Database for Sqlite {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn interface(&self) -> Interface {
        Interface::Sql(Dialect::Sqlite)
    }

    fn create(&self, directory: &Path, _: &Templates, _: &Stop) -> Result<(), DatabaseError> {
        let connection = connect(&self.options, &directory.join(FILE), true)?;
        // The size of a page is kept once there is one.
        let written = connection.pragma_update(None, "user_version", 1);
        written.map_err(|error| failed("cannot write the database", &error))?;
        let closed = connection.close();
        closed.map_err(|(_, error)| failed("cannot close the database", &error))
    }

    fn start(&self, directory: &Path, _: &Stop) -> Result<Box<dyn Running>, DatabaseError> {
        let path = directory.join(FILE);
        let open = || {
            let connection = connect(&self.options, &path, false)?;
            let read = connection.query_row("SELECT count(*) FROM sqlite_schema", (), |_| Ok(()));
            read.map_err(|error| ConnectError::Failed {
                doing: "cannot read the schema".to_owned(),
                error,
            })?;
            Ok(connection)
        };
        let connection =
            open().map_err(|error: ConnectError| DatabaseError::from(error).at_start())?;
        Ok(Box::new(RunningSqlite {
            options: self.options.clone(),
            path,
            connection: Mutex::new(connection),
        }))
    }
}

/// A database that is open.
struct RunningSqlite {
    options: Options,
    path: PathBuf,
    /// What asks for checkpoints, and keeps the files open between sessions.
    connection: Mutex<Connection>,
}

/// What SQLite says of a write-ahead log: whether a checkpoint could not be finished, pages in it, and
/// how many of them are in the database too.
struct Log {
    is_busy: bool,
    pages: i64,
    copied: i64,
}

impl RunningSqlite {
    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn checkpoint(&self, mode: &str) -> Result<Log, DatabaseError> {
        let sql = format!("PRAGMA wal_checkpoint({mode})");
        let log = self.lock().query_row(&sql, (), |row| {
            Ok(Log {
                is_busy: row.get::<_, i64>(0)? != 0,
                // -1 without a write-ahead log.
                pages: row.get::<_, i64>(1)?.max(0),
                copied: row.get::<_, i64>(2)?.max(0),
            })
        });
        log.map_err(|error| failed("cannot checkpoint", &error))
    }
}

impl Running for RunningSqlite {
    fn session(&self) -> Result<Session, DatabaseError> {
        let connection = connect(&self.options, &self.path, false)?;
        Ok(Session::Sql(Box::new(SqliteSession::new(connection))))
    }

    /// Pages in the write-ahead log that are not in the database yet, those that were changed twice
    /// counted twice.
    fn pending_writes(&self) -> Result<PendingWrites, DatabaseError> {
        let log = self.checkpoint("NOOP")?;
        let pages = (log.pages - log.copied).max(0) as u64;
        Ok(PendingWrites {
            dirty_bytes: Some(pages * u64::from(self.options.page_size)),
            ..PendingWrites::default()
        })
    }

    fn drain(&self, stop: &Stop) -> Result<(), DatabaseError> {
        while self.checkpoint("TRUNCATE")?.is_busy {
            if stop.is_requested() {
                return Err(DatabaseError::Stopped);
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn verify(&self, _: &Stop) -> Result<Option<String>, DatabaseError> {
        let said = self
            .lock()
            .query_row("PRAGMA integrity_check(1)", (), |row| {
                row.get::<_, String>(0)
            });
        match said {
            Ok(said) if said == "ok" => Ok(None),
            // The first line only says that it is about the one database that there is.
            Ok(said) => Ok(said.lines().last().map(str::to_owned)),
            Err(error) if is_damage(&error) => Ok(Some(error.to_string())),
            Err(error) => Err(failed("cannot check the database", &error)),
        }
    }

    fn stop(self: Box<Self>) -> Result<(), DatabaseError> {
        let connection = self
            .connection
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let set = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
        set.map_err(|error| failed("cannot configure the database", &error))?;
        let closed = connection.close();
        closed.map_err(|(_, error)| failed("cannot close the database", &error))
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(
        code,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}

/// What an error of SQLite means to a client.
fn failed(doing: &str, error: &rusqlite::Error) -> DatabaseError {
    let text = format!("{doing}: {error}");
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => DatabaseError::Conflict(text),
        Some(ErrorCode::DiskFull) => DatabaseError::no_space(text),
        Some(ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => DatabaseError::Refused(text),
        _ => DatabaseError::Failed(text),
    }
}

impl From<ConnectError> for DatabaseError {
    fn from(error: ConnectError) -> DatabaseError {
        match error {
            ConnectError::Failed { doing, error } => failed(&doing, &error),
            ignored @ ConnectError::Ignored { .. } => DatabaseError::Setting(ignored.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
