//! What a log has: everything that is needed is read, and nothing is changed.
//!
//! The blocks are followed from the first segment that is needed to where the chain ends. That is the end of the log,
//! unless something promises more: each block, each header of a segment and the control record say up to where
//! everything was durable when they were written. If one of them promises what is behind the end, then that was
//! durable and is damaged. Otherwise what is missing was never acknowledged, and is cut off.
//!
//! Behind the end no more is looked at than can have been in flight, and the first block of each segment. A log that was
//! closed cleanly ends where its control record says.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use super::batch_tracker::{BatchTracker, frame_at};
use super::control::corrupt as corrupt_control;
use super::files::Files;
use super::format::{BlockHeader, Control, Geometry, Shutdown};
use super::scan::{OpenSegment, Place, READ_AHEAD, Scanner};
use crate::Error;
use crate::environment::{Environment, FileOf, planted};

/// Bytes behind the end of a log that are read at once.
const WINDOW_READ: u64 = 64 << 10;

/// Where a log ends.
#[derive(Debug)]
pub(crate) struct End {
    /// Where the next block goes.
    pub place: Place,
    /// LSN of the next record.
    pub next_lsn: u64,
    /// The first record that begins in each segment, by its sequence.
    pub first_lsns: BTreeMap<u64, u64>,
    /// The first block that nothing promised to be durable, or the end.
    pub unpromised: Place,
    /// Headers of the last epoch behind the end, where it was looked.
    pub cut_off: u64,
    /// Where headers stand of blocks that would follow, and are not whole.
    pub torn: Vec<u64>,
}

/// A block that was read, for who wants to see them all.
pub(crate) struct Visited<'a> {
    pub header: &'a BlockHeader,
    pub payload: &'a [u8],
    pub geometry: Geometry,
    files: &'a Files,
}

impl Visited<'_> {
    /// The name of the file that it is in.
    pub fn file_name(&self) -> String {
        let sequence = self.geometry.sequence(self.header.position);
        self.files.name(sequence).unwrap_or_default()
    }
}

/// Sees every block that counts, in their order.
pub(crate) type Visit<'a> = dyn FnMut(Visited<'_>) -> Result<(), Error> + 'a;

pub(crate) fn examine<E: Environment>(
    environment: &E,
    geometry: Geometry,
    control: &Control,
    files: &Files,
    visit: &mut Visit<'_>,
) -> Result<End, Error> {
    let mut scanner = Scanner::new(
        environment,
        geometry,
        control.log,
        control.epoch,
        Place::at(geometry.first_block(control.first_segment)),
    );
    scanner.read_on();
    let mut examination = Examination {
        log: LogFiles {
            environment,
            geometry,
            files,
        },
        control,
        scanner,
        tracker: BatchTracker::new(),
        first_lsns: BTreeMap::new(),
        promised: 0,
        unpromised: VecDeque::new(),
        cut_off: 0,
        torn: Vec::new(),
    };
    examination.follow(visit)?;
    examination.look_behind()?;
    examination.end()
}

/// Where blocks are found.
struct LogFiles<'a, E> {
    environment: &'a E,
    geometry: Geometry,
    files: &'a Files,
}

impl<E> Clone for LogFiles<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for LogFiles<'_, E> {}

impl<'a, E: Environment> LogFiles<'a, E> {
    fn opener(self) -> impl FnMut(u64) -> io::Result<Option<FileOf<E>>> + 'a {
        move |sequence| self.files.open(self.environment, sequence)
    }

    fn corrupt(self, position: u64, what: &str) -> Error {
        let name = self.files.name(self.geometry.sequence(position));
        Error::corrupt(self.geometry, position, name, what)
    }
}

struct Examination<'a, E: Environment> {
    log: LogFiles<'a, E>,
    control: &'a Control,
    scanner: Scanner<E>,
    tracker: BatchTracker,
    first_lsns: BTreeMap<u64, u64>,
    promised: u64,
    /// Blocks that end behind what is promised so far.
    unpromised: VecDeque<Place>,
    cut_off: u64,
    torn: Vec<u64>,
}

impl<E: Environment> Examination<'_, E> {
    /// Follows the chain to its end.
    fn follow(&mut self, visit: &mut Visit<'_>) -> Result<(), Error> {
        let log = self.log;
        let promised = log.files.segments.values();
        let promised = promised.map(|file| file.header.durable);
        let of_control = if planted!(log.environment, IgnoreControlEnd) {
            0
        } else {
            self.control.end
        };
        self.promised = if planted!(log.environment, IgnoreSegmentPromise) {
            of_control
        } else {
            promised.fold(of_control, u64::max)
        };
        let mut open = log.opener();
        let mut looked_at = None;
        loop {
            let place = self.scanner.place;
            let position = place.position;
            let is_other = place
                .chain
                .is_some_and(|chain| chain != self.control.end_chain);
            if position == self.control.end && is_other {
                let what = "another block ends where the log once ended";
                return Err(log.corrupt(position, what));
            }
            let read = self.scanner.next(u64::MAX, &mut open);
            let Some(block) = read.map_err(reading())? else {
                // What one read does not show is not the end before another one says so.
                if looked_at.replace(position) != Some(position) {
                    self.scanner.forget();
                    self.scanner.read_ahead(log.geometry.granule);
                    continue;
                }
                if planted!(self.log.environment, SkipBadBlock) && self.skip(&mut open) {
                    continue;
                }
                return Ok(());
            };
            if looked_at.take().is_some() {
                self.scanner.read_ahead(READ_AHEAD);
            }
            let header = &block.header;
            let nonsense = |what| log.corrupt(position, what);
            if self.tracker.is_new() && header.lsn > self.control.first_lsn {
                return Err(nonsense("records before it are missing"));
            }
            self.tracker.enter(header).map_err(nonsense)?;
            let payload = self.scanner.bytes(block.payload.clone());
            let mut at = 0;
            while at < payload.len() {
                let nonsense = |what| log.corrupt(position, what);
                let (frame, range) = frame_at(payload, at).map_err(nonsense)?;
                self.tracker.take(frame).map_err(nonsense)?;
                at = range.end;
            }
            visit(Visited {
                header,
                payload,
                geometry: log.geometry,
                files: log.files,
            })?;
            self.promised = self.promised.max(header.durable);
            self.unpromised.push_back(place);
            self.forget_promised();
            if log.geometry.offset(header.position) == log.geometry.granule {
                let sequence = log.geometry.sequence(header.position);
                self.first_lsns.insert(sequence, header.lsn);
            }
        }
    }

    /// Keeps the places of blocks that are not promised: the next one begins where a block ends.
    fn forget_promised(&mut self) {
        while let Some(next) = self.unpromised.get(1)
            && next.position <= self.promised
        {
            self.unpromised.pop_front();
        }
    }

    /// Looks for what promises more behind the end, and for what cannot be there.
    fn look_behind(&mut self) -> Result<(), Error> {
        if planted!(self.log.environment, CutCorruption) {
            return Ok(());
        }
        let (log, end) = (self.log, self.scanner.place.position);
        let geometry = log.geometry;
        let mut open = log.opener();
        let behind = self.scanner.place.chain.map(|_| geometry.behind(end));
        for position in [Some(end), behind].into_iter().flatten() {
            let is_damaged = self.scanner.is_damaged_block(position, &mut open);
            if is_damaged.map_err(reading())? {
                return Err(
                    log.corrupt(position, "a block is not valid, and no power cut does that")
                );
            }
            let header = self.scanner.header_at(position, u64::MAX, &mut open);
            let header = header.map_err(reading())?;
            if header.is_some_and(|(header, _)| self.scanner.follows(&header)) {
                self.torn.push(position);
            }
        }
        let window = if planted!(self.log.environment, NoWindow) {
            0
        } else {
            self.control.window
        };
        let until = match self.control.shutdown {
            Shutdown::Running => end.saturating_add(window.max(1)),
            Shutdown::Closed => end + 1,
        };
        self.scanner.read_ahead(WINDOW_READ);
        let is_short = planted!(log.environment, LookInOneSegment);
        let until = if is_short {
            until.min(geometry.behind(end))
        } else {
            until
        };
        let mut position = end;
        while position < until
            && log
                .files
                .segments
                .contains_key(&geometry.sequence(position))
        {
            if geometry.room(position) == 0 {
                position = geometry.behind(position);
                continue;
            }
            let limit = until.next_multiple_of(geometry.granule);
            self.promise_at(position, limit, &mut open)?;
            position += geometry.granule;
        }
        self.scanner.read_ahead(geometry.granule);
        let ahead = log.files.segments.range(geometry.entered(end) + 1..);
        for (&sequence, _) in ahead.filter(|_| !is_short) {
            self.promise_at(geometry.first_block(sequence), u64::MAX, &mut open)?;
        }
        if end < self.promised {
            let position = self.broken_at(&mut open)?;
            return Err(log.corrupt(position, "a block that was durable is not valid"));
        }
        Ok(())
    }

    /// Where the block is that does not count and should: at the end, or at the beginning of the next segment.
    fn broken_at(&mut self, open: &mut OpenSegment<'_, E>) -> Result<u64, Error> {
        let (geometry, place) = (self.log.geometry, self.scanner.place);
        let mut would_follow = |position| {
            let found = self.scanner.header_at(position, u64::MAX, open);
            let found = found.map_err(reading())?;
            Ok(found.is_some_and(|(header, _)| self.scanner.follows(&header)))
        };
        let behind = geometry.behind(place.position);
        let is_here = place.chain.is_none() || would_follow(place.position)?;
        let is_behind = !is_here && would_follow(behind)?;
        Ok(if is_behind || geometry.room(place.position) == 0 {
            behind
        } else {
            place.position
        })
    }

    /// Takes note of what a block behind the end promises.
    fn promise_at(
        &mut self,
        position: u64,
        limit: u64,
        open: &mut OpenSegment<'_, E>,
    ) -> Result<(), Error> {
        let found = self.scanner.header_at(position, limit, open);
        let Some((header, _)) = found.map_err(reading())? else {
            return Ok(());
        };
        if header.epoch > self.control.epoch {
            // The record of an epoch is durable before the epoch has a block.
            let what = "a segment has blocks of a later epoch, so it is older than the log";
            return Err(corrupt_control(0, what));
        }
        self.promised = self.promised.max(header.durable);
        self.cut_off += u64::from(header.epoch == self.control.epoch);
        Ok(())
    }

    fn end(self) -> Result<End, Error> {
        let (log, control, place) = (self.log, self.control, self.scanner.place);
        let is_empty = self.tracker.is_new();
        #[cfg_attr(
            not(any(test, feature = "mistakes")),
            expect(unused_mut, reason = "a mistake that tests must find")
        )]
        let mut next_lsn = if is_empty {
            control.first_lsn
        } else {
            self.tracker.end()
        };
        #[cfg(any(test, feature = "mistakes"))]
        if planted!(self.log.environment, TornBatch) && self.tracker.in_batch() {
            next_lsn = self.tracker.next_lsn;
        }
        if !planted!(self.log.environment, CutCorruption) {
            let is_control_believed = !planted!(log.environment, IgnoreControlEnd);
            if next_lsn < control.first_lsn.max(control.end_lsn) && is_control_believed {
                return Err(log.corrupt(place.position, "records that were durable are missing"));
            }
            let is_other_end = control.shutdown == Shutdown::Closed
                && (place.position, next_lsn) != (control.end, control.end_lsn);
            if is_other_end && is_control_believed {
                let what = "the log does not end as it did when it was closed";
                return Err(log.corrupt(place.position, what));
            }
        }
        let first = self.unpromised.front().copied();
        let last = log.geometry.entered(place.position);
        let mut first_lsns = self.first_lsns;
        first_lsns.retain(|&sequence, _| sequence <= last);
        Ok(End {
            place,
            next_lsn,
            first_lsns,
            cut_off: self.cut_off,
            torn: self.torn,
            unpromised: if self.promised < place.position {
                first.unwrap_or(place)
            } else {
                place
            },
        })
    }

    /// A mistake that tests must find: goes on behind a block that is not valid.
    #[cfg(any(test, feature = "mistakes"))]
    fn skip(&mut self, open: &mut OpenSegment<'_, E>) -> bool {
        let mut position = self.scanner.place.position + self.log.geometry.granule;
        while self.log.geometry.room(position) > 0 {
            if let Ok(Some((header, _))) = self.scanner.header_at(position, u64::MAX, open)
                && header.epoch >= self.scanner.place.epoch
            {
                self.scanner.place = Place {
                    epoch: header.epoch,
                    ..Place::at(position)
                };
                return true;
            }
            position += self.log.geometry.granule;
        }
        false
    }

    #[cfg(not(any(test, feature = "mistakes")))]
    fn skip(&mut self, _: &mut OpenSegment<'_, E>) -> bool {
        false
    }
}

fn reading() -> impl FnOnce(io::Error) -> Error {
    Error::io("read a segment of the log")
}
