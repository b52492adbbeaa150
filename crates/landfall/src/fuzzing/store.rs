//! What the target `store` does: a directory that may hold anything is taken for a store.
//!
//! What was read of a keyspace stays as it was whatever is written besides, and what could not be read goes on being refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::memory::Memory;
use super::{check_refusal, is_damage, options, store_directory};
use crate::environment::{Environment, System};
use crate::log::directory::Directory;
use crate::store::Handle;
use crate::store::checkpoint::Goal;
use crate::store::inspect::Opened;
use crate::store::iterate::{Bounds, Own, Pair, Range};
use crate::store::record::Write;
use crate::store::snapshots::View;
use crate::store::tree::{self, Slot};
use crate::{
    Compression, Error, KeyspaceOptions, StoreInspection, StoreOptions, StoreVerification,
};

pub use super::store_directory::right_checksums;

type Machine = System<Memory>;
type Store = Arc<Handle<Machine>>;
type Keyspace = Arc<tree::Keyspace<Machine>>;

/// What is in keyspaces, by their numbers, as far as it can be read, and whether that is all.
type Contents = BTreeMap<u32, (Vec<Pair>, bool)>;

/// What is said of a leaf whose entries are not between its first key and that of the next one.
const ELSEWHERE: &str = "keys that belong elsewhere";

/// What is written: a value, the end of a key, and the name of a keyspace.
const MORE: &str = "one more";

fn open(memory: &Memory) -> Result<Store, Error> {
    let options = StoreOptions::default().log(options());
    Handle::open(&System::new(memory.clone()), options).map(Arc::new)
}

struct Seen {
    inspection: StoreInspection,
    verification: StoreVerification,
    contents: Contents,
}

fn inspect(memory: &Memory) -> Result<Seen, Error> {
    let opened = Opened::new(&System::new(memory.clone()))?;
    let contents = opened.keyspaces().into_iter().map(|keyspace| {
        let mut pairs = Vec::new();
        let visit = &mut |key: &[u8], value: &[u8]| pairs.push((key.to_vec(), value.to_vec()));
        let mut damage = Vec::new();
        opened.pairs(&keyspace, &mut damage, visit);
        (keyspace.id, (pairs, damage.is_empty()))
    });
    Ok(Seen {
        contents: contents.collect(),
        inspection: opened.inspection(),
        verification: opened.verify(),
    })
}

/// What a store must do with any directory: open it, or say what is wrong, as who looks from outside does; leave one that
/// is damaged as it is; give the same pairs from either end; and keep what was read when more is written, put into leaves, and
/// opened again. Of a tree that no store has written only this is asked: that nothing panics, and that all of it has an end.
pub fn exercise(bytes: &[u8]) {
    let files = store_directory::files(bytes);
    let memory = Memory::new(files.clone());
    let seen = inspect(&memory);
    assert!(memory.files() == files, "who only looks changed something");
    let store = match open(&memory) {
        Ok(store) => store,
        // A keyspace is compressed in a way that this program does not know.
        Err(Error::Options(_)) => return,
        Err(error) => {
            let seen = seen.err();
            // Of a log that is being made opening looks for what an attempt has left, before it reads the store.
            if is_being_made(&memory) && seen.as_ref().is_some_and(is_damage) {
                return;
            }
            check_refusal(&error, seen, memory.files() == files);
            return;
        }
    };
    let is_possible = is_possible(&store);
    let before = contents(&store, is_possible);
    match seen {
        Ok(seen) if is_possible => check_seen(&store, &seen, &before),
        Ok(_) => {}
        // It was being made.
        Err(error) => assert!(matches!(error, Error::NoLog), "{error}"),
    }
    let keyspaces = match write(&store, &before) {
        Ok(keyspaces) => keyspaces,
        // Its segments are larger than all that there is.
        Err(Error::NoSpace { .. }) => return,
        Err(error) => panic!("memory can be written: {error}"),
    };
    if let Err(error) = store.shared.checkpoint(Goal::Everything) {
        let is_zstd = |one: &Keyspace| one.options.compression == Compression::Zstd;
        match error {
            Error::NoSpace { .. } => {}
            Error::Corrupt { .. }
                if !is_possible || before.values().any(|(_, is_whole)| !is_whole) => {}
            Error::Io { .. } if keyspaces.iter().any(is_zstd) => {}
            error => panic!("everything was read: {error}"),
        }
    }
    let written = contents(&store, is_possible);
    store.shared.close().expect("memory can be written");
    drop((keyspaces, store));
    let store = match open(&memory) {
        Ok(store) => store,
        // A file of the log that was not needed had blocks of a time to come, and is in use now.
        Err(Error::Corrupt { .. }) if store_directory::has_impossible_block(bytes) => return,
        Err(Error::Corrupt { .. }) if !is_possible => return,
        Err(error) => panic!("it was closed: {error}"),
    };
    let after = contents(&store, is_possible);
    if is_possible {
        check_written(&before, &written);
        check_written(&before, &after);
    }
}

/// Whether its log is being made.
fn is_being_made(memory: &Memory) -> bool {
    let directory = Directory::lock(&System::new(memory.clone()));
    let epoch = directory.map(|directory| directory.record().map(|record| record.epoch));
    epoch.is_ok_and(|epoch| epoch == Some(0))
}

/// Whether a store can have written this tree: leaves are in the groups where they are looked for, and entries in the leaves,
/// and nothing is of a commit to come.
fn is_possible(store: &Store) -> bool {
    let next = store.shared.log.next_lsn().0;
    let is_of_commits = |slot: &Slot<Machine>| {
        // One that cannot be read is refused.
        let leaf = store.shared.read_leaf(&slot.page);
        leaf.is_err() || leaf.is_ok_and(|leaf| leaf.entries().all(|entry| entry.lsn < next))
    };
    let are_possible = |keyspace: &Keyspace| {
        let groups = Machine::share(&keyspace.groups);
        let behind = groups.iter().skip(1).map(|place| Some(&place.low));
        groups
            .iter()
            .zip(behind.chain([None]))
            .all(|(place, behind)| {
                let group = Machine::share(&place.group);
                let is_within = |slot: &Slot<Machine>| {
                    slot.low >= place.low && behind.is_none_or(|behind| slot.low < *behind)
                };
                let mut leaves = group.leaves.iter();
                group.watermark <= next && leaves.all(|slot| is_within(slot) && is_of_commits(slot))
            })
    };
    let verified = store.verify();
    let mut errors = verified.damage.iter().map(|leaf| leaf.error.to_string());
    keyspaces(store).iter().all(are_possible) && !errors.any(|text| text.contains(ELSEWHERE))
}

fn keyspaces(store: &Store) -> Vec<Keyspace> {
    let keyspaces = Machine::share(&store.shared.keyspaces);
    keyspaces.all.values().cloned().collect()
}

/// The keys that are written in a keyspace: one more behind each key that was read, so that every leaf is written again.
fn more(pairs: &[Pair]) -> impl Iterator<Item = Vec<u8>> {
    let behind = pairs.iter().map(|(key, _)| [key, MORE.as_bytes()].concat());
    behind.chain([MORE.into()])
}

/// Writes them in each keyspace, and in a new one.
fn write(store: &Store, before: &Contents) -> Result<Vec<Keyspace>, Error> {
    let options = KeyspaceOptions::default();
    store.shared.open_keyspace(MORE, &options)?;
    let keyspaces = keyspaces(store);
    let writes = keyspaces.iter().flat_map(|keyspace| {
        let pairs = before.get(&keyspace.id);
        let keys = more(pairs.map_or(&[], |(pairs, _)| pairs));
        keys.map(|key| Write {
            keyspace: keyspace.id,
            key,
            value: Some(MORE.into()),
        })
    });
    store.shared.commit(writes.collect::<Vec<_>>(), None)?;
    Ok(keyspaces)
}

/// All pairs of a keyspace, in the order in which they come, as far as they come, and whether that is all.
fn pairs(store: &Store, keyspace: &Keyspace, backwards: bool) -> (Vec<Pair>, bool) {
    let view = Arc::new(View::new(store));
    let bounds = Bounds::of::<&[u8]>(&..);
    let mut range = Range::new(view, keyspace.clone(), bounds, Own::default());
    let mut pairs = Vec::new();
    loop {
        let next = if backwards {
            range.next_back()
        } else {
            range.next()
        };
        match next {
            Some(Ok(pair)) => pairs.push(pair),
            Some(Err(Error::Corrupt { .. })) => return (pairs, false),
            Some(Err(error)) => panic!("memory can be read: {error}"),
            None => return (pairs, true),
        }
    }
}

fn contents(store: &Store, is_possible: bool) -> Contents {
    let read = |keyspace: Keyspace| {
        let (ahead, is_whole) = pairs(store, &keyspace, false);
        let (mut back, is_whole_from_behind) = pairs(store, &keyspace, true);
        back.reverse();
        let keys = ahead.iter().take(40);
        let found = keys.map(|(key, value)| (store.shared.get(&keyspace, key, None), value));
        let lost =
            found.filter(|(found, value)| !matches!(found, Ok(Some(found)) if found == *value));
        let lost = lost.count();
        if is_possible {
            assert_eq!(is_whole, is_whole_from_behind);
            assert!(!is_whole || ahead == back, "{ahead:?}\n{back:?}");
            assert!(ahead.is_sorted_by(|(a, _), (b, _)| a < b), "{ahead:?}");
            assert_eq!(lost, 0, "{ahead:?}");
        }
        (keyspace.id, (ahead, is_whole))
    };
    keyspaces(store).into_iter().map(read).collect()
}

/// Who looks from outside has seen what there is.
fn check_seen(store: &Store, seen: &Seen, contents: &Contents) {
    let Seen {
        inspection,
        verification,
        ..
    } = seen;
    let names = inspection.keyspaces.iter().map(|one| one.name.clone());
    assert_eq!(names.collect::<Vec<_>>(), store.keyspaces());
    let (restart, next) = (&store.restart, store.shared.log.next_lsn());
    assert_eq!(
        (
            inspection.checkpoint,
            inspection.commits,
            inspection.next_lsn
        ),
        (restart.checkpoint, restart.commits, next)
    );
    let verified = store.verify();
    let found = |one: &StoreVerification| (one.leaves, one.entries, one.damage.len());
    assert_eq!(found(verification), found(&verified));
    let is_whole = contents.values().all(|(_, is_whole)| *is_whole);
    assert_eq!(is_whole, verified.damage.is_empty(), "{verified:?}");
    for (id, (pairs, is_whole)) in contents {
        let (seen, was_whole) = &seen.contents[id];
        assert_eq!(is_whole, was_whole);
        assert!(!is_whole || pairs == seen, "{pairs:?}\n{seen:?}");
    }
}

/// What was read before is still there, besides what was written, and what could not be read is refused as it was.
fn check_written(before: &Contents, after: &Contents) {
    for (id, (found, is_still_whole)) in after {
        let (pairs, is_whole) = before.get(id).cloned().unwrap_or((Vec::new(), true));
        assert_eq!(is_whole, *is_still_whole);
        let written = more(&pairs).map(|key| (key, MORE.into()));
        let mut expected: BTreeMap<Vec<u8>, Vec<u8>> = pairs.iter().cloned().collect();
        expected.extend(written);
        if is_whole {
            assert!(expected.into_iter().eq(found.iter().cloned()), "{found:?}");
        } else {
            let found: BTreeMap<Vec<u8>, Vec<u8>> = found.iter().cloned().collect();
            let is_there = |key: &Vec<u8>| found.get(key) == expected.get(key);
            assert!(pairs.iter().all(|(key, _)| is_there(key)), "{found:?}");
            assert!(found.keys().all(is_there), "{found:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::fuzzing::corpus::{self, settle};
    use crate::store::control::{CONTROL_NAME, COPY};

    fn small() -> KeyspaceOptions {
        let options = KeyspaceOptions::default().leaf_bytes(256);
        options.compression(Compression::None)
    }

    /// A store's directory after some work, with what a process leaves there that is killed then, or closes it.
    fn store(is_closed: bool, work: impl FnOnce(&Store)) -> BTreeMap<String, Vec<u8>> {
        let memory = Memory::default();
        let store = open(&memory).unwrap();
        settle(&memory);
        work(&store);
        settle(&memory);
        let killed = memory.files();
        store.shared.close().unwrap();
        if is_closed { memory.files() } else { killed }
    }

    fn put(store: &Store, name: &str, keys: impl IntoIterator<Item = u8>, bytes: usize) {
        let keyspace = store.shared.open_keyspace(name, &small()).unwrap();
        let write = |key: u8| Write {
            keyspace: keyspace.id,
            key: vec![key.wrapping_mul(3) % 251, key],
            value: Some((0..bytes).map(|at| key ^ (at as u8)).collect()),
        };
        let writes: Vec<_> = keys.into_iter().map(write).collect();
        store.shared.commit(writes, None).unwrap();
    }

    fn remove(store: &Store, name: &str) {
        let keyspace = store.shared.open_keyspace(name, &small()).unwrap();
        store.shared.remove_keyspace(&keyspace).unwrap();
    }

    fn checkpoint(store: &Store) {
        store.shared.checkpoint(Goal::Everything).unwrap();
    }

    /// Stores of all that a store can have in it.
    fn seeds() -> Vec<(&'static str, Vec<u8>)> {
        let empty = store(true, |_| {});
        let committed = store(true, |store| {
            put(store, "a", 0..8, 20);
            put(store, "b", 4..6, 0);
        });
        let checkpoint_alone = store(true, |store| {
            put(store, "a", 0..8, 20);
            checkpoint(store);
        });
        let groups = store(true, |store| {
            put(store, "first", 0..30, 40);
            put(store, "second", 20..24, 90);
            put(store, "empty", [], 0);
            checkpoint(store);
            put(store, "first", 10..12, 7);
        });
        let killed = store(false, |store| {
            put(store, "a", 0..16, 20);
            checkpoint(store);
            put(store, "a", 8..12, 30);
        });
        let mut before = BTreeMap::new();
        let mut between_copies = store(false, |store| {
            put(store, "a", 0..8, 20);
            checkpoint(store);
            put(store, "a", 4..12, 30);
            let memory = store.shared.environment.storage();
            before = memory.files();
            checkpoint(store);
        });
        // The second copy is still that of the checkpoint before.
        let old = before[CONTROL_NAME][COPY..].to_vec();
        between_copies.get_mut(CONTROL_NAME).unwrap()[COPY..].copy_from_slice(&old);
        let removed = store(true, |store| {
            put(store, "a", 0..8, 20);
            put(store, "b", 0..8, 20);
            checkpoint(store);
            put(store, "a", 0..2, 2);
            remove(store, "a");
            put(store, "c", 0..2, 2);
        });
        let versions = store(true, |store| {
            put(store, "a", 0..6, 20);
            let first = View::new(store);
            put(store, "a", 2..8, 10);
            let second = View::new(store);
            put(store, "a", 3..5, 5);
            checkpoint(store);
            drop((first, second));
        });
        let compressed = store(true, |store| {
            let options = KeyspaceOptions::default().leaf_bytes(1024);
            let keyspace = store.shared.open_keyspace("a", &options).unwrap();
            let write = |key: u8| Write {
                keyspace: keyspace.id,
                key: vec![key],
                value: Some(vec![key; 100]),
            };
            store
                .shared
                .commit((0..20).map(write).collect::<Vec<_>>(), None)
                .unwrap();
            checkpoint(store);
        });
        let all = [
            ("empty", empty),
            ("committed", committed),
            ("checkpoint", checkpoint_alone),
            ("groups", groups),
            ("killed", killed),
            ("killed-between-copies", between_copies),
            ("removed-keyspace", removed),
            ("versions", versions),
            ("compressed", compressed),
        ];
        let row = |(name, files)| (name, store_directory::bytes(&files));
        let mut rows: Vec<_> = all.into_iter().map(row).collect();
        // No checkpoint can follow.
        let last = corpus::forged(&rows[2].1, right_checksums, |bytes| {
            for copy in store_directory::copies() {
                corpus::put(bytes, copy + 24, u64::MAX);
            }
        });
        rows.push(("last-checkpoint", last));
        rows
    }

    #[test]
    fn what_fuzzing_has_kept_does_no_harm() {
        corpus::replay("store", &seeds(), exercise);
    }

    #[test]
    fn what_is_changed_at_random_does_no_harm() {
        corpus::change("store", right_checksums, exercise);
    }

    #[test]
    fn stores_to_begin_with_are_read_whole() {
        for (name, bytes) in seeds() {
            exercise(&bytes);
            let memory = Memory::new(store_directory::files(&bytes));
            let seen = match inspect(&memory) {
                Err(Error::Corrupt { .. }) if name == "last-checkpoint" => continue,
                seen => seen.unwrap(),
            };
            assert!(seen.verification.damage.is_empty(), "{name}");
            // Every page's checksum can be made right again, and where it is repeated.
            let right = right_checksums(&bytes);
            let pages = store_directory::pages(&bytes);
            let pages = right.iter().filter(|one| pages.contains(&one.at));
            let of: BTreeSet<usize> = right
                .iter()
                .flat_map(|one| one.repeats.iter().map(|(_, of)| *of))
                .collect();
            assert!(pages.clone().all(|one| of.contains(&one.at)), "{name}");
            let tree = if seen.inspection.checkpoint > 0 { 2 } else { 0 };
            assert!(
                pages.count() as u64 >= seen.verification.leaves + tree,
                "{name}"
            );
            // Another program's store of the same bytes is the same store.
            let again = store_directory::bytes(&store_directory::files(&bytes));
            assert_eq!(again, bytes, "{name}");
        }
    }
}
