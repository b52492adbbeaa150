//! Copying what can still be had of a damaged state.
//!
//! A state is what its commands made of it, so none may be passed over: the copy begins from the newest snapshot that is
//! whole, and ends before the first command behind it that cannot be read. A snapshot was taken part by part while
//! commands were applied: it is of use only with every command from its first to its end. The damaged state is not
//! changed.

use std::io;
use std::ops::Range;
use std::path::Path;

use super::format::{DRAFT, HEADER, Header, snapshot_name, snapshot_number};
use super::inspect::require_own;
use super::pipe::{Pipe, WRITE};
use super::reader::Reader;
use crate::environment::{Buffer, Environment, File, Storage, machine, read_only_machine};
use crate::log::format::{Kind, Shutdown};
use crate::log::salvage::{Copy, Source, with_source};
use crate::{Error, Lsn};

/// What was copied of a damaged state, and what was not.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StateSalvage {
    /// The snapshot that the new state begins from; `None`: it begins empty.
    pub snapshot: Option<String>,
    /// Snapshots that are newer and of no use, and why.
    pub skipped: Vec<(String, Error)>,
    /// The first command that the new state does not have. It has all before.
    pub end: Lsn,
    /// Commands from [`end`](StateSalvage::end) on that are known to have been there; of those at the end it may not be known
    /// how many there were. Some of them may be whole: [`Salvage`](crate::Salvage) copies them as the records of a log.
    pub lost: Option<Range<Lsn>>,
    /// Whether the damaged state was closed cleanly, and nothing of it is lost.
    pub is_whole: bool,
}

impl StateSalvage {
    /// Copies the state in `from` into `to`, which must not be there or be empty: as it was after the last command before
    /// which nothing is missing. Nothing in `from` is changed. If it fails, nothing is left in `to`.
    ///
    /// [`Error::Locked`]: somebody has one of the two open. [`Error::NoSnapshot`]: the log does not go back to the first
    /// command, and there is no snapshot that can be used with it. [`Error::NoLog`]: there is no block of a log.
    /// [`Error::OtherKind`]: it is a log or a store, as far as its control file can be read.
    pub fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<StateSalvage, Error> {
        copy(&read_only_machine(from.as_ref()), &machine(to.as_ref()))
    }
}

pub(crate) fn copy<E: Environment, T: Environment>(
    from: &E,
    to: &T,
) -> Result<StateSalvage, Error> {
    with_source(from, |source| {
        if let Some(control) = &source.control {
            control.require_kind(Kind::State)?;
        }
        let plan = Plan::of(from, source)?;
        let mut copy = Copy::new(source, to, Kind::State, Some(plan.first));
        let copied = plan.carry_out(from, source, &mut copy, to);
        let is_snapshot = |name: &str| name == DRAFT || snapshot_number(name).is_some();
        copied.inspect_err(|_| copy.remove(is_snapshot))
    })
}

/// What is copied.
struct Plan {
    /// Number of the snapshot.
    snapshot: Option<u64>,
    skipped: Vec<(String, Error)>,
    /// The first command that the new log has.
    first: u64,
    /// The first that it does not have.
    end: u64,
    /// The first that was never heard of.
    known: u64,
    is_closed: bool,
}

impl Plan {
    fn of<E: Environment>(from: &E, source: &Source<'_, E>) -> Result<Plan, Error> {
        let runs = runs(source)?;
        let mut known = runs.last().map_or(1, |run| run.end);
        known = known.max(source.control.map_or(1, |control| control.end_lsn));
        let names = from.storage().names();
        let names = names.map_err(Error::io("read the directory of the damaged state"))?;
        let mut numbers: Vec<u64> = names
            .iter()
            .filter_map(|one| snapshot_number(one))
            .collect();
        numbers.sort_unstable();
        let mut skipped = Vec::new();
        for &number in numbers.iter().rev() {
            match usable(from, source, number, &runs) {
                Ok(snapshot) => {
                    return Ok(Plan {
                        snapshot: Some(number),
                        skipped,
                        first: snapshot.start,
                        end: snapshot.end,
                        known: known.max(snapshot.end),
                        is_closed: is_closed(source),
                    });
                }
                Err(error) => skipped.push((snapshot_name(number), error)),
            }
        }
        let first_lsn = source.control.map(|control| control.first_lsn);
        let from_the_first = runs.iter().find(|run| run.start == 1).map(|run| run.end);
        let is_empty = first_lsn == Some(1) && numbers.is_empty();
        match from_the_first.or(is_empty.then_some(1)) {
            Some(end) => Ok(Plan {
                snapshot: None,
                skipped,
                first: 1,
                end,
                known,
                is_closed: is_closed(source),
            }),
            None => Err(Error::NoSnapshot {
                first: Lsn(runs.first().map_or(known, |run| run.start)),
                why: skipped.into_iter().next().map(|(_, error)| Box::new(error)),
            }),
        }
    }

    fn carry_out<E: Environment, T: Environment>(
        self,
        from: &E,
        source: &Source<'_, E>,
        copy: &mut Copy<'_, T>,
        to: &T,
    ) -> Result<StateSalvage, Error> {
        let wanted = self.first..self.end;
        source.records(&mut |lsn, bytes| {
            if wanted.contains(&lsn) {
                copy.append(lsn, bytes)
            } else {
                Ok(())
            }
        })?;
        let log = copy.log(self.first)?;
        if log.next_lsn() != Lsn(self.end) {
            return Err(Error::broken("a command is read once and not again"));
        }
        let (id, granule) = (log.shared.log, log.shared.geometry.granule);
        log.close()?;
        let name = self.snapshot.map(snapshot_name);
        if let Some(name) = &name {
            let copied = copy_snapshot(from, source.geometry.granule, name, to, id, granule);
            copied?;
        }
        let lost = self.end < self.known;
        Ok(StateSalvage {
            snapshot: name,
            skipped: self.skipped,
            end: Lsn(self.end),
            lost: lost.then_some(Lsn(self.end)..Lsn(self.known)),
            is_whole: self.is_closed && !lost,
        })
    }
}

fn is_closed<E: Environment>(source: &Source<'_, E>) -> bool {
    source
        .control
        .is_some_and(|control| control.shutdown == Shutdown::Closed)
}

/// Commands that can be read, from one on without a gap.
fn runs<E: Environment>(source: &Source<'_, E>) -> Result<Vec<Range<u64>>, Error> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    let first = source.control.map_or(1, |control| control.first_lsn);
    source.records(&mut |lsn, _| {
        match runs.last_mut() {
            // It was truncated away.
            _ if lsn < first => {}
            // It may have the number of another one.
            Some(run) if lsn <= run.end => run.end = run.end.max(lsn + 1),
            _ => runs.push(lsn..lsn + 1),
        }
        Ok(())
    })?;
    Ok(runs)
}

/// From the first command that a snapshot needs behind it to the last that can be read; why it cannot be used, if it
/// cannot.
fn usable<E: Environment>(
    from: &E,
    source: &Source<'_, E>,
    number: u64,
    runs: &[Range<u64>],
) -> Result<Range<u64>, Error> {
    let name = snapshot_name(number);
    let mut reader = Reader::open(from, &name, source.geometry.granule)?;
    require_own(reader.header.log, source.log, &name)?;
    let (first, end) = (reader.header.first, reader.verify(number)?);
    let run = runs.iter().find(|run| run.contains(&first));
    let run_end = run.map_or(first, |run| run.end);
    if run_end < end {
        return Err(Error::LogLost {
            snapshot: name,
            end: Lsn(end),
            next: Lsn(run_end),
        });
    }
    Ok(first..run_end)
}

/// Publishes a snapshot as one of another log, which goes on from it.
fn copy_snapshot<E: Environment, T: Environment>(
    from: &E,
    granule: u64,
    name: &str,
    to: &T,
    log: u64,
    granule_there: u64,
) -> Result<(), Error> {
    let mut reader = Reader::open(from, name, granule)?;
    reader.verify(reader.header.number)?;
    let (size, header) = (
        reader.position(),
        Header {
            log,
            ..reader.header
        },
    );
    drop(reader);
    let copy = || -> io::Result<()> {
        let (file, storage) = (from.storage().open(name)?, to.storage());
        let draft = storage.create(DRAFT)?;
        let mut pipe = Pipe::new(to, draft, WRITE, granule_there)?;
        let mut page = vec![0; HEADER];
        header.encode(&mut page);
        pipe.push(&page)?;
        let mut buffer = Buffer::new(WRITE);
        let mut at = HEADER as u64;
        while at < size {
            let wanted = (size - at).min(WRITE as u64);
            let read = wanted.next_multiple_of(granule) as usize;
            file.read(buffer.bytes_mut(0..read), at)?;
            pipe.push(buffer.bytes(0..wanted as usize))?;
            at += wanted;
        }
        let (written, _) = pipe.finish()?;
        written.sync()?;
        storage.rename(DRAFT, name)?;
        storage.sync()
    };
    copy().map_err(Error::io("copy a snapshot"))
}
