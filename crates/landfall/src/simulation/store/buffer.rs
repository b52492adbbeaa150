//! The buffer of a store where the disk is full, and where threads turn it at once; and what is set that cannot be made durable.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use shuttle::thread;

use super::super::disk::{Disk, How, Loss};
use super::super::environment::{Simulated, Way};
use super::super::history::Broken;
use super::super::scenario::simulate;
use super::history::{Keyspace, Store};
use super::{existing, must, unasked, wrong};
use crate::environment::Environment;
use crate::store::Handle;
use crate::store::checkpoint::Goal;
use crate::store::record::Write;
use crate::{Compression, Error, KeyspaceOptions, Policy, Protection, StoreOptions};

const WAY: Way = Way::ALL[0];

/// No checkpoint is made unless it is asked for.
fn options() -> StoreOptions {
    unasked(1 << 20, 1 << 20)
}

fn open(disk: &Disk, options: StoreOptions, rng: &mut Rng) -> Result<Store, Error> {
    let environment = Simulated::new(disk, WAY, None, rng.u64(..));
    Handle::open(&environment, options).map(Arc::new)
}

/// Gives numbers a value of 60 bytes, or none.
fn write(
    store: &Store,
    rows: &Keyspace,
    numbers: impl Iterator<Item = u64>,
    value: Option<u8>,
) -> Result<(), Broken> {
    let numbers: Vec<u64> = numbers.collect();
    for some in numbers.chunks(100) {
        let writes = some.iter().map(|number| Write {
            keyspace: rows.id,
            key: number.to_be_bytes().to_vec(),
            value: value.map(|byte| vec![byte; 60]),
        });
        store
            .shared
            .commit(writes.collect::<Vec<_>>(), None)
            .map_err(wrong)?;
    }
    Ok(())
}

fn rows(store: &Store, leaf_bytes: u32) -> Result<Keyspace, Broken> {
    let options = KeyspaceOptions::default()
        .leaf_bytes(leaf_bytes)
        .compression(Compression::None);
    store.shared.open_keyspace("rows", &options).map_err(wrong)
}

/// A store of so many rows, of whose groups the most have so many runs.
fn with_runs(
    disk: &Disk,
    (keys, leaf_bytes): (u64, u32),
    runs: u8,
    rng: &mut Rng,
) -> Result<(Store, Keyspace), Broken> {
    let store = open(disk, options(), rng).map_err(wrong)?;
    store.shared.set_buffer_percent(200).map_err(wrong)?;
    let rows = rows(&store, leaf_bytes)?;
    write(&store, &rows, 0..keys, Some(0))?;
    checkpoint(&store)?;
    for run in 0..runs {
        let numbers = (run.into()..keys).step_by(9);
        write(&store, &rows, numbers, Some(run + 1))?;
        checkpoint(&store)?;
    }
    must(most_runs(&rows) == runs.into(), || {
        "some are merged".to_owned()
    })?;
    // As much as removals need, and what a few runs more need.
    store.shared.space.let_go();
    let checkpoints = Simulated::lock(&store.shared.checkpoints);
    store.shared.keep_spare(&checkpoints);
    drop(checkpoints);
    Ok((store, rows))
}

fn checkpoint(store: &Store) -> Result<(), Broken> {
    store.shared.checkpoint(Goal::Everything).map_err(wrong)
}

/// Takes all that is free of the data file, which can grow by so many bytes.
fn fill_up(store: &Store, disk: &Disk, free: u64) -> Vec<impl Sized> {
    disk.set_space(free);
    let mut taken = Vec::new();
    while let Some(extent) = store.shared.space.take(512) {
        taken.push(extent);
    }
    taken
}

/// How many runs the groups have, the group with the most first.
fn most_runs(rows: &Keyspace) -> usize {
    let groups = rows.groups.read().unwrap();
    let runs = groups
        .iter()
        .map(|place| place.group.read().unwrap().runs.len());
    runs.max().unwrap_or(0)
}

fn value(store: &Store, rows: &Keyspace, number: u64) -> Result<Option<u8>, Broken> {
    let found = store.shared.get(rows, &number.to_be_bytes(), None);
    Ok(found.map_err(wrong)?.map(|value| value[0]))
}

/// Plays this with some seeds.
fn with_seeds(
    seeds: u64,
    scene: impl Fn(&mut Rng) -> Result<(), Broken> + Copy + Send + Sync + 'static,
) {
    for seed in 0..seeds {
        let outcome = simulate(seed, move |rng, _| scene(rng));
        assert_eq!(outcome.broken, None, "seed {seed}");
    }
}

#[test]
fn what_waits_is_written_where_runs_that_are_too_many_cannot_be_merged() {
    with_seeds(4, |rng| {
        let disk = Disk::new(WAY.block(), rng.u64(..));
        // One more run of a group would become one with the others.
        let (store, rows) = with_runs(&disk, (1000, 4096), 2, rng)?;
        let shared = &store.shared;
        let taken = fill_up(&store, &disk, 8 << 10);
        shared.set_buffer_percent(1).map_err(wrong)?;
        for round in 0..2 {
            write(&store, &rows, 500..501, Some(100 + round))?;
            let failed = store.counters().failed_checkpoints;
            checkpoint(&store)?;
            let counters = store.counters();
            let is_written = counters.waiting_bytes == 0;
            must(is_written, || format!("{counters:?}"))?;
            let has_failed = counters.failed_checkpoints > failed;
            must(has_failed, || "it was not told of".to_owned())?;
            must(most_runs(&rows) == 3 + usize::from(round), || {
                format!("{} runs", most_runs(&rows))
            })?;
        }
        must(shared.debt() > 0, || "there was space".to_owned())?;
        // It is merged as soon as there is space.
        disk.set_space(1 << 30);
        drop(taken);
        for round in 0..100 {
            write(&store, &rows, 500..501, Some(round))?;
            checkpoint(&store)?;
        }
        // One run may be too many.
        let buffered = store.counters().buffered_bytes;
        must(buffered <= 1024, || format!("{buffered} bytes of runs"))?;
        for number in 0..1000 {
            let expected = match number {
                500 => 99,
                _ if number % 9 == 1 => 2,
                _ if number % 9 == 0 => 1,
                _ => 0,
            };
            let found = value(&store, &rows, number)?;
            must(found == Some(expected), || format!("{number}: {found:?}"))?;
        }
        shared.close().map_err(wrong)?;
        shared.require_counted();
        Ok(())
    });
}

#[test]
fn runs_that_are_too_many_are_merged_as_far_as_there_is_space() {
    with_seeds(2, |rng| {
        let disk = Disk::new(WAY.block(), rng.u64(..));
        let (store, rows) = with_runs(&disk, (3000, 1024), 1, rng)?;
        // Not for as many groups as would be merged at once.
        let _taken = fill_up(&store, &disk, 32 << 10);
        store.shared.set_buffer_percent(0).map_err(wrong)?;
        for round in 0..10 {
            write(&store, &rows, 500..501, Some(round))?;
            checkpoint(&store)?;
        }
        let counters = store.counters();
        let (failed, merges) = (counters.failed_checkpoints, counters.merges);
        must(failed > 0, || "there was space".to_owned())?;
        must(merges >= 5, || format!("{merges} merges, {failed} failed"))
    });
}

#[test]
fn a_group_is_not_merged_for_its_removals_without_space() {
    with_seeds(4, |rng| {
        let disk = Disk::new(WAY.block(), rng.u64(..));
        let (store, rows) = with_runs(&disk, (1000, 1024), 1, rng)?;
        write(
            &store,
            &rows,
            (0..1000).filter(|number| number % 3 == 1),
            None,
        )?;
        checkpoint(&store)?;
        must(most_runs(&rows) == 2, || "they are gone".to_owned())?;
        let taken = fill_up(&store, &disk, 4 << 10);
        write(&store, &rows, 500..501, Some(7))?;
        checkpoint(&store)?;
        must(most_runs(&rows) == 3, || {
            format!("{} runs", most_runs(&rows))
        })?;
        disk.set_space(1 << 30);
        drop(taken);
        let merges = store.counters().merges;
        write(&store, &rows, 500..501, Some(8))?;
        checkpoint(&store)?;
        must(store.counters().merges == merges + 1, || {
            "it is not merged".to_owned()
        })?;
        must(value(&store, &rows, 499)?.is_none(), || {
            "it is back".to_owned()
        })?;
        must(value(&store, &rows, 500)? == Some(8), || {
            "it is lost".to_owned()
        })
    });
}

#[test]
fn nobody_waits_for_all_of_a_group_that_is_merged() {
    static SEEN: AtomicU64 = AtomicU64::new(0);
    with_seeds(20, |rng| {
        let disk = Disk::new(WAY.block(), rng.u64(..));
        // One group.
        let (store, rows) = with_runs(&disk, (80, 1024), 1, rng)?;
        let shared = store.shared.clone();
        let held = shared.checkpoints.lock().unwrap();
        shared.set_buffer_percent(0).map_err(wrong)?;
        write(&store, &rows, 50..51, Some(7))?;
        let is_made = Arc::new(AtomicBool::new(false));
        let (seen, is_over) = (shared.clone(), is_made.clone());
        let observer = thread::spawn(move || {
            let mut limits = Vec::new();
            while !is_over.load(Ordering::SeqCst) {
                let limit = seen.limit.load(Ordering::Relaxed);
                if limits.last() != Some(&limit) {
                    limits.push(limit);
                }
                thread::yield_now();
            }
            limits
        });
        drop(held);
        checkpoint(&store)?;
        is_made.store(true, Ordering::SeqCst);
        let mut limits = observer.join().map_err(|_| "it panicked".to_owned())?;
        limits.sort_unstable();
        limits.dedup();
        // It may have looked away.
        SEEN.fetch_add(limits.len().saturating_sub(1) as u64, Ordering::SeqCst);
        Ok(())
    });
    let seen = SEEN.load(Ordering::SeqCst);
    assert!(seen >= 10, "{seen} limits between");
}

#[test]
fn choosing_the_buffer_begins_with_what_is_done_then() {
    with_seeds(60, |rng| {
        let disk = Disk::new(WAY.block(), rng.u64(..));
        let options = StoreOptions {
            memory_bytes: 4 << 10,
            // Commits wait for nobody.
            policy: Policy::Interval(Duration::from_secs(1 << 20)),
            ..options()
        };
        let store = open(&disk, options, rng).map_err(wrong)?;
        let rows = rows(&store, 1024)?;
        store.shared.set_buffer_auto(16).map_err(wrong)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let (turned, written, is_turned) = (store.clone(), rows.clone(), is_over.clone());
        let turning = thread::spawn(move || {
            let mut number = 0;
            while !is_turned.load(Ordering::SeqCst) {
                write(&turned, &written, number..number + 1, Some(7))?;
                turned.shared.set_buffer_auto(16).map_err(wrong)?;
                number = (number + 1) % 200;
            }
            Ok::<(), Broken>(())
        });
        let (mut made, mut most) = (Ok(()), 0);
        for _ in 0..60 {
            made = made.and_then(|()| checkpoint(&store));
            let expected = store.shared.buffer().expected;
            most = expected
                .iter()
                .map(|(_, bytes)| *bytes)
                .fold(most, u64::max);
        }
        is_over.store(true, Ordering::SeqCst);
        turning.join().map_err(|_| "it panicked".to_owned())??;
        made?;
        // As if less had been done than before.
        must(most < 1 << 40, || format!("{most} bytes"))
    });
}

/// A setting of a store, how it is set, and whether it is.
type Set = fn(&Store) -> Result<(), Error>;
type IsSet = fn(&Store) -> bool;

const SETTINGS: [(&str, Set, IsSet); 3] = [
    (
        "buffer",
        |store| store.shared.set_buffer_percent(5),
        |store| store.shared.buffer_percent() == 5,
    ),
    (
        "protection",
        |store| store.shared.set_protection(Protection::Image).map(drop),
        |store| store.shared.protection().protection == Protection::Image,
    ),
    (
        "keyspace",
        |store| {
            let made = store
                .shared
                .open_keyspace("made", &KeyspaceOptions::default());
            made.map(drop)
        },
        |store| !existing(store).is_empty(),
    ),
];

#[test]
fn what_is_said_to_be_set_is_so_after_a_power_cut() {
    with_seeds(10, |rng| {
        let disk = Disk::new(WAY.block(), rng.u64(..));
        drop(open(&disk, options(), rng).map_err(wrong)?);
        for (what, set, is_set) in SETTINGS {
            let (mut failed, mut call) = (0, 0);
            loop {
                call += 1;
                let disk = disk.copy();
                let store = open(&disk, options(), rng).map_err(wrong)?;
                let before = disk.calls();
                disk.fail_after(call, false, How::Io);
                let told = [set(&store), set(&store)];
                let is_over = disk.calls() < before + call;
                failed += u32::from(told[0].is_err());
                disk.cut_power_now();
                drop(store);
                let left = disk.after_power_cut(Loss::Everything, rng);
                let store = open(&left, options(), rng).map_err(wrong)?;
                let is_kept = is_set(&store) || told.iter().all(Result::is_err);
                must(is_kept, || format!("{what}: {told:?}, and it is not"))?;
                if is_over {
                    must(failed > 0, || format!("{what}: no call failed"))?;
                    break;
                }
            }
        }
        Ok(())
    });
}
