//! Which files lie where on a recorded device, as far as the order in which crash states are tried is concerned.
//!
//! The filesystem is mounted as it was at the end of the recording and as it was when it began, and asked for the blocks of
//! each file below the subject's directory. A file that came and went between is not known, and neither is any file of a
//! filesystem that does not tell, or that says where a file lies in addresses of its own, as btrfs does: their writes
//! count as the filesystem's. What is not known makes the order worse, and nothing wrong: of a list that is dealt out to
//! several machines a digest shows whether all of them knew the same.

use std::fs::File;
use std::io;
use std::path::Path;

use fiemap::{Fiemap, FiemapExtentFlags};
use landfall_recorder::crash::Stretch;

/// The blocks of the files below `root`, with the kind of file that each is: its path from there, in which numbers make no
/// difference.
pub(crate) fn files_below(root: &Path) -> io::Result<Vec<Stretch>> {
    let mut found = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            if kind.is_dir() {
                directories.push(path);
            } else if kind.is_file() {
                let name = path.strip_prefix(root).unwrap_or(&path);
                let name = without_numbers(&name.to_string_lossy());
                found.extend(stretches(&File::open(&path)?, &name)?);
            }
        }
    }
    Ok(found)
}

/// The stretches of the device that a file of this kind has.
fn stretches(file: &File, name: &str) -> io::Result<Vec<Stretch>> {
    let nowhere = FiemapExtentFlags::UNKNOWN | FiemapExtentFlags::DATA_INLINE;
    let mut stretches = Vec::new();
    for extent in Fiemap::new(file) {
        let extent = extent?;
        if !extent.fe_flags.intersects(nowhere) {
            let (start, len) = (extent.fe_physical, extent.fe_length);
            stretches.push(Stretch {
                bytes: start..start.saturating_add(len),
                from: extent.fe_logical,
                file: name.to_owned(),
            });
        }
    }
    Ok(stretches)
}

/// A name in which each number, decimal or a long one in hexadecimal, is `#`: files that differ in nothing else are of the
/// same kind.
fn without_numbers(name: &str) -> String {
    let is_hex = |word: &str| word.len() >= 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut words = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let is_word = first.is_ascii_alphanumeric();
        let end = rest
            .find(|next: char| next.is_ascii_alphanumeric() != is_word)
            .unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if is_word && is_hex(word) {
            words.push('#');
        } else {
            let mut is_in_number = false;
            for letter in word.chars() {
                if !letter.is_ascii_digit() {
                    words.push(letter);
                } else if !is_in_number {
                    words.push('#');
                }
                is_in_number = letter.is_ascii_digit();
            }
        }
        rest = after;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_differ_in_a_number_are_of_the_same_kind() {
        for (name, kind) in [
            ("base/16384/2619_fsm", "base/#/#_fsm"),
            ("pg_wal/00000001000000000000000A", "pg_wal/#"),
            ("000012.sst", "#.sst"),
            ("ib_logfile0", "ib_logfile#"),
            ("member/snap/db", "member/snap/db"),
            ("0000000000000001-deadbeef.wal", "#-#.wal"),
            ("überall.db-wal", "überall.db-wal"),
        ] {
            assert_eq!(without_numbers(name), kind);
        }
    }

    #[test]
    fn a_file_has_blocks_where_the_filesystem_tells() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("7.data");
        std::fs::write(&path, vec![1; 100_000]).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        // Not every filesystem that a test may run on tells.
        if let Ok(found) = files_below(directory.path())
            && !found.is_empty()
        {
            assert!(found.iter().all(|stretch| stretch.file == "#.data"));
            let mut end = 0;
            for Stretch { bytes, from, .. } in found {
                assert_eq!(from, end, "what follows lies where the file goes on");
                end += bytes.end - bytes.start;
            }
            assert!(end >= 100_000);
        }
    }
}
