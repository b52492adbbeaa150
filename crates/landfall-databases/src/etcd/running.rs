//! A server of etcd that runs, and its clients.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tonic::{Code, Status};

use super::TITLE;
use super::api::{
    Connection, DeleteRangeRequest, Op, PutRequest, RangeRequest, RequestOp, TxnRequest,
};
use super::metrics::Metrics;
use super::options::Options;
use crate::server::{Ending, Server, Watch};
use crate::{Batch, DatabaseError, KeyValue, Maintenance, MaintenanceCount, Running};
use landfall_os::Stop;
use landfall_os::sync_directory;

/// Keys that are read at first, as many want only one, and at most.
const PAGES: [i64; 2] = [10, 1000];
/// How often it is asked again when it says that it was too slow to answer.
const MOST_TRIES: u32 = 3;

/// What it does besides committing, by which counter it is known, and whether it can be told to. It has no other counters
/// of compactions than those for debugging.
const COUNTERS: [(Maintenance, &str, bool); 3] = [
    (
        Maintenance::Compaction,
        "etcd_debugging_mvcc_db_compaction_total_duration_milliseconds_count",
        true,
    ),
    (
        Maintenance::Defragmentation,
        "etcd_disk_backend_defrag_duration_seconds_count",
        true,
    ),
    // Of its log, after so many transactions as `snapshot-count` says.
    (
        Maintenance::Snapshot,
        "etcd_snap_fsync_duration_seconds_count",
        false,
    ),
];

pub(super) struct Etcd {
    // Dropped before the server.
    own: Mutex<Connection>,
    socket: PathBuf,
    directory: PathBuf,
    server: Server,
    unsynced: bool,
}

impl Etcd {
    /// Waits until the server answers.
    pub fn connect(
        server: Server,
        socket: PathBuf,
        directory: &Path,
        options: &Options,
        stop: &Stop,
    ) -> Result<Etcd, DatabaseError> {
        let connect = || {
            let mut connection = Connection::open(&socket)?;
            // It takes connections before it leads.
            connection.probe()?;
            Ok(connection)
        };
        let own = server.connect(stop, connect, |log| options.complaint(log))?;
        Ok(Etcd {
            own: Mutex::new(own),
            socket,
            directory: directory.to_owned(),
            server,
            unsynced: options.unsynced,
        })
    }

    fn own(&self) -> MutexGuard<'_, Connection> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has it commit everything to its pages, and read them.
    fn hash(&self) -> Result<(), DatabaseError> {
        let hashed = self.own().hash();
        hashed.map_err(|status| self.server.watch().explain(failed(&status)))
    }
}

impl Running for Etcd {
    fn session(&self) -> Result<crate::Session, DatabaseError> {
        let watch = self.server.watch();
        let connection = Connection::open(&self.socket).map_err(|error| {
            watch.explain(DatabaseError::Failed(format!(
                "cannot connect to {TITLE}: {error}"
            )))
        })?;
        Ok(crate::Session::Keys(Box::new(Session {
            connection,
            watch,
        })))
    }

    fn cpu(&self) -> Duration {
        self.server.cpu()
    }

    fn drain(&self, _: &Stop) -> Result<(), DatabaseError> {
        self.hash()?;
        if !self.unsynced {
            return Ok(());
        }
        sync_directory(&self.directory).map_err(|error| {
            let doing = format!("cannot sync what is in {}", self.directory.display());
            DatabaseError::io(&doing, &error)
        })
    }

    fn maintenance(&self) -> Result<Vec<MaintenanceCount>, DatabaseError> {
        let metrics = Metrics::of(&self.socket)?;
        let kinds = COUNTERS.map(|(what, counter, is_told)| MaintenanceCount {
            what,
            times: metrics.counter(counter).unwrap_or(0),
            is_told,
        });
        Ok(kinds.to_vec())
    }

    fn maintain(&self, what: Maintenance, _: &Stop) -> Result<(), DatabaseError> {
        let done = match what {
            Maintenance::Compaction => self.own().compact(),
            Maintenance::Defragmentation => self.own().defragment(),
            other => {
                let text = format!("{TITLE} cannot be told to do this: {other:?}");
                return Err(DatabaseError::Failed(text));
            }
        };
        done.map_err(|status| self.server.watch().explain(failed(&status)))
    }

    fn verify(&self, _: &Stop) -> Result<Option<String>, DatabaseError> {
        // It checks its log when it is started, and has nothing to check its pages by but reading them.
        self.hash().map(|()| None)
    }

    fn stop(self: Box<Self>) -> Result<(), DatabaseError> {
        drop(self.own);
        self.server.stop(Ending::TerminateItself)
    }
}

struct Session {
    connection: Connection,
    watch: Watch,
}

impl Session {
    fn range(&mut self, request: RangeRequest) -> Result<(Vec<Pair>, bool), DatabaseError> {
        let mut tries = 1;
        let answer = loop {
            match self.connection.range(request.clone()) {
                Err(status) if is_late(&status) && tries < MOST_TRIES => tries += 1,
                answer => break answer.map_err(|status| self.watch.explain(failed(&status)))?,
            }
        };
        let pairs = answer.kvs.into_iter().map(|pair| (pair.key, pair.value));
        Ok((pairs.collect(), answer.more))
    }
}

/// A key with its value.
type Pair = (Vec<u8>, Vec<u8>);

impl KeyValue for Session {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DatabaseError> {
        let (found, _) = self.range(RangeRequest {
            key: key.to_vec(),
            ..RangeRequest::default()
        })?;
        Ok(found.into_iter().next().map(|(_, value)| value))
    }

    fn scan(
        &mut self,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), DatabaseError> {
        let mut from = from.to_vec();
        let [mut page, most] = PAGES;
        // A range whose end is not greater would be another question.
        while from.as_slice() < to {
            let (found, more) = self.range(RangeRequest {
                key: from.clone(),
                range_end: to.to_vec(),
                limit: page,
                serializable: false,
            })?;
            page = (page * 10).min(most);
            if !found.iter().all(|(key, value)| visit(key, value)) || !more {
                break;
            }
            let Some((last, _)) = found.into_iter().last() else {
                break;
            };
            // The next key there can be.
            from = [&last[..], &[0]].concat();
        }
        Ok(())
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), DatabaseError> {
        // It refuses to change a key twice in a transaction: the last one counts.
        let last: BTreeMap<_, _> = batch.0.iter().map(|(key, value)| (key, value)).collect();
        let changes = last.into_iter().map(|(key, value)| match value {
            Some(value) => Op::Put(PutRequest {
                key: key.clone(),
                value: value.clone(),
            }),
            None => Op::Delete(DeleteRangeRequest { key: key.clone() }),
        });
        let mut changes: Vec<Op> = changes.collect();
        let done = match changes.pop() {
            // One put needs no transaction around it.
            Some(Op::Put(put)) if changes.is_empty() => self.connection.put(put),
            last => {
                changes.extend(last);
                let changes = changes
                    .into_iter()
                    .map(|op| RequestOp { request: Some(op) });
                self.connection.transaction(TxnRequest {
                    success: changes.collect(),
                })
            }
        };
        done.map_err(|status| self.watch.explain(failed(&status)))
    }
}

/// Whether the server says that it took too long: that nothing is wrong but the time.
fn is_late(status: &Status) -> bool {
    status.code() == Code::Unavailable && status.message().starts_with("etcdserver: ")
}

/// What the server or the connection says, as our error.
pub(super) fn failed(status: &Status) -> DatabaseError {
    let text = format!("{TITLE} says: {}", status.message());
    let is_about_space = ["no space left on device", "database space exceeded"]
        .iter()
        .any(|sign| text.contains(sign));
    if is_about_space {
        DatabaseError::no_space(text)
    } else if is_late(status) {
        DatabaseError::Late(format!(
            "{text}: it had no answer in time, as on a machine that does too much else"
        ))
    } else {
        DatabaseError::Failed(text)
    }
}
