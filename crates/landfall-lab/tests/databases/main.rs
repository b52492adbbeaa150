//! Every database there is, held to the same: it keeps what it acknowledged when it is killed, finds
//! nothing wrong with itself, and leaves nothing behind.
//!
//! Those that are not installed are skipped, which `LANDFALL_NO_SKIP` makes a failure. Tests follow each
//! other: what is left behind is told by the number of this process, which they share.

mod bad_input;
mod client;
mod conflict;
mod full;
mod killed;
mod left;
mod workloads;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use landfall_databases::{Database, Presence, Running, SettingError, Templates};
use landfall_lab::Stop;

/// Taken by each test that starts something.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    // A test that failed has nothing to do with the others.
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

fn skip(why: &str) {
    let nothing_is_missing = std::env::var_os("LANDFALL_NO_SKIP").is_some();
    assert!(!nothing_is_missing, "skipped all the same: {why}");
    println!("skipped: {why}");
}

/// Where a database is.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// In processes of its own.
    Server,
    /// In the process that uses it.
    LinkedIn,
}

/// The names of the databases that are here.
fn present() -> Vec<(&'static str, Place)> {
    let here =
        landfall_databases::list().filter_map(|(description, title, presence)| match presence {
            Presence::Here { version, program } => {
                println!("{title} {version}");
                let place = match program {
                    Some(_) => Place::Server,
                    None => Place::LinkedIn,
                };
                Some((description.name, place))
            }
            // It is no part of every build.
            Presence::Absent { .. }
                if description.name == "rocksdb" && !cfg!(feature = "rocksdb") =>
            {
                None
            }
            Presence::Absent { remedy } => {
                skip(&format!("{title} is not here: {remedy}"));
                None
            }
        });
    here.collect()
}

/// The names of the servers that are here.
fn servers() -> Vec<&'static str> {
    let servers = present().into_iter();
    let servers = servers.filter(|(_, place)| *place == Place::Server);
    servers.map(|(name, _)| name).collect()
}

fn with(name: &str, settings: &[(&str, &str)]) -> Result<Box<dyn Database>, SettingError> {
    let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
    landfall_databases::named(name, &settings.iter().map(owned).collect::<Vec<_>>())
}

/// The database with settings under which it has handed to the kernel what it acknowledges.
fn durable(name: &str) -> Box<dyn Database> {
    let settings: &[(&str, &str)] = match name {
        "redis" => &[("appendfsync", "always")],
        // As replicated servers are run.
        "mariadb" => &[("sync_binlog", "1")],
        _ => &[],
    };
    with(name, settings).unwrap()
}

/// Makes a database in `directory`.
fn create(database: &dyn Database, directory: &Path) {
    let templates = Templates::new(&std::env::temp_dir());
    let created = database.create(directory, &templates, &Stop::default());
    created.unwrap_or_else(|error| panic!("{}: {error}", database.name()));
}

fn start(database: &dyn Database, directory: &Path) -> Box<dyn Running> {
    let running = database.start(directory, &Stop::default());
    running.unwrap_or_else(|error| panic!("{}: {error}", database.name()))
}
