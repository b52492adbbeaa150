//! The databases that experiments and proofs run: servers that Landfall starts itself, and stores that
//! are linked into it.
//!
//! - [`Database`]: one with its settings, made by [`named`]; [`list`] says which there are and where;
//! - [`Running`]: one that was started in a directory; killed when dropped;
//! - [`Session`]: one client's connection, [`Sql`] or [`KeyValue`];
//! - [`Templates`]: empty data directories, made once and copied;
//! - [`cluster`]: several servers that keep the same; [`clusters`] makes them by name.
//!
//! A database touches nothing but the directory that it was given, and a private directory for its
//! socket; an installed service of the same kind is never spoken to. Servers are ours alone: they have a
//! process group, a data directory, a socket and settings of their own.
//!
//! Threads: a [`Running`] is shared, a [`Session`] belongs to one client's thread.

#![cfg_attr(
    not(all(feature = "servers", feature = "stores")),
    allow(
        dead_code,
        reason = "what several databases share is there for each of them"
    )
)]

pub mod cluster;
pub mod clusters;
#[cfg(test)]
pub(crate) mod conformance;
mod error;
#[cfg(feature = "servers")]
mod etcd;
#[cfg(feature = "stores")]
mod fjall;
#[cfg(feature = "servers")]
mod java;
#[cfg(feature = "servers")]
mod kafka;
mod key_value;
mod list;
#[cfg(feature = "stores")]
mod lmdb;
#[cfg(feature = "servers")]
mod mariadb;
#[cfg(feature = "servers")]
mod nats;
#[cfg(feature = "servers")]
mod page;
#[cfg(feature = "servers")]
mod postgres;
mod program;
#[cfg(feature = "stores")]
mod redb;
#[cfg(feature = "servers")]
mod redis;
pub mod registry;
mod rocksdb;
mod server;
pub mod setting;
#[cfg(feature = "stores")]
mod sled;
mod sql;
#[cfg(feature = "stores")]
pub mod sqlite;
#[cfg(feature = "stores")]
mod store;
mod template;
mod user;
pub mod workload;
#[cfg(feature = "servers")]
mod zookeeper;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use error::DatabaseError;
pub use key_value::{Batch, KeyValue};
pub use list::{KINDS, descriptions, linked_in, list, named};
pub use setting::SettingError;
pub use sql::{Dialect, Row, Sql, Statement, Value};
pub use template::Templates;

use landfall_os::Stop;

// The example of the README compiles, and is run where it can be.
#[cfg(all(doctest, feature = "stores"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// What a database can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// Tables, in this dialect.
    Sql(Dialect),
    /// Keys in order.
    OrderedKeys,
    /// Keys without order.
    Keys,
}

/// Where a database is, for a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It can be run.
    Here {
        /// Its version, as it says itself.
        version: String,
        /// Its program; `None`: it is part of this one.
        program: Option<PathBuf>,
    },
    /// It cannot.
    Absent {
        /// How to get it: `apt install mariadb-server`.
        remedy: String,
    },
}

impl Presence {
    /// Where a server is: its version, and its program, if it was found and could tell.
    pub(crate) fn of(found: Option<(String, PathBuf)>, remedy: &str) -> Presence {
        match found {
            Some((version, program)) => Presence::Here {
                version,
                program: Some(program),
            },
            None => Presence::Absent {
                remedy: remedy.to_owned(),
            },
        }
    }
}

/// What a list says of a database besides.
pub struct Listed {
    /// Where it is on this machine.
    pub presence: fn() -> Presence,
    /// What it is called in a sentence: `MariaDB with InnoDB`.
    pub title: &'static str,
    /// How it comes to run.
    pub form: Form,
}

/// How a database comes to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As a server that is started.
    Server,
    /// As a part of this program.
    LinkedIn,
    /// As a part of this program where that was asked for when it was built.
    LinkedInOnRequest,
}

/// A database with its settings.
///
/// What is told to clients to be durable is as durable as the settings make it: the lab compares
/// settings, so nothing here makes them safer than they are.
pub trait Database: Send + Sync {
    /// What it is, with its settings: `mariadb sync_binlog=1`.
    fn name(&self) -> String;

    /// What it can be asked.
    fn interface(&self) -> Interface;

    /// Makes an empty database in the empty `directory`; nothing runs afterwards.
    fn create(
        &self,
        directory: &Path,
        templates: &Templates,
        stop: &Stop,
    ) -> Result<(), DatabaseError>;

    /// Starts it in `directory`, where it was created; it recovers there first if it has to. Returns
    /// when it takes sessions. A server is killed when the calling thread ends, even if it is killed: that
    /// thread must live as long as the server is wanted.
    fn start(&self, directory: &Path, stop: &Stop) -> Result<Box<dyn Running>, DatabaseError>;
}

/// A database that runs. Dropped without [`stop`](Running::stop), a server is killed (SIGKILL).
pub trait Running: Send + Sync {
    /// Opens a connection.
    fn session(&self) -> Result<Session, DatabaseError>;

    /// CPU time that its processes have used, those that ended included; zero for what is part of this
    /// process.
    fn cpu(&self) -> Duration {
        Duration::ZERO
    }

    /// What it has still to write for what was already committed.
    fn pending_writes(&self) -> Result<PendingWrites, DatabaseError> {
        Ok(PendingWrites::default())
    }

    /// What it has written for updates, by its own count, and what its own formula says that it writes for them at random; `None`:
    /// it has none. It may read some of what it holds.
    fn forecast(&self) -> Option<Forecast> {
        None
    }

    /// Makes it write that: dirty pages, memtables, pending compactions; waits until it has. `stop` is
    /// looked at while waiting.
    fn drain(&self, stop: &Stop) -> Result<(), DatabaseError>;

    /// What it does besides committing, each with how often it has by its own count. What the count began with is its own
    /// business: only differences say something.
    fn maintenance(&self) -> Result<Vec<MaintenanceCount>, DatabaseError> {
        Ok(Vec::new())
    }

    /// Tells it to do that, and returns when it has. Clients may go on meanwhile. `stop` is looked at where it takes long.
    fn maintain(&self, what: Maintenance, _stop: &Stop) -> Result<(), DatabaseError> {
        Err(DatabaseError::Failed(format!(
            "it cannot be told to do this: {what:?}"
        )))
    }

    /// Its own check of everything that it holds, as far as it has one; says what it complains of.
    /// `stop` is looked at where that takes long.
    fn verify(&self, stop: &Stop) -> Result<Option<String>, DatabaseError>;

    /// Ends it in order.
    fn stop(self: Box<Self>) -> Result<(), DatabaseError>;
}

/// What a database does besides committing: all of it writes over old data, or removes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maintenance {
    /// What is in the log is written to where it stays.
    Checkpoint,
    /// A new file of the log is begun.
    LogRotation,
    /// The log is rewritten to a new, shorter one.
    LogRewrite,
    /// Everything is written to a new file.
    Snapshot,
    /// Old versions are removed.
    Compaction,
    /// The file is made anew without what is free in it.
    Defragmentation,
}

/// How often a database did something besides committing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaintenanceCount {
    /// What.
    pub what: Maintenance,
    /// How often.
    pub times: u64,
    /// Whether it does it when it is [told to](Running::maintain), and not only by itself.
    pub is_told: bool,
}

impl MaintenanceCount {
    /// Of what it can be told to do.
    #[cfg_attr(
        not(feature = "servers"),
        expect(dead_code, reason = "servers alone can be told")
    )]
    pub(crate) fn told(what: Maintenance, times: u64) -> MaintenanceCount {
        MaintenanceCount {
            what,
            times,
            is_told: true,
        }
    }
}

/// What a database has still to write for what was already committed; `None`: it does not say, or has
/// no such thing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PendingWrites {
    /// Bytes of pages that are newer in memory than in their files.
    pub dirty_bytes: Option<u64>,
    /// Bytes that its background compaction has still to rewrite, estimated.
    pub compaction_bytes: Option<u64>,
    /// Memtables written out since it was started.
    pub memtable_flushes: Option<u64>,
    /// How often its log was gone through since it was started, where pages are written when the log comes
    /// round: before it did once, most of them were not written at all.
    pub log_rounds: Option<f64>,
    /// What changes that wait on disk take of what they may, where there is such a buffer; 1 once some were merged: before that
    /// the larger part of the work is put off.
    pub buffer_filled: Option<f64>,
}

/// What a database writes for each byte that is updated: of its log by count, of all else by a formula.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Forecast {
    /// Bytes that are written for each byte that is updated at random, without the log.
    pub tree: f64,
    /// Bytes of the log since it was started.
    pub log_bytes: u64,
    /// Bytes of keys and values that were committed since then.
    pub logical_bytes: u64,
}

impl Forecast {
    /// Bytes written for each byte that is updated, with the log as it was since an earlier one; `None`: nothing was committed.
    pub fn per_byte(&self, earlier: &Forecast) -> Option<f64> {
        let since = |now: u64, then: u64| now.saturating_sub(then) as f64;
        let logical = since(self.logical_bytes, earlier.logical_bytes);
        let log = since(self.log_bytes, earlier.log_bytes);
        (logical > 0.0).then(|| self.tree + log / logical)
    }
}

/// One client's connection.
pub enum Session {
    /// To tables.
    Sql(Box<dyn Sql>),
    /// To keys.
    Keys(Box<dyn KeyValue>),
}
