//! The subject of a proof, told from its name.

use crate::rules::{Rule, System};
use landfall_prove::subjects;

/// A subject and what was set of it: `mariadb sync_binlog=1`.
pub(super) struct Subject {
    pub name: String,
    settings: Vec<(String, String)>,
}

impl Subject {
    /// The subject of this name; nothing for one that is not named as subjects are.
    pub fn parse(text: &str) -> Option<Subject> {
        let mut words = shlex::split(text)?.into_iter();
        let name = words.next()?;
        let settings = words
            .filter_map(|word| {
                let (key, value) = word.split_once('=')?;
                Some((key.to_owned(), value.to_owned()))
            })
            .collect();
        Some(Subject { name, settings })
    }

    /// The value of a setting: what was set, or what it is unless somebody does; `None` where that is
    /// the server's own business.
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.settings.iter().find(|(known, _)| known == key);
        let set = found.map(|(_, value)| value.as_str());
        let subjects = subjects::list().filter(|known| known.name == self.name);
        let databases = landfall_databases::descriptions();
        let mut settings = subjects
            .chain(databases.filter(|known| known.name == self.name))
            .flat_map(|description| description.settings);
        set.or_else(|| settings.find(|setting| setting.name == key)?.default)
    }

    /// Whether it is what the rule is about.
    pub fn is_of(&self, rule: &Rule) -> bool {
        match rule.system {
            // Its parts are subjects of their own.
            System::Landfall => self.name == rule.setting,
            system => self.name == system.key(),
        }
    }

    /// Whether every acknowledged write of it is meant to be durable, where that is told by the method.
    pub fn is_meant_to_be_durable(&self) -> bool {
        let method = self.get("method").and_then(|method| method.parse().ok());
        method.is_none_or(|method: landfall_os::SyncMethod| method.is_durable())
    }
}
