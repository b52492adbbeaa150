//! What is proven: something that keeps numbered transactions in a directory.

use std::collections::BTreeSet;
use std::path::Path;

/// What a subject says of itself, beyond that what it has acknowledged is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// A transaction is there whole or not at all, acknowledged or not.
    pub atomic: bool,
    /// No transaction is there without all those before it.
    pub ordered: bool,
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

    /// Makes in the empty `directory` what must be there before the first transaction; it is synced
    /// afterwards, and no power is cut before that.
    fn prepare(&self, directory: &Path) -> Result<(), SubjectError>;

    /// Runs transactions 1, 2, 3, … in `directory` until the witness says that it is enough.
    fn run(&self, directory: &Path, witness: &mut dyn Witness) -> Result<(), SubjectError>;

    /// Lets the subject recover in `directory` after a power cut, and reads everything back.
    fn check(&self, directory: &Path) -> Result<Found, SubjectError>;
}

/// Who is told what a subject does.
pub trait Witness {
    /// The next transaction, which is about to be sent; `None` when it is enough. Numbers are 1, 2, 3, ….
    fn send(&mut self) -> Option<u64>;

    /// The subject says that this transaction is durable.
    fn acknowledge(&mut self, transaction: u64);
}

/// What a subject still has after a power cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Transactions that are there, whole; those that later ones have overwritten among them.
    pub whole: BTreeSet<u64>,
    /// Transactions of which a part is there.
    pub partial: BTreeSet<u64>,
    /// What is there and was never written, each in a few words.
    pub invented: Vec<String>,
    /// What the subject's own integrity check complained of, or what it could not recover from.
    pub damage: Option<String>,
}

/// Why a subject could not be run or checked at all; this is nothing that was lost.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SubjectError(pub String);
