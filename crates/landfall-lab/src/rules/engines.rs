//! Stores that are linked into a program: RocksDB and Landfall's own engine.

use landfall_os::{SyncCall, SyncMethod};
use landfall_results::proof::Hazard;

use super::{APPEND, RECYCLED, UNSYNCED, overwrite};
use crate::rules::{Choice, Condition, Measured, Rule, Source, System, Value};

/// By how much appending must be slower before it is called so.
const DEARER: f64 = 1.2;

/// Bytes of the largest leaf that has a home.
const LEAF: u64 = 16 << 10;
const TORN_LEAVES: &str = "leaves torn by the power cut";
const STORE: Rule = Rule {
    system: System::LandfallStore,
    in_code: true,
    source: Source {
        title: "Why a power cut loses nothing of a store",
        address: "crates/landfall/docs/crash-argument-store.md",
    },
    ..Rule::BLANK
};
/// What keeps leaves whole that are written over. Others are written elsewhere each time, whatever it is.
const PROTECTION: Rule = Rule {
    setting: "protection",
    default: "shadow",
    idle_with: Some(("in-place", "no")),
    measured_by: Some(Measured::Torn("landfall")),
    ..STORE
};

pub(super) static RULES: [Rule; 7] = [
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
    Rule {
        id: "landfall-store-policy",
        setting: "policy",
        default: "every-commit",
        choices: &[
            Choice::durable(
                "every-commit",
                Some(overwrite(SyncMethod::direct(SyncCall::ODsync))),
            ),
            Choice::loses("group", None, "the commits of about two flushes").untried(),
            Choice::loses(
                "interval",
                Some(UNSYNCED),
                "all commits of the last interval",
            ),
        ],
        note: "In code: StoreOptions::policy(Policy::EveryCommit). Threads that commit together share a sync.",
        ..STORE
    },
    Rule {
        id: "landfall-store-protection",
        choices: &[
            Choice::durable("shadow", None),
            Choice::durable("doublewrite", None),
            Choice::durable("image", None),
            Choice::damages("none", None, TORN_LEAVES),
        ],
        when: &[Condition::Torn(LEAF)],
        protects_from: Some(Hazard::PageTorn),
        note: "In code: StoreOptions::protection, or Store::set_protection while it is open. It matters only in keyspaces made with KeyspaceOptions::in_place(true). By default no leaf is written over, and none can be torn.",
        ..PROTECTION
    },
    Rule {
        id: "landfall-store-protection-untorn",
        choices: &[
            Choice::durable("shadow", None),
            Choice::durable("doublewrite", None),
            Choice::durable("image", None),
            // Nothing here measures it: no filesystem that is made promises it.
            Choice::durable("atomic", None).untried(),
            Choice::damages("none", None, TORN_LEAVES),
        ],
        when: &[Condition::Untorn(LEAF)],
        // On such a disk none is torn.
        protects_from: Some(Hazard::PageOverwritten),
        note: "In code: StoreOptions::protection. It matters only in keyspaces made with KeyspaceOptions::in_place(true). Landfall does not measure atomic; Protection::Auto does, in the program, once. Atomic is refused where the filesystem does not pass the device's guarantee on, as ext4 without bigalloc. None relies on it unasked.",
        ..PROTECTION
    },
];
