//! What a log still has: where its last whole block ends, and which record is next.
//!
//! Every block says up to where the log was durable when it was written. The first blocks of the segments
//! are looked at for the furthest of these promises; what is before it needs no reading, so the chain is
//! followed from the segment that it ends in. Where the chain ends, the rest of that segment and the
//! segments behind it are looked through for a block that promises more: then what is missing was durable,
//! and the log is damaged. Otherwise what is missing was never acknowledged, and is cut off.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::format::{CONTROL_NAME, Control, Geometry};
use super::scan::{Place, Scanner};
use super::units::{Units, frame_at};
use crate::Error;
use crate::environment::{Environment, Fault};

/// A segment file with a header that makes sense.
pub(crate) struct Found<E: Environment> {
    pub name: String,
    pub number: u64,
    pub file: Arc<E::File>,
}

pub(crate) struct Recovered {
    /// Where the next block goes.
    pub tail: Place,
    /// LSN of the next record.
    pub next_lsn: u64,
    /// The first record that begins in each segment, by its sequence.
    pub first_lsns: BTreeMap<u64, u64>,
    /// What is before was promised to be durable.
    pub promised: u64,
}

pub(crate) fn recover<E: Environment>(
    environment: &E,
    geometry: Geometry,
    control: &Control,
    segments: &BTreeMap<u64, Found<E>>,
) -> Result<Recovered, Error> {
    let reading = || Error::io("read a segment of the log");
    let mut segment = |sequence: u64| segments.get(&sequence).map(|found| found.file.clone());
    let corrupt = |position: u64, what: &str| {
        let found = segments.get(&geometry.sequence(position));
        Error::corrupt(
            geometry,
            position,
            found.map(|found| found.name.clone()),
            what,
        )
    };
    let first = geometry.first_block(control.first_segment);
    if !segments.contains_key(&control.first_segment) {
        return Err(corrupt(first, "it is the first that is needed"));
    }
    // The record of an epoch is durable before the epoch has a block.
    let outdated = || Error::Corrupt {
        file: PathBuf::from(CONTROL_NAME),
        offset: 0,
        what: "a segment has blocks of a later epoch, so its newer copy is damaged".to_owned(),
    };
    let start = |position| Place {
        position,
        chain: None,
        epoch: 0,
    };
    let mut scanner = Scanner::new(
        environment,
        geometry,
        control.log,
        control.epoch,
        start(first),
    );
    let mut first_lsns = BTreeMap::new();
    let mut promised = first;
    for &sequence in segments.keys().filter(|&&one| one >= control.first_segment) {
        let position = geometry.first_block(sequence);
        let header = scanner
            .header_at(position, u64::MAX, &mut segment)
            .map_err(reading())?;
        if let Some((header, _)) = header {
            if header.epoch > control.epoch {
                return Err(outdated());
            }
            promised = promised.max(header.durable);
            first_lsns.insert(sequence, header.lsn);
        }
    }
    let begin = geometry
        .first_block(geometry.sequence(promised - 1))
        .max(first);
    scanner.place = start(begin);
    let mut units = Units::new();
    loop {
        let position = scanner.place.position;
        let block = scanner.next(u64::MAX, &mut segment).map_err(reading())?;
        let Some(block) = block else {
            if environment.is_planted(Fault::SkipBadBlock)
                && skip(&mut scanner, geometry, &mut segment)
            {
                continue;
            }
            break;
        };
        let nonsense = |what| corrupt(position, what);
        units.enter(&block.header).map_err(nonsense)?;
        let payload = scanner.bytes(block.payload.clone());
        let mut at = 0;
        while at < payload.len() {
            let (frame, range) = frame_at(payload, at).map_err(nonsense)?;
            units.take(frame).map_err(nonsense)?;
            at = range.end;
        }
        promised = promised.max(block.header.durable);
        if geometry.offset(block.header.position) == geometry.granule {
            first_lsns.insert(geometry.sequence(block.header.position), block.header.lsn);
        }
    }
    let tail = scanner.place;
    let is_empty = tail.position == begin;
    if !environment.is_planted(Fault::CutCorruption) {
        let damaged = "a block that had been durable is not valid";
        if tail.position < promised || (is_empty && begin > first) {
            return Err(corrupt(tail.position, damaged));
        }
        let sequences = segments.range(geometry.sequence(tail.position)..);
        let sequences = sequences.map(|(&sequence, _)| sequence);
        let behind = look_behind(&mut scanner, geometry, sequences, &mut segment);
        let behind = behind.map_err(reading())?;
        if behind.epoch > control.epoch {
            return Err(outdated());
        }
        if behind.durable > tail.position {
            return Err(corrupt(tail.position, damaged));
        }
    }
    let mut next_lsn = match is_empty {
        true => control.first_lsn,
        false => units.end(),
    };
    if environment.is_planted(Fault::TornBatch) && units.in_unit() {
        next_lsn = units.next_lsn;
    }
    if next_lsn < control.first_lsn && !environment.is_planted(Fault::CutCorruption) {
        return Err(corrupt(
            tail.position,
            "records that are needed are missing",
        ));
    }
    let last = geometry.sequence(tail.position - 1);
    first_lsns
        .retain(|&sequence, _| sequence <= last && geometry.first_block(sequence) < tail.position);
    Ok(Recovered {
        tail,
        next_lsn,
        first_lsns,
        promised,
    })
}

/// What blocks say that are behind the end.
#[derive(Default)]
struct Behind {
    /// The furthest position that was durable.
    durable: u64,
    /// The latest epoch.
    epoch: u64,
}

/// Looks through everything behind the scanner's place, in `sequences` too of which one before is missing.
fn look_behind<E: Environment>(
    scanner: &mut Scanner<E>,
    geometry: Geometry,
    sequences: impl Iterator<Item = u64>,
    segment: &mut dyn FnMut(u64) -> Option<Arc<E::File>>,
) -> io::Result<Behind> {
    let mut behind = Behind::default();
    let end = scanner.place.position;
    for sequence in sequences {
        let mut position = geometry.first_block(sequence).max(end);
        while geometry.room(position) > 0 && geometry.sequence(position) == sequence {
            // What was there before the segment's file was used again promises no less.
            if let Some((header, _)) = scanner.any_header_at(position, u64::MAX, segment)? {
                behind.durable = behind.durable.max(header.durable);
                behind.epoch = behind.epoch.max(header.epoch);
            }
            position += geometry.granule;
        }
    }
    Ok(behind)
}

/// A mistake that tests must find: goes on behind a block that is not valid.
fn skip<E: Environment>(
    scanner: &mut Scanner<E>,
    geometry: Geometry,
    segment: &mut dyn FnMut(u64) -> Option<Arc<E::File>>,
) -> bool {
    let mut position = scanner.place.position + geometry.granule;
    while geometry.room(position) > 0 {
        if let Ok(Some((header, _))) = scanner.header_at(position, u64::MAX, segment)
            && header.epoch >= scanner.place.epoch
        {
            scanner.place = Place {
                position,
                chain: None,
                epoch: header.epoch,
            };
            return true;
        }
        position += geometry.granule;
    }
    false
}
