//! Copying what can still be read of a damaged log.
//!
//! Nothing is believed here but checksums: not that a file is the segment that its name, its header or its neighbours
//! say, nor that the control record is there. Every granule of every file is looked at for a block of the log. Those that
//! are whole are gone through in the order of their positions, and where one does not follow the one before, something is
//! missing: which records that are is told by the numbers on both sides. The damaged log is not changed.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use super::Handle;
use super::batch_assembler::{BatchAssembler, Place};
use super::directory::{self, Directory};
use super::format::{
    BlockHeader, CONTROL, CONTROL_NAME, Control, ControlCopy, Geometry, HEADER, Kind, MOST,
    MOST_BLOCK, SegmentHeader, VERSION, payload_crc, segment_number,
};
use crate::environment::Buffer;
use crate::environment::{Environment, File, Storage, machine, read_only_machine};
use crate::{Error, Lsn, Options};

/// What was copied of a damaged log, and what was not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Salvage {
    /// The first record that the new log has: its number in both logs.
    pub first_lsn: Lsn,
    /// Records that were copied. The new log numbers them one by one, without gaps.
    pub copied: u64,
    /// Records that could not be read, in order. Those before [`first_lsn`](Salvage::first_lsn) are among them only if the
    /// control file could be read.
    pub missing: Vec<Missing>,
    /// Whether the damaged log was closed cleanly, and its records end where it says.
    pub ends_cleanly: bool,
}

/// Records that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missing {
    /// Their numbers in the damaged log; of those at the end it may not be known how many there were.
    pub lsns: Range<Lsn>,
    /// The number in the new log of the record behind them.
    pub new_lsn: Lsn,
}

impl Salvage {
    /// Copies every record that can be read of the log in `from`, damaged or not, into a new log in `to`, which must
    /// not be there or be empty. Nothing in `from` is changed.
    ///
    /// A record of which a part is missing is left out, and so is one of a batch that is not there whole. Without a
    /// control file that can be read, records that were truncated away may be there again. Of a state the commands are
    /// copied, as the records of a log; [`StateSalvage`](crate::StateSalvage) copies the state. If it fails, nothing is
    /// left in `to`.
    /// [`Error::Locked`]: somebody has one of the two open. [`Error::NoLog`]: there is no block of a log in `from`.
    pub fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Salvage, Error> {
        copy(&read_only_machine(from.as_ref()), &machine(to.as_ref()))
    }
}

pub(crate) fn copy<E: Environment, T: Environment>(from: &E, to: &T) -> Result<Salvage, Error> {
    with_source(from, |source| {
        let mut copy = Copy::new(
            source,
            to,
            Kind::Log,
            source.control.map(|one| one.first_lsn),
        );
        let copied = source
            .records(&mut |lsn, bytes| copy.append(lsn, bytes))
            .and_then(|()| copy.finish(source.control.as_ref()));
        copied.inspect_err(|_| copy.remove())
    })
}

/// Looks at a damaged log, which nobody else has meanwhile.
pub(crate) fn with_source<E: Environment, R>(
    from: &E,
    look: impl FnOnce(&Source<'_, E>) -> Result<R, Error>,
) -> Result<R, Error> {
    let storage = from.storage();
    let is_ours = storage
        .lock()
        .map_err(Error::io("lock the directory of the damaged log"))?;
    if !is_ours {
        return Err(Error::Locked);
    }
    let seen = Source::open(from).and_then(|source| look(&source));
    storage.unlock();
    seen
}

/// A block that is whole.
struct Found {
    file: String,
    offset: u64,
    header: BlockHeader,
    chain: u32,
}

/// Sees a record and its number.
pub(crate) type Visit<'a> = dyn FnMut(u64, &[u8]) -> Result<(), Error> + 'a;

/// A damaged log, and everything in it that is whole.
pub(crate) struct Source<'a, E: Environment> {
    environment: &'a E,
    pub geometry: Geometry,
    pub log: u64,
    pub control: Option<Control>,
    /// The blocks of a log that is not damaged, by position, with their epochs: no other ever counted.
    whole: Option<BTreeMap<u64, u64>>,
    /// By position, and at the same position by epoch.
    blocks: BTreeMap<(u64, u64), Found>,
}

impl<'a, E: Environment> Source<'a, E> {
    /// Finds the blocks of a log.
    fn open(environment: &'a E) -> Result<Source<'a, E>, Error> {
        let storage = environment.storage();
        let names = storage
            .names()
            .map_err(Error::io("read the directory of the damaged log"))?;
        let control = control(environment)?;
        let mut names: Vec<String> = names
            .into_iter()
            .filter(|name| segment_number(name).is_some())
            .collect();
        names.sort_unstable();
        if control.is_none() {
            // A segment may have its name.
            names.push(CONTROL_NAME.to_owned());
        }
        // One that was put there from another log says nothing of this one.
        let control = control.filter(|control| {
            let ids: Vec<u64> = names
                .iter()
                .filter_map(|name| log_of(environment, name))
                .collect();
            ids.is_empty() || ids.contains(&control.log)
        });
        let (log, geometry) = match control {
            Some(control) => (control.log, control.geometry()),
            None => guess(environment, &names)?,
        };
        let mut source = Source {
            environment,
            geometry,
            log,
            control,
            whole: whole(environment),
            blocks: BTreeMap::new(),
        };
        for name in names {
            if let Err(error) = source.index(&name) {
                tracing::warn!(%error, name, "a file cannot be read");
            }
        }
        Ok(source)
    }

    /// Takes note of every block in a file that is whole.
    fn index(&mut self, name: &str) -> std::io::Result<()> {
        let granule = self.geometry.granule;
        let file = self.environment.storage().open(name)?;
        let size = file.size()? / granule * granule;
        let mut window = Window::new(size);
        let mut at = granule;
        while at < size {
            let mut next = at + granule;
            // What cannot be read is passed over.
            let head = window.bytes(&file, at, HEADER as u64, granule);
            let decoded = head.ok().flatten().and_then(BlockHeader::decode);
            if let Some((header, chain)) = decoded
                && self.is_plausible(&header, at)
            {
                let len = header.size(granule);
                let block = window.bytes(&file, at, len, granule).ok().flatten();
                let end = HEADER + header.length as usize;
                if block.is_some_and(|block| payload_crc(&block[HEADER..end]) == header.payload_crc)
                {
                    let found = Found {
                        file: name.to_owned(),
                        offset: at,
                        header,
                        chain,
                    };
                    self.blocks.insert((header.position, header.epoch), found);
                    next = at + len;
                }
            }
            at = next;
        }
        Ok(())
    }

    fn is_plausible(&self, header: &BlockHeader, offset: u64) -> bool {
        let room = self.geometry.room(header.position);
        let first = self.control.map_or(0, |control| control.first_segment);
        header.log == self.log
            && header.position < MOST
            && header.lsn.max(header.epoch) < MOST
            && u64::from(header.batch_back) < header.lsn
            && self.geometry.offset(header.position) == offset
            && self.geometry.sequence(header.position) >= first
            && self.is_of_its_time(header)
            && header.size(self.geometry.granule) <= room.min(MOST_BLOCK)
    }

    /// Whether a block at its place counts, by its epoch.
    fn is_of_its_time(&self, header: &BlockHeader) -> bool {
        let is_whole =
            |whole: &BTreeMap<u64, u64>| whole.get(&header.position) == Some(&header.epoch);
        // What is behind the end that the last opening found was written since then, or cut off by it.
        let is_since =
            |control: Control| header.position < control.end || header.epoch >= control.epoch;
        self.whole.as_ref().is_none_or(is_whole) && self.control.is_none_or(is_since)
    }

    /// The blocks to be read, in their order: of those that cannot all have been part of the log the ones that follow
    /// each other, or were written last.
    fn in_order(&self) -> Vec<&Found> {
        let mut order: Vec<&Found> = Vec::new();
        let (mut end, mut epoch) = (0, 0);
        let mut positions = self.blocks.values().peekable();
        while let Some(first) = positions.next() {
            let mut candidates = vec![first];
            while let Some(other) =
                positions.next_if(|other| other.header.position == first.header.position)
            {
                candidates.push(other);
            }
            let chain = order.last().map(|last| last.chain);
            // Who wrote there later had found the log to end before it.
            let best = candidates
                .iter()
                .rev()
                .find(|found| Some(found.header.previous) == chain)
                .or(candidates.last());
            if let Some(best) = best
                && best.header.position >= end
                && best.header.epoch >= epoch
            {
                end = best.header.position + best.header.size(self.geometry.granule);
                epoch = best.header.epoch;
                order.push(best);
            }
        }
        without_replaced(order)
    }

    /// Shows every record that can be read, in the order of the log. Some may have a number that one before had.
    pub fn records(&self, visit: &mut Visit<'_>) -> Result<(), Error> {
        let order = self.in_order();
        if order.is_empty() && self.control.is_none() {
            return Err(Error::NoLog);
        }
        let mut assembler = BatchAssembler::new();
        let mut chain = None;
        // Where the log begins: of a batch that goes on there the beginning was truncated away, and is not missing.
        let first = self.control.map(|control| control.first_segment);
        let first = first.or_else(|| self.first_of_last_run(&order));
        let beginning = self.geometry.first_block(first.unwrap_or(1));
        // The first record of a batch of which the beginning is missing.
        let mut begun_before = None;
        for found in order {
            if chain.is_some_and(|chain| chain != found.header.previous) {
                assembler = BatchAssembler::new();
            }
            let Some(payload) = self.payload(found) else {
                assembler = BatchAssembler::new();
                chain = None;
                continue;
            };
            let mut is_first = assembler.tracker.is_new();
            if assembler.enter(&found.header, payload.len()).is_err() {
                // It does not go on from the one before, whatever its checksum says.
                (assembler, is_first) = (BatchAssembler::new(), true);
                if assembler.enter(&found.header, payload.len()).is_err() {
                    continue;
                }
            }
            chain = Some(found.chain);
            let back = u64::from(found.header.batch_back);
            if is_first || back == 0 {
                let is_missing = back > 0 && found.header.position != beginning;
                begun_before = is_missing.then(|| found.header.lsn - back);
            }
            // What makes no sense ends the block, and the next one begins anew.
            loop {
                let Ok(next) = assembler.next(&payload) else {
                    assembler = BatchAssembler::new();
                    break;
                };
                let Some((lsn, place)) = next else { break };
                if begun_before == Some(assembler.tracker.batch_first()) {
                    continue;
                }
                let bytes = match place {
                    Place::Payload(range) => &payload[range],
                    Place::Kept(range) => assembler.kept(range),
                };
                visit(lsn, bytes)?;
            }
        }
        Ok(())
    }

    /// The first of the segments up to the last without a gap: those before a gap were given up.
    fn first_of_last_run(&self, order: &[&Found]) -> Option<u64> {
        let sequences = order.iter().rev();
        let mut sequences = sequences.map(|found| self.geometry.sequence(found.header.position));
        let mut first = sequences.next()?;
        for sequence in sequences {
            if first - sequence > 1 {
                break;
            }
            first = sequence;
        }
        Some(first)
    }

    /// The records of a block, as they were when it was found; `None`: they cannot be read again.
    fn payload(&self, found: &Found) -> Option<Vec<u8>> {
        let size = found.header.size(self.geometry.granule) as usize;
        let mut buffer = Buffer::new(size);
        // What is wrong once may be right the next time.
        for _ in 0..2 {
            let file = self.environment.storage().open(&found.file);
            let read = file.and_then(|file| file.read(buffer.bytes_mut(0..size), found.offset));
            if let Err(error) = read {
                tracing::warn!(%error, name = found.file, "a block cannot be read again");
                continue;
            }
            let payload = buffer.bytes(HEADER..HEADER + found.header.length as usize);
            let is_same =
                BlockHeader::decode(buffer.bytes(0..size)) == Some((found.header, found.chain));
            if is_same && payload_crc(payload) == found.header.payload_crc {
                return Some(payload.to_vec());
            }
        }
        None
    }
}

/// Without the blocks of an earlier epoch that have numbers which a later one gave again: that one had found the log to end
/// before them.
fn without_replaced(order: Vec<&Found>) -> Vec<&Found> {
    let start = |found: &Found| found.header.lsn - u64::from(found.header.batch_back);
    let (mut least, mut of_epoch, mut epoch) = (u64::MAX, u64::MAX, u64::MAX);
    let mut kept = Vec::new();
    for found in order.into_iter().rev() {
        if found.header.epoch != epoch {
            least = least.min(of_epoch);
            (of_epoch, epoch) = (u64::MAX, found.header.epoch);
        }
        of_epoch = of_epoch.min(start(found));
        if start(found) < least {
            kept.push(found);
        }
    }
    kept.reverse();
    kept
}

/// The new log, which is made with the first record.
pub(crate) struct Copy<'a, T: Environment> {
    to: &'a T,
    options: Options,
    kind: Kind,
    log: Option<Handle<T>>,
    /// The directory was empty, and what is in it now was made here.
    is_begun: bool,
    /// The record that comes next in the damaged log; `None`: whichever is the first, since nothing says what was
    /// truncated away.
    expected: Option<u64>,
    copied: u64,
    missing: Vec<Missing>,
}

impl<'a, T: Environment> Copy<'a, T> {
    /// Of records from `expected` on: whichever is the first, if nothing says what was truncated away.
    pub fn new<E: Environment>(
        source: &Source<'_, E>,
        to: &'a T,
        kind: Kind,
        expected: Option<u64>,
    ) -> Copy<'a, T> {
        Copy {
            to,
            options: Options::default().segment_bytes(source.geometry.segment),
            kind,
            log: None,
            is_begun: false,
            expected,
            copied: 0,
            missing: Vec::new(),
        }
    }

    /// Takes away what it has made: half a copy is worse than none.
    pub fn remove(&mut self) {
        if !self.is_begun {
            return;
        }
        if let Some(log) = self.log.take() {
            let _ = log.close();
        }
        let storage = self.to.storage();
        for name in storage.names().unwrap_or_default() {
            if let Err(error) = storage.remove(&name) {
                tracing::warn!(%error, name, "a file of half a copy cannot be removed");
            }
        }
    }

    pub fn append(&mut self, lsn: u64, bytes: &[u8]) -> Result<(), Error> {
        let expected = self.expected.unwrap_or(lsn);
        if lsn < expected {
            // It was truncated away, or is an older one with a number that was used again.
            return Ok(());
        }
        let log = self.log(lsn)?;
        let new_lsn = log.append(bytes)?;
        if lsn > expected {
            self.missing.push(Missing {
                lsns: Lsn(expected)..Lsn(lsn),
                new_lsn,
            });
        }
        self.expected = Some(lsn + 1);
        self.copied += 1;
        Ok(())
    }

    /// The new log, which is made with this first record if it is not there yet.
    pub fn log(&mut self, first_lsn: u64) -> Result<&Handle<T>, Error> {
        let log = match self.log.take() {
            Some(log) => log,
            None => {
                self.require_empty()?;
                self.is_begun = true;
                // The disk may have larger blocks than that of the damaged log.
                let granule = self.to.storage().granule();
                let granule = u64::from(granule.map_err(Error::io("ask for the disk's blocks"))?);
                let segment = self.options.segment_bytes.max(4 * granule);
                let options = self.options.clone();
                let options = options.segment_bytes(segment.next_multiple_of(granule));
                let shared = directory::open(self.to, options, first_lsn, self.kind)?;
                Handle { shared }
            }
        };
        Ok(self.log.insert(log))
    }

    fn require_empty(&self) -> Result<(), Error> {
        let made = self.to.storage().make_directory();
        made.map_err(Error::io("make the directory of the new log"))?;
        let names = self.to.storage().names();
        let names = names.map_err(Error::io("read the directory of the new log"))?;
        match names.into_iter().next() {
            Some(name) => Err(Error::NotEmpty { name }),
            None => Ok(()),
        }
    }

    fn finish(&mut self, control: Option<&Control>) -> Result<Salvage, Error> {
        let end = self.expected.unwrap_or(1);
        let log = self.log(end)?;
        let (first_lsn, new_lsn) = (log.first_lsn(), log.next_lsn());
        log.close()?;
        // What is known to have been there.
        let known = control.map_or(end, |control| control.end_lsn);
        if known > end {
            self.missing.push(Missing {
                lsns: Lsn(end)..Lsn(known),
                new_lsn,
            });
        }
        let is_closed =
            control.is_some_and(|control| control.shutdown == super::format::Shutdown::Closed);
        Ok(Salvage {
            first_lsn,
            copied: self.copied,
            missing: std::mem::take(&mut self.missing),
            ends_cleanly: is_closed && known == end,
        })
    }
}

/// The control record, if one of its copies can be read.
fn control<E: Environment>(environment: &E) -> Result<Option<Control>, Error> {
    let Ok(file) = environment.storage().open(CONTROL_NAME) else {
        return Ok(None);
    };
    let mut buffer = Buffer::new(CONTROL);
    let copies = [0, CONTROL as u64].map(|at| {
        file.read(buffer.bytes_mut(0..CONTROL), at).ok()?;
        Some(Control::decode(buffer.bytes(0..CONTROL)))
    });
    let valid = copies.iter().flatten().filter_map(|copy| match copy {
        ControlCopy::Valid(control) if control.makes_sense() => Some(*control),
        _ => None,
    });
    if let Some(control) = valid.max_by_key(|control| control.generation) {
        return Ok(Some(control));
    }
    // One bit may say so of one copy; both were written by another version.
    match copies {
        [Some(ControlCopy::Other(found)), Some(ControlCopy::Other(_))] => Err(Error::Version {
            found,
            known: VERSION,
        }),
        _ => Ok(None),
    }
}

/// The blocks of a log that is not damaged.
fn whole<E: Environment>(environment: &E) -> Option<BTreeMap<u64, u64>> {
    let mut blocks = BTreeMap::new();
    let directory = Directory::locked(environment).ok()?;
    let seen = directory.examine(&mut |visited| {
        blocks.insert(visited.header.position, visited.header.epoch);
        Ok(())
    });
    seen.is_ok().then_some(blocks)
}

/// Bytes of a file that are seen to know what it is.
const SEEN: usize = 8192;

/// What a file begins with, as far as it has whole blocks of the disk, and its size.
fn beginning<'a, E: Environment>(
    environment: &E,
    name: &str,
    buffer: &'a mut Buffer,
) -> Option<(&'a [u8], u64)> {
    let storage = environment.storage();
    let file = storage.open(name).ok()?;
    let (size, granule) = (file.size().ok()?, storage.granule().ok()? as usize);
    let read = 0..size.min(SEEN as u64) as usize / granule * granule;
    file.read(buffer.bytes_mut(read.clone()), 0).ok()?;
    Some((buffer.bytes(read), size))
}

/// The log that a segment belongs to, if its header can be read.
fn log_of<E: Environment>(environment: &E, name: &str) -> Option<u64> {
    let mut buffer = Buffer::new(SEEN);
    let (bytes, _) = beginning(environment, name, &mut buffer)?;
    Some(bytes.get(..512).and_then(SegmentHeader::decode)?.log)
}

/// Which log the files are of, and how it is cut, by the first segment whose first block can be read.
fn guess<E: Environment>(environment: &E, names: &[String]) -> Result<(u64, Geometry), Error> {
    let mut buffer = Buffer::new(SEEN);
    for name in names {
        let Some((bytes, size)) = beginning(environment, name, &mut buffer) else {
            continue;
        };
        let Some(header) = bytes.get(..512).and_then(SegmentHeader::decode) else {
            continue;
        };
        for granule in [512, 1024, 2048, 4096] {
            let block = bytes.get(granule..granule + HEADER);
            let is_block = block
                .and_then(BlockHeader::decode)
                .is_some_and(|(block, _)| block.log == header.log);
            let geometry = Geometry {
                granule: granule as u64,
                segment: size,
            };
            if is_block && size.is_multiple_of(granule as u64) && size >= 4 * granule as u64 {
                return Ok((header.log, geometry));
            }
        }
    }
    Err(Error::NoLog)
}

/// A part of a file, read ahead.
struct Window {
    size: u64,
    buffer: Buffer,
    base: u64,
    filled: u64,
    /// Before this nothing is read ahead: there is something that cannot be read.
    careful_until: u64,
}

impl Window {
    fn new(size: u64) -> Window {
        Window {
            size,
            buffer: Buffer::new(2 * MOST_BLOCK as usize),
            base: 0,
            filled: 0,
            careful_until: 0,
        }
    }

    /// So many bytes, from a whole granule on; `None`: there are not so many.
    fn bytes<F: File>(
        &mut self,
        file: &F,
        at: u64,
        len: u64,
        granule: u64,
    ) -> std::io::Result<Option<&[u8]>> {
        let needed = len.next_multiple_of(granule);
        if at + needed > self.size {
            return Ok(None);
        }
        if at < self.base || at + needed > self.base + self.filled {
            let most = (self.buffer.capacity() as u64).min(self.size - at);
            let most = (most / granule * granule).max(needed);
            self.filled = 0;
            let mut is_ahead = at >= self.careful_until;
            if is_ahead
                && file
                    .read(self.buffer.bytes_mut(0..most as usize), at)
                    .is_err()
            {
                // What cannot be read may be behind it, and is asked for once.
                (is_ahead, self.careful_until) = (false, at + most);
            }
            if !is_ahead {
                file.read(self.buffer.bytes_mut(0..needed as usize), at)?;
            }
            let read = if is_ahead { most } else { needed };
            (self.base, self.filled) = (at, read);
        }
        let start = (at - self.base) as usize;
        Ok(Some(self.buffer.bytes(start..start + len as usize)))
    }
}
