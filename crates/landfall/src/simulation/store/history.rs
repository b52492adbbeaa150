//! What was committed to a store, what was read of it, and whether both are as was promised.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::environment::Simulated;
use super::super::history::Broken;
use crate::Error;
use crate::store::Handle;
use crate::store::iterate::{Bounds, Own, Range};
use crate::store::record;
use crate::store::removed::KeyRange;
use crate::store::snapshots::View;

pub(super) const KEYSPACES: [&str; 2] = ["first", "second"];

pub(super) type Store = Arc<Handle<Simulated>>;
pub(super) type Keyspace = Arc<crate::store::tree::Keyspace<Simulated>>;
/// By keyspace and key.
pub(super) type Contents = BTreeMap<(usize, Vec<u8>), Vec<u8>>;

/// Ranges of keys that are removed, by keyspace, and then keys that are given values or removed, each once.
#[derive(Clone, Default)]
pub(super) struct Writes {
    pub ranges: Vec<(usize, KeyRange)>,
    pub keys: Vec<(usize, Vec<u8>, Option<Vec<u8>>)>,
}

impl Writes {
    pub fn writes(&self, keyspace: usize, key: &[u8]) -> bool {
        let is_key = |(of, name, _): &(usize, Vec<u8>, _)| *of == keyspace && name == key;
        let is_removed = |(of, range): &(usize, KeyRange)| *of == keyspace && range.contains(key);
        self.keys.iter().any(is_key) || self.ranges.iter().any(is_removed)
    }

    /// Whether both write something.
    fn meets(&self, other: &Writes) -> bool {
        let overlaps = |(of, range): &(usize, KeyRange)| {
            let mut others = other.ranges.iter();
            others.any(|(other, theirs)| of == other && range.overlaps(theirs))
        };
        self.keys.iter().any(|(of, key, _)| other.writes(*of, key))
            || other.keys.iter().any(|(of, key, _)| self.writes(*of, key))
            || self.ranges.iter().any(overlaps)
    }

    fn apply(&self, contents: &mut Contents) {
        for (keyspace, range) in &self.ranges {
            contents.retain(|(of, key), _| of != keyspace || !range.contains(key));
        }
        for (keyspace, key, value) in &self.keys {
            match value {
                Some(value) => contents.insert((*keyspace, key.clone()), value.clone()),
                None => contents.remove(&(*keyspace, key.clone())),
            };
        }
    }

    /// The same for a store that has these keyspaces.
    pub fn of_store(&self, keyspaces: &[Keyspace]) -> record::Writes {
        let mut writes = record::Writes::default();
        for (keyspace, range) in &self.ranges {
            writes.remove_range(keyspaces[*keyspace].id, range.clone());
        }
        for (keyspace, key, value) in &self.keys {
            writes.push(record::Write {
                keyspace: keyspaces[*keyspace].id,
                key: key.clone(),
                value: value.clone(),
            });
        }
        writes
    }
}

/// What a commit did.
#[derive(Clone)]
pub(super) enum Commit {
    Writes(Writes),
    /// A keyspace was removed, with everything in it.
    Removed(usize),
}

/// What somebody read, as of which commit.
#[derive(Clone)]
pub(super) struct Seen {
    pub at: u64,
    pub contents: Contents,
    /// What of it was looked for; everything else may be there or not.
    pub keys: Vec<(usize, Vec<u8>)>,
    pub is_everything: bool,
    /// What they had written themselves, in a transaction.
    pub own: Writes,
}

/// A transaction that was committed.
#[derive(Clone)]
pub(super) struct Committed {
    pub at: u64,
    pub lsn: u64,
    pub is_serialisable: bool,
    pub reads: Seen,
}

/// What was committed, and what was promised of it.
#[derive(Clone, Default)]
pub(super) struct History {
    pub commits: BTreeMap<u64, Commit>,
    /// Of which nobody knows whether they were.
    pub perhaps: Vec<Commit>,
    /// All commits up to this one are durable.
    pub durable: u64,
    pub seen: Vec<Seen>,
    pub transactions: Vec<Committed>,
}

/// Ways in which commits are tried that perhaps were made: there are few, but where nobody can be right.
const MOST_TRIES: u32 = 20_000;

fn apply(contents: &mut Contents, commit: &Commit) {
    match commit {
        Commit::Writes(writes) => writes.apply(contents),
        Commit::Removed(removed) => contents.retain(|(keyspace, _), _| keyspace != removed),
    }
}

impl History {
    pub fn contents(&self, at: u64) -> Contents {
        let mut contents = Contents::new();
        for commit in self.commits.range(..=at).map(|(_, commit)| commit) {
            apply(&mut contents, commit);
        }
        contents
    }

    /// Compares what was read meanwhile, and transactions, with the commits.
    pub fn check_seen(&mut self) -> Result<(), Broken> {
        for seen in std::mem::take(&mut self.seen) {
            self.check_one(&seen)?;
        }
        for transaction in std::mem::take(&mut self.transactions) {
            let Committed { at, lsn, reads, .. } = &transaction;
            self.check_one(reads)?;
            let Some(Commit::Writes(own)) = self.commits.get(lsn) else {
                continue;
            };
            for (other, commit) in self.commits.range(at + 1..*lsn) {
                let writes = match commit {
                    Commit::Writes(writes) => writes,
                    Commit::Removed(removed) => {
                        let is_read = reads.is_everything
                            || reads.keys.iter().any(|(keyspace, _)| keyspace == removed);
                        if transaction.is_serialisable && is_read {
                            return Err(format!("{lsn}, begun at {at}, read what {other} removed"));
                        }
                        continue;
                    }
                };
                if own.meets(writes) {
                    return Err(format!("{lsn}, begun at {at}, and {other} wrote the same"));
                }
                let read = reads.keys.iter();
                let mut read = read.filter(|(keyspace, key)| writes.writes(*keyspace, key));
                if transaction.is_serialisable && (reads.is_everything || read.next().is_some()) {
                    return Err(format!("{lsn}, begun at {at}, read what {other} wrote"));
                }
            }
        }
        Ok(())
    }

    fn check_one(&self, seen: &Seen) -> Result<(), Broken> {
        let mut contents = self.contents(seen.at);
        seen.own.apply(&mut contents);
        if seen.is_everything && seen.contents != contents {
            return Err(format!(
                "as of {} there was {}",
                seen.at,
                difference(&contents, &seen.contents)
            ));
        }
        for name in &seen.keys {
            if seen.contents.get(name) != contents.get(name) {
                return Err(format!("as of {} {name:?} had another value", seen.at));
            }
        }
        Ok(())
    }

    /// A store was opened that has lost what was not durable: others will have those numbers.
    pub fn reopen(&mut self, store: &Store) -> Result<(), Broken> {
        let end = store.shared.opened_at;
        if end <= self.durable {
            return Err(format!(
                "it ends before {end}, and {} was durable",
                self.durable
            ));
        }
        self.commits.retain(|lsn, _| *lsn < end);
        // What is found is made durable first.
        self.durable = end - 1;
        Ok(())
    }

    /// Compares a store with what was promised.
    pub fn check(&mut self, store: &Store, keyspaces: &[Keyspace]) -> Result<(), Broken> {
        let found = everything(store, keyspaces).map_err(|why| format!("cannot be read: {why}"))?;
        self.compare(&found)
    }

    pub fn compare(&mut self, found: &Seen) -> Result<(), Broken> {
        let at = found.at;
        if at < self.durable {
            return Err(format!("it ends at {at}, and {} was durable", self.durable));
        }
        self.commits.retain(|lsn, _| *lsn <= at);
        // Those of which nobody knows took the numbers that nobody knows.
        let unknown: Vec<u64> = (1..=at)
            .filter(|lsn| !self.commits.contains_key(lsn))
            .collect();
        let perhaps = std::mem::take(&mut self.perhaps);
        let mut tries = MOST_TRIES;
        if !self.explain(&unknown, &perhaps, found, &mut tries) {
            for lsn in &unknown {
                self.commits.remove(lsn);
            }
            let contents = self.contents(at);
            let difference = difference(&contents, &found.contents);
            return Err(format!("after {at} there is {difference}"));
        }
        Ok(())
    }

    /// Finds which of those that are perhaps there have made the commits of which nobody knows.
    /// Any may also be one that changes nothing: a protection, or images of leaves.
    fn explain(
        &mut self,
        unknown: &[u64],
        perhaps: &[Commit],
        found: &Seen,
        tries: &mut u32,
    ) -> bool {
        if *tries == 0 {
            return true;
        }
        let Some((first, rest)) = unknown.split_first().filter(|_| !perhaps.is_empty()) else {
            *tries -= 1;
            return self.contents(found.at) == found.contents;
        };
        if self.explain(rest, perhaps, found, tries) {
            return true;
        }
        for index in 0..perhaps.len() {
            self.commits.insert(*first, perhaps[index].clone());
            let mut others = perhaps.to_vec();
            others.remove(index);
            if self.explain(rest, &others, found, tries) {
                return true;
            }
        }
        self.commits.remove(first);
        false
    }
}

fn difference(expected: &Contents, found: &Contents) -> String {
    let brief = |value: Option<&Vec<u8>>| match value {
        Some(value) => format!("{:?}", &value[..value.len().min(8)]),
        None => "nothing".to_owned(),
    };
    let keys = expected.keys().chain(found.keys());
    let mut wrong = keys.filter(|key| expected.get(*key) != found.get(*key));
    match wrong.next() {
        Some(key) => format!(
            "{} under {key:?}, where {} belongs",
            brief(found.get(key)),
            brief(expected.get(key))
        ),
        None => "what belongs there".to_owned(),
    }
}

/// Everything that there is, as of now.
pub(super) fn everything(store: &Store, keyspaces: &[Keyspace]) -> Result<Seen, Error> {
    everything_of(&Arc::new(View::new(store)), keyspaces)
}

/// The same, as of a view.
pub(super) fn everything_of(
    view: &Arc<View<Simulated>>,
    keyspaces: &[Keyspace],
) -> Result<Seen, Error> {
    let mut contents = Contents::new();
    for keyspace in keyspaces {
        let index = KEYSPACES.iter().position(|name| *name == keyspace.name);
        let index = index.ok_or(Error::NoKeyspace)?;
        let bounds = Bounds::of::<&[u8]>(&..);
        let own = Own::default();
        let mut range = Range::new(view.clone(), keyspace.clone(), bounds, own);
        let mut backwards = index > 0;
        loop {
            backwards = !backwards;
            let next = if backwards {
                range.next_back()
            } else {
                range.next()
            };
            let Some(pair) = next else { break };
            let (key, value) = pair?;
            contents.insert((index, key), value);
        }
    }
    Ok(Seen {
        at: view.at,
        contents,
        keys: Vec::new(),
        is_everything: true,
        own: Writes::default(),
    })
}
