//! The engine's log: batches that several threads commit at the same time.
//!
//! A record says whose it is and where in its batch; the rest of it follows from that. It also says below
//! which transaction all may be truncated from now on: those are as good as there, and no others. Only who has
//! committed a record that says so truncates up to there.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use landfall::{Log, Lsn, Options};

use super::engine::{cannot, recovered};
use super::{lock, name_of};
use crate::Stop;
use crate::subject::{
    AckSink, Promise, Recovered, Subject, SubjectError, SubjectName, at_the_same_time,
};
use crate::transactions::pseudo_random;
use landfall_databases::registry::Kind;
use landfall_databases::setting::{Chosen, Description, Setting, SettingError};

const DIRECTORY: &str = "log";
/// Bytes of a record that say what it is: transaction, place, how many there are, the floor.
const HEAD: usize = 24;
#[cfg(feature = "mistakes")]
const NO_MISTAKE: &str = "none";
/// A client truncates after so many of its transactions.
const TRUNCATE_EVERY: u64 = 8;

pub(super) static KIND: Kind<dyn Subject> = Kind {
    listed: (),
    description: Description {
        name: "landfall-log",
        about: "Landfall's own durable log, linked in",
        passes_on: None,
        settings: &[
            Setting {
                name: "clients",
                default: Some("3"),
                about: "threads that commit at the same time, 1 to 64",
                always_shown: true,
            },
            Setting {
                name: "records",
                default: Some("2"),
                about: "records of a transaction, which are one batch",
                always_shown: false,
            },
            Setting {
                name: "size",
                default: Some("200"),
                about: "bytes of a record",
                always_shown: true,
            },
            Setting {
                name: "segment",
                default: Some("64K"),
                about: "bytes of a segment: small ones are many",
                always_shown: false,
            },
            Setting {
                name: "truncate",
                default: Some("yes"),
                about: "whether what was acknowledged is truncated now and then: yes or no",
                always_shown: false,
            },
            Setting {
                name: "commit-every",
                default: Some("1"),
                about: "transactions that a client appends before it commits them together, 1 to 64",
                always_shown: false,
            },
            Setting {
                name: "pause",
                default: Some("0"),
                about: "milliseconds that a client waits after what it does not commit yet, 0 to 1000",
                always_shown: false,
            },
            Setting {
                name: "unwritten",
                default: Some("1M"),
                about: "bytes that may wait in memory for a commit: more are written, and not yet durable",
                always_shown: false,
            },
            #[cfg(feature = "mistakes")]
            Setting {
                name: "mistake",
                default: Some(NO_MISTAKE),
                about: "a mistake that the log makes, or 'none'",
                always_shown: true,
            },
        ],
    },
    make: |chosen| Ok(Box::new(make(chosen)?)),
};

/// What a check appends.
const PROBE: &[u8] = b"after the power cut";

struct LogSubject {
    name: SubjectName,
    clients: NonZeroU32,
    records: u32,
    size: usize,
    segment: u64,
    truncates: bool,
    commit_every: usize,
    pause: Duration,
    unwritten: u64,
    #[cfg(feature = "mistakes")]
    mistake: Option<String>,
}

fn make(chosen: &Chosen) -> Result<LogSubject, SettingError> {
    #[cfg(feature = "mistakes")]
    let mistake = Some(chosen.text("mistake").to_owned()).filter(|name| name != NO_MISTAKE);
    #[cfg(feature = "mistakes")]
    if !landfall::mistakes::plant(mistake.as_deref()) {
        return Err(chosen.wrong("mistake", "the log makes no mistake of this name"));
    }
    let clients = chosen.number("clients", 1, 64)? as u32;
    Ok(LogSubject {
        name: name_of(chosen),
        clients: NonZeroU32::new(clients).unwrap_or(NonZeroU32::MIN),
        records: chosen.number("records", 1, 1000)? as u32,
        size: chosen.size("size", HEAD as u64, 16 << 20)? as usize,
        segment: chosen.size("segment", 16 << 10, 1 << 30)?,
        truncates: chosen.whether("truncate")?,
        commit_every: chosen.number("commit-every", 1, 64)? as usize,
        pause: Duration::from_millis(chosen.number("pause", 0, 1000)?),
        unwritten: chosen.size("unwritten", 1, 1 << 20)?,
        #[cfg(feature = "mistakes")]
        mistake,
    })
}

/// What the clients know of each other's transactions.
#[derive(Default)]
struct Known {
    /// Sent, and not acknowledged.
    pending: BTreeSet<u64>,
    /// The first record of each that was appended and may be needed.
    lsns: BTreeMap<u64, u64>,
    /// The greatest that was sent.
    last: u64,
    /// All below may be truncated, as records say that are sent from now on.
    given_up: u64,
}

impl Known {
    /// All transactions below were acknowledged.
    fn floor(&self) -> u64 {
        self.pending.first().copied().unwrap_or(self.last + 1)
    }
}

/// Acknowledges what is durable now.
fn acknowledge(durable: &mut Vec<u64>, known: &Mutex<Known>, sink: &Mutex<&mut dyn AckSink>) {
    for transaction in durable.drain(..) {
        lock(sink).acknowledge(transaction);
        lock(known).pending.remove(&transaction);
    }
}

impl LogSubject {
    fn open(&self, directory: &Path) -> Result<Log, landfall::Error> {
        // Another subject of this process may make another one.
        #[cfg(feature = "mistakes")]
        landfall::mistakes::plant(self.mistake.as_deref());
        let options = Options::default()
            .segment_bytes(self.segment)
            .max_unwritten_bytes(self.unwritten);
        Log::open(directory.join(DIRECTORY), options)
    }

    fn record(&self, transaction: u64, place: u32, floor: u64) -> Vec<u8> {
        let mut record = vec![0; self.size];
        pseudo_random(&mut record, transaction << 16 | u64::from(place));
        record[0..8].copy_from_slice(&transaction.to_le_bytes());
        record[8..12].copy_from_slice(&place.to_le_bytes());
        record[12..16].copy_from_slice(&self.records.to_le_bytes());
        record[16..24].copy_from_slice(&floor.to_le_bytes());
        record
    }

    /// Runs one client's transactions until the sink, or another client, has had enough.
    fn client(
        &self,
        log: &Log,
        known: &Mutex<Known>,
        sink: &Mutex<&mut dyn AckSink>,
        ended: &AtomicBool,
    ) -> Result<(), SubjectError> {
        let mut done = 0;
        // Appended, and not committed yet.
        let mut appended = Vec::new();
        while !ended.load(Ordering::Relaxed) {
            let sent = {
                let mut sink = lock(sink);
                let mut known = lock(known);
                sink.send().map(|transaction| {
                    known.pending.insert(transaction);
                    // No record of it will have a smaller one: until it is appended nothing behind this is truncated.
                    known.lsns.insert(transaction, log.next_lsn().0);
                    known.last = known.last.max(transaction);
                    (transaction, known.given_up)
                })
            };
            let Some((transaction, floor)) = sent else {
                break;
            };
            let failed = |error| SubjectError(format!("transaction {transaction} failed: {error}"));
            let records: Vec<Vec<u8>> = (0..self.records)
                .map(|place| self.record(transaction, place, floor))
                .collect();
            let slices: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
            let lsns = log.append_batch(&slices).map_err(failed)?;
            lock(known).lsns.insert(transaction, lsns.start.0);
            appended.push(transaction);
            done += 1;
            if appended.len() < self.commit_every {
                thread::sleep(self.pause);
                continue;
            }
            log.commit_to(Lsn(lsns.end.0 - 1)).map_err(failed)?;
            acknowledge(&mut appended, known, sink);
            if self.truncates && done % TRUNCATE_EVERY == 0 {
                // That floor is in the log, durably.
                let needed = {
                    let mut known = lock(known);
                    known.lsns = known.lsns.split_off(&floor);
                    known.given_up = known.floor();
                    known.lsns.values().min().copied()
                };
                if let Some(lsn) = needed {
                    log.truncate_before(Lsn(lsn)).map_err(failed)?;
                }
            }
        }
        log.commit().map_err(cannot)?;
        acknowledge(&mut appended, known, sink);
        Ok(())
    }

    /// Everything that is there.
    fn read(&self, log: &Log) -> Result<Recovered, landfall::Error> {
        let mut found = Recovered::default();
        let mut places: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
        let mut floor = 1;
        let mut reader = log.read(log.first_lsn())?;
        while let Some(record) = reader.next()? {
            match self.identify(record.bytes) {
                Some((transaction, place, below)) => {
                    floor = floor.max(below);
                    if !places.entry(transaction).or_default().insert(place) {
                        let text = format!("record {place} of transaction {transaction} twice");
                        found.invented.push(text);
                    }
                }
                // A check has recovered from this once, and the power went again.
                None if record.bytes == PROBE => {}
                None => {
                    let text = format!("record {} is none that was appended", record.lsn);
                    found.invented.push(text);
                }
            }
        }
        for (transaction, places) in places {
            if places.len() == self.records as usize || transaction < floor {
                found.whole.insert(transaction)
            } else {
                found.partial.insert(transaction)
            };
        }
        found.whole.extend(1..floor);
        Ok(found)
    }

    fn identify(&self, bytes: &[u8]) -> Option<(u64, u32, u64)> {
        let word = |at: usize| {
            bytes
                .get(at..at + 8)?
                .try_into()
                .ok()
                .map(u64::from_le_bytes)
        };
        let half = |at: usize| {
            bytes
                .get(at..at + 4)?
                .try_into()
                .ok()
                .map(u32::from_le_bytes)
        };
        let (transaction, place, floor) = (word(0)?, half(8)?, word(16)?);
        (self.record(transaction, place, floor) == bytes).then_some((transaction, place, floor))
    }
}

impl Subject for LogSubject {
    fn name(&self) -> SubjectName {
        self.name.clone()
    }

    fn promise(&self) -> Promise {
        Promise {
            atomic: true,
            // Which of several threads comes first is not the order in which they were sent.
            ordered: self.clients.get() == 1,
        }
    }

    fn reads_times(&self) -> bool {
        false
    }

    fn prepare(&self, directory: &Path, _: &Stop) -> Result<(), SubjectError> {
        let made = self.open(directory).and_then(Log::close);
        made.map_err(cannot)
    }

    fn run(&self, directory: &Path, sink: &mut dyn AckSink, _: &Stop) -> Result<(), SubjectError> {
        let log = self.open(directory).map_err(cannot)?;
        let (known, ended) = (Mutex::new(Known::default()), AtomicBool::new(false));
        let sink = Mutex::new(sink);
        at_the_same_time(self.clients.get(), |_| {
            self.client(&log, &known, &sink, &ended)
                .inspect_err(|_| ended.store(true, Ordering::Relaxed))
        })?;
        log.close().map_err(cannot)
    }

    fn check(&self, directory: &Path, _: &Stop) -> Result<Recovered, SubjectError> {
        let found = self.open(directory).and_then(|log| {
            let found = self.read(&log)?;
            // What was recovered must take more.
            log.append_durable(PROBE)?;
            Ok(found)
        });
        recovered(found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::*;
    use super::*;

    #[test]
    fn what_was_acknowledged_is_found() {
        for set in [
            "clients=1",
            "clients=3",
            "clients=3 truncate=no",
            "clients=2 size=5000 segment=16K",
            "clients=8 records=1",
        ] {
            let subject = subject("landfall-log", set);
            let directory = directory();
            let mut sink = Counting::new(60);
            let ran = subject
                .prepare(directory.path(), &Stop::default())
                .and_then(|()| subject.run(directory.path(), &mut sink, &Stop::default()));
            ran.unwrap();
            // Several clients are done in an order of their own.
            sink.acknowledged.sort_unstable();
            assert_eq!(sink.acknowledged, (1..=60).collect::<Vec<_>>(), "{set}");
            assert_eq!(check(&*subject, directory.path()), all_whole(60), "{set}");
        }
    }

    #[test]
    fn what_nobody_has_given_up_is_missed() {
        let whole: BTreeSet<u64> = (11..=60).collect();
        for truncate in ["yes", "no"] {
            let set = format!("clients=1 truncate={truncate}");
            let subject = subject("landfall-log", &set);
            let directory = run(&*subject, 60).unwrap();
            let log = Log::open(directory.path().join(DIRECTORY), Options::default()).unwrap();
            // Of each transaction there are two records.
            let lost = if truncate == "yes" { 118 } else { 20 };
            log.truncate_before(Lsn(lost + 1)).unwrap();
            log.close().unwrap();
            let found = check(&*subject, directory.path()).whole;
            match truncate {
                "no" => assert_eq!(found, whole),
                _ => assert!(!found.contains(&59) && found.contains(&48), "{found:?}"),
            }
        }
    }

    #[test]
    fn what_nobody_appended_is_seen() {
        let subject = subject("landfall-log", "clients=1 truncate=no");
        let directory = run(&*subject, 3).unwrap();
        let log = Log::open(directory.path().join(DIRECTORY), Options::default()).unwrap();
        log.append_durable(b"foreign").unwrap();
        log.close().unwrap();
        let found = check(&*subject, directory.path());
        assert_eq!(found.invented.len(), 1, "{found:?}");
    }
}
