//! Making a state out of the newest snapshot that can be read, and of the commands since.
//!
//! A snapshot that is damaged, or that the disk cannot read, is passed over, and said so; the one before it will do, since
//! the log is kept from the oldest one on. Nothing is removed by that, so that it can be looked at.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::format::{DRAFT, Header, MOST_PARTS, snapshot_name, snapshot_number};
use super::inspect::{require_own, require_reachable};
use super::options::StateOptions;
use super::reader::{Next, Reader};
use super::replay::Replay;
use super::schedule::Schedule;
use super::shared::{Begin, Shared};
use super::snapshots::{Known, Taking};
use super::{Restart, State};
use crate::environment::{Environment, Storage};
use crate::log::Handle;
use crate::log::directory::Directory;
use crate::log::format::{Control, Kind};
use crate::{Error, Lsn};

/// A state, or what a snapshot holds of it.
pub(super) struct Loaded<S> {
    pub parts: Vec<S>,
    /// Of each the first command that is not in it.
    pub lsns: Vec<u64>,
    /// The first command that may have to be applied, and the first that is in no part.
    pub first: u64,
    end: u64,
    raw_bytes: u64,
}

impl<S: State> Loaded<S> {
    /// What there is before the first command.
    pub fn empty() -> Loaded<S> {
        Loaded {
            parts: (0..S::PARTS).map(|_| S::default()).collect(),
            lsns: vec![1; S::PARTS as usize],
            first: 1,
            end: 1,
            raw_bytes: 0,
        }
    }
}

/// Opens a state, or begins one where there is none.
///
/// Everything is read before anything is changed: the snapshot, and then the log, whose commands are applied while it
/// is examined.
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
    let made = environment.storage().make_directory();
    made.map_err(Error::io("make the directory of a state"))?;
    let mut directory = Directory::lock(environment)?;
    directory.make(&options.log, 1, Kind::State)?;
    let begin = environment.now();
    let Choice {
        loaded,
        reaches,
        taking,
        mut restart,
    } = choose::<S, E>(environment, &directory)?;
    restart.bytes = loaded.raw_bytes;
    restart.load = environment.now().saturating_sub(begin);
    let begin = environment.now();
    let (first, end) = (loaded.first, loaded.end);
    let mut replay = Replay::start(environment, loaded)?;
    let examined = directory.examine(&mut |visited| replay.take(&visited));
    // What was found wrong first is said.
    let replayed = replay.finish();
    let (examined, (parts, commands)) = match (examined, replayed) {
        (Ok(examined), Ok(replayed)) => (examined, replayed),
        (Err(error), _) | (_, Err(error)) => return Err(error),
    };
    restart.commands = commands;
    restart.replay = environment.now().saturating_sub(begin);
    let next = examined.end.next_lsn;
    // The one before would do no better: it is the log that is damaged, at its end.
    let read = restart.snapshot.clone().map(|snapshot| (snapshot, end));
    let beyond = [read, reaches].into_iter().flatten();
    if let Some((snapshot, end)) = beyond
        .max_by_key(|(_, end)| *end)
        .filter(|(_, end)| *end > next)
    {
        return Err(Error::LogLost {
            snapshot,
            end: Lsn(end),
            next: Lsn(next),
        });
    }
    let is_drafted = directory.names().iter().any(|name| name == DRAFT);
    let shared = directory.begin(examined, options.log.clone())?;
    let log = Handle { shared };
    if is_drafted {
        // It was never published. If it stays no snapshot can be taken, and who takes one is told so.
        if let Err(error) = environment.storage().remove(DRAFT) {
            tracing::warn!(%error, "a snapshot that was not published cannot be removed");
        }
    }
    tracing::debug!(?restart, "the state is open");
    let schedule = Schedule::new(first, restart.load, restart.commands, restart.replay);
    let shared = Arc::new(Shared::new(Begin {
        environment: environment.clone(),
        options,
        log,
        parts,
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

/// What a state begins from.
struct Choice<S> {
    loaded: Loaded<S>,
    /// A newer snapshot that the disk cannot read, and the first command that may be in none of its parts: the log had those before.
    reaches: Option<(String, u64)>,
    taking: Taking,
    restart: Restart,
}

/// Reads the newest snapshot that can be read.
fn choose<S: State, E: Environment>(
    environment: &E,
    directory: &Directory<E>,
) -> Result<Choice<S>, Error> {
    let record = *directory.record().ok_or(Error::NoLog)?;
    let mut numbers: Vec<u64> = directory
        .names()
        .iter()
        .filter_map(|name| snapshot_number(name))
        .collect();
    numbers.sort_unstable();
    require_reachable(&numbers)?;
    let mut restart = Restart::default();
    let mut taking = Taking {
        next_number: numbers.last().map_or(1, |number| number + 1),
        ..Taking::default()
    };
    let mut loaded = None;
    let mut reaches = None;
    for &number in numbers.iter().rev() {
        let name = snapshot_name(number);
        if loaded.is_some() {
            // It may be needed later, and is read then.
            let opened = Reader::open(environment, &name, record.granule.into());
            let is_surplus = |reader: &Reader<E>| {
                reader.header.log == record.log && reader.header.first < record.first_lsn
            };
            match opened {
                // The process ended when the log was truncated, and before this was removed.
                Ok(reader) if is_surplus(&reader) => taking.unusable.push(name),
                opened => {
                    match opened.and_then(|reader| check_header::<S, E>(&reader, &record, number)) {
                        Ok(Header { first, .. }) => taking.kept.insert(0, Known { number, first }),
                        Err(error @ Error::Snapshot { .. }) => {
                            taking.unusable.push(name.clone());
                            restart.skipped.push((name, error));
                        }
                        // It may be read another time: it stays, and nothing rests on it meanwhile.
                        Err(error @ Error::Io { .. }) => restart.skipped.push((name, error)),
                        Err(error) => return Err(error),
                    }
                }
            }
            continue;
        }
        match load::<S, E>(environment, &record, number) {
            Ok(found) => {
                taking.kept.push(Known {
                    number,
                    first: found.first,
                });
                restart.snapshot = Some(name);
                loaded = Some(found);
            }
            Err(error @ Error::Snapshot { .. }) => {
                tracing::warn!(%error, name, "a snapshot cannot be read: the one before is taken");
                taking.unusable.push(name.clone());
                restart.skipped.push((name, error));
            }
            // It may be read another time: it stays.
            Err(error @ Error::Io { .. }) => {
                tracing::warn!(%error, name, "a snapshot cannot be read: the one before is taken");
                if reaches.is_none() {
                    let opened = Reader::open(environment, &name, record.granule.into());
                    let header = opened.and_then(|one| check_header::<S, E>(&one, &record, number));
                    reaches = header.ok().map(|header| (name.clone(), header.first));
                }
                restart.skipped.push((name, error));
            }
            Err(error) => return Err(error),
        }
    }
    let loaded = match loaded {
        Some(loaded) => loaded,
        None if record.first_lsn == 1 => Loaded::empty(),
        None if matches!(restart.skipped.first(), Some((_, Error::Io { .. }))) => {
            // Another time it may be read.
            return Err(restart.skipped.swap_remove(0).1);
        }
        None => {
            return Err(Error::NoSnapshot {
                first: Lsn(record.first_lsn),
                why: restart
                    .skipped
                    .into_iter()
                    .next()
                    .map(|(_, error)| Box::new(error)),
            });
        }
    };
    Ok(Choice {
        loaded,
        reaches,
        taking,
        restart,
    })
}

/// What a snapshot says of itself, if that is what it must be.
fn check_header<S: State, E: Environment>(
    reader: &Reader<E>,
    record: &Control,
    number: u64,
) -> Result<Header, Error> {
    let header = reader.header;
    require_own(header.log, record.log, &snapshot_name(number))?;
    if header.number != number {
        return Err(reader.corrupt("it is the snapshot of another name"));
    }
    if header.parts != S::PARTS {
        return Err(Error::Options(format!(
            "{} has {} parts and the state has {}: open it with as many as it was written with",
            snapshot_name(number),
            header.parts,
            S::PARTS
        )));
    }
    if header.first < record.first_lsn {
        return Err(reader.corrupt("the log does not go back to it any more"));
    }
    Ok(header)
}

fn load<S: State, E: Environment>(
    environment: &E,
    record: &Control,
    number: u64,
) -> Result<Loaded<S>, Error> {
    let name = snapshot_name(number);
    let mut reader = Reader::open(environment, &name, record.granule.into())?;
    let header = check_header::<S, E>(&reader, record, number)?;
    let mut loaded = Loaded {
        parts: Vec::new(),
        lsns: Vec::new(),
        first: header.first,
        end: header.first,
        raw_bytes: 0,
    };
    // Its checksums are right: the one before would be no better, and this one must not be taken for damaged.
    let unreadable = |what| Error::Unreadable {
        snapshot: name.clone(),
        what,
    };
    let take = |part: S, lsn: u64| {
        loaded.parts.push(part);
        loaded.lsns.push(lsn);
        Ok(())
    };
    loaded.end = read_parts::<S, E>(&mut reader, unreadable, take)?;
    loaded.raw_bytes = reader.raw_bytes;
    Ok(loaded)
}

/// Reads the parts of a snapshot one after the other, and hands each to `take` with the first command that is not in it; the first
/// command that is in none. Where a part is whole and the state cannot read it, `unreadable` makes the error.
pub(super) fn read_parts<S: State, E: Environment>(
    reader: &mut Reader<E>,
    unreadable: impl Fn(String) -> Error,
    mut take: impl FnMut(S, u64) -> Result<(), Error>,
) -> Result<u64, Error> {
    let mut parts = 0;
    loop {
        match reader.next_part()? {
            Next::Part { part, lsn } => {
                if part != parts || part >= S::PARTS || lsn < reader.header.first {
                    return Err(reader.corrupt("a part is not the next one"));
                }
                let read = catch_unwind(AssertUnwindSafe(|| S::read(&mut *reader)));
                // Damage says more than what the state makes of it, also damage that the state did not come to.
                let left = reader.read_rest()?;
                let part = match read {
                    Ok(Ok(part)) if left == 0 => part,
                    Ok(Ok(_)) => {
                        return Err(unreadable(
                            "its state did not read all of a part".to_owned(),
                        ));
                    }
                    Ok(Err(error)) => return Err(unreadable(error.to_string())),
                    Err(_) => return Err(unreadable("it panicked".to_owned())),
                };
                take(part, lsn)?;
                parts += 1;
            }
            Next::End { .. } if parts != S::PARTS => {
                return Err(reader.corrupt("parts are missing"));
            }
            Next::End { lsn } => return Ok(lsn),
        }
    }
}
