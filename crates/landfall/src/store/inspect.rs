//! A store looked at from outside, without changing anything.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use super::control::Control;
use super::data_file::DataFile;
use super::iterate::{Bounds, runs_in};
use super::leaf::Leaf;
use super::options::{KeyspaceOptions, StoreOptions};
use super::page::{self, Pointer};
use super::piece::{Most, Piece, overlay};
use super::protection::ProtectionChoice;
use super::restart::{Found, read};
use super::runs::expected::{ExpectedWrites, Rows};
use super::runs::{Reader, bytes_of};
use super::shared::most_changes;
use super::tree::{Group, Keyspace, Page};
use super::verify::{DamagedLeaf, StoreVerification, verify};
use crate::environment::{Environment, read_only_machine};
use crate::log::directory::Directory;
use crate::log::format::{Kind, Shutdown};
use crate::{Error, Lsn};

/// A store as it lies in its directory.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoreInspection {
    /// The number of the last checkpoint; 0: there is none.
    pub checkpoint: u64,
    /// Its keyspaces.
    pub keyspaces: Vec<KeyspaceInspection>,
    /// What keeps leaves whole in those that are in place.
    pub protection: ProtectionChoice,
    /// How many percent of what leaves take runs of changes may take.
    pub buffer_percent: u8,
    /// Leaves that a power cut has torn, or the disk cannot read, and that are restored from their copies when the store is opened.
    pub torn_leaves: u64,
    /// Bytes of the data file.
    pub file_bytes: u64,
    /// Bytes of it that nothing needs.
    pub free_bytes: u64,
    /// The first commit that is in the log.
    pub first_lsn: Lsn,
    /// The next commit.
    pub next_lsn: Lsn,
    /// Commits of the log that are not in the checkpoint, or not in all of it.
    pub commits: u64,
    /// Bytes of memory that their changes take.
    pub waiting_bytes: u64,
    /// Whether it was closed.
    pub is_closed: bool,
    rows: Option<Rows>,
}

/// A keyspace as it lies there.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KeyspaceInspection {
    /// Its name.
    pub name: String,
    /// What it was made with.
    pub options: KeyspaceOptions,
    /// Groups of leaves.
    pub groups: u64,
    /// Leaves.
    pub leaves: u64,
    /// Bytes of their pages.
    pub leaf_bytes: u64,
    /// Runs of changes that were not merged into leaves yet.
    pub runs: u64,
    /// Bytes that they take.
    pub run_bytes: u64,
}

impl StoreInspection {
    /// Reads where everything is, the log, and up to 64 leaves, evenly spread. Nothing is changed.
    ///
    /// Returns what [`Store::open`](crate::Store::open) would return of a damaged store, and [`Error::Locked`] if it is
    /// open elsewhere.
    pub fn read(directory: impl AsRef<Path>) -> Result<StoreInspection, Error> {
        Ok(Opened::new(&read_only_machine(directory.as_ref()))?.inspection())
    }

    /// The same, and reads every leaf.
    pub fn verify(
        directory: impl AsRef<Path>,
    ) -> Result<(StoreInspection, StoreVerification), Error> {
        let opened = Opened::new(&read_only_machine(directory.as_ref()))?;
        Ok((opened.inspection(), opened.verify()))
    }

    /// The same as [`read`](StoreInspection::read), and calls `visit` with the name of a keyspace, each key and its value. Passes
    /// over leaves that are damaged, or cannot be read, and returns them: of their keys only what was changed since the last checkpoint
    /// is visited.
    pub fn dump(
        directory: impl AsRef<Path>,
        mut visit: impl FnMut(&str, &[u8], &[u8]),
    ) -> Result<(StoreInspection, Vec<DamagedLeaf>), Error> {
        let opened = Opened::new(&read_only_machine(directory.as_ref()))?;
        let mut damage = Vec::new();
        for keyspace in opened.keyspaces() {
            opened.pairs(&keyspace, &mut damage, &mut |key, value| {
                visit(&keyspace.name, key, value);
            });
        }
        Ok((opened.inspection(), damage))
    }

    /// What is written into leaves and runs for each byte that is updated at random, by a formula, if the store is opened with so
    /// much memory ([`StoreOptions::memory_bytes`]). As [`Store::expected_writes`](crate::Store::expected_writes).
    pub fn expected_writes(&self, memory_bytes: usize) -> Option<ExpectedWrites> {
        let most_changes = most_changes(memory_bytes);
        self.rows?.expected(most_changes, self.buffer_percent)
    }
}

/// A store that was read, in a directory that nobody else has meanwhile.
pub(crate) struct Opened<E: Environment> {
    found: Found<E>,
    first_lsn: u64,
    is_closed: bool,
    _directory: Directory<E>,
}

impl<E: Environment> Opened<E> {
    pub fn new(environment: &E) -> Result<Opened<E>, Error> {
        let directory = Directory::lock(environment)?;
        let record = *directory.record().ok_or(Error::NoLog)?;
        record.require_kind(Kind::Store)?;
        let found = read(
            environment,
            &directory,
            StoreOptions::default().memory_bytes,
        )?;
        Ok(Opened {
            found,
            first_lsn: record.first_lsn,
            is_closed: record.shutdown == Shutdown::Closed,
            _directory: directory,
        })
    }

    pub fn keyspaces(&self) -> Vec<Arc<Keyspace<E>>> {
        let all = self.found.loaded.keyspaces.all.values();
        all.cloned().collect()
    }

    /// Reads every leaf.
    pub fn verify(&self) -> StoreVerification {
        let data = self.found.data.as_ref();
        verify(&self.keyspaces(), data, self, &mut |page| {
            self.leaf_of(page)
        })
    }

    fn file(&self) -> Result<(&DataFile<E>, &Control), Error> {
        match (&self.found.data, &self.found.control) {
            (Some(data), Some(control)) => Ok((data, control)),
            // Without them there are no leaves.
            _ => Err(Error::Closed),
        }
    }

    fn leaf_of(&self, page: &Page<E>) -> Result<Leaf, Error> {
        let (data, control) = self.file()?;
        let leaf = data.leaf(page.pointer, control, self.found.examined.end.next_lsn);
        leaf.map_err(|error| data.damaged(page.pointer, error))
    }

    pub fn inspection(&self) -> StoreInspection {
        let loaded = &self.found.loaded;
        let keyspaces = self.keyspaces();
        let keyspace = |keyspace: &Arc<Keyspace<E>>| {
            let mut found = KeyspaceInspection {
                name: keyspace.name.clone(),
                options: keyspace.options.clone(),
                groups: 0,
                leaves: 0,
                leaf_bytes: 0,
                runs: 0,
                run_bytes: 0,
            };
            for place in E::share(&keyspace.groups).iter() {
                let group = E::share(&place.group);
                found.groups += 1;
                found.leaves += group.leaves.len() as u64;
                let bytes = group.leaves.iter();
                let bytes = bytes.map(|slot| u64::from(slot.page.pointer.length));
                found.leaf_bytes += bytes.sum::<u64>();
                found.runs += group.runs.len() as u64;
                found.run_bytes += bytes_of(&group.runs);
            }
            found
        };
        StoreInspection {
            checkpoint: self.found.restart.checkpoint,
            keyspaces: keyspaces.iter().map(keyspace).collect(),
            protection: loaded.keyspaces.protection,
            buffer_percent: loaded.keyspaces.buffer_percent,
            torn_leaves: self.found.restart.restored,
            file_bytes: loaded.space.end(),
            free_bytes: loaded.space.free_bytes(),
            first_lsn: Lsn(self.first_lsn),
            next_lsn: Lsn(self.found.examined.end.next_lsn),
            commits: loaded.commits,
            waiting_bytes: loaded.changes as u64,
            is_closed: self.is_closed,
            rows: Rows::of(&keyspaces, |page| self.leaf_of(page)),
        }
    }

    /// Every key of a keyspace and its value, in the order of keys, but for those in leaves that are damaged, or cannot be read.
    pub fn pairs(
        &self,
        keyspace: &Keyspace<E>,
        damage: &mut Vec<DamagedLeaf>,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) {
        let groups = E::share(&keyspace.groups);
        for (place_of_group, place) in groups.iter().enumerate() {
            let group = E::share(&place.group);
            let low_of_group = (place_of_group > 0).then_some(&*place.low);
            let next_group = groups.get(place_of_group + 1).map(|next| &*next.low);
            for index in 0..group.leaves.len().max(1) {
                let slot = group.leaves.get(index);
                let next = group.leaves.get(index + 1).map(|next| &*next.low);
                let low = match slot {
                    Some(slot) if index > 0 => Some(&*slot.low),
                    _ => low_of_group,
                };
                let from = low.map_or(Bound::Unbounded, Bound::Included);
                let to = next.or(next_group);
                let to = to.map_or(Bound::Unbounded, Bound::Excluded);
                let owned = |bound: Bound<&[u8]>| bound.map(<[u8]>::to_vec);
                let parts = parts_of(
                    &group,
                    Bounds {
                        from: owned(from),
                        to: owned(to),
                    },
                );
                if parts.iter().all(|part| part.is_removed) {
                    // Whatever is on the disk, nobody sees it.
                    for part in &parts {
                        pairs_in(&group, part, None, &[], visit);
                    }
                    continue;
                }
                let mut note = |offset, error| {
                    damage.push(DamagedLeaf {
                        keyspace: keyspace.name.clone(),
                        keys: (owned(from), owned(to)),
                        offset,
                        error,
                    });
                };
                let mut runs = Vec::new();
                let mut is_known = true;
                for run in group.runs.iter() {
                    match run.part(self, (from, to), Most::ALL, false) {
                        Ok(part) => runs.push(part.blocks),
                        // What is older may not count any more.
                        Err(error) => {
                            let offset = match error {
                                Error::Corrupt { offset, .. } => offset,
                                _ => run.entry.index.offset,
                            };
                            note(offset, error);
                            is_known = false;
                            break;
                        }
                    }
                }
                let slot = slot.filter(|_| is_known);
                let leaf = match slot.map(|slot| (slot, self.leaf_of(&slot.page))) {
                    Some((slot, Err(error))) => {
                        note(slot.page.pointer.offset, error);
                        None
                    }
                    Some((_, Ok(leaf))) => Some(Arc::new(leaf)),
                    None => None,
                };
                for part in &parts {
                    pairs_in(&group, part, leaf.as_ref(), &runs, visit);
                }
            }
        }
    }
}

/// Keys that all were removed with a range, or none.
struct Part {
    keys: Bounds,
    is_removed: bool,
}

/// Cuts keys of a group where ranges of it begin and end that were removed since its leaves were written.
fn parts_of<E: Environment>(group: &Group<E>, mut rest: Bounds) -> Vec<Part> {
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let mut keys = rest.clone();
        let is_removed = group.cut_at_removed(&mut keys, u64::MAX, false) > 0;
        rest.take(keys.clone(), false);
        parts.push(Part { keys, is_removed });
    }
    parts
}

/// Visits what keys have in memory, in blocks of runs and in a leaf; of removed ones what they were given since.
fn pairs_in<E: Environment>(
    group: &Group<E>,
    part: &Part,
    leaf: Option<&Arc<Leaf>>,
    runs: &[Vec<Arc<Leaf>>],
    visit: &mut dyn FnMut(&[u8], &[u8]),
) {
    let (leaf, runs) = if part.is_removed {
        (None, &[][..])
    } else {
        (leaf, runs)
    };
    let keys = part.keys.borrow();
    let changes = group.changes_in(keys, u64::MAX).into_iter();
    let changes = overlay(runs_in(runs, keys, u64::MAX), changes);
    for (key, value) in Piece::new(leaf.cloned(), keys, u64::MAX, changes) {
        visit(&key, &value);
    }
}

impl<E: Environment> Reader<E> for Opened<E> {
    fn granule(&self) -> u64 {
        let control = self.found.control.as_ref();
        control.map_or(1, |control| control.granule.into())
    }

    fn block(&self, page: &Arc<Page<E>>) -> Result<Arc<Leaf>, Error> {
        if let Some(leaf) = page.cached() {
            return Ok(leaf);
        }
        self.leaf_of(page).map(Arc::new)
    }

    fn index(&self, pointer: Pointer) -> Result<Vec<u8>, Error> {
        let (data, control) = self.file()?;
        let read = data.read(pointer, page::Kind::Run, control);
        Ok(read.map_err(|error| data.damaged(pointer, error))?.0)
    }

    fn corrupt(&self, pointer: Pointer, what: &str) -> Error {
        match self.file() {
            Ok((data, _)) => data.corrupt(pointer, what),
            Err(error) => error,
        }
    }
}
