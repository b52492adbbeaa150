//! What the tests of subjects share.

use std::collections::BTreeSet;
use std::path::Path;

use tempfile::TempDir;

use super::named;
use crate::Stop;
use crate::subject::{AckSink, Recovered, Subject};

/// Sends so many transactions and remembers which were acknowledged.
#[derive(Debug)]
pub(super) struct Counting {
    most: u64,
    pub sent: u64,
    pub acknowledged: Vec<u64>,
}

impl Counting {
    pub fn new(most: u64) -> Counting {
        Counting {
            most,
            sent: 0,
            acknowledged: Vec::new(),
        }
    }
}

impl AckSink for Counting {
    fn send(&mut self) -> Option<u64> {
        if self.sent == self.most {
            return None;
        }
        self.sent += 1;
        Some(self.sent)
    }

    fn acknowledge(&mut self, transaction: u64) {
        self.acknowledged.push(transaction);
    }
}

/// The subject with these settings: `a=b c=d`.
pub(super) fn subject(name: &str, settings: &str) -> Box<dyn Subject> {
    let pair = |setting: &str| {
        let (key, value) = setting.split_once('=').unwrap();
        (key.to_owned(), value.to_owned())
    };
    let settings: Vec<_> = settings.split_whitespace().map(pair).collect();
    named(name, &settings).unwrap()
}

/// The error of making the subject with these settings.
pub(super) fn refusal(name: &str, settings: &[(&str, &str)]) -> String {
    let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
    let settings: Vec<_> = settings.iter().map(owned).collect();
    named(name, &settings).err().unwrap().to_string()
}

/// A directory on a disk.
pub(super) fn directory() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
}

/// Runs `transactions` in a new directory, all of which are acknowledged; `None`, with a word, where
/// the system cannot.
pub(super) fn run(subject: &dyn Subject, transactions: u64) -> Option<TempDir> {
    let directory = directory();
    let mut sink = Counting::new(transactions);
    let outcome = subject
        .prepare(directory.path(), &Stop::default())
        .and_then(|()| subject.run(directory.path(), &mut sink, &Stop::default()));
    if let Err(error) = outcome {
        let text = error.to_string();
        assert!(
            [
                "support",
                "switched off",
                "takes no direct",
                "has no shared"
            ]
            .iter()
            .any(|word| text.contains(word)),
            "{}: {text}",
            subject.name()
        );
        println!("skipped: {}: {text}", subject.name());
        return None;
    }
    assert_eq!(sink.sent, transactions);
    let sent: Vec<u64> = (1..=transactions).collect();
    // Several threads are done in an order of their own.
    sink.acknowledged.sort_unstable();
    assert_eq!(sink.acknowledged, sent, "{}", subject.name());
    Some(directory)
}

pub(super) fn check(subject: &dyn Subject, directory: &Path) -> Recovered {
    subject.check(directory, &Stop::default()).unwrap()
}

/// Everything up to this transaction, and nothing else.
pub(super) fn all_whole(transactions: u64) -> Recovered {
    Recovered {
        whole: (1..=transactions).collect(),
        ..Recovered::default()
    }
}

pub(super) fn set(transactions: &[u64]) -> BTreeSet<u64> {
    transactions.iter().copied().collect()
}

/// Runs 20 transactions and checks that they are there.
pub(super) fn runs_and_finds_all(name: &str, settings: &str) {
    let subject = subject(name, settings);
    if let Some(directory) = run(subject.as_ref(), 20) {
        let found = check(subject.as_ref(), directory.path());
        assert_eq!(found, all_whole(20), "{}", subject.name());
    }
}
