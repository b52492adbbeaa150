//! Redis as a cluster: one master, and replicas to which it sends its changes.
//!
//! Node 0 is the master at first. Each node has a configuration file in its directory that says whom it follows, which is
//! rewritten when that changes, as Redis Sentinel would. What follows a power cut is what an operator does who has no Sentinel:
//!
//! - If no master was started, the replica that has the most is promoted. A replica's offset in the history is forgotten when it is
//!   started again with an append-only file: then the one with the most keys is. How often somebody was promoted is kept in a
//!   key, so that of two masters the later one is known.
//! - A master that comes back where another one leads becomes a replica, and throws away what the new master lacks.
//! - A master that comes back with less than its replicas is their master all the same, and they throw away what it lacks.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use redis::{Client, Connection, ConnectionAddr, FromRedisValue, IntoConnectionInfo, RedisError};

use super::options::Options;
use super::running::{failed, field};
use super::{APPENDFSYNC, APPENDONLY, Programs, RedisServer, SIGN, TITLE, presence};
use crate::cluster::failover::{Operated, Position, Role, lead};
use crate::cluster::{ANSWERING, Cluster, ClusterSession, ListedCluster, Node, private};
use crate::program;
use crate::registry::Kind;
use crate::setting::{Chosen, Description, PassedOn, Setting};
use crate::{Database, DatabaseError, Templates};
use landfall_os::{Stop, sync_directory};

/// Where clients come to node 0, and replicas too.
const PORT: u16 = 6400;
/// Where a node's data are in its directory, which may be a filesystem's own.
const DATA: &str = "data";
/// What records are called: the key is this and a number.
const RECORD: &str = "records/";
/// The key in which it is counted how often somebody was promoted.
const TERM: &str = "term";
/// How long a connection may take that somebody accepts: the rest of the time is for what is asked.
const CONNECTING: Duration = Duration::from_secs(1);
/// How long replicas are waited for: less than for the answer itself.
const WAITING: Duration = Duration::from_secs(4);
/// How long one that is looked at is waited for.
const LOOKING: Duration = Duration::from_millis(500);
/// Since when there is WAITAOF.
const WAITAOF_SINCE: (u64, u64) = (7, 2);

/// What every node is told besides; each can be set otherwise.
const FIXED: [(&str, &str); 2] = [
    // A replica gets its first copy at once, and does not wait for others that may want one.
    ("repl-diskless-sync-delay", "0"),
    // Only who is on this machine comes to it.
    ("protected-mode", "no"),
];

pub(crate) static KIND: Kind<dyn Cluster, ListedCluster> = Kind {
    description: Description {
        name: "redis",
        about: "Redis, a master and its replicas",
        passes_on: Some(PassedOn::in_any_case(
            "a configuration directive of each server",
        )),
        settings: &[
            APPENDONLY,
            APPENDFSYNC,
            Setting {
                name: "wait",
                default: Some("1"),
                about: "how many replicas must have received a record before it counts as acknowledged (WAIT); 0: none",
                always_shown: true,
            },
            Setting {
                name: "waitaof",
                default: Some("no"),
                about: "whether master and replicas must have synced it too (WAITAOF, since Redis 7.2): yes or no",
                always_shown: false,
            },
        ],
    },
    listed: ListedCluster {
        presence,
        title: "Redis servers",
    },
    make: |chosen| {
        let syncs = chosen.whether("waitaof")?;
        if syncs && chosen.text("appendonly") == "no" {
            return Err(chosen.wrong("waitaof", "nothing is synced with appendonly=no"));
        }
        Ok(Box::new(RedisCluster {
            alone: RedisServer {
                options: Options::new(chosen)?,
            },
            wait: Wait {
                replicas: chosen.number("wait", 0, 100)?,
                syncs,
            },
            chosen: chosen.clone(),
        }))
    },
};

struct RedisCluster {
    /// Each of them, if it had no others.
    alone: RedisServer,
    wait: Wait,
    chosen: Chosen,
}

/// What a client waits for before it takes a record for acknowledged.
#[derive(Clone, Copy)]
struct Wait {
    replicas: u64,
    syncs: bool,
}

fn port(node: usize) -> u16 {
    PORT + node as u16
}

impl RedisCluster {
    fn programs(&self) -> Result<Programs, DatabaseError> {
        let programs = Programs::required()?;
        let mut numbers = programs.version.split('.').map(|part| part.parse().ok());
        let version = numbers.next().flatten().zip(numbers.next().flatten());
        if self.wait.syncs && version.is_none_or(|version| version < WAITAOF_SINCE) {
            let (major, minor) = WAITAOF_SINCE;
            return Err(DatabaseError::Setting(format!(
                "waitaof=yes needs {TITLE} {major}.{minor}, and this is {}: install a newer one, or leave it out",
                programs.version
            )));
        }
        Ok(programs)
    }
}

impl Cluster for RedisCluster {
    fn chosen(&self) -> &Chosen {
        &self.chosen
    }

    fn create(
        &self,
        directories: &[PathBuf],
        templates: &Templates,
        stop: &Stop,
    ) -> Result<(), DatabaseError> {
        self.programs()?;
        for (node, directory) in directories.iter().enumerate() {
            let data = directory.join(DATA);
            let made = fs::create_dir(&data).and_then(|()| sync_directory(directory));
            made.map_err(|error| DatabaseError::io("cannot make a node's directory", &error))?;
            self.alone.create(&data, templates, stop)?;
            if node > 0 {
                begin_as_replica(&data)?;
            }
        }
        // By itself, so that it says what it does not like of its settings.
        self.alone.start(&directories[0].join(DATA), stop)?.stop()
    }

    fn start(&self, node: usize, directories: &[PathBuf], _: &Stop) -> Result<Node, DatabaseError> {
        let programs = self.programs()?;
        let data = directories[node].join(DATA);
        let ours = [
            ("port", port(node).to_string()),
            ("bind", "127.0.0.1".to_owned()),
            ("dir", data.display().to_string()),
        ];
        let fixed = FIXED.map(|(name, value)| (name, value.to_owned()));
        let sign = data.join(SIGN);
        forget_directory(&sign)
            .map_err(|error| DatabaseError::io("cannot read a node's configuration", &error))?;
        let mut command = program::command(&programs.server);
        command.arg(sign);
        for (name, value) in fixed {
            command.arg(format!("--{name}")).arg(value);
        }
        command.args(self.alone.options.arguments());
        for (name, value) in ours {
            command.arg(format!("--{name}")).arg(value);
        }
        Node::start(TITLE, &mut command, private()?)
    }

    fn connect(
        &self,
        _: &[PathBuf],
        started: &[usize],
    ) -> Result<Box<dyn ClusterSession>, DatabaseError> {
        let (leader, mut connection) = lead(self, started)?;
        if self.wait.replicas > 0 {
            let follow: u64 = ask(
                &mut connection,
                redis::cmd("WAIT")
                    .arg(self.wait.replicas)
                    .arg(LOOKING.as_millis() as u64),
            )?;
            if follow < self.wait.replicas {
                let wanted = self.wait.replicas;
                return Err(DatabaseError::Late(format!(
                    "{follow} of {wanted} replicas that are waited for follow node {leader}"
                )));
            }
        }
        Ok(Box::new(Session {
            connection,
            wait: self.wait,
        }))
    }

    fn records_of(&self, node: usize) -> Result<Option<BTreeSet<u64>>, DatabaseError> {
        records(&mut connect(node)?).map(Some)
    }

    fn has_written(&self, node: usize) -> Result<(), DatabaseError> {
        // A replica that makes its log anew writes nothing else until it is done, and acknowledges all the same.
        let told: String = ask(&mut connect(node)?, redis::cmd("INFO").arg("persistence"))?;
        let signs = ["aof_rewrite_in_progress", "aof_rewrite_scheduled"];
        if signs.iter().any(|sign| field(&told, sign) > 0) {
            return Err(DatabaseError::Late(format!("node {node} makes its log")));
        }
        Ok(())
    }
}

impl Operated for RedisCluster {
    type Connection = Connection;

    fn administer(&self, node: usize) -> Result<Connection, DatabaseError> {
        connect(node)
    }

    fn role(&self, connection: &mut Connection) -> Result<(Role, Position), DatabaseError> {
        let told: String = ask(connection, redis::cmd("INFO").arg("replication"))?;
        let term: Option<u64> = ask(connection, redis::cmd("GET").arg(TERM))?;
        let role = if field(&told, "master_port") > 0 {
            Role::Follows
        } else {
            Role::Leads
        };
        let position = Position {
            term: term.unwrap_or(0),
            offset: field(&told, "master_repl_offset"),
            records: ask(connection, &mut redis::cmd("DBSIZE"))?,
        };
        Ok((role, position))
    }

    fn promote(&self, connection: &mut Connection) -> Result<(), DatabaseError> {
        ask::<()>(connection, redis::cmd("REPLICAOF").arg("NO").arg("ONE"))?;
        ask::<()>(connection, redis::cmd("INCR").arg(TERM))?;
        ask(connection, redis::cmd("CONFIG").arg("REWRITE"))
    }

    fn follow(&self, connection: &mut Connection, leader: usize) -> Result<(), DatabaseError> {
        let told: String = ask(connection, redis::cmd("INFO").arg("replication"))?;
        if field(&told, "master_port") == u64::from(port(leader)) {
            return Ok(());
        }
        let mut replica_of = redis::cmd("REPLICAOF");
        ask::<()>(connection, replica_of.arg("127.0.0.1").arg(port(leader)))?;
        ask(connection, redis::cmd("CONFIG").arg("REWRITE"))
    }
}

/// Takes out of a node's configuration, which the server writes again with all that it was told, where its directory was: it would go
/// there before it hears where that is now.
fn forget_directory(configuration: &Path) -> io::Result<()> {
    let text = match fs::read(configuration) {
        // The server says what it makes of that.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        text => text?,
    };
    let is_directory = |line: &&[u8]| line.starts_with(b"dir ");
    let lines = || text.split_inclusive(|byte| *byte == b'\n');
    if !lines().any(|line| is_directory(&line)) {
        return Ok(());
    }
    let rest: Vec<&[u8]> = lines().filter(|line| !is_directory(line)).collect();
    fs::write(configuration, rest.concat())
}

/// Writes into the configuration of a new node that it follows node 0.
fn begin_as_replica(data: &Path) -> Result<(), DatabaseError> {
    let line = format!("replicaof 127.0.0.1 {}\n", port(0));
    let mut options = OpenOptions::new();
    let written = options
        .append(true)
        .open(data.join(SIGN))
        .and_then(|mut file| {
            file.write_all(line.as_bytes())?;
            file.sync_all()?;
            sync_directory(data)
        });
    written.map_err(|error| DatabaseError::io("cannot write a node's configuration", &error))
}

fn connect(node: usize) -> Result<Connection, DatabaseError> {
    let address = ConnectionAddr::Tcp("127.0.0.1".into(), port(node));
    let opened = address.into_connection_info().and_then(Client::open);
    let connected = opened.and_then(|client| {
        let mut connection = client.get_connection_with_timeout(CONNECTING)?;
        connection.set_read_timeout(Some(ANSWERING))?;
        connection.set_write_timeout(Some(ANSWERING))?;
        // It answers otherwise as long as it reads its log.
        redis::cmd("PING").exec(&mut connection)?;
        Ok(connection)
    });
    connected.map_err(|error| DatabaseError::Late(format!("node {node}: {error}")))
}

fn ask<T: FromRedisValue>(
    connection: &mut Connection,
    question: &mut redis::Cmd,
) -> Result<T, DatabaseError> {
    question.query(connection).map_err(explain)
}

fn explain(error: RedisError) -> DatabaseError {
    if error.is_timeout() {
        let seconds = ANSWERING.as_secs();
        DatabaseError::Late(format!("{TITLE} gives no answer within {seconds} s"))
    } else {
        failed(error)
    }
}

fn records(connection: &mut Connection) -> Result<BTreeSet<u64>, DatabaseError> {
    let keys: Vec<String> = ask(connection, redis::cmd("KEYS").arg(format!("{RECORD}*")))?;
    let numbers = keys.iter().map(|key| {
        let number = key
            .strip_prefix(RECORD)
            .and_then(|number| number.parse().ok());
        number.ok_or_else(|| {
            DatabaseError::Failed(format!("{TITLE} has a key that nobody wrote: {key}"))
        })
    });
    numbers.collect()
}

struct Session {
    connection: Connection,
    wait: Wait,
}

impl ClusterSession for Session {
    fn put(&mut self, record: u64) -> Result<(), DatabaseError> {
        let mut set = redis::cmd("SET");
        set.arg(format!("{RECORD}{record}"))
            .arg(format!("record {record}"));
        ask::<()>(&mut self.connection, &mut set)?;
        let (wanted, most) = (self.wait.replicas, WAITING.as_millis() as u64);
        let have: u64 = if self.wait.syncs {
            let mut wait = redis::cmd("WAITAOF");
            let synced = ask(&mut self.connection, wait.arg(1).arg(wanted).arg(most))?;
            let (here, there): (u64, u64) = synced;
            if here == 0 {
                return Err(DatabaseError::Late(format!(
                    "the master has not synced record {record}"
                )));
            }
            there
        } else if wanted > 0 {
            let mut wait = redis::cmd("WAIT");
            ask(&mut self.connection, wait.arg(wanted).arg(most))?
        } else {
            return Ok(());
        };
        if have >= wanted {
            return Ok(());
        }
        Err(DatabaseError::Late(format!(
            "{have} of {wanted} replicas that are waited for have record {record}"
        )))
    }

    fn records(&mut self) -> Result<BTreeSet<u64>, DatabaseError> {
        records(&mut self.connection)
    }
}

#[cfg(test)]
mod tests {
    use crate::cluster::conformance::{conforms, refuses};
    use crate::clusters::named;

    #[test]
    fn it_conforms() {
        // Every second alone does not do: while a sync lasts Redis keeps for itself what it acknowledges, for up to two seconds.
        conforms("redis", &[("appendfsync", "always")]);
    }

    #[test]
    fn a_node_does_not_go_where_its_directory_was() {
        let directory = tempfile::tempdir().unwrap();
        let configuration = directory.path().join("redis.conf");
        let text = "replicaof 127.0.0.1 7000\ndir \"/gone\"\nappenddirname \"a\"\n";
        std::fs::write(&configuration, text).unwrap();
        for _ in 0..2 {
            super::forget_directory(&configuration).unwrap();
            let left = std::fs::read_to_string(&configuration).unwrap();
            assert_eq!(left, "replicaof 127.0.0.1 7000\nappenddirname \"a\"\n");
        }
    }

    #[test]
    fn what_cannot_be_waited_for_is_refused() {
        let set = [("waitaof", "yes"), ("appendonly", "no")];
        let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let error = named("redis", &set).map(|_| ()).unwrap_err().to_string();
        assert!(error.ends_with("appendonly=no"), "{error}");
    }

    #[test]
    fn what_a_server_does_not_take_is_said() {
        refuses("redis", &[("hz", "often")], "hz");
    }
}
