//! Ranges of keys that were removed at once: which of them hide what a key had, and at which commit they were.
//!
//! A range that is removed is one entry in the log and one in each group, whatever it has. What it hides goes when the group is
//! merged: a leaf all of whose keys are in it is dropped and not read. Ranges are only in memory and in the log, never in a run
//! or a leaf.
//!
//! Invariant: the ranges that are kept are disjoint; each has the commits at which it was removed, the oldest first. What a
//! commit writes besides it writes after its ranges, so that a version of the same commit is not hidden.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::changes::is_needed;
use super::iterate::Bounds;

/// Keys from one on and before another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyRange {
    pub low: Vec<u8>,
    /// `None`: to the last one.
    pub high: Option<Vec<u8>>,
}

/// The first key behind this one.
fn next(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// Whether a key is before an end of which `None` is behind all.
fn is_before(key: &[u8], high: Option<&[u8]>) -> bool {
    high.is_none_or(|high| key < high)
}

/// The first of two ends.
fn first_end<'k>(a: Option<&'k [u8]>, b: Option<&'k [u8]>) -> Option<&'k [u8]> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (end, None) | (None, end) => end,
    }
}

impl KeyRange {
    /// `None`: no key is in it.
    pub fn of(bounds: &Bounds) -> Option<KeyRange> {
        let low = match &bounds.from {
            Bound::Unbounded => Vec::new(),
            Bound::Included(key) => key.clone(),
            Bound::Excluded(key) => next(key),
        };
        let high = match &bounds.to {
            Bound::Unbounded => None,
            Bound::Excluded(key) => Some(key.clone()),
            Bound::Included(key) => Some(next(key)),
        };
        is_before(&low, high.as_deref()).then_some(KeyRange { low, high })
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        *self.low <= *key && is_before(key, self.high.as_deref())
    }

    pub fn overlaps(&self, other: &KeyRange) -> bool {
        is_before(&self.low, other.high.as_deref()) && is_before(&other.low, self.high.as_deref())
    }

    /// Takes in one that begins no earlier, if no key is between them.
    pub fn take_in(&mut self, other: &KeyRange) -> bool {
        match &self.high {
            Some(high) if other.low > *high => return false,
            Some(high) if is_before(high, other.high.as_deref()) => {
                self.high.clone_from(&other.high);
            }
            _ => {}
        }
        true
    }

    /// What of it is from one key on and before another.
    pub fn within(&self, low: &[u8], high: Option<&[u8]>) -> Option<KeyRange> {
        let low = low.max(&self.low);
        let high = first_end(self.high.as_deref(), high);
        is_before(low, high).then(|| KeyRange {
            low: low.to_vec(),
            high: high.map(<[u8]>::to_vec),
        })
    }

    /// Bytes of its keys.
    pub fn bytes(&self) -> usize {
        self.low.len() + self.high.as_ref().map_or(0, Vec::len)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Fragment {
    high: Option<Vec<u8>>,
    /// The commits that removed it, the oldest first; one at least.
    lsns: Vec<u64>,
}

impl Fragment {
    fn is_seen(&self, at: u64) -> bool {
        self.lsns[0] <= at
    }

    /// Bytes of memory, about, with its first key.
    fn memory(&self, low: &[u8]) -> usize {
        // Nodes of the tree are full by two thirds.
        let node = 3 * (size_of::<Vec<u8>>() + size_of::<Fragment>()) / 2;
        let high = self.high.as_ref().map(Vec::len);
        let lists = [low.len(), 8 * self.lsns.len()].into_iter().chain(high);
        // What was asked for takes 16 bytes more, and 32 at least.
        let lists = lists
            .filter(|bytes| *bytes > 0)
            .map(|bytes| bytes.max(16) + 16);
        node + lists.sum::<usize>()
    }
}

/// Ranges that were removed of a group, by their first keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct RemovedRanges {
    all: BTreeMap<Vec<u8>, Fragment>,
    /// That they take in memory.
    pub bytes: usize,
}

/// How much of some keys is removed for everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removed {
    Nothing,
    Some,
    /// Nobody sees anything that is older than what is in memory.
    All,
}

impl RemovedRanges {
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The first and the last commit of all.
    pub fn span(&self) -> Option<(u64, u64)> {
        let spans = self.all.values().map(|one| {
            let (first, last) = (one.lsns.first(), one.lsns.last());
            (*first.unwrap_or(&0), *last.unwrap_or(&0))
        });
        spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    fn put(&mut self, low: Vec<u8>, fragment: Fragment) {
        debug_assert!(is_before(&low, fragment.high.as_deref()) && fragment.lsns.is_sorted());
        // Neighbours with the same commits are one.
        if let Some((low_before, before)) = self.all.range(..low.clone()).next_back()
            && before.high.as_deref() == Some(&*low)
            && before.lsns == fragment.lsns
        {
            let low_before = low_before.clone();
            self.take(&low_before);
            return self.put(low_before, fragment);
        }
        self.bytes += fragment.memory(&low);
        self.all.insert(low, fragment);
    }

    fn take(&mut self, low: &[u8]) -> Option<Fragment> {
        let fragment = self.all.remove(low)?;
        self.bytes -= fragment.memory(low);
        Some(fragment)
    }

    /// The last fragment that begins before a key.
    fn before(&self, key: &[u8]) -> Option<(&Vec<u8>, &Fragment)> {
        let before = (Bound::Unbounded, Bound::Excluded(key));
        self.all.range::<[u8], _>(before).next_back()
    }

    /// No fragment goes past this key: one that did is two.
    fn cut(&mut self, key: &[u8]) {
        let Some((low, fragment)) = self.before(key) else {
            return;
        };
        if is_before(key, fragment.high.as_deref()) {
            let low = low.clone();
            if let Some(whole) = self.take(&low) {
                let front = Fragment {
                    high: Some(key.to_vec()),
                    lsns: whole.lsns.clone(),
                };
                // Not by `put`, which would make them one again.
                self.bytes += front.memory(&low) + whole.memory(key);
                self.all.insert(low, front);
                self.all.insert(key.to_vec(), whole);
            }
        }
    }

    /// Adds a range that was removed after all that are there. `snapshots` are those that somebody reads, in their order: commits
    /// that none of them needs go.
    pub fn add(&mut self, range: &KeyRange, lsn: u64, snapshots: &[u64]) {
        self.insert(range, &[lsn], |older, newer| {
            is_needed(older, newer, snapshots)
        });
    }

    fn insert(&mut self, range: &KeyRange, newer: &[u64], is_needed: impl Fn(u64, u64) -> bool) {
        self.cut(&range.low);
        if let Some(high) = &range.high {
            self.cut(high);
        }
        let lows: Vec<Vec<u8>> = self
            .all
            .range(range.low.clone()..)
            .map(|(low, _)| low.clone())
            .take_while(|low| is_before(low, range.high.as_deref()))
            .collect();
        let fragment = |high: Option<Vec<u8>>, lsns: Vec<u64>| Fragment { high, lsns };
        let mut low = Some(range.low.clone());
        let mut made = Vec::with_capacity(2 * lows.len() + 1);
        for next in lows {
            let Some(Fragment { high, lsns }) = self.take(&next) else {
                continue;
            };
            if let Some(low) = low.take_if(|low| *low < next) {
                made.push((low, fragment(Some(next.clone()), newer.to_vec())));
            }
            let first = newer[0];
            let behind = lsns.iter().skip(1).chain([&first]);
            let older = lsns.iter().zip(behind);
            let older = older.filter(|(lsn, next)| **lsn < first && is_needed(**lsn, **next));
            let mut lsns: Vec<u64> = older.map(|(lsn, _)| *lsn).collect();
            lsns.extend(newer);
            low.clone_from(&high);
            made.push((next, fragment(high, lsns)));
        }
        // Of one without an end nothing is behind.
        if let Some(low) = low.filter(|low| is_before(low, range.high.as_deref())) {
            made.push((low, fragment(range.high.clone(), newer.to_vec())));
        }
        self.put_all(made);
    }

    fn put_all(&mut self, made: Vec<(Vec<u8>, Fragment)>) {
        for (low, fragment) in made {
            self.put(low, fragment);
        }
    }

    /// Puts ranges behind these that are newer.
    pub fn append(&mut self, newer: &RemovedRanges) {
        for (low, fragment) in &newer.all {
            let range = KeyRange {
                low: low.clone(),
                high: fragment.high.clone(),
            };
            self.insert(&range, &fragment.lsns, |_, _| true);
        }
    }

    /// Those that have some of these keys.
    pub fn within(&self, keys: &KeyRange) -> RemovedRanges {
        let first = self.of_key(&keys.low).map(|(low, _)| low);
        let first = first.unwrap_or(&keys.low);
        let all = self.all.range(first.clone()..);
        let all = all.take_while(|(low, _)| is_before(low, keys.high.as_deref()));
        let all: BTreeMap<_, _> = all.map(|(low, one)| (low.clone(), one.clone())).collect();
        let bytes = all.iter().map(|(low, one)| one.memory(low)).sum();
        RemovedRanges { all, bytes }
    }

    /// Whether all keys of a range were removed with others.
    pub fn has_all_of(&self, keys: &KeyRange) -> bool {
        self.of_keys(&keys.low, keys.high.as_deref(), None) == Removed::All
    }

    /// Takes the keys from this one on away.
    pub fn split_off(&mut self, key: &[u8]) -> RemovedRanges {
        self.cut(key);
        let all = self.all.split_off(key);
        let bytes = all.iter().map(|(low, one)| one.memory(low)).sum();
        self.bytes -= bytes;
        RemovedRanges { all, bytes }
    }

    /// The fragment that has a key, and its first key.
    fn of_key(&self, key: &[u8]) -> Option<(&Vec<u8>, &Fragment)> {
        let (low, fragment) = self
            .all
            .range::<[u8], _>((Bound::Unbounded, Bound::Included(key)))
            .next_back()?;
        is_before(key, fragment.high.as_deref()).then_some((low, fragment))
    }

    /// The commits that removed a key with a range, the oldest first.
    pub fn lsns(&self, key: &[u8]) -> &[u64] {
        self.of_key(key).map_or(&[], |(_, fragment)| &fragment.lsns)
    }

    /// The last commit that removed a key with a range, as of a commit.
    pub fn last(&self, key: &[u8], at: u64) -> Option<u64> {
        let lsns = self.lsns(key);
        let behind = lsns.partition_point(|lsn| *lsn <= at);
        behind.checked_sub(1).map(|last| lsns[last])
    }

    /// Ranges, without their commits, in their order.
    pub fn ranges(&self) -> impl Iterator<Item = KeyRange> {
        self.all.iter().map(|(low, fragment)| KeyRange {
            low: low.clone(),
            high: fragment.high.clone(),
        })
    }

    /// How much is removed of keys from one on and before another. `oldest` is the oldest commit as of which somebody reads.
    pub fn of_keys(&self, low: &[u8], high: Option<&[u8]>, oldest: Option<u64>) -> Removed {
        if self.all.is_empty() {
            return Removed::Nothing;
        }
        let first = self
            .all
            .range::<[u8], _>((Bound::Unbounded, Bound::Included(low)))
            .next_back();
        let behind = self
            .all
            .range::<[u8], _>((Bound::Excluded(low), Bound::Unbounded));
        let mut found = Removed::Nothing;
        let mut covered = low.to_vec();
        let mut is_covered = true;
        for (begin, fragment) in first.into_iter().chain(behind) {
            if !is_before(begin, high) {
                break;
            }
            if !is_before(low, fragment.high.as_deref()) {
                continue;
            }
            found = Removed::Some;
            is_covered &= *begin <= covered && oldest.is_none_or(|oldest| fragment.is_seen(oldest));
            if !is_covered {
                break;
            }
            match &fragment.high {
                Some(high) => covered.clone_from(high),
                None => return Removed::All,
            }
        }
        let is_all = is_covered && !is_before(&covered, high);
        if found == Removed::Some && is_all {
            found = Removed::All;
        }
        found
    }
}

/// Keys from one end on: how many ranges have removed them, and until where that is so. 0: they are not removed until there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reach {
    ranges: usize,
    /// `None`: to the other end.
    until: Option<Vec<u8>>,
}

/// How far these ranges have removed the keys from `low` on as of a commit, or have not.
fn removed_ahead(ranges: &[&RemovedRanges], low: &[u8], at: u64) -> Reach {
    let mut end = low;
    let mut count = 0;
    while let Some(fragment) = ranges
        .iter()
        .filter_map(|all| all.of_key(end).map(|(_, fragment)| fragment))
        .find(|fragment| fragment.is_seen(at))
    {
        count += 1;
        match &fragment.high {
            Some(high) => end = high,
            None => {
                return Reach {
                    ranges: count,
                    until: None,
                };
            }
        }
    }
    if count > 0 {
        return Reach {
            ranges: count,
            until: Some(end.to_vec()),
        };
    }
    let behind = (Bound::Excluded(low), Bound::Unbounded);
    let firsts = ranges.iter().filter_map(|all| {
        let mut behind = all.all.range::<[u8], _>(behind);
        behind.find(|(_, fragment)| fragment.is_seen(at))
    });
    Reach {
        ranges: 0,
        until: firsts.map(|(begin, _)| begin).min().cloned(),
    }
}

/// The same back from `high`, which is not one of the keys.
fn removed_back(ranges: &[&RemovedRanges], high: Option<&[u8]>, at: u64) -> Reach {
    let before = |all: &RemovedRanges, end: Option<&[u8]>| {
        let end = end.map_or(Bound::Unbounded, Bound::Excluded);
        let before = all.all.range::<[u8], _>((Bound::Unbounded, end));
        let mut seen = before.rev().filter(|(_, fragment)| fragment.is_seen(at));
        let (low, fragment) = seen.next()?;
        Some((low.clone(), fragment.high.clone()))
    };
    let mut begin = high.map(<[u8]>::to_vec);
    let mut count = 0;
    loop {
        let mut last = None;
        let mut found = None;
        for all in ranges {
            let Some((low, end)) = before(all, begin.as_deref()) else {
                continue;
            };
            let reaches = match (&end, &begin) {
                (None, _) => true,
                (Some(end), Some(begin)) => begin <= end,
                (Some(_), None) => false,
            };
            if reaches {
                found = Some(low);
                break;
            }
            last = last.max(end);
        }
        match (found, begin) {
            (Some(low), _) => {
                count += 1;
                begin = Some(low);
            }
            (None, begin) => {
                return Reach {
                    ranges: count,
                    until: if count > 0 { begin } else { last },
                };
            }
        }
    }
}

/// Makes keys that are not empty shorter, until these ranges have all of them as of a commit, or none. What is left is at the end from
/// which it is read. How many ranges it took; 0: it is not removed.
pub(crate) fn cut_at_removed(
    removed: &[&RemovedRanges],
    keys: &mut Bounds,
    at: u64,
    backwards: bool,
) -> usize {
    let Some(KeyRange { low, high }) = KeyRange::of(keys) else {
        return 0;
    };
    let reach = if backwards {
        removed_back(removed, high.as_deref(), at)
    } else {
        removed_ahead(removed, &low, at)
    };
    match reach.until {
        Some(begin) if backwards && begin > low => keys.from = Bound::Included(begin),
        Some(end) if !backwards && high.is_none_or(|high| end < high) => {
            keys.to = Bound::Excluded(end);
        }
        _ => {}
    }
    reach.ranges
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEYS: u8 = 9;

    fn ranges() -> impl Strategy<Value = Vec<(u8, Option<u8>)>> {
        let high = prop::option::of(0..KEYS);
        prop::collection::vec((0..KEYS, high), 0..8)
    }

    fn range(low: u8, high: Option<u8>) -> Option<KeyRange> {
        let high = high.map(|high| vec![high]);
        is_before(&[low], high.as_deref()).then_some(KeyRange {
            low: vec![low],
            high,
        })
    }

    /// Each key, and one between it and the next.
    fn keys() -> impl Iterator<Item = Vec<u8>> {
        (0..KEYS).flat_map(|key| [vec![key], vec![key, 5]])
    }

    /// Of each key the commits that removed it.
    type Model = Vec<Vec<u64>>;

    fn add(
        made: &mut RemovedRanges,
        model: &mut Model,
        (low, high): (u8, Option<u8>),
        lsn: u64,
        snapshots: &[u64],
    ) {
        let Some(range) = range(low, high) else {
            return;
        };
        made.add(&range, lsn, snapshots);
        for (lsns, key) in model.iter_mut().zip(keys()) {
            if range.contains(&key) {
                lsns.push(lsn);
                let all = lsns.clone();
                let next = |one: &u64| all.iter().find(|next| *next > one);
                lsns.retain(|one| next(one).is_none_or(|next| is_needed(*one, *next, snapshots)));
            }
        }
    }

    fn check(made: &RemovedRanges, model: &Model) {
        let memory = made.all.iter().map(|(low, one)| one.memory(low));
        assert_eq!(made.bytes, memory.sum::<usize>());
        for (key, lsns) in keys().zip(model) {
            assert_eq!(made.lsns(&key), lsns, "{key:?}");
        }
        let all: Vec<_> = made.ranges().collect();
        assert!(all.windows(2).all(|two| !two[0].overlaps(&two[1])));
    }

    proptest! {
        #[test]
        fn ranges_are_cut_and_put_together(
            first in ranges(),
            second in ranges(),
            snapshots in prop::collection::btree_set(0..20_u64, 0..4),
            cut in 0..KEYS,
            (low, high) in (0..KEYS, prop::option::of(0..KEYS)),
            at in 0..20_u64,
        ) {
            let snapshots: Vec<u64> = snapshots.into_iter().collect();
            let mut model: Model = keys().map(|_| Vec::new()).collect();
            let (mut made, mut newer) = (RemovedRanges::default(), RemovedRanges::default());
            for (lsn, range) in (1..).zip(first) {
                add(&mut made, &mut model, range, lsn, &snapshots);
            }
            check(&made, &model);
            let mut newer_model: Model = keys().map(|_| Vec::new()).collect();
            for (lsn, range) in (10..).zip(second) {
                add(&mut newer, &mut newer_model, range, lsn, &snapshots);
            }
            let both = [&made, &newer];
            // Where a piece ends that begins or ends at a key.
            let is_removed = |key: &[u8]| both.iter().any(|all| all.last(key, at).is_some());
            let all: Vec<Vec<u8>> = keys().collect();
            let ahead = removed_ahead(&both, &[low], at);
            let until = |key: &&Vec<u8>| key[..] >= [low][..] && is_before(key, ahead.until.as_deref());
            for key in all.iter().filter(until) {
                prop_assert_eq!(is_removed(key), ahead.ranges > 0, "{:?} of {:?}", key, ahead);
            }
            prop_assert_eq!(ahead.ranges > 0, is_removed(&[low]));
            let end = high.map(|high| vec![high]);
            let back = removed_back(&both, end.as_deref(), at);
            let until = |key: &&Vec<u8>| is_before(key, end.as_deref()) && back.until.as_ref().is_none_or(|until| *key >= until);
            for key in all.iter().filter(until) {
                prop_assert_eq!(is_removed(key), back.ranges > 0, "{:?} of {:?}", key, back);
            }
            // How much of some keys is removed for all.
            if let Some(sought) = range(low, high) {
                let oldest = snapshots.first().copied();
                let within: Vec<&Vec<u8>> = all.iter().filter(|key| sought.contains(key)).collect();
                let is_gone = |key: &&Vec<u8>| made.lsns(key).first().is_some_and(|first| oldest.is_none_or(|oldest| *first <= oldest));
                match made.of_keys(&sought.low, sought.high.as_deref(), oldest) {
                    Removed::All => prop_assert!(within.iter().all(is_gone)),
                    Removed::Nothing => prop_assert!(within.iter().all(|key| made.lsns(key).is_empty())),
                    Removed::Some => prop_assert!(!within.iter().all(is_gone) || sought.high.is_none()),
                }
            }

            for (lsns, newer) in model.iter_mut().zip(&newer_model) {
                lsns.extend(newer);
            }
            made.append(&newer);
            check(&made, &model);
            let behind = made.split_off(&[cut]);
            let of = |model: &Model, is_kept: bool| -> Model {
                let kept = |(key, lsns): (Vec<u8>, &Vec<u64>)| if (key < vec![cut]) == is_kept { lsns.clone() } else { Vec::new() };
                keys().zip(model).map(kept).collect()
            };
            check(&made, &of(&model, true));
            check(&behind, &of(&model, false));
        }
    }

    #[test]
    fn ranges_are_of_bounds() {
        let of = |range: (Bound<&[u8]>, Bound<&[u8]>)| KeyRange::of(&Bounds::of::<&[u8]>(&range));
        let all = of((Bound::Unbounded, Bound::Unbounded));
        assert_eq!(
            all,
            Some(KeyRange {
                low: vec![],
                high: None
            })
        );
        let inner = of((Bound::Excluded(b"a"), Bound::Included(b"a\0")));
        assert_eq!(
            inner,
            Some(KeyRange {
                low: b"a\0".to_vec(),
                high: Some(b"a\0\0".to_vec())
            })
        );
        assert_eq!(of((Bound::Excluded(b"a"), Bound::Excluded(b"a\0"))), None);
        assert_eq!(of((Bound::Unbounded, Bound::Excluded(b""))), None);
    }
}
