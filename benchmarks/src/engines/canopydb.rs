//! canopydb: a copy-on-write tree behind a write-ahead log. A checkpoint begins at a quarter of what changes may take.

use std::time::Duration;

use canopydb::{Database, DbOptions, EnvOptions, Tree};

use super::{Engine, Kind, Settings, View, Visit, Write, locked, made, size};
use crate::Fallible;

const ROWS: &[u8] = b"rows";
/// More than any measurement writes.
const ENDLESS: u64 = 1 << 50;

pub const KIND: Kind = Kind {
    name: "canopydb",
    version: || locked("canopydb"),
    open,
};

struct Canopydb(Database);

fn open(settings: &Settings) -> Fallible<Box<dyn Engine>> {
    let mut environment = EnvOptions::new(made(&settings.directory)?);
    environment.page_cache_size = size(settings.memory / 2);
    let mut options = DbOptions::default();
    let mut changes = size(settings.memory / 2);
    if !settings.checkpoints {
        changes = size(ENDLESS);
        environment.max_wal_size = ENDLESS;
        options.checkpoint_interval = Duration::from_secs(86_400);
    }
    options.checkpoint_target_size = changes / 4;
    options.throttle_memory_limit = changes;
    options.stall_memory_limit = changes;
    options.write_txn_memory_limit = size(settings.memory / 4);
    let database = Database::with_options(environment, options)?;
    let transaction = database.begin_write()?;
    drop(transaction.get_or_create_tree(ROWS)?);
    transaction.commit()?;
    Ok(Box::new(Canopydb(database)))
}

impl Engine for Canopydb {
    fn commit(&self, writes: &mut dyn Iterator<Item = Write>, durable: bool) -> Fallible<()> {
        let transaction = self.0.begin_write()?;
        let mut tree = transaction.get_or_create_tree(ROWS)?;
        for write in writes {
            match write.value {
                Some(value) => tree.insert(&write.key, &value)?,
                None => drop(tree.delete(&write.key)?),
            }
        }
        drop(tree);
        transaction.commit_with(durable)?;
        Ok(())
    }

    fn read(&self, work: &mut dyn FnMut(&mut dyn View) -> Fallible<()>) -> Fallible<()> {
        let transaction = self.0.begin_read()?;
        let tree = transaction.get_tree(ROWS)?;
        let mut tree = tree.ok_or("the tree is not there")?;
        work(&mut tree)
    }

    fn sync(&self) -> Fallible<()> {
        Ok(self.0.sync()?)
    }

    fn settle(&self) -> Fallible<()> {
        self.0.sync()?;
        Ok(self.0.checkpoint()?)
    }

    fn compact(self: Box<Self>) -> Fallible<bool> {
        self.0.compact()?;
        Ok(true)
    }
}

impl View for Tree<'_> {
    fn get(&mut self, key: &[u8], visit: &mut Visit<'_>) -> Fallible<bool> {
        match Tree::get(self, key)? {
            Some(value) => visit(key, &value).map(|()| true),
            None => Ok(false),
        }
    }

    fn scan(&mut self, from: &[u8], rows: usize, visit: &mut Visit<'_>) -> Fallible<()> {
        for pair in self.range(from..)?.take(rows) {
            let (key, value) = pair?;
            visit(&key, &value)?;
        }
        Ok(())
    }

    fn len(&mut self) -> Fallible<u64> {
        Ok(Tree::len(self))
    }
}
