//! The segments of a log: those in use, those made ahead of need, and those that can be taken again.
//!
//! Segments have consecutive *sequence* numbers, which their headers hold; files have numbers of their
//! own, since a file is used again and again. A segment is *ready* when its header is durable. It may be entered when
//! the one behind it is ready too: so the loss of a file that was written to leaves a gap, which is seen. One that was
//! just made is unwritten space: overwriting written blocks is cheaper, so zeros are written to it until somebody
//! wants to enter it.
//!
//! Only the files of the segment in use and of those behind it are kept open: a log may have more segments than a
//! process may have open files.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;

use super::format::Geometry;
use crate::environment::{Environment, FileOf};

/// A file of the log.
pub(crate) struct Segment<E: Environment> {
    pub sequence: u64,
    pub number: u64,
    /// Until the next one is entered.
    pub file: Option<Arc<FileOf<E>>>,
    /// The first record that begins in it, once it was entered.
    pub first_lsn: Option<u64>,
}

pub(crate) struct Segments<E: Environment> {
    geometry: Geometry,
    /// In order, without gaps; never none.
    all: VecDeque<Segment<E>>,
    /// Numbers of files that no segment has.
    free: Vec<u64>,
    next_number: u64,
    /// The last one that was entered.
    entered: u64,
    /// One that somebody waits to enter.
    wanted: u64,
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
    /// Make this segment ready, in this file.
    Ready {
        sequence: u64,
        number: u64,
        /// The file is there, of a segment that is not needed any more.
        is_used: bool,
    },
    /// Write zeros to this segment.
    Zero { sequence: u64, file: Arc<FileOf<E>> },
    /// Remove this file.
    Remove { number: u64 },
}

/// What is not waited for when a segment is entered: nothing, but in tests that must find it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hurry {
    /// Zeros are still being written to it.
    pub past_zeros: bool,
    /// There is none behind it.
    pub to_last: bool,
}

impl<E: Environment> Segments<E> {
    /// `all` has those in use, the last of which is `entered`, and those behind it.
    pub fn new(
        geometry: Geometry,
        all: VecDeque<Segment<E>>,
        free: Vec<u64>,
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
            wanted: 0,
            unwritten: BTreeSet::new(),
            zeroing: None,
            failure: None,
            spare: u64::from(spare),
        }
    }

    /// Nothing was ever written to those behind the one that is entered.
    pub fn are_new(&mut self) {
        self.unwritten.extend(self.entered + 1..=self.ready());
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

    fn get_mut(&mut self, sequence: u64) -> Option<&mut Segment<E>> {
        let index = sequence.checked_sub(self.first())?;
        self.all.get_mut(usize::try_from(index).ok()?)
    }

    /// The number of a segment's file.
    pub fn number(&self, sequence: u64) -> Option<u64> {
        self.get(sequence).map(|segment| segment.number)
    }

    /// The segment from which a record is to be looked for.
    pub fn with_record(&self, lsn: u64) -> u64 {
        let is_before = |segment: &Segment<E>| segment.first_lsn.is_some_and(|first| first <= lsn);
        let before = self.all.partition_point(is_before) as u64;
        self.first() + before.saturating_sub(1)
    }

    /// The file of a segment, to write the block with this next record into, if it may be entered; if not, it is
    /// wanted from now on.
    pub fn enter(&mut self, sequence: u64, lsn: u64, hurry: Hurry) -> Option<Arc<FileOf<E>>> {
        if sequence > self.entered {
            self.wanted = sequence;
            let is_zeroed = self.zeroing == Some(sequence) && !hurry.past_zeros;
            let is_last = sequence == self.ready() && !hurry.to_last;
            if sequence > self.ready() || is_last || is_zeroed {
                return None;
            }
            if let Some(before) = self.get_mut(self.entered) {
                before.file = None;
            }
            self.entered = sequence;
            self.unwritten.remove(&sequence);
        }
        let segment = self.get_mut(sequence)?;
        segment.first_lsn.get_or_insert(lsn);
        segment.file.clone()
    }

    /// Whether a whole segment may be entered behind the one that was.
    pub fn has_spare(&self) -> bool {
        self.ready() > self.entered + 1
    }

    /// Whole segments behind this one that can be entered as they are; `None`: it cannot be entered itself.
    pub fn behind(&self, sequence: u64) -> Option<u64> {
        let is_there = sequence <= self.entered || sequence < self.ready();
        is_there.then(|| self.ready().saturating_sub(sequence + 1))
    }

    /// Whether all are there that are made ahead.
    pub fn is_complete(&self) -> bool {
        self.ready() > self.entered + self.spare
    }

    /// How many can be entered without one that needs more space.
    pub fn at_hand(&self) -> u64 {
        // The last one cannot be entered. After opening the one that is entered may be yet to be made.
        self.ready().saturating_sub(self.entered + 1) + self.free.len() as u64
    }

    /// Whether all that were made ahead have been written to.
    #[cfg(test)]
    pub fn is_written_ahead(&self) -> bool {
        self.unwritten.is_empty() && self.zeroing.is_none()
    }

    /// Whether nothing is to be done before another one is entered.
    #[cfg(test)]
    pub fn is_settled(&self) -> bool {
        self.is_complete() && self.free.len() as u64 <= self.spare && self.is_written_ahead()
    }

    /// Whether zeros may go on being written to it.
    pub fn may_zero(&self, sequence: u64) -> bool {
        sequence > self.entered.max(self.wanted)
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
        while self.first() < sequence.min(self.entered) {
            if let Some(segment) = self.all.pop_front() {
                self.free.push(segment.number);
            }
        }
    }

    /// What is to be done next; zeros are only written if `may_zero` says so.
    pub fn task(&mut self, may_zero: bool) -> Option<Task<E>> {
        // One more than can be entered: the one that is behind the last of them.
        if !self.is_complete() && self.failure.is_none() {
            let used = self.free.pop();
            let number = used.unwrap_or_else(|| {
                self.next_number += 1;
                self.next_number - 1
            });
            return Some(Task::Ready {
                sequence: self.ready() + 1,
                number,
                is_used: used.is_some(),
            });
        }
        // Some are kept for the segments to come.
        if self.free.len() as u64 > self.spare
            && let Some(number) = self.free.pop()
        {
            return Some(Task::Remove { number });
        }
        if !may_zero {
            return None;
        }
        let sequence = *self.unwritten.first()?;
        let file = self.get(sequence)?.file.clone()?;
        self.zeroing = Some(sequence);
        Some(Task::Zero { sequence, file })
    }

    /// A segment is ready; `is_written`: zeros need not be written to it.
    pub fn add(
        &mut self,
        sequence: u64,
        number: u64,
        file: Arc<FileOf<E>>,
        is_written: bool,
    ) -> io::Result<()> {
        if sequence != self.ready() + 1 {
            return Err(io::Error::other("a segment is not the next one"));
        }
        self.all.push_back(Segment {
            sequence,
            number,
            file: Some(file),
            first_lsn: None,
        });
        if !is_written {
            self.unwritten.insert(sequence);
        }
        Ok(())
    }

    /// A segment could not be made ready; the file that it was to have is there to be used, if it has a number.
    pub fn fail(&mut self, error: io::Error, number: Option<u64>) {
        self.free.extend(number);
        self.failure = Some(Arc::new(error));
    }

    /// No more zeros are being written; if the segment was not entered, all of it has them.
    pub fn zeroed(&mut self, sequence: u64) {
        self.zeroing = None;
        self.unwritten.remove(&sequence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::{Storage, System};
    use crate::fuzzing::memory::Memory;

    type World = System<Memory>;

    const GEOMETRY: Geometry = Geometry {
        granule: 512,
        segment: 4096,
    };
    const PATIENT: Hurry = Hurry {
        past_zeros: false,
        to_last: false,
    };

    fn file() -> Arc<FileOf<World>> {
        Arc::new(Memory::default().create("one").unwrap())
    }

    /// Those of a new log: the first is entered, with file 1, and the second is behind it.
    fn segments() -> Segments<World> {
        let all = (1..=2).map(|number| Segment {
            sequence: number,
            number,
            file: Some(file()),
            first_lsn: (number == 1).then_some(1),
        });
        Segments::new(GEOMETRY, all.collect(), Vec::new(), 3, 1, 1)
    }

    /// What is to be done, in words.
    fn task(segments: &mut Segments<World>, may_zero: bool) -> String {
        match segments.task(may_zero) {
            None => "nothing".to_owned(),
            Some(Task::Zero { sequence, .. }) => format!("zero {sequence}"),
            Some(Task::Remove { number }) => format!("remove {number}"),
            Some(Task::Ready {
                sequence,
                number,
                is_used,
            }) => {
                let what = if is_used { "use" } else { "make" };
                format!("{what} {number} as {sequence}")
            }
        }
    }

    #[test]
    fn there_is_always_one_behind_the_one_that_can_be_entered() {
        let mut segments = segments();
        assert!(!segments.has_spare());
        assert!(segments.enter(2, 8, PATIENT).is_none(), "it is the last");
        let hurry = Hurry {
            to_last: true,
            ..PATIENT
        };
        assert!(segments.enter(2, 8, hurry).is_some());
        let mut segments = self::segments();
        assert_eq!(task(&mut segments, true), "make 3 as 3");
        segments.add(3, 3, file(), false).unwrap();
        assert!(segments.has_spare());
        assert!(segments.enter(3, 8, PATIENT).is_none());
        assert!(segments.enter(4, 8, PATIENT).is_none(), "it is not there");
        assert!(segments.enter(2, 8, PATIENT).is_some());
        assert!(!segments.has_spare());
        // The one before is closed, and is still there.
        assert!(segments.enter(1, 1, PATIENT).is_none());
        assert_eq!((segments.first(), segments.number(1)), (1, Some(1)));
        assert!(segments.enter(2, 9, PATIENT).is_some(), "again");
        assert_eq!(task(&mut segments, true), "make 4 as 4");
    }

    #[test]
    fn zeros_are_written_until_somebody_wants_to_enter() {
        let mut segments = segments();
        segments.add(3, 3, file(), false).unwrap();
        assert_eq!(task(&mut segments, false), "nothing");
        assert_eq!(task(&mut segments, true), "zero 3");
        assert!(!segments.is_written_ahead());
        assert!(segments.may_zero(3) && segments.may_zero(2) && !segments.may_zero(1));
        segments.enter(2, 8, PATIENT).unwrap();
        segments.add(4, 4, file(), true).unwrap();
        assert!(segments.may_zero(3) && !segments.may_zero(2));
        // Somebody wants it, and waits.
        assert!(segments.enter(3, 9, PATIENT).is_none());
        assert!(!segments.may_zero(3) && segments.may_zero(4));
        let hurry = Hurry {
            past_zeros: true,
            ..PATIENT
        };
        assert!(segments.enter(3, 9, hurry).is_some());
        let mut segments = self::segments();
        for number in 3..=4 {
            segments.add(number, number, file(), false).unwrap();
        }
        assert_eq!(task(&mut segments, true), "zero 3");
        segments.enter(2, 8, PATIENT).unwrap();
        assert!(segments.enter(3, 9, PATIENT).is_none());
        segments.zeroed(3);
        assert!(segments.enter(3, 9, PATIENT).is_some());
        assert_eq!(task(&mut segments, true), "make 3 as 5");
        // What is entered is no longer written ahead.
        segments.add(5, 5, file(), true).unwrap();
        segments.enter(4, 9, PATIENT).unwrap();
        assert!(segments.is_written_ahead());
    }

    #[test]
    fn what_is_not_needed_is_used_again_and_the_rest_removed() {
        let mut segments = segments();
        for number in 3..=6 {
            segments.add(number, number, file(), true).unwrap();
            segments.enter(number - 1, 10 * number, PATIENT).unwrap();
        }
        // The records begin at 1, 30, 40, 50 and 60; the last is entered, and one is behind it.
        let behind = GEOMETRY.first_block(9);
        for (lsn, needed) in [(1, 1), (29, 1), (30, 2), (45, 3), (60, 5), (99, 5)] {
            assert_eq!(segments.first_needed(lsn, behind), needed, "{lsn}");
            assert_eq!(segments.with_record(lsn), needed, "{lsn}");
        }
        // Only what is durable counts.
        let third = GEOMETRY.first_block(3);
        assert_eq!(segments.first_needed(99, third), 2);
        assert_eq!(segments.first_needed(99, third + 512), 3);
        segments.release_before(1);
        assert_eq!(segments.first(), 1);
        segments.release_before(4);
        assert_eq!((segments.first(), segments.number(3)), (4, None));
        assert_eq!(segments.number(4), Some(4));
        assert_eq!(task(&mut segments, true), "use 3 as 7");
        segments.add(7, 3, file(), true).unwrap();
        assert_eq!(task(&mut segments, true), "remove 2");
        // One is kept for the segment to come.
        assert_eq!(task(&mut segments, true), "nothing");
        segments.release_before(99);
        assert_eq!(segments.first(), 5, "where records are appended");
    }

    #[test]
    fn what_failed_is_tried_again_when_it_was_asked_for_or_there_is_space() {
        let mut segments = segments();
        let fail = |segments: &mut Segments<World>| {
            segments.fail(io::ErrorKind::StorageFull.into(), Some(7));
            assert_eq!(task(segments, true), "nothing");
        };
        fail(&mut segments);
        assert!(segments.take_failure().is_some());
        assert!(segments.take_failure().is_none(), "it is said once");
        assert_eq!(task(&mut segments, true), "use 7 as 3");
        fail(&mut segments);
        segments.release_before(1);
        assert_eq!(task(&mut segments, true), "use 7 as 3");
    }
}
