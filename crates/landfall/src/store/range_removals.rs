//! That ranges which are removed at once are gone for all who came after, there for those who read as of before, and cost no more than
//! that is worth.

use std::fs::File;
use std::ops::Bound;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::Ordering;

use super::{Keyspace, KeyspaceOptions, Store, StoreInspection, StoreOptions};
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

/// The store's data file.
fn data_file(store: &Path) -> File {
    let names = std::fs::read_dir(store).unwrap();
    let mut names = names.map(|entry| entry.unwrap().path());
    let data = names.find(|path| path.to_string_lossy().contains("data-"));
    File::options().write(true).open(data.unwrap()).unwrap()
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
    let file = data_file(&place);
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
    let refused = keyspace.remove_range(..more.as_slice()).unwrap_err();
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
    let pieces = || shared.pieces.load(Ordering::Relaxed);
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

#[test]
fn groups_that_are_said_to_be_empty_are_passed_over_by_whom_they_are_empty_for() {
    let outside = tempfile::tempdir().unwrap();
    let options = options().memory_bytes(64 << 20);
    let store = Store::open(outside.path().join("store"), options).unwrap();
    let keyspace = filled(&store, 20_000);
    let pieces = || store.handle.shared.pieces.load(Ordering::Relaxed);
    let said = || {
        let places = keyspace.tree.groups.read().unwrap();
        let said = places
            .iter()
            .filter(|place| place.emptiness.is_at(u64::MAX - 1));
        (said.count(), places.len())
    };
    let before = store.snapshot();
    let full: Vec<u32> = (0..20_000).collect();
    for first in (0..20_000).step_by(1_000) {
        let mut batch = store.batch();
        (first..first + 1_000).for_each(|number| batch.remove(&keyspace, key(number)));
        batch.commit().unwrap();
    }
    let removed = store.snapshot();
    let (none, groups) = said();
    assert!(none == 0 && groups > 50, "{none} of {groups}");
    assert_eq!(numbers(keyspace.iter()), []);
    assert_eq!(said(), (groups, groups));
    let looked = pieces();
    assert_eq!(numbers(keyspace.iter()), []);
    assert_eq!(keyspace.iter().next_back().transpose().unwrap(), None);
    assert_eq!(numbers(keyspace.range(key(77)..key(19_000))), []);
    assert_eq!(pieces(), looked, "they were looked into again");
    assert_eq!(numbers(before.range::<&[u8]>(&keyspace, ..)), full);

    // A key comes, and is there for who comes after it.
    keyspace.insert(key(9_999), [1]).unwrap();
    assert_eq!(said(), (groups - 1, groups));
    let newer = store.snapshot();
    assert_eq!(numbers(keyspace.iter()), [9_999]);
    let last = keyspace.iter().next_back().unwrap().unwrap();
    assert_eq!(last.0, key(9_999));
    assert_eq!(numbers(keyspace.range(key(9_999)..)), [9_999]);
    assert_eq!(numbers(keyspace.range(..=key(9_999))), [9_999]);
    assert_eq!(numbers(keyspace.range(..key(9_999))), []);
    assert_eq!(numbers(removed.range::<&[u8]>(&keyspace, ..)), []);
    keyspace.remove(key(9_999)).unwrap();
    assert_eq!(numbers(keyspace.iter()), []);
    assert_eq!(said(), (groups, groups));
    assert_eq!(numbers(newer.range::<&[u8]>(&keyspace, ..)), [9_999]);
    assert_eq!(numbers(before.range::<&[u8]>(&keyspace, ..)), full);

    // What a transaction wrote itself it sees.
    let mut transaction = store.transaction();
    transaction.insert(&keyspace, key(5), [1]);
    assert_eq!(numbers(transaction.range::<&[u8]>(&keyspace, ..)), [5]);
    drop(transaction);

    // Groups that got empty go, and the one before has their keys.
    drop((before, removed, newer));
    store.checkpoint().unwrap();
    assert_eq!(said(), (0, 1));
    assert_eq!(numbers(keyspace.iter()), []);
    keyspace.insert(key(19_999), [1]).unwrap();
    assert_eq!(numbers(keyspace.iter()), [19_999]);
}

#[test]
fn groups_of_which_a_range_was_removed_are_passed_over_too() {
    let outside = tempfile::tempdir().unwrap();
    let options = options().memory_bytes(64 << 20);
    let store = Store::open(outside.path().join("store"), options).unwrap();
    let keyspace = filled(&store, 20_000);
    let pieces = || store.handle.shared.pieces.load(Ordering::Relaxed);
    keyspace.remove_range(..key(19_000)).unwrap();
    let first = || keyspace.iter().next().unwrap().unwrap().0;
    assert_eq!(first(), key(19_000));
    let looked = pieces();
    assert_eq!(first(), key(19_000));
    let again = pieces() - looked;
    assert!(again <= 2, "{again} pieces");
}

#[test]
fn what_hides_nothing_is_not_kept() {
    let outside = tempfile::tempdir().unwrap();
    let options = options().memory_bytes(64 << 20);
    let store = Store::open(outside.path().join("store"), options).unwrap();
    let keyspace = filled(&store, 20_000);
    let groups = || keyspace.tree.groups.read().unwrap().len();
    assert!(groups() > 50);
    let waiting = || store.counters().waiting_bytes;
    keyspace.remove_range(..key(19_900)).unwrap();
    let once = waiting();
    keyspace.remove_range(..key(19_900)).unwrap();
    keyspace.remove_range(key(100)..key(18_000)).unwrap();
    assert_eq!(waiting(), once, "it was removed before");
    // What came since is hidden.
    keyspace.insert(key(7), "new").unwrap();
    keyspace.remove_range(..key(100)).unwrap();
    assert_eq!(numbers(keyspace.iter())[0], 19_900);
    store.checkpoint().unwrap();
    let left = groups();
    assert!(left < 10, "{left} groups, of which all but one are empty");
    keyspace.remove_range::<&[u8]>(..).unwrap();
    store.checkpoint().unwrap();
    keyspace.remove_range::<&[u8]>(..).unwrap();
    assert_eq!((groups(), waiting()), (1, 0), "nothing was there");
}

#[test]
fn groups_that_got_empty_are_not_kept_for_ever() {
    let outside = tempfile::tempdir().unwrap();
    let place = outside.path().join("store");
    let open = || Store::open(&place, options().memory_bytes(64 << 20)).unwrap();
    let store = open();
    let keyspace = filled(&store, 20_000);
    keyspace.remove_range::<&[u8]>(..).unwrap();
    store.checkpoint().unwrap();
    drop(keyspace);
    store.close().unwrap();
    let groups = || StoreInspection::read(&place).unwrap().keyspaces[0].groups;
    assert!(groups() > 50, "the checkpoint had them: {}", groups());
    let store = open();
    let keyspace = store.keyspace("a", KeyspaceOptions::default()).unwrap();
    keyspace.insert(key(7), "new").unwrap();
    // With the first they go, and the second has no more of them.
    for number in [8, 9] {
        keyspace.insert(key(number), "new").unwrap();
        store.checkpoint().unwrap();
    }
    assert_eq!(numbers(keyspace.iter()), [7, 8, 9]);
    drop(keyspace);
    store.close().unwrap();
    assert_eq!(groups(), 1);
}

#[test]
fn a_range_that_is_only_in_the_log_stays_removed() {
    let outside = tempfile::tempdir().unwrap();
    let place = outside.path().join("store");
    let store = Store::open(&place, options()).unwrap();
    drop(filled(&store, 2_000));
    store.close().unwrap();
    // Twice: the first time there is nothing else to apply again.
    for (front, writes) in [(1_000, false), (1_500, true)] {
        let store = Store::open(&place, options()).unwrap();
        let keyspace = store.keyspace("a", KeyspaceOptions::default()).unwrap();
        keyspace.remove_range(..key(front)).unwrap();
        if writes {
            keyspace.insert(key(1_999), "after").unwrap();
        }
        drop(keyspace);
        store.close().unwrap();
        for _ in 0..2 {
            let store = Store::open(&place, options()).unwrap();
            let keyspace = store.keyspace("a", KeyspaceOptions::default()).unwrap();
            assert_eq!(numbers(keyspace.iter()), (front..2_000).collect::<Vec<_>>());
            // From then on it is in leaves.
            store.checkpoint().unwrap();
            assert_eq!(store.counters().waiting_bytes, 0);
        }
    }
}

#[test]
fn damaged_runs_of_which_all_is_removed_go_unread() {
    let outside = tempfile::tempdir().unwrap();
    let place = outside.path().join("store");
    let store = Store::open(&place, options()).unwrap();
    let most = super::StoreBuffer::Percent(16);
    store.set_buffer(most).unwrap();
    let keyspace = filled(&store, 20_000);
    for number in (0..20_000).step_by(370) {
        keyspace.insert(key(number), [8; 60]).unwrap();
    }
    store.checkpoint().unwrap();
    let file = data_file(&place);
    let mut damaged = 0;
    for place in keyspace.tree.groups.read().unwrap().iter() {
        for run in place.group.read().unwrap().runs.iter() {
            let index = run.entry.index;
            let start = index.offset + index.extent(512) - run.entry.bytes;
            file.write_all_at(&[9; 40], start + 60).unwrap();
            damaged += 1;
        }
    }
    assert!(damaged > 0);
    keyspace.remove_range::<&[u8]>(..).unwrap();
    assert_eq!(numbers(keyspace.iter()), []);
    store.checkpoint().unwrap();
    let counters = store.counters();
    assert_eq!(counters.tree_bytes + counters.buffered_bytes, 0);
}

#[test]
fn a_damaged_block_of_a_run_goes_unread_with_its_keys() {
    let outside = tempfile::tempdir().unwrap();
    let place = outside.path().join("store");
    let store = Store::open(&place, options()).unwrap();
    store.set_buffer(super::StoreBuffer::Percent(200)).unwrap();
    let keyspace = filled(&store, 2_000);
    for number in (0..2_000).step_by(9) {
        keyspace.insert(key(number), [8; 300]).unwrap();
    }
    store.checkpoint().unwrap();
    let offset = keyspace
        .tree
        .groups
        .read()
        .unwrap()
        .iter()
        .find_map(|place| {
            let runs = place.group.read().unwrap().runs.clone();
            let index = runs.first()?.index(&*store.handle.shared).unwrap();
            Some(index.blocks.get(1)?.page.pointer.offset)
        });
    let offset = offset.expect("a run with several blocks");
    data_file(&place)
        .write_all_at(&[9; 40], offset + 60)
        .unwrap();
    let damage = store.verify().damage;
    assert_eq!((damage.len(), damage[0].offset), (1, offset));
    let before = numbers_but(&keyspace, &damage[0].keys);
    assert!(before.len() > 1_900);
    keyspace.remove_range(damage[0].keys.clone()).unwrap();
    store.checkpoint().unwrap();
    assert!(store.verify().damage.is_empty());
    assert_eq!(numbers(keyspace.iter()), before);
}

/// The numbers of all rows but those between these keys, which may not be readable.
fn numbers_but(keyspace: &Keyspace, (from, to): &(Bound<Vec<u8>>, Bound<Vec<u8>>)) -> Vec<u32> {
    let (Bound::Included(from), Bound::Excluded(to)) = (from, to) else {
        panic!("there are keys on both sides");
    };
    let before = numbers(keyspace.range::<&[u8]>(..&**from));
    let behind = numbers(keyspace.range::<&[u8]>(&**to..));
    before.into_iter().chain(behind).collect()
}

#[test]
fn ranges_of_other_keyspaces_do_not_matter() {
    let outside = tempfile::tempdir().unwrap();
    let store = Store::open(outside.path().join("store"), options()).unwrap();
    let keyspaces = ["a", "b", "c"].map(|name| {
        let keyspace = store.keyspace(name, KeyspaceOptions::default()).unwrap();
        keyspace.insert("k", "old").unwrap();
        keyspace
    });
    // Whichever is first: what is before and behind is another's.
    for (own, others) in [(0, [1, 2]), (1, [0, 2]), (2, [0, 1])] {
        let own = &keyspaces[own];
        let mut reader = store.serialisable_transaction();
        assert!(reader.get(own, "k").unwrap().is_some());
        assert_eq!(reader.range(own, "a".."m").count(), 1);
        reader.insert(own, "k", "new");
        let mut remover = store.serialisable_transaction();
        remover.remove_range(own, "j".."l");
        remover.insert(own, "z", "new");
        for other in others {
            keyspaces[other].remove_range("a".."z").unwrap();
            keyspaces[other].insert("k", "again").unwrap();
        }
        reader.commit().unwrap();
        assert!(matches!(remover.commit(), Err(Error::Conflict)));
        own.insert("k", "again").unwrap();
    }
}

#[test]
fn who_read_many_ranges_is_told_of_each() {
    let outside = tempfile::tempdir().unwrap();
    let store = Store::open(outside.path().join("store"), options()).unwrap();
    let keyspace = store.keyspace("a", KeyspaceOptions::default()).unwrap();
    // Ranges in no order, of which some touch: 0..4, 6..8, 8..9, 20.. are read.
    let read = [(6, 8), (0, 3), (20, 300), (1, 4), (8, 9), (30, 40)];
    let is_read = |number: u32| matches!(number, 0..4 | 6..9 | 20..);
    for number in 0..25 {
        for removes in [false, true] {
            let mut reader = store.serialisable_transaction();
            for (low, high) in read {
                assert_eq!(reader.range(&keyspace, key(low)..key(high)).count(), 0);
            }
            reader.insert(&keyspace, "other", "");
            if removes {
                keyspace.remove_range(key(number)..=key(number)).unwrap();
            } else {
                keyspace.insert(key(number), "").unwrap();
                keyspace.remove(key(number)).unwrap();
            }
            let conflicts = matches!(reader.commit(), Err(Error::Conflict));
            assert_eq!(conflicts, is_read(number), "{number} {removes}");
        }
    }
}
