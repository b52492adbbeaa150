//! What a database still has: its own integrity check, and every row.

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{SLOTS, failed, payload, slots};
use crate::subject::{Recovered, SubjectError};
use landfall_databases::sqlite::options::VFS;

/// Opens the database, which recovers it, and reads everything.
pub(super) fn check(path: &Path) -> Result<Recovered, SubjectError> {
    let mut found = Recovered::default();
    match Connection::open_with_flags_and_vfs(
        path,
        // Not CREATE: a database that is gone would come back empty.
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        VFS,
    ) {
        Ok(connection) => {
            let read = read(&connection, &mut found);
            if let Err((connection, error)) = connection.close() {
                // It is tried again as it goes out of scope.
                drop(connection);
                note(&mut found, "closing", Err(error))?;
            }
            read?;
        }
        Err(error) => note(&mut found, "opening", Err(error))?,
    }
    Ok(found)
}

fn read(connection: &Connection, found: &mut Recovered) -> Result<(), SubjectError> {
    let sound = check_integrity(connection, found);
    note(found, "integrity_check", sound)?;
    let history = read_history(connection, found);
    note(found, "reading history", history)?;
    let slots = compare_slots(connection, found);
    note(found, "reading slots", slots)
}

/// An error is damage, the first one counts; unless it is none of the database's.
fn note(
    found: &mut Recovered,
    doing: &str,
    result: rusqlite::Result<()>,
) -> Result<(), SubjectError> {
    let Err(error) = result else {
        return Ok(());
    };
    let somebody_elses = matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::OutOfMemory | ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    );
    if somebody_elses {
        return Err(failed(doing, &error));
    }
    found.damage.get_or_insert(format!("{doing}: {error}"));
    Ok(())
}

fn check_integrity(connection: &Connection, found: &mut Recovered) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("PRAGMA integrity_check(1)")?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        let text: String = row.get(0)?;
        if text != "ok" {
            // The first line only says that it is about the one database that there is.
            let text = text.lines().last().unwrap_or_default();
            found
                .damage
                .get_or_insert(format!("integrity_check: {text}"));
        }
    }
    Ok(())
}

/// Adds every transaction that has its row.
fn read_history(connection: &Connection, found: &mut Recovered) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("SELECT n, payload FROM history ORDER BY n")?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        let number: i64 = row.get(0)?;
        let written = row.get_ref(1)?.as_blob().unwrap_or_default();
        match u64::try_from(number) {
            Ok(transaction) if transaction > 0 && written == payload(transaction) => {
                found.whole.insert(transaction);
            }
            _ => found.invented.push(format!(
                "row {number} of history, with a payload that nobody wrote"
            )),
        }
    }
    Ok(())
}

/// Holds the slots against the history.
fn compare_slots(connection: &Connection, found: &mut Recovered) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("SELECT slot, n FROM slots ORDER BY slot")?;
    let kept = statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?;
    let kept: Vec<(i64, i64)> = kept.collect::<rusqlite::Result<_>>()?;
    let numbers: Vec<i64> = kept.iter().map(|&(slot, _)| slot).collect();
    if !numbers.iter().copied().eq(0..SLOTS as i64) {
        let damage = format!("slots are {numbers:?} instead of 0 to {}", SLOTS - 1);
        found.damage.get_or_insert(damage);
        return Ok(());
    }
    let mut expected = [0; SLOTS as usize];
    for &transaction in &found.whole {
        for slot in slots(transaction) {
            expected[slot as usize] = transaction;
        }
    }
    let mut partial = BTreeSet::new();
    for ((slot, number), expected) in (0..).zip(kept.into_iter().map(|(_, n)| n)).zip(expected) {
        let transaction = u64::try_from(number).unwrap_or(0);
        let wrote_it = transaction > 0 && slots(transaction).contains(&slot);
        if number != 0 && !wrote_it {
            found.invented.push(format!(
                "slot {slot} holds {number}, which did not write it"
            ));
        }
        if transaction < expected {
            // The row is there, and this is not.
            partial.insert(expected);
        } else if transaction > expected && wrote_it {
            // This is there, and the row is not.
            partial.insert(transaction);
        }
    }
    found
        .whole
        .retain(|transaction| !partial.contains(transaction));
    found.partial = partial;
    Ok(())
}
