//! A log looked at from outside, without changing anything.

use std::path::Path;

use super::control::ControlFile;
use super::format::{Control, Geometry};
use super::open::{Files, find_segments};
use super::recovery::{Recovered, recover};
use super::scan::{Place, Scanner};
use super::units::{Units, frame_at};
use crate::environment::{Environment, Method, System};
use crate::{Error, Lsn};

/// A log as it lies in its directory.
#[derive(Debug)]
pub struct Inspection {
    /// A number by which its blocks are known.
    pub log: u64,
    /// How often it was opened to be written.
    pub epoch: u64,
    /// Bytes of which blocks are made.
    pub granule: u32,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// How it is written: `direct+rwf_dsync`.
    pub method: &'static str,
    /// The first record that is needed.
    pub first: Lsn,
    /// The record that would be appended next.
    pub next: Lsn,
    /// Its files.
    pub segments: Vec<SegmentFile>,
}

/// A file of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentFile {
    /// Its name.
    pub name: String,
    /// Which segment it is; `None`: none, or none that is needed.
    pub sequence: Option<u64>,
    /// Whether it holds records that are needed.
    pub is_used: bool,
}

/// A block of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The file that it is in.
    pub file: String,
    /// Where it begins there.
    pub offset: u64,
    /// Bytes that it takes.
    pub size: u64,
    /// Of who wrote it.
    pub epoch: u64,
    /// Its records, or fragments of them.
    pub fragments: Vec<Fragment>,
}

/// A record in a block, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The record's number.
    pub lsn: Lsn,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether the record begins with it.
    pub begins_record: bool,
    /// Whether the record ends with it.
    pub ends_record: bool,
    /// Whether a batch begins with it.
    pub begins_batch: bool,
    /// Whether a batch ends with it.
    pub ends_batch: bool,
}

impl Inspection {
    /// Reads the log in `directory`, from its first block to its last, and calls `visit` for each; so everything
    /// that is needed is compared with its checksums.
    ///
    /// [`Error::Corrupt`] says where it is damaged; what comes before was visited. [`Error::Locked`]: somebody has
    /// it open.
    pub fn read(
        directory: impl AsRef<Path>,
        visit: &mut dyn FnMut(&Block),
    ) -> Result<Inspection, Error> {
        Inspection::read_in(&System::read_only(directory.as_ref()), visit)
    }

    /// Reads a log elsewhere than on this machine, as tests do.
    pub fn read_in<E: Environment>(
        environment: &E,
        visit: &mut dyn FnMut(&Block),
    ) -> Result<Inspection, Error> {
        Inspection::with_lock(environment, || Inspection::of(environment, visit))
    }

    /// Nobody else has the directory meanwhile.
    pub(crate) fn with_lock<E: Environment, R>(
        environment: &E,
        look: impl FnOnce() -> Result<R, Error>,
    ) -> Result<R, Error> {
        let is_free = environment
            .lock_directory()
            .map_err(Error::io("look at the directory of a log"))?;
        match is_free {
            true => {
                let looked = look();
                environment.unlock_directory();
                looked
            }
            false => Err(Error::Locked),
        }
    }

    /// By who has the directory already.
    pub(crate) fn of<E: Environment>(
        environment: &E,
        visit: &mut dyn FnMut(&Block),
    ) -> Result<Inspection, Error> {
        let control = ControlFile::open(environment)?.record;
        let geometry = Geometry {
            granule: control.granule.into(),
            segment: control.segment,
        };
        let files = find_segments(environment, geometry, &control)?;
        let recovered = recover(environment, geometry, &control, &files.segments);
        let found = visit_blocks(environment, geometry, &control, &files, visit)?;
        let recovered = recovered?;
        if found < recovered.tail.position {
            let file = files.segments.get(&geometry.sequence(found));
            let name = file.map(|found| found.name.clone());
            let what = "a block that had been durable is not valid";
            return Err(Error::corrupt(geometry, found, name, what));
        }
        Ok(Inspection {
            log: control.log,
            epoch: control.epoch,
            granule: control.granule,
            segment_bytes: control.segment,
            method: Method::of_code(control.method).map_or("unknown", Method::name),
            first: Lsn(control.first_lsn),
            next: Lsn(recovered.next_lsn),
            segments: segment_files(geometry, &files, &recovered),
        })
    }
}

/// Visits the blocks that follow each other from the beginning; returns where that ends.
fn visit_blocks<E: Environment>(
    environment: &E,
    geometry: Geometry,
    control: &Control,
    files: &Files<E>,
    visit: &mut dyn FnMut(&Block),
) -> Result<u64, Error> {
    let mut segment = |sequence: u64| {
        files
            .segments
            .get(&sequence)
            .map(|found| found.file.clone())
    };
    let place = Place {
        position: geometry.first_block(control.first_segment),
        chain: None,
        epoch: 0,
    };
    let mut scanner = Scanner::new(environment, geometry, control.log, control.epoch, place);
    let mut units = Units::new();
    loop {
        let read = scanner.next(u64::MAX, &mut segment);
        let Some(read) = read.map_err(Error::io("read a segment of the log"))? else {
            return Ok(scanner.place.position);
        };
        let position = read.header.position;
        let file = files.segments.get(&geometry.sequence(position));
        let name = file.map(|found| found.name.clone());
        let mut block = Block {
            file: name.clone().unwrap_or_default(),
            offset: geometry.offset(position),
            size: read.header.size(geometry.granule),
            epoch: read.header.epoch,
            fragments: Vec::new(),
        };
        let corrupt = |what: &str| Error::corrupt(geometry, position, name.clone(), what);
        units.enter(&read.header).map_err(corrupt)?;
        let payload = scanner.bytes(read.payload);
        let mut at = 0;
        let mut fragments = Vec::new();
        while at < payload.len() {
            let (frame, range) = frame_at(payload, at).map_err(corrupt)?;
            units.take(frame).map_err(corrupt)?;
            at = range.end;
            fragments.push(Fragment {
                lsn: Lsn(units.next_lsn - 1),
                bytes: payload[range].to_vec(),
                begins_record: frame.begins_record,
                ends_record: frame.ends_record,
                begins_batch: frame.begins_unit,
                ends_batch: frame.ends_unit,
            });
        }
        block.fragments = fragments;
        visit(&block);
    }
}

fn segment_files<E: Environment>(
    geometry: Geometry,
    files: &Files<E>,
    recovered: &Recovered,
) -> Vec<SegmentFile> {
    let last = geometry.sequence(recovered.tail.position - 1);
    let known = files.segments.iter().map(|(&sequence, found)| SegmentFile {
        name: found.name.clone(),
        sequence: Some(sequence),
        is_used: sequence <= last,
    });
    let free = files.free.iter().map(|free| SegmentFile {
        name: super::format::segment_name(free.number),
        sequence: None,
        is_used: false,
    });
    let unfinished = files.unfinished.iter().map(|name| SegmentFile {
        name: name.clone(),
        sequence: None,
        is_used: false,
    });
    known.chain(free).chain(unfinished).collect()
}
