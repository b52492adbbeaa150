//! LMDB, linked in: a copy-on-write tree in a mapped file.
//!
//! Readers never wait; writers take turns, and each commit is made durable by itself: the new pages are
//! written and synced, then the page that points to them, through a descriptor that syncs each write.
//! There is nothing in the background, nothing is owed after a commit that was synced, and there is no
//! check of its own: [`verify`](Running::verify) reads every entry.
//!
//! The file is found through a mapping: on a device that fails to be read, or when the file is cut short
//! from outside, the process gets SIGBUS.

use std::ops::Bound;
use std::path::Path;

use heed::types::Bytes;
use heed::{Env, MdbError, WithoutTls};
use landfall_os::{LmdbSync, open_lmdb};

use super::{
    Batch, Database, DatabaseError, Interface, KeyValue, Presence, Running, Session, Templates,
};
use crate::SettingError;
use crate::registry::Kind;
use crate::setting::{Chosen, Description, Setting};
use crate::{Form, Listed};
use landfall_os::Stop;

/// Sessions that may read at the same time.
const READERS: u32 = 512;

pub(super) static KIND: Kind<dyn Database, Listed> = Kind {
    description: Description {
        name: "lmdb",
        about: "LMDB, linked in; one writer at a time",
        passes_on: None,
        settings: &[
            Setting {
                name: "sync",
                default: Some("yes"),
                about: "what a commit waits for: yes, pages (MDB_NOMETASYNC) or no (MDB_NOSYNC)",
                always_shown: true,
            },
            Setting {
                name: "map_size",
                default: Some("16G"),
                about: "bytes that it can become large, at most; takes addresses, and no memory",
                always_shown: false,
            },
        ],
    },
    listed: Listed {
        presence: || {
            // `LMDB 0.9.70: (December 19, 2015)`
            let text = heed::lmdb_version().string;
            let version = text.trim_start_matches("LMDB ").split(':').next();
            Presence::Here {
                version: version.unwrap_or(text).to_owned(),
                program: None,
            }
        },
        title: "LMDB",
        form: Form::LinkedIn,
    },
    make,
};

struct Lmdb {
    name: String,
    sync: LmdbSync,
    map_size: usize,
}

fn make(chosen: &Chosen) -> Result<Box<dyn Database>, SettingError> {
    let syncs = [
        ("yes", LmdbSync::Yes),
        ("pages", LmdbSync::PagesOnly),
        ("no", LmdbSync::No),
    ];
    let map_size = chosen.size("map_size", 1 << 20, 1 << 46)?;
    if !map_size.is_multiple_of(64 << 10) {
        return Err(chosen.wrong("map_size", "it is a multiple of 64K"));
    }
    Ok(Box::new(Lmdb {
        name: chosen.name(),
        sync: chosen.one_of("sync", &syncs)?,
        map_size: map_size as usize,
    }))
}

type Table = heed::Database<Bytes, Bytes>;

/// The environment and its one table; closed when the last copy is dropped.
#[derive(Clone)]
struct Open {
    environment: Env<WithoutTls>,
    table: Table,
}

impl Lmdb {
    fn open(&self, directory: &Path) -> heed::Result<Env<WithoutTls>> {
        open_lmdb(directory, self.map_size, READERS, self.sync)
    }
}

impl Database for Lmdb {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn interface(&self) -> Interface {
        Interface::OrderedKeys
    }

    fn create(&self, directory: &Path, _: &Templates, _: &Stop) -> Result<(), DatabaseError> {
        let failed = |error| failed("cannot make the database", error);
        let environment = self.open(directory).map_err(failed)?;
        let mut transaction = environment.write_txn().map_err(failed)?;
        environment
            .create_database::<Bytes, Bytes>(&mut transaction, None)
            .map_err(failed)?;
        transaction.commit().map_err(failed)
    }

    fn start(&self, directory: &Path, _: &Stop) -> Result<Box<dyn Running>, DatabaseError> {
        let file = directory.join("data.mdb");
        if !file.exists() {
            let text = format!("there is no {}", file.display());
            return Err(DatabaseError::DoesNotStart(text));
        }
        let open = || {
            let environment = self.open(directory)?;
            let transaction = environment.read_txn()?;
            let table = environment.open_database(&transaction, None)?;
            // What it knows of the table is kept for the transactions to come.
            transaction.commit()?;
            let table = table.ok_or(heed::Error::Mdb(MdbError::NotFound))?;
            Ok(Open { environment, table })
        };
        let open = open().map_err(|error| failed("cannot open the database", error).at_start())?;
        Ok(Box::new(open))
    }
}

impl Running for Open {
    fn session(&self) -> Result<Session, DatabaseError> {
        Ok(Session::Keys(Box::new(self.clone())))
    }

    /// Syncs what `sync=no` has left to the kernel.
    fn drain(&self, _: &Stop) -> Result<(), DatabaseError> {
        let synced = self.environment.force_sync();
        synced.map_err(|error| failed("cannot sync", error))
    }

    fn verify(&self, _: &Stop) -> Result<Option<String>, DatabaseError> {
        let read = || {
            let transaction = self.environment.read_txn()?;
            let mut found = 0;
            let mut last: Option<Vec<u8>> = None;
            for entry in self.table.iter(&transaction)? {
                let (key, _) = entry?;
                if last.as_deref().is_some_and(|last| last >= key) {
                    return Ok(Some(format!("entry {found} is not greater than the last")));
                }
                last = Some(key.to_vec());
                found += 1;
            }
            let counted = self.table.len(&transaction)?;
            Ok((found != counted).then(|| format!("{counted} entries are {found}")))
        };
        match read() {
            Err(heed::Error::Mdb(
                error @ (MdbError::PageNotFound | MdbError::Corrupted | MdbError::Invalid),
            )) => Ok(Some(error.to_string())),
            read => read.map_err(|error| failed("cannot read", error)),
        }
    }

    fn stop(self: Box<Self>) -> Result<(), DatabaseError> {
        Ok(())
    }
}

impl KeyValue for Open {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DatabaseError> {
        let failed = |error| failed("cannot read", error);
        let transaction = self.environment.read_txn().map_err(failed)?;
        let value = self.table.get(&transaction, key).map_err(failed)?;
        Ok(value.map(<[u8]>::to_vec))
    }

    fn scan(
        &mut self,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), DatabaseError> {
        let failed = |error| failed("cannot read", error);
        let transaction = self.environment.read_txn().map_err(failed)?;
        let range = (Bound::Included(from), Bound::Excluded(to));
        for entry in self.table.range(&transaction, &range).map_err(failed)? {
            let (key, value) = entry.map_err(failed)?;
            if !visit(key, value) {
                break;
            }
        }
        Ok(())
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), DatabaseError> {
        let write = || {
            let mut transaction = self.environment.write_txn()?;
            for (key, value) in &batch.0 {
                match value {
                    Some(value) => self.table.put(&mut transaction, key, value)?,
                    None => drop(self.table.delete(&mut transaction, key)?),
                }
            }
            transaction.commit()
        };
        write().map_err(|error| failed("cannot commit", error))
    }
}

fn failed(doing: &str, error: heed::Error) -> DatabaseError {
    match &error {
        heed::Error::Io(error) => DatabaseError::io(doing, error),
        heed::Error::Mdb(MdbError::MapFull) => DatabaseError::Refused(format!(
            "{doing}: it does not fit into its map; make that larger with map_size="
        )),
        _ => DatabaseError::Failed(format!("{doing}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance::*;
    use super::*;

    #[test]
    fn what_was_acknowledged_is_kept_under_all_settings() {
        for sync in ["yes", "pages", "no"] {
            keeps_keys("lmdb", &format!("sync={sync}"));
        }
    }

    #[test]
    fn a_map_that_is_too_small_is_named() {
        let fixture = fixture("lmdb", "map_size=1M");
        let mut batch = Batch::default();
        batch.put(*b"key", vec![7; 2 << 20]);
        let error = keys(&*fixture.running).commit(&batch).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot commit: it does not fit into its map; make that larger with map_size="
        );
    }

    #[test]
    fn what_is_no_database_does_not_start() {
        let lmdb = database("lmdb", "").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let start = || {
            let started = lmdb.start(directory.path(), &Stop::default());
            started.err().unwrap()
        };
        assert!(start().to_string().starts_with("there is no "));
        std::fs::write(directory.path().join("data.mdb"), vec![7; 8192]).unwrap();
        assert!(matches!(start(), DatabaseError::DoesNotStart(_)));
    }

    #[test]
    fn what_cannot_be_set_is_refused() {
        let error = database("lmdb", "map_size=1000001").err().unwrap();
        assert!(
            error
                .to_string()
                .starts_with("lmdb map_size=1000001: it is ")
        );
    }
}
