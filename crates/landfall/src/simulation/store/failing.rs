//! A store of which calls fail, and one whose files were damaged.

use std::sync::{Arc, Mutex};

use fastrand::Rng;

use super::super::damage::{Damage, Others};
use super::super::disk::{Disk, How};
use super::super::oracle;
use super::super::scenario::{Kind, Outcome, lock, simulate};
use super::acts::act;
use super::history::{History, Store, everything};
use super::{Must, Scene, existing, is_refusal};
use crate::mistakes::Fault;
use crate::store::checkpoint::Goal;
use crate::store::control::CONTROL_NAME;
use crate::store::record::Write;
use crate::{Error, Policy};

/// Each call of a life fails once, or from then on, and nothing is lost by it: neither for who goes on, nor after a power
/// cut. Where there was no space the store can be used again as soon as there is some.
pub(crate) fn every_call(seed: u64, how: How, stays: bool, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, found| {
        let mut scene = Scene::new(Kind::Failing, planted, rng);
        scene.options.policy = Policy::EveryCommit;
        let disk = Disk::new(scene.way.block(), rng.u64(..));
        let history = Arc::new(Mutex::new(History::default()));
        let wrong = |error: Error| format!("an honest disk failed: {error}");
        let live = |store: &Store, history: &Arc<Mutex<History>>, rng: &mut Rng| {
            let keyspaces = scene.keyspaces(store, history)?;
            for _ in 0..12 {
                match act(store, &keyspaces, Policy::EveryCommit, history, rng) {
                    Ok(()) | Err(Error::Conflict | Error::NoKeyspace) => {}
                    Err(error) => return Err(error),
                }
            }
            store.shared.checkpoint(Goal::Everything)?;
            Ok(keyspaces)
        };
        let store = scene.open(&disk, rng).map_err(wrong)?;
        live(&store, &history, rng).map_err(wrong)?;
        store.shared.close().map_err(wrong)?;
        drop(store);
        let mut call = 0;
        loop {
            call += rng.u64(1..4);
            let (disk, history) = (disk.copy(), lock(&history).clone());
            let history = Arc::new(Mutex::new(history));
            let before = disk.calls();
            disk.fail_after(call, stays, how);
            let store = match scene.open(&disk, rng) {
                Ok(store) => store,
                Err(error) if is_refusal(&error) => {
                    disk.fail(None);
                    scene.open(&disk, rng).map_err(wrong)?
                }
                Err(error) => return Err(format!("cannot open it: {error}")),
            };
            lock(&history).reopen(&store)?;
            match live(&store, &history, rng) {
                Ok(_) => {}
                Err(error) if is_refusal(&error) => {}
                Err(error) => return Err(format!("something failed: {error}")),
            }
            let is_over = disk.calls() < before + call;
            disk.fail(None);
            let keyspaces = existing(&store);
            lock(&history)
                .seen
                .push(everything(&store, &keyspaces).map_err(wrong)?);
            lock(&history).check_seen()?;
            if how == How::NoSpace {
                live(&store, &history, rng).map_err(|why| format!("not usable again: {why}"))?;
            }
            disk.cut_power_now();
            drop(store);
            let history = lock(&history).clone();
            scene.power_cuts(&disk, &history, rng, 1, found)?;
            if is_over {
                return Ok(());
            }
        }
    })
}

/// Damages the directory of a store that was closed or killed, in every way.
pub(crate) fn play_damage(seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, found| {
        let scene = Scene::new(Kind::PowerCut, planted, rng);
        let disk = Disk::new(scene.way.block(), rng.u64(..));
        let history = Arc::new(Mutex::new(History::default()));
        let mut others = Others {
            granule: scene.way.granule as usize,
            ..Others::default()
        };
        let wrong = |why: Error| format!("an honest disk failed: {why}");
        let is_closed = rng.bool();
        for life in 0..rng.u8(1..4) {
            let store = scene.open(&disk, rng).map_err(wrong)?;
            let keyspaces = scene.keyspaces(&store, &history).map_err(wrong)?;
            lock(&history).check(&store, &keyspaces)?;
            others.older.push(disk.files());
            scene.use_it(&store, &keyspaces, &history, None, rng)?;
            if rng.bool() {
                store.shared.checkpoint(Goal::Everything).map_err(wrong)?;
            }
            others.older.push(disk.files());
            if life > 0 && !is_closed {
                disk.kill();
            } else {
                store.shared.close().map_err(wrong)?;
                let mut history = lock(&history);
                history.durable = store.shared.log.next_lsn().0 - 1;
            }
            drop(store);
        }
        let foreign = Disk::new(scene.way.block(), rng.u64(..));
        let other = scene.open(&foreign, rng).map_err(wrong)?;
        let keyspaces = scene.keyspaces(&other, &Mutex::default()).map_err(wrong)?;
        let write = Write {
            keyspace: keyspaces[0].id,
            key: b"foreign".to_vec(),
            value: Some(vec![7; 40]),
        };
        other.shared.commit(vec![write], None).map_err(wrong)?;
        other.shared.checkpoint(Goal::Everything).map_err(wrong)?;
        drop((other, keyspaces));
        others.foreign = foreign.files();
        let disk = disk.with_files(&disk.files());
        let history = lock(&history).clone();
        let whole = disk.files();
        for damage in Damage::ALL {
            let (mut tried, mut reported) = (0, 0);
            for _ in 0..3 {
                let mut files = whole.clone();
                let Some(what) = damage.inflict(&mut files, &others, rng) else {
                    continue;
                };
                let damaged = disk.with_files(&files);
                found.states.insert(damaged.digest());
                let seen = if damage == Damage::Older {
                    &files
                } else {
                    &whole
                };
                let is_of_log = |name: &&String| {
                    name.starts_with("segment") || name.starts_with("landfall-log")
                };
                let is_same = |name: &&String| files.get(*name) == whole.get(*name);
                let names = || whole.keys().chain(files.keys());
                let mut others = names().filter(|name| *name != CONTROL_NAME);
                let must = Must {
                    promised: oracle::promised_in(seen, None),
                    everything: names().filter(is_of_log).all(|name| is_same(&name)),
                    it_opens: damage == Damage::FlippedBit && others.all(|name| is_same(&name)),
                };
                tried += 1;
                let checked = scene.check_damaged(&damaged, history.clone(), must, rng);
                let is_reported = checked.map_err(|why| format!("{why}, after {what}"))?;
                reported += u64::from(is_reported);
            }
            found.damages.push((damage.name(), tried, reported));
        }
        Ok(())
    })
}
