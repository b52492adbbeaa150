//! What there is of RocksDB where it was not compiled in: how to get it.

use std::path::Path;

use super::Settings;
use crate::{DatabaseError, Presence, Running};

const REMEDY: &str = "cargo build --release --features rocksdb";

pub(super) fn presence() -> Presence {
    Presence::Absent {
        remedy: REMEDY.to_owned(),
    }
}

fn absent() -> DatabaseError {
    DatabaseError::NotInstalled {
        what: "RocksDB".to_owned(),
        remedy: REMEDY.to_owned(),
    }
}

pub(super) fn create(_: &Settings, _: &Path) -> Result<(), DatabaseError> {
    Err(absent())
}

pub(super) fn start(_: &Settings, _: &Path) -> Result<Box<dyn Running>, DatabaseError> {
    Err(absent())
}
