//! PostgreSQL.

use super::{APPEND, DEAR_FLUSH, OVERWRITE, RECYCLED, UNSYNCED};
use crate::advice::rule::{Choice, Condition, Measured, Rule, Source, System, Value};

/// By how much appending must be slower before keeping old files is called a gain.
const DEARER: f64 = 1.05;

const WAL: &str = "Write Ahead Log, PostgreSQL documentation";
const RECYCLE: Source = Source {
    title: WAL,
    address: "https://www.postgresql.org/docs/current/runtime-config-wal.html#GUC-WAL-RECYCLE",
};
const INIT_ZERO: Source = Source {
    title: WAL,
    address: "https://www.postgresql.org/docs/current/runtime-config-wal.html#GUC-WAL-INIT-ZERO",
};

const BLANK: Rule = Rule {
    system: System::Postgres,
    ..Rule::BLANK
};

pub(super) static RULES: [Rule; 10] = [
    Rule {
        id: "postgres-fsync",
        setting: "fsync",
        default: "on",
        choices: &[
            Choice::durable("on", OVERWRITE),
            Choice::damages("off", UNSYNCED, "the database, beyond repair"),
        ],
        measured_by: Some(Measured::Binlog),
        source: Source {
            title: WAL,
            address: "https://www.postgresql.org/docs/current/runtime-config-wal.html#GUC-FSYNC",
        },
        ..BLANK
    },
    Rule {
        id: "postgres-synchronous-commit",
        setting: "synchronous_commit",
        default: "on",
        choices: &[
            Choice::durable("on", OVERWRITE),
            Choice::loses("off", UNSYNCED, "about the last 0.6 seconds"),
            Choice::durable("local", "").untried(),
            Choice::durable("remote_apply", "").untried(),
            Choice::durable("remote_write", "").untried(),
        ],
        measured_by: Some(Measured::Binlog),
        source: Source {
            title: "Asynchronous Commit, PostgreSQL documentation",
            address: "https://www.postgresql.org/docs/current/wal-async-commit.html",
        },
        note: "Three times wal_writer_delay may be lost, and nothing is damaged. It can be set for single transactions that may be lost.",
        ..BLANK
    },
    Rule {
        id: "postgres-wal-sync-method",
        setting: "wal_sync_method",
        default: "fdatasync",
        choices: &[
            Choice::durable("fdatasync", OVERWRITE),
            Choice::durable("open_datasync", "overwrite/o_dsync/8K"),
            Choice::durable("fsync", "overwrite/fsync/8K"),
            Choice::durable("open_sync", "overwrite/o_sync/8K"),
        ],
        measured_by: Some(Measured::Planned),
        source: Source {
            title: "WAL Configuration, PostgreSQL documentation",
            address: "https://www.postgresql.org/docs/current/wal-configuration.html",
        },
        note: "By the documentation all are equally reliable, and small differences may not matter (pg_test_fsync).",
        ..BLANK
    },
    Rule {
        id: "postgres-wal-recycle",
        setting: "wal_recycle",
        default: "on",
        choices: &[
            Choice::neutral(Value::Fixed("on"), RECYCLED),
            Choice::neutral(Value::Fixed("off"), APPEND),
        ],
        when: &[
            Condition::InPlace,
            Condition::Faster {
                of: RECYCLED,
                over: APPEND,
                times: DEARER,
            },
        ],
        measured_by: Some(Measured::Binlog),
        source: RECYCLE,
        ..BLANK
    },
    Rule {
        id: "postgres-wal-init-zero",
        setting: "wal_init_zero",
        default: "on",
        choices: &[
            Choice::neutral(Value::Fixed("on"), OVERWRITE),
            Choice::neutral(Value::Fixed("off"), "sparse/fdatasync/8K"),
        ],
        when: &[
            Condition::InPlace,
            Condition::Faster {
                of: OVERWRITE,
                over: "sparse/fdatasync/8K",
                times: DEARER,
            },
        ],
        measured_by: Some(Measured::Binlog),
        source: INIT_ZERO,
        ..BLANK
    },
    Rule {
        id: "postgres-wal-recycle-copy-on-write",
        setting: "wal_recycle",
        default: "on",
        choices: &[
            Choice::neutral(Value::Fixed("on"), RECYCLED),
            Choice::neutral(Value::Fixed("off"), APPEND),
        ],
        when: &[Condition::CopyOnWrite],
        measured_by: Some(Measured::Binlog),
        source: RECYCLE,
        note: "On a copy-on-write filesystem new files may be faster, by the documentation. Files without copy-on-write (chattr +C) are no such files.",
        ..BLANK
    },
    Rule {
        id: "postgres-wal-init-zero-copy-on-write",
        setting: "wal_init_zero",
        default: "on",
        choices: &[
            Choice::neutral(Value::Fixed("on"), OVERWRITE),
            Choice::neutral(Value::Fixed("off"), "sparse/fdatasync/8K"),
        ],
        when: &[Condition::CopyOnWrite],
        measured_by: Some(Measured::Binlog),
        source: INIT_ZERO,
        note: "A copy-on-write filesystem may gain nothing from zeros, by the documentation.",
        ..BLANK
    },
    Rule {
        id: "postgres-commit-delay",
        setting: "commit_delay",
        default: "0",
        choices: &[
            Choice::neutral(Value::Fixed("0"), ""),
            Choice::neutral(Value::Flushes(0.5), ""),
        ],
        when: &[Condition::Faster {
            of: UNSYNCED,
            over: OVERWRITE,
            times: DEAR_FLUSH,
        }],
        measured_by: Some(Measured::Binlog),
        source: Source {
            title: "WAL Configuration, PostgreSQL documentation",
            address: "https://www.postgresql.org/docs/current/wal-configuration.html",
        },
        note: "Microseconds. Half of a flush is the documentation's starting value; it waits only while commit_siblings (5) others are in the middle of a transaction.",
        ..BLANK
    },
    Rule {
        id: "postgres-full-page-writes",
        setting: "full_page_writes",
        default: "on",
        choices: &[
            Choice::durable("on", ""),
            Choice::damages("off", "", "pages that are torn"),
        ],
        measured_by: Some(Measured::Torn("postgres")),
        source: Source {
            title: "Reliability, PostgreSQL documentation",
            address: "https://www.postgresql.org/docs/current/wal-reliability.html",
        },
        note: "Off only on a filesystem that prevents torn pages itself, as ZFS does. PostgreSQL writes through the page cache, which no promise of the disk covers.",
        ..BLANK
    },
    Rule {
        id: "postgres-max-wal-size",
        setting: "max_wal_size",
        default: "1GB",
        choices: &[
            Choice::neutral(Value::Fixed("1GB"), ""),
            Choice::neutral(Value::HourOfWrites, ""),
        ],
        measured_by: Some(Measured::Amplify("knobs")),
        source: Source {
            title: WAL,
            address: "https://www.postgresql.org/docs/current/wal-configuration.html",
        },
        note: "Fewer checkpoints write fewer images of pages; recovery takes longer. An hour of writes is our own reckoning, by --workload.",
        ..BLANK
    },
];
