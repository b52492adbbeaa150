//! Stores that are linked into a program: RocksDB and Landfall's own engine.

use landfall_os::{SyncCall, SyncMethod};

use super::{APPEND, RECYCLED, UNSYNCED, overwrite};
use crate::rules::{Choice, Condition, Rule, Source, System, Value};

/// By how much appending must be slower before it is called so.
const DEARER: f64 = 1.2;

pub(super) static RULES: [Rule; 4] = [
    Rule {
        id: "rocksdb-sync",
        system: System::Rocksdb,
        setting: "sync",
        default: "no",
        choices: &[
            Choice::durable("yes", Some(APPEND)),
            Choice::loses("no", Some(UNSYNCED), "what the kernel has not written yet"),
        ],
        source: Source {
            title: "WriteOptions::sync in include/rocksdb/options.h",
            address: "https://github.com/facebook/rocksdb/blob/main/include/rocksdb/options.h",
        },
        note: "WriteOptions::sync, for each write.",
        in_code: true,
        ..Rule::BLANK
    },
    Rule {
        id: "rocksdb-recycle-log",
        system: System::Rocksdb,
        setting: "recycle_log_file_num",
        default: "0",
        choices: &[
            Choice::neutral(Value::Fixed("0"), Some(APPEND)),
            Choice::neutral(Value::Fixed("4"), Some(RECYCLED)),
        ],
        when: &[Condition::Faster {
            of: RECYCLED,
            over: APPEND,
            times: DEARER,
        }],
        source: Source {
            title: "WAL Performance, RocksDB wiki",
            address: "https://github.com/facebook/rocksdb/wiki/WAL-Performance",
        },
        note: "RocksDB silently ignores it with wal_recovery_mode kTolerateCorruptedTailRecords and kAbsoluteConsistency, and from 2020 to 2024 (until pull request 12403) also with the default, kPointInTimeRecovery. Its LOG file says whether it is on.",
        ..Rule::BLANK
    },
    Rule {
        id: "landfall-log",
        system: System::Landfall,
        setting: "landfall-log",
        default: "Options::default()",
        choices: &[
            Choice::durable(
                "Options::default()",
                Some(overwrite(SyncMethod::direct(SyncCall::ODsync))),
            ),
            Choice::durable("a file that grows", Some(APPEND)),
        ],
        source: Source {
            title: "Why a power cut loses nothing of a log, and damage is reported",
            address: "crates/landfall/docs/crash-argument-log.md",
        },
        note: "For commits of one thread. Threads that commit together share a sync.",
        ..Rule::BLANK
    },
    Rule {
        id: "landfall-state",
        system: System::Landfall,
        setting: "landfall-state",
        default: "Policy::EveryCommit",
        choices: &[
            Choice::durable(
                "Policy::EveryCommit",
                Some(overwrite(SyncMethod::direct(SyncCall::ODsync))),
            ),
            Choice::loses(
                "Policy::Interval",
                Some(UNSYNCED),
                "all commits of the last interval",
            ),
        ],
        source: Source {
            title: "Why a power cut loses nothing of a state",
            address: "crates/landfall/docs/crash-argument-state.md",
        },
        note: "apply_async with many commits in flight is nearly as fast, and loses nothing.",
        ..Rule::BLANK
    },
];
