//! Every subject there is.
//!
//! A subject is a module with a [`Kind`]: what it is called, what can be set of it, and how it is made from what was
//! set. Databases share a module, [`database`](super::database), which has a kind for each that there is. A server is one too: its `run` starts it in the directory and stops it when
//! the sink says that it is enough, its `check` starts it again and asks it.

use std::sync::LazyLock;

use super::{command, files, pages, replace};
#[cfg(feature = "databases")]
use super::{database, sqlite};
#[cfg(feature = "engine")]
use super::{log, state};
use crate::Error;
use crate::subject::Subject;
use landfall_databases::registry::{Kind, Registry};
use landfall_databases::setting::Description;

/// Those that have a module to themselves.
static OWN: &[&Kind<dyn Subject>] = &[
    &files::KIND,
    &pages::KIND,
    &replace::KIND,
    #[cfg(feature = "engine")]
    &log::KIND,
    #[cfg(feature = "engine")]
    &state::KIND,
    #[cfg(feature = "databases")]
    &sqlite::KIND,
];

static SUBJECTS: LazyLock<Registry<dyn Subject>> = LazyLock::new(|| {
    let mut kinds = OWN.to_vec();
    #[cfg(feature = "databases")]
    kinds.extend(database::kinds(|name| {
        OWN.iter().any(|own| own.description.name == name)
    }));
    kinds.push(&command::KIND);
    Registry {
        noun: "subject",
        kinds: kinds.leak(),
        is_partial: !cfg!(all(feature = "engine", feature = "databases")),
    }
});

/// Every subject with its settings.
pub fn list() -> impl Iterator<Item = &'static Description> {
    SUBJECTS.descriptions()
}

/// The subject of that name with these settings; those that are not named have their defaults.
pub fn named(name: &str, settings: &[(String, String)]) -> Result<Box<dyn Subject>, Error> {
    Ok(SUBJECTS.named(name, settings)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What must be set is the same everywhere: a command line.
    const COMMAND: &str = "program {dir} {ack}";

    #[test]
    fn every_subject_is_made_with_its_defaults() {
        for description in list() {
            let required = description
                .settings
                .iter()
                .filter(|setting| setting.default.is_none());
            let set: Vec<(String, String)> = required
                .map(|setting| (setting.name.to_owned(), COMMAND.to_owned()))
                .collect();
            let subject = named(description.name, &set).unwrap();
            assert_eq!(subject.name().name, description.name);
        }
    }

    #[test]
    fn every_setting_is_read() {
        assert!(SUBJECTS.unread_settings(COMMAND).is_empty());
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = named("file", &[]).err().unwrap().to_string();
        assert!(error.starts_with("no subject is called 'file'; there are: files, pages, "));
    }
}
