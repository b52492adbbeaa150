//! Changes of neighbouring keys, in one piece of memory.
//!
//! Entries are in the order of their keys, and of one key the newest first; keys and values lie one behind another as they
//! came, but for values that are large, which stay where they are when a block is cut.
//!
//! Invariants: a key and a commit occur once together; `unused` bytes of `bytes` belong to no entry; `large_bytes` is what
//! `large` holds.

use std::iter::Peekable;
use std::ops::{Bound, Range};
use std::sync::Arc;

use super::heads::{Heads, reserve};

/// Entries of a block, of which more are cut in two.
#[cfg(not(test))]
const MOST_ENTRIES: usize = 256;
#[cfg(test)]
const MOST_ENTRIES: usize = 8;
/// Entries of a block that is made at once.
const FILLED: usize = MOST_ENTRIES / 4 * 3;
/// Bytes of keys and values of a block, of which more are cut in two.
const MOST_BYTES: usize = 32 << 10;
/// Bytes that belong to no entry from which on they are given back, if they are a third of all.
const UNUSED: usize = 1 << 10;
/// Bytes of a value from which on it is large.
const LARGE: usize = 4 << 10;
/// What a block takes in memory besides its entries, about: its place among others, its first key, and what the allocator adds.
const OVERHEAD: usize = 160;

fn key_of<'b>(bytes: &'b [u8], entry: &Entry) -> &'b [u8] {
    &bytes[entry.start..][..entry.key as usize]
}

/// What a key was given at a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version<'a> {
    pub lsn: u64,
    /// `None`: it was removed.
    pub value: Option<&'a [u8]>,
}

#[derive(Clone, Debug)]
struct Entry {
    lsn: u64,
    /// Where its key is. The value is behind it, or four bytes that say which of the large ones it is.
    start: usize,
    /// Lengths.
    key: u32,
    value: u32,
}

/// The length of a value that is none: no value is that long.
const REMOVED: u32 = u32::MAX;

/// Bytes behind the key of one that is large.
const INDEX: usize = size_of::<u32>();

/// Bytes that a block's have of a value.
fn inline_len(value: usize) -> usize {
    if value < LARGE { value } else { INDEX }
}

impl Entry {
    fn is_large(&self) -> bool {
        self.value != REMOVED && self.value as usize >= LARGE
    }

    /// Bytes that it has in the block's.
    fn len(&self) -> usize {
        let value = match self.value {
            REMOVED => 0,
            value => inline_len(value as usize),
        };
        self.key as usize + value
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    heads: Heads,
    unused: usize,
    large: Vec<Arc<[u8]>>,
    large_bytes: usize,
}

/// All that a block knows of a key.
#[derive(Clone, Debug)]
pub(crate) struct Versions<'a> {
    block: &'a Block,
    entries: Range<usize>,
}

impl<'a> Versions<'a> {
    pub fn newest_first(&self) -> impl Iterator<Item = Version<'a>> + use<'a> {
        let block = self.block;
        self.entries.clone().map(|index| block.version(index))
    }

    /// What it was at a commit, as far as it is known here.
    pub fn at(&self, lsn: u64) -> Option<Version<'a>> {
        self.newest_first().find(|version| version.lsn <= lsn)
    }
}

impl Block {
    pub fn key(&self, index: usize) -> &[u8] {
        key_of(&self.bytes, &self.entries[index])
    }

    /// Which of the large values an entry has.
    fn large_of(&self, entry: &Entry) -> Option<usize> {
        let place = entry.start + entry.key as usize;
        let index = self.bytes[place..]
            .first_chunk()
            .filter(|_| entry.is_large())?;
        Some(u32::from_le_bytes(*index) as usize)
    }

    fn version(&self, index: usize) -> Version<'_> {
        let entry = &self.entries[index];
        let value = match self.large_of(entry) {
            Some(large) => &self.large[large],
            None => &self.bytes[entry.start..][entry.key as usize..entry.len()],
        };
        Version {
            lsn: entry.lsn,
            value: (entry.value != REMOVED).then_some(value),
        }
    }

    /// Bytes of a key and its value.
    pub fn bytes_of(&self, index: usize) -> usize {
        let entry = &self.entries[index];
        let value = match entry.value {
            REMOVED => 0,
            value => value as usize,
        };
        entry.key as usize + value
    }

    /// That it takes.
    pub fn memory(&self) -> usize {
        let entries = self.entries.capacity() * size_of::<Entry>();
        let heads = self.heads.capacity() * size_of::<u64>();
        OVERHEAD + self.bytes.capacity() + entries + heads + self.large_bytes
    }

    pub fn first_key(&self) -> &[u8] {
        match self.entries.first() {
            Some(first) => key_of(&self.bytes, first),
            None => &[],
        }
    }

    /// The first entry of a key; `Err`: where it would be.
    fn place_of(&self, key: &[u8]) -> Result<usize, usize> {
        self.heads.find(key, |index| self.key(index))
    }

    /// The first entry whose key is not before this one.
    fn first_from(&self, key: &[u8]) -> usize {
        self.place_of(key).unwrap_or_else(|place| place)
    }

    /// Where the entries of the key of this one end.
    fn end_of(&self, index: usize) -> usize {
        let others = index + 1..self.entries.len();
        let is_same = |other: &usize| {
            self.heads.head(*other) == self.heads.head(index) && self.key(*other) == self.key(index)
        };
        index + 1 + others.take_while(is_same).count()
    }

    pub fn find(&self, key: &[u8]) -> Option<Versions<'_>> {
        Some(self.versions(self.place_of(key).ok()?))
    }

    fn versions(&self, first: usize) -> Versions<'_> {
        Versions {
            block: self,
            entries: first..self.end_of(first),
        }
    }

    fn first_behind(&self, key: &[u8]) -> usize {
        match self.place_of(key) {
            Ok(place) => self.end_of(place),
            Err(place) => place,
        }
    }

    /// The first entry of a range.
    pub fn begin(&self, from: Bound<&[u8]>) -> usize {
        match from {
            Bound::Unbounded => 0,
            Bound::Included(key) => self.first_from(key),
            Bound::Excluded(key) => self.first_behind(key),
        }
    }

    /// The first entry behind a range.
    pub fn end(&self, to: Bound<&[u8]>) -> usize {
        match to {
            Bound::Unbounded => self.entries.len(),
            Bound::Included(key) => self.first_behind(key),
            Bound::Excluded(key) => self.first_from(key),
        }
    }

    /// Keys from and to these, with all their versions.
    pub fn range(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
    ) -> impl Iterator<Item = (&[u8], Versions<'_>)> {
        let mut next = self.begin(from);
        let end = self.end(to);
        std::iter::from_fn(move || {
            (next < end).then(|| {
                let versions = self.versions(next);
                let key = self.key(next);
                next = versions.entries.end;
                (key, versions)
            })
        })
    }

    /// Adds what a key was given at a commit that is newer than all of it. Older versions stay if `is_needed` says so, which is
    /// called with the commit of one and that of the next. Where the entry is.
    pub fn add(
        &mut self,
        key: &[u8],
        version: Version<'_>,
        is_needed: impl Fn(u64, u64) -> bool,
    ) -> usize {
        let (place, behind) = match self.place_of(key) {
            Ok(place) => (place, self.end_of(place)),
            Err(place) => (place, place),
        };
        debug_assert!(
            self.entries[place..behind]
                .first()
                .is_none_or(|newest| newest.lsn < version.lsn),
            "a change is older than what is there"
        );
        let mut next = version.lsn;
        let mut kept = place;
        for index in place..behind {
            let lsn = self.entries[index].lsn;
            if is_needed(lsn, next) {
                self.entries.swap(kept, index);
                kept += 1;
            } else {
                self.forget(index);
            }
            next = lsn;
        }
        self.entries.drain(kept..behind);
        self.heads.remove(kept..behind);
        self.put(place, key, version);
        if self.unused > UNUSED.max(self.bytes.len() / 3) {
            self.give_back();
        }
        place
    }

    /// What an entry has belongs to none from now on.
    fn forget(&mut self, index: usize) {
        let entry = &self.entries[index];
        self.unused += entry.len();
        if let Some(large) = self.large_of(entry) {
            let before = std::mem::take(&mut self.large[large]);
            self.large_bytes -= before.len();
        }
    }

    /// One that has the first of these keys, as many as leave it room for some more, and takes them away. They are in order, and
    /// each is there once.
    pub fn of_sorted<'v>(
        all: &mut Peekable<impl Iterator<Item = (&'v [u8], Version<'v>)>>,
    ) -> Block {
        let mut taken: Vec<(&[u8], Version<'_>)> = Vec::new();
        let mut bytes = 0;
        let has_room = |taken: usize, bytes| taken < FILLED && bytes < MOST_BYTES / 2;
        while let Some((key, version)) = all.next_if(|_| has_room(taken.len(), bytes)) {
            bytes += key.len() + version.value.map_or(0, |value| inline_len(value.len()));
            taken.push((key, version));
        }
        let mut block = Block {
            bytes: Vec::with_capacity(bytes),
            entries: Vec::with_capacity(taken.len()),
            ..Block::default()
        };
        for (key, version) in &taken {
            block.put_behind(key, *version);
        }
        block.heads = Heads::of(taken.len(), |index| taken[index].0);
        block
    }

    /// Makes an entry at this place, whose key and value are put behind all.
    fn put(&mut self, place: usize, key: &[u8], version: Version<'_>) {
        let (bytes, entries) = (&self.bytes, &self.entries);
        self.heads
            .insert(place, key, |index| key_of(bytes, &entries[index]));
        self.put_behind(key, version);
        // It is the last one.
        self.entries[place..].rotate_right(1);
    }

    /// Makes the last entry, of which there is no head yet.
    fn put_behind(&mut self, key: &[u8], version: Version<'_>) {
        let value = version.value.unwrap_or_default();
        let start = self.bytes.len();
        let index;
        let inline = if value.len() < LARGE {
            value
        } else {
            index = (self.large.len() as u32).to_le_bytes();
            self.large.push(value.into());
            self.large_bytes += value.len();
            &index
        };
        reserve(&mut self.bytes, key.len() + inline.len(), 512);
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(inline);
        let entry = Entry {
            lsn: version.lsn,
            start,
            key: key.len() as u32,
            value: version.value.map_or(REMOVED, |value| value.len() as u32),
        };
        reserve(&mut self.entries, 1, 8);
        self.entries.push(entry);
    }

    /// One with some of the entries, that takes no more memory than it must.
    fn part(&self, entries: Range<usize>) -> Block {
        let entries = &self.entries[entries];
        let mut part = Block {
            bytes: Vec::with_capacity(entries.iter().map(Entry::len).sum()),
            entries: Vec::with_capacity(entries.len()),
            ..Block::default()
        };
        for entry in entries {
            let start = part.bytes.len();
            match self.large_of(entry) {
                Some(large) => {
                    let value = self.large[large].clone();
                    let index = part.large.len() as u32;
                    part.bytes.extend_from_slice(key_of(&self.bytes, entry));
                    part.bytes.extend_from_slice(&index.to_le_bytes());
                    part.large_bytes += value.len();
                    part.large.push(value);
                }
                None => part
                    .bytes
                    .extend_from_slice(&self.bytes[entry.start..][..entry.len()]),
            }
            part.entries.push(Entry {
                start,
                ..entry.clone()
            });
        }
        part.heads = Heads::of(part.entries.len(), |index| part.key(index));
        part
    }

    fn give_back(&mut self) {
        *self = self.part(0..self.entries.len());
    }

    /// Whether it is to be cut in two.
    pub fn is_full(&self) -> bool {
        let len = self.entries.len();
        len > MOST_ENTRIES || (self.bytes.len() > MOST_BYTES && len > 1)
    }

    /// Cuts it in two: the half behind, unless all is of one key. `added`: where the last entry came; `is_last`: no block is
    /// behind.
    pub fn split(&mut self, added: usize, is_last: bool) -> Option<Block> {
        let len = self.entries.len();
        // Keys that come in their order leave full blocks behind.
        let cut = if is_last && added + 1 == len {
            added
        } else {
            // Not between two versions of one key.
            let first = self.first_from(self.key(len / 2));
            if first > 0 { first } else { self.end_of(0) }
        };
        (cut < len).then(|| self.cut(cut))
    }

    /// Takes the keys from this one on away.
    pub fn split_off(&mut self, key: &[u8]) -> Block {
        self.cut(self.first_from(key))
    }

    fn cut(&mut self, place: usize) -> Block {
        let behind = self.part(place..self.entries.len());
        *self = self.part(0..place);
        behind
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    type Model = BTreeMap<Vec<u8>, BTreeMap<u64, Option<Vec<u8>>>>;

    /// What a block has, the oldest first.
    fn all_of(block: &Block) -> Model {
        let keys = block.range(Bound::Unbounded, Bound::Unbounded);
        let keys = keys.map(|(key, versions)| {
            let versions = versions.newest_first();
            let versions = versions.map(|version| (version.lsn, version.value.map(<[u8]>::to_vec)));
            (key.to_vec(), versions.collect())
        });
        keys.collect()
    }

    fn check(block: &Block) {
        let order = |index: usize| {
            (
                block.key(index),
                std::cmp::Reverse(block.entries[index].lsn),
            )
        };
        assert!((1..block.entries.len()).all(|index| order(index - 1) < order(index)));
        let count = block.entries.len();
        block.heads.check(count, |index| block.key(index));
        let used: usize = block.entries.iter().map(Entry::len).sum();
        assert_eq!(used + block.unused, block.bytes.len());
        let large: usize = block.large.iter().map(|value| value.len()).sum();
        let held = block.entries.iter().filter(|entry| entry.is_large());
        let held: usize = held.map(|entry| entry.value as usize).sum();
        assert_eq!((large, held), (block.large_bytes, large));
    }

    fn keys() -> impl Strategy<Value = Vec<u8>> {
        // Of few bytes, so that keys meet, begin with others, and differ behind what is common.
        prop::collection::vec(prop::sample::select(vec![0, 1, 255]), 0..12)
    }

    fn values() -> impl Strategy<Value = Option<Vec<u8>>> {
        let small = prop::collection::vec(any::<u8>(), 0..300);
        let large = (any::<u8>(), LARGE - 1..LARGE + 2);
        let large = large.prop_map(|(byte, len)| vec![byte; len]);
        prop_oneof![1 => Just(None), 6 => small.prop_map(Some), 1 => large.prop_map(Some)]
    }

    proptest! {
        #[test]
        fn a_block_is_a_map_of_maps(
            changes in prop::collection::vec((keys(), values()), 1..80),
            prefix in keys(),
            needed in 1..5_u64,
            probes in prop::collection::vec(keys(), 8),
        ) {
            let mut block = Block::default();
            let mut model = Model::new();
            for (lsn, (key, value)) in (1..).zip(changes) {
                let key = [prefix.clone(), key].concat();
                let is_needed = |lsn: u64, _| lsn.is_multiple_of(needed);
                let version = Version { lsn, value: value.as_deref() };
                let place = block.add(&key, version, is_needed);
                prop_assert_eq!(block.key(place), &key);
                let versions = model.entry(key).or_default();
                versions.retain(|lsn, _| lsn.is_multiple_of(needed));
                versions.insert(lsn, value);
                check(&block);
            }
            prop_assert_eq!(&all_of(&block), &model);
            for probe in probes {
                for probe in [[prefix.clone(), probe.clone()].concat(), probe] {
                    let found = block.find(&probe).and_then(|versions| versions.at(40));
                    let found = found.map(|version| (version.lsn, version.value.map(<[u8]>::to_vec)));
                    let expected = model.get(&probe).and_then(|versions| versions.range(..=40).next_back());
                    prop_assert_eq!(found, expected.map(|(lsn, value)| (*lsn, value.clone())));
                    for range in [
                        (Bound::Included(&probe[..]), Bound::Unbounded),
                        (Bound::Excluded(&probe[..]), Bound::Unbounded),
                        (Bound::Unbounded, Bound::Included(&probe[..])),
                        (Bound::Unbounded, Bound::Excluded(&probe[..])),
                    ] {
                        let found: Vec<&[u8]> = block.range(range.0, range.1).map(|(key, _)| key).collect();
                        let expected: Vec<&[u8]> = model.range::<[u8], _>(range).map(|(key, _)| &key[..]).collect();
                        prop_assert_eq!(found, expected);
                    }
                    let mut front = block.clone();
                    let behind = front.split_off(&probe);
                    check(&front);
                    check(&behind);
                    let mut first = model.clone();
                    let second = first.split_off(&probe);
                    prop_assert_eq!(all_of(&front), first);
                    prop_assert_eq!(all_of(&behind), second);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn blocks_are_made_of_what_is_in_order(
            all in prop::collection::btree_map(keys(), values(), 0..80),
        ) {
            let mut left = all
                .iter()
                .map(|(key, value)| (&key[..], Version { lsn: 7, value: value.as_deref() }))
                .peekable();
            let mut found = Vec::new();
            while left.peek().is_some() {
                let block = Block::of_sorted(&mut left);
                check(&block);
                prop_assert!(!block.is_empty() && !block.is_full());
                prop_assert_eq!((block.bytes.capacity(), block.entries.capacity()), (block.bytes.len(), block.entries.len()));
                found.extend(all_of(&block));
            }
            let expected = all.into_iter().map(|(key, value)| (key, BTreeMap::from([(7, value)])));
            prop_assert_eq!(found, expected.collect::<Vec<_>>());
        }
    }

    fn add(block: &mut Block, key: &[u8], lsn: u64, value: &[u8]) -> Option<Block> {
        let value = Some(value);
        let place = block.add(key, Version { lsn, value }, |_, _| true);
        if block.is_full() {
            block.split(place, true)
        } else {
            None
        }
    }

    #[test]
    fn keys_in_their_order_leave_full_blocks_behind() {
        let mut block = Block::default();
        for number in 0..MOST_ENTRIES as u8 {
            assert!(add(&mut block, &[number], 1, b"").is_none());
        }
        let behind = add(&mut block, &[200], 1, b"").unwrap();
        assert_eq!(block.entries.len(), MOST_ENTRIES);
        assert_eq!(behind.first_key(), [200]);
        let behind = add(&mut block, &[1, 1], 1, b"").unwrap();
        assert_eq!(block.entries.len(), MOST_ENTRIES / 2);
        assert_eq!(behind.entries.len(), MOST_ENTRIES / 2 + 1);
    }

    #[test]
    fn versions_of_one_key_are_not_cut_apart() {
        let mut block = Block::default();
        for lsn in 1..100 {
            assert!(add(&mut block, b"b", lsn, b"").is_none());
        }
        let behind = add(&mut block, b"a", 1, b"").unwrap();
        assert_eq!((block.entries.len(), behind.entries.len()), (1, 99));
    }

    #[test]
    fn large_values_stay_where_they_are() {
        let mut block = Block::default();
        assert!(add(&mut block, b"a", 1, &[1; 2 * MOST_BYTES]).is_none());
        assert!(add(&mut block, b"b", 1, b"").is_none());
        let place = block
            .find(b"a")
            .unwrap()
            .at(1)
            .unwrap()
            .value
            .unwrap()
            .as_ptr();
        let before = block.memory();
        assert!(before > 2 * MOST_BYTES);
        let behind = block.split_off(b"b");
        let value = block.find(b"a").unwrap().at(1).unwrap().value.unwrap();
        assert_eq!(value.as_ptr(), place);
        assert!(behind.memory() < 1_000);
        let value = None;
        block.add(b"a", Version { lsn: 2, value }, |_, _| false);
        assert!(block.memory() < 1_000);
    }

    #[test]
    fn what_nobody_needs_takes_no_memory() {
        let mut block = Block::default();
        for lsn in 1..10_000 {
            let value = Some(&[7; 100][..]);
            block.add(b"key", Version { lsn, value }, |_, _| false);
        }
        assert_eq!(block.entries.len(), 1);
        assert!(block.memory() < 4_000, "{}", block.memory());
    }
}
