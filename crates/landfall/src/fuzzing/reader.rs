//! What the target `reader` does: a directory that may hold anything is taken for a log.

use super::directory;
use super::memory::Memory;
use super::{check_refusal, options};
use crate::Error;
use crate::environment::System;
use crate::log::directory::Directory;
use crate::log::{Handle, Inspection};

pub use super::directory::right_checksums;

type Log = Handle<System<Memory>>;

fn open(memory: &Memory) -> Result<Log, Error> {
    Log::open(&System::new(memory.clone()), options())
}

fn inspect(memory: &Memory) -> Result<Inspection, Error> {
    let directory = Directory::lock(&System::new(memory.clone()))?;
    Inspection::of(&directory, &mut |_| {})
}

/// What a log must do with any directory: open it, or say what is wrong, as `landfall log verify` does; leave one that is
/// damaged as it is; give out no more than there is; and go on behind what it has found so that both are there when it
/// is opened again.
pub fn exercise(bytes: &[u8]) {
    let files = directory::files(bytes);
    let memory = Memory::new(files.clone());
    let seen = inspect(&memory);
    let log = match open(&memory) {
        Ok(log) => log,
        Err(error) => {
            check_refusal(&error, seen.err(), memory.files() == files);
            return;
        }
    };
    let seen = seen.expect("it can be opened");
    assert_eq!(
        (seen.first_lsn, seen.next_lsn),
        (log.first_lsn(), log.next_lsn())
    );
    let before = records(&log, bytes.len());
    match log.append_durable(b"one more") {
        Ok(_) => {}
        // Its segments are larger than all that there is.
        Err(Error::NoSpace { .. }) => return,
        Err(error) => panic!("memory can be written: {error}"),
    }
    log.close().expect("memory can be written");
    let log = match open(&memory) {
        Ok(log) => log,
        // A file that was not needed had blocks of a time to come, and is in use now.
        Err(Error::Corrupt { .. }) if directory::has_impossible_block(bytes) => return,
        Err(error) => panic!("it was closed: {error}"),
    };
    let after = records(&log, bytes.len() + 8);
    let (last, rest) = after.split_last().expect("one was appended");
    assert!(last == b"one more" && rest == before);
}

/// All records, of which there was none that could not be read when the log was opened.
fn records(log: &Log, most: usize) -> Vec<Vec<u8>> {
    let mut reader = log.read(log.first_lsn()).expect("it is there");
    let (mut records, mut total) = (Vec::new(), 0);
    while let Some((_, bytes)) = reader.next().expect("it was read before") {
        total += bytes.len();
        assert!(total <= most, "more bytes than there are");
        records.push(bytes.to_vec());
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lsn;
    use crate::fuzzing::corpus::{self, put, settle};
    use crate::fuzzing::directory::{CONTROL, SEGMENT};
    use crate::fuzzing::memory::GRANULE;

    fn forged(bytes: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        corpus::forged(bytes, right_checksums, change)
    }

    fn number(bytes: &[u8], at: usize) -> u64 {
        u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
    }

    /// Where the files begin in a row of bytes, and the sequence of the segment that each is.
    fn segments(bytes: &[u8]) -> Vec<(usize, u64)> {
        let begins = (2 * CONTROL..bytes.len()).step_by(SEGMENT);
        begins.map(|at| (at, number(bytes, at + 32))).collect()
    }

    fn log(work: impl Fn(&Memory)) -> Vec<u8> {
        let memory = Memory::default();
        work(&memory);
        directory::bytes(&memory.files())
    }

    /// Opens the log, appends to it and closes it.
    fn write(memory: &Memory, work: impl FnOnce(&Log)) {
        let log = open(memory).unwrap();
        settle(memory);
        work(&log);
        settle(memory);
        log.close().unwrap();
    }

    fn truncated(memory: &Memory) {
        write(memory, |log| {
            for number in 0..30u8 {
                log.append_durable(&[number; 400]).unwrap();
                settle(memory);
            }
            log.truncate_before(Lsn(20)).unwrap();
            log.append_durable(&[30; 9000]).unwrap();
            settle(memory);
            log.truncate_before(Lsn(31)).unwrap();
        });
    }

    /// Where a file begins whose segment is not needed any more.
    fn free_file(bytes: &[u8]) -> Option<usize> {
        let first = number(bytes, 56);
        let mut files = segments(bytes).into_iter();
        let (at, _) = files.find(|&(_, sequence)| (1..first).contains(&sequence))?;
        Some(at)
    }

    /// Logs of all that a log can have in it, and what fuzzing once found in them.
    fn seeds() -> Vec<(&'static str, Vec<u8>)> {
        let empty = log(|memory| write(memory, |_| {}));
        let records = log(|memory| {
            write(memory, |log| {
                for size in [0, 1, 200, 443, 444, 445, 1000] {
                    log.append_durable(&vec![size as u8; size]).unwrap();
                    settle(memory);
                }
            });
        });
        let batches = log(|memory| {
            write(memory, |log| {
                log.append_batch(&[b"a", b"", b"batch"]).unwrap();
                log.append_batch(&[&[1; 3000], &[2; 3000]]).unwrap();
                log.append_durable(&[3; 9000]).unwrap();
            });
        });
        let reopened = log(|memory| {
            for epoch in 0..4u8 {
                write(memory, |log| {
                    log.append_durable(&[epoch; 700]).unwrap();
                });
            }
        });
        let killed = log(|memory| {
            let killed = Memory::default();
            write(memory, |log| {
                for number in 0..10u8 {
                    log.append_durable(&[number; 700]).unwrap();
                    settle(memory);
                }
                killed.replace(memory.files());
            });
            memory.replace(killed.files());
        });
        // A thread of the log's is sometimes closed before it has left one.
        let mut tries = std::iter::repeat_with(|| log(truncated));
        let truncated = tries.find(|bytes| free_file(bytes).is_some()).unwrap();
        let block = free_file(&truncated).unwrap() + 2 * GRANULE as usize;
        let first_segment = number(&truncated, 56);
        let sequences = segments(&truncated).into_iter();
        let last = sequences.map(|(_, sequence)| sequence).max().unwrap();
        // A segment that is not needed any more has a block of an epoch that the log has not come to.
        let epoch_to_come = forged(&truncated, |bytes| put(bytes, block + 24, 1281));
        // It has one that belongs to the next segment that is made, and says that all before it was durable.
        let promise = forged(&truncated, |bytes| {
            let position = (last + 1) * SEGMENT as u64 + 2 * u64::from(GRANULE);
            put(bytes, block + 32, position);
            put(bytes, block + 48, position);
        });
        // The file of a segment in the middle is empty, and there are others behind it.
        let gap = forged(&truncated, |bytes| {
            let middle = segments(bytes)
                .into_iter()
                .find(|(_, sequence)| *sequence == first_segment + 1);
            let (at, _) = middle.unwrap();
            bytes[at..at + SEGMENT].fill(0);
        });
        // The first record that is needed comes before the first block that is there.
        let records_before = forged(&truncated, |bytes| {
            for copy in [0, CONTROL] {
                put(bytes, copy + 64, 1);
            }
        });
        // A log that is being made has segments that only come later.
        let being_made = forged(&truncated, |bytes| {
            for copy in [0, CONTROL] {
                put(bytes, copy + 40, 0);
            }
        });
        vec![
            ("empty", empty),
            ("records", records),
            ("batches", batches),
            ("reopened", reopened),
            ("killed", killed),
            ("truncated", truncated),
            ("epoch-to-come-in-a-free-file", epoch_to_come),
            ("promise-in-a-free-file", promise),
            ("segments-behind-a-gap", gap),
            ("first-block-behind-the-first-record", records_before),
            ("later-segments-of-a-log-being-made", being_made),
        ]
    }

    #[test]
    fn what_fuzzing_has_kept_does_no_harm() {
        corpus::replay("reader", &seeds(), exercise);
    }

    #[test]
    fn what_is_changed_at_random_does_no_harm() {
        corpus::change("reader", right_checksums, exercise);
    }

    #[test]
    fn logs_to_begin_with_are_read_whole() {
        for (name, bytes) in seeds() {
            let right = right_checksums(&bytes);
            assert!(right.len() >= 2, "{name}: {right:?}");
            exercise(&bytes);
            let memory = Memory::new(directory::files(&bytes));
            let is_damaged = [
                "segments-behind-a-gap",
                "first-block-behind-the-first-record",
                "later-segments-of-a-log-being-made",
            ]
            .contains(&name);
            match inspect(&memory) {
                Err(Error::Corrupt { .. }) if is_damaged => {}
                seen => assert!(!is_damaged && seen.is_ok(), "{name}: {seen:?}"),
            }
            // Another program's log of the same bytes is the same log.
            assert_eq!(directory::bytes(&directory::files(&bytes)), bytes, "{name}");
        }
    }
}
