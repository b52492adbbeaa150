//! MyRocks: RocksDB as a storage engine, the log-structured merge tree that Debian ships for MariaDB.
//!
//! It stands for TokuDB, the write-optimised engine that InnoDB was once compared with and that no
//! distribution has any more.
//!
//! The levels of the tree follow from the size of a memtable, as RocksDB advises: with the sizes that it
//! has unless told otherwise a database of some hundred megabytes would have no levels to speak of, and
//! cost less than one that is large. InnoDB is there too, for tables of the server's own.

use std::sync::Mutex;

use mysql::Conn;

use super::options::{Options, Variable, as_variable, variable};
use super::running::{Progress, first, lock, rows, run, wait_until};
use super::{BINLOG, Engine, MariadbServer, presence_of};
use crate::Database;
use crate::SettingError;
use crate::registry::Kind;
use crate::setting::{Chosen, Description, PassedOn, Setting};
use crate::{DatabaseError, PendingWrites};
use crate::{Form, Listed};
use landfall_os::Stop;

/// Memtables that a block cache is as large as, unless set.
const MEMTABLES_IN_CACHE: u64 = 12;

pub(crate) static KIND: Kind<dyn Database, Listed> = Kind {
    description: Description {
        name: "myrocks",
        about: "MariaDB with MyRocks (RocksDB); stands for TokuDB, which is shipped nowhere any more",
        passes_on: Some(PassedOn {
            what: "a server variable",
            spelling: as_variable,
        }),
        settings: &[
            Setting {
                name: "rocksdb_block_cache_size",
                default: Some("128M"),
                about: "bytes of blocks that are kept in memory",
                always_shown: false,
            },
            Setting {
                name: "memtable",
                default: Some("auto"),
                about: "bytes of changes that are gathered in memory; auto: a twelfth of the block cache",
                always_shown: false,
            },
            Setting {
                name: "compression",
                default: Some("zstd"),
                about: "none, zlib or zstd",
                always_shown: true,
            },
            Setting {
                name: "rocksdb_flush_log_at_trx_commit",
                default: Some("1"),
                about: "when the log is written and synced: 1: with each commit; 2: written with each commit, synced every second; 0: every second",
                always_shown: true,
            },
            BINLOG,
        ],
    },
    listed: Listed {
        presence: || presence_of(Engine::MyRocks),
        title: "MariaDB with MyRocks",
        form: Form::Server,
    },
    make: |chosen| {
        Ok(Box::new(MariadbServer {
            engine: Engine::MyRocks,
            options: Options::new(chosen, fixed(), variables(chosen)?)?,
        }))
    },
};

/// What the server is told for this engine, unless it is told otherwise.
fn fixed() -> Vec<Variable> {
    let fixed = [
        ("plugin_load_add", "ha_rocksdb"),
        ("default_storage_engine", "rocksdb"),
        // The page cache is no part of what is compared: InnoDB does not use it either.
        ("rocksdb_use_direct_reads", "ON"),
        ("rocksdb_use_direct_io_for_flush_and_compaction", "ON"),
        // As InnoDB does: deadlocks are found, locks are waited for, and who does not get one in time has
        // to begin anew.
        ("rocksdb_deadlock_detect", "ON"),
        ("rocksdb_lock_wait_timeout", "50"),
        ("rocksdb_rollback_on_timeout", "ON"),
        // The engine does not take part in logs of statements.
        ("binlog_format", "ROW"),
        // The least that the server's own tables need.
        ("innodb_buffer_pool_size", "8388608"),
        ("innodb_log_file_size", "4194304"),
    ];
    fixed
        .into_iter()
        .map(|(name, value)| variable(name, value))
        .collect()
}

/// What was set, as the server's variables.
fn variables(chosen: &Chosen) -> Result<Vec<Variable>, SettingError> {
    let cache = chosen.size("rocksdb_block_cache_size", 1 << 20, 1 << 44)?;
    let memtable = match chosen.text("memtable") {
        "auto" => (cache / MEMTABLES_IN_CACHE).max(64 << 10),
        _ => chosen.size("memtable", 64 << 10, 1 << 40)?,
    };
    let compressions = [
        ("none", "kNoCompression"),
        ("zlib", "kZlibCompression"),
        // What Debian's is compiled with.
        ("zstd", "kZSTDNotFinalCompression"),
    ];
    let compression = chosen.one_of("compression", &compressions)?;
    let flush = chosen.number("rocksdb_flush_log_at_trx_commit", 0, 2)?;
    let level = 4 * memtable;
    let mut column_family = format!(
        "write_buffer_size={memtable};target_file_size_base={memtable};\
         max_bytes_for_level_base={level};level_compaction_dynamic_level_bytes=true;\
         compaction_pri=kMinOverlappingRatio;compression={compression};\
         block_based_table_factory={{filter_policy=bloomfilter:10:false}}"
    );
    // Of what is said twice the later counts.
    let more = chosen.passed_on().iter();
    for (_, value) in more.filter(|(name, _)| name == CF_OPTIONS) {
        column_family = format!("{column_family};{value}");
    }
    Ok(vec![
        variable("rocksdb_block_cache_size", cache),
        variable("rocksdb_flush_log_at_trx_commit", flush),
        variable(CF_OPTIONS, column_family),
    ])
}

const CF_OPTIONS: &str = "rocksdb_default_cf_options";

/// The memtables, the levels and what runs in the background. A level that is too large owes what it has
/// too much: RocksDB's own estimate cannot be asked for over SQL.
pub(super) fn pending_writes(server: &mut Conn) -> Result<PendingWrites, DatabaseError> {
    let memtables: Vec<(String, String, u64)> = rows(
        server,
        "SELECT cf_name, stat_type, value FROM information_schema.rocksdb_cfstats",
    )?;
    let of = |family: &str, kind: &str| {
        let mut found = memtables.iter();
        let found = found.find(|(cf, stat, _)| cf == family && stat == kind);
        found.map_or(0, |&(.., value)| value)
    };
    let families = memtables.iter().filter_map(|(family, kind, bytes)| {
        let entries =
            of(family, "NUM_ENTRIES_ACTIVE_MEM_TABLE") + of(family, "NUM_ENTRIES_IMM_MEM_TABLES");
        // An empty one has some memory too.
        (kind == "CUR_SIZE_ALL_MEM_TABLES" && entries > 0).then_some(*bytes)
    });
    let levels: Vec<(String, String, f64, f64, f64)> = rows(
        server,
        "SELECT cf_name, level, \
                MAX(IF(type = 'Score', value, 0)), \
                MAX(IF(type = 'SizeBytes', value, 0)), \
                MAX(IF(type = 'CompCount', value, 0)) \
         FROM information_schema.rocksdb_compaction_stats WHERE level <> 'Sum' GROUP BY 1, 2",
    )?;
    let excess = levels.iter().map(|(_, level, score, bytes, _)| {
        match level.as_str() {
            _ if *score < 1.0 => 0.0,
            // It is merged whole.
            "L0" => *bytes,
            _ => bytes * (1.0 - 1.0 / score),
        }
    });
    // What comes to level 0 are memtables. Those of the engine's own dictionary come when tables do.
    let flushes = levels
        .iter()
        .filter(|(family, level, ..)| level == "L0" && family != "__system__");
    Ok(PendingWrites {
        dirty_bytes: Some(families.sum()),
        compaction_bytes: Some(excess.sum::<f64>() as u64),
        memtable_flushes: Some(flushes.map(|(.., count)| count).sum::<f64>() as u64),
        ..PendingWrites::default()
    })
}

/// Has the memtables written, and waits until nothing is to be compacted.
pub(super) fn drain(server: &Mutex<Conn>, stop: &Stop) -> Result<(), DatabaseError> {
    wait_until(stop, || {
        let server = &mut lock(server);
        run(server, "SET GLOBAL rocksdb_force_flush_memtable_now = 1")?;
        let writes = pending_writes(server)?;
        let pending: u64 = first(
            server,
            "SELECT CAST(SUM(value) AS UNSIGNED) FROM information_schema.rocksdb_cfstats \
             WHERE stat_type IN ('COMPACTION_PENDING', 'MEM_TABLE_FLUSH_PENDING')",
        )?;
        let threads: Vec<(String, String, String)> = rows(server, "SHOW ENGINE ROCKSDB STATUS")?;
        let busy = threads
            .iter()
            .filter(|(kind, _, state)| kind == "BG_THREADS" && is_busy(state))
            .count() as u64;
        let left = writes.dirty_bytes.unwrap_or(0) + writes.compaction_bytes.unwrap_or(0);
        Ok(match left + pending + busy {
            0 => Progress::Done,
            _ if busy > 0 => Progress::Busy,
            _ => Progress::Left(left, "bytes of memtables and of levels that are too large"),
        })
    })
}

/// Whether a background thread does something: it then says which operation.
fn is_busy(state: &str) -> bool {
    let operation = state
        .lines()
        .find_map(|line| line.trim().strip_prefix("operation_type:"));
    operation.is_some_and(|operation| !operation.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables_of(set: &[(&str, &str)]) -> Vec<Variable> {
        let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        let set: Vec<_> = set.iter().map(owned).collect();
        variables(&Chosen::new(&KIND.description, &set).unwrap()).unwrap()
    }

    #[test]
    fn a_memtable_is_a_share_of_the_block_cache_unless_it_is_set() {
        let family = |set| variables_of(set).pop().unwrap().1;
        let shared = family(&[("rocksdb_block_cache_size", "12M")]);
        assert!(shared.starts_with("write_buffer_size=1048576;"), "{shared}");
        assert!(shared.contains("max_bytes_for_level_base=4194304;"));
        assert!(shared.contains("compression=kZSTDNotFinalCompression;"));
        let set = family(&[("memtable", "2M"), (CF_OPTIONS, "num_levels=4")]);
        assert!(set.starts_with("write_buffer_size=2097152;"), "{set}");
        assert!(set.ends_with(";num_levels=4"), "{set}");
    }

    #[test]
    fn a_thread_is_busy_when_it_has_an_operation() {
        let state = |operation: &str| {
            format!(
                "\nthread_type: Low Pri\ncf_name: \noperation_type: {operation}\noperation_stage: \n"
            )
        };
        assert!(is_busy(&state("Compaction")));
        assert!(!is_busy(&state("")));
    }
}
