//! Subjects that are chosen by name and settings.
//!
//! [`named`] makes a [`Subject`](crate::Subject) from its name and settings, [`list`] says which there are. Each is a
//! module here; `content` are the bytes that those with files of their own write.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use landfall_databases::setting::Chosen;

use crate::subject::{SubjectError, SubjectName};

pub(crate) mod command;
mod content;
#[cfg(feature = "databases")]
mod database;
#[cfg(feature = "engine")]
mod engine;
mod files;
#[cfg(test)]
mod fixtures;
mod list;
#[cfg(feature = "engine")]
mod log;
mod pages;
mod replace;
#[cfg(feature = "databases")]
mod sqlite;
#[cfg(feature = "engine")]
mod state;

pub use landfall_databases::setting::{Description, Setting};
pub use list::{list, named};

/// A subject of this name, with what was set of it.
pub(crate) fn name_of(chosen: &Chosen) -> SubjectName {
    SubjectName {
        name: chosen.subject().to_owned(),
        settings: chosen.shown(),
    }
}

fn failed(doing: &str, error: io::Error) -> SubjectError {
    SubjectError(format!("{doing}: {error}"))
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads a file after a power cut, and no more than `most` bytes of it: its size is not to be trusted.
/// What keeps it from being read was there before the cut, so it is damage.
fn read_back(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    match File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)) {
        Ok(_) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err("the file is missing".into()),
        Err(error) => Err(format!("the file cannot be read: {error}")),
    }
}
