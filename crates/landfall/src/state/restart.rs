//! Making a state out of the newest snapshot that can be read, and of the commands since.
//!
//! A snapshot that is damaged is passed over, and said so; the one before it will do, since the log is kept from the
//! oldest one on. Nothing is removed by that, so that it can be looked at.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::format::{DRAFT, Header, MOST_PARTS, snapshot_name, snapshot_number};
use super::options::StateOptions;
use super::reader::{Next, Reader};
use super::schedule::Schedule;
use super::shared::{Begin, Shared};
use super::snapshots::{Known, Taking};
use super::{BoxedError, Restart, State};
use crate::environment::{Environment, Fault};
use crate::log::Log;
use crate::{Error, Lsn};

/// A state, or what a snapshot holds of it.
struct Loaded<S> {
    parts: Vec<S>,
    /// Of each the first command that is not in it.
    lsns: Vec<u64>,
    /// The first command that may have to be applied, and the first that is in no part.
    first: u64,
    end: u64,
    raw_bytes: u64,
}

/// Opens a state, or begins one where there is none.
pub(super) fn open<S: State, E: Environment>(
    environment: &E,
    options: StateOptions,
) -> Result<(Arc<Shared<S, E>>, Restart), Error> {
    const {
        assert!(
            S::PARTS >= 1 && S::PARTS <= MOST_PARTS,
            "a state has from 1 to 1,048,576 parts"
        )
    };
    options.check()?;
    let log = Log::open_in(environment, options.log.clone())?;
    let numbers = numbers(environment)?;
    let mut restart = Restart::default();
    let mut taking = Taking {
        next_number: numbers.last().map_or(1, |number| number + 1),
        ..Taking::default()
    };
    let begin = environment.now();
    let mut loaded = None;
    for &number in numbers.iter().rev() {
        let name = snapshot_name(number);
        if loaded.is_some() {
            // It may be needed later, and is read then.
            let opened = Reader::open(environment, &name, log.granule());
            match opened.and_then(|reader| check_header::<S, E>(&reader, &log, number)) {
                Ok(Header { first, .. }) => taking.kept.insert(0, Known { number, first }),
                Err(Error::Snapshot { .. }) => taking.unusable.push(name),
                Err(error) => tracing::warn!(%error, name, "an older snapshot cannot be looked at"),
            }
            continue;
        }
        match load(environment, &log, number) {
            // The one before would do no better: it is the log that is damaged, at its end.
            Ok(found) if found.end > log.next().0 => {
                return Err(Error::LogLost {
                    snapshot: name,
                    end: Lsn(found.end),
                    next: log.next(),
                });
            }
            Ok(found) => {
                taking.kept.push(Known {
                    number,
                    first: found.first,
                });
                restart.snapshot = Some(name);
                loaded = Some(found);
            }
            Err(error @ (Error::Snapshot { .. } | Error::Io { .. })) => {
                tracing::warn!(%error, name, "a snapshot cannot be read: the one before is taken");
                taking.unusable.push(name.clone());
                restart.skipped.push((name, error));
            }
            Err(error) => return Err(error),
        }
    }
    let mut loaded = match loaded {
        Some(loaded) => loaded,
        None if log.first() == Lsn(1) => empty(),
        None => {
            return Err(Error::NoSnapshot {
                first: log.first(),
                why: restart
                    .skipped
                    .into_iter()
                    .next()
                    .map(|(_, error)| Box::new(error)),
            });
        }
    };
    restart.bytes = loaded.raw_bytes;
    restart.load = environment.now().saturating_sub(begin);
    let begin = environment.now();
    restart.commands = replay(environment, &log, &mut loaded)?;
    restart.replay = environment.now().saturating_sub(begin);
    tracing::debug!(?restart, "the state is open");
    let schedule = Schedule::new(loaded.first, restart.load, restart.commands, restart.replay);
    let shared = Arc::new(Shared::new(Begin {
        environment: environment.clone(),
        options,
        log,
        parts: loaded.parts,
        taking,
        schedule,
    }));
    if let Err(error) = shared.start() {
        // Those that were started have it too.
        let _ = shared.close();
        return Err(error);
    }
    Ok((shared, restart))
}

/// The snapshots that are there; what was never published is removed.
fn numbers<E: Environment>(environment: &E) -> Result<Vec<u64>, Error> {
    let looking = || Error::io("look for snapshots");
    let names = environment.names().map_err(looking())?;
    if names.iter().any(|name| name == DRAFT) {
        environment.remove(DRAFT).map_err(looking())?;
    }
    let mut numbers: Vec<u64> = names
        .iter()
        .filter_map(|name| snapshot_number(name))
        .collect();
    numbers.sort_unstable();
    Ok(numbers)
}

fn empty<S: State>() -> Loaded<S> {
    Loaded {
        parts: (0..S::PARTS).map(|_| S::default()).collect(),
        lsns: vec![1; S::PARTS as usize],
        first: 1,
        end: 1,
        raw_bytes: 0,
    }
}

/// What a snapshot says of itself, if that is what it must be.
fn check_header<S: State, E: Environment>(
    reader: &Reader<E>,
    log: &Log<E>,
    number: u64,
) -> Result<Header, Error> {
    let header = reader.header;
    if header.log != log.id() || header.number != number {
        return Err(reader.corrupt("it is of another state, or another time"));
    }
    if header.parts != S::PARTS {
        return Err(Error::Options(format!(
            "{} has {} parts and the state has {}: open it with as many as it was written with",
            snapshot_name(number),
            header.parts,
            S::PARTS
        )));
    }
    match header.first < log.first().0 {
        true => Err(reader.corrupt("the log does not go back to it any more")),
        false => Ok(header),
    }
}

fn load<S: State, E: Environment>(
    environment: &E,
    log: &Log<E>,
    number: u64,
) -> Result<Loaded<S>, Error> {
    let name = snapshot_name(number);
    let mut reader = Reader::open(environment, &name, log.granule())?;
    let header = check_header::<S, E>(&reader, log, number)?;
    let mut loaded = Loaded {
        parts: Vec::new(),
        lsns: Vec::new(),
        first: header.first,
        end: header.first,
        raw_bytes: 0,
    };
    loop {
        match reader.next_part()? {
            Next::Part { part, lsn } => {
                if part as usize != loaded.parts.len() || part >= S::PARTS || lsn < header.first {
                    return Err(reader.corrupt("a part is not the next one"));
                }
                let read = catch_unwind(AssertUnwindSafe(|| S::read(&mut reader)));
                let part = match read {
                    Ok(Ok(part)) => {
                        reader.end_part()?;
                        part
                    }
                    Ok(Err(error)) => {
                        // That of the reader says more.
                        reader.end_part()?;
                        return Err(reader.corrupt(&format!("its state says: {error}")));
                    }
                    Err(_) => return Err(reader.corrupt("its state panicked")),
                };
                loaded.parts.push(part);
                loaded.lsns.push(lsn);
            }
            Next::End { lsn } => {
                if loaded.parts.len() != S::PARTS as usize {
                    return Err(reader.corrupt("parts are missing"));
                }
                (loaded.end, loaded.raw_bytes) = (lsn, reader.raw_bytes);
                return Ok(loaded);
            }
        }
    }
}

/// Applies what is in the log and not in the parts yet.
fn replay<S: State, E: Environment>(
    environment: &E,
    log: &Log<E>,
    loaded: &mut Loaded<S>,
) -> Result<u64, Error> {
    let twice = environment.is_planted(Fault::ApplyTwice);
    let mut commands = 0;
    let mut reader = log.read(Lsn(loaded.first))?;
    while let Some(record) = reader.next()? {
        let wrong = |what: String| Error::Command {
            lsn: record.lsn,
            what,
        };
        let applied = catch_unwind(AssertUnwindSafe(|| -> Result<bool, BoxedError> {
            let command = S::decode(record.bytes)?;
            let part = (S::part(&command) % u64::from(S::PARTS)) as usize;
            let is_new = record.lsn.0 >= loaded.lsns[part] || twice;
            if is_new {
                loaded.parts[part].apply(command);
            }
            Ok(is_new)
        }));
        let applied = applied.map_err(|_| wrong("it panicked".into()))?;
        commands += u64::from(applied.map_err(|error| wrong(error.to_string()))?);
    }
    Ok(commands)
}
