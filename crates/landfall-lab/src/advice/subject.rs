//! What a proof's subject says to a rule.

use landfall_prove::SubjectName;
use landfall_prove::subjects;

use crate::rules::{self, NO_BINLOG, Rule, System};

/// The value of a setting: what was set, or what it is unless somebody does; `None` where that is
/// the server's own business, or it means nothing.
pub fn value<'a>(subject: &'a SubjectName, key: &str) -> Option<&'a str> {
    let subjects = subjects::list().filter(|known| known.name == subject.name);
    let databases = landfall_databases::descriptions();
    let mut settings = subjects
        .chain(databases.filter(|known| known.name == subject.name))
        .flat_map(|description| description.settings);
    let usual = || settings.find(|setting| setting.name == key)?.default;
    // A server that was told to keep a binary log, and no more, syncs it as is usual.
    let of_binlog = || {
        let rules = rules::all().filter(|rule| is_of(subject, rule) && rule.setting == key);
        let mut of_binlog = rules.filter(|rule| rule.idle_with == Some(NO_BINLOG));
        let has_binlog = subject.get("binlog") == Some("yes");
        of_binlog
            .next()
            .filter(|_| has_binlog)
            .map(|rule| rule.default)
    };
    subject.get(key).or_else(usual).or_else(of_binlog)
}

/// Whether it is what the rule is about.
pub fn is_of(subject: &SubjectName, rule: &Rule) -> bool {
    match rule.system {
        // Its parts are subjects of their own.
        System::Landfall => subject.name == rule.setting,
        system => subject.name == system.key(),
    }
}

/// Whether every acknowledged write of it is meant to be durable, where that is told by the method.
pub fn is_meant_to_be_durable(subject: &SubjectName) -> bool {
    let method = value(subject, "method").and_then(|method| method.parse().ok());
    method.is_none_or(|method: landfall_os::SyncMethod| method.is_durable())
}
