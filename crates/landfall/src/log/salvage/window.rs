//! A file that is read ahead, as far as it can be read.

use crate::environment::{Buffer, File};
use crate::log::format::MOST_BLOCK;

/// A part of a file, read ahead.
pub(super) struct Window {
    size: u64,
    buffer: Buffer,
    base: u64,
    filled: u64,
    /// Before this nothing is read ahead: there is something that cannot be read.
    careful_until: u64,
}

impl Window {
    pub fn new(size: u64) -> Window {
        Window {
            size,
            buffer: Buffer::new(2 * MOST_BLOCK as usize),
            base: 0,
            filled: 0,
            careful_until: 0,
        }
    }

    /// So many bytes, from a whole granule on; `None`: there are not so many.
    pub fn bytes<F: File>(
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
