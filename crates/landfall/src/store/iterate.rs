//! Going through keys in their order, from either end, while others write.
//!
//! A range is read as of one commit, leaf by leaf: what is in memory of a leaf's keys is copied, then the leaf is read, with no
//! lock held. Between two leaves anything may happen to the tree: the next one is looked for by its key.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use super::snapshots::View;
use super::tree::{Keyspace, group_of};
use super::visible::visible_in;
use crate::Error;
use crate::environment::Environment;

/// A key and its value.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// From and to which key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub from: Bound<Vec<u8>>,
    pub to: Bound<Vec<u8>>,
}

fn owned<K: AsRef<[u8]>>(bound: Bound<&K>) -> Bound<Vec<u8>> {
    bound.map(|key| key.as_ref().to_vec())
}

fn borrowed(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

impl Bounds {
    pub fn of<K: AsRef<[u8]>>(range: &impl RangeBounds<K>) -> Bounds {
        Bounds {
            from: owned(range.start_bound()),
            to: owned(range.end_bound()),
        }
    }

    /// All keys that begin with this one.
    pub fn prefix(prefix: &[u8]) -> Bounds {
        let mut next = prefix.to_vec();
        // The first key behind: the last byte that can be, raised by one.
        while next.last() == Some(&u8::MAX) {
            next.pop();
        }
        let to = match next.last_mut() {
            Some(last) => {
                *last += 1;
                Bound::Excluded(next)
            }
            None => Bound::Unbounded,
        };
        Bounds {
            from: Bound::Included(prefix.to_vec()),
            to,
        }
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        (borrowed(&self.from), borrowed(&self.to)).contains(key)
    }

    fn is_empty(&self) -> bool {
        match (&self.from, &self.to) {
            (Bound::Unbounded, _) => self.to == Bound::Excluded(Vec::new()),
            (_, Bound::Unbounded) => false,
            (Bound::Included(from), Bound::Included(to)) => from > to,
            (Bound::Included(from) | Bound::Excluded(from), Bound::Excluded(to))
            | (Bound::Excluded(from), Bound::Included(to)) => from >= to,
        }
    }
}

/// What is left of a range.
pub(crate) struct Range<E: Environment> {
    view: Arc<View<E>>,
    keyspace: Arc<Keyspace<E>>,
    /// What was not read yet.
    rest: Bounds,
    /// What was read and not given out, in front and behind.
    front: VecDeque<Pair>,
    back: VecDeque<Pair>,
    /// What a transaction wrote itself.
    own: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    has_failed: bool,
}

impl<E: Environment> Range<E> {
    pub fn new(
        view: Arc<View<E>>,
        keyspace: Arc<Keyspace<E>>,
        bounds: Bounds,
        own: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    ) -> Range<E> {
        Range {
            view,
            keyspace,
            rest: bounds,
            front: VecDeque::new(),
            back: VecDeque::new(),
            own,
            has_failed: false,
        }
    }

    pub fn next(&mut self) -> Option<Result<Pair, Error>> {
        while self.front.is_empty() && !self.has_failed && !self.rest.is_empty() {
            match self.read(false) {
                Ok(pairs) => self.front.extend(pairs),
                Err(error) => return self.fail(error),
            }
        }
        self.front
            .pop_front()
            .or_else(|| self.back.pop_front())
            .map(Ok)
    }

    pub fn next_back(&mut self) -> Option<Result<Pair, Error>> {
        while self.back.is_empty() && !self.has_failed && !self.rest.is_empty() {
            match self.read(true) {
                Ok(pairs) => self.back.extend(pairs),
                Err(error) => return self.fail(error),
            }
        }
        self.back
            .pop_back()
            .or_else(|| self.front.pop_back())
            .map(Ok)
    }

    /// Nothing more comes: what is behind would seem to follow.
    fn fail(&mut self, error: Error) -> Option<Result<Pair, Error>> {
        self.has_failed = true;
        self.front.clear();
        self.back.clear();
        Some(Err(error))
    }

    /// Reads what is in the first leaf of what is left, or in the last one, and takes it away from what is left.
    fn read(&mut self, backwards: bool) -> Result<Vec<Pair>, Error> {
        let shared = &self.view.store.shared;
        shared.require_open(&self.keyspace)?;
        let groups = E::share(&self.keyspace.groups);
        let index = if backwards {
            match &self.rest.to {
                Bound::Unbounded => groups.len() - 1,
                Bound::Included(to) => group_of(&groups, to),
                // The last that begins before it.
                Bound::Excluded(to) => groups
                    .partition_point(|place| *place.low < **to)
                    .saturating_sub(1),
            }
        } else {
            match &self.rest.from {
                Bound::Unbounded => 0,
                Bound::Included(from) | Bound::Excluded(from) => group_of(&groups, from),
            }
        };
        let next_low = groups.get(index + 1).map(|next| next.low.clone());
        let low = (index > 0).then(|| groups[index].low.clone());
        let group = E::share(&groups[index].group);
        let leaf = if backwards {
            match &self.rest.to {
                Bound::Unbounded => group.leaves.len().checked_sub(1),
                Bound::Included(to) => group.leaf_of(to),
                Bound::Excluded(to) => (!group.leaves.is_empty()).then(|| {
                    let behind = group.leaves.partition_point(|slot| *slot.low < **to);
                    behind.saturating_sub(1)
                }),
            }
        } else {
            match &self.rest.from {
                Bound::Unbounded => (!group.leaves.is_empty()).then_some(0),
                Bound::Included(from) | Bound::Excluded(from) => group.leaf_of(from),
            }
        };
        // The keys of the leaf, or of the group if it has none.
        let leaf_low = leaf.filter(|leaf| *leaf > 0);
        let leaf_low = leaf_low.map(|leaf| group.leaves[leaf].low.clone()).or(low);
        let leaf_next = leaf.and_then(|leaf| group.leaves.get(leaf + 1));
        let leaf_next = leaf_next.map(|slot| slot.low.clone()).or(next_low);
        let part = self.rest.within(leaf_low.as_deref(), leaf_next.as_deref());
        let changes = if part.is_empty() {
            Vec::new()
        } else {
            group.changes_in(borrowed(&part.from), borrowed(&part.to), self.view.at)
        };
        let page = leaf.map(|leaf| group.leaves[leaf].page.clone());
        drop(group);
        drop(groups);
        let mut pairs: Vec<Pair> = Vec::new();
        if !part.is_empty() {
            let leaf = page.map(|page| shared.load(&page)).transpose()?;
            let range = (borrowed(&part.from), borrowed(&part.to));
            visible_in(
                leaf.as_deref(),
                range,
                self.view.at,
                changes,
                &mut |key, value| {
                    pairs.push((key.to_vec(), value.to_vec()));
                },
            );
        }
        if backwards {
            self.rest.to = leaf_low.map_or(Bound::Excluded(Vec::new()), |low| {
                Bound::Excluded(low.to_vec())
            });
        } else {
            match leaf_next {
                Some(next) => self.rest.from = Bound::Included(next.to_vec()),
                None => self.rest = Bounds::nothing(),
            }
        }
        Ok(self.with_own(pairs, &part))
    }

    /// What a transaction wrote itself takes the place of what is there.
    fn with_own(&self, pairs: Vec<Pair>, part: &Bounds) -> Vec<Pair> {
        if self.own.is_empty() || part.is_empty() {
            return pairs;
        }
        let mut all: BTreeMap<Vec<u8>, Vec<u8>> = pairs.into_iter().collect();
        let range = (borrowed(&part.from), borrowed(&part.to));
        for (key, value) in self.own.range::<[u8], _>(range) {
            match value {
                Some(value) => all.insert(key.clone(), value.clone()),
                None => all.remove(key),
            };
        }
        all.into_iter().collect()
    }
}

impl Bounds {
    fn nothing() -> Bounds {
        Bounds {
            from: Bound::Unbounded,
            to: Bound::Excluded(Vec::new()),
        }
    }

    /// What of it is from `low` on and before `next`.
    fn within(&self, low: Option<&[u8]>, next: Option<&[u8]>) -> Bounds {
        let mut part = self.clone();
        if let Some(low) = low {
            let is_before = match &part.from {
                Bound::Unbounded => true,
                Bound::Included(from) | Bound::Excluded(from) => **from < *low,
            };
            if is_before {
                part.from = Bound::Included(low.to_vec());
            }
        }
        if let Some(next) = next {
            let is_behind = match &part.to {
                Bound::Unbounded => true,
                Bound::Included(to) => **to >= *next,
                Bound::Excluded(to) => **to > *next,
            };
            if is_behind {
                part.to = Bound::Excluded(next.to_vec());
            }
        }
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_a_range() {
        let bounds = Bounds::prefix(b"ab");
        assert!(bounds.contains(b"ab") && bounds.contains(b"ab\xff\xff"));
        assert!(!bounds.contains(b"aa\xff") && !bounds.contains(b"ac"));
        let bounds = Bounds::prefix(b"a\xff");
        assert!(bounds.contains(b"a\xff\xff") && !bounds.contains(b"b"));
        let bounds = Bounds::prefix(b"\xff\xff");
        assert!(bounds.contains(b"\xff\xff\xff") && !bounds.contains(b"\xff"));
        assert!(Bounds::prefix(b"").contains(b""));
    }

    #[test]
    fn empty_ranges_are_known() {
        let bounds = |from, to| Bounds { from, to };
        let key = |key: &str| key.as_bytes().to_vec();
        use Bound::{Excluded, Included, Unbounded};
        assert!(!bounds(Unbounded, Unbounded).is_empty());
        assert!(bounds(Unbounded, Excluded(key(""))).is_empty());
        assert!(!bounds(Unbounded, Included(key(""))).is_empty());
        assert!(!bounds(Included(key("a")), Included(key("a"))).is_empty());
        assert!(bounds(Included(key("a")), Excluded(key("a"))).is_empty());
        assert!(bounds(Excluded(key("a")), Included(key("a"))).is_empty());
        assert!(bounds(Included(key("b")), Included(key("a"))).is_empty());
        assert!(!bounds(Included(key("a")), Excluded(key("b"))).is_empty());
        assert!(Bounds::nothing().is_empty());
    }
}
