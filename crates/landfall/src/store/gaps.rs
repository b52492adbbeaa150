//! Ranges of keys in which nothing is: what somebody saw who went through them, so that nobody has to again.
//!
//! Who removes keys at one end of many, as a queue does, leaves as many removals as fit into memory, and whoever looks for the
//! first key would pass over all of them. A gap is a fact about what is in a group as of a commit, and holds for everybody
//! who reads as of that one or a later one, until a key is put into it.
//!
//! Invariant: in a gap of a group no key has a value that is newer than what the gap is as of.

use std::ops::Bound;

use super::iterate::Bounds;

/// That a group has at most: of those that would be more, the oldest goes.
const MOST: usize = 8;
/// Removals that somebody has to pass over, so that it is worth remembering.
pub(super) const WORTH: usize = if cfg!(test) { 2 } else { 16 };

#[derive(Clone, Debug, Default)]
pub(crate) struct Gaps(Vec<(Bounds, u64)>);

/// Where a range begins, among keys: before one, or behind it.
fn front(bounds: &Bounds) -> (u8, &[u8], bool) {
    match &bounds.from {
        Bound::Unbounded => (0, &[], false),
        Bound::Included(key) => (1, key, false),
        Bound::Excluded(key) => (1, key, true),
    }
}

/// Where it ends.
fn back(bounds: &Bounds) -> (u8, &[u8], bool) {
    match &bounds.to {
        Bound::Unbounded => (2, &[], false),
        Bound::Included(key) => (1, key, true),
        Bound::Excluded(key) => (1, key, false),
    }
}

/// Whether a range has all keys from one on, and before another, if there is one.
pub(super) fn covers(range: &Bounds, low: &[u8], next: Option<&[u8]>) -> bool {
    let end = match next {
        Some(next) => (1, next, false),
        None => (2, &[][..], false),
    };
    front(range) <= (1, low, false) && back(range) >= end
}

/// Two ranges that touch, as one; `None`: there are keys between them.
pub(super) fn together(a: &Bounds, b: &Bounds) -> Option<Bounds> {
    if front(a) > back(b) || front(b) > back(a) {
        return None;
    }
    let (first, last) = (
        if front(a) <= front(b) { a } else { b },
        if back(a) >= back(b) { a } else { b },
    );
    Some(Bounds {
        from: first.from.clone(),
        to: last.to.clone(),
    })
}

impl Gaps {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Nothing is in these keys as of a commit, nor came to be since.
    pub fn put(&mut self, bounds: Bounds, as_of: u64) {
        let mut all = (bounds, as_of);
        self.0.retain(|(gap, of_gap)| match together(gap, &all.0) {
            Some(both) => {
                all = (both, all.1.max(*of_gap));
                false
            }
            None => true,
        });
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        self.0.push(all);
    }

    /// A key is given a value.
    pub fn fill(&mut self, key: &[u8]) {
        self.0.retain(|(gap, _)| !gap.contains(key));
    }

    /// The gap with which a range begins as of a commit, or with which it ends.
    pub fn at_end_of(&self, range: &Bounds, at: u64, backwards: bool) -> Option<&Bounds> {
        let is_there = |gap: &Bounds| {
            if backwards {
                front(gap) < back(range) && back(range) <= back(gap)
            } else {
                front(gap) <= front(range) && front(range) < back(gap)
            }
        };
        let mut all = self.0.iter();
        let found = all.find(|(gap, as_of)| *as_of <= at && is_there(gap));
        found.map(|(gap, _)| gap)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bounds() -> impl Strategy<Value = Bounds> {
        let bound = || {
            prop_oneof![
                Just(Bound::Unbounded),
                (0..9_u8).prop_map(|key| Bound::Included(vec![key])),
                (0..9_u8).prop_map(|key| Bound::Excluded(vec![key])),
            ]
        };
        (bound(), bound()).prop_map(|(from, to)| Bounds { from, to })
    }

    proptest! {
        /// Whatever is put and filled, a gap has only keys that were in one that was put, and were not filled since.
        #[test]
        fn gaps_have_no_more_than_was_put(
            acts in prop::collection::vec((bounds(), prop::option::of(0..9_u8), 0..4_u64), 1..20),
            range in bounds(),
            at in 0..4_u64,
            backwards: bool,
        ) {
            let mut gaps = Gaps::default();
            // Of each key as of which commit it is in a gap.
            let mut known = [None; 9];
            for (bounds, filled, as_of) in acts {
                if let Some(key) = filled {
                    gaps.fill(&[key]);
                    known[usize::from(key)] = None;
                    continue;
                }
                if front(&bounds) >= back(&bounds) {
                    continue;
                }
                for key in 0..9_u8 {
                    let known = &mut known[usize::from(key)];
                    if bounds.contains(&[key]) {
                        *known = Some(known.map_or(as_of, |before: u64| before.min(as_of)));
                    }
                }
                gaps.put(bounds, as_of);
                prop_assert!(gaps.0.len() <= MOST);
            }
            if let Some(gap) = gaps.at_end_of(&range, at, backwards) {
                for key in 0..9_u8 {
                    let as_of = known[usize::from(key)];
                    prop_assert!(!gap.contains(&[key]) || as_of.is_some_and(|as_of| as_of <= at));
                }
            }
        }
    }
}
