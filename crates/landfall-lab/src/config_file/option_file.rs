//! Option files of MariaDB and MySQL: whose they are, which sections a server reads, and how settings are spelled.

use serde_json::Value;

use super::spelling::{Include, all_in, uncommented, unquoted};
use crate::rules::{self, System};

/// Sections that the servers of MySQL and MariaDB read.
const SECTIONS: [&str; 2] = ["mysqld", "server"];
/// Those that only MariaDB's does.
const OF_MARIADB: [&str; 4] = ["mariadb", "mariadbd", "client-server", "galera"];

/// The setting that says whether there is a binary log.
const LOG_BIN: &str = "log_bin";

/// Settings that only one of the two servers has.
const ONLY_MYSQL: [&str; 12] = [
    "authentication_policy",
    "binlog_group_commit_sync_delay",
    "default_authentication_plugin",
    "enforce_gtid_consistency",
    "gtid_mode",
    "innodb_dedicated_server",
    "innodb_redo_log_capacity",
    "innodb_use_fdatasync",
    "log_replica_updates",
    "mysqlx",
    "mysqlx_port",
    "super_read_only",
];
const ONLY_MARIADB: [&str; 6] = [
    "aria_pagecache_buffer_size",
    "binlog_commit_wait_count",
    "binlog_commit_wait_usec",
    "gtid_domain_id",
    "gtid_strict_mode",
    "innodb_log_file_write_through",
];

/// Whose server a section is for.
pub(super) enum Section {
    /// The system's own.
    Own,
    /// Another server's: of the other kind, or one of several on the machine.
    Others,
    /// That of a program that is none.
    Client,
}

/// Whose server reads a section; those with a version are of the server that they name.
pub(super) fn section(system: System, section: &str) -> Section {
    let version = |c: char| c.is_ascii_digit() || c == '.';
    let name = if section.ends_with(version) {
        section.trim_end_matches(version).trim_end_matches('-')
    } else {
        section
    };
    let has_number = name != section && !section[name.len()..].starts_with('-');
    let (name, is_instance) = match name.split_once('@') {
        Some((name, _)) => (name, true),
        // As mysqld_multi has them.
        None => (name, has_number),
    };
    match (SECTIONS.contains(&name), OF_MARIADB.contains(&name)) {
        (false, false) => Section::Client,
        (_, true) if system == System::Mysql => Section::Others,
        _ if is_instance => Section::Others,
        _ => Section::Own,
    }
}

/// The version of the server that a section is for, as in `mysqld-8.4`: that which another one does not read.
pub(crate) fn version_of(section: &str) -> Option<&str> {
    let (_, version) = section.rsplit_once('-')?;
    let is_version = version.starts_with(|c: char| c.is_ascii_digit())
        && version.chars().all(|c| c.is_ascii_digit() || c == '.');
    is_version.then_some(version)
}

/// Whether an option file says that it is MariaDB's, and whether that it is MySQL's: by sections, by settings that
/// only one of them has, and by what its distribution has written into it.
pub(super) fn says(text: &str) -> (bool, bool) {
    let lower = text.to_ascii_lowercase();
    let mut of_mariadb = lower.contains("mariadb.conf.d");
    let mut of_mysql = ["mysql.conf.d", "dev.mysql.com"]
        .iter()
        .any(|words| lower.contains(words));
    for line in lower.lines().map(str::trim) {
        let section = line
            .strip_prefix('[')
            .and_then(|rest| rest.split(']').next());
        of_mariadb |=
            section.is_some_and(|name| name.starts_with("mariadb") || OF_MARIADB.contains(&name));
        if let Some((name, _)) = mysql(line) {
            of_mariadb |= ONLY_MARIADB.contains(&name.as_str());
            of_mysql |= ONLY_MYSQL.contains(&name.as_str());
        }
    }
    (of_mariadb, of_mysql)
}

pub(super) fn mysql_include(line: &str) -> Option<Include> {
    if let Some(path) = line.strip_prefix("!includedir") {
        return Some(all_in(path.trim(), "", ".cnf"));
    }
    let path = line.strip_prefix("!include")?;
    Some(Include::File(path.trim().to_owned()))
}

pub(super) fn mysql(line: &str) -> Option<(String, String)> {
    if line.is_empty() || line.starts_with(['#', ';']) {
        return None;
    }
    let line = uncommented(line);
    let (name, value) = match line.split_once('=') {
        Some((name, value)) => (name, Some(unquoted(value))),
        None => (line, None),
    };
    let name = name.trim().to_ascii_lowercase().replace('-', "_");
    let name = name.strip_prefix("loose_").unwrap_or(&name);
    for (prefix, meant, otherwise) in [
        ("skip_", "OFF", "ON"),
        ("disable_", "OFF", "ON"),
        ("enable_", "ON", "OFF"),
    ] {
        // Other options begin with these letters too.
        if let Some(rest) = name.strip_prefix(prefix).filter(|rest| is_known(rest)) {
            let is_negated = value.as_deref() == Some("0");
            let meant = if is_negated { otherwise } else { meant };
            return Some((rest.to_owned(), meant.to_owned()));
        }
    }
    let value = match value {
        // Whatever it says is the name of a file.
        Some(_) if name == LOG_BIN => "ON".to_owned(),
        Some(value) => by_number(name, &value).map_or(value, str::to_owned),
        None => "ON".to_owned(),
    };
    Some((name.to_owned(), value))
}

/// The value that a number stands for, where values have numbers that mean something else for another setting.
fn by_number(name: &str, value: &str) -> Option<&'static str> {
    let known: &[(&str, &'static str)] = match name {
        "innodb_flush_method" => &[
            ("0", "fsync"),
            ("1", "O_DSYNC"),
            ("2", "littlesync"),
            ("3", "nosync"),
            ("4", "O_DIRECT"),
            ("5", "O_DIRECT_NO_FSYNC"),
        ],
        _ => &[],
    };
    let found = known.iter().find(|(number, _)| *number == value);
    found.map(|(_, named)| *named)
}

/// Whether it is a setting that rules look at.
fn is_known(name: &str) -> bool {
    let mut systems = System::ALL.into_iter().filter(|one| one.has_option_files());
    name == LOG_BIN || systems.any(|system| rules::names(system).contains(&name))
}

/// The variables in what MySQL's SET PERSIST has written: objects by their names, with a text `Value`.
pub(super) fn persisted(text: &str) -> Result<Vec<(String, String)>, serde_json::Error> {
    fn walk(value: &Value, found: &mut Vec<(String, String)>) {
        let Value::Object(members) = value else {
            return;
        };
        for (name, member) in members {
            match member.get("Value") {
                Some(Value::String(value)) => found.push((name.clone(), value.clone())),
                _ => walk(member, found),
            }
        }
    }
    let mut found = Vec::new();
    walk(&serde_json::from_str(text)?, &mut found);
    Ok(found)
}
