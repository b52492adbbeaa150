//! One who uses a store reads states of different age while keys are removed and come back, and checkpoints are made between; or goes
//! through a keyspace while that is removed.
//!
//! What somebody saw who reads an older state spares others work, and must not hide from them what came since.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use shuttle::thread;

use super::super::Fault;
use super::super::disk::Disk;
use super::super::environment::Way;
use super::super::scenario::{Outcome, lock, simulate};
use super::history::{Commit, History, Writes, everything_of};
use super::{Kind, Scene, must, open_unasked, wrong};
use crate::store::checkpoint::Goal;
use crate::store::iterate::{Bounds, Own, Range};
use crate::store::record::Write;
use crate::store::removed::KeyRange;
use crate::store::snapshots::View;
use crate::{Error, KeyspaceOptions, Policy};

const KEYS: u8 = 30;
/// Older states that are kept at once.
const VIEWS: usize = 3;

pub(crate) fn older_readers(seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, found| {
        let mut scene = Scene::new(Kind::PowerCut, planted, rng);
        scene.options.policy = Policy::Interval(Duration::from_secs(1000));
        scene.options.memory_bytes = 1 << 20;
        scene.options.max_recovery_time = Duration::from_secs(1 << 20);
        let wrong = |error: Error| format!("an honest disk failed: {error}");
        let disk = Disk::new(scene.way.block(), rng.u64(..));
        let history = Arc::new(Mutex::new(History::default()));
        let store = scene.open(&disk, rng).map_err(wrong)?;
        let keyspaces = scene.keyspaces(&store, &history).map_err(wrong)?;
        let mut views = VecDeque::new();
        for _ in 0..80 {
            match rng.u8(0..8) {
                0 => store.shared.checkpoint(Goal::Everything).map_err(wrong)?,
                1 => {
                    views.push_back(Arc::new(View::new(&store)));
                    if views.len() > VIEWS {
                        views.pop_front();
                    }
                }
                2..5 => {
                    let view = match views.get(rng.usize(0..=VIEWS)) {
                        Some(older) => Arc::clone(older),
                        None => Arc::new(View::new(&store)),
                    };
                    let seen = everything_of(&view, &keyspaces).map_err(wrong)?;
                    lock(&history).seen.push(seen);
                    lock(&history).check_seen()?;
                }
                _ => {
                    let writes = some_in_order(rng);
                    let lsn = store.shared.write(writes.of_store(&keyspaces), None);
                    if let Some(lsn) = lsn.map_err(wrong)? {
                        let mut history = lock(&history);
                        history.commits.insert(lsn.0, Commit::Writes(writes));
                    }
                }
            }
        }
        found.states.insert(disk.digest());
        Ok(())
    })
}

/// Keys that come one after the other: all are given values, or all are removed, each by itself or with a range, or one is given a
/// value.
fn some_in_order(rng: &mut Rng) -> Writes {
    let keyspace = usize::from(rng.u8(0..4) == 0);
    let first = rng.u8(0..KEYS);
    let (end, is_given) = match rng.u8(0..3) {
        0 => (first + 1, true),
        course => (rng.u8(first..KEYS) + 1, course == 1),
    };
    if !is_given && rng.bool() {
        let range = KeyRange {
            low: vec![first],
            high: Some(vec![end]),
        };
        return Writes {
            ranges: vec![(keyspace, range)],
            keys: Vec::new(),
        };
    }
    let value = |key: u8, rng: &mut Rng| {
        let mut value = rng.u64(..).to_le_bytes().to_vec();
        value.resize(30, key);
        value
    };
    let write = |key: u8| (keyspace, vec![key], is_given.then(|| value(key, rng)));
    Writes {
        ranges: Vec::new(),
        keys: (first..end).map(write).collect(),
    }
}

/// Whoever goes through a keyspace that is removed sees all of it, or is told; never a part, as if there were no more.
pub(crate) fn removed_while_read(seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, _| {
        let disk = Disk::new(Way::ALL[0].block(), rng.u64(..));
        let store = open_unasked(&disk, planted, rng).map_err(wrong)?;
        let small = KeyspaceOptions::default().leaf_bytes(512);
        let rows = store.shared.open_keyspace("rows", &small).map_err(wrong)?;
        let writes = (0..KEYS).map(|number| Write {
            keyspace: rows.id,
            key: vec![number],
            value: Some(vec![number; 60]),
        });
        let writes: Vec<Write> = writes.collect();
        store.shared.commit(writes, None).map_err(wrong)?;
        if rng.bool() {
            store.shared.checkpoint(Goal::Everything).map_err(wrong)?;
        }
        let (removing, removed) = (store.clone(), rows.clone());
        let remover = thread::spawn(move || removing.shared.remove_keyspace(&removed));
        let view = Arc::new(View::new(&store));
        let all = Bounds::of::<&[u8]>(&..);
        let mut range = Range::new(view, rows, all, Own::default());
        let mut seen = 0;
        let is_told = loop {
            match range.next() {
                Some(Ok(_)) => seen += 1,
                Some(Err(Error::NoKeyspace)) => break true,
                Some(Err(error)) => return Err(wrong(error)),
                None => break false,
            }
        };
        must(is_told || seen == KEYS, || {
            format!("{seen} of {KEYS} keys were there, and no more")
        })?;
        let removed = remover.join().map_err(|_| "it panicked".to_owned())?;
        removed.map_err(wrong)
    })
}
