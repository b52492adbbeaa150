//! Leaves at home, which a power cut can tear.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;

use super::super::disk::{Disk, How};
use super::super::environment::Way;
use super::super::scenario::{Kind, Outcome, lock, simulate};
use super::history::{History, Writes};
use super::{DEPTH, Scene, commit, is_refusal, must, options, safe_protections};
use crate::mistakes::Fault;
use crate::store::checkpoint::Goal;
use crate::{Error, KeyspaceOptions, Policy, Protection, StoreOptions};

/// Leaves are written at home again and again, by checkpoints and between them, until the power goes.
pub(crate) fn torn_at_home(seed: u64, planted: Option<Fault>) -> Outcome {
    torn_at_home_with(None, seed, planted)
}

/// With this protection, or any.
pub(crate) fn torn_at_home_with(
    wanted: Option<Protection>,
    seed: u64,
    planted: Option<Fault>,
) -> Outcome {
    simulate(seed, move |rng, found| {
        let way = Way::ALL[rng.usize(0..2)];
        let mut safe = safe_protections(way);
        safe.retain(|one| wanted.is_none_or(|wanted| wanted == *one));
        // All keys of some leaf go, and few come back while other leaves are written; or a call fails before the power does.
        let course = rng.u8(0..6);
        let (is_emptied, is_failing) = (course < 2, course == 2);
        let protection = if is_failing && wanted.is_none() {
            Protection::Doublewrite
        } else {
            safe[rng.usize(0..safe.len())]
        };
        let scene = Scene {
            options: StoreOptions {
                memory_bytes: 8 << 10,
                policy: Policy::EveryCommit,
                max_recovery_time: Duration::from_secs(1 << 20),
                ..options(way, rng)
            },
            keyspace: KeyspaceOptions::default()
                .leaf_bytes(1024)
                .in_place(true)
                .whole_leaves(rng.bool()),
            protection: Some(protection),
            percent: 0,
            way,
            kind: Kind::PowerCut,
            planted,
        };
        let disk = Disk::new(way.block(), rng.u64(..));
        let history = Arc::new(Mutex::new(History::default()));
        let wrong = |error: Error| format!("an honest disk failed: {error}");
        let store = scene.open(&disk, rng).map_err(wrong)?;
        let keyspaces = scene.keyspaces(&store, &history).map_err(wrong)?;
        // Some keys of each leaf, or all; those from one on are removed.
        let rewrite = |keys: &[u8], removed: u8, rng: &mut Rng| -> Result<(), Error> {
            for keyspace in 0..keyspaces.len() {
                let mut writes = Writes::default();
                for key in keys {
                    let mut value = rng.u64(..).to_le_bytes().to_vec();
                    value.resize(90, *key);
                    let value = Some(value).filter(|_| *key < removed);
                    writes.keys.push((keyspace, vec![*key], value));
                }
                commit(&store, &keyspaces, &history, writes)?;
            }
            Ok(())
        };
        // More leaves than a group has, now and then.
        let is_long = is_failing || rng.bool();
        let all: Vec<u8> = (0..if is_long { 64 } else { 24 }).collect();
        let none = all.len() as u8;
        rewrite(&all, none, rng).map_err(wrong)?;
        for _ in 0..2 {
            store.shared.checkpoint(Goal::Everything).map_err(wrong)?;
            rewrite(&all[..4], none, rng).map_err(wrong)?;
        }
        let rounds = match course {
            _ if is_emptied => 2,
            _ if is_failing => 3,
            _ => rng.u8(1..6),
        };
        for round in 0..rounds {
            if round + 1 == rounds {
                disk.cut_power_after(rng.u64(0..90));
            }
            // A group that gets empty goes, and what comes after it goes to the one before.
            let removed = if rng.u8(0..3) == 0 {
                rng.u8(0..=none)
            } else {
                none
            };
            let step = if removed < none { 1 } else { rng.usize(1..8) };
            let keys: Vec<u8> = all.iter().copied().step_by(step).collect();
            let (keys, removed) = match round {
                _ if !is_emptied => (keys, removed),
                0 => (all[4..22].to_vec(), 0),
                _ => (all.iter().copied().step_by(9).collect(), none),
            };
            let is_due = is_emptied || rng.bool();
            let goal = if is_due { Goal::Due } else { Goal::Everything };
            // One call of the checkpoint fails, and whoever goes on must not make that worse.
            let fails = match course {
                _ if is_failing => round == 1,
                _ => !is_emptied && rng.u8(0..3) == 0,
            };
            let done = rewrite(&keys, removed, rng).and_then(|()| {
                if fails {
                    let how = if rng.bool() { How::Io } else { How::NoSpace };
                    disk.fail_after(rng.u64(1..50), false, how);
                }
                store.shared.checkpoint(goal)
            });
            match done {
                Err(error) if is_refusal(&error) && fails => {}
                Err(error) if is_refusal(&error) => break,
                done => done.map_err(wrong)?,
            }
        }
        disk.cut_power_now();
        drop((keyspaces, store));
        let history = lock(&history).clone();
        scene.power_cuts(&disk, &history, rng, DEPTH, found)
    })
}

/// A group is cut by the checkpoint before which the one behind it got empty, and what then comes to the keys of that one is written
/// between checkpoints, and removed after the store was opened again.
pub(crate) fn cut_before_an_empty_one(seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, found| {
        let scene = Scene::with_homes(Kind::PowerCut, 32 << 10, planted, rng);
        let disk = Disk::new(scene.way.block(), rng.u64(..));
        let history = Arc::new(Mutex::new(History::default()));
        let wrong = |error: Error| format!("an honest disk failed: {error}");
        let mut store = scene.open(&disk, rng).map_err(wrong)?;
        let mut keyspaces = scene.keyspaces(&store, &history).map_err(wrong)?;
        let given = |keyspace: usize, key: Vec<u8>, rng: &mut Rng| {
            let mut value = rng.u64(..).to_le_bytes().to_vec();
            value.resize(90, 0);
            (keyspace, key, Some(value))
        };
        let keys = |keys: Vec<(usize, Vec<u8>, Option<Vec<u8>>)>| Writes {
            ranges: Vec::new(),
            keys,
        };
        for keyspace in 0..2 {
            let all = (0..64).map(|key| given(keyspace, vec![key], rng)).collect();
            commit(&store, &keyspaces, &history, keys(all)).map_err(wrong)?;
        }
        for _ in 0..2 {
            store.shared.checkpoint(Goal::Everything).map_err(wrong)?;
        }
        let gone = rng.u8(20..56);
        let removed = (gone..64).map(|key| (0, vec![key], None)).collect();
        commit(&store, &keyspaces, &history, keys(removed)).map_err(wrong)?;
        let before = gone - rng.u8(1..4);
        let between = (0..rng.u8(20..60)).map(|key| given(0, vec![before, key], rng));
        let between = between.collect();
        commit(&store, &keyspaces, &history, keys(between)).map_err(wrong)?;
        store.shared.checkpoint(Goal::Everything).map_err(wrong)?;
        let late = rng.u8(gone..64);
        let some = vec![given(0, vec![late], rng)];
        commit(&store, &keyspaces, &history, keys(some)).map_err(wrong)?;
        // Until so much waits that some is written at home, what has waited the longest first.
        let before = store.counters();
        for _ in 0..20 {
            if store.counters().flushes > before.flushes {
                break;
            }
            let others = (0..64).map(|key| given(1, vec![key], rng)).collect();
            commit(&store, &keyspaces, &history, keys(others)).map_err(wrong)?;
            store.shared.checkpoint(Goal::Due).map_err(wrong)?;
        }
        store.shared.close().map_err(wrong)?;
        drop((keyspaces, store));
        store = scene.open(&disk, rng).map_err(wrong)?;
        lock(&history).reopen(&store)?;
        keyspaces = scene.keyspaces(&store, &history).map_err(wrong)?;
        let damage = store.verify().damage;
        must(damage.is_empty(), || {
            format!("it says of itself: {damage:?}")
        })?;
        let some = vec![(0, vec![late], None)];
        commit(&store, &keyspaces, &history, keys(some)).map_err(wrong)?;
        store.shared.checkpoint(Goal::Everything).map_err(wrong)?;
        lock(&history).check(&store, &keyspaces)?;
        disk.cut_power_now();
        drop((keyspaces, store));
        let history = lock(&history).clone();
        scene.power_cuts(&disk, &history, rng, 1, found)
    })
}
