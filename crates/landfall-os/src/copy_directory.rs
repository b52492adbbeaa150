//! A directory with all that is in it: its copy, its size, and its way to the disk.
//!
//! Bytes are read and written, and nothing is cloned: a reflink (xfs, btrfs) would make the first
//! overwrite of each block a copy. Holes become zeros, and space that was reserved becomes written, so
//! that a redo log costs what it costs a server that has gone through it once.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::Path;

use crate::Stop;

const CHUNK: usize = 1 << 20;

/// Copies what is in the directory `from` into the empty directory `to`, with modes and owners; returns the
/// bytes written. Sockets and other special files are left out. `Interrupted` when `stop` is requested.
pub fn copy_directory(from: &Path, to: &Path, stop: &Stop) -> io::Result<u64> {
    let mut buffer = vec![0; CHUNK];
    copy_into(from, to, &mut buffer, stop)
}

fn copy_into(from: &Path, to: &Path, buffer: &mut [u8], stop: &Stop) -> io::Result<u64> {
    same_owner(from, to)?;
    let mut bytes = 0;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            fs::create_dir(&target)?;
            bytes += copy_into(&source, &target, buffer, stop)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&source)?, &target)?;
        } else if kind.is_file() {
            bytes += copy_file(&source, &target, buffer, stop)?;
        }
    }
    Ok(bytes)
}

fn copy_file(from: &Path, to: &Path, buffer: &mut [u8], stop: &Stop) -> io::Result<u64> {
    let mut source = File::open(from)?;
    let mut target = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to)?;
    let mut bytes = 0;
    loop {
        if stop.is_requested() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let read = match source.read(buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        target.write_all(&buffer[..read])?;
        bytes += read as u64;
    }
    same_owner(from, to)?;
    Ok(bytes)
}

/// A server that is no root's must still be the owner of its files.
fn same_owner(from: &Path, to: &Path) -> io::Result<()> {
    let (wanted, there) = (from.metadata()?, to.metadata()?);
    if (wanted.uid(), wanted.gid()) != (there.uid(), there.gid()) {
        chown(to, Some(wanted.uid()), Some(wanted.gid()))?;
    }
    fs::set_permissions(to, fs::Permissions::from_mode(wanted.mode() & 0o7777))
}

/// Bytes that the files below `directory` take on the disk. A file that goes away meanwhile, as a database's
/// temporary ones do, counts nothing.
pub fn directory_bytes(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let counted = match entry.file_type() {
            Ok(kind) if kind.is_dir() => directory_bytes(&entry.path()),
            Ok(_) => entry.metadata().map(|metadata| metadata.blocks() * 512),
            Err(error) => Err(error),
        };
        bytes += match counted {
            Err(error) if is_gone(&error) => 0,
            counted => counted?,
        };
    }
    Ok(bytes)
}

/// Has the kernel write what it was handed of the files and directories below `directory`, whoever handed it.
/// What goes away meanwhile need not be written.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let synced = match entry.file_type() {
            Ok(kind) if kind.is_dir() => sync_directory(&entry.path()),
            Ok(kind) if kind.is_file() => File::open(entry.path()).and_then(|file| file.sync_all()),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        match synced {
            Err(error) if is_gone(&error) => {}
            synced => synced?,
        }
    }
    File::open(directory)?.sync_all()
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_everything_and_no_holes() {
        let outside = tempfile::tempdir().unwrap();
        let (from, to) = (outside.path().join("from"), outside.path().join("to"));
        fs::create_dir_all(from.join("inner")).unwrap();
        fs::create_dir(&to).unwrap();
        fs::write(from.join("inner/file"), "text").unwrap();
        fs::set_permissions(from.join("inner/file"), fs::Permissions::from_mode(0o640)).unwrap();
        File::create(from.join("sparse"))
            .unwrap()
            .set_len(3 << 20)
            .unwrap();
        std::os::unix::fs::symlink("inner", from.join("link")).unwrap();
        let stop = Stop::default();
        assert_eq!(copy_directory(&from, &to, &stop).unwrap(), (3 << 20) + 4);
        assert_eq!(fs::read_to_string(to.join("link/file")).unwrap(), "text");
        let mode = to.join("inner/file").metadata().unwrap().mode();
        assert_eq!(mode & 0o777, 0o640);
        let written = File::open(to.join("sparse")).unwrap();
        written.sync_all().unwrap();
        assert!(written.metadata().unwrap().blocks() * 512 >= 3 << 20);
        assert!(directory_bytes(&to).unwrap() >= 3 << 20);
        stop.flag()
            .store(true, std::sync::atomic::Ordering::Relaxed);
        let again = outside.path().join("again");
        fs::create_dir(&again).unwrap();
        let stopped = copy_directory(&from, &again, &stop).unwrap_err();
        assert_eq!(stopped.kind(), io::ErrorKind::Interrupted);
    }
}
