//! PostgreSQL as a cluster: one primary, and standbys to which it streams its log.
//!
//! Node 0 is the primary at first. Which one is later is said by the nodes' own files: a standby has `standby.signal`, and of two
//! primaries the one counts whose timeline is later. What follows a power cut is what an operator does who has no cluster manager:
//!
//! - If no primary was started, the standby with the most log is promoted, once all have replayed what they have.
//! - A primary that starts where another one leads on a later timeline becomes its standby: it is rewound (`pg_rewind`), and
//!   copied anew (`pg_basebackup`) if that fails. So what only it had is gone.
//! - A primary that has started before that was known stays as it is, and nobody is led to it, until it is started again.
//!
//! Threads: what is asked is asked in a thread of its own, which is left behind if no answer comes in time: a commit that waits
//! for a standby cannot be cancelled without its being told to have been done. It ends with the server.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use postgres::{Client, Config, NoTls};

use super::options::{Options, as_parameter};
use super::session::failed;
use super::standby::{become_standby, hexadecimal, is_standby, port, primary, take_back, timeline};
use super::{BUFFERS, CHECKSUMS, Programs, TITLE, begin, create, presence, refused, start};
use crate::cluster::failover::{Operated, Position, Role, lead, leader_elsewhere};
use crate::cluster::{ANSWERING, Cluster, ClusterSession, ListedCluster, Node, private};
use crate::registry::Kind;
use crate::server::Ending;
use crate::setting::{Chosen, Description, PassedOn, Setting};
use crate::{DatabaseError, Running, Templates};
use landfall_os::{Stop, copy_directory, sync_filesystem};

/// Where a node's data are in its directory, which may be a filesystem's own.
const DATA: &str = "data";
/// The least that a node has in a small filesystem: its empty database, files of its log, and room for a copy.
const CAPACITY: u64 = 256 << 20;
/// How long a connection may take that somebody accepts: the rest of the time is for what is asked.
const CONNECTING: Duration = Duration::from_secs(2);

pub(crate) static KIND: Kind<dyn Cluster, ListedCluster> = Kind {
    description: Description {
        name: "postgres",
        about: "PostgreSQL, a primary and its standbys (streaming replication)",
        passes_on: Some(PassedOn {
            what: "a configuration parameter of each server",
            spelling: as_parameter,
        }),
        settings: &[
            Setting {
                name: "synchronous_commit",
                default: Some("on"),
                about: "what a commit waits for: on: until its log is durable here and there; remote_apply: and applied there; remote_write: there only written; local: durable here; off: nothing",
                always_shown: true,
            },
            Setting {
                name: "synchronous_standby_names",
                default: Some("ANY 1 (*)"),
                about: "the standbys that a commit waits for, as PostgreSQL takes it; node 1 is called n1",
                always_shown: true,
            },
            Setting {
                name: "fsync",
                default: Some("on"),
                about: "whether anything is synced: on or off",
                always_shown: false,
            },
            BUFFERS,
            Setting {
                name: "wal_segment_size",
                // A node is small, and each is made and copied often.
                default: Some("1M"),
                about: "bytes of a file of the log, a power of two from 1M to 1G",
                always_shown: false,
            },
            CHECKSUMS,
        ],
    },
    listed: ListedCluster {
        presence,
        title: "PostgreSQL servers",
    },
    make: |chosen| {
        Ok(Box::new(PostgresCluster {
            options: Options::of_cluster(chosen)?,
            waits: waits(chosen),
            chosen: chosen.clone(),
        }))
    },
};

struct PostgresCluster {
    options: Options,
    /// Whether a commit waits for standbys.
    waits: bool,
    chosen: Chosen,
}

fn waits(chosen: &Chosen) -> bool {
    let commit = chosen.text("synchronous_commit");
    let names = chosen.text("synchronous_standby_names");
    !["local", "off"].contains(&commit) && !names.trim().is_empty()
}

impl Cluster for PostgresCluster {
    fn chosen(&self) -> &Chosen {
        &self.chosen
    }

    fn capacity(&self) -> u64 {
        CAPACITY
    }

    fn create(
        &self,
        directories: &[PathBuf],
        templates: &Templates,
        stop: &Stop,
    ) -> Result<(), DatabaseError> {
        let programs = Programs::required()?;
        let data: Vec<PathBuf> = directories.iter().map(|one| one.join(DATA)).collect();
        for one in &data {
            fs::create_dir(one).map_err(refused(one))?;
        }
        create(&programs, &self.options, &data[0], templates, stop)?;
        // By itself, so that it says what it does not like of its settings.
        let running = start(&programs, &self.options.alone(), &data[0], stop)?;
        running.run("CREATE TABLE records (id bigint PRIMARY KEY)")?;
        Box::new(running).stop()?;
        for (node, standby) in data.iter().enumerate().skip(1) {
            copy_directory(&data[0], standby, stop).map_err(|error| match error.kind() {
                io::ErrorKind::Interrupted => DatabaseError::Stopped,
                _ => DatabaseError::io("cannot copy the primary to a standby", &error),
            })?;
            become_standby(standby, node, 0)?;
            programs.adopt(standby)?;
        }
        for one in &data {
            let synced = fs::File::open(one).and_then(|open| sync_filesystem(&open));
            synced.map_err(|error| DatabaseError::io("cannot sync the nodes", &error))?;
        }
        Ok(())
    }

    fn start(
        &self,
        node: usize,
        directories: &[PathBuf],
        stop: &Stop,
    ) -> Result<Node, DatabaseError> {
        let programs = Programs::required()?;
        let data = &directories[node].join(DATA);
        let elsewhere = leader_elsewhere(self, node, directories.len());
        if let Some((leader, position)) = elsewhere
            && position.term > timeline(data)?
        {
            if !is_standby(data) {
                take_back(&programs, data, leader, stop)?;
            }
            become_standby(data, node, leader)?;
            programs.adopt(data)?;
        }
        let last = [
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={}", port(node)),
        ];
        let server = begin(&programs, &self.options, data, private()?, &last)?;
        Ok(Node::of(server, Ending::Interrupt))
    }

    fn connect(
        &self,
        _: &[PathBuf],
        started: &[usize],
    ) -> Result<Box<dyn ClusterSession>, DatabaseError> {
        let (leader, mut admin) = lead(self, started)?;
        if self.waits {
            let sql =
                "SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')";
            let standbys: i64 = ask(&mut admin.client, move |client| {
                client.query_one(sql, &[])?.try_get(0)
            })?;
            if standbys == 0 {
                return Err(DatabaseError::Late(format!(
                    "no standby follows node {leader}, for which its commits wait"
                )));
            }
        }
        let mut session = Session {
            client: Some(connect(leader)?),
        };
        // Nobody reads it, and yet its commit waits as any other.
        session.ask(|client| {
            client.batch_execute("SELECT pg_logical_emit_message(true, 'landfall', 'ready')")
        })?;
        Ok(Box::new(session))
    }

    fn records_of(&self, node: usize) -> Result<Option<BTreeSet<u64>>, DatabaseError> {
        let mut client = Some(connect(node)?);
        ask(&mut client, records).map(Some)
    }
}

/// An administrator's connection to a node.
struct Admin {
    node: usize,
    client: Option<Client>,
}

impl Operated for PostgresCluster {
    type Connection = Admin;

    fn administer(&self, node: usize) -> Result<Admin, DatabaseError> {
        let client = Some(connect(node)?);
        Ok(Admin { node, client })
    }

    fn role(&self, admin: &mut Admin) -> Result<(Role, Position), DatabaseError> {
        let node = admin.node;
        // What a standby received last is known from when it began to only, and what it replayed is part of it. It has replayed
        // all that it has when it waits for more.
        let sql = "SELECT pg_is_in_recovery(), \
            (SELECT max(left(name, 8)) FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{8}'), \
            pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() \
                THEN greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) \
                ELSE pg_current_wal_lsn() END, '0/0')::bigint, \
            EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming') OR \
            EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'startup' \
                AND wait_event IN ('RecoveryRetrieveRetryInterval', 'RecoveryWalStream'))";
        let (follows, timeline, lsn, is_done) = ask(&mut admin.client, move |client| {
            let row = client.query_one(sql, &[])?;
            let timeline: Option<String> = row.try_get(1)?;
            let lsn: Option<i64> = row.try_get(2)?;
            let (follows, is_done): (bool, bool) = (row.try_get(0)?, row.try_get(3)?);
            Ok((follows, timeline, lsn, is_done))
        })?;
        if follows && !is_done {
            return Err(DatabaseError::Late(format!(
                "node {node} still replays the log that it has"
            )));
        }
        let role = if follows { Role::Follows } else { Role::Leads };
        let position = Position {
            term: timeline.map_or(0, |name| hexadecimal(&name)),
            offset: lsn.unwrap_or(0) as u64,
            records: 0,
        };
        Ok((role, position))
    }

    fn promote(&self, admin: &mut Admin) -> Result<(), DatabaseError> {
        let node = admin.node;
        let seconds = ANSWERING.as_secs() as i32 - 1;
        let promoted: bool = ask(&mut admin.client, move |client| {
            let sql = "SELECT pg_promote(true, $1)";
            client.query_one(sql, &[&seconds])?.try_get(0)
        })?;
        if !promoted {
            return Err(DatabaseError::Late(format!(
                "node {node} was promoted, and does not lead yet"
            )));
        }
        // Whoever is rewound looks for its timeline in its control file, where only a checkpoint writes it.
        ask(&mut admin.client, |client| {
            client.batch_execute("CHECKPOINT")
        })
    }

    fn follow(&self, admin: &mut Admin, leader: usize) -> Result<(), DatabaseError> {
        let primary = primary(admin.node, leader);
        ask(&mut admin.client, move |client| {
            let sql = "SELECT current_setting('primary_conninfo') = $1 OR NOT pg_is_in_recovery()";
            if client.query_one(sql, &[&primary])?.try_get(0)? {
                return Ok(());
            }
            client.batch_execute(&format!("ALTER SYSTEM SET primary_conninfo = '{primary}'"))?;
            client.batch_execute("SELECT pg_reload_conf()")
        })
    }
}

fn connect(node: usize) -> Result<Client, DatabaseError> {
    let mut config = Config::new();
    config
        .host("127.0.0.1")
        .port(port(node))
        .user("postgres")
        .dbname("postgres")
        .connect_timeout(CONNECTING);
    within(ANSWERING, move || {
        config.connect(NoTls).map_err(|error| match failed(error) {
            DatabaseError::Failed(why) => DatabaseError::Late(format!("node {node}: {why}")),
            other => other,
        })
    })
}

fn records(client: &mut Client) -> Result<BTreeSet<u64>, postgres::Error> {
    let rows = client.query("SELECT id FROM records", &[])?;
    let numbers = rows.iter().map(|row| row.try_get::<_, i64>(0));
    numbers
        .map(|number| number.map(|number| number as u64))
        .collect()
}

/// Asks, and gives the client up if no answer comes in time.
fn ask<T: Send + 'static>(
    client: &mut Option<Client>,
    question: impl FnOnce(&mut Client) -> Result<T, postgres::Error> + Send + 'static,
) -> Result<T, DatabaseError> {
    let Some(mut asked) = client.take() else {
        return Err(DatabaseError::Late(format!(
            "{TITLE} still owes an answer on this connection"
        )));
    };
    let (answer, given_back) = within(ANSWERING, move || {
        let answer = question(&mut asked).map_err(failed);
        Ok((answer, asked))
    })?;
    *client = Some(given_back);
    answer
}

/// Does something that may never end.
fn within<T: Send + 'static>(
    most: Duration,
    what: impl FnOnce() -> Result<T, DatabaseError> + Send + 'static,
) -> Result<T, DatabaseError> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        // Nobody may wait any more.
        let _ = sender.send(what());
    });
    receiver.recv_timeout(most).unwrap_or_else(|error| {
        let seconds = most.as_secs();
        Err(match error {
            RecvTimeoutError::Timeout => {
                DatabaseError::Late(format!("{TITLE} gives no answer within {seconds} s"))
            }
            RecvTimeoutError::Disconnected => {
                DatabaseError::Failed(format!("a client of {TITLE} has ended"))
            }
        })
    })
}

struct Session {
    client: Option<Client>,
}

impl Session {
    fn ask<T: Send + 'static>(
        &mut self,
        question: impl FnOnce(&mut Client) -> Result<T, postgres::Error> + Send + 'static,
    ) -> Result<T, DatabaseError> {
        ask(&mut self.client, question)
    }
}

impl ClusterSession for Session {
    fn put(&mut self, record: u64) -> Result<(), DatabaseError> {
        self.ask(move |client| {
            let sql = "INSERT INTO records VALUES ($1)";
            client.execute(sql, &[&(record as i64)]).map(drop)
        })
    }

    fn records(&mut self) -> Result<BTreeSet<u64>, DatabaseError> {
        self.ask(records)
    }
}

#[cfg(test)]
mod tests {
    use crate::cluster::conformance::{conforms, refuses};

    #[test]
    fn it_conforms() {
        conforms("postgres", &[]);
    }

    #[test]
    fn what_a_server_does_not_take_is_said() {
        refuses("postgres", &[("wal_sync_method", "foo")], "foo");
        let names = [("synchronous_standby_names", "ANY of them")];
        refuses("postgres", &names, "synchronous_standby_names");
    }
}
