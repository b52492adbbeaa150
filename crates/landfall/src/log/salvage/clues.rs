//! What the files of a damaged log say of it: its control record, its blocks if it is not damaged after all, and which log
//! it is where nothing says so.

use std::collections::BTreeMap;

use crate::Error;
use crate::environment::{Buffer, Environment, File, Storage};
use crate::log::directory::Directory;
use crate::log::format::{
    BlockHeader, CONTROL, CONTROL_NAME, Control, ControlCopy, Geometry, HEADER, SegmentHeader,
    VERSION,
};

/// The control record, if one of its copies can be read.
pub(super) fn control<E: Environment>(environment: &E) -> Result<Option<Control>, Error> {
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
pub(super) fn whole<E: Environment>(environment: &E) -> Option<BTreeMap<u64, u64>> {
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
pub(super) fn log_of<E: Environment>(environment: &E, name: &str) -> Option<u64> {
    let mut buffer = Buffer::new(SEEN);
    let (bytes, _) = beginning(environment, name, &mut buffer)?;
    Some(bytes.get(..512).and_then(SegmentHeader::decode)?.log)
}

/// Which log the files are of, and how it is cut: by the first segment of which blocks can be read, and the others of its
/// log.
pub(super) fn guess<E: Environment>(
    environment: &E,
    names: &[String],
) -> Result<(u64, Geometry), Error> {
    let mut found: Option<(u64, Geometry)> = None;
    let mut buffer = Buffer::new(SEEN);
    for name in names {
        let Some((bytes, size)) = beginning(environment, name, &mut buffer) else {
            continue;
        };
        let Some(header) = bytes.get(..512).and_then(SegmentHeader::decode) else {
            continue;
        };
        let is_wanted = found.is_none_or(|(log, _)| log == header.log);
        let geometries = blocks_in(bytes, header.log).filter_map(|(offset, position)| {
            // The file may be cut off, and then its block says more; or be used again, and have one of another segment.
            let before = position.saturating_sub(offset);
            let segment = before.checked_div(header.sequence).unwrap_or(0).max(size);
            // Where there is a block, granules end; its first one may be damaged.
            let granule = (1 << offset.trailing_zeros()).min(4096);
            let geometry = Geometry { granule, segment };
            let is_right = geometry.makes_sense() && geometry.offset(position) == offset;
            is_right.then_some(geometry)
        });
        for geometry in geometries.filter(|_| is_wanted) {
            let (_, whole) = found.get_or_insert((header.log, geometry));
            whole.granule = whole.granule.min(geometry.granule);
        }
    }
    found.ok_or(Error::NoLog)
}

/// Where blocks of a log seem to be among these bytes, and where they belong.
fn blocks_in(bytes: &[u8], log: u64) -> impl Iterator<Item = (u64, u64)> {
    let offsets = (512..bytes.len()).step_by(512);
    offsets.filter_map(move |offset| {
        let (block, _) = BlockHeader::decode(bytes.get(offset..offset + HEADER)?)?;
        (block.log == log).then_some((offset as u64, block.position))
    })
}
