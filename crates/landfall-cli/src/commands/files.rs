//! Files that are written whole or not at all, and whether they can be.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use landfall_lab::Error;

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
    if is_written_in_place(path) {
        return Ok(());
    }
    match tempfile::tempfile_in(parent) {
        Ok(_) => Ok(()),
        Err(_) => wrong(format!("no file can be made in {}", parent.display())),
    }
}

/// Writes a file, or into what is no plain file.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if is_written_in_place(path) {
        return fs::write(path, bytes).map_err(|error| {
            let text = format!("cannot write {}: {error}", path.display());
            Failure::new(Code::Failed, text)
        });
    }
    Ok(replace(path, bytes)?)
}

/// Puts a file there whole or not at all, in place of what was there.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let doing = || format!("cannot write {}", path.display());
    // For others to read too, as far as the user's umask lets them; a temporary file is private.
    let mut file = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(parent(path))
        .map_err(Error::io(doing()))?;
    file.write_all(bytes).map_err(Error::io(doing()))?;
    file.persist(path)
        .map_err(|error| Error::io(doing())(error.error))?;
    Ok(())
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Devices, pipes and links are written to; only a plain file may be replaced by a new one.
fn is_written_in_place(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|metadata| !metadata.is_file())
}
