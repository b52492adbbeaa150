//! That ranges which are removed at once are gone for all who came after, there for those who read as of before, and cost no more than
//! that is worth.

use std::os::unix::fs::FileExt;

use super::{Keyspace, KeyspaceOptions, Store, StoreOptions};
use crate::{Error, Options};

fn options() -> StoreOptions {
    StoreOptions {
        memory_bytes: 64 << 10,
        log: Options::default().segment_bytes(64 << 10),
        ..StoreOptions::default()
    }
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// A keyspace with so many rows, all of them in leaves.
fn filled(store: &Store, rows: u32) -> Keyspace {
    let options = KeyspaceOptions::default().leaf_bytes(1024);
    let keyspace = store.keyspace("a", options).unwrap();
    for first in (0..rows).step_by(100) {
        let mut batch = store.batch();
        for number in first..rows.min(first + 100) {
            batch.insert(&keyspace, key(number), [7; 60]);
        }
        batch.commit().unwrap();
    }
    store.checkpoint().unwrap();
    keyspace
}

fn numbers(pairs: super::Pairs) -> Vec<u32> {
    let number = |key: Vec<u8>| u32::from_be_bytes(key.try_into().unwrap());
    pairs.map(|pair| number(pair.unwrap().0)).collect()
}

#[test]
fn leaves_of_which_all_is_removed_go_unread() {
    let outside = tempfile::tempdir().unwrap();
    let place = outside.path().join("store");
    let store = Store::open(&place, options()).unwrap();
    let keyspace = filled(&store, 20_000);
    let before = store.counters();
    keyspace.remove_range(key(500)..key(19_500)).unwrap();
    let left: Vec<u32> = (0..500).chain(19_500..20_000).collect();
    assert_eq!(numbers(keyspace.iter()), left);
    let mut back = numbers(keyspace.iter());
    back.reverse();
    assert_eq!(back, left.iter().rev().copied().collect::<Vec<_>>());
    assert_eq!(keyspace.get(key(500)).unwrap(), None);
    assert!(keyspace.get(key(499)).unwrap().is_some());

    // Nothing of those can be read any more: whoever tried would know.
    let places = keyspace.tree.groups.read().unwrap().clone();
    let mut damaged = 0;
    let names = std::fs::read_dir(&place).unwrap();
    let mut names = names.map(|entry| entry.unwrap().path());
    let data = names.find(|path| path.to_string_lossy().contains("data-"));
    let file = std::fs::File::options()
        .write(true)
        .open(data.unwrap())
        .unwrap();
    for place in &places {
        for leaf in place.group.read().unwrap().leaves.iter() {
            if *leaf.low > key(500)[..] && *leaf.low < key(19_000)[..] {
                let offset = leaf.page.pointer.offset;
                file.write_all_at(&[9; 40], offset + 60).unwrap();
                leaf.page.keep(None);
                damaged += 1;
            }
        }
    }
    drop(places);
    assert!(damaged > 100, "{damaged}");
    assert_eq!(numbers(keyspace.iter()), left);
    store.checkpoint().unwrap();
    assert_eq!(numbers(keyspace.iter()), left);
    let verified = store.verify();
    assert_eq!((verified.entries, verified.damage.len()), (1_000, 0));
    let after = store.counters();
    let tree = |counters: &super::StoreCounters| counters.leaf_bytes + counters.group_bytes;
    // At both ends of the range a leaf has something else as well; and it is said where those are that are left.
    assert!(after.leaves - before.leaves <= 4, "{after:?}");
    assert!(tree(&after) - tree(&before) < 64 << 10, "{after:?}");
    assert!(after.tree_bytes * 10 < before.tree_bytes, "{after:?}");
    // One writes an eighth of the file at the most, as if all of both groups at the ends were written.
    assert!(after.checkpoints - before.checkpoints <= 2, "{after:?}");
    // What is left is found without going through what is gone.
    drop(keyspace);
    store.close().unwrap();
    let store = Store::open(&place, options()).unwrap();
    let keyspace = store.keyspace("a", KeyspaceOptions::default()).unwrap();
    assert_eq!(numbers(keyspace.iter()), left);
}

#[test]
fn who_reads_as_of_before_sees_what_was_there() {
    let outside = tempfile::tempdir().unwrap();
    for percent in [0, 11] {
        let store = Store::open(outside.path().join(format!("{percent}")), options()).unwrap();
        store
            .set_buffer(super::StoreBuffer::Percent(percent))
            .unwrap();
        let keyspace = filled(&store, 2_000);
        // Some of it is in runs, and some in memory.
        for number in (0..2_000).step_by(7) {
            keyspace.insert(key(number), "newer").unwrap();
        }
        store.checkpoint().unwrap();
        keyspace.insert(key(1_001), "newest").unwrap();
        let before = store.snapshot();
        keyspace.remove_range(key(100)..=key(1_899)).unwrap();
        keyspace.insert(key(700), "after").unwrap();
        let after = store.snapshot();
        keyspace.remove_range(..key(50)).unwrap();
        let all: Vec<u32> = (0..2_000).collect();
        let of_after: Vec<u32> = (0..100).chain([700]).chain(1_900..2_000).collect();
        let of_now: Vec<u32> = (50..100).chain([700]).chain(1_900..2_000).collect();
        for _ in 0..3 {
            assert_eq!(numbers(before.range::<&[u8]>(&keyspace, ..)), all);
            let newest = before.get(&keyspace, key(1_001)).unwrap();
            assert_eq!(newest.unwrap(), b"newest");
            assert_eq!(numbers(after.range::<&[u8]>(&keyspace, ..)), of_after);
            let value = after.get(&keyspace, key(700)).unwrap();
            assert_eq!(value.unwrap(), b"after");
            assert_eq!(numbers(keyspace.iter()), of_now);
            store.checkpoint().unwrap();
        }
        drop((before, after));
        // What only they needed goes with the next change of its leaves.
        keyspace.remove_range::<&[u8]>(..).unwrap();
        assert_eq!(numbers(keyspace.iter()), []);
        store.checkpoint().unwrap();
        assert_eq!(store.counters().tree_bytes, 0);
    }
}

#[test]
fn a_range_that_is_removed_meets_others() {
    let outside = tempfile::tempdir().unwrap();
    let store = Store::open(outside.path().join("store"), options()).unwrap();
    let keyspace = store.keyspace("a", KeyspaceOptions::default()).unwrap();
    for letter in ["a", "c", "e"] {
        keyspace.insert(letter, "old").unwrap();
    }
    let conflicts = |committed: Result<(), Error>| matches!(committed, Err(Error::Conflict));
    // Somebody writes a key of it, or removes one, or more than one.
    let mut transaction = store.transaction();
    transaction.remove_range(&keyspace, "b".."d");
    keyspace.insert("bb", "new").unwrap();
    assert!(conflicts(transaction.commit()));
    let mut transaction = store.transaction();
    transaction.insert(&keyspace, "c", "new");
    keyspace.remove_range("b".."d").unwrap();
    assert!(conflicts(transaction.commit()));
    let mut transaction = store.transaction();
    transaction.remove_range(&keyspace, "a".."c");
    keyspace.remove_prefix("bb").unwrap();
    assert!(conflicts(transaction.commit()));
    // Somebody who read it.
    for is_serialisable in [false, true] {
        let reader = || {
            if is_serialisable {
                store.serialisable_transaction()
            } else {
                store.transaction()
            }
        };
        let (mut key, mut range) = (reader(), reader());
        assert_eq!(key.get(&keyspace, "d").unwrap(), None);
        assert_eq!(range.range(&keyspace, "d".."e").count(), 0);
        key.insert(&keyspace, "x", "");
        range.insert(&keyspace, "y", "");
        keyspace.remove_range("cc"..="d").unwrap();
        assert_eq!(conflicts(key.commit()), is_serialisable);
        assert_eq!(conflicts(range.commit()), is_serialisable);
        // What is beside it does not matter.
        let mut beside = reader();
        assert!(beside.get(&keyspace, "e").unwrap().is_some());
        beside.insert(&keyspace, "z", "");
        keyspace.remove_range("d".."e").unwrap();
        beside.commit().unwrap();
    }
}

#[test]
fn a_transaction_sees_what_it_removed() {
    let outside = tempfile::tempdir().unwrap();
    let store = Store::open(outside.path().join("store"), options()).unwrap();
    let keyspace = filled(&store, 100);
    let mut transaction = store.transaction();
    transaction.insert(&keyspace, key(30), "gone as well");
    transaction.remove_range(&keyspace, key(10)..key(90));
    transaction.insert(&keyspace, key(40), "put behind");
    let left: Vec<u32> = (0..10).chain([40]).chain(90..100).collect();
    let all = || transaction.range::<&[u8]>(&keyspace, ..);
    assert_eq!(numbers(all()), left);
    let back = all().rev().map(|pair| pair.unwrap().0[3].into());
    assert_eq!(
        back.collect::<Vec<u32>>(),
        left.iter().rev().copied().collect::<Vec<_>>()
    );
    assert_eq!(transaction.get(&keyspace, key(30)).unwrap(), None);
    assert!(transaction.get(&keyspace, key(40)).unwrap().is_some());
    assert_eq!(numbers(keyspace.iter()).len(), 100);
    transaction.commit().unwrap();
    assert_eq!(numbers(keyspace.iter()), left);
}

#[test]
fn nothing_and_too_long_keys_are_refused_as_elsewhere() {
    let outside = tempfile::tempdir().unwrap();
    let store = Store::open(outside.path().join("store"), options()).unwrap();
    let keyspace = filled(&store, 10);
    let before = store.counters().commits;
    keyspace.remove_range(key(5)..key(5)).unwrap();
    keyspace.remove_range(key(6)..key(5)).unwrap();
    assert_eq!(
        store.counters().commits,
        before,
        "nothing was to be removed"
    );
    let most = vec![1; 64 << 10];
    keyspace.remove_range(..=most.as_slice()).unwrap();
    let more = vec![1; (64 << 10) + 2];
    let refused = keyspace.remove_range(more.as_slice()..).unwrap_err();
    assert!(matches!(refused, Error::TooLarge { .. }), "{refused}");
    let left = keyspace.clone();
    store.remove_keyspace(keyspace).unwrap();
    assert!(matches!(
        left.remove_range::<&[u8]>(..),
        Err(Error::NoKeyspace)
    ));
}

#[test]
fn a_queue_that_forgets_its_front_looks_at_little() {
    let outside = tempfile::tempdir().unwrap();
    let store = Store::open(outside.path().join("store"), options()).unwrap();
    let keyspace = filled(&store, 20_000);
    let shared = &store.handle.shared;
    let pieces = || shared.pieces.load(std::sync::atomic::Ordering::Relaxed);
    for front in (1_000..20_000).step_by(1_000) {
        keyspace.remove_range(..key(front)).unwrap();
        let before = pieces();
        let first = keyspace.iter().next().unwrap().unwrap();
        assert_eq!(first.0, key(front));
        // A piece of each group whose keys are gone at the most, and not one of each leaf or key.
        let groups = keyspace.tree.groups.read().unwrap().len() as u64;
        assert!(
            pieces() - before <= groups + 2,
            "{front}: {}",
            pieces() - before
        );
        // One range, however often it got longer.
        let places = keyspace.tree.groups.read().unwrap();
        let first = places[0].group.read().unwrap();
        assert!(first.active.removed().ranges().count() <= 1);
    }
}

#[test]
fn many_small_ranges_are_passed_over_once() {
    let outside = tempfile::tempdir().unwrap();
    let options = options().memory_bytes(64 << 20);
    let store = Store::open(outside.path().join("store"), options).unwrap();
    let keyspace = filled(&store, 1_000);
    for number in 0..500 {
        keyspace.remove_range(key(number)..=key(number)).unwrap();
        let first = keyspace.iter().next().unwrap().unwrap();
        assert_eq!(first.0, key(number + 1));
        // What one has passed over the next one need not, though each range has a commit of its own.
        let places = keyspace.tree.groups.read().unwrap();
        let group = places[0].group.read().unwrap();
        let all = super::iterate::Bounds::of::<&[u8]>(&..);
        let gap = group.gaps.at_end_of(&all, u64::MAX, false);
        assert!(number < 8 || gap.is_some(), "{number}");
    }
}
