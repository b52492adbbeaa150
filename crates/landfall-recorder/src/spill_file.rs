//! Bytes written one after the other and read anywhere: in memory up to a limit, then on disk.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::MemfdFlags;

/// A file in memory, or one without a name in a directory: gone when it is closed.
pub(crate) fn nameless(in_memory: bool, spill: &Path) -> io::Result<File> {
    if in_memory {
        let fd = rustix::fs::memfd_create("landfall-recorder", MemfdFlags::CLOEXEC)?;
        return Ok(fd.into());
    }
    tempfile::tempfile_in(spill)
}

/// Bytes that only grow.
#[derive(Debug)]
pub(crate) struct SpillFile {
    memory: File,
    spill: File,
    /// Places below this are in memory.
    limit: u64,
    len: u64,
}

impl SpillFile {
    /// An empty one that keeps `limit` bytes in memory and the rest in a nameless file in `spill`.
    pub fn new(limit: u64, spill: &Path) -> io::Result<SpillFile> {
        Ok(SpillFile {
            memory: nameless(true, spill)?,
            spill: nameless(false, spill)?,
            limit,
            len: 0,
        })
    }

    /// Appends the bytes; returns where they lie.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let start = self.len;
        let room = usize::try_from(self.limit.saturating_sub(start)).unwrap_or(usize::MAX);
        let (first, second) = bytes.split_at(room.min(bytes.len()));
        if !first.is_empty() {
            self.memory.write_all_at(first, start)?;
        }
        if !second.is_empty() {
            let place = start + first.len() as u64 - self.limit;
            self.spill.write_all_at(second, place)?;
        }
        self.len += bytes.len() as u64;
        Ok(start)
    }

    /// Fills `into` with what lies from `start`.
    pub fn read(&self, start: u64, into: &mut [u8]) -> io::Result<()> {
        let room = usize::try_from(self.limit.saturating_sub(start)).unwrap_or(usize::MAX);
        let middle = room.min(into.len());
        let (first, second) = into.split_at_mut(middle);
        if !first.is_empty() {
            self.memory.read_exact_at(first, start)?;
        }
        if !second.is_empty() {
            let place = start + middle as u64 - self.limit;
            self.spill.read_exact_at(second, place)?;
        }
        Ok(())
    }

    /// Bytes on it.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Bytes of it that are on disk.
    pub fn spilled(&self) -> u64 {
        self.len.saturating_sub(self.limit)
    }

    /// Places below this are in memory.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// One with the same bytes, which must not grow any more, whichever of the two is asked to.
    pub fn copy(&self) -> io::Result<SpillFile> {
        Ok(SpillFile {
            memory: self.memory.try_clone()?,
            spill: self.spill.try_clone()?,
            ..*self
        })
    }

    /// What a thread with descriptors of its own must keep.
    pub fn descriptors(&self) -> [RawFd; 2] {
        [self.memory.as_raw_fd(), self.spill.as_raw_fd()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_on_both_sides_of_the_limit_are_read_back() {
        let mut spill = SpillFile::new(10, &std::env::temp_dir()).unwrap();
        let pieces: [&[u8]; 4] = [b"abcdef", b"ghijklm", b"", b"nop"];
        let places: Vec<u64> = pieces
            .iter()
            .map(|piece| spill.append(piece).unwrap())
            .collect();
        assert_eq!(places, [0, 6, 13, 13]);
        assert_eq!((spill.len(), spill.spilled()), (16, 6));
        for start in 0..16 {
            for len in 0..=16 - start {
                let mut read = vec![0; len];
                spill.read(start as u64, &mut read).unwrap();
                assert_eq!(read, b"abcdefghijklmnop"[start..start + len]);
            }
        }
        assert!(spill.read(16, &mut [0]).is_err());
    }
}
