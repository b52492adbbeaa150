//! What it costs to remove half of all rows: key by key, and as one range.
//!
//! `cargo run --release -p landfall --example remove_range DIR ROWS` makes two stores in DIR, which it leaves there.

use std::path::Path;
use std::time::Instant;

use landfall::{Keyspace, Policy, Store, StoreOptions};

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// Rows of a commit.
const BATCH: u64 = 1000;

fn filled(place: &Path, rows: u64) -> Fallible<(Store, Keyspace)> {
    let store = Store::open(place, StoreOptions::default().policy(Policy::Group))?;
    let keyspace = store.keyspace("rows", Default::default())?;
    for first in (0..rows).step_by(BATCH as usize) {
        let mut batch = store.batch();
        for row in first..rows.min(first + BATCH) {
            // Of 100 bytes, half of which compress.
            let mut value = [0; 100];
            for bytes in value[..50].chunks_mut(8) {
                let word = row
                    .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                    .rotate_left(bytes.len() as u32);
                bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
            }
            batch.insert(&keyspace, row.to_be_bytes(), value);
        }
        batch.commit()?;
    }
    store.checkpoint()?;
    Ok((store, keyspace))
}

fn main() -> Fallible<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, dir, rows] = &arguments[..] else {
        return Err("usage: remove_range DIR ROWS".into());
    };
    let rows: u64 = rows.parse()?;
    println!("      log KiB  leaves KiB  leaves  tree MiB before and after  seconds");
    for as_range in [false, true] {
        let name = if as_range { "range" } else { "keys" };
        let (store, keyspace) = filled(&Path::new(dir).join(name), rows)?;
        let before = store.counters();
        let begin = Instant::now();
        let half = rows / 2;
        if as_range {
            keyspace.remove_range(..half.to_be_bytes())?;
        } else {
            for first in (0..half).step_by(BATCH as usize) {
                let mut batch = store.batch();
                for row in first..half.min(first + BATCH) {
                    batch.remove(&keyspace, row.to_be_bytes());
                }
                batch.commit()?;
            }
        }
        store.checkpoint()?;
        let took = begin.elapsed();
        let after = store.counters();
        assert_eq!(keyspace.iter().count() as u64, rows - half);
        println!(
            "{name:5} {:7} {:11} {:7} {:15} {:10} {:8.3}",
            (after.log.all_bytes() - before.log.all_bytes()) >> 10,
            (after.leaf_bytes - before.leaf_bytes) >> 10,
            after.leaves - before.leaves,
            before.tree_bytes >> 20,
            after.tree_bytes >> 20,
            took.as_secs_f64()
        );
    }
    Ok(())
}
