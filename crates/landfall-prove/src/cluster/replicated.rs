//! A cluster of databases as a subject: each transaction is a record.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use landfall_databases::cluster::{Cluster, ClusterSession, Node};
use landfall_databases::clusters::named;
use landfall_databases::{DatabaseError, Templates};

use super::{Boot, ClusterSubject, Found, Rolling, name_of};
use crate::subject::{AckSink, Promise, Recovered, SubjectError, SubjectName};
use crate::{Error, Stop};

/// How long a cluster may take to come back. Much more than any takes here; what takes longer is unavailable, and is tried a
/// second time.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long its nodes may then take to have the same.
const AGREEING: Duration = Duration::from_secs(20);
/// How often it is looked whether it has.
const LOOK: Duration = Duration::from_millis(20);
/// How long a cluster may take to start for the first time.
const STARTING: Duration = Duration::from_secs(600);
/// How many transactions may be told that the cluster had no time.
const MOST_LATE: u32 = 3;

/// A cluster of databases, of so many nodes.
pub(super) struct Replicated {
    cluster: Box<dyn Cluster>,
    nodes: usize,
}

impl Replicated {
    pub fn named(
        name: &str,
        settings: &[(String, String)],
        nodes: usize,
    ) -> Result<Replicated, Error> {
        let cluster = named(name, settings)?;
        Ok(Replicated { cluster, nodes })
    }

    fn start(
        &self,
        nodes: &[usize],
        directories: &[PathBuf],
    ) -> Result<Vec<(usize, Node)>, DatabaseError> {
        let start = |&node| Ok((node, self.cluster.start(node, directories)?));
        nodes.iter().map(start).collect()
    }

    /// Connects to the nodes that were started, within `most`; why not, if not.
    fn connect(
        &self,
        directories: &[PathBuf],
        running: &[(usize, Node)],
        most: Duration,
        stop: &Stop,
    ) -> Result<Result<Box<dyn ClusterSession>, String>, SubjectError> {
        let started: Vec<usize> = running.iter().map(|(node, _)| *node).collect();
        let connected = within(most, stop, || {
            let connected = self.cluster.connect(directories, &started);
            // Nothing more will come of it.
            let over = running.iter().all(|(_, server)| server.ended().is_some());
            if over {
                Ok(Err(connected.err()))
            } else {
                connected.map(Ok)
            }
        })?;
        let why = match connected {
            Ok(Ok(session)) => return Ok(Ok(session)),
            Ok(Err(why)) => why.map_or_else(String::new, |why| why.to_string()),
            Err(why) => why,
        };
        Ok(Err(match ended(running) {
            Some(ended) => format!("{why}; {ended}"),
            None => why,
        }))
    }

    /// Waits until a node has what the cluster has; in what it differs, if it does not come to that.
    fn agrees(
        &self,
        node: usize,
        (directories, running): (&[PathBuf], &[(usize, Node)]),
        records: &BTreeSet<u64>,
        stop: &Stop,
    ) -> Result<Result<(), String>, SubjectError> {
        let started: Vec<usize> = running.iter().map(|(node, _)| *node).collect();
        let differs = || {
            let found = self.cluster.records_of(node)?;
            let other = found.filter(|found| found != records);
            Ok::<_, DatabaseError>(other.map(|found| {
                let lacks = records.difference(&found).count();
                let more = found.difference(records).count();
                format!("node {node} lacks {lacks} records of the cluster, and has {more} others")
            }))
        };
        within(AGREEING, stop, || {
            if differs()?.is_none() {
                return Ok(());
            }
            // Its operator looks after it once more: what refuses a replica may come only when the others are at work.
            drop(self.cluster.connect(directories, &started));
            differs()?.map_or(Ok(()), |how| Err(DatabaseError::Late(how)))
        })
    }
}

/// The nodes that have ended, and why.
fn ended(running: &[(usize, Node)]) -> Option<String> {
    let ended = running.iter().filter_map(|(node, server)| {
        let how = server.ended()?;
        Some(format!("node {node} {how}"))
    });
    let ended: Vec<String> = ended.collect();
    (!ended.is_empty()).then(|| ended.join("; "))
}

/// Tries again and again until it works; why it did not work within `most`, if it does not. What never works is an error at
/// once.
fn within<T>(
    most: Duration,
    stop: &Stop,
    mut attempt: impl FnMut() -> Result<T, DatabaseError>,
) -> Result<Result<T, String>, SubjectError> {
    let begin = Instant::now();
    loop {
        let why = match attempt() {
            Ok(done) => return Ok(Ok(done)),
            Err(error @ (DatabaseError::NotInstalled { .. } | DatabaseError::Setting(_))) => {
                return Err(error.into());
            }
            Err(error) => error.to_string(),
        };
        if stop.is_requested() {
            return Err(SubjectError("stopped".into()));
        }
        if begin.elapsed() > most {
            return Ok(Err(format!("after {} s: {why}", most.as_secs())));
        }
        thread::sleep(LOOK);
    }
}

impl ClusterSubject for Replicated {
    fn name(&self) -> SubjectName {
        name_of(self.cluster.chosen(), self.nodes)
    }

    fn promise(&self) -> Promise {
        // Each record is a transaction of its own.
        Promise {
            atomic: true,
            ordered: false,
        }
    }

    fn capacity(&self) -> u64 {
        self.cluster.capacity()
    }

    fn reads_times(&self) -> bool {
        false
    }

    fn prepare(&self, directories: &[PathBuf], stop: &Stop) -> Result<(), SubjectError> {
        let templates = Templates::new(&std::env::temp_dir());
        self.cluster.create(directories, &templates, stop)?;
        let all: Vec<usize> = (0..self.nodes).collect();
        let running = self.start(&all, directories)?;
        let session = self.connect(directories, &running, STARTING, stop)?;
        drop(session.map_err(|why| SubjectError(format!("it does not start: {why}")))?);
        for (node, server) in running {
            let stopped = server.stop();
            stopped.map_err(|error| SubjectError(format!("node {node}: {error}")))?;
        }
        Ok(())
    }

    fn run(
        &self,
        directories: &[PathBuf],
        sink: &mut dyn AckSink,
        rolling: &mut Rolling<'_>,
        stop: &Stop,
    ) -> Result<(), SubjectError> {
        let all: Vec<usize> = (0..self.nodes).collect();
        let mut running = self.start(&all, directories)?;
        let connect = |running: &[(usize, Node)]| -> Result<_, SubjectError> {
            let connected = self.connect(directories, running, STARTING, stop)?;
            connected.map_err(SubjectError)
        };
        let mut session = connect(&running)?;
        let mut late = 0;
        while let Some(transaction) = sink.send() {
            while let Some(node) = rolling.due(transaction) {
                // Killed.
                running.retain(|(one, _)| *one != node);
                rolling.has_ended(node);
                session = connect(&running)?;
            }
            match session.put(transaction) {
                Ok(()) => sink.acknowledge(transaction),
                // It may be there or not, as after a power cut: a leader had no time, and another one may lead now.
                Err(error) if late < MOST_LATE && !stop.is_requested() => {
                    late += 1;
                    drop(error);
                    session = connect(&running)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        drop(session);
        // Killed, all of them.
        while let Some((node, server)) = running.pop() {
            drop(server);
            rolling.has_ended(node);
            rolling.let_notice();
        }
        Ok(())
    }

    fn holds(
        &self,
        directories: &[PathBuf],
        first: &[usize],
        transaction: u64,
        stop: &Stop,
    ) -> Result<Option<bool>, SubjectError> {
        let running = self.start(first, directories)?;
        let Ok(mut session) = self.connect(directories, &running, PATIENCE, stop)? else {
            return Ok(None);
        };
        let records = within(PATIENCE, stop, || session.records())?;
        Ok(records.ok().map(|records| records.contains(&transaction)))
    }

    fn check(
        &self,
        directories: &[PathBuf],
        boot: &Boot,
        stop: &Stop,
    ) -> Result<Found, SubjectError> {
        let unavailable = |why: String| Found {
            unavailable: Some(why),
            ..Found::default()
        };
        let mut running = self.start(&boot.first(self.nodes), directories)?;
        let mut session = match self.connect(directories, &running, PATIENCE, stop)? {
            Ok(session) => session,
            Err(why) => return Ok(unavailable(why)),
        };
        let before = match within(PATIENCE, stop, || session.records())? {
            Ok(records) => records,
            Err(why) => return Ok(unavailable(format!("it does not tell its records {why}"))),
        };
        // Of a number that nothing that was sent has.
        let new = before.last().unwrap_or(&0) + 1_000_000;
        if let Err(error) = session.put(new) {
            return Ok(unavailable(format!("it takes no new record: {error}")));
        }
        if !boot.late().is_empty() {
            drop(session);
            running.extend(self.start(boot.late(), directories)?);
            session = match self.connect(directories, &running, PATIENCE, stop)? {
                Ok(session) => session,
                Err(why) => {
                    let late = boot.to_string();
                    return Ok(unavailable(format!(
                        "once the last had joined ({late}), {why}"
                    )));
                }
            };
        }
        let mut after = match within(PATIENCE, stop, || session.records())? {
            Ok(records) => records,
            Err(why) => return Ok(unavailable(format!("it does not tell its records {why}"))),
        };
        let mut disagreement = ended(&running);
        for (node, _) in &running {
            if disagreement.is_none() {
                disagreement = self
                    .agrees(*node, (directories, &running), &after, stop)?
                    .err();
            }
        }
        let damage = (!after.remove(&new)).then(|| {
            "what was acknowledged after the power had come back was gone when all nodes were there"
                .to_owned()
        });
        let taken: BTreeSet<u64> = before.difference(&after).copied().collect();
        Ok(Found {
            recovered: Recovered {
                whole: after,
                damage,
                ..Recovered::default()
            },
            taken,
            unavailable: None,
            disagreement,
        })
    }
}
