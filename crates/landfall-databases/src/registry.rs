//! Every database there is, by name.

use super::{Database, Presence};
use crate::SettingError;
use crate::setting::{Chosen, Description};

/// How a database comes about.
pub(super) struct Kind {
    pub description: Description,
    /// Where it is on this machine.
    pub presence: fn() -> Presence,
    /// What it is called in a sentence: `MariaDB with InnoDB`.
    pub title: &'static str,
    pub make: fn(&Chosen) -> Result<Box<dyn Database>, SettingError>,
}

// In the order in which they are listed: servers, then what is linked in.
#[rustfmt::skip]
static KINDS: &[&Kind] = &[
    #[cfg(feature = "mariadb")]
    &crate::mariadb::innodb::KIND,
    #[cfg(feature = "mariadb")]
    &crate::mariadb::myrocks::KIND,
    #[cfg(feature = "postgres")]
    &crate::postgres::KIND,
    #[cfg(feature = "redis")]
    &crate::redis::KIND,
    #[cfg(feature = "etcd")]
    &crate::etcd::KIND,
    #[cfg(feature = "sqlite")]
    &crate::sqlite::KIND,
    #[cfg(feature = "lmdb")]
    &crate::lmdb::KIND,
    #[cfg(feature = "redb")]
    &crate::redb::KIND,
    #[cfg(feature = "fjall")]
    &crate::fjall::KIND,
    &crate::rocksdb::KIND,
];

/// Whether all are there that are by default.
const IS_WHOLE: bool = cfg!(all(
    feature = "mariadb",
    feature = "postgres",
    feature = "redis",
    feature = "etcd",
    feature = "sqlite",
    feature = "lmdb",
    feature = "redb",
    feature = "fjall"
));

/// Every database with its settings, what it is called in a sentence, and where it is.
pub fn list() -> impl Iterator<Item = (&'static Description, &'static str, Presence)> {
    KINDS
        .iter()
        .map(|kind| (&kind.description, kind.title, (kind.presence)()))
}

/// What every database is and what can be set of it, without asking where it is, which takes a while.
pub fn descriptions() -> impl Iterator<Item = &'static Description> {
    KINDS.iter().map(|kind| &kind.description)
}

/// The database of that name with these settings; those that are not named have their defaults. Whether
/// it is on this machine shows when it is created.
pub fn named(name: &str, settings: &[(String, String)]) -> Result<Box<dyn Database>, SettingError> {
    let Some(kind) = KINDS.iter().find(|kind| kind.description.name == name) else {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.description.name).collect();
        let left_out = if IS_WHOLE {
            ""
        } else {
            " (others are left out of this build: build with the default features)"
        };
        return Err(SettingError(format!(
            "no database is called '{name}'; there are: {}{left_out}",
            names.join(", ")
        )));
    };
    (kind.make)(&Chosen::new(&kind.description, settings)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_database_is_made_with_its_defaults() {
        for (description, title, _) in list() {
            let database = named(description.name, &[]).unwrap();
            assert!(database.name().starts_with(description.name));
            assert!(!title.is_empty());
        }
    }

    #[test]
    fn every_setting_is_read() {
        for (description, ..) in list() {
            for setting in description.settings {
                let set = [(setting.name.to_owned(), "\u{1}'".to_owned())];
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
        let error = named("access", &[]).err().unwrap().to_string();
        assert!(error.starts_with("no database is called 'access'; there are: "));
        assert!(error.contains("sqlite"));
    }
}
