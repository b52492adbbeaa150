//! The bytes that are written: incompressible, different in every write, and cheap to make.

/// Alignment of a payload in memory, in bytes: enough for direct I/O on every device there is.
pub const ALIGNMENT: usize = 4096;
/// Distance of the stamps, in bytes: a sector, the smallest block that any deduplication looks at.
const STAMP_EVERY: usize = 512;

/// A buffer, aligned for direct I/O, that is made different for each write.
///
/// Its content is pseudo-random, so that a write cannot be compressed by itself, and an 8-byte stamp in
/// each sector makes every sector unlike every other, so that none is recognised. Stamping costs a
/// store per sector: generating new content would cost more than the system call. What compresses
/// several writes together (a record of 128 KiB) still sees how alike they are.
pub struct Payload {
    storage: Vec<u8>,
    start: usize,
    len: usize,
    is_stamped: bool,
}

impl Payload {
    /// A payload of `len` bytes; the same `seed` gives the same bytes.
    pub fn new(len: usize, seed: u64) -> Payload {
        let mut storage = vec![0u8; len + ALIGNMENT];
        let start = storage.as_ptr().align_offset(ALIGNMENT);
        let mut state = seed;
        for chunk in storage[start..start + len].chunks_mut(8) {
            chunk.copy_from_slice(&split_mix(&mut state).to_le_bytes()[..chunk.len()]);
        }
        Payload {
            storage,
            start,
            len,
            is_stamped: true,
        }
    }

    /// A payload of `len` zeros, in every write.
    pub fn zeros(len: usize) -> Payload {
        let storage = vec![0u8; len + ALIGNMENT];
        let start = storage.as_ptr().align_offset(ALIGNMENT);
        Payload {
            storage,
            start,
            len,
            is_stamped: false,
        }
    }

    /// The bytes themselves, for contents of the caller's own.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.storage[self.start..self.start + self.len]
    }

    /// The bytes of write number `number`.
    #[inline]
    pub fn stamped(&mut self, number: u64) -> &[u8] {
        self.part(0, self.len, number)
    }

    /// `len` bytes from `from` on, as those of write number `number`. A large payload that is written
    /// part by part repeats itself only after its whole length.
    #[inline]
    pub fn part(&mut self, from: usize, len: usize, number: u64) -> &[u8] {
        let begin = self.start + from.min(self.len);
        let end = begin + len.min(self.len - from.min(self.len));
        let bytes = &mut self.storage[begin..end];
        if !self.is_stamped {
            return bytes;
        }
        for block in bytes.chunks_mut(STAMP_EVERY) {
            if let Some(stamp) = block.first_chunk_mut::<8>() {
                *stamp = number.to_le_bytes();
            }
        }
        bytes
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): one multiplication chain a word, and no compressor sees
/// through it.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_aligned_and_differ_in_every_block() {
        let mut payload = Payload::new(3 * 4096 + 512, 1);
        let first = payload.stamped(1).to_vec();
        let second = payload.stamped(2).to_vec();
        assert_eq!(payload.stamped(3).as_ptr().align_offset(ALIGNMENT), 0);
        for (a, b) in first.chunks(4096).zip(second.chunks(4096)) {
            assert_ne!(a, b);
        }
    }

    #[test]
    fn parts_are_cut_at_the_end_and_zeros_are_never_stamped() {
        let mut payload = Payload::new(2048, 1);
        assert_eq!(payload.part(1024, 512, 9).len(), 512);
        assert_eq!(payload.part(1024, 4096, 9).len(), 1024);
        assert_eq!(payload.part(9999, 1, 9).len(), 0);
        assert_eq!(&payload.part(512, 8, 9)[..8], 9u64.to_le_bytes());
        assert!(
            Payload::zeros(4096)
                .stamped(7)
                .iter()
                .all(|&byte| byte == 0)
        );
    }

    #[test]
    fn contents_of_the_callers_own_are_written() {
        let mut payload = Payload::zeros(1024);
        payload.bytes_mut()[1023] = 5;
        assert_eq!(payload.bytes_mut().len(), 1024);
        assert_eq!(payload.stamped(7)[1023], 5);
    }

    #[test]
    fn content_is_spread_over_all_byte_values() {
        let mut payload = Payload::new(1 << 16, 7);
        let mut seen = [0u32; 256];
        payload
            .stamped(0x0123_4567_89ab_cdef)
            .iter()
            .for_each(|&byte| seen[byte as usize] += 1);
        // 256 expected of each, standard deviation 16; and 128 stamps have 8 values more often.
        assert!(seen.iter().all(|&count| (150..500).contains(&count)));
    }
}
