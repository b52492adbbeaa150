//! A server of MariaDB that runs.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::{FromRow, Queryable};
use mysql::{Conn, OptsBuilder};

use super::options::Options;
pub(super) use super::session::run;
use super::session::{Session, failed};
use super::{Engine, SCHEMA, TITLE, innodb, myrocks};
use crate::server::{Ending, NoConnection, Server};
use crate::{DatabaseError, Maintenance, MaintenanceCount, PendingWrites, Running};
use landfall_os::Stop;
use landfall_os::humanize::duration_text;

/// The largest packet that is sent or taken; the server's default, named so that no session asks for it.
pub(super) const PACKET: usize = 16 << 20;
/// How often it is looked whether it has written everything.
const LOOK: Duration = Duration::from_millis(20);
/// For how long what is left may not become less before it is said that it does not.
const STALLED: Duration = Duration::from_secs(120);
/// For how long rows that were deleted may take to go.
const PURGING: Duration = Duration::from_secs(10);

/// What a server answers that will not answer otherwise: no access to a database, or at all, no such database, no host, no way
/// to log in, an option that forbids it.
const FOR_GOOD: [u16; 6] = [1044, 1045, 1049, 1130, 1290, 1698];

/// What writes the binary log waits for space, and everybody for it.
pub(super) const WAITS_FOR_SPACE: &str = "Waiting for someone to free space";

pub(super) struct Mariadb {
    // Dropped before the server.
    own: Mutex<Conn>,
    socket: PathBuf,
    engine: Engine,
    server: Server,
    /// Checkpoints that were asked for and moved InnoDB's last one on; it does not count them itself.
    checkpoints: AtomicU64,
}

impl Mariadb {
    /// Waits until the server takes connections, and looks whether it took its settings.
    pub fn connect(
        server: Server,
        socket: PathBuf,
        engine: Engine,
        options: &Options,
        stop: &Stop,
    ) -> Result<Mariadb, DatabaseError> {
        let own = server.connect(
            stop,
            || connect(&socket).map_err(no_connection),
            |log| options.complaint(log),
        )?;
        server.end_when_it_says(WAITS_FOR_SPACE);
        let running = Mariadb {
            own: Mutex::new(own),
            socket,
            engine,
            server,
            checkpoints: AtomicU64::new(0),
        };
        match running.read_back(options) {
            Ok(()) => Ok(running),
            Err(error) => Err(running.server.at_start(error)),
        }
    }

    fn read_back(&self, options: &Options) -> Result<(), DatabaseError> {
        let sql = "SELECT LOWER(variable_name), variable_type, global_value \
                   FROM information_schema.system_variables WHERE global_value IS NOT NULL";
        let variables: Vec<(String, String, String)> = rows(&mut self.own(), sql)?;
        variables
            .iter()
            .try_for_each(|(name, kind, value)| options.hold_against(name, kind, value))?;
        let is_variable = |asked: &str| variables.iter().any(|(name, ..)| name == asked);
        let ignored = options.ignored(is_variable, &self.server.log());
        ignored.map_or(Ok(()), Err)
    }

    fn own(&self) -> MutexGuard<'_, Conn> {
        lock(&self.own)
    }

    /// Runs statements, in a session of its own.
    pub fn run_all(&self, statements: &[&str]) -> Result<(), DatabaseError> {
        let mut connection = connect(&self.socket).map_err(failed)?;
        statements
            .iter()
            .try_for_each(|sql| run(&mut connection, sql))
    }

    /// Whether nothing is left of rows that were deleted.
    fn is_purged(&self) -> Result<bool, DatabaseError> {
        let sql = "SHOW GLOBAL STATUS LIKE 'Innodb_history_list_length'";
        let (_, length): (String, u64) = first(&mut self.own(), sql)?;
        Ok(length == 0)
    }

    fn check_tables(&self, stop: &Stop) -> Result<Option<String>, DatabaseError> {
        let sql = "SELECT table_schema, table_name FROM information_schema.tables \
                   WHERE table_type = 'BASE TABLE' AND table_schema NOT IN \
                   ('mysql', 'sys', 'performance_schema', 'information_schema') ORDER BY 1, 2";
        let tables: Vec<(String, String)> = rows(&mut self.own(), sql)?;
        for (schema, table) in tables {
            if stop.is_requested() {
                return Err(DatabaseError::Stopped);
            }
            let sql = format!("CHECK TABLE `{schema}`.`{table}` EXTENDED");
            let said: Result<Vec<(String, String, String, String)>, _> =
                rows(&mut self.own(), &sql);
            let said = match said {
                Ok(said) => said,
                // It ends itself over a page that makes no sense.
                Err(error) => {
                    let error = self.server.watch().explain(error);
                    return Ok(Some(format!("CHECK TABLE {table}: {error}")));
                }
            };
            let bad = said
                .iter()
                .find(|(_, _, kind, text)| kind != "status" || text != "OK");
            if let Some((_, _, _, text)) = bad {
                return Ok(Some(format!("CHECK TABLE {table} says: {text}")));
            }
        }
        Ok(None)
    }
}

/// Why there is no connection yet, and whether that stays so.
fn no_connection(error: mysql::Error) -> NoConnection {
    let is_for_good = match &error {
        mysql::Error::MySqlError(said) => FOR_GOOD.contains(&said.code),
        _ => false,
    };
    if is_for_good {
        NoConnection::Refused(failed(error).to_string())
    } else {
        NoConnection::NotYet(error.to_string())
    }
}

fn connect(socket: &std::path::Path) -> Result<Conn, mysql::Error> {
    let options = OptsBuilder::new()
        .socket(Some(socket.to_string_lossy()))
        .user(Some("root"))
        .db_name(Some(SCHEMA))
        .max_allowed_packet(Some(PACKET))
        // Statements are kept by the session, which closes none behind our back.
        .stmt_cache_size(0);
    Conn::new(options)
}

impl Running for Mariadb {
    fn session(&self) -> Result<crate::Session, DatabaseError> {
        let watch = self.server.watch();
        let connection = connect(&self.socket).map_err(|error| watch.explain(failed(error)))?;
        let session = Session::new(connection, watch);
        Ok(crate::Session::Sql(Box::new(session)))
    }

    fn cpu(&self) -> Duration {
        self.server.cpu()
    }

    fn pending_writes(&self) -> Result<PendingWrites, DatabaseError> {
        match self.engine {
            Engine::InnoDb => innodb::pending_writes(&mut self.own()),
            Engine::MyRocks => myrocks::pending_writes(&mut self.own()),
        }
    }

    fn drain(&self, stop: &Stop) -> Result<(), DatabaseError> {
        let drained = match self.engine {
            Engine::InnoDb => innodb::drain(&self.own, stop),
            Engine::MyRocks => myrocks::drain(&self.own, stop),
        };
        drained.map_err(|error| self.server.watch().explain(error))
    }

    fn maintenance(&self) -> Result<Vec<MaintenanceCount>, DatabaseError> {
        let mut server = self.own();
        let mut all = Vec::new();
        if self.engine == Engine::InnoDb {
            let checkpoints = self.checkpoints.load(Ordering::Relaxed);
            all.push(MaintenanceCount::told(Maintenance::Checkpoint, checkpoints));
        }
        if first(&mut server, "SELECT @@GLOBAL.log_bin")? {
            let files: Vec<mysql::Row> = rows(&mut server, "SHOW BINARY LOGS")?;
            let files = files.len() as u64;
            all.push(MaintenanceCount::told(Maintenance::LogRotation, files));
        }
        Ok(all)
    }

    fn maintain(&self, what: Maintenance, stop: &Stop) -> Result<(), DatabaseError> {
        let done = match (what, self.engine) {
            (Maintenance::Checkpoint, Engine::InnoDb) => {
                innodb::checkpoint(&self.own, stop).map(|has_moved| {
                    self.checkpoints
                        .fetch_add(has_moved.into(), Ordering::Relaxed);
                })
            }
            (Maintenance::LogRotation, _) => run(&mut self.own(), "FLUSH BINARY LOGS"),
            (other, _) => Err(DatabaseError::Failed(format!("{TITLE} has no {other:?}"))),
        };
        done.map_err(|error| self.server.watch().explain(error))
    }

    fn verify(&self, stop: &Stop) -> Result<Option<String>, DatabaseError> {
        let begin = Instant::now();
        loop {
            // Rows that are deleted go in the background, from one index after the other: meanwhile the
            // check can find one in an index of which the table knows nothing any more.
            let is_purged = self.is_purged().unwrap_or(true);
            let complaint = self.check_tables(stop)?;
            if complaint.is_none() || is_purged || begin.elapsed() > PURGING {
                return Ok(complaint);
            }
            thread::sleep(LOOK);
        }
    }

    fn stop(self: Box<Self>) -> Result<(), DatabaseError> {
        drop(self.own);
        self.server.stop(Ending::Terminate)
    }
}

/// How far it is.
pub(super) enum Progress {
    Done,
    /// It is at it, and does not tell how far.
    Busy,
    /// So much is left, of this.
    Left(u64, &'static str),
}

/// Looks again and again until it is done, and complains if it gets nowhere.
pub(super) fn wait_until(
    stop: &Stop,
    mut look: impl FnMut() -> Result<Progress, DatabaseError>,
) -> Result<(), DatabaseError> {
    let mut last = u64::MAX;
    let mut since = Instant::now();
    loop {
        let (left, what) = match look()? {
            Progress::Done => return Ok(()),
            Progress::Left(left, what) => (left, what),
            Progress::Busy => {
                since = Instant::now();
                (last, "")
            }
        };
        // It may become more for a while: what is merged fills the next level.
        if left != last {
            (last, since) = (left, Instant::now());
        }
        if stop.is_requested() {
            return Err(DatabaseError::Stopped);
        }
        if since.elapsed() > STALLED {
            let waited = duration_text(STALLED.as_secs_f64());
            return Err(DatabaseError::Failed(format!(
                "{TITLE} was told to write everything, and {left} {what} have stayed as many for {waited}"
            )));
        }
        thread::sleep(LOOK);
    }
}

pub(super) fn lock(connection: &Mutex<Conn>) -> MutexGuard<'_, Conn> {
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Every row of a result.
pub(super) fn rows<T: FromRow>(server: &mut Conn, sql: &str) -> Result<Vec<T>, DatabaseError> {
    let mut rows = Vec::new();
    for row in server.query_iter(sql).map_err(failed)? {
        let row = mysql::from_row_opt(row.map_err(failed)?);
        rows.push(row.map_err(|error| {
            DatabaseError::Failed(format!("{TITLE} answers otherwise than it should: {error}"))
        })?);
    }
    Ok(rows)
}

/// The first row of a result that has one.
pub(super) fn first<T: FromRow>(server: &mut Conn, sql: &str) -> Result<T, DatabaseError> {
    let mut rows = rows(server, sql)?;
    if !rows.is_empty() {
        Ok(rows.swap_remove(0))
    } else {
        Err(DatabaseError::Failed(format!(
            "{TITLE} has no answer to {sql}"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_refuses_for_good_is_not_waited_for() {
        let said = |code| {
            no_connection(mysql::Error::MySqlError(mysql::MySqlError {
                state: "HY000".into(),
                message: "no".into(),
                code,
            }))
        };
        for code in FOR_GOOD {
            assert!(matches!(said(code), NoConnection::Refused(_)), "{code}");
        }
        // Too many connections, out of memory, a handshake that took too long.
        for code in [1040, 1037, 1043] {
            assert!(matches!(said(code), NoConnection::NotYet(_)), "{code}");
        }
    }
}
