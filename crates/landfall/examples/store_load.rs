//! What a store writes, and how fast it is: loads rows, updates them at random, and reads them.
//!
//! `cargo run --release -p landfall --example store_load -- DIR ROWS MEMORY_MIB [UPDATES [READS]]` makes a store in a directory
//! that is not there yet, and leaves it there. A row has a key of 8 bytes, in an order that looks random, and a value of 100
//! bytes, half of which compresses; a commit has 100 rows and is not waited for (`Policy::Group`). Counts follow from the
//! arguments, but for when checkpoints begin; times are those of the machine. `RECOVERY_SECONDS=600` in the environment lets
//! opening take so long, so that the memory alone decides when they begin.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use landfall::{BoxedError, Keyspace, Policy, Store, StoreCounters, StoreOptions};

/// Rows of a commit.
const COMMIT: u64 = 100;
/// Odd, so that different rows have different keys.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

fn key(row: u64) -> [u8; 8] {
    row.wrapping_mul(SPREAD).to_be_bytes()
}

fn value(random: &mut fastrand::Rng) -> [u8; 100] {
    let mut value = [0; 100];
    random.fill(&mut value[..50]);
    value
}

/// Commits so many rows; `next` says which.
fn write(
    store: &Store,
    keyspace: &Keyspace,
    rows: u64,
    random: &mut fastrand::Rng,
    mut next: impl FnMut(u64, &mut fastrand::Rng) -> u64,
) -> Result<(), BoxedError> {
    for first in (0..rows).step_by(COMMIT as usize) {
        let mut batch = store.batch();
        for number in first..rows.min(first + COMMIT) {
            let row = next(number, random);
            batch.insert(keyspace, key(row), value(random));
        }
        batch.commit()?;
    }
    Ok(store.commit()?)
}

fn tell(what: &str, count: u64, took: Duration) {
    let rate = count as f64 / took.as_secs_f64();
    println!(
        "{what}: {count} rows in {:.1} s, {rate:.0} a second",
        took.as_secs_f64()
    );
}

/// Bytes by cause, of each byte of keys and values.
fn amplification(before: &StoreCounters, after: &StoreCounters) {
    let of = |bytes: fn(&StoreCounters) -> u64| {
        let logical = after.logical_bytes - before.logical_bytes;
        (bytes(after) - bytes(before)) as f64 / logical as f64
    };
    println!(
        "bytes per byte updated: log records {:.2}, log padding {:.3}, leaves {:.2}, groups {:.3}, roots {:.4}, control {:.4}",
        of(|all| all.log.record_bytes),
        of(|all| all.log.padding()),
        of(|all| all.leaf_bytes),
        of(|all| all.group_bytes),
        of(|all| all.root_bytes),
        of(|all| all.control_bytes),
    );
}

fn run() -> Result<(), BoxedError> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let usage = "usage: store_load DIR ROWS MEMORY_MIB [UPDATES [READS]]";
    let directory = words.first().ok_or(usage)?;
    let number = |place: usize| words.get(place).map(|word| word.parse::<u64>());
    let rows = number(1).ok_or(usage)??.max(1);
    let memory = number(2).ok_or(usage)??;
    let updates = number(3).transpose()?.unwrap_or(rows / 4);
    let reads = number(4).transpose()?.unwrap_or(rows / 20);
    let mut options = StoreOptions::default()
        .policy(Policy::Group)
        .memory_bytes(usize::try_from(memory << 20)?);
    if let Ok(seconds) = std::env::var("RECOVERY_SECONDS") {
        options = options.max_recovery_time(Duration::from_secs(seconds.parse()?));
    }
    let store = Store::open(directory, options.clone())?;
    let keyspace = store.keyspace("rows", Default::default())?;
    let mut random = fastrand::Rng::with_seed(1);

    let begin = Instant::now();
    write(&store, &keyspace, rows, &mut random, |number, _| number)?;
    tell("load", rows, begin.elapsed());

    // What the first updates find in memory is of the load: those that are counted come after as many again.
    let half = updates / 2;
    let any = |_, random: &mut fastrand::Rng| random.u64(0..rows);
    write(&store, &keyspace, half, &mut random, any)?;
    let (begin, before) = (Instant::now(), store.counters());
    write(&store, &keyspace, updates - half, &mut random, any)?;
    tell("update", updates - half, begin.elapsed());
    let after = store.counters();
    amplification(&before, &after);
    let used = after.file_bytes - after.free_bytes;
    let logical = rows * 108;
    println!(
        "space: {:.2} of the data in pages, {:.2} with what is free in the file",
        used as f64 / logical as f64,
        after.file_bytes as f64 / logical as f64
    );

    let begin = Instant::now();
    for _ in 0..reads {
        let row = random.u64(0..rows);
        keyspace.get(key(row))?.ok_or("a row is missing")?;
    }
    tell("read", reads, begin.elapsed());
    let begin = Instant::now();
    let mut scanned = 0;
    for pair in keyspace.range::<&[u8]>(..) {
        pair?;
        scanned += 1;
    }
    tell("scan", scanned, begin.elapsed());

    drop(keyspace);
    store.close()?;
    let begin = Instant::now();
    let store = Store::open(directory, options)?;
    println!(
        "open: {:.2} s, {} commits applied again",
        begin.elapsed().as_secs_f64(),
        store.restart().commits
    );
    Ok(store.close()?)
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("store_load: {error}");
            ExitCode::FAILURE
        }
    }
}
