//! The note of a writer that gave up while the witness could not be told: whoever checks later tells it.
//!
//! Without it a cut that hits the idle disk hours later would count as one during writes. It stands behind the blocks of the
//! run, in the file or on the device ([`Place::note_at`](crate::Place)).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::block::{Run, UNIT};

const MAGIC: &[u8; 8] = b"LFWITEND";
/// Bytes of the magic and the run.
const HEADER: usize = 24;

/// The place of a run's note, in the file that the run writes, whatever comes to be called as that is.
pub(crate) struct Note {
    file: File,
    at: u64,
    run: Run,
}

impl Note {
    /// That of a run that begins. Nothing is written yet.
    pub fn open(path: &Path, at: u64, run: Run) -> io::Result<Note> {
        let file = File::options().write(true).open(path)?;
        Ok(Note { file, at, run })
    }

    /// Says that the writer gave up.
    pub fn leave(&self) -> io::Result<()> {
        let mut bytes = vec![0; UNIT as usize];
        bytes[..MAGIC.len()].copy_from_slice(MAGIC);
        bytes[MAGIC.len()..HEADER].copy_from_slice(&self.run);
        self.file.write_all_at(&bytes, self.at)?;
        self.file.sync_all()
    }
}

/// Whether the writer of this run gave up.
pub(crate) fn is_left(path: &Path, at: u64, run: &Run) -> bool {
    let mut bytes = [0; HEADER];
    let read = File::open(path).and_then(|file| file.read_exact_at(&mut bytes, at));
    let (magic, found) = bytes.split_at(MAGIC.len());
    read.is_ok() && magic == MAGIC.as_slice() && found == run.as_slice()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_of_its_run_and_changes_no_block() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("data");
        std::fs::write(&path, [7; 8192]).unwrap();
        let note = Note::open(&path, 8192, [1; 16]).unwrap();
        assert!(!is_left(&path, 8192, &[1; 16]));
        note.leave().unwrap();
        assert!(is_left(&path, 8192, &[1; 16]));
        assert!(!is_left(&path, 8192, &[2; 16]));
        let written = std::fs::read(&path).unwrap();
        assert!(written[..8192].iter().all(|byte| *byte == 7));
    }

    #[test]
    fn a_note_goes_into_the_file_that_the_run_has_written_and_no_other() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("data");
        std::fs::write(&path, [7; 8192]).unwrap();
        let note = Note::open(&path, 4096, [1; 16]).unwrap();
        // Another run has made it anew, and has more blocks.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, [8; 8192]).unwrap();
        note.leave().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), [8; 8192]);
        assert!(!is_left(&path, 4096, &[1; 16]));
        assert!(!is_left(&scratch.path().join("missing"), 0, &[1; 16]));
    }
}
