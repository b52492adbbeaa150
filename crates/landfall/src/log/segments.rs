//! The segments of a log: those in use, those made ahead of need, and those that can be taken again.
//!
//! Segments have consecutive *sequence* numbers, which their headers hold; files have numbers of their
//! own, since a file is used again and again. A segment is *ready* when its header is durable; then it may
//! be entered. One that was just made is unwritten space: overwriting written blocks is cheaper, so zeros
//! are written to it as long as nobody has entered it.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;

use super::format::Geometry;
use crate::environment::Environment;

/// A file of the log.
pub(crate) struct Segment<E: Environment> {
    pub sequence: u64,
    pub number: u64,
    pub file: Arc<E::File>,
    /// The first record that begins in it, once it was entered.
    pub first_lsn: Option<u64>,
}

/// A file that no segment has.
pub(crate) struct Free<E: Environment> {
    pub number: u64,
    pub file: Arc<E::File>,
}

pub(crate) struct Segments<E: Environment> {
    geometry: Geometry,
    /// In order, without gaps; never none.
    all: VecDeque<Segment<E>>,
    free: Vec<Free<E>>,
    next_number: u64,
    /// The last one that was entered.
    entered: u64,
    /// Those that zeros should still be written to.
    unwritten: BTreeSet<u64>,
    /// The one that zeros are being written to.
    zeroing: Option<u64>,
    /// Why none could be made.
    failure: Option<Arc<io::Error>>,
    spare: u64,
}

/// What is to be done for the segments, without any lock.
pub(crate) enum Task<E: Environment> {
    /// Make this segment ready, in this file if there is one to be used again.
    Ready {
        sequence: u64,
        number: u64,
        used: Option<Arc<E::File>>,
    },
    /// Write zeros to this segment.
    Zero { sequence: u64, file: Arc<E::File> },
    /// Remove this file.
    Remove { number: u64 },
}

impl<E: Environment> Segments<E> {
    /// `all` has those in use, the last of which is `entered`, and spare ones behind it.
    pub fn new(
        geometry: Geometry,
        all: VecDeque<Segment<E>>,
        free: Vec<Free<E>>,
        next_number: u64,
        entered: u64,
        spare: u32,
    ) -> Segments<E> {
        Segments {
            geometry,
            all,
            free,
            next_number,
            entered,
            unwritten: BTreeSet::new(),
            zeroing: None,
            failure: None,
            spare: u64::from(spare),
        }
    }

    /// The first of them.
    pub fn first(&self) -> u64 {
        self.all.front().map_or(1, |segment| segment.sequence)
    }

    /// The last one that is ready.
    fn ready(&self) -> u64 {
        self.first() + self.all.len() as u64 - 1
    }

    fn get(&self, sequence: u64) -> Option<&Segment<E>> {
        let index = sequence.checked_sub(self.first())?;
        self.all.get(usize::try_from(index).ok()?)
    }

    pub fn file(&self, sequence: u64) -> Option<Arc<E::File>> {
        self.get(sequence).map(|segment| segment.file.clone())
    }

    /// The number of a segment's file.
    pub fn number(&self, sequence: u64) -> Option<u64> {
        self.get(sequence).map(|segment| segment.number)
    }

    /// The segment from which a record is to be looked for.
    pub fn with_record(&self, lsn: u64) -> u64 {
        let begun = self
            .all
            .iter()
            .filter_map(|segment| Some((segment.sequence, segment.first_lsn?)));
        let mut before = begun.filter(|(_, first)| *first <= lsn);
        before
            .next_back()
            .map_or(self.first(), |(sequence, _)| sequence)
    }

    /// The file of a segment, to write the block with this next record into, if it may be entered.
    pub fn enter(&mut self, sequence: u64, lsn: u64, heedless: bool) -> Option<Arc<E::File>> {
        if sequence > self.ready() || (self.zeroing == Some(sequence) && !heedless) {
            return None;
        }
        if sequence > self.entered {
            self.entered = sequence;
            self.unwritten.remove(&sequence);
        }
        let index = usize::try_from(sequence - self.first()).ok()?;
        let segment = self.all.get_mut(index)?;
        segment.first_lsn.get_or_insert(lsn);
        Some(segment.file.clone())
    }

    /// Whether a whole segment is ready behind the one that was entered.
    pub fn has_spare(&self) -> bool {
        self.ready() > self.entered
    }

    /// Whether zeros may go on being written to it.
    pub fn may_zero(&self, sequence: u64) -> bool {
        sequence > self.entered
    }

    /// Why none could be made, which is said once: then it is tried again.
    pub fn take_failure(&mut self) -> Option<Arc<io::Error>> {
        self.failure.take()
    }

    /// The segment and the record before which nothing is needed, if all records before `lsn` are not;
    /// only what is durable up to `durable` counts.
    pub fn first_needed(&self, lsn: u64, durable: u64) -> u64 {
        let mut needed = self.first();
        for segment in self.all.iter().skip(1) {
            let is_durable = self.geometry.first_block(segment.sequence) < durable;
            match segment.first_lsn {
                Some(first) if first <= lsn && is_durable => needed = segment.sequence,
                _ => break,
            }
        }
        needed
    }

    /// Gives the segments before this one to others.
    pub fn release_before(&mut self, sequence: u64) {
        // There may be space now.
        self.failure = None;
        while self.first() < sequence && self.all.len() > 1 {
            if let Some(segment) = self.all.pop_front() {
                self.free.push(Free {
                    number: segment.number,
                    file: segment.file,
                });
            }
        }
    }

    /// What is to be done next; zeros are only written if `may_zero` says so.
    pub fn task(&mut self, may_zero: bool) -> Option<Task<E>> {
        if self.ready() < self.entered + self.spare && self.failure.is_none() {
            let sequence = self.ready() + 1;
            let used = self.free.pop();
            let number = match &used {
                Some(free) => free.number,
                None => {
                    self.next_number += 1;
                    self.next_number - 1
                }
            };
            return Some(Task::Ready {
                sequence,
                number,
                used: used.map(|free| free.file),
            });
        }
        // Some are kept for the segments to come.
        if self.free.len() as u64 > self.spare
            && let Some(free) = self.free.pop()
        {
            return Some(Task::Remove {
                number: free.number,
            });
        }
        if !may_zero {
            return None;
        }
        let sequence = *self.unwritten.first()?;
        let file = self.file(sequence)?;
        self.zeroing = Some(sequence);
        Some(Task::Zero { sequence, file })
    }

    /// A segment is ready; `is_written`: zeros need not be written to it.
    pub fn add(&mut self, sequence: u64, number: u64, file: Arc<E::File>, is_written: bool) {
        self.all.push_back(Segment {
            sequence,
            number,
            file,
            first_lsn: None,
        });
        if !is_written {
            self.unwritten.insert(sequence);
        }
    }

    /// A segment could not be made ready.
    pub fn fail(&mut self, error: io::Error) {
        self.failure = Some(Arc::new(error));
    }

    /// No more zeros are being written; if the segment was not entered, all of it has them.
    pub fn zeroed(&mut self, sequence: u64) {
        self.zeroing = None;
        self.unwritten.remove(&sequence);
    }
}
