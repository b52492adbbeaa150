//! Removing what killed runs left: private directories, and what still hangs on them.
//!
//! A run that is killed takes its mounts and devices with it: its private directories are all that it
//! leaves. More is there only if another program of the run lives on, or if something hangs.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use landfall_os::{AttachedLoop, abandoned_in, attached_loops, mounts_under, unmount};

use crate::{Error, canonical_directory};

/// What was there, in a few words each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// What was removed, or would be.
    pub removed: Vec<String>,
    /// What could not be removed, and why.
    pub left: Vec<String>,
}

/// Removes from `directories` what killed runs left there; with `dry_run` only says what that is.
pub fn clean(directories: &[PathBuf], dry_run: bool) -> Result<Cleaned, Error> {
    // Nothing is removed in one if another cannot be opened: then what was removed would not be said.
    let (mut seen, mut abandoned) = (Vec::new(), Vec::new());
    for directory in directories {
        let directory = canonical_directory(directory)?;
        if seen.contains(&directory) {
            continue;
        }
        let doing = format!("cannot look into {}", directory.display());
        let found = abandoned_in(&directory).map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied => Error::Refused(format!("{doing}: {error}")),
            _ => Error::io(doing)(error),
        });
        abandoned.extend(found?);
        seen.push(directory);
    }
    let mut cleaned = Cleaned::default();
    for path in abandoned {
        cleaned.one(&path, dry_run);
    }
    Ok(cleaned)
}

impl Cleaned {
    /// A directory and everything on it, the outermost first.
    fn one(&mut self, path: &Path, dry_run: bool) {
        let troubles = self.left.len();
        let mounts = mounts_under(path).unwrap_or_default();
        for mount in &mounts {
            let what = format!("the mount {}", mount.display());
            self.tried(what, dry_run, || unmount(mount));
        }
        let devices = attached_loops().unwrap_or_default();
        for device in devices.iter().filter(|device| device.is_in(path)) {
            self.device(device, dry_run);
        }
        if self.left.len() > troubles {
            return;
        }
        let would_be_unmounted = dry_run && !mounts.is_empty();
        if let Some(holder) = holder(path).filter(|_| !would_be_unmounted) {
            let text = format!("{} is in use by {holder}: end that first", path.display());
            self.left.push(text);
            return;
        }
        self.tried(path.display().to_string(), dry_run, || {
            fs::remove_dir_all(path)
        });
    }

    fn device(&mut self, device: &AttachedLoop, dry_run: bool) {
        let abort = device.fuse_abort().filter(|file| file.exists());
        if let Some(file) = abort {
            let what = format!("the hanging server of {}", device.path().display());
            self.tried(what, dry_run, || fs::write(&file, "1"));
        }
        let what = device.path().display().to_string();
        self.tried(what, dry_run, || device.detach());
    }

    fn tried(&mut self, what: String, dry_run: bool, remove: impl FnOnce() -> io::Result<()>) {
        let result = if dry_run { Ok(()) } else { remove() };
        match result {
            Ok(()) => self.removed.push(what),
            Err(error) => self.left.push(format!("{what} cannot be removed: {error}")),
        }
    }
}

/// A process that has something mounted in the directory: `process 4711 (mysqld)`.
fn holder(path: &Path) -> Option<String> {
    let inside = format!("{}/", path.display());
    let processes = fs::read_dir("/proc").ok()?;
    processes.flatten().find_map(|process| {
        let number: u32 = process.file_name().to_str()?.parse().ok()?;
        let mounts = fs::read_to_string(process.path().join("mountinfo")).ok()?;
        if !mounts.contains(&inside) {
            return None;
        }
        let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        Some(format!("process {number} ({})", name.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_dead_process_left_is_removed_and_nothing_else() {
        let outside = tempfile::tempdir().unwrap();
        let outside = outside.path().canonicalize().unwrap();
        // No process has this number: they end at 2^22.
        let left = outside.join(".landfall-1073741824-0");
        let others = [
            "mine",
            ".landfall-mine",
            ".landfall-1073741824-backup",
            ".landfall-1073741824-0.old",
            ".landfall-1073741824-01",
            ".landfall-+1073741824-0",
        ];
        let others = others.map(|name| outside.join(name));
        for directory in others.iter().chain([&left]) {
            fs::create_dir(directory).unwrap();
            fs::write(directory.join("image"), "data").unwrap();
        }
        let twice = [outside.clone(), outside.clone()];
        let found = Cleaned {
            removed: vec![left.display().to_string()],
            left: Vec::new(),
        };
        assert_eq!(clean(&twice, true).unwrap(), found);
        assert!(left.exists());
        let beside_nothing = [outside.clone(), outside.join("nowhere")];
        assert!(clean(&beside_nothing, false).is_err());
        assert!(left.exists());
        assert_eq!(clean(&twice, false).unwrap(), found);
        assert!(!left.exists() && others.iter().all(|other| other.exists()));
        assert_eq!(clean(&twice, false).unwrap(), Cleaned::default());
        assert!(clean(&[outside.join("nowhere")], false).is_err());
    }
}
