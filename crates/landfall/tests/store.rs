//! The store on a real disk.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use landfall::{
    Error, Keyspace, KeyspaceOptions, Options, Policy, Store, StoreCounters, StoreInspection,
    StoreOptions,
};
use tempfile::TempDir;

const CHILD: &str = "LANDFALL_TEST_STORE";

fn directory() -> (TempDir, PathBuf) {
    let outside = tempfile::tempdir().unwrap();
    let place = outside.path().join("store");
    (outside, place)
}

/// Small, so that checkpoints are many.
fn open(place: &Path) -> Store {
    let options = StoreOptions::default()
        .memory_bytes(32 << 10)
        .log(Options::default().segment_bytes(64 << 10));
    Store::open(place, options).unwrap()
}

fn small() -> KeyspaceOptions {
    KeyspaceOptions::default().leaf_bytes(512)
}

/// The process that is killed: commits with four threads, and says what is durable.
#[test]
fn child() {
    let Ok(place) = std::env::var(CHILD) else {
        return;
    };
    let store = open(Path::new(&place));
    let keyspaces = ["a", "b"].map(|name| store.keyspace(name, small()).unwrap());
    let number = AtomicU64::new(std::process::id().into());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let key = number.fetch_add(1, Ordering::Relaxed) % 500;
                    let mut transaction = store.transaction();
                    let before = transaction.get(&keyspaces[0], key.to_be_bytes()).unwrap();
                    let count = before.map_or(0, |value| {
                        u64::from_be_bytes(value[..8].try_into().unwrap())
                    }) + 1;
                    for keyspace in &keyspaces {
                        let value = [count.to_be_bytes(); 6].concat();
                        transaction.insert(keyspace, key.to_be_bytes(), value);
                    }
                    match transaction.commit() {
                        Err(Error::Conflict) => {}
                        committed => {
                            committed.unwrap();
                            println!("durable {key} {count}");
                        }
                    }
                }
            });
        }
    });
}

#[test]
fn a_process_that_is_killed_loses_nothing_that_it_said_was_durable() {
    let (_outside, place) = directory();
    let mut durable: HashMap<u64, u64> = HashMap::new();
    for round in 0..12u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture"])
            .env(CHILD, &place)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut left = 100 + round * 137 % 900;
        for line in lines {
            let line = line.unwrap();
            if let Some((_, said)) = line.split_once("durable ")
                && let Some((key, count)) = said.split_once(' ')
                // The last line may be cut off.
                && let (Ok(key), Ok(count), true) = (key.parse(), count.parse::<u64>(), left < u64::MAX)
            {
                let most = durable.entry(key).or_default();
                *most = count.max(*most);
                left = left.saturating_sub(1);
            }
            if left == 0 {
                child.kill().unwrap();
                left = u64::MAX;
            }
        }
        child.wait().unwrap();
        let (_, verified) = StoreInspection::verify(&place).unwrap();
        assert!(verified.damage.is_empty(), "{:?}", verified.damage);
        let store = open(&place);
        let [a, b] = ["a", "b"].map(|name| {
            let keyspace = store.keyspace(name, small()).unwrap();
            let all = keyspace.range::<&[u8]>(..).map(Result::unwrap);
            all.collect::<HashMap<_, _>>()
        });
        // Both were written by the same commits.
        assert_eq!(a, b, "round {round}");
        for (key, count) in &durable {
            let found = a.get(&key.to_be_bytes()[..]);
            let found = found.map_or(0, |value| {
                u64::from_be_bytes(value[..8].try_into().unwrap())
            });
            assert!(
                found >= *count,
                "round {round}: {key} was {count}, is {found}"
            );
        }
        store.close().unwrap();
    }
    assert!(durable.len() > 100);
}

/// Money moves between accounts: whoever looks sees all of it, and none is made or lost.
#[test]
fn transfers_of_many_threads_keep_the_sum() {
    const ACCOUNTS: u64 = 60;
    const EACH: u64 = 1000;
    let (_outside, place) = directory();
    let store = open(&place);
    let accounts = store.keyspace("accounts", small()).unwrap();
    for account in 0..ACCOUNTS {
        accounts
            .insert(account.to_be_bytes(), EACH.to_be_bytes())
            .unwrap();
    }
    let read = |value: &[u8]| u64::from_be_bytes(value.try_into().unwrap());
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let movers: Vec<_> = (0..3)
            .map(|seed| {
                let (store, accounts) = (&store, &accounts);
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed);
                    let mut moved = 0;
                    while moved < 400 {
                        let (from, to) = (random.u64(0..ACCOUNTS), random.u64(0..ACCOUNTS));
                        let mut transfer = store.transaction();
                        let has = |account: u64| {
                            let value = transfer.get(accounts, account.to_be_bytes());
                            read(&value.unwrap().unwrap())
                        };
                        let (left, there) = (has(from), has(to));
                        let amount = random.u64(0..=left);
                        if from == to {
                            continue;
                        }
                        let (left, there) = (left - amount, there + amount);
                        transfer.insert(accounts, from.to_be_bytes(), left.to_be_bytes());
                        transfer.insert(accounts, to.to_be_bytes(), there.to_be_bytes());
                        match transfer.commit() {
                            Err(Error::Conflict) => {}
                            committed => {
                                committed.unwrap();
                                moved += 1;
                            }
                        }
                    }
                })
            })
            .collect();
        for is_backwards in [false, true] {
            let (accounts, ended) = (&accounts, &ended);
            scope.spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    let pairs = accounts.range::<&[u8]>(..);
                    let values = |pair: Result<(Vec<u8>, Vec<u8>), Error>| read(&pair.unwrap().1);
                    let sum: u64 = if is_backwards {
                        pairs.rev().map(values).sum()
                    } else {
                        pairs.map(values).sum()
                    };
                    assert_eq!(sum, ACCOUNTS * EACH);
                }
            });
        }
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                store.checkpoint().unwrap();
            }
        });
        for mover in movers {
            mover.join().unwrap();
        }
        ended.store(true, Ordering::Relaxed);
    });
    let made = store.counters().checkpoints;
    assert!(made > 0);
    store.close().unwrap();
    let store = open(&place);
    assert!(store.restart().checkpoint >= made, "{:?}", store.restart());
}

#[test]
fn updates_at_random_write_what_the_formula_says() {
    const ROWS: u32 = 20_000;
    for percent in [0, 8] {
        let (_outside, place) = directory();
        let options = StoreOptions::default()
            .memory_bytes(128 << 10)
            .policy(Policy::Group)
            // Where replaying is slow, checkpoints would come before memory is full.
            .max_recovery_time(Duration::from_secs(86_400))
            .buffer_percent(percent);
        let open = || Store::open(&place, options.clone()).unwrap();
        let mut random = fastrand::Rng::with_seed(3);
        let mut write = |store: &Store, rows: &Keyspace, row: u32| {
            let mut value = [0; 96];
            random.fill(&mut value[..48]);
            let mut batch = store.batch();
            batch.insert(rows, row.to_be_bytes(), value);
            batch.commit().unwrap();
        };
        let store = open();
        assert_eq!(store.expected_writes(), None, "there is no leaf yet");
        let small = KeyspaceOptions::default().leaf_bytes(4096);
        let rows = store.keyspace("rows", small.clone()).unwrap();
        for row in 0..ROWS {
            write(&store, &rows, row);
        }
        store.checkpoint().unwrap();
        // Until runs take what they may.
        let mut order = fastrand::Rng::with_seed(4);
        for _ in 0..ROWS {
            write(&store, &rows, order.u32(..ROWS));
        }
        let before = store.counters();
        for _ in 0..2 * ROWS {
            write(&store, &rows, order.u32(..ROWS));
        }
        let after = store.counters();
        let tree = |counters: &StoreCounters| {
            counters.tree_amplification() * counters.logical_bytes as f64
        };
        let logical = (after.logical_bytes - before.logical_bytes) as f64;
        let measured = (tree(&after) - tree(&before)) / logical;
        let expected = store.expected_writes().unwrap();
        let ratio = measured / expected.amplification();
        // Elsewhere than on Linux a run of few changes takes a block of 4 KiB, of which the formula does not know.
        let most = if cfg!(feature = "portable") { 1.7 } else { 1.4 };
        assert!((0.7..most).contains(&ratio), "{measured}, {expected}");
        store.close().unwrap();
        let inspected = StoreInspection::read(&place).unwrap();
        let from_outside = inspected.expected_writes(128 << 10).unwrap();
        let ratio = from_outside.amplification() / expected.amplification();
        assert!((0.9..1.1).contains(&ratio), "{from_outside}, {expected}");
        // All fits.
        assert_eq!(inspected.expected_writes(64 << 20), None);
    }
}
