//! A state looked at from outside, without changing anything, by who need not know what is in it.

use std::path::Path;

use super::format::{DRAFT, snapshot_name, snapshot_number};
use super::reader::Reader;
use crate::environment::{Environment, read_only_machine};
use crate::log::directory::Directory;
use crate::log::format::{Kind, unreachable_number};
use crate::log::{Block, Inspection};
use crate::{Error, Lsn};

/// A state as it lies in its directory.
#[derive(Debug)]
pub struct StateInspection {
    /// Its snapshots, the oldest first.
    pub snapshots: Vec<SnapshotFile>,
    /// One that was never published, and holds nothing.
    pub draft: Option<String>,
    /// The log of its commands.
    pub log: Inspection,
}

/// A snapshot as it lies there.
#[derive(Clone, Debug)]
pub struct SnapshotFile {
    /// Its name.
    pub name: String,
    /// The first command that may have to be applied behind it.
    pub first: Lsn,
    /// The first that is in no part of it.
    pub end: Lsn,
    /// Parts that it has.
    pub parts: u32,
    /// How it is compressed: `lz4`.
    pub compression: &'static str,
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes of the state.
    pub raw_bytes: u64,
    /// Why it cannot be used, if it cannot.
    pub damage: Option<Error>,
}

impl StateInspection {
    /// Reads the state in `directory`: every snapshot, and the log from its first block to its last, for each of
    /// which it calls `visit`. Everything is compared with its checksums.
    ///
    /// A damaged snapshot is told of in its [`SnapshotFile`]; a damaged log is an [`Error::Corrupt`].
    /// [`Error::Locked`]: somebody has it open.
    pub fn read(
        directory: impl AsRef<Path>,
        visit: &mut dyn FnMut(&Block),
    ) -> Result<StateInspection, Error> {
        read(&read_only_machine(directory.as_ref()), visit)
    }
}

pub(crate) fn read<E: Environment>(
    environment: &E,
    visit: &mut dyn FnMut(&Block),
) -> Result<StateInspection, Error> {
    let directory = Directory::lock(environment)?;
    if let Some(record) = directory.record() {
        record.require_kind(Kind::State)?;
    }
    let log = Inspection::of(&directory, visit)?;
    let names = directory.names();
    let draft = names.iter().find(|name| *name == DRAFT).cloned();
    let mut numbers: Vec<u64> = names
        .iter()
        .filter_map(|name| snapshot_number(name))
        .collect();
    numbers.sort_unstable();
    require_reachable(&numbers)?;
    let snapshots: Vec<SnapshotFile> = numbers
        .into_iter()
        .map(|number| snapshot(environment, &log, number))
        .collect();
    // What opening refuses is refused here.
    if let Some(foreign) = snapshots
        .iter()
        .find_map(|snapshot| match &snapshot.damage {
            Some(error @ Error::Corrupt { .. }) => Some(error),
            _ => None,
        })
    {
        return Err(foreign.clone());
    }
    Ok(StateInspection {
        snapshots,
        draft,
        log,
    })
}

fn snapshot<E: Environment>(environment: &E, log: &Inspection, number: u64) -> SnapshotFile {
    let mut found = SnapshotFile {
        name: snapshot_name(number),
        first: Lsn(0),
        end: Lsn(0),
        parts: 0,
        compression: "unknown",
        bytes: 0,
        raw_bytes: 0,
        damage: None,
    };
    let mut check = || {
        let mut reader = Reader::open(environment, &found.name, log.granule.into())?;
        let header = reader.header;
        found.first = Lsn(header.first);
        found.parts = header.parts;
        found.compression = header.compression.name();
        require_own(header.log, log.log, &found.name)?;
        if header.first < log.first_lsn.0 {
            return Err(reader.corrupt("the log does not go back to it any more"));
        }
        found.end = Lsn(reader.verify(number)?);
        // It ends with a granule.
        found.bytes = reader.position().next_multiple_of(log.granule.into());
        found.raw_bytes = reader.raw_bytes;
        if found.end > log.next_lsn {
            return Err(Error::LogLost {
                snapshot: found.name.clone(),
                end: found.end,
                next: log.next_lsn,
            });
        }
        Ok(())
    };
    found.damage = check().err();
    found
}

/// Refuses a number that no snapshot has come to: those behind it might be refused as well.
pub(super) fn require_reachable(numbers: &[u64]) -> Result<(), Error> {
    let Some(number) = unreachable_number(numbers) else {
        return Ok(());
    };
    Err(Error::Corrupt {
        file: snapshot_name(number).into(),
        offset: 0,
        what: "no state has had so many snapshots as its name says".to_owned(),
    })
}

/// Refuses a snapshot of another state. Whoever put it there may want it back: it is no snapshot of this state that went
/// bad, and is not removed.
pub(super) fn require_own(log: u64, own: u64, name: &str) -> Result<(), Error> {
    if log == own {
        return Ok(());
    }
    Err(Error::Corrupt {
        file: name.into(),
        offset: 0,
        what: "it is a snapshot of another state".to_owned(),
    })
}
