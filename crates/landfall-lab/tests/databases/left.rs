//! Whether anything was left behind.

use std::fs;
use std::path::Path;

/// No process that was told of `directory`, and no private directory of this process.
pub fn assert_nothing(directory: &Path) {
    let directory = directory.to_string_lossy();
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let command = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        assert!(!command.contains(&*directory), "still there: {command}");
    }
    let ours = format!(".landfall-{}-", std::process::id());
    for entry in fs::read_dir(std::env::temp_dir()).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(!name.starts_with(&ours), "{name} was left behind");
    }
}
