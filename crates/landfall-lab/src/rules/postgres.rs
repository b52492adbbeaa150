//! PostgreSQL.

use landfall_os::{SyncCall, SyncMethod};

use super::{APPEND, DEAR_FLUSH, OVERWRITE, RECYCLED, SPARSE, UNSYNCED, overwrite};
use crate::rules::{Choice, Condition, Measured, Rule, Source, System, Value};

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
            Choice::durable("on", Some(OVERWRITE)),
            Choice::damages("off", Some(UNSYNCED), "the database, beyond repair"),
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
            Choice::durable("on", Some(OVERWRITE)),
            Choice::loses("off", Some(UNSYNCED), "about the last 0.6 seconds"),
            Choice::durable("local", None).untried(),
            Choice::durable("remote_apply", None).untried(),
            Choice::durable("remote_write", None).untried(),
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
            Choice::durable("fdatasync", Some(OVERWRITE)),
            Choice::durable(
                "open_datasync",
                Some(overwrite(SyncMethod::buffered(SyncCall::ODsync))),
            ),
            Choice::durable(
                "fsync",
                Some(overwrite(SyncMethod::buffered(SyncCall::Fsync))),
            ),
            Choice::durable(
                "open_sync",
                Some(overwrite(SyncMethod::buffered(SyncCall::OSync))),
            ),
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
            Choice::neutral(Value::Fixed("on"), Some(RECYCLED)),
            Choice::neutral(Value::Fixed("off"), Some(APPEND)),
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
            Choice::neutral(Value::Fixed("on"), Some(OVERWRITE)),
            Choice::neutral(Value::Fixed("off"), Some(SPARSE)),
        ],
        when: &[
            Condition::InPlace,
            Condition::Faster {
                of: OVERWRITE,
                over: SPARSE,
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
            Choice::neutral(Value::Fixed("on"), Some(RECYCLED)),
            Choice::neutral(Value::Fixed("off"), Some(APPEND)),
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
            Choice::neutral(Value::Fixed("on"), Some(OVERWRITE)),
            Choice::neutral(Value::Fixed("off"), Some(SPARSE)),
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
            Choice::neutral(Value::Fixed("0"), None),
            Choice::neutral(Value::Flushes(0.5), None),
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
            Choice::durable("on", None),
            Choice::damages("off", None, "pages that are torn"),
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
            Choice::neutral(Value::Fixed("1GB"), None),
            Choice::neutral(Value::HourOfWrites, None),
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
