//! A store on a full disk: it opens, it is read, and what is removed makes room for others, whatever a power cut leaves.

use std::collections::BTreeMap;
use std::sync::Arc;

use fastrand::Rng;
use shuttle::thread;

use super::super::disk::{Disk, Loss};
use super::super::environment::{Simulated, Way};
use super::super::history::Broken;
use super::super::scenario::{Outcome, simulate};
use super::history::{Keyspace, Store};
use super::{must, unasked, wrong};
use crate::environment::Environment;
use crate::mistakes::Fault;
use crate::store::Handle;
use crate::store::checkpoint::Goal;
use crate::store::iterate::{Bounds, Own, Range};
use crate::store::record::{Write, Writes};
use crate::store::removed::KeyRange;
use crate::store::snapshots::View;
use crate::{Compression, Error, KeyspaceOptions, Protection};

const WAY: Way = Way::ALL[0];
/// Rows of one commit.
const BATCH: usize = 20;
/// A row behind all others.
const MORE: &[u8] = &[255; 10];
/// Keys that can be removed at least.
const FEW: usize = 16;
/// Bytes of memory that a store has.
const LITTLE: usize = 16 << 10;
/// With so many nothing is written unasked before the disk is full.
const MUCH: usize = 1 << 20;
/// Of leaves: in groups that take less than is kept for each, and more.
const LEAF_BYTES: [u32; 2] = [1 << 10, 8 << 10];
/// Bytes that the disk has for all files.
const SPACE: u64 = 512 << 10;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// What a store has, and the mistake that it makes.
#[derive(Clone, Copy)]
struct Scene {
    percent: u8,
    memory: usize,
    leaf_bytes: u32,
    /// Of leaves that are written at home, if they are.
    at_home: Option<Protection>,
    planted: Option<Fault>,
}

/// What is drawn for leaves at home, if they are.
const AT_HOME: [Option<Protection>; 4] = [
    None,
    Some(Protection::Image),
    Some(Protection::Doublewrite),
    Some(Protection::Shadow),
];

impl Scene {
    fn elsewhere(percent: u8, memory: usize, planted: Option<Fault>) -> Scene {
        Scene {
            percent,
            memory,
            leaf_bytes: 1 << 10,
            at_home: None,
            planted,
        }
    }

    fn any(rng: &mut Rng, planted: Option<Fault>) -> Scene {
        Scene {
            at_home: AT_HOME[rng.usize(0..4)],
            ..Scene::elsewhere([0, 11][rng.usize(0..2)], LITTLE, planted)
        }
    }

    fn open_store(self, disk: &Disk, rng: &mut Rng) -> Result<Store, Broken> {
        let environment = Simulated::new(disk, WAY, self.planted, rng.u64(..));
        let mut options = unasked(self.memory, 64 << 10).buffer_percent(self.percent);
        options.protection = self.at_home;
        let store = Handle::open(&environment, options);
        let store = store.map_err(|error| format!("it does not open: {error}"))?;
        Ok(Arc::new(store))
    }

    fn open(self, disk: &Disk, rng: &mut Rng) -> Result<(Store, Keyspace), Broken> {
        let store = self.open_store(disk, rng)?;
        let rows = self.rows_of(&store)?;
        Ok((store, rows))
    }

    /// With rows that have filled a disk, on which nothing is free any more.
    fn on_full_disk(self, rng: &mut Rng) -> Result<(Store, Keyspace, Rows), Broken> {
        let disk = Disk::new(WAY.block(), rng.u64(..));
        disk.set_space(SPACE);
        let (store, keyspace) = self.open(&disk, rng)?;
        let mut rows = Rows::new();
        fill(&store, &keyspace, &mut rows, rng)?;
        disk.set_space(0);
        Ok((store, keyspace, rows))
    }

    fn rows_of(self, store: &Store) -> Result<Keyspace, Broken> {
        let options = KeyspaceOptions::default()
            .leaf_bytes(self.leaf_bytes)
            .compression(Compression::None)
            .in_place(self.at_home.is_some());
        store.shared.open_keyspace("rows", &options).map_err(wrong)
    }
}

fn rows_of(store: &Store) -> Result<Keyspace, Broken> {
    Scene::elsewhere(0, MUCH, None).rows_of(store)
}

/// Inserts rows at random places until the disk is full; returns how many.
fn fill(
    store: &Store,
    keyspace: &Keyspace,
    rows: &mut Rows,
    rng: &mut Rng,
) -> Result<usize, Broken> {
    let before = rows.len();
    loop {
        let pair = |_| {
            let key = rng.u64(..).to_be_bytes().to_vec();
            (key, vec![rng.u8(..); rng.usize(40..160)])
        };
        let new: Rows = (0..BATCH).map(pair).collect();
        let writes = new.iter().map(|(key, value)| Write {
            keyspace: keyspace.id,
            key: key.clone(),
            value: Some(value.clone()),
        });
        match store.shared.commit(writes.collect::<Vec<_>>(), None) {
            Ok(()) => rows.extend(new),
            Err(Error::NoSpace { .. }) => return Ok(rows.len() - before),
            Err(other) => return Err(wrong(other)),
        }
    }
}

/// Fills a store that is empty again, which takes about as many rows as it once did.
fn fills_again(
    store: &Store,
    keyspace: &Keyspace,
    filled: usize,
    rng: &mut Rng,
) -> Result<(), Broken> {
    let mut rows = Rows::new();
    let again = fill(store, keyspace, &mut rows, rng)?;
    must(again > filled / 2, || {
        format!("{filled} rows had space once, and {again} when it was empty again")
    })?;
    has(store, keyspace, &rows)
}

/// Removes all rows before a key.
fn remove_before(
    store: &Store,
    keyspace: &Keyspace,
    rows: &mut Rows,
    key: Vec<u8>,
) -> Result<(), Broken> {
    let range = KeyRange::of(&Bounds::of(&..key.clone())).ok_or("no keys are before it")?;
    let mut writes = Writes::default();
    writes.remove_range(keyspace.id, range);
    let removed = store.shared.commit(writes, None);
    removed.map_err(|error| format!("nothing can be removed: {error}; {:?}", store.counters()))?;
    rows.retain(|one, _| *one >= key);
    Ok(())
}

/// Commits of one row each.
struct Single<'a> {
    store: &'a Store,
    keyspace: &'a Keyspace,
}

impl Single<'_> {
    fn write(&self, key: &[u8], value: Option<Vec<u8>>) -> Result<(), Error> {
        let write = Write {
            keyspace: self.keyspace.id,
            key: key.to_vec(),
            value,
        };
        self.store.shared.commit(vec![write], None)
    }

    fn remove(&self, key: &[u8]) -> Result<(), Error> {
        self.write(key, None)
    }

    /// Gives the same row again, which takes no more memory; whether it had space.
    fn give(&self, rng: &mut Rng) -> Result<bool, Broken> {
        match self.write(MORE, Some(vec![7; rng.usize(0..60)])) {
            Ok(()) => Ok(true),
            Err(Error::NoSpace { .. }) => Ok(false),
            Err(other) => Err(wrong(other)),
        }
    }
}

fn has(store: &Store, keyspace: &Keyspace, rows: &Rows) -> Result<(), Broken> {
    let view = Arc::new(View::new(store));
    let all = Bounds::of::<&[u8]>(&..);
    let mut range = Range::new(view, keyspace.clone(), all, Own::default());
    let found: Result<Rows, Error> = std::iter::from_fn(|| range.next()).collect();
    let found = found.map_err(wrong)?;
    must(found == *rows, || {
        format!("{} rows, and not {}", found.len(), rows.len())
    })
}

fn key(first: u8) -> Vec<u8> {
    vec![first, 0, 0, 0, 0, 0, 0, 0]
}

/// A store on a disk that is not full yet, with so much memory that nothing is written unasked.
fn with_memory(rng: &mut Rng, planted: Option<Fault>) -> Result<(Disk, Store, Keyspace), Broken> {
    let disk = Disk::new(WAY.block(), rng.u64(..));
    let scene = Scene::elsewhere(0, MUCH, planted);
    let (store, keyspace) = scene.open(&disk, rng)?;
    Ok((disk, store, keyspace))
}

/// A row waits in every group, all is removed with a range, and not a byte is free but those that are kept, in the log neither.
pub(crate) fn rows_wait_in_each_group(seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, _| {
        let (disk, store, keyspace) = with_memory(rng, planted)?;
        let given = |key: Vec<u8>, bytes: usize| Write {
            keyspace: keyspace.id,
            key,
            value: Some(vec![7; bytes]),
        };
        for _ in 0..100 {
            // Long ones make a large root.
            let keys = (0..10).map(|_| (0..88).map(|_| rng.u8(..)).collect());
            let writes: Vec<Write> = keys.map(|key| given(key, 200)).collect();
            store.shared.commit(writes, None).map_err(wrong)?;
        }
        for _ in 0..3 {
            store.shared.checkpoint(Goal::Everything).map_err(wrong)?;
        }
        let groups = Simulated::share(&keyspace.groups).clone();
        let lows = groups.iter().map(|place| place.low.to_vec());
        let writes: Vec<Write> = lows.map(|low| given([low, vec![0]].concat(), 20)).collect();
        must(writes.len() > 50, || {
            format!("only {} groups", writes.len())
        })?;
        store.shared.commit(writes, None).map_err(wrong)?;
        disk.set_space(0);
        let free = std::iter::from_fn(|| store.shared.space.take(512));
        let held: Vec<_> = free.collect();
        let one = Single {
            store: &store,
            keyspace: &keyspace,
        };
        while one.give(rng)? {}
        // Of one group the leaves go but for that of which a row waits: that frees more than it takes.
        let leaves = |index: &usize| Simulated::share(&groups[*index].group).leaves.clone();
        let largest = (0..groups.len() - 1).max_by_key(|index| leaves(index).len());
        let (low, high) = {
            let largest = largest.ok_or("there is one group")?;
            let second = leaves(&largest).get(1).map(|leaf| leaf.low.clone());
            let second = second.ok_or("a group has one leaf")?;
            (second, groups[largest + 1].low.clone())
        };
        let free = store.shared.space.free_bytes();
        let range = KeyRange::of(&Bounds::of(&(low..high))).ok_or("no keys are between")?;
        let mut writes = Writes::default();
        writes.remove_range(keyspace.id, range);
        store.shared.commit(writes, None).map_err(wrong)?;
        match store.shared.checkpoint(Goal::Everything) {
            Ok(()) | Err(Error::NoSpace { .. }) => {}
            Err(other) => return Err(wrong(other)),
        }
        must(store.shared.space.free_bytes() > free, || {
            format!("what a range removed is not free: {:?}", store.counters())
        })?;
        remove_before(&store, &keyspace, &mut Rows::new(), vec![255; 99])?;
        let made = store.shared.checkpoint(Goal::Everything);
        made.map_err(|error| format!("all is removed, and no checkpoint can be made: {error}"))?;
        drop(held);
        has(&store, &keyspace, &Rows::new())
    })
}

/// A key of each leaf is written anew, and the log has space for no image of any of them: what is written elsewhere needs none.
pub(crate) fn images_lack_space(seed: u64) -> Outcome {
    simulate(seed, move |rng, _| {
        let disk = Disk::new(WAY.block(), rng.u64(..));
        let scene = Scene {
            at_home: Some(Protection::Image),
            ..Scene::elsewhere(0, MUCH, None)
        };
        let (store, keyspace) = scene.open(&disk, rng)?;
        let mut rows = Rows::new();
        let mut put = |rows: &mut Rows, keys: &mut dyn Iterator<Item = Vec<u8>>| {
            let new: Rows = keys.map(|key| (key, vec![rng.u8(..); 150])).collect();
            let writes = new.iter().map(|(key, value)| Write {
                keyspace: keyspace.id,
                key: key.clone(),
                value: Some(value.clone()),
            });
            let written = store.shared.commit(writes.collect::<Vec<_>>(), None);
            rows.extend(new);
            written.map_err(wrong)
        };
        // The second round is written at home, and leaves space elsewhere.
        for _ in 0..2 {
            for first in 0..100 {
                put(&mut rows, &mut (0..5).map(|one| vec![first, one]))?;
            }
            store.shared.checkpoint(Goal::Everything).map_err(wrong)?;
        }
        disk.set_space(0);
        for first in 0..100 {
            put(&mut rows, &mut std::iter::once(vec![first, 0]))?;
        }
        let one = Single {
            store: &store,
            keyspace: &keyspace,
        };
        // Many times what the log has space for: it asks for checkpoints, each of which makes room.
        for number in 0..1000 {
            must(one.give(rng)?, || {
                format!("row {number} is refused: {:?}", store.counters())
            })?;
        }
        let made = store.shared.checkpoint(Goal::Everything);
        made.map_err(|error| {
            let counters = store.counters();
            format!("no checkpoint can be made: {error}; {counters:?}")
        })?;
        one.remove(MORE).map_err(wrong)?;
        has(&store, &keyspace, &rows)
    })
}

/// Two threads write a key each again and again, until the log would be full of what is needed no more: nobody asks for a checkpoint for
/// want of memory. The disk has space for the first three segments, or for more.
pub(crate) fn log_fills(seed: u64) -> Outcome {
    simulate(seed, move |rng, _| {
        let disk = Disk::new(WAY.block(), rng.u64(..));
        disk.set_space([240 << 10, SPACE][rng.usize(0..2)]);
        let environment = Simulated::new(&disk, WAY, None, rng.u64(..));
        let mut options = unasked(MUCH, 64 << 10);
        options.log.spare_segments = rng.u32(1..4);
        let store = Handle::open(&environment, options);
        let store = Arc::new(store.map_err(wrong)?);
        let keyspace = rows_of(&store)?;
        let write = |store: &Store, keyspace: &Keyspace, first: u8, number: u32| {
            let write = Write {
                keyspace: keyspace.id,
                key: key(first),
                value: Some(number.to_le_bytes().to_vec()),
            };
            let written = store.shared.commit(vec![write], None);
            written.map_err(|error| format!("write {number} of {first} is refused: {error}"))
        };
        for number in 0..4 {
            write(&store, &keyspace, 7, number)?;
            store.shared.checkpoint(Goal::Everything).map_err(wrong)?;
        }
        disk.set_space(0);
        let last = 700_u32;
        let (other, others) = (store.clone(), keyspace.clone());
        let other = thread::spawn(move || {
            (0..=last).try_for_each(|number| write(&other, &others, 9, number))
        });
        (4..=last).try_for_each(|number| write(&store, &keyspace, 7, number))?;
        other.join().map_err(|_| "it panicked".to_owned())??;
        let value = last.to_le_bytes().to_vec();
        let rows = Rows::from([(key(7), value.clone()), (key(9), value)]);
        has(&store, &keyspace, &rows)
    })
}

/// Keyspaces are removed one after the other where the log has no space: of each that goes there is less to write.
pub(crate) fn many_keyspaces_go(seed: u64) -> Outcome {
    simulate(seed, move |rng, _| {
        let (disk, store, keyspace) = with_memory(rng, None)?;
        disk.set_space(330 << 10);
        let mut all = Vec::new();
        for number in 0..60 {
            let options = KeyspaceOptions::default();
            let made = store
                .shared
                .open_keyspace(&format!("other {number}"), &options);
            all.push(made.map_err(wrong)?);
        }
        fill(&store, &keyspace, &mut Rows::new(), rng)?;
        disk.set_space(0);
        let one = Single {
            store: &store,
            keyspace: &keyspace,
        };
        while one.give(rng)? {}
        all.insert(0, keyspace.clone());
        for (number, one) in all.iter().enumerate() {
            let removed = store.shared.remove_keyspace(one);
            removed.map_err(|error| format!("removal {number} is refused: {error}"))?;
        }
        Ok(())
    })
}

/// Fills a disk, and removes every row by a commit of its own, while others would put more; where one is refused, all of them at once.
pub(crate) fn emptied_key_by_key(seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, _| {
        let scene = Scene {
            leaf_bytes: LEAF_BYTES[rng.usize(0..2)],
            ..Scene::any(rng, planted)
        };
        let (store, keyspace, mut rows) = scene.on_full_disk(rng)?;
        let filled = rows.len();
        let one = Single {
            store: &store,
            keyspace: &keyspace,
        };
        let keys: Vec<Vec<u8>> = rows.keys().cloned().chain([MORE.to_vec()]).collect();
        for (removed, key) in keys.iter().enumerate() {
            one.give(rng)?;
            match one.remove(key) {
                Ok(()) => {}
                // Removals and what others put may wait in one group, for which there is no space, and the log for them.
                Err(Error::NoSpace { .. }) => {
                    must(removed >= FEW, || format!("only {removed} can be removed"))?;
                    remove_before(&store, &keyspace, &mut rows, vec![u8::MAX; 99])?;
                    break;
                }
                Err(other) => return Err(wrong(other)),
            }
        }
        rows.clear();
        let made = store.shared.checkpoint(Goal::Everything);
        made.map_err(|error| format!("it cannot be emptied: {error}"))?;
        has(&store, &keyspace, &rows)?;
        fills_again(&store, &keyspace, filled, rng)
    })
}

/// Removes keys of a full disk many at a time, and then all that is left as a range, however much one commit took.
pub(crate) fn emptied_in_batches(seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, _| {
        let scene = Scene {
            leaf_bytes: LEAF_BYTES[rng.usize(0..2)],
            memory: LITTLE << (2 * rng.usize(0..3)),
            ..Scene::any(rng, planted)
        };
        let (store, keyspace, mut rows) = scene.on_full_disk(rng)?;
        let filled = rows.len();
        let batch = [30, 300, usize::MAX][rng.usize(0..3)];
        let keys: Vec<Vec<u8>> = rows.keys().cloned().collect();
        for keys in keys.chunks(batch) {
            let remove = |key: &Vec<u8>| Write {
                keyspace: keyspace.id,
                key: key.clone(),
                value: None,
            };
            let writes: Vec<Write> = keys.iter().map(remove).collect();
            match store.shared.commit(writes, None) {
                Ok(()) => rows.retain(|key, _| !keys.contains(key)),
                Err(Error::NoSpace { .. }) => break,
                Err(other) => return Err(wrong(other)),
            }
        }
        remove_before(&store, &keyspace, &mut rows, vec![u8::MAX; 99])?;
        let made = store.shared.checkpoint(Goal::Everything);
        made.map_err(|error| format!("it cannot be emptied: {error}"))?;
        has(&store, &keyspace, &rows)?;
        fills_again(&store, &keyspace, filled, rng)
    })
}

/// The log fills a disk before any leaf was written. What it has can be removed all the same, with a range or as a keyspace.
pub(crate) fn full_before_the_first_checkpoint(seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, _| {
        let (disk, store, keyspace) = with_memory(rng, planted)?;
        disk.set_space(SPACE);
        let mut rows = Rows::new();
        let filled = fill(&store, &keyspace, &mut rows, rng)?;
        must(store.counters().leaves == 0, || {
            "leaves were written".to_owned()
        })?;
        has(&store, &keyspace, &rows)?;
        disk.set_space(0);
        let keyspace = if rng.bool() {
            remove_before(&store, &keyspace, &mut rows, vec![255; 99])?;
            keyspace
        } else {
            let gone = store.shared.remove_keyspace(&keyspace);
            gone.map_err(|error| format!("a keyspace cannot be removed: {error}"))?;
            rows.clear();
            rows_of(&store)?
        };
        let made = store.shared.checkpoint(Goal::Everything);
        made.map_err(|error| format!("all is removed, and no checkpoint can be made: {error}"))?;
        has(&store, &keyspace, &rows)?;
        fills_again(&store, &keyspace, filled, rng)
    })
}

/// Fills a disk, makes room by removals, opens the store when there is no space at all, and empties it.
pub(crate) fn play(seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, _| {
        let scene = Scene::any(rng, planted);
        let disk = Disk::new(WAY.block(), rng.u64(..));
        disk.set_space(SPACE);
        let (store, keyspace) = scene.open(&disk, rng)?;
        let mut rows = Rows::new();
        let filled = fill(&store, &keyspace, &mut rows, rng)?;
        must(filled > 200, || format!("only {filled} rows had space"))?;
        has(&store, &keyspace, &rows)?;

        // What is removed makes room for about as much, although not a byte more is to be had.
        disk.set_space(0);
        remove_before(&store, &keyspace, &mut rows, key(128))?;
        let removed = filled - rows.len();
        match store.shared.checkpoint(Goal::Everything) {
            Ok(()) | Err(Error::NoSpace { .. }) => {}
            Err(other) => return Err(wrong(other)),
        }
        let again = fill(&store, &keyspace, &mut rows, rng)?;
        must(again > removed / 2, || {
            format!("{removed} rows were removed, and {again} had space then")
        })?;

        // It opens when there is no space at all, and has everything.
        if rng.bool() {
            store.shared.close().map_err(wrong)?;
        }
        drop((store, keyspace));
        let (store, keyspace) = scene.open(&disk, rng)?;
        has(&store, &keyspace, &rows)?;
        drop((store, keyspace));
        // The power goes while it is opened, or after that.
        disk.cut_power_after(rng.u64(0..80));
        drop(scene.open(&disk, rng));
        disk.cut_power_now();
        let loss = [Loss::Everything, Loss::Nothing, Loss::Sectors][rng.usize(0..3)];
        let disk = disk.after_power_cut(loss, rng);
        disk.set_space(0);
        let (store, keyspace) = scene.open(&disk, rng)?;
        has(&store, &keyspace, &rows)?;

        // And it can be emptied.
        let (store, keyspace) = match rng.u8(0..3) {
            0 => {
                remove_before(&store, &keyspace, &mut rows, vec![255; 9])?;
                (store, keyspace)
            }
            way => {
                let gone = store.shared.remove_keyspace(&keyspace);
                gone.map_err(|error| format!("a keyspace cannot be removed: {error}"))?;
                rows.clear();
                if way == 1 {
                    let keyspace = scene.rows_of(&store)?;
                    (store, keyspace)
                } else {
                    drop((store, keyspace));
                    let store = scene.open_store(&disk, rng)?;
                    let written = store.shared.checkpoint(Goal::Everything);
                    written.map_err(|error| format!("what was gone before stays: {error}"))?;
                    let keyspace = scene.rows_of(&store)?;
                    (store, keyspace)
                }
            }
        };
        let written = store.shared.checkpoint(Goal::Everything);
        written.map_err(|error| format!("it cannot be emptied: {error}"))?;
        has(&store, &keyspace, &rows)?;
        fills_again(&store, &keyspace, filled, rng)?;
        store.shared.close().map_err(wrong)?;
        store.shared.require_counted();
        Ok(())
    })
}

/// Removes a keyspace while a checkpoint is made, and cuts the power before that is durable: it is gone, or whole.
pub(crate) fn removed_meanwhile(seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, _| {
        let scene = Scene::elsewhere(0, LITTLE, planted);
        let disk = Disk::new(WAY.block(), rng.u64(..));
        let (store, keyspace) = scene.open(&disk, rng)?;
        let mut rows = Rows::new();
        for number in 0..30_u8 {
            let write = Write {
                keyspace: keyspace.id,
                key: vec![number],
                value: Some(vec![number; 60]),
            };
            store.shared.commit(vec![write], None).map_err(wrong)?;
            rows.insert(vec![number], vec![number; 60]);
        }
        store.shared.checkpoint(Goal::Everything).map_err(wrong)?;
        // Something else is to be written, and nothing of these.
        let other = store
            .shared
            .open_keyspace("other", &KeyspaceOptions::default());
        let write = Write {
            keyspace: other.map_err(wrong)?.id,
            key: vec![1],
            value: Some(vec![1]),
        };
        store.shared.commit(vec![write], None).map_err(wrong)?;
        let shared = store.shared.clone();
        let checkpoint = thread::spawn(move || shared.checkpoint(Goal::Everything));
        // It is in the log, and not durable yet.
        store.shared.forget_keyspace(&keyspace).map_err(wrong)?;
        let made = checkpoint.join().map_err(|_| "it panicked".to_owned())?;
        made.map_err(wrong)?;
        disk.cut_power_now();
        drop((store, keyspace));
        let left = disk.after_power_cut(Loss::Everything, rng);
        let store = scene.open_store(&left, rng)?;
        if !store.keyspaces().contains(&"rows".to_owned()) {
            return Ok(());
        }
        let keyspace = rows_of(&store)?;
        has(&store, &keyspace, &rows)
    })
}
