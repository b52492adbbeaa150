//! NATS JetStream as a cluster: a stream of which each server has a replica, by a log that they agree on (Raft).
//!
//! Records are the messages of the stream, and a record is acknowledged when the leader of the stream says so, who has then
//! written it and knows that a majority has. What is synced when is `sync_interval`'s to say.
//!
//! Reading: only the leader of a stream answers what messages it has (`$JS.API.STREAM.MSG.GET`); the other way, by which any
//! replica answers that thinks itself nearly complete (`allow_direct`), is off. A leader that was just chosen may not have
//! applied all that is committed, so whoever reads adds a message of his own first, a *barrier*, and takes for complete only
//! what leads up to it: a stream has its messages in order.
//!
//! What one replica has by itself cannot be asked: the answers to direct questions do not tell whose they are, and the page of
//! a server (`/jsz`) counts messages but does not name them.

mod client;
mod options;

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::client::Client;
use self::options::{Actual, Options, USUAL_INTERVAL};
use crate::cluster::{ANSWERING, Cluster, ClusterSession, ListedCluster, Node, address, private};
use crate::registry::Kind;
use crate::setting::{Chosen, Description, Setting};
use crate::{DatabaseError, Presence, Templates, page, program};
use landfall_os::Stop;

const TITLE: &str = "nats-server";
const REMEDY: &str = "go install github.com/nats-io/nats-server/v2@v2.12.1";
/// Where node 0 listens: for clients, for the other servers, and for who wants to see its pages.
const CLIENTS: u16 = 4200;
const PEERS: u16 = 4300;
const PAGES: u16 = 4400;
/// The stream. Its files are in a directory of this name.
const STREAM: &str = "landfall";
/// Where a server keeps the streams of who does not say who he is, in its directory.
const STREAMS: &str = "jetstream/$G/streams";
/// What a server's directory in a node's is called, and its file of settings.
const DATA: &str = "data";
const FILE: &str = "nats.conf";
/// How long it is waited whether there is a leader: what is said before there is one nobody hears, and is to be said again.
const LEADING: Duration = Duration::from_secs(2);
/// How long a server may take to look at its settings.
const LOOKING: Duration = Duration::from_secs(60);

pub(crate) static KIND: Kind<dyn Cluster, ListedCluster> = Kind {
    description: Description {
        name: "nats",
        about: "NATS JetStream, a stream with a replica on each server (Raft)",
        passes_on: None,
        settings: &[Setting {
            name: "sync_interval",
            default: Some(USUAL_INTERVAL),
            about: "when what was written is synced: always (before it is acknowledged), or how often, such as 10s",
            always_shown: true,
        }],
    },
    listed: ListedCluster {
        presence: || {
            let found = Program::required().ok();
            Presence::of(found.map(|found| (found.version, found.path)), REMEDY)
        },
        title: "NATS servers",
    },
    make: |chosen| {
        Ok(Box::new(Nats {
            options: Options::new(chosen)?,
            chosen: chosen.clone(),
        }))
    },
};

struct Nats {
    options: Options,
    chosen: Chosen,
}

/// The program, where it is installed.
struct Program {
    path: PathBuf,
    /// What it says of itself: `2.12.1`.
    version: String,
}

impl Program {
    fn required() -> Result<Program, DatabaseError> {
        let absent = || DatabaseError::NotInstalled {
            what: TITLE.into(),
            remedy: REMEDY.into(),
        };
        let path = program::find(TITLE, &installed_by_go()).ok_or_else(absent)?;
        let told = program::ask(&path, &["--version"])?;
        let version = told.trim().strip_prefix("nats-server: v");
        Ok(Program {
            version: version.ok_or_else(absent)?.to_owned(),
            path,
        })
    }
}

/// Where `go install` puts programs: before others, for who has asked for a version has no use for an older one.
fn installed_by_go() -> Vec<PathBuf> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty());
    let below = |directory: PathBuf| directory.join("bin");
    let chosen = variable("GOBIN").map(PathBuf::from);
    let path = variable("GOPATH").and_then(|path| env::split_paths(&path).next());
    let usual = env::home_dir().map(|home| home.join("go"));
    chosen.or(path.or(usual).map(below)).into_iter().collect()
}

impl Nats {
    /// Writes the settings of a node into a directory.
    fn write_file(
        &self,
        node: usize,
        directories: &[PathBuf],
        target: &Path,
    ) -> Result<PathBuf, DatabaseError> {
        let data = directories[node].join(DATA);
        let data = std::path::absolute(&data)
            .map_err(|error| DatabaseError::io(&data.display().to_string(), &error))?;
        let file = target.join(FILE);
        let text = self.options.file(node, directories.len(), &data)?;
        fs::write(&file, text).map_err(|error| {
            DatabaseError::io(&format!("cannot write {}", file.display()), &error)
        })?;
        Ok(file)
    }
}

impl Cluster for Nats {
    fn chosen(&self) -> &Chosen {
        &self.chosen
    }

    fn create(
        &self,
        directories: &[PathBuf],
        _: &Templates,
        stop: &Stop,
    ) -> Result<(), DatabaseError> {
        // What a server finds empty it makes its own. Here it only looks whether it understands what it will be told.
        let program = Program::required()?;
        let private = private()?;
        let file = self.write_file(0, directories, private.path())?;
        let mut command = program::command(&program.path);
        command.arg("-t").arg("-c").arg(file);
        match program::run(&mut command, LOOKING, stop) {
            Err(DatabaseError::Failed(text)) => Err(DatabaseError::Setting(text)),
            looked => looked.map(drop),
        }
    }

    fn start(&self, node: usize, directories: &[PathBuf], _: &Stop) -> Result<Node, DatabaseError> {
        let program = Program::required()?;
        let private = private()?;
        let file = self.write_file(node, directories, private.path())?;
        let mut command = program::command(&program.path);
        command.current_dir(private.path()).arg("-c").arg(file);
        Node::start(TITLE, &mut command, private)
    }

    fn connect(
        &self,
        directories: &[PathBuf],
        started: &[usize],
    ) -> Result<Box<dyn ClusterSession>, DatabaseError> {
        // Who does not tell may have ended, and the others do without.
        let told: Vec<Actual> = started.iter().filter_map(|&node| actual(node)).collect();
        if told.is_empty() {
            let late = "no server tells yet how it is set";
            return Err(DatabaseError::Late(late.into()));
        }
        for actual in &told {
            self.options.hold_against(actual)?;
        }
        let client = Client::connect(started)?;
        // Who finds files of the stream and no stream is too early, or the servers have lost sight of it: a new one would take
        // the place of what may come back.
        let is_there =
            |directory: &PathBuf| directory.join(DATA).join(STREAMS).join(STREAM).exists();
        if !directories.iter().any(is_there) {
            client.make_stream(directories.len())?;
        }
        client.barrier(LEADING)?;
        Ok(Box::new(client))
    }

    fn records_of(&self, _: usize) -> Result<Option<BTreeSet<u64>>, DatabaseError> {
        Ok(None)
    }
}

/// How a node says that it is set; `None`: it does not say it yet.
fn actual(node: usize) -> Option<Actual> {
    #[derive(serde::Deserialize)]
    struct Page {
        jetstream: JetStream,
    }
    #[derive(serde::Deserialize)]
    struct JetStream {
        config: Option<Actual>,
    }
    let stream = TcpStream::connect(address(PAGES, node)).ok()?;
    stream.set_read_timeout(Some(ANSWERING)).ok()?;
    let page = page::read(stream, "/varz").ok()?;
    serde_json::from_str::<Page>(&page).ok()?.jetstream.config
}

#[cfg(test)]
mod tests {
    use crate::cluster::conformance::conforms;

    #[test]
    fn it_conforms() {
        conforms("nats", &[]);
    }

    #[test]
    fn it_conforms_where_everything_is_synced() {
        conforms("nats", &[("sync_interval", "always")]);
    }
}
