//! A disk that holds one crash state after the other, with the filesystem that recovers on it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use landfall_os::{Mount, PrivateDirectory};
use landfall_recorder::Recording;
use landfall_recorder::crash::{Composition, CrashDisk, StateName, Walker};
use rustix::fs::StatVfs;

use crate::scratch_fs::{FilesystemSpec, Kind, ext};

/// A disk and a mount point of one's own, for the crash states of one recording. Their epochs never go back.
pub(crate) struct StateDisk<'a> {
    recording: &'a Recording,
    filesystem: &'a FilesystemSpec,
    // Before the mount point, which it may still be mounted on.
    disk: CrashDisk,
    walker: Walker<'a>,
    mount_point: PathBuf,
    // Holds the mount point: goes last.
    private: PrivateDirectory,
}

/// A filesystem that has recovered.
pub(crate) struct Recovered {
    /// Where it is mounted.
    pub mount: Mount,
    /// Errors that it knew of before the cut, which is what an injected fault has left.
    pub known_errors: u32,
}

impl<'a> StateDisk<'a> {
    /// A disk with what the recording began with; what does not fit into `memory` goes to `directory`.
    pub fn new(
        recording: &'a Recording,
        filesystem: &'a FilesystemSpec,
        memory: u64,
        directory: &Path,
    ) -> io::Result<StateDisk<'a>> {
        let private = PrivateDirectory::create_in(directory)?;
        Ok(StateDisk {
            recording,
            filesystem,
            disk: CrashDisk::start(recording, memory, directory)?,
            walker: Walker::new(recording)?,
            mount_point: private.open_directory("state")?,
            private,
        })
    }

    /// Its private directory.
    pub fn private(&self) -> &Path {
        self.private.path()
    }

    /// What says how states are made.
    pub fn walker(&mut self) -> &mut Walker<'a> {
        &mut self.walker
    }

    /// Makes the state, if the power went after the first `events` events, without mounting it.
    pub fn load_before(&mut self, name: &StateName, events: usize) -> io::Result<Composition> {
        let composition = self.walker.composition_before(name, events)?;
        self.disk
            .load(self.recording, name.cut, &composition.pieces)?;
        Ok(composition)
    }

    /// Makes the state, without mounting it.
    pub fn load(&mut self, name: &StateName) -> io::Result<()> {
        self.load_before(name, usize::MAX).map(drop)
    }

    /// Makes what was there when the recording began.
    pub fn load_beginning(&mut self) -> io::Result<()> {
        self.disk.load(self.recording, 0, &[])
    }

    /// Writes the state that was loaded last into a file.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        self.disk.save(path)
    }

    /// Records what is written to the state that was loaded last.
    pub fn record(&mut self) -> io::Result<()> {
        self.disk.record()
    }

    /// Ends that.
    pub fn finish(&mut self) -> io::Result<Recording> {
        self.disk.finish()
    }

    /// Lets the filesystem recover from the state that was loaded last, and mounts it; says what is wrong with it if it does
    /// not recover.
    pub fn recover(&self) -> io::Result<Result<Recovered, String>> {
        let known_errors = match self.recover_without_journal()? {
            Ok(errors) => errors,
            Err(problem) => return Ok(Err(problem)),
        };
        Ok(match self.mount() {
            Ok(mount) => Ok(Recovered {
                mount,
                known_errors,
            }),
            Err(error) => Err(format!("the filesystem cannot be mounted: {error}")),
        })
    }

    /// Mounts the state that was loaded last.
    pub fn mount(&self) -> io::Result<Mount> {
        let spec = self.filesystem;
        let options = beside_others(spec);
        let device = self.disk.device().path();
        Mount::new(device, &self.mount_point, spec.kind.name(), &options)
    }

    /// Repairs a filesystem without a journal, as a system does that boots. Returns how many errors the
    /// filesystem knew of before the cut, or what is wrong with it.
    fn recover_without_journal(&self) -> io::Result<Result<u32, String>> {
        let device = self.disk.device().path();
        let of_ext = matches!(self.filesystem.kind, Kind::Ext2 | Kind::Ext3 | Kind::Ext4);
        let superblock = if of_ext {
            ext::Superblock::of(device)?
        } else {
            None
        };
        match superblock {
            Some(superblock) if !superblock.has_journal => {
                let problem = ext::repair(device)?;
                Ok(problem.map_or(Ok(superblock.errors), Err))
            }
            Some(superblock) => Ok(Ok(superblock.errors)),
            None => Ok(Ok(0)),
        }
    }

    /// Whether the filesystem recovered for good: it can be written to, and has found no error in
    /// itself since. `is_synced`: the probe is, and with it what the filesystem's journal has.
    pub fn filesystem_works(
        &self,
        root: &Path,
        known_errors: u32,
        is_synced: bool,
    ) -> Result<(), String> {
        let probe = root.join(".landfall-probe");
        let write = || {
            let mut file = File::create(&probe)?;
            file.write_all(b"probe")?;
            if is_synced {
                // As any other program's: it commits what the filesystem's journal has of the subject's changes,
                // be their data written or not.
                file.sync_all()?;
            }
            fs::remove_file(&probe)
        };
        match write() {
            // It was full before the cut.
            Err(error) if error.kind() == io::ErrorKind::StorageFull && is_full(root) => Ok(()),
            result => result,
        }
        .map_err(|error| format!("the filesystem cannot be written to: {error}"))?;
        let errors = format!("/sys/fs/ext4/{}/errors_count", self.disk.device().name());
        let count = fs::read_to_string(errors).ok();
        let count: u32 = count.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        match count.saturating_sub(known_errors) {
            0 => Ok(()),
            found => Err(format!("the filesystem found {found} errors in itself")),
        }
    }
}

/// Whether a filesystem may have no room for one more file: some keep a few blocks back, and some want
/// many in one place for it.
pub(crate) fn is_full(root: &Path) -> bool {
    rustix::fs::statvfs(root).is_ok_and(|space| has_no_room(&space))
}

fn has_no_room(space: &StatVfs) -> bool {
    // btrfs has as many files as fit, and says that it has none of none left.
    let has_no_file_left = space.f_files > 0 && space.f_ffree == 0;
    space.f_bavail <= space.f_blocks / 64 || has_no_file_left
}

/// The mount options of a filesystem of which several copies are mounted at the same time.
fn beside_others(spec: &FilesystemSpec) -> String {
    match spec.kind {
        // They all have the same identity, which xfs does not take otherwise.
        Kind::Xfs => format!("{},nouuid", spec.mount_options),
        _ => spec.mount_options.clone(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_filesystem_that_does_not_count_its_files_is_not_full_for_that() {
        let mut space = rustix::fs::statvfs("/").unwrap();
        let mut has_no_room = |blocks, files, files_left| {
            (space.f_blocks, space.f_bavail) = (6400, blocks);
            (space.f_files, space.f_ffree) = (files, files_left);
            super::has_no_room(&space)
        };
        assert!(!has_no_room(101, 1000, 1));
        assert!(has_no_room(101, 1000, 0));
        assert!(has_no_room(100, 1000, 1));
        // As btrfs says.
        assert!(!has_no_room(101, 0, 0));
        assert!(has_no_room(100, 0, 0));
    }
}
