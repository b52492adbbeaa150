//! What was asked of a log, what it promised, and whether it kept that.
//!
//! Each record says who it is: its own number, that of its batch, its place there and how many there are. The
//! rest of it follows from its number. So a record that is read tells by itself whether it is one that was
//! appended, and whether it is whole.

use std::collections::{BTreeMap, HashSet};

use crate::environment::Environment;
use crate::log::Handle;
use crate::{Error, Lsn};
use fastrand::Rng;

const HEAD: usize = 24;

/// The bytes of record `id`, at `place` of a batch of `count`.
pub(crate) fn record(id: u64, unit: u64, place: u32, count: u32, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD + len);
    bytes.extend(id.to_le_bytes());
    bytes.extend(unit.to_le_bytes());
    bytes.extend(place.to_le_bytes());
    bytes.extend(count.to_le_bytes());
    let mut rng = Rng::with_seed(id);
    bytes.extend((0..len).map(|_| rng.u8(..)));
    bytes
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    id: u64,
    unit: u64,
    place: u32,
    count: u32,
}

fn identity(bytes: &[u8]) -> Option<Identity> {
    let word = |at: usize| {
        bytes
            .get(at..at + 8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
    };
    let half = |at: usize| {
        bytes
            .get(at..at + 4)
            .map(|half| u32::from_le_bytes(half.try_into().unwrap()))
    };
    let found = Identity {
        id: word(0)?,
        unit: word(8)?,
        place: half(16)?,
        count: half(20)?,
    };
    let expected = record(
        found.id,
        found.unit,
        found.place,
        found.count,
        bytes.len() - HEAD,
    );
    (expected == bytes).then_some(found)
}

#[derive(Clone, Default)]
pub(crate) struct History {
    /// Records that were sent, and had not been lost.
    sent: HashSet<u64>,
    /// Those that a recovery did not find, which must never be there again.
    lost: HashSet<u64>,
    /// Who has which LSN, where that was said.
    known: BTreeMap<u64, u64>,
    /// Records below are durable.
    pub acknowledged: u64,
    /// Records below may be gone.
    truncating: u64,
    /// Records below are gone.
    pub truncated: u64,
    next: u64,
    is_closed: bool,
}

/// A log that broke a promise.
pub(crate) type Broken = String;

impl History {
    /// Numbers for a batch of so many records.
    pub fn send(&mut self, count: u32) -> u64 {
        let first = self.next + 1;
        self.next += u64::from(count);
        self.sent.extend(first..=self.next);
        first
    }

    /// They have LSNs from this one on.
    pub fn appended(&mut self, first_id: u64, count: u32, lsn: u64) {
        for place in 0..u64::from(count) {
            self.known.insert(lsn + place, first_id + place);
        }
    }

    /// All records below are durable.
    pub fn acknowledge(&mut self, below: u64) {
        self.acknowledged = self.acknowledged.max(below);
    }

    pub fn truncating(&mut self, lsn: u64) {
        self.truncating = self.truncating.max(lsn);
    }

    pub fn truncated(&mut self, lsn: u64) {
        self.truncated = self.truncated.max(lsn);
    }

    /// As [`check`](History::check), of a log whose power stays on; it may go while this reads.
    pub fn check_if_readable<E: Environment>(&mut self, log: &Handle<E>) -> Result<(), Broken> {
        let mut checked = self.clone();
        match checked.check(log) {
            Err(broken) if broken.contains("there is no power") => Ok(()),
            Err(broken) => Err(broken),
            Ok(()) => {
                *self = checked;
                Ok(())
            }
        }
    }

    /// The log was closed cleanly: nothing of it may be gone, whatever happens.
    pub fn closed(&mut self, next: u64) {
        self.acknowledge(next);
        self.is_closed = true;
    }

    /// The log is used again.
    pub fn opened(&mut self) {
        self.is_closed = false;
    }

    /// Whether the log was closed cleanly, and not used since.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// What was promised of the end does not hold: whoever calls this knows otherwise what must be there.
    pub fn forget_end(&mut self) {
        self.acknowledged = 0;
    }

    /// What was truncated, or was lost before, may be there again.
    pub fn forget_beginning(&mut self) {
        self.truncated = 0;
    }

    /// A record that was lost may be there again, as the file that had it is.
    pub fn forgive_lost(&mut self) {
        self.sent.extend(self.lost.drain());
        self.known.clear();
    }

    /// A process died: what it had not committed may be gone.
    pub fn forget_lsns(&mut self) {
        self.known.split_off(&self.acknowledged);
    }

    /// Reads all of the log and holds it against what was promised. What it does not have is lost from then
    /// on.
    pub fn check<E: Environment>(&mut self, log: &Handle<E>) -> Result<(), Broken> {
        self.is_closed = false;
        let (first, next) = (log.first_lsn().0, log.next_lsn().0);
        if first < self.truncated.max(1) || first > self.truncating.max(1) {
            return Err(format!(
                "the first record is {first}; truncated before {}, asked for {}",
                self.truncated, self.truncating
            ));
        }
        if next < self.acknowledged {
            return Err(format!(
                "the next record is {next}, and all below {} were acknowledged",
                self.acknowledged
            ));
        }
        let mut there = HashSet::new();
        let mut expected = first;
        let mut batch: Option<Identity> = None;
        let mut reader = log
            .read(Lsn(first))
            .map_err(|error| format!("cannot read: {error}"))?;
        while let Some((lsn, bytes)) = reader
            .next()
            .map_err(|error| format!("cannot read: {error}"))?
        {
            if lsn != expected {
                return Err(format!("record {lsn} stands where {expected} should"));
            }
            expected += 1;
            let Some(who) = identity(bytes) else {
                return Err(format!("record {lsn} is none that anybody appended"));
            };
            if self.lost.contains(&who.id) {
                return Err(format!("record {lsn} was lost before, and is there again"));
            }
            if !self.sent.contains(&who.id) || !there.insert(who.id) {
                return Err(format!("record {lsn} was never sent, or is there twice"));
            }
            if self.known.get(&lsn).is_some_and(|known| *known != who.id) {
                return Err(format!("record {lsn} is not the one that has this number"));
            }
            let follows = match batch {
                Some(before) if before.place + 1 < before.count => {
                    who.unit == before.unit && who.place == before.place + 1
                }
                _ => who.place == 0 || lsn == first,
            };
            if !follows {
                return Err(format!("the batch before record {lsn} is not whole"));
            }
            batch = Some(who);
            self.known.insert(lsn, who.id);
        }
        if batch.is_some_and(|last| last.place + 1 < last.count) {
            return Err("the last batch is not whole".into());
        }
        if expected != next {
            return Err(format!(
                "records end at {expected}, and the next would be {next}"
            ));
        }
        let gone: Vec<u64> = self.known.split_off(&next).into_values().collect();
        let known: HashSet<u64> = self.known.values().copied().collect();
        let lost = self.sent.iter().filter(|id| !known.contains(id)).copied();
        self.lost.extend(lost.chain(gone));
        self.sent = known;
        self.acknowledged = next;
        self.truncated = first;
        self.truncating = first;
        Ok(())
    }
}

/// Whether a log may say so without having broken anything.
pub(crate) fn is_refusal(error: &Error) -> bool {
    matches!(
        error,
        Error::Poisoned { .. } | Error::Io { .. } | Error::NoSpace { .. } | Error::Closed
    )
}
