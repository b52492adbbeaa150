//! What the writes of one epoch change.
//!
//! A sector of a write is a *change* unless it is equal to what was durable there and to everything
//! that was written there before in the same epoch. Whether a sector that is no change arrived makes no
//! difference, whatever else arrived. The converse does not hold: a sector written back to what was
//! durable is a change, since it makes a difference if the write between arrived.
//!
//! The changes of one sector are a chain, each linked to the one before. In an image the sector holds
//! what the last of the chain that arrived has written, or what was durable if none did.

use std::ops::Range;

use super::identity::{Content, Delta, Identity};

/// Before the first change of a chain.
const NONE: u32 = u32::MAX;

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
#[derive(Debug, Default)]
pub(super) struct Changes {
    list: Vec<Change>,
    /// For each write its first change, or that of the next write; and the end.
    starts: Vec<u32>,
    /// The last change of each sector.
    tops: Vec<u32>,
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

    /// How many different images there are; infinite if they are too many for a number.
    pub fn images(&self) -> f64 {
        let contents = |top| {
            let mut deltas: Vec<Delta> = self.chain(top).map(|n| self.list[n].delta).collect();
            deltas.push(Delta::NONE);
            deltas.sort_unstable();
            deltas.dedup();
            deltas.len() as f64
        };
        self.tops().map(contents).product()
    }
}
