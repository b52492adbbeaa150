//! Reading records back, while others append.
//!
//! Only what is durable is read, and every record in its turn: where one is missing the reader says why, and never goes
//! on behind it. A record, or a batch, that a power cut left unfinished is not there.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::batch_assembler::{BatchAssembler, Place as RecordPlace};
use super::format::segment_name;
use super::scan::{Place, Scanner};
use super::shared::Shared;
use crate::environment::{Environment, FileOf, Storage, planted};
use crate::{Error, Lsn};

/// Reads records in their order.
pub(crate) struct Reader<E: Environment> {
    shared: Arc<Shared<E>>,
    scanner: Scanner<E>,
    assembler: BatchAssembler,
    /// The records of the block that was read last, and where it is.
    payload: Range<usize>,
    position: u64,
    /// The next record, where it was looked for already.
    found: Option<(u64, RecordPlace)>,
    /// The record that is given out next; those before are passed over.
    next: u64,
    /// Everything before is durable, when it was last asked.
    limit: u64,
}

impl<E: Environment> Reader<E> {
    /// From this record on, which may be the one that is appended next.
    pub fn new(shared: &Arc<Shared<E>>, from: u64) -> Result<Reader<E>, Error> {
        let (sequence, limit) = {
            let state = E::lock(&shared.state);
            if from < state.first_lsn {
                return Err(Error::Truncated {
                    asked: Lsn(from),
                    first: Lsn(state.first_lsn),
                });
            }
            if from > state.appended() {
                return Err(Error::NotThereYet {
                    asked: Lsn(from),
                    next: Lsn(state.appended()),
                });
            }
            (state.segments.with_record(from), state.durable.position)
        };
        let place = Place::at(shared.geometry.first_block(sequence));
        Ok(Reader {
            scanner: Scanner::new(
                &shared.environment,
                shared.geometry,
                shared.log,
                shared.epoch,
                place,
            ),
            shared: shared.clone(),
            assembler: BatchAssembler::new(),
            payload: 0..0,
            position: place.position,
            found: None,
            next: from,
            limit,
        })
    }

    /// The next record with its LSN; `None`: there is none that is durable.
    pub fn next(&mut self) -> Result<Option<(u64, &[u8])>, Error> {
        let found = match self.found.take() {
            Some(found) => Some(found),
            None => self.look()?,
        };
        self.require_needed()?;
        let Some((lsn, place)) = found else {
            return Ok(None);
        };
        self.next = lsn + 1;
        let bytes = match place {
            RecordPlace::Payload(range) => {
                let start = self.payload.start;
                self.scanner.bytes(start + range.start..start + range.end)
            }
            RecordPlace::Kept(range) => self.assembler.kept(range),
        };
        Ok(Some((lsn, bytes)))
    }

    /// The next record with its LSN, when it is durable; `None`: the log was closed, or is poisoned.
    pub fn next_or_wait(&mut self) -> Result<Option<(u64, &[u8])>, Error> {
        loop {
            self.found = match self.found.take() {
                Some(found) => Some(found),
                None => self.look()?,
            };
            if self.found.is_some() {
                return self.next();
            }
            // In a process that was forked no more comes.
            self.shared.require_ours()?;
            if !self.wait() {
                return Ok(None);
            }
        }
    }

    /// What was truncated away is not given out, whether or not its bytes are still there.
    fn require_needed(&self) -> Result<(), Error> {
        let first = self.shared.first_lsn();
        if self.next < first && !planted!(self.shared.environment, ReadTruncated) {
            return Err(Error::Truncated {
                asked: Lsn(self.next),
                first: Lsn(first),
            });
        }
        Ok(())
    }

    fn look(&mut self) -> Result<Option<(u64, RecordPlace)>, Error> {
        loop {
            loop {
                let payload = self.scanner.bytes(self.payload.clone());
                let next = self.assembler.next(payload);
                let next = next.map_err(|what| self.corrupt(self.position, what))?;
                let Some((lsn, place)) = next else { break };
                if lsn < self.next {
                    continue;
                }
                if lsn > self.next && !planted!(self.shared.environment, ReadTruncated) {
                    self.require_needed()?;
                    return Err(self.corrupt(self.scanner.place.position, "a record is missing"));
                }
                return Ok(Some((lsn, place)));
            }
            if !self.read_block()? {
                return Ok(None);
            }
        }
    }

    /// Reads the next block; `false`: there is none that is durable.
    fn read_block(&mut self) -> Result<bool, Error> {
        loop {
            if let Some(is_there) = self.try_block()? {
                return Ok(is_there);
            }
        }
    }

    /// The same; `None`: it is to be tried anew, since the segment where it was looked for is not needed any more.
    fn try_block(&mut self) -> Result<Option<bool>, Error> {
        self.require_needed()?;
        if self.assembler.tracker.is_new() {
            // Where it was to begin may have been truncated, and another one be better by now.
            let sequence = E::lock(&self.shared.state).segments.with_record(self.next);
            self.scanner.place.position = self.shared.geometry.first_block(sequence);
        }
        if self.scanner.place.position >= self.limit {
            let durable = E::lock(&self.shared.state).durable.position;
            if self.scanner.place.position >= durable {
                return Ok(Some(false));
            }
            // What was read ahead is from before.
            self.limit = durable;
            self.scanner.forget();
        }
        let position = self.scanner.place.position;
        let shared = self.shared.clone();
        let mut open = |sequence| open_segment(&shared, sequence);
        let read = self.scanner.next(self.limit, &mut open);
        let Some(block) = read.map_err(Error::io("read a segment of the log"))? else {
            if self.goes_on_behind(position) {
                return Ok(None);
            }
            return Err(self.missing(position));
        };
        self.position = block.header.position;
        let entered = self.assembler.enter(&block.header, block.payload.len());
        entered.map_err(|what| self.corrupt(self.position, what))?;
        self.payload = block.payload;
        Ok(Some(true))
    }

    /// Whether this position is in a segment that was released, which the next record is behind: it is looked for where it is now. That
    /// record may not have been durable, nor that segment full, when the reader came there.
    fn goes_on_behind(&mut self, position: u64) -> bool {
        let sequence = self.shared.geometry.sequence(position);
        let first = {
            let state = E::lock(&self.shared.state);
            let is_needed = !state.is_closing && self.next >= state.first_lsn;
            Some(state.segments.first()).filter(|first| is_needed && sequence < *first)
        };
        let Some(first) = first else {
            return false;
        };
        self.scanner.place = Place::at(self.shared.geometry.first_block(first));
        self.scanner.forget();
        self.assembler = BatchAssembler::new();
        self.payload = 0..0;
        true
    }

    /// Nothing is where something durable was: it was truncated meanwhile, or is damaged.
    fn missing(&self, position: u64) -> Error {
        let state = E::lock(&self.shared.state);
        if state.is_closing {
            return Error::Closed;
        }
        if self.next < state.first_lsn {
            return Error::Truncated {
                asked: Lsn(self.next),
                first: Lsn(state.first_lsn),
            };
        }
        drop(state);
        let geometry = self.shared.geometry;
        let position = if geometry.room(position) == 0 {
            geometry.behind(position)
        } else {
            position
        };
        self.corrupt(position, "a block that was durable is not valid")
    }

    fn corrupt(&self, position: u64, what: &str) -> Error {
        let geometry = self.shared.geometry;
        let sequence = geometry.sequence(position);
        let number = E::lock(&self.shared.state).segments.number(sequence);
        Error::corrupt(geometry, position, number.map(segment_name), what)
    }

    /// Waits until there is more to read; `false`: the log was closed, or is poisoned.
    fn wait(&self) -> bool {
        let mut state = E::lock(&self.shared.state);
        state.followers += 1;
        while state.durable.position <= self.scanner.place.position
            && !state.is_closed
            && !state.is_poisoned()
        {
            state = self.shared.durable.wait(state);
        }
        state.followers -= 1;
        state.durable.position > self.scanner.place.position
    }
}

/// The file of a segment, if that is needed still; it may be removed, or be another one, at any moment.
fn open_segment<E: Environment>(
    shared: &Shared<E>,
    sequence: u64,
) -> io::Result<Option<FileOf<E>>> {
    let number = E::lock(&shared.state).segments.number(sequence);
    let Some(number) = number else {
        return Ok(None);
    };
    match shared.environment.storage().open(&segment_name(number)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}
