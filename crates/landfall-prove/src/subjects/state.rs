//! The engine's in-memory state: commands of several threads, while one of them takes snapshots.
//!
//! Each part of the state keeps the commands that it was given; a transaction is as many commands, one after the other,
//! which go to parts of their own: so a snapshot that is not of one moment, and a log that is applied to it where it
//! must not be, leave transactions that are there in part, or twice.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use landfall::{BoxedError, Journaled, Options, State, StateOptions};

use super::engine::{cannot, recovered};
use super::{lock, name_of};
use crate::Stop;
use crate::subject::{
    AckSink, Promise, Recovered, Subject, SubjectError, SubjectName, at_the_same_time,
};
use crate::transactions::pseudo_random;
use landfall_databases::registry::Kind;
use landfall_databases::setting::{Chosen, Description, Setting, SettingError};

const DIRECTORY: &str = "state";
/// Bytes of a command that say what it is: transaction, place.
const HEAD: usize = 12;
/// A client takes a snapshot after so many of its transactions.
const SNAPSHOT_EVERY: u64 = 8;

pub(super) static KIND: Kind<dyn Subject> = Kind {
    listed: (),
    description: Description {
        name: "landfall-state",
        about: "Landfall's own in-memory state, by snapshots and a log, linked in",
        passes_on: None,
        settings: &[
            Setting {
                name: "clients",
                default: Some("3"),
                about: "threads that apply commands at the same time, 1 to 64",
                always_shown: true,
            },
            Setting {
                name: "commands",
                default: Some("2"),
                about: "commands of a transaction, one after the other",
                always_shown: false,
            },
            Setting {
                name: "size",
                default: Some("200"),
                about: "bytes of a command",
                always_shown: true,
            },
            Setting {
                name: "parts",
                default: Some("4"),
                about: "parts of the state: 1 or 4",
                always_shown: true,
            },
            Setting {
                name: "snapshots",
                default: Some("2"),
                about: "snapshots that are kept, 1 to 9",
                always_shown: false,
            },
        ],
    },
    make,
};

fn make(chosen: &Chosen) -> Result<Box<dyn Subject>, SettingError> {
    let clients = chosen.number("clients", 1, 64)? as u32;
    let subject = StateSubject {
        name: name_of(chosen),
        clients: NonZeroU32::new(clients).unwrap_or(NonZeroU32::MIN),
        commands: chosen.number("commands", 1, 1000)? as u32,
        size: chosen.size("size", HEAD as u64, 1 << 20)? as usize,
        snapshots: chosen.number("snapshots", 1, 9)? as u32,
    };
    Ok(if chosen.one_of("parts", &[("1", true), ("4", false)])? {
        Box::new(InParts::<1>(subject))
    } else {
        Box::new(InParts::<4>(subject))
    })
}

struct StateSubject {
    name: SubjectName,
    clients: NonZeroU32,
    commands: u32,
    size: usize,
    snapshots: u32,
}

/// What a command is: its transaction, its place there, and how many bytes it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Command {
    transaction: u64,
    place: u32,
    size: usize,
}

/// What a check applies.
const PROBE: Command = Command {
    transaction: 0,
    place: 0,
    size: HEAD,
};

impl Command {
    fn bytes(self) -> Vec<u8> {
        let mut bytes = vec![0; self.size];
        pseudo_random(&mut bytes, self.transaction << 16 | u64::from(self.place));
        bytes[0..8].copy_from_slice(&self.transaction.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.place.to_le_bytes());
        bytes
    }

    fn of(bytes: &[u8]) -> Option<Command> {
        let command = Command {
            transaction: u64::from_le_bytes(bytes.get(0..8)?.try_into().ok()?),
            place: u32::from_le_bytes(bytes.get(8..12)?.try_into().ok()?),
            size: bytes.len(),
        };
        (command.bytes() == bytes).then_some(command)
    }
}

/// Every command, in the order in which they came.
#[derive(Default)]
struct Cells<const PARTS: u32>(Vec<Command>);

impl<const PARTS: u32> State for Cells<PARTS> {
    type Command = Command;
    type Output = ();
    type Capture = Vec<Command>;

    const PARTS: u32 = PARTS;

    fn part(command: &Command) -> u64 {
        command.transaction + u64::from(command.place)
    }

    fn apply(&mut self, command: Command) {
        self.0.push(command);
    }

    fn encode(command: &Command, out: &mut Vec<u8>) -> Result<(), BoxedError> {
        out.extend(command.bytes());
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Command, BoxedError> {
        Command::of(bytes).ok_or_else(|| "it is none that was sent".into())
    }

    fn capture(&self) -> Vec<Command> {
        self.0.clone()
    }

    fn write(capture: Vec<Command>, out: &mut dyn Write) -> io::Result<()> {
        for command in capture {
            out.write_all(&(command.size as u32).to_le_bytes())?;
            out.write_all(&command.bytes())?;
        }
        Ok(())
    }

    fn read(input: &mut dyn Read) -> io::Result<Self> {
        let (mut all, mut rest) = (Vec::new(), Vec::new());
        input.read_to_end(&mut rest)?;
        let mut rest = &rest[..];
        while let Some((len, more)) = rest.split_first_chunk() {
            let len = u32::from_le_bytes(*len) as usize;
            let command = more.get(..len).and_then(Command::of);
            all.push(command.ok_or(io::ErrorKind::InvalidData)?);
            rest = &more[len..];
        }
        Ok(Cells(all))
    }
}

/// The subject, with so many parts.
struct InParts<const PARTS: u32>(StateSubject);

impl<const PARTS: u32> InParts<PARTS> {
    fn open(&self, directory: &Path) -> Result<Journaled<Cells<PARTS>>, landfall::Error> {
        let options = StateOptions::default()
            .keep_snapshots(self.0.snapshots)
            .log(Options::default().segment_bytes(64 << 10));
        Journaled::open(directory.join(DIRECTORY), options)
    }

    /// Runs one client's transactions until the sink, or another client, has had enough.
    fn client(
        &self,
        state: &Journaled<Cells<PARTS>>,
        sink: &Mutex<&mut dyn AckSink>,
        ended: &AtomicBool,
    ) -> Result<(), SubjectError> {
        let mut done = 0;
        while !ended.load(Ordering::Relaxed) {
            let Some(transaction) = lock(sink).send() else {
                break;
            };
            let failed = |error| SubjectError(format!("transaction {transaction} failed: {error}"));
            for place in 0..self.0.commands {
                let command = Command {
                    transaction,
                    place,
                    size: self.0.size,
                };
                state.apply(command).map_err(failed)?;
            }
            lock(sink).acknowledge(transaction);
            done += 1;
            if done % SNAPSHOT_EVERY == 0 {
                state.snapshot().map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Everything that is there.
    fn read(&self, state: &Journaled<Cells<PARTS>>) -> Recovered {
        let mut found = Recovered::default();
        let mut places: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
        state.read_all(|cells| {
            // A check has recovered from this once, and the power went again.
            for command in cells.0.iter().filter(|command| **command != PROBE) {
                let (transaction, place) = (command.transaction, command.place);
                if !places.entry(transaction).or_default().insert(place) {
                    let text = format!("command {place} of transaction {transaction} twice");
                    found.invented.push(text);
                }
            }
        });
        for (transaction, places) in places {
            if places.len() == self.0.commands as usize {
                found.whole.insert(transaction)
            } else {
                found.partial.insert(transaction)
            };
        }
        found
    }
}

impl<const PARTS: u32> Subject for InParts<PARTS> {
    fn name(&self) -> SubjectName {
        self.0.name.clone()
    }

    fn promise(&self) -> Promise {
        Promise {
            // A transaction is several commands, each durable by itself.
            atomic: self.0.commands == 1,
            ordered: self.0.clients.get() == 1,
        }
    }

    fn prepare(&self, directory: &Path, _: &Stop) -> Result<(), SubjectError> {
        let made = self.open(directory).and_then(Journaled::close);
        made.map_err(cannot)
    }

    fn run(&self, directory: &Path, sink: &mut dyn AckSink, _: &Stop) -> Result<(), SubjectError> {
        let state = self.open(directory).map_err(cannot)?;
        let (ended, sink) = (AtomicBool::new(false), Mutex::new(sink));
        at_the_same_time(self.0.clients.get(), |_| {
            self.client(&state, &sink, &ended)
                .inspect_err(|_| ended.store(true, Ordering::Relaxed))
        })?;
        state.close().map_err(cannot)
    }

    fn check(&self, directory: &Path, _: &Stop) -> Result<Recovered, SubjectError> {
        let found = self.open(directory).and_then(|state| {
            if let Some((name, why)) = state.restart().skipped.first() {
                // A power cut damages none that was published.
                return Ok(Recovered::damaged(format!("{name}: {why}")));
            }
            let found = self.read(&state);
            // What was recovered must take more.
            state.apply(PROBE)?;
            state.snapshot()?;
            Ok(found)
        });
        recovered(found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::*;
    use super::*;

    #[test]
    fn what_was_acknowledged_is_found() {
        for set in [
            "clients=1",
            "clients=3",
            "parts=1 size=5000",
            "clients=8 commands=1 snapshots=1",
        ] {
            let subject = subject("landfall-state", set);
            let directory = directory();
            let mut sink = Counting::new(60);
            let ran = subject
                .prepare(directory.path(), &Stop::default())
                .and_then(|()| subject.run(directory.path(), &mut sink, &Stop::default()));
            ran.unwrap();
            assert_eq!(check(&*subject, directory.path()), all_whole(60), "{set}");
        }
    }

    #[test]
    fn what_is_there_in_part_or_twice_is_seen() {
        let subject = subject("landfall-state", "clients=1 parts=1");
        let directory = run(&*subject, 3).unwrap();
        let options = StateOptions::default();
        let state = Journaled::<Cells<1>>::open(directory.path().join(DIRECTORY), options).unwrap();
        for (transaction, place) in [(2, 1), (9, 0)] {
            let command = Command {
                transaction,
                place,
                size: 200,
            };
            state.apply(command).unwrap();
        }
        state.close().unwrap();
        let found = check(&*subject, directory.path());
        assert_eq!(found.invented.len(), 1, "{found:?}");
        assert_eq!(found.partial, [9].into(), "{found:?}");
    }
}
