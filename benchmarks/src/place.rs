//! Where a store is: directories that are removed, their size, the page cache, and what was written.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::Advice;

use crate::Fallible;

/// A directory that is removed when this is dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(parent: &Path, name: &str) -> Fallible<Scratch> {
        let path = parent.join(format!("stores-{}-{name}", std::process::id()));
        let made = fs::create_dir(&path);
        made.map_err(|error| format!("cannot make {}: {error}", path.display()))?;
        Ok(Scratch(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("cannot remove {}: {error}", self.0.display());
        }
    }
}

/// Calls for each file below a directory.
fn files(directory: &Path, each: &mut dyn FnMut(&Path) -> Fallible<()>) -> Fallible<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            files(&path, each)?;
        } else {
            each(&path)?;
        }
    }
    Ok(())
}

/// Bytes that the files take on the disk, without what was allocated behind their ends.
pub fn size(directory: &Path) -> Fallible<u64> {
    let mut bytes = 0;
    files(directory, &mut |path| {
        let file = fs::metadata(path)?;
        bytes += file.len().min(file.blocks() * 512);
        Ok(())
    })?;
    Ok(bytes)
}

/// Writes out all that the kernel has of a directory's filesystem.
pub fn write_out(directory: &Path) -> Fallible<()> {
    Ok(rustix::fs::syncfs(File::open(directory)?)?)
}

/// Takes the files out of the page cache; as root, everything.
pub fn forget(directory: &Path, drop_caches: bool) -> Fallible<()> {
    write_out(directory)?;
    if drop_caches {
        let dropped = fs::write("/proc/sys/vm/drop_caches", "3");
        dropped.map_err(|error| format!("--drop-caches needs root: {error}"))?;
    }
    files(directory, &mut |path| {
        Ok(rustix::fs::fadvise(
            File::open(path)?,
            0,
            None,
            Advice::DontNeed,
        )?)
    })
}

/// What counts the bytes that are written.
pub enum Meter {
    /// The statistics of a block device, to which others may write as well.
    Device(PathBuf),
    /// The kernel's count of what this process has made dirty: more than is written, where it counts by large folios.
    Process,
}

impl Meter {
    /// The device of this name, or the one that a directory is on, if it is on one.
    pub fn new(device: Option<&str>, directory: &Path) -> Fallible<Meter> {
        let Some(name) = device else {
            let number = fs::metadata(directory)?.dev();
            let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
            let path = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"));
            return Ok(if path.exists() {
                Meter::Device(path)
            } else {
                Meter::Process
            });
        };
        let path = PathBuf::from(format!("/sys/class/block/{name}/stat"));
        if path.exists() {
            Ok(Meter::Device(path))
        } else {
            Err(format!("there is no block device '{name}'").into())
        }
    }

    /// Who is counted.
    pub fn name(&self) -> &'static str {
        match self {
            Meter::Device(_) => "device",
            Meter::Process => "process",
        }
    }

    /// Bytes so far.
    pub fn bytes(&self) -> Fallible<u64> {
        let (count, unit) = match self {
            Meter::Device(path) => {
                let text = fs::read_to_string(path)?;
                let sectors = text.split_whitespace().nth(6).map(str::parse::<u64>);
                (sectors, 512)
            }
            Meter::Process => {
                let text = fs::read_to_string("/proc/self/io")?;
                let line = text
                    .lines()
                    .find_map(|line| line.strip_prefix("write_bytes: "));
                (line.map(str::parse), 1)
            }
        };
        Ok(count.ok_or("the kernel does not tell what was written")?? * unit)
    }
}
