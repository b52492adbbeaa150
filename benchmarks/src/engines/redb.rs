//! redb: a copy-on-write tree with a cache of its own. All of the memory is for that.

use redb::{
    Database, Durability, ReadOnlyTable, ReadableDatabase, ReadableTable, ReadableTableMetadata,
    TableDefinition,
};

use super::{Engine, Kind, Settings, View, Visit, Write, locked, made, size};
use crate::Fallible;

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("rows");

pub const KIND: Kind = Kind {
    name: "redb",
    version: || locked("redb"),
    open,
};

struct Redb(Database);

fn open(settings: &Settings) -> Fallible<Box<dyn Engine>> {
    let database = Database::builder()
        .set_cache_size(size(settings.memory))
        .create(made(&settings.directory)?.join("rows.redb"))?;
    let transaction = database.begin_write()?;
    transaction.open_table(TABLE)?;
    transaction.commit()?;
    Ok(Box::new(Redb(database)))
}

impl Engine for Redb {
    fn commit(&self, writes: &mut dyn Iterator<Item = Write>, durable: bool) -> Fallible<()> {
        let mut transaction = self.0.begin_write()?;
        if !durable {
            transaction.set_durability(Durability::None)?;
        }
        let mut table = transaction.open_table(TABLE)?;
        for write in writes {
            match write.value {
                Some(value) => table.insert(&*write.key, &*value)?,
                None => table.remove(&*write.key)?,
            };
        }
        drop(table);
        Ok(transaction.commit()?)
    }

    fn read(&self, work: &mut dyn FnMut(&mut dyn View) -> Fallible<()>) -> Fallible<()> {
        let table = self.0.begin_read()?.open_table(TABLE)?;
        work(&mut RedbView(table))
    }

    fn sync(&self) -> Fallible<()> {
        Ok(self.0.begin_write()?.commit()?)
    }

    fn settle(&self) -> Fallible<()> {
        self.sync()
    }

    fn compact(mut self: Box<Self>) -> Fallible<bool> {
        self.0.compact()?;
        Ok(true)
    }
}

struct RedbView(ReadOnlyTable<&'static [u8], &'static [u8]>);

impl View for RedbView {
    fn get(&mut self, key: &[u8], visit: &mut Visit<'_>) -> Fallible<bool> {
        match ReadableTable::get(&self.0, key)? {
            Some(value) => visit(key, value.value()).map(|()| true),
            None => Ok(false),
        }
    }

    fn scan(&mut self, from: &[u8], rows: usize, visit: &mut Visit<'_>) -> Fallible<()> {
        for pair in ReadableTable::range::<&[u8]>(&self.0, from..)?.take(rows) {
            let (key, value) = pair?;
            visit(key.value(), value.value())?;
        }
        Ok(())
    }

    fn len(&mut self) -> Fallible<u64> {
        Ok(ReadableTableMetadata::len(&self.0)?)
    }
}
