//! Commits of the log that are in no checkpoint are applied again, while the log is examined.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::block::Block;
use super::changes::Version;
use super::record::{Record, WriteRef};
use super::restart::Loaded;
use super::tree::{Keyspace, group_of};
use crate::environment::Environment;
use crate::log::batch_assembler::{BatchAssembler, Place};
use crate::log::examine::Visited;
use crate::{Error, Lsn};

/// Bytes of writes that are sorted together.
const SORTED: usize = 32 << 20;

/// Applies the records of the log that are in no checkpoint, as it is examined.
pub(super) struct Replay<'a, E: Environment> {
    assembler: BatchAssembler,
    loaded: &'a mut Loaded<E>,
    /// Writes that are not applied yet, by keyspace.
    waiting: BTreeMap<u32, Block>,
    /// Bytes of their records.
    bytes: usize,
}

impl<'a, E: Environment> Replay<'a, E> {
    pub fn new(loaded: &'a mut Loaded<E>) -> Replay<'a, E> {
        Replay {
            assembler: BatchAssembler::new(),
            loaded,
            waiting: BTreeMap::new(),
            bytes: 0,
        }
    }

    pub fn take(&mut self, visited: &Visited<'_>) -> Result<(), Error> {
        let entered = self.assembler.enter(visited.header, visited.payload.len());
        entered.map_err(Error::broken)?;
        while let Some((lsn, place)) = self
            .assembler
            .next(visited.payload)
            .map_err(Error::broken)?
        {
            if lsn < self.loaded.first {
                continue;
            }
            let bytes = match place {
                Place::Payload(range) => &visited.payload[range],
                Place::Kept(range) => self.assembler.kept(range),
            };
            let wrong = |what: &str| Error::Command {
                lsn: Lsn(lsn),
                what: what.to_owned(),
            };
            let record = Record::decode(bytes);
            let record = record.ok_or_else(|| wrong("it is no record of a store"))?;
            self.loaded.commits += 1;
            let keyspaces = &mut self.loaded.keyspaces;
            match record {
                Record::Writes(writes) => {
                    for WriteRef {
                        keyspace,
                        key,
                        value,
                    } in writes
                    {
                        // One that was there was removed later.
                        if keyspace >= keyspaces.next {
                            return Err(wrong("its keyspace was never made"));
                        }
                        if keyspaces.all.contains_key(&keyspace) {
                            let waiting = self.waiting.entry(keyspace).or_default();
                            waiting.push(key, Version { lsn, value });
                        }
                    }
                    self.bytes += bytes.len();
                }
                Record::Make {
                    keyspace,
                    name,
                    options,
                } => {
                    // Or it is in the root, which is newer.
                    if keyspace >= keyspaces.next {
                        let made = Keyspace::empty(keyspace, name.to_owned(), options);
                        keyspaces.all.insert(keyspace, made);
                        keyspaces.next = keyspace + 1;
                    }
                }
                Record::Remove { keyspace } => {
                    self.waiting.remove(&keyspace);
                    if let Some(removed) = keyspaces.all.remove(&keyspace) {
                        let groups = E::share(&removed.groups);
                        let bytes = groups
                            .iter()
                            .map(|place| E::share(&place.group).active.bytes);
                        self.loaded.changes -= bytes.sum::<usize>();
                    }
                }
            }
            if self.bytes > SORTED {
                self.apply();
            }
        }
        Ok(())
    }

    /// Applies what waits.
    pub fn apply(&mut self) {
        self.bytes = 0;
        for (keyspace, written) in std::mem::take(&mut self.waiting) {
            // Whose keyspace is removed goes with it.
            if let Some(keyspace) = self.loaded.keyspaces.all.get(&keyspace).cloned() {
                self.loaded.apply(&keyspace, written);
            }
        }
    }
}

impl<E: Environment> Loaded<E> {
    /// Applies what was written to a keyspace, in the order of keys, so that neighbours are changed one after another.
    fn apply(&mut self, keyspace: &Keyspace<E>, mut written: Block) {
        written.sort();
        let groups = E::share(&keyspace.groups);
        for (key, versions) in written.range(Bound::Unbounded, Bound::Unbounded) {
            let mut group = E::exclude(&groups[group_of(&groups, key)].group);
            let before = group.active.bytes;
            // Nobody reads as of a commit before the last.
            let newest = versions.newest_first().next();
            if let Some(version) = newest.filter(|version| version.lsn >= group.watermark) {
                group.active.add(key, version, &[]);
            }
            self.changes = self.changes + group.active.bytes - before;
        }
    }
}
