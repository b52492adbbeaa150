//! That the public methods do what they say: a store in a directory of this machine.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::os::unix::fs::FileExt;

use fastrand::Rng;

use super::checkpoint::Goal;
use super::verify::verify;
use super::{Keyspace, KeyspaceOptions, Store, StoreInspection, StoreOptions};
use crate::{Compression, Error, Options, Policy};

/// Small, so that there are many leaves, groups and checkpoints.
fn options() -> StoreOptions {
    StoreOptions {
        memory_bytes: 16 << 10,
        policy: Policy::Group,
        log: Options::default().segment_bytes(64 << 10),
        ..StoreOptions::default()
    }
}

fn small() -> KeyspaceOptions {
    KeyspaceOptions::default().leaf_bytes(512)
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(rng: &mut Rng, keys: u64) -> Vec<u8> {
    let number = rng.u64(0..keys);
    match number % 16 {
        0 => Vec::new(),
        1 => number.to_be_bytes().repeat(1 + (number % 40) as usize),
        _ => number.to_be_bytes()[6..].to_vec(),
    }
}

fn value(rng: &mut Rng) -> Vec<u8> {
    let most = if rng.u8(0..32) == 0 { 3000 } else { 60 };
    let len = rng.usize(0..most);
    (0..len).map(|_| rng.u8(0..8)).collect()
}

fn compare(keyspace: &Keyspace, model: &Model, rng: &mut Rng) {
    let all: Vec<_> = keyspace.range::<&[u8]>(..).map(Result::unwrap).collect();
    let expected: Vec<_> = model.clone().into_iter().collect();
    assert_eq!(all, expected);
    for _ in 0..20 {
        let (a, b) = (key(rng, 400), key(rng, 400));
        assert_eq!(keyspace.get(&a).unwrap().as_ref(), model.get(&a));
        let bound = |key: Vec<u8>, rng: &mut Rng| match rng.u8(0..3) {
            0 => Bound::Included(key),
            1 => Bound::Excluded(key),
            _ => Bound::Unbounded,
        };
        let (from, to) = (a.clone().min(b.clone()), a.max(b));
        if from == to {
            continue;
        }
        let bounds = (bound(from, rng), bound(to, rng));
        let expected: Vec<_> = model
            .range::<Vec<u8>, _>(bounds.clone())
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let mut pairs = keyspace.range(bounds);
        let (mut front, mut back) = (Vec::new(), Vec::new());
        loop {
            if rng.bool() {
                let Some(pair) = pairs.next() else { break };
                front.push(pair.unwrap());
            } else {
                let Some(pair) = pairs.next_back() else { break };
                back.push(pair.unwrap());
            }
        }
        front.extend(back.into_iter().rev());
        assert_eq!(front, expected);
    }
}

#[test]
fn it_is_a_map_whatever_is_in_leaves_and_what_is_not() {
    for seed in 0..24 {
        let outside = tempfile::tempdir().unwrap();
        let place = outside.path().join("store");
        let mut rng = Rng::with_seed(seed);
        let mut models = [Model::new(), Model::new()];
        let compression = [Compression::None, Compression::Lz4][rng.usize(0..2)];
        for _ in 0..4 {
            let store = Store::open(&place, options()).unwrap();
            let keyspaces = ["a", "b"].map(|name| {
                let options = small().compression(compression);
                store.keyspace(name, options).unwrap()
            });
            for (keyspace, model) in keyspaces.iter().zip(&models) {
                compare(keyspace, model, &mut rng);
            }
            for _ in 0..rng.u32(1..400) {
                let which = rng.usize(0..2);
                let (keyspace, model) = (&keyspaces[which], &mut models[which]);
                match rng.u8(0..16) {
                    0..9 => {
                        let (key, value) = (key(&mut rng, 400), value(&mut rng));
                        keyspace.insert(&key, &value).unwrap();
                        model.insert(key, value);
                    }
                    9..12 => {
                        let key = key(&mut rng, 400);
                        keyspace.remove(&key).unwrap();
                        model.remove(&key);
                    }
                    12 => {
                        let mut batch = store.batch();
                        let first = key(&mut rng, 400);
                        let gone = model.range(first..).take(40);
                        let gone: Vec<_> = gone.map(|(key, _)| key.clone()).collect();
                        for key in gone {
                            batch.insert(keyspace, &key, "not the last");
                            batch.remove(keyspace, &key);
                            model.remove(&key);
                        }
                        batch.commit().unwrap();
                    }
                    13 => store.checkpoint().unwrap(),
                    14 => {
                        let (low, high) = (key(&mut rng, 400), key(&mut rng, 400));
                        let mut batch = store.batch();
                        batch.insert(keyspace, &low, "gone at once");
                        if rng.u8(0..4) == 0 {
                            batch.remove_prefix(keyspace, &low);
                            model.retain(|key, _| !key.starts_with(&low));
                        } else {
                            batch.remove_range(keyspace, low.as_slice()..high.as_slice());
                            model.insert(low.clone(), b"gone at once".to_vec());
                            model.retain(|key, _| *key < low || *key >= high);
                        }
                        batch.insert(keyspace, &low, "put behind");
                        model.insert(low, b"put behind".to_vec());
                        batch.commit().unwrap();
                    }
                    _ => {
                        let key = key(&mut rng, 400);
                        assert_eq!(keyspace.get(&key).unwrap().as_ref(), model.get(&key));
                    }
                }
            }
            for (keyspace, model) in keyspaces.iter().zip(&models) {
                compare(keyspace, model, &mut rng);
            }
            if rng.bool() {
                drop(keyspaces);
                store.close().unwrap();
            }
        }
    }
}

#[test]
fn a_snapshot_stays_as_it_was() {
    let outside = tempfile::tempdir().unwrap();
    let store = Store::open(outside.path().join("store"), options()).unwrap();
    let keyspace = store.keyspace("a", small()).unwrap();
    let mut rng = Rng::with_seed(7);
    let mut model = Model::new();
    let mut kept = Vec::new();
    for round in 0..30 {
        for _ in 0..40 {
            let (key, value) = (key(&mut rng, 200), value(&mut rng));
            if rng.bool() {
                keyspace.insert(&key, &value).unwrap();
                model.insert(key, value);
            } else {
                keyspace.remove(&key).unwrap();
                model.remove(&key);
            }
        }
        kept.push((store.snapshot(), model.clone()));
        if round % 3 == 0 {
            store.checkpoint().unwrap();
        }
        if kept.len() > 6 {
            kept.swap_remove(rng.usize(0..6));
        }
        for (snapshot, model) in &kept {
            let all = snapshot.range::<&[u8]>(&keyspace, ..).map(Result::unwrap);
            assert_eq!(all.collect::<Model>(), *model);
            let back = snapshot.range::<&[u8]>(&keyspace, ..).rev();
            assert_eq!(back.map(Result::unwrap).collect::<Model>(), *model);
            let key = key(&mut rng, 200);
            assert_eq!(
                snapshot.get(&keyspace, &key).unwrap().as_ref(),
                model.get(&key)
            );
        }
    }
    // What only snapshots needed goes when nobody has them.
    kept.clear();
    let all: Vec<_> = model.keys().cloned().collect();
    for key in all {
        keyspace.remove(key).unwrap();
    }
    store.checkpoint().unwrap();
    let counters = store.counters();
    assert_eq!(counters.waiting_bytes, 0);
    assert_eq!(keyspace.range::<&[u8]>(..).count(), 0);
    let used = counters.file_bytes - counters.free_bytes;
    // Leaves in which keys were that were removed before have their older versions until they are written again.
    assert!(used * 5 <= counters.file_bytes, "{counters:?}");
}

#[test]
fn the_first_committer_wins() {
    let outside = tempfile::tempdir().unwrap();
    let store = Store::open(outside.path().join("store"), options()).unwrap();
    let keyspace = store.keyspace("a", small()).unwrap();
    keyspace.insert("x", "0").unwrap();
    let mut first = store.transaction();
    let mut second = store.transaction();
    first.insert(&keyspace, "x", "1");
    second.insert(&keyspace, "x", "2");
    assert_eq!(second.get(&keyspace, "x").unwrap().unwrap(), b"2");
    first.commit().unwrap();
    assert!(matches!(second.commit(), Err(Error::Conflict)));
    assert_eq!(keyspace.get("x").unwrap().unwrap(), b"1");
    // What was read does not matter, unless that is asked for.
    for is_serialisable in [false, true] {
        let begin = || {
            if is_serialisable {
                store.serialisable_transaction()
            } else {
                store.transaction()
            }
        };
        let (mut one, mut other) = (begin(), begin());
        assert!(one.get(&keyspace, "p").unwrap().is_none());
        assert_eq!(other.range(&keyspace, "q".."r").count(), 0);
        one.insert(&keyspace, "q", "");
        other.insert(&keyspace, "p", "");
        one.commit().unwrap();
        let committed = other.commit();
        assert_eq!(committed.is_err(), is_serialisable, "{committed:?}");
        keyspace.remove("p").unwrap();
        keyspace.remove("q").unwrap();
    }
}

#[test]
fn a_transaction_sees_what_it_wrote() {
    let outside = tempfile::tempdir().unwrap();
    let store = Store::open(outside.path().join("store"), options()).unwrap();
    let keyspace = store.keyspace("a", small()).unwrap();
    for key in ["a", "c", "e"] {
        keyspace.insert(key, "old").unwrap();
    }
    let mut transaction = store.transaction();
    keyspace.insert("d", "of another").unwrap();
    transaction.insert(&keyspace, "b", "new");
    transaction.insert(&keyspace, "c", "new");
    transaction.remove(&keyspace, "e");
    let pairs = transaction.range(&keyspace, "a".."z").map(Result::unwrap);
    let keys: Vec<_> = pairs.map(|(key, value)| (key, value.len())).collect();
    let expected = [("a", 3), ("b", 3), ("c", 3)].map(|(key, len)| (key.as_bytes().to_vec(), len));
    assert_eq!(keys, expected);
    assert_eq!(transaction.prefix(&keyspace, "e").count(), 0);
    transaction.commit().unwrap();
    assert_eq!(keyspace.range::<&str>(..).count(), 4);
}

#[test]
fn what_gains_nothing_by_waiting_is_written_early() {
    let outside = tempfile::tempdir().unwrap();
    let options = options().memory_bytes(64 << 20);
    let store = Store::open(outside.path().join("store"), options).unwrap();
    let keyspace = store.keyspace("a", small()).unwrap();
    let shared = &store.handle.shared;
    let quarters = || shared.enough_changes() * 4 / shared.most_changes();
    assert_eq!(quarters(), 3);
    assert_eq!(shared.most_changes(), 32 << 20);
    let give = |keys: &mut dyn Iterator<Item = u32>| {
        for key in keys {
            keyspace.insert(key.to_be_bytes(), [7; 20]).unwrap();
        }
        store.checkpoint().unwrap();
    };
    // Nothing was there before.
    give(&mut (0..2_000));
    assert_eq!(quarters(), 1);
    // A checkpoint without changes says nothing.
    store.checkpoint().unwrap();
    assert_eq!(quarters(), 1);
    give(&mut (2_000..4_000));
    assert_eq!(quarters(), 1);
    // What is written over, in part or whole, gains by waiting.
    give(&mut (0..2_000).step_by(20));
    assert_eq!(quarters(), 3);
    give(&mut (4_000..6_000));
    assert_eq!(quarters(), 1);
    give(&mut (0..6_000));
    assert_eq!(quarters(), 3);
    // And so does what comes between others.
    give(&mut (0..8_000).step_by(4));
    assert_eq!(quarters(), 3);
}

#[test]
fn keyspaces_are_made_found_and_removed() {
    let outside = tempfile::tempdir().unwrap();
    let place = outside.path().join("store");
    let store = Store::open(&place, options()).unwrap();
    let (a, b) = (
        store.keyspace("a", small()).unwrap(),
        store.keyspace("b", KeyspaceOptions::default()).unwrap(),
    );
    a.insert("k", "of a").unwrap();
    b.insert("k", "of b").unwrap();
    store.checkpoint().unwrap();
    a.insert("l", "of a").unwrap();
    let kept = a.clone();
    store.remove_keyspace(a).unwrap();
    assert!(matches!(kept.get("k"), Err(Error::NoKeyspace)));
    assert!(matches!(kept.insert("k", ""), Err(Error::NoKeyspace)));
    assert!(matches!(
        kept.range("a".."z").next(),
        Some(Err(Error::NoKeyspace))
    ));
    let a = store.keyspace("a", KeyspaceOptions::default()).unwrap();
    assert_eq!(a.get("k").unwrap(), None);
    a.insert("m", "new").unwrap();
    drop((a, b, kept));
    store.close().unwrap();
    let store = Store::open(&place, options()).unwrap();
    assert_eq!(store.keyspaces(), ["b", "a"]);
    let a = store.keyspace("a", small()).unwrap();
    assert_eq!(a.options(), &KeyspaceOptions::default());
    let keys = a.range::<&str>(..).map(|pair| pair.unwrap().0);
    assert_eq!(keys.collect::<Vec<_>>(), [b"m"]);
    assert_eq!(
        store
            .keyspace("b", small())
            .unwrap()
            .get("k")
            .unwrap()
            .unwrap(),
        b"of b"
    );
}

#[test]
fn what_is_too_long_is_refused() {
    let outside = tempfile::tempdir().unwrap();
    let store = Store::open(outside.path().join("store"), options()).unwrap();
    let keyspace = store.keyspace("a", small()).unwrap();
    let most = vec![1; 64 << 10];
    keyspace.insert(&most, "").unwrap();
    let more = vec![1; (64 << 10) + 1];
    let refused = keyspace.insert(&more, "").unwrap_err();
    let text = "a key of 65537 bytes is too long: it may have 65536";
    assert_eq!(refused.to_string(), text);
    assert!(store.keyspace(&"x".repeat(65537), small()).is_err());
}

#[test]
fn a_damaged_leaf_is_named_with_its_keys() {
    let outside = tempfile::tempdir().unwrap();
    let place = outside.path().join("store");
    let store = Store::open(&place, options()).unwrap();
    let keyspace = store.keyspace("a", small()).unwrap();
    for number in 0_u32..200 {
        keyspace.insert(number.to_be_bytes(), [7; 40]).unwrap();
    }
    store.checkpoint().unwrap();
    let whole = store.verify();
    assert_eq!((whole.entries, whole.damage.len()), (200, 0));
    assert!(whole.leaves > 10);
    let offset = {
        let groups = keyspace.tree.groups.read().unwrap();
        let group = groups[0].group.read().unwrap();
        group.leaves[1].page.pointer.offset
    };
    drop(keyspace);
    store.close().unwrap();
    let names = std::fs::read_dir(&place).unwrap();
    let mut names = names.map(|entry| entry.unwrap().path());
    let data = names.find(|path| path.to_string_lossy().contains("data-"));
    let file = std::fs::File::options().write(true).open(data.unwrap());
    file.unwrap().write_all_at(&[9; 4], offset + 60).unwrap();
    let store = Store::open(&place, options()).unwrap();
    let found = store.verify();
    assert_eq!((found.leaves, found.damage.len()), (whole.leaves, 1));
    let damage = &found.damage[0];
    assert_eq!((&*damage.keyspace, damage.offset), ("a", offset));
    let (Bound::Included(from), Bound::Excluded(to)) = &damage.keys else {
        panic!("{damage:?}");
    };
    let keyspace = store.keyspace("a", small()).unwrap();
    assert!(matches!(keyspace.get(from), Err(Error::Corrupt { .. })));
    assert!(keyspace.get(to).unwrap().is_some());
    // Whoever goes through all keys is not led past it.
    let all: Vec<_> = keyspace.range::<&[u8]>(..).collect();
    assert!(all.last().unwrap().is_err());
    assert!(all.len() < 200);
}

#[test]
fn a_log_of_what_was_removed_is_cut_too() {
    let outside = tempfile::tempdir().unwrap();
    let store = Store::open(outside.path().join("store"), options()).unwrap();
    for _ in 0..3 {
        let keyspace = store.keyspace("a", small()).unwrap();
        keyspace.insert("k", "v").unwrap();
        store.remove_keyspace(keyspace).unwrap();
    }
    let log = &store.handle.shared.log;
    assert_eq!((log.first_lsn().0, log.next_lsn().0), (1, 10));
    store.checkpoint().unwrap();
    assert_eq!(log.first_lsn(), log.next_lsn());
    // The log may still make segments.
    let made = || {
        let counters = store.counters();
        (
            counters.checkpoints,
            counters.root_bytes,
            counters.control_bytes,
        )
    };
    let before = made();
    store.checkpoint().unwrap();
    assert_eq!(made(), before, "there is nothing to do");
}

#[test]
fn there_is_no_memory_that_is_too_much() {
    let outside = tempfile::tempdir().unwrap();
    let options = options().memory_bytes(usize::MAX);
    let store = Store::open(outside.path().join("store"), options).unwrap();
    let keyspace = store.keyspace("a", small()).unwrap();
    keyspace.insert("k", "v").unwrap();
    keyspace.remove_range::<&str>(..).unwrap();
    assert_eq!(keyspace.get("k").unwrap(), None);
    store.checkpoint().unwrap();
    store.close().unwrap();
}

#[test]
fn who_has_a_closed_store_is_told_so() {
    let outside = tempfile::tempdir().unwrap();
    let store = Store::open(outside.path().join("store"), options()).unwrap();
    let keyspace = store.keyspace("a", small()).unwrap();
    keyspace.insert("k", "v").unwrap();
    let mut pairs = keyspace.range::<&str>(..);
    let nothing = store.batch();
    let reads_alone = store.serialisable_transaction();
    store.close().unwrap();
    assert!(matches!(nothing.commit(), Err(Error::Closed)));
    assert!(matches!(reads_alone.commit(), Err(Error::Closed)));
    assert!(matches!(keyspace.get("k"), Err(Error::Closed)));
    assert!(matches!(keyspace.insert("k", "w"), Err(Error::Closed)));
    assert!(matches!(pairs.next(), Some(Err(Error::Closed))));
    assert!(pairs.next().is_none());
}

#[test]
fn memory_is_given_back() {
    let outside = tempfile::tempdir().unwrap();
    let place = outside.path().join("store");
    let store = Store::open(&place, options()).unwrap();
    let keyspace = store.keyspace("a", small()).unwrap();
    for number in 0_u32..4000 {
        keyspace.insert(number.to_be_bytes(), [7; 40]).unwrap();
        // One commit may come on top, which makes a block of changes longer by a quarter.
        let counters = store.counters();
        assert!(counters.waiting_bytes <= 11 << 10, "{counters:?}");
        keyspace.get((number / 2).to_be_bytes()).unwrap().unwrap();
        let all = counters.waiting_bytes + counters.cached_bytes + counters.filter_bytes;
        assert!(all <= 19 << 10, "{counters:?}");
    }
    // Where leaves are so small, the index alone takes more than there is: they have an eighth.
    store.checkpoint().unwrap();
    let read_all = |keyspace: &Keyspace| {
        for number in 0_u32..4000 {
            keyspace.get(number.to_be_bytes()).unwrap().unwrap();
        }
    };
    read_all(&keyspace);
    let counters = store.counters();
    assert!(
        (1 << 10..=2 << 10).contains(&counters.cached_bytes),
        "{counters:?}"
    );
    let filters = (1 << 10)..=2 << 10;
    assert!(filters.contains(&counters.filter_bytes), "{counters:?}");
    assert!(counters.checkpoints > 10, "{counters:?}");
    assert_eq!(
        (counters.commits, counters.logical_bytes),
        (4000, 4000 * 44)
    );
    store.close().unwrap();
    // Where there is more, what all else leaves them.
    let store = Store::open(&place, options().memory_bytes(256 << 10)).unwrap();
    let keyspace = store.keyspace("a", small()).unwrap();
    read_all(&keyspace);
    let counters = store.counters();
    let all = counters.cached_bytes + counters.filter_bytes + counters.index_bytes;
    assert!((250 << 10..=256 << 10).contains(&all), "{counters:?}");
    assert!(counters.index_bytes > 64 << 10, "{counters:?}");
}

#[test]
fn long_first_keys_of_leaves_count_as_memory() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path().join("store"), options()).unwrap();
    let keyspace = store.keyspace("a", small()).unwrap();
    let long = |number: u32| [&number.to_be_bytes()[..], &[7; 8 << 10]].concat();
    for number in 0..100 {
        keyspace.insert(long(number), b"").unwrap();
    }
    store.checkpoint().unwrap();
    // Each is the first of a leaf.
    let counted = |store: &Store| assert!(store.counters().index_bytes >= 100 * (8 << 10));
    counted(&store);
    store.close().unwrap();
    let store = Store::open(directory.path().join("store"), options()).unwrap();
    counted(&store);
    let keyspace = store.keyspace("a", small()).unwrap();
    keyspace.remove_prefix(b"").unwrap();
    store.checkpoint().unwrap();
    let counters = store.counters();
    assert!(counters.index_bytes < 64 << 10, "{counters:?}");
}

/// A store with two keyspaces, the first leaf of the first of which is damaged; and the name of its data file.
fn with_a_damaged_leaf(
    place: &std::path::Path,
    options: StoreOptions,
) -> (Store, [Keyspace; 2], String) {
    let store = Store::open(place, options).unwrap();
    let [a, b] = ["a", "b"].map(|name| store.keyspace(name, small()).unwrap());
    for number in 0_u32..40 {
        a.insert(number.to_be_bytes(), [7; 40]).unwrap();
    }
    store.checkpoint().unwrap();
    let (offset, name) = {
        let groups = a.tree.groups.read().unwrap();
        let group = groups[0].group.read().unwrap();
        let data = store.handle.shared.data.get().unwrap();
        (group.leaves[0].page.pointer.offset, data.name.clone())
    };
    let file = std::fs::File::options().write(true).open(place.join(&name));
    file.unwrap().write_all_at(&[9; 4], offset + 60).unwrap();
    (store, [a, b], name)
}

#[test]
fn what_waits_for_a_damaged_leaf_can_be_removed_though_it_takes_all_memory() {
    for opens_again in [false, true] {
        let outside = tempfile::tempdir().unwrap();
        let place = outside.path().join("store");
        let (store, [a, b], _) = with_a_damaged_leaf(&place, options());
        let behind = {
            let groups = a.tree.groups.read().unwrap();
            let group = groups[0].group.read().unwrap();
            group.leaves[1].low.clone()
        };
        let refused = (0_u32..1 << 16).find_map(|number| {
            let key = [0_u32.to_be_bytes(), number.to_be_bytes()].concat();
            a.insert(key, [7; 40]).err()
        });
        assert!(
            matches!(refused, Some(Error::Corrupt { .. })),
            "{refused:?}"
        );
        let (store, [a, b]) = if opens_again {
            drop((store, a, b));
            let store = Store::open(&place, options()).unwrap();
            let both = ["a", "b"].map(|name| store.keyspace(name, small()).unwrap());
            (store, both)
        } else {
            (store, [a, b])
        };
        let refused = b.insert("b", "b");
        assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
        a.remove_range(..&*behind).unwrap();
        b.insert("b", "b").unwrap();
        store.checkpoint().unwrap();
        assert_eq!(store.counters().waiting_bytes, 0);
        assert_eq!(a.range(..&*behind).count(), 0);
        assert_eq!(a.get(39_u32.to_be_bytes()).unwrap(), Some(vec![7; 40]));
    }
}

#[test]
fn a_damaged_leaf_stops_writes_to_its_group_alone() {
    let outside = tempfile::tempdir().unwrap();
    let place = outside.path().join("store");
    let (store, [a, b], name) = with_a_damaged_leaf(&place, options());
    let Err(Error::Corrupt { file, .. }) = a.get(0_u32.to_be_bytes()) else {
        panic!("it is damaged");
    };
    assert_eq!(file.to_string_lossy(), name);
    a.insert(0_u32.to_be_bytes(), "again").unwrap();
    for number in 0_u32..4_000 {
        b.insert(number.to_be_bytes(), [7; 40]).unwrap();
    }
    // Though others always have something that can be written.
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                b.insert(0_u32.to_be_bytes(), [7; 40]).unwrap();
            }
        });
        let made = store.checkpoint();
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        let Err(Error::Corrupt { .. }) = made else {
            panic!("changes cannot be written into it");
        };
    });
    assert!(store.counters().checkpoints > 3);
    assert_eq!(a.get(0_u32.to_be_bytes()).unwrap().unwrap(), b"again");
    store.handle.shared.close().unwrap();
    drop((a, b, store));

    let (found, verified) = StoreInspection::verify(&place).unwrap();
    assert_eq!(verified.damage.len(), 1);
    let mut keys = BTreeMap::new();
    let (inspection, damage) = StoreInspection::dump(&place, |keyspace, _, _| {
        *keys.entry(keyspace.to_owned()).or_insert(0) += 1;
    })
    .unwrap();
    assert_eq!(inspection.checkpoint, found.checkpoint);
    assert_eq!(damage.len(), 1);
    assert_eq!(damage[0].offset, verified.damage[0].offset);
    // What is in the leaf is gone but for what was written since.
    assert_eq!(keys["b"], 4_000);
    assert!((20..40).contains(&keys["a"]), "{keys:?}");

    let store = Store::open(&place, options()).unwrap();
    let a = store.keyspace("a", small()).unwrap();
    assert_eq!(a.get(0_u32.to_be_bytes()).unwrap().unwrap(), b"again");
    store.remove_keyspace(a).unwrap();
    store.checkpoint().unwrap();
    assert!(store.verify().damage.is_empty());
}

/// Whoever removes the keys that are named removes no others.
#[test]
fn what_is_dumped_names_the_keys_of_damage_as_verification_does() {
    let outside = tempfile::tempdir().unwrap();
    let place = outside.path().join("store");
    let store = Store::open(&place, options().memory_bytes(1 << 20)).unwrap();
    let rows = store.keyspace("rows", small()).unwrap();
    for number in 0_u32..2_000 {
        rows.insert(number.to_be_bytes(), [7; 40]).unwrap();
    }
    store.checkpoint().unwrap();
    // The last leaf of the first group, one in the middle of the next, and the first one of the third.
    let offsets: Vec<u64> = {
        let groups = rows.tree.groups.read().unwrap();
        assert!(groups.len() > 4);
        let leaf = |group: usize, leaf: fn(usize) -> usize| {
            let leaves = groups[group].group.read().unwrap().leaves.clone();
            leaves[leaf(leaves.len())].page.pointer.offset
        };
        vec![
            leaf(0, |len| len - 1),
            leaf(1, |len| len / 2),
            leaf(2, |_| 0),
        ]
    };
    drop(rows);
    store.close().unwrap();
    let path = std::fs::read_dir(&place).unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        path.to_string_lossy().contains("data-").then_some(path)
    });
    let file = std::fs::File::options().write(true).open(path.unwrap());
    let file = file.unwrap();
    for offset in &offsets {
        file.write_all_at(&[9; 4], offset + 60).unwrap();
    }
    let keys = |damage: &[super::DamagedLeaf]| {
        let named: Vec<_> = damage
            .iter()
            .map(|one| (one.offset, one.keys.clone()))
            .collect();
        named
    };
    let verified = StoreInspection::verify(&place).unwrap().1;
    let (_, damage) = StoreInspection::dump(&place, |_, _, _| {}).unwrap();
    assert_eq!(keys(&damage), keys(&verified.damage));
    assert_eq!(damage.len(), 3);
    assert!(damage.iter().all(|one| one.keys.0 != Bound::Unbounded));
}

#[test]
fn what_is_damaged_and_finds_no_room_in_a_checkpoint_is_not_forgotten() {
    let outside = tempfile::tempdir().unwrap();
    let place = outside.path().join("store");
    let store = Store::open(&place, options().memory_bytes(1 << 20)).unwrap();
    let wide = || {
        let wide = KeyspaceOptions::default().leaf_bytes(4096);
        wide.compression(Compression::None)
    };
    let [a, b] = ["a", "b"].map(|name| store.keyspace(name, wide()).unwrap());
    for number in 0_u32..40 {
        for keyspace in [&a, &b] {
            keyspace.insert(number.to_be_bytes(), [7; 300]).unwrap();
        }
    }
    store.checkpoint().unwrap();
    let (offset, name) = {
        let groups = a.tree.groups.read().unwrap();
        let group = groups[0].group.read().unwrap();
        // As much as a checkpoint of so small a file may write.
        assert!(group.leaves.bytes > 8 << 10);
        let data = store.handle.shared.data.get().unwrap();
        (group.leaves[0].page.pointer.offset, data.name.clone())
    };
    let file = std::fs::File::options().write(true).open(place.join(&name));
    file.unwrap().write_all_at(&[9; 4], offset + 60).unwrap();
    a.insert(0_u32.to_be_bytes(), "again").unwrap();
    let is_told = || matches!(store.checkpoint(), Err(Error::Corrupt { .. }));
    assert!(is_told());
    b.insert(0_u32.to_be_bytes(), "again").unwrap();
    assert!(is_told(), "only the other group was tried");
    assert!(store.counters().waiting_bytes > 0);
    a.remove_range::<&[u8]>(..).unwrap();
    store.checkpoint().unwrap();
}

#[test]
fn a_log_that_is_long_for_a_damaged_leaf_is_no_reason_for_checkpoints() {
    let outside = tempfile::tempdir().unwrap();
    let place = outside.path().join("store");
    let options = options().max_recovery_time(std::time::Duration::from_micros(1));
    let (store, [a, b], _) = with_a_damaged_leaf(&place, options);
    a.insert(0_u32.to_be_bytes(), "again").unwrap();
    let damaged = store.checkpoint();
    assert!(matches!(damaged, Err(Error::Corrupt { .. })));
    let before = store.counters();
    for number in 0_u8..100 {
        for _ in 0..10 {
            b.insert("k", [number]).unwrap();
        }
        // It may have found the damaged leaf alone to be written.
        let _ = store.handle.shared.checkpoint(Goal::Due);
    }
    let after = store.counters();
    let leaves = after.leaves - before.leaves;
    let checkpoints = after.checkpoints - before.checkpoints;
    // Nearly each writes what can be written.
    assert!(leaves > 20, "{leaves}");
    assert!(
        checkpoints <= leaves + leaves / 2,
        "{checkpoints}: {leaves}"
    );
}

#[test]
fn leaves_that_move_while_all_are_verified_are_neither_missed_nor_misplaced() {
    let outside = tempfile::tempdir().unwrap();
    let options = options().buffer_percent(100);
    let store = Store::open(outside.path().join("store"), options).unwrap();
    let rows = store.keyspace("rows", small()).unwrap();
    let put = |number: u32, bytes: usize| rows.insert(number.to_be_bytes(), vec![7; bytes]);
    for number in 0..40 {
        put(number * 100, 40).unwrap();
    }
    store.checkpoint().unwrap();
    put(0, 40).unwrap();
    store.checkpoint().unwrap();
    let whole = store.verify();
    assert!(store.counters().buffered_bytes > 0 && whole.damage.is_empty());
    let shared = &store.handle.shared;
    let mut reads = 0;
    let found = verify(
        std::slice::from_ref(&rows.tree),
        shared.data.get(),
        &**shared,
        &mut |page| {
            reads += 1;
            if reads == 1 {
                // Groups are cut into others.
                for number in 0..4_000 {
                    put(number, 40).unwrap();
                }
                store.checkpoint().unwrap();
            }
            shared.read_leaf(page)
        },
    );
    assert!(found.damage.is_empty(), "{:?}", found.damage);
    assert_eq!((found.leaves, found.entries), (whole.leaves, whole.entries));
}

#[test]
fn what_was_removed_with_a_range_is_not_dumped() {
    let outside = tempfile::tempdir().unwrap();
    let place = outside.path().join("store");
    for buffer_percent in [0, 11] {
        let store = Store::open(&place, options().buffer_percent(buffer_percent)).unwrap();
        let rows = store.keyspace("a", small()).unwrap();
        let key = |number: u32| number.to_be_bytes();
        for number in 0..2_000 {
            rows.insert(key(number), [7; 40]).unwrap();
        }
        store.checkpoint().unwrap();
        // Parts of a leaf, whole leaves, and whole groups; of those some keys again.
        rows.remove_range(key(3)..key(5)).unwrap();
        rows.remove_range(key(300)..key(1_700)).unwrap();
        rows.remove_range(key(1_990)..).unwrap();
        rows.insert(key(1_000), "again").unwrap();
        rows.insert(key(4), "again").unwrap();
        rows.remove_range(key(10)..key(11)).unwrap();
        let found: Result<Vec<_>, Error> = rows.iter().collect();
        let sought = found.unwrap();
        store.close().unwrap();
        drop(rows);
        let mut dumped = Vec::new();
        let (inspection, damage) = StoreInspection::dump(&place, |_, key, value| {
            dumped.push((key.to_vec(), value.to_vec()));
        })
        .unwrap();
        assert!(inspection.commits > 0 && damage.is_empty());
        assert_eq!(dumped.len(), 589);
        assert_eq!(dumped, sought);
    }
}

#[test]
fn a_keyspace_of_another_store_is_refused() {
    let outside = tempfile::tempdir().unwrap();
    let open = |name: &str| Store::open(outside.path().join(name), options()).unwrap();
    let (ours, theirs) = (open("ours"), open("theirs"));
    let [own, foreign] = [&ours, &theirs].map(|store| store.keyspace("a", small()).unwrap());
    own.insert("k", "ours").unwrap();
    let is_refused = |result: Result<(), Error>| assert!(matches!(result, Err(Error::NoKeyspace)));
    let mut batch = ours.batch();
    batch.insert(&foreign, "k", "v");
    batch.insert(&own, "l", "v");
    is_refused(batch.commit());
    let mut batch = ours.batch();
    batch.remove(&foreign, "k");
    is_refused(batch.commit_async().map(drop));
    let mut transaction = ours.transaction();
    is_refused(transaction.get(&foreign, "k").map(drop));
    for mut pairs in [
        transaction.range::<&str>(&foreign, ..),
        transaction.prefix(&foreign, "k"),
        ours.snapshot().range::<&str>(&foreign, ..),
        ours.snapshot().prefix(&foreign, "k"),
    ] {
        is_refused(pairs.next().unwrap().map(drop));
        assert!(pairs.next().is_none() && pairs.next_back().is_none());
    }
    transaction.insert(&foreign, "k", "v");
    is_refused(transaction.commit());
    let mut transaction = ours.transaction();
    transaction.remove(&foreign, "k");
    is_refused(transaction.commit());
    is_refused(ours.snapshot().get(&foreign, "k").map(drop));
    is_refused(ours.remove_keyspace(foreign));
    let all: Vec<_> = own.iter().map(Result::unwrap).collect();
    assert_eq!(all, [(b"k".to_vec(), b"ours".to_vec())]);
}

#[test]
fn a_transaction_that_is_committed_is_not_open_though_somebody_still_reads_as_of_then() {
    let outside = tempfile::tempdir().unwrap();
    let store = Store::open(outside.path().join("store"), options()).unwrap();
    let keyspace = store.keyspace("a", small()).unwrap();
    keyspace.insert("k", "before").unwrap();
    let mut transaction = store.transaction();
    transaction.insert(&keyspace, "l", "of the transaction");
    let mut pairs = transaction.range::<&str>(&keyspace, ..);
    transaction.commit().unwrap();
    for _ in 0..100 {
        keyspace.insert("k", "after").unwrap();
    }
    let remembered = store.handle.shared.committing.lock().unwrap().recent.len();
    assert_eq!(remembered, 0);
    assert_eq!(pairs.next().unwrap().unwrap().1, b"before");
}

#[test]
fn transactions_that_are_repeated_count_right() {
    let outside = tempfile::tempdir().unwrap();
    let store = Store::open(outside.path().join("store"), options()).unwrap();
    let keyspace = store.keyspace("a", small()).unwrap();
    let count = |bytes: Option<Vec<u8>>| bytes.map_or(0, |bytes| u64::from(bytes[0]));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let add = |transaction: &mut super::Transaction| {
                        let before = count(transaction.get(&keyspace, "n")?);
                        transaction.insert(&keyspace, "n", [before as u8 + 1]);
                        Ok(before)
                    };
                    store.transact(add).unwrap();
                }
            });
        }
    });
    assert_eq!(count(keyspace.get("n").unwrap()), 200);
    // What fails is not committed.
    let failed = store.transact(|transaction| {
        transaction.insert(&keyspace, "n", [0]);
        Err::<(), _>(Error::Closed)
    });
    assert!(matches!(failed, Err(Error::Closed)));
    let mut batch = store.batch();
    batch.insert(&keyspace, "m", "v");
    let lsn = batch.commit_async().unwrap().wait().unwrap();
    assert!(store.handle.shared.log.durable_end() > lsn);
    assert_eq!(count(keyspace.get("n").unwrap()), 200);
    // Of nothing the last commit that is durable is ready.
    let nothing = [
        store.batch().commit_async(),
        store.transaction().commit_async(),
    ];
    for commit in nothing {
        assert!(commit.unwrap().wait().unwrap() >= lsn);
    }
    // Who says that others came between is asked again.
    let mut times = 0;
    let asked = store.transact(|_| {
        times += 1;
        (times == 3).then_some(times).ok_or(Error::Conflict)
    });
    assert_eq!(asked.unwrap(), 3);
}

#[cfg(not(feature = "zstd"))]
#[test]
fn what_this_program_cannot_compress_is_refused_at_once() {
    let outside = tempfile::tempdir().unwrap();
    let store = Store::open(outside.path().join("store"), options()).unwrap();
    let zstd = small().compression(Compression::Zstd);
    let refused = store.keyspace("a", zstd);
    assert!(matches!(refused, Err(Error::Options(why)) if why.contains("zstd")));
    assert_eq!(store.keyspaces(), Vec::<String>::new());
}

#[test]
fn large_values_are_written_one_after_the_other() {
    let outside = tempfile::tempdir().unwrap();
    let store = Store::open(outside.path().join("store"), options()).unwrap();
    let keyspace = store.keyspace("a", small()).unwrap();
    for round in 0..2 {
        for number in 0_u32..20 {
            keyspace
                .insert(number.to_be_bytes(), vec![number as u8 + round; 8 << 10])
                .unwrap();
        }
        store.checkpoint().unwrap();
    }
    for number in 0_u32..20 {
        let expected = vec![number as u8 + 1; 8 << 10];
        assert_eq!(keyspace.get(number.to_be_bytes()).unwrap(), Some(expected));
    }
    assert!(store.verify().damage.is_empty());
}

#[test]
fn what_an_older_snapshot_does_not_see_is_there_for_others() {
    let outside = tempfile::tempdir().unwrap();
    for percent in [0, 200] {
        let directory = outside.path().join(percent.to_string());
        let store = Store::open(directory, options().buffer_percent(percent)).unwrap();
        let keyspace = store.keyspace("a", small()).unwrap();
        for key in 0..30_u8 {
            keyspace.insert([key], [key; 40]).unwrap();
        }
        // Removals stay, because it sees what was before.
        let before = store.snapshot();
        for key in 0..28_u8 {
            keyspace.remove([key]).unwrap();
        }
        let empty = store.snapshot();
        keyspace.insert([5], b"new").unwrap();
        store.checkpoint().unwrap();
        let first = |mut pairs: super::Pairs| pairs.next().unwrap().unwrap().0[0];
        for _ in 0..3 {
            assert_eq!(first(empty.range::<&[u8]>(&keyspace, ..)), 28);
            assert_eq!(first(keyspace.iter()), 5);
            assert_eq!(first(before.range::<&[u8]>(&keyspace, ..)), 0);
        }
    }
}
