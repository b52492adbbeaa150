//! etcd as a cluster of several members.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::api::{Connection, PutRequest, RangeRequest};
use super::options::Options;
use super::running::failed;
use super::{Program, REMEDY, SETTINGS, TITLE};
use crate::cluster::{ANSWERING, Cluster, ClusterSession, ListedCluster, Node, address, private};
use crate::registry::Kind;
use crate::setting::{Chosen, Description, PassedOn};
use crate::{DatabaseError, Presence, Templates, program};
use landfall_os::Stop;

/// Where clients come to node 0, and where its peers do.
const CLIENTS: u16 = 2400;
const PEERS: u16 = 2500;
/// What records are called: the key is this and a number.
const RECORD: &str = "records/";

/// What every member is told; all but what it logs can be set otherwise.
const FIXED: [(&str, &str); 6] = [
    // A few times as long as machines take that do much else: a leader is chosen within seconds.
    ("heartbeat-interval", "50"),
    ("election-timeout", "500"),
    // So that there are some among the records.
    ("snapshot-count", "20"),
    ("initial-cluster-state", "new"),
    ("logger", "zap"),
    ("log-level", "warn"),
];

pub(crate) static KIND: Kind<dyn Cluster, ListedCluster> = Kind {
    description: Description {
        name: "etcd",
        about: "etcd, several members that agree on a log (Raft)",
        passes_on: Some(PassedOn::of(
            "a flag of each member's command line, without dashes before it",
        )),
        settings: SETTINGS,
    },
    listed: ListedCluster {
        presence: || {
            let found = Program::required().ok();
            Presence::of(found.map(|found| (found.version, found.path)), REMEDY)
        },
        title: "etcd members",
    },
    make: |chosen| {
        Ok(Box::new(EtcdCluster {
            options: Options::new(chosen)?,
            chosen: chosen.clone(),
        }))
    },
};

struct EtcdCluster {
    options: Options,
    chosen: Chosen,
}

impl Cluster for EtcdCluster {
    fn chosen(&self) -> &Chosen {
        &self.chosen
    }

    fn capacity(&self) -> u64 {
        // Two files of its log, reserved beforehand, and its pages.
        192 << 20
    }

    fn create(&self, _: &[PathBuf], _: &Templates, _: &Stop) -> Result<(), DatabaseError> {
        // What a member finds empty it makes its own.
        Program::required().map(drop)
    }

    fn start(&self, node: usize, directories: &[PathBuf], _: &Stop) -> Result<Node, DatabaseError> {
        let program = Program::required()?;
        let private = private()?;
        let url = |port, node| format!("http://{}", address(port, node));
        let (clients, peers) = (url(CLIENTS, node), url(PEERS, node));
        let members = (0..directories.len()).map(|one| format!("n{one}={}", url(PEERS, one)));
        let members: Vec<String> = members.collect();
        let data = directories[node].join("data");
        let ours = [
            ("name", format!("n{node}")),
            ("data-dir", data.display().to_string()),
            ("listen-client-urls", clients.clone()),
            ("advertise-client-urls", clients),
            ("listen-peer-urls", peers.clone()),
            ("initial-advertise-peer-urls", peers),
            ("initial-cluster", members.join(",")),
        ];
        let mut command = program::command(&program.path);
        super::forget_variables(&mut command);
        command
            .current_dir(private.path())
            .args(ours.map(|(name, value)| format!("--{name}={value}")))
            .args(FIXED.map(|(name, value)| format!("--{name}={value}")))
            .args(self.options.asked());
        Node::start(TITLE, &mut command, private)
    }

    fn connect(
        &self,
        _: &[PathBuf],
        started: &[usize],
    ) -> Result<Box<dyn ClusterSession>, DatabaseError> {
        let mut why = DatabaseError::Late("no member was started".into());
        for &node in started {
            let tried = connect(node).and_then(|mut connection| {
                // Only with a leader, and a majority behind it, is this answered.
                records(&mut connection, false)?;
                Ok(connection)
            });
            match tried {
                Ok(connection) => return Ok(Box::new(Session { connection })),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    fn records_of(&self, node: usize) -> Result<Option<BTreeSet<u64>>, DatabaseError> {
        records(&mut connect(node)?, true).map(Some)
    }
}

fn connect(node: usize) -> Result<Connection, DatabaseError> {
    let address = format!("http://{}", address(CLIENTS, node));
    Connection::to(address, Some(ANSWERING)).map_err(DatabaseError::Late)
}

/// All records, as a majority has them, or as one member by itself.
fn records(
    connection: &mut Connection,
    serializable: bool,
) -> Result<BTreeSet<u64>, DatabaseError> {
    let range = RangeRequest {
        key: RECORD.into(),
        // The least key that does not begin with it.
        range_end: RECORD.replace('/', "0").into(),
        serializable,
        ..RangeRequest::default()
    };
    let answer = connection.range(range).map_err(|status| failed(&status))?;
    let number = |key: &[u8]| {
        let number = std::str::from_utf8(key).ok()?.strip_prefix(RECORD)?;
        number.parse().ok()
    };
    let numbers = answer.kvs.iter().map(|pair| {
        number(&pair.key).ok_or_else(|| {
            let key = String::from_utf8_lossy(&pair.key);
            DatabaseError::Failed(format!("{TITLE} has a key that nobody wrote: {key}"))
        })
    });
    numbers.collect()
}

struct Session {
    connection: Connection,
}

impl ClusterSession for Session {
    fn put(&mut self, record: u64) -> Result<(), DatabaseError> {
        let put = PutRequest {
            key: format!("{RECORD}{record:020}").into(),
            value: format!("record {record}").into(),
        };
        self.connection.put(put).map_err(|status| failed(&status))
    }

    fn records(&mut self) -> Result<BTreeSet<u64>, DatabaseError> {
        records(&mut self.connection, false)
    }
}

#[cfg(test)]
mod tests {
    use crate::cluster::conformance::conforms;

    #[test]
    fn it_conforms() {
        conforms("etcd", &[]);
    }
}
