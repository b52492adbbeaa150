//! InnoDB: what can be set of it, and what it has still to write.

use std::sync::Mutex;

use mysql::Conn;

use super::options::{Options, Variable, as_variable, variable};
use super::running::{Progress, first, lock, run, wait_until};
use super::{BINLOG, Engine, MariadbServer, presence_of};
use crate::Database;
use crate::SettingError;
use crate::registry::Kind;
use crate::setting::{Chosen, Description, PassedOn, Setting};
use crate::{DatabaseError, PendingWrites};
use crate::{Form, Listed};
use landfall_os::Stop;

/// Bytes in the log of a checkpoint itself.
const CHECKPOINT_RECORD: u64 = 64;

pub(super) const PAGE_SIZE: Setting = Setting {
    name: "innodb_page_size",
    default: Some("16K"),
    about: "bytes of a page: 4K, 8K, 16K, 32K or 64K",
    always_shown: false,
};
pub(super) const BUFFER_POOL: Setting = Setting {
    name: "innodb_buffer_pool_size",
    default: Some("128M"),
    about: "bytes of pages that are kept in memory",
    always_shown: false,
};
pub(super) const FLUSH_LOG: Setting = Setting {
    name: "innodb_flush_log_at_trx_commit",
    default: Some("1"),
    about: "when the redo log is written and synced: 1 and 3: with each commit; 2: written with each commit; 0: every second",
    always_shown: true,
};

pub(crate) static KIND: Kind<dyn Database, Listed> = Kind {
    description: Description {
        name: "mariadb",
        about: "MariaDB with InnoDB, a server of its own",
        passes_on: Some(PassedOn {
            what: "a server variable",
            spelling: as_variable,
        }),
        settings: &[
            PAGE_SIZE,
            BUFFER_POOL,
            Setting {
                name: "innodb_log_file_size",
                default: Some("96M"),
                about: "bytes of the redo log",
                always_shown: false,
            },
            FLUSH_LOG,
            BINLOG,
        ],
    },
    listed: Listed {
        presence: || presence_of(Engine::InnoDb),
        title: "MariaDB with InnoDB",
        form: Form::Server,
    },
    make: |chosen| {
        Ok(Box::new(MariadbServer {
            engine: Engine::InnoDb,
            options: Options::new(chosen, Vec::new(), variables(chosen)?)?,
        }))
    },
};

/// What was set, as the server's variables.
pub(super) fn variables(chosen: &Chosen) -> Result<Vec<Variable>, SettingError> {
    let page_size = chosen.size("innodb_page_size", 4 << 10, 64 << 10)?;
    if !page_size.is_power_of_two() {
        return Err(chosen.wrong("innodb_page_size", "it is a power of two"));
    }
    // The server's own limits are narrower, and it says so itself.
    let pool = chosen.size("innodb_buffer_pool_size", 1 << 20, 1 << 44)?;
    let log = chosen.size("innodb_log_file_size", 1 << 20, 1 << 40)?;
    let flush = chosen.number("innodb_flush_log_at_trx_commit", 0, 3)?;
    Ok(vec![
        variable("innodb_page_size", page_size),
        variable("innodb_buffer_pool_size", pool),
        variable("innodb_log_file_size", log),
        variable("innodb_flush_log_at_trx_commit", flush),
    ])
}

fn dirty_bytes(server: &mut Conn) -> Result<u64, DatabaseError> {
    let sql = "SELECT variable_value FROM information_schema.global_status \
               WHERE variable_name = 'Innodb_buffer_pool_bytes_dirty'";
    first(server, sql)
}

/// Its log has come round when it was written as far as pages may be behind: from then on every page that
/// its end would overtake has to be written.
pub(super) fn pending_writes(server: &mut Conn) -> Result<PendingWrites, DatabaseError> {
    let sql = "SELECT CAST(SUM(IF(variable_name = 'Innodb_os_log_written', variable_value, 0)) AS DOUBLE), \
                      CAST(SUM(IF(variable_name = 'Innodb_checkpoint_max_age', variable_value, 0)) AS DOUBLE) \
               FROM information_schema.global_status \
               WHERE variable_name LIKE 'Innodb_%'";
    let (written, round): (f64, f64) = first(server, sql)?;
    Ok(PendingWrites {
        dirty_bytes: Some(dirty_bytes(server)?),
        log_rounds: (round > 0.0).then_some(written / round),
        ..PendingWrites::default()
    })
}

/// Has every dirty page written.
pub(super) fn drain(server: &Mutex<Conn>, stop: &Stop) -> Result<(), DatabaseError> {
    without_dirty_pages(server, || {
        wait_until(stop, || {
            Ok(match dirty_bytes(&mut lock(server))? {
                0 => Progress::Done,
                bytes => Progress::Left(bytes, "bytes of dirty pages"),
            })
        })
    })
}

/// Has dirty pages written as soon as there are any, while it waits.
fn without_dirty_pages(
    server: &Mutex<Conn>,
    wait: impl FnOnce() -> Result<(), DatabaseError>,
) -> Result<(), DatabaseError> {
    let (most, low): (f64, f64) = first(
        &mut lock(server),
        "SELECT @@GLOBAL.innodb_max_dirty_pages_pct, @@GLOBAL.innodb_max_dirty_pages_pct_lwm",
    )?;
    let set = |most: f64, low: f64| {
        // The low mark may not be above the high one at any moment.
        let sql = format!(
            "SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0;
             SET GLOBAL innodb_max_dirty_pages_pct = {most};
             SET GLOBAL innodb_max_dirty_pages_pct_lwm = {low}"
        );
        run(&mut lock(server), &sql)
    };
    set(0.0, 0.0)?;
    wait().and(set(most, low))
}

/// Has every page written that is newer than in its file by now, and the log freed so far. Returns whether the last
/// checkpoint is another one than before.
///
/// Servers that can be told so (10.11 can) write pages until nobody commits for a moment, and at once; others take
/// up to a second to begin.
pub(super) fn checkpoint(server: &Mutex<Conn>, stop: &Stop) -> Result<bool, DatabaseError> {
    let now = || -> Result<(u64, u64), DatabaseError> {
        let sql = "SELECT CAST(SUM(IF(variable_name = 'Innodb_lsn_current', variable_value, 0)) AS UNSIGNED), \
                          CAST(SUM(IF(variable_name = 'Innodb_lsn_last_checkpoint', variable_value, 0)) AS UNSIGNED) \
                   FROM information_schema.global_status \
                   WHERE variable_name LIKE 'Innodb_lsn_%'";
        first(&mut lock(server), sql)
    };
    let (wanted, before) = now()?;
    let can_be_told = "SELECT COUNT(*) > 0 FROM information_schema.system_variables \
                       WHERE variable_name = 'innodb_log_checkpoint_now'";
    if first(&mut lock(server), can_be_told)? {
        run(
            &mut lock(server),
            "SET GLOBAL innodb_log_checkpoint_now = ON",
        )?;
        return Ok(now()?.1 > before);
    }
    without_dirty_pages(server, || {
        wait_until(stop, || {
            let (_, last) = now()?;
            // It has a record of its own in the log, after what it is about.
            let left = wanted
                .saturating_sub(CHECKPOINT_RECORD)
                .saturating_sub(last);
            Ok(match left {
                0 => Progress::Done,
                bytes => Progress::Left(bytes, "bytes of the log"),
            })
        })
    })?;
    Ok(now()?.1 > before)
}
