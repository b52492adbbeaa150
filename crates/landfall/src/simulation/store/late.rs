//! A checkpoint that fails while somebody who was asked for help has yet to begin, and those that are made next.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;

use super::super::disk::{Disk, How};
use super::super::environment::Way;
use super::super::scenario::{Kind, Outcome, lock, simulate};
use super::history::{Commit, History, Writes};
use super::{Scene, is_refusal, options, safe_protections};
use crate::mistakes::Fault;
use crate::store::checkpoint::Goal;
use crate::{Error, KeyspaceOptions, Policy, Protection, StoreOptions};

/// So many that two threads write groups.
const KEYS: u8 = 96;
const ROUNDS: usize = 8;

/// Groups with homes are written again and again; most checkpoints fail, and each is followed by one that does not.
pub(crate) fn late_helper(seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, found| {
        let way = Way::ALL[rng.usize(0..2)];
        let mut homes = safe_protections(way);
        homes.retain(|one| *one != Protection::Shadow);
        let scene = Scene {
            options: StoreOptions {
                memory_bytes: 1 << 20,
                policy: Policy::EveryCommit,
                max_recovery_time: Duration::from_secs(1 << 20),
                ..options(way, rng)
            },
            keyspace: KeyspaceOptions::default().leaf_bytes(1024).in_place(true),
            protection: Some(homes[rng.usize(0..homes.len())]),
            percent: 0,
            way,
            kind: Kind::Failing,
            planted,
        };
        let disk = Disk::new(way.block(), rng.u64(..));
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
                let written = store.shared.write(writes.of_store(&keyspaces), None)?;
                let lsn = written.expect("something was written");
                lock(&history).commits.insert(lsn.0, Commit::Writes(writes));
                store.shared.log.commit_to(lsn)?;
                lock(&history).durable = lsn.0;
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
