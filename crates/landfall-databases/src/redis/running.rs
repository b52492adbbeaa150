//! A server of Redis that runs, and its clients.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use redis::{Client, Connection, ConnectionAddr, IntoConnectionInfo, RedisError};

use super::options::Options;
use super::{Programs, TITLE};
use crate::server::{Ending, NoConnection, Server, Watch};
use crate::{
    Batch, DatabaseError, KeyValue, Maintenance, MaintenanceCount, PendingWrites, Running, program,
};
use landfall_os::Stop;
use landfall_os::sync_directory;

/// How often it is looked whether it has written everything.
const LOOK: Duration = Duration::from_millis(20);
/// How long a check of its files may take.
const CHECKING: Duration = Duration::from_secs(60 * 60);
/// Where the log is, in the data directory; before version 7 it was one file.
const LOG: [&str; 2] = ["appendonlydir/appendonly.aof.manifest", "appendonly.aof"];
const DUMP: &str = "dump.rdb";

pub(super) struct Redis {
    // Dropped before the server.
    own: Mutex<Connection>,
    socket: PathBuf,
    directory: PathBuf,
    programs: Programs,
    server: Server,
}

impl Redis {
    /// Waits until the server takes connections, and looks whether it took its settings.
    pub fn connect(
        server: Server,
        socket: PathBuf,
        directory: &Path,
        programs: Programs,
        options: &Options,
        stop: &Stop,
    ) -> Result<Redis, DatabaseError> {
        let connect = || connect(&socket).map_err(|error| NoConnection::NotYet(error.to_string()));
        let mut own = server.connect(stop, connect, |log| options.complaint(log))?;
        for (name, _) in options.asked() {
            let mut ask = redis::cmd("CONFIG");
            let told: Result<Vec<String>, _> = ask.arg("GET").arg(name).query(&mut own);
            let told = told.map_err(|error| server.at_start(failed(error)))?;
            if let [name, actual] = &told[..] {
                options.hold_against(name, actual)?;
            }
        }
        Ok(Redis {
            own: Mutex::new(own),
            socket,
            directory: directory.to_owned(),
            programs,
            server,
        })
    }

    fn own(&self) -> MutexGuard<'_, Connection> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has it begin something in a process beside it, of which it has one at a time: waits until no other is there.
    fn begin(&self, command: &str, stop: &Stop) -> Result<(), DatabaseError> {
        loop {
            let told = redis::cmd(command).exec(&mut *self.own());
            match told {
                Ok(()) => return Ok(()),
                Err(error) if is_at_work(&error.to_string()) => {}
                Err(error) => return Err(self.server.watch().explain(failed(error))),
            }
            if stop.is_requested() {
                return Err(DatabaseError::Stopped);
            }
            thread::sleep(LOOK);
        }
    }

    /// What it says of its files.
    fn persistence(&self) -> Result<String, DatabaseError> {
        let mut ask = redis::cmd("INFO");
        let told = ask.arg("persistence").query(&mut *self.own());
        told.map_err(|error| self.server.watch().explain(failed(error)))
    }
}

fn connect(socket: &Path) -> Result<Connection, RedisError> {
    let address = ConnectionAddr::Unix(socket.to_owned()).into_connection_info()?;
    let mut connection = Client::open(address)?.get_connection()?;
    // It answers otherwise as long as it reads its log.
    redis::cmd("PING").exec(&mut connection)?;
    Ok(connection)
}

/// Whether it says that it cannot begin something as long as it makes a log or a dump: told to schedule a dump, it would not
/// say when that begins.
fn is_at_work(said: &str) -> bool {
    const SIGNS: [&str; 2] = ["already in progress", "can't BGSAVE right now"];
    SIGNS.iter().any(|sign| said.contains(sign))
}

/// One of the numbers of what it says of itself; zero if it does not say it.
pub(super) fn field(told: &str, name: &str) -> u64 {
    let mut lines = told.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value
        .and_then(|value| value.trim().parse().ok())
        .unwrap_or(0)
}

impl Running for Redis {
    fn session(&self) -> Result<crate::Session, DatabaseError> {
        let watch = self.server.watch();
        let connection = connect(&self.socket).map_err(|error| watch.explain(failed(error)))?;
        Ok(crate::Session::Keys(Box::new(Session {
            connection,
            watch,
        })))
    }

    fn cpu(&self) -> Duration {
        self.server.cpu()
    }

    fn pending_writes(&self) -> Result<PendingWrites, DatabaseError> {
        let told = self.persistence()?;
        Ok(PendingWrites {
            dirty_bytes: Some(field(&told, "aof_buffer_length")),
            ..PendingWrites::default()
        })
    }

    fn drain(&self, stop: &Stop) -> Result<(), DatabaseError> {
        // A rewrite of a large log takes its time, and always ends.
        const UNDER_WAY: [&str; 5] = [
            "rdb_bgsave_in_progress",
            "aof_rewrite_in_progress",
            "aof_rewrite_scheduled",
            "aof_pending_bio_fsync",
            "aof_buffer_length",
        ];
        loop {
            let told = self.persistence()?;
            if UNDER_WAY.iter().all(|name| field(&told, name) == 0) {
                break;
            }
            if stop.is_requested() {
                return Err(DatabaseError::Stopped);
            }
            thread::sleep(LOOK);
        }
        // The server may not have asked for that, or not yet.
        sync_directory(&self.directory).map_err(|error| {
            let doing = format!("cannot sync what is in {}", self.directory.display());
            DatabaseError::io(&doing, &error)
        })
    }

    fn maintenance(&self) -> Result<Vec<MaintenanceCount>, DatabaseError> {
        // Counted since version 7.
        let told = self.persistence()?;
        let mut all = Vec::new();
        if field(&told, "aof_enabled") == 1 {
            let rewrites = field(&told, "aof_rewrites");
            all.push(MaintenanceCount::told(Maintenance::LogRewrite, rewrites));
        }
        let saves = field(&told, "rdb_saves");
        all.push(MaintenanceCount::told(Maintenance::Snapshot, saves));
        Ok(all)
    }

    fn maintain(&self, what: Maintenance, stop: &Stop) -> Result<(), DatabaseError> {
        let (command, under_way) = match what {
            Maintenance::LogRewrite => (
                "BGREWRITEAOF",
                ["aof_rewrite_in_progress", "aof_rewrite_scheduled"],
            ),
            Maintenance::Snapshot => ("BGSAVE", ["rdb_bgsave_in_progress"; 2]),
            other => return Err(DatabaseError::Failed(format!("{TITLE} has no {other:?}"))),
        };
        self.begin(command, stop)?;
        loop {
            let told = self.persistence()?;
            if under_way.iter().all(|name| field(&told, name) == 0) {
                return Ok(());
            }
            if stop.is_requested() {
                return Err(DatabaseError::Stopped);
            }
            thread::sleep(LOOK);
        }
    }

    fn verify(&self, stop: &Stop) -> Result<Option<String>, DatabaseError> {
        let log = LOG.map(|name| (&self.programs.check_log, self.directory.join(name)));
        let dump = (&self.programs.check_dump, self.directory.join(DUMP));
        for (program, file) in log.into_iter().chain([dump]) {
            if !file.exists() {
                continue;
            }
            let mut check = program::command(program);
            match program::run(check.arg(&file), CHECKING, stop) {
                Ok(_) => {}
                Err(DatabaseError::Failed(complaint)) => return Ok(Some(complaint)),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    fn stop(self: Box<Self>) -> Result<(), DatabaseError> {
        drop(self.own);
        self.server.stop(Ending::Terminate)
    }
}

struct Session {
    connection: Connection,
    watch: Watch,
}

impl KeyValue for Session {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DatabaseError> {
        let got = redis::cmd("GET").arg(key).query(&mut self.connection);
        got.map_err(|error| self.watch.explain(failed(error)))
    }

    fn scan(
        &mut self,
        _: &[u8],
        _: &[u8],
        _: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), DatabaseError> {
        Err(DatabaseError::Failed(format!(
            "the keys of {TITLE} have no order, so that no range of them can be read"
        )))
    }

    fn count(&mut self) -> Result<Option<u64>, DatabaseError> {
        let counted = redis::cmd("DBSIZE").query(&mut self.connection);
        counted
            .map(Some)
            .map_err(|error| self.watch.explain(failed(error)))
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), DatabaseError> {
        let mut commands = redis::pipe();
        // One command needs no transaction around it.
        if batch.0.len() > 1 {
            commands.atomic();
        }
        for (key, value) in &batch.0 {
            match value {
                Some(value) => commands.cmd("SET").arg(key).arg(value).ignore(),
                None => commands.cmd("DEL").arg(key).ignore(),
            };
        }
        let committed = commands.exec(&mut self.connection);
        committed.map_err(|error| self.watch.explain(failed(error)))
    }
}

/// What the server or the connection says, as our error.
pub(super) fn failed(error: RedisError) -> DatabaseError {
    let text = format!("{TITLE} says: {error}");
    if text.contains("No space left on device") {
        DatabaseError::no_space(text)
    } else {
        DatabaseError::Failed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_makes_a_log_or_a_dump_is_waited_for() {
        for said in [
            "ResponseError: Background append only file rewriting already in progress",
            "ResponseError: Background save already in progress",
            "ResponseError: Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE",
        ] {
            assert!(is_at_work(said), "{said}");
        }
        assert!(!is_at_work(
            "ResponseError: MISCONF Errors writing to the AOF file"
        ));
    }

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let told = "aof_rewrite_in_progress:0\r\naof_rewrite:7\r\n";
        assert_eq!(field(told, "aof_rewrite"), 7);
        assert_eq!(field(told, "aof"), 0);
    }
}
