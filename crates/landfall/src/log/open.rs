//! Opening a log, or making one.
//!
//! In this order, since a power cut can come between any two steps: a directory without a control file is
//! no log yet, and what an attempt to make one left there is removed; a log is made from its first segment
//! to its control file, which appears whole. One that is there is read, and nothing is changed before it was
//! found to be in order. Then what was found is made durable: a process that was killed may have left it to
//! the kernel. Then the epoch is raised, durably, and only then anything is written.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use super::buffer::Buffer;
use super::control::ControlFile;
use super::format::{
    BlockHeader, CONTROL_DRAFT, CONTROL_NAME, Control, Geometry, SegmentHeader, segment_name,
    segment_number,
};
use super::recovery::{Found, Recovered, recover};
use super::segments::{Free, Segment, Segments};
use super::shared::{Begin, Shared};
use super::{maker, zeros};
use crate::environment::{Durability, Environment, Fault, File, Method};
use crate::{Error, Options};

/// Bytes that are written again at once.
const REWRITTEN: u64 = 1 << 20;

/// Opens the log in the environment's directory, or makes one.
pub(crate) fn open<E: Environment>(
    environment: &E,
    options: Options,
) -> Result<Arc<Shared<E>>, Error> {
    environment
        .make_directory()
        .map_err(Error::io("make the directory of a log"))?;
    let is_ours = environment
        .lock_directory()
        .map_err(Error::io("lock the directory of the log"))?;
    if !is_ours {
        return Err(Error::Locked);
    }
    open_locked(environment, options).inspect_err(|_| environment.unlock_directory())
}

fn open_locked<E: Environment>(environment: &E, options: Options) -> Result<Arc<Shared<E>>, Error> {
    let names = names(environment)?;
    if !names.iter().any(|name| name == CONTROL_NAME) {
        create(environment, &options, &names)?;
    }
    let mut control = ControlFile::open(environment)?;
    let record = control.record;
    let geometry = Geometry {
        granule: record.granule.into(),
        segment: record.segment,
    };
    let options = Options {
        segment_bytes: geometry.segment,
        ..options
    };
    options.check(geometry.granule)?;
    let (method, device) = method(environment, &record)?;
    environment.use_method(method);
    // What they were opened with may not be what is used now.
    let mut found = find_segments(environment, geometry, &record)?;
    let recovered = recover(environment, geometry, &record, &found.segments)?;
    refuse_damaged(environment, geometry, &record, &found.unfinished)?;
    make_durable(environment, geometry, &found, &recovered)?;
    let epoch = match environment.is_planted(Fault::KeepEpoch) {
        true => record.epoch,
        false => record.epoch + 1,
    };
    control.write(Control {
        epoch,
        method: method.code(),
        device,
        ..record
    })?;
    let segments = in_order(&mut found, geometry, &record, &recovered, &options);
    tracing::debug!(
        log = record.log,
        epoch,
        first = record.first_lsn,
        next = recovered.next_lsn,
        method = method.name(),
        "the log is open"
    );
    let shared = Arc::new(Shared::new(Begin {
        environment: environment.clone(),
        geometry,
        options,
        log: record.log,
        epoch,
        control,
        segments,
        tail: recovered.tail,
        next_lsn: recovered.next_lsn,
        first_lsn: record.first_lsn,
    }));
    let maker = maker::start(&shared).map_err(Error::io("start a thread of the log"))?;
    shared.keep_thread(maker);
    Ok(shared)
}

fn names<E: Environment>(environment: &E) -> Result<Vec<String>, Error> {
    environment
        .names()
        .map_err(Error::io("read the directory of the log"))
}

/// Makes a log in a directory that holds none.
fn create<E: Environment>(
    environment: &E,
    options: &Options,
    names: &[String],
) -> Result<(), Error> {
    let is_ours = |name: &&String| segment_number(name).is_some() || *name == CONTROL_DRAFT;
    if let Some(other) = names.iter().find(|name| !is_ours(name)) {
        return Err(Error::NotALog {
            name: other.clone(),
        });
    }
    let granule = environment.granule().map_err(Error::io(
        "find out how the directory of the log is written",
    ))?;
    options.check(granule.into())?;
    let geometry = Geometry {
        granule: granule.into(),
        segment: options.segment_bytes,
    };
    let make = || {
        // Whoever made the directory may not have done so.
        environment.sync_parent()?;
        for name in names {
            environment.remove(name)?;
        }
        let log = environment.random();
        let file = environment.create(&segment_name(1))?;
        file.allocate(geometry.segment)?;
        maker::make_ready(environment, geometry, log, 1, &file, true)?;
        zeros::write(&file, geometry, geometry.granule, geometry.segment)?;
        file.sync()?;
        let method = environment.calibrate(&file, geometry.granule, granule)?;
        Ok((log, method, environment.device()?))
    };
    let (log, method, device) = make().map_err(Error::io("make a log"))?;
    ControlFile::create(
        environment,
        Control {
            generation: 1,
            log,
            epoch: 0,
            granule,
            segment: geometry.segment,
            first_segment: 1,
            first_lsn: 1,
            method: method.code(),
            device,
        },
    )
}

/// How files are written: as was found best, unless the log was brought to another device since.
fn method<E: Environment>(environment: &E, record: &Control) -> Result<(Method, u64), Error> {
    let find = || {
        let device = environment.device()?;
        if environment.granule()? > record.granule {
            // Direct I/O takes no blocks as small as these any more.
            return Ok((Method::Buffered, device));
        }
        if let (true, Some(method)) = (device == record.device, Method::of_code(record.method)) {
            return Ok((method, device));
        }
        if names_draft(environment)? {
            environment.remove(CONTROL_DRAFT)?;
        }
        let file = environment.create(CONTROL_DRAFT)?;
        let granule = u64::from(record.granule);
        file.allocate(granule)?;
        let buffer = Buffer::new(granule as usize);
        file.write(buffer.bytes(0..granule as usize), 0, Durability::Later)?;
        file.sync()?;
        let method = environment.calibrate(&file, 0, record.granule)?;
        environment.remove(CONTROL_DRAFT)?;
        Ok((method, device))
    };
    find().map_err(Error::io(
        "find out how the directory of the log is written",
    ))
}

fn names_draft<E: Environment>(environment: &E) -> std::io::Result<bool> {
    Ok(environment
        .names()?
        .iter()
        .any(|name| name == CONTROL_DRAFT))
}

/// The segment files of a directory.
pub(crate) struct Files<E: Environment> {
    pub segments: BTreeMap<u64, Found<E>>,
    /// Files whose segment is over.
    pub free: Vec<Free<E>>,
    /// Names of files that never became a segment.
    pub unfinished: Vec<String>,
    next_number: u64,
}

/// Looks at all segment files.
pub(crate) fn find_segments<E: Environment>(
    environment: &E,
    geometry: Geometry,
    record: &Control,
) -> Result<Files<E>, Error> {
    let reading = || Error::io("read a segment of the log");
    let mut files = Files {
        segments: BTreeMap::new(),
        free: Vec::new(),
        unfinished: Vec::new(),
        next_number: 1,
    };
    let mut buffer = Buffer::new(2 * geometry.granule as usize);
    for name in names(environment)? {
        let Some(number) = segment_number(&name) else {
            continue;
        };
        files.next_number = files.next_number.max(number + 1);
        let file = environment.open(&name).map_err(reading())?;
        if file.size().map_err(reading())? < geometry.segment {
            files.unfinished.push(name);
            continue;
        }
        let begin = 0..2 * geometry.granule as usize;
        file.read(buffer.bytes_mut(begin.clone()), 0)
            .map_err(reading())?;
        let file = Arc::new(file);
        match sequence_of(buffer.bytes(begin), geometry, record) {
            None => files.unfinished.push(name),
            Some(sequence) if sequence < record.first_segment => {
                files.free.push(Free { number, file });
            }
            Some(sequence) => {
                let found = Found { name, number, file };
                if let Some(other) = files.segments.insert(sequence, found) {
                    let begin = sequence * geometry.segment;
                    let what = "another file is the same segment";
                    return Err(Error::corrupt(geometry, begin, Some(other.name), what));
                }
            }
        }
    }
    Ok(files)
}

/// Which segment a file is, by its header; and where that is damaged by its first block, so that nothing
/// that was durable is taken for a file that never became a segment.
fn sequence_of(begin: &[u8], geometry: Geometry, record: &Control) -> Option<u64> {
    let header = SegmentHeader::decode(begin).filter(|header| header.log == record.log);
    if let Some(header) = header {
        return Some(header.sequence).filter(|&sequence| geometry.has(sequence));
    }
    let (block, _) = BlockHeader::decode(&begin[geometry.granule as usize..])?;
    let sequence = geometry.sequence(block.position);
    let is_first = block.log == record.log && block.position == geometry.first_block(sequence);
    is_first.then_some(sequence)
}

/// A file that never became a segment has no block of this log: one that has was a segment, and is damaged.
fn refuse_damaged<E: Environment>(
    environment: &E,
    geometry: Geometry,
    record: &Control,
    names: &[String],
) -> Result<(), Error> {
    let reading = || Error::io("read a segment of the log");
    let mut buffer = Buffer::new(geometry.granule as usize);
    let granule = 0..geometry.granule as usize;
    for name in names {
        let file = environment.open(name).map_err(reading())?;
        let size = file.size().map_err(reading())? / geometry.granule * geometry.granule;
        for at in (0..size).step_by(geometry.granule as usize) {
            file.read(buffer.bytes_mut(granule.clone()), at)
                .map_err(reading())?;
            let block = BlockHeader::decode(buffer.bytes(granule.clone()));
            let is_needed = block.is_some_and(|(block, _)| {
                block.log == record.log && geometry.sequence(block.position) >= record.first_segment
            });
            if is_needed {
                return Err(Error::Corrupt {
                    file: PathBuf::from(name),
                    offset: 0,
                    what: "it has blocks of the log, and no header".to_owned(),
                });
            }
        }
    }
    Ok(())
}

/// Makes durable what was found, segments that nobody has entered yet among it: nothing promised that it
/// is, and what comes next will promise it.
///
/// What nobody promised is written again, the same bytes: if a write or a flush of it failed, nobody knows
/// whether it is there, and another flush would say that all is well. So are the headers of files, or one of
/// which that is not known could one day be the same segment as another.
fn make_durable<E: Environment>(
    environment: &E,
    geometry: Geometry,
    files: &Files<E>,
    recovered: &Recovered,
) -> Result<(), Error> {
    if environment.is_planted(Fault::TrustWhatIsThere) {
        return Ok(());
    }
    let from = geometry.sequence(recovered.promised - 1);
    let mut buffer = Buffer::new(REWRITTEN.min(geometry.segment) as usize);
    let mut again = |file: &E::File, offset: u64, len: u64| {
        let bytes = 0..len as usize;
        file.read(buffer.bytes_mut(bytes.clone()), offset)?;
        file.write(buffer.bytes(bytes), offset, Durability::Later)
    };
    let mut make = || {
        let mut at = recovered.promised;
        while at < recovered.tail.position {
            let left = recovered.tail.position - at;
            let len = geometry.room(at).min(left).min(REWRITTEN);
            if let (Some(found), true) = (files.segments.get(&geometry.sequence(at)), len > 0) {
                again(&found.file, geometry.offset(at), len)?;
            }
            at += len.max(geometry.granule);
        }
        let used = files.segments.range(from..).map(|(_, found)| &found.file);
        for file in used.chain(files.free.iter().map(|free| &free.file)) {
            again(file, 0, geometry.granule)?;
            file.sync()?;
        }
        for name in &files.unfinished {
            environment.remove(name)?;
        }
        environment.sync_directory()
    };
    make().map_err(Error::io("make durable what the log has"))
}

/// Segments in use, and those behind them that were made ahead; all others are free.
fn in_order<E: Environment>(
    files: &mut Files<E>,
    geometry: Geometry,
    record: &Control,
    recovered: &Recovered,
    options: &Options,
) -> Segments<E> {
    let entered = geometry.sequence(recovered.tail.position - 1);
    let mut all = VecDeque::new();
    let mut sequence = record.first_segment;
    while let Some(found) = files.segments.remove(&sequence) {
        all.push_back(Segment {
            sequence,
            number: found.number,
            file: found.file,
            first_lsn: recovered.first_lsns.get(&sequence).copied(),
        });
        sequence += 1;
    }
    for (_, found) in std::mem::take(&mut files.segments) {
        files.free.push(Free {
            number: found.number,
            file: found.file,
        });
    }
    let free = std::mem::take(&mut files.free);
    let spare = options.spare_segments;
    Segments::new(geometry, all, free, files.next_number, entered, spare)
}
