//! Which keyspaces there are: making and removing them, and how their leaves are protected.
//!
//! Each change is a record of the log and is seen in memory under the lock of those who commit, so that both have the same order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::MOST_KEY;
use super::options::KeyspaceOptions;
use super::protection::{
    Protection, ProtectionChoice, measure, promises_all_homes, require_atomic,
};
use super::record::Record;
use super::root::MOST_KEYSPACES;
use super::shared::Shared;
use super::snapshots::Committing;
use super::tree::{Keyspace, Leaves};
use crate::environment::{Environment, Storage};
use crate::log::append::Room;
use crate::{Error, Lsn};

/// The keyspaces that there are.
pub(crate) struct Keyspaces<E: Environment> {
    pub all: BTreeMap<u32, Arc<Keyspace<E>>>,
    /// The number of the next one.
    pub next: u32,
    /// What keeps leaves whole that are written at home.
    pub protection: ProtectionChoice,
    /// How many percent of what leaves take runs may take.
    pub buffer_percent: u8,
    /// The commit that made or removed the last one, or changed the protection or the buffer; 0: none has since the store was opened.
    pub changed: u64,
}

impl<E: Environment> Shared<E> {
    /// Which protection leaves have that are written at home.
    pub fn protection(&self) -> ProtectionChoice {
        E::share(&self.keyspaces).protection
    }

    /// Protects leaves like this from the next checkpoint on, and remembers it durably.
    pub fn set_protection(&self, asked: Protection) -> Result<ProtectionChoice, Error> {
        self.log.shared.require_ours()?;
        let choice = match asked {
            Protection::Auto => {
                // One at a time, in the one file that there is for it, and without what a checkpoint writes.
                let _checkpoints = E::lock(&self.checkpoints);
                measure(&self.environment)?
            }
            asked => ProtectionChoice::asked(asked),
        };
        if asked == Protection::Atomic {
            require_atomic(&self.environment, None)?;
        }
        let mut committing = E::lock(&self.committing);
        let before = E::share(&self.keyspaces).protection;
        if before == choice {
            drop(committing);
            self.require_changes_durable()?;
            return Ok(choice);
        }
        for keyspace in self.all_keyspaces() {
            self.require_protectable(&keyspace.options, choice.protection)?;
        }
        let lsn =
            self.change_keyspaces(&mut committing, &Record::Protect(choice), |keyspaces| {
                keyspaces.protection = choice;
            })?;
        drop(committing);
        self.log.commit_to(lsn)?;
        Ok(choice)
    }

    /// Refuses to protect all leaves as they are to be where that cannot be done.
    pub fn require_all_protectable(&self) -> Result<(), Error> {
        let protection = self.protection().protection;
        let keyspaces = self.all_keyspaces();
        let mut options = keyspaces.iter().map(|keyspace| &keyspace.options);
        options.try_for_each(|options| self.require_protectable(options, protection))
    }

    /// Whether what was chosen by measuring can still be done, also for keyspaces that are made later.
    pub fn is_choice_possible(&self) -> bool {
        let promised = || self.environment.storage().atomic_writes();
        self.protection().protection != Protection::Atomic
            || promised().is_ok_and(|promised| promises_all_homes(&promised))
    }

    /// Refuses a keyspace whose leaves cannot be protected like this.
    pub fn require_protectable(
        &self,
        options: &KeyspaceOptions,
        protection: Protection,
    ) -> Result<(), Error> {
        if options.in_place && protection == Protection::Atomic {
            require_atomic(&self.environment, Some(options.leaf_bytes))?;
        }
        Ok(())
    }

    /// Makes a keyspace, durably, or finds the one of this name.
    pub fn open_keyspace(
        self: &Arc<Self>,
        name: &str,
        options: &KeyspaceOptions,
    ) -> Result<Arc<Keyspace<E>>, Error> {
        let (keyspace, made) = self.with_room_in_log(|| self.find_or_make(name, options))?;
        match made {
            Some(lsn) => self.log.commit_to(lsn)?,
            None => self.require_changes_durable()?,
        }
        Ok(keyspace)
    }

    /// What is so already may not be durable yet, or never will be.
    pub fn require_changes_durable(&self) -> Result<(), Error> {
        let changed = E::share(&self.keyspaces).changed;
        match changed {
            0 => Ok(()),
            changed => self.log.commit_to(Lsn(changed)),
        }
    }

    /// The keyspace of this name, and by which commit it was made just now, if it was.
    fn find_or_make(
        &self,
        name: &str,
        options: &KeyspaceOptions,
    ) -> Result<(Arc<Keyspace<E>>, Option<Lsn>), Error> {
        options.check()?;
        if name.len() > MOST_KEY {
            return Err(Error::TooLarge {
                what: "name of a keyspace",
                bytes: name.len(),
                most: MOST_KEY,
            });
        }
        let mut committing = E::lock(&self.committing);
        let named = |keyspace: &&Arc<Keyspace<E>>| keyspace.name == name;
        let keyspaces = E::share(&self.keyspaces);
        let (found, id) = (keyspaces.all.values().find(named).cloned(), keyspaces.next);
        drop(keyspaces);
        if let Some(found) = found {
            return Ok((found, None));
        }
        if id >= MOST_KEYSPACES {
            return Err(Error::Options(
                "the store has made too many keyspaces".to_owned(),
            ));
        }
        self.require_protectable(options, self.protection().protection)?;
        let record = Record::Make {
            keyspace: id,
            name,
            options: options.clone(),
        };
        let keyspace = Keyspace::empty(id, name.to_owned(), options.clone());
        let lsn = self.change_keyspaces(&mut committing, &record, |keyspaces| {
            keyspaces.all.insert(id, keyspace.clone());
            keyspaces.next = id + 1;
        })?;
        Ok((keyspace, Some(lsn)))
    }

    /// Changes what is known of keyspaces by a commit, which is not durable yet.
    pub(super) fn change_keyspaces(
        &self,
        committing: &mut Committing,
        record: &Record<'_>,
        change: impl FnOnce(&mut Keyspaces<E>),
    ) -> Result<Lsn, Error> {
        let room = match record {
            Record::Make { .. } => Room::Usual,
            // Few, small, and what is set when a store is opened is among them.
            _ => Room::Kept,
        };
        let lsn = self.log.append_in(room, &record.encode())?;
        let mut keyspaces = E::exclude(&self.keyspaces);
        change(&mut keyspaces);
        keyspaces.changed = lsn.0;
        committing.visible = lsn.0;
        Ok(lsn)
    }

    /// Removes a keyspace and everything in it, durably.
    pub fn remove_keyspace(self: &Arc<Self>, keyspace: &Keyspace<E>) -> Result<(), Error> {
        let lsn = self.with_room_in_log(|| self.forget_keyspace(keyspace))?;
        self.log.commit_to(lsn)
    }

    /// Removes a keyspace and everything in it, by a commit that is not durable yet.
    pub fn forget_keyspace(&self, keyspace: &Keyspace<E>) -> Result<Lsn, Error> {
        let mut committing = E::lock(&self.committing);
        if keyspace.is_removed.load(Ordering::Acquire) {
            return Err(Error::NoKeyspace);
        }
        let record = Record::Remove {
            keyspace: keyspace.id,
        };
        let mut removed = None;
        let lsn = self.change_keyspaces(&mut committing, &record, |keyspaces| {
            removed = keyspaces.all.remove(&keyspace.id);
        })?;
        if let Some(removed) = removed {
            self.empty(&removed);
        }
        Ok(lsn)
    }

    /// Forgets what a keyspace that was removed has in memory, and where it has something on the disk.
    fn empty(&self, removed: &Keyspace<E>) {
        removed.is_removed.store(true, Ordering::Release);
        let groups = E::share(&removed.groups);
        for place in groups.iter() {
            let mut group = E::exclude(&place.group);
            // What is frozen is in the hands of a checkpoint, which counts it.
            let active = std::mem::take(&mut group.active);
            self.changes.fetch_sub(active.bytes, Ordering::Relaxed);
            // Whoever still has the keyspace keeps none of its space.
            (group.leaves, group.runs) = (Leaves::new(Vec::new()), Arc::default());
            group.page = None;
        }
    }
}
