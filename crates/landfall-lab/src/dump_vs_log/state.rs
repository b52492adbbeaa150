//! The state in memory, and the changes that are made to it.
//!
//! The state is the engine's: a [`Journaled`] of [`Part`]s, each of which has every so manyth record.
//!
//! Content is pseudo-random, different in every record and in every update of it: nothing on the way can make less of
//! it, and a restart that brings back an older record is seen. A whole part gets a new content by one small command that
//! names a seed, so that making a state does not write it.

use std::io::{self, Read, Write};
use std::time::Duration;

use landfall::{BoxedError, Journaled, Options, State, StateOptions};

use super::record;
use super::{Plan, engine, interrupted_if};
use crate::Stop;

/// So many that nobody waits long for a snapshot: it captures one part after the other.
pub(super) const PARTS: u32 = 512;
/// What says of a command in the log which it is.
const PUT: u8 = 0;
const FILL: u8 = 1;
/// Longer than any restart here: no snapshot is taken but those that are measured.
const NO_SNAPSHOTS: Duration = Duration::from_secs(365 * 86_400);

/// Every record whose slot is the part's number modulo [`PARTS`], one behind the other.
#[derive(Default, PartialEq)]
pub(super) struct Part {
    pub record_bytes: usize,
    pub bytes: Vec<u8>,
}

/// A change of the state.
pub(super) enum Command {
    /// This record stands where it belongs.
    Put(Vec<u8>),
    /// A part has these records.
    Fill(Fill),
}

/// Records of a part, made from a seed.
pub(super) struct Fill {
    part: u64,
    records: u64,
    record_bytes: u64,
    seed: u64,
}

impl Part {
    /// Room for all records of this part of the plan's state.
    pub fn of(plan: &Plan, part: u32) -> Part {
        let record_bytes = plan.record_bytes as usize;
        Part {
            record_bytes,
            // The kernel gives zeroed pages when they are first touched: nothing is written twice.
            bytes: vec![0; records_of(plan, part) as usize * record_bytes],
        }
    }

    pub fn put(&mut self, record: &[u8]) -> io::Result<()> {
        let index = usize::try_from(record::slot(record)? / u64::from(PARTS)).ok();
        let place = index
            .and_then(|index| index.checked_mul(self.record_bytes))
            .and_then(|start| self.bytes.get_mut(start..)?.get_mut(..self.record_bytes));
        match place {
            Some(place) if place.len() == record.len() => place.copy_from_slice(record),
            _ => {
                return Err(invalid(
                    "a record belongs to a slot that the state does not have",
                ));
            }
        }
        Ok(())
    }

    fn fill(&mut self, fill: &Fill) {
        self.record_bytes = fill.record_bytes as usize;
        self.bytes
            .resize(fill.records as usize * self.record_bytes, 0);
        let mut random = fastrand::Rng::with_seed(fill.seed);
        for (index, record) in self.bytes.chunks_exact_mut(self.record_bytes).enumerate() {
            let slot = index as u64 * u64::from(PARTS) + fill.part;
            record::fill(record, slot, &mut random);
        }
    }

    /// The bytes of all its records.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl State for Part {
    type Command = Command;
    type Output = io::Result<()>;
    type Capture = (u64, Vec<u8>);

    const PARTS: u32 = PARTS;

    fn part(command: &Command) -> u64 {
        match command {
            // What is no record is refused by whichever part.
            Command::Put(record) => record::slot(record).unwrap_or(0),
            Command::Fill(fill) => fill.part,
        }
    }

    fn apply(&mut self, command: Command) -> io::Result<()> {
        match command {
            Command::Put(record) => self.put(&record),
            Command::Fill(fill) => {
                self.fill(&fill);
                Ok(())
            }
        }
    }

    fn encode(command: &Command, out: &mut Vec<u8>) -> Result<(), BoxedError> {
        match command {
            Command::Put(record) => {
                out.push(PUT);
                out.extend(record);
            }
            Command::Fill(fill) => {
                out.push(FILL);
                for number in [fill.part, fill.records, fill.record_bytes, fill.seed] {
                    out.extend(number.to_le_bytes());
                }
            }
        }
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Command, BoxedError> {
        match bytes.split_first() {
            Some((&PUT, record)) => Ok(Command::Put(record.to_vec())),
            Some((&FILL, mut numbers)) => {
                let mut next = || number(&mut numbers);
                Ok(Command::Fill(Fill {
                    part: next()?,
                    records: next()?,
                    record_bytes: next()?,
                    seed: next()?,
                }))
            }
            _ => Err("no command".into()),
        }
    }

    fn capture(&self) -> (u64, Vec<u8>) {
        (self.record_bytes as u64, self.bytes.clone())
    }

    fn write((record_bytes, bytes): (u64, Vec<u8>), out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&record_bytes.to_le_bytes())?;
        out.write_all(&bytes)
    }

    fn read(input: &mut dyn Read) -> io::Result<Part> {
        let mut part = Part {
            record_bytes: number(&mut *input)? as usize,
            bytes: Vec::new(),
        };
        input.read_to_end(&mut part.bytes)?;
        Ok(part)
    }
}

fn number(mut input: impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    input.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

pub(super) fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// How many records of the plan's state a part has.
fn records_of(plan: &Plan, part: u32) -> u64 {
    let others = u64::from(PARTS - 1 - part);
    (plan.records() + others) / u64::from(PARTS)
}

/// How the state is opened: whoever needs an update durable commits it.
pub(super) fn options(log: Options) -> StateOptions {
    StateOptions::default()
        .policy(landfall::Policy::Interval(Duration::from_secs(1)))
        .max_recovery_time(NO_SNAPSHOTS)
        .keep_snapshots(1)
        .log(log)
}

/// Gives every record of the plan's state a new content.
pub(super) fn fill(
    state: &Journaled<Part>,
    plan: &Plan,
    changes: &mut Changes,
    stop: &Stop,
) -> io::Result<()> {
    for part in 0..PARTS {
        interrupted_if(stop)?;
        let fill = Fill {
            part: part.into(),
            records: records_of(plan, part),
            record_bytes: plan.record_bytes,
            seed: changes.random.u64(..),
        };
        state.apply(Command::Fill(fill)).map_err(engine)??;
    }
    state.commit().map_err(engine)
}

/// A checksum of the whole state.
pub(super) fn checksum(state: &Journaled<Part>) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    state.read_all(|part| hasher.update(part.bytes()));
    hasher.finalize()
}

/// Changes of random records.
pub(super) struct Changes {
    random: fastrand::Rng,
    records: u64,
    record_bytes: usize,
}

impl Changes {
    /// Changes of the plan's state; the same `seed` gives the same ones.
    pub fn of(plan: &Plan, seed: u64) -> Changes {
        Changes {
            random: fastrand::Rng::with_seed(seed),
            records: plan.records(),
            record_bytes: plan.record_bytes as usize,
        }
    }

    /// Bytes of one record.
    pub fn record_bytes(&self) -> usize {
        self.record_bytes
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
pub(super) mod tests {
    use super::super::restored::tests::copy;
    use super::*;

    /// A state of a thousand records of 100 bytes.
    pub fn plan() -> Plan {
        Plan {
            state_bytes: 100_000,
            record_bytes: 100,
            ..Plan::short()
        }
    }

    /// It in a directory, with a content.
    pub fn state(directory: &std::path::Path) -> (Journaled<Part>, Changes) {
        let log = Options::default().segment_bytes(1 << 20).spare_segments(1);
        let state = Journaled::open(directory.join("state"), options(log)).unwrap();
        let mut changes = Changes::of(&plan(), 1);
        fill(&state, &plan(), &mut changes, &Stop::default()).unwrap();
        (state, changes)
    }

    #[test]
    fn every_record_is_in_one_part_and_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let (state, _) = state(directory.path());
        let mut slots = Vec::new();
        state.read_all(|part| {
            let records = part.bytes().chunks(100);
            slots.extend(records.map(|record| record::slot(record).unwrap()));
        });
        slots.sort_unstable();
        assert_eq!(slots, (0..1_000).collect::<Vec<u64>>());
    }

    #[test]
    fn a_command_is_read_back_from_the_log_and_a_part_from_a_snapshot() {
        let directory = tempfile::tempdir().unwrap();
        let (state, mut changes) = state(directory.path());
        state.snapshot().unwrap();
        let mut record = Vec::new();
        changes.append(&mut record);
        state.apply(Command::Put(record.clone())).unwrap().unwrap();
        let before = checksum(&state);
        state.close().unwrap();

        let log = Options::default().segment_bytes(1 << 20).spare_segments(1);
        let again = Journaled::open(directory.path().join("state"), options(log)).unwrap();
        assert_eq!(again.restart().commands, 1);
        assert_eq!(checksum(&again), before);
    }

    #[test]
    fn a_new_content_is_another_one_everywhere() {
        let directory = tempfile::tempdir().unwrap();
        let (state, mut changes) = state(directory.path());
        let before = copy(&state);
        fill(&state, &plan(), &mut changes, &Stop::default()).unwrap();
        for (old, new) in before.0.iter().zip(copy(&state).0) {
            for (old, new) in old.bytes.chunks(100).zip(new.bytes.chunks(100)) {
                assert_ne!(old, new);
            }
        }
    }
}
