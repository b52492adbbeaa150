//! The file of `/dev` that stands for a block device.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A block device of ours by its file.
#[derive(Clone, Debug)]
pub struct BlockNode {
    path: PathBuf,
}

impl BlockNode {
    pub(crate) fn new(path: PathBuf) -> BlockNode {
        BlockNode { path }
    }

    /// Its path, such as `/dev/loop0`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its name, such as `loop0`.
    pub fn name(&self) -> &str {
        self.path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default()
    }

    /// Has the kernel say of the device that it rotates, which some databases and filesystems ask before
    /// they decide what to write. It is forgotten when the device is detached.
    pub fn set_rotational(&self) -> io::Result<()> {
        self.set("rotational", 1)
    }

    /// Has the kernel split requests that are larger, and no others.
    pub fn set_largest_request(&self, bytes: u32) -> io::Result<()> {
        self.set("max_sectors_kb", bytes >> 10)
    }

    /// Whether it has a size, as a device has that is attached.
    pub fn is_attached(&self) -> bool {
        let size = fs::read_to_string(format!("/sys/block/{}/size", self.name()));
        size.is_ok_and(|size| size.trim() != "0")
    }

    fn set(&self, attribute: &str, value: u32) -> io::Result<()> {
        let file = format!("/sys/block/{}/queue/{attribute}", self.name());
        fs::write(file, value.to_string())
    }
}
