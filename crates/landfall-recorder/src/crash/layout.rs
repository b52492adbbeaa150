//! What lies where on a device: which stretches of it belong to which file.
//!
//! Writes to the same file, or to files of the same kind, tend to go wrong in the same way. The recorder sees blocks
//! and no files; who has mounted the filesystem can say which file has which blocks. It is a hint for the order in which
//! crash states are tried, and decides nothing about what they are.

use std::collections::HashMap;
use std::ops::Range;

/// Files of one kind, as a number that counts from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileKind(u32);

impl FileKind {
    /// Its number.
    pub(super) fn number(self) -> u32 {
        self.0
    }
}

/// A stretch of a device that belongs to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Its bytes of the device.
    pub bytes: Range<u64>,
    /// Where in the file they begin.
    pub from: u64,
    /// The kind of file: its name, without what tells it from others of its kind.
    pub file: String,
}

/// Which stretches of a device belong to files of which kind; the rest belongs to the filesystem, or to files that are
/// not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    names: Vec<String>,
    /// By first byte, each with where in its file it begins; no two overlap.
    stretches: Vec<(Range<u64>, u64, FileKind)>,
}

impl Layout {
    /// Of two stretches that overlap the first counts, and nothing of the other.
    pub fn new(stretches: impl IntoIterator<Item = Stretch>) -> Layout {
        let mut layout = Layout::default();
        let mut numbers: HashMap<String, FileKind> = HashMap::new();
        let mut all = Vec::new();
        for (rank, Stretch { bytes, from, file }) in stretches.into_iter().enumerate() {
            let next = FileKind(numbers.len() as u32);
            let kind = *numbers.entry(file).or_insert_with_key(|name| {
                layout.names.push(name.clone());
                next
            });
            if !bytes.is_empty() {
                all.push((rank, bytes, from, kind));
            }
        }
        all.sort_unstable_by_key(|(rank, bytes, ..)| (bytes.start, *rank));
        let mut kept: Vec<(usize, Range<u64>, u64, FileKind)> = Vec::with_capacity(all.len());
        for (rank, bytes, from, kind) in all {
            // What came first stays, whichever of the two begins first.
            while let Some((last, stretch, ..)) = kept.last()
                && stretch.end > bytes.start
                && *last > rank
            {
                kept.pop();
            }
            if kept
                .last()
                .is_none_or(|(_, stretch, ..)| stretch.end <= bytes.start)
            {
                kept.push((rank, bytes, from, kind));
            }
        }
        layout.stretches = kept
            .into_iter()
            .map(|(_, bytes, from, kind)| (bytes, from, kind))
            .collect();
        layout
    }

    /// What the byte at `offset` belongs to; `None`: the filesystem, or a file that is not known.
    pub fn at(&self, offset: u64) -> Option<FileKind> {
        self.place(offset).map(|(kind, _)| kind)
    }

    /// What the byte at `offset` belongs to, and which byte of that file it is.
    pub fn place(&self, offset: u64) -> Option<(FileKind, u64)> {
        let after = self
            .stretches
            .partition_point(|(bytes, ..)| bytes.start <= offset);
        let (bytes, from, kind) = self.stretches.get(after.checked_sub(1)?)?;
        let place = bytes
            .contains(&offset)
            .then(|| from.saturating_add(offset - bytes.start))?;
        Some((*kind, place))
    }

    /// Whether nothing is known of any file.
    pub fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// Every kind of file.
    pub fn kinds(&self) -> impl Iterator<Item = FileKind> {
        (0..self.names.len() as u32).map(FileKind)
    }

    /// What a kind of file is called.
    ///
    /// # Panics
    ///
    /// If the kind is another layout's.
    pub fn name(&self, kind: FileKind) -> &str {
        &self.names[kind.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(layout: &Layout, offset: u64) -> &str {
        layout.at(offset).map_or("", |kind| layout.name(kind))
    }

    fn stretch((bytes, file): (Range<u64>, &str)) -> Stretch {
        Stretch {
            from: 100,
            file: file.to_owned(),
            bytes,
        }
    }

    #[test]
    fn a_byte_belongs_to_the_stretch_that_it_lies_in() {
        let stretches = [(8..16, "b"), (0..4, "a"), (20..24, "a"), (30..30, "c")];
        let layout = Layout::new(stretches.map(stretch));
        let found: Vec<&str> = [0, 3, 4, 8, 15, 16, 20, 24, 30]
            .iter()
            .map(|&offset| at(&layout, offset))
            .collect();
        assert_eq!(found, ["a", "a", "", "b", "b", "", "a", "", ""]);
        assert_eq!(layout.at(0), layout.at(20));
        assert_eq!(at(&Layout::default(), 0), "");
        assert_eq!(layout.place(10).map(|(_, place)| place), Some(102));
    }

    #[test]
    fn of_two_that_overlap_the_first_counts() {
        let stretches = [
            (4..8, "now"),
            (0..6, "before"),
            (8..10, "before"),
            (7..20, "later"),
        ];
        let layout = Layout::new(stretches.map(stretch));
        let found: Vec<&str> = [0, 4, 7, 8, 12]
            .iter()
            .map(|&offset| at(&layout, offset))
            .collect();
        assert_eq!(found, ["", "now", "now", "before", ""]);
    }
}
