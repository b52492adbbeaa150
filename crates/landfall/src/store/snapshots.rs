//! Who reads the store as of which commit, and what was committed since transactions began.
//!
//! All of it is known under the lock of those who commit, so that a snapshot is of a commit that is whole, and no version
//! goes that it needs.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::Arc;

use super::Handle;
use super::record::{KeyspaceRange, OrderedWrites};
use crate::environment::Environment;

/// Numbers that somebody holds, and how many do.
#[derive(Debug, Default)]
pub(crate) struct Held(BTreeMap<u64, usize>);

impl Held {
    pub fn take(&mut self, number: u64) {
        *self.0.entry(number).or_default() += 1;
    }

    pub fn give_back(&mut self, number: u64) {
        if let Some(count) = self.0.get_mut(&number) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&number);
            }
        }
    }

    /// Each once, in their order.
    pub fn numbers(&self) -> Vec<u64> {
        self.0.keys().copied().collect()
    }

    pub fn oldest(&self) -> Option<u64> {
        self.0.keys().next().copied()
    }
}

/// What a commit wrote.
#[derive(Debug)]
pub(crate) struct Written {
    /// Keys by keyspace.
    pub keys: Vec<(u32, Vec<u8>)>,
    pub ranges: Vec<KeyspaceRange>,
}

/// What those who commit know of each other.
#[derive(Debug, Default)]
pub(crate) struct Committing {
    /// The last commit that all can see.
    pub visible: u64,
    pub snapshots: Held,
    /// Of those the ones of open transactions.
    pub transactions: Held,
    /// What was written since the oldest open transaction began, by commit.
    pub recent: VecDeque<(u64, Written)>,
}

impl Committing {
    /// Remembers what a commit wrote as long as a transaction is open that began before.
    pub fn remember(&mut self, lsn: u64, writes: &OrderedWrites) {
        if self.transactions.oldest().is_some() {
            let keys = writes.writes.iter();
            let keys = keys.map(|write| (write.keyspace, write.key.clone()));
            let written = Written {
                keys: keys.collect(),
                ranges: writes.ranges.clone(),
            };
            self.recent.push_back((lsn, written));
        }
    }

    /// What was written by commits after this one.
    pub fn written_since(&self, lsn: u64) -> impl Iterator<Item = &Written> {
        let first = self.recent.partition_point(|(commit, _)| *commit <= lsn);
        self.recent.range(first..).map(|(_, written)| written)
    }

    /// Forgets what was written before all transactions that are open. Whoever has what is returned gives it up without the lock: it
    /// may be what was written for hours.
    fn forget(&mut self) -> VecDeque<(u64, Written)> {
        let oldest = self.transactions.oldest().unwrap_or(u64::MAX);
        let count = self.recent.partition_point(|(commit, _)| *commit <= oldest);
        // Whichever are fewer are moved: the lock is held.
        if count > self.recent.len() / 2 {
            let rest = self.recent.split_off(count);
            return mem::replace(&mut self.recent, rest);
        }
        self.recent.drain(..count).collect()
    }
}

/// The right to read the store as of a commit.
pub(crate) struct View<E: Environment> {
    pub store: Arc<Handle<E>>,
    /// The commit.
    pub at: u64,
}

impl<E: Environment> View<E> {
    /// As of the last commit.
    pub fn new(store: &Arc<Handle<E>>) -> View<E> {
        View::with(store, |_, _| {})
    }

    /// `also` is called with the lock held, and the commit.
    fn with(store: &Arc<Handle<E>>, also: impl FnOnce(&mut Committing, u64)) -> View<E> {
        let mut committing = E::lock(&store.shared.committing);
        let at = committing.visible;
        committing.snapshots.take(at);
        also(&mut committing, at);
        drop(committing);
        View {
            store: store.clone(),
            at,
        }
    }
}

impl<E: Environment> Drop for View<E> {
    fn drop(&mut self) {
        let mut committing = E::lock(&self.store.shared.committing);
        committing.snapshots.give_back(self.at);
    }
}

/// A transaction that is open: what is committed from its beginning on is remembered until it is dropped, whoever still reads
/// as of then.
pub(crate) struct Begun<E: Environment> {
    pub view: Arc<View<E>>,
}

impl<E: Environment> Begun<E> {
    pub fn new(store: &Arc<Handle<E>>) -> Begun<E> {
        let view = View::with(store, |committing, at| committing.transactions.take(at));
        Begun {
            view: Arc::new(view),
        }
    }
}

impl<E: Environment> Drop for Begun<E> {
    fn drop(&mut self) {
        let mut committing = E::lock(&self.view.store.shared.committing);
        committing.transactions.give_back(self.view.at);
        let forgotten = committing.forget();
        drop(committing);
        drop(forgotten);
    }
}
