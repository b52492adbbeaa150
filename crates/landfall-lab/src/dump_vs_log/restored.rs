//! What a dump and a log bring back: the parts of the state without the engine, and what was changed since the dump.

use std::collections::HashMap;
use std::io;

use landfall::Journaled;

use super::Plan;
use super::record::{self, HEADER};
use super::state::{PARTS, Part, invalid};

/// What was changed since a dump: of each record only its checksum is kept, which no other content of it has.
#[derive(Default)]
pub(super) struct Changed(HashMap<u64, u32>);

impl Changed {
    /// A record was changed.
    pub fn note(&mut self, record: &[u8]) -> io::Result<()> {
        self.0
            .insert(record::slot(record)?, record::checksum_of(record));
        Ok(())
    }
}

/// A state that was brought back without the engine.
pub(super) struct Restored(pub Vec<Part>);

impl Restored {
    /// Room for the plan's state.
    pub fn empty(plan: &Plan) -> Restored {
        Restored((0..PARTS).map(|part| Part::of(plan, part)).collect())
    }

    /// All its bytes, to read them into, part by part.
    pub fn bytes_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.0.iter_mut().map(|part| &mut part.bytes[..])
    }

    /// Puts a record where it belongs; refuses one that is damaged, or of another state.
    pub fn apply(&mut self, record: &[u8]) -> io::Result<()> {
        let part = record::slot(record)? % u64::from(PARTS);
        self.0[part as usize].put(record)
    }

    /// Refuses anything but `state` with what was changed since.
    pub fn verify(&self, state: &Journaled<Part>, changed: &Changed) -> io::Result<()> {
        let mut found = 0;
        for (number, part) in (0_u64..).zip(&self.0) {
            state.read(number, |expected| -> io::Result<()> {
                if changed.0.is_empty() {
                    return same(part == expected);
                }
                same(part.bytes.len() == expected.bytes.len())?;
                let records = |part: &'_ Part| part.record_bytes.max(HEADER);
                let expected = expected.bytes.chunks_exact(records(expected));
                let restored = part.bytes.chunks_exact(records(part));
                for (restored, expected) in restored.zip(expected) {
                    match changed.0.get(&record::slot(restored)?) {
                        Some(checksum) => {
                            found += 1;
                            same(*checksum == record::checksum_of(restored))?;
                        }
                        None => same(restored == expected)?,
                    }
                }
                Ok(())
            })?;
        }
        same(found == changed.0.len())
    }
}

fn same(is_same: bool) -> io::Result<()> {
    if is_same {
        return Ok(());
    }
    Err(invalid(
        "it did not bring back the state that had been saved",
    ))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::state::Command;
    use super::super::state::tests::{plan, state};
    use super::*;

    /// What a dump of it would bring back.
    pub fn copy(state: &Journaled<Part>) -> Restored {
        let mut copy = Restored::empty(&plan());
        for (number, bytes) in (0..).zip(copy.bytes_mut()) {
            state.read(number, |part| bytes.copy_from_slice(part.bytes()));
        }
        copy
    }

    #[test]
    fn what_was_brought_back_is_held_against_the_state_and_its_changes() {
        let directory = tempfile::tempdir().unwrap();
        let (state, mut changes) = state(directory.path());
        let mut restored = copy(&state);
        let mut changed = Changed::default();
        restored.verify(&state, &changed).unwrap();
        let mut record = Vec::new();
        changes.append(&mut record);
        changed.note(&record).unwrap();
        // It is not there yet; then it is; then another record is not what it was.
        assert!(restored.verify(&state, &changed).is_err());
        restored.apply(&record).unwrap();
        restored.verify(&state, &changed).unwrap();
        assert!(restored.verify(&state, &Changed::default()).is_err());
        let mut other = Vec::new();
        changes.append(&mut other);
        restored.apply(&other).unwrap();
        assert!(restored.verify(&state, &changed).is_err());
    }

    #[test]
    fn a_record_of_a_larger_state_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let (state, _) = state(directory.path());
        let mut restored = copy(&state);
        for slot in [1_000, u64::MAX, u64::MAX / 100] {
            let mut stranger = vec![0; 100];
            record::fill(&mut stranger, slot, &mut fastrand::Rng::with_seed(1));
            assert!(restored.apply(&stranger).is_err(), "{slot}");
            assert!(state.apply(Command::Put(stranger)).unwrap().is_err());
        }
    }
}
