//! MariaDB with InnoDB, and with MyRocks.

use landfall_os::{SyncCall, SyncMethod};
use landfall_results::proof::Hazard;

use super::{APPEND, DEAR_FLUSH, OVERWRITE, PAGE_WRITES, UNSYNCED, overwrite};
use crate::rules::{
    Choice, Condition, Measured, NO_BINLOG, Promise, Rule, SafeWith, Source, System, Value,
};

pub(super) const PAGE: u64 = 16 << 10;
/// Page writes a second below which what is usual is too many.
const SLOW_DISK: f64 = 400.0;

const VARIABLES: &str = "InnoDB System Variables, MariaDB documentation";
const GROUP_COMMIT: Source = Source {
    title: "Binary Log Group Commit and InnoDB Flushing Performance, MariaDB documentation",
    address: "https://mariadb.com/docs/server/server-usage/storage-engines/innodb/binary-log-group-commit-and-innodb-flushing-performance",
};
const FLUSH_METHOD: Source = Source {
    title: "InnoDB Flush Method, MariaDB documentation",
    address: "https://mariadb.com/docs/server/server-usage/storage-engines/innodb/innodb-flush-method",
};
const PAGE_FLUSHING: Source = Source {
    title: "InnoDB Page Flushing, MariaDB documentation",
    address: "https://mariadb.com/docs/server/server-usage/storage-engines/innodb/innodb-page-flushing",
};
pub(super) const LAST_SECOND: &str = "the commits of about the last second";
const NOT_IN_BINLOG: &str = "the commits whose binary log is not on disk yet";

/// Pages that the device promises to write whole.
pub(super) const UNTORN: Rule = Rule {
    id: "mariadb-doublewrite-untorn",
    setting: "innodb_doublewrite",
    default: "ON",
    choices: &[Choice::durable("ON", None), Choice::durable("OFF", None)],
    when: &[Condition::Untorn(PAGE)],
    measured_by: Some(Measured::Torn("disks")),
    safe_with: &[
        SafeWith {
            value: "OFF",
            setting: "innodb_flush_method",
            one_of: &["O_DIRECT"],
        },
        SafeWith {
            value: "OFF",
            setting: "innodb_page_size",
            one_of: &["16K", "8K", "4K"],
        },
    ],
    // On such a disk none is torn.
    protects_from: Some(Hazard::PageOverwritten),
    source: Source {
        title: "Torn write prevention, Amazon EC2 User Guide",
        address: "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/storage-twp.html",
    },
    note: "Needs innodb_flush_method=O_DIRECT, pages of at most 16 KiB, aligned volumes, and a filesystem that does not split pages (ext4 with bigalloc and clusters of 16 KiB).",
    ..Rule::BLANK
};
/// The size of InnoDB's pages.
pub(super) const PAGE_SIZE: Rule = Rule {
    id: "mariadb-page-size",
    setting: "innodb_page_size",
    default: "16K",
    choices: &[
        Choice::neutral(Value::Fixed("16K"), None),
        Choice::neutral(Value::Fixed("8K"), None),
        Choice::neutral(Value::Fixed("4K"), None),
    ],
    measured_by: Some(Measured::Amplify("pages")),
    source: Source {
        title: "InnoDB Startup Options and System Variables, MySQL 8.4 Reference Manual",
        address: "https://dev.mysql.com/doc/refman/8.4/en/innodb-parameters.html#sysvar_innodb_page_size",
    },
    by_hand: "For a new server only: one that has data does not start with another page size.",
    note: "Smaller pages write fewer bytes when small rows change at random. They limit the length of rows and index keys.",
    ..Rule::BLANK
};
/// Half of what the disk can do.
pub(super) const FITTING: Choice = Choice {
    promise: Promise::Fits,
    ..Choice::neutral(Value::PageWrites(0.5), None)
};
/// What background work may write.
pub(super) const IO_CAPACITY: Rule = Rule {
    id: "mariadb-io-capacity",
    setting: "innodb_io_capacity",
    default: "200",
    choices: &[Choice::neutral(Value::Fixed("200"), None), FITTING],
    when: &[Condition::Rare {
        of: PAGE_WRITES,
        per_second: SLOW_DISK,
    }],
    source: Source {
        title: "Configuring InnoDB I/O Capacity, MySQL 8.4 Reference Manual",
        address: "https://dev.mysql.com/doc/refman/8.4/en/innodb-configuring-io-capacity.html",
    },
    note: "As low as possible while background work keeps up; at least 100. Landfall suggests half the page writes that 16 threads can sync here.",
    ..Rule::BLANK
};

pub(super) static RULES: [Rule; 15] = [
    Rule {
        id: "mariadb-log-at-commit",
        setting: "innodb_flush_log_at_trx_commit",
        default: "1",
        choices: &[
            Choice::durable("1", Some(OVERWRITE)),
            Choice::durable("3", None).untried(),
            Choice::loses("2", Some(UNSYNCED), LAST_SECOND),
            Choice::loses("0", Some(UNSYNCED), LAST_SECOND),
        ],
        measured_by: Some(Measured::Binlog),
        source: Source {
            title: VARIABLES,
            address: "https://mariadb.com/docs/server/server-usage/storage-engines/innodb/innodb-system-variables#innodb_flush_log_at_trx_commit",
        },
        note: "With a binary log, 1 is durable only with sync_binlog=1.",
        ..Rule::BLANK
    },
    Rule {
        id: "mariadb-sync-binlog",
        setting: "sync_binlog",
        default: "0",
        choices: &[
            Choice::durable("1", Some(APPEND)),
            Choice::loses("0", Some(UNSYNCED), NOT_IN_BINLOG),
            Choice::loses_above(1, "that many of the last commits"),
        ],
        idle_with: Some(NO_BINLOG),
        measured_by: Some(Measured::Planned),
        source: GROUP_COMMIT,
        note: "Only with a binary log. Recovery rolls back what the binary log lacks, and replicas diverge.",
        ..Rule::BLANK
    },
    Rule {
        id: "mariadb-commit-wait",
        setting: "binlog_commit_wait_count",
        default: "0",
        choices: &[
            Choice::neutral(Value::Fixed("0"), None),
            Choice {
                with: &[("binlog_commit_wait_usec", Value::Flushes(1.0))],
                ..Choice::neutral(Value::Fixed("4"), None)
            },
        ],
        when: &[Condition::Faster {
            of: UNSYNCED,
            over: OVERWRITE,
            times: DEAR_FLUSH,
        }],
        idle_with: Some(NO_BINLOG),
        measured_by: Some(Measured::Binlog),
        since: "MariaDB",
        source: Source {
            title: "Replication and Binary Log System Variables, MariaDB documentation",
            address: "https://mariadb.com/docs/server/ha-and-performance/standard-replication/replication-and-binary-log-system-variables#binlog_commit_wait_usec",
        },
        note: "For at least four clients that commit at the same time. Landfall suggests waiting as long as one flush takes.",
        ..Rule::BLANK
    },
    Rule {
        id: "mariadb-doublewrite",
        setting: "innodb_doublewrite",
        default: "ON",
        choices: &[
            Choice::durable("ON", None),
            Choice::damages("OFF", None, "pages torn by the power cut"),
            Choice::loses("fast", None, "pages in the disk's cache").untried(),
        ],
        when: &[Condition::Torn(PAGE)],
        measured_by: Some(Measured::Torn("disks")),
        protects_from: Some(Hazard::PageTorn),
        source: Source {
            title: VARIABLES,
            address: "https://mariadb.com/docs/server/server-usage/storage-engines/innodb/innodb-system-variables#innodb_doublewrite",
        },
        note: "Turn it off only where device, filesystem and alignment guarantee that a page is written whole. A proof without torn pages is no guarantee.",
        ..Rule::BLANK
    },
    UNTORN,
    Rule {
        id: "mariadb-flush-method",
        setting: "innodb_flush_method",
        default: "O_DIRECT",
        choices: &[
            Choice::durable(
                "O_DIRECT",
                Some(overwrite(SyncMethod::direct(SyncCall::Fdatasync))),
            ),
            Choice::durable(
                "fsync",
                Some(overwrite(SyncMethod::buffered(SyncCall::Fsync))),
            ),
            Choice::durable(
                "O_DSYNC",
                Some(overwrite(SyncMethod::buffered(SyncCall::ODsync))),
            ),
            Choice::loses(
                "O_DIRECT_NO_FSYNC",
                Some(overwrite(SyncMethod::direct(SyncCall::None))),
                "pages in the disk's cache, and files that grew",
            ),
            Choice::loses("littlesync", None, "what the kernel has not written yet").untried(),
            Choice::loses("nosync", None, "what the kernel has not written yet").untried(),
        ],
        measured_by: Some(Measured::Binlog),
        source: FLUSH_METHOD,
        note: "O_DIRECT is the default since MariaDB 10.6; before it was fsync.",
        ..Rule::BLANK
    },
    Rule {
        id: "mariadb-log-write-through",
        setting: "innodb_log_file_write_through",
        default: "OFF",
        choices: &[
            Choice::durable(
                "OFF",
                Some(overwrite(SyncMethod::direct(SyncCall::Fdatasync))),
            ),
            Choice::durable("ON", Some(overwrite(SyncMethod::direct(SyncCall::ODsync)))),
        ],
        since: "MariaDB 11.0",
        source: FLUSH_METHOD,
        ..Rule::BLANK
    },
    Rule {
        id: "mariadb-flush-neighbors",
        setting: "innodb_flush_neighbors",
        default: "1",
        choices: &[
            Choice::neutral(Value::Fixed("1"), None),
            Choice::neutral(Value::Fixed("0"), None),
        ],
        measured_by: Some(Measured::Torn("conditions")),
        source: Source {
            title: "Configuring Buffer Pool Flushing, MySQL 8.4 Reference Manual",
            address: "https://dev.mysql.com/doc/refman/8.4/en/innodb-buffer-pool-flushing.html",
        },
        note: "MariaDB ignores it on disks that report that they do not rotate.",
        ..Rule::BLANK
    },
    IO_CAPACITY,
    Rule {
        id: "mariadb-redo-size",
        setting: "innodb_log_file_size",
        default: "96M",
        choices: &[
            Choice::neutral(Value::Fixed("96M"), None),
            Choice::neutral(Value::HourOfWrites, None),
        ],
        measured_by: Some(Measured::Amplify("knobs")),
        source: Source {
            title: "InnoDB Redo Log, MariaDB documentation",
            address: "https://mariadb.com/docs/server/server-usage/storage-engines/innodb/innodb-redo-log",
        },
        note: "MySQL's manual advises room for an hour of writes; --workload computes it. Recovery takes longer.",
        ..Rule::BLANK
    },
    Rule {
        id: "mariadb-dirty-pages",
        setting: "innodb_max_dirty_pages_pct",
        default: "90",
        choices: &[
            Choice::neutral(Value::Fixed("90"), None),
            Choice::neutral(Value::Fixed("10"), None),
        ],
        measured_by: Some(Measured::Amplify("knobs")),
        source: PAGE_FLUSHING,
        note: "Fewer dirty pages make flushing smoother, and cost writes.",
        ..Rule::BLANK
    },
    PAGE_SIZE,
    Rule {
        id: "myrocks-log-at-commit",
        system: System::Myrocks,
        setting: "rocksdb_flush_log_at_trx_commit",
        default: "1",
        choices: &[
            Choice::durable("1", Some(APPEND)),
            Choice::loses("2", Some(UNSYNCED), "the commits of about the last second"),
            Choice::loses(
                "0",
                Some(UNSYNCED),
                "all commits since the log was last synced",
            ),
        ],
        source: Source {
            title: "MyRocks System Variables, MariaDB documentation",
            address: "https://mariadb.com/docs/server/server-usage/storage-engines/myrocks/myrocks-system-variables#rocksdb_flush_log_at_trx_commit",
        },
        note: "With a binary log, 1 is durable only together with sync_binlog=1. MyRocks cannot recycle its log.",
        ..Rule::BLANK
    },
    Rule {
        id: "myrocks-sync-binlog",
        system: System::Myrocks,
        setting: "sync_binlog",
        default: "0",
        choices: &[
            Choice::durable("1", Some(APPEND)),
            Choice::loses("0", Some(UNSYNCED), NOT_IN_BINLOG),
            Choice::loses_above(1, "that many of the last commits"),
        ],
        idle_with: Some(NO_BINLOG),
        source: Source {
            title: "Configuring Crash Safe Master, MyRocks wiki",
            address: "https://github.com/facebook/mysql-5.6/wiki/Configuring-Crash-Safe-Master",
        },
        note: "Only with a binary log.",
        ..Rule::BLANK
    },
    Rule {
        id: "myrocks-wal-recovery-mode",
        system: System::Myrocks,
        setting: "rocksdb_wal_recovery_mode",
        default: "1",
        choices: &[Choice::durable("1", None), Choice::durable("2", None)],
        source: Source {
            title: "MyRocks Crash Recovery, MyRocks wiki",
            address: "https://github.com/facebook/mysql-5.6/wiki/MyRocks-Crash-Recovery",
        },
        note: "With 1 the server does not start when the last entry of its log is torn. With 2 it recovers up to the first damaged entry, even in the middle of the log.",
        ..Rule::BLANK
    },
];
