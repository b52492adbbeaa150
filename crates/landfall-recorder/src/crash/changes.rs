//! What the writes of one epoch change.
//!
//! A sector of a write is a *change* unless it is equal to what was durable there and to everything
//! that was written there before in the same epoch. Whether a sector that is no change arrived makes no
//! difference, whatever else arrived. The converse does not hold: a sector written back to what was
//! durable is a change, since it makes a difference if the write between arrived.
//!
//! The changes of one sector are a chain, each linked to the one before. In an image the sector holds
//! what the last of the chain that arrived has written, or what was durable if none did.
//!
//! The changes that one write makes in one [atomic unit](AtomicUnit) of the device are
//! a *fragment*: they arrive together or not at all. A unit of one sector makes each change a fragment.

use std::ops::Range;

use super::identity::{Content, Delta, Identity};
use crate::AtomicUnit;

/// Before the first change of a chain.
const NONE: u32 = u32::MAX;
/// Fragments of one unit of which all subsets are tried.
const MOST_FRAGMENTS: usize = 10;

/// A sector of a write that may make a difference.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    /// Which of the epoch's writes.
    pub write: u32,
    /// Which sector of that write.
    pub place: u32,
    /// Which sector of the device.
    pub sector: u64,
    /// What was written.
    pub content: Content,
    /// What it makes of the identity of an image that has what was durable there.
    pub delta: Delta,
    /// Nothing else is written to the sector afterwards.
    pub is_last: bool,
    /// The change of the same sector before, or `NONE`.
    previous: u32,
}

/// All changes of an epoch, in the order of the writes and of the sectors in them.
#[derive(Debug)]
pub(super) struct Changes {
    /// What the device writes whole or not at all.
    unit: AtomicUnit,
    list: Vec<Change>,
    /// For each write its first change, or that of the next write; and the end.
    starts: Vec<u32>,
    /// The last change of each sector.
    tops: Vec<u32>,
    /// The first change of each fragment, in order; and the end.
    fragments: Vec<u32>,
}

/// Some of an epoch's changes, as far as their image is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Selected {
    /// The image.
    pub image: Identity,
    /// How many changes are not there.
    pub omitted: u32,
}

impl Changes {
    /// None as yet, on a device with this atomic unit.
    pub fn new(unit: AtomicUnit) -> Changes {
        Changes {
            unit,
            list: Vec::new(),
            starts: Vec::new(),
            tops: Vec::new(),
            fragments: Vec::new(),
        }
    }

    /// Begins the next write.
    pub fn next_write(&mut self) {
        self.starts.push(self.list.len() as u32);
    }

    /// Adds a change of the last write; `previous` is the last one of the same sector, as its number was
    /// returned here. `None` if there are more than can be numbered.
    pub fn push(&mut self, change: Change, previous: Option<u32>) -> Option<u32> {
        let number = u32::try_from(self.list.len()).ok().filter(|&n| n < NONE)?;
        self.list.push(Change {
            previous: previous.unwrap_or(NONE),
            ..change
        });
        Some(number)
    }

    /// A change whose place in its chain [`push`](Changes::push) will fill in.
    pub fn loose(write: u32, place: u32, sector: u64, content: Content, delta: Delta) -> Change {
        Change {
            write,
            place,
            sector,
            content,
            delta,
            is_last: true,
            previous: NONE,
        }
    }

    /// Ends the last write.
    pub fn finish(&mut self) {
        self.starts.push(self.list.len() as u32);
        for change in 0..self.list.len() {
            if let Some(before) = self.previous(change) {
                self.list[before].is_last = false;
            }
        }
        let tops = (0..).zip(&self.list).filter(|(_, change)| change.is_last);
        self.tops = tops.map(|(number, _)| number).collect();
        let unit = self.unit.sectors();
        let mut last = None;
        for (number, change) in (0..).zip(&self.list) {
            let of = Some((change.write, change.sector / unit));
            if last != of {
                self.fragments.push(number);
                last = of;
            }
        }
        self.fragments.push(self.list.len() as u32);
    }

    /// What the device writes whole or not at all.
    pub fn unit(&self) -> AtomicUnit {
        self.unit
    }

    /// The changes.
    pub fn list(&self) -> &[Change] {
        &self.list
    }

    /// How many.
    pub fn len(&self) -> u32 {
        self.list.len() as u32
    }

    /// The last change of each sector.
    pub fn tops(&self) -> impl Iterator<Item = usize> {
        self.tops.iter().map(|&top| top as usize)
    }

    /// The changes of one write.
    pub fn of_write(&self, write: usize) -> Range<usize> {
        self.starts[write] as usize..self.starts[write + 1] as usize
    }

    /// The writes that change something.
    pub fn changing_writes(&self) -> impl Iterator<Item = u32> {
        let writes = self.starts.len().saturating_sub(1);
        (0..writes as u32).filter(|&write| !self.of_write(write as usize).is_empty())
    }

    /// The change of the same sector before.
    pub fn previous(&self, change: usize) -> Option<usize> {
        let previous = self.list[change].previous;
        (previous != NONE).then_some(previous as usize)
    }

    /// What it makes of an image if this change arrives where the one before it is.
    pub fn step(&self, change: usize) -> Delta {
        let before = self.previous(change);
        let before = before.map_or(Delta::NONE, |before| self.list[before].delta);
        self.list[change].delta.and(before)
    }

    /// The image in which those changes arrived for which `arrived` holds.
    pub fn select(&self, durable: Identity, arrived: impl Fn(usize) -> bool) -> Selected {
        let mut image = durable;
        for top in self.tops() {
            if let Some(change) = self.chain(top).find(|&change| arrived(change)) {
                image = image.with(self.list[change].delta);
            }
        }
        let omitted = (0..self.list.len()).filter(|&change| !arrived(change));
        Selected {
            image,
            omitted: omitted.count() as u32,
        }
    }

    /// The image in which everything arrived.
    pub fn all(&self, durable: Identity) -> Identity {
        let tops = self.tops();
        tops.fold(durable, |image, top| image.with(self.list[top].delta))
    }

    /// The changes of one sector, given the last: from the last to the first.
    pub fn chain(&self, last: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(last), |&change| self.previous(change))
    }

    /// How many fragments there are.
    pub fn fragments(&self) -> usize {
        self.fragments.len().saturating_sub(1)
    }

    /// The changes of a fragment.
    pub fn of_fragment(&self, fragment: usize) -> Range<usize> {
        self.fragments[fragment] as usize..self.fragments[fragment + 1] as usize
    }

    /// The fragments of one write.
    pub fn fragments_of_write(&self, write: usize) -> Range<usize> {
        let of = |change: usize| {
            self.fragments
                .partition_point(|&first| (first as usize) < change)
        };
        let own = self.of_write(write);
        of(own.start)..of(own.end)
    }

    /// Whether a part of a fragment arrived, and not all of it, given which changes did.
    pub fn is_torn(&self, fragment: usize, arrived: &[bool]) -> bool {
        let own = &arrived[self.of_fragment(fragment)];
        own.contains(&true) && own.contains(&false)
    }

    /// Which changes arrived, given which fragments did.
    pub fn of_fragments(&self, arrived: impl Fn(usize) -> bool) -> Vec<bool> {
        let mut changes = Vec::with_capacity(self.list.len());
        for fragment in 0..self.fragments() {
            let arrived = arrived(fragment);
            changes.extend(self.of_fragment(fragment).map(|_| arrived));
        }
        changes
    }

    /// The fragments by the unit that they are in, each unit's in order.
    pub fn units(&self) -> Vec<Vec<usize>> {
        let unit = self.unit.sectors();
        let mut units: Vec<(u64, usize)> = (0..self.fragments())
            .map(|fragment| {
                let first = &self.list[self.fragments[fragment] as usize];
                (first.sector / unit, fragment)
            })
            .collect();
        units.sort_unstable();
        let units = units.chunk_by(|(one, _), (other, _)| one == other);
        units
            .map(|unit| unit.iter().map(|&(_, fragment)| fragment).collect())
            .collect()
    }

    /// Whether each fragment of a unit overwrites all that those before it have changed, so that only
    /// the last that arrived makes a difference.
    fn overwrite_each_other(&self, unit: &[usize]) -> bool {
        unit.windows(2).all(|pair| {
            let sectors = |fragment| self.of_fragment(fragment).map(|n| self.list[n].sector);
            let mut later = sectors(pair[1]);
            sectors(pair[0]).all(|sector| later.any(|other| other == sector))
        })
    }

    /// What a unit makes of an image if those of its fragments arrive for which `arrived` holds.
    fn delta_of(&self, unit: &[usize], arrived: impl Fn(usize) -> bool) -> Delta {
        let mut latest: Vec<(u64, Delta)> = Vec::new();
        for (place, &fragment) in unit.iter().enumerate() {
            if !arrived(place) {
                continue;
            }
            for change in &self.list[self.of_fragment(fragment)] {
                match latest
                    .iter_mut()
                    .find(|(sector, _)| *sector == change.sector)
                {
                    Some((_, delta)) => *delta = change.delta,
                    None => latest.push((change.sector, change.delta)),
                }
            }
        }
        let deltas = latest.into_iter().map(|(_, delta)| delta);
        deltas.fold(Delta::NONE, Delta::and)
    }

    /// The different contents of a unit, each with which of its fragments arrived, as bits: of two that
    /// are equal the one with more. `None` if there are too many fragments to try all.
    ///
    /// What is overwritten counts as having arrived.
    pub fn contents(&self, unit: &[usize]) -> Option<Vec<(u64, Delta)>> {
        let bits: Vec<u64> = match self.overwrite_each_other(unit) {
            true => (0..=unit.len() as u32)
                .map(|count| u64::MAX.checked_shr(64 - count).unwrap_or(0))
                .collect(),
            false if unit.len() <= MOST_FRAGMENTS => (0..1 << unit.len()).collect(),
            false => return None,
        };
        let mut contents: Vec<(u64, Delta)> = Vec::new();
        for bits in bits {
            let delta = self.delta_of(unit, |place| bits >> place & 1 == 1);
            match contents.iter_mut().find(|(_, known)| *known == delta) {
                Some((most, _)) => *most = bits,
                None => contents.push((bits, delta)),
            }
        }
        Some(contents)
    }

    /// How many different images there are; infinite if they are too many for a number. More than
    /// there are, where a unit has very many fragments that overwrite each other in part.
    pub fn images(&self) -> f64 {
        let contents = |unit: &Vec<usize>| {
            if self.overwrite_each_other(unit) {
                let delta = |last| self.delta_of(unit, |place| place == last);
                let mut deltas: Vec<Delta> = (0..unit.len()).map(delta).collect();
                deltas.push(Delta::NONE);
                deltas.sort_unstable();
                deltas.dedup();
                deltas.len() as f64
            } else {
                match self.contents(unit) {
                    Some(contents) => contents.len() as f64,
                    None => (unit.len() as f64).exp2(),
                }
            }
        };
        self.units().iter().map(contents).product()
    }
}
