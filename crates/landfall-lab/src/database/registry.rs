//! Every database there is, by name.

use super::{Database, Presence};
use crate::Error;
use crate::setting::{Chosen, Description};

/// How a database comes about.
pub(super) struct Kind {
    pub description: Description,
    /// Where it is on this machine.
    pub presence: fn() -> Presence,
    /// What it is called in a sentence: `MariaDB with InnoDB`.
    pub title: &'static str,
    pub make: fn(&Chosen) -> Result<Box<dyn Database>, Error>,
}

static KINDS: [&Kind; 0] = [];

/// Every database with its settings, what it is called in a sentence, and where it is.
pub fn list() -> impl Iterator<Item = (&'static Description, &'static str, Presence)> {
    KINDS
        .iter()
        .map(|kind| (&kind.description, kind.title, (kind.presence)()))
}

/// The database of that name with these settings; those that are not named have their defaults. Whether
/// it is on this machine shows when it is created.
pub fn named(name: &str, settings: &[(String, String)]) -> Result<Box<dyn Database>, Error> {
    let Some(kind) = KINDS.iter().find(|kind| kind.description.name == name) else {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.description.name).collect();
        return Err(Error::Usage(format!(
            "no database is called '{name}'; there are: {}",
            names.join(", ")
        )));
    };
    (kind.make)(&Chosen::new(&kind.description, settings)?)
}
