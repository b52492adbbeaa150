//! Redis: everything in memory, and a log of the changes.
//!
//! Everything is told on the command line. Redis makes a data directory out of any empty one, so ours
//! have a file that says that they are meant to be one.

pub(crate) mod cluster;
mod options;
mod running;

use std::fs;
use std::path::{Path, PathBuf};

use self::options::Options;
use self::running::Redis;
use super::server::{Server, socket_directory, socket_path};
use super::{Database, DatabaseError, Interface, Presence, Running, Templates, program};
use crate::registry::Kind;
use crate::setting::{Description, PassedOn, Setting};
use crate::{Form, Listed};
use landfall_os::Stop;

const TITLE: &str = "Redis";
const REMEDY: &str = "apt install redis-server";
/// The file by which a data directory of ours is known.
const SIGN: &str = "redis.conf";

const APPENDONLY: Setting = Setting {
    name: "appendonly",
    default: Some("yes"),
    about: "whether changes are appended to a file: yes or no",
    always_shown: false,
};
const APPENDFSYNC: Setting = Setting {
    name: "appendfsync",
    default: Some("everysec"),
    about: "when that file is synced: always (before a change is acknowledged), everysec or no",
    always_shown: true,
};

pub(super) static KIND: Kind<dyn Database, Listed> = Kind {
    description: Description {
        name: "redis",
        about: "Redis, a server of its own",
        passes_on: Some(PassedOn::in_any_case("a configuration directive")),
        settings: &[APPENDONLY, APPENDFSYNC],
    },
    listed: Listed {
        presence,
        title: TITLE,
        form: Form::Server,
    },
    make: |chosen| {
        Ok(Box::new(RedisServer {
            options: Options::new(chosen)?,
        }))
    },
};

struct RedisServer {
    options: Options,
}

/// The programs, where they are installed.
struct Programs {
    server: PathBuf,
    check_log: PathBuf,
    check_dump: PathBuf,
    /// What the server says of itself: `7.0.15`.
    version: String,
}

impl Programs {
    fn required() -> Result<Programs, DatabaseError> {
        let absent = || DatabaseError::NotInstalled {
            what: TITLE.into(),
            remedy: REMEDY.into(),
        };
        let find = |name| program::find(name, &[]).ok_or_else(absent);
        let server = find("redis-server")?;
        let told = program::ask(&server, &["--version"])?;
        Ok(Programs {
            check_log: find("redis-check-aof")?,
            check_dump: find("redis-check-rdb")?,
            version: version(&told).ok_or_else(absent)?.to_owned(),
            server,
        })
    }
}

/// The version in what a server tells of it.
fn version(told: &str) -> Option<&str> {
    told.split_once("v=")?.1.split_whitespace().next()
}

fn presence() -> Presence {
    let found = Programs::required().ok();
    Presence::of(found.map(|found| (found.version, found.server)), REMEDY)
}

impl Database for RedisServer {
    fn name(&self) -> String {
        self.options.name.clone()
    }

    fn interface(&self) -> Interface {
        Interface::Keys
    }

    fn create(&self, directory: &Path, _: &Templates, _: &Stop) -> Result<(), DatabaseError> {
        Programs::required()?;
        let sign = directory.join(SIGN);
        let text = "# What is set is on the command line.\n";
        fs::write(&sign, text).map_err(|error| {
            DatabaseError::Refused(format!("cannot write {}: {error}", sign.display()))
        })
    }

    fn start(&self, directory: &Path, stop: &Stop) -> Result<Box<dyn Running>, DatabaseError> {
        let programs = Programs::required()?;
        if !directory.join(SIGN).is_file() {
            let directory = directory.display();
            return Err(DatabaseError::DoesNotStart(format!(
                "{directory} is no data directory of {TITLE} that Landfall made: it has no file '{SIGN}'"
            )));
        }
        let private = socket_directory()?;
        let socket = socket_path(&private, "socket")?;
        let mut command = program::command(&programs.server);
        command
            .arg("--unixsocket")
            .arg(&socket)
            .arg("--dir")
            .arg(directory)
            .args(self.options.arguments());
        let server = Server::start(TITLE, &mut command, private)?;
        let running = Redis::connect(server, socket, directory, programs, &self.options, stop)?;
        Ok(Box::new(running))
    }
}
