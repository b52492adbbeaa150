//! What is proven: something that keeps numbered transactions in a directory.
//!
//! [`named`] makes a [`Subject`] from its name and settings, [`list`] says which there are. Each is a
//! module here; `content` are the bytes that those with files of their own write.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::thread;

use crate::Stop;

mod command;
mod content;
#[cfg(feature = "databases")]
mod database;
mod engine;
mod files;
#[cfg(test)]
mod fixtures;
mod list;
mod log;
mod marks;
mod pages;
mod replace;
#[cfg(feature = "databases")]
mod sqlite;
mod state;

pub use landfall_databases::setting::{Description, Setting};
pub use list::{list, named};
pub use marks::{Mark, MarkError, parse_marks};

/// What a subject says of itself, beyond that what it has acknowledged is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// A transaction is there whole or not at all, acknowledged or not.
    pub atomic: bool,
    /// No transaction is there without all those before it.
    pub ordered: bool,
}

impl Promise {
    /// All that can be promised.
    pub const STRICT: Promise = Promise {
        atomic: true,
        ordered: true,
    };
}

/// Something that keeps numbered transactions in a directory.
///
/// One value serves both sides, which may be different processes' worth of state: nothing may be
/// carried over from [`run`](Subject::run) to [`check`](Subject::check) but the directory. Checks run
/// in several threads, each with its own directory.
pub trait Subject: Send + Sync {
    /// What it is, with its settings: `sqlite journal_mode=wal synchronous=full`.
    fn name(&self) -> String;

    /// What it promises.
    fn promise(&self) -> Promise;

    /// Bytes that it may need in its directory, if a small filesystem has not enough; 0: it has.
    fn room(&self) -> u64 {
        0
    }

    /// Makes in the empty `directory` what must be there before the first transaction; it is synced
    /// afterwards, and no power is cut before that.
    fn prepare(&self, directory: &Path, stop: &Stop) -> Result<(), SubjectError>;

    /// Runs transactions 1, 2, 3, … in `directory` until the sink says that it is enough, or
    /// the user asked to stop.
    fn run(
        &self,
        directory: &Path,
        sink: &mut dyn AckSink,
        stop: &Stop,
    ) -> Result<(), SubjectError>;

    /// Lets the subject recover in `directory` after a power cut, and reads everything back.
    fn check(&self, directory: &Path, stop: &Stop) -> Result<Recovered, SubjectError>;
}

/// Who is told what a subject does.
pub trait AckSink: Send {
    /// The next transaction, which is about to be sent; `None` when it is enough. Numbers are 1, 2, 3, ….
    fn send(&mut self) -> Option<u64>;

    /// The subject says that this transaction is durable.
    fn acknowledge(&mut self, transaction: u64);

    /// For a subject whose transactions another process runs: the file to which that process reports
    /// them instead of calling [`send`](AckSink::send) and [`acknowledge`](AckSink::acknowledge). Each
    /// write(2) to it holds one or more [marks](Mark), and has its exact place among the disk's writes.
    fn mark_file(&self) -> Option<PathBuf> {
        None
    }

    /// Whether what was reported to the mark file is enough, or makes no sense, or nobody wants to know
    /// any more: then the process is told to end. It is asked many times a second and must not wait.
    fn is_enough(&self) -> bool {
        false
    }
}

/// What a subject still has after a power cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Transactions that are there, whole; those that later ones have overwritten among them.
    pub whole: BTreeSet<u64>,
    /// Transactions of which a part is there.
    pub partial: BTreeSet<u64>,
    /// What is there and was never written, each in a few words.
    pub invented: Vec<String>,
    /// What the subject's own integrity check complained of, or what it could not recover from.
    pub damage: Option<String>,
    /// In what its own record of its transactions, which replicas follow, differs from what it has.
    pub diverged: Option<String>,
}

impl Recovered {
    /// Nothing at all, because of this.
    fn damaged(damage: impl Into<String>) -> Recovered {
        Recovered {
            damage: Some(damage.into()),
            ..Recovered::default()
        }
    }
}

/// Why a subject could not be run or checked at all; this is nothing that was lost.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SubjectError(pub String);

/// Runs so many clients at the same time, each in a thread, and waits for all of them.
fn at_the_same_time(
    clients: u32,
    run: impl Fn(u32) -> Result<(), SubjectError> + Sync,
) -> Result<(), SubjectError> {
    thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = (0..clients)
            .map(|client| scope.spawn(move || run(client)))
            .collect();
        let mut outcomes = threads.into_iter().map(|thread| {
            let panicked = |_| Err(SubjectError("a client panicked".into()));
            thread.join().unwrap_or_else(panicked)
        });
        // Also those behind one that failed.
        outcomes.by_ref().fold(Ok(()), Result::and)
    })
}

fn failed(doing: &str, error: io::Error) -> SubjectError {
    SubjectError(format!("{doing}: {error}"))
}

/// Reads a file after a power cut, and no more than `most` bytes of it: its size is not to be trusted.
/// What keeps it from being read was there before the cut, so it is damage.
fn read_back(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    match File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)) {
        Ok(_) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err("the file is missing".into()),
        Err(error) => Err(format!("the file cannot be read: {error}")),
    }
}
