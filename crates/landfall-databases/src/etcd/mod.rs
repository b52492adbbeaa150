//! etcd: a log that a cluster agrees on, and a tree of pages that it is applied to. Here the cluster is
//! one server.
//!
//! Everything is told on the command line. The server runs in the directory of its sockets and names
//! them relative to it, for it keeps its own address in its data.

mod api;
pub(crate) mod cluster;
mod metrics;
mod options;
mod running;

use std::path::{Path, PathBuf};
use std::process::Command;

use self::options::Options;
use self::running::Etcd;
use super::server::{Server, socket_directory, socket_path};
use super::{Database, DatabaseError, Interface, Presence, Running, Templates, program};
use crate::registry::Kind;
use crate::setting::{Description, PassedOn, Setting};
use crate::{Form, Listed};
use landfall_os::Stop;

const TITLE: &str = "etcd";
const REMEDY: &str = "apt install etcd-server";
/// By its log a data directory is known.
const SIGN: &str = "member/wal";
/// Its sockets, in the directory that it runs in. A URL must have a port, which is a part of the name.
const SOCKET: &str = "client:0";
const PEERS: &str = "peers:0";

/// Of a server that is alone, and of one among others.
const SETTINGS: &[Setting] = &[Setting {
    name: "unsafe-no-fsync",
    default: Some("false"),
    about: "whether nothing is ever synced: true or false",
    always_shown: true,
}];

pub(super) static KIND: Kind<dyn Database, Listed> = Kind {
    description: Description {
        name: "etcd",
        about: "etcd, a server of its own that is a cluster of one",
        passes_on: Some(PassedOn::of(
            "a flag of its command line, without dashes before it",
        )),
        settings: SETTINGS,
    },
    listed: Listed {
        presence: || {
            let found = Program::required().ok();
            Presence::of(found.map(|found| (found.version, found.path)), REMEDY)
        },
        title: TITLE,
        form: Form::Server,
    },
    make: |chosen| {
        Ok(Box::new(EtcdServer {
            options: Options::new(chosen)?,
        }))
    },
};

struct EtcdServer {
    options: Options,
}

/// The program, where it is installed.
struct Program {
    path: PathBuf,
    /// What it says of itself: `3.4.23`.
    version: String,
}

impl Program {
    fn required() -> Result<Program, DatabaseError> {
        let absent = || DatabaseError::NotInstalled {
            what: TITLE.into(),
            remedy: REMEDY.into(),
        };
        let path = program::find("etcd", &[]).ok_or_else(absent)?;
        let told = program::ask(&path, &["--version"])?;
        Ok(Program {
            version: version(&told).ok_or_else(absent)?.to_owned(),
            path,
        })
    }
}

/// The version in what a server tells of it.
fn version(told: &str) -> Option<&str> {
    let version = told.lines().next()?.strip_prefix("etcd Version: ")?;
    Some(version.trim())
}

/// It reads what else it is told in variables.
fn forget_variables(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ETCD_") {
            command.env_remove(name);
        }
    }
}

impl EtcdServer {
    fn run(&self, directory: &Path, stop: &Stop) -> Result<Etcd, DatabaseError> {
        let program = Program::required()?;
        let private = socket_directory()?;
        let socket = socket_path(&private, SOCKET)?;
        // It works elsewhere.
        let absolute = |path: &Path| {
            std::path::absolute(path)
                .map_err(|error| DatabaseError::io(&path.display().to_string(), &error))
        };
        let data = absolute(directory)?;
        let mut command = program::command(&absolute(&program.path)?);
        forget_variables(&mut command);
        command
            .current_dir(private.path())
            .args(self.options.arguments())
            .arg("--data-dir")
            .arg(data);
        let server = Server::start(TITLE, &mut command, private)?;
        Etcd::connect(server, socket, directory, &self.options, stop)
    }
}

impl Database for EtcdServer {
    fn name(&self) -> String {
        self.options.name.clone()
    }

    fn interface(&self) -> Interface {
        Interface::OrderedKeys
    }

    fn create(&self, directory: &Path, _: &Templates, stop: &Stop) -> Result<(), DatabaseError> {
        // What it finds empty it makes a cluster of.
        let running = Box::new(self.run(directory, stop)?);
        running.stop()
    }

    fn start(&self, directory: &Path, stop: &Stop) -> Result<Box<dyn Running>, DatabaseError> {
        if !directory.join(SIGN).is_dir() {
            let directory = directory.display();
            return Err(DatabaseError::DoesNotStart(format!(
                "{directory} is no data directory of {TITLE}: it has no directory '{SIGN}'"
            )));
        }
        Ok(Box::new(self.run(directory, stop)?))
    }
}
