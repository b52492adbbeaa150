//! What a database is told to do between transactions: checkpoints, new log files, compactions.
//!
//! A short run does nothing but append to the log otherwise, and what a power cut can do to the rest is never tried. When
//! each begins and ends is said among the device's writes; how often it happened the database is asked itself, before
//! and after.
//!
//! Threads: shared by the clients. Who tells it something waits, while others go on.

use std::num::NonZeroU64;
use std::sync::{Mutex, PoisonError};

use landfall_databases::{DatabaseError, Maintenance, MaintenanceCount, Running};

use super::Sink;
use crate::Stop;
use crate::subject::{Hazard, Mark};

/// A running database, and what it had done when the run began.
pub(super) struct Maintained<'a> {
    running: &'a dyn Running,
    /// Transactions between two times.
    every: Option<NonZeroU64>,
    before: Vec<MaintenanceCount>,
    /// One client at a time tells it.
    telling: Mutex<()>,
}

impl<'a> Maintained<'a> {
    pub fn new(
        running: &'a dyn Running,
        every: Option<NonZeroU64>,
    ) -> Result<Maintained<'a>, DatabaseError> {
        Ok(Maintained {
            running,
            every,
            before: running.maintenance()?,
            telling: Mutex::new(()),
        })
    }

    /// Has everything done that it can be told, if it is time after this transaction.
    pub fn after(
        &self,
        transaction: u64,
        sink: &Sink<'_>,
        stop: &Stop,
    ) -> Result<(), DatabaseError> {
        let is_time = |every: NonZeroU64| transaction.is_multiple_of(every.get());
        if !self.every.is_some_and(is_time) {
            return Ok(());
        }
        let _alone = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        for told in self.before.iter().filter(|count| count.is_told) {
            tell(sink, Mark::Began(hazard(told.what)));
            self.running.maintain(told.what, stop)?;
            tell(sink, Mark::Ended(hazard(told.what)));
        }
        Ok(())
    }

    /// Says how often each has happened, as the database counts itself.
    pub fn tell_counts(&self, sink: &Sink<'_>) -> Result<(), DatabaseError> {
        for MaintenanceCount { what, times, .. } in self.running.maintenance()? {
            let before = self.before.iter().find(|count| count.what == what);
            let before = before.map_or(0, |count| count.times);
            let times = times.saturating_sub(before);
            tell(sink, Mark::Counted(hazard(what), times));
        }
        Ok(())
    }
}

fn tell(sink: &Sink<'_>, mark: Mark) {
    sink.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .tell(mark);
}

fn hazard(what: Maintenance) -> Hazard {
    match what {
        Maintenance::Checkpoint => Hazard::Checkpoint,
        Maintenance::LogRotation => Hazard::LogRotation,
        Maintenance::LogRewrite => Hazard::LogRewrite,
        Maintenance::Snapshot => Hazard::Snapshot,
        Maintenance::Compaction => Hazard::Compaction,
        Maintenance::Defragmentation => Hazard::Defragmentation,
    }
}
