//! A store on a disk that cannot read some of its bytes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use super::checkpoint::Goal;
use super::control::{CONTROL_NAME, COPY};
use super::data_file::data_name;
use super::handle::Handle;
use super::inspect::Opened;
use super::iterate::{Bounds, Own, Range};
use super::page::home_of;
use super::record::Write;
use super::snapshots::View;
use super::verify::DamagedLeaf;
use super::{KeyspaceOptions, Protection, StoreOptions, tree};
use crate::environment::{Environment, System};
use crate::fuzzing::memory::Memory;
use crate::{Error, Options, Policy};

type World = System<Memory>;
type Keyspace = Arc<tree::Keyspace<World>>;
type Files = BTreeMap<String, Vec<u8>>;

fn options() -> StoreOptions {
    let log = Options::default()
        .segment_bytes(64 << 10)
        .buffer_bytes(4096)
        .max_unwritten_bytes(1024)
        .max_unsynced_bytes(1024);
    StoreOptions {
        memory_bytes: 16 << 10,
        policy: Policy::Group,
        log,
        ..StoreOptions::default()
    }
}

fn open(world: &World, buffer_percent: u8) -> Result<Handle<World>, Error> {
    Handle::open(world, options().buffer_percent(buffer_percent))
}

fn with(files: Files) -> World {
    System::new(Memory::new(files))
}

fn keyspace(store: &Handle<World>, name: &str) -> Keyspace {
    let small = KeyspaceOptions::default().leaf_bytes(512);
    store.shared.open_keyspace(name, &small).unwrap()
}

fn put(store: &Handle<World>, keyspace: &Keyspace, number: u32, value: u8) -> Result<(), Error> {
    let write = Write {
        keyspace: keyspace.id,
        key: number.to_be_bytes().to_vec(),
        value: Some(vec![value; 40]),
    };
    store.shared.commit(vec![write], None)
}

fn get(store: &Handle<World>, keyspace: &Keyspace, number: u32) -> Result<Option<u8>, Error> {
    let found = store.shared.get(keyspace, &number.to_be_bytes(), None)?;
    Ok(found.map(|value| value[0]))
}

fn checkpoint(store: &Handle<World>) -> Result<(), Error> {
    store.shared.checkpoint(Goal::Everything)
}

/// The leaf or the run of a keyspace's first group that comes so far from its beginning, or its newest run: where it is.
fn place_of(keyspace: &Keyspace, leaf: Option<usize>) -> u64 {
    let groups = World::share(&keyspace.groups);
    let group = World::share(&groups[0].group);
    match leaf {
        Some(leaf) => group.leaves[leaf].page.pointer.offset,
        None => group.runs[0].entry.start(512),
    }
}

/// From now on this byte of files whose names begin so cannot be read.
fn fail(world: &World, files: &str, byte: u64) {
    let device = world.storage().device();
    *device.bad_files.lock().unwrap() = Some(files.to_owned());
    device.bad_byte.store(byte, Relaxed);
}

/// Every row of a keyspace, as somebody sees it from outside, and what of it is damaged.
fn dumped(world: &World, name: &str) -> (BTreeMap<u32, u8>, Vec<DamagedLeaf>) {
    let opened = Opened::new(world).unwrap();
    let mut rows = BTreeMap::new();
    let mut damage = Vec::new();
    let all = opened.keyspaces();
    let keyspace = all.iter().find(|one| one.name == name).unwrap();
    opened.pairs(keyspace, &mut damage, &mut |key, value| {
        rows.insert(u32::from_be_bytes(key.try_into().unwrap()), value[0]);
    });
    (rows, damage)
}

#[test]
fn what_cannot_be_read_stops_writes_to_its_group_alone() {
    // A leaf that is asked for, one that is read ahead, and a run.
    for (bad, percent) in [(Some(0), 0), (Some(2), 0), (None, 100)] {
        let world = with(Files::new());
        let store = open(&world, percent).unwrap();
        let [a, b] = ["a", "b"].map(|name| keyspace(&store, name));
        for number in 0..40 {
            put(&store, &a, number, 1).unwrap();
        }
        checkpoint(&store).unwrap();
        if bad.is_none() {
            put(&store, &a, 7, 2).unwrap();
            checkpoint(&store).unwrap();
        }
        let offset = place_of(&a, bad);
        fail(&world, "data-", offset + 10);
        // Until it is needed.
        let failed = (0..10).find_map(|value| {
            (0..40).for_each(|number| put(&store, &a, number, value).unwrap());
            checkpoint(&store).err()
        });
        assert!(
            matches!(failed, Some(Error::Io { .. })),
            "{bad:?}: {failed:?}"
        );
        let before = store.counters();
        for number in 0..2_000 {
            put(&store, &b, number, 3).unwrap();
        }
        let after = store.counters();
        // Memory has no room for all of them; how many checkpoints made it depends on who was faster.
        assert!(
            after.checkpoints > before.checkpoints,
            "{bad:?}: {before:?}, {after:?}"
        );
        // What waits for a run that cannot be read may have become another run.
        let written = checkpoint(&store);
        assert!(bad.is_none() || written.is_err(), "{bad:?}");
        // Once it can be read again, it is written.
        fail(&world, "data-", u64::MAX);
        checkpoint(&store).unwrap();
        assert_eq!(store.counters().waiting_bytes, 0);
        store.shared.close().unwrap();
        drop(store);
        let store = open(&world, percent).unwrap();
        let [a, b] = ["a", "b"].map(|name| keyspace(&store, name));
        assert!(get(&store, &a, 7).unwrap().is_some());
        assert_eq!(get(&store, &b, 1_999).unwrap(), Some(3));
        assert!(store.verify().damage.is_empty());
    }
}

#[test]
fn all_is_dumped_that_can_be_read() {
    let world = with(Files::new());
    let store = open(&world, 100).unwrap();
    let rows = keyspace(&store, "rows");
    for number in 0..80 {
        put(&store, &rows, number, 1).unwrap();
    }
    checkpoint(&store).unwrap();
    let leaf = place_of(&rows, Some(1));
    for number in (0..80).step_by(2) {
        put(&store, &rows, number, 2).unwrap();
    }
    checkpoint(&store).unwrap();
    // A block between others, and its keys.
    let (run, keys) = {
        let groups = World::share(&rows.groups);
        let group = World::share(&groups[0].group);
        let blocks = group.runs[0].index(&*store.shared).unwrap().blocks.clone();
        let low = |block: usize| u32::from_be_bytes((*blocks[block].low).try_into().unwrap());
        (blocks[1].page.pointer.offset, low(1)..low(2))
    };
    put(&store, &rows, keys.start, 3).unwrap();
    store.shared.close().unwrap();
    drop((rows, store));

    let (whole, damage) = dumped(&world, "rows");
    assert_eq!((whole.len(), damage.len()), (80, 0));
    let of_run = [keys.start - 2, keys.start - 1, keys.start].map(|key| whole[&key]);
    assert_eq!(of_run, [2, 1, 3]);

    fail(&world, "data-", leaf + 10);
    let (found, damage) = dumped(&world, "rows");
    assert_eq!(damage.len(), 1);
    assert_eq!(damage[0].offset, leaf);
    assert!((70..80).contains(&found.len()), "{found:?}");
    assert!(found.iter().all(|(key, value)| whole[key] == *value));

    fail(&world, "data-", run + 10);
    let (found, damage) = dumped(&world, "rows");
    assert!(!damage.is_empty());
    assert!(damage.iter().all(|one| one.offset == run), "{damage:?}");
    // What was before does not count any more.
    let of_run = found.range(keys.clone()).map(|(key, _)| *key);
    assert_eq!(of_run.collect::<Vec<_>>(), [keys.start]);
    assert!(found.iter().all(|(key, value)| whole[key] == *value));
    assert!(found.len() >= 40, "{found:?}");
}

#[test]
fn one_copy_of_the_control_record_is_enough() {
    let world = with(Files::new());
    let store = open(&world, 0).unwrap();
    let rows = keyspace(&store, "rows");
    put(&store, &rows, 1, 1).unwrap();
    checkpoint(&store).unwrap();
    put(&store, &rows, 2, 2).unwrap();
    store.shared.close().unwrap();
    drop((rows, store));
    let files = world.storage().files();
    for copy in [0, COPY] {
        for byte in [copy, copy + COPY - 1] {
            let world = with(files.clone());
            fail(&world, CONTROL_NAME, byte as u64);
            let store = open(&world, 0).unwrap();
            let rows = keyspace(&store, "rows");
            let found = [1, 2, 3].map(|number| get(&store, &rows, number).unwrap());
            assert_eq!(found, [Some(1), Some(2), None]);
        }
        // Of the other one nothing is right.
        let mut files = files.clone();
        files.get_mut(CONTROL_NAME).unwrap()[COPY - copy..][..COPY].fill(0);
        let world = with(files.clone());
        fail(&world, CONTROL_NAME, copy as u64);
        assert!(matches!(open(&world, 0), Err(Error::Io { .. })));
        assert!(world.storage().files() == files);
    }
}

#[test]
fn a_number_that_leaves_none_for_the_next_data_file_is_refused() {
    for has_checkpoint in [false, true] {
        let world = with(Files::new());
        let store = open(&world, 0).unwrap();
        if has_checkpoint {
            let rows = keyspace(&store, "rows");
            put(&store, &rows, 1, 1).unwrap();
            checkpoint(&store).unwrap();
        }
        store.shared.close().unwrap();
        drop(store);
        for number in [(1 << 62) - 1, 1 << 32, (1 << 31) + 9] {
            let mut files = world.storage().files();
            let data = files.remove(&data_name(1)).unwrap();
            files.insert(data_name(number), data);
            let world = with(files.clone());
            let opened = open(&world, 0).map(drop);
            assert!(matches!(opened, Err(Error::Corrupt { .. })), "{number}");
            assert!(world.storage().files() == files);
        }
    }
}

#[test]
fn whatever_number_of_a_data_file_is_taken_leaves_one_for_the_next() {
    let world = with(Files::new());
    let store = open(&world, 0).unwrap();
    let rows = keyspace(&store, "rows");
    put(&store, &rows, 1, 1).unwrap();
    checkpoint(&store).unwrap();
    store.shared.close().unwrap();
    drop((rows, store));
    let mut files = world.storage().files();
    let data = files.remove(&data_name(1)).unwrap();
    files.insert(data_name(1 << 31), data);
    let world = with(files);
    for _ in 0..2 {
        let store = open(&world, 0).unwrap();
        assert_eq!(get(&store, &keyspace(&store, "rows"), 1).unwrap(), Some(1));
    }
}

fn rows(store: &Handle<World>) -> Keyspace {
    let home = KeyspaceOptions::default().leaf_bytes(512).in_place(true);
    store.shared.open_keyspace("rows", &home).unwrap()
}

/// A store whose leaves were written at home several times: 40 rows that have 3.
fn with_homes(options: &StoreOptions) -> (World, Handle<World>) {
    let world = with(Files::new());
    let store = Handle::open(&world, options.clone()).unwrap();
    for value in 0..4 {
        (0..40).for_each(|number| put(&store, &rows(&store), number, value).unwrap());
        checkpoint(&store).unwrap();
    }
    (world, store)
}

#[test]
fn a_home_that_cannot_be_read_is_restored_from_its_copy() {
    for protection in [Protection::Doublewrite, Protection::Image] {
        let options = options().protection(protection);
        let (world, store) = with_homes(&options);
        assert!(store.counters().home_bytes > 0);
        let bad = place_of(&rows(&store), Some(1)) + 10;
        // As the power leaves it.
        let files = world.storage().files();
        drop(store);
        let world = with(files.clone());
        fail(&world, "data-", bad);
        let (seen, damage) = dumped(&world, "rows");
        assert!(damage.is_empty() && seen.len() == 40 && seen.values().all(|&value| value == 3));
        assert_eq!(world.storage().files(), files);
        let store = Handle::open(&world, options.clone()).unwrap();
        assert_eq!(store.restart.restored, 1, "{protection}");
        // A drive puts elsewhere what is written anew.
        fail(&world, "data-", u64::MAX);
        let found = (0..40).map(|number| get(&store, &rows(&store), number).unwrap());
        assert!(found.into_iter().all(|value| value == Some(3)));
        assert!(store.verify().damage.is_empty(), "{protection}");
    }
}

/// Or the second reading might fall into the next write, and a whole leaf be called damaged.
#[test]
fn nobody_writes_a_home_while_it_is_read_again() {
    let options = options().protection(Protection::Doublewrite);
    let (world, store) = with_homes(&options);
    store.shared.close().unwrap();
    let world = with(world.storage().files());
    drop(store);
    let store = Handle::open(&world, options).unwrap();
    let rows = rows(&store);
    let (shared, is_kept_out) = (store.shared.clone(), Arc::new(AtomicBool::new(false)));
    let seen = is_kept_out.clone();
    let look = move || seen.store(shared.unsettled.try_write().is_err(), Relaxed);
    let device = world.storage().device();
    let before = device.reads.load(Relaxed);
    // As if it had been written meanwhile.
    device.wrong_read.store(before + 1, Relaxed);
    *device.during_read.lock().unwrap() = Some((before + 2, Box::new(look)));
    assert_eq!(get(&store, &rows, 7).unwrap(), Some(3));
    assert_eq!(device.reads.load(Relaxed), before + 2);
    assert!(is_kept_out.load(Relaxed));
}

#[test]
fn copies_that_cannot_be_read_are_done_without_unless_a_home_needs_them() {
    let options = options().protection(Protection::Doublewrite);
    let (world, store) = with_homes(&options);
    let log = store.shared.log.shared.log;
    let copies = World::lock(&store.shared.homes).copies.clone().unwrap();
    let spans = copies.spans();
    store.shared.close().unwrap();
    let files = world.storage().files();
    drop(store);
    for span in spans {
        let world = with(files.clone());
        fail(&world, "data-", span.offset + 10);
        let (seen, damage) = dumped(&world, "rows");
        assert!(damage.is_empty() && seen.len() == 40);
        assert_eq!(world.storage().files(), files);
        let store = Handle::open(&world, options.clone()).unwrap();
        fail(&world, "data-", u64::MAX);
        let found = (0..40).map(|number| get(&store, &rows(&store), number).unwrap());
        assert!(found.into_iter().all(|value| value == Some(3)));
        assert!(store.verify().damage.is_empty());
    }
    // Whoever wrote them over would take what a torn home needs.
    for span in spans {
        let mut files = files.clone();
        let mut data = files
            .iter_mut()
            .filter(|(name, _)| name.starts_with("data-"));
        let (_, bytes) = data.next().unwrap();
        let (torn, _) = home_of(&bytes[span.offset as usize..], log).unwrap();
        bytes[torn as usize + 100..torn as usize + 512].fill(0);
        let world = with(files.clone());
        fail(&world, "data-", span.offset + 10);
        let opened = Handle::open(&world, options.clone());
        assert!(matches!(opened, Err(Error::Io { .. })));
        assert_eq!(world.storage().files(), files);
        // It can be read after all.
        fail(&world, "data-", u64::MAX);
        let store = Handle::open(&world, options.clone()).unwrap();
        assert_eq!(store.restart.restored, 1);
        assert!(store.verify().damage.is_empty());
    }
}

#[test]
fn what_cannot_be_read_of_a_range_is_said_by_who_needs_it() {
    // The first leaf, or the newest run.
    for bad in [Some(0), None] {
        let world = with(Files::new());
        let store = open(&world, 100).unwrap();
        let rows = keyspace(&store, "rows");
        (0..40).for_each(|number| put(&store, &rows, number, 1).unwrap());
        checkpoint(&store).unwrap();
        put(&store, &rows, 7, 1).unwrap();
        checkpoint(&store).unwrap();
        store.shared.close().unwrap();
        drop((store, rows));
        // Nothing of it is in memory.
        let store = Arc::new(open(&world, 100).unwrap());
        let rows = keyspace(&store, "rows");
        fail(&world, "data-", place_of(&rows, bad) + 10);
        let scan = || {
            let (view, all) = (Arc::new(View::new(&store)), Bounds::of::<&[u8]>(&..));
            let mut range = Range::new(view, rows.clone(), all, Own::default());
            std::iter::from_fn(|| range.next()).collect::<Result<Vec<_>, Error>>()
        };
        assert!(matches!(scan(), Err(Error::Io { .. })), "{bad:?}");
        fail(&world, "data-", u64::MAX);
        let found = scan().unwrap();
        assert!(found.len() == 40 && found.iter().all(|(_, value)| value[0] == 1));
    }
}
