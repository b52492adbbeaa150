//! A piece of a keyspace, as it is at a commit: keys of one leaf, and what is in no leaf yet.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::{Bound, Range};
use std::sync::Arc;

use super::leaf::{Entry, Leaf};

/// A key and its value.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// A key, and what it has; `None`: it is removed.
pub(crate) type Seen = (Vec<u8>, Option<Vec<u8>>);

/// What a piece may have until it is filled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    pub entries: usize,
    pub bytes: usize,
}

impl Most {
    /// All there is.
    pub const ALL: Most = Most {
        entries: usize::MAX,
        bytes: usize::MAX,
    };

    /// Takes so many entries, which have so many bytes; whether that fills it.
    pub fn is_filled_by(&mut self, entries: usize, bytes: usize) -> bool {
        self.entries = self.entries.saturating_sub(entries);
        self.bytes = self.bytes.saturating_sub(bytes);
        self.entries == 0 || self.bytes == 0
    }
}

/// Two lists in the order of their keys as one. Of a key that both have, the newer one counts.
pub(super) fn overlay(
    older: impl Iterator<Item = Seen>,
    newer: impl Iterator<Item = Seen>,
) -> impl Iterator<Item = Seen> {
    let (mut older, mut newer) = (older.peekable(), newer.peekable());
    std::iter::from_fn(move || {
        let Some((key, _)) = newer.peek() else {
            return older.next();
        };
        if let Some(first) = older.next_if(|(older, _)| older < key) {
            return Some(first);
        }
        let _ = older.next_if(|(older, _)| older == key);
        newer.next()
    })
}

/// What of it was not given out yet, from either end.
#[derive(Default)]
pub(super) struct Piece {
    leaf: Option<Arc<Leaf>>,
    /// Entries of the leaf.
    entries: Range<usize>,
    at: u64,
    /// They count more than what is in the leaf.
    changes: VecDeque<Seen>,
}

impl Piece {
    /// The keys of a range at a commit: those in a leaf, if there is one, and changes, which are in the order of their keys.
    pub fn new(
        leaf: Option<Arc<Leaf>>,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        at: u64,
        changes: impl Iterator<Item = Seen>,
    ) -> Piece {
        let entries = leaf.as_ref();
        let entries = entries.map_or(0..0, |leaf| leaf.entries_of(range.0, range.1));
        Piece {
            leaf,
            entries,
            at,
            changes: changes.collect(),
        }
    }

    /// The first key from one end that has a value, and how many removals are passed over before it.
    pub fn settle(&mut self, backwards: bool) -> (usize, Option<&[u8]>) {
        let before = self.changes.len();
        // What is found is taken out, so that it is put back as a change: it counts more than what is in the leaf.
        let found = self.take(backwards);
        let taken = before - self.changes.len();
        let Some((key, value)) = found else {
            return (taken, None);
        };
        let change = (key, Some(value));
        if backwards {
            self.changes.push_back(change);
        } else {
            self.changes.push_front(change);
        }
        let end = if backwards {
            self.changes.back()
        } else {
            self.changes.front()
        };
        (taken, end.map(|(key, _)| &**key))
    }

    fn take(&mut self, backwards: bool) -> Option<Pair> {
        let Piece {
            leaf,
            entries,
            at,
            changes,
        } = self;
        loop {
            let entry = leaf.as_ref().and_then(|leaf| {
                if backwards {
                    leaf.last_seen(entries.clone(), *at)
                } else {
                    leaf.first_seen(entries.clone(), *at)
                }
            });
            let change = if backwards {
                changes.back()
            } else {
                changes.front()
            };
            let order = match (&entry, change) {
                (None, None) => return None,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((entry, _)), Some((key, _))) if backwards => key[..].cmp(entry.key),
                (Some((entry, _)), Some((key, _))) => entry.key.cmp(key),
            };
            let seen = entry.filter(|_| order != Ordering::Greater);
            let seen = seen.map(|(seen, others)| {
                *entries = others;
                seen
            });
            if order == Ordering::Less {
                if let Some(Entry {
                    key,
                    value: Some(value),
                    ..
                }) = seen
                {
                    return Some((key.to_vec(), value.to_vec()));
                }
                continue;
            }
            let change = if backwards {
                changes.pop_back()
            } else {
                changes.pop_front()
            };
            if let Some((key, Some(value))) = change {
                return Some((key, value));
            }
        }
    }
}

impl Iterator for Piece {
    type Item = Pair;

    fn next(&mut self) -> Option<Pair> {
        self.take(false)
    }
}

impl DoubleEndedIterator for Piece {
    fn next_back(&mut self) -> Option<Pair> {
        self.take(true)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    type Values = BTreeMap<Vec<u8>, Option<u8>>;

    fn values() -> impl Strategy<Value = Values> {
        let key = prop::collection::vec(0..9_u8, 0..2);
        prop::collection::btree_map(key, any::<Option<u8>>(), 0..9)
    }

    fn seen(values: &Values) -> impl Iterator<Item = Seen> {
        let seen =
            |(key, value): (&Vec<u8>, &Option<u8>)| (key.clone(), value.map(|one| vec![one]));
        values.iter().map(seen)
    }

    proptest! {
        #[test]
        fn the_newer_one_counts(older in values(), newer in values()) {
            let found: Vec<Seen> = overlay(seen(&older), seen(&newer)).collect();
            let mut all = older;
            all.extend(newer);
            prop_assert_eq!(found, seen(&all).collect::<Vec<_>>());
        }

        #[test]
        fn a_piece_is_read_from_both_ends(
            versions in prop::collection::vec(values(), 1..4),
            changes in values(),
            at in 0..4_u64,
            (from, to) in (0..9_u8, 0..9_u8),
            ends in prop::collection::vec(any::<bool>(), 20),
        ) {
            // Of each version the commit is its place in the list; the first is one that all see.
            let mut entries = BTreeMap::new();
            for (lsn, values) in versions.iter().enumerate() {
                for (key, value) in values {
                    entries.insert((key.clone(), std::cmp::Reverse(lsn as u64)), value.map(|one| [one]));
                }
            }
            let mut bytes = Vec::new();
            for ((key, lsn), value) in &entries {
                let value = value.as_ref().map(|one| &one[..]);
                Entry { key, lsn: lsn.0, value }.put(&mut bytes);
            }
            let leaf = Leaf::decode(bytes).map(Arc::new);
            prop_assert!(leaf.is_some());
            let range = (Bound::Excluded(vec![from.min(to)]), Bound::Included(vec![from.max(to)]));
            prop_assume!(from != to);
            let range = (range.0.as_ref().map(Vec::as_slice), range.1.as_ref().map(Vec::as_slice));
            let mut all = Values::new();
            for (lsn, values) in versions.iter().enumerate() {
                if lsn as u64 <= at {
                    all.extend(values.clone());
                }
            }
            let within: Values = changes.range::<[u8], _>(range).map(|(key, value)| (key.clone(), *value)).collect();
            all.extend(changes);
            let mut expected: VecDeque<Pair> = all
                .range::<[u8], _>(range)
                .filter_map(|(key, value)| Some((key.clone(), vec![(*value)?])))
                .collect();
            let mut piece = Piece::new(leaf, range, at, seen(&within));
            for backwards in ends {
                if backwards {
                    prop_assert_eq!(piece.next_back(), expected.pop_back());
                } else {
                    prop_assert_eq!(piece.next(), expected.pop_front());
                }
            }
        }
    }
}
