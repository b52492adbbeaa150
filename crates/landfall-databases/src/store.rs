//! Landfall's own store, linked in: a tree that keeps changes in memory as records, on a log, in Rust.
//!
//! A commit is a record of the log; threads that commit at the same time share a flush. Checkpoints write changes into
//! leaves, in the background.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use landfall::{
    Compression, Error, Keyspace, KeyspaceOptions, MOST_BUFFER_PERCENT, Options, Policy,
    Protection, Store, StoreBuffer, StoreOptions,
};

use super::{
    Batch, Database, DatabaseError, Forecast, Interface, KeyValue, Maintenance, MaintenanceCount,
    PendingWrites, Presence, Running, Session, Templates,
};
use crate::SettingError;
use crate::registry::Kind;
use crate::setting::{Chosen, Description, Setting};
use crate::{Form, Listed};
use landfall_os::Stop;

/// That of the workspace, which is the crate's.
const VERSION: &str = env!("CARGO_PKG_VERSION");
const DIRECTORY: &str = "store";
const KEYSPACE: &str = "keys";
/// Where each commit that removes ranges removes all, and puts its keys with a number of its own.
const REPLACED: &str = "replaced";

pub(super) static KIND: Kind<dyn Database, Listed> = Kind {
    description: Description {
        name: "landfall-store",
        about: "Landfall's own key-value store, linked in",
        passes_on: None,
        settings: &[
            Setting {
                name: "policy",
                default: Some("every-commit"),
                about: "what a commit waits for: every-commit, group, or interval (of 100 ms)",
                always_shown: true,
            },
            Setting {
                name: "compression",
                default: Some("lz4"),
                about: "how leaves are compressed: lz4 or none",
                always_shown: false,
            },
            Setting {
                name: "leaf",
                default: Some("16K"),
                about: "bytes of a leaf",
                always_shown: false,
            },
            Setting {
                name: "memory",
                default: Some("64M"),
                about: "bytes of changes and of leaves that are kept in memory",
                always_shown: false,
            },
            Setting {
                name: "buffer",
                default: Some("0"),
                about: "percent of what leaves take that buffered changes may take on disk, 0 to 16; auto: chosen by the load; turning: from 0 to 16 and back while it runs",
                always_shown: true,
            },
            Setting {
                name: "segment",
                default: Some("16M"),
                about: "bytes of a segment of the log",
                always_shown: false,
            },
            Setting {
                name: "in-place",
                default: Some("no"),
                about: "yes: each leaf has a home of 4K, 8K or 16K, uncompressed, and is written there again",
                always_shown: true,
            },
            Setting {
                name: "protection",
                default: Some("shadow"),
                about: "what keeps a leaf whole that is written in place: shadow, doublewrite, image, atomic, none, or auto",
                always_shown: true,
            },
            Setting {
                name: "changes",
                default: Some("records"),
                about: "what takes memory until it is written: records, or whole-leaves as in engines that change pages",
                always_shown: false,
            },
            Setting {
                name: "ranges",
                default: Some("no"),
                about: "yes: each commit removes its keys with ranges before it writes them, and replaces a keyspace, whose rows must be of one commit",
                always_shown: false,
            },
            #[cfg(feature = "mistakes")]
            Setting {
                name: "mistake",
                default: Some(NO_MISTAKE),
                about: "a mistake that the store makes, or 'none'",
                always_shown: true,
            },
        ],
    },
    listed: Listed {
        presence: || Presence::Here {
            version: VERSION.to_owned(),
            program: None,
        },
        title: "Landfall's store",
        form: Form::LinkedIn,
    },
    make,
};

#[cfg(feature = "mistakes")]
const NO_MISTAKE: &str = "none";

#[derive(Clone)]
struct LandfallStore {
    name: String,
    options: StoreOptions,
    keyspace: KeyspaceOptions,
    is_turning: bool,
    removes_ranges: bool,
    #[cfg(feature = "mistakes")]
    mistake: Option<String>,
}

/// Percent of the buffer, one after the other, where it is to turn.
const TURNS: [u8; 4] = [2, 11, 16, 0];
/// Commits until the next one.
const TURN: u64 = 40;

fn make(chosen: &Chosen) -> Result<Box<dyn Database>, SettingError> {
    #[cfg(feature = "mistakes")]
    let mistake = Some(chosen.text("mistake").to_owned()).filter(|name| name != NO_MISTAKE);
    #[cfg(feature = "mistakes")]
    if !landfall::mistakes::plant(mistake.as_deref()) {
        return Err(chosen.wrong("mistake", "the store makes no mistake of this name"));
    }
    let policies = [
        ("every-commit", Policy::EveryCommit),
        ("group", Policy::Group),
        ("interval", Policy::Interval(Duration::from_millis(100))),
    ];
    let compressions = [("lz4", Compression::Lz4), ("none", Compression::None)];
    let protections = Protection::ALL.map(|protection| (protection.name(), protection));
    let auto = Protection::Auto;
    let protections: Vec<_> = protections
        .into_iter()
        .chain([(auto.name(), auto)])
        .collect();
    let changes = [("records", false), ("whole-leaves", true)];
    let segment = chosen.size("segment", 16 << 10, 1 << 30)?;
    let leaf = chosen.size("leaf", 256, 1 << 20)? as u32;
    let is_in_place = chosen.whether("in-place")?;
    if is_in_place && ![4 << 10, 8 << 10, 16 << 10].contains(&leaf) {
        return Err(chosen.wrong("leaf", "in place it must be 4K, 8K or 16K"));
    }
    let compression = chosen.one_of("compression", &compressions)?;
    let is_turning = chosen.text("buffer") == "turning";
    let buffer = match chosen.text("buffer") {
        "turning" => StoreBuffer::Percent(TURNS[0]),
        "auto" => StoreBuffer::Auto {
            most: MOST_BUFFER_PERCENT,
        },
        _ => {
            let percent = chosen.number("buffer", 0, MOST_BUFFER_PERCENT.into())?;
            StoreBuffer::Percent(percent as u8)
        }
    };
    Ok(Box::new(LandfallStore {
        name: chosen.name(),
        options: StoreOptions::default()
            .policy(chosen.one_of("policy", &policies)?)
            .memory_bytes(chosen.size("memory", 4 << 10, 1 << 44)? as usize)
            .protection(chosen.one_of("protection", &protections)?)
            .buffer(buffer)
            .log(Options::default().segment_bytes(segment)),
        keyspace: KeyspaceOptions::default()
            .compression(compression)
            .leaf_bytes(leaf)
            .in_place(is_in_place)
            .whole_leaves(chosen.one_of("changes", &changes)?),
        is_turning,
        removes_ranges: chosen.whether("ranges")?,
        #[cfg(feature = "mistakes")]
        mistake,
    }))
}

impl LandfallStore {
    fn open(&self, directory: &Path) -> Result<(Store, Keyspace), Error> {
        // Another database of this process may make another one.
        #[cfg(feature = "mistakes")]
        landfall::mistakes::plant(self.mistake.as_deref());
        let store = Store::open(directory.join(DIRECTORY), self.options.clone())?;
        let keyspace = store.keyspace(KEYSPACE, self.keyspace.clone())?;
        Ok((store, keyspace))
    }
}

impl Database for LandfallStore {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn interface(&self) -> Interface {
        Interface::OrderedKeys
    }

    fn create(&self, directory: &Path, _: &Templates, _: &Stop) -> Result<(), DatabaseError> {
        let create = || {
            let (store, keyspace) = self.open(directory)?;
            drop(keyspace);
            store.close()
        };
        create().map_err(|error| failed("cannot make the store", error))
    }

    fn start(&self, directory: &Path, _: &Stop) -> Result<Box<dyn Running>, DatabaseError> {
        if !directory.join(DIRECTORY).is_dir() {
            let text = format!("there is no store in {}", directory.display());
            return Err(DatabaseError::Failed(text).at_start());
        }
        let opened = self.open(directory);
        let (store, keyspace) =
            opened.map_err(|error| failed("cannot open the store", error).at_start())?;
        let replaced = || store.keyspace(REPLACED, self.keyspace.clone());
        let replaced = self.removes_ranges.then(replaced).transpose();
        let replaced =
            replaced.map_err(|error| failed("cannot make a keyspace", error).at_start())?;
        Ok(Box::new(RunningStore {
            store: Mutex::new(Arc::new(store)),
            keyspace,
            replaced,
            commits: self.is_turning.then(Arc::default),
        }))
    }
}

/// A store that is open.
struct RunningStore {
    /// Locked for moments only.
    store: Mutex<Arc<Store>>,
    keyspace: Keyspace,
    /// How many there were, where the buffer turns with them.
    commits: Option<Arc<AtomicU64>>,
    /// What each commit replaces, if it removes ranges.
    replaced: Option<Keyspace>,
}

impl RunningStore {
    fn store(&self) -> Arc<Store> {
        let store: MutexGuard<'_, Arc<Store>> =
            self.store.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&store)
    }

    fn checkpoint(&self) -> Result<(), DatabaseError> {
        let made = self.store().checkpoint();
        made.map_err(|error| failed("cannot make a checkpoint", error))
    }
}

impl Running for RunningStore {
    fn session(&self) -> Result<Session, DatabaseError> {
        Ok(Session::Keys(Box::new(StoreSession {
            store: self.store(),
            keyspace: self.keyspace.clone(),
            commits: self.commits.clone(),
            replaced: self.replaced.clone(),
        })))
    }

    fn pending_writes(&self) -> Result<PendingWrites, DatabaseError> {
        let counters = self.store().counters();
        let percent = self.store().buffer().percent;
        let filled = || match counters.merges {
            0 => {
                let most = counters.tree_bytes as f64 * f64::from(percent) / 100.0;
                (counters.buffered_bytes as f64 / most.max(1.0)).min(1.0)
            }
            _ => 1.0,
        };
        Ok(PendingWrites {
            dirty_bytes: Some(counters.waiting_bytes),
            buffer_filled: (percent > 0).then(filled),
            ..PendingWrites::default()
        })
    }

    fn forecast(&self) -> Option<Forecast> {
        let store = self.store();
        let tree = store.expected_writes()?.amplification();
        let counters = store.counters();
        Some(Forecast {
            tree,
            log_bytes: counters.log.all_bytes(),
            logical_bytes: counters.logical_bytes,
        })
    }

    fn drain(&self, _: &Stop) -> Result<(), DatabaseError> {
        self.checkpoint()
    }

    fn maintenance(&self) -> Result<Vec<MaintenanceCount>, DatabaseError> {
        let counters = self.store().counters();
        let count = |what, times, is_told| MaintenanceCount {
            what,
            times,
            is_told,
        };
        let mut all = vec![count(Maintenance::Checkpoint, counters.checkpoints, true)];
        // Of groups, by itself.
        if counters.runs > 0 {
            all.push(count(Maintenance::Compaction, counters.merges, false));
        }
        Ok(all)
    }

    fn maintain(&self, what: Maintenance, _: &Stop) -> Result<(), DatabaseError> {
        match what {
            Maintenance::Checkpoint => self.checkpoint(),
            _ => Err(DatabaseError::Failed(format!(
                "it cannot be told to do this: {what:?}"
            ))),
        }
    }

    fn verify(&self, _: &Stop) -> Result<Option<String>, DatabaseError> {
        let found = self.store().verify();
        if let Some(damage) = found.damage.first() {
            return Ok(Some(format!("{}: {}", damage.keyspace, damage.error)));
        }
        let replaced = self.replaced.as_ref().map(mixed).transpose();
        let replaced = replaced.map_err(|error| failed("cannot read", error))?;
        Ok(replaced.flatten())
    }

    fn stop(self: Box<Self>) -> Result<(), DatabaseError> {
        let RunningStore {
            store,
            keyspace,
            replaced,
            ..
        } = *self;
        drop((keyspace, replaced));
        let store = store.into_inner().unwrap_or_else(PoisonError::into_inner);
        // Where a session is still open it is closed with that one.
        match Arc::into_inner(store).map(Store::close) {
            Some(Err(error)) => Err(failed("cannot close the store", error)),
            _ => Ok(()),
        }
    }
}

struct StoreSession {
    store: Arc<Store>,
    keyspace: Keyspace,
    commits: Option<Arc<AtomicU64>>,
    replaced: Option<Keyspace>,
}

/// What is wrong with what each commit replaces; `None`: it is all of one.
fn mixed(replaced: &Keyspace) -> Result<Option<String>, Error> {
    let values = replaced.iter().map(|pair| Ok(pair?.1));
    let values = values.collect::<Result<BTreeSet<Vec<u8>>, Error>>()?;
    let is_mixed = values.len() > 1;
    Ok(is_mixed.then(|| {
        let commits = values.len();
        format!("{REPLACED}: rows of {commits} commits, each of which removed all that was there")
    }))
}

impl KeyValue for StoreSession {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DatabaseError> {
        let found = self.keyspace.get(key);
        found.map_err(|error| failed("cannot read", error))
    }

    fn scan(
        &mut self,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), DatabaseError> {
        for pair in self.keyspace.range(from..to) {
            let (key, value) = pair.map_err(|error| failed("cannot read", error))?;
            if !visit(&key, &value) {
                break;
            }
        }
        Ok(())
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), DatabaseError> {
        if let Some(commits) = &self.commits {
            let number = commits.fetch_add(1, Ordering::Relaxed) + 1;
            if number.is_multiple_of(TURN) {
                let turn = TURNS[(number / TURN) as usize % TURNS.len()];
                let turned = self.store.set_buffer(StoreBuffer::Percent(turn));
                turned.map_err(|error| failed("cannot turn the buffer", error))?;
            }
        }
        let mut writes = self.store.batch();
        if let Some(replaced) = &self.replaced {
            // Of this commit alone.
            let number = RandomState::new().build_hasher().finish().to_le_bytes();
            writes.remove_range::<&[u8]>(replaced, ..);
            for (key, _) in &batch.0 {
                writes.insert(replaced, key, number);
                let key = key.as_slice();
                writes.remove_range(&self.keyspace, key..=key);
            }
        }
        for (key, value) in &batch.0 {
            match value {
                Some(value) => writes.insert(&self.keyspace, key, value),
                None if self.replaced.is_some() => {}
                None => writes.remove(&self.keyspace, key),
            }
        }
        let committed = writes.commit();
        committed.map_err(|error| failed("cannot commit", error))
    }
}

fn failed(doing: &str, error: Error) -> DatabaseError {
    match &error {
        Error::Io { source, .. } | Error::Poisoned { source, .. } => {
            DatabaseError::io(doing, source)
        }
        _ => DatabaseError::Failed(format!("{doing}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance::*;
    use super::*;

    #[test]
    fn what_was_acknowledged_is_kept_under_all_settings() {
        keeps_keys("landfall-store", "");
        keeps_keys("landfall-store", "compression=none leaf=1K memory=32K");
        keeps_keys("landfall-store", "buffer=11 leaf=1K memory=32K");
        keeps_keys("landfall-store", "buffer=turning leaf=1K memory=32K");
        keeps_keys("landfall-store", "buffer=auto leaf=1K memory=32K");
        keeps_keys("landfall-store", "ranges=yes leaf=1K memory=32K");
    }

    #[test]
    fn what_is_not_durable_is_so_when_it_was_drained() {
        let fixture = fixture("landfall-store", "policy=interval");
        let mut batch = Batch::default();
        batch.put([1], [1]);
        keys(&*fixture.running).commit(&batch).unwrap();
        assert!(fixture.running.pending_writes().unwrap().dirty_bytes > Some(0));
        fixture.running.drain(&Stop::default()).unwrap();
        assert_eq!(
            fixture.running.pending_writes().unwrap().dirty_bytes,
            Some(0)
        );
        let killed = fixture.as_if_killed();
        assert_eq!(keys(&*killed.running).get(&[1]).unwrap(), Some(vec![1]));
        assert_eq!(killed.running.verify(&Stop::default()), Ok(None));
    }

    #[test]
    fn a_buffer_makes_it_forecast_fewer_bytes_and_the_log_is_counted() {
        let forecast = |buffer: &str| {
            let set = format!("buffer={buffer} leaf=1K memory=32K");
            let fixture = fixture("landfall-store", &set);
            assert_eq!(fixture.running.forecast(), None, "it has no leaf yet");
            let mut session = keys(&*fixture.running);
            let mut batch = Batch::default();
            for key in 0_u32..4000 {
                batch.put(key.to_be_bytes(), [7; 60]);
            }
            session.commit(&batch).unwrap();
            fixture.running.drain(&Stop::default()).unwrap();
            let before = fixture.running.forecast().unwrap();
            assert_eq!(before.logical_bytes, 4000 * 64);
            assert_eq!(before.per_byte(&before), None, "nothing was committed");
            batch.0.truncate(100);
            session.commit(&batch).unwrap();
            let after = fixture.running.forecast().unwrap();
            let log = after.per_byte(&before).unwrap() - after.tree;
            // What is committed is in it once, and it may have written zeros ahead.
            assert!(log > 1.0, "{log}");
            after.tree
        };
        let (without, with) = (forecast("0"), forecast("16"));
        assert!(without > 2.0 * with, "{without} {with}");
    }

    #[test]
    fn what_is_no_database_does_not_start() {
        let store = database("landfall-store", "").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let start = || {
            store
                .start(directory.path(), &Stop::default())
                .err()
                .unwrap()
        };
        assert!(matches!(start(), DatabaseError::DoesNotStart(_)));
        std::fs::create_dir(directory.path().join(DIRECTORY)).unwrap();
        std::fs::write(directory.path().join(DIRECTORY).join("file"), "other").unwrap();
        assert!(matches!(start(), DatabaseError::DoesNotStart(_)));
    }
}
