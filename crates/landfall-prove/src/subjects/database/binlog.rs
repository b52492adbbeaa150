//! What MariaDB has written for replicas, held against what it has.
//!
//! A replica makes what the binary log says. If a power cut takes the end of that log and not of the
//! redo log, the database goes on with transactions that no replica will ever have, or the other way
//! round.

use std::collections::BTreeSet;

use super::is_off;
use crate::transactions::shape::Remains;
use landfall_databases::{DatabaseError, Dialect, Sql};

/// How a transaction's number stands in the log: see `tables`.
const WORDS: &str = "INSERT INTO log_of_numbers (n) VALUES (";

/// Why a server that keeps a log would not say in it, with these settings, which transactions it has; `None`: it would.
pub(super) fn silent(name: &str, settings: &[(String, String)]) -> Option<String> {
    let value = |setting: &str| {
        let found = settings.iter().rfind(|(set, _)| set == setting);
        found.map(|(_, value)| value.to_lowercase())
    };
    let is_kept = match value("binlog").as_deref() {
        Some("yes") => true,
        Some("no") => false,
        _ => value("sync_binlog").is_some(),
    };
    if !is_kept {
        return None;
    }
    let filters = ["binlog_do_db", "binlog_ignore_db"];
    if let Some(filter) = filters.iter().find(|filter| value(filter).is_some()) {
        return Some(format!(
            "{filter}: the binary log is held against the tables, and must have all that they have; leave it out"
        ));
    }
    let is_bare = value("binlog_annotate_row_events").is_some_and(|value| is_off(&value));
    let has_rows = match value("binlog_format").as_deref() {
        Some("row" | "2") => true,
        Some("statement" | "1") => false,
        // The server chooses rows for an engine that knows nothing else, and where reads cannot be repeated.
        _ => {
            let isolation = value("transaction_isolation");
            // By their numbers, too.
            let is_low = |level: String| level.starts_with("read-") || level == "0" || level == "1";
            name == "myrocks" || isolation.is_some_and(is_low)
        }
    };
    (is_bare && has_rows).then(|| {
        "binlog_annotate_row_events=OFF: rows alone do not say which transactions are in the binary log; leave it out"
            .to_owned()
    })
}

/// In what they differ, if there is a binary log.
pub(super) fn difference(
    sql: &mut dyn Sql,
    remains: &Remains,
) -> Result<Option<String>, DatabaseError> {
    if sql.dialect() != Dialect::MariaDb {
        return Ok(None);
    }
    let is_kept = sql.prepare("SELECT @@GLOBAL.log_bin")?;
    let is_kept = sql.query(is_kept, &[])?;
    if is_kept.first().and_then(|row| row[0].integer()) != Some(1) {
        return Ok(None);
    }
    let mut logged = BTreeSet::new();
    let files = sql.prepare("SHOW BINARY LOGS")?;
    for file in sql.query(files, &[])? {
        let name = String::from_utf8_lossy(file[0].bytes()).into_owned();
        let events = sql.prepare(&format!("SHOW BINLOG EVENTS IN '{name}'"))?;
        let events = match sql.query(events, &[]) {
            Ok(events) => events,
            // No replica can read it either.
            Err(DatabaseError::Failed(why)) => {
                return Ok(Some(format!("the binary log {name} cannot be read: {why}")));
            }
            Err(error) => return Err(error),
        };
        let texts = events.iter().filter_map(|event| event.last());
        logged.extend(transactions(texts.map(|text| text.bytes())));
    }
    let there = remains.entries.iter().map(|entry| entry.transaction);
    Ok(compare(&there.collect(), &logged))
}

/// Numbers of transactions whose commit is in the log.
fn transactions<'a>(events: impl Iterator<Item = &'a [u8]>) -> BTreeSet<u64> {
    let mut committed = BTreeSet::new();
    let mut current: Option<u64> = None;
    for event in events {
        let text = String::from_utf8_lossy(event);
        if let Some((_, number)) = text.split_once(WORDS) {
            current = number.split(')').next().and_then(|n| n.trim().parse().ok());
        } else if text.starts_with("COMMIT") {
            committed.extend(current.take());
        } else if text.starts_with("BEGIN") {
            current = None;
        }
    }
    committed
}

fn compare(there: &BTreeSet<u64>, logged: &BTreeSet<u64>) -> Option<String> {
    let without = |one: &BTreeSet<u64>, other: &BTreeSet<u64>| {
        let mut only = one.difference(other);
        only.next()
            .map(|first| (first.to_owned(), only.count() + 1))
    };
    let words = |(first, count): (u64, usize), where_not: &str| match count {
        1 => format!("transaction {first} is not in {where_not}"),
        _ => format!("{count} transactions, {first} the first, are not in {where_not}"),
    };
    let of_log = without(there, logged).map(|gap| words(gap, "the binary log, only in the tables"));
    let of_tables =
        without(logged, there).map(|gap| words(gap, "the tables, only in the binary log"));
    match (of_log, of_tables) {
        (None, None) => None,
        (Some(one), Some(other)) => Some(format!("{one}; {other}")),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_says_no_numbers_is_refused_where_one_is_kept() {
        let refused = |name: &str, set: &[(&str, &str)]| {
            let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
            let settings: Vec<_> = set.iter().map(owned).collect();
            silent(name, &settings).is_some()
        };
        let bare = ("binlog_annotate_row_events", "OFF");
        let kept = ("sync_binlog", "1");
        assert!(!refused("mariadb", &[bare, kept]));
        assert!(!refused("mariadb", &[bare, ("binlog_format", "ROW")]));
        assert!(refused("mariadb", &[bare, kept, ("binlog_format", "ROW")]));
        assert!(refused("myrocks", &[bare, ("binlog", "yes")]));
        let isolation = ("transaction_isolation", "READ-COMMITTED");
        assert!(refused("mariadb", &[bare, kept, isolation]));
        let filter = ("binlog_ignore_db", "landfall");
        assert!(refused("mariadb", &[filter, kept]));
        assert!(!refused("mariadb", &[filter]));
        assert!(!refused("mariadb", &[kept, ("binlog_format", "ROW")]));
    }

    #[test]
    fn only_what_the_log_commits_counts() {
        let events = [
            "BEGIN GTID 0-1-1",
            "use `landfall`; INSERT INTO log_of_numbers (n) VALUES (7)",
            "COMMIT /* xid=12 */",
            "BEGIN GTID 0-1-2",
            "INSERT INTO log_of_numbers (n) VALUES (8)",
            "BEGIN GTID 0-1-3",
            "COMMIT /* xid=13 */",
        ];
        let events = events.iter().map(|event| event.as_bytes());
        assert_eq!(transactions(events), [7].into());
    }

    #[test]
    fn a_difference_says_who_lacks_what() {
        let set = |numbers: &[u64]| numbers.iter().copied().collect();
        assert_eq!(compare(&set(&[1, 2]), &set(&[1, 2])), None);
        assert_eq!(
            compare(&set(&[1, 2, 3]), &set(&[1])).unwrap(),
            "2 transactions, 2 the first, are not in the binary log, only in the tables"
        );
        assert_eq!(
            compare(&set(&[1]), &set(&[1, 4])).unwrap(),
            "transaction 4 is not in the tables, only in the binary log"
        );
    }
}
