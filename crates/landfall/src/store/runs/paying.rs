//! What a checkpoint does because runs are too many, while nobody else makes one; and what one does that panics.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use fastrand::Rng;

use super::entry::RunEntry;
use super::public::{fill, fill_leaves_and_runs};
use super::{Index, Run, bytes_of};
use crate::environment::Machine;
use crate::store::checkpoint::Goal;
use crate::store::choose::Effort;
use crate::store::groups::{Order, Scope};
use crate::store::protection::Protection;
use crate::store::tree::{Leaves, Place, Slot};
use crate::store::{Keyspace, KeyspaceOptions, Store, StoreBuffer, StoreOptions};
use crate::{Compression, Error, Options, Policy};

const KEYS: u64 = 1000;
const USUAL: Effort = Effort::Usual {
    most_debt: u64::MAX,
};

/// No checkpoint is made unless it is asked for.
fn open(directory: &Path, percent: u8) -> (Store, Keyspace) {
    let options = StoreOptions::default()
        .memory_bytes(1 << 20)
        .policy(Policy::Group)
        .max_recovery_time(std::time::Duration::MAX)
        .buffer_percent(percent)
        .log(Options::default().segment_bytes(1 << 20));
    let store = Store::open(directory, options).unwrap();
    let small = KeyspaceOptions::default()
        .leaf_bytes(1024)
        .compression(Compression::None);
    let rows = store.keyspace("rows", small).unwrap();
    (store, rows)
}

/// Whose groups have a run each.
fn with_runs(directory: &Path) -> (Store, Keyspace) {
    let (store, rows) = open(directory, 200);
    fill_leaves_and_runs(&store, &rows, KEYS);
    (store, rows)
}

/// Else what waits would wait as long as there is anything to merge, which may be for ever.
#[test]
fn a_checkpoint_that_merges_runs_that_are_too_many_writes_what_waits_as_well() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _rows) = with_runs(directory.path());
    // More than a checkpoint writes again.
    let large = large(&store);
    store.checkpoint().unwrap();
    let shared = &store.handle.shared;
    let mut checkpoints = shared.checkpoints.lock().unwrap();
    store.set_buffer(StoreBuffer::Percent(0)).unwrap();
    fill(&large, 5..6);
    let debt = shared.debt();
    assert!(shared.make(&mut checkpoints, Goal::Everything).is_ok());
    assert!(shared.debt() < debt && shared.debt() > 0);
    assert_eq!(shared.changes.load(Ordering::Relaxed), 0);
}

/// Few bytes of changes may come with much to merge: it is the work that they wait for.
#[test]
fn commits_are_let_on_as_the_work_is_done_and_not_as_changes_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _rows) = with_runs(directory.path());
    let small = store.keyspace("small", KeyspaceOptions::default()).unwrap();
    let shared = &store.handle.shared;
    let checkpoints = shared.checkpoints.lock().unwrap();
    store.set_buffer(StoreBuffer::Percent(0)).unwrap();
    fill(&small, 0..10);
    let visible = shared.committing.lock().unwrap().visible;
    let chosen = shared.choose(
        Goal::Everything,
        Scope::Everything,
        visible,
        Protection::Shadow,
        USUAL,
        usize::MAX,
    );
    let order = Order {
        snapshots: Vec::new(),
        number: checkpoints.number + 1,
        generation: 0,
        protection: Protection::Shadow,
        scope: Scope::Everything,
        effort: USUAL,
        percent: shared.buffer_percent(),
    };
    let begin = shared.changes.load(Ordering::Relaxed);
    let most = shared.most_changes();
    let writing = shared.writing(chosen, order);
    let of_changes = |index: &usize| !writing.chosen[*index].frozen.is_empty();
    let (given, merged): (Vec<_>, Vec<_>) = (0..writing.chosen.len()).partition(of_changes);
    assert!(given.len() == 1 && !merged.is_empty());
    let mut limits = Vec::new();
    for index in given.into_iter().chain(merged) {
        shared.write_one(&writing, index).unwrap();
        limits.push(shared.limit.load(Ordering::Relaxed));
    }
    assert!(limits[0] < begin + (most - begin) / 3, "{limits:?}");
    assert!(
        limits.is_sorted() && limits.last() == Some(&most),
        "{limits:?}"
    );
    writing.chosen.iter().for_each(|one| shared.thaw(one));
}

/// Few groups, of rows that are large.
fn large(store: &Store) -> Keyspace {
    let large = KeyspaceOptions::default().leaf_bytes(64 << 10);
    let large = store.keyspace("large", large).unwrap();
    fill_large(&large, (0..300).collect());
    large
}

fn fill_large(large: &Keyspace, numbers: Vec<u64>) {
    let mut rng = Rng::with_seed(1);
    for number in numbers {
        let value: Vec<u8> = (0..1000).map(|_| rng.u8(..)).collect();
        large.insert(number.to_be_bytes(), value).unwrap();
    }
}

#[test]
fn runs_that_cannot_be_merged_are_not_merged_again_and_again_nor_are_others_for_them() {
    use std::os::unix::fs::FileExt;

    let directory = tempfile::tempdir().unwrap();
    let (store, rows) = open(directory.path(), 200);
    fill(&rows, 0..2 * KEYS);
    let damaged = large(&store);
    store.checkpoint().unwrap();
    fill_large(&damaged, (0..300).step_by(9).collect());
    store.checkpoint().unwrap();
    let name = store.handle.shared.data.get().unwrap().name.clone();
    let mut runs = 0;
    let mut leaves = Vec::new();
    for place in damaged.tree.groups.read().unwrap().iter() {
        let group = place.group.read().unwrap();
        runs += bytes_of(&group.runs);
        leaves.push(group.leaves.last().unwrap().page.pointer.offset);
    }
    // More than all may have together.
    let all = store.counters().tree_bytes;
    assert!(
        runs * 100 > all * 5,
        "{runs} bytes of runs, {all} of leaves"
    );
    drop((rows, damaged));
    store.close().unwrap();
    let mut writable = std::fs::OpenOptions::new();
    let file = writable.write(true).open(directory.path().join(name));
    let file = file.unwrap();
    for leaf in leaves {
        file.write_all_at(&[9; 4], leaf + 60).unwrap();
    }
    let (store, rows) = open(directory.path(), 0);
    // Each is tried once.
    (0..5).for_each(|_| store.checkpoint().unwrap());
    store.set_buffer(StoreBuffer::Percent(5)).unwrap();
    let before = store.counters();
    for round in 0..5 {
        // Of a group each, that is fuller by that than those that are damaged.
        fill(&rows, 200 * round..200 * round + 1);
        store.checkpoint().unwrap();
    }
    let counters = store.counters();
    assert_eq!(counters.runs - before.runs, 5);
    assert_eq!(counters.leaf_bytes, before.leaf_bytes);
}

#[test]
fn after_a_checkpoint_that_panicked_none_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let (store, rows) = with_runs(directory.path());
    let places = rows.tree.groups.read().unwrap().clone();
    let first_of = |place: &Place<Machine>| {
        let run = place.group.read().unwrap().runs[0].clone();
        let index = run.index(&*store.handle.shared).unwrap();
        index.blocks[0].clone()
    };
    let by_offset = |place: &&Place<Machine>| first_of(place).page.pointer.offset;
    let before = first_of(places.iter().min_by_key(by_offset).unwrap());
    let place = places.iter().max_by_key(by_offset).unwrap();
    let (key, group) = (place.low.clone(), place.group.clone());
    let run = group.read().unwrap().runs[0].clone();
    // As if memory had a block of it before its first one, and so many removals that it is to be merged.
    let index = run.index(&*store.handle.shared).unwrap();
    let first = index.blocks[0].clone();
    assert!(before.page.pointer.offset < first.page.pointer.offset);
    let before = Slot {
        low: Arc::from([u8::MAX; 9]),
        ..before
    };
    let wrong = Run {
        entry: RunEntry {
            removals: KEYS,
            ..run.entry
        },
        extent: run.extent.clone(),
        index: OnceLock::from(Arc::new(Index {
            blocks: Leaves::new(vec![first.clone(), before, first]),
            fingerprints: vec![Box::default(); 3],
            extent: run.extent.clone(),
            memory: 0,
        })),
    };
    let runs = std::mem::replace(
        &mut group.write().unwrap().runs,
        Arc::new(vec![Arc::new(wrong)]),
    );
    rows.insert(&key, "new").unwrap();
    let made = catch_unwind(AssertUnwindSafe(|| store.checkpoint()));
    assert!(made.is_err());
    group.write().unwrap().runs = runs;
    let is_refused = matches!(
        store.checkpoint(),
        Err(Error::Io { source, .. }) if source.to_string().contains("panicked")
    );
    assert!(is_refused);
    // The log has all of it.
    drop((group, run, rows));
    drop(store);
    let (store, rows) = open(directory.path(), 0);
    store.checkpoint().unwrap();
    assert_eq!(rows.get(&key).unwrap().unwrap(), b"new");
    assert_eq!(rows.iter().map(Result::unwrap).count() as u64, KEYS);
}

#[test]
fn removals_that_somebody_passed_over_are_gone_when_their_group_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let (store, rows) = open(directory.path(), 200);
    fill(&rows, 0..KEYS);
    store.checkpoint().unwrap();
    let removals = || {
        let groups = rows.tree.groups.read().unwrap();
        let group = groups[0].group.read().unwrap();
        let runs = group.runs.iter();
        runs.map(|run| run.entry.removals).sum::<u64>()
    };
    let write = || {
        fill(&rows, 20..21);
        store.checkpoint().unwrap();
    };
    // Fewer than those for which it is merged whether somebody passes over them or not.
    (0..10).for_each(|number: u64| rows.remove(number.to_be_bytes()).unwrap());
    write();
    write();
    assert_eq!(removals(), 10);
    let first = rows.iter().next().unwrap().unwrap().0;
    assert_eq!(first, 10_u64.to_be_bytes());
    assert_eq!(removals(), 10);
    write();
    assert_eq!(removals(), 0);
    // That is over then.
    (10..12).for_each(|number: u64| rows.remove(number.to_be_bytes()).unwrap());
    write();
    assert_eq!(rows.iter().count() as u64, KEYS - 12);
    write();
    assert_eq!(removals(), 2);
}
