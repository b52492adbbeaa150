//! A database: a server that is started for the run and again for each crash state, or a store that is
//! linked in.
//!
//! Several clients run transactions of several rows at the same time; each is acknowledged when the
//! database has said that it is committed. After a power cut the real database recovers, everything is
//! read back, and it is asked to check itself.
//!
//! - `tables`, `keys`: how a transaction, which is of a [`shape`](crate::transactions), is said to databases of either kind;
//! - `hazards`: what can happen in which, and where it has pages;
//! - `maintenance`: what it is told to do between transactions;
//! - `binlog`: what MariaDB has written for replicas.
//!
//! A database that does not start on a crash state, or ends while it is read, is damaged; one that cannot
//! be started for another reason says nothing.
//!
//! Threads: one for each client. What a client says goes through a lock, so that its word has one place
//! among the device's writes; the lock is never held while the database is asked.

mod binlog;
mod hazards;
mod keys;
mod maintenance;
mod tables;

use std::num::{NonZeroU32, NonZeroU64};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use landfall_os::humanize::duration_text;

use super::name_of;
use crate::Stop;
use crate::subject::{
    AckSink, Hazard, Promise, Recovered, Subject, SubjectError, SubjectName, at_the_same_time,
};
use crate::transactions::shape::{Remains, Shape};
use landfall_databases::registry::Kind;
use landfall_databases::setting::{Chosen, Description, PassedOn, Setting, SettingError};
use landfall_databases::{
    Database, DatabaseError, Form, Interface, Listed, Running, Session, Templates,
};
use maintenance::Maintained;

const MIB: u64 = 1 << 20;
/// Times that a transaction is tried again after conflicts with others.
const MOST_TRIES: u32 = 20;
/// How long a database may say that it has no time, before it counts as one that never will.
const ANSWERING: Duration = Duration::from_secs(10 * 60);

static SETTINGS: [Setting; 5] = [
    Setting {
        name: "clients",
        default: Some("3"),
        about: "clients that run transactions at the same time",
        always_shown: false,
    },
    Setting {
        name: "rows",
        default: Some("64"),
        about: "rows that each client overwrites again and again, besides those that it adds",
        always_shown: false,
    },
    Setting {
        name: "size",
        default: Some("200"),
        about: "bytes in a row",
        always_shown: false,
    },
    Setting {
        name: "checkpoint-every",
        default: Some("20"),
        about: "transactions between two checkpoints, or what else the database can be told to do that writes over old data or removes it; 0: it is told nothing",
        always_shown: false,
    },
    Setting {
        name: "ending",
        default: Some("kill"),
        about: "how a server ends after the last transaction: 'kill', or 'stop', so that the power is cut while it stops in order too; what is linked in always closes in order",
        always_shown: false,
    },
];

/// Who is told what clients say, one at a time.
type Sink<'a> = Mutex<&'a mut dyn AckSink>;

/// What is different from database to database.
struct Small {
    name: &'static str,
    /// Settings that make it small, so that a crash state is soon recovered; each can be set otherwise.
    settings: &'static [(&'static str, &'static str)],
    /// Bytes that its directory needs with these.
    capacity: u64,
}

static SMALL: [Small; 7] = [
    Small {
        name: "mariadb",
        settings: &[
            ("innodb_buffer_pool_size", "16M"),
            ("innodb_log_file_size", "4M"),
            ("innodb_undo_tablespaces", "0"),
        ],
        capacity: 96 * MIB,
    },
    Small {
        name: "myrocks",
        settings: &[("rocksdb_block_cache_size", "16M"), ("memtable", "1M")],
        capacity: 160 * MIB,
    },
    Small {
        name: "postgres",
        settings: &[("shared_buffers", "16M"), ("wal_segment_size", "1M")],
        capacity: 96 * MIB,
    },
    Small {
        name: "etcd",
        // Otherwise a run is over before its pages are written once, or a snapshot is made.
        settings: &[("backend-batch-limit", "20"), ("snapshot-count", "20")],
        // It reserves 61 MiB for each file of its log, and the next one ahead.
        capacity: 224 * MIB,
    },
    Small {
        name: "rocksdb",
        // It reserves as much for a file of its log.
        settings: &[("write_buffer_size", "1M")],
        capacity: 0,
    },
    Small {
        name: "lmdb",
        settings: &[("map_size", "64M")],
        capacity: 0,
    },
    Small {
        name: "landfall-store",
        // It reserves as much for a segment of its log, and recovery begins another one.
        settings: &[("segment", "256K")],
        capacity: 0,
    },
];

/// A subject for each database but those that `is_left_out` names. They live as long as the program.
pub(super) fn kinds(
    is_left_out: impl Fn(&str) -> bool,
) -> impl Iterator<Item = &'static Kind<dyn Subject>> {
    let databases = landfall_databases::KINDS.iter();
    let databases = databases.filter(move |database| !is_left_out(database.description.name));
    databases.map(|database| &*Box::leak(Box::new(kind(database))))
}

fn kind(database: &Kind<dyn Database, Listed>) -> Kind<dyn Subject> {
    let form = match database.listed.form {
        Form::Server => "a server started for it",
        Form::LinkedIn => "linked in",
        Form::LinkedInOnRequest => "linked in where it was asked for",
    };
    Kind {
        listed: (),
        description: Description {
            name: database.description.name,
            about: format!("{}, {form}", database.listed.title).leak(),
            settings: &SETTINGS,
            passes_on: Some(PassedOn {
                what: "a setting of the database; see landfall subjects",
                spelling: match database.description.passes_on {
                    Some(passed_on) => passed_on.spelling,
                    None => str::to_owned,
                },
            }),
        },
        make,
    }
}

struct DatabaseSubject {
    name: SubjectName,
    is_linked_in: bool,
    database: Box<dyn Database>,
    clients: NonZeroU32,
    shape: Shape,
    /// Transactions between two times that it is told to do what it does besides.
    checkpoint_every: Option<NonZeroU64>,
    stops: bool,
    capacity: u64,
    known: Option<&'static hazards::Known>,
    /// Bytes of its pages, if it has any.
    page: Option<NonZeroU64>,
}

fn make(chosen: &Chosen) -> Result<Box<dyn Subject>, SettingError> {
    let name = chosen.subject();
    let small = SMALL.iter().find(|small| small.name == name);
    let (small, capacity) = small.map_or((&[][..], 0), |small| (small.settings, small.capacity));
    let mut settings = chosen.passed_on().to_vec();
    for (key, value) in small {
        if !settings.iter().any(|(set, _)| set == key) {
            settings.push(((*key).to_owned(), (*value).to_owned()));
        }
    }
    let unfit = hazards::hidden(name, &settings).or_else(|| binlog::silent(name, &settings));
    if let Some(why) = unfit {
        return Err(SettingError(format!("{}: {why}", chosen.name())));
    }
    let clients = chosen.number("clients", 1, 64)?;
    let known = hazards::of(name, &settings);
    Ok(Box::new(DatabaseSubject {
        name: name_of(chosen),
        is_linked_in: landfall_databases::linked_in().any(|one| one.name == name),
        database: landfall_databases::named(name, &settings)?,
        clients: NonZeroU32::new(clients as u32).unwrap_or(NonZeroU32::MIN),
        shape: Shape {
            rows: chosen.number("rows", 2, 1 << 16)?,
            size: chosen.size("size", 16, 8 << 10)? as usize,
        },
        checkpoint_every: NonZeroU64::new(chosen.number("checkpoint-every", 0, 1_000_000)?),
        stops: chosen.one_of("ending", &[("kill", false), ("stop", true)])?,
        capacity,
        known,
        page: known.and_then(|known| known.page(&settings)),
    }))
}

/// Whether a switch of MariaDB is off with this value.
fn is_off(value: &str) -> bool {
    ["0", "off", "false"].contains(&value.to_lowercase().as_str())
}

impl DatabaseSubject {
    fn fill(&self, running: &dyn Running) -> Result<(), DatabaseError> {
        let clients = self.clients.get();
        match running.session()? {
            Session::Sql(mut sql) => tables::create(sql.as_mut(), &self.shape, clients),
            Session::Keys(mut keys) => keys::create(keys.as_mut(), &self.shape, clients),
        }
    }

    /// Everything that is there.
    fn read(&self, running: &dyn Running) -> Result<(Remains, Option<String>), DatabaseError> {
        match running.session()? {
            Session::Sql(mut sql) => {
                let remains = tables::read(sql.as_mut())?;
                let diverged = binlog::difference(sql.as_mut(), &remains)?;
                Ok((remains, diverged))
            }
            Session::Keys(mut keys) => {
                let in_order = self.database.interface() == Interface::OrderedKeys;
                let clients = self.clients.get();
                let remains = keys::read(keys.as_mut(), &self.shape, clients, in_order)?;
                Ok((remains, None))
            }
        }
    }

    /// Runs one client's transactions until the sink, or another client, has had enough.
    fn client(
        &self,
        session: Session,
        client: u32,
        sink: &Sink<'_>,
        maintained: &Maintained<'_>,
        ended: &AtomicBool,
        stop: &Stop,
    ) -> Result<(), SubjectError> {
        let mut client: Box<dyn Commit> = match session {
            Session::Sql(sql) => Box::new(tables::Client::new(sql, client).map_err(failed)?),
            Session::Keys(keys) => Box::new(keys::Client::new(keys, client)),
        };
        let locked = || sink.lock().unwrap_or_else(PoisonError::into_inner);
        while !ended.load(Ordering::Relaxed) {
            let Some(transaction) = locked().send() else {
                break;
            };
            let mut tries = 0;
            loop {
                match client.commit(&self.shape, transaction) {
                    Ok(()) => break,
                    // Nothing of it was done.
                    Err(DatabaseError::Conflict(_)) if tries < MOST_TRIES => tries += 1,
                    Err(error) => {
                        let text = format!("transaction {transaction} failed: {error}");
                        return Err(SubjectError(text));
                    }
                }
            }
            locked().acknowledge(transaction);
            maintained.after(transaction, sink, stop).map_err(failed)?;
        }
        Ok(())
    }
}

/// A client that commits transactions.
trait Commit {
    /// Returns when the database says that it is committed.
    fn commit(&mut self, shape: &Shape, transaction: u64) -> Result<(), DatabaseError>;
}

impl Subject for DatabaseSubject {
    fn name(&self) -> SubjectName {
        self.name.clone()
    }

    fn promise(&self) -> Promise {
        Promise {
            atomic: true,
            // Of transactions that run at the same time any may be committed first.
            ordered: self.clients.get() == 1,
        }
    }

    fn is_linked_in(&self) -> bool {
        self.is_linked_in
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn reads_times(&self) -> bool {
        false
    }

    fn hazards(&self) -> Vec<(Hazard, &'static [&'static str])> {
        self.known
            .map_or_else(Vec::new, |known| known.hazards.to_vec())
    }

    fn page_size(&self, file: &str) -> Option<NonZeroU64> {
        self.page
            .filter(|_| self.known.is_some_and(|known| (known.has_pages)(file)))
    }

    fn prepare(&self, directory: &Path, stop: &Stop) -> Result<(), SubjectError> {
        let templates = Templates::new(&std::env::temp_dir());
        let make = || {
            self.database.create(directory, &templates, stop)?;
            let running = self.database.start(directory, stop)?;
            self.fill(running.as_ref())?;
            running.stop()
        };
        make().map_err(failed)
    }

    fn run(
        &self,
        directory: &Path,
        sink: &mut dyn AckSink,
        stop: &Stop,
    ) -> Result<(), SubjectError> {
        let running = self.database.start(directory, stop).map_err(failed)?;
        let ended = AtomicBool::new(false);
        let sink = Mutex::new(sink);
        let maintained =
            Maintained::new(running.as_ref(), self.checkpoint_every).map_err(failed)?;
        at_the_same_time(self.clients.get(), |client| {
            let session = running.session().map_err(failed);
            session
                .and_then(|session| self.client(session, client, &sink, &maintained, &ended, stop))
                .inspect_err(|_| ended.store(true, Ordering::Relaxed))
        })?;
        maintained.tell_counts(&sink).map_err(failed)?;
        drop(maintained);
        if self.stops {
            running.stop().map_err(failed)
        } else {
            Ok(())
        }
    }

    fn check(&self, directory: &Path, stop: &Stop) -> Result<Recovered, SubjectError> {
        let running = match self.database.start(directory, stop) {
            Ok(running) => running,
            // With these settings it was started before: what it complains of now is what it finds.
            Err(DatabaseError::DoesNotStart(why) | DatabaseError::Setting(why)) => {
                return Ok(Recovered::damaged(why));
            }
            Err(error) => return Err(failed(error)),
        };
        let read = until_answered(ANSWERING, stop, || self.read(running.as_ref()));
        let (remains, diverged) = match read {
            Ok(read) => read,
            Err(DatabaseError::Failed(why)) => return Ok(Recovered::damaged(why)),
            Err(error) => return Err(failed(error)),
        };
        let damage = match running.verify(stop) {
            Ok(complaint) => complaint,
            Err(DatabaseError::Failed(why)) => Some(why),
            // What it has to check itself with is not here; everything was read all the same.
            Err(DatabaseError::NotInstalled { .. }) => None,
            Err(error) => return Err(failed(error)),
        };
        // It is killed: what it would still write goes with the state.
        drop(running);
        let mut found = remains.found(&self.shape, self.clients.get());
        found.damage = damage.or(found.damage);
        found.diverged = diverged;
        Ok(found)
    }
}

/// What is answered, asked again for as long as the database says that it has no time; one that says nothing else is
/// damaged.
fn until_answered<T>(
    most: Duration,
    stop: &Stop,
    mut ask: impl FnMut() -> Result<T, DatabaseError>,
) -> Result<T, DatabaseError> {
    let begin = Instant::now();
    loop {
        match ask() {
            Err(DatabaseError::Late(why)) if begin.elapsed() >= most => {
                let most = duration_text(most.as_secs_f64());
                return Err(DatabaseError::Failed(format!(
                    "it recovers, and answers for {most} that it has no time ({why})"
                )));
            }
            Err(DatabaseError::Late(_)) if stop.is_requested() => {
                return Err(DatabaseError::Stopped);
            }
            Err(DatabaseError::Late(_)) => {}
            answered => return answered,
        }
    }
}

fn failed(error: DatabaseError) -> SubjectError {
    SubjectError(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_only_says_that_it_has_no_time_is_damaged_in_the_end() {
        let stop = Stop::default();
        let late = || DatabaseError::Late("request timed out".into());
        let never = until_answered::<()>(Duration::ZERO, &stop, || Err(late()));
        let Err(DatabaseError::Failed(why)) = never else {
            panic!("{never:?}");
        };
        assert!(
            why.ends_with("that it has no time (request timed out)"),
            "{why}"
        );
        let mut asked = 0;
        let answered = until_answered(ANSWERING, &stop, || {
            asked += 1;
            if asked < 3 { Err(late()) } else { Ok(asked) }
        });
        assert_eq!(answered, Ok(3));
    }
}
