//! What a checkpoint leaves to the kernel when its process dies, and what it knows that the log can lose.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;

use super::super::disk::{Disk, Loss};
use super::super::scenario::{Kind, Outcome, lock, simulate};
use super::acts::act;
use super::history::{History, Keyspace};
use super::{STATES, Scene, existing, is_refusal};
use crate::mistakes::Fault;
use crate::store::checkpoint::Goal;
use crate::store::record::Write;
use crate::{Error, Policy};

/// A process dies while it makes a checkpoint, and the power goes while the next one makes another: what the first has left
/// to the kernel may not be there then.
pub(crate) fn killed_in_checkpoint(seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, found| {
        let mut scene = Scene::new(Kind::Killed, planted, rng);
        scene.options.policy = Policy::EveryCommit;
        let disk = Disk::new(scene.way.block(), rng.u64(..));
        let history = Arc::new(Mutex::new(History::default()));
        let wrong = |error: Error| format!("an honest disk failed: {error}");
        let live = |disk: &Disk, history: &Arc<Mutex<History>>, rng: &mut Rng| {
            let store = scene.open(disk, rng)?;
            let keyspaces = scene.keyspaces(&store, history)?;
            for _ in 0..rng.u8(4..24) {
                match act(&store, &keyspaces, Policy::EveryCommit, history, rng) {
                    Ok(()) | Err(Error::Conflict | Error::NoKeyspace) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(store)
        };
        for is_killed in [false, true] {
            let store = live(&disk, &history, rng).map_err(wrong)?;
            if is_killed {
                disk.kill_after(rng.u64(0..40));
            }
            match store.shared.checkpoint(Goal::Everything) {
                Err(error) if is_killed && is_refusal(&error) => {}
                made => made.map_err(wrong)?,
            }
            disk.kill();
        }
        for moment in (0..40).step_by(2) {
            let (disk, history) = (disk.copy(), lock(&history).clone());
            let history = Arc::new(Mutex::new(history));
            let store = live(&disk, &history, rng).map_err(wrong)?;
            disk.cut_power_after(moment + rng.u64(0..2));
            match store.shared.checkpoint(Goal::Everything) {
                Err(error) if is_refusal(&error) => {}
                made => made.map_err(wrong)?,
            }
            drop(store);
            let history = lock(&history).clone();
            scene.power_cuts(&disk, &history, rng, 1, found)?;
        }
        Ok(())
    })
}

/// A key is moved from one keyspace to another, and the first is removed; nothing of that is durable when a checkpoint is made that
/// has neither, and the power goes.
pub(crate) fn removed_before_checkpoint(seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, found| {
        let mut scene = Scene::new(Kind::PowerCut, planted, rng);
        scene.options.policy = Policy::Interval(Duration::from_secs(1000));
        scene.options.memory_bytes = 8 << 10;
        scene.options.max_recovery_time = Duration::from_secs(1000);
        scene.options.log.max_unwritten_bytes = 1 << 20;
        scene.options.log.buffer_bytes = 1 << 20;
        let disk = Disk::new(scene.way.block(), rng.u64(..));
        let wrong = |error: Error| format!("an honest disk failed: {error}");
        let store = scene.open(&disk, rng).map_err(wrong)?;
        let open = |name| store.shared.open_keyspace(name, &scene.keyspace);
        let (old, new, other) = (open("old"), open("new"), open("other"));
        let (old, new, other) = (
            old.map_err(wrong)?,
            new.map_err(wrong)?,
            other.map_err(wrong)?,
        );
        let put = |keyspace: &Keyspace, key: u8, len: usize| {
            let write = Write {
                keyspace: keyspace.id,
                key: vec![key],
                value: Some(vec![1; len]),
            };
            store.shared.commit(vec![write], None).map_err(wrong)
        };
        // It may be in a leaf, or in a run.
        if !scene.keyspace.in_place && rng.bool() {
            store.shared.set_buffer_percent(200).map_err(wrong)?;
            for key in 0..6 {
                put(&old, key, 100)?;
            }
            store.shared.checkpoint(Goal::Everything).map_err(wrong)?;
        }
        put(&old, 7, 20)?;
        store.shared.checkpoint(Goal::Everything).map_err(wrong)?;
        for key in 0..5 {
            put(&other, key, 400)?;
        }
        store.shared.log.commit().map_err(wrong)?;
        put(&new, 7, 20)?;
        store.shared.forget_keyspace(&old).map_err(wrong)?;
        // Nobody reads it any more.
        drop(old);
        disk.cut_power_after(rng.u64(0..30));
        match store.shared.checkpoint(Goal::Due) {
            Err(error) if is_refusal(&error) => {}
            made => made.map_err(wrong)?,
        }
        disk.cut_power_now();
        drop((new, other, store));
        for _ in 0..STATES {
            let left = disk.after_power_cut(Loss::ALL[rng.usize(0..Loss::ALL.len())], rng);
            if !found.states.insert(left.digest()) {
                continue;
            }
            let store = scene.open(&left, rng).map_err(wrong)?;
            let mut is_there = false;
            for keyspace in existing(&store) {
                is_there |= keyspace.name != "other"
                    && store
                        .shared
                        .get(&keyspace, &[7], None)
                        .map_err(wrong)?
                        .is_some();
            }
            if !is_there {
                return Err("what was moved is in neither keyspace".to_owned());
            }
        }
        Ok(())
    })
}
