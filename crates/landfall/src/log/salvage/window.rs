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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::environment::Storage;
    use crate::fuzzing::memory::Memory;

    const GRANULE: u64 = 512;
    const SIZE: u64 = 5 * MOST_BLOCK + GRANULE;

    fn byte(at: u64) -> u8 {
        (at / GRANULE * 31 + at % 251) as u8
    }

    #[test]
    fn bytes_are_those_of_the_file_and_few_reads_get_them() {
        let contents: Vec<u8> = (0..SIZE).map(byte).collect();
        let storage = Memory::new(BTreeMap::from([("file".to_owned(), contents)]));
        let file = storage.open("file").unwrap();
        let mut window = Window::new(SIZE);
        let mut check = |at: u64, len: u64| {
            let found = window.bytes(&file, at, len, GRANULE).unwrap();
            let whole = at + len.next_multiple_of(GRANULE) <= SIZE;
            let expected: Vec<u8> = (at..at + len).map(byte).collect();
            assert!(found == whole.then_some(&expected[..]), "{len} from {at}");
        };
        for at in (0..SIZE).step_by(GRANULE as usize) {
            // A header, and then all of what it begins.
            check(at, 64);
            check(at, GRANULE);
        }
        let reads = storage.device().reads.load(Relaxed);
        assert_eq!(reads, SIZE.div_ceil(2 * MOST_BLOCK));
        // Back, over the end of what was read, the last granule, and more than there is.
        check(GRANULE, 64);
        check(2 * MOST_BLOCK, MOST_BLOCK);
        check(MOST_BLOCK, MOST_BLOCK + 3);
        check(SIZE - GRANULE, GRANULE);
        check(SIZE - GRANULE, GRANULE + 1);
    }

    #[test]
    fn what_cannot_be_read_is_passed_over_alone() {
        let contents: Vec<u8> = (0..SIZE).map(byte).collect();
        let storage = Memory::new(BTreeMap::from([("file".to_owned(), contents)]));
        let file = storage.open("file").unwrap();
        let bad = MOST_BLOCK + 3 * GRANULE;
        storage.device().bad_byte.store(bad, Relaxed);
        let mut window = Window::new(SIZE);
        for at in (0..SIZE).step_by(GRANULE as usize) {
            let found = window.bytes(&file, at, 64, GRANULE);
            assert_eq!(found.is_err(), at == bad, "{at}");
        }
        // With what is behind it, and by itself.
        assert_eq!(storage.device().bad_reads.load(Relaxed), 2);
        // Then as much at once as before: no more than a window is read granule by granule.
        let reads = storage.device().reads.load(Relaxed);
        assert!(reads <= 2 * MOST_BLOCK / GRANULE + 4, "{reads}");
    }
}
