//! The table of rules: one entry for each setting that an official document speaks of and that something
//! here can be measured or proven for.
//!
//! Each file has the rules of a system. What a document says is in `promise` and `source`; what has to be
//! so on this machine is in `when`; what times and proves a value is found by its setting, or by the strategy
//! in `write`. Documents were read in November 2026.

mod brokers;
mod engines;
mod mariadb;
mod mount;
mod mysql;
mod postgres;
mod rule;
mod sqlite;

use landfall_os::{Allocation, SyncCall, SyncMethod};
use landfall_results::Files;

use crate::sync::Strategy;

pub use rule::{
    Choice, Condition, JOURNAL, Measured, NO_BINLOG, Promise, Rule, SafeWith, Source, System,
    UNSET, Value, is_same,
};

/// What the redo logs of most databases do: written blocks, overwritten, and synced.
const OVERWRITE: Strategy = Strategy::BASELINE;
/// The same, not synced.
const UNSYNCED: Strategy = overwrite(SyncMethod::buffered(SyncCall::None));
/// What a growing file costs.
const APPEND: Strategy = Strategy::BASELINE.allocated(Allocation::Append);
/// What a file costs whose blocks are allocated as they are written.
const SPARSE: Strategy = Strategy::BASELINE.allocated(Allocation::Sparse);
/// What an old file of the log costs that is used again.
const RECYCLED: Strategy = Strategy::BASELINE.allocated(Allocation::Recycled);

/// As many overwritten and synced blocks at the same time as the standard plan has.
pub const PAGE_WRITES: Strategy = Strategy {
    threads: 16,
    files: Files::Each,
    ..OVERWRITE
};

/// Written blocks overwritten by another method.
const fn overwrite(method: SyncMethod) -> Strategy {
    Strategy::BASELINE.synced(method)
}

/// A flush must cost so many times a write before waiting for company is worth a thought.
const DEAR_FLUSH: f64 = 10.0;

static TABLE: [&[Rule]; 7] = [
    &mariadb::RULES,
    &mysql::RULES,
    &postgres::RULES,
    &sqlite::RULES,
    &engines::RULES,
    &brokers::RULES,
    &mount::RULES,
];

/// All rules.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    TABLE.into_iter().flatten()
}

/// The rules of one system.
pub fn of(system: System) -> impl Iterator<Item = &'static Rule> {
    all().filter(move |rule| rule.system == system)
}

/// The rules on mounting a filesystem of this type.
pub fn of_mounting(kind: &str) -> impl Iterator<Item = &'static Rule> {
    of(System::Mount).filter(move |rule| {
        let mut kinds = rule.when.iter();
        kinds.any(
            |condition| matches!(condition, Condition::Filesystem(kinds) if kinds.contains(&kind)),
        )
    })
}

/// The settings of a system that rules speak of, with those that go along with them, each once.
pub fn names(system: System) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    for rule in of(system) {
        let with = rule.choices.iter().flat_map(|choice| choice.with);
        for name in [rule.setting]
            .into_iter()
            .chain(with.map(|(name, _)| *name))
        {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// Whether no setting of the system, but for that of one rule, has a value that may lose anything, as far as
/// they are set; `get` says to what.
pub fn are_safe<'a>(
    system: System,
    except: Option<&Rule>,
    get: impl Fn(&str) -> Option<&'a str>,
) -> bool {
    of(system)
        .filter(|rule| except.is_none_or(|except| except.setting != rule.setting))
        .all(|rule| get(rule.setting).is_none_or(|value| rule.is_safe(value, &get)))
}
