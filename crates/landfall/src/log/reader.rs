//! Reading records back, while others append.
//!
//! Only what is durable is read. A record, or a batch, that a power cut left unfinished is not there. The
//! records of a batch are kept in memory until its end was seen; a single record that is in one block is
//! handed out from where it was read.

use std::ops::Range;
use std::sync::Arc;

use super::format::segment_name;
use super::scan::{Place, Scanner};
use super::shared::Shared;
use super::units::{Units, frame_at};
use crate::environment::Environment;
use crate::{Error, Lsn};

/// Where the bytes of a record are.
enum At {
    /// In the block that was read last.
    Block(Range<usize>),
    /// In what is kept of the unit.
    Kept(Range<usize>),
}

/// Reads records in their order.
pub(crate) struct Reader<E: Environment> {
    shared: Arc<Shared<E>>,
    scanner: Scanner<E>,
    units: Units,
    /// The block that was read last, and how far it was gone through.
    payload: Range<usize>,
    at: usize,
    /// Where it is, for errors.
    position: u64,
    /// Bytes of the unit that has not ended, or whose records are being handed out.
    kept: Vec<u8>,
    /// Its records.
    records: Vec<(u64, Range<usize>)>,
    /// Those of them that were handed out.
    given: usize,
    /// The next record, where it was looked for already.
    found: Option<(u64, At)>,
    /// Records before it are passed over.
    from: u64,
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
        let place = Place {
            position: shared.geometry.first_block(sequence),
            chain: None,
            epoch: 0,
        };
        Ok(Reader {
            scanner: Scanner::new(
                &shared.environment,
                shared.geometry,
                shared.log,
                shared.epoch,
                place,
            ),
            shared: shared.clone(),
            units: Units::new(),
            payload: 0..0,
            at: 0,
            position: place.position,
            kept: Vec::new(),
            records: Vec::new(),
            given: 0,
            found: None,
            from,
            limit,
        })
    }

    /// The next record with its LSN; `None`: there is none that is durable.
    pub fn next(&mut self) -> Result<Option<(u64, &[u8])>, Error> {
        let Some((lsn, at)) = self.find()? else {
            return Ok(None);
        };
        let bytes = match at {
            At::Block(range) => self.scanner.bytes(range),
            At::Kept(range) => &self.kept[range],
        };
        Ok(Some((lsn, bytes)))
    }

    /// Whether there is a next record.
    pub fn is_ready(&mut self) -> Result<bool, Error> {
        if self.found.is_none() {
            self.found = self.look()?;
        }
        Ok(self.found.is_some())
    }

    fn find(&mut self) -> Result<Option<(u64, At)>, Error> {
        match self.found.take() {
            Some(found) => Ok(Some(found)),
            None => self.look(),
        }
    }

    fn look(&mut self) -> Result<Option<(u64, At)>, Error> {
        loop {
            if !self.units.in_unit() {
                while let Some((lsn, range)) = self.records.get(self.given) {
                    self.given += 1;
                    if *lsn >= self.from {
                        return Ok(Some((*lsn, At::Kept(range.clone()))));
                    }
                }
            }
            if self.at == self.payload.len() && !self.read_block()? {
                return Ok(None);
            }
            if let Some(found) = self.take_frame()? {
                return Ok(Some(found));
            }
        }
    }

    /// Reads the next block; `false`: there is none that is durable.
    fn read_block(&mut self) -> Result<bool, Error> {
        loop {
            if self.scanner.place.position >= self.limit {
                let durable = E::lock(&self.shared.state).durable.position;
                if self.scanner.place.position >= durable {
                    return Ok(false);
                }
                // What was read ahead is from before.
                self.limit = durable;
                self.scanner.forget();
            }
            if self.units.is_new() {
                // Where it was to begin may have been truncated, and another one be better by now.
                let sequence = E::lock(&self.shared.state).segments.with_record(self.from);
                self.scanner.place.position = self.shared.geometry.first_block(sequence);
            }
            let position = self.scanner.place.position;
            let shared = self.shared.clone();
            let mut segment = |sequence| E::lock(&shared.state).segments.file(sequence);
            let read = self.scanner.next(self.limit, &mut segment);
            let Some(block) = read.map_err(Error::io("read a segment of the log"))? else {
                return Err(self.missing(position));
            };
            self.position = block.header.position;
            let entered = self.units.enter(&block.header);
            if entered.map_err(|what| self.corrupt(self.position, what))? {
                self.kept.clear();
                self.records.clear();
                self.given = 0;
            }
            (self.payload, self.at) = (block.payload, 0);
            if self.at < self.payload.len() {
                return Ok(true);
            }
        }
    }

    /// Takes the next frame; a record that is whole by it, and a unit by itself, is handed out at once.
    fn take_frame(&mut self) -> Result<Option<(u64, At)>, Error> {
        let payload = self.scanner.bytes(self.payload.clone());
        let (frame, range) =
            frame_at(payload, self.at).map_err(|what| self.corrupt(self.position, what))?;
        self.at = range.end;
        let taken = self.units.take(frame);
        taken.map_err(|what| self.corrupt(self.position, what))?;
        let lsn = self.units.next_lsn - 1;
        let is_alone =
            frame.begins_unit && frame.ends_unit && frame.begins_record && frame.ends_record;
        let in_block = self.payload.start + range.start..self.payload.start + range.end;
        if is_alone {
            return Ok((lsn >= self.from).then_some((lsn, At::Block(in_block))));
        }
        if frame.begins_unit {
            self.kept.clear();
            self.records.clear();
            self.given = 0;
        }
        if frame.begins_record {
            self.records.push((lsn, self.kept.len()..self.kept.len()));
        }
        // One that began before the reader did is not wanted.
        if let Some((_, record)) = self.records.last_mut() {
            self.kept.extend_from_slice(self.scanner.bytes(in_block));
            record.end = self.kept.len();
        }
        Ok(None)
    }

    /// Nothing is where something durable was: it was truncated meanwhile, or is damaged.
    fn missing(&self, position: u64) -> Error {
        let state = E::lock(&self.shared.state);
        if state.is_closing {
            return Error::Closed;
        }
        let next = self.units.end().max(self.from);
        if next < state.first_lsn
            || self.shared.geometry.sequence(position) < state.segments.first()
        {
            return Error::Truncated {
                asked: Lsn(next),
                first: Lsn(state.first_lsn),
            };
        }
        drop(state);
        self.corrupt(position, "a block that had been durable is not valid")
    }

    fn corrupt(&self, position: u64, what: &str) -> Error {
        let geometry = self.shared.geometry;
        let sequence = geometry.sequence(position);
        let number = E::lock(&self.shared.state).segments.number(sequence);
        Error::corrupt(geometry, position, number.map(segment_name), what)
    }

    /// Waits until there is more to read; `false`: the log was closed, or is poisoned.
    pub fn wait(&self) -> bool {
        let mut state = E::lock(&self.shared.state);
        state.followers += 1;
        while state.durable.position <= self.scanner.place.position
            && !state.is_closing
            && !state.is_poisoned()
        {
            state = self.shared.durable.wait(state);
        }
        state.followers -= 1;
        state.durable.position > self.scanner.place.position
    }
}
