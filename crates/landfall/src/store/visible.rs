//! What keys have as of a commit, of what is in a leaf and what is in no leaf yet.

use std::ops::{Bound, RangeBounds};

use super::leaf::Leaf;
use super::tree::Visible;

/// Calls `visit` with every key in a range that has a value at this commit, and with the value, in the order of keys.
/// `changes` are those of the range that are not in the leaf, as of the same commit.
pub(super) fn visible_in(
    leaf: Option<&Leaf>,
    range: (Bound<&[u8]>, Bound<&[u8]>),
    at: u64,
    changes: Visible,
    visit: &mut dyn FnMut(&[u8], &[u8]),
) {
    let mut changes = changes.into_iter().peekable();
    let mut show = |key: &[u8], value: Option<&[u8]>| {
        if let Some(value) = value {
            visit(key, value);
        }
    };
    let first = match range.0 {
        Bound::Unbounded => &[][..],
        Bound::Included(first) | Bound::Excluded(first) => first,
    };
    let mut seen: Option<&[u8]> = None;
    for entry in leaf.into_iter().flat_map(|leaf| leaf.from(first)) {
        if is_behind(range.1, entry.key) {
            break;
        }
        // The newest that is not too new.
        if entry.lsn > at || seen == Some(entry.key) || !range.contains(entry.key) {
            continue;
        }
        seen = Some(entry.key);
        while let Some((key, value)) = changes.next_if(|(key, _)| **key < *entry.key) {
            show(&key, value.as_deref());
        }
        match changes.next_if(|(key, _)| **key == *entry.key) {
            Some((key, value)) => show(&key, value.as_deref()),
            None => show(entry.key, entry.value),
        }
    }
    for (key, value) in changes {
        show(&key, value.as_deref());
    }
}

/// Whether a key is behind all that end there.
fn is_behind(end: Bound<&[u8]>, key: &[u8]) -> bool {
    match end {
        Bound::Unbounded => false,
        Bound::Included(end) => key > end,
        Bound::Excluded(end) => key >= end,
    }
}
