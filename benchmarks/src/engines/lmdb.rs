//! LMDB: a copy-on-write tree in a mapped file. What is read is not copied.

use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use heed::types::Bytes;
use heed::{
    CompactionOption, Database, Env, EnvFlags, EnvOpenOptions, FlagSetMode, RoTxn, WithoutTls,
};

use super::{Engine, Kind, Settings, View, Visit, Write, made};
use crate::Fallible;

/// Bytes of addresses, not of memory.
const MAP: usize = 1 << 40;

pub const KIND: Kind = Kind {
    name: "lmdb",
    version,
    open,
};

fn version() -> String {
    let version = heed::lmdb_version();
    format!("{}.{}.{}", version.major, version.minor, version.patch)
}

struct Lmdb {
    directory: PathBuf,
    environment: Env<WithoutTls>,
    rows: Database<Bytes, Bytes>,
    is_synced: AtomicBool,
}

#[expect(unsafe_code, reason = "LMDB maps its file")]
fn environment(directory: &Path) -> heed::Result<Env<WithoutTls>> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(MAP).max_readers(512);
    // SAFETY: the directory is one that this program has made, and nobody else changes files in it.
    unsafe { options.open(directory) }
}

fn open(settings: &Settings) -> Fallible<Box<dyn Engine>> {
    let environment = environment(made(&settings.directory)?)?;
    let mut transaction = environment.write_txn()?;
    let rows = environment.create_database(&mut transaction, None)?;
    transaction.commit()?;
    Ok(Box::new(Lmdb {
        directory: settings.directory.clone(),
        environment,
        rows,
        is_synced: AtomicBool::new(true),
    }))
}

impl Lmdb {
    /// Called by who has the write transaction.
    #[expect(
        unsafe_code,
        reason = "flags must not be changed by two threads at a time"
    )]
    fn set_synced(&self, is_synced: bool) -> heed::Result<()> {
        if self.is_synced.swap(is_synced, Ordering::Relaxed) == is_synced {
            return Ok(());
        }
        let mode = if is_synced {
            FlagSetMode::Disable
        } else {
            FlagSetMode::Enable
        };
        // SAFETY: there is one write transaction at a time, and its thread is the one that is here. The flag gives up
        // durability, and nothing that memory safety rests on.
        unsafe { self.environment.set_flags(EnvFlags::NO_SYNC, mode) }
    }
}

impl Engine for Lmdb {
    fn commit(&self, writes: &mut dyn Iterator<Item = Write>, durable: bool) -> Fallible<()> {
        let mut transaction = self.environment.write_txn()?;
        self.set_synced(durable)?;
        for write in writes {
            match write.value {
                Some(value) => self.rows.put(&mut transaction, &write.key, &value)?,
                None => drop(self.rows.delete(&mut transaction, &write.key)?),
            }
        }
        Ok(transaction.commit()?)
    }

    fn read(&self, work: &mut dyn FnMut(&mut dyn View) -> Fallible<()>) -> Fallible<()> {
        let transaction = self.environment.read_txn()?;
        work(&mut LmdbView {
            rows: self.rows,
            transaction,
        })
    }

    fn sync(&self) -> Fallible<()> {
        Ok(self.environment.force_sync()?)
    }

    fn settle(&self) -> Fallible<()> {
        self.sync()
    }

    /// By a copy that takes the file's place.
    fn compact(self: Box<Self>) -> Fallible<bool> {
        let copy = self.directory.join("copy.mdb");
        let copied = self
            .environment
            .copy_to_path(&copy, CompactionOption::Enabled)?;
        copied.sync_all()?;
        let data = self.directory.join("data.mdb");
        drop(self);
        std::fs::rename(copy, data)?;
        Ok(true)
    }
}

struct LmdbView<'a> {
    rows: Database<Bytes, Bytes>,
    transaction: RoTxn<'a, WithoutTls>,
}

impl View for LmdbView<'_> {
    fn get(&mut self, key: &[u8], visit: &mut Visit<'_>) -> Fallible<bool> {
        match self.rows.get(&self.transaction, key)? {
            Some(value) => visit(key, value).map(|()| true),
            None => Ok(false),
        }
    }

    fn scan(&mut self, from: &[u8], rows: usize, visit: &mut Visit<'_>) -> Fallible<()> {
        // An empty key is none for it.
        let from = match from {
            [] => Bound::Unbounded,
            from => Bound::Included(from),
        };
        let bounds = (from, Bound::Unbounded);
        for pair in self.rows.range(&self.transaction, &bounds)?.take(rows) {
            let (key, value) = pair?;
            visit(key, value)?;
        }
        Ok(())
    }

    fn len(&mut self) -> Fallible<u64> {
        Ok(self.rows.len(&self.transaction)?)
    }
}
