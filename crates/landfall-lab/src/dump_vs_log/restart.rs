//! Bringing the state back without the engine's snapshots: from a dump, and from a dump and the log of what changed
//! since.
//!
//! The engine's log is opened and read to its end. A plain file is read from its beginning. What stands at its end and is no whole record is what a power cut
//! left of the last write, and is not part of the log. A whole record with a wrong checksum is another
//! matter: nothing here cuts the power, so it ends the restart with an error wherever it stands.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

use landfall::{Log, Lsn, Options};
use landfall_os::{evict, resident_share};

use super::restored::Restored;
use super::{CHUNK, Plan, engine, interrupted_if};
use crate::Stop;

/// The share of a file that may still be in memory after it was evicted.
const STILL_COLD: f64 = 0.01;

/// What was found in a file.
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

/// The same of every file in a directory.
pub(super) fn make_all_cold(directory: &Path) -> io::Result<bool> {
    let mut is_cold = true;
    for entry in fs::read_dir(directory)? {
        is_cold &= make_cold(&entry?.path())?;
    }
    Ok(is_cold)
}

/// Reads the dump of the plan's state into new memory.
pub(super) fn read_dump(path: &Path, plan: &Plan, stop: &Stop) -> io::Result<Restored> {
    let mut file = File::open(path)?;
    if file.metadata()?.len() != plan.saved_bytes() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the dump is not as long as the state",
        ));
    }
    let mut restored = Restored::empty(plan);
    for bytes in restored.bytes_mut() {
        interrupted_if(stop)?;
        file.read_exact(bytes)?;
    }
    Ok(restored)
}

/// Opens the engine's log and applies what it has from `first` on; returns it, and how many records that were.
pub(super) fn replay_log(
    directory: &Path,
    options: Options,
    first: Lsn,
    restored: &mut Restored,
) -> io::Result<(Log, u64)> {
    let log = Log::open(directory, options).map_err(engine)?;
    let mut reader = log.read(first).map_err(engine)?;
    let mut records = 0;
    while let Some(record) = reader.next().map_err(engine)? {
        restored.apply(record.bytes)?;
        records += 1;
    }
    Ok((log, records))
}

/// Applies a plain file of records, in the order in which it was written.
pub(super) fn replay_file(
    path: &Path,
    record_bytes: usize,
    restored: &mut Restored,
    stop: &Stop,
) -> io::Result<Replayed> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; (CHUNK / record_bytes).max(1) * record_bytes];
    let mut replayed = Replayed::default();
    loop {
        interrupted_if(stop)?;
        let filled = fill(&mut file, &mut buffer)?;
        let records = buffer[..filled].chunks_exact(record_bytes);
        replayed.torn_bytes = records.remainder().len();
        for record in records {
            restored.apply(record)?;
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

#[cfg(test)]
mod tests {
    use super::super::dump::{self, DUMP};
    use super::super::restored::Changed;
    use super::super::state::Part;
    use super::super::state::tests::{plan, state};
    use super::*;
    use landfall::Journaled;
    use std::path::PathBuf;

    const RECORD: usize = 100;

    /// A state, a dump of it, and a file of changes that are made after it.
    struct Saved {
        directory: tempfile::TempDir,
        state: Journaled<Part>,
        changed: Changed,
        log: Vec<u8>,
    }

    impl Saved {
        fn with_changes(count: usize) -> Saved {
            let directory = tempfile::tempdir().unwrap();
            let (state, mut changes) = state(directory.path());
            dump::write(&state, directory.path(), &Stop::default()).unwrap();
            let mut log = Vec::new();
            (0..count).for_each(|_| changes.append(&mut log));
            let mut changed = Changed::default();
            for record in log.chunks(RECORD) {
                changed.note(record).unwrap();
            }
            Saved {
                directory,
                state,
                changed,
                log,
            }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.directory.path().join(name)
        }

        fn restart(&self) -> io::Result<(Replayed, Restored)> {
            fs::write(self.path("file"), &self.log)?;
            let stop = Stop::default();
            let mut restored = read_dump(&self.path(DUMP), &plan(), &stop)?;
            let replayed = replay_file(&self.path("file"), RECORD, &mut restored, &stop)?;
            Ok((replayed, restored))
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
            restored.verify(&saved.state, &saved.changed).unwrap();
        }
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
            restored.verify(&whole.state, &whole.changed).unwrap();
            // Without the last one it is not what was saved.
            assert!(restored.verify(&torn.state, &torn.changed).is_err());
        }
    }

    #[test]
    fn a_flipped_byte_ends_the_restart() {
        for position in [0, 9, 12, 24 * RECORD + 50, 50 * RECORD - 1] {
            let mut saved = Saved::with_changes(50);
            saved.log[position] ^= 0x10;
            let error = saved.restart().err().unwrap();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{position}");
        }
    }

    #[test]
    fn what_is_evicted_is_cold_on_a_disk() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("file");
        fs::write(&path, vec![1; 5_000]).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        evict(&file).unwrap();
        if resident_share(&file, 5_000).unwrap() > 0.0 {
            println!("skipped: this filesystem keeps its pages in memory");
            return;
        }
        assert!(make_cold(&path).unwrap());
        assert!(make_all_cold(directory.path()).unwrap());
    }

    #[test]
    fn a_dump_of_another_length_is_refused() {
        let saved = Saved::with_changes(0);
        fs::write(saved.path(DUMP), b"short").unwrap();
        assert!(saved.restart().is_err());
    }
}
