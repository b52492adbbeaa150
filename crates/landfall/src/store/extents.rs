//! Which bytes of the data file are free.
//!
//! An extent is taken by who writes a page, and belongs to it. Everything that can lead to the page holds it: the tree in
//! memory, a reader that is at it, and what the last durable control record leads to. When the last of them lets go the
//! extent is free again: so nothing is overwritten that a power cut, or a reader, may still need.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use crate::environment::Environment;

/// Extents that are looked at for a place that is aligned.
const MOST_TRIED: usize = 32;

/// Free extents, none of which touches another.
#[derive(Debug, Default)]
pub(crate) struct Free {
    /// Lengths by where they begin.
    by_start: BTreeMap<u64, u64>,
    /// Length and beginning.
    by_length: BTreeSet<(u64, u64)>,
    /// Where bytes are that are kept for whoever frees more than he takes, and how many.
    spare: Vec<(u64, u64)>,
    /// The end of the file: everything before it is free, spare, or taken.
    end: u64,
}

impl Free {
    /// Takes the smallest one that has so many bytes.
    fn take(&mut self, bytes: u64) -> Option<u64> {
        let &(length, start) = self.by_length.range((bytes, 0)..).next()?;
        self.remove(start, length);
        if length > bytes {
            self.insert(start + bytes, length - bytes);
        }
        Some(start)
    }

    /// Takes so many bytes at a multiple of them.
    fn take_aligned(&mut self, bytes: u64) -> Option<u64> {
        let place = |length: u64, start: u64| {
            let aligned = start.next_multiple_of(bytes);
            (aligned + bytes <= start + length).then_some(aligned)
        };
        // Of those that may have room few are looked at; those that are twice as long have it.
        let small = self.by_length.range((bytes, 0)..(2 * bytes, 0));
        let large = self.by_length.range((2 * bytes, 0)..);
        let found = small
            .take(MOST_TRIED)
            .chain(large.take(1))
            .find_map(|&(length, start)| place(length, start))?;
        self.take_at(found, bytes).then_some(found)
    }

    /// Takes exactly these bytes; `false`: they are not free.
    fn take_at(&mut self, start: u64, bytes: u64) -> bool {
        let Some((&first, &length)) = self.by_start.range(..=start).next_back() else {
            return false;
        };
        if start + bytes > first + length {
            return false;
        }
        self.remove(first, length);
        if first < start {
            self.insert(first, start - first);
        }
        let behind = first + length - (start + bytes);
        if behind > 0 {
            self.insert(start + bytes, behind);
        }
        true
    }

    /// Gives bytes back.
    fn put(&mut self, start: u64, bytes: u64) {
        let (mut start, mut bytes) = (start, bytes);
        let before = self.by_start.range(..start).next_back();
        if let Some((&first, &length)) =
            before.filter(|(first, length)| **first + **length == start)
        {
            self.remove(first, length);
            (start, bytes) = (first, bytes + length);
        }
        if let Some(&length) = self.by_start.get(&(start + bytes)) {
            self.remove(start + bytes, length);
            bytes += length;
        }
        self.insert(start, bytes);
    }

    /// Keeps so many bytes that nobody takes, instead of those that were kept before; `false`: there are none that are together.
    fn keep(&mut self, bytes: u64) -> bool {
        let found = self.take(bytes);
        if let Some(start) = found {
            self.let_go();
            self.spare = vec![(start, bytes)];
        }
        found.is_some()
    }

    /// Keeps so many bytes instead of those that were kept before, or all that there are: in as few pieces as there can be.
    fn keep_pieces(&mut self, bytes: u64) {
        self.let_go();
        let mut left = bytes;
        while left > 0
            && let Some(&(length, start)) = self.by_length.last()
        {
            let taken = length.min(left);
            // It is free: it is in the list.
            let is_taken = self.take_at(start, taken);
            debug_assert!(is_taken);
            self.spare.push((start, taken));
            left -= taken;
        }
    }

    /// Bytes that are kept.
    fn kept(&self) -> u64 {
        self.spare.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Whoever wants it takes what was kept.
    fn let_go(&mut self) {
        for (start, bytes) in std::mem::take(&mut self.spare) {
            self.put(start, bytes);
        }
    }

    fn insert(&mut self, start: u64, length: u64) {
        self.by_start.insert(start, length);
        self.by_length.insert((length, start));
    }

    fn remove(&mut self, start: u64, length: u64) {
        self.by_start.remove(&start);
        self.by_length.remove(&(length, start));
    }
}

/// The data file's space, and what of its pages is in memory.
pub(crate) struct Space<E: Environment> {
    free: E::Mutex<Free>,
    /// Bytes of leaves that are kept in memory.
    pub cached: AtomicUsize,
    /// Bytes of what is known of keys that leaves lack.
    pub filters: AtomicUsize,
    /// Bytes of what is known of where pages are, and of keys that runs have.
    pub index: AtomicUsize,
}

impl<E: Environment> Space<E> {
    pub fn new() -> Arc<Space<E>> {
        Arc::new(Space {
            free: E::mutex(Free::default()),
            cached: AtomicUsize::new(0),
            filters: AtomicUsize::new(0),
            index: AtomicUsize::new(0),
        })
    }

    /// The file has so many bytes; those behind what was known are free.
    pub fn grow(&self, end: u64) {
        let mut free = E::lock(&self.free);
        if end > free.end {
            let (start, more) = (free.end, end - free.end);
            free.put(start, more);
            free.end = end;
        }
    }

    /// Where the file ends.
    pub fn end(&self) -> u64 {
        E::lock(&self.free).end
    }

    /// Bytes of the file that nothing needs, with those that are kept.
    pub fn free_bytes(&self) -> u64 {
        let free = E::lock(&self.free);
        free.by_start.values().sum::<u64>() + free.kept()
    }

    /// Keeps so many bytes for whoever frees more than he takes, instead of those that were kept before; `false`: there are none
    /// that are together.
    pub fn keep(&self, bytes: u64) -> bool {
        E::lock(&self.free).keep(bytes)
    }

    /// Keeps so many bytes instead of those that were kept before, or all that are free: in as few pieces as there can be.
    pub fn keep_pieces(&self, bytes: u64) {
        E::lock(&self.free).keep_pieces(bytes);
    }

    /// Bytes that are kept.
    pub fn kept(&self) -> u64 {
        E::lock(&self.free).kept()
    }

    /// Keeps none any more.
    pub fn let_go(&self) {
        E::lock(&self.free).let_go();
    }

    /// Takes so many bytes; `None`: there are none that are together.
    pub fn take(self: &Arc<Self>, bytes: u64) -> Option<Extent<E>> {
        let start = E::lock(&self.free).take(bytes)?;
        let space = self.clone();
        Some(Extent {
            space,
            start,
            bytes,
        })
    }

    /// Takes so many bytes, a power of two, at a multiple of them; `None`: there are none, or they are hard to find.
    pub fn take_aligned(self: &Arc<Self>, bytes: u64) -> Option<Extent<E>> {
        let start = E::lock(&self.free).take_aligned(bytes)?;
        let space = self.clone();
        Some(Extent {
            space,
            start,
            bytes,
        })
    }

    /// Takes exactly these bytes; `None`: somebody has some of them, or they are behind the end.
    pub fn take_at(self: &Arc<Self>, start: u64, bytes: u64) -> Option<Extent<E>> {
        let is_free = E::lock(&self.free).take_at(start, bytes);
        let space = self.clone();
        is_free.then(|| Extent {
            space,
            start,
            bytes,
        })
    }
}

/// Bytes of the data file that somebody has; dropped, they are free.
pub(crate) struct Extent<E: Environment> {
    pub space: Arc<Space<E>>,
    pub start: u64,
    pub bytes: u64,
}

impl<E: Environment> Drop for Extent<E> {
    fn drop(&mut self) {
        E::lock(&self.space.free).put(self.start, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

    /// Free bytes and taken ones are all there are, and none is both.
    #[test]
    fn what_is_taken_and_what_is_free_make_the_file() {
        for seed in 0..200 {
            let mut rng = Rng::with_seed(seed);
            let mut free = Free::default();
            let mut taken: Vec<(u64, u64)> = Vec::new();
            for _ in 0..200 {
                match rng.u8(0..7) {
                    4 => {
                        let bytes = 1 << rng.u8(0..4);
                        if let Some(start) = free.take_aligned(bytes) {
                            assert!(start.is_multiple_of(bytes));
                            taken.push((start, bytes));
                        }
                    }
                    0 => {
                        let more = rng.u64(1..20);
                        let end = free.end;
                        free.put(end, more);
                        free.end += more;
                    }
                    5 => {
                        let bytes = rng.u64(1..8);
                        if free.keep(bytes) {
                            assert_eq!(free.kept(), bytes);
                        }
                    }
                    6 if rng.bool() => free.let_go(),
                    6 => {
                        let bytes = rng.u64(1..20);
                        free.keep_pieces(bytes);
                        assert!(free.kept() == bytes || free.by_start.is_empty());
                    }
                    1 if !taken.is_empty() => {
                        let (start, bytes) = taken.swap_remove(rng.usize(0..taken.len()));
                        free.put(start, bytes);
                    }
                    2 => {
                        let (start, bytes) = (rng.u64(0..100), rng.u64(1..8));
                        if free.take_at(start, bytes) {
                            taken.push((start, bytes));
                        }
                    }
                    _ => {
                        let bytes = rng.u64(1..8);
                        if let Some(start) = free.take(bytes) {
                            taken.push((start, bytes));
                        }
                    }
                }
                let mut all = taken.clone();
                all.extend(&free.spare);
                all.extend(
                    free.by_start
                        .iter()
                        .map(|(start, length)| (*start, *length)),
                );
                all.sort_unstable();
                let mut end = 0;
                for (start, bytes) in all {
                    assert_eq!(start, end, "seed {seed}");
                    end = start + bytes;
                }
                assert_eq!(end, free.end, "seed {seed}");
                assert_eq!(free.by_start.len(), free.by_length.len());
                let ends = free.by_start.iter().map(|(start, length)| start + length);
                assert!(
                    ends.into_iter()
                        .all(|end| !free.by_start.contains_key(&end))
                );
            }
        }
    }
}
