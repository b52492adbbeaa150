//! Plain files of records, written by a strategy of experiment `sync`: one file, or one for each thread.
//!
//! In a file that threads share, transaction n is the record in slot n-1. In a file that one of several threads has for
//! itself a record may be of any transaction, but of each there is one record in all. A record that was not acknowledged
//! may be there in part: that is no loss, and a program that writes like this must know its records' checksums.
//!
//! Zeros that a strategy does not let settle are written when the transactions begin, since what was
//! prepared is synced.

mod writers;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use landfall_os::{Allocation, PrepareError, SyncCall, SyncMethod, WriteCall, reserve, zero_fill};
use landfall_results::Files;

use self::writers::Writers;
use super::content::{self, Contents};
use super::{failed, name_of, read_back};
use crate::Stop;
use crate::subject::{AckSink, Promise, Recovered, Subject, SubjectError, SubjectName};
use landfall_databases::registry::Kind;
use landfall_databases::setting::{Chosen, Description, Setting, SettingError};

const FILE: &str = "records";
const OLD_FILE: &str = "old-records";
/// Threads that write at the same time: as many as experiment `sync` has at most.
const MOST_THREADS: u64 = 1024;
/// Bytes of a file: it is read whole after each power cut.
const MOST_BYTES: u64 = 1 << 30;

pub(super) static KIND: Kind<dyn Subject> = Kind {
    listed: (),
    description: Description {
        name: "files",
        about: "plain files of records, under any strategy of experiment sync",
        passes_on: None,
        settings: &[
            Setting {
                name: "method",
                default: Some("fdatasync"),
                about: "how each record is made durable: any sync method",
                always_shown: true,
            },
            Setting {
                name: "allocation",
                default: Some("append"),
                about: "how the file came by its space: any allocation",
                always_shown: true,
            },
            Setting {
                name: "size",
                default: Some("8K"),
                about: "bytes of a record, a multiple of 512",
                always_shown: true,
            },
            Setting {
                name: "records",
                default: Some("256"),
                about: "records that a file has room for; when all are full the run ends",
                always_shown: false,
            },
            Setting {
                name: "threads",
                default: Some("1"),
                about: "threads that write and sync at the same time, 1 to 1024",
                always_shown: false,
            },
            Setting {
                name: "files",
                default: Some("shared"),
                about: "'shared': all threads write one file, each at its next position; 'each': every thread has its own",
                always_shown: false,
            },
            Setting {
                name: "acknowledge",
                default: Some("after"),
                about: "'after' the record is durable; or planted faults: 'early', before its sync, or 'joined', before it if another thread's sync of the file is under way",
                always_shown: false,
            },
        ],
    },
    make,
};

/// When a thread says that its record is durable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Acknowledge {
    /// When its own sync has returned.
    After,
    /// Before that begins: wrong.
    Early,
    /// Before that begins, if another thread's sync of the same file has not returned yet; that one began too early to
    /// cover the record. Otherwise when its own has returned.
    Joined,
}

struct FilesSubject {
    name: SubjectName,
    method: SyncMethod,
    allocation: Allocation,
    size: usize,
    records: u64,
    threads: u32,
    files: Files,
    acknowledge: Acknowledge,
}

fn make(chosen: &Chosen) -> Result<Box<dyn Subject>, SettingError> {
    let size = chosen.sectors("size", 64 << 20)?;
    let files = FilesSubject {
        name: name_of(chosen),
        method: chosen.parse("method")?,
        allocation: chosen.parse("allocation")?,
        size,
        records: chosen.number("records", 1, MOST_BYTES / size as u64)?,
        threads: chosen.number("threads", 1, MOST_THREADS)? as u32,
        files: chosen.one_of("files", &Files::ALL.map(|files| (files.key(), files)))?,
        acknowledge: chosen.one_of(
            "acknowledge",
            &[
                ("after", Acknowledge::After),
                ("early", Acknowledge::Early),
                ("joined", Acknowledge::Joined),
            ],
        )?,
    };
    match files.contradiction() {
        Some(why) => Err(SettingError(format!("{}: {why}", files.name))),
        None => Ok(Box::new(files)),
    }
}

impl FilesSubject {
    fn len(&self) -> u64 {
        self.records * self.size as u64
    }

    fn is_shared(&self) -> bool {
        self.threads == 1 || self.files == Files::Shared
    }

    /// The files in `directory`, by their numbers.
    fn paths(&self, directory: &Path) -> impl Iterator<Item = PathBuf> {
        let names: Vec<String> = if self.is_shared() {
            vec![FILE.to_owned()]
        } else {
            let numbers = 1..=self.threads;
            numbers.map(|number| format!("{FILE}-{number}")).collect()
        };
        names.into_iter().map(|name| directory.join(name))
    }

    /// The place of a record among those of all files.
    fn place(&self, file: usize, slot: u64) -> u64 {
        file as u64 * self.records + slot
    }

    /// Why this combination cannot be tried on any system, if it cannot.
    fn contradiction(&self) -> Option<&'static str> {
        if self.method.call == SyncCall::Msync && self.allocation == Allocation::Append {
            return Some("a mapping cannot make a file grow");
        }
        if self.acknowledge == Acknowledge::Joined && (self.threads == 1 || !self.is_shared()) {
            return Some("no other thread syncs the same file");
        }
        let step = self.allocation.step_bytes();
        step.is_some_and(|step| step < self.size as u64)
            .then_some("a write is larger than the step")
    }

    fn make_file(&self, number: usize, path: &Path) -> Result<(), PrepareError> {
        let allocation = self.allocation;
        match allocation {
            Allocation::Overwrite => return Ok(self.write_old(number, path)?),
            Allocation::Recycled => {
                let old = path.with_file_name(OLD_FILE);
                self.write_old(number, &old)?;
                return Ok(fs::rename(old, path)?);
            }
            _ => {}
        }
        let file = File::create_new(path)?;
        reserve(&file, allocation, self.len())?;
        if allocation == Allocation::ZeroFilledSettled {
            zero_fill(&file, 0, self.len(), &|| false)?;
        }
        Ok(())
    }

    /// A file whose every record is of transaction 0.
    fn write_old(&self, number: usize, path: &Path) -> io::Result<()> {
        let mut old = vec![0; self.len() as usize];
        for (slot, record) in (0..).zip(old.chunks_mut(self.size)) {
            content::fill(record, 0, self.place(number, slot));
        }
        fs::write(path, old)
    }

    fn cannot_write(&self, error: io::Error) -> SubjectError {
        match WriteCall::of(self.method, self.size as u64, 0).unsupported(&error) {
            Some(why) => SubjectError(why),
            None => failed("cannot write a record", error),
        }
    }

    /// Adds what file `number` holds.
    fn check_file(&self, number: usize, bytes: &[u8], found: &mut Recovered) {
        let slots = self.records.max(bytes.len().div_ceil(self.size) as u64);
        for slot in 0..slots {
            let start = slot as usize * self.size;
            let contents = Contents::of_place(bytes, start, self.size, self.place(number, slot));
            let mut strangers = contents.foreign;
            // 0 is what was there before the first.
            let transactions = contents.transactions().into_iter();
            for transaction in transactions.filter(|transaction| *transaction > 0) {
                let is_here = if self.is_shared() {
                    transaction == slot + 1
                } else {
                    !found.whole.contains(&transaction) && !found.partial.contains(&transaction)
                };
                if is_here && slot < self.records {
                    match contents.whole() {
                        Some(_) => found.whole.insert(transaction),
                        None => found.partial.insert(transaction),
                    };
                } else {
                    strangers += contents.of.get(&transaction).unwrap_or(&1);
                }
            }
            if strangers > 0 {
                let file = if self.is_shared() {
                    String::new()
                } else {
                    format!(" of file {}", number + 1)
                };
                let all = contents.sectors;
                found.invented.push(format!(
                    "{strangers} of {all} sectors of slot {slot}{file} hold what nobody wrote there"
                ));
            }
        }
    }
}

impl Subject for FilesSubject {
    fn name(&self) -> SubjectName {
        self.name.clone()
    }

    fn promise(&self) -> Promise {
        Promise {
            atomic: false,
            ordered: false,
        }
    }

    fn reads_times(&self) -> bool {
        false
    }

    fn prepare(&self, directory: &Path, _: &Stop) -> Result<(), SubjectError> {
        let mut files = self.paths(directory).enumerate();
        let made = files.try_for_each(|(number, path)| self.make_file(number, &path));
        made.map_err(|error| match error {
            PrepareError::Unsupported(why) => SubjectError(why),
            PrepareError::Io(error) => failed("cannot prepare the file of records", error),
        })
    }

    fn run(&self, directory: &Path, sink: &mut dyn AckSink, _: &Stop) -> Result<(), SubjectError> {
        Writers::new(self, directory, sink).run()
    }

    fn check(&self, directory: &Path, _: &Stop) -> Result<Recovered, SubjectError> {
        // A file that is too long is read a bit further: nothing belongs there.
        let growth = self.allocation.step_bytes().unwrap_or(1 << 20);
        let mut found = Recovered::default();
        for (number, path) in self.paths(directory).enumerate() {
            match read_back(&path, self.len() + growth) {
                Ok(bytes) => self.check_file(number, &bytes, &mut found),
                Err(damage) => return Ok(Recovered::damaged(damage)),
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests;
