//! Writes that were read from the log and are not applied yet: a backlog of them in one piece of memory.
//!
//! Writes are put in as they come; when it is [sorted](Backlog::sort) they are in the order of keyspaces and keys, and those of
//! one key in the order of their commits, and so are their bytes: who goes through them finds the next ones near by. Nothing here
//! knows of the tree.

use std::mem;

use super::changes::Version;

/// The length of a value that is none: no value is that long.
const REMOVED: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Written {
    /// The key's first eight bytes, as a number that has their order.
    head: u64,
    lsn: u64,
    /// Where its key is; the value is behind it.
    start: usize,
    keyspace: u32,
    /// Lengths.
    key: u32,
    value: u32,
}

fn head(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let len = key.len().min(8);
    bytes[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(bytes)
}

#[derive(Debug, Default)]
pub(super) struct Backlog {
    bytes: Vec<u8>,
    writes: Vec<Written>,
    /// What the bytes were in as they came.
    spare: Vec<u8>,
}

/// A write of a backlog: a key, and what it was given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'r> {
    head: u64,
    pub key: &'r [u8],
    pub version: Version<'r>,
}

impl<'r> Item<'r> {
    pub fn new(key: &'r [u8], version: Version<'r>) -> Item<'r> {
        let head = head(key);
        Item { head, key, version }
    }

    /// Whether its key is before that of another.
    pub fn order(&self, other: &Item<'_>) -> std::cmp::Ordering {
        let keys = || self.key.cmp(other.key);
        self.head.cmp(&other.head).then_with(keys)
    }
}

/// Writes of a backlog that are neighbours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'r> {
    bytes: &'r [u8],
    writes: &'r [Written],
}

impl Written {
    /// Bytes of its key and value.
    fn len(&self) -> usize {
        let value = match self.value {
            REMOVED => 0,
            value => value as usize,
        };
        self.key as usize + value
    }
}

impl Backlog {
    /// One that has none, and takes over the memory of one that was sorted, if that is no more than this: memory that is new has to be
    /// cleared first.
    pub fn behind(sorted: &mut Backlog, most: usize) -> Backlog {
        let mut bytes = mem::take(&mut sorted.spare);
        bytes.clear();
        bytes.shrink_to(most);
        Backlog {
            bytes,
            writes: Vec::with_capacity(sorted.writes.len()),
            spare: Vec::new(),
        }
    }

    pub fn push(&mut self, keyspace: u32, key: &[u8], version: Version<'_>) {
        self.writes.push(Written {
            head: head(key),
            lsn: version.lsn,
            start: self.bytes.len(),
            keyspace,
            key: key.len() as u32,
            value: version.value.map_or(REMOVED, |value| value.len() as u32),
        });
        self.bytes.extend_from_slice(key);
        self.bytes
            .extend_from_slice(version.value.unwrap_or_default());
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.bytes.len() + self.writes.len() * size_of::<Written>()
    }

    pub fn sort(&mut self) {
        // It may be the largest value that there is.
        if self.writes.len() < 2 {
            return;
        }
        let bytes = &self.bytes;
        self.writes.sort_by(|a, b| {
            let keys = || key_of(bytes, a).cmp(key_of(bytes, b));
            (a.keyspace, a.head)
                .cmp(&(b.keyspace, b.head))
                .then_with(keys)
        });
        let mut bytes = Vec::with_capacity(self.bytes.len());
        for write in &mut self.writes {
            let start = bytes.len();
            bytes.extend_from_slice(&self.bytes[write.start..][..write.len()]);
            write.start = start;
        }
        self.spare = mem::replace(&mut self.bytes, bytes);
    }

    /// What of it is of one keyspace. It is sorted.
    pub fn of_keyspace(&self, keyspace: u32) -> Part<'_> {
        let first = self
            .writes
            .partition_point(|write| write.keyspace < keyspace);
        let behind = self
            .writes
            .partition_point(|write| write.keyspace <= keyspace);
        Part {
            bytes: &self.bytes,
            writes: &self.writes[first..behind],
        }
    }
}

fn key_of<'r>(bytes: &'r [u8], write: &Written) -> &'r [u8] {
    &bytes[write.start..][..write.key as usize]
}

impl<'r> Part<'r> {
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// The key in its middle.
    pub fn middle(&self) -> Option<&'r [u8]> {
        let write = self.writes.get(self.writes.len() / 2)?;
        Some(key_of(self.bytes, write))
    }

    /// Those before a key, and the others.
    pub fn split_at(&self, key: &[u8]) -> (Part<'r>, Part<'r>) {
        let sought = head(key);
        let place = self.writes.partition_point(|write| {
            let keys = || key_of(self.bytes, write).cmp(key);
            write.head.cmp(&sought).then_with(keys).is_lt()
        });
        let (before, behind) = self.writes.split_at(place);
        let part = |writes| Part { writes, ..*self };
        (part(before), part(behind))
    }

    pub fn items(&self) -> impl Iterator<Item = Item<'r>> + use<'r> {
        let bytes = self.bytes;
        self.writes.iter().map(move |write| {
            let value = &bytes[write.start + write.key as usize..];
            let value = (write.value != REMOVED).then(|| &value[..write.value as usize]);
            Item {
                head: write.head,
                key: key_of(bytes, write),
                version: Version {
                    lsn: write.lsn,
                    value,
                },
            }
        })
    }
}
