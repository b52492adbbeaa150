//! A plain file of records, written one after the other by a strategy of experiment `sync`.
//!
//! Transaction n is the record in slot n-1. A record that was not acknowledged may be there in part:
//! that is no loss, and a program that writes like this must know its records' checksums.
//!
//! Zeros that a strategy does not let settle are written when the transactions begin, since what was
//! prepared is synced.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use landfall_os::{
    Allocation, Payload, PrepareError, SyncCall, SyncMethod, SyncedFile, WriteCall, reserve,
    zero_fill,
};

use super::content::{self, Contents};
use super::{failed, name_of, read_back};
use crate::Stop;
use crate::subject::{AckSink, Promise, Recovered, Subject, SubjectError, SubjectName};
use landfall_databases::registry::Kind;
use landfall_databases::setting::{Chosen, Description, Setting, SettingError};

const FILE: &str = "records";
const OLD_FILE: &str = "old-records";
/// Bytes of a file: it is read whole after each power cut.
const MOST_BYTES: u64 = 1 << 30;

pub(super) static KIND: Kind<dyn Subject> = Kind {
    listed: (),
    description: Description {
        name: "files",
        about: "a plain file of records, under any strategy of experiment sync",
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
                about: "records that the file has room for; when it is full the run ends",
                always_shown: false,
            },
            Setting {
                name: "acknowledge",
                default: Some("after"),
                about: "'after' the record is durable, or too 'early': before its sync, a planted fault",
                always_shown: false,
            },
        ],
    },
    make,
};

struct Files {
    name: SubjectName,
    method: SyncMethod,
    allocation: Allocation,
    size: usize,
    records: u64,
    early: bool,
}

fn make(chosen: &Chosen) -> Result<Box<dyn Subject>, SettingError> {
    let size = chosen.sectors("size", 64 << 20)?;
    let files = Files {
        name: name_of(chosen),
        method: chosen.parse("method")?,
        allocation: chosen.parse("allocation")?,
        size,
        records: chosen.number("records", 1, MOST_BYTES / size as u64)?,
        early: chosen.one_of("acknowledge", &[("after", false), ("early", true)])?,
    };
    match files.contradiction() {
        Some(why) => Err(SettingError(format!("{}: {why}", files.name))),
        None => Ok(Box::new(files)),
    }
}

impl Files {
    fn len(&self) -> u64 {
        self.records * self.size as u64
    }

    /// Why this system cannot do it, if that is what the error means.
    fn unsupported(&self, error: &io::Error) -> Option<String> {
        WriteCall::of(self.method, self.size as u64, 0).unsupported(error)
    }

    /// Why this combination cannot be tried on any system, if it cannot.
    fn contradiction(&self) -> Option<&'static str> {
        if self.method.call == SyncCall::Msync && self.allocation == Allocation::Append {
            return Some("a mapping cannot make a file grow");
        }
        let step = self.allocation.step_bytes();
        step.is_some_and(|step| step < self.size as u64)
            .then_some("a write is larger than the step")
    }

    /// Makes a file that grows in steps have written blocks up to `end`, as an autoextending tablespace does; `grown`
    /// is how far it has come.
    fn extend(&self, path: &Path, grown: &mut u64, end: u64) -> io::Result<()> {
        let Some(step) = self.allocation.step_bytes().filter(|_| *grown < end) else {
            return Ok(());
        };
        let file = File::options().write(true).open(path)?;
        while *grown < end {
            zero_fill(&file, *grown, *grown + step, &|| false)?;
            if self.method.is_durable() {
                file.sync_data()?;
            }
            *grown += step;
        }
        Ok(())
    }

    fn make_file(&self, directory: &Path) -> Result<(), PrepareError> {
        let path = directory.join(FILE);
        let allocation = self.allocation;
        match allocation {
            Allocation::Overwrite => return Ok(self.write_old(&path)?),
            Allocation::Recycled => {
                let old = directory.join(OLD_FILE);
                self.write_old(&old)?;
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
    fn write_old(&self, path: &Path) -> io::Result<()> {
        let mut old = vec![0; self.len() as usize];
        for (slot, record) in (0..).zip(old.chunks_mut(self.size)) {
            content::fill(record, 0, slot);
        }
        fs::write(path, old)
    }

    fn write_records(&self, path: &Path, sink: &mut dyn AckSink) -> io::Result<()> {
        if self.allocation == Allocation::ZeroFilled {
            let file = File::options().write(true).open(path)?;
            zero_fill(&file, 0, self.len(), &|| false)?;
        }
        let mut grown = 0;
        let mut file = SyncedFile::open(path, self.method, self.len())?;
        let mut record = Payload::zeros(self.size);
        for slot in 0..self.records {
            let Some(transaction) = sink.send() else {
                break;
            };
            let bytes = record.bytes_mut();
            content::fill(bytes, transaction, slot);
            let offset = slot * self.size as u64;
            self.extend(path, &mut grown, offset + self.size as u64)?;
            if self.early {
                file.write_and(bytes, offset, || sink.acknowledge(transaction))?
            } else {
                file.write(bytes, offset)?;
                sink.acknowledge(transaction);
            }
        }
        Ok(())
    }
}

impl Subject for Files {
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
        self.make_file(directory).map_err(|error| match error {
            PrepareError::Unsupported(why) => SubjectError(why),
            PrepareError::Io(error) => failed("cannot prepare the file of records", error),
        })
    }

    fn run(&self, directory: &Path, sink: &mut dyn AckSink, _: &Stop) -> Result<(), SubjectError> {
        let written = self.write_records(&directory.join(FILE), sink);
        written.map_err(|error| match self.unsupported(&error) {
            Some(why) => SubjectError(why),
            None => failed("cannot write a record", error),
        })
    }

    fn check(&self, directory: &Path, _: &Stop) -> Result<Recovered, SubjectError> {
        // A file that is too long is read a bit further: nothing belongs there.
        let growth = self.allocation.step_bytes().unwrap_or(1 << 20);
        let bytes = match read_back(&directory.join(FILE), self.len() + growth) {
            Ok(bytes) => bytes,
            Err(damage) => return Ok(Recovered::damaged(damage)),
        };
        let mut found = Recovered::default();
        let slots = self.records.max(bytes.len().div_ceil(self.size) as u64);
        for slot in 0..slots {
            let start = slot as usize * self.size;
            let contents = Contents::of_place(&bytes, start, self.size, slot);
            let mut strangers = contents.foreign;
            for transaction in contents.transactions() {
                // Before the first transaction there was nothing, or 0.
                if transaction == slot + 1 && slot < self.records {
                    match contents.whole() {
                        Some(_) => found.whole.insert(transaction),
                        None => found.partial.insert(transaction),
                    };
                } else if transaction != 0 {
                    strangers += contents.of.get(&transaction).unwrap_or(&1);
                }
            }
            if strangers > 0 {
                let all = contents.sectors;
                found.invented.push(format!(
                    "{strangers} of {all} sectors of slot {slot} hold what nobody wrote there"
                ));
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::*;
    use super::*;
    use landfall_os::SyncMethod;
    use std::os::unix::fs::FileExt;

    const RECORD: usize = 8192;

    #[test]
    fn every_strategy_keeps_what_it_wrote() {
        for method in SyncMethod::all() {
            let others = format!("method={method} allocation=overwrite records=20");
            runs_and_finds_all("files", &others);
        }
        for allocation in Allocation::ALL {
            runs_and_finds_all("files", &format!("allocation={allocation} records=20"));
            if allocation != Allocation::Append {
                let mapped = format!("allocation={allocation} method=msync records=20");
                runs_and_finds_all("files", &mapped);
            }
        }
    }

    #[test]
    fn acknowledging_early_changes_nothing_without_a_crash() {
        for method in SyncMethod::all() {
            let settings = format!("method={method} allocation=sparse acknowledge=early");
            runs_and_finds_all("files", &settings);
        }
    }

    /// Looks at the file whenever something is acknowledged.
    struct Looking<'a>(Counting, &'a Path, Vec<u64>);

    impl AckSink for Looking<'_> {
        fn send(&mut self) -> Option<u64> {
            self.0.send()
        }

        fn acknowledge(&mut self, transaction: u64) {
            self.0.acknowledge(transaction);
            self.2.push(fs::metadata(self.1).unwrap().len());
        }
    }

    #[test]
    fn early_is_before_the_call_that_syncs() {
        let lengths = |settings: &str| {
            let subject = subject("files", settings);
            let directory = directory();
            let path = directory.path().join(FILE);
            subject.prepare(directory.path(), &Stop::default()).unwrap();
            let mut sink = Looking(Counting::new(3), &path, Vec::new());
            subject
                .run(directory.path(), &mut sink, &Stop::default())
                .unwrap();
            sink.2
        };
        assert_eq!(lengths("method=o_dsync"), [8192, 16384, 24576]);
        assert_eq!(
            lengths("method=o_dsync acknowledge=early"),
            [0, 8192, 16384]
        );
        // Written, but not synced yet.
        assert_eq!(lengths("acknowledge=early"), [8192, 16384, 24576]);
    }

    #[test]
    fn a_full_file_ends_the_run() {
        let subject = subject("files", "records=5");
        let directory = directory();
        let mut sink = Counting::new(20);
        subject.prepare(directory.path(), &Stop::default()).unwrap();
        subject
            .run(directory.path(), &mut sink, &Stop::default())
            .unwrap();
        assert_eq!((sink.sent, sink.acknowledged.len()), (5, 5));
    }

    /// What is found after `harm` was done to 20 records.
    fn found_after(settings: &str, harm: impl FnOnce(&File)) -> Recovered {
        let subject = subject("files", settings);
        let directory = run(subject.as_ref(), 20).unwrap();
        let path = directory.path().join(FILE);
        harm(&File::options().read(true).write(true).open(path).unwrap());
        check(subject.as_ref(), directory.path())
    }

    #[test]
    fn a_file_cut_short_has_lost_its_end() {
        let found = found_after("", |file| file.set_len(18 * 8192 + 4096).unwrap());
        let expected = Recovered {
            partial: set(&[19]),
            ..all_whole(18)
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_hole_is_a_record_that_is_gone() {
        let zeros = [0; RECORD];
        let found = found_after("", |file| file.write_all_at(&zeros, 4 * 8192).unwrap());
        assert!(!found.whole.contains(&5) && found.partial.is_empty());
        let half = [0; RECORD / 2];
        let found = found_after("", |file| file.write_all_at(&half, 4 * 8192).unwrap());
        assert_eq!(found.partial, set(&[5]));
    }

    #[test]
    fn what_was_there_before_is_no_record() {
        let mut old = [0; RECORD];
        content::fill(&mut old, 0, 4);
        let found = found_after("allocation=overwrite", |file| {
            file.write_all_at(&old[..512], 4 * 8192).unwrap();
            file.write_all_at(&[0; 512], 19 * 8192).unwrap();
        });
        assert_eq!(found.partial, set(&[5, 20]));
        assert!(found.invented.is_empty() && found.whole.len() == 18);
    }

    #[test]
    fn what_nobody_wrote_is_invented() {
        let found = found_after("", |file| file.write_all_at(&[7; 1024], 512).unwrap());
        assert_eq!(
            found.invented,
            ["2 of 16 sectors of slot 0 hold what nobody wrote there"]
        );
        assert_eq!(found.partial, set(&[1]));
        // A record in another one's slot, and one beyond the last.
        let mut record = [0; RECORD];
        content::fill(&mut record, 9, 2);
        let found = found_after("", |file| file.write_all_at(&record, 2 * 8192).unwrap());
        assert!(found.invented[0].starts_with("16 of 16 sectors of slot 2"));
        assert!(!found.whole.contains(&3));
        content::fill(&mut record, 21, 20);
        let found = found_after("records=20", |file| {
            file.write_all_at(&record, 20 * 8192).unwrap();
        });
        assert!(found.invented[0].starts_with("16 of 16 sectors of slot 20"));
    }

    #[test]
    fn a_record_that_was_never_sent_is_found() {
        let mut record = [0; RECORD];
        content::fill(&mut record, 30, 29);
        let found = found_after("", |file| file.write_all_at(&record, 29 * 8192).unwrap());
        // The prover knows that it was not sent.
        assert!(found.whole.contains(&30) && found.invented.is_empty());
    }

    #[test]
    fn a_missing_file_is_damage() {
        let subject = subject("files", "");
        let found = check(subject.as_ref(), directory().path());
        assert_eq!(found, Recovered::damaged("the file is missing"));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert_eq!(
            refusal("files", &[("method", "msync")]),
            "files method=msync allocation=append size=8K: a mapping cannot make a file grow"
        );
        assert!(refusal("files", &[("method", "sync")]).contains("there are: fdatasync, "));
        assert!(refusal("files", &[("size", "700")]).contains("a multiple of 512"));
        assert!(refusal("files", &[("records", "0")]).contains("from 1 to 131072"));
    }
}
