//! What is peculiar to ext2, ext3 and ext4 after a power cut.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::mkfs::search_path;

/// Where the superblock lies, and what of it is looked at.
const PLACE: u64 = 1024;
const SIZE: usize = 1024;
const MAGIC: usize = 56;
const FEATURES: usize = 92;
const ERRORS: usize = 404;

const EXT_MAGIC: [u8; 2] = [0x53, 0xef];
const HAS_JOURNAL: u32 = 4;
/// From this exit code on `e2fsck` has left errors uncorrected.
const UNCORRECTED: i32 = 4;

/// What the superblock says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    /// Whether there is a journal, from which the kernel recovers.
    pub has_journal: bool,
    /// Errors that the kernel found, and noted here, as long as the filesystem has been there.
    pub errors: u32,
}

impl Superblock {
    /// Reads it; `None` if there is none.
    pub fn of(device: &Path) -> io::Result<Option<Superblock>> {
        let mut bytes = [0; SIZE];
        File::open(device)?.read_exact_at(&mut bytes, PLACE)?;
        Ok(Superblock::parse(&bytes))
    }

    fn parse(bytes: &[u8; SIZE]) -> Option<Superblock> {
        let number = |place: usize| {
            let bytes = [0, 1, 2, 3].map(|byte| bytes[place + byte]);
            u32::from_le_bytes(bytes)
        };
        bytes[MAGIC..].starts_with(&EXT_MAGIC).then(|| Superblock {
            has_journal: number(FEATURES) & HAS_JOURNAL != 0,
            errors: number(ERRORS),
        })
    }
}

/// Lets `e2fsck` repair what it repairs without asking, as a system does when it boots: a filesystem
/// without a journal recovers in no other way. Returns what is wrong if that does not suffice.
pub(crate) fn repair(device: &Path) -> io::Result<Option<String>> {
    let output = Command::new("e2fsck")
        .arg("-p")
        .arg(device)
        .env("PATH", search_path())
        .stdin(Stdio::null())
        .output()?;
    match output.status.code() {
        Some(..UNCORRECTED) => Ok(None),
        _ => {
            let said = String::from_utf8_lossy(&output.stdout);
            let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
            let last = last.unwrap_or("it did not say why");
            Ok(Some(format!(
                "e2fsck -p does not repair it ({}): {last}",
                output.status
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_superblock_is_read() {
        let mut bytes = [0; SIZE];
        assert_eq!(Superblock::parse(&bytes), None);
        bytes[MAGIC..][..2].copy_from_slice(&EXT_MAGIC);
        bytes[FEATURES] = 0x38;
        bytes[ERRORS..][..2].copy_from_slice(&[1, 2]);
        let without = Superblock {
            has_journal: false,
            errors: 513,
        };
        assert_eq!(Superblock::parse(&bytes), Some(without));
        bytes[FEATURES] = 0x3c;
        assert!(Superblock::parse(&bytes).unwrap().has_journal);
    }
}
