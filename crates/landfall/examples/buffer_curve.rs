//! What a store writes for each byte that is updated, by how much of it may wait in runs.
//!
//! `cargo run --release -p landfall --example buffer_curve -- DIRECTORY [MIB [MEMORY_MIB [ZIPF]]]` makes a store of so many MiB
//! of rows of 116 bytes, half of which compress away, updates rows at random until each has been updated about three times,
//! and prints for 0 to 16 percent what the second half of that wrote into leaves, runs and the rest of the tree, beside
//! `c (1 + tiers + (1 - e^-u) / (2b + m))`, where *c* is what rows are compressed to, *m* the share of rows whose changes
//! wait in memory, *b* what runs take of what leaves do, `tiers` how often a change is written again in runs, and *u* how
//! many changes a leaf gets when it is written. At 0 percent it is `c (1 - e^-u) / 2m`: `landfall::ExpectedWrites`. The log is
//! not in it. `PERCENTS=0,11` in the environment asks for other values of the knob, `LEAF_KIB=64` for larger leaves.

use std::path::Path;

use landfall::{ExpectedWrites, KeyspaceOptions, Policy, Store, StoreCounters, StoreOptions};

const ROW: usize = 116;
const KEY: usize = 16;
const BATCH: usize = 100;
/// Commits that tell what a change takes in memory: too few for a checkpoint.
const PROBE: usize = 10;

fn key(row: u64) -> [u8; KEY] {
    let mut key = [b'0'; KEY];
    let text = format!("{row:016}");
    key.copy_from_slice(text.as_bytes());
    key
}

fn value(random: &mut fastrand::Rng) -> Vec<u8> {
    let mut value = vec![b' '; ROW - KEY];
    let half = value.len() / 2 - KEY / 2;
    value[..half].fill_with(|| random.u8(..));
    value
}

/// Rank by the method of rejection of W. Hörmann and G. Derflinger.
struct Zipf(f64, u64);

impl Zipf {
    fn next(&self, random: &mut fastrand::Rng) -> u64 {
        let Zipf(s, n) = *self;
        let (s1, n) = (1.0 - s, n as f64);
        loop {
            // The integral of the density, inverted.
            let u = random.f64() * ((n + 0.5).powf(s1) - 0.5_f64.powf(s1)) + 0.5_f64.powf(s1);
            let x = u.powf(1.0 / s1);
            let k = (x + 0.5).floor().clamp(1.0, n);
            if random.f64() * x.powf(-s).max(k.powf(-s)) <= k.powf(-s) {
                return k as u64 - 1;
            }
        }
    }
}

fn tree(now: &StoreCounters, before: &StoreCounters) -> [f64; 4] {
    let of = |bytes: fn(&StoreCounters) -> u64| (bytes(now) - bytes(before)) as f64;
    [
        of(|counters| counters.leaf_bytes),
        of(|counters| counters.run_bytes),
        of(|counters| counters.tier_bytes),
        of(|counters| counters.group_bytes + counters.root_bytes + counters.control_bytes),
    ]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("which directory?")?;
    let mut number = |default: f64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (mib, memory, zipf) = (number(256.0)?, number(16.0)?, number(0.0)?);
    let percents = std::env::var("PERCENTS").unwrap_or("0,2,5,8,11,16".to_owned());
    let leaf_kib: u32 = std::env::var("LEAF_KIB").map_or(Ok(16), |text| text.parse())?;
    let rows = (mib * 1048576.0) as u64 / ROW as u64;
    println!(
        "| buffer | leaves | runs | tiers | rest | all | formula | all / formula | m | b | c | u | file / leaves | checkpoints |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    std::fs::create_dir_all(&directory)?;
    for percent in percents.split(',') {
        let percent: u8 = percent.parse()?;
        let path = Path::new(&directory).join(format!("buffer-{percent}"));
        let options = StoreOptions::default()
            .memory_bytes((memory * 1048576.0) as usize)
            .buffer_percent(percent)
            .policy(Policy::Interval(std::time::Duration::from_millis(50)));
        let store = Store::open(&path, options)?;
        let leaves = KeyspaceOptions::default().leaf_bytes(leaf_kib << 10);
        let keyspace = store.keyspace("rows", leaves)?;
        let mut random = fastrand::Rng::with_seed(1);
        for first in (0..rows).step_by(BATCH) {
            let mut batch = store.batch();
            for row in first..rows.min(first + BATCH as u64) {
                batch.insert(&keyspace, key(row), value(&mut random));
            }
            batch.commit()?;
        }
        store.checkpoint()?;
        let filled = store.counters();
        let compressed = filled.tree_bytes as f64 / (rows * ROW as u64) as f64;
        // What a change takes in memory.
        for _ in 0..PROBE {
            let mut batch = store.batch();
            for _ in 0..BATCH {
                let row = random.u64(..rows);
                batch.insert(&keyspace, key(row), value(&mut random));
            }
            batch.commit()?;
        }
        let probed = store.counters().waiting_bytes - filled.waiting_bytes;
        let change_bytes = probed as f64 / (PROBE * BATCH) as f64;
        let step = rows.wrapping_mul(2_654_435_761) | 1;
        let zipf = Zipf(zipf, rows);
        let updates = 3 * rows;
        let mut done = 0;
        let mut half = None;
        let (mut waiting, mut buffered, mut samples) = (0.0, 0.0, 0.0);
        while done < updates {
            let mut batch = store.batch();
            for _ in 0..BATCH {
                let row = if zipf.0 > 0.0 {
                    // Neighbours are not alike.
                    zipf.next(&mut random).wrapping_mul(step) % rows
                } else {
                    random.u64(..rows)
                };
                batch.insert(&keyspace, key(row), value(&mut random));
            }
            batch.commit()?;
            done += BATCH as u64;
            if done.is_multiple_of(BATCH as u64 * 64) && done > updates / 2 {
                let now = store.counters();
                waiting += now.waiting_bytes as f64;
                buffered += now.buffered_bytes as f64 / now.tree_bytes as f64;
                samples += 1.0;
                half.get_or_insert((now, done));
            }
        }
        let (before, from) = half.ok_or("too few updates")?;
        let now = store.counters();
        let logical = ((done - from) * ROW as u64) as f64;
        let [leaves, runs, tiers, rest] = tree(&now, &before).map(|bytes| bytes / logical);
        let m = waiting / samples / change_bytes / rows as f64;
        let b: f64 = buffered / samples;
        let leaf_bytes = (now.leaf_bytes - before.leaf_bytes) as f64;
        let leaf_rows =
            leaf_bytes / (now.leaves - before.leaves) as f64 / (compressed * ROW as f64);
        let expected = ExpectedWrites {
            compressed,
            in_memory: m,
            in_runs: b,
            leaf_rows,
        };
        let (formula, changes) = (expected.amplification(), expected.leaf_changes());
        let all = leaves + runs + tiers + rest;
        println!(
            "| {percent}% | {leaves:.2} | {runs:.2} | {tiers:.2} | {rest:.2} | {all:.2} | {formula:.2} | {:.2} | {:.2}% | {:.2}% | {compressed:.2} | {changes:.1} | {:.2} | {} |",
            all / formula,
            m * 100.0,
            b * 100.0,
            now.file_bytes as f64 / now.tree_bytes as f64,
            now.checkpoints - before.checkpoints,
        );
        drop(keyspace);
        store.close()?;
        std::fs::remove_dir_all(&path)?;
    }
    Ok(())
}
