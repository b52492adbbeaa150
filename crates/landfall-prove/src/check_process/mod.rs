//! Crash states are checked in another process, because a store that is linked in may crash on what a power cut left.
//!
//! The other process is this program once more. It is started by the first check of a worker, keeps the worker's mounts,
//! checks one state after the other, and is started again after a crash. There are two ways into it:
//!
//! - a program calls [`init`] first in its `main`, and the other process makes the subject from its name and settings;
//! - a test is run again by its name, and [`PowerCuts`](crate::PowerCuts) hands over the subject when the test comes to it.
//!
//! Both are told apart from an ordinary start by the program's own name, `argv[0]`.
//!
//! - `messages`: what the two say to each other, over a socket that is the other process's standard input;
//! - `serve`: the other process;
//! - `death`: its end in plain words.
//!
//! Invariants: between two checks the other process has no file of a crash state open. It never outlives the thread that
//! started it, however that ends.
//!
//! A store that crashes once it has answered, in a thread that it left behind, is not noticed before the next state. That one is
//! not judged by it, and counts as not checked, with the reason.
//!
//! Failure modes: a store that dies of a signal, aborts, exits, or has not answered after a minute has recovered
//! nothing, which is damage. A process that cannot be started, or that somebody else killed, says nothing of the state.

mod death;
mod messages;
mod serve;

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
#[cfg(feature = "subjects")]
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use landfall_os::{Process, share_mounts};
use serde::de::DeserializeOwned;

use crate::Stop;
use crate::subject::{Recovered, Subject, SubjectError};
#[cfg(feature = "subjects")]
use messages::Named;
use messages::{Answer, Hello, Ready};

#[cfg(feature = "subjects")]
pub use serve::init;
pub(crate) use serve::{Call, serve_test};

/// How long a check may take.
const ANSWERING: Duration = Duration::from_secs(60);
/// How long it may take until the other process can check: a test may have to prepare much.
const STARTING: Duration = Duration::from_secs(300);
/// How often the user's wish to stop is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(100);
/// As much of the end of its standard error is looked at.
const TAIL: u64 = 4096;
/// This program, also after its file was replaced.
const THIS_PROGRAM: &str = "/proc/self/exe";
/// What the other process is called.
const NAME: &str = "landfall-check";

/// Whether this program's `main` called [`init`].
#[cfg(feature = "subjects")]
static CAN_SERVE: AtomicBool = AtomicBool::new(false);

/// Where crash states are checked.
#[derive(Clone, Debug, Default)]
pub enum CheckIn {
    /// In the process that proves: a store that crashes ends it.
    #[default]
    ThisProcess,
    /// In another one: a store that crashes is damaged.
    AnotherProcess(Program),
}

/// How the other process is started.
#[derive(Clone, Debug)]
pub struct Program(Entry);

#[derive(Clone, Debug)]
enum Entry {
    /// By `main`.
    #[cfg(feature = "subjects")]
    Named(Named),
    /// By this test, at this one of its calls.
    Test { test: String, call: Call },
}

impl CheckIn {
    /// For a subject that is made by its name and settings; in this process unless the program can [serve](init).
    #[cfg(feature = "subjects")]
    pub(crate) fn for_named(name: &str, settings: &[(String, String)]) -> CheckIn {
        if CAN_SERVE.load(Ordering::Relaxed) {
            let (name, settings) = (name.to_owned(), settings.to_vec());
            CheckIn::AnotherProcess(Program(Entry::Named(Named { name, settings })))
        } else {
            CheckIn::ThisProcess
        }
    }

    /// For the subject that this test proves in this one of its calls.
    pub(crate) fn for_test(test: &str, call: Call) -> CheckIn {
        let test = test.to_owned();
        CheckIn::AnotherProcess(Program(Entry::Test { test, call }))
    }
}

/// The other process of one worker, with a directory of its own for temporary files.
pub(crate) struct CheckProcess {
    program: Program,
    temporary: PathBuf,
    running: Option<Running>,
    /// Whether it was asked for the state that is being checked.
    is_asked: bool,
}

struct Running {
    process: Process,
    line: UnixStream,
    /// What it said and was not read yet.
    said: Vec<u8>,
    /// Bytes that it had written to standard error before the state that it checks, or checked last.
    stderr: u64,
}

/// Why there is no answer.
enum Silence {
    /// It ended.
    Ended(ExitStatus, Option<String>),
    /// It took too long.
    TooLong,
    /// The user asked to stop.
    Stopped,
    /// The machine failed us.
    Failed(io::Error),
}

impl From<io::Error> for Silence {
    fn from(error: io::Error) -> Silence {
        Silence::Failed(error)
    }
}

impl CheckProcess {
    /// Nothing is started yet.
    pub fn new(program: &Program, temporary: &Path) -> CheckProcess {
        CheckProcess {
            program: program.clone(),
            temporary: temporary.to_owned(),
            running: None,
            is_asked: false,
        }
    }

    /// Has the subject recover in `directory` and read everything back; the outer error says why nothing can be checked
    /// any more.
    pub fn check(
        &mut self,
        directory: &Path,
        stop: &Stop,
    ) -> Result<Result<Recovered, SubjectError>, String> {
        // Most often that is seen as soon as the state is put away.
        if let Some(how) = self.take_end() {
            return Ok(Err(SubjectError(format!(
                "the store had answered for the state before, and then {how}"
            ))));
        }
        let running = match &mut self.running {
            Some(running) => running,
            none => none.insert(Running::start(&self.program, &self.temporary, stop)?),
        };
        self.is_asked = true;
        let silence = match running.ask(directory, stop) {
            Ok(answer) => return Ok(answer.map_err(SubjectError)),
            Err(silence) => silence,
        };
        self.running = None;
        Ok(match silence {
            Silence::Ended(status, words) => death::of_store(status, words),
            Silence::TooLong => Ok(Recovered::crashed(format!(
                "it had not recovered after {} s and was killed",
                ANSWERING.as_secs()
            ))),
            Silence::Stopped => Err(SubjectError("stopped".into())),
            Silence::Failed(error) => Err(SubjectError(format!(
                "the process that checks cannot be spoken to: {error}"
            ))),
        })
    }

    /// From here on it is known whether it is asked.
    pub fn begin(&mut self) {
        self.is_asked = false;
    }

    /// How it ended after its last answer, if it did since it [began](CheckProcess::begin) to be asked.
    pub fn end_since_asked(&mut self) -> Option<String> {
        self.is_asked.then(|| self.take_end()).flatten()
    }

    /// How it ended after its last answer, if it did: that says nothing of the next state, for which another one is started.
    pub fn take_end(&mut self) -> Option<String> {
        let how = self.ended()?;
        self.running = None;
        Some(how)
    }

    fn ended(&mut self) -> Option<String> {
        let running = self.running.as_mut()?;
        let status = running.process.wait(Duration::ZERO).ok()??;
        let words = running.new_words().ok()?;
        Some(match death::of_store(status, words) {
            Ok(found) => found.damage.unwrap_or_default(),
            Err(SubjectError(why)) => why,
        })
    }
}

impl Running {
    /// Starts it; the error is a sentence.
    fn start(program: &Program, temporary: &Path, stop: &Stop) -> Result<Running, String> {
        let failed = |error| format!("the process that checks cannot be started: {error}");
        let mut running = Running::spawn(program, temporary).map_err(failed)?;
        let named = match &program.0 {
            #[cfg(feature = "subjects")]
            Entry::Named(named) => Some(named.clone()),
            Entry::Test { .. } => None,
        };
        let ready: Result<Ready, Silence> = messages::line(&Hello { named })
            .and_then(|hello| running.line.write_all(&hello))
            .map_err(Silence::from)
            .and_then(|()| running.hear(STARTING, stop));
        let why = match ready {
            Ok(Ok(())) => return Ok(running),
            Ok(Err(why)) => why,
            Err(Silence::Ended(status, words)) => death::before_it_began(status, words),
            Err(Silence::TooLong) => format!("it was not ready after {} s", STARTING.as_secs()),
            Err(Silence::Stopped) => "stopped".into(),
            Err(Silence::Failed(error)) => error.to_string(),
        };
        Err(match program.0 {
            #[cfg(feature = "subjects")]
            Entry::Named(_) => failed(io::Error::other(why)),
            Entry::Test { .. } => format!(
                "this test cannot be run a second time, to check crash states in a process of their own: {why}; \
                 where that is not possible, say PowerCuts::in_this_process()"
            ),
        })
    }

    fn spawn(program: &Program, temporary: &Path) -> io::Result<Running> {
        let (line, other) = UnixStream::pair()?;
        line.set_read_timeout(Some(LOOK))?;
        let mut command = Command::new(THIS_PROGRAM);
        match &program.0 {
            #[cfg(feature = "subjects")]
            Entry::Named(_) => command.arg0(NAME),
            Entry::Test { test, call } => {
                let arguments = [test, "--exact", "--include-ignored", "--nocapture"];
                command.arg0(call.name()).args(arguments)
            }
        };
        share_mounts(&mut command)?;
        // What a killed one leaves there goes with the worker.
        command.env("TMPDIR", temporary).env("RUST_BACKTRACE", "0");
        let process = Process::start_with(&mut command, OwnedFd::from(other).into())?;
        Ok(Running {
            process,
            line,
            said: Vec::new(),
            stderr: 0,
        })
    }

    fn ask(&mut self, directory: &Path, stop: &Stop) -> Result<Answer, Silence> {
        self.stderr = self.process.stderr_len()?;
        let directory = OsString::from(directory);
        let order = messages::line(&directory.as_bytes())?;
        match self.line.write_all(&order) {
            // It has ended this moment, as will be heard.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            sent => sent?,
        }
        match self.hear(ANSWERING, stop) {
            Err(Silence::Ended(status, _)) => Err(Silence::Ended(status, self.new_words()?)),
            answer => answer,
        }
    }

    /// Its last words, unless it said them in an earlier check: they are not about this one.
    fn new_words(&self) -> io::Result<Option<String>> {
        let is_new = self.process.stderr_len()? > self.stderr;
        Ok(self.last_words().filter(|_| is_new))
    }

    /// The last line that it wrote to standard error, but for a panic's advice.
    fn last_words(&self) -> Option<String> {
        let lines = self.process.stderr_lines(TAIL).ok()?;
        lines
            .into_iter()
            .rfind(|line| !line.starts_with("note: run with"))
    }

    /// The next line that it says.
    fn hear<T: DeserializeOwned>(&mut self, most: Duration, stop: &Stop) -> Result<T, Silence> {
        let begin = Instant::now();
        let mut buffer = [0; 1 << 14];
        loop {
            if let Some(end) = self.said.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.said.drain(..=end).collect();
                return Ok(serde_json::from_slice(&line).map_err(io::Error::from)?);
            }
            let is_closed = match self.line.read(&mut buffer) {
                Ok(0) => true,
                Ok(bytes) => {
                    self.said.extend_from_slice(&buffer[..bytes]);
                    continue;
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => false,
                    io::ErrorKind::ConnectionReset => true,
                    _ => return Err(error.into()),
                },
            };
            // It may close the line and go on, and what it started may hold on to the line after its end.
            let wait = if is_closed { LOOK } else { Duration::ZERO };
            if let Some(status) = self.process.wait(wait)? {
                return Err(Silence::Ended(status, self.last_words()));
            }
            if stop.is_requested() {
                return Err(Silence::Stopped);
            }
            if begin.elapsed() > most {
                return Err(Silence::TooLong);
            }
        }
    }
}

/// Has the subject recover in `directory`, in this process. That it panics is damage: a store may trip over what it finds.
pub(crate) fn check_here(
    subject: &dyn Subject,
    directory: &Path,
    stop: &Stop,
) -> Result<Recovered, SubjectError> {
    Recovered::caught(|| subject.check(directory, stop))
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    #[test]
    fn who_ended_after_an_answer_is_not_held_against_the_next_state() {
        let ended = || {
            let mut command = Command::new("sh");
            command.args(["-c", "echo no page 7 >&2; kill -ABRT $$"]);
            let mut process = Process::start_with(&mut command, Stdio::null()).unwrap();
            process.wait(ANSWERING).unwrap().unwrap();
            Running {
                process,
                line: UnixStream::pair().unwrap().0,
                said: Vec::new(),
                stderr: 0,
            }
        };
        let program = Program(Entry::Test {
            test: "none".into(),
            call: Call::next(),
        });
        let mut checks = CheckProcess::new(&program, Path::new("/"));
        checks.running = Some(ended());
        let found = checks.check(Path::new("/"), &Stop::default());
        let SubjectError(why) = found.unwrap().unwrap_err();
        let said = "and then it crashed with SIGABRT: it called abort(); its last words: no page 7";
        assert!(why.ends_with(said), "{why}");
        assert!(checks.running.is_none());
        checks.running = Some(ended());
        checks.take_end();
        assert!(checks.running.is_none());
    }
}
