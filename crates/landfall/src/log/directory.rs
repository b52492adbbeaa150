//! Opening a log, or making one.
//!
//! In two halves. First everything is read, and nothing is changed: a directory that is damaged stays as it is, byte for
//! byte. Then what was found is made durable, since a process that was killed may have left it to the kernel; the epoch
//! is raised, durably; and only then anything is written.
//!
//! A log is made from its control record, which appears whole and says that the log is being made (epoch 0), to its
//! first segments. So segments without a control record are a log that lost it, and never one that was being made.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use super::control::ControlFile;
use super::examine::{End, Visit, examine};
use super::files::{self, FIRST_SEGMENTS, Files, SegmentFile};
use super::format::{
    CONTROL_DRAFT, CONTROL_NAME, Control, Geometry, HEADER, Kind, SegmentHeader, Shutdown,
    segment_name,
};
use super::scan::Scanner;
use super::segments::{Segment, Segments};
use super::shared::{Begin, Shared};
use super::{preallocator, zeros};
use crate::environment::Buffer;
use crate::environment::{Durability, Environment, File, FileOf, Method, Storage, planted};
use crate::{Error, Options};

/// A directory that nobody else has meanwhile, and in which nothing was changed.
pub(crate) struct Directory<E: Environment> {
    environment: E,
    names: Vec<String>,
    control: Option<ControlFile<E>>,
    /// It goes on being locked by the log that was opened in it.
    is_kept: bool,
}

/// A log that was read and is in order.
pub(crate) struct Examined {
    pub geometry: Geometry,
    pub files: Files,
    pub end: End,
}

impl<E: Environment> Directory<E> {
    /// Takes the directory, and reads its control record if there is one.
    pub fn lock(environment: &E) -> Result<Directory<E>, Error> {
        let storage = environment.storage();
        let is_ours = storage
            .lock()
            .map_err(Error::io("lock the directory of the log"))?;
        if !is_ours {
            return Err(Error::Locked);
        }
        let mut directory = Directory::of(environment);
        directory.is_kept = false;
        directory.read()?;
        Ok(directory)
    }

    /// One that the caller has locked, and unlocks.
    pub fn locked(environment: &E) -> Result<Directory<E>, Error> {
        let mut directory = Directory::of(environment);
        directory.read()?;
        Ok(directory)
    }

    fn of(environment: &E) -> Directory<E> {
        Directory {
            environment: environment.clone(),
            names: Vec::new(),
            control: None,
            is_kept: true,
        }
    }

    fn read(&mut self) -> Result<(), Error> {
        self.names = files::names(&self.environment)?;
        if files::has_log(&self.names)? {
            self.control = Some(ControlFile::open(&self.environment)?);
            self.check_granule()?;
        }
        Ok(())
    }

    /// Where direct I/O does not take blocks as small as the log's, files go through the page cache.
    fn check_granule(&self) -> Result<(), Error> {
        let storage = self.environment.storage();
        let granule = storage.granule().map_err(finding_method())?;
        if self.record().is_some_and(|record| granule > record.granule) {
            storage.use_method(Method::Buffered);
        }
        Ok(())
    }

    /// What the log says of itself; `None`: there is none yet.
    pub fn record(&self) -> Option<&Control> {
        self.control.as_ref().map(|control| &control.record)
    }

    /// Names of everything that is in it.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Reads everything that the log has, and shows its blocks to `visit`.
    pub fn examine(&self, visit: &mut Visit<'_>) -> Result<Examined, Error> {
        let Some(record) = self.record() else {
            return Err(Error::NoLog);
        };
        let geometry = record.geometry();
        let files = files::find(&self.environment, geometry, record, &self.names)?;
        let end = examine(&self.environment, geometry, record, &files, visit)?;
        Ok(Examined {
            geometry,
            files,
            end,
        })
    }

    /// Makes a log where there is none, whose first record is this one; or goes on where making one was cut off, or failed: as is
    /// asked for now.
    pub fn make(&mut self, options: &Options, first_lsn: u64, kind: Kind) -> Result<(), Error> {
        let found = self.record().copied();
        if let Some(record) = found.filter(|record| record.epoch > 0) {
            return record.require_kind(kind);
        }
        let storage = self.environment.storage().clone();
        let granule = storage.granule().map_err(finding_method())?;
        options.check(granule.into())?;
        let geometry = Geometry {
            granule: granule.into(),
            segment: options.segment_bytes,
        };
        // What an attempt that was cut off, or found no space, has left holds nothing: there was no epoch yet in which it could. So it
        // is made as is asked for now.
        let mut left: Vec<u64> = Vec::new();
        if found.is_some() {
            let files = self.examine(&mut |_| Ok(()))?.files;
            let segments = files.segments.values().chain(&files.free);
            left.extend(segments.map(|file| file.number));
            left.extend(files.unfinished);
        }
        let prepare = || {
            // Whoever made the directory may not have done so.
            storage.sync_parent()?;
            for number in left {
                storage.remove(&segment_name(number))?;
            }
            if self.names.iter().any(|name| name == CONTROL_DRAFT) {
                storage.remove(CONTROL_DRAFT)?;
            }
            storage.sync()
        };
        prepare().map_err(making(options))?;
        let log = found.map_or_else(|| self.environment.random(), |record| record.log);
        let record = Control {
            generation: 1,
            log,
            epoch: 0,
            granule,
            segment: geometry.segment,
            first_segment: 1,
            first_lsn,
            method: Method::Buffered.code(),
            device: 0,
            shutdown: Shutdown::Running,
            end: geometry.first_block(1),
            end_lsn: first_lsn,
            end_chain: 0,
            window: 0,
            kind,
        };
        // Also where there is one: the sync that was to make its name durable may have failed, and another one would say that all is
        // well.
        ControlFile::create(&self.environment, record)?;
        self.control = Some(ControlFile::open(&self.environment)?);
        let make = || {
            for sequence in 1..=FIRST_SEGMENTS {
                let file = preallocator::make(&self.environment, geometry, sequence)?;
                if sequence == 1 {
                    zeros::write(&file, geometry, geometry.granule, || true, |_| {})?;
                }
                let header = SegmentHeader {
                    log,
                    sequence,
                    durable: 0,
                };
                preallocator::make_ready(&self.environment, geometry, header, &file, true)?;
            }
            Ok(())
        };
        make().map_err(making(options))?;
        self.names = files::names(&self.environment)?;
        Ok(())
    }

    /// Begins to write: from here on the directory is changed.
    pub fn begin(mut self, examined: Examined, options: Options) -> Result<Arc<Shared<E>>, Error> {
        let Examined {
            geometry,
            files,
            end,
        } = examined;
        // Also those that it does not follow, or a mistake is seen only where the next log is made.
        options.check(geometry.granule)?;
        let options = options.segment_bytes(geometry.segment);
        options.check(geometry.granule)?;
        let mut control = self.control.take().ok_or(Error::NoLog)?;
        let record = control.record;
        let (method, device) = self.method(&control)?;
        self.environment.storage().use_method(method);
        // What it was opened with may not be what is used now.
        control.reopen()?;
        tell_of_cut_off(&end);
        let mut files = files;
        let was_left = record.epoch > 0 && record.shutdown == Shutdown::Running;
        if was_left && !planted!(self.environment, TrustNames) {
            name_anew(&self.environment, geometry, &mut files, &end)?;
        }
        let durable = || make_durable(&self.environment, geometry, &record, &files, &end);
        if !planted!(self.environment, EpochBeforeDurable) {
            durable()?;
        }
        let epoch = if planted!(self.environment, KeepEpoch) {
            record.epoch.max(1)
        } else {
            record.epoch + 1
        };
        control.write(Control {
            epoch,
            method: method.code(),
            device,
            shutdown: Shutdown::Running,
            end: end.place.position,
            end_lsn: end.next_lsn,
            end_chain: end.place.chain.unwrap_or(0),
            window: options.window(geometry),
            ..record
        })?;
        if planted!(self.environment, EpochBeforeDurable) {
            durable()?;
        }
        // Only now: what these headers promise the control record does.
        if !planted!(self.environment, KeepTorn) {
            erase_torn(&self.environment, geometry, &files, &end)?;
        }
        let mut segments = in_order(&self.environment, files, geometry, &end, &options)?;
        if record.epoch == 0 {
            segments.are_new();
        }
        tracing::debug!(
            log = record.log,
            epoch,
            first = record.first_lsn,
            next = end.next_lsn,
            method = method.name(),
            "the log is open"
        );
        let shared = Arc::new(Shared::new(Begin {
            environment: self.environment.clone(),
            geometry,
            options,
            log: record.log,
            epoch,
            control,
            segments,
            tail: end.place,
            next_lsn: end.next_lsn,
            first_lsn: record.first_lsn,
            kept_bytes: if planted!(self.environment, LogForAll) {
                0
            } else {
                kept_bytes(record.kind, geometry)
            },
        }));
        let preallocator =
            preallocator::start(&shared).map_err(Error::io("start a thread of the log"))?;
        shared.keep_thread(preallocator);
        self.is_kept = true;
        Ok(shared)
    }

    /// How files are written: as was found best, unless the log was brought to another device since.
    fn method(&self, control: &ControlFile<E>) -> Result<(Method, u64), Error> {
        let record = &control.record;
        let storage = self.environment.storage();
        let find = || {
            let device = storage.device()?;
            if storage.granule()? > record.granule {
                return Ok((Method::Buffered, device));
            }
            if let (true, true, Some(method)) = (
                device == record.device,
                record.epoch > 0,
                Method::of_code(record.method),
            ) {
                return Ok((method, device));
            }
            let (file, offset) = control.scratch();
            let method = storage.calibrate(file, offset, record.granule)?;
            Ok((method, device))
        };
        find().map_err(finding_method())
    }
}

impl<E: Environment> Drop for Directory<E> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.environment.storage().unlock();
        }
    }
}

fn tell_of_cut_off(end: &End) {
    if end.cut_off > 0 {
        tracing::warn!(
            blocks = end.cut_off,
            next = end.next_lsn,
            "blocks behind the end are cut off: they were being written when the power or the process went, or the first of them is damaged"
        );
    }
}

/// Bytes of a log that are kept for what frees more than it takes: where the disk is full, a removal can be logged all the same.
fn kept_bytes(kind: Kind, geometry: Geometry) -> u64 {
    match kind {
        Kind::Store => geometry.segment / 4,
        _ => 0,
    }
}

fn making(options: &Options) -> impl FnOnce(io::Error) -> Error {
    let bytes = options.segment_bytes;
    move |error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::NoSpace { bytes },
        _ => Error::io("make a log")(error),
    }
}

fn finding_method() -> impl FnOnce(io::Error) -> Error {
    Error::io("find out how the directory of the log is written")
}

/// Opens the log in the environment's directory, or makes one of this kind, whose first record is
/// `first_lsn`.
pub(crate) fn open<E: Environment>(
    environment: &E,
    options: Options,
    first_lsn: u64,
    kind: Kind,
) -> Result<Arc<Shared<E>>, Error> {
    environment
        .storage()
        .make_directory()
        .map_err(Error::io("make the directory of a log"))?;
    let mut directory = Directory::lock(environment)?;
    directory.make(&options, first_lsn, kind)?;
    let examined = directory.examine(&mut |_| Ok(()))?;
    directory.begin(examined, options)
}

/// Refuses options with which a log cannot be made on every disk. One that is there keeps the sizes that it was made with.
pub(crate) fn check_for_any_disk<E: Environment>(
    environment: &E,
    options: &Options,
) -> Result<(), Error> {
    // There may be no directory yet.
    let names = environment.storage().names().unwrap_or_default();
    if names.iter().any(|name| name == CONTROL_NAME) {
        return Ok(());
    }
    options.check_for_any_disk()
}

/// Gives the segments that nobody has entered other names: a sync of the directory may have failed when they were made,
/// and then another one would say that all is well, and the old names be gone after a power cut. Who entered a segment knew
/// that its name was durable.
fn name_anew<E: Environment>(
    environment: &E,
    geometry: Geometry,
    files: &mut Files,
    end: &End,
) -> Result<(), Error> {
    // Names that were given before are settled first, so that no two are left of one file.
    if !planted!(environment, SkipDirectorySyncAtOpen) {
        let synced = environment.storage().sync();
        synced.map_err(Error::io("make durable what the log has"))?;
    }
    let ahead = geometry.entered(end.place.position) + 1..;
    for (_, file) in files.segments.range_mut(ahead) {
        let (from, to) = (segment_name(file.number), segment_name(files.next_number));
        let renamed = environment.storage().rename(&from, &to);
        renamed.map_err(Error::io(format!("give {from} another name")))?;
        file.number = files.next_number;
        files.next_number += 1;
    }
    Ok(())
}

/// Makes durable what was found, segments that nobody has entered yet among it: nothing promised that it
/// is, and what comes next will promise it.
///
/// What nobody promised is written again, the same bytes: if a write or a flush of it failed, nobody knows
/// whether it is there, and another flush would say that all is well. So are the headers of files, or one of
/// which that is not known could one day be the same segment as another. A log that was closed cleanly has nothing of
/// the kind.
fn make_durable<E: Environment>(
    environment: &E,
    geometry: Geometry,
    record: &Control,
    files: &Files,
    end: &End,
) -> Result<(), Error> {
    if planted!(environment, TrustWhatIsThere) {
        return Ok(());
    }
    let make = || {
        if record.shutdown == Shutdown::Running {
            let from = geometry.sequence(end.unpromised.position);
            let used = files.segments.range(from..).map(|(_, file)| file);
            let mut buffer = Buffer::new(geometry.granule as usize);
            for SegmentFile { number, header } in used.chain(&files.free) {
                let file = environment.storage().open(&segment_name(*number))?;
                let granule = 0..geometry.granule as usize;
                header.encode(buffer.bytes_mut(granule.clone()));
                file.write(buffer.bytes(granule), 0, Durability::Later)?;
                file.sync()?;
            }
            write_again(environment, geometry, record, files, end)?;
        }
        for &number in &files.unfinished {
            environment.storage().remove(&segment_name(number))?;
        }
        if planted!(environment, SkipDirectorySyncAtOpen) {
            return Ok(());
        }
        environment.storage().sync()
    };
    make().map_err(Error::io("make durable what the log has"))
}

/// Takes away the headers of blocks that follow the last one and are not whole. The next block is written over one of them: if that is torn,
/// the old header may stay, and get what its block lacks.
fn erase_torn<E: Environment>(
    environment: &E,
    geometry: Geometry,
    files: &Files,
    end: &End,
) -> Result<(), Error> {
    let erase = |position: u64| {
        let Some(file) = files.open(environment, geometry.sequence(position))? else {
            return Ok(());
        };
        let granule = 0..geometry.granule as usize;
        let zeros = Buffer::new(granule.len());
        let offset = geometry.offset(position);
        file.write(zeros.bytes(granule), offset, Durability::Later)?;
        file.sync()
    };
    let erased = end.torn.iter().try_for_each(|position| erase(*position));
    erased.map_err(Error::io("take away what is torn of the log"))
}

/// Writes the blocks again that nothing promised, each as it is read and found right.
fn write_again<E: Environment>(
    environment: &E,
    geometry: Geometry,
    record: &Control,
    files: &Files,
    end: &End,
) -> io::Result<()> {
    let mut scanner = Scanner::new(
        environment,
        geometry,
        record.log,
        record.epoch,
        end.unpromised,
    );
    let mut open = |sequence| files.open(environment, sequence);
    let mut written: Option<(u64, FileOf<E>)> = None;
    while scanner.place != end.place {
        let Some(block) = scanner.next(end.place.position, &mut open)? else {
            return Err(io::Error::other(
                "a block is read otherwise the second time",
            ));
        };
        let (position, size) = (block.header.position, block.header.size(geometry.granule));
        let sequence = geometry.sequence(position);
        if written.as_ref().is_none_or(|(last, _)| *last != sequence) {
            if let Some((_, file)) = written.take() {
                file.sync()?;
            }
            written = open(sequence)?.map(|file| (sequence, file));
        }
        let start = block.payload.start - HEADER;
        let bytes = scanner.bytes(start..start + size as usize);
        if let Some((_, file)) = &written {
            file.write(bytes, geometry.offset(position), Durability::Later)?;
        }
    }
    written.map_or(Ok(()), |(_, file)| file.sync())
}

/// Segments in use, and those behind them that were made ahead; all others are free.
fn in_order<E: Environment>(
    environment: &E,
    files: Files,
    geometry: Geometry,
    end: &End,
    options: &Options,
) -> Result<Segments<E>, Error> {
    let entered = geometry.entered(end.place.position);
    let mut all = VecDeque::new();
    for (sequence, found) in files.segments {
        let file = if sequence >= entered {
            let opened = environment.storage().open(&segment_name(found.number));
            Some(Arc::new(opened.map_err(Error::io("open a segment"))?))
        } else {
            None
        };
        all.push_back(Segment {
            sequence,
            number: found.number,
            file,
            first_lsn: end.first_lsns.get(&sequence).copied(),
        });
    }
    let spare = options.spare_segments;
    Ok(Segments::new(
        geometry,
        all,
        files.free.iter().map(|file| file.number).collect(),
        files.next_number,
        entered,
        spare,
    ))
}
