//! Writing zeros, so that later writes overwrite written blocks.

use std::io;

use super::format::Geometry;
use crate::environment::Buffer;
use crate::environment::{Durability, File};

/// Bytes of zeros that are written at once, at most: what somebody may have to wait for who needs the segment.
const CHUNK: u64 = 256 << 10;

/// Bytes of zeros that are written at once.
fn chunk(geometry: Geometry) -> u64 {
    let part = (geometry.segment / 8).next_multiple_of(geometry.granule);
    part.min(CHUNK)
}

/// Writes zeros from `from` on to the end of a segment, as long as `goes_on` says so, which is asked before each write; and
/// does not sync. `false`: it was told to stop. `written` is told how many bytes were written, each time.
pub(crate) fn write<F: File>(
    file: &F,
    geometry: Geometry,
    from: u64,
    mut goes_on: impl FnMut() -> bool,
    mut written: impl FnMut(u64),
) -> io::Result<bool> {
    let chunk = chunk(geometry);
    let buffer = Buffer::new(chunk as usize);
    let mut at = from;
    while at < geometry.segment {
        if !goes_on() {
            return Ok(false);
        }
        // Up to where the next one begins: of a page that is written in part the filesystem writes the rest.
        let len = (chunk - at % chunk).min(geometry.segment - at);
        file.write(buffer.bytes(0..len as usize), at, Durability::Later)?;
        written(len);
        at += len;
    }
    Ok(true)
}
