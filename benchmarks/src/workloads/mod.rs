//! What is done with the stores; each file is one workload, and says what it measures.

pub mod load;
pub mod open;
pub mod queue;
pub mod reads;
pub mod redb;
pub mod stalls;
pub mod updates;
pub mod ycsb;

use crate::Fallible;
use crate::engines::View;
use crate::rows::{Keys, Rows};

/// Rows of 116 bytes.
const ROWS: Rows = Rows::new(Keys::Random, 108);
/// What a store may use if nothing else is said.
const MEMORY: u64 = 256 << 20;

/// Reads a row that must be there.
fn read(view: &mut dyn View, rows: &Rows, row: u64) -> Fallible<()> {
    let found = view.get(&rows.key(row), &mut |key, value| rows.check(key, value))?;
    if found {
        Ok(())
    } else {
        Err("a row is missing".into())
    }
}

/// Scans so many rows from one on, which must be in order. Returns how many there were.
fn scan(view: &mut dyn View, rows: &Rows, row: u64, count: usize) -> Fallible<u64> {
    let (mut last, mut found) = (rows.key(row), 0);
    let from = last.clone();
    view.scan(&from, count, &mut |key, value| {
        if *key < *last || (found > 0 && *key == *last) {
            return Err("a scan is not in order".into());
        }
        found += 1;
        last.clear();
        last.extend_from_slice(key);
        rows.check(key, value)
    })?;
    match found {
        0 => Err("a scan found nothing".into()),
        _ => Ok(found),
    }
}
