//! PostgreSQL.

use landfall_os::{SyncCall, SyncMethod};
use landfall_results::proof::Hazard;

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
            Choice::loses(
                "off",
                Some(UNSYNCED),
                "the commits of about the last 0.6 seconds",
            ),
            Choice::durable("local", None).untried(),
            Choice::durable("remote_apply", None).untried(),
            Choice::durable("remote_write", None).untried(),
        ],
        measured_by: Some(Measured::Binlog),
        source: Source {
            title: "Asynchronous Commit, PostgreSQL documentation",
            address: "https://www.postgresql.org/docs/current/wal-async-commit.html",
        },
        note: "Up to three times wal_writer_delay is lost; nothing is damaged. Single transactions can set it. With synchronous standbys, on waits until one has synced; remote_write only until its kernel has the commit, which a power cut of all loses if that one is promoted.",
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
        note: "The documentation calls all of them equally reliable; small differences may not matter.",
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
        note: "The documentation says that new files may be faster on copy-on-write filesystems. Files with chattr +C are not copied on write.",
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
        note: "The documentation says that zeroing may gain nothing on copy-on-write filesystems.",
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
        note: "In microseconds. The documentation suggests half of a flush. It waits only while commit_siblings (5) other transactions are active.",
        ..BLANK
    },
    Rule {
        id: "postgres-full-page-writes",
        setting: "full_page_writes",
        default: "on",
        choices: &[
            Choice::durable("on", None),
            Choice::damages("off", None, "pages torn by the power cut"),
        ],
        measured_by: Some(Measured::Torn("postgres")),
        protects_from: Some(Hazard::PageTorn),
        source: Source {
            title: "Reliability, PostgreSQL documentation",
            address: "https://www.postgresql.org/docs/current/wal-reliability.html",
        },
        note: "Turn it off only on a filesystem that prevents torn pages, as ZFS does. PostgreSQL writes through the page cache, so a guarantee of the disk does not cover it.",
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
        note: "Fewer checkpoints write fewer page images; recovery takes longer. --workload computes an hour of writes.",
        ..BLANK
    },
];
