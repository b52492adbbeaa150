//! What is proven: something that keeps numbered transactions in a directory.
//!
//! Whoever proves a store of his own implements [`Subject`] for it, with what [`transactions`](crate::transactions)
//! has for the purpose.

mod clients;
mod marks;

use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Stop;

pub use clients::at_the_same_time;
pub use landfall_results::proof::{Hazard, SubjectName};
#[cfg(feature = "subjects")]
pub(crate) use marks::number;
pub use marks::{Mark, MarkError, parse_marks};

/// Bytes that a file without pages of its own is written over by: pages of the kernel's cache.
pub(crate) const PAGE: u64 = 4096;

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
/// in several processes or threads, each with its own directory.
pub trait Subject: Send + Sync {
    /// What it is called, with its settings: `"my store".into()`, if it has none.
    fn name(&self) -> SubjectName;

    /// What it promises: everything, unless it says otherwise.
    fn promise(&self) -> Promise {
        Promise::STRICT
    }

    /// Whether the store is a part of this program, so that its crash would be this program's. Not so if
    /// [`check`](Subject::check) starts it as a program of its own.
    fn is_linked_in(&self) -> bool {
        true
    }

    /// Whether it finds something else in files that differ in their times alone. Unless it says that it does not, only
    /// files with equal times are taken to be equal, of which one check is enough.
    fn reads_times(&self) -> bool {
        true
    }

    /// What can happen in it that a power cut should meet, the most important first, with the settings that are to
    /// protect it then. A proof says how often each happened, and which setting it did not try.
    fn hazards(&self) -> Vec<(Hazard, &'static [&'static str])> {
        vec![(Hazard::PageTorn, &[]), (Hazard::PageOverwritten, &[])]
    }

    /// Bytes of a page in a file that is written over in pages, by the file's path below the directory, in which each
    /// number is `#`; `None` if the file has no pages.
    fn page_size(&self, _file: &str) -> Option<NonZeroU64> {
        NonZeroU64::new(PAGE)
    }

    /// Bytes that it may need in its directory, if a small filesystem has not enough; 0: it has.
    fn capacity(&self) -> u64 {
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

    /// What else happens: something begins or ends that a power cut should meet, or was counted.
    fn tell(&mut self, _mark: Mark) {}

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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovered {
    /// Transactions that are there, whole; those that later ones have overwritten among them.
    pub whole: BTreeSet<u64>,
    /// Transactions of which a part is there.
    pub partial: BTreeSet<u64>,
    /// What is there and was never written, each in a few words.
    pub invented: Vec<String>,
    /// What the subject's own integrity check complained of, or what it could not recover from.
    pub damage: Option<String>,
    /// Whether the damage made it crash.
    pub crashed: bool,
    /// In what its own record of its transactions, which replicas follow, differs from what it has.
    pub diverged: Option<String>,
}

impl Recovered {
    /// What `read` finds, or, if it fails or panics, that nothing could be read: with a store that is linked in, opened
    /// before on the same machine, that is damage.
    pub fn or_damage(read: impl FnOnce() -> Result<Recovered, SubjectError>) -> Recovered {
        Recovered::caught(read).unwrap_or_else(|error| Recovered::damaged(error.0))
    }

    /// What `read` finds; that it panics is damage, since a store that is linked in may trip over what it finds.
    pub(crate) fn caught(
        read: impl FnOnce() -> Result<Recovered, SubjectError>,
    ) -> Result<Recovered, SubjectError> {
        catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied());
            let text = text.unwrap_or("it said nothing");
            Ok(Recovered::crashed(format!("it panicked: {text}")))
        })
    }

    /// The subject crashed like this as it recovered: nothing is there.
    pub(crate) fn crashed(how: impl Into<String>) -> Recovered {
        Recovered {
            crashed: true,
            ..Recovered::damaged(how)
        }
    }

    /// The subject could not recover, because of this: nothing is there.
    pub fn damaged(damage: impl Into<String>) -> Recovered {
        Recovered {
            damage: Some(damage.into()),
            ..Recovered::default()
        }
    }
}

/// Why a subject could not be run or checked at all; this is nothing that was lost.
///
/// It comes from any error by `?`, and is none itself for that.
#[derive(Debug)]
pub struct SubjectError(pub String);

impl fmt::Display for SubjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: std::error::Error> From<E> for SubjectError {
    fn from(error: E) -> SubjectError {
        SubjectError(error.to_string())
    }
}
