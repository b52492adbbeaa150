//! ZooKeeper as a cluster: a tree that all servers have, by a log of changes in one order (Zab).
//!
//! Records are nodes of the tree, each below one that they share. A server acknowledges a change when a majority has it in its
//! log, synced if `forceSync` is as usual. A server answers questions by itself, with what it has applied.

mod client;
mod options;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use self::client::Client;
use self::options::{Options, identity};
use crate::cluster::{Cluster, ClusterSession, ListedCluster, Node, private};
use crate::registry::Kind;
use crate::setting::{Chosen, Description, Setting};
use crate::{DatabaseError, Presence, Templates, java};
use landfall_os::{Stop, sync_directory};

const TITLE: &str = "ZooKeeper";
const REMEDY: &str = "apt install zookeeper --no-install-recommends";
/// Where Debian puts jars; which are wanted; and the beginning of that with the version.
const JARS: &str = "/usr/share/java";
const WANTED: [&str; 2] = ["zookeeper.jar", "slf4j-simple.jar"];
const JAR: &str = "zookeeper-";
/// Where node 0 listens: for clients, and for the other servers, when one leads and before.
const CLIENTS: u16 = 2800;
const PEERS: u16 = 2900;
const ELECTIONS: u16 = 3000;
/// What a server's data is called in its directory, what it is told there, and its file of settings.
const DATA: &str = "data";
const IDENTITY: &str = "myid";
const FILE: &str = "zoo.cfg";

pub(crate) static KIND: Kind<dyn Cluster, ListedCluster> = Kind {
    description: Description {
        name: "zookeeper",
        about: "ZooKeeper, servers that agree on a log (Zab)",
        passes_on: None,
        settings: &[
            Setting {
                name: "forceSync",
                default: Some("yes"),
                about: "whether its log is synced before a change is acknowledged: yes or no",
                always_shown: true,
            },
            Setting {
                name: "snapCount",
                default: Some("100000"),
                about: "after about how many changes a server writes a snapshot and begins a log",
                always_shown: false,
            },
        ],
    },
    listed: ListedCluster {
        presence: || {
            Presence::of(
                Programs::find().map(|found| (found.version, found.jar)),
                REMEDY,
            )
        },
        title: "ZooKeeper servers",
    },
    make: |chosen| {
        Ok(Box::new(ZooKeeper {
            options: Options::new(chosen)?,
            chosen: chosen.clone(),
        }))
    },
};

struct ZooKeeper {
    options: Options,
    chosen: Chosen,
}

/// What runs it, where it is installed.
struct Programs {
    java: PathBuf,
    jar: PathBuf,
    /// Of its jar: `3.8.0`.
    version: String,
}

impl Programs {
    fn find() -> Option<Programs> {
        let [jar, _] = WANTED.map(|jar| Path::new(JARS).join(jar));
        let mut names = fs::read_dir(JARS).ok()?.flatten();
        // Others are called after their purpose there.
        let version = |name: &str| {
            let version = name.strip_prefix(JAR)?.strip_suffix(".jar")?;
            version
                .starts_with(|c: char| c.is_ascii_digit())
                .then(|| version.to_owned())
        };
        Some(Programs {
            java: java::find()?,
            version: names.find_map(|name| version(name.file_name().to_str()?))?,
            jar: jar.is_file().then_some(jar)?,
        })
    }

    fn required() -> Result<Programs, DatabaseError> {
        Self::find().ok_or_else(|| DatabaseError::NotInstalled {
            what: TITLE.into(),
            remedy: REMEDY.into(),
        })
    }
}

impl Cluster for ZooKeeper {
    fn chosen(&self) -> &Chosen {
        &self.chosen
    }

    fn create(
        &self,
        directories: &[PathBuf],
        _: &Templates,
        _: &Stop,
    ) -> Result<(), DatabaseError> {
        Programs::required()?;
        for (node, directory) in directories.iter().enumerate() {
            let data = directory.join(DATA);
            let make = || {
                fs::create_dir(&data)?;
                fs::write(data.join(IDENTITY), format!("{}\n", identity(node)))?;
                sync_directory(&data)
            };
            let doing = format!("cannot make {}", data.display());
            make().map_err(|error| DatabaseError::io(&doing, &error))?;
        }
        Ok(())
    }

    fn start(&self, node: usize, directories: &[PathBuf], _: &Stop) -> Result<Node, DatabaseError> {
        let programs = Programs::required()?;
        let private = private()?;
        let data = directories[node].join(DATA);
        let data = std::path::absolute(&data)
            .map_err(|error| DatabaseError::io(&data.display().to_string(), &error))?;
        let file = private.path().join(FILE);
        let text = self.options.file(node, directories.len(), &data)?;
        fs::write(&file, text).map_err(|error| {
            DatabaseError::io(&format!("cannot write {}", file.display()), &error)
        })?;
        let jars = WANTED.map(|jar| format!("{JARS}/{jar}")).join(":");
        let mut command = java::command(&programs.java, &jars, private.path());
        command
            .current_dir(private.path())
            .args(self.options.properties())
            .arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
            .arg("-Dorg.slf4j.simpleLogger.levelInBrackets=true")
            .arg("org.apache.zookeeper.server.quorum.QuorumPeerMain")
            .arg(file);
        Node::start(TITLE, &mut command, private)
    }

    fn connect(
        &self,
        _: &[PathBuf],
        started: &[usize],
    ) -> Result<Box<dyn ClusterSession>, DatabaseError> {
        let client = Client::connect(started)?;
        client.make_tree()?;
        Ok(Box::new(client))
    }

    fn records_of(&self, node: usize) -> Result<Option<BTreeSet<u64>>, DatabaseError> {
        Client::connect(&[node])?.own_records().map(Some)
    }
}

#[cfg(test)]
mod tests {
    use crate::cluster::conformance::conforms;

    #[test]
    fn it_conforms() {
        conforms("zookeeper", &[]);
    }

    #[test]
    fn it_conforms_where_it_takes_snapshots() {
        conforms("zookeeper", &[("snapCount", "4")]);
    }
}
