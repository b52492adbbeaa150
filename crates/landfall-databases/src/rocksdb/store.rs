//! RocksDB itself.
//!
//! Writers that come together are one group: the first of them writes the log for all, and syncs it once.
//! Memtables are written out and tables merged by threads of its own. Blocks have checksums, which
//! [`verify`](Running::verify) reads everything to compare. Dropped, it is closed; its log is there.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ::rocksdb::statistics::{Histogram, StatsLevel};
use ::rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, Direction, Error, ErrorKind, IteratorMode,
    Options, ReadOptions, WriteBatch, WriteOptions, properties,
};

use super::{Compression, Settings};
use crate::{Batch, DatabaseError, KeyValue, PendingWrites, Presence, Running, Session};
use landfall_os::Stop;

/// Of the library that is linked in; the crate says it as a part of its own version.
const VERSION: &str = "11.8.1";
/// The directory that it is in.
const DIRECTORY: &str = "database";
/// How often it is looked whether it still merges tables.
const LOOK: Duration = Duration::from_millis(20);

pub(super) fn presence() -> Presence {
    Presence::Here {
        version: VERSION.to_owned(),
        program: None,
    }
}

fn options(settings: &Settings) -> Options {
    let mut options = Options::default();
    options.set_recycle_log_file_num(settings.recycled_logs);
    options.set_enable_pipelined_write(settings.is_pipelined);
    options.set_write_buffer_size(settings.write_buffer_size);
    // In the library's own proportion: else small memtables would all go into one level.
    options.set_target_file_size_base(settings.write_buffer_size as u64);
    options.set_max_bytes_for_level_base(4 * settings.write_buffer_size as u64);
    options.set_use_direct_reads(settings.is_direct);
    options.set_use_direct_io_for_flush_and_compaction(settings.is_direct);
    options.set_compression_type(match settings.compression {
        Compression::None => DBCompressionType::None,
        Compression::Lz4 => DBCompressionType::Lz4,
        Compression::Zstd => DBCompressionType::Zstd,
    });
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&Cache::new_lru_cache(settings.cache_size));
    options.set_block_based_table_factory(&blocks);
    // It counts how often a memtable was written out among its times.
    options.enable_statistics();
    options.set_statistics_level(StatsLevel::ExceptDetailedTimers);
    options
}

pub(super) fn create(settings: &Settings, directory: &Path) -> Result<(), DatabaseError> {
    let mut options = options(settings);
    options.create_if_missing(true);
    let made = DB::open(&options, directory.join(DIRECTORY));
    made.map(drop)
        .map_err(|error| failed("cannot make the database", &error))
}

pub(super) fn start(
    settings: &Settings,
    directory: &Path,
) -> Result<Box<dyn Running>, DatabaseError> {
    let options = options(settings);
    let database = DB::open(&options, directory.join(DIRECTORY));
    let database =
        database.map_err(|error| failed("cannot open the database", &error).at_start())?;
    Ok(Box::new(RunningRocksDb {
        open: Open {
            database: Arc::new(database),
            is_synced: settings.is_synced,
        },
        options,
    }))
}

/// A way into it; closed when the last one is dropped.
#[derive(Clone)]
struct Open {
    database: Arc<DB>,
    is_synced: bool,
}

struct RunningRocksDb {
    open: Open,
    /// With the statistics.
    options: Options,
}

impl RunningRocksDb {
    fn property(&self, name: &properties::PropName) -> Result<u64, DatabaseError> {
        let value = self.open.database.property_int_value(name);
        let value = value.map_err(|error| failed("cannot read a property", &error))?;
        value.ok_or_else(|| DatabaseError::Failed(format!("RocksDB has no {}", name.as_str())))
    }

    fn is_idle(&self) -> Result<bool, DatabaseError> {
        let busy = [
            properties::MEM_TABLE_FLUSH_PENDING,
            properties::NUM_RUNNING_FLUSHES,
            properties::COMPACTION_PENDING,
            properties::NUM_RUNNING_COMPACTIONS,
        ];
        for name in busy {
            if self.property(name)? > 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Running for RunningRocksDb {
    fn session(&self) -> Result<Session, DatabaseError> {
        Ok(Session::Keys(Box::new(self.open.clone())))
    }

    fn pending_writes(&self) -> Result<PendingWrites, DatabaseError> {
        let flushes = self.options.get_histogram_data(Histogram::FlushTime);
        // A memtable without entries has some bytes of its own.
        let entries = self.property(properties::NUM_ENTRIES_ACTIVE_MEM_TABLE)?
            + self.property(properties::NUM_ENTRIES_IMM_MEM_TABLES)?;
        let bytes = self.property(properties::CUR_SIZE_ALL_MEM_TABLES)?;
        Ok(PendingWrites {
            dirty_bytes: Some(if entries > 0 { bytes } else { 0 }),
            compaction_bytes: Some(self.property(properties::ESTIMATE_PENDING_COMPACTION_BYTES)?),
            memtable_flushes: Some(flushes.count()),
            ..PendingWrites::default()
        })
    }

    /// Writes the memtables out, and waits until no more tables are merged.
    fn drain(&self, stop: &Stop) -> Result<(), DatabaseError> {
        let written = self.open.database.flush();
        written.map_err(|error| failed("cannot write a memtable out", &error))?;
        while !self.is_idle()? {
            if stop.is_requested() {
                return Err(DatabaseError::Stopped);
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    fn verify(&self, _: &Stop) -> Result<Option<String>, DatabaseError> {
        let mut reading = ReadOptions::default();
        reading.set_verify_checksums(true);
        reading.fill_cache(false);
        let mut entries = self
            .open
            .database
            .iterator_opt(IteratorMode::Start, reading);
        match entries.find_map(Result::err) {
            None => Ok(None),
            Some(error) if error.kind() == ErrorKind::Corruption => Ok(Some(error.to_string())),
            Some(error) => Err(failed("cannot read", &error)),
        }
    }

    fn stop(self: Box<Self>) -> Result<(), DatabaseError> {
        Ok(())
    }
}

impl KeyValue for Open {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DatabaseError> {
        let value = self.database.get(key);
        value.map_err(|error| failed("cannot read", &error))
    }

    fn scan(
        &mut self,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), DatabaseError> {
        let mut reading = ReadOptions::default();
        reading.set_iterate_upper_bound(to);
        let start = IteratorMode::From(from, Direction::Forward);
        for entry in self.database.iterator_opt(start, reading) {
            let (key, value) = entry.map_err(|error| failed("cannot read", &error))?;
            if !visit(&key, &value) {
                break;
            }
        }
        Ok(())
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), DatabaseError> {
        let mut changes = WriteBatch::default();
        for (key, value) in &batch.0 {
            match value {
                Some(value) => changes.put(key, value),
                None => changes.delete(key),
            }
        }
        let mut writing = WriteOptions::default();
        writing.set_sync(self.is_synced);
        let committed = self.database.write_opt(changes, &writing);
        committed.map_err(|error| failed("cannot commit", &error))
    }
}

fn failed(doing: &str, error: &Error) -> DatabaseError {
    let text = format!("{doing}: {error}");
    // The operating system's words are all that is left of its error.
    match text.contains("No space left on device") {
        true => DatabaseError::no_space(text),
        false => DatabaseError::Failed(text),
    }
}
