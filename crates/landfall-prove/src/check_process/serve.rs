//! The other process: checks what it is told to until nobody tells it any more.
//!
//! Its standard input is the line to the one that started it.

use std::cell::Cell;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
#[cfg(feature = "subjects")]
use std::sync::atomic::Ordering;

use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use serde::de::DeserializeOwned;

use super::messages::{Answer, Hello, Ready, line};
use super::{NAME, check_here};
use crate::Stop;
use crate::subject::{Subject, SubjectError};

/// Bytes of a core dump that mean none, also where a program takes them: see core(5).
const NO_CORE: u64 = 1;

thread_local! {
    /// Power cuts that the test of this thread has come to.
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// Which of the power cuts of one test this is: the first is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call(u32);

impl Call {
    /// The next one of this thread.
    pub fn next() -> Call {
        CALLS.set(CALLS.get() + 1);
        Call(CALLS.get())
    }

    /// What a process is called that is to check the crash states of this one.
    pub fn name(self) -> String {
        format!("{NAME}-{}", self.0)
    }

    /// The one that this process is to check, if it is the other process of a test.
    fn wanted() -> Option<Call> {
        let name = std::env::args_os().next()?.into_string().ok()?;
        let number = name.strip_prefix(NAME)?.strip_prefix('-')?;
        number.parse().ok().map(Call)
    }
}

/// To be called first in `main`: checks crash states, and ends the program, if that is what it was started for. Otherwise
/// it returns at once, and proofs of [named](crate::Plan::named) subjects then check their crash states in a process of
/// their own.
#[cfg(feature = "subjects")]
pub fn init() {
    if std::env::args_os().next().is_none_or(|name| name != NAME) {
        super::CAN_SERVE.store(true, Ordering::Relaxed);
        return;
    }
    end(Line::open().and_then(|mut line| {
        let hello: Option<Hello> = line.hear()?;
        let named = hello.and_then(|hello| hello.named);
        let named = named.ok_or(io::ErrorKind::InvalidData)?;
        match crate::subjects::named(&named.name, &named.settings) {
            Ok(subject) => serve(subject.as_ref(), line),
            Err(error) => line.say(&Ready::Err(error.to_string())),
        }
    }))
}

/// In the other process of a test: checks crash states of `subject` if this is the call for it, and ends the program.
/// `true`: an earlier one, to be passed over. `false`: this is no such process.
pub(crate) fn serve_test(subject: &dyn Subject, call: Call) -> bool {
    match Call::wanted() {
        None => false,
        Some(wanted) if wanted != call => true,
        Some(_) => end(Line::open().and_then(|mut line| {
            line.hear::<Hello>()?;
            serve(subject, line)
        })),
    }
}

fn end(served: io::Result<()>) -> ! {
    match served {
        Ok(()) => std::process::exit(0),
        Err(error) => {
            // The last words of this process, which the other one passes on.
            let _ = writeln!(io::stderr(), "{error}");
            std::process::exit(1)
        }
    }
}

fn serve(subject: &dyn Subject, mut line: Line) -> io::Result<()> {
    // Thousands of crashes are to be expected.
    let limit = Rlimit {
        current: Some(NO_CORE),
        maximum: Some(NO_CORE),
    };
    setrlimit(Resource::Core, limit)?;
    line.say(&Ready::Ok(()))?;
    while let Some(directory) = line.hear::<Vec<u8>>()? {
        let directory = PathBuf::from(OsString::from_vec(directory));
        let found = check_here(subject, &directory, &Stop::default());
        line.say(&Answer::from(found.map_err(|SubjectError(why)| why)))?;
    }
    Ok(())
}

/// The line to the process that started this one.
struct Line {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
}

impl Line {
    fn open() -> io::Result<Line> {
        // While a check goes on nobody listens to the line.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        let writer = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        Ok(Line {
            reader: BufReader::new(writer.try_clone()?),
            writer,
        })
    }

    /// The next message; nothing when the other side is gone.
    fn hear<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let mut text = Vec::new();
        if self.reader.read_until(b'\n', &mut text)? == 0 {
            return Ok(None);
        }
        Ok(Some(serde_json::from_slice(&text)?))
    }

    fn say(&mut self, message: &impl serde::Serialize) -> io::Result<()> {
        self.writer.write_all(&line(message)?)
    }
}
