//! A server of PostgreSQL that runs.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use postgres::error::SqlState;
use postgres::{Client, Config, NoTls};

use super::TITLE;
use super::options::Options;
use super::session::{Session, failed};
use crate::server::{Ending, NoConnection, Server};
use crate::{DatabaseError, Maintenance, MaintenanceCount, PendingWrites, Running};
use landfall_os::Stop;

/// What looks at buffers, and what checks tables and indexes; both are in Debian's package of the server,
/// elsewhere in one named contrib.
const EXTENSIONS: [&str; 2] = ["pg_buffercache", "amcheck"];
/// How often everything is written out until nothing is dirty.
const CHECKPOINTS: usize = 5;
/// Bytes of a page, unless somebody compiled it otherwise.
const PAGE: u64 = 8192;
/// How often it is looked whether a checkpoint was counted.
const LOOK: Duration = Duration::from_millis(2);

pub(super) struct Postgres {
    // Dropped before the server.
    own: Mutex<Client>,
    sockets: PathBuf,
    server: Server,
}

impl Postgres {
    /// Waits until the server takes connections, and looks whether it took its settings.
    pub fn connect(
        server: Server,
        sockets: PathBuf,
        options: &Options,
        stop: &Stop,
    ) -> Result<Postgres, DatabaseError> {
        let connect = || {
            connect(&sockets).map_err(|error| {
                // What has a code was said by the server itself.
                let is_said = error.code().is_some();
                let is_for_now = error.code() == Some(&SqlState::CANNOT_CONNECT_NOW);
                let why = failed(error).to_string();
                if is_said && !is_for_now {
                    NoConnection::Refused(why)
                } else {
                    NoConnection::NotYet(why)
                }
            })
        };
        let own = server.connect(stop, connect, |log| options.complaint(log))?;
        let running = Postgres {
            own: Mutex::new(own),
            sockets,
            server,
        };
        match running.read_back(options) {
            Ok(()) => Ok(running),
            Err(error) => Err(running.server.at_start(error)),
        }
    }

    fn read_back(&self, options: &Options) -> Result<(), DatabaseError> {
        let sql = "SELECT name, setting, coalesce(unit, '') FROM pg_settings \
                   WHERE source = 'command line' AND vartype IN ('integer', 'real')";
        let rows = self.own().query(sql, &[]).map_err(failed)?;
        rows.iter()
            .try_for_each(|row| options.hold_against(row.get(0), row.get(1), row.get(2)))?;
        // What is only held for a library that may come is not in this view.
        let sql = "SELECT lower(name) FROM pg_settings WHERE name LIKE '%.%'";
        let rows = self.own().query(sql, &[]).map_err(failed)?;
        let names: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        options.require_known(|asked| names.iter().any(|name| name == asked))
    }

    /// Makes in a fresh data directory what [`pending_writes`](Running::pending_writes) and [`verify`](Running::verify) need,
    /// as far as it is installed.
    pub fn add_extensions(&self) -> Result<(), DatabaseError> {
        let sql = "SELECT name FROM pg_available_extensions WHERE installed_version IS NULL";
        let rows = self.own().query(sql, &[]).map_err(failed)?;
        for row in rows {
            let name: &str = row.get(0);
            if EXTENSIONS.contains(&name) {
                let create = format!("CREATE EXTENSION {name}");
                self.run(&create)?;
            }
        }
        Ok(())
    }

    /// Runs statements.
    pub fn run(&self, sql: &str) -> Result<(), DatabaseError> {
        let ran = self.own().batch_execute(sql);
        ran.map_err(|error| self.server.watch().explain(failed(error)))
    }

    fn has(&self, extension: &str) -> Result<bool, DatabaseError> {
        let sql = "SELECT FROM pg_extension WHERE extname = $1";
        let rows = self.own().query(sql, &[&extension]).map_err(failed)?;
        Ok(!rows.is_empty())
    }

    /// How many checkpoints there were, as the server counts them.
    fn checkpoints(&self) -> Result<u64, DatabaseError> {
        let explained = |error| self.server.watch().explain(failed(error));
        // Since version 17 they are in a view of their own.
        let has_view = "SELECT to_regclass('pg_stat_checkpointer') IS NOT NULL";
        let has_view = self.own().query_one(has_view, &[]).map_err(explained)?;
        let sql = if has_view.try_get(0).map_err(failed)? {
            "SELECT num_timed + num_requested FROM pg_stat_checkpointer"
        } else {
            "SELECT checkpoints_timed + checkpoints_req FROM pg_stat_bgwriter"
        };
        let row = self.own().query_one(sql, &[]).map_err(explained)?;
        let checkpoints: i64 = row.try_get(0).map_err(failed)?;
        Ok(checkpoints as u64)
    }

    fn own(&self) -> MutexGuard<'_, Client> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the check of a table complains of.
    fn check_table(&self, id: u32) -> Result<Option<String>, postgres::Error> {
        let sql = "SELECT msg FROM verify_heapam($1::oid) LIMIT 1";
        let said = self.own().query_opt(sql, &[&id])?;
        said.map(|row| row.try_get(0)).transpose()
    }

    /// An index that something is wrong with is an error, as is a page with a wrong checksum.
    fn check_index(&self, id: u32) -> Result<Option<String>, postgres::Error> {
        // Also that every row of the table has an entry.
        let sql = "SELECT FROM bt_index_check($1::oid, true)";
        self.own().execute(sql, &[&id]).map(|_| None)
    }
}

fn connect(sockets: &std::path::Path) -> Result<Client, postgres::Error> {
    Config::new()
        .host_path(sockets)
        .user("postgres")
        .dbname("postgres")
        .connect(NoTls)
}

impl Running for Postgres {
    fn session(&self) -> Result<crate::Session, DatabaseError> {
        let watch = self.server.watch();
        let connection = connect(&self.sockets).map_err(|error| watch.explain(failed(error)))?;
        let session = Session::new(connection, watch);
        Ok(crate::Session::Sql(Box::new(session)))
    }

    fn cpu(&self) -> Duration {
        self.server.cpu()
    }

    fn pending_writes(&self) -> Result<PendingWrites, DatabaseError> {
        // It has come round when a checkpoint began and ended; what was before does not count.
        let sql =
            "SELECT checkpoint_time > pg_postmaster_start_time() FROM pg_control_checkpoint()";
        let row = self.own().query_one(sql, &[]).map_err(failed)?;
        let came_round: bool = row.try_get(0).map_err(failed)?;
        let log_rounds = Some(f64::from(u8::from(came_round)));
        if !self.has("pg_buffercache")? {
            return Ok(PendingWrites {
                log_rounds,
                ..PendingWrites::default()
            });
        }
        let sql = "SELECT count(*) FROM pg_buffercache WHERE isdirty";
        let row = self.own().query_one(sql, &[]).map_err(failed)?;
        let pages: i64 = row.try_get(0).map_err(failed)?;
        Ok(PendingWrites {
            dirty_bytes: Some(pages as u64 * PAGE),
            log_rounds,
            ..PendingWrites::default()
        })
    }

    fn drain(&self, stop: &Stop) -> Result<(), DatabaseError> {
        // To look at a row for the first time after its commit makes its page dirty (hint bits), in the
        // catalogue too, so that looking for dirty pages leaves some. Vacuum never ends: no more of it is
        // waited for.
        for _ in 0..CHECKPOINTS {
            self.run("CHECKPOINT")?;
            if stop.is_requested() {
                return Err(DatabaseError::Stopped);
            }
            if self.pending_writes()?.dirty_bytes.unwrap_or(0) == 0 {
                break;
            }
        }
        Ok(())
    }

    fn maintenance(&self) -> Result<Vec<MaintenanceCount>, DatabaseError> {
        let checkpoints = self.checkpoints()?;
        Ok(vec![MaintenanceCount::told(
            Maintenance::Checkpoint,
            checkpoints,
        )])
    }

    fn maintain(&self, what: Maintenance, stop: &Stop) -> Result<(), DatabaseError> {
        if what != Maintenance::Checkpoint {
            return Err(DatabaseError::Failed(format!("{TITLE} has no {what:?}")));
        }
        let before = self.checkpoints()?;
        self.run("CHECKPOINT")?;
        // It is counted a moment later than it is done.
        while self.checkpoints()? == before {
            if stop.is_requested() {
                return Err(DatabaseError::Stopped);
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    fn verify(&self, stop: &Stop) -> Result<Option<String>, DatabaseError> {
        if !self.has("amcheck")? {
            return Err(DatabaseError::NotInstalled {
                what: "PostgreSQL's amcheck".into(),
                remedy: "install the contrib package of the server, and make the database again"
                    .into(),
            });
        }
        let sql = "SELECT c.oid, c.oid::regclass::text, c.relkind::text FROM pg_class c \
                   LEFT JOIN pg_index i ON i.indexrelid = c.oid \
                   LEFT JOIN pg_am a ON a.oid = c.relam \
                   WHERE c.relpersistence = 'p' AND \
                   (c.relkind IN ('r', 'm', 't') OR c.relkind = 'i' AND a.amname = 'btree' AND i.indisvalid) \
                   ORDER BY c.oid";
        let complaint = |what: &str, error| {
            let error = self.server.watch().explain(failed(error));
            Ok(Some(format!("{what} cannot be read: {error}")))
        };
        let things = match self.own().query(sql, &[]) {
            Ok(things) => things,
            Err(error) => return complaint("the catalogue", error),
        };
        for thing in things {
            if stop.is_requested() {
                return Err(DatabaseError::Stopped);
            }
            let (id, name): (u32, String) = (thing.get(0), thing.get(1));
            let said = match thing.get(2) {
                "i" => self.check_index(id),
                _ => self.check_table(id),
            };
            match said {
                Ok(None) => {}
                Ok(Some(said)) => return Ok(Some(format!("amcheck of {name} says: {said}"))),
                Err(error) => return complaint(&name, error),
            }
        }
        Ok(None)
    }

    fn stop(self: Box<Self>) -> Result<(), DatabaseError> {
        drop(self.own);
        self.server.stop(Ending::Interrupt)
    }
}
