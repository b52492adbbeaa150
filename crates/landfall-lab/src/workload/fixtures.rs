//! Workloads over databases, for tests.

use super::{Workload, named};
use crate::database::conformance::{Fixture, fixture, pairs};
use crate::{Error, Stop};

/// `settings` as on the command line: `size=7 batch=3`.
pub(super) fn workload(name: &str, settings: &str) -> Result<Box<dyn Workload>, Error> {
    named(name, &pairs(settings))
}

/// A database that runs, and that a workload has filled.
pub(super) fn loaded(database: &str, name: &str, settings: &str) -> (Fixture, Box<dyn Workload>) {
    let fixture = fixture(database, "");
    let workload = workload(name, settings).unwrap();
    workload.suits(fixture.database.interface()).unwrap();
    workload
        .load(&*fixture.running, 2, &Stop::default())
        .unwrap();
    (fixture, workload)
}
