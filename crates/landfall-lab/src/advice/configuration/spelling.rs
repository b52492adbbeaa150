//! How each server spells its settings, line by line.

use crate::advice::rule::System;

/// Sections that the servers of MySQL and MariaDB read.
const SECTIONS: [&str; 2] = ["mysqld", "server"];
/// Those that only MariaDB's does.
const OF_MARIADB: [&str; 4] = ["mariadb", "mariadbd", "client-server", "galera"];

/// A line that brings in other files.
pub(super) enum Include {
    File(String),
    IfThere(String),
    /// All files of a directory whose names end so.
    Directory(String, &'static str),
}

/// Whether the system's server reads a section; those with a version are of the server that they name.
pub(super) fn is_server(system: System, section: &str) -> bool {
    let is_known = |name: &str| {
        SECTIONS.contains(&name) || (system != System::Mysql && OF_MARIADB.contains(&name))
    };
    let version = |c: char| c.is_ascii_digit() || c == '.';
    let unversioned = match section.ends_with(version) {
        true => section.trim_end_matches(version).strip_suffix('-'),
        false => None,
    };
    // Only the names of programs take versions.
    let is_program = |name: &str| name.ends_with('d') || name == "mariadb";
    is_known(section) || unversioned.is_some_and(|name| is_program(name) && is_known(name))
}

fn unquoted(value: &str) -> String {
    let value = value.trim();
    for quote in ['\'', '"'] {
        let inner = value
            .strip_prefix(quote)
            .and_then(|rest| rest.split_once(quote));
        if let Some((inner, _)) = inner {
            return inner.to_owned();
        }
    }
    value.to_owned()
}

/// The line without a comment that follows its value.
fn uncommented(line: &str) -> &str {
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, '#') => return line[..at].trim_end(),
            _ => {}
        }
    }
    line
}

pub(super) fn mysql_include(line: &str) -> Option<Include> {
    if let Some(path) = line.strip_prefix("!includedir") {
        return Some(Include::Directory(path.trim().to_owned(), ".cnf"));
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
    let mut name = name.strip_prefix("loose_").unwrap_or(&name);
    let mut value = value;
    for (prefix, meant) in [("skip_", "OFF"), ("disable_", "OFF"), ("enable_", "ON")] {
        // An option that begins with these letters and has a value is another one.
        if let (Some(rest), None) = (name.strip_prefix(prefix), &value) {
            name = rest;
            value = Some(meant.to_owned());
        }
    }
    Some((name.to_owned(), value.unwrap_or_else(|| "ON".to_owned())))
}

pub(super) fn postgres_include(line: &str) -> Option<Include> {
    let line = uncommented(line);
    let (word, rest) = line.split_once(|c: char| c.is_whitespace() || c == '=')?;
    let path = unquoted(rest.trim_start_matches([' ', '\t', '=']));
    match word.to_ascii_lowercase().as_str() {
        "include" => Some(Include::File(path)),
        "include_if_exists" => Some(Include::IfThere(path)),
        "include_dir" => Some(Include::Directory(path, ".conf")),
        _ => None,
    }
}

pub(super) fn postgres(line: &str) -> Option<(String, String)> {
    let line = uncommented(line);
    let (name, rest) = line.split_once(|c: char| c.is_whitespace() || c == '=')?;
    let value = unquoted(rest.trim_start_matches([' ', '\t', '=']));
    Some((name.to_ascii_lowercase(), value))
}

pub(super) fn redis_include(line: &str) -> Option<Include> {
    let path = unquoted(line.strip_prefix("include ")?);
    Some(match path.rsplit_once('/') {
        // As far as rules need it: every file of a directory that is named by its ending.
        Some((directory, "*.conf")) => Include::Directory(directory.to_owned(), ".conf"),
        _ => Include::File(path),
    })
}

pub(super) fn redis(line: &str) -> Option<(String, String)> {
    if line.starts_with('#') {
        return None;
    }
    let (name, value) = line.split_once(char::is_whitespace)?;
    Some((name.to_ascii_lowercase(), unquoted(value)))
}

pub(super) fn yaml(line: &str) -> Option<(String, String)> {
    let line = uncommented(line);
    let (name, value) = line.split_once(':')?;
    Some((name.trim().to_owned(), unquoted(value)))
}

pub(super) fn property(line: &str) -> Option<(String, String)> {
    if line.starts_with(['#', '!', ';']) {
        return None;
    }
    let (name, value) = line.split_once('=')?;
    Some((name.trim().to_owned(), value.trim().to_owned()))
}

/// `PRAGMA name = value`, `PRAGMA schema.name(value)`.
pub(super) fn pragma(statement: &str) -> Option<(String, String)> {
    let lower = statement.trim().to_ascii_lowercase();
    let rest = lower.strip_prefix("pragma")?.trim_start();
    let (name, value) = match rest.split_once('=') {
        Some(pair) => pair,
        None => rest.strip_suffix(')')?.split_once('(')?,
    };
    let name = name.trim();
    let name = name.split_once('.').map_or(name, |(_, name)| name);
    let value = unquoted(value);
    // Levels have numbers as well.
    let levels = ["off", "normal", "full", "extra"];
    let level = value
        .parse()
        .ok()
        .and_then(|level: usize| levels.get(level));
    Some(match level {
        Some(level) if name == "synchronous" => (name.to_owned(), (*level).to_owned()),
        _ => (name.to_owned(), value),
    })
}
