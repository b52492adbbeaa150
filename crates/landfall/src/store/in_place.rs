//! That leaves in place are right on the disk of this machine, whatever protects them, also while others read and write.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fastrand::Rng;

use super::checkpoint::Goal;
use super::{Keyspace, KeyspaceOptions, Protection, Store, StoreInspection, StoreOptions};
use crate::{Error, Options, Policy};

const ROWS: u64 = 400;
/// Those that need nothing of the filesystem.
const ANYWHERE: [Protection; 4] = [
    Protection::Shadow,
    Protection::Doublewrite,
    Protection::Image,
    Protection::None,
];

fn options() -> StoreOptions {
    StoreOptions::default()
        .memory_bytes(64 << 10)
        .policy(Policy::Group)
        .log(Options::default().segment_bytes(64 << 10))
}

fn in_place() -> KeyspaceOptions {
    KeyspaceOptions::default()
        .leaf_bytes(4096)
        .in_place(true)
        .whole_leaves(true)
}

fn value(row: u64, version: u64) -> Vec<u8> {
    let mut value = [row.to_be_bytes(), version.to_be_bytes()].concat();
    value.resize(100, version as u8);
    value
}

fn fill(rows: &Keyspace, version: u64) {
    for row in 0..ROWS {
        rows.insert(row.to_be_bytes(), value(row, version)).unwrap();
    }
}

fn require_all(rows: &Keyspace, version: u64) {
    for row in 0..ROWS {
        let found = rows.get(row.to_be_bytes()).unwrap();
        assert_eq!(found, Some(value(row, version)), "row {row}");
    }
}

#[test]
fn what_is_written_at_home_is_there_again() {
    for protection in ANYWHERE {
        let directory = tempfile::tempdir().unwrap();
        let open = || Store::open(directory.path(), options().protection(protection)).unwrap();
        for version in 0..6 {
            let store = open();
            let rows = store.keyspace("rows", in_place()).unwrap();
            if version > 0 {
                require_all(&rows, version - 1);
            }
            fill(&rows, version);
            if version % 2 == 0 {
                store.checkpoint().unwrap();
            }
            require_all(&rows, version);
            assert_eq!(store.verify().damage.len(), 0, "{protection}");
            let counters = store.counters();
            let is_shadow = protection == Protection::Shadow;
            assert!(!is_shadow || counters.home_bytes == 0);
            if version > 1 && !is_shadow {
                assert!(counters.home_bytes > 0, "{protection}");
                assert!(counters.flushes > 0, "{protection}");
                let copies = protection == Protection::Doublewrite;
                assert_eq!(counters.doublewrite_bytes > 0, copies, "{protection}");
                let images = protection == Protection::Image;
                assert_eq!(counters.image_bytes > 0, images, "{protection}");
            }
            if version % 3 > 0 {
                store.close().unwrap();
            }
        }
        let found = StoreInspection::read(directory.path()).unwrap();
        assert_eq!(found.protection.protection, protection);
        assert_eq!(found.torn_leaves, 0);
    }
}

/// Dropped, it says that readers are to end.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn who_reads_while_leaves_are_written_sees_whole_ones() {
    let directory = tempfile::tempdir().unwrap();
    let options = options().protection(Protection::Doublewrite);
    let store = Store::open(directory.path(), options).unwrap();
    let rows = store.keyspace("rows", in_place()).unwrap();
    fill(&rows, 0);
    let is_over = AtomicBool::new(false);
    // Also if something is wrong.
    let end = Ending(&is_over);
    thread::scope(|scope| {
        let end = end;
        for reader in 0..3_u64 {
            let (rows, store, is_over) = (&rows, &store, &is_over);
            scope.spawn(move || {
                let mut rng = Rng::with_seed(reader);
                while !is_over.load(Ordering::Relaxed) {
                    let row = rng.u64(0..ROWS);
                    let found = rows.get(row.to_be_bytes()).unwrap().unwrap();
                    assert_eq!(found[..8], row.to_be_bytes());
                    if rng.u8(0..50) == 0 {
                        let seen = rows.iter().map(Result::unwrap).count();
                        assert_eq!(seen as u64, ROWS);
                    }
                    if reader == 0 && rng.u8(0..100) == 0 {
                        assert_eq!(store.verify().damage.len(), 0);
                    }
                }
            });
        }
        for version in 1..40 {
            fill(&rows, version);
            // Whatever is asked for, online.
            let protection = ANYWHERE[version as usize % ANYWHERE.len()];
            let set = store.set_protection(protection).unwrap();
            assert_eq!((set.protection, set.measured), (protection, None));
            if version % 5 == 0 {
                store.checkpoint().unwrap();
            }
        }
        drop(end);
    });
    require_all(&rows, 39);
}

fn data_file(directory: &Path) -> PathBuf {
    let names = fs::read_dir(directory).unwrap();
    let mut paths = names.map(|entry| entry.unwrap().path());
    let is_data = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("data-")
    };
    paths.find(is_data).unwrap()
}

/// Where the leaves are.
fn homes(store: &Store) -> Vec<u64> {
    let shared = &store.handle.shared;
    let keyspaces = shared.keyspaces.read().unwrap();
    let groups = keyspaces
        .all
        .values()
        .flat_map(|one| one.groups.read().unwrap().clone());
    let leaves = groups.map(|place| place.group.read().unwrap().leaves.clone());
    let offsets = leaves.flat_map(|leaves| {
        leaves
            .iter()
            .map(|slot| slot.page.pointer.offset)
            .collect::<Vec<_>>()
    });
    offsets.collect()
}

#[test]
fn a_lost_write_of_a_flush_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let options = options().protection(Protection::None);
    let store = Store::open(directory.path(), options.clone()).unwrap();
    let rows = store.keyspace("rows", in_place()).unwrap();
    fill(&rows, 0);
    store.checkpoint().unwrap();
    let home = homes(&store)[1];
    let path = data_file(directory.path());
    let mut old = vec![0; 4096];
    let file = fs::File::open(&path).unwrap();
    file.read_exact_at(&mut old, home).unwrap();
    let flushed = store.counters().flushes;
    while store.counters().flushes == flushed {
        fill(&rows, 1);
        store.handle.shared.checkpoint(Goal::Due).unwrap();
    }
    store.checkpoint().unwrap();
    drop(rows);
    store.close().unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(&old, home).unwrap();
    drop(file);
    let store = Store::open(directory.path(), options).unwrap();
    let found = store.verify().damage;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].offset, home);
}

/// The first keys of its groups.
fn groups_of(rows: &Keyspace) -> Vec<Vec<u8>> {
    let groups = rows.tree.groups.read().unwrap();
    groups.iter().map(|place| place.low.to_vec()).collect()
}

/// A group is cut by the checkpoint before which the one behind it got empty: of its leaves the last one has those keys from then
/// on, and is not to be written at home before a checkpoint says so.
#[test]
fn a_group_that_is_cut_has_the_keys_of_the_one_that_went_behind_it() {
    let directory = tempfile::tempdir().unwrap();
    let options = options()
        .memory_bytes(256 << 10)
        .max_recovery_time(Duration::from_secs(1 << 20))
        .protection(Protection::None);
    let store = Store::open(directory.path(), options.clone()).unwrap();
    let rows = store.keyspace("rows", in_place()).unwrap();
    let filler = store.keyspace("filler", in_place()).unwrap();
    for row in 0..300_u64 {
        rows.insert(row.to_be_bytes(), value(row, 0)).unwrap();
    }
    for row in 0..1000_u64 {
        filler.insert(row.to_be_bytes(), value(row, 0)).unwrap();
    }
    store.checkpoint().unwrap();
    let lows = groups_of(&rows);
    let [.., cut, gone] = lows.as_slice() else {
        panic!("{} groups", lows.len());
    };
    // First, so that it is installed first.
    rows.remove_range(gone.clone()..).unwrap();
    for byte in 0..200_u8 {
        rows.insert([&cut[..], &[byte]].concat(), [7; 100]).unwrap();
    }
    store.checkpoint().unwrap();
    assert!(!groups_of(&rows).contains(gone) && groups_of(&rows).len() >= lows.len());
    let late = [&gone[..], b"late"].concat();
    rows.insert(&late, "late").unwrap();
    let before = store.counters();
    for version in 1.. {
        if store.counters().flushes > before.flushes {
            break;
        }
        for row in (0..1000_u64).step_by(30) {
            let value = value(row, version);
            filler.insert(row.to_be_bytes(), value).unwrap();
        }
        store.handle.shared.checkpoint(Goal::Due).unwrap();
    }
    drop((rows, filler));
    store.close().unwrap();
    let store = Store::open(directory.path(), options).unwrap();
    let rows = store.keyspace("rows", in_place()).unwrap();
    assert_eq!(rows.get(&late).unwrap().as_deref(), Some(&b"late"[..]));
    rows.remove(&late).unwrap();
    store.checkpoint().unwrap();
    assert_eq!(rows.get(&late).unwrap(), None);
    assert!(rows.range(gone.clone()..).next().is_none());
    assert_eq!(store.verify().damage.len(), 0);
}

#[test]
fn what_is_measured_is_remembered() {
    let directory = tempfile::tempdir().unwrap();
    let auto = || Store::open(directory.path(), options().protection(Protection::Auto)).unwrap();
    let chosen = auto().protection();
    assert!(
        chosen.measured.is_some() && chosen.protection != Protection::None,
        "{chosen}"
    );
    assert_eq!(auto().protection(), chosen);
    let store = Store::open(directory.path(), options()).unwrap();
    assert_eq!(store.protection(), chosen);
    // Who measures at the same time does so one after the other.
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| store.set_protection(Protection::Auto).unwrap());
        }
    });
    store.set_protection(Protection::None).unwrap();
    drop(store);
    let again = Store::open(directory.path(), options()).unwrap();
    assert_eq!(again.protection().protection, Protection::None);
}

#[test]
fn atomic_writes_are_used_where_they_are_promised_and_refused_elsewhere() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path(), options()).unwrap();
    let rows = store.keyspace("rows", in_place()).unwrap();
    match store.set_protection(Protection::Atomic) {
        Ok(_) => {
            for version in 0..4 {
                fill(&rows, version);
                store.checkpoint().unwrap();
            }
            assert!(store.counters().home_bytes > 0);
        }
        Err(Error::Options(text)) => {
            assert!(text.contains("atomic"), "{text}");
            assert_eq!(store.protection().protection, Protection::Shadow);
        }
        Err(error) => panic!("{error}"),
    }
}
