//! What group pages and root pages hold: where leaves are, and where groups are.

use std::sync::Arc;

use super::bytes::{Cursor, put_bytes, put_number};
use super::options::KeyspaceOptions;
use super::page::Pointer;
use super::protection::ProtectionChoice;
use super::record::{put_options, take_options};
use super::runs::entry::RunEntry;

/// A leaf, as the page of its group knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeafEntry {
    /// Its first key.
    pub low: Arc<[u8]>,
    pub pointer: Pointer,
    /// How many it has.
    pub keys: u32,
}

/// Appends where the leaves of a group are.
pub(crate) fn put_leaves<'a>(
    out: &mut Vec<u8>,
    granule: u64,
    leaves: impl ExactSizeIterator<Item = (&'a [u8], Pointer, u32)>,
) {
    put_number(out, leaves.len() as u64);
    for (low, pointer, keys) in leaves {
        put_bytes(out, low);
        pointer.put(granule, out);
        put_number(out, keys.into());
    }
}

/// `None`: that is no list of leaves in the order of their keys.
pub(crate) fn take_leaves(bytes: &[u8], granule: u64) -> Option<Vec<LeafEntry>> {
    let mut cursor = Cursor::new(bytes);
    let mut leaves: Vec<LeafEntry> = Vec::new();
    for _ in 0..cursor.count()? {
        let low = cursor.bytes()?;
        let pointer = Pointer::take(granule, &mut cursor)?;
        let keys = cursor.number_u32()?;
        if leaves.last().is_some_and(|before| *before.low >= *low) {
            return None;
        }
        leaves.push(LeafEntry {
            low: low.into(),
            pointer,
            keys,
        });
    }
    cursor.is_empty().then_some(leaves)
}

/// A group, as the root knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupEntry {
    /// The first key that it may have.
    pub low: Arc<[u8]>,
    /// Its leaves and runs have all changes of commits before this one.
    pub watermark: u64,
    /// `None`: it has no leaves.
    pub page: Option<Pointer>,
    /// The newest first.
    pub runs: Vec<RunEntry>,
}

/// A keyspace, as the root knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyspaceEntry {
    pub id: u32,
    pub name: String,
    pub options: KeyspaceOptions,
    pub groups: Vec<GroupEntry>,
}

/// Keyspaces are given lower numbers than this, each the next one: nobody makes so many.
pub(super) const MOST_KEYSPACES: u32 = 1 << 31;

/// What a checkpoint leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    /// The first commit that may have to be applied again.
    pub first: u64,
    /// The commit behind the last of which a page may have something.
    pub end: u64,
    /// The number of the next keyspace.
    pub next_keyspace: u32,
    pub protection: ProtectionChoice,
    /// How many percent of what leaves take runs may take.
    pub buffer_percent: u8,
    /// Where copies are written before leaves are written at their homes; each a part of the data file.
    pub copies: Option<[Span; 2]>,
    pub keyspaces: Vec<KeyspaceEntry>,
}

/// Bytes of the data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub offset: u64,
    pub bytes: u64,
}

impl Span {
    fn take(granule: u64, cursor: &mut Cursor<'_>) -> Option<Span> {
        let mut number = || {
            let bytes = cursor.number()?.checked_mul(granule)?;
            (bytes < crate::log::format::MOST).then_some(bytes)
        };
        Some(Span {
            offset: number()?,
            bytes: number()?,
        })
    }
}

impl Root {
    pub fn encode(&self, granule: u64) -> Vec<u8> {
        let mut out = Vec::new();
        for number in [self.first, self.end, self.next_keyspace.into()] {
            put_number(&mut out, number);
        }
        self.protection.put(&mut out);
        put_number(&mut out, self.buffer_percent.into());
        put_number(&mut out, self.copies.is_some().into());
        for span in self.copies.iter().flatten() {
            put_number(&mut out, span.offset / granule);
            put_number(&mut out, span.bytes / granule);
        }
        put_number(&mut out, self.keyspaces.len() as u64);
        for keyspace in &self.keyspaces {
            put_number(&mut out, keyspace.id.into());
            put_bytes(&mut out, keyspace.name.as_bytes());
            put_options(&mut out, &keyspace.options);
            put_number(&mut out, keyspace.groups.len() as u64);
            for group in &keyspace.groups {
                put_bytes(&mut out, &group.low);
                put_number(&mut out, group.watermark);
                put_number(&mut out, group.page.is_some().into());
                if let Some(page) = group.page {
                    page.put(granule, &mut out);
                }
                put_number(&mut out, group.runs.len() as u64);
                group.runs.iter().for_each(|run| run.put(granule, &mut out));
            }
        }
        out
    }

    /// `None`: that is no root.
    pub fn decode(bytes: &[u8], granule: u64) -> Option<Root> {
        let mut cursor = Cursor::new(bytes);
        let mut root = Root {
            first: cursor.number()?,
            end: cursor.number()?,
            next_keyspace: cursor.number_u32()?,
            protection: ProtectionChoice::take(&mut cursor)?,
            buffer_percent: cursor.number()?.try_into().ok()?,
            copies: match cursor.number()? {
                0 => None,
                1 => Some([
                    Span::take(granule, &mut cursor)?,
                    Span::take(granule, &mut cursor)?,
                ]),
                _ => return None,
            },
            keyspaces: Vec::new(),
        };
        if root.next_keyspace > MOST_KEYSPACES {
            return None;
        }
        for _ in 0..cursor.count()? {
            let id = cursor.number_u32()?;
            let last = root.keyspaces.last();
            if last.is_some_and(|last| last.id >= id) || id >= root.next_keyspace {
                return None;
            }
            let name = String::from_utf8(cursor.bytes()?.to_vec()).ok()?;
            let options = take_options(&mut cursor)?;
            let mut groups: Vec<GroupEntry> = Vec::new();
            for _ in 0..cursor.count()? {
                let low = cursor.bytes()?;
                let watermark = cursor.number()?;
                let page = match cursor.number()? {
                    0 => None,
                    1 => Some(Pointer::take(granule, &mut cursor)?),
                    _ => return None,
                };
                if groups.last().is_some_and(|before| *before.low >= *low) {
                    return None;
                }
                let runs = (0..cursor.count()?).map(|_| RunEntry::take(granule, &mut cursor));
                let runs: Vec<RunEntry> = runs.collect::<Option<_>>()?;
                let is_in_tiers = runs.is_sorted_by_key(|run| run.tier);
                // A group without leaves has no use for runs.
                if !is_in_tiers || (page.is_none() && !runs.is_empty()) {
                    return None;
                }
                groups.push(GroupEntry {
                    low: low.into(),
                    watermark,
                    page,
                    runs,
                });
            }
            if groups.first().is_none_or(|first| !first.low.is_empty()) {
                return None;
            }
            root.keyspaces.push(KeyspaceEntry {
                id,
                name,
                options,
                groups,
            });
        }
        let is_right = cursor.is_empty() && root.first <= root.end;
        is_right.then_some(root)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::protection::Protection;
    use super::*;

    fn pointer(number: u64) -> Pointer {
        Pointer {
            offset: number * 512,
            length: 100,
            crc: number as u32,
            home: (number > 4).then_some(3),
        }
    }

    fn root() -> Root {
        let group = |low: &str, page| GroupEntry {
            low: low.as_bytes().into(),
            watermark: 4,
            page,
            runs: Vec::new(),
        };
        let keyspace = |id, groups| KeyspaceEntry {
            id,
            name: format!("number {id}"),
            options: KeyspaceOptions::default(),
            groups,
        };
        Root {
            first: 3,
            end: 9,
            next_keyspace: 8,
            protection: ProtectionChoice::asked(Protection::Doublewrite),
            buffer_percent: 11,
            copies: Some([8192, 4096].map(|offset| Span {
                offset,
                bytes: 1024,
            })),
            keyspaces: vec![
                keyspace(1, vec![group("", None)]),
                keyspace(
                    7,
                    vec![group("", Some(pointer(2))), group("m", Some(pointer(9)))],
                ),
            ],
        }
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let root = root();
        assert_eq!(Root::decode(&root.encode(512), 512), Some(root));
        let leaf = |low: &[u8], pointer, keys| LeafEntry {
            low: low.into(),
            pointer,
            keys,
        };
        let leaves = vec![leaf(b"", pointer(1), 3), leaf(b"k", pointer(4), 300)];
        let mut out = Vec::new();
        let list = leaves.iter();
        let list = list.map(|leaf| (&*leaf.low, leaf.pointer, leaf.keys));
        put_leaves(&mut out, 512, list);
        assert_eq!(take_leaves(&out, 512), Some(leaves));
    }

    #[test]
    fn what_is_out_of_order_is_refused() {
        let wrong = |change: fn(&mut Root)| {
            let mut root = root();
            change(&mut root);
            assert_eq!(Root::decode(&root.encode(512), 512), None);
        };
        wrong(|root| root.first = 10);
        wrong(|root| root.next_keyspace = 7);
        wrong(|root| root.keyspaces.swap(0, 1));
        wrong(|root| root.keyspaces[1].groups.swap(0, 1));
        wrong(|root| root.keyspaces[0].groups.clear());
        wrong(|root| root.keyspaces[1].groups[1].low = Arc::default());
    }

    proptest! {
        #[test]
        fn nothing_panics_on_anything(bytes: Vec<u8>) {
            let _ = Root::decode(&bytes, 512);
            let _ = take_leaves(&bytes, 512);
        }
    }
}
