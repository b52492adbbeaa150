//! A checkpoint that fails while somebody who was asked for help has yet to begin, and those that are made next.

use std::sync::{Arc, Mutex};

use fastrand::Rng;

use super::super::disk::{Disk, How};
use super::super::scenario::{Kind, Outcome, lock, simulate};
use super::history::{History, Writes};
use super::{Scene, commit, is_refusal};
use crate::Error;
use crate::mistakes::Fault;
use crate::store::checkpoint::Goal;

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
