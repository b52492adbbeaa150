//! Memory that direct I/O takes.

use std::ops::Range;

use super::ALIGNMENT;

/// Zeroed bytes that begin at a multiple of [`ALIGNMENT`].
#[derive(Debug)]
pub(crate) struct Buffer {
    storage: Vec<u8>,
    start: usize,
}

impl Buffer {
    pub fn new(len: usize) -> Buffer {
        let storage = vec![0; len + ALIGNMENT];
        let start = storage.as_ptr().align_offset(ALIGNMENT);
        Buffer { storage, start }
    }

    pub fn capacity(&self) -> usize {
        self.storage.len() - ALIGNMENT
    }

    #[inline]
    pub fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.storage[self.start + range.start..self.start + range.end]
    }

    #[inline]
    pub fn bytes_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        &mut self.storage[self.start + range.start..self.start + range.end]
    }
}
