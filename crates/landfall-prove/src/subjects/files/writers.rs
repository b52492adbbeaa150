//! The threads that write records: each has every record of its own synced, and then acknowledges that.
//!
//! Threads that share a file take its next record in turn, as those of experiment `sync` do.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use landfall_os::{Allocation, Payload, SyncedFile, zero_fill};

use super::super::{content, lock};
use super::{Acknowledge, FilesSubject};
use crate::subject::{AckSink, SubjectError, at_the_same_time};

/// What the threads share.
pub(super) struct Writers<'a> {
    subject: &'a FilesSubject,
    turn: Mutex<Turn<'a>>,
    files: Vec<RecordFile>,
    /// Whether a thread has failed.
    failed: AtomicBool,
}

/// Who is next: only one thread at a time takes a record or acknowledges one.
struct Turn<'a> {
    sink: &'a mut dyn AckSink,
    /// Records that have been taken, of each file.
    taken: Vec<u64>,
}

/// A file that is being written.
struct RecordFile {
    path: PathBuf,
    /// How far it has come, if it grows in steps.
    grown: Mutex<u64>,
    /// Writes under way whose sync may have begun.
    syncing: AtomicU32,
}

impl<'a> Writers<'a> {
    pub fn new(
        subject: &'a FilesSubject,
        directory: &Path,
        sink: &'a mut dyn AckSink,
    ) -> Writers<'a> {
        let files = subject.paths(directory).map(|path| RecordFile {
            path,
            grown: Mutex::new(0),
            syncing: AtomicU32::new(0),
        });
        let files: Vec<RecordFile> = files.collect();
        Writers {
            subject,
            turn: Mutex::new(Turn {
                sink,
                taken: vec![0; files.len()],
            }),
            files,
            failed: AtomicBool::new(false),
        }
    }

    /// Writes until the sink has had enough, every file is full, or a thread fails.
    pub fn run(&self) -> Result<(), SubjectError> {
        let subject = self.subject;
        if subject.allocation == Allocation::ZeroFilled {
            let filled = self.files.iter().try_for_each(|file| {
                let zeros = File::options().write(true).open(&file.path)?;
                zero_fill(&zeros, 0, subject.len(), &|| false)
            });
            filled.map_err(|error| subject.cannot_write(error))?;
        }
        at_the_same_time(subject.threads, |thread| {
            // Threads that share a file have only that one.
            let number = thread as usize % self.files.len();
            self.write_records(number).map_err(|error| {
                self.failed.store(true, Ordering::Relaxed);
                subject.cannot_write(error)
            })
        })
    }

    /// Writes one thread's records to file `number`.
    fn write_records(&self, number: usize) -> io::Result<()> {
        let subject = self.subject;
        let records = &self.files[number];
        let mut file = SyncedFile::open(&records.path, subject.method, subject.len())?;
        let mut record = Payload::zeros(subject.size);
        while !self.failed.load(Ordering::Relaxed) {
            let Some((transaction, slot)) = self.take(number) else {
                break;
            };
            let bytes = record.bytes_mut();
            content::fill(bytes, transaction, subject.place(number, slot));
            let offset = slot * subject.size as u64;
            self.extend(records, offset + subject.size as u64)?;
            self.write(records, &mut file, bytes, offset, transaction)?;
        }
        Ok(())
    }

    /// The next transaction and its slot in file `number`, unless that is full or it is enough.
    fn take(&self, number: usize) -> Option<(u64, u64)> {
        let mut turn = lock(&self.turn);
        let slot = turn.taken[number];
        if slot == self.subject.records {
            return None;
        }
        let transaction = turn.sink.send()?;
        turn.taken[number] += 1;
        Some((transaction, slot))
    }

    fn write(
        &self,
        records: &RecordFile,
        file: &mut SyncedFile,
        bytes: &[u8],
        offset: u64,
        transaction: u64,
    ) -> io::Result<()> {
        let mut is_acknowledged = false;
        file.write_and(bytes, offset, || {
            is_acknowledged = match self.subject.acknowledge {
                Acknowledge::After => false,
                Acknowledge::Early => true,
                Acknowledge::Joined => records.syncing.fetch_add(1, Ordering::Relaxed) > 0,
            };
            if is_acknowledged {
                self.acknowledge(transaction);
            }
        })?;
        if self.subject.acknowledge == Acknowledge::Joined {
            records.syncing.fetch_sub(1, Ordering::Relaxed);
        }
        if !is_acknowledged {
            self.acknowledge(transaction);
        }
        Ok(())
    }

    fn acknowledge(&self, transaction: u64) {
        lock(&self.turn).sink.acknowledge(transaction);
    }

    /// Makes a file that grows in steps have written blocks up to `end`, as an autoextending tablespace does, while
    /// whoever else needs the space waits.
    fn extend(&self, records: &RecordFile, end: u64) -> io::Result<()> {
        let Some(step) = self.subject.allocation.step_bytes() else {
            return Ok(());
        };
        let mut grown = lock(&records.grown);
        if *grown >= end {
            return Ok(());
        }
        let file = File::options().write(true).open(&records.path)?;
        while *grown < end {
            zero_fill(&file, *grown, *grown + step, &|| false)?;
            if self.subject.method.is_durable() {
                file.sync_data()?;
            }
            *grown += step;
        }
        Ok(())
    }
}
