//! MariaDB, with InnoDB or MyRocks as the engine of new tables.
//!
//! Everything is told on the command line (`--no-defaults`: what a distribution or an administrator has
//! configured is not what is measured). What we do not know is handed to the server as it stands. A
//! server that does not know a variable, or makes another value of it than it was given, is not started:
//! figures of other settings than those asked for would mislead. So every number is read back, for most
//! are rounded without a word.
//!
//! The data directory is made by `mariadb-install-db` once for each page size and the like, and copied.

pub(crate) mod cluster;
pub(super) mod innodb;
pub(super) mod myrocks;
mod operator;
mod options;
mod running;
mod session;

use std::path::{Path, PathBuf};
use std::time::Duration;

use landfall_os::PrivateDirectory;

use self::options::Options;
use self::running::Mariadb;
use super::server::{Server, socket_directory, socket_path};
use super::{Database, DatabaseError, Dialect, Interface, Presence, Running, Templates, program};
use crate::setting::Setting;
use landfall_os::Stop;

/// What it is called in a sentence about the server.
const TITLE: &str = "MariaDB";
/// The database (the directory of tables) that sessions use.
const SCHEMA: &str = "landfall";
/// How long an empty data directory may take to be made: seconds, on a disk that is fast.
const INSTALLING: Duration = Duration::from_secs(10 * 60);

const BINLOG: Setting = Setting {
    name: "binlog",
    default: Some("auto"),
    about: "whether a binary log is kept, as for replicas: yes, no, or auto: if sync_binlog is set",
    always_shown: false,
};

/// The engine of new tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Engine {
    InnoDb,
    MyRocks,
}

impl Engine {
    /// How to get a server with it.
    fn remedy(self) -> &'static str {
        match self {
            Engine::InnoDb => "apt install mariadb-server",
            Engine::MyRocks => "apt install mariadb-server mariadb-plugin-rocksdb",
        }
    }
}

struct MariadbServer {
    engine: Engine,
    options: Options,
}

/// The programs, where they are installed.
struct Programs {
    server: PathBuf,
    install: PathBuf,
    /// What the server says of itself: `10.11.6-MariaDB-0+deb12u1`.
    version: String,
}

impl Programs {
    fn required(engine: Engine) -> Result<Programs, DatabaseError> {
        let absent = || DatabaseError::NotInstalled {
            what: match engine {
                Engine::InnoDb => "MariaDB".into(),
                Engine::MyRocks => "MariaDB with MyRocks".into(),
            },
            remedy: engine.remedy().into(),
        };
        let server = program::find("mariadbd", &[]).ok_or_else(absent)?;
        let install = program::find("mariadb-install-db", &[]).ok_or_else(absent)?;
        let told = program::ask(&server, &["--no-defaults", "--version"])?;
        if engine == Engine::MyRocks {
            let help = program::ask(&server, &["--no-defaults", "--verbose", "--help"])?;
            if !has_myrocks(&help) {
                return Err(absent());
            }
        }
        Ok(Programs {
            version: version(&told).ok_or_else(absent)?.to_owned(),
            server,
            install,
        })
    }
}

/// The version in what a server tells of it.
fn version(told: &str) -> Option<&str> {
    told.split_once("Ver ")?.1.split_whitespace().next()
}

/// Whether MyRocks is where a server says in its help that its plugins are.
fn has_myrocks(help: &str) -> bool {
    let mut lines = help.lines();
    let plugins = lines.find_map(|line| line.strip_prefix("plugin-dir "));
    plugins.is_some_and(|plugins| Path::new(plugins.trim()).join("ha_rocksdb.so").exists())
}

fn presence_of(engine: Engine) -> Presence {
    let found = Programs::required(engine).ok();
    Presence::of(
        found.map(|found| (found.version, found.server)),
        engine.remedy(),
    )
}

impl Database for MariadbServer {
    fn name(&self) -> String {
        self.options.name.clone()
    }

    fn interface(&self) -> Interface {
        Interface::Sql(Dialect::MariaDb)
    }

    fn create(
        &self,
        directory: &Path,
        templates: &Templates,
        stop: &Stop,
    ) -> Result<(), DatabaseError> {
        let programs = Programs::required(self.engine)?;
        let made_with = self.options.made_with();
        let key = format!("{} {}", programs.version, made_with.join(" "));
        templates.copy(&key, directory, stop, |template| {
            install(&programs, &made_with, template, stop)
        })
    }

    fn start(&self, directory: &Path, stop: &Stop) -> Result<Box<dyn Running>, DatabaseError> {
        Ok(Box::new(self.start_alone(directory, &[], stop)?))
    }
}

impl MariadbServer {
    /// Starts a server to which nobody comes but by its socket. It is told `last` after all else.
    fn start_alone(
        &self,
        directory: &Path,
        last: &[String],
        stop: &Stop,
    ) -> Result<Mariadb, DatabaseError> {
        let private = socket_directory()?;
        let socket = socket_path(&private, "socket")?;
        // Nobody on a network is to speak to it, and two would fight for the port.
        let mut arguments = vec!["--skip-networking".to_owned()];
        arguments.extend_from_slice(last);
        let server = self.begin(directory, private, &arguments)?;
        Mariadb::connect(server, socket, self.engine, &self.options, stop)
    }

    /// Starts a server in `directory`, with a socket in `private`. It is told `last` after all else.
    fn begin(
        &self,
        directory: &Path,
        private: PrivateDirectory,
        last: &[String],
    ) -> Result<Server, DatabaseError> {
        let programs = Programs::required(self.engine)?;
        if !directory.join("mysql").is_dir() {
            let directory = directory.display();
            return Err(DatabaseError::DoesNotStart(format!(
                "{directory} is no data directory of {TITLE}: it has no directory 'mysql'"
            )));
        }
        let socket = socket_path(&private, "socket")?;
        let mut command = program::command(&programs.server);
        command
            .args(basics(directory, private.path()))
            .arg(argument("socket", &socket))
            .arg(argument("pid-file", &private.path().join("pid")))
            .args(self.options.arguments())
            .args(last);
        Server::start(TITLE, &mut command, private)
    }
}

/// Makes an empty database in the empty `directory`.
fn install(
    programs: &Programs,
    made_with: &[String],
    directory: &Path,
    stop: &Stop,
) -> Result<(), DatabaseError> {
    let private: PrivateDirectory = socket_directory()?;
    let script = private.path().join("script.sql");
    std::fs::write(&script, format!("CREATE DATABASE {SCHEMA};\n")).map_err(|error| {
        DatabaseError::Refused(format!("cannot write {}: {error}", script.display()))
    })?;
    let mut command = program::command(&programs.install);
    command
        .args(basics(directory, private.path()))
        .args([
            // root of the database needs no password, whoever that is here.
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--skip-name-resolve",
        ])
        .arg(argument("extra-file", &script))
        .args(made_with);
    program::run(&mut command, INSTALLING, stop).map(drop)
}

/// What both programs are told.
fn basics(directory: &Path, private: &Path) -> Vec<std::ffi::OsString> {
    let mut basics = vec![
        // First, or it is ignored.
        "--no-defaults".into(),
        // Or a part of a name is taken for it, and what was set is known by another one.
        "--skip-getopt-prefix-matching".into(),
        argument("datadir", directory),
        argument("tmpdir", private),
    ];
    if rustix::process::geteuid().is_root() {
        // Or the server refuses root.
        basics.push("--user=root".into());
    }
    basics
}

/// A path as an argument.
fn argument(name: &str, path: &Path) -> std::ffi::OsString {
    let mut argument = std::ffi::OsString::from(format!("--{name}="));
    argument.push(path);
    argument
}
