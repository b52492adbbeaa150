//! MariaDB as a cluster: a primary, and replicas to which it sends its binary log, each commit waiting for one of them
//! (semi-synchronous replication).
//!
//! Node 0 is the primary at first. A replica is known by `master.info`, which its server keeps; how often somebody was promoted
//! is kept in a table, so that of two primaries the later one is known. What is done after a power cut is in [`super::operator`].
//!
//! A replica acknowledges what is in its relay log. A server that is started again as a replica with GTIDs throws its relay log
//! away, and asks its primary for what it had not yet applied: if that is gone, so is what was acknowledged. That is left as it
//! is, for it is what users have.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mysql::{Conn, OptsBuilder};

use super::innodb::{self, BUFFER_POOL, FLUSH_LOG, PAGE_SIZE};
use super::options::{Options, Variable, as_variable, variable};
use super::running::{PACKET, WAITS_FOR_SPACE, first, rows, run};
use super::{Engine, MariadbServer, SCHEMA, TITLE, presence_of};
use crate::cluster::failover::{lead, leader_elsewhere};
use crate::cluster::{ANSWERING, Cluster, ClusterSession, ListedCluster, Node, private};
use crate::registry::Kind;
use crate::server::Ending;
use crate::setting::{Chosen, Description, PassedOn, Setting};
use crate::{Database, DatabaseError, Running, SettingError, Templates};
use landfall_os::{Stop, copy_directory, sync_filesystem};

/// Where clients come to node 0, and replicas too.
const PORT: u16 = 3400;
/// Where a node's data are in its directory, which may be a filesystem's own.
const DATA: &str = "data";
/// The file that a server has that follows another one.
const REPLICA: &str = "master.info";
/// Where a replica keeps what it has received. Its server's own name for it would be another one each time.
const RELAY_LOG: &str = "--relay_log=relay";
/// The least that a node has in a small filesystem: its empty database, its logs, and room for more.
const CAPACITY: u64 = 320 << 20;
/// How long a connection may take that somebody accepts: the rest of the time is for what is asked.
const CONNECTING: Duration = Duration::from_secs(1);
/// What a node is told according to its number and to what it does.
const OURS: [&str; 6] = [
    "init_rpl_role",
    "log_slave_updates",
    "relay_log",
    "rpl_semi_sync_master_enabled",
    "rpl_semi_sync_slave_enabled",
    "server_id",
];
const WAIT_POINT: &str = "rpl_semi_sync_master_wait_point";
const TIMEOUT: &str = "rpl_semi_sync_master_timeout";

pub(crate) static KIND: Kind<dyn Cluster, ListedCluster> = Kind {
    description: Description {
        name: "mariadb",
        about: "MariaDB with InnoDB, a primary and its replicas (GTID, semi-synchronous)",
        passes_on: Some(PassedOn {
            what: "a server variable of each server",
            spelling: as_variable,
        }),
        settings: &[
            Setting {
                name: "semi_sync",
                default: Some("yes"),
                about: "whether a commit waits until a replica has received it: yes or no",
                always_shown: true,
            },
            Setting {
                name: WAIT_POINT,
                default: Some("AFTER_SYNC"),
                about: "where it waits: AFTER_SYNC: before others see it; AFTER_COMMIT: after that, which is the server's own default",
                always_shown: false,
            },
            Setting {
                name: TIMEOUT,
                // Twelve hours: or what is proven is another thing, without a word.
                default: Some("43200000"),
                about: "milliseconds after which a primary goes on without its replicas; the server's own default is 10000",
                always_shown: false,
            },
            Setting {
                name: "sync_binlog",
                default: Some("1"),
                about: "after how many commits the binary log is synced; 0: never, which is the server's own default",
                always_shown: true,
            },
            FLUSH_LOG,
            PAGE_SIZE,
            BUFFER_POOL,
            Setting {
                name: "innodb_log_file_size",
                // A node is small, and each is made and copied often.
                default: Some("16M"),
                about: "bytes of the redo log",
                always_shown: false,
            },
        ],
    },
    listed: ListedCluster {
        presence: || presence_of(Engine::InnoDb),
        title: "MariaDB servers",
    },
    make: |chosen| {
        for (key, _) in chosen.passed_on() {
            if OURS.contains(&key.as_str()) {
                let name = chosen.name();
                return Err(SettingError(format!(
                    "{name}: {key} is Landfall's to choose"
                )));
            }
        }
        Ok(Box::new(MariadbCluster {
            semi_sync: chosen.whether("semi_sync")?,
            server: MariadbServer {
                engine: Engine::InnoDb,
                options: Options::with_binlog(chosen, Vec::new(), variables(chosen)?, true)?,
            },
            chosen: chosen.clone(),
        }))
    },
};

pub(super) struct MariadbCluster {
    /// Each of them, if it had no others.
    server: MariadbServer,
    pub semi_sync: bool,
    chosen: Chosen,
}

fn variables(chosen: &Chosen) -> Result<Vec<Variable>, SettingError> {
    let points = ["AFTER_SYNC", "AFTER_COMMIT"].map(|point| (point, point));
    let mut variables = innodb::variables(chosen)?;
    variables.extend([
        variable(WAIT_POINT, chosen.one_of(WAIT_POINT, &points)?),
        variable(TIMEOUT, chosen.number(TIMEOUT, 0, u32::MAX.into())?),
        variable(
            "sync_binlog",
            chosen.number("sync_binlog", 0, u32::MAX.into())?,
        ),
    ]);
    Ok(variables)
}

pub(super) fn port(node: usize) -> u16 {
    PORT + node as u16
}

/// What makes a server follow `leader`.
pub(super) fn change_master(leader: usize) -> String {
    let port = port(leader);
    format!(
        "CHANGE MASTER TO master_host = '127.0.0.1', master_port = {port}, master_user = 'root', \
         master_connect_retry = 1, master_use_gtid = slave_pos"
    )
}

impl MariadbCluster {
    fn copy(&self, from: &Path, to: &Path, stop: &Stop) -> Result<(), DatabaseError> {
        let copied = copy_directory(from, to, stop)
            .and_then(|_| fs::File::open(to))
            .and_then(|open| sync_filesystem(&open));
        copied.map_err(|error| match error.kind() {
            std::io::ErrorKind::Interrupted => DatabaseError::Stopped,
            _ => DatabaseError::io("cannot copy the primary to a replica", &error),
        })
    }
}

impl Cluster for MariadbCluster {
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
        let data: Vec<PathBuf> = directories.iter().map(|one| one.join(DATA)).collect();
        for one in &data {
            let made = fs::create_dir(one);
            made.map_err(|error| DatabaseError::io("cannot make a node's directory", &error))?;
        }
        self.server.create(&data[0], templates, stop)?;
        // By itself, so that it says what it does not like of its settings; and no log says what all of them have.
        let running = self
            .server
            .start_alone(&data[0], &[RELAY_LOG.into()], stop)?;
        running.run_all(&[
            "SET sql_log_bin = 0",
            "CREATE TABLE records (id BIGINT PRIMARY KEY) ENGINE = InnoDB",
            "CREATE TABLE terms (id BIGINT PRIMARY KEY) ENGINE = InnoDB",
        ])?;
        Box::new(running).stop()?;
        let Some((replica, others)) = data[1..].split_first() else {
            return Ok(());
        };
        self.copy(&data[0], replica, stop)?;
        let running = self
            .server
            .start_alone(replica, &[RELAY_LOG.into()], stop)?;
        running.run_all(&[&change_master(0)])?;
        Box::new(running).stop()?;
        others
            .iter()
            .try_for_each(|other| self.copy(replica, other, stop))
    }

    fn start(&self, node: usize, directories: &[PathBuf], _: &Stop) -> Result<Node, DatabaseError> {
        let data = &directories[node].join(DATA);
        let is_replica = data.join(REPLICA).exists();
        let is_late = !is_replica && leader_elsewhere(self, node, directories.len()).is_some();
        let mut last = vec![
            "--bind_address=127.0.0.1".to_owned(),
            format!("--port={}", port(node)),
            format!("--server_id={}", node + 1),
            "--log_slave_updates=ON".into(),
            RELAY_LOG.into(),
        ];
        if is_late {
            // What it wrote and nobody acknowledged is then taken back when it recovers. One that was a replica all along would
            // take back what it has acknowledged itself. Servers that do not know this go by the next option.
            last.push("--loose_init_rpl_role=SLAVE".into());
        }
        if is_late || is_replica {
            last.push("--rpl_semi_sync_slave_enabled=ON".into());
        } else if self.semi_sync {
            last.push("--rpl_semi_sync_master_enabled=ON".into());
        }
        let server = self.server.begin(data, private()?, &last)?;
        server.end_when_it_says(WAITS_FOR_SPACE);
        Ok(Node::of(server, Ending::Terminate))
    }

    fn connect(
        &self,
        _: &[PathBuf],
        started: &[usize],
    ) -> Result<Box<dyn ClusterSession>, DatabaseError> {
        let (leader, mut admin) = lead(self, started)?;
        if self.semi_sync {
            // One that was promoted does not yet. A server that waits must have somebody to wait for.
            run(
                &mut admin.connection,
                "SET GLOBAL rpl_semi_sync_slave_enabled = OFF, GLOBAL rpl_semi_sync_master_enabled = ON",
            )?;
            let sql = "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_master_clients'";
            let (_, replicas): (String, u64) = first(&mut admin.connection, sql)?;
            if replicas == 0 {
                return Err(DatabaseError::Late(format!(
                    "no replica follows node {leader}, for which its commits wait"
                )));
            }
        }
        Ok(Box::new(Session {
            connection: admin.connection,
        }))
    }

    fn records_of(&self, node: usize) -> Result<Option<BTreeSet<u64>>, DatabaseError> {
        records(&mut connect(node)?).map(Some)
    }
}

pub(super) fn connect(node: usize) -> Result<Conn, DatabaseError> {
    let options = OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(port(node))
        .prefer_socket(false)
        .tcp_connect_timeout(Some(CONNECTING))
        .read_timeout(Some(ANSWERING))
        .write_timeout(Some(ANSWERING))
        .user(Some("root"))
        .db_name(Some(SCHEMA))
        .max_allowed_packet(Some(PACKET))
        .stmt_cache_size(0);
    Conn::new(options).map_err(|error| DatabaseError::Late(format!("node {node}: {error}")))
}

pub(super) fn records(connection: &mut Conn) -> Result<BTreeSet<u64>, DatabaseError> {
    let found: Vec<u64> = rows(connection, "SELECT id FROM records")?;
    Ok(found.into_iter().collect())
}

struct Session {
    connection: Conn,
}

impl ClusterSession for Session {
    fn put(&mut self, record: u64) -> Result<(), DatabaseError> {
        let sql = format!("INSERT INTO records VALUES ({record})");
        let begin = std::time::Instant::now();
        run(&mut self.connection, &sql).map_err(|error| match error {
            // The client says of a server that is silent what it says of one that is gone.
            DatabaseError::Failed(why) if begin.elapsed() >= ANSWERING => {
                DatabaseError::Late(format!(
                    "{TITLE} gives no answer within {} s: {why}",
                    ANSWERING.as_secs()
                ))
            }
            other => other,
        })
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
        conforms("mariadb", &[]);
    }

    #[test]
    fn a_primary_with_more_than_its_replicas_is_filled_anew() {
        // Committed before a replica is waited for, nothing can be taken back.
        conforms("mariadb", &[(super::WAIT_POINT, "AFTER_COMMIT")]);
    }

    #[test]
    fn what_a_server_does_not_take_is_said() {
        refuses("mariadb", &[("no_such", "1")], "no_such");
    }

    #[test]
    fn what_a_node_is_told_by_what_it_does_is_not_set() {
        let set = [("server-id".to_owned(), "7".to_owned())];
        let error = named("mariadb", &set).map(|_| ()).unwrap_err().to_string();
        assert!(error.ends_with("Landfall's to choose"), "{error}");
    }
}
