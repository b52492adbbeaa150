//! What tells the files of two directories apart without comparing them.
//!
//! It is a hash (XXH3, 128 bits) of everything that a program can read below a directory: names in the order in which
//! they are listed, types, modes, owners, sizes, link targets, hard links, extended attributes and contents, and, for
//! whoever looks at them, modification times. Equal ones are equal files but for one chance in 2^128 for each pair; the hash is not made to withstand
//! somebody who looks for such a pair.
//!
//! Left out is what no store can build on: access and change times, inode numbers, and where blocks lie. A hole and
//! written zeros are the same bytes to whoever reads them, and have the same hash; holes are not read.
//!
//! Failure modes: a file that cannot be read is an error, and then nothing is known to be equal.

use std::collections::HashMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{OFlags, SeekFrom, lgetxattr, llistxattr, seek};
use rustix::io::Errno;
use twox_hash::xxhash3_128::Hasher;

/// Bytes that are read at once.
const BUFFER: usize = 1 << 20;
/// Blocks of zeros of this size are passed over, whether they are holes or not.
const BLOCK: usize = 4096;
/// More bytes than Linux lets the names, or one value, of a file's extended attributes have.
const MOST_ATTRIBUTES: usize = 1 << 16;

/// Equal for equal files, and different for different ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileIdentity(u128);

impl FileIdentity {
    /// Of everything below `directory`, and of the directory itself but for its name.
    pub fn of(directory: &Path, with_times: bool) -> io::Result<FileIdentity> {
        let mut reader = Reader {
            with_times,
            hasher: Hasher::new(),
            buffer: vec![0; BUFFER],
            linked: HashMap::new(),
        };
        reader.entry(directory)?;
        Ok(FileIdentity(reader.hasher.finish_128()))
    }
}

impl FileIdentity {
    /// Of several directories' files, and of a word that is told besides.
    pub fn joined(parts: &[FileIdentity], word: &str) -> FileIdentity {
        let mut hasher = Hasher::new();
        for part in parts {
            hasher.write(&part.0.to_le_bytes());
        }
        hasher.write(word.as_bytes());
        FileIdentity(hasher.finish_128())
    }
}

struct Reader {
    with_times: bool,
    hasher: Hasher,
    buffer: Vec<u8>,
    /// Inodes with several names, numbered as they are met.
    linked: HashMap<u64, u64>,
}

impl Reader {
    fn number(&mut self, number: u64) {
        self.hasher.write(&number.to_le_bytes());
    }

    /// Bytes whose end is told from what follows.
    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.hasher.write(bytes);
    }

    fn entry(&mut self, path: &Path) -> io::Result<()> {
        let metadata = fs::symlink_metadata(path)?;
        let kind = metadata.file_type();
        for number in [
            metadata.mode().into(),
            metadata.uid().into(),
            metadata.gid().into(),
            metadata.rdev(),
        ] {
            self.number(number);
        }
        if self.with_times {
            self.number(metadata.mtime().cast_unsigned());
            self.number(metadata.mtime_nsec().cast_unsigned());
        }
        self.attributes(path)?;
        if kind.is_symlink() {
            let target = fs::read_link(path)?;
            self.bytes(target.as_os_str().as_bytes());
        } else if kind.is_dir() {
            for entry in fs::read_dir(path)? {
                let entry = entry?;
                self.bytes(entry.file_name().as_bytes());
                self.entry(&entry.path())?;
            }
            // No name is empty: the directory ends here.
            self.number(0);
        } else if kind.is_file() && self.is_first_name(&metadata) {
            self.contents(path, metadata.len())?;
        }
        Ok(())
    }

    /// Whether no other name of the same file was met before.
    fn is_first_name(&mut self, metadata: &Metadata) -> bool {
        if metadata.nlink() == 1 {
            return true;
        }
        let next = self.linked.len() as u64;
        let number = *self.linked.entry(metadata.ino()).or_insert(next);
        self.number(number);
        number == next
    }

    fn attributes(&mut self, path: &Path) -> io::Result<()> {
        let mut names = Vec::with_capacity(MOST_ATTRIBUTES);
        match llistxattr(path, rustix::buffer::spare_capacity(&mut names)) {
            // A filesystem without any.
            Ok(0) | Err(Errno::OPNOTSUPP) => return Ok(()),
            listed => listed?,
        };
        self.bytes(&names);
        for name in names
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
        {
            let mut value = Vec::with_capacity(MOST_ATTRIBUTES);
            lgetxattr(path, name, rustix::buffer::spare_capacity(&mut value))?;
            self.bytes(&value);
        }
        Ok(())
    }

    fn contents(&mut self, path: &Path, size: u64) -> io::Result<()> {
        self.number(size);
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NOATIME.bits().cast_signed())
            .open(path)?;
        let mut place = 0;
        while let Some((start, end)) = next_data(&file, place, size)? {
            place = start;
            while place < end {
                let len = (end - place).min(BUFFER as u64) as usize;
                file.read_exact_at(&mut self.buffer[..len], place)?;
                for (number, block) in (0..).zip(self.buffer[..len].chunks(BLOCK)) {
                    if block.iter().any(|byte| *byte != 0) {
                        let place: u64 = place + number * BLOCK as u64;
                        self.hasher.write(&place.to_le_bytes());
                        self.hasher.write(block);
                    }
                }
                place += len as u64;
            }
        }
        // No block lies there: the file ends here.
        self.number(u64::MAX);
        Ok(())
    }
}

/// The next blocks of a file from `place` on that may be no hole.
fn next_data(file: &File, place: u64, size: u64) -> io::Result<Option<(u64, u64)>> {
    if place >= size {
        return Ok(None);
    }
    let start = match seek(file, SeekFrom::Data(place)) {
        Ok(start) => start,
        Err(Errno::NXIO) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let end = seek(file, SeekFrom::Hole(start))?.min(size);
    // Blocks lie at the same places whatever is a hole.
    Ok(Some((start - start % BLOCK as u64, end)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::{Duration, SystemTime};

    use super::*;

    /// The same files, whoever makes them.
    fn make(root: &Path) {
        fs::create_dir(root.join("sub")).unwrap();
        fs::write(root.join("sub/a"), vec![7; 3 << 20]).unwrap();
        fs::write(root.join("b"), [1; 5000]).unwrap();
        let sparse = File::create(root.join("sparse")).unwrap();
        sparse.write_all_at(&[3; 100], 1 << 20).unwrap();
        sparse.set_len(4 << 20).unwrap();
        symlink("b", root.join("link")).unwrap();
        fs::hard_link(root.join("b"), root.join("hard")).unwrap();
        at_the_same_time(root);
    }

    /// Gives all of them one time, so that nothing but a harm itself is seen.
    fn at_the_same_time(root: &Path) {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        for directory in [root.join("sub"), root.to_owned()] {
            for entry in fs::read_dir(&directory).unwrap() {
                let path = entry.unwrap().path();
                if path.symlink_metadata().unwrap().is_symlink() {
                    let time = rustix::fs::Timespec {
                        tv_sec: 1_000_000_000,
                        tv_nsec: 0,
                    };
                    let times = rustix::fs::Timestamps {
                        last_access: time,
                        last_modification: time,
                    };
                    let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
                    rustix::fs::utimensat(rustix::fs::CWD, &path, &times, flags).unwrap();
                } else {
                    File::open(path).unwrap().set_modified(time).unwrap();
                }
            }
            File::open(&directory).unwrap().set_modified(time).unwrap();
        }
    }

    fn made() -> tempfile::TempDir {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        make(directory.path());
        directory
    }

    #[test]
    fn equal_files_are_equal_wherever_they_lie_and_whatever_is_a_hole() {
        let (one, other) = (made(), made());
        let identity =
            |directory: &tempfile::TempDir| FileIdentity::of(directory.path(), true).unwrap();
        assert_eq!(identity(&one), identity(&other));
        let sparse = File::options()
            .write(true)
            .open(other.path().join("sparse"))
            .unwrap();
        sparse.write_all_at(&[0; 10_000], 2 << 20).unwrap();
        at_the_same_time(other.path());
        assert_eq!(identity(&one), identity(&other));
    }

    #[test]
    fn whatever_a_program_can_read_makes_a_difference() {
        type Harm = (&'static str, fn(&Path));
        let whole = FileIdentity::of(made().path(), true).unwrap();
        fn put(path: std::path::PathBuf, bytes: &[u8], place: u64) {
            let file = File::options().write(true).open(path).unwrap();
            file.write_all_at(bytes, place).unwrap();
        }
        let harms: &[Harm] = &[
            ("a bit in the first byte", |root| {
                put(root.join("sub/a"), &[6], 0)
            }),
            ("a bit in the last byte", |root| {
                put(root.join("sub/a"), &[6], (3 << 20) - 1)
            }),
            ("a byte in a hole", |root| {
                put(root.join("sparse"), &[1], 3 << 20)
            }),
            ("the same bytes a block further", |root| {
                put(root.join("sparse"), &[0; 100], 1 << 20);
                put(root.join("sparse"), &[3; 100], (1 << 20) + 4096);
            }),
            ("a size, with zeros", |root| {
                let file = File::options()
                    .write(true)
                    .open(root.join("sparse"))
                    .unwrap();
                file.set_len((4 << 20) + 1).unwrap();
            }),
            ("a name", |root| {
                fs::rename(root.join("sub/a"), root.join("sub/c")).unwrap()
            }),
            ("a directory", |root| {
                fs::rename(root.join("sub/a"), root.join("a")).unwrap()
            }),
            ("an empty file more", |root| {
                fs::write(root.join("sub/d"), "").unwrap()
            }),
            ("a link's target", |root| {
                fs::remove_file(root.join("link")).unwrap();
                symlink("sub", root.join("link")).unwrap();
            }),
            ("a copy for a hard link", |root| {
                fs::remove_file(root.join("hard")).unwrap();
                fs::copy(root.join("b"), root.join("hard")).unwrap();
            }),
            ("a mode", |root| {
                fs::set_permissions(root.join("b"), fs::Permissions::from_mode(0o600)).unwrap();
            }),
        ];
        for (what, harm) in harms {
            let directory = made();
            harm(directory.path());
            at_the_same_time(directory.path());
            assert_ne!(
                FileIdentity::of(directory.path(), true).unwrap(),
                whole,
                "{what}"
            );
        }
        let later = made();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_001);
        File::open(later.path().join("b"))
            .unwrap()
            .set_modified(time)
            .unwrap();
        assert_ne!(FileIdentity::of(later.path(), true).unwrap(), whole);
        let without_times = FileIdentity::of(made().path(), false).unwrap();
        assert_eq!(
            FileIdentity::of(later.path(), false).unwrap(),
            without_times
        );
    }
}
