//! What a commit is in the log: one record, whatever it changes, so that a power cut takes all of it or nothing.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::bytes::{Cursor, put_bytes, put_number};
use super::options::KeyspaceOptions;
use super::protection::ProtectionChoice;
use super::removed::{KeyRange, RemovedRanges};
use crate::Compression;
use crate::compression::decompress;

/// A key that is given a value, or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    pub keyspace: u32,
    pub key: Vec<u8>,
    /// `None`: it is removed.
    pub value: Option<Vec<u8>>,
}

/// What is to be committed: writes in any order, of which the last one of a key counts, and ranges that are removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Writes {
    writes: Vec<Write>,
    /// With how many writes came before.
    ranges: Vec<(usize, KeyspaceRange)>,
}

/// Keys of a keyspace from one on and before another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyspaceRange {
    pub keyspace: u32,
    pub keys: KeyRange,
}

/// Of ranges that are disjoint and in their order those that may have a key of a keyspace, or keys from it on.
pub(crate) fn ranges_near<'r>(
    ranges: &'r [KeyspaceRange],
    keyspace: u32,
    key: &[u8],
) -> impl Iterator<Item = &'r KeyspaceRange> {
    let behind =
        ranges.partition_point(|range| (range.keyspace, &*range.keys.low) <= (keyspace, key));
    // Where the first that begins behind it begins too late, all do.
    let near = behind.saturating_sub(1)..ranges.len().min(behind + 1);
    let near = ranges[near].iter();
    near.filter(move |range| range.keyspace == keyspace)
}

/// Writes in the order of keyspaces and keys, each key once, and ranges likewise, which are disjoint: what they remove was there
/// before the writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OrderedWrites {
    pub ranges: Vec<KeyspaceRange>,
    pub writes: Vec<Write>,
}

impl From<Vec<Write>> for Writes {
    fn from(writes: Vec<Write>) -> Writes {
        Writes {
            writes,
            ranges: Vec::new(),
        }
    }
}

impl Writes {
    pub fn push(&mut self, write: Write) {
        self.writes.push(write);
    }

    pub fn remove_range(&mut self, keyspace: u32, keys: KeyRange) {
        let range = KeyspaceRange { keyspace, keys };
        self.ranges.push((self.writes.len(), range));
    }

    pub fn len(&self) -> usize {
        self.writes.len() + self.ranges.len()
    }

    pub fn writes(&self) -> &[Write] {
        &self.writes
    }

    pub fn ranges(&self) -> impl Iterator<Item = &KeyspaceRange> {
        self.ranges.iter().map(|(_, range)| range)
    }

    pub fn in_order(self) -> OrderedWrites {
        let Writes { mut writes, ranges } = self;
        let mut removed: BTreeMap<u32, RemovedRanges> = BTreeMap::new();
        // As if the first of so many writes were commit 1: a range is newer than those that came before it.
        for (before, range) in ranges {
            let of_keyspace = removed.entry(range.keyspace).or_default();
            of_keyspace.add(&range.keys, before as u64 + 1, &[]);
        }
        if !removed.is_empty() {
            let mut number = 0;
            writes.retain(|write| {
                number += 1;
                let of_keyspace = removed.get(&write.keyspace);
                let last = of_keyspace.and_then(|all| all.last(&write.key, u64::MAX));
                last.is_none_or(|last| number >= last)
            });
        }
        let order = |a: &Write, b: &Write| (a.keyspace, &a.key).cmp(&(b.keyspace, &b.key));
        if !writes.is_sorted_by(|a, b| order(a, b).is_lt()) {
            writes.sort_by(order);
            writes.reverse();
            writes.dedup_by(|later, kept| order(later, kept).is_eq());
            writes.reverse();
        }
        let ranges = removed.into_iter().flat_map(|(keyspace, all)| {
            let ranges: Vec<_> = all.ranges().collect();
            let ranges = ranges.into_iter();
            ranges.map(move |keys| KeyspaceRange { keyspace, keys })
        });
        OrderedWrites {
            ranges: ranges.collect(),
            writes,
        }
    }
}

impl OrderedWrites {
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.ranges.is_empty()
    }

    /// Whether no key gets a value.
    pub fn gives_nothing(&self) -> bool {
        self.writes.iter().all(|write| write.value.is_none())
    }

    /// The keyspaces that are written, each once.
    pub fn keyspaces(&self) -> SmallVec<[u32; 2]> {
        let of_writes = self.writes.iter().map(|write| write.keyspace);
        let of_ranges = self.ranges.iter().map(|range| range.keyspace);
        let mut all = SmallVec::new();
        for keyspace in of_writes.chain(of_ranges) {
            // Mostly that of the one before.
            if all.last() != Some(&keyspace) {
                all.push(keyspace);
            }
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    pub fn record(&self) -> Record<'_> {
        Record::Writes {
            ranges: self.ranges.iter().map(KeyspaceRange::borrow).collect(),
            writes: self.writes.iter().map(Write::borrow).collect(),
        }
    }

    /// Each range and each write in a record of its own: a mistake.
    pub fn one_by_one(&self) -> Vec<Record<'_>> {
        let mut records = Vec::new();
        for range in &self.ranges {
            records.push(Record::Writes {
                ranges: vec![range.borrow()],
                writes: Vec::new(),
            });
        }
        for write in &self.writes {
            records.push(Record::Writes {
                ranges: Vec::new(),
                writes: vec![write.borrow()],
            });
        }
        records
    }

    /// Bytes of keys and values.
    pub fn bytes(&self) -> u64 {
        let of_writes = self.writes.iter().map(|write| {
            let value = write.value.as_ref().map_or(0, Vec::len);
            write.key.len() + value
        });
        let of_ranges = self.ranges.iter().map(|range| range.keys.bytes());
        of_writes.chain(of_ranges).sum::<usize>() as u64
    }

    /// Bytes of memory that they take as changes, about.
    pub fn memory(&self) -> usize {
        self.bytes() as usize + (self.writes.len() + self.ranges.len()) * OF_CHANGE
    }
}

/// Bytes of a change besides its key and value, with what is left free for others.
const OF_CHANGE: usize = 64;

/// A [`KeyspaceRange`] whose keys are elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RangeRef<'a> {
    pub keyspace: u32,
    pub low: &'a [u8],
    pub high: Option<&'a [u8]>,
}

impl KeyspaceRange {
    pub fn borrow(&self) -> RangeRef<'_> {
        RangeRef {
            keyspace: self.keyspace,
            low: &self.keys.low,
            high: self.keys.high.as_deref(),
        }
    }
}

/// What a record is, which may be read where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    /// Ranges that are removed by keyspace and key, disjoint, and then writes, each key once.
    Writes {
        ranges: Vec<RangeRef<'a>>,
        writes: Vec<WriteRef<'a>>,
    },
    /// A keyspace is made.
    Make {
        keyspace: u32,
        name: &'a str,
        options: KeyspaceOptions,
    },
    /// A keyspace and everything in it is removed.
    Remove { keyspace: u32 },
    /// Leaves are protected like this from now on.
    Protect(ProtectionChoice),
    /// Runs may take so many percent of what leaves take from now on.
    Buffer(u8),
    /// Leaves that are about to be written at their homes: of each its page, compressed or not.
    Images(Vec<Image<'a>>),
}

/// A page as it is to be at its home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Image<'a> {
    /// The byte of the data file.
    pub offset: u64,
    /// Bytes of the page.
    pub length: u32,
    /// How it is compressed here.
    pub compression: Compression,
    pub bytes: &'a [u8],
}

impl Image<'_> {
    /// The page; `None`: that is none.
    pub fn page(&self) -> Option<Vec<u8>> {
        if self.compression == Compression::None {
            return (self.bytes.len() == self.length as usize).then(|| self.bytes.to_vec());
        }
        let mut page = vec![0; self.length as usize];
        decompress(self.compression, self.bytes, &mut page).then_some(page)
    }
}

/// Bytes of a write in a record besides its key and value, at the most but for very long ones.
const MOST_BESIDE: usize = 16;

/// A [`Write`] whose key and value are elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteRef<'a> {
    pub keyspace: u32,
    pub key: &'a [u8],
    pub value: Option<&'a [u8]>,
}

impl Write {
    pub fn borrow(&self) -> WriteRef<'_> {
        WriteRef {
            keyspace: self.keyspace,
            key: &self.key,
            value: self.value.as_deref(),
        }
    }
}

const WRITES: u8 = 1;
const MAKE: u8 = 2;
const REMOVE: u8 = 3;
const PROTECT: u8 = 4;
const IMAGES: u8 = 5;
const BUFFER: u8 = 6;

/// Bytes that the page of a home has at the most.
const MOST_IMAGE: u32 = 16 << 10;

/// Flags of a write: its key is removed, or a range has no end; its keyspace is another than the last one's; it is a range that is
/// removed.
const NO_VALUE: u64 = 1;
const OTHER: u64 = 2;
const RANGE: u64 = 4;

const IN_PLACE: u64 = 1;
const WHOLE_LEAVES: u64 = 2;

/// Appends the options of a keyspace.
pub(super) fn put_options(out: &mut Vec<u8>, options: &KeyspaceOptions) {
    put_number(out, options.leaf_bytes.into());
    put_number(out, options.compression.code().into());
    let in_place = if options.in_place { IN_PLACE } else { 0 };
    let whole_leaves = if options.whole_leaves {
        WHOLE_LEAVES
    } else {
        0
    };
    put_number(out, in_place | whole_leaves);
}

pub(super) fn take_options(cursor: &mut Cursor<'_>) -> Option<KeyspaceOptions> {
    let leaf_bytes = cursor.number_u32()?;
    let compression = Compression::of_code(cursor.number_u32()?)?;
    let flags = cursor.number()?;
    if flags & !(IN_PLACE | WHOLE_LEAVES) != 0 {
        return None;
    }
    let options = KeyspaceOptions {
        leaf_bytes,
        compression,
        in_place: flags & IN_PLACE != 0,
        whole_leaves: flags & WHOLE_LEAVES != 0,
    };
    // What this program cannot decompress is whole all the same.
    options.check_form().is_ok().then_some(options)
}

impl<'a> Record<'a> {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Record::Writes { ranges, writes } => {
                let bytes = |write: &WriteRef<'_>| {
                    MOST_BESIDE + write.key.len() + write.value.map_or(0, <[u8]>::len)
                };
                out.reserve_exact(MOST_BESIDE + writes.iter().map(bytes).sum::<usize>());
                out.push(WRITES);
                let mut last = None;
                // Mostly that of the one before.
                let mut begin = |out: &mut Vec<u8>, keyspace: u32, flags: u64| {
                    let is_other = last.replace(keyspace) != Some(keyspace);
                    put_number(out, if is_other { flags | OTHER } else { flags });
                    if is_other {
                        put_number(out, keyspace.into());
                    }
                };
                for range in ranges {
                    let endless = if range.high.is_none() { NO_VALUE } else { 0 };
                    begin(&mut out, range.keyspace, RANGE | endless);
                    put_bytes(&mut out, range.low);
                    if let Some(high) = range.high {
                        put_bytes(&mut out, high);
                    }
                }
                for write in writes {
                    let removed = if write.value.is_none() { NO_VALUE } else { 0 };
                    begin(&mut out, write.keyspace, removed);
                    put_bytes(&mut out, write.key);
                    if let Some(value) = write.value {
                        put_bytes(&mut out, value);
                    }
                }
            }
            Record::Make {
                keyspace,
                name,
                options,
            } => {
                out.push(MAKE);
                put_number(&mut out, (*keyspace).into());
                put_bytes(&mut out, name.as_bytes());
                put_options(&mut out, options);
            }
            Record::Remove { keyspace } => {
                out.push(REMOVE);
                put_number(&mut out, (*keyspace).into());
            }
            Record::Protect(choice) => {
                out.push(PROTECT);
                choice.put(&mut out);
            }
            Record::Buffer(percent) => out.extend([BUFFER, *percent]),
            Record::Images(images) => {
                out.push(IMAGES);
                for image in images {
                    put_number(&mut out, image.offset);
                    put_number(&mut out, image.length.into());
                    put_number(&mut out, image.compression.code().into());
                    put_bytes(&mut out, image.bytes);
                }
            }
        }
        out
    }

    /// `None`: it is none that this program knows.
    pub fn decode(bytes: &'a [u8]) -> Option<Record<'a>> {
        let mut cursor = Cursor::new(bytes);
        let record = match cursor.byte()? {
            WRITES => {
                let (mut ranges, mut writes) = (Vec::new(), Vec::new());
                let mut keyspace = None;
                while !cursor.is_empty() {
                    let known = NO_VALUE | OTHER | RANGE;
                    let flags = cursor.number().filter(|flags| flags & !known == 0)?;
                    if flags & OTHER != 0 {
                        keyspace = Some(cursor.number_u32()?);
                    }
                    let key = cursor.bytes()?;
                    let value = if flags & NO_VALUE == 0 {
                        Some(cursor.bytes()?)
                    } else {
                        None
                    };
                    let keyspace = keyspace?;
                    if flags & RANGE == 0 {
                        writes.push(WriteRef {
                            keyspace,
                            key,
                            value,
                        });
                        continue;
                    }
                    // They come first, and none is empty.
                    if !writes.is_empty() || value.is_some_and(|high| high <= key) {
                        return None;
                    }
                    ranges.push(RangeRef {
                        keyspace,
                        low: key,
                        high: value,
                    });
                }
                Record::Writes { ranges, writes }
            }
            MAKE => Record::Make {
                keyspace: cursor.number_u32()?,
                name: std::str::from_utf8(cursor.bytes()?).ok()?,
                options: take_options(&mut cursor)?,
            },
            REMOVE => Record::Remove {
                keyspace: cursor.number_u32()?,
            },
            PROTECT => Record::Protect(ProtectionChoice::take(&mut cursor)?),
            BUFFER => Record::Buffer(cursor.byte()?),
            IMAGES => {
                let mut images = Vec::new();
                while !cursor.is_empty() {
                    images.push(Image {
                        offset: cursor.number()?,
                        length: cursor.number_u32().filter(|length| *length <= MOST_IMAGE)?,
                        compression: Compression::of_code(cursor.number_u32()?)?,
                        bytes: cursor.bytes()?,
                    });
                }
                Record::Images(images)
            }
            _ => return None,
        };
        cursor.is_empty().then_some(record)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::protection::Protection;
    use super::*;

    #[test]
    fn what_this_program_may_not_decompress_is_no_damage() {
        let options = KeyspaceOptions::default().compression(Compression::Zstd);
        let mut bytes = Vec::new();
        put_options(&mut bytes, &options);
        assert_eq!(take_options(&mut Cursor::new(&bytes)), Some(options));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            writes: Vec<(u32, Vec<u8>, Option<Vec<u8>>)>,
            ranges: Vec<(u32, Vec<u8>, Option<Vec<u8>>)>,
        ) {
            let writes = writes.iter().map(|(keyspace, key, value)| WriteRef { keyspace: *keyspace, key, value: value.as_deref() });
            let ranges = ranges.iter().map(|(keyspace, low, high)| RangeRef { keyspace: *keyspace, low, high: high.as_deref() });
            let ranges = ranges.filter(|range| range.high.is_none_or(|high| range.low < high));
            let record = Record::Writes { ranges: ranges.collect(), writes: writes.collect() };
            let encoded = record.encode();
            prop_assert_eq!(Record::decode(&encoded), Some(record));
        }

        /// What comes out of a commit's writes is what they do one after the other.
        #[test]
        fn the_last_of_a_key_counts(acts in prop::collection::vec((0..2_u32, 0..9_u8, prop::option::of(any::<u8>()), prop::option::of(0..9_u8)), 0..20)) {
            let mut writes = Writes::default();
            // Of each key what it is given; `None`: it is as it was.
            let mut model: BTreeMap<(u32, u8), Option<Option<u8>>> = BTreeMap::new();
            for (keyspace, key, value, high) in acts {
                match high.filter(|high| *high > key) {
                    Some(high) => {
                        writes.remove_range(keyspace, KeyRange { low: vec![key], high: Some(vec![high]) });
                        for key in key..high {
                            model.insert((keyspace, key), Some(None));
                        }
                    }
                    None => {
                        writes.push(Write { keyspace, key: vec![key], value: value.map(|value| vec![value]) });
                        model.insert((keyspace, key), Some(value));
                    }
                }
            }
            let ordered = writes.in_order();
            let mut found: BTreeMap<(u32, u8), Option<Option<u8>>> = BTreeMap::new();
            for range in &ordered.ranges {
                for key in (0..9).filter(|key| range.keys.contains(&[*key])) {
                    prop_assert!(found.insert((range.keyspace, key), Some(None)).is_none());
                }
            }
            for write in &ordered.writes {
                found.insert((write.keyspace, write.key[0]), Some(write.value.as_ref().map(|value| value[0])));
            }
            prop_assert_eq!(found, model);
            let order = ordered.writes.iter().map(|write| (write.keyspace, &write.key));
            prop_assert!(order.collect::<Vec<_>>().windows(2).all(|two| two[0] < two[1]));
            let encoded = ordered.record().encode();
            prop_assert_eq!(Record::decode(&encoded), Some(ordered.record()));
        }

        #[test]
        fn nothing_panics_on_anything(kind in 0_u8..8, bytes: Vec<u8>) {
            let bytes = [&[kind][..], &bytes].concat();
            if let Some(Record::Images(images)) = Record::decode(&bytes) {
                images.iter().for_each(|image| drop(image.page()));
            }
        }
    }

    #[test]
    fn keyspaces_are_decoded_too() {
        let made = Record::Make {
            keyspace: 300,
            name: "users",
            options: KeyspaceOptions::default(),
        };
        let in_place = Record::Make {
            keyspace: 1,
            name: "accounts",
            options: KeyspaceOptions::default().in_place(true).whole_leaves(true),
        };
        let removed = Record::Remove { keyspace: 1 };
        let protected = Record::Protect(ProtectionChoice::asked(Protection::Image));
        let image = |offset, bytes| Image {
            offset,
            length: 3,
            compression: Compression::None,
            bytes,
        };
        assert_eq!(image(0, b"abc").page(), Some(b"abc".to_vec()));
        assert_eq!(image(0, b"ab").page(), None);
        let images = Record::Images(vec![image(512, b"abc"), image(1024, b"xyz")]);
        let buffered = Record::Buffer(11);
        for record in [made, in_place, removed, protected, buffered, images] {
            let mut bytes = record.encode();
            assert_eq!(Record::decode(&bytes), Some(record));
            bytes.push(0);
            assert_eq!(Record::decode(&bytes), None);
        }
    }
}
