//! Every database there is.

use crate::registry::{Kind, Registry};
use crate::setting::Description;
use crate::{Database, Form, Listed, Presence, SettingError};

/// The databases of this build, in the order in which they are listed: servers, then what is linked in.
#[rustfmt::skip]
pub static KINDS: &[&Kind<dyn Database, Listed>] = &[
    #[cfg(feature = "servers")]
    &crate::mariadb::innodb::KIND,
    #[cfg(feature = "servers")]
    &crate::mariadb::myrocks::KIND,
    #[cfg(feature = "servers")]
    &crate::postgres::KIND,
    #[cfg(feature = "servers")]
    &crate::redis::KIND,
    #[cfg(feature = "servers")]
    &crate::etcd::KIND,
    #[cfg(feature = "stores")]
    &crate::sqlite::KIND,
    #[cfg(feature = "stores")]
    &crate::lmdb::KIND,
    #[cfg(feature = "stores")]
    &crate::redb::KIND,
    #[cfg(feature = "stores")]
    &crate::fjall::KIND,
    #[cfg(feature = "stores")]
    &crate::sled::KIND,
    #[cfg(feature = "stores")]
    &crate::store::KIND,
    &crate::rocksdb::KIND,
];

pub(crate) static DATABASES: Registry<dyn Database, Listed> = Registry {
    noun: "database",
    kinds: KINDS,
    is_partial: !cfg!(feature = "default"),
};

/// Every database with its settings, what it is called in a sentence, and where it is.
pub fn list() -> impl Iterator<Item = (&'static Description, &'static str, Presence)> {
    KINDS.iter().map(|kind| {
        let Listed {
            title, presence, ..
        } = kind.listed;
        (&kind.description, title, presence())
    })
}

/// What every database is and what can be set of it, without asking where it is, which takes a while.
pub fn descriptions() -> impl Iterator<Item = &'static Description> {
    DATABASES.descriptions()
}

/// What those are that are no servers: part of this program, or of one that is built with them.
pub fn linked_in() -> impl Iterator<Item = &'static Description> {
    let linked_in = KINDS.iter().filter(|kind| kind.listed.form != Form::Server);
    linked_in.map(|kind| &kind.description)
}

/// The database of that name with these settings; those that are not named have their defaults. Whether
/// it is on this machine shows when it is created.
pub fn named(name: &str, settings: &[(String, String)]) -> Result<Box<dyn Database>, SettingError> {
    DATABASES.named(name, settings)
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
        assert!(DATABASES.unread_settings("").is_empty());
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = named("access", &[]).err().unwrap().to_string();
        assert!(error.starts_with("no database is called 'access'; there are: "));
        assert!(error.contains("sqlite"));
    }
}
