//! A file that appears whole or not at all.
//!
//! It is written beside its place, synced, and renamed to it, so that under its name there is what was there
//! before or all of the new content, also after a power cut. Only a plain file may be replaced so: a rename onto a
//! device would take the device's node away from everybody.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Writes a file whole or not at all, in place of a plain file or of nothing. A link is followed. Whatever
/// else is there stays, with [`AlreadyExists`](io::ErrorKind::AlreadyExists).
pub fn write_whole_file(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let path = followed(path)?;
    if !may_be_replaced(&path) {
        let text = format!("{} is no plain file", path.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
    }
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    // For others to read too, as far as the user's umask lets them; a temporary file is private.
    let mut file = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(directory)?;
    write(file.as_file_mut())?;
    file.as_file().sync_all()?;
    file.persist(&path).map_err(|error| error.error)?;
    File::open(directory)?.sync_all()
}

/// Whether a file may be put there by a rename: there is nothing, or a plain file, or a link to one.
pub fn may_be_replaced(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |there| there.is_file())
}

/// Where a link leads to; a link that leads nowhere is replaced itself.
fn followed(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        found => found,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::{FileTypeExt, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    fn write(path: &Path, text: &str) -> io::Result<()> {
        write_whole_file(path, |file| file.write_all(text.as_bytes()))
    }

    #[test]
    fn a_file_is_replaced_where_a_link_leads() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        write(&file, "old").unwrap();
        symlink("file", &link).unwrap();
        write(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(link.symlink_metadata().unwrap().is_symlink());
    }

    #[test]
    fn what_is_no_plain_file_stays() {
        let directory = tempfile::tempdir().unwrap();
        let (socket, link) = (directory.path().join("node"), directory.path().join("link"));
        let _listener = UnixListener::bind(&socket).unwrap();
        symlink("node", &link).unwrap();
        for path in [&socket, &link] {
            assert!(!may_be_replaced(path));
            let error = write(path, "new").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            assert!(error.to_string().ends_with("is no plain file"), "{error}");
        }
        assert!(socket.metadata().unwrap().file_type().is_socket());
        assert!(!may_be_replaced(directory.path()));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_failure_leaves_what_was_there() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        write(&file, "old").unwrap();
        let failed = write_whole_file(&file, |file| {
            file.write_all(b"half")?;
            Err(io::Error::other("full"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "full");
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
