//! Changes that wait in memory: of each key what it was given at which commit, the newest and what snapshots need.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;
use std::sync::Arc;

/// What a change takes in memory besides its key and value, about: measured with 2 million of them, in a process of which
/// nothing else was large.
const OVERHEAD: usize = 136;

/// What a key was given at a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub lsn: u64,
    /// `None`: it was removed.
    pub value: Option<Arc<[u8]>>,
}

impl Version {
    fn memory(&self, key: &[u8]) -> usize {
        OVERHEAD + key.len() + self.value.as_ref().map_or(0, |value| value.len())
    }
}

/// Whether a version of this commit is seen by somebody, when the key was given another one at `next`.
pub(crate) fn is_needed(lsn: u64, next: u64, snapshots: &[u64]) -> bool {
    let first = snapshots.partition_point(|snapshot| *snapshot < lsn);
    snapshots
        .get(first)
        .is_some_and(|snapshot| *snapshot < next)
}

/// What a key was given, as far as somebody may see it. Mostly there is one version, which takes no memory of its own.
#[derive(Clone, Debug)]
pub(crate) struct Versions {
    newest: Version,
    /// The oldest first.
    older: Vec<Version>,
}

impl Versions {
    fn new(version: Version) -> Versions {
        Versions {
            newest: version,
            older: Vec::new(),
        }
    }

    pub fn newest_first(&self) -> impl Iterator<Item = &Version> {
        std::iter::once(&self.newest).chain(self.older.iter().rev())
    }

    /// What it was at a commit, as far as it is known here.
    pub fn at(&self, lsn: u64) -> Option<&Version> {
        self.newest_first().find(|version| version.lsn <= lsn)
    }

    /// Puts a newer one before the others.
    fn push(&mut self, version: Version) {
        let before = std::mem::replace(&mut self.newest, version);
        self.older.push(before);
    }
}

/// Changes of a group that are in no leaf.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    keys: BTreeMap<Arc<[u8]>, Versions>,
    /// That they take in memory.
    pub bytes: usize,
    /// The commits of the first and of the last change; `None`: there are none.
    pub span: Option<(u64, u64)>,
}

impl Changes {
    /// Adds a change that is newer than all of its key. `snapshots` are those that somebody reads, in their order: versions
    /// that none of them needs go.
    pub fn add(&mut self, key: &[u8], version: Version, snapshots: &[u64]) {
        let lsn = version.lsn;
        let first = self.span.map_or(lsn, |(first, _)| first);
        self.span = Some((first, lsn));
        self.bytes += version.memory(key);
        let Some(versions) = self.keys.get_mut(key) else {
            self.keys.insert(key.into(), Versions::new(version));
            return;
        };
        versions.push(version);
        let older = versions.older.iter().skip(1).map(|next| next.lsn);
        let nexts: Vec<u64> = older.chain([versions.newest.lsn]).collect();
        let mut nexts = nexts.into_iter();
        versions.older.retain(|version| {
            let next = nexts.next().unwrap_or(u64::MAX);
            let stays = is_needed(version.lsn, next, snapshots);
            if !stays {
                self.bytes -= version.memory(key);
            }
            stays
        });
        if versions.older.is_empty() {
            versions.older = Vec::new();
        }
    }

    /// What a key had at this commit, as far as it is known here.
    pub fn find(&self, key: &[u8], at: u64) -> Option<&Version> {
        self.keys.get(key)?.at(at)
    }

    /// Keys from and to these, with all their versions.
    pub fn range(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
    ) -> impl Iterator<Item = (&Arc<[u8]>, &Versions)> {
        self.keys.range::<[u8], _>((from, to))
    }

    /// Takes the keys from this one on away. Nobody knows of either half which commits it has: those of both.
    pub fn split_off(&mut self, key: &[u8]) -> Changes {
        let keys = self.keys.split_off(key);
        let memory = |(key, versions): (&Arc<[u8]>, &Versions)| -> usize {
            let versions = versions.newest_first();
            versions.map(|version| version.memory(key)).sum()
        };
        let bytes = keys.iter().map(memory).sum();
        self.bytes -= bytes;
        let behind = Changes {
            span: self.span.filter(|_| !keys.is_empty()),
            keys,
            bytes,
        };
        self.span = self.span.filter(|_| !self.keys.is_empty());
        behind
    }

    /// Puts changes behind these that are newer.
    pub fn append(&mut self, newer: Changes) {
        for (key, newer) in newer.keys {
            match self.keys.entry(key) {
                Entry::Vacant(place) => {
                    place.insert(newer);
                }
                Entry::Occupied(mut place) => {
                    let versions = place.get_mut();
                    newer.older.into_iter().for_each(|one| versions.push(one));
                    versions.push(newer.newest);
                }
            }
        }
        self.bytes += newer.bytes;
        self.span = match (self.span, newer.span) {
            (Some((first, _)), Some((_, last))) => Some((first, last)),
            (span, None) | (None, span) => span,
        };
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(lsn: u64) -> Version {
        Version {
            lsn,
            value: (!lsn.is_multiple_of(4)).then(|| lsn.to_le_bytes().as_slice().into()),
        }
    }

    fn lsns(changes: &Changes, key: &[u8]) -> Vec<u64> {
        let mut lsns: Vec<u64> = changes.keys[key]
            .newest_first()
            .map(|one| one.lsn)
            .collect();
        lsns.reverse();
        lsns
    }

    #[test]
    fn versions_stay_as_long_as_a_snapshot_needs_them() {
        let mut changes = Changes::default();
        changes.add(b"a", version(2), &[]);
        changes.add(b"a", version(3), &[]);
        assert_eq!(lsns(&changes, b"a"), [3]);
        // The snapshot was taken at 5: it sees 3.
        changes.add(b"a", version(6), &[5]);
        changes.add(b"a", version(7), &[5]);
        assert_eq!(lsns(&changes, b"a"), [3, 7]);
        assert_eq!(changes.find(b"a", 6).unwrap().lsn, 3);
        assert_eq!(changes.find(b"a", 7).unwrap().lsn, 7);
        assert_eq!(changes.find(b"a", 2), None);
        changes.add(b"a", version(9), &[7, 8]);
        assert_eq!(lsns(&changes, b"a"), [7, 9]);
        assert_eq!(changes.span, Some((2, 9)));
    }

    #[test]
    fn memory_is_that_of_what_is_there() {
        let mut changes = Changes::default();
        for lsn in 1..200 {
            let key = [(lsn % 13) as u8];
            changes.add(&key, version(lsn), &[lsn / 2]);
        }
        let recount = |changes: &Changes| -> usize {
            let all = changes.keys.iter();
            let all =
                all.flat_map(|(key, versions)| versions.newest_first().map(|one| one.memory(key)));
            all.sum()
        };
        assert_eq!(changes.bytes, recount(&changes));
        let mut behind = changes.split_off(&[6]);
        assert_eq!(changes.bytes, recount(&changes));
        assert_eq!(behind.bytes, recount(&behind));
        assert!(behind.split_off(&[99]).is_empty());
        let all = changes.bytes + behind.bytes;
        behind.append(changes);
        assert_eq!((behind.bytes, recount(&behind)), (all, all));
    }
}
