//! User-mode Linux: a kernel that runs as an ordinary program, in which an ordinary user is root and has loop devices and
//! FUSE. A program runs itself once more inside.
//!
//! Two halves that talk through files in a private directory, which both see, since the root inside is
//! the one outside (hostfs, with the user's own rights), and through a line between them:
//!
//! - outside, [`run`] writes `arguments`, `environment` and `cwd`, starts the kernel with this program as
//!   its first process, passes what comes over the line on to standard error, and in the end returns what `stdout` and
//!   `status` say, and what was [reported](report);
//! - inside, [`init`] mounts what a program expects, loads the two modules, runs the program, writes
//!   `status` and switches off.
//!
//! Ctrl-C reaches the outer half only, which says so over the line; the inner one sends the program what
//! a terminal would have sent. If the outer half is killed the line is silent from the start, or ends,
//! and the inner one removes the directory and switches off.

mod inside;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use landfall_os::{PrivateDirectory, Stop, available_memory};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::Error;

pub use inside::init;

/// What has it.
pub const PACKAGE: &str = "Debian package user-mode-linux";
const KERNEL: &str = "linux.uml";
/// What it says when it cannot set a program's registers, as it ends.
const FAILS_ON_REGISTERS: &str = "put_fp_registers";
/// What that means: Linux 6.1, for one, has room for AVX-512 and not for tiles, and the kernel outside takes all or nothing.
const TOO_MANY_REGISTERS: &str = "this version of User-mode Linux cannot run on this processor, which has more registers than it knows \
    (tiles, AMX): prove as root, or on another machine";
/// Set for the program inside, which then knows that it need not go in once more: the directory that both halves see.
const INSIDE: &str = "LANDFALL_IN_UML";
/// Directories that have other contents inside.
const HIDDEN: [&str; 3] = ["/dev", "/proc", "/sys"];
/// Memory inside, of which half may hold files: the least that it boots with and has room for a
/// recording, and more than any proof needs. What is not touched is not taken.
const MEMORY: (u64, u64) = (512 << 20, 2 << 30);
/// What the outer half says over the line.
const GO_ON: u8 = b'.';
const STOP: u8 = b'!';
const POLL: Duration = Duration::from_millis(50);

/// This program, as it is to run inside.
#[derive(Debug, Default)]
pub struct Guest {
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Arguments of the same program as the first process: what makes its `main` come to [`init`].
    pub init_arguments: Vec<OsString>,
    /// Variables of its environment besides ours, as `NAME=value`.
    pub variables: Vec<OsString>,
    /// Whether what it says to standard error is kept, or else passed on at once.
    pub keeps_stderr: bool,
}

/// How the program inside ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code.
    pub status: i32,
    /// What it wrote to standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error, if that was kept.
    pub stderr: Vec<u8>,
    /// What it [reported](report).
    pub report: Option<String>,
}

/// Whether this is the program inside.
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Whether it is installed.
pub fn is_installed() -> bool {
    program(KERNEL).is_some()
}

/// Inside: hands a text to the outer half, beside what is written to standard output.
pub fn report(text: &str) -> io::Result<()> {
    let shared = std::env::var_os(INSIDE).ok_or(io::ErrorKind::NotFound)?;
    fs::write(Path::new(&shared).join("report"), text)
}

/// Runs this program inside; `stop` is raised by Ctrl-C.
pub fn run(guest: &Guest, stop: &Stop) -> Result<Ended, Error> {
    let kernel = program(KERNEL).ok_or_else(|| {
        Error::Refused(format!(
            "there is no {KERNEL}, the program of User-mode Linux: install {PACKAGE}"
        ))
    })?;
    let temporary = Some(std::env::temp_dir())
        .filter(|path| !HIDDEN.iter().any(|hidden| path.starts_with(hidden)))
        .unwrap_or_else(|| "/tmp".into());
    let shared = PrivateDirectory::create_in(&temporary)
        .map_err(Error::io("cannot make a directory for User-mode Linux"))?;
    hand_over(guest, shared.path()).map_err(Error::io("cannot prepare User-mode Linux"))?;

    let mut child = command(guest, &kernel, shared.path(), &temporary)
        .and_then(|mut command| command.spawn())
        .map_err(Error::io("cannot start User-mode Linux"))?;
    let group = Pid::from_child(&child);
    let mut line = child.stdin.take();
    let progress = child.stderr.take();
    let progress =
        progress.map(|mut pipe| std::thread::spawn(move || io::copy(&mut pipe, &mut io::stderr())));
    let ended = loop {
        match has_ended(group) {
            Ok(false) => {}
            Ok(true) => break Ok(()),
            Err(error) => break Err(error),
        }
        // Again and again: what comes before the inner half listens is lost.
        let word = if stop.flag().load(Ordering::Relaxed) {
            STOP
        } else {
            GO_ON
        };
        let _ = line.as_mut().map(|line| line.write_all(&[word]));
        std::thread::sleep(POLL);
    };
    // Its helpers, if it was killed: they would keep the pipe open.
    let _ = kill_process_group(group, Signal::KILL);
    let ended = ended.and(child.wait());
    if let Some(progress) = progress {
        let _ = progress.join();
    }
    ended.map_err(Error::io("cannot wait for User-mode Linux"))?;
    let mut stderr = fs::read(shared.path().join("stderr")).unwrap_or_default();
    if !guest.keeps_stderr {
        // If standard error is gone there is nobody to tell.
        let _ = io::stderr().write_all(&stderr);
        stderr.clear();
    }
    let status = fs::read_to_string(shared.path().join("status"));
    let Some(status) = status.ok().and_then(|status| status.parse().ok()) else {
        return Err(if stop.is_requested() {
            Error::Stopped
        } else {
            ended_early(shared.path())
        });
    };
    let stdout = fs::read(shared.path().join("stdout"));
    Ok(Ended {
        status,
        stdout: stdout.map_err(Error::io("cannot read the results"))?,
        stderr,
        report: fs::read_to_string(shared.path().join("report")).ok(),
    })
}

/// Whether a child has ended. It is not waited for: until that is done its number is nobody else's, nor that of its group.
fn has_ended(child: Pid) -> io::Result<bool> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Ok(waitid(WaitId::Pid(child), options)?.is_some())
}

/// Leaves in `shared` what the inner half needs.
fn hand_over(guest: &Guest, shared: &Path) -> io::Result<()> {
    // Named by a link, since a path on the kernel's command line should have no spaces in it.
    std::os::unix::fs::symlink(std::env::current_exe()?, shared.join("init"))?;
    fs::write(
        shared.join("cwd"),
        std::env::current_dir()?.as_os_str().as_bytes(),
    )?;
    write_list(&shared.join("arguments"), &guest.arguments)?;
    let mut environment: Vec<OsString> = std::env::vars_os()
        .filter(|(name, _)| name != "TMPDIR")
        .map(|(name, value)| joined(&name, &value))
        .collect();
    environment.push("TMPDIR=/dev/shm".into());
    environment.extend(guest.variables.iter().cloned());
    environment.push(joined(OsStr::new(INSIDE), shared.as_os_str()));
    if io::stdout().is_terminal() {
        // Inside it is a file.
        environment.push("CLICOLOR_FORCE=1".into());
    }
    if guest.keeps_stderr || !io::stderr().is_terminal() {
        // Then a file, for which no progress is drawn.
        File::create(shared.join("stderr"))?;
    }
    if let Ok(size) = rustix::termios::tcgetwinsize(io::stderr()) {
        environment.push(format!("COLUMNS={}", size.ws_col).into());
        environment.push(format!("LINES={}", size.ws_row).into());
    }
    write_list(&shared.join("environment"), &environment)
}

/// How the kernel is started.
fn command(guest: &Guest, kernel: &Path, shared: &Path, temporary: &Path) -> io::Result<Command> {
    let memory = (available_memory()? / 2).clamp(MEMORY.0, MEMORY.1);
    // Its memory is a file, which dies of a bus error when it does not fit.
    let fits = |directory: &Path| {
        rustix::fs::statvfs(directory).is_ok_and(|space| space.f_bavail * space.f_frsize >= memory)
    };
    let in_memory = Path::new("/dev/shm");
    let memory_file = if fits(in_memory) {
        in_memory
    } else {
        temporary
    };
    let mut command = Command::new(kernel);
    command
        .arg(format!("mem={}M", memory >> 20))
        .args(["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw"])
        .args(["quiet", "loglevel=1", "umid=landfall"])
        .args(["con=null", "con0=null,fd:1", "con1=fd:0,fd:2"])
        .arg(joined(OsStr::new("uml_dir"), shared.as_os_str()))
        .arg(joined(OsStr::new("init"), shared.join("init").as_os_str()))
        .arg("--")
        .args(&guest.init_arguments)
        .env("TMPDIR", memory_file)
        .env("HOME", shared)
        .stdin(Stdio::piped())
        .stdout(File::create(shared.join("boot"))?)
        .stderr(Stdio::piped())
        // Ctrl-C at the terminal would end it at once.
        .process_group(0);
    Ok(command)
}

/// There is no status: what the inner half or the kernel said last.
fn ended_early(shared: &Path) -> Error {
    let said = fs::read(shared.join("boot")).unwrap_or_default();
    if String::from_utf8_lossy(&said).contains(FAILS_ON_REGISTERS) {
        return Error::Refused(TOO_MANY_REGISTERS.to_owned());
    }
    let last_line = |name: &str| {
        let text = fs::read_to_string(shared.join(name)).ok()?;
        let line = text.lines().rfind(|line| !line.trim().is_empty())?;
        Some(line.trim().to_owned())
    };
    let why = last_line("failure")
        .or_else(|| last_line("boot"))
        .unwrap_or_else(|| "it said nothing".into());
    Error::io("User-mode Linux ended before the proof was done")(io::Error::other(why))
}

/// A program on the search path.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|file| file.is_file())
}

fn joined(name: &OsStr, value: &OsStr) -> OsString {
    [name, OsStr::new("="), value].into_iter().collect()
}

/// Words cannot hold a NUL, so it ends them.
fn write_list(path: &Path, words: &[OsString]) -> io::Result<()> {
    let mut bytes = Vec::new();
    for word in words {
        bytes.extend_from_slice(word.as_bytes());
        bytes.push(0);
    }
    fs::write(path, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_has_ended_is_seen_and_not_waited_for() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let own = Pid::from_child(&child);
        assert!(!has_ended(own).unwrap());
        child.kill().unwrap();
        while !has_ended(own).unwrap() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(has_ended(own).unwrap());
        assert!(!child.wait().unwrap().success());
    }
}
