//! A store that is closed while others are in the middle of something.

use std::collections::BTreeMap;
use std::sync::Arc;

use shuttle::thread;

use super::super::disk::Disk;
use super::super::environment::{Simulated, Way};
use super::super::history::Broken;
use super::super::scenario::{Outcome, simulate};
use super::history::{Keyspace, Store};
use super::{must, unasked, wrong};
use crate::store::Handle;
use crate::store::iterate::{Bounds, Own, Range};
use crate::store::record::Write;
use crate::store::snapshots::View;
use crate::{Error, KeyspaceOptions};

/// Values of which each is longer than all that the log can hold back.
const LONG: usize = 20 << 10;

/// What a thread was told of its writes: how many are there, and the one that may be.
struct Told {
    done: u8,
    perhaps: bool,
}

/// Gives a key one value after the other until the store is closed.
fn write_on(store: &Store, keyspace: &Keyspace, key: u8, long: usize) -> Result<Told, Broken> {
    for number in 1..=u8::MAX {
        let write = Write {
            keyspace: keyspace.id,
            key: vec![key],
            value: Some(vec![number; long]),
        };
        match store.shared.commit(vec![write], None) {
            Ok(()) => {}
            // A log on a full disk.
            Err(Error::NoSpace { .. }) if number > 1 => {
                return Ok(Told {
                    done: number - 1,
                    perhaps: false,
                });
            }
            Err(Error::Closed) => {
                return Ok(Told {
                    done: number - 1,
                    perhaps: true,
                });
            }
            Err(other) => return Err(format!("write {number} of {key}: {other}")),
        }
    }
    Err("it is never closed".into())
}

/// Two threads write, one of them what is longer than the log's buffer, while a third closes the store, now and then on a disk that
/// gets full, so that who writes makes checkpoints as well. Then it opens, and has what was acknowledged.
pub(crate) fn closed_meanwhile(seed: u64) -> Outcome {
    simulate(seed, move |rng, _| {
        let way = Way::ALL[rng.usize(0..2)];
        let disk = Disk::new(way.block(), rng.u64(..));
        let open = |seed: u64| -> Result<Store, Broken> {
            let environment = Simulated::new(&disk, way, None, seed);
            let mut options = unasked(1 << 20, 64 << 10);
            options.log.buffer_bytes = 16 << 10;
            let store = Handle::open(&environment, options);
            Ok(Arc::new(
                store.map_err(|error| format!("it does not open: {error}"))?,
            ))
        };
        let store = open(rng.u64(..))?;
        let small = KeyspaceOptions::default().leaf_bytes(1024);
        let keyspace = store.shared.open_keyspace("rows", &small).map_err(wrong)?;
        if rng.bool() {
            disk.set_space(rng.u64(100..600) << 10);
        }
        let writers = [(1_u8, LONG), (2, rng.usize(1..400))].map(|(key, long)| {
            let (store, keyspace) = (store.clone(), keyspace.clone());
            thread::spawn(move || {
                write_on(&store, &keyspace, key, long).map(|told| (key, long, told))
            })
        });
        for _ in 0..rng.u8(0..40) {
            thread::yield_now();
        }
        let closed = store.shared.close();
        closed.map_err(|error| format!("it cannot be closed: {error}"))?;
        // From here on somebody else may have the directory.
        disk.set_space(1 << 30);
        let again = open(rng.u64(..))?;
        let mut all = BTreeMap::new();
        for writer in writers {
            let (key, long, told) = writer.join().map_err(|_| "it panicked".to_owned())??;
            all.insert(key, (long, told));
        }
        let read = |store: &Store| -> Result<(), Broken> {
            let keyspace = store.shared.open_keyspace("rows", &small).map_err(wrong)?;
            let view = Arc::new(View::new(store));
            let whole = Bounds::of::<&[u8]>(&..);
            let mut range = Range::new(view, keyspace, whole, Own::default());
            let found: Result<BTreeMap<Vec<u8>, Vec<u8>>, Error> =
                std::iter::from_fn(|| range.next()).collect();
            let found = found.map_err(wrong)?;
            for (key, (long, told)) in &all {
                let value = found.get(&vec![*key]);
                let number = value.map_or(0, |value| value[0]);
                let is_whole = value.is_none_or(|value| *value == vec![number; *long]);
                let is_told = number == told.done || told.perhaps && number == told.done + 1;
                must(is_whole && is_told, || {
                    format!(
                        "key {key} has value {number}, and {} were acknowledged",
                        told.done
                    )
                })?;
            }
            Ok(())
        };
        read(&again)?;
        again.shared.close().map_err(wrong)?;
        drop(again);
        drop(store);
        read(&open(rng.u64(..))?)
    })
}
