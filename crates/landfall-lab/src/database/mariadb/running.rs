//! A server of MariaDB that runs.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use super::SCHEMA;
use super::options::Options;
use super::session::{Session, failed, run};
use crate::database::server::{Ending, Server};
use crate::database::{self, DatabaseError, Debt, Running};
use crate::{Stop, duration_text};

/// The largest packet that is sent or taken; the server's default, named so that no session asks for it.
const PACKET: usize = 16 << 20;
/// How often it is looked whether it has written everything.
const LOOK: Duration = Duration::from_millis(20);
/// For how long the dirty pages may not become fewer before it is said that they do not.
const STALLED: Duration = Duration::from_secs(120);

pub(super) struct Mariadb {
    // Dropped before the server.
    own: Mutex<Conn>,
    socket: PathBuf,
    server: Server,
}

impl Mariadb {
    /// Waits until the server takes connections, and looks whether it took its settings.
    pub fn connect(
        server: Server,
        socket: PathBuf,
        options: &Options,
        stop: &Stop,
    ) -> Result<Mariadb, DatabaseError> {
        let own = server.connect(
            stop,
            || connect(&socket).map_err(|error| error.to_string()),
            |log| options.complaint(log),
        )?;
        let running = Mariadb {
            own: Mutex::new(own),
            socket,
            server,
        };
        running.read_back(options)?;
        Ok(running)
    }

    fn read_back(&self, options: &Options) -> Result<(), DatabaseError> {
        let sql = "SELECT LOWER(variable_name), variable_type, global_value \
                   FROM information_schema.system_variables WHERE global_value IS NOT NULL";
        let variables: Vec<(String, String, String)> = self.own().query(sql).map_err(failed)?;
        variables
            .iter()
            .try_for_each(|(name, kind, value)| options.hold_against(name, kind, value))
    }

    fn own(&self) -> MutexGuard<'_, Conn> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One of the server's counters.
    fn status(&self, name: &str) -> Result<u64, DatabaseError> {
        let sql = format!("SHOW GLOBAL STATUS LIKE '{name}'");
        let row: Option<(String, u64)> = self.own().query_first(sql).map_err(failed)?;
        row.map(|(_, value)| value)
            .ok_or_else(|| DatabaseError::Failed(format!("MariaDB has no counter {name}")))
    }

    fn dirty_bytes(&self) -> Result<u64, DatabaseError> {
        self.status("Innodb_buffer_pool_bytes_dirty")
    }

    /// Waits until no page is dirty, which somebody has to have asked for.
    fn wait_until_clean(&self, stop: &Stop) -> Result<(), DatabaseError> {
        let mut least = u64::MAX;
        let mut since = Instant::now();
        loop {
            let dirty = self.dirty_bytes()?;
            if dirty == 0 {
                return Ok(());
            }
            if dirty < least {
                (least, since) = (dirty, Instant::now());
            }
            if stop.is_requested() {
                return Err(DatabaseError::Stopped);
            }
            if since.elapsed() > STALLED {
                let waited = duration_text(STALLED.as_secs_f64());
                return Err(DatabaseError::Failed(format!(
                    "MariaDB was told to write its dirty pages, and {least} bytes of them have not become fewer in {waited}"
                )));
            }
            thread::sleep(LOOK);
        }
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
    fn session(&self) -> Result<database::Session, DatabaseError> {
        let watch = self.server.watch();
        let connection = connect(&self.socket).map_err(|error| watch.explain(failed(error)))?;
        let session = Session::new(connection, watch);
        Ok(database::Session::Sql(Box::new(session)))
    }

    fn cpu(&self) -> Duration {
        self.server.cpu()
    }

    fn debt(&self) -> Result<Debt, DatabaseError> {
        Ok(Debt {
            dirty_bytes: Some(self.dirty_bytes()?),
            ..Debt::default()
        })
    }

    fn drain(&self, stop: &Stop) -> Result<(), DatabaseError> {
        let before: Option<(f64, f64)> = self
            .own()
            .query_first(
                "SELECT @@GLOBAL.innodb_max_dirty_pages_pct, @@GLOBAL.innodb_max_dirty_pages_pct_lwm",
            )
            .map_err(failed)?;
        let (most, low) = before.unwrap_or_default();
        let set = |most: f64, low: f64| {
            let sql = format!(
                "SET GLOBAL innodb_max_dirty_pages_pct_lwm = {low};
                 SET GLOBAL innodb_max_dirty_pages_pct = {most}"
            );
            run(&mut self.own(), &sql)
        };
        set(0.0, 0.0)?;
        let drained = self.wait_until_clean(stop);
        // The high mark first: the low one may not be above it.
        let restored = set(most, 0.0).and_then(|()| set(most, low));
        drained.and(restored)
    }

    fn verify(&self) -> Result<Option<String>, DatabaseError> {
        let sql = "SELECT table_schema, table_name FROM information_schema.tables \
                   WHERE table_type = 'BASE TABLE' AND table_schema NOT IN \
                   ('mysql', 'sys', 'performance_schema', 'information_schema') ORDER BY 1, 2";
        let tables: Vec<(String, String)> = self.own().query(sql).map_err(failed)?;
        for (schema, table) in tables {
            let sql = format!("CHECK TABLE `{schema}`.`{table}` EXTENDED");
            let rows: Result<Vec<(String, String, String, String)>, _> = self.own().query(sql);
            let rows = match rows {
                Ok(rows) => rows,
                // It ends itself over a page that makes no sense.
                Err(error) => {
                    let error = self.server.watch().explain(failed(error));
                    return Ok(Some(format!("CHECK TABLE {table}: {error}")));
                }
            };
            let bad = rows
                .iter()
                .find(|(_, _, kind, text)| kind != "status" || text != "OK");
            if let Some((_, _, _, text)) = bad {
                return Ok(Some(format!("CHECK TABLE {table} says: {text}")));
            }
        }
        Ok(None)
    }

    fn stop(self: Box<Self>) -> Result<(), DatabaseError> {
        drop(self.own);
        self.server.stop(Ending::Terminate)
    }
}
