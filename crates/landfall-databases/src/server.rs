//! What servers have in common: a process of our own, its log, and a private directory for its socket.
//!
//! The socket is not in the data directory: its path may have 107 bytes, and what is measured should not
//! hold it. Only this user, or whom the server is run as instead of root, can enter its directory, so nobody
//! else can speak to the server.
//!
//! Threads: whoever has a reference may ask; the process is behind a lock that is held for moments. One
//! may listen to its log; it ends when the server does. A server ends with the thread that started it.
//! Dropped, the process is killed, and then the directory is removed.

use std::env;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use landfall_os::{PrivateDirectory, end_with_this_thread, tree_cpu};
use rustix::process::Signal;

use super::DatabaseError;
use super::program::{is_about_space, telling_lines};
use landfall_os::Process;
use landfall_os::Stop;
use landfall_os::humanize::duration_text;

/// How long a server may take to start: after a crash it recovers first.
const STARTING: Duration = Duration::from_secs(10 * 60);
/// How long it may take to end: it writes out what is only in memory.
const STOPPING: Duration = Duration::from_secs(10 * 60);
/// How often it is told again.
const TELLING: Duration = Duration::from_secs(5);
/// How long one may take that is told to end at once: it kills its processes itself after five seconds.
const ENDING_AT_ONCE: Duration = Duration::from_secs(10);
/// How often it is told so.
const INSISTING: Duration = Duration::from_millis(100);
/// How long one that is killed is waited for: more is the kernel's time, for what it has in flight.
const DYING: Duration = Duration::from_secs(60);
/// How often it is looked whether it takes connections.
const LOOK: Duration = Duration::from_millis(5);
/// How often it is listened to for what nobody waits for.
const LISTEN: Duration = Duration::from_secs(1);
/// As much of its log is looked at, from the end: all that is kept. Who dies of a statement repeats it there.
const LOG: u64 = 1 << 20;
/// Bytes of a socket's path, without the zero at its end (`sun_path` in unix(7)).
const LONGEST_PATH: usize = 107;

/// How a server is told to end in order.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ending {
    /// By SIGTERM.
    Terminate,
    /// By SIGTERM, which it gives itself again when it is done, or names in its exit status as a shell would (Java): that it
    /// ended in order is then not told from that it was ended by it.
    TerminateItself,
    /// By SIGINT.
    Interrupt,
}

/// A server that was started; killed when dropped.
pub(super) struct Server {
    own: Owner,
    // Dropped last.
    sockets: PrivateDirectory,
}

/// What its clients may know of a server, without keeping it alive.
#[derive(Clone)]
pub(super) struct Watch(Weak<Own>);

/// Ends the server when dropped: whoever just looks at it does not keep it alive.
struct Owner(Arc<Own>);

struct Own {
    /// What it is called in a sentence.
    title: &'static str,
    process: Mutex<Process>,
    /// Whether it is first told to end at once.
    gently: bool,
}

/// A private directory for the socket of a server, and for what else is not to be in its data directory.
pub(super) fn socket_directory() -> Result<PrivateDirectory, DatabaseError> {
    let temporary = env::temp_dir();
    PrivateDirectory::create_in(&temporary).map_err(|error| {
        DatabaseError::Refused(format!(
            "cannot make a directory for a socket in {}: {error}; TMPDIR names another place",
            temporary.display()
        ))
    })
}

/// The path of a socket of that name in `directory`.
pub(super) fn socket_path(
    directory: &PrivateDirectory,
    name: &str,
) -> Result<PathBuf, DatabaseError> {
    let path = directory.path().join(name);
    if path.as_os_str().len() > LONGEST_PATH {
        return Err(DatabaseError::Refused(format!(
            "{} is too long for the path of a socket: set TMPDIR to a directory with a short name",
            path.display()
        )));
    }
    Ok(path)
}

/// Why a server that is starting has not taken a connection.
pub(super) enum NoConnection {
    /// It may yet.
    NotYet(String),
    /// It never will: it has started, and says no.
    Refused(String),
}

impl From<String> for NoConnection {
    fn from(why: String) -> NoConnection {
        NoConnection::NotYet(why)
    }
}

impl Server {
    /// Starts it; whether it takes connections is another matter.
    pub fn start(
        title: &'static str,
        command: &mut Command,
        sockets: PrivateDirectory,
    ) -> Result<Server, DatabaseError> {
        Self::begin(title, command, sockets, false)
    }

    /// As [`start`](Server::start), but when dropped it is told by SIGQUIT to end at once, and killed if
    /// it does not: for one that has more than its process to give back, and more processes than ours.
    pub fn start_gently(
        title: &'static str,
        command: &mut Command,
        sockets: PrivateDirectory,
    ) -> Result<Server, DatabaseError> {
        Self::begin(title, command, sockets, true)
    }

    fn begin(
        title: &'static str,
        command: &mut Command,
        sockets: PrivateDirectory,
        gently: bool,
    ) -> Result<Server, DatabaseError> {
        // By SIGKILL we leave nobody behind either.
        let last = if gently { Signal::QUIT } else { Signal::KILL };
        end_with_this_thread(command, last);
        let process = Process::start(command).map_err(|error| {
            let program = command.get_program().to_string_lossy();
            DatabaseError::Refused(format!("cannot start {program}: {error}"))
        })?;
        let own = Own {
            title,
            process: Mutex::new(process),
            gently,
        };
        Ok(Server {
            own: Owner(Arc::new(own)),
            sockets,
        })
    }

    /// Tries to `connect` until that works, or the server refuses; a reason why it does not yet is said if it never does.
    /// `explain` may know from its log why the server ended.
    pub fn connect<T>(
        &self,
        stop: &Stop,
        mut connect: impl FnMut() -> Result<T, NoConnection>,
        explain: impl FnOnce(&[String]) -> Option<DatabaseError>,
    ) -> Result<T, DatabaseError> {
        let begin = Instant::now();
        loop {
            // Before the first try as well: some servers are there at once.
            if stop.is_requested() {
                return Err(DatabaseError::Stopped);
            }
            let why_not = match connect() {
                Ok(connection) => return Ok(connection),
                Err(NoConnection::NotYet(why_not)) => why_not,
                Err(NoConnection::Refused(why_not)) => {
                    let (title, end) = (self.own.0.title, telling_lines(&self.log()));
                    return Err(DatabaseError::DoesNotStart(format!(
                        "{title} runs and refuses every connection ({why_not}){end}"
                    )));
                }
            };
            let title = self.own.0.title;
            if let Some(status) = self.own.0.ended_within(LOOK)? {
                let log = self.log();
                if is_about_space(&log) {
                    return Err(self.own.0.no_space());
                }
                return Err(explain(&log).unwrap_or_else(|| {
                    let end = telling_lines(&log);
                    DatabaseError::DoesNotStart(format!("{title} does not start ({status}){end}"))
                }));
            }
            if begin.elapsed() > STARTING {
                let most = duration_text(STARTING.as_secs_f64());
                let end = telling_lines(&self.log());
                return Err(DatabaseError::DoesNotStart(format!(
                    "{title} takes no connections after {most} ({why_not}){end}"
                )));
            }
        }
    }

    /// Kills it when it says that: some wait for ever for what nobody will do, and their clients with them.
    pub fn end_when_it_says(&self, sign: &'static str) {
        let own = Arc::downgrade(&self.own.0);
        thread::spawn(move || {
            loop {
                thread::sleep(LISTEN);
                let Some(own) = own.upgrade() else { return };
                if own.log().iter().any(|line| line.contains(sign)) {
                    own.process().kill();
                    return;
                }
            }
        });
    }

    /// For its clients.
    pub fn watch(&self) -> Watch {
        Watch(Arc::downgrade(&self.own.0))
    }

    /// The error of the first questions to it: what failed is that it does not start.
    pub fn at_start(&self, error: DatabaseError) -> DatabaseError {
        self.watch().explain(error).at_start()
    }

    /// The lines of its log that say something, as far as they are kept.
    pub fn log(&self) -> Vec<String> {
        self.own.0.log()
    }

    /// How it ended, if it did.
    pub fn ended(&self) -> Option<ExitStatus> {
        self.own.0.ended_within(Duration::ZERO).ok().flatten()
    }

    /// CPU time of all its processes; zero once it has ended.
    pub fn cpu(&self) -> Duration {
        match self.own.0.ended_within(Duration::ZERO) {
            Ok(None) => tree_cpu(self.own.0.process().id()),
            _ => Ok(None),
        }
        .ok()
        .flatten()
        .unwrap_or_default()
    }

    /// Ends it in order, and waits; if it takes too long it is killed, which is an error.
    pub fn stop(self, ending: Ending) -> Result<(), DatabaseError> {
        let own = &*self.own.0;
        let tell = || match ending {
            Ending::Terminate | Ending::TerminateItself => own.process().terminate(),
            Ending::Interrupt => own.process().interrupt(),
        };
        tell();
        let title = own.title;
        let begin = Instant::now();
        let mut told = begin;
        let status = loop {
            if let Some(status) = own.ended_within(Duration::from_millis(100))? {
                break status;
            }
            // Redis forgets that it was told while it makes its log anew.
            if told.elapsed() > TELLING {
                tell();
                told = Instant::now();
            }
            if begin.elapsed() > STOPPING {
                let most = duration_text(STOPPING.as_secs_f64());
                let end = telling_lines(&own.log());
                return Err(DatabaseError::Failed(format!(
                    "{title} had not ended {most} after it was told to, and was killed{end}"
                )));
            }
        };
        let by_itself = matches!(ending, Ending::TerminateItself)
            && (status.signal() == Some(Signal::TERM.as_raw())
                || status.code() == Some(128 + Signal::TERM.as_raw()));
        if !status.success() && !by_itself {
            let end = telling_lines(&own.log());
            return Err(DatabaseError::Failed(format!(
                "{title} did not end in order ({status}){end}"
            )));
        }
        let directory = self.sockets.path().to_owned();
        self.sockets.close().map_err(|error| {
            DatabaseError::Failed(format!("cannot remove {}: {error}", directory.display()))
        })
    }
}

impl Watch {
    /// The error of a client, with why the server is to blame for it, if it is.
    pub fn explain(&self, error: DatabaseError) -> DatabaseError {
        let own = match error {
            DatabaseError::Failed(_) => self.0.upgrade(),
            _ => None,
        };
        let Some(own) = own else { return error };
        // A connection breaks a moment before the process is gone.
        let ended = own.ended_within(Duration::from_millis(100));
        let log = own.log();
        match ended {
            _ if is_about_space(&log) => own.no_space(),
            Ok(Some(status)) => {
                let (title, end) = (own.title, telling_lines(&log));
                DatabaseError::Failed(format!("{title} ended ({status}){end}"))
            }
            _ => error,
        }
    }
}

impl Own {
    fn no_space(&self) -> DatabaseError {
        DatabaseError::no_space(format!("{} found no space for its data", self.title))
    }

    fn log(&self) -> Vec<String> {
        let process = self.process();
        // Who keeps a log on standard output complains of its settings elsewhere, and ends.
        let mut lines = process.stdout_lines(LOG).unwrap_or_default();
        lines.extend(process.stderr_lines(LOG).unwrap_or_default());
        lines
    }

    /// How it ended, if it does so within that time.
    fn ended_within(&self, most: Duration) -> Result<Option<ExitStatus>, DatabaseError> {
        let title = self.title;
        self.process()
            .wait(most)
            .map_err(|error| DatabaseError::Failed(format!("cannot wait for {title}: {error}")))
    }

    fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let own = &*self.0;
        let begin = Instant::now();
        while own.gently && begin.elapsed() < ENDING_AT_ONCE {
            // Again and again: it may be so young that it does not listen yet.
            own.process().quit();
            if !matches!(own.ended_within(INSISTING), Ok(None)) {
                return;
            }
        }
        // What is left of it if that did not help.
        own.process().kill();
        let _ = own.ended_within(DYING);
    }
}
