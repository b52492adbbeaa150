//! Going through keys in their order, from either end, while others write.
//!
//! A range is read as of one commit, piece by piece: what is in memory of a leaf's keys is copied, then the leaf is read, with
//! no lock held. Between two pieces anything may happen to the tree: the next one is looked for by its key. Pieces with many
//! changes begin small, for those who want a few keys, and grow.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::gaps::{WORTH, covers, together};
use super::leaf::Leaf;
pub(crate) use super::piece::Pair;
use super::piece::{Most, Piece, Seen, overlay};
use super::removed::{RemovedRanges, cut_at_removed};
use super::snapshots::View;
use super::tree::{Keyspace, Page, Place, group_of};

use crate::Error;
use crate::environment::{Environment, planted};

/// Changes in memory that the first piece has at most.
const FIRST: usize = if cfg!(test) { 2 } else { 32 };
/// That any piece has at most: each is copied with the lock of its group held.
const MOST: usize = if cfg!(test) { 8 } else { 1024 };
/// Bytes of them, with which a piece ends: an iterator that nobody asks for more holds them.
const MOST_BYTES: usize = if cfg!(test) { 1 << 10 } else { 256 << 10 };

/// Removals of a group that somebody passes over, from which on it is to be merged.
const TEDIOUS: usize = if cfg!(test) { 8 } else { 1000 };

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
        self.borrow().contains(key)
    }

    pub fn is_empty(&self) -> bool {
        match (&self.from, &self.to) {
            (Bound::Unbounded, _) => self.to == Bound::Excluded(Vec::new()),
            (_, Bound::Unbounded) => false,
            (Bound::Included(from), Bound::Included(to)) => from > to,
            (Bound::Included(from) | Bound::Excluded(from), Bound::Excluded(to))
            | (Bound::Excluded(from), Bound::Included(to)) => from >= to,
        }
    }
}

/// What a transaction wrote itself: it counts more than what others did.
#[derive(Default)]
pub(crate) struct Own {
    pub writes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// Ranges that it removed before these writes.
    pub removed: RemovedRanges,
}

impl Own {
    fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.removed.is_empty()
    }
}

/// What is left of a range.
pub(crate) struct Range<E: Environment> {
    view: Arc<View<E>>,
    keyspace: Arc<Keyspace<E>>,
    /// What was not read yet.
    rest: Bounds,
    /// What was read and not given out, in front and behind.
    front: Piece,
    back: Piece,
    own: Own,
    /// The leaf of the last piece: the next one mostly has the same.
    leaf: Option<(Arc<Page<E>>, Arc<Leaf>)>,
    /// How many the next piece has at most.
    most: usize,
    /// What was gone through last, and has nothing.
    passed: Option<Passed<E>>,
    has_failed: bool,
}

/// Keys of a group in which nothing is.
struct Passed<E: Environment> {
    place: Place<E>,
    /// The first key behind those of the group.
    next: Option<Arc<[u8]>>,
    keys: Bounds,
    /// Removals of them that nobody is spared yet.
    removals: usize,
    /// Removals of the group that were passed over, since it was told of that.
    of_group: usize,
    /// Those of the group when it was looked at.
    turns: u64,
}

impl<E: Environment> Range<E> {
    pub fn new(
        view: Arc<View<E>>,
        keyspace: Arc<Keyspace<E>>,
        bounds: Bounds,
        own: Own,
    ) -> Range<E> {
        Range {
            view,
            keyspace,
            rest: bounds,
            front: Piece::default(),
            back: Piece::default(),
            own,
            leaf: None,
            most: FIRST,
            passed: None,
            has_failed: false,
        }
    }

    pub fn next(&mut self) -> Option<Result<Pair, Error>> {
        loop {
            if let Some(pair) = self.front.next() {
                return Some(Ok(pair));
            }
            if self.has_failed || self.rest.is_empty() {
                return self.back.next().map(Ok);
            }
            match self.read(false) {
                Ok(piece) => self.front = piece,
                Err(error) => return self.fail(error),
            }
        }
    }

    pub fn next_back(&mut self) -> Option<Result<Pair, Error>> {
        loop {
            if let Some(pair) = self.back.next_back() {
                return Some(Ok(pair));
            }
            if self.has_failed || self.rest.is_empty() {
                return self.front.next_back().map(Ok);
            }
            match self.read(true) {
                Ok(piece) => self.back = piece,
                Err(error) => return self.fail(error),
            }
        }
    }

    /// Nothing more comes: what is behind would seem to follow.
    fn fail(&mut self, error: Error) -> Option<Result<Pair, Error>> {
        self.has_failed = true;
        self.front = Piece::default();
        self.back = Piece::default();
        Some(Err(self.view.store.shared.error_of_reader(error)))
    }

    /// Reads the first piece of what is left, or the last one, and takes it away from what is left.
    fn read(&mut self, backwards: bool) -> Result<Piece, Error> {
        let shared = &self.view.store.shared;
        shared.require_open(&self.keyspace)?;
        let groups = E::share(&self.keyspace.groups);
        let at = if planted!(shared.environment, GapForOlder) {
            u64::MAX - 1
        } else {
            self.view.at
        };
        // The groups of both ends of what is left.
        let lowest = match &self.rest.from {
            Bound::Unbounded => 0,
            Bound::Included(from) | Bound::Excluded(from) => group_of(&groups, from),
        };
        let highest = match &self.rest.to {
            Bound::Unbounded => groups.len() - 1,
            Bound::Included(to) => group_of(&groups, to),
            // The last that begins before it.
            Bound::Excluded(to) => groups
                .partition_point(|place| *place.low < **to)
                .saturating_sub(1),
        };
        let first = if backwards { highest } else { lowest };
        // What a transaction wrote itself is in none of them.
        let index = if self.own.is_empty() {
            let those = lowest..=highest.max(lowest);
            pass_empty(&mut self.rest, &groups, those, at, backwards)
        } else {
            Some(first)
        };
        let Some(index) = index else {
            return Ok(Piece::default());
        };
        let next_low = groups.get(index + 1).map(|next| next.low.clone());
        let low = (index > 0).then(|| groups[index].low.clone());
        let place = groups[index].clone();
        let group = E::share(&place.group);
        if !planted!(shared.environment, ReadRemoved) {
            self.keyspace.require_there()?;
        }
        if self.own.is_empty()
            && let Some(gap) = group.gaps.at_end_of(&self.rest, at, backwards)
        {
            let (keys, turns) = (gap.clone(), group.turns);
            drop(group);
            drop(groups);
            self.rest.take(keys.clone(), backwards);
            self.pass(Passed {
                of_group: self.passed_of(&place),
                place,
                next: next_low,
                keys,
                removals: 0,
                turns,
            });
            return Ok(Piece::default());
        }
        shared.pieces.fetch_add(1, Ordering::Relaxed);
        let mut keys = self.rest.within(low.as_deref(), next_low.as_deref());
        let is_own_removed = !self.own.removed.is_empty()
            && cut_at_removed(&[&self.own.removed], &mut keys, u64::MAX, backwards) > 0;
        // Of keys that were removed with a range nothing on the disk is seen.
        let ranges = if is_own_removed || planted!(shared.environment, ScanForgetsRanges) {
            0
        } else {
            group.cut_at_removed(&mut keys, self.view.at, backwards)
        };
        let is_removed = is_own_removed || ranges > 0;
        let leaf = if is_removed {
            None
        } else if backwards {
            match &self.rest.to {
                Bound::Unbounded => group.leaves.len().checked_sub(1),
                Bound::Included(to) => group.leaves.of_key(to),
                Bound::Excluded(to) => group.leaves.last_before(to),
            }
        } else {
            match &self.rest.from {
                Bound::Unbounded => (!group.leaves.is_empty()).then_some(0),
                Bound::Included(from) | Bound::Excluded(from) => group.leaves.of_key(from),
            }
        };
        // The keys of the leaf, if there is one.
        let leaf_low = leaf.filter(|leaf| *leaf > 0);
        let leaf_low = leaf_low.map(|leaf| &*group.leaves[leaf].low);
        let leaf_next = leaf.and_then(|leaf| group.leaves.get(leaf + 1));
        let mut keys = keys.within(leaf_low, leaf_next.map(|slot| &*slot.low));
        debug_assert!(
            !keys.is_empty(),
            "a leaf that has nothing of the range was chosen"
        );
        let most = Most {
            entries: self.most,
            bytes: MOST_BYTES,
        };
        for changes in group.changes() {
            let key = if backwards {
                changes.key_back(borrowed(&keys.to), most)
            } else {
                changes.key_ahead(borrowed(&keys.from), most)
            };
            keys.end_with(key, backwards);
        }
        let mut changes = if is_own_removed {
            Vec::new()
        } else {
            group.changes_in(keys.borrow(), self.view.at)
        };
        let page = leaf.map(|leaf| group.leaves[leaf].page.clone());
        let runs = if is_removed {
            Arc::default()
        } else {
            group.runs.clone()
        };
        let sees_written = group.sees_written(self.view.at);
        let sees_written = sees_written || planted!(shared.environment, GapPastLeaves);
        let is_current = self.own.is_empty() && sees_written && group.sees_changes(self.view.at);
        let turns = group.turns;
        drop(group);
        drop(groups);
        let mut in_runs = Vec::with_capacity(runs.len());
        if !planted!(shared.environment, ScanForgetsRuns) {
            if !runs.is_empty() {
                let last = self.leaf.as_ref().map(|(last, _)| last);
                let is_new =
                    |page: &&Arc<Page<E>>| last.is_none_or(|last| !Arc::ptr_eq(last, page));
                let leaf = page.as_ref().filter(is_new);
                shared.read_first(&runs, leaf, keys.borrow(), backwards)?;
            }
            for run in runs.iter() {
                let part = run.part(&**shared, keys.borrow(), most, backwards)?;
                keys.end_with(part.last.as_deref(), backwards);
                in_runs.push(part.blocks);
            }
            changes.retain(|(key, _)| keys.contains(key));
        }
        let leaf = match page {
            Some(page) => {
                let last = self
                    .leaf
                    .take()
                    .filter(|(last, _)| Arc::ptr_eq(last, &page));
                let leaf = match last {
                    Some((_, leaf)) => leaf,
                    None => shared.load(&page)?,
                };
                self.leaf = Some((page, leaf.clone()));
                Some(leaf)
            }
            None => None,
        };
        let own = self.own.writes.range::<[u8], _>(keys.borrow());
        let own = own.map(|(key, value)| (key.clone(), value.clone()));
        let range = keys.borrow();
        let older = runs_in(&in_runs, range, self.view.at);
        let changes = overlay(overlay(older, changes.into_iter()), own);
        let mut found = Piece::new(leaf, keys.borrow(), self.view.at, changes);
        if is_current {
            let (removals, end) = found.settle(backwards);
            let removals = removals + ranges;
            // What comes behind them may be a change as well.
            let certain = removals.saturating_sub(usize::from(end.is_some()));
            let mut nothing = keys.clone();
            if let Some(end) = end.map(<[u8]>::to_vec) {
                if backwards {
                    nothing.from = Bound::Excluded(end);
                } else {
                    nothing.to = Bound::Excluded(end);
                }
            }
            self.pass(Passed {
                of_group: self.passed_of(&place) + certain,
                place,
                next: next_low,
                keys: nothing,
                removals,
                turns,
            });
        }
        self.rest.take(keys, backwards);
        self.most = (2 * self.most).min(MOST);
        Ok(found)
    }
}

/// What keys of a range have at a commit in these blocks of runs, the newest run first.
pub(super) fn runs_in<'b>(
    runs: &'b [Vec<Arc<Leaf>>],
    range: (Bound<&'b [u8]>, Bound<&'b [u8]>),
    at: u64,
) -> Box<dyn Iterator<Item = Seen> + 'b> {
    let nothing: Box<dyn Iterator<Item = Seen> + 'b> = Box::new(std::iter::empty());
    runs.iter().rev().fold(nothing, |older, blocks| {
        let newer = blocks.iter().flat_map(move |block| {
            let seen = block.seen(block.entries_of(range.0, range.1), at);
            seen.map(|entry| (entry.key.to_vec(), entry.value.map(<[u8]>::to_vec)))
        });
        Box::new(overlay(older, newer))
    })
}

impl<E: Environment> Range<E> {
    /// Removals of a group that this has passed over, if it comes from there.
    fn passed_of(&self, place: &Place<E>) -> usize {
        let before = self.passed.as_ref();
        let before = before.filter(|before| Arc::ptr_eq(&before.place.group, &place.group));
        before.map_or(0, |before| before.of_group)
    }

    /// These keys have nothing. If it was much work to see that, others are spared it.
    fn pass(&mut self, mut passed: Passed<E>) {
        let before = self.passed.take();
        let before = before.filter(|before| {
            Arc::ptr_eq(&before.place.group, &passed.place.group) && before.turns == passed.turns
        });
        if let Some(before) = before
            && let Some(both) = together(&before.keys, &passed.keys)
        {
            passed.keys = both;
            passed.removals += before.removals;
        }
        let is_whole = covers(&passed.keys, &passed.place.low, passed.next.as_deref());
        if is_whole || passed.removals >= WORTH {
            let trusts = planted!(self.view.store.shared.environment, GapUnseen);
            let mut group = E::exclude(&passed.place.group);
            if group.turns == passed.turns || trusts {
                if is_whole {
                    passed.place.emptiness.say(self.view.at);
                } else {
                    group.gaps.put(passed.keys.clone(), self.view.at);
                }
            }
            passed.removals = 0;
        }
        if passed.of_group > TEDIOUS {
            E::exclude(&passed.place.group).is_tedious = true;
            passed.of_group = 0;
        }
        self.passed = Some(passed);
    }
}

/// Passes over those of a range's groups that are said to be empty, from one end on. The one behind them, if anything is left of the
/// range.
fn pass_empty<E: Environment>(
    rest: &mut Bounds,
    groups: &[Place<E>],
    those: RangeInclusive<usize>,
    at: u64,
    backwards: bool,
) -> Option<usize> {
    let is_empty = |place: &&Place<E>| place.emptiness.is_at(at);
    let (lowest, highest) = (*those.start(), *those.end());
    let all = groups[those].iter();
    let empty = if backwards {
        all.rev().take_while(is_empty).count()
    } else {
        all.take_while(is_empty).count()
    };
    let first = if backwards { highest } else { lowest };
    if empty == 0 {
        return Some(first);
    }
    let keys = if backwards {
        let last = first + 1 - empty;
        rest.within((last > 0).then(|| &*groups[last].low), None)
    } else {
        rest.within(None, groups.get(first + empty).map(|next| &*next.low))
    };
    rest.take(keys, backwards);
    let is_left = !rest.is_empty();
    is_left.then(|| {
        if backwards {
            first - empty
        } else {
            first + empty
        }
    })
}

impl Bounds {
    fn nothing() -> Bounds {
        Bounds {
            from: Bound::Unbounded,
            to: Bound::Excluded(Vec::new()),
        }
    }

    pub fn borrow(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (borrowed(&self.from), borrowed(&self.to))
    }

    /// Ends with this key, or begins with it, if it has it.
    fn end_with(&mut self, key: Option<&[u8]>, backwards: bool) {
        let key = key.filter(|key| self.contains(key));
        let Some(key) = key.map(|key| Bound::Included(key.to_vec())) else {
            return;
        };
        if backwards {
            self.from = key;
        } else {
            self.to = key;
        }
    }

    /// Takes its first piece away, or its last one.
    pub fn take(&mut self, piece: Bounds, backwards: bool) {
        let behind = |end| match end {
            Bound::Included(key) => Bound::Excluded(key),
            Bound::Excluded(key) => Bound::Included(key),
            Bound::Unbounded => Bound::Unbounded,
        };
        match if backwards { piece.from } else { piece.to } {
            Bound::Unbounded => *self = Bounds::nothing(),
            end if backwards => self.to = behind(end),
            end => self.from = behind(end),
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
