//! Writing the whole state, the careful way, without the engine: to a temporary file that is synced, renamed over the old
//! dump, and its directory synced. Whenever the power is cut, one whole dump is there.
//!
//! The sync of the file comes before the rename, because a filesystem may make a name durable before the
//! data behind it; the sync of the directory comes last, because the rename itself is durable only then.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use landfall::{Journaled, State};

use super::interrupted_if;
use super::state::Part;
use crate::Stop;

/// Name of the dump.
pub(super) const DUMP: &str = "dump";
const NEW_DUMP: &str = "dump.new";

/// How long a dump took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dumped {
    /// Until all bytes had been given to the kernel.
    pub hand_over: Duration,
    /// Until the dump was durable under its name.
    pub total: Duration,
}

/// Writes `state` to the dump in `directory`, in place of the one that is there. Nobody may change it meanwhile.
pub(super) fn write(state: &Journaled<Part>, directory: &Path, stop: &Stop) -> io::Result<Dumped> {
    let new = directory.join(NEW_DUMP);
    let begin = Instant::now();
    let mut file = OpenOptions::new().write(true).create_new(true).open(&new)?;
    for part in 0..Part::PARTS {
        interrupted_if(stop)?;
        state.read(part.into(), |part| file.write_all(part.bytes()))?;
    }
    let handed_over = begin.elapsed();
    file.sync_data()?;
    fs::rename(&new, directory.join(DUMP))?;
    File::open(directory)?.sync_all()?;
    Ok(Dumped {
        hand_over: handed_over,
        total: begin.elapsed(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::state::tests::state;
    use super::super::state::{Changes, fill};
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_dump_takes_the_place_of_the_old_one() {
        let directory = tempfile::tempdir().unwrap();
        let (state, mut changes) = state(directory.path());
        let place = directory.path().join("here");
        fs::create_dir(&place).unwrap();
        for _ in 0..2 {
            let plan = super::super::state::tests::plan();
            fill(&state, &plan, &mut changes, &Stop::default()).unwrap();
            let dumped = write(&state, &place, &Stop::default()).unwrap();
            assert!(dumped.hand_over <= dumped.total);
            let mut expected: Vec<u8> = Vec::new();
            state.read_all(|part| expected.extend(part.bytes()));
            assert_eq!(fs::read(place.join(DUMP)).unwrap(), expected);
        }
        assert_eq!(fs::read_dir(&place).unwrap().count(), 1);
    }

    #[test]
    fn a_dump_that_is_stopped_leaves_the_old_one() {
        let directory = tempfile::tempdir().unwrap();
        let (state, _): (_, Changes) = state(directory.path());
        fs::write(directory.path().join(DUMP), b"old").unwrap();
        let stop = Stop::default();
        stop.flag().store(true, Ordering::Relaxed);
        let error = write(&state, directory.path(), &stop).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        assert_eq!(fs::read(directory.path().join(DUMP)).unwrap(), b"old");
    }
}
