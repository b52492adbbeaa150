//! What was written since a checkpoint is put where it belongs, all of it at once: changes of groups are made anew from what
//! they had and from backlogs of the log.
//!
//! That is work for the processors alone, which share it by ranges of keys. Nobody has the store yet, so that of each key only
//! the newest version counts, and groups can be without their changes meanwhile.

use std::collections::BTreeMap;
use std::mem;
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::backlog::{Backlog, Item, Part};
use super::changes::{Changes, Version};
use super::tree::Keyspace;
use crate::environment::Environment;

/// Writes that are put in order together, so that they fit into a processor's cache.
const TOGETHER: usize = if cfg!(test) { 8 } else { 16 << 10 };
/// Writes from which on several processors share them.
const SHARED: usize = 64 << 10;

/// Changes that are made anew: from what was there, and what was written since, the oldest first.
struct Task<'r> {
    before: Changes,
    parts: Vec<Part<'r>>,
    /// Commits before this one are in leaves.
    watermark: u64,
    /// Which group it is of.
    group: usize,
}

impl<'r> Task<'r> {
    fn len(&self) -> usize {
        self.parts.iter().map(Part::len).sum()
    }

    /// Cuts it by keys until each part of it is done together.
    fn cut(mut self, tasks: &mut Vec<Task<'r>>) {
        let most = self.parts.iter().max_by_key(|part| part.len());
        let middle = most.and_then(Part::middle);
        let Some(middle) = middle.filter(|_| self.len() > TOGETHER) else {
            return tasks.push(self);
        };
        let (front, behind): (Vec<Part<'_>>, Vec<Part<'_>>) =
            self.parts.iter().map(|part| part.split_at(middle)).unzip();
        if front.iter().all(|part| part.len() == 0) {
            // They are of one key, or nearly.
            return tasks.push(self);
        }
        let behind = Task {
            before: self.before.split_off(middle),
            parts: behind,
            ..self
        };
        self.parts = front;
        self.cut(tasks);
        behind.cut(tasks);
    }

    /// The changes; `items` is memory that is used again: what is new has to be cleared first.
    fn done<'t>(&'t self, items: &mut Vec<Item<'t>>) -> Changes {
        let before = self.before.range(Bound::Unbounded, Bound::Unbounded);
        let before = before.filter_map(|(key, versions)| {
            let newest: Version<'_> = versions.newest_first().next()?;
            Some(Item::new(key, newest))
        });
        let since = self.parts.iter().flat_map(Part::items);
        let since = since.filter(|item| item.version.lsn >= self.watermark);
        items.clear();
        items.extend(before);
        items.extend(since);
        // Those of one key stay in the order of their commits, of which the last counts.
        items.sort_by(Item::order);
        let is_newest = |(index, item): &(usize, &Item<'_>)| {
            let next = items.get(index + 1);
            next.is_none_or(|next| item.order(next).is_ne())
        };
        let newest = items.iter().enumerate().filter(is_newest);
        Changes::of_sorted(newest.map(|(_, item)| (item.key, item.version)))
    }
}

/// All of it, by as many threads as there are processors.
fn all_done(tasks: &[Task<'_>]) -> Vec<Changes> {
    let next = AtomicUsize::new(0);
    let work = || {
        let (mut done, mut items) = (Vec::new(), Vec::new());
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            match tasks.get(index) {
                Some(task) => done.push((index, task.done(&mut items))),
                None => return done,
            }
        }
    };
    let writes: usize = tasks.iter().map(Task::len).sum();
    let helpers = match thread::available_parallelism() {
        Ok(processors) if writes >= SHARED => processors.get() - 1,
        _ => 0,
    };
    let mut all = thread::scope(|scope| {
        // One that cannot be started is not needed.
        let spawn = || thread::Builder::new().spawn_scoped(scope, work).ok();
        let helpers: Vec<_> = (0..helpers).filter_map(|_| spawn()).collect();
        let mut all = work();
        for helper in helpers {
            all.extend(
                helper
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            );
        }
        all
    });
    all.sort_unstable_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, changes)| changes).collect()
}

/// Applies what was written to a keyspace. The backlogs are sorted, and each is newer than the one before. How many bytes more its
/// changes take.
pub(super) fn apply<E: Environment>(keyspace: &Keyspace<E>, backlogs: &[Backlog]) -> isize {
    let groups = E::share(&keyspace.groups);
    let mut rest: Vec<Part<'_>> = backlogs
        .iter()
        .map(|backlog| backlog.of_keyspace(keyspace.id))
        .collect();
    let mut tasks = Vec::new();
    // Of each group the ranges that were removed, which hide what is older wherever it is.
    let mut removed = BTreeMap::new();
    let mut more = 0;
    for (index, place) in groups.iter().enumerate() {
        let parts = match groups.get(index + 1) {
            Some(next) => {
                let (parts, behind) = rest.iter().map(|part| part.split_at(&next.low)).unzip();
                rest = behind;
                parts
            }
            None => mem::take(&mut rest),
        };
        if parts.iter().all(|part| part.len() == 0) {
            continue;
        }
        let mut group = E::exclude(&place.group);
        more -= group.active.bytes as isize;
        removed.insert(index, group.active.take_removed());
        let task = Task {
            before: mem::take(&mut group.active),
            parts,
            watermark: group.watermark,
            group: index,
        };
        task.cut(&mut tasks);
    }
    let mut done = tasks
        .iter()
        .map(|task| task.group)
        .zip(all_done(&tasks))
        .peekable();
    while let Some((index, first)) = done.next() {
        let mut pieces = vec![first];
        while let Some((_, piece)) = done.next_if(|(next, _)| *next == index) {
            pieces.push(piece);
        }
        let mut changes = Changes::of_pieces(pieces);
        changes.put_removed(removed.remove(&index).unwrap_or_default());
        more += changes.bytes as isize;
        E::exclude(&groups[index].group).active = changes;
    }
    more
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::environment::System;
    use crate::fuzzing::memory::Memory;
    use crate::store::options::KeyspaceOptions;
    use crate::store::tree::Group;

    type Key = Vec<u8>;

    fn keys() -> impl Strategy<Value = Key> {
        prop::collection::vec(0..3_u8, 0..11)
    }

    proptest! {
        #[test]
        fn the_newest_of_each_key_is_where_it_belongs(
            writes in prop::collection::vec((keys(), any::<Option<u8>>(), 0..3_u32), 0..400),
            lows in prop::collection::btree_set(keys(), 0..4),
            watermarks in prop::collection::vec(0..60_u64, 5),
            sizes in prop::collection::vec(1..100_usize, 1..20),
            rounds in 1..4_usize,
        ) {
            let lows: Vec<Key> = std::iter::once(Key::new()).chain(lows.into_iter().filter(|low| !low.is_empty())).collect();
            let group = |(low, watermark): (&Key, &u64)| {
                let group = Group { watermark: *watermark, ..Group::empty() };
                (low[..].into(), group)
            };
            let groups = lows.iter().zip(&watermarks).map(group).collect();
            let keyspace = Keyspace::<System<Memory>>::new(1, "rows".into(), KeyspaceOptions::default(), groups);
            let mut expected = vec![BTreeMap::new(); lows.len()];
            let mut backlogs = Vec::new();
            let mut backlog = Backlog::default();
            let mut sizes = sizes.iter().cycle();
            let mut left = *sizes.next().unwrap();
            for (lsn, (key, value, id)) in (1..).zip(&writes) {
                let value = value.as_ref().map(std::slice::from_ref);
                backlog.push(*id, key, Version { lsn, value });
                let index = lows.partition_point(|low| low <= key) - 1;
                if *id == 1 && lsn >= watermarks[index] {
                    expected[index].insert(key.clone(), (lsn, value.map(<[u8]>::to_vec)));
                }
                left -= 1;
                if left == 0 {
                    backlogs.push(mem::take(&mut backlog));
                    left = *sizes.next().unwrap();
                }
            }
            backlogs.push(backlog);
            backlogs.iter_mut().for_each(Backlog::sort);
            let mut bytes = 0;
            for some in backlogs.chunks(backlogs.len().div_ceil(rounds)) {
                bytes += apply(&keyspace, some);
            }
            let groups = keyspace.groups.read().unwrap();
            let mut memory = 0;
            for (place, expected) in groups.iter().zip(expected) {
                let changes = &place.group.read().unwrap().active;
                memory += changes.bytes as isize;
                let lsns = expected.values().map(|(lsn, _)| *lsn);
                let span = lsns.clone().min().zip(lsns.max());
                // Of what was written over nobody forgets the commit.
                prop_assert_eq!(changes.span.is_some(), span.is_some());
                if let (Some(span), Some(found)) = (span, changes.span) {
                    prop_assert!(found.0 <= span.0 && found.1 >= span.1);
                }
                let found: BTreeMap<Key, (u64, Option<Vec<u8>>)> = changes
                    .range(Bound::Unbounded, Bound::Unbounded)
                    .map(|(key, versions)| {
                        let all: Vec<Version<'_>> = versions.newest_first().collect();
                        assert_eq!(all.len(), 1);
                        (key.to_vec(), (all[0].lsn, all[0].value.map(<[u8]>::to_vec)))
                    })
                    .collect();
                prop_assert_eq!(found, expected);
            }
            prop_assert_eq!(bytes, memory);
        }
    }
}
