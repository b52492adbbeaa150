//! Whether anything was left behind.

use std::fs;
use std::path::Path;

/// A process that was told of `directory`.
pub fn process_with(directory: &Path) -> Option<String> {
    let directory = directory.to_string_lossy();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut commands = processes.map(|process| {
        let command = fs::read(process.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).replace('\0', " ")
    });
    commands.find(|command| command.contains(&*directory))
}

/// No process that was told of `directory`, and no private directory of this process.
pub fn assert_nothing(directory: &Path) {
    assert_eq!(process_with(directory), None);
    let ours = format!(".landfall-{}-", std::process::id());
    for entry in fs::read_dir(std::env::temp_dir()).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(!name.starts_with(&ours), "{name} was left behind");
    }
}
