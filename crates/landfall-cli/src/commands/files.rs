//! Files that are written whole or not at all, and whether they can be.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use landfall_os::{may_be_replaced, write_whole_file};

use crate::exit::{Code, Failure};

/// Whether a file can be put there; what is there already stays as it is until there are results.
pub fn check_file(path: &Path) -> Result<(), Failure> {
    let wrong = |reason: String| {
        let text = format!("cannot write {}: {reason}", path.display());
        Err(Failure::new(Code::Usage, text))
    };
    let parent = parent(path);
    if path.is_dir() {
        return wrong("it is a directory".into());
    }
    if !parent.is_dir() {
        return wrong(format!("there is no directory {}", parent.display()));
    }
    if !may_be_replaced(path) {
        return Ok(());
    }
    match tempfile::tempfile_in(parent) {
        Ok(_) => Ok(()),
        Err(_) => wrong(format!("no file can be made in {}", parent.display())),
    }
}

/// The same for what only a file can hold: a recording, an image.
pub fn check_plain_file(path: &Path) -> Result<(), Failure> {
    let is_file = path != Path::new("-") && may_be_replaced(path);
    if is_file {
        return check_file(path);
    }
    let text = format!(
        "cannot write {}: only a plain file can hold a recording or an image; name one, or a new one",
        path.display()
    );
    Err(Failure::new(Code::Usage, text))
}

/// Writes a file; into a device or a pipe what it is to get.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if !may_be_replaced(path) {
        return fs::write(path, bytes).map_err(|error| unwritten(path, &error));
    }
    replace(path, bytes)
}

/// Puts a file there whole or not at all, in place of what was there.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_whole_file(path, |file| file.write_all(bytes)).map_err(|error| unwritten(path, &error))
}

/// Also where the disk is full: what there was to be measured was measured.
fn unwritten(path: &Path, error: &io::Error) -> Failure {
    let text = format!("cannot write {}: {error}", path.display());
    Failure::new(Code::Failed, text)
}

/// Whether two names are of one file, which need not be there, however its directory is written and whatever links lead to it; `-` is
/// no file.
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    let full = |path: &Path| -> Option<PathBuf> {
        let name = path.file_name().filter(|_| path != Path::new("-"))?;
        let linked = path.canonicalize();
        linked
            .or_else(|_| Ok::<_, io::Error>(parent(path).canonicalize()?.join(name)))
            .ok()
    };
    a == b || full(a).is_some_and(|a| full(b) == Some(a))
}

/// The directory of a file.
pub fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_under_what_is_written_refuses_no_target() {
        let full = unwritten(Path::new("out"), &io::ErrorKind::StorageFull.into());
        assert_eq!(full.code, Code::Failed);
        assert!(full.text.starts_with("cannot write out: "), "{}", full.text);
    }

    #[test]
    fn one_file_has_many_names() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("in")).unwrap();
        let file = directory.path().join("out");
        for same in ["out", "./out", "in/../out"] {
            assert!(is_same_file(&file, &directory.path().join(same)), "{same}");
        }
        for other in ["in/out", "other", "none/../out"] {
            assert!(
                !is_same_file(&file, &directory.path().join(other)),
                "{other}"
            );
        }
        fs::write(&file, "").unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(is_same_file(&file, &link) && is_same_file(&link, &link));
        let here = std::env::current_dir().unwrap();
        assert!(is_same_file(Path::new("out"), &here.join("out")));
        assert!(!is_same_file(Path::new("-"), &here.join("-")));
        assert!(is_same_file(Path::new("-"), Path::new("-")));
    }
}
