//! What the threads of a store do.

use std::sync::{Arc, Mutex};

use fastrand::Rng;
use shuttle::thread;

use super::super::environment::Simulated;
use super::super::scenario::lock;
use super::history::{
    Commit, Committed, Contents, History, Keyspace, Seen, Store, Writes, everything,
};
use crate::store::checkpoint::Goal;
use crate::store::iterate::Bounds;
use crate::store::removed::KeyRange;
use crate::store::transaction::Transaction;
use crate::{Error, Lsn, Policy, Protection};

const KEYS: u8 = 40;

fn key(rng: &mut Rng) -> Vec<u8> {
    let number = rng.u8(0..KEYS);
    vec![number; 1 + usize::from(number % 5) * 3]
}

/// A value that nobody else writes; few are larger than a leaf.
fn value(rng: &mut Rng) -> Vec<u8> {
    let len = match rng.u8(0..40) {
        0 => rng.usize(300..1200),
        _ => rng.usize(0..60),
    };
    let mut value = rng.u64(..).to_le_bytes().to_vec();
    value.resize(8 + len, rng.u8(..));
    value
}

fn writes(rng: &mut Rng) -> Writes {
    let count = if rng.bool() { 1 } else { rng.u8(1..6) };
    let mut writes = Writes::default();
    if rng.u8(0..16) == 0 {
        writes.ranges.push((rng.usize(0..2), range(rng)));
    }
    for _ in 0..count {
        let (keyspace, key) = (rng.usize(0..2), key(rng));
        if writes
            .keys
            .iter()
            .any(|(of, name, _)| (of, name) == (&keyspace, &key))
        {
            continue;
        }
        let value = (rng.u8(0..3) > 0).then(|| value(rng));
        writes.keys.push((keyspace, key, value));
    }
    writes
}

/// Some of the keys, or all.
pub(super) fn range(rng: &mut Rng) -> KeyRange {
    let (a, b) = (rng.u8(0..=KEYS), rng.u8(0..=KEYS));
    let high = a.max(b).max(a.min(b) + 1);
    KeyRange {
        low: vec![a.min(b)],
        high: (high <= KEYS).then(|| vec![high]),
    }
}

/// Everything that a transaction sees.
fn everything_in(
    transaction: &Transaction<Simulated>,
    keyspaces: &[Keyspace],
) -> Result<Contents, Error> {
    let mut contents = Contents::new();
    for (index, keyspace) in keyspaces.iter().enumerate() {
        let mut range = transaction.range(keyspace, Bounds::of::<&[u8]>(&..));
        let mut backwards = index > 0;
        loop {
            backwards = !backwards;
            let next = if backwards {
                range.next_back()
            } else {
                range.next()
            };
            let Some(pair) = next else { break };
            let (key, value) = pair?;
            contents.insert((index, key), value);
        }
    }
    Ok(contents)
}

/// Does one of what a program may do.
pub(super) fn act(
    store: &Store,
    keyspaces: &[Keyspace],
    policy: Policy,
    history: &Arc<Mutex<History>>,
    rng: &mut Rng,
) -> Result<(), Error> {
    let shared = &store.shared;
    let committed = |lsn: Option<Lsn>, writes: Writes, is_durable: bool| {
        let mut history = lock(history);
        if let Some(Lsn(lsn)) = lsn {
            history.commits.insert(lsn, Commit::Writes(writes));
            if is_durable {
                history.durable = history.durable.max(lsn);
            }
        }
    };
    let make_durable = |lsn: Option<Lsn>| -> Result<(), Error> {
        let Some(lsn) = lsn.filter(|_| policy == Policy::EveryCommit) else {
            return Ok(());
        };
        shared.log.commit_to(lsn)?;
        let mut history = lock(history);
        history.durable = history.durable.max(lsn.0);
        Ok(())
    };
    match rng.u8(0..20) {
        0 => {
            let next = shared.log.commit()?.0;
            let mut history = lock(history);
            history.durable = history.durable.max(next - 1);
        }
        1 | 2 => shared.checkpoint(Goal::Everything)?,
        3 => shared.ask(),
        4 | 5 => {
            let seen = everything(store, keyspaces)?;
            lock(history).seen.push(seen);
        }
        6..10 => {
            let is_serialisable = rng.bool();
            let mut transaction = Transaction::new(store, is_serialisable);
            let at = transaction.at();
            let mut reads = Seen {
                at,
                contents: Contents::new(),
                keys: Vec::new(),
                is_everything: rng.u8(0..4) == 0,
                own: Writes::default(),
            };
            if reads.is_everything {
                reads.contents = everything_in(&transaction, keyspaces)?;
            }
            for _ in 0..rng.u8(0..4) {
                let (keyspace, key) = (rng.usize(0..2), key(rng));
                thread::yield_now();
                if let Some(value) = transaction.get(&keyspaces[keyspace], &key)? {
                    reads.contents.insert((keyspace, key.clone()), value);
                }
                reads.keys.push((keyspace, key));
            }
            let writes = writes(rng);
            for (keyspace, range) in &writes.ranges {
                transaction.remove_range(keyspaces[*keyspace].id, range);
            }
            for (keyspace, key, value) in &writes.keys {
                transaction.write(keyspaces[*keyspace].id, key, value.as_deref());
            }
            if rng.u8(0..4) == 0 {
                let seen = Seen {
                    at,
                    contents: everything_in(&transaction, keyspaces)?,
                    keys: Vec::new(),
                    is_everything: true,
                    own: writes.clone(),
                };
                lock(history).seen.push(seen);
            }
            let (view, of_transaction, checks) = transaction.finish();
            let lsn = match shared.write(of_transaction, Some(&checks)) {
                Err(Error::Conflict) => return Err(Error::Conflict),
                Err(error) => {
                    lock(history).perhaps.push(Commit::Writes(writes));
                    return Err(error);
                }
                Ok(lsn) => lsn,
            };
            committed(lsn, writes, false);
            drop(view);
            if let Some(Lsn(lsn)) = lsn {
                lock(history).transactions.push(Committed {
                    at,
                    lsn,
                    is_serialisable,
                    reads,
                });
            }
            make_durable(lsn)?;
        }
        10 if !keyspaces[0].options.in_place && rng.bool() => {
            let percent = [0, 20, 50, 100, 200][rng.usize(0..5)];
            if rng.u8(0..4) == 0 {
                shared.set_buffer_auto(percent)?;
            } else {
                shared.set_buffer_percent(percent)?;
            }
        }
        10 if keyspaces[0].options.in_place && rng.bool() => {
            let any = [
                Protection::Shadow,
                Protection::Doublewrite,
                Protection::Image,
                Protection::Atomic,
                Protection::Auto,
            ];
            let one = any[rng.usize(0..any.len())];
            // This disk may not promise it.
            let options = &keyspaces[0].options;
            if shared.require_protectable(options, one).is_ok() {
                shared.set_protection(one)?;
            }
        }
        10 if rng.u8(0..6) == 0 => {
            let index = rng.usize(0..2);
            let lsn = match shared.forget_keyspace(&keyspaces[index]) {
                Err(error) => {
                    if !matches!(error, Error::NoSpace { .. } | Error::NoKeyspace) {
                        lock(history).perhaps.push(Commit::Removed(index));
                    }
                    return Err(error);
                }
                Ok(lsn) => lsn,
            };
            lock(history).commits.insert(lsn.0, Commit::Removed(index));
            shared.log.commit_to(lsn)?;
            let mut history = lock(history);
            history.durable = history.durable.max(lsn.0);
        }
        _ => {
            let writes = writes(rng);
            let lsn = match shared.write(writes.of_store(keyspaces), None) {
                Err(error) => {
                    if !matches!(error, Error::NoSpace { .. }) {
                        lock(history).perhaps.push(Commit::Writes(writes));
                    }
                    return Err(error);
                }
                Ok(lsn) => lsn,
            };
            committed(lsn, writes, false);
            make_durable(lsn)?;
        }
    }
    Ok(())
}
