//! sled, linked in: a tree of pages that are kept as a log of changes, in Rust.
//!
//! A batch goes into a buffer of the log, which a thread of its own writes out and syncs now and then; a commit
//! that waits for [`flush`](sled::Tree::flush) writes it out itself. By its documentation `flush` calls fsync, and
//! nothing from before is lost in a crash. On Linux it calls sync_file_range, which leaves what it wrote in the
//! disk's volatile cache. Parts of the log have checksums, which are compared when they are read.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::{
    Batch, Database, DatabaseError, Interface, KeyValue, Presence, Running, Session, Templates,
};
use crate::SettingError;
use crate::registry::Kind;
use crate::setting::{Chosen, Description, Setting};
use crate::{Form, Listed};
use landfall_os::Stop;

/// It does not tell itself; a test holds it against what is linked.
const VERSION: &str = "0.34.7";
/// The directory that it is in, and the file in it without which there is no database.
const DIRECTORY: &str = "database";
const FILE: &str = "db";
/// How often it is looked whether it has let go of its file, and for how long at most.
const LOOK: Duration = Duration::from_millis(1);
const MOST: Duration = Duration::from_secs(10);

pub(super) static KIND: Kind<dyn Database, Listed> = Kind {
    description: Description {
        name: "sled",
        about: "sled, linked in: a tree of pages in a log",
        passes_on: None,
        settings: &[
            Setting {
                name: "flush",
                default: Some("yes"),
                about: "whether a commit waits for flush(), which is documented to survive a crash: yes or no",
                always_shown: true,
            },
            Setting {
                name: "flush_every_ms",
                default: Some("500"),
                about: "milliseconds between flushes in the background, and so what flush=no may lose; or none",
                always_shown: false,
            },
            Setting {
                name: "cache_size",
                default: Some("64M"),
                about: "bytes of pages that are kept in memory: its cache_capacity",
                always_shown: false,
            },
        ],
    },
    listed: Listed {
        presence: || Presence::Here {
            version: VERSION.to_owned(),
            program: None,
        },
        title: "sled",
        form: Form::LinkedIn,
    },
    make,
};

struct Sled {
    name: String,
    flush: bool,
    flush_every_ms: Option<u64>,
    cache_size: u64,
}

fn make(chosen: &Chosen) -> Result<Box<dyn Database>, SettingError> {
    let flush_every_ms = match chosen.text("flush_every_ms") {
        "none" => None,
        _ => Some(chosen.number("flush_every_ms", 1, 1 << 32)?),
    };
    Ok(Box::new(Sled {
        name: chosen.name(),
        flush: chosen.whether("flush")?,
        flush_every_ms,
        cache_size: chosen.size("cache_size", 0, 1 << 44)?,
    }))
}

/// A database that is open; closed in order when the last copy is dropped.
#[derive(Clone)]
struct Open {
    opened: Arc<Opened>,
    flush: bool,
}

/// Dropped in this order.
struct Opened {
    database: sled::Db,
    _closed: Closed,
}

/// Waits, when it is dropped, until sled has let go of this file. When the last of it was dropped, threads of its own
/// may still write and sync, and hold the lock without which it is not opened again. So does a child of this process
/// that was forked meanwhile, until it becomes its program.
struct Closed(PathBuf);

impl Drop for Closed {
    fn drop(&mut self) {
        let Ok(file) = File::open(&self.0) else {
            return;
        };
        let since = Instant::now();
        while matches!(file.try_lock(), Err(TryLockError::WouldBlock)) && since.elapsed() < MOST {
            thread::sleep(LOOK);
        }
        // To close it is not enough: what was forked meanwhile has it too, and would keep it locked.
        let _ = file.unlock();
    }
}

impl Sled {
    fn open(&self, directory: &Path) -> sled::Result<Open> {
        let path = directory.join(DIRECTORY);
        let closed = Closed(path.join(FILE));
        let database = sled::Config::new()
            .path(path)
            .cache_capacity(self.cache_size)
            .flush_every_ms(self.flush_every_ms)
            .open()?;
        let opened = Opened {
            database,
            _closed: closed,
        };
        Ok(Open {
            opened: Arc::new(opened),
            flush: self.flush,
        })
    }
}

impl Database for Sled {
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
        // It would make an empty one.
        let path = directory.join(DIRECTORY).join(FILE);
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

    fn drain(&self, _: &Stop) -> Result<(), DatabaseError> {
        let flushed = self.opened.database.flush();
        flushed
            .map(drop)
            .map_err(|error| failed("cannot flush", &error))
    }

    fn verify(&self, _: &Stop) -> Result<Option<String>, DatabaseError> {
        match self.opened.database.iter().find_map(Result::err) {
            None => Ok(None),
            Some(sled::Error::Io(error)) => Err(DatabaseError::io("cannot read", &error)),
            Some(error) => Ok(Some(error.to_string())),
        }
    }

    fn stop(self: Box<Self>) -> Result<(), DatabaseError> {
        self.drain(&Stop::default())
    }
}

impl KeyValue for Open {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DatabaseError> {
        let value = self.opened.database.get(key);
        let value = value.map_err(|error| failed("cannot read", &error))?;
        Ok(value.map(|value| value.to_vec()))
    }

    fn scan(
        &mut self,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), DatabaseError> {
        for entry in self.opened.database.range(from..to) {
            let (key, value) = entry.map_err(|error| failed("cannot read", &error))?;
            if !visit(&key, &value) {
                break;
            }
        }
        Ok(())
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), DatabaseError> {
        let mut changes = sled::Batch::default();
        for (key, value) in &batch.0 {
            match value {
                Some(value) => changes.insert(key.as_slice(), value.as_slice()),
                None => changes.remove(key.as_slice()),
            }
        }
        let committed = self.opened.database.apply_batch(changes).and_then(|()| {
            if self.flush {
                self.opened.database.flush()?;
            }
            Ok(())
        });
        committed.map_err(|error| failed("cannot commit", &error))
    }
}

fn failed(doing: &str, error: &sled::Error) -> DatabaseError {
    match error {
        sled::Error::Io(error) => DatabaseError::io(doing, error),
        _ => DatabaseError::Failed(format!("{doing}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance::*;
    use super::*;

    #[test]
    fn what_was_acknowledged_is_kept_under_all_settings() {
        keeps_keys("sled", "");
        keeps_keys("sled", "flush_every_ms=none cache_size=1M");
    }

    #[test]
    fn what_is_not_flushed_is_kept_when_it_was_drained() {
        let fixture = fixture("sled", "flush=no flush_every_ms=none");
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
    fn it_is_opened_again_as_soon_as_it_is_closed() {
        let mut fixture = fixture("sled", "");
        for number in 0..200_u8 {
            let mut batch = Batch::default();
            batch.put([number], vec![number; 5000]);
            keys(&*fixture.running).commit(&batch).unwrap();
            fixture = fixture.restarted();
        }
    }

    #[test]
    fn what_is_no_database_does_not_start() {
        let sled = database("sled", "").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let start = || {
            sled.start(directory.path(), &Stop::default())
                .err()
                .unwrap()
        };
        assert!(start().to_string().starts_with("there is no "));
        let path = directory.path().join(DIRECTORY);
        std::fs::create_dir(&path).unwrap();
        std::fs::create_dir(path.join(FILE)).unwrap();
        let error = start();
        assert!(matches!(error, DatabaseError::DoesNotStart(_)), "{error}");
    }

    #[test]
    fn its_version_is_the_one_that_is_linked() {
        assert_eq!(linked("sled"), VERSION);
    }
}
