//! fjall: a log-structured merge tree with a journal. Four memtables that wait take half of the memory.

use std::thread;
use std::time::{Duration, Instant};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::{Engine, Kind, Settings, View, Visit, Write, locked, made};
use crate::Fallible;

/// How often it is looked whether it still merges tables.
const LOOK: Duration = Duration::from_millis(20);
/// It is done when it has not merged for so long: the next merge is chosen when one ends.
const QUIET: Duration = Duration::from_millis(300);
/// More than any measurement writes.
const ENDLESS: u64 = 1 << 50;

pub const KIND: Kind = Kind {
    name: "fjall",
    version: || locked("fjall"),
    open,
};

struct Fjall {
    database: Database,
    rows: Keyspace,
}

fn open(settings: &Settings) -> Fallible<Box<dyn Engine>> {
    let mut builder = Database::builder(made(&settings.directory)?).cache_size(settings.memory / 2);
    let mut memtable = settings.memory / 8;
    if !settings.checkpoints {
        builder = builder.max_journaling_size(ENDLESS);
        memtable = ENDLESS;
    }
    let database = builder.open()?;
    let options = || KeyspaceCreateOptions::default().max_memtable_size(memtable);
    let rows = database.keyspace("rows", options)?;
    Ok(Box::new(Fjall { database, rows }))
}

impl Engine for Fjall {
    fn commit(&self, writes: &mut dyn Iterator<Item = Write>, durable: bool) -> Fallible<()> {
        let mode = durable.then_some(PersistMode::SyncData);
        let mut batch = self.database.batch().durability(mode);
        for write in writes {
            match write.value {
                Some(value) => batch.insert(&self.rows, write.key, value),
                None => batch.remove(&self.rows, write.key),
            }
        }
        Ok(batch.commit()?)
    }

    fn most_writes(&self) -> usize {
        100_000
    }

    fn read(&self, work: &mut dyn FnMut(&mut dyn View) -> Fallible<()>) -> Fallible<()> {
        work(&mut &self.rows)
    }

    fn sync(&self) -> Fallible<()> {
        Ok(self.database.persist(PersistMode::SyncData)?)
    }

    fn settle(&self) -> Fallible<()> {
        self.sync()?;
        self.rows.rotate_memtable_and_wait()?;
        let mut last = self.database.compactions_completed();
        let mut since = Instant::now();
        while since.elapsed() < QUIET {
            thread::sleep(LOOK);
            let done = self.database.compactions_completed();
            let is_busy =
                self.database.active_compactions() > 0 || self.database.outstanding_flushes() > 0;
            if is_busy || done != last {
                (last, since) = (done, Instant::now());
            }
        }
        Ok(())
    }

    fn compact(self: Box<Self>) -> Fallible<bool> {
        self.settle()?;
        self.rows.major_compact()?;
        Ok(true)
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
        for entry in self.range(from..).take(rows) {
            let (key, value) = entry.into_inner()?;
            visit(&key, &value)?;
        }
        Ok(())
    }
}
