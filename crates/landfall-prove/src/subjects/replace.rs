//! A file that is replaced by a new version of itself, again and again: the idioms of configuration
//! files, dumps and editors.
//!
//! Transaction n is version n of the file. `rename` writes a temporary file and renames it over the file;
//! with the file synced before and the directory after, a whole version is there whenever the power is
//! cut, and the last acknowledged one at least. Each of the two syncs can be left out. `overwrite`
//! truncates the file and writes it again, which has a moment without any version.
//!
//! A temporary file that is left over is no damage: every program that renames leaves one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use super::content::{self, Contents};
use super::{failed, name_of, read_back};
use crate::Stop;
use crate::subject::{AckSink, Promise, Recovered, Subject, SubjectError, SubjectName};
use landfall_databases::registry::Kind;
use landfall_databases::setting::{Chosen, Description, Setting, SettingError};

const FILE: &str = "file";
const NEW_FILE: &str = "file.new";

pub(super) static KIND: Kind<dyn Subject> = Kind {
    listed: (),
    description: Description {
        name: "replace",
        about: "a file replaced by a new version of itself, again and again",
        passes_on: None,
        settings: &[
            Setting {
                name: "idiom",
                default: Some("rename"),
                about: "'rename' a new file over it, or 'overwrite': truncate it and write it again",
                always_shown: true,
            },
            Setting {
                name: "file-sync",
                default: Some("fdatasync"),
                about: "how the file is synced once it is written, before a rename: none, fdatasync, fsync",
                always_shown: true,
            },
            Setting {
                name: "directory-sync",
                default: Some("yes"),
                about: "whether the directory is synced at the end: yes or no",
                always_shown: true,
            },
            Setting {
                name: "size",
                default: Some("12K"),
                about: "bytes of the file, a multiple of 512",
                always_shown: false,
            },
        ],
    },
    make,
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Idiom {
    Rename,
    Overwrite,
}

#[derive(Clone, Copy)]
enum FileSync {
    None,
    Fdatasync,
    Fsync,
}

struct Replace {
    name: SubjectName,
    idiom: Idiom,
    file_sync: FileSync,
    directory_sync: bool,
    size: usize,
}

fn make(chosen: &Chosen) -> Result<Box<dyn Subject>, SettingError> {
    let idioms = [("rename", Idiom::Rename), ("overwrite", Idiom::Overwrite)];
    let syncs = [
        ("none", FileSync::None),
        ("fdatasync", FileSync::Fdatasync),
        ("fsync", FileSync::Fsync),
    ];
    Ok(Box::new(Replace {
        name: name_of(chosen),
        idiom: chosen.one_of("idiom", &idioms)?,
        file_sync: chosen.one_of("file-sync", &syncs)?,
        directory_sync: chosen.whether("directory-sync")?,
        size: chosen.sectors("size", 64 << 20)?,
    }))
}

impl Replace {
    fn replace(&self, version: &[u8], directory: &Path) -> io::Result<()> {
        let file = directory.join(FILE);
        let written = match self.idiom {
            Idiom::Rename => directory.join(NEW_FILE),
            Idiom::Overwrite => file.clone(),
        };
        let mut new = File::create(&written)?;
        new.write_all(version)?;
        match self.file_sync {
            FileSync::None => {}
            FileSync::Fdatasync => new.sync_data()?,
            FileSync::Fsync => new.sync_all()?,
        }
        drop(new);
        if self.idiom == Idiom::Rename {
            fs::rename(written, file)?;
        }
        if self.directory_sync {
            File::open(directory)?.sync_all()
        } else {
            Ok(())
        }
    }

    fn damage(&self, len: usize, contents: &Contents) -> String {
        let all = contents.sectors;
        let versions = contents.transactions();
        if len == 0 {
            "the file is empty".into()
        } else if contents.missing > 0 {
            format!("the file ends after {len} of {} bytes", self.size)
        } else if contents.blank > 0 {
            let blank = contents.blank;
            format!("{blank} of the file's {all} sectors are zeros")
        } else if contents.foreign > 0 {
            let foreign = contents.foreign;
            format!("{foreign} of the file's {all} sectors hold what nobody wrote there")
        } else {
            let versions: Vec<String> = versions.iter().map(u64::to_string).collect();
            format!("the file is torn: parts of version {}", versions.join(", "))
        }
    }
}

impl Subject for Replace {
    fn name(&self) -> SubjectName {
        self.name.clone()
    }

    fn promise(&self) -> Promise {
        Promise::STRICT
    }

    fn reads_times(&self) -> bool {
        false
    }

    fn prepare(&self, directory: &Path, _: &Stop) -> Result<(), SubjectError> {
        let mut old = vec![0; self.size];
        content::fill(&mut old, 0, 0);
        fs::write(directory.join(FILE), old)
            .map_err(|error| failed("cannot write the first version", error))
    }

    fn run(&self, directory: &Path, sink: &mut dyn AckSink, _: &Stop) -> Result<(), SubjectError> {
        let mut version = vec![0; self.size];
        while let Some(transaction) = sink.send() {
            content::fill(&mut version, transaction, 0);
            self.replace(&version, directory)
                .map_err(|error| failed("cannot replace the file", error))?;
            sink.acknowledge(transaction);
        }
        Ok(())
    }

    fn check(&self, directory: &Path, _: &Stop) -> Result<Recovered, SubjectError> {
        // A byte more, to see whether it is too long.
        let bytes = match read_back(&directory.join(FILE), self.size as u64 + 1) {
            Ok(bytes) => bytes,
            Err(damage) => return Ok(Recovered::damaged(damage)),
        };
        let contents = Contents::of_place(&bytes, 0, self.size, 0);
        let mut found = Recovered::default();
        match contents.whole() {
            Some(version) => found.whole.extend(1..=version),
            None => {
                let newest = contents.transactions().last().copied();
                found.partial.extend(newest.filter(|&version| version > 0));
                found.damage = Some(self.damage(bytes.len(), &contents));
            }
        }
        if contents.foreign > 0 {
            let (foreign, all) = (contents.foreign, contents.sectors);
            found.invented.push(format!(
                "{foreign} of the file's {all} sectors hold what nobody wrote there"
            ));
        }
        if bytes.len() > self.size {
            found
                .invented
                .push(format!("more than the file's {} bytes", self.size));
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::*;
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn every_idiom_keeps_what_it_wrote() {
        for idiom in ["rename", "overwrite"] {
            for file_sync in ["none", "fdatasync", "fsync"] {
                for directory_sync in ["yes", "no"] {
                    runs_and_finds_all(
                        "replace",
                        &format!(
                            "idiom={idiom} file-sync={file_sync} directory-sync={directory_sync}"
                        ),
                    );
                }
            }
        }
    }

    /// What is found after `harm` was done to version 20.
    fn found_after(harm: impl FnOnce(&File)) -> Recovered {
        let subject = subject("replace", "");
        let directory = run(subject.as_ref(), 20).unwrap();
        let path = directory.path().join(FILE);
        harm(&File::options().write(true).open(path).unwrap());
        check(subject.as_ref(), directory.path())
    }

    fn version(transaction: u64) -> Vec<u8> {
        let mut file = vec![0; 12 << 10];
        content::fill(&mut file, transaction, 0);
        file
    }

    fn damaged(damage: &str, partial: &[u64]) -> Recovered {
        Recovered {
            partial: set(partial),
            ..Recovered::damaged(damage)
        }
    }

    #[test]
    fn an_older_version_has_lost_the_later_ones() {
        let found = found_after(|file| file.write_all_at(&version(17), 0).unwrap());
        assert_eq!(found, all_whole(17));
        let found = found_after(|file| file.write_all_at(&version(0), 0).unwrap());
        assert_eq!(found, Recovered::default());
    }

    #[test]
    fn an_empty_or_truncated_file_has_lost_everything() {
        let found = found_after(|file| file.set_len(0).unwrap());
        assert_eq!(found, damaged("the file is empty", &[]));
        let found = found_after(|file| file.set_len(4096).unwrap());
        let expected = damaged("the file ends after 4096 of 12288 bytes", &[20]);
        assert_eq!(found, expected);
        let found = found_after(|file| file.write_all_at(&[0; 4096], 0).unwrap());
        let expected = damaged("8 of the file's 24 sectors are zeros", &[20]);
        assert_eq!(found, expected);
    }

    #[test]
    fn a_torn_file_has_lost_everything() {
        let found = found_after(|file| file.write_all_at(&version(19)[..4096], 0).unwrap());
        let expected = damaged("the file is torn: parts of version 19, 20", &[20]);
        assert_eq!(found, expected);
    }

    #[test]
    fn what_nobody_wrote_is_invented() {
        let found = found_after(|file| file.write_all_at(&[7; 512], 0).unwrap());
        let text = "1 of the file's 24 sectors hold what nobody wrote there";
        assert_eq!(found.invented, [text]);
        assert_eq!(found.damage.unwrap(), text);
        let found = found_after(|file| file.write_all_at(&[7], 12 << 10).unwrap());
        assert_eq!(found.invented, ["more than the file's 12288 bytes"]);
        assert_eq!(found.whole.len(), 20);
    }

    #[test]
    fn a_missing_file_is_damage_and_a_left_over_one_is_not() {
        let subject = subject("replace", "");
        let directory = run(subject.as_ref(), 20).unwrap();
        fs::write(directory.path().join(NEW_FILE), "half").unwrap();
        assert_eq!(check(subject.as_ref(), directory.path()), all_whole(20));
        fs::remove_file(directory.path().join(FILE)).unwrap();
        let found = check(subject.as_ref(), directory.path());
        assert_eq!(found, Recovered::damaged("the file is missing"));
    }
}
