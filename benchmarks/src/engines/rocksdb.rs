//! RocksDB: a log-structured merge tree in C++. Four memtables take half of the memory, the block cache the rest.
//!
//! Indexes and filters are in neither, as by default. Logs are recycled and written by a pipeline, which its makers
//! recommend where each write is synced.

use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, DBRawIterator, Options, WaitForCompactOptions,
    WriteBatch, WriteOptions,
};

use super::{Engine, Kind, Settings, View, Visit, Write, locked, made, size};
use crate::Fallible;

pub const KIND: Kind = Kind {
    name: "rocksdb",
    version,
    open,
};

/// That of the library is behind that of its package.
fn version() -> String {
    let version = locked("librocksdb-sys");
    version.split('+').next_back().unwrap_or("").into()
}

struct Rocksdb(DB);

fn open(settings: &Settings) -> Fallible<Box<dyn Engine>> {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_recycle_log_file_num(4);
    options.set_enable_pipelined_write(true);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_max_write_buffer_number(4);
    // Without checkpoints it is not without end: a log file is allocated as large as a memtable may become.
    let memtable = if settings.checkpoints {
        settings.memory / 8
    } else {
        settings.memory
    };
    options.set_write_buffer_size(size(memtable));
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&Cache::new_lru_cache(size(settings.memory / 2)));
    blocks.set_bloom_filter(10.0, false);
    options.set_block_based_table_factory(&blocks);
    let threads = std::thread::available_parallelism()?.get();
    options.increase_parallelism(i32::try_from(threads)?);
    Ok(Box::new(Rocksdb(DB::open(
        &options,
        made(&settings.directory)?,
    )?)))
}

impl Engine for Rocksdb {
    fn commit(&self, writes: &mut dyn Iterator<Item = Write>, durable: bool) -> Fallible<()> {
        let mut batch = WriteBatch::default();
        for write in writes {
            match write.value {
                Some(value) => batch.put(write.key, value),
                None => batch.delete(write.key),
            }
        }
        let mut options = WriteOptions::default();
        options.set_sync(durable);
        Ok(self.0.write_opt(batch, &options)?)
    }

    fn most_writes(&self) -> usize {
        100_000
    }

    fn read(&self, work: &mut dyn FnMut(&mut dyn View) -> Fallible<()>) -> Fallible<()> {
        work(&mut RocksdbView {
            database: &self.0,
            iterator: None,
        })
    }

    fn sync(&self) -> Fallible<()> {
        Ok(self.0.flush_wal(true)?)
    }

    fn settle(&self) -> Fallible<()> {
        let mut options = WaitForCompactOptions::default();
        options.set_flush(true);
        Ok(self.0.wait_for_compact(&options)?)
    }

    fn compact(self: Box<Self>) -> Fallible<bool> {
        self.settle()?;
        self.0.compact_range(None::<&[u8]>, None::<&[u8]>);
        Ok(true)
    }
}

struct RocksdbView<'a> {
    database: &'a DB,
    /// Made by the first scan, and moved by those after it.
    iterator: Option<DBRawIterator<'a>>,
}

impl View for RocksdbView<'_> {
    fn get(&mut self, key: &[u8], visit: &mut Visit<'_>) -> Fallible<bool> {
        match self.database.get_pinned(key)? {
            Some(value) => visit(key, &value).map(|()| true),
            None => Ok(false),
        }
    }

    fn scan(&mut self, from: &[u8], rows: usize, visit: &mut Visit<'_>) -> Fallible<()> {
        let database = self.database;
        let iterator = self.iterator.get_or_insert_with(|| database.raw_iterator());
        iterator.seek(from);
        for _ in 0..rows {
            let Some((key, value)) = iterator.item() else {
                break;
            };
            visit(key, value)?;
            iterator.next();
        }
        Ok(iterator.status()?)
    }
}
