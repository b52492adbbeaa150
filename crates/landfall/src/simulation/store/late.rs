//! What comes late to a checkpoint: whoever was asked for help, when it has failed and others are made; a range that is removed, when it is
//! known that what waits becomes a run.

use std::sync::{Arc, Mutex};

use fastrand::Rng;
use shuttle::thread;

use super::super::disk::{Disk, How};
use super::super::environment::Way;
use super::super::scenario::{Kind, Outcome, lock, simulate};
use super::history::{History, Writes};
use super::{Scene, commit, is_refusal, must, open_unasked, wrong};
use crate::mistakes::Fault;
use crate::store::checkpoint::Goal;
use crate::store::record::{Write, Writes as Commit};
use crate::store::removed::KeyRange;
use crate::{Error, KeyspaceOptions};

/// So many that two threads write groups.
const KEYS: u8 = 96;
const ROUNDS: usize = 8;

/// Groups with homes are written again and again; most checkpoints fail, and each is followed by one that does not.
pub(crate) fn late_helper(seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, found| {
        let scene = Scene::with_homes(Kind::Failing, 1 << 20, planted, rng);
        let disk = Disk::new(scene.way.block(), rng.u64(..));
        let history = Arc::new(Mutex::new(History::default()));
        let wrong = |error: Error| format!("an honest disk failed: {error}");
        let store = scene.open(&disk, rng).map_err(wrong)?;
        let keyspaces = scene.keyspaces(&store, &history).map_err(wrong)?;
        let rewrite = |rng: &mut Rng| -> Result<(), Error> {
            for keys in (0..KEYS).collect::<Vec<_>>().chunks(16) {
                let mut writes = Writes::default();
                for key in keys {
                    let mut value = rng.u64(..).to_le_bytes().to_vec();
                    value.resize(90, *key);
                    writes.keys.push((0, vec![*key], Some(value)));
                }
                commit(&store, &keyspaces, &history, writes)?;
            }
            Ok(())
        };
        for _ in 0..2 {
            rewrite(rng).map_err(wrong)?;
            store.shared.checkpoint(Goal::Everything).map_err(wrong)?;
        }
        for _ in 0..ROUNDS {
            rewrite(rng).map_err(wrong)?;
            disk.fail_after(rng.u64(1..30), false, How::Io);
            match store.shared.checkpoint(Goal::Everything) {
                Err(error) if is_refusal(&error) => {}
                made => made.map_err(wrong)?,
            }
            disk.fail(None);
            let goes_on = rewrite(rng).and_then(|()| store.shared.checkpoint(Goal::Everything));
            match goes_on {
                // What is durable nobody knows any more.
                Err(error) if is_refusal(&error) => break,
                done => done.map_err(wrong)?,
            }
        }
        disk.cut_power_now();
        drop((keyspaces, store));
        let history = lock(&history).clone();
        scene.power_cuts(&disk, &history, rng, 1, found)
    })
}

/// Rows of a store with runs; of each round, those that are removed while a checkpoint is made.
const ROWS: u8 = 200;
const REMOVED: u8 = 10;

/// A checkpoint writes runs of all groups, and a range of one of them is removed meanwhile.
pub(crate) fn late_range(seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, _| {
        let disk = Disk::new(Way::ALL[0].block(), rng.u64(..));
        let store = open_unasked(&disk, planted, rng).map_err(wrong)?;
        store.shared.set_buffer_percent(200).map_err(wrong)?;
        let small = KeyspaceOptions::default().leaf_bytes(1024);
        let rows = store.shared.open_keyspace("rows", &small).map_err(wrong)?;
        let write = |numbers: &mut dyn Iterator<Item = u8>| {
            let writes = numbers.map(|number| Write {
                keyspace: rows.id,
                key: vec![number],
                value: Some(vec![number; 60]),
            });
            let writes = Commit::from(writes.collect::<Vec<_>>());
            store.shared.commit(writes, None).map_err(wrong)
        };
        let checkpoint = || store.shared.checkpoint(Goal::Everything).map_err(wrong);
        let mut is_there = [true; ROWS as usize];
        write(&mut (0..ROWS))?;
        checkpoint()?;
        for round in 0..ROUNDS as u8 {
            for number in (round..ROWS).step_by(9) {
                is_there[number as usize] = true;
            }
            write(&mut (round..ROWS).step_by(9))?;
            let low = rng.u8(0..ROWS - REMOVED);
            let (removed, keyspace) = (store.clone(), rows.id);
            let late = thread::spawn(move || {
                let mut range = Commit::default();
                let keys = KeyRange {
                    low: vec![low],
                    high: Some(vec![low + REMOVED]),
                };
                range.remove_range(keyspace, keys);
                removed.shared.commit(range, None)
            });
            checkpoint()?;
            let removed = late.join().map_err(|_| "it panicked".to_owned())?;
            removed.map_err(wrong)?;
            is_there[low as usize..(low + REMOVED) as usize].fill(false);
            checkpoint()?;
            for number in 0..ROWS {
                let found = store.shared.get(&rows, &[number], None).map_err(wrong)?;
                must(found.is_some() == is_there[number as usize], || {
                    format!("after round {round} row {number} is not as it should be: {found:?}")
                })?;
            }
        }
        Ok(())
    })
}
