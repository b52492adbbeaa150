//! Writing the whole state, the careful way: to a temporary file that is synced, renamed over the old
//! dump, and its directory synced. Whenever the power is cut, one whole dump is there.
//!
//! The sync of the file comes before the rename, because a filesystem may make a name durable before the
//! data behind it; the sync of the directory comes last, because the rename itself is durable only then.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use super::{CHUNK, interrupted_if};
use crate::Stop;

/// Name of the dump.
pub(super) const DUMP: &str = "dump";
const NEW_DUMP: &str = "dump.new";

/// How long a dump took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dumped {
    /// Until all bytes had been given to the kernel.
    pub hand_over: Duration,
    /// The longest single write of the hand-over.
    pub longest_call: Duration,
    /// Until the dump was durable under its name.
    pub total: Duration,
}

/// Writes `state` to the dump in `directory`, in place of the one that is there.
pub(super) fn write(state: &[u8], directory: &Path, stop: &Stop) -> io::Result<Dumped> {
    let new = directory.join(NEW_DUMP);
    let begin = Instant::now();
    let mut file = OpenOptions::new().write(true).create_new(true).open(&new)?;
    let longest_call = hand_over(state, &mut file, stop)?;
    let handed_over = begin.elapsed();
    file.sync_data()?;
    fs::rename(&new, directory.join(DUMP))?;
    File::open(directory)?.sync_all()?;
    Ok(Dumped {
        hand_over: handed_over,
        longest_call,
        total: begin.elapsed(),
    })
}

fn hand_over(state: &[u8], file: &mut File, stop: &Stop) -> io::Result<Duration> {
    let mut longest = Duration::ZERO;
    let mut last = Instant::now();
    for chunk in state.chunks(CHUNK) {
        interrupted_if(stop)?;
        file.write_all(chunk)?;
        let now = Instant::now();
        longest = longest.max(now - last);
        last = now;
    }
    Ok(longest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_dump_takes_the_place_of_the_old_one() {
        let directory = tempfile::tempdir().unwrap();
        for byte in [1, 2] {
            let state = vec![byte; CHUNK + 1];
            let dumped = write(&state, directory.path(), &Stop::default()).unwrap();
            assert!(dumped.longest_call <= dumped.hand_over && dumped.hand_over <= dumped.total);
            assert_eq!(fs::read(directory.path().join(DUMP)).unwrap(), state);
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_dump_that_is_stopped_leaves_the_old_one() {
        let directory = tempfile::tempdir().unwrap();
        write(b"old", directory.path(), &Stop::default()).unwrap();
        let stop = Stop::default();
        stop.flag().store(true, Ordering::Relaxed);
        let error = write(b"new", directory.path(), &stop).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        assert_eq!(fs::read(directory.path().join(DUMP)).unwrap(), b"old");
    }
}
