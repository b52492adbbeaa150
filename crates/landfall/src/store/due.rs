//! When a checkpoint is due, and who waits for it.
//!
//! Threads: whoever commits asks for a checkpoint, and waits only where changes take more memory than they may. It is made by
//! `landfall-checkpoints`, which sleeps until it is asked; where the log has no space for a commit, by whoever commits.
//!
//! Failure: those who wait for room are told why the checkpoint failed that was to make some.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::MOST_KEY;
use super::checkpoint::Goal;
use super::groups::is_of_groups;
use super::record::OrderedWrites;
use super::shared::Shared;
use crate::environment::Environment;
use crate::log::append::Room;
use crate::{Error, Lsn};

/// Bytes that removals may take on a full disk at least: the largest of a range, and as much again.
const LEAST_REMOVALS: usize = if cfg!(test) { 16 << 10 } else { 4 * MOST_KEY };

/// Commits between two that are timed, and after which it is looked whether the log has become too long.
pub(super) const SAMPLE: u64 = 64;

/// The last checkpoint that was tried for want of space in the log.
#[derive(Default)]
pub(crate) struct RoomMade {
    /// The next record then.
    at: Option<Lsn>,
    is_made: bool,
}

/// What the thread that makes checkpoints waits for, and those who wait for it.
pub(crate) struct Work<T> {
    pub is_closing: bool,
    /// Checkpoints that were tried, and why the last one failed.
    pub tried: u64,
    pub failure: Option<Error>,
    /// Bytes that removals of keys, and of ranges, took since one was made, though there was no room.
    pub taken_by_keys: usize,
    pub taken_by_ranges: usize,
    pub threads: Vec<T>,
}

impl<E: Environment> Shared<E> {
    /// Asks for a checkpoint if one is due.
    pub fn ask_if_due(&self, lsn: u64) {
        let is_full = self.changes.load(Ordering::Relaxed) > self.enough_changes();
        let most = self.options.max_recovery_time;
        let is_long = || E::lock(&self.schedule).is_due(lsn + 1, most);
        if is_full || (lsn.is_multiple_of(SAMPLE) && is_long()) {
            self.ask();
        }
    }

    pub fn ask(&self) {
        // Who commits while one is made comes here each time.
        if !self.is_due.load(Ordering::Acquire) {
            let _work = E::lock(&self.work);
            self.is_due.store(true, Ordering::Release);
            self.due.wake_all();
        }
    }

    /// Waits until changes take no more memory than they may; why the checkpoint failed that was to make room. Where there was no space
    /// for it, or what waits belongs to what is damaged, what removes keys alone may take as much again, and ranges that once more: else
    /// nothing could ever be removed. However much there is already, since a single commit may take more than all that changes may.
    pub fn wait_for_room(&self, room: Room, writes: &OrderedWrites) -> Result<(), Error> {
        let is_full = || self.changes.load(Ordering::Relaxed) > self.limit.load(Ordering::Relaxed);
        let most = self.most_changes().max(LEAST_REMOVALS);
        let mut met_damage = 0;
        while is_full() {
            // In a process that was forked nobody makes any.
            self.log.shared.require_ours()?;
            let mut work = E::lock(&self.work);
            let tried = work.tried;
            self.is_due.store(true, Ordering::Release);
            self.due.wake_all();
            while work.tried == tried && !work.is_closing && is_full() {
                work = self.room.wait(work);
            }
            if work.is_closing {
                return Err(Error::Closed);
            }
            match work.failure.as_ref().filter(|_| work.tried != tried) {
                None => {}
                // There was room all the time, but for those that were faster than the checkpoint.
                Some(_) if !is_full() => {}
                // It may have tried a group alone that cannot be written, which nobody knew, or of which a range was removed meanwhile: now
                // others come before that one.
                Some(failure) if is_of_groups(failure) && met_damage < 2 => met_damage += 1,
                Some(failure) => {
                    let is_helped =
                        matches!(failure, Error::NoSpace { .. }) || is_of_groups(failure);
                    let failure = failure.clone();
                    let taken = match room {
                        Room::Usual => None,
                        Room::Half => Some(&mut work.taken_by_keys),
                        Room::Kept => Some(&mut work.taken_by_ranges),
                    };
                    if let Some(taken) = taken.filter(|_| is_helped) {
                        let more = taken.saturating_add(writes.memory());
                        if more <= most {
                            *taken = more;
                            return Ok(());
                        }
                    }
                    return Err(failure);
                }
            }
        }
        Ok(())
    }

    /// Commits; where the log has no space for it once more, when a checkpoint has left it segments that it needs no more.
    pub fn with_room_in_log<T>(
        self: &Arc<Self>,
        commit: impl Fn() -> Result<T, Error>,
    ) -> Result<T, Error> {
        match commit() {
            Err(Error::NoSpace { .. }) if self.makes_room_in_log() => commit(),
            done => done,
        }
    }

    /// Makes a checkpoint of all changes for a commit for which the log has no space: whether that is worth trying again, since the log may
    /// have segments that it needs no more. Where nothing was logged since one was tried for that, another one would leave no more; who
    /// comes while one is made waits for it.
    fn makes_room_in_log(self: &Arc<Self>) -> bool {
        let mut made = E::lock(&self.room_made);
        let next = self.log.next_lsn();
        if made.at != Some(next) {
            // Where something is damaged all others were written.
            let is_made = self
                .checkpoint(Goal::Everything)
                .map_or_else(|error| is_of_groups(&error), |()| true);
            *made = RoomMade {
                at: Some(next),
                is_made,
            };
        }
        made.is_made
    }

    /// Lets changes take this much memory.
    pub fn set_limit(&self, bytes: usize) {
        let _work = E::lock(&self.work);
        self.limit.store(bytes, Ordering::Relaxed);
        self.room.wake_all();
    }
}
