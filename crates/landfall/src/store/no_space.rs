//! Where there is no space for a checkpoint: what takes less, and bytes of the data file that are kept for what frees more than it takes.
//!
//! First what waits in memory alone is written, then half as many groups, and so on: what they had is free for the next ones. Where there
//! is no space for one group, what is kept is let go: for a root without the keyspaces that were removed, and then for groups of which only
//! removals wait. It is kept again as soon as that much is free. So rows that are given never take what removals need.
//!
//! Where the log has no space for images of leaves, they are written elsewhere; where there is no space for that either, images of fewer
//! groups are tried.

use super::checkpoint::{Checkpoints, Durable, Held};
use super::choose::Effort;
use super::control::ControlFile;
use super::groups::{Chosen, Scope, Writing};
use super::protection::Protection;
use super::runs::bytes_of;
use super::shared::Shared;
use crate::Error;
use crate::environment::{Environment, planted};

/// Bytes that are kept for groups that free more than they take, besides what the root takes and the largest of them.
#[cfg(not(test))]
const SPARE: u64 = 64 << 10;
#[cfg(test)]
const SPARE: u64 = 4 << 10;

impl<E: Environment> Durable<E> {
    /// Bytes that are to be kept for a checkpoint that frees more than it takes: it writes a root, and little else.
    pub fn spare_bytes(&self, granule: u64) -> u64 {
        let root = self.root.as_ref();
        // Until the root counts, the old leaves of a group are taken as well, and every one of them may lose a key.
        let group = |(_, leaves, runs): &Held<E>| leaves.bytes + bytes_of(runs);
        let largest = self.groups.iter().map(group).max().unwrap_or(0);
        4 * root.map_or(0, |root| root.pointer.extent(granule)) + largest + SPARE
    }
}

impl<E: Environment> Shared<E> {
    /// What is tried where there was no space for these groups; `None`: there is nothing that takes less. Fewer groups leave what they
    /// took before to those that come next.
    pub(super) fn less(
        &self,
        checkpoints: &mut Checkpoints<E>,
        writing: &Writing<E>,
    ) -> Option<Effort> {
        let percent = self.buffer_percent();
        let has_choice = |chosen: &Chosen<E>| chosen.has_choice(percent);
        let effort = writing.order.effort;
        let is_usual = matches!(effort, Effort::Usual { .. });
        if is_usual && writing.chosen.iter().any(has_choice) {
            return Some(Effort::Least);
        }
        let groups = writing.chosen.len();
        match writing.order.scope {
            Scope::Homes => None,
            Scope::Everything if groups > 1 => {
                E::lock(&self.homes).try_images();
                checkpoints.most_groups = groups / 2;
                Some(effort)
            }
            Scope::Everything => match effort {
                Effort::Usual { .. } | Effort::Least if self.lacks_change(checkpoints) => {
                    Some(Effort::Keyspaces)
                }
                Effort::Usual { .. } | Effort::Least => Some(Effort::Removals),
                Effort::Keyspaces => Some(Effort::Removals),
                Effort::Removals => None,
            },
        }
    }

    /// Whether it was for images that there was no space: what is written elsewhere needs none.
    pub(super) fn lacks_images(&self, writing: &Writing<E>) -> bool {
        writing.order.protection == Protection::Image && E::lock(&self.homes).lacks_images()
    }

    /// Whether the last root is without the last change of keyspaces.
    pub(super) fn lacks_change(&self, checkpoints: &Checkpoints<E>) -> bool {
        E::share(&self.keyspaces).changed >= checkpoints.end
    }

    /// Makes the data file of a store that has none yet, with what is kept, and keeps space for the control file: before the log can take
    /// all that there is.
    pub(super) fn make_room_for_removals(&self) -> Result<(), Error> {
        if self.data.get().is_some() {
            return Ok(());
        }
        let mut checkpoints = E::lock(&self.checkpoints);
        let made = self.make_data_file(&mut checkpoints.data).and_then(|()| {
            self.keep_spare(&checkpoints);
            ControlFile::draft(&self.environment)
        });
        match made {
            Ok(draft) => checkpoints.draft = Some(draft),
            // It opens all the same.
            Err(Error::NoSpace { .. }) => {}
            Err(other) => return Err(other),
        }
        Ok(())
    }

    /// Keeps as many bytes as a checkpoint takes that frees more; on a full disk as soon as they are free.
    pub fn keep_spare(&self, checkpoints: &Checkpoints<E>) {
        let needed = checkpoints.durable.spare_bytes(self.granule);
        let is_enough = (needed..=4 * needed).contains(&self.space.kept());
        if is_enough || planted!(self.environment, SpareForAll) {
            return;
        }
        // The root grows with the tree, and so do groups.
        let bytes = needed + (needed / 4).next_multiple_of(self.granule);
        while !self.space.keep(bytes) {
            if self.grow(bytes).is_err() {
                self.space.keep_pieces(bytes);
                return;
            }
        }
    }

    /// Whether another checkpoint can be made at all.
    pub(super) fn may_be_tried_again(&self, checkpoints: &Checkpoints<E>) -> bool {
        checkpoints.failure.is_none() && E::lock(&self.homes).failure().is_none()
    }
}
