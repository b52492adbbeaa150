//! Landfall's store: a log, and a data file that checkpoints write.

use std::time::Duration;

use landfall::{Keyspace, KeyspaceOptions, Policy, Store, StoreOptions};

use super::{Engine, Kind, Settings, View, Visit, Write, locked, made, size};
use crate::Fallible;

pub const KIND: Kind = Kind {
    name: "landfall",
    version: || locked("landfall"),
    open: |settings| open(settings, 0),
};

/// With changes that wait in runs.
pub const BUFFERED: Kind = Kind {
    name: "landfall-11",
    version: || locked("landfall"),
    open: |settings| open(settings, 11),
};

struct Landfall {
    store: Store,
    rows: Keyspace,
}

fn open(settings: &Settings, buffer_percent: u8) -> Fallible<Box<dyn Engine>> {
    let mut options = StoreOptions::default()
        .buffer_percent(buffer_percent)
        .policy(Policy::EveryCommit)
        .memory_bytes(size(settings.memory));
    if !settings.checkpoints {
        options = options
            .memory_bytes(usize::MAX / 4)
            .max_recovery_time(Duration::from_secs(86_400));
    }
    let store = Store::open(made(&settings.directory)?, options)?;
    let rows = store.keyspace("rows", KeyspaceOptions::default())?;
    Ok(Box::new(Landfall { store, rows }))
}

impl Engine for Landfall {
    fn commit(&self, writes: &mut dyn Iterator<Item = Write>, durable: bool) -> Fallible<()> {
        let mut batch = self.store.batch();
        for write in writes {
            match write.value {
                Some(value) => batch.insert(&self.rows, write.key, value),
                None => batch.remove(&self.rows, write.key),
            }
        }
        if durable {
            batch.commit()?;
        } else {
            // As with `Policy::Group`: nobody waits for it.
            drop(batch.commit_async()?);
        }
        Ok(())
    }

    fn most_writes(&self) -> usize {
        100_000
    }

    fn read(&self, work: &mut dyn FnMut(&mut dyn View) -> Fallible<()>) -> Fallible<()> {
        work(&mut &self.rows)
    }

    fn sync(&self) -> Fallible<()> {
        Ok(self.store.commit()?)
    }

    fn settle(&self) -> Fallible<()> {
        self.store.commit()?;
        Ok(self.store.checkpoint()?)
    }

    fn compact(self: Box<Self>) -> Fallible<bool> {
        self.settle()?;
        Ok(false)
    }
}

impl View for &Keyspace {
    fn get(&mut self, key: &[u8], visit: &mut Visit<'_>) -> Fallible<bool> {
        match Keyspace::get(self, key)? {
            Some(value) => visit(key, &value).map(|()| true),
            None => Ok(false),
        }
    }

    fn scan(&mut self, from: &[u8], rows: usize, visit: &mut Visit<'_>) -> Fallible<()> {
        for pair in self.range(from..).take(rows) {
            let (key, value) = pair?;
            visit(&key, &value)?;
        }
        Ok(())
    }
}
