//! redb, linked in: a copy-on-write tree with checksums, in Rust.
//!
//! Readers never wait; writers take turns, and each commit is made durable by itself, with one sync or,
//! in two phases, with two. A commit that is not durable stays in memory, and is lost with the process
//! too. There is nothing in the background. Its check needs a database without sessions.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::{Durability, ReadableDatabase, StorageError, TableDefinition};

use super::{
    Batch, Database, DatabaseError, Interface, KeyValue, Presence, Running, Session, Templates,
};
use crate::SettingError;
use crate::registry::Kind;
use crate::setting::{Chosen, Description, Setting};
use crate::{Form, Listed};
use landfall_os::Stop;

/// It does not tell itself; a test holds it against what is linked.
const VERSION: &str = "4.5.0";
const FILE: &str = "database";
const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("keys");

pub(super) static KIND: Kind<dyn Database, Listed> = Kind {
    description: Description {
        name: "redb",
        about: "redb, linked in; one writer at a time",
        passes_on: None,
        settings: &[
            Setting {
                name: "durability",
                default: Some("immediate"),
                about: "what a commit waits for: immediate or none",
                always_shown: true,
            },
            Setting {
                name: "two_phase_commit",
                default: Some("no"),
                about: "whether a commit syncs its pages before it says that they are valid: yes or no",
                always_shown: false,
            },
            Setting {
                name: "cache_size",
                default: Some("64M"),
                about: "bytes of pages that are kept in memory",
                always_shown: false,
            },
        ],
    },
    listed: Listed {
        presence: || Presence::Here {
            version: VERSION.to_owned(),
            program: None,
        },
        title: "redb",
        form: Form::LinkedIn,
    },
    make,
};

#[derive(Clone)]
struct Redb {
    name: String,
    durability: Durability,
    two_phase_commit: bool,
    cache_size: usize,
}

fn make(chosen: &Chosen) -> Result<Box<dyn Database>, SettingError> {
    let durabilities = [
        ("immediate", Durability::Immediate),
        ("none", Durability::None),
    ];
    Ok(Box::new(Redb {
        name: chosen.name(),
        durability: chosen.one_of("durability", &durabilities)?,
        two_phase_commit: chosen.whether("two_phase_commit")?,
        cache_size: chosen.size("cache_size", 0, 1 << 44)? as usize,
    }))
}

impl Redb {
    fn builder(&self) -> redb::Builder {
        let mut builder = redb::Database::builder();
        builder.set_cache_size(self.cache_size);
        builder
    }
}

impl Database for Redb {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn interface(&self) -> Interface {
        Interface::OrderedKeys
    }

    fn create(&self, directory: &Path, _: &Templates, _: &Stop) -> Result<(), DatabaseError> {
        let create = || -> Result<(), redb::Error> {
            let database = self.builder().create(directory.join(FILE))?;
            let transaction = database.begin_write()?;
            transaction.open_table(TABLE)?;
            transaction.commit()?;
            Ok(database.close()?)
        };
        create().map_err(|error| failed("cannot make the database", error))
    }

    fn start(&self, directory: &Path, _: &Stop) -> Result<Box<dyn Running>, DatabaseError> {
        let database = self.builder().open(directory.join(FILE));
        let database = database
            .map_err(|error| failed("cannot open the database", error.into()).at_start())?;
        Ok(Box::new(RunningRedb {
            settings: self.clone(),
            database: Mutex::new(Arc::new(database)),
        }))
    }
}

/// A database that is open; closed in order when the last session is dropped too.
struct RunningRedb {
    settings: Redb,
    /// Locked for moments only.
    database: Mutex<Arc<redb::Database>>,
}

impl RunningRedb {
    fn lock(&self) -> MutexGuard<'_, Arc<redb::Database>> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running for RunningRedb {
    fn session(&self) -> Result<Session, DatabaseError> {
        Ok(Session::Keys(Box::new(RedbSession {
            durability: self.settings.durability,
            two_phase_commit: self.settings.two_phase_commit,
            database: Arc::clone(&self.lock()),
        })))
    }

    /// Makes durable what `durability=none` has left in memory.
    fn drain(&self, _: &Stop) -> Result<(), DatabaseError> {
        let database = Arc::clone(&self.lock());
        let commit = || -> Result<(), redb::Error> {
            let mut transaction = database.begin_write()?;
            transaction.set_durability(Durability::Immediate)?;
            Ok(transaction.commit()?)
        };
        commit().map_err(|error| failed("cannot commit", error))
    }

    fn verify(&self, _: &Stop) -> Result<Option<String>, DatabaseError> {
        let mut shared = self.lock();
        let database = Arc::get_mut(&mut shared).ok_or_else(|| {
            DatabaseError::Failed("redb checks itself only when no session is open".to_owned())
        })?;
        match database.check_integrity() {
            Ok(true) => Ok(None),
            Ok(false) => Ok(Some(
                "the database was damaged, and was repaired".to_owned(),
            )),
            Err(redb::DatabaseError::Storage(StorageError::Corrupted(text))) => Ok(Some(text)),
            Err(error) => Err(failed("cannot check the database", error.into())),
        }
    }

    fn stop(self: Box<Self>) -> Result<(), DatabaseError> {
        let database = self.database.into_inner();
        let database = Arc::into_inner(database.unwrap_or_else(PoisonError::into_inner));
        // Where a session is still open it is closed with that one.
        match database.map(redb::Database::close) {
            Some(Err(error)) => Err(failed("cannot close the database", error.into())),
            _ => Ok(()),
        }
    }
}

struct RedbSession {
    durability: Durability,
    two_phase_commit: bool,
    database: Arc<redb::Database>,
}

impl RedbSession {
    fn read_table(&self) -> Result<redb::ReadOnlyTable<&'static [u8], &'static [u8]>, redb::Error> {
        Ok(self.database.begin_read()?.open_table(TABLE)?)
    }
}

impl KeyValue for RedbSession {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DatabaseError> {
        let get = || -> Result<_, redb::Error> {
            // The table is held for as long as the value: what `get` returns does not hold the
            // transaction, and redb frees pages that no transaction reads.
            let table = self.read_table()?;
            let value = table.get(key)?;
            Ok(value.map(|value| value.value().to_vec()))
        };
        get().map_err(|error| failed("cannot read", error))
    }

    fn scan(
        &mut self,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), DatabaseError> {
        let mut scan = || -> Result<(), redb::Error> {
            for entry in self.read_table()?.range(from..to)? {
                let (key, value) = entry?;
                if !visit(key.value(), value.value()) {
                    break;
                }
            }
            Ok(())
        };
        scan().map_err(|error| failed("cannot read", error))
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), DatabaseError> {
        let commit = || -> Result<(), redb::Error> {
            let mut transaction = self.database.begin_write()?;
            transaction.set_durability(self.durability)?;
            transaction.set_two_phase_commit(self.two_phase_commit);
            {
                let mut table = transaction.open_table(TABLE)?;
                for (key, value) in &batch.0 {
                    match value {
                        Some(value) => drop(table.insert(key.as_slice(), value.as_slice())?),
                        None => drop(table.remove(key.as_slice())?),
                    }
                }
            }
            Ok(transaction.commit()?)
        };
        commit().map_err(|error| failed("cannot commit", error))
    }
}

fn failed(doing: &str, error: redb::Error) -> DatabaseError {
    match &error {
        redb::Error::Io(error) => DatabaseError::io(doing, error),
        _ => DatabaseError::Failed(format!("{doing}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance::*;
    use super::*;

    #[test]
    fn what_was_acknowledged_is_kept_under_all_settings() {
        keeps_keys("redb", "");
        keeps_keys("redb", "two_phase_commit=yes cache_size=1M");
    }

    #[test]
    fn what_is_not_durable_is_so_when_it_was_drained() {
        let fixture = fixture("redb", "durability=none");
        let put = |key: u8| {
            let mut batch = Batch::default();
            batch.put([key], [key]);
            keys(&*fixture.running).commit(&batch).unwrap();
        };
        put(1);
        fixture.running.drain(&Stop::default()).unwrap();
        put(2);
        let killed = fixture.as_if_killed();
        let get = |fixture: &Fixture, key: u8| keys(&*fixture.running).get(&[key]).unwrap();
        assert_eq!(get(&killed, 1), Some(vec![1]));
        assert_eq!(get(&killed, 2), None);
        assert_eq!(get(&fixture, 2), Some(vec![2]));
    }

    #[test]
    fn what_is_no_database_does_not_start() {
        let redb = database("redb", "").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let start = || {
            redb.start(directory.path(), &Stop::default())
                .err()
                .unwrap()
        };
        assert!(matches!(start(), DatabaseError::DoesNotStart(_)));
        std::fs::write(directory.path().join(FILE), vec![7; 8192]).unwrap();
        assert!(matches!(start(), DatabaseError::DoesNotStart(_)));
    }

    #[test]
    fn it_is_not_checked_under_a_session() {
        let fixture = fixture("redb", "");
        let session = keys(&*fixture.running);
        assert!(fixture.running.verify(&Stop::default()).is_err());
        drop(session);
        assert_eq!(fixture.running.verify(&Stop::default()), Ok(None));
    }

    /// redb's own assertions, in debug builds, say where a page that is read was freed.
    #[test]
    fn what_is_read_is_not_freed_by_those_who_commit() {
        let fixture = fixture("redb", "durability=none");
        let session = || keys(&*fixture.running);
        std::thread::scope(|scope| {
            for mut reader in [session(), session(), session()] {
                scope.spawn(move || {
                    for _ in 0..20_000 {
                        reader.get(b"key").unwrap();
                    }
                });
            }
            let mut writer = session();
            for number in 0..2000_u32 {
                let mut batch = Batch::default();
                batch.put(*b"key", number.to_le_bytes());
                writer.commit(&batch).unwrap();
            }
        });
    }

    #[test]
    fn its_version_is_the_one_that_is_linked() {
        assert_eq!(linked("redb"), VERSION);
    }
}
