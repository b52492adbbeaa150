//! PostgreSQL, the newest that is installed.
//!
//! Everything that is not in a fresh data directory is told on the command line. PostgreSQL refuses to be
//! root's: for root it is run as the user `postgres`, who is given the data directory.
//!
//! It is killed by SIGQUIT, its immediate shutdown: nothing is written, so that the data are as after any
//! other death, but its shared memory is given back, which SIGKILL would leave behind for good.

pub(crate) mod cluster;
mod options;
mod running;
mod session;
mod standby;

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use self::options::{Options, as_parameter};
use self::running::Postgres;
use super::server::{Server, socket_directory, socket_path};
use super::user::User;
use super::{Database, DatabaseError, Dialect, Interface, Presence, Running, Templates, program};
use crate::registry::Kind;
use crate::setting::{Description, PassedOn, Setting};
use crate::{Form, Listed};
use landfall_os::{PrivateDirectory, Stop};

const TITLE: &str = "PostgreSQL";
const REMEDY: &str = "apt install postgresql";
/// Where distributions put programs of one version beside those of others.
const VERSIONS: [(&str, &str); 2] = [("/usr/lib/postgresql", ""), ("/usr", "pgsql-")];
/// How long an empty data directory may take to be made: seconds, on a disk that is fast.
const INSTALLING: Duration = Duration::from_secs(10 * 60);
/// The name of its socket, which follows from the port that it would have.
const SOCKET: &str = ".s.PGSQL.5432";

const BUFFERS: Setting = Setting {
    name: "shared_buffers",
    default: Some("128M"),
    about: "bytes of pages that are kept in memory",
    always_shown: false,
};
const CHECKSUMS: Setting = Setting {
    name: "checksums",
    default: Some("yes"),
    about: "whether pages have checksums: yes or no",
    always_shown: false,
};

pub(super) static KIND: Kind<dyn Database, Listed> = Kind {
    description: Description {
        name: "postgres",
        about: "PostgreSQL, a server of its own",
        passes_on: Some(PassedOn {
            what: "a configuration parameter",
            spelling: as_parameter,
        }),
        settings: &[
            Setting {
                name: "synchronous_commit",
                default: Some("on"),
                about: "whether a commit waits until its log is durable: on, local or off",
                always_shown: true,
            },
            BUFFERS,
            Setting {
                name: "wal_segment_size",
                default: Some("16M"),
                about: "bytes of a file of the log, a power of two from 1M to 1G",
                always_shown: false,
            },
            CHECKSUMS,
        ],
    },
    listed: Listed {
        presence,
        title: TITLE,
        form: Form::Server,
    },
    make: |chosen| {
        Ok(Box::new(PostgresServer {
            options: Options::new(chosen)?,
        }))
    },
};

struct PostgresServer {
    options: Options,
}

/// The programs of one version.
struct Programs {
    server: PathBuf,
    initdb: PathBuf,
    /// What the server says of itself: `15.10`.
    version: String,
    /// Whom they are run as, if not as ourselves.
    user: Option<User>,
}

impl Programs {
    fn required() -> Result<Programs, DatabaseError> {
        let absent = || DatabaseError::NotInstalled {
            what: TITLE.into(),
            remedy: REMEDY.into(),
        };
        let server = program::find("postgres", &by_version()).ok_or_else(absent)?;
        let told = program::ask(&server, &["--version"])?;
        // Of the same version.
        let beside = server.parent().ok_or_else(absent)?.to_owned();
        Ok(Programs {
            initdb: program::find("initdb", &[beside]).ok_or_else(absent)?,
            version: version(&told).ok_or_else(absent)?.to_owned(),
            server,
            user: User::instead_of_root(&["postgres"]),
        })
    }

    /// One of the programs, as whoever may run it.
    fn command(&self, program: &Path) -> Command {
        let mut command = program::command(program);
        if let Some(user) = &self.user {
            user.run(&mut command);
        }
        command
    }

    /// Makes `directory` one that the server takes for its data: its own, and nobody else's.
    fn adopt(&self, directory: &Path) -> Result<(), DatabaseError> {
        let only_mine = Permissions::from_mode(0o700);
        fs::set_permissions(directory, only_mine).map_err(refused(directory))?;
        match &self.user {
            Some(user) => {
                user.let_in(&directory.canonicalize().map_err(refused(directory))?)?;
                user.hand_over(directory)
            }
            None => Ok(()),
        }
    }
}

/// The version in what a server tells of it.
fn version(told: &str) -> Option<&str> {
    told.split_once(") ")?.1.split_whitespace().next()
}

/// The directories of programs of each version, the newest first.
fn by_version() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for (place, prefix) in VERSIONS {
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let version = name.strip_prefix(prefix).and_then(|text| text.parse().ok());
            found.extend(version.map(|version: f64| (version, entry.path().join("bin"))));
        }
    }
    found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    found.into_iter().map(|(_, directory)| directory).collect()
}

fn refused(directory: &Path) -> impl Fn(io::Error) -> DatabaseError {
    move |error| {
        let directory = directory.display();
        DatabaseError::Refused(format!("cannot use {directory} for data: {error}"))
    }
}

fn presence() -> Presence {
    let found = Programs::required().ok();
    Presence::of(found.map(|found| (found.version, found.server)), REMEDY)
}

impl Database for PostgresServer {
    fn name(&self) -> String {
        self.options.name.clone()
    }

    fn interface(&self) -> Interface {
        Interface::Sql(Dialect::Postgres)
    }

    fn create(
        &self,
        directory: &Path,
        templates: &Templates,
        stop: &Stop,
    ) -> Result<(), DatabaseError> {
        create(
            &Programs::required()?,
            &self.options,
            directory,
            templates,
            stop,
        )
    }

    fn start(&self, directory: &Path, stop: &Stop) -> Result<Box<dyn Running>, DatabaseError> {
        let programs = Programs::required()?;
        let running = start(&programs, &self.options, directory, stop)?;
        Ok(Box::new(running))
    }
}

/// Makes an empty database in the empty `directory`, from a template.
fn create(
    programs: &Programs,
    options: &Options,
    directory: &Path,
    templates: &Templates,
    stop: &Stop,
) -> Result<(), DatabaseError> {
    let made_with = options.made_with(&programs.version);
    let key = format!("postgres {} {}", programs.version, made_with.join(" "));
    templates.copy(&key, directory, stop, |template| {
        install(programs, &made_with, template, stop)
    })?;
    programs.adopt(directory)
}

fn start(
    programs: &Programs,
    options: &Options,
    directory: &Path,
    stop: &Stop,
) -> Result<Postgres, DatabaseError> {
    let private = socket_directory()?;
    let sockets = private.path().to_owned();
    let server = begin(programs, options, directory, private, &[])?;
    Postgres::connect(server, sockets, options, stop)
}

/// Starts a server in `directory`, with a socket in `private`. It is told `last` after all else.
fn begin(
    programs: &Programs,
    options: &Options,
    directory: &Path,
    private: PrivateDirectory,
    last: &[String],
) -> Result<Server, DatabaseError> {
    // The server starts elsewhere.
    let directory = &directory.canonicalize().map_err(refused(directory))?;
    if !directory.join("PG_VERSION").is_file() {
        let directory = directory.display();
        return Err(DatabaseError::DoesNotStart(format!(
            "{directory} is no data directory of {TITLE}: it has no file 'PG_VERSION'"
        )));
    }
    socket_path(&private, SOCKET)?;
    if let Some(user) = &programs.user {
        user.let_in(directory)?;
        user.let_in(private.path())?;
        user.hand_over(private.path())?;
    }
    let mut command = programs.command(&programs.server);
    let mut sockets = std::ffi::OsString::from("unix_socket_directories=");
    sockets.push(private.path());
    command.arg("-D").arg(directory).arg("-c").arg(sockets);
    for argument in options.arguments().iter().chain(last) {
        command.arg("-c").arg(argument);
    }
    Server::start_gently(TITLE, &mut command, private)
}

/// Makes an empty database in the empty `directory`.
fn install(
    programs: &Programs,
    made_with: &[String],
    directory: &Path,
    stop: &Stop,
) -> Result<(), DatabaseError> {
    programs.adopt(directory)?;
    let mut command = programs.command(&programs.initdb);
    command
        .arg("-D")
        .arg(directory.canonicalize().map_err(refused(directory))?)
        .args(made_with)
        .args([
            // Only we come to its socket.
            "--auth=trust",
            "--username=postgres",
            "--encoding=UTF8",
            "--locale=C",
            // It is copied first, and never needed after a power cut.
            "--no-sync",
        ]);
    program::run(&mut command, INSTALLING, stop)?;
    let running = start(programs, &Options::plain(), directory, stop)?;
    running.add_extensions()?;
    Box::new(running).stop()
}
