//! The entries of a leaf, in the order of their keys.
//!
//! A key has one entry, the newest, and behind it older ones that a snapshot still needs when the leaf is written. An entry
//! says at which commit it came to be only if a snapshot is older than that: 0 means that all can see it.

use std::cmp::Ordering;
use std::ops::{Bound, Range};

use super::bytes::{Cursor, put_number};
use super::heads::Heads;

/// An entry has no value: the key is removed.
const REMOVED: u8 = 1;
/// An entry says when it came to be.
const NUMBERED: u8 = 2;

/// What a key was given at a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub key: &'a [u8],
    /// The commit; 0: one that every snapshot has.
    pub lsn: u64,
    /// `None`: it was removed.
    pub value: Option<&'a [u8]>,
}

impl Entry<'_> {
    /// Appends it to the bytes of a leaf.
    pub fn put(&self, out: &mut Vec<u8>) {
        let removed = if self.value.is_none() { REMOVED } else { 0 };
        let numbered = if self.lsn > 0 { NUMBERED } else { 0 };
        out.push(removed | numbered);
        put_number(out, self.key.len() as u64);
        if let Some(value) = self.value {
            put_number(out, value.len() as u64);
        }
        if self.lsn > 0 {
            put_number(out, self.lsn);
        }
        out.extend_from_slice(self.key);
        out.extend_from_slice(self.value.unwrap_or_default());
    }

    pub fn take<'a>(cursor: &mut Cursor<'a>) -> Option<Entry<'a>> {
        let flags = cursor.byte()?;
        if flags & !(REMOVED | NUMBERED) != 0 {
            return None;
        }
        let key = cursor.number()?.try_into().ok()?;
        let value = if flags & REMOVED == 0 {
            Some(cursor.number()?.try_into().ok()?)
        } else {
            None
        };
        let lsn = if flags & NUMBERED == 0 {
            0
        } else {
            cursor.number().filter(|lsn| *lsn > 0)?
        };
        let key = cursor.take(key)?;
        let value = match value {
            Some(len) => Some(cursor.take(len)?),
            None => None,
        };
        Some(Entry { key, lsn, value })
    }

    /// By key, and of one key the newest first.
    fn order(&self, other: &Entry<'_>) -> Ordering {
        self.key
            .cmp(other.key)
            .then_with(|| other.lsn.cmp(&self.lsn))
    }
}

fn entry_of<'a>(bytes: &'a [u8], starts: &[u32], index: usize) -> Option<Entry<'a>> {
    let start = *starts.get(index)? as usize;
    Entry::take(&mut Cursor::new(&bytes[start..]))
}

fn key_of<'a>(bytes: &'a [u8], starts: &[u32], index: usize) -> &'a [u8] {
    entry_of(bytes, starts, index).map_or(&[], |entry| entry.key)
}

/// The keys of the bytes of a leaf, one of them as often as it has entries.
pub(crate) fn keys_of(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut cursor = Cursor::new(bytes);
    std::iter::from_fn(move || {
        let is_end = cursor.is_empty();
        Some(Entry::take(&mut cursor).filter(|_| !is_end)?.key)
    })
}

/// A leaf that was read.
#[derive(Debug)]
pub(crate) struct Leaf {
    bytes: Vec<u8>,
    /// Where each entry begins.
    starts: Vec<u32>,
    /// Of their keys.
    heads: Heads,
}

impl Leaf {
    /// Of the bytes that a page held; `None`: they are no leaf.
    pub fn decode(bytes: Vec<u8>) -> Option<Leaf> {
        // Room for short entries: growing costs more than what is not used.
        let mut starts = Vec::with_capacity(bytes.len() / 96);
        let mut cursor = Cursor::new(&bytes);
        let mut before: Option<Entry<'_>> = None;
        while !cursor.is_empty() {
            starts.push((bytes.len() - cursor.rest().len()).try_into().ok()?);
            let entry = Entry::take(&mut cursor)?;
            if before.is_some_and(|before| before.order(&entry) != Ordering::Less) {
                return None;
            }
            before = Some(entry);
        }
        let heads = Heads::of(starts.len(), |index| key_of(&bytes, &starts, index));
        Some(Leaf {
            bytes,
            starts,
            heads,
        })
    }

    /// Bytes that it takes in memory.
    pub fn memory(&self) -> usize {
        self.bytes.len() + 4 * self.starts.capacity() + 8 * self.heads.capacity() + 128
    }

    pub fn entry(&self, index: usize) -> Option<Entry<'_>> {
        entry_of(&self.bytes, &self.starts, index)
    }

    /// How many entries have keys before this one.
    fn before(&self, key: &[u8]) -> usize {
        let key_of = |index| key_of(&self.bytes, &self.starts, index);
        self.heads.find(key, key_of).unwrap_or_else(|place| place)
    }

    /// How many entries have keys before this one, or this one.
    fn to(&self, key: &[u8]) -> usize {
        let first = self.before(key);
        let rest = (first..).map_while(|index| self.entry(index));
        first + rest.take_while(|entry| entry.key == key).count()
    }

    fn begin(&self, from: Bound<&[u8]>) -> usize {
        match from {
            Bound::Unbounded => 0,
            Bound::Included(key) => self.before(key),
            Bound::Excluded(key) => self.to(key),
        }
    }

    fn end(&self, to: Bound<&[u8]>) -> usize {
        match to {
            Bound::Unbounded => self.starts.len(),
            Bound::Included(key) => self.to(key),
            Bound::Excluded(key) => self.before(key),
        }
    }

    /// Which entries are of a range.
    pub fn entries_of(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Range<usize> {
        self.begin(from)..self.end(to)
    }

    /// How many entries it has.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// All entries.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        (0..self.starts.len()).map_while(|index| self.entry(index))
    }

    pub fn last_key(&self) -> Option<&[u8]> {
        let last = self.starts.len().checked_sub(1)?;
        Some(key_of(&self.bytes, &self.starts, last))
    }

    /// Of these entries, what keys have at this commit.
    pub fn seen(&self, mut all: Range<usize>, at: u64) -> impl Iterator<Item = Entry<'_>> {
        std::iter::from_fn(move || {
            let (entry, rest) = self.first_seen(all.clone(), at)?;
            all = rest;
            Some(entry)
        })
    }

    /// Of these entries, that of the first key which has one at this commit, and which are behind those of its key.
    pub fn first_seen(&self, mut all: Range<usize>, at: u64) -> Option<(Entry<'_>, Range<usize>)> {
        let mut seen = None;
        while !all.is_empty() {
            let entry = self.entry(all.start)?;
            match &seen {
                Some(Entry { key, .. }) if *key != entry.key => break,
                // The newest that is not too new.
                None if entry.lsn <= at => seen = Some(entry),
                _ => {}
            }
            all.start += 1;
        }
        Some((seen?, all))
    }

    /// Of these entries, that of the last key which has one at this commit, and which are before those of its key.
    pub fn last_seen(&self, mut all: Range<usize>, at: u64) -> Option<(Entry<'_>, Range<usize>)> {
        let mut seen: Option<Entry<'_>> = None;
        while !all.is_empty() {
            let entry = self.entry(all.end - 1)?;
            if seen.is_some_and(|seen| seen.key != entry.key) {
                break;
            }
            if entry.lsn <= at {
                seen = Some(entry);
            }
            all.end -= 1;
        }
        Some((seen?, all))
    }

    /// What the key has at this commit, if anything is known of it.
    pub fn find(&self, key: &[u8], at: u64) -> Option<Entry<'_>> {
        let first = self.before(key)..self.starts.len();
        let entries = first.map_while(|index| self.entry(index));
        let mut versions = entries.take_while(|entry| entry.key == key);
        versions.find(|entry| entry.lsn <= at)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(key: &'static str, lsn: u64, value: Option<&'static str>) -> Entry<'static> {
        Entry {
            key: key.as_bytes(),
            lsn,
            value: value.map(str::as_bytes),
        }
    }

    fn leaf(entries: &[Entry<'_>]) -> Option<Leaf> {
        let mut bytes = Vec::new();
        entries.iter().for_each(|entry| entry.put(&mut bytes));
        Leaf::decode(bytes)
    }

    #[test]
    fn entries_are_found_as_of_a_commit() {
        let entries = [
            entry("", 0, Some("empty")),
            entry("b", 9, None),
            entry("b", 5, Some("older")),
            entry("b", 0, Some("oldest")),
            entry("c", 0, Some("")),
        ];
        let leaf = leaf(&entries).unwrap();
        use Bound::{Excluded, Included, Unbounded};
        assert_eq!(leaf.entries().collect::<Vec<_>>(), entries);
        assert_eq!(leaf.entries_of(Unbounded, Unbounded), 0..5);
        assert_eq!(leaf.entries_of(Included(b"bb"), Unbounded), 4..5);
        assert_eq!(leaf.entries_of(Included(b"b"), Included(b"b")), 1..4);
        assert!(leaf.entries_of(Excluded(b"b"), Excluded(b"c")).is_empty());
        assert_eq!(leaf.first_seen(1..5, 8), Some((entries[2], 4..5)));
        assert_eq!(leaf.first_seen(1..3, 4), None);
        assert_eq!(leaf.last_seen(0..4, 8), Some((entries[2], 0..1)));
        assert_eq!(leaf.last_seen(1..3, 4), None);
        assert_eq!(leaf.find(b"", 0), Some(entries[0]));
        assert_eq!(leaf.find(b"b", u64::MAX), Some(entries[1]));
        assert_eq!(leaf.find(b"b", 8), Some(entries[2]));
        assert_eq!(leaf.find(b"b", 4), Some(entries[3]));
        assert_eq!(leaf.find(b"a", 9), None);
        assert_eq!(leaf.find(b"c", 9), Some(entries[4]));
    }

    #[test]
    fn what_is_out_of_order_is_no_leaf() {
        let (b, older) = (entry("b", 9, Some("1")), entry("b", 5, Some("0")));
        assert!(leaf(&[]).is_some());
        assert!(leaf(&[b, older]).is_some());
        for wrong in [[older, b], [b, b], [entry("c", 0, None), b]] {
            assert!(leaf(&wrong).is_none(), "{wrong:?}");
        }
        assert!(Leaf::decode(vec![4, 0, 0]).is_none());
        assert!(Leaf::decode(vec![0, 9, 0]).is_none());
    }

    proptest! {
        #[test]
        fn nothing_panics_on_anything(bytes: Vec<u8>, key: Vec<u8>) {
            if let Some(leaf) = Leaf::decode(bytes) {
                let _ = leaf.entries_of(Bound::Included(&key), Bound::Unbounded);
                leaf.entries().for_each(drop);
            }
        }
    }
}
