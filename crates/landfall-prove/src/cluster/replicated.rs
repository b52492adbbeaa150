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
        stop: &Stop,
    ) -> Result<Vec<(usize, Node)>, DatabaseError> {
        let start = |&node| Ok((node, self.cluster.start(node, directories, stop)?));
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
            if have_all_ended(running) {
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

    /// Waits until a node has what the cluster has, but for what either may have or not; in what it differs, if it does not come
    /// to that.
    fn agrees(
        &self,
        node: usize,
        (directories, running): (&[PathBuf], &[(usize, Node)]),
        (records, unsure): (&BTreeSet<u64>, &BTreeSet<u64>),
        stop: &Stop,
    ) -> Result<Result<(), String>, SubjectError> {
        let started: Vec<usize> = running.iter().map(|(node, _)| *node).collect();
        let differs = || {
            let found = self.cluster.records_of(node)?;
            let found = found.map(|found| &found - unsure);
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

/// A record that was added after a power cut, with the session that added it.
struct Added {
    session: Box<dyn ClusterSession>,
    record: u64,
    /// Those that were tried before: they may be there or not, now or later.
    unsure: BTreeSet<u64>,
}

/// Puts a new record, `first` or, where that did not work, the next one over a new connection; why it took none within `most`, if it
/// did not. Servers tell of what passes, such as a new leader, in too many ways to tell it from what stays.
fn put_new(
    first: u64,
    session: Box<dyn ClusterSession>,
    most: Duration,
    stop: &Stop,
    mut connect: impl FnMut() -> Result<Box<dyn ClusterSession>, DatabaseError>,
    is_over: impl Fn() -> bool,
) -> Result<Result<Added, String>, SubjectError> {
    let mut open = Some(session);
    let mut unsure = BTreeSet::new();
    let mut record = first;
    let mut put = || {
        let mut session = match open.take() {
            Some(session) => session,
            None => connect()?,
        };
        let put = session.put(record);
        if put.is_err() {
            unsure.insert(record);
            record += 1;
        }
        put.map(|()| session)
    };
    let put = within(most, stop, || match put() {
        // Nothing more will come of it.
        Err(error) if is_over() => Ok(Err(error.to_string())),
        tried => tried.map(Ok),
    })?;
    Ok(match put {
        Ok(Ok(session)) => Ok(Added {
            session,
            record,
            unsure,
        }),
        Ok(Err(why)) | Err(why) => Err(why),
    })
}

fn have_all_ended(running: &[(usize, Node)]) -> bool {
    running.iter().all(|(_, server)| server.ended().is_some())
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
        let running = self.start(&all, directories, stop)?;
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
        let mut running = self.start(&all, directories, stop)?;
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
        let running = self.start(first, directories, stop)?;
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
        let mut running = self.start(&boot.first(self.nodes), directories, stop)?;
        let mut session = match self.connect(directories, &running, PATIENCE, stop)? {
            Ok(session) => session,
            Err(why) => return Ok(unavailable(why)),
        };
        let first: Vec<usize> = running.iter().map(|(node, _)| *node).collect();
        let before = match within(PATIENCE, stop, || session.records())? {
            Ok(records) => records,
            Err(why) => return Ok(unavailable(format!("it does not tell its records {why}"))),
        };
        // Of a number that nothing that was sent has.
        let new = before.last().unwrap_or(&0) + 1_000_000;
        let added = put_new(
            new,
            session,
            PATIENCE,
            stop,
            || self.cluster.connect(directories, &first),
            || have_all_ended(&running),
        )?;
        let Added {
            mut session,
            record: new,
            unsure,
        } = match added {
            Ok(added) => added,
            Err(why) => return Ok(unavailable(format!("it takes no new record: {why}"))),
        };
        if !boot.late().is_empty() {
            drop(session);
            running.extend(self.start(boot.late(), directories, stop)?);
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
        after = &after - &unsure;
        let mut disagreement = ended(&running);
        for (node, _) in &running {
            if disagreement.is_none() {
                disagreement = self
                    .agrees(*node, (directories, &running), (&after, &unsure), stop)?
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
            disagreement,
            ..Found::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    /// Of a cluster that has no time for so many records yet.
    struct Slow(Rc<Cell<u32>>);

    impl ClusterSession for Slow {
        fn put(&mut self, _: u64) -> Result<(), DatabaseError> {
            let left = self.0.get();
            self.0.set(left.saturating_sub(1));
            if left == 0 {
                Ok(())
            } else {
                Err(DatabaseError::Late("no time".into()))
            }
        }

        fn records(&mut self) -> Result<BTreeSet<u64>, DatabaseError> {
            Ok(BTreeSet::new())
        }
    }

    fn put_late(late: u32, is_over: bool) -> Result<Added, String> {
        let left = Rc::new(Cell::new(late));
        let connect = || -> Result<Box<dyn ClusterSession>, DatabaseError> {
            Ok(Box::new(Slow(Rc::clone(&left))))
        };
        let session = connect().unwrap_or_else(|error| panic!("{error}"));
        let stop = Stop::default();
        put_new(7, session, PATIENCE, &stop, connect, || is_over).unwrap()
    }

    #[test]
    fn a_cluster_that_has_no_time_is_asked_again_with_another_record() {
        for (late, unsure) in [(0, BTreeSet::new()), (2, BTreeSet::from([7, 8]))] {
            let added = put_late(late, false).unwrap_or_else(|why| panic!("{why}"));
            assert_eq!(added.record, 7 + u64::from(late));
            assert_eq!(added.unsure, unsure);
        }
    }

    #[test]
    fn a_cluster_that_has_ended_is_not_asked_again() {
        assert_eq!(put_late(1, true).err().as_deref(), Some("no time"));
    }
}
