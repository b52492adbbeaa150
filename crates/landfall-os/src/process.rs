//! A program that was started here, and everything that it started.
//!
//! It has a process group of its own, and whatever is left of the group when the program ends, or is no
//! longer wanted, is killed: nothing may hold on to a filesystem that is to be unmounted. Signals go to
//! that group only, and only until its first process has been waited for, so that they never reach
//! anybody else's. A program that leaves the group (a daemon) is out of reach.
//!
//! What it prints goes to memory; of standard error only the end is kept.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open, test_kill_process_group,
};

/// Bytes of standard error of which none is kept.
const TOO_MUCH: u64 = 1 << 20;
/// As much of its end is looked at.
const TAIL: u64 = 4096;
/// How long those that were killed are waited for: a process that was killed ends when the kernel has done
/// what it had in flight for it, and more than this is a disk that does not answer.
const DYING: Duration = Duration::from_secs(60);

/// A running program; killed, with all that it started, when dropped.
pub struct Process {
    child: Child,
    /// Readable once the program has ended.
    ended: OwnedFd,
    group: Pid,
    stdout: File,
    stderr: File,
    is_over: bool,
}

impl Process {
    /// Starts it, with nothing to read.
    pub fn start(command: &mut Command) -> io::Result<Process> {
        Process::start_with(command, Stdio::null())
    }

    /// Starts it with this standard input.
    pub fn start_with(command: &mut Command, stdin: Stdio) -> io::Result<Process> {
        let memory = |name| memfd_create(name, MemfdFlags::CLOEXEC).map(File::from);
        let (stdout, stderr) = (memory("stdout")?, memory("stderr")?);
        let mut child = command
            .process_group(0)
            .stdin(stdin)
            .stdout(stdout.try_clone()?)
            .stderr(stderr.try_clone()?)
            .spawn()?;
        let group = Pid::from_child(&child);
        let ended = pidfd_open(group, PidfdFlags::empty()).inspect_err(|_| {
            let _ = child.kill();
            let _ = child.wait();
        })?;
        Ok(Process {
            child,
            ended,
            group,
            stdout,
            stderr,
            is_over: false,
        })
    }

    /// Waits until the program has ended, but no longer than `most`. Then whatever it started is killed.
    pub fn wait(&mut self, most: Duration) -> io::Result<Option<ExitStatus>> {
        let timeout = Timespec::try_from(most).unwrap_or(Timespec {
            tv_sec: i64::MAX,
            tv_nsec: 0,
        });
        let mut events = [PollFd::new(&self.ended, PollFlags::IN)];
        match poll(&mut events, Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => self.bound_stderr().map(|()| None),
            Ok(_) => self.end().map(Some),
            Err(error) => Err(error.into()),
        }
    }

    /// Asks the program, and what it started, to end.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Asks the program to end, and not what it started.
    pub fn terminate_alone(&self) {
        if !self.is_over {
            // Without anybody to get it there is nothing to do.
            let _ = kill_process(self.group, Signal::TERM);
        }
    }

    /// Kills them; they are still to be waited for.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Sends them SIGINT, which some servers take for an order to end without waiting for their clients.
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Sends them SIGQUIT, which some servers take for an order to end at once.
    pub fn quit(&self) {
        self.signal(Signal::QUIT);
    }

    /// Bytes of standard output so far.
    pub fn stdout_len(&self) -> io::Result<u64> {
        Ok(self.stdout.metadata()?.len())
    }

    /// Bytes of standard error so far, those that were forgotten included.
    pub fn stderr_len(&self) -> io::Result<u64> {
        Ok(self.stderr.metadata()?.len())
    }

    /// Standard output so far.
    pub fn stdout(&self) -> io::Result<Vec<u8>> {
        read_from(&self.stdout, 0)
    }

    /// Its number, which is nobody else's as long as this is there and has not said that it ended.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The last line of standard error that says something.
    pub fn last_words(&self) -> Option<String> {
        let mut lines = self.stderr_lines(TAIL).ok()?;
        lines.pop()
    }

    /// The lines that say something among the last `most` bytes of standard error.
    pub fn stderr_lines(&self, most: u64) -> io::Result<Vec<String>> {
        last_lines_of(&self.stderr, most)
    }

    /// The lines that say something among the last `most` bytes of standard output.
    pub fn stdout_lines(&self, most: u64) -> io::Result<Vec<String>> {
        last_lines_of(&self.stdout, most)
    }

    fn signal(&self, signal: Signal) {
        if !self.is_over {
            // Without anybody to get it there is nothing to do.
            let _ = kill_process_group(self.group, signal);
        }
    }

    /// Kills what is left, and waits for it.
    fn end(&mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        self.is_over = true;
        let status = self.child.wait()?;
        let begin = Instant::now();
        // They are not our children, so all that can be seen is whether they are there.
        while is_alive(self.group) && begin.elapsed() < DYING {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(status)
    }

    /// Forgets standard error when there is much of it. The program goes on where it was, behind a hole
    /// that takes no memory.
    fn bound_stderr(&self) -> io::Result<()> {
        if self.stderr.metadata()?.blocks() * 512 > TOO_MUCH {
            self.stderr.set_len(0)
        } else {
            Ok(())
        }
    }
}

/// Whether any process of the group still runs. One that has ended is seen until somebody takes note of its
/// end, which where nobody does is for ever: it is not counted. Without /proc none can be told from the
/// other, and none is waited for.
fn is_alive(group: Pid) -> bool {
    if test_kill_process_group(group).is_err() {
        return false;
    }
    let Ok(processes) = procfs::process::all_processes() else {
        return false;
    };
    let group = group.as_raw_nonzero().get();
    let mut stats = processes
        .flatten()
        .filter_map(|process| process.stat().ok());
    // The first thread of several is seen as ended while others of them still run.
    stats.any(|stat| {
        stat.pgrp == group && (!matches!(stat.state, 'Z' | 'X') || stat.num_threads > 1)
    })
}

/// The lines that say something among the last `most` bytes.
fn last_lines_of(file: &File, most: u64) -> io::Result<Vec<String>> {
    let start = file.metadata()?.len().saturating_sub(most);
    let bytes = read_from(file, start)?;
    let text = String::from_utf8_lossy(&bytes);
    // Zeros are where standard error was forgotten.
    let lines = text
        .lines()
        .map(|line| line.trim_matches(['\0', ' ', '\t', '\r']));
    Ok(lines
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect())
}

/// Reads what there is from `start` on. The program writes at the position of the same descriptor, which
/// must not move.
fn read_from(file: &File, start: u64) -> io::Result<Vec<u8>> {
    let len = file.metadata()?.len().saturating_sub(start);
    let mut bytes = vec![0; usize::try_from(len).map_err(io::Error::other)?];
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], start + read as u64)? {
            0 => break,
            some => read += some,
        }
    }
    bytes.truncate(read);
    Ok(bytes)
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.is_over {
            let _ = self.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Process {
        Process::start(Command::new("sh").args(["-c", script])).unwrap()
    }

    fn outcome(process: &mut Process) -> ExitStatus {
        process.wait(Duration::from_secs(600)).unwrap().unwrap()
    }

    #[test]
    fn what_a_program_prints_is_read() {
        let mut process = shell("echo out; echo first >&2; echo last >&2; echo >&2; exit 3");
        assert_eq!(outcome(&mut process).code(), Some(3));
        assert_eq!(process.stdout().unwrap(), b"out\n");
        assert_eq!(process.stdout_len().unwrap(), 4);
        assert_eq!(process.last_words().unwrap(), "last");
        assert_eq!(shell("true").last_words(), None);
    }

    #[test]
    fn a_program_that_goes_on_is_waited_for_no_longer_than_asked() {
        let mut process = shell("exec sleep 600");
        assert_eq!(process.wait(Duration::from_millis(1)).unwrap(), None);
        process.terminate();
        assert!(!outcome(&mut process).success());
    }

    /// Whether a process is there, and no zombie.
    fn runs(pid: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        stat.is_ok_and(|stat| !stat.contains(") Z"))
    }

    fn first_line(process: &mut Process) -> String {
        loop {
            let text = String::from_utf8(process.stdout().unwrap()).unwrap();
            if text.ends_with('\n') {
                return text;
            }
            process.wait(Duration::from_millis(1)).unwrap();
        }
    }

    #[test]
    fn what_it_started_ends_with_it() {
        let mut process = shell("sleep 600 & echo $!");
        outcome(&mut process);
        let pid = String::from_utf8(process.stdout().unwrap()).unwrap();
        assert!(!runs(&pid));
    }

    #[test]
    fn what_is_dropped_is_killed_even_if_it_does_not_want_to() {
        let mut process = shell("trap '' TERM; sleep 600 & echo $!; wait");
        let pid = first_line(&mut process);
        assert!(runs(&pid));
        process.terminate();
        drop(process);
        assert!(!runs(&pid));
    }

    #[test]
    fn of_much_on_standard_error_the_end_is_kept() {
        let mut process = shell(
            "trap 'echo last >&2; exit' TERM; head -c 4000000 /dev/zero >&2; echo done
             while :; do sleep 0.01; done",
        );
        first_line(&mut process);
        assert_eq!(process.wait(Duration::from_millis(1)).unwrap(), None);
        // Some of it may have been forgotten while the rest was still being written.
        assert!(process.stderr.metadata().unwrap().blocks() * 512 <= TOO_MUCH);
        process.terminate();
        outcome(&mut process);
        // Behind the hole.
        assert!(process.stderr.metadata().unwrap().len() > 4_000_000);
        assert_eq!(process.last_words().unwrap(), "last");
    }

    #[test]
    fn a_program_that_is_not_there_cannot_be_started() {
        let error = Process::start(&mut Command::new("/no/such/program"))
            .err()
            .unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
