//! What a change takes in memory besides its key and value.
//!
//! `cargo run --release -p landfall --example change_memory -- DIRECTORY` makes stores in a directory, one after the other,
//! and removes them. Keys have 16 bytes, values those of the first column. Rows come in the order of their keys, in none, or are
//! written anew, one in twenty and in no order, after a checkpoint.

use std::path::Path;

use landfall::{BoxedError, KeyspaceOptions, Policy, Store, StoreOptions};

const KEY: usize = 16;
const ROWS: u64 = 200_000;
/// Of so many rows one is written anew.
const ONE_IN: u64 = 20;
/// Odd, so that different rows have different keys.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// A prime, and more than there are rows.
const STEP: u64 = 1_000_003;

fn in_order(row: u64) -> u64 {
    row
}

fn in_none(row: u64) -> u64 {
    row.wrapping_mul(SPREAD)
}

/// Writes `count` rows, and says what each took besides its bytes.
fn fill(
    path: &Path,
    value: usize,
    number_of: fn(u64) -> u64,
    is_anew: bool,
) -> Result<f64, BoxedError> {
    let options = StoreOptions::default()
        .memory_bytes(2 << 30)
        .policy(Policy::Group);
    let store = Store::open(path, options)?;
    let keyspace = store.keyspace("rows", KeyspaceOptions::default())?;
    let value = vec![7; value];
    let write = |row| keyspace.insert(format!("{:016x}", number_of(row)), &value);
    (0..ROWS).try_for_each(write)?;
    let mut count = ROWS;
    if is_anew {
        store.checkpoint()?;
        count = ROWS / ONE_IN;
        (0..count).try_for_each(|place| write(place * STEP % ROWS))?;
    }
    let counters = store.counters();
    if counters.checkpoints != u64::from(is_anew) {
        return Err("a checkpoint came between".into());
    }
    drop(keyspace);
    store.close()?;
    std::fs::remove_dir_all(path)?;
    Ok(counters.waiting_bytes as f64 / count as f64 - (KEY + value.len()) as f64)
}

fn main() -> Result<(), BoxedError> {
    let directory = std::env::args().nth(1).ok_or("which directory?")?;
    std::fs::create_dir_all(&directory)?;
    let path = Path::new(&directory).join("store");
    println!("| value | in order | in no order | written anew |");
    println!("|--:|--:|--:|--:|");
    for value in [8, 34, 100, 400, 1000] {
        let appended = fill(&path, value, in_order, false)?;
        let scattered = fill(&path, value, in_none, false)?;
        let anew = fill(&path, value, in_none, true)?;
        println!("| {value} | {appended:.0} | {scattered:.0} | {anew:.0} |");
    }
    Ok(())
}
