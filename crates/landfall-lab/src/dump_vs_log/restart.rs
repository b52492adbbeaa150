//! Bringing the state back: from a dump, and from a dump and the log of what changed since.
//!
//! A log is read from its beginning. What stands at its end and is no whole record is what a power cut
//! left of the last write, and is not part of the log. A whole record with a wrong checksum is another
//! matter: nothing here cuts the power, so it ends the restart with an error wherever it stands.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

use landfall_os::{evict, resident_share};

use super::state::State;
use super::{CHUNK, interrupted_if};
use crate::Stop;

/// The share of a file that may still be in memory after it was evicted.
const STILL_COLD: f64 = 0.01;

/// What was found in a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Replayed {
    /// Whole records, all applied.
    pub records: u64,
    /// Bytes behind the last of them.
    pub torn_bytes: usize,
}

/// Evicts the file from the page cache; tells whether it is gone. The device, and a host that serves
/// it, may have caches of their own, which nothing here can empty.
pub(super) fn make_cold(path: &Path) -> io::Result<bool> {
    // For writing too: of files that one may not write the kernel does not tell what is in memory.
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let len = file.metadata()?.len();
    evict(&file)?;
    Ok(resident_share(&file, len).is_ok_and(|share| share < STILL_COLD))
}

/// Reads a dump of `len` bytes into new memory.
pub(super) fn read_dump(path: &Path, len: usize, stop: &Stop) -> io::Result<Vec<u8>> {
    // The kernel gives zeroed pages when they are first touched: nothing is written twice.
    let mut bytes = vec![0; len];
    read_dump_into(path, &mut bytes, stop)?;
    Ok(bytes)
}

/// Reads a dump into `bytes`, which must be as long.
pub(super) fn read_dump_into(path: &Path, bytes: &mut [u8], stop: &Stop) -> io::Result<()> {
    let mut file = File::open(path)?;
    if file.metadata()?.len() != bytes.len() as u64 {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the dump is not as long as the state",
        ));
    }
    for chunk in bytes.chunks_mut(CHUNK) {
        interrupted_if(stop)?;
        file.read_exact(chunk)?;
    }
    Ok(())
}

/// Applies the log to `state`, in the order in which it was written.
pub(super) fn replay(path: &Path, state: &mut State, stop: &Stop) -> io::Result<Replayed> {
    let mut file = File::open(path)?;
    let record_bytes = state.record_bytes();
    let mut buffer = vec![0; (CHUNK / record_bytes).max(1) * record_bytes];
    let mut replayed = Replayed::default();
    loop {
        interrupted_if(stop)?;
        let filled = fill(&mut file, &mut buffer)?;
        let records = buffer[..filled].chunks_exact(record_bytes);
        replayed.torn_bytes = records.remainder().len();
        for record in records {
            state.apply(record)?;
            replayed.records += 1;
        }
        if filled < buffer.len() {
            return Ok(replayed);
        }
    }
}

/// Reads until `buffer` is full or the file ends; returns how much was read.
fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            // By a signal, which is no request to stop.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Refuses a restart that brought back anything but the state that had been saved.
pub(super) fn verify(restored: &[u8], state: &State) -> io::Result<()> {
    if restored == state.bytes() {
        Ok(())
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it did not bring back the state that had been saved",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Plan;
    use super::super::state::Changes;
    use super::*;
    use std::path::PathBuf;

    const RECORD: usize = 100;

    /// A state, a dump of it, and a log of changes that are made to the state after it.
    struct Saved {
        directory: tempfile::TempDir,
        state: State,
        log: Vec<u8>,
    }

    impl Saved {
        fn with_changes(count: usize) -> Saved {
            let plan = Plan {
                state_bytes: 1000 * RECORD as u64,
                record_bytes: RECORD as u64,
                ..Plan::short()
            };
            let stop = Stop::default();
            let directory = tempfile::tempdir().unwrap();
            let mut state = State::new(&plan).unwrap();
            let mut changes = Changes::of(&state, 1);
            state.fill(&mut changes, &stop).unwrap();
            super::super::dump::write(state.bytes(), directory.path(), &stop).unwrap();
            let mut log = Vec::new();
            for _ in 0..count {
                changes.append(&mut log);
            }
            for record in log.chunks(RECORD) {
                state.apply(record).unwrap();
            }
            Saved {
                directory,
                state,
                log,
            }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.directory.path().join(name)
        }

        fn restart(&self) -> io::Result<(Replayed, Vec<u8>)> {
            std::fs::write(self.path("log"), &self.log)?;
            let stop = Stop::default();
            let dump = self.path(super::super::dump::DUMP);
            let bytes = read_dump(&dump, self.state.bytes().len(), &stop)?;
            let mut restored = self.state.like(bytes);
            let replayed = replay(&self.path("log"), &mut restored, &stop)?;
            Ok((replayed, restored.bytes().to_vec()))
        }
    }

    #[test]
    fn a_dump_and_its_log_bring_the_state_back() {
        // More than fit into the buffer.
        for count in [0, 1, 2 * CHUNK / RECORD + 3] {
            let saved = Saved::with_changes(count);
            let (replayed, restored) = saved.restart().unwrap();
            assert_eq!(replayed.records, count as u64);
            assert_eq!(replayed.torn_bytes, 0);
            verify(&restored, &saved.state).unwrap();
        }
    }

    #[test]
    fn a_restart_without_the_last_record_is_refused() {
        let mut saved = Saved::with_changes(50);
        saved.log.truncate(49 * RECORD);
        let (_, restored) = saved.restart().unwrap();
        let error = verify(&restored, &saved.state).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_torn_tail_is_cut_at_the_last_whole_record() {
        let whole = Saved::with_changes(50);
        for torn_bytes in [1, RECORD - 1] {
            let mut torn = Saved::with_changes(51);
            torn.log.truncate(50 * RECORD + torn_bytes);
            let (replayed, restored) = torn.restart().unwrap();
            let expected = Replayed {
                records: 50,
                torn_bytes,
            };
            assert_eq!(replayed, expected);
            verify(&restored, &whole.state).unwrap();
        }
    }

    #[test]
    fn a_flipped_byte_ends_the_restart() {
        for position in [0, 9, 12, 24 * RECORD + 50, 50 * RECORD - 1] {
            let mut saved = Saved::with_changes(50);
            saved.log[position] ^= 0x10;
            let error = saved.restart().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{position}");
        }
    }

    #[test]
    fn what_is_evicted_is_cold_on_a_disk() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, vec![1; 5_000]).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        evict(&file).unwrap();
        if resident_share(&file, 5_000).unwrap() > 0.0 {
            println!("skipped: this filesystem keeps its pages in memory");
            return;
        }
        assert!(make_cold(&path).unwrap());
    }

    #[test]
    fn a_dump_of_another_length_is_refused() {
        let saved = Saved::with_changes(0);
        std::fs::write(saved.path(super::super::dump::DUMP), b"short").unwrap();
        assert!(saved.restart().is_err());
    }
}
