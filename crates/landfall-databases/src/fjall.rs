//! fjall, linked in: a log-structured merge tree with a journal, in Rust.
//!
//! A batch is appended to the journal and synced under one lock, so that writers take turns and each pays
//! for a sync of its own. Memtables are written out, and tables merged, by threads of its own; what is
//! committed is in the journal until then. Blocks have checksums, which [`verify`](Running::verify)
//! reads everything to compare.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fjall::compaction::Leveled;
use fjall::config::CompressionPolicy;
use fjall::{CompressionType, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::{
    Batch, Database, DatabaseError, Interface, KeyValue, PendingWrites, Presence, Running, Session,
    Templates,
};
use crate::SettingError;
use crate::registry::Kind;
use crate::setting::{Chosen, Description, Setting};
use crate::{Form, Listed};
use landfall_os::Stop;

/// It does not tell itself; a test holds it against what is linked.
const VERSION: &str = "3.1.13";
/// The directory that it is in.
const DIRECTORY: &str = "database";
const KEYSPACE: &str = "keys";
/// How often it is looked whether it still merges tables.
const LOOK: Duration = Duration::from_millis(20);
/// It is done when it has not merged for so long: the next merge is chosen when one ends.
const QUIET: Duration = Duration::from_millis(300);

pub(super) static KIND: Kind<dyn Database, Listed> = Kind {
    description: Description {
        name: "fjall",
        about: "fjall, linked in: a log-structured merge tree",
        passes_on: None,
        settings: &[
            Setting {
                name: "persist",
                default: Some("sync-data"),
                about: "what a commit waits for: sync-all (fsync), sync-data (fdatasync) or buffer",
                always_shown: true,
            },
            Setting {
                name: "max_memtable_size",
                default: Some("64M"),
                about: "bytes of a memtable before it is written out; the levels follow from it",
                always_shown: false,
            },
            Setting {
                name: "max_journaling_size",
                default: Some("512M"),
                about: "bytes of journals that are kept, at most; at least 64M",
                always_shown: false,
            },
            Setting {
                name: "cache_size",
                default: Some("32M"),
                about: "bytes of blocks that are kept in memory",
                always_shown: false,
            },
            Setting {
                name: "compression",
                default: Some("lz4"),
                about: "of tables below the first two levels: lz4 or none",
                always_shown: false,
            },
        ],
    },
    listed: Listed {
        presence: || Presence::Here {
            version: VERSION.to_owned(),
            program: None,
        },
        title: "fjall",
        form: Form::LinkedIn,
    },
    make,
};

struct Fjall {
    name: String,
    persist: PersistMode,
    max_memtable_size: u64,
    max_journaling_size: u64,
    cache_size: u64,
    compression: CompressionType,
}

fn make(chosen: &Chosen) -> Result<Box<dyn Database>, SettingError> {
    let modes = [
        ("sync-all", PersistMode::SyncAll),
        ("sync-data", PersistMode::SyncData),
        ("buffer", PersistMode::Buffer),
    ];
    let compressions = [
        ("lz4", CompressionType::Lz4),
        ("none", CompressionType::None),
    ];
    Ok(Box::new(Fjall {
        name: chosen.name(),
        persist: chosen.one_of("persist", &modes)?,
        max_memtable_size: chosen.size("max_memtable_size", 64 << 10, 1 << 32)?,
        max_journaling_size: chosen.size("max_journaling_size", 64 << 20, 1 << 40)?,
        cache_size: chosen.size("cache_size", 0, 1 << 44)?,
        compression: chosen.one_of("compression", &compressions)?,
    }))
}

/// The database and its one keyspace; closed in order when the last copy is dropped.
#[derive(Clone)]
struct Open {
    database: fjall::Database,
    keyspace: Keyspace,
    persist: PersistMode,
}

impl Fjall {
    fn open(&self, directory: &Path) -> fjall::Result<Open> {
        let database = fjall::Database::builder(directory.join(DIRECTORY))
            .cache_size(self.cache_size)
            .max_journaling_size(self.max_journaling_size)
            .open()?;
        let compression = match self.compression {
            CompressionType::None => CompressionPolicy::all(CompressionType::None),
            // As the library has it by itself.
            lz4 => CompressionPolicy::new([CompressionType::None, CompressionType::None, lz4]),
        };
        let options = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(self.max_memtable_size)
                // A table is a memtable, as by default: else small memtables would all go into one level.
                .compaction_strategy(Arc::new(
                    Leveled::default().with_table_target_size(self.max_memtable_size),
                ))
                .data_block_compression_policy(compression)
        };
        let keyspace = database.keyspace(KEYSPACE, options)?;
        Ok(Open {
            database,
            keyspace,
            persist: self.persist,
        })
    }
}

impl Database for Fjall {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn interface(&self) -> Interface {
        Interface::OrderedKeys
    }

    fn create(&self, directory: &Path, _: &Templates, _: &Stop) -> Result<(), DatabaseError> {
        let made = self.open(directory);
        made.map(drop)
            .map_err(|error| failed("cannot make the database", &error))
    }

    fn start(&self, directory: &Path, _: &Stop) -> Result<Box<dyn Running>, DatabaseError> {
        let path = directory.join(DIRECTORY);
        if !path.exists() {
            let text = format!("there is no {}", path.display());
            return Err(DatabaseError::DoesNotStart(text));
        }
        let open = self.open(directory);
        let open = open.map_err(|error| failed("cannot open the database", &error).at_start())?;
        Ok(Box::new(open))
    }
}

impl Running for Open {
    fn session(&self) -> Result<Session, DatabaseError> {
        Ok(Session::Keys(Box::new(self.clone())))
    }

    fn pending_writes(&self) -> Result<PendingWrites, DatabaseError> {
        Ok(PendingWrites {
            dirty_bytes: Some(self.database.write_buffer_size()),
            ..PendingWrites::default()
        })
    }

    /// Writes the memtables out, and waits until no more tables are merged.
    fn drain(&self, stop: &Stop) -> Result<(), DatabaseError> {
        let written = self.keyspace.rotate_memtable_and_wait();
        written.map_err(|error| failed("cannot write a memtable out", &error))?;
        let mut last = self.database.compactions_completed();
        let mut since = Instant::now();
        while since.elapsed() < QUIET {
            if stop.is_requested() {
                return Err(DatabaseError::Stopped);
            }
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

    fn verify(&self, _: &Stop) -> Result<Option<String>, DatabaseError> {
        let mut entries = self.keyspace.iter();
        let wrong = entries.find_map(|entry| entry.into_inner().err());
        match wrong {
            None => Ok(None),
            Some(fjall::Error::Io(error)) => Err(DatabaseError::io("cannot read", &error)),
            Some(error) => Ok(Some(error.to_string())),
        }
    }

    fn stop(self: Box<Self>) -> Result<(), DatabaseError> {
        Ok(())
    }
}

impl KeyValue for Open {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DatabaseError> {
        let value = self.keyspace.get(key);
        let value = value.map_err(|error| failed("cannot read", &error))?;
        Ok(value.map(|value| value.to_vec()))
    }

    fn scan(
        &mut self,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), DatabaseError> {
        for entry in self.keyspace.range(from..to) {
            let entry = entry.into_inner();
            let (key, value) = entry.map_err(|error| failed("cannot read", &error))?;
            if !visit(&key, &value) {
                break;
            }
        }
        Ok(())
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), DatabaseError> {
        let mut changes = self.database.batch().durability(Some(self.persist));
        for (key, value) in &batch.0 {
            match value {
                Some(value) => changes.insert(&self.keyspace, key.as_slice(), value.as_slice()),
                None => changes.remove(&self.keyspace, key.as_slice()),
            }
        }
        let committed = changes.commit();
        committed.map_err(|error| failed("cannot commit", &error))
    }
}

fn failed(doing: &str, error: &fjall::Error) -> DatabaseError {
    match error {
        fjall::Error::Io(error) => DatabaseError::io(doing, error),
        _ => DatabaseError::Failed(format!("{doing}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance::*;
    use super::*;

    #[test]
    fn what_was_acknowledged_is_kept_under_all_settings() {
        for persist in ["sync-all", "sync-data", "buffer"] {
            keeps_keys("fjall", &format!("persist={persist}"));
        }
        keeps_keys(
            "fjall",
            "compression=none cache_size=0 max_memtable_size=64K",
        );
    }

    #[test]
    fn what_is_no_database_does_not_start() {
        let fjall = database("fjall", "").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let start = || {
            fjall
                .start(directory.path(), &Stop::default())
                .err()
                .unwrap()
        };
        assert!(start().to_string().starts_with("there is no "));
        std::fs::write(directory.path().join(DIRECTORY), "no directory").unwrap();
        assert!(
            matches!(start(), DatabaseError::DoesNotStart(_)),
            "{}",
            start()
        );
    }

    #[test]
    fn its_version_is_the_one_that_is_linked() {
        assert_eq!(linked("fjall"), VERSION);
    }
}
