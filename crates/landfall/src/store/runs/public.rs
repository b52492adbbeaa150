//! Runs as who uses a store sees them: that it is the same map with them, whichever way the knob turns.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::Path;

use fastrand::Rng;

use crate::store::{
    Keyspace, KeyspaceOptions, Store, StoreBuffer, StoreCounters, StoreInspection, StoreOptions,
};
use crate::{Error, Options, Policy};

const KEYS: u64 = 2000;

fn options(percent: u8) -> StoreOptions {
    StoreOptions::default()
        .memory_bytes(32 << 10)
        .policy(Policy::Group)
        .buffer_percent(percent)
        .log(Options::default().segment_bytes(64 << 10))
}

fn open(directory: &Path, percent: u8) -> (Store, Keyspace) {
    let store = Store::open(directory, options(percent)).unwrap();
    let small = KeyspaceOptions::default().leaf_bytes(1024);
    let rows = store.keyspace("rows", small).unwrap();
    (store, rows)
}

type Model = BTreeMap<[u8; 8], Vec<u8>>;

fn change(rows: &Keyspace, model: &mut Model, rng: &mut Rng) {
    let key = rng.u64(0..KEYS).to_be_bytes();
    if rng.u8(0..8) == 0 {
        rows.remove(key).unwrap();
        model.remove(&key);
    } else {
        let value: Vec<u8> = (0..rng.usize(40..80)).map(|_| rng.u8(0..16)).collect();
        rows.insert(key, &value).unwrap();
        model.insert(key, value);
    }
}

fn compare(rows: &Keyspace, model: &Model) {
    let expected = || {
        model
            .iter()
            .map(|(key, value)| (key.to_vec(), value.clone()))
    };
    let found: Vec<_> = rows.iter().map(Result::unwrap).collect();
    assert!(found.into_iter().eq(expected()));
    let backwards: Vec<_> = rows.iter().rev().map(Result::unwrap).collect();
    assert!(backwards.into_iter().eq(expected().rev()));
    for key in (0..KEYS).map(u64::to_be_bytes) {
        assert_eq!(rows.get(key).unwrap().as_ref(), model.get(&key));
    }
}

#[test]
fn it_is_the_same_map_whichever_way_the_knob_turns() {
    let directory = tempfile::tempdir().unwrap();
    let mut rng = Rng::with_seed(5);
    let mut model = Model::new();
    let (mut runs, mut merges, mut tiers) = (0, 0, 0);
    for percent in [0, 50, 0, 200, 11] {
        let (store, rows) = open(directory.path(), percent);
        compare(&rows, &model);
        let snapshot = store.snapshot();
        let before = model.clone();
        for _ in 0..3000 {
            change(&rows, &mut model, &mut rng);
        }
        for (key, value) in before.iter().step_by(7) {
            assert_eq!(snapshot.get(&rows, key).unwrap().as_ref(), Some(value));
        }
        drop(snapshot);
        compare(&rows, &model);
        store.checkpoint().unwrap();
        let counters = store.counters();
        runs += counters.runs;
        merges += counters.merges;
        tiers += counters.tier_bytes;
        assert_eq!(counters.runs > 0, percent > 0, "{percent}%");
        let verified = store.verify();
        assert!(verified.damage.is_empty(), "{:?}", verified.damage);
        compare(&rows, &model);
        // Turned off, all of it is merged. Each checkpoint writes a part of the file again.
        if percent == 200 {
            assert!(counters.buffered_bytes > 0);
            store.set_buffer(StoreBuffer::Percent(0)).unwrap();
            for _ in 0..80 {
                store.checkpoint().unwrap();
                change(&rows, &mut model, &mut rng);
            }
            assert_eq!(store.counters().buffered_bytes, 0);
            compare(&rows, &model);
        }
        drop(rows);
        store.close().unwrap();
    }
    assert!(
        runs > 20 && merges > 5 && tiers > 0,
        "{runs}, {merges}, {tiers}"
    );
}

/// Waits for what is made in the background; a store that does nothing more for itself would let this run for ever.
fn wait_until(store: &Store, is_so: impl Fn(&StoreCounters) -> bool) {
    while !is_so(&store.counters()) {
        std::thread::yield_now();
    }
}

pub(super) fn fill(rows: &Keyspace, numbers: std::ops::Range<u64>) {
    for number in numbers {
        rows.insert(number.to_be_bytes(), [number as u8; 60])
            .unwrap();
    }
}

/// Fills so many rows into leaves, and every ninth again into runs.
pub(super) fn fill_leaves_and_runs(store: &Store, rows: &Keyspace, keys: u64) {
    fill(rows, 0..keys);
    store.checkpoint().unwrap();
    for number in (0..keys).step_by(9) {
        fill(rows, number..number + 1);
    }
    store.checkpoint().unwrap();
    assert!(store.counters().buffered_bytes > 0);
}

#[test]
fn what_may_not_wait_any_more_is_merged_without_being_asked() {
    let directory = tempfile::tempdir().unwrap();
    let (store, rows) = open(directory.path(), 200);
    fill_leaves_and_runs(&store, &rows, KEYS);
    drop(rows);
    store.close().unwrap();
    // Nobody writes anything more.
    let store = Store::open(directory.path(), options(0)).unwrap();
    wait_until(&store, |counters| counters.buffered_bytes == 0);
    assert!(store.counters().merges > 0);
}

#[test]
fn what_was_to_be_merged_when_the_power_went_is_merged_afterwards() {
    let directory = tempfile::tempdir().unwrap();
    let (store, rows) = open(directory.path(), 200);
    fill_leaves_and_runs(&store, &rows, KEYS);
    let left = tempfile::tempdir().unwrap();
    {
        // Nothing is merged before the power goes.
        let _none = store.handle.shared.checkpoints.lock().unwrap();
        store.set_buffer(StoreBuffer::Percent(0)).unwrap();
        for entry in std::fs::read_dir(directory.path()).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), left.path().join(entry.file_name())).unwrap();
        }
    }
    let options = StoreOptions {
        buffer: None,
        ..options(0)
    };
    let store = Store::open(left.path(), options).unwrap();
    assert_eq!(store.buffer().percent, 0);
    wait_until(&store, |counters| counters.buffered_bytes == 0);
    assert!(store.counters().merges > 0);
}

/// What is in memory of a run says nothing of what is on the disk.
#[test]
fn a_damaged_index_of_an_open_store_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let (store, rows) = open(directory.path(), 200);
    fill(&rows, 0..KEYS);
    store.checkpoint().unwrap();
    fill(&rows, 7..8);
    store.checkpoint().unwrap();
    let index = {
        let groups = rows.tree.groups.read().unwrap();
        groups[0].group.read().unwrap().runs[0].entry.index.offset
    };
    assert!(store.verify().damage.is_empty());
    let data = store.handle.shared.data.get().unwrap().name.clone();
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(directory.path().join(data));
    file.unwrap().write_all_at(&[9; 8], index + 60).unwrap();
    assert_eq!(store.verify().damage[0].offset, index);
}

#[test]
fn rows_that_are_appended_to_a_group_with_runs_become_leaves() {
    let directory = tempfile::tempdir().unwrap();
    let (store, rows) = open(directory.path(), 11);
    let mut many = 10 * KEYS;
    fill(&rows, 0..many);
    store.checkpoint().unwrap();
    // A run takes a sector at least: how many rows the group at the end has, and whether it may have one, is a matter of what was
    // written in the background.
    for _ in 0..20 {
        fill(&rows, many - 1..many);
        store.checkpoint().unwrap();
        if store.counters().buffered_bytes > 0 {
            break;
        }
        fill(&rows, many..many + KEYS / 4);
        store.checkpoint().unwrap();
        many += KEYS / 4;
    }
    assert!(store.counters().buffered_bytes > 0);
    // All runs together may still take more than these rows.
    fill(&rows, many..many + KEYS);
    store.checkpoint().unwrap();
    for place in rows.tree.groups.read().unwrap().iter() {
        let group = place.group.read().unwrap();
        // Not in bytes: the group at the end may have one small leaf, and a run takes a sector at least.
        let in_runs: u64 = group.runs.iter().map(|run| run.entry.entries).sum();
        let in_leaves = group.leaves.keys;
        assert!(
            in_runs < in_leaves,
            "{in_runs} keys in runs, {in_leaves} in leaves"
        );
    }
}

/// Does something until the store has chosen what it settles at.
fn choose(store: &Store, mut act: impl FnMut()) -> u8 {
    let mut before = None;
    let mut same = 0;
    while same < 2 {
        let expected = store.buffer().expected;
        while store.buffer().expected == expected {
            act();
        }
        let now = store.buffer().percent;
        same = if before == Some(now) { same + 1 } else { 0 };
        before = Some(now);
    }
    store.buffer().percent
}

#[test]
fn it_turns_with_the_load() {
    let directory = tempfile::tempdir().unwrap();
    let (store, rows) = open(directory.path(), 0);
    let many = 4 * KEYS;
    fill(&rows, 0..many);
    let mut rng = Rng::with_seed(7);
    store.set_buffer(StoreBuffer::Auto { most: 16 }).unwrap();
    let percent = choose(&store, || {
        let key = rng.u64(0..many);
        fill(&rows, key..key + 1);
    });
    assert!(percent > 2, "{}", store.buffer());
    // The store remembers what was chosen.
    drop(rows);
    store.close().unwrap();
    let mut as_it_was = options(0);
    as_it_was.buffer = None;
    let store = Store::open(directory.path(), as_it_was).unwrap();
    assert_eq!(store.buffer().percent, percent);
    assert_eq!(store.buffer().auto_most, None);
    store.set_buffer(StoreBuffer::Auto { most: 16 }).unwrap();
    let rows = store.keyspace("rows", KeyspaceOptions::default()).unwrap();
    let mut end = many;
    let percent = choose(&store, || {
        fill(&rows, end..end + 1);
        end += 1;
    });
    assert_eq!(percent, 0, "{}", store.buffer());
    // It may be pinned.
    store.set_buffer(StoreBuffer::Percent(5)).unwrap();
    assert_eq!(store.buffer().to_string(), "5%");
}

#[test]
fn small_rows_that_get_large_values_do_not_fill_the_runs_of_all() {
    let directory = tempfile::tempdir().unwrap();
    let (store, rows) = open(directory.path(), 16);
    fill(&rows, 0..10 * KEYS);
    let small = KeyspaceOptions::default().leaf_bytes(1024);
    let others = store.keyspace("small", small).unwrap();
    for number in 0..200_u64 {
        others.insert(number.to_be_bytes(), []).unwrap();
    }
    store.checkpoint().unwrap();
    for number in 0..60_u64 {
        let value: Vec<u8> = (0..1000).map(|byte| (byte * number) as u8).collect();
        others.insert((3 * number).to_be_bytes(), value).unwrap();
        store.checkpoint().unwrap();
    }
    for place in others.tree.groups.read().unwrap().iter() {
        let group = place.group.read().unwrap();
        let (leaves, runs) = (group.leaves.bytes, super::bytes_of(&group.runs));
        assert!(
            runs <= leaves + 4096,
            "{runs} bytes of runs, {leaves} of leaves"
        );
    }
}

#[test]
fn runs_that_cannot_be_merged_stop_nobody_else() {
    let directory = tempfile::tempdir().unwrap();
    let (store, rows) = open(directory.path(), 200);
    fill(&rows, 0..400);
    store.checkpoint().unwrap();
    for number in (0..400).step_by(9) {
        fill(&rows, number..number + 1);
    }
    store.checkpoint().unwrap();
    assert!(store.counters().buffered_bytes > 0);
    let (name, damaged) = {
        let groups = rows.tree.groups.read().unwrap();
        let all = groups.iter().map(|place| place.group.read().unwrap());
        let pages = all
            .filter(|group| !group.runs.is_empty())
            .map(|group| group.leaves[0].page.pointer.offset);
        let name = store.handle.shared.data.get().unwrap().name.clone();
        (name, pages.collect::<Vec<_>>())
    };
    drop(rows);
    store.close().unwrap();
    let mut writable = std::fs::OpenOptions::new();
    writable.write(true);
    let file = writable.open(directory.path().join(name)).unwrap();
    for offset in damaged {
        file.write_all_at(&[9; 4], offset + 60).unwrap();
    }
    // All of them are too much, and none can be merged.
    let (store, rows) = open(directory.path(), 0);
    let small = KeyspaceOptions::default().leaf_bytes(1024);
    let others = store.keyspace("others", small).unwrap();
    fill(&others, 0..4 * KEYS);
    store.checkpoint().unwrap();
    assert!(rows.iter().any(|pair| pair.is_err()));
    assert!(store.counters().buffered_bytes > 0);
    assert_eq!(store.counters().waiting_bytes, 0);
}

#[test]
fn memory_without_limit_is_one_that_is_never_filled() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(0)
        .memory_bytes(usize::MAX)
        .buffer(StoreBuffer::Auto { most: 16 });
    let store = Store::open(directory.path(), options).unwrap();
    let rows = store.keyspace("rows", KeyspaceOptions::default()).unwrap();
    fill(&rows, 0..KEYS);
    store.checkpoint().unwrap();
    assert_eq!(store.buffer().percent, 0);
}

#[test]
fn what_is_more_than_can_be_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let opened = Store::open(directory.path(), options(201));
    assert!(matches!(opened, Err(Error::Options(_))));
    let (store, _) = open(directory.path(), 0);
    for buffer in [StoreBuffer::Percent(201), StoreBuffer::Auto { most: 201 }] {
        assert!(matches!(store.set_buffer(buffer), Err(Error::Options(_))));
    }
}

/// A key of which a newer value is in a run that cannot be read is not given out with an older one.
#[test]
fn a_damaged_run_is_damage_of_its_keys() {
    let directory = tempfile::tempdir().unwrap();
    let mut rng = Rng::with_seed(6);
    let mut model = Model::new();
    let (store, rows) = open(directory.path(), 200);
    for number in 0..400_u64 {
        rows.insert(number.to_be_bytes(), [1; 50]).unwrap();
        model.insert(number.to_be_bytes(), vec![1; 50]);
    }
    store.checkpoint().unwrap();
    for _ in 0..40 {
        let key = rng.u64(0..400).to_be_bytes();
        rows.insert(key, [2; 50]).unwrap();
        model.insert(key, vec![2; 50]);
    }
    store.checkpoint().unwrap();
    assert!(store.counters().runs > 0);
    let run = {
        let groups = rows.tree.groups.read().unwrap();
        let with = groups
            .iter()
            .find(|place| !place.group.read().unwrap().runs.is_empty());
        with.unwrap().group.read().unwrap().runs[0].entry
    };
    drop(rows);
    store.close().unwrap();
    let whole = StoreInspection::verify(directory.path()).unwrap().1;
    assert!(whole.damage.is_empty());
    let data_file = || {
        let entries = std::fs::read_dir(directory.path()).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        let path = paths.find(|path| path.to_string_lossy().contains("data-"));
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true).open(path.unwrap()).unwrap()
    };
    let start = run.index.offset + run.index.extent(512) - run.bytes;
    for place in [start + 60, run.index.offset + 60] {
        let file = data_file();
        let mut byte = [0];
        file.read_exact_at(&mut byte, place).unwrap();
        file.write_all_at(&[byte[0] ^ 1], place).unwrap();
        let (inspection, verified) = StoreInspection::verify(directory.path()).unwrap();
        assert!(inspection.keyspaces[0].runs > 0);
        assert!(!verified.damage.is_empty());
        let mut dumped = Model::new();
        let (_, damage) = StoreInspection::dump(directory.path(), |_, key, value| {
            dumped.insert(key.try_into().unwrap(), value.to_vec());
        })
        .unwrap();
        assert!(!damage.is_empty());
        for (key, value) in &dumped {
            assert_eq!(model.get(key), Some(value), "an older value was given out");
        }
        let (store, rows) = open(directory.path(), 200);
        let mut reported = 0;
        for (key, value) in &model {
            match rows.get(key) {
                Ok(found) => assert_eq!(found.as_ref(), Some(value)),
                Err(Error::Corrupt { .. }) => reported += 1,
                Err(error) => panic!("{error}"),
            }
        }
        assert!(reported > 0);
        assert!(rows.iter().any(|pair| pair.is_err()));
        drop(rows);
        store.close().unwrap();
        data_file().write_all_at(&byte, place).unwrap();
    }
}
