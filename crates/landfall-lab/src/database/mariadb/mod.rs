//! MariaDB, with InnoDB as the engine of new tables.
//!
//! Everything is told on the command line (`--no-defaults`: what a distribution or an administrator has
//! configured is not what is measured). What we do not know is handed to the server as it stands. A
//! server that does not know a variable, or makes another value of it than it was given, is not started:
//! figures of other settings than those asked for would mislead. So every number is read back, for most
//! are rounded without a word.
//!
//! The data directory is made by `mariadb-install-db` once for each page size and the like, and copied.

mod options;
mod running;
mod session;

use std::path::{Path, PathBuf};
use std::time::Duration;

use landfall_os::PrivateDirectory;

use self::options::Options;
use self::running::Mariadb;
use super::registry::Kind;
use super::server::{Server, socket_directory, socket_path};
use super::{Database, DatabaseError, Dialect, Interface, Presence, Running, Templates, program};
use crate::Stop;
use crate::setting::{Description, Setting};

/// What it is called in a sentence about the server.
const TITLE: &str = "MariaDB";
const REMEDY: &str = "apt install mariadb-server";
/// The database (the directory of tables) that sessions use.
const SCHEMA: &str = "landfall";
/// How long an empty data directory may take to be made: seconds, on a disk that is fast.
const INSTALLING: Duration = Duration::from_secs(10 * 60);

pub(super) static INNODB: Kind = Kind {
    description: Description {
        name: "mariadb",
        about: "MariaDB with InnoDB, a server of its own",
        passes_on: Some("a server variable"),
        settings: &[
            Setting {
                name: "innodb_page_size",
                default: Some("16K"),
                about: "bytes of a page: 4K, 8K, 16K, 32K or 64K",
                telling: false,
            },
            Setting {
                name: "innodb_buffer_pool_size",
                default: Some("128M"),
                about: "bytes of pages that are kept in memory",
                telling: false,
            },
            Setting {
                name: "innodb_log_file_size",
                default: Some("96M"),
                about: "bytes of the redo log",
                telling: false,
            },
            Setting {
                name: "innodb_flush_log_at_trx_commit",
                default: Some("1"),
                about: "when the redo log is written and synced: 1 and 3: with each commit; 2: written with each commit; 0: every second",
                telling: true,
            },
            BINLOG,
        ],
    },
    presence,
    title: "MariaDB with InnoDB",
    make: |chosen| {
        Ok(Box::new(MariadbServer {
            options: Options::innodb(chosen)?,
        }))
    },
};

const BINLOG: Setting = Setting {
    name: "binlog",
    default: Some("auto"),
    about: "whether a binary log is kept, as for replicas: yes, no, or auto: if sync_binlog is set",
    telling: false,
};

struct MariadbServer {
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
    fn find() -> Option<Programs> {
        let server = program::find("mariadbd", &[])?;
        let install = program::find("mariadb-install-db", &[])?;
        let told = program::ask(&server, &["--no-defaults", "--version"])?;
        let version = told.split_once("Ver ")?.1.split_whitespace().next()?;
        Some(Programs {
            server,
            install,
            version: version.to_owned(),
        })
    }

    fn required() -> Result<Programs, DatabaseError> {
        Self::find().ok_or_else(|| DatabaseError::NotInstalled {
            what: TITLE.into(),
            remedy: REMEDY.into(),
        })
    }
}

fn presence() -> Presence {
    match Programs::find() {
        Some(programs) => Presence::Here {
            version: programs.version,
            program: Some(programs.server),
        },
        None => Presence::Absent {
            remedy: REMEDY.into(),
        },
    }
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
        let programs = Programs::required()?;
        let made_with = self.options.made_with();
        let key = format!("{} {}", programs.version, made_with.join(" "));
        templates.copy(&key, directory, |template| {
            install(&programs, &made_with, template, stop)
        })
    }

    fn start(&self, directory: &Path, stop: &Stop) -> Result<Box<dyn Running>, DatabaseError> {
        let programs = Programs::required()?;
        if !directory.join("mysql").is_dir() {
            let directory = directory.display();
            return Err(DatabaseError::DoesNotStart(format!(
                "{directory} is no data directory of {TITLE}: it has no directory 'mysql'"
            )));
        }
        let private = socket_directory()?;
        let socket = socket_path(&private, "socket")?;
        let mut command = program::command(&programs.server);
        command
            .args(basics(directory, private.path()))
            // Nobody on a network is to speak to it, and two would fight for the port.
            .arg("--skip-networking")
            .arg(argument("socket", &socket))
            .arg(argument("pid-file", &private.path().join("pid")))
            .args(self.options.arguments());
        let server = Server::start(TITLE, &mut command, private)?;
        Ok(Box::new(Mariadb::connect(
            server,
            socket,
            &self.options,
            stop,
        )?))
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
