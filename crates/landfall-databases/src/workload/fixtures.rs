//! Workloads over databases, for tests.

use super::{Workload, named};
use crate::SettingError;
use crate::conformance::{Fixture, fixture, pairs};
use landfall_os::Stop;

/// `settings` as on the command line: `size=7 batch=3`.
pub(super) fn workload(name: &str, settings: &str) -> Result<Box<dyn Workload>, SettingError> {
    named(name, &pairs(settings))
}

/// A database that runs, and that a workload has filled; named with its settings: `lmdb sync=no`.
pub(super) fn loaded(database: &str, name: &str, settings: &str) -> (Fixture, Box<dyn Workload>) {
    let (name_of, set) = database.split_once(' ').unwrap_or((database, ""));
    let fixture = fixture(name_of, set);
    let workload = workload(name, settings).unwrap();
    workload.suits(fixture.database.interface()).unwrap();
    workload
        .load(&*fixture.running, 2, &Stop::default())
        .unwrap();
    (fixture, workload)
}
