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

/// Which log the files are of, and how it is cut, by the first segment whose first block can be read.
pub(super) fn guess<E: Environment>(
    environment: &E,
    names: &[String],
) -> Result<(u64, Geometry), Error> {
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
