//! Whether a filesystem has a journal, as far as the kernel tells.

use std::fs;
use std::path::PathBuf;

use crate::BlockDevice;

/// What the kernel tells of the journal on a device that ext3 or ext4 is on.
pub(crate) fn journal_of(device: &str) -> Option<PathBuf> {
    let stem = format!("{device}-");
    let mut journals = fs::read_dir("/proc/fs/jbd2").ok()?.flatten();
    let entry = journals.find(|entry| entry.file_name().to_string_lossy().starts_with(&stem))?;
    Some(entry.path())
}

/// Whether a filesystem of this type on `device` has a journal; `None` where that is not known.
pub(crate) fn has_journal(kind: &str, device: &BlockDevice) -> Option<bool> {
    match kind {
        "ext3" | "ext4" => {
            // A journal on another device has its entry under that device's name. In a container all of it may be
            // hidden, and then a journal is not told from none.
            let is_there = journal_of(&device.name).is_some() || has_journal_task(&device.name);
            let is_told = is_there || fs::read_dir("/proc/fs/jbd2").is_ok();
            is_told.then_some(is_there)
        }
        "ext2" | "vfat" | "exfat" => Some(false),
        "xfs" => Some(true),
        _ => None,
    }
}

/// Whether ext4 has a kernel thread for a journal, wherever that is.
fn has_journal_task(device: &str) -> bool {
    fs::read_to_string(format!("/sys/fs/ext4/{device}/journal_task"))
        .is_ok_and(|task| task.trim() != "<none>")
}
