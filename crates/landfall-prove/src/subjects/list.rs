//! Every subject there is.
//!
//! A subject is a module with a [`Kind`](landfall_databases::registry::Kind): what it is called, what can be set of it,
//! and how it is made from what was set. A server is one too: its `run` starts it in the directory and stops it when
//! the sink says that it is enough, its `check` starts it again and asks it.

use super::{command, files, pages, replace};
#[cfg(feature = "databases")]
use super::{database, sqlite};
#[cfg(feature = "engine")]
use super::{log, state};
use crate::Error;
use crate::subject::Subject;
use landfall_databases::registry::Registry;
use landfall_databases::setting::Description;

static SUBJECTS: Registry<dyn Subject> = Registry {
    noun: "subject",
    kinds: &[
        &files::KIND,
        &pages::KIND,
        &replace::KIND,
        #[cfg(feature = "engine")]
        &log::KIND,
        #[cfg(feature = "engine")]
        &state::KIND,
        #[cfg(feature = "databases")]
        &sqlite::KIND,
        #[cfg(feature = "databases")]
        &database::MARIADB,
        #[cfg(feature = "databases")]
        &database::MYROCKS,
        #[cfg(feature = "databases")]
        &database::POSTGRES,
        #[cfg(feature = "databases")]
        &database::REDIS,
        #[cfg(feature = "databases")]
        &database::ETCD,
        #[cfg(feature = "databases")]
        &database::LMDB,
        #[cfg(feature = "databases")]
        &database::REDB,
        #[cfg(feature = "databases")]
        &database::FJALL,
        #[cfg(feature = "databases")]
        &database::ROCKSDB,
        &command::KIND,
    ],
    is_partial: !cfg!(all(feature = "engine", feature = "databases")),
};

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
