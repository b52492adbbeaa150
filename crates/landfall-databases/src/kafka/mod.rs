//! Kafka as a cluster: a topic of one partition with a replica on each broker, and the brokers are their own controllers
//! (KRaft).
//!
//! Records are those of the partition, asked for with `acks=all`: its leader acknowledges one when all replicas that keep up
//! have it, at least `min.insync.replicas`. That they have it in memory is enough, unless `flush.messages` says otherwise.
//!
//! Reading: only the leader answers, and only up to its high watermark, which may lag behind after it was chosen. So whoever
//! reads adds a record of his own first, a *barrier*: once that is acknowledged, the watermark is beyond it, and all that was
//! acknowledged before is in front of it.
//!
//! Starting again: when all brokers lost power none is in sync, and the controllers let only the one lead that they last knew to,
//! whatever `unclean.leader.election.enable` says (eligible leader replicas, on by default since 4.1). As long as it is away
//! there is no leader.
//!
//! What one replica has by itself cannot be asked: a follower answers clients only what the leader has made visible, and the
//! client library asks the leader alone.

mod client;
mod options;

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use self::client::Client;
use self::options::{NEVER, Options};
use crate::cluster::{Cluster, ClusterSession, ListedCluster, Node, private};
use crate::registry::Kind;
use crate::setting::{Chosen, Description, PassedOn, Setting};
use crate::{DatabaseError, Presence, Templates, java, program};
use landfall_os::{PrivateDirectory, Stop};

const TITLE: &str = "Kafka";
const REMEDY: &str = "unpack https://archive.apache.org/dist/kafka/4.1.0/kafka_2.13-4.1.0.tgz, name its directory in KAFKA_HOME, \
                      and apt install default-jre-headless";
/// Where it is if nobody says otherwise.
const HOME: &str = "/opt/kafka";
/// Its jars, and the beginning of that with its version.
const JARS: &str = "libs";
const JAR: &str = "kafka_2.13-";
/// Where node 0 listens: for clients and the other brokers, and for the controllers.
const CLIENTS: u16 = 9200;
const CONTROLLERS: u16 = 9300;
/// The topic.
const TOPIC: &str = "landfall";
/// What the cluster is called: 16 bytes in Base64.
const CLUSTER: &str = "TGFuZGZhbGwtS2Fma2EtMQ";
/// What a node's data is called in its directory, and its file of properties.
const DATA: &str = "data";
const FILE: &str = "server.properties";
/// What its programs log, and the file that tells them so.
const LOGGING: &str = "\
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=[%level] %msg%n%throwable{2}
rootLogger.level=error
rootLogger.appenderRef.console.ref=console
";
const LOGGING_FILE: &str = "log4j2.properties";
/// How long one of its programs may take.
const RUNNING: Duration = Duration::from_secs(5 * 60);

pub(crate) static KIND: Kind<dyn Cluster, ListedCluster> = Kind {
    description: Description {
        name: "kafka",
        about: "Kafka, a topic with a replica on each broker (KRaft)",
        passes_on: Some(PassedOn::of("a property of each broker")),
        settings: &[
            Setting {
                name: "flush.messages",
                default: Some(NEVER),
                about: "after how many records they are synced: a number, or none to leave it to the kernel",
                always_shown: true,
            },
            Setting {
                name: "min.insync.replicas",
                default: Some("2"),
                about: "how many replicas must have a record before it is acknowledged",
                always_shown: false,
            },
        ],
    },
    listed: ListedCluster {
        presence: || {
            Presence::of(
                Programs::find().map(|found| (found.version, found.jars)),
                REMEDY,
            )
        },
        title: "Kafka brokers",
    },
    make: |chosen| {
        Ok(Box::new(Kafka {
            options: Options::new(chosen)?,
            chosen: chosen.clone(),
        }))
    },
};

struct Kafka {
    options: Options,
    chosen: Chosen,
}

/// What runs it, where it is installed.
struct Programs {
    java: PathBuf,
    jars: PathBuf,
    /// Of its jar: `4.1.0`.
    version: String,
}

impl Programs {
    fn find() -> Option<Programs> {
        let home = env::var_os("KAFKA_HOME").filter(|home| !home.is_empty());
        let jars = Path::new(&home.unwrap_or_else(|| HOME.into())).join(JARS);
        let names = fs::read_dir(&jars)
            .ok()?
            .flatten()
            .map(|jar| jar.file_name());
        let version = |name: &str| Some(name.strip_prefix(JAR)?.strip_suffix(".jar")?.to_owned());
        Some(Programs {
            java: java::find()?,
            version: { names }.find_map(|name| version(name.to_str()?))?,
            jars: std::path::absolute(jars).ok()?,
        })
    }

    fn required() -> Result<Programs, DatabaseError> {
        Self::find().ok_or_else(|| DatabaseError::NotInstalled {
            what: TITLE.into(),
            remedy: REMEDY.into(),
        })
    }

    /// A command that runs one of its programs, with what it has besides in a private directory.
    fn command(&self, class: &str, private: &PrivateDirectory) -> Result<Command, DatabaseError> {
        let jars = format!("{}/*", self.jars.display());
        let mut command = java::command(&self.java, &jars, private.path());
        let logging = write(private, LOGGING_FILE, LOGGING)?;
        command
            .current_dir(private.path())
            .arg(format!("-Dlog4j2.configurationFile={}", logging.display()))
            .arg(class);
        Ok(command)
    }

    /// Complains of a name that no property has: a broker would not.
    fn require_known(&self, names: &[String], stop: &Stop) -> Result<(), DatabaseError> {
        if names.is_empty() {
            return Ok(());
        }
        // It prints what its documentation says of each.
        let private = private()?;
        let mut command = self.command("kafka.server.KafkaConfig", &private)?;
        let page = program::run(&mut command, RUNNING, stop)?.stdout;
        let is_known = |name: &String| page.contains(&format!("\"brokerconfigs_{name}\""));
        let unknown = names.iter().find(|name| !is_known(name));
        unknown.map_or(Ok(()), |name| {
            let version = &self.version;
            Err(DatabaseError::Setting(format!(
                "{TITLE} {version} has no broker property '{name}'"
            )))
        })
    }
}

impl Kafka {
    /// Writes the properties of a node into a private directory.
    fn write_file(
        &self,
        node: usize,
        nodes: usize,
        directory: &Path,
        private: &PrivateDirectory,
    ) -> Result<PathBuf, DatabaseError> {
        let data = directory.join(DATA);
        let data = std::path::absolute(&data)
            .map_err(|error| DatabaseError::io(&data.display().to_string(), &error))?;
        let text = self.options.file(node, nodes, &data)?;
        write(private, FILE, &text)
    }
}

/// What a program complained of, as one of its settings if it is one.
fn complaint(text: String) -> DatabaseError {
    let mut lines = text.lines();
    match lines.find_map(|line| line.split_once("ConfigException: ")) {
        Some((_, why)) => DatabaseError::Setting(format!("{TITLE} says: {why}")),
        None => DatabaseError::Failed(text),
    }
}

/// Writes a file into a private directory.
fn write(private: &PrivateDirectory, name: &str, text: &str) -> Result<PathBuf, DatabaseError> {
    let file = private.path().join(name);
    match fs::write(&file, text) {
        Ok(()) => Ok(file),
        Err(error) => {
            let doing = format!("cannot write {}", file.display());
            Err(DatabaseError::io(&doing, &error))
        }
    }
}

impl Cluster for Kafka {
    fn chosen(&self) -> &Chosen {
        &self.chosen
    }

    fn create(
        &self,
        directories: &[PathBuf],
        templates: &Templates,
        stop: &Stop,
    ) -> Result<(), DatabaseError> {
        let programs = Programs::required()?;
        programs.require_known(&self.options.passed_on, stop)?;
        let nodes = directories.len();
        for (node, directory) in directories.iter().enumerate() {
            // What is in it does not say where it is.
            let key = format!("{} {node} {nodes}", self.chosen.name());
            templates.copy(&key, directory, stop, |directory| {
                let private = private()?;
                let file = self.write_file(node, nodes, directory, &private)?;
                let mut command = programs.command("kafka.tools.StorageTool", &private)?;
                command
                    .args(["format", "--cluster-id", CLUSTER, "--config"])
                    .arg(file);
                match program::run(&mut command, RUNNING, stop) {
                    Err(DatabaseError::Failed(text)) => Err(complaint(text)),
                    formatted => formatted.map(drop),
                }
            })?;
        }
        Ok(())
    }

    fn start(&self, node: usize, directories: &[PathBuf], _: &Stop) -> Result<Node, DatabaseError> {
        let programs = Programs::required()?;
        let private = private()?;
        let file = self.write_file(node, directories.len(), &directories[node], &private)?;
        let mut command = programs.command("kafka.Kafka", &private)?;
        command.arg(file);
        Node::start(TITLE, &mut command, private)
    }

    fn connect(
        &self,
        directories: &[PathBuf],
        started: &[usize],
    ) -> Result<Box<dyn ClusterSession>, DatabaseError> {
        // Who finds files of the topic and no topic is too early, or the controllers have lost sight of it: a new one would
        // take the place of what may come back.
        let is_there =
            |directory: &PathBuf| directory.join(DATA).join(format!("{TOPIC}-0")).exists();
        let missing = !directories.iter().any(is_there);
        Ok(Box::new(Client::connect(
            started,
            missing.then_some(directories.len()),
        )?))
    }

    fn records_of(&self, _: usize) -> Result<Option<BTreeSet<u64>>, DatabaseError> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::conformance::conforms_when_all_are_there;
    use crate::clusters::named;

    #[test]
    fn it_conforms() {
        conforms_when_all_are_there("kafka", &[("flush.messages", "1")]);
    }

    #[test]
    fn what_no_broker_knows_is_refused() {
        let Some(_) = Programs::find() else {
            eprintln!("skipped: {REMEDY}");
            return;
        };
        let root = tempfile::tempdir().unwrap();
        let refused = |key: &str, value: &str| {
            let set = [(key.to_owned(), value.to_owned())];
            let cluster = named("kafka", &set).unwrap();
            let templates = Templates::new(root.path());
            let directory = [root.path().to_owned()];
            let refused = cluster.create(&directory, &templates, &Stop::default());
            match refused {
                Err(DatabaseError::Setting(text)) => text,
                other => panic!("{key}={value}: {other:?}"),
            }
        };
        let text = refused("log.flush.intervall.messages", "1");
        assert!(
            text.ends_with("has no broker property 'log.flush.intervall.messages'"),
            "{text}"
        );
        let text = refused("log.segment.bytes", "many");
        assert_eq!(
            text,
            "Kafka says: Invalid value many for configuration log.segment.bytes: Not a number of type INT"
        );
    }
}
