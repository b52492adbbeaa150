//! The cases themselves.

use Expectation::{Damages, Loses, LosesNothing, LosesOnlyLast, Tears};
use landfall_recorder::{Fault, Offer};
use landfall_results::proof::Expectation;

use super::Case;

type Settings = &'static [(&'static str, &'static str)];

const fn safe(subject: &'static str, settings: Settings, filesystem: &'static str) -> Case {
    Case {
        subject,
        settings,
        filesystem,
        creation: false,
        atomic_bytes: 512,
        offer: Offer::Flushes,
        writeback: false,
        faults: &[],
        transactions: 24,
        states: 150,
        second_cuts: 0,
        expected: LosesNothing,
        source: None,
        in_self_test: true,
    }
}

/// A fault, and where it is documented.
const fn fault(
    subject: &'static str,
    settings: Settings,
    filesystem: &'static str,
    expected: Expectation,
    source: &'static str,
) -> Case {
    // Whoever has caught it stops.
    Case {
        expected,
        source: Some(source),
        states: 300,
        ..safe(subject, settings, filesystem)
    }
}

/// One whose recovery is cut off too.
const fn twice(case: Case) -> Case {
    Case {
        states: 100,
        second_cuts: 200,
        ..case
    }
}

/// On a disk that tears no block of a filesystem. Without that xfs cannot always be mounted, whatever is on it:
/// docs/findings/xfs-torn-metadata.md.
const fn whole_blocks(case: Case) -> Case {
    Case {
        atomic_bytes: 4096,
        ..case
    }
}

/// A server, of which a crash state takes longer: it is started on it.
const fn server(case: Case) -> Case {
    Case { states: 30, ..case }
}

/// In the catalogue only.
const fn listed(case: Case) -> Case {
    Case {
        states: 200,
        in_self_test: false,
        ..case
    }
}

/// In the catalogue only, with more transactions, so that a server does its rounds.
const fn long(case: Case) -> Case {
    Case {
        transactions: 100,
        ..listed(case)
    }
}

const POSIX: &str = "POSIX fsync(), fdatasync(); Linux open(2), O_DIRECT: \"does not give the guarantees of the O_SYNC flag\"";
const RANGE: &str = "Linux sync_file_range(2): \"This system call is extremely dangerous\"";
const BARRIER: &str = "Linux ext4 documentation, barrier=0";
const LIE: &str = "a disk that acknowledges a flush and does not do it";
const FSYNC_DIRECTORY: &str = "Linux fsync(2): \"does not necessarily ensure that the entry in the directory […] has also reached disk\"";
const TEAR: &str = "a disk writes sectors; PostgreSQL manual, full_page_writes; MariaDB manual, innodb_doublewrite";
const SQLITE: &str = "SQLite PRAGMA synchronous, PRAGMA journal_mode";
const POSTGRES: &str = "PostgreSQL manual, fsync, synchronous_commit, full_page_writes";
const INNODB: &str = "MariaDB manual, innodb_flush_log_at_trx_commit, innodb_flush_method";
const DOUBLEWRITE: &str = "MariaDB manual, innodb_doublewrite";
const REDIS: &str = "Redis persistence, appendfsync";
const ETCD: &str = "etcd flags, unsafe-no-fsync: \"Disables fsync, unsafe, will cause data loss\"";
const LMDB: &str = "LMDB mdb_env_open(), MDB_NOSYNC, MDB_NOMETASYNC";
const OURS: &str = "docs/findings";

const INTERVAL: &str = "Landfall, Policy::Interval";
const UNPROTECTED: &str = "Landfall, Protection::None";

/// So that there are many checkpoints, of many leaves.
const STORE: &[(&str, &str)] = &[("leaf", "1K"), ("memory", "16K"), ("segment", "64K")];

/// The same, where changes wait in runs.
const BUFFERED: &[(&str, &str)] = &[
    ("leaf", "1K"),
    ("memory", "16K"),
    ("segment", "64K"),
    ("buffer", "11"),
    ("rows", "500"),
];
const TURNING: &[(&str, &str)] = &[
    ("leaf", "1K"),
    ("memory", "16K"),
    ("segment", "64K"),
    ("buffer", "turning"),
    ("rows", "500"),
];

/// The same, where leaves are written over, with what protects them.
const DOUBLEWRITE_IN_PLACE: &[(&str, &str)] = &[
    ("in-place", "yes"),
    ("leaf", "4K"),
    ("memory", "64K"),
    ("segment", "64K"),
    ("protection", "doublewrite"),
];
const IMAGE_IN_PLACE: &[(&str, &str)] = &[
    ("in-place", "yes"),
    ("leaf", "4K"),
    ("memory", "64K"),
    ("segment", "64K"),
    ("changes", "whole-leaves"),
    ("protection", "image"),
];
const UNPROTECTED_IN_PLACE: &[(&str, &str)] = &[
    ("in-place", "yes"),
    ("leaf", "4K"),
    ("memory", "64K"),
    ("segment", "64K"),
    ("protection", "none"),
];

/// Everything that is known.
pub static CASES: &[Case] = &[
    // Files.
    safe("files", &[], "ext4"),
    safe(
        "files",
        &[("method", "direct+o_dsync"), ("allocation", "overwrite")],
        "ext4",
    ),
    fault("files", &[("method", "none")], "ext4", Loses, POSIX),
    fault("files", &[("acknowledge", "early")], "ext4", Loses, POSIX),
    fault(
        "files",
        &[("method", "direct+none"), ("allocation", "overwrite")],
        "ext4",
        Loses,
        POSIX,
    ),
    fault(
        "files",
        &[("method", "sync_file_range"), ("allocation", "overwrite")],
        "ext4",
        Loses,
        RANGE,
    ),
    safe("files", &[("threads", "4")], "ext4"),
    safe("files", &[("threads", "4"), ("files", "each")], "xfs"),
    fault(
        "files",
        &[("threads", "4"), ("method", "none")],
        "ext4",
        Loses,
        POSIX,
    ),
    fault(
        "files",
        &[("threads", "4"), ("acknowledge", "early")],
        "ext4",
        Loses,
        POSIX,
    ),
    fault(
        "files",
        &[("threads", "4"), ("acknowledge", "joined")],
        "ext4",
        Loses,
        POSIX,
    ),
    listed(fault("files", &[("method", "none")], "xfs", Loses, POSIX)),
    listed(fault("files", &[("method", "none")], "btrfs", Loses, POSIX)),
    listed(fault(
        "files",
        &[("method", "direct+none"), ("allocation", "overwrite")],
        "xfs",
        Loses,
        POSIX,
    )),
    listed(fault(
        "files",
        &[("method", "sync_file_range"), ("allocation", "overwrite")],
        "xfs",
        Loses,
        RANGE,
    )),
    listed(fault(
        "files",
        &[("method", "sync_file_range")],
        "ext4",
        Loses,
        RANGE,
    )),
    fault("files", &[], "ext4,barrier=0", Loses, BARRIER),
    Case {
        faults: &[Fault::LyingFlush],
        ..fault("files", &[], "ext4", Loses, LIE)
    },
    listed(Case {
        faults: &[Fault::LyingFlush],
        ..fault("files", &[], "xfs", Loses, LIE)
    }),
    long(fault("files", &[], "ext4,-O fast_commit", Damages, OURS)),
    // A file replaced.
    safe(
        "replace",
        &[("file-sync", "fsync"), ("directory-sync", "yes")],
        "ext4",
    ),
    fault(
        "replace",
        &[("file-sync", "fsync"), ("directory-sync", "no")],
        "ext4",
        LosesOnlyLast,
        FSYNC_DIRECTORY,
    ),
    fault(
        "replace",
        &[("file-sync", "none"), ("directory-sync", "no")],
        "ext4",
        Loses,
        POSIX,
    ),
    listed(fault(
        "replace",
        &[("file-sync", "none"), ("directory-sync", "yes")],
        "ext4",
        Loses,
        OURS,
    )),
    listed(fault(
        "replace",
        &[("file-sync", "none"), ("directory-sync", "yes")],
        "xfs",
        Loses,
        POSIX,
    )),
    listed(fault(
        "replace",
        &[("file-sync", "none"), ("directory-sync", "no")],
        "btrfs",
        Loses,
        POSIX,
    )),
    listed(fault(
        "replace",
        &[("file-sync", "fsync"), ("directory-sync", "no")],
        "xfs",
        LosesOnlyLast,
        FSYNC_DIRECTORY,
    )),
    listed(fault(
        "replace",
        &[("file-sync", "fsync"), ("directory-sync", "no")],
        "btrfs",
        LosesOnlyLast,
        FSYNC_DIRECTORY,
    )),
    listed(Case {
        writeback: true,
        ..fault(
            "replace",
            &[("idiom", "overwrite"), ("file-sync", "fsync")],
            "ext4",
            Loses,
            "a file truncated to be written again is empty meanwhile",
        )
    }),
    // Pages.
    fault("pages", &[], "ext4", Tears, TEAR),
    fault("pages", &[], "xfs", Tears, TEAR),
    safe("pages", &[("atomic", "yes")], "xfs"),
    twice(safe("pages", &[("log", "synced")], "ext4")),
    // One power cut does not show it.
    safe("pages", &[("log", "unsynced")], "ext4"),
    twice(fault(
        "pages",
        &[("log", "unsynced")],
        "ext4",
        Loses,
        "a recovery that does not sync what it has replayed before it empties the log",
    )),
    // Its pages are there before the first transaction, and nobody has synced them.
    Case {
        creation: true,
        ..fault(
            "pages",
            &[("log", "synced")],
            "ext4",
            Damages,
            "a file that was made, and never synced",
        )
    },
    // The engine.
    safe("landfall-log", &[], "ext4"),
    safe("landfall-log", &[("clients", "1")], "ext4,data=journal"),
    safe("landfall-log", &[("size", "5000")], "xfs"),
    Case {
        creation: true,
        ..safe("landfall-log", &[], "ext4")
    },
    twice(safe("landfall-log", &[], "ext4")),
    Case {
        faults: &[Fault::LyingFlush],
        ..fault("landfall-log", &[], "ext4", Loses, LIE)
    },
    safe("landfall-state", &[], "ext4"),
    safe("landfall-state", &[("parts", "1")], "xfs"),
    whole_blocks(twice(safe("landfall-state", &[], "xfs"))),
    Case {
        faults: &[Fault::LyingFlush],
        ..fault("landfall-state", &[], "ext4", Loses, LIE)
    },
    listed(fault("landfall-log", &[], "ext4,barrier=0", Loses, BARRIER)),
    server(safe("landfall-store", STORE, "ext4")),
    // Which has no fallocate.
    server(safe("landfall-store", STORE, "ext3")),
    server(safe("landfall-store", BUFFERED, "xfs")),
    server(twice(safe("landfall-store", TURNING, "ext4"))),
    server(Case {
        faults: &[Fault::LyingFlush],
        ..fault("landfall-store", STORE, "ext4", Loses, LIE)
    }),
    server(safe("landfall-store", DOUBLEWRITE_IN_PLACE, "ext4")),
    server(safe("landfall-store", IMAGE_IN_PLACE, "ext4")),
    whole_blocks(server(twice(safe("landfall-store", IMAGE_IN_PLACE, "xfs")))),
    // Of a leaf that is torn while it is written over, there is nothing else.
    Case {
        transactions: 100,
        states: 600,
        ..fault(
            "landfall-store",
            UNPROTECTED_IN_PLACE,
            "ext4",
            Damages,
            UNPROTECTED,
        )
    },
    server(fault(
        "landfall-store",
        &[("policy", "interval")],
        "ext4",
        Loses,
        INTERVAL,
    )),
    // SQLite.
    safe(
        "sqlite",
        &[("journal_mode", "wal"), ("synchronous", "full")],
        "ext4",
    ),
    fault(
        "sqlite",
        &[("journal_mode", "wal"), ("synchronous", "normal")],
        "ext4",
        Loses,
        SQLITE,
    ),
    fault(
        "sqlite",
        &[("journal_mode", "wal"), ("synchronous", "off")],
        "ext4",
        Loses,
        SQLITE,
    ),
    fault(
        "sqlite",
        &[("journal_mode", "delete"), ("synchronous", "full")],
        "ext4",
        LosesOnlyLast,
        SQLITE,
    ),
    listed(fault(
        "sqlite",
        &[("journal_mode", "delete"), ("synchronous", "full")],
        "xfs",
        LosesOnlyLast,
        SQLITE,
    )),
    listed(fault(
        "sqlite",
        &[("journal_mode", "delete"), ("synchronous", "normal")],
        "ext4",
        Loses,
        SQLITE,
    )),
    listed(fault(
        "sqlite",
        &[("journal_mode", "delete"), ("synchronous", "off")],
        "ext4",
        Loses,
        SQLITE,
    )),
    listed(Case {
        writeback: true,
        ..fault(
            "sqlite",
            &[("journal_mode", "persist"), ("synchronous", "off")],
            "ext4",
            Loses,
            SQLITE,
        )
    }),
    listed(fault(
        "sqlite",
        &[("journal_mode", "memory"), ("synchronous", "full")],
        "ext4",
        Damages,
        SQLITE,
    )),
    listed(fault(
        "sqlite",
        &[("journal_mode", "off"), ("synchronous", "full")],
        "ext4",
        Damages,
        SQLITE,
    )),
    listed(fault(
        "sqlite",
        &[("journal_mode", "wal"), ("synchronous", "full")],
        "ext4,barrier=0",
        Loses,
        BARRIER,
    )),
    safe(
        "sqlite",
        &[("journal_mode", "delete"), ("synchronous", "extra")],
        "ext4",
    ),
    safe(
        "sqlite",
        &[("journal_mode", "persist"), ("synchronous", "full")],
        "ext4",
    ),
    safe(
        "sqlite",
        &[("journal_mode", "truncate"), ("synchronous", "full")],
        "ext4",
    ),
    safe(
        "sqlite",
        &[("journal_mode", "wal"), ("synchronous", "full")],
        "xfs",
    ),
    safe(
        "sqlite",
        &[("journal_mode", "wal"), ("synchronous", "full")],
        "btrfs",
    ),
    twice(safe(
        "sqlite",
        &[("journal_mode", "delete"), ("synchronous", "extra")],
        "ext4",
    )),
    twice(safe(
        "sqlite",
        &[("journal_mode", "wal"), ("synchronous", "full")],
        "btrfs",
    )),
    // MariaDB.
    server(safe("mariadb", &[], "ext4")),
    Case {
        states: 20,
        second_cuts: 40,
        ..safe("mariadb", &[], "ext4")
    },
    server(fault(
        "mariadb",
        &[("innodb_flush_log_at_trx_commit", "2")],
        "ext4",
        Loses,
        INNODB,
    )),
    listed(fault(
        "mariadb",
        &[("innodb_flush_log_at_trx_commit", "0")],
        "ext4",
        Loses,
        INNODB,
    )),
    listed(fault(
        "mariadb",
        &[("innodb_flush_method", "nosync")],
        "ext4",
        Loses,
        INNODB,
    )),
    long(fault(
        "mariadb",
        &[
            ("innodb_doublewrite", "OFF"),
            ("innodb_max_dirty_pages_pct", "0"),
            ("innodb_max_dirty_pages_pct_lwm", "0"),
        ],
        "ext4",
        Damages,
        DOUBLEWRITE,
    )),
    long(fault(
        "mariadb",
        &[
            ("innodb_doublewrite", "OFF"),
            ("innodb_flush_method", "fsync"),
            ("innodb_max_dirty_pages_pct", "0"),
            ("innodb_max_dirty_pages_pct_lwm", "0"),
        ],
        "ext4",
        Damages,
        DOUBLEWRITE,
    )),
    long(fault(
        "mariadb",
        &[
            ("innodb_doublewrite", "OFF"),
            ("innodb_max_dirty_pages_pct", "0"),
            ("innodb_max_dirty_pages_pct_lwm", "0"),
        ],
        "ext4,data=journal",
        Damages,
        OURS,
    )),
    listed(fault(
        "mariadb",
        &[("sync_binlog", "0")],
        "ext4",
        Loses,
        "MariaDB manual, sync_binlog",
    )),
    long(Case {
        writeback: true,
        ..fault(
            "mariadb",
            &[("sync_binlog", "1"), ("size", "3000")],
            "ext4",
            Damages,
            OURS,
        )
    }),
    long(fault(
        "myrocks",
        &[("sync_binlog", "1"), ("rocksdb_wal_recovery_mode", "2")],
        "ext4",
        Loses,
        OURS,
    )),
    listed(fault(
        "myrocks",
        &[("rocksdb_flush_log_at_trx_commit", "2")],
        "ext4",
        Loses,
        "MyRocks, rocksdb_flush_log_at_trx_commit",
    )),
    // PostgreSQL.
    server(safe("postgres", &[], "ext4")),
    Case {
        states: 20,
        second_cuts: 40,
        ..safe("postgres", &[], "ext4")
    },
    server(fault(
        "postgres",
        &[("synchronous_commit", "off")],
        "ext4",
        Loses,
        POSTGRES,
    )),
    listed(fault(
        "postgres",
        &[("fsync", "off")],
        "ext4",
        Loses,
        POSTGRES,
    )),
    // Of a page that is torn while it is written over, the log has no image.
    Case {
        transactions: 100,
        states: 200,
        ..fault(
            "postgres",
            &[("full_page_writes", "off")],
            "ext4",
            Damages,
            POSTGRES,
        )
    },
    // Others.
    server(safe("redis", &[("appendfsync", "always")], "ext4")),
    server(fault(
        "redis",
        &[("appendfsync", "everysec")],
        "ext4",
        Loses,
        REDIS,
    )),
    listed(fault(
        "redis",
        &[("appendfsync", "no")],
        "ext4",
        Loses,
        REDIS,
    )),
    server(safe("etcd", &[], "ext4")),
    server(fault(
        "etcd",
        &[("unsafe-no-fsync", "true")],
        "ext4",
        Loses,
        ETCD,
    )),
    server(safe("lmdb", &[], "ext4")),
    server(fault("lmdb", &[("sync", "no")], "ext4", Loses, LMDB)),
    listed(fault("lmdb", &[("sync", "pages")], "ext4", Loses, LMDB)),
    server(safe("redb", &[], "ext4")),
    twice(safe("redb", &[], "ext4")),
    listed(fault(
        "redb",
        &[("durability", "none")],
        "ext4",
        Loses,
        "redb, Durability::None",
    )),
    server(safe("fjall", &[], "ext4")),
    listed(fault(
        "fjall",
        &[("persist", "buffer")],
        "ext4",
        Loses,
        "fjall, PersistMode::Buffer",
    )),
    // Nobody planted it: the flush that a commit waits for is sync_file_range.
    server(fault("sled", &[], "ext4", Loses, OURS)),
    listed(fault(
        "sled",
        &[("flush", "no")],
        "ext4",
        Loses,
        "sled, flush_every_ms",
    )),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_says_where_it_is_documented_and_each_case_has_a_plan() {
        for case in CASES {
            let is_fault = case.expected != LosesNothing;
            assert_eq!(case.source.is_some(), is_fault, "{}", case.command());
            // Some are left out of some builds.
            if crate::subjects::list().any(|known| known.name == case.subject) {
                assert!(case.plan(None).is_ok(), "{}", case.command());
            }
        }
        let faults = CASES.iter().filter(|case| case.source.is_some());
        assert!(faults.count() >= 40);
    }
}
