//! The state in memory, and the changes that are made to it.
//!
//! Content is pseudo-random, different in every record and in every update of it: nothing on the way
//! can make less of it, and a restart that brings back an older record is seen. Making a record of 256
//! bytes takes about a tenth of a microsecond.

use std::io;

use super::record;
use super::{Plan, interrupted_if};
use crate::{Error, Stop};

/// Records that are made between two looks at whether to stop.
const FILLED_AT_ONCE: usize = 4096;

/// All records, one behind the other; that of slot `n` begins at `n` times their size.
pub(super) struct State {
    bytes: Vec<u8>,
    record_bytes: usize,
}

impl State {
    /// A state of the plan's size, of zeros. Refuses what cannot be a state.
    pub fn new(plan: &Plan) -> Result<State, Error> {
        plan.check()?;
        let len = usize::try_from(plan.saved_bytes()).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).map_err(|_| {
            Error::Refused(format!("there is no memory for a state of {len} bytes"))
        })?;
        bytes.resize(len, 0);
        Ok(State {
            bytes,
            // It fits: the state is not smaller.
            record_bytes: plan.record_bytes as usize,
        })
    }

    /// A state of these bytes, in records like those of `self`.
    pub fn like(&self, bytes: Vec<u8>) -> State {
        State {
            bytes,
            record_bytes: self.record_bytes,
        }
    }

    /// Gives every record a new content.
    pub fn fill(&mut self, changes: &mut Changes, stop: &Stop) -> io::Result<()> {
        for (slot, record) in self.bytes.chunks_exact_mut(self.record_bytes).enumerate() {
            if slot.is_multiple_of(FILLED_AT_ONCE) {
                interrupted_if(stop)?;
            }
            record::fill(record, slot as u64, &mut changes.random);
        }
        Ok(())
    }

    /// Puts `record` where it belongs; refuses one that is damaged, or of another state.
    pub fn apply(&mut self, record: &[u8]) -> io::Result<()> {
        let slot = record::slot(record)?;
        let place = usize::try_from(slot)
            .ok()
            .and_then(|slot| slot.checked_mul(self.record_bytes))
            .and_then(|start| self.bytes.get_mut(start..)?.get_mut(..record.len()));
        match place {
            Some(place) => place.copy_from_slice(record),
            None => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "a record belongs to a slot that the state does not have",
                ));
            }
        }
        Ok(())
    }

    /// The bytes of all records.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The same, to read them into.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Bytes of one record.
    pub fn record_bytes(&self) -> usize {
        self.record_bytes
    }

    /// How many records there are.
    pub fn records(&self) -> u64 {
        (self.bytes.len() / self.record_bytes) as u64
    }
}

/// Changes of random records.
pub(super) struct Changes {
    random: fastrand::Rng,
    records: u64,
    record_bytes: usize,
}

impl Changes {
    /// Changes of `state`; the same `seed` gives the same ones.
    pub fn of(state: &State, seed: u64) -> Changes {
        Changes {
            random: fastrand::Rng::with_seed(seed),
            records: state.records(),
            record_bytes: state.record_bytes,
        }
    }

    /// Puts the new content of a random record behind what is in `log`.
    pub fn append(&mut self, log: &mut Vec<u8>) {
        let slot = self.random.u64(..self.records);
        let begin = log.len();
        log.resize(begin + self.record_bytes, 0);
        record::fill(&mut log[begin..], slot, &mut self.random);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan {
            state_bytes: 100_000,
            record_bytes: 100,
            ..Plan::short()
        }
    }

    #[test]
    fn what_cannot_be_a_state_is_refused() {
        let wrong = [
            Plan {
                record_bytes: 12,
                ..plan()
            },
            Plan {
                record_bytes: 100_001,
                ..plan()
            },
            Plan {
                updates_per_second: 0.0,
                ..plan()
            },
            Plan {
                updates_per_second: f64::NAN,
                ..plan()
            },
            Plan {
                log_seconds: f64::INFINITY,
                ..plan()
            },
            Plan {
                rounds: 0,
                ..plan()
            },
        ];
        for plan in wrong {
            assert!(
                matches!(State::new(&plan), Err(Error::Usage(_))),
                "{plan:?}"
            );
        }
        let huge = Plan {
            state_bytes: u64::MAX / 2,
            ..plan()
        };
        assert!(matches!(State::new(&huge), Err(Error::Refused(_))));
    }

    #[test]
    fn a_state_has_whole_records_only() {
        let odd = Plan {
            state_bytes: 100_099,
            ..plan()
        };
        assert_eq!(State::new(&odd).unwrap().bytes().len(), 100_000);
    }

    #[test]
    fn every_record_of_a_state_is_a_record_of_it() {
        let mut state = State::new(&plan()).unwrap();
        let mut changes = Changes::of(&state, 1);
        state.fill(&mut changes, &Stop::default()).unwrap();
        for (slot, record) in state.bytes().chunks(100).enumerate() {
            assert_eq!(record::slot(record).unwrap(), slot as u64);
        }
    }

    #[test]
    fn a_change_changes_its_record_and_no_other() {
        let mut state = State::new(&plan()).unwrap();
        let mut changes = Changes::of(&state, 1);
        state.fill(&mut changes, &Stop::default()).unwrap();
        let before = state.bytes().to_vec();
        let mut log = Vec::new();
        changes.append(&mut log);
        state.apply(&log).unwrap();
        let changed: Vec<u64> = before
            .chunks(100)
            .zip(state.bytes().chunks(100))
            .filter(|(old, new)| old != new)
            .map(|(_, new)| record::slot(new).unwrap())
            .collect();
        assert_eq!(changed, [record::slot(&log).unwrap()]);
    }

    #[test]
    fn a_record_of_a_larger_state_is_refused() {
        let mut state = State::new(&plan()).unwrap();
        for slot in [1_000, u64::MAX, u64::MAX / 100] {
            let mut stranger = [0; 100];
            record::fill(&mut stranger, slot, &mut fastrand::Rng::with_seed(1));
            assert!(state.apply(&stranger).is_err(), "{slot}");
        }
    }
}
