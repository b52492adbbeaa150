//! Pages that are overwritten in place, over and over, as a database without protection against torn
//! pages does.
//!
//! Transaction n overwrites page n modulo the number of pages. A page must hold one version whole; one
//! with sectors of two is torn: the newer transaction is there in part, and the older one is gone, which
//! was acknowledged long before.
//!
//! With a redo log each page is appended to that first, and synced there; the page itself is not. A check replays the log
//! and empties it. Unless it syncs the pages in between, a second power cut finds neither.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::Path;

use landfall_os::{Payload, SyncMethod, SyncedFile, WriteCall};

use super::content::{self, Contents};
use super::{failed, name_of, read_back};
use crate::Stop;
use crate::subject::{AckSink, Promise, Recovered, Subject, SubjectError, SubjectName};
use landfall_databases::registry::Kind;
use landfall_databases::setting::{Chosen, Description, Setting, SettingError};
use landfall_os::humanize::size_name;

const FILE: &str = "pages";
const LOG: &str = "log";

pub(super) static KIND: Kind<dyn Subject> = Kind {
    listed: (),
    description: Description {
        name: "pages",
        about: "pages overwritten in place, over and over, without protection against tearing",
        passes_on: None,
        settings: &[
            Setting {
                name: "method",
                default: Some("direct+o_dsync"),
                about: "how each page is made durable: any sync method",
                always_shown: true,
            },
            Setting {
                name: "size",
                default: Some("16K"),
                about: "bytes of a page, a multiple of 512",
                always_shown: true,
            },
            Setting {
                name: "atomic",
                default: Some("no"),
                about: "'yes' writes with RWF_ATOMIC, where filesystem and device can; or 'no'",
                always_shown: true,
            },
            Setting {
                name: "log",
                default: Some("no"),
                about: "a redo log: 'synced' syncs pages before it is emptied, 'unsynced' does not; or 'no'",
                always_shown: false,
            },
            Setting {
                name: "pages",
                default: Some("4"),
                about: "how many pages there are",
                always_shown: false,
            },
        ],
    },
    make,
};

struct Pages {
    name: SubjectName,
    method: SyncMethod,
    size: usize,
    pages: u64,
    atomic: bool,
    log: Option<Replay>,
}

/// How a redo log is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replay {
    /// Pages are durable before the log is emptied.
    Synced,
    /// They are not: a mistake that one power cut does not show.
    Unsynced,
}

fn make(chosen: &Chosen) -> Result<Box<dyn Subject>, SettingError> {
    let pages = Pages {
        name: name_of(chosen),
        method: chosen.parse("method")?,
        size: chosen.sectors("size", 4 << 20)?,
        pages: chosen.number("pages", 1, 256)?,
        atomic: chosen.whether("atomic")?,
        log: chosen.one_of(
            "log",
            &[
                ("no", None),
                ("synced", Some(Replay::Synced)),
                ("unsynced", Some(Replay::Unsynced)),
            ],
        )?,
    };
    if pages.atomic && !pages.size.is_power_of_two() {
        return Err(chosen.wrong("size", "an atomic write has a power of two of bytes"));
    }
    Ok(Box::new(pages))
}

impl Pages {
    fn len(&self) -> usize {
        self.size * self.pages as usize
    }

    fn write_pages(&self, path: &Path, sink: &mut dyn AckSink) -> io::Result<()> {
        let mut file = SyncedFile::open(path, self.method, self.len() as u64)?;
        let mut page = Payload::zeros(self.size);
        while let Some(transaction) = sink.send() {
            let place = transaction % self.pages;
            let bytes = page.bytes_mut();
            content::fill(bytes, transaction, place);
            let offset = place * self.size as u64;
            if self.atomic {
                file.write_atomic(bytes, offset)?
            } else {
                file.write(bytes, offset)?
            }
            sink.acknowledge(transaction);
        }
        Ok(())
    }

    /// Appends each page to the log, durably, and leaves the page itself to the kernel.
    fn write_log(&self, directory: &Path, sink: &mut dyn AckSink) -> io::Result<()> {
        let mut log = File::options().append(true).open(directory.join(LOG))?;
        let pages = File::options().write(true).open(directory.join(FILE))?;
        let mut page = vec![0; self.size];
        while let Some(transaction) = sink.send() {
            let place = transaction % self.pages;
            content::fill(&mut page, transaction, place);
            log.write_all(&page)?;
            log.sync_data()?;
            sink.acknowledge(transaction);
            pages.write_all_at(&page, place * self.size as u64)?;
        }
        Ok(())
    }

    /// Writes to the pages what the log has of them, up to the first that is not whole, and empties the log.
    fn replay(&self, directory: &Path, replay: Replay) -> io::Result<()> {
        let logged = fs::read(directory.join(LOG))?;
        let pages = File::options().write(true).open(directory.join(FILE))?;
        for (page, transaction) in logged.chunks(self.size).zip(1..) {
            let place = transaction % self.pages;
            let contents = Contents::of_place(page, 0, self.size, place);
            if contents.whole() != Some(transaction) {
                break;
            }
            pages.write_all_at(page, place * self.size as u64)?;
        }
        if replay == Replay::Synced {
            pages.sync_data()?;
        }
        let log = File::options().write(true).open(directory.join(LOG))?;
        log.set_len(0)?;
        log.sync_data()
    }

    /// Why this system cannot do it, if that is what the error means.
    fn unsupported(&self, error: &io::Error) -> Option<String> {
        let refused = matches!(
            error.kind(),
            io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput
        );
        if self.atomic && refused {
            return Some(format!(
                "atomic writes (RWF_ATOMIC) of {} with {} are not supported by this filesystem and \
                 device",
                size_name(self.size as u64),
                self.method
            ));
        }
        WriteCall::of(self.method, self.size as u64, 0).unsupported(error)
    }

    /// Adds what page number `place` holds.
    fn check_page(&self, place: u64, contents: &Contents, found: &mut Recovered) {
        let all = contents.sectors;
        let written_here = |version: &u64| *version % self.pages == place;
        let (mut versions, mut strangers) = (BTreeSet::new(), contents.foreign);
        for version in contents.transactions() {
            // 0 is what the page held before.
            if version == 0 || written_here(&version) {
                versions.insert(version);
            } else {
                strangers += contents.of.get(&version).unwrap_or(&1);
            }
        }
        if strangers > 0 {
            found.invented.push(format!(
                "{strangers} of {all} sectors of page {place} hold what nobody wrote there"
            ));
        }
        let gone = contents.blank + contents.missing;
        if gone > 0 {
            found.damage.get_or_insert(format!(
                "{gone} of {all} sectors of page {place}, which was written before, hold nothing"
            ));
        }
        let (Some(&oldest), Some(&newest)) = (versions.first(), versions.last()) else {
            return;
        };
        let is_whole = contents.whole() == Some(newest);
        if is_whole {
            found.whole.extend((1..=newest).filter(written_here));
        } else if gone + strangers == 0 {
            // What every sector has a later version of was overwritten, whatever became of that.
            found.whole.extend((1..oldest).filter(written_here));
        }
        if !is_whole && newest > 0 {
            found.partial.insert(newest);
        }
    }
}

impl Subject for Pages {
    fn name(&self) -> SubjectName {
        self.name.clone()
    }

    fn promise(&self) -> Promise {
        Promise::STRICT
    }

    fn reads_times(&self) -> bool {
        false
    }

    fn page_size(&self, _: &str) -> Option<NonZeroU64> {
        NonZeroU64::new(self.size as u64)
    }

    fn prepare(&self, directory: &Path, _: &Stop) -> Result<(), SubjectError> {
        let mut old = vec![0; self.len()];
        for (place, page) in (0..).zip(old.chunks_mut(self.size)) {
            content::fill(page, 0, place);
        }
        fs::write(directory.join(FILE), old)
            .map_err(|error| failed("cannot write pages", error))?;
        if self.log.is_some() {
            let made = File::create(directory.join(LOG));
            made.map_err(|error| failed("cannot make the log", error))?;
        }
        Ok(())
    }

    fn run(&self, directory: &Path, sink: &mut dyn AckSink, _: &Stop) -> Result<(), SubjectError> {
        let written = match self.log {
            Some(_) => self.write_log(directory, sink),
            None => self.write_pages(&directory.join(FILE), sink),
        };
        written.map_err(|error| match self.unsupported(&error) {
            Some(why) => SubjectError(why),
            None => failed("cannot write a page", error),
        })
    }

    fn check(&self, directory: &Path, _: &Stop) -> Result<Recovered, SubjectError> {
        if let Some(replay) = self.log
            && let Err(error) = self.replay(directory, replay)
        {
            return Ok(Recovered::damaged(format!(
                "cannot replay the log: {error}"
            )));
        }
        let bytes = match read_back(&directory.join(FILE), self.len() as u64) {
            Ok(bytes) => bytes,
            Err(damage) => return Ok(Recovered::damaged(damage)),
        };
        let mut found = Recovered::default();
        for place in 0..self.pages {
            let start = place as usize * self.size;
            let contents = Contents::of_place(&bytes, start, self.size, place);
            self.check_page(place, &contents, &mut found);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::*;
    use super::*;

    const PAGE: usize = 16384;

    #[test]
    fn every_method_keeps_what_it_wrote() {
        for method in SyncMethod::all() {
            runs_and_finds_all("pages", &format!("method={method}"));
        }
        runs_and_finds_all("pages", "pages=1 size=512 method=fsync");
        runs_and_finds_all("pages", "pages=7");
        runs_and_finds_all("pages", "log=synced");
        runs_and_finds_all("pages", "log=unsynced pages=7");
    }

    #[test]
    fn atomic_writes_are_kept_or_refused() {
        runs_and_finds_all("pages", "atomic=yes");
        runs_and_finds_all("pages", "atomic=yes size=4K method=direct+rwf_dsync");
        // Through a mapping they are not possible anywhere.
        let subject = subject("pages", "atomic=yes method=msync");
        let directory = directory();
        subject.prepare(directory.path(), &Stop::default()).unwrap();
        let outcome = subject.run(directory.path(), &mut Counting::new(1), &Stop::default());
        assert_eq!(
            outcome.unwrap_err().to_string(),
            "atomic writes (RWF_ATOMIC) of 16K with msync are not supported by this filesystem and \
             device"
        );
    }

    fn version(transaction: u64, place: u64) -> [u8; PAGE] {
        let mut page = [0; PAGE];
        content::fill(&mut page, transaction, place);
        page
    }

    /// What is found after `harm` was done to 20 versions on 4 pages.
    fn found_after(harm: impl FnOnce(&File)) -> Recovered {
        let subject = subject("pages", "method=fdatasync");
        let directory = run(subject.as_ref(), 20).unwrap();
        let path = directory.path().join(FILE);
        harm(&File::options().write(true).open(path).unwrap());
        check(subject.as_ref(), directory.path())
    }

    #[test]
    fn a_torn_page_is_partial_and_has_lost_the_version_before() {
        let found = found_after(|file| {
            let old = &version(14, 2)[5 * 512..6 * 512];
            file.write_all_at(old, 2 * 16384 + 5 * 512).unwrap();
        });
        let mut expected = all_whole(20);
        // Those before 14 have been overwritten, all of them.
        expected.whole.remove(&14);
        expected.whole.remove(&18);
        expected.partial = set(&[18]);
        assert_eq!(found, expected);
    }

    #[test]
    fn a_sector_changed_while_it_was_written_is_torn() {
        let found = found_after(|file| {
            let old = &version(14, 2)[5 * 512 + 256..6 * 512];
            file.write_all_at(old, 2 * 16384 + 5 * 512 + 256).unwrap();
        });
        assert_eq!(found.partial, set(&[18]));
        assert!(found.invented.is_empty() && found.damage.is_none());
    }

    #[test]
    fn a_stale_page_has_lost_its_last_version() {
        let found = found_after(|file| {
            file.write_all_at(&version(14, 2), 2 * 16384).unwrap();
            file.write_all_at(&version(0, 1), 16384).unwrap();
        });
        let mut expected = all_whole(20);
        for gone in [18, 1, 5, 9, 13, 17] {
            expected.whole.remove(&gone);
        }
        assert_eq!(found, expected);
    }

    #[test]
    fn a_page_of_nothing_is_damage() {
        let found = found_after(|file| file.write_all_at(&[0; 512], 16384).unwrap());
        assert_eq!(
            found.damage.unwrap(),
            "1 of 32 sectors of page 1, which was written before, hold nothing"
        );
        assert_eq!(found.partial, set(&[17]));
        assert!(!found.whole.contains(&13));
        let found = found_after(|file| file.set_len(3 * 16384).unwrap());
        assert!(
            found
                .damage
                .unwrap()
                .starts_with("32 of 32 sectors of page 3")
        );
        assert!(!found.whole.contains(&3) && found.partial.is_empty());
    }

    #[test]
    fn what_nobody_wrote_is_invented() {
        let found = found_after(|file| file.write_all_at(&[7; 512], 16384).unwrap());
        assert_eq!(
            found.invented,
            ["1 of 32 sectors of page 1 hold what nobody wrote there"]
        );
        assert_eq!(found.partial, set(&[17]));
        // A version of page 2 in page 1.
        let found = found_after(|file| file.write_all_at(&version(18, 2), 16384).unwrap());
        assert!(found.invented[0].starts_with("32 of 32 sectors of page 1"));
        let found = found_after(|file| file.write_all_at(&version(18, 1), 16384).unwrap());
        assert!(found.invented[0].starts_with("32 of 32 sectors of page 1"));
        assert!(!found.whole.contains(&17));
    }

    #[test]
    fn a_missing_file_is_damage() {
        let subject = subject("pages", "");
        let found = check(subject.as_ref(), directory().path());
        assert_eq!(found, Recovered::damaged("the file is missing"));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(refusal("pages", &[("atomic", "yes"), ("size", "12K")]).contains("a power of two"));
        assert!(refusal("pages", &[("atomic", "perhaps")]).contains("yes, no"));
    }
}
