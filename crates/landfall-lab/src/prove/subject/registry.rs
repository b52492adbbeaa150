//! Every subject there is, by name.
//!
//! A subject is a module with a [`Kind`]: what it is called, what can be set of it, and how it is made
//! from what was set. A server is one too: its `run` starts it in the directory and stops it when the
//! sink says that it is enough, its `check` starts it again and asks it.

use super::{Subject, command, files, log, pages, replace, state};
#[cfg(feature = "databases")]
use super::{database, sqlite};
use crate::Error;
use landfall_databases::setting::{Chosen, Description};

/// How a subject comes about.
pub(super) struct Kind {
    pub description: Description,
    pub make: fn(&Chosen) -> Result<Box<dyn Subject>, Error>,
}

static KINDS: &[&Kind] = &[
    &files::KIND,
    &pages::KIND,
    &replace::KIND,
    &log::KIND,
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
];

/// Every subject with its settings.
pub fn list() -> impl Iterator<Item = &'static Description> {
    KINDS.iter().map(|kind| &kind.description)
}

/// The subject of that name with these settings; those that are not named have their defaults.
pub fn named(name: &str, settings: &[(String, String)]) -> Result<Box<dyn Subject>, Error> {
    let Some(kind) = KINDS.iter().find(|kind| kind.description.name == name) else {
        let names: Vec<&str> = list().map(|known| known.name).collect();
        return Err(Error::Usage(format!(
            "no subject is called '{name}'; there are: {}",
            names.join(", ")
        )));
    };
    (kind.make)(&Chosen::new(&kind.description, settings)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What must be set is the same everywhere: a command line.
    fn required(description: &Description) -> Vec<(String, String)> {
        let settings = description.settings.iter();
        settings
            .filter(|setting| setting.default.is_none())
            .map(|setting| (setting.name.to_owned(), "program {dir} {ack}".to_owned()))
            .collect()
    }

    #[test]
    fn every_subject_is_made_with_its_defaults() {
        for description in list() {
            let subject = named(description.name, &required(description)).unwrap();
            assert!(subject.name().starts_with(description.name));
        }
    }

    #[test]
    fn every_setting_is_read() {
        for description in list() {
            for setting in description.settings {
                let mut set = required(description);
                set.retain(|(name, _)| name != setting.name);
                set.push((setting.name.to_owned(), "\u{1}'".to_owned()));
                let error = named(description.name, &set).err().map(|e| e.to_string());
                let expected = format!("{} {}=", description.name, setting.name);
                assert!(
                    error.is_some_and(|error| error.starts_with(&expected)),
                    "{expected}"
                );
            }
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = named("file", &[]).err().unwrap().to_string();
        assert!(error.starts_with("no subject is called 'file'; there are: files, pages, "));
    }
}
