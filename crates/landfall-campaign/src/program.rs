//! Runs the program for a task, and the directory that it works in.
//!
//! Threads: the caller's, which waits. The program ends with it, however it ends.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use landfall_os::{Stop, end_with_this_thread};
use rustix::process::{Pid, Signal, kill_process};

use crate::Error;

/// How often a running program is looked at.
const GLANCE: Duration = Duration::from_millis(20);
/// Stopped by a signal.
const STOPPED: i32 = 130;

/// How a program ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// What it complained of, in one line.
    pub complaint: String,
}

/// Runs `program` with these words, and waits for it; what it prints is not wanted. Stopped, it is told so, and waited for.
pub fn run_program(program: &Path, words: &[String], stop: &Stop) -> Result<Ended, Error> {
    let cannot = || Error::io("run", program);
    let complaints =
        tempfile::tempfile().map_err(Error::io("make a file in", &std::env::temp_dir()))?;
    let stderr = complaints.try_clone().map_err(cannot())?;
    let mut command = Command::new(program);
    command
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr)
        // Ctrl-C at a terminal would tell it a second time, which means that it is to end without cleaning up.
        .process_group(0);
    end_with_this_thread(&mut command, Signal::TERM);
    let mut child = command.spawn().map_err(cannot())?;
    let mut is_told = false;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(cannot())? {
            break status;
        }
        if stop.is_requested() && !is_told {
            is_told = true;
            // If it has ended meanwhile there is nobody to tell.
            let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        }
        std::thread::sleep(GLANCE);
    };
    if stop.is_requested() || status.code() == Some(STOPPED) {
        return Err(Error::Stopped);
    }
    Ok(Ended {
        code: status.code(),
        complaint: complaint(complaints, status),
    })
}

/// What a program complained of, in one line: that in which it says so, or its last.
fn complaint(mut said: fs::File, status: ExitStatus) -> String {
    use std::io::{Read, Seek};
    /// Characters that are enough.
    const MOST: usize = 1000;
    let mut bytes = Vec::new();
    let read = said.rewind().and_then(|()| said.read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let said = |line: &str| {
        let words = line
            .strip_prefix("landfall: ")
            .or_else(|| line.strip_prefix("error: "));
        words.map(str::to_owned)
    };
    let line = lines
        .clone()
        .find_map(said)
        .or_else(|| lines.next_back().map(str::to_owned));
    match (read, line) {
        (Ok(_), Some(line)) => line.chars().take(MOST).collect(),
        _ => format!("it ended with {status} and said nothing"),
    }
}

/// Makes the directory in which recordings are kept, or finds that it is this user's: whoever else can write there could
/// have root mount what he likes.
pub fn own_directory(work: &Path) -> Result<(), Error> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(work);
    made.map_err(Error::io("make directory", work))?;
    let found = fs::metadata(work).map_err(Error::io("look at", work))?;
    if found.uid() != rustix::process::geteuid().as_raw() || found.mode() & 0o022 != 0 {
        return Err(Error::Usage(format!(
            "others can write to {}: name a directory of your own with --work",
            work.display()
        )));
    }
    Ok(())
}
