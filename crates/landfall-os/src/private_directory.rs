//! Directories of our own in somebody else's, and what killed programs left of theirs.
//!
//! A [`PrivateDirectory`] is called `.landfall-<process>-<number>` and is locked (`flock`) as long as it
//! is in use. The kernel lets go of the lock when the process is really gone, whoever has its number by
//! then, and a process in another container is seen as well: so what [`abandoned_in`] returns is used by
//! nobody. Nothing may be mounted on the directory itself, which would hide the lock. Only where directories cannot be locked, as on most network filesystems, the number decides:
//! it says nothing of processes of other hosts, so that there nobody else may have one in use.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};

const PREFIX: &str = ".landfall-";
/// A directory that is younger may not have been locked yet.
const YOUNG: Duration = Duration::from_secs(60);
/// How long a process that cannot be seen has to lock what it has just made.
const MOMENT: Duration = Duration::from_millis(100);

/// A directory that nobody else uses; removed with everything in it when dropped.
#[derive(Debug)]
pub struct PrivateDirectory {
    path: PathBuf,
    closed: bool,
    _lock: Option<File>,
}

impl PrivateDirectory {
    /// Makes one in `directory`, which only this user can enter.
    pub fn create_in(directory: &Path) -> io::Result<PrivateDirectory> {
        let process = std::process::id();
        let mut number = 0_u32;
        loop {
            let path = directory.join(name_of(process, number));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    // It waits: who looks for abandoned ones may hold the lock for a moment.
                    let lock = File::open(&path).ok().filter(|file| {
                        retry_on_intr(|| flock(file, FlockOperation::LockExclusive)).is_ok()
                    });
                    return Ok(PrivateDirectory {
                        path,
                        closed: false,
                        _lock: lock,
                    });
                }
                // Another one of this process, or what a killed one of the same number left.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A new directory in it that other users may come to, to mount something on or to run a program
    /// in as one of them. The private directory itself stays unreadable to them.
    pub fn open_directory(&self, name: &str) -> io::Result<PathBuf> {
        fs::set_permissions(&self.path, fs::Permissions::from_mode(0o711))?;
        let path = self.path.join(name);
        fs::create_dir(&path)?;
        Ok(path)
    }

    /// Whether `path` is called as they are.
    pub fn is_named_like_one(path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| owner_of(name).is_some())
    }

    /// Removes it, and says so if that fails.
    pub fn close(mut self) -> io::Result<()> {
        self.closed = true;
        fs::remove_dir_all(&self.path)
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        if !self.closed {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Private directories in `directory` whose process is gone, by name.
pub fn abandoned_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut abandoned = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let owner = name.and_then(owner_of);
        if owner.is_some_and(|process| is_abandoned(&path, process)) {
            abandoned.push(path);
        }
    }
    abandoned.sort();
    Ok(abandoned)
}

fn name_of(process: u32, number: u32) -> String {
    format!("{PREFIX}{process}-{number}")
}

/// The number of the process that made a private directory of that name. What is called otherwise in any way is none.
fn owner_of(name: &str) -> Option<u32> {
    let (process, number) = name.strip_prefix(PREFIX)?.split_once('-')?;
    let (process, number) = (process.parse().ok()?, number.parse().ok()?);
    (name == name_of(process, number)).then_some(process)
}

fn is_abandoned(path: &Path, process: u32) -> bool {
    let has_process = Path::new(&format!("/proc/{process}")).exists();
    // Not through a link, which is none of ours.
    if !path
        .symlink_metadata()
        .is_ok_and(|metadata| metadata.is_dir())
    {
        return false;
    }
    match lock_for_a_moment(path) {
        Ok(()) if is_old(path) => true,
        Ok(()) if has_process => false,
        Ok(()) => {
            // It ended, or is one of another container that is just about to lock it.
            thread::sleep(MOMENT);
            lock_for_a_moment(path).is_ok()
        }
        Err(Errno::WOULDBLOCK) => false,
        Err(_) => !has_process,
    }
}

/// Locks a directory and lets go of it at once, if nobody else has it locked.
fn lock_for_a_moment(path: &Path) -> Result<(), Errno> {
    let file = File::open(path).map_err(|_| Errno::ACCESS)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)
}

fn is_old(path: &Path) -> bool {
    path.metadata()
        .and_then(|metadata| metadata.created().or_else(|_| metadata.modified()))
        .ok()
        .and_then(|made| made.elapsed().ok())
        .is_some_and(|age| age > YOUNG)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No process has it: numbers end at 2^22.
    const NOBODY: u32 = 1 << 30;

    #[test]
    fn a_private_directory_is_in_use_until_it_is_dropped() {
        let outside = tempfile::tempdir().unwrap();
        let first = PrivateDirectory::create_in(outside.path()).unwrap();
        let second = PrivateDirectory::create_in(outside.path()).unwrap();
        assert_ne!(first.path(), second.path());
        assert_eq!(
            abandoned_in(outside.path()).unwrap(),
            [""; 0].map(PathBuf::from)
        );
        fs::write(first.path().join("file"), "text").unwrap();
        drop(first);
        second.close().unwrap();
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_dead_process_left_is_abandoned_unless_it_is_locked() {
        let outside = tempfile::tempdir().unwrap();
        let left = outside.path().join(format!("{PREFIX}{NOBODY}-0"));
        let in_use = outside.path().join(format!("{PREFIX}{NOBODY}-1"));
        for directory in [&left, &in_use, &outside.path().join(".landfall-mine")] {
            fs::create_dir(directory).unwrap();
        }
        // As by a process in another container, whose numbers are not ours.
        let lock = File::open(&in_use).unwrap();
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        assert_eq!(abandoned_in(outside.path()).unwrap(), [left]);
    }

    #[test]
    fn one_that_is_just_being_made_is_left_alone() {
        let outside = tempfile::tempdir().unwrap();
        let made = outside
            .path()
            .join(format!("{PREFIX}{}-0", std::process::id()));
        fs::create_dir(&made).unwrap();
        assert!(abandoned_in(outside.path()).unwrap().is_empty());
        let own = PrivateDirectory::create_in(outside.path()).unwrap();
        assert!(
            own.path()
                .ends_with(format!("{PREFIX}{}-1", std::process::id()))
        );
    }
}
