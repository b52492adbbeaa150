//! The witness: accepts connections, and answers what is asked on each after it is durable.
//!
//! **Invariants.** One connection at a time writes a stream. An answer is sent after the command that it answers is in the
//! durable state. Nothing that a stranger sends is read but his greeting.
//!
//! **Limits.** So many [connections](ServeOptions::connections), streams, blocks and bytes of a frame; a connection that
//! says nothing is closed, and its writer comes again. The log of commands is cut off behind a snapshot every so many.
//!
//! **Locks.** The holds are taken before the ledger's own.

use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use landfall::{Journaled, Options, Serde, StateOptions};
use landfall_os::Stop;
use landfall_results::witness::{Cut, Outcome, Uncounted, Verdict, Witnessed};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::block::Run;
use crate::channel::{Channel, Greeted, random};
use crate::cutter::{Cutter, Cutting, Hit};
use crate::holds::{Hold, Holds};
use crate::ledger::{Applied, Command, Ledger};
use crate::message::{PAGE, Request, Response, STREAMS_AT_ONCE, receive, send};
use crate::writer::now;
use crate::{Address, Error, Token};

/// How often it is looked whether the witness is to stop.
const LOOK: Duration = Duration::from_millis(50);
/// How long a connection may say nothing.
const IDLE: Duration = Duration::from_secs(120);
/// Commands after which there is a snapshot, and the log before it goes: some 50 MiB.
const COMMANDS_BETWEEN_SNAPSHOTS: u64 = 100_000;
/// Bytes of a segment of the log of commands.
const SEGMENT: u64 = 4 << 20;

/// How a witness serves.
pub struct ServeOptions {
    /// Connections at the same time.
    pub connections: usize,
    /// How it has the power cut, if it does.
    pub cutting: Option<Cutting>,
    /// Is told what happens, in a line each.
    pub tell: Box<dyn Fn(&str) + Send + Sync>,
}

impl Default for ServeOptions {
    fn default() -> ServeOptions {
        ServeOptions {
            connections: 64,
            cutting: None,
            tell: Box::new(|_| ()),
        }
    }
}

/// A witness.
pub struct Server {
    listener: TcpListener,
    address: String,
    shared: Shared,
}

struct Shared {
    ledger: Journaled<Serde<Ledger>>,
    token: Token,
    options: ServeOptions,
    cutter: Option<Cutter>,
    holds: Holds,
    open: AtomicUsize,
    commands: AtomicU64,
    is_stopping: AtomicBool,
    /// Whether a check has found that something is missing since it serves.
    has_seen_loss: AtomicBool,
}

/// What a connection is doing.
struct Session {
    connection: u64,
    /// The stream that it writes.
    writes: Option<(String, Run)>,
}

impl Server {
    /// Opens what the witness knows, in `directory`, and listens.
    pub fn bind(
        address: &Address,
        directory: &Path,
        token: &Token,
        options: ServeOptions,
    ) -> Result<Server, Error> {
        let log = Options::default().segment_bytes(SEGMENT).spare_segments(1);
        let ledger: Journaled<Serde<Ledger>> =
            Journaled::open(directory, StateOptions::default().log(log))?;
        let doing = format!("listen on {address}");
        let found = address.pair().to_socket_addrs();
        let found: Vec<_> = found.map_err(Error::io(doing.clone()))?.collect();
        let listener = TcpListener::bind(found.as_slice()).map_err(Error::io(doing.clone()))?;
        listener
            .set_nonblocking(true)
            .map_err(Error::io(doing.clone()))?;
        let bound = listener.local_addr().map_err(Error::io(doing))?;
        if ledger.read(0, |ledger| ledger.is_any_under_way()) {
            ledger.apply(Command::Away)?;
        }
        Ok(Server {
            listener,
            address: bound.to_string(),
            shared: Shared {
                ledger,
                token: token.clone(),
                cutter: options.cutting.clone().map(Cutter::new),
                options,
                holds: Holds::default(),
                open: AtomicUsize::new(0),
                commands: AtomicU64::new(0),
                is_stopping: AtomicBool::new(false),
                has_seen_loss: AtomicBool::new(false),
            },
        })
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Serves until it is told to stop, or all cuts were made and checked.
    pub fn run(&self, stop: &Stop) -> Result<(), Error> {
        let (shared, own) = (&self.shared, Stop::default());
        let all = thread::scope(|scope| {
            let cutting = shared.cutter.as_ref().map(|cutter| {
                let own = &own;
                scope.spawn(move || {
                    let cut = cutter.run(shared, own);
                    own.flag().store(true, Ordering::Relaxed);
                    cut
                })
            });
            let mut connection = 0;
            while !stop.is_requested() && !own.is_requested() {
                for stream in self.waiting() {
                    connection += 1;
                    let greet = move || shared.greet(stream, connection);
                    // Where no thread can be had the connection is gone, and the witness stays.
                    if let Err(error) = thread::Builder::new().spawn_scoped(scope, greet) {
                        (shared.options.tell)(&format!("a connection was dropped: {error}"));
                    }
                }
            }
            own.flag().store(true, Ordering::Relaxed);
            shared.is_stopping.store(true, Ordering::SeqCst);
            shared.holds.end_all();
            cutting.map_or(Ok(()), |cutting| {
                cutting.join().unwrap_or(Err(Error::Stopped))
            })
        });
        match all {
            // That it was told to is no failure of a witness that only serves.
            Err(Error::Stopped) if stop.is_requested() => Ok(()),
            all => all,
        }
    }

    /// Whether a check has found a loss, or a suspicious one, since it was [bound](Server::bind): also where it [ran](Server::run)
    /// into an error after that. That a control lost something is none.
    pub fn has_seen_loss(&self) -> bool {
        self.shared.has_seen_loss.load(Ordering::SeqCst)
    }

    /// All that it knows.
    pub fn status(&self) -> Vec<Witnessed> {
        self.shared
            .ledger
            .read(0, |ledger| ledger.status(0, usize::MAX).1)
    }

    /// Makes what it knows durable as it is, and lets go of the directory.
    pub fn close(self) -> Result<(), Error> {
        Ok(self.shared.ledger.close()?)
    }

    /// Who has connected meanwhile.
    fn waiting(&self) -> Vec<TcpStream> {
        let timeout = Timespec::try_from(LOOK).ok();
        let mut events = [PollFd::from_borrowed_fd(
            self.listener.as_fd(),
            PollFlags::IN,
        )];
        // A signal, or nobody: it is looked again.
        let _ = poll(&mut events, timeout.as_ref());
        let mut all = Vec::new();
        while all.len() < self.shared.options.connections {
            match self.listener.accept() {
                Ok((stream, _)) => all.push(stream),
                Err(_) => break,
            }
        }
        all
    }
}

impl Shared {
    /// One connection, from its greeting to its end.
    fn greet(&self, stream: TcpStream, connection: u64) {
        // Twice as many may be greeted, so that strangers who say nothing keep few others away.
        let open = self.open.fetch_add(1, Ordering::Relaxed) + 1;
        if open <= 2 * self.options.connections {
            let from = stream
                .peer_addr()
                .map(|from| from.to_string())
                .unwrap_or_default();
            if let Err(error) = self.serve(stream, connection, open > self.options.connections) {
                (self.options.tell)(&format!("{from}: {error}"));
            }
        }
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    fn serve(&self, stream: TcpStream, connection: u64, is_busy: bool) -> Result<(), Error> {
        stream.set_nonblocking(false).map_err(Error::io("greet"))?;
        let socket = stream.try_clone().map_err(Error::io("greet"))?;
        self.holds.open(connection, socket);
        if self.is_stopping.load(Ordering::SeqCst) {
            self.holds.end(connection);
        }
        let mut session = Session {
            connection,
            writes: None,
        };
        let greeted = Channel::accept(stream, &self.token, is_busy);
        let ended = match greeted {
            Ok(Greeted::Friend(mut channel)) => self.answer_all(&mut channel, &mut session),
            Ok(Greeted::Stranger) => Err(Error::Forged("it has another token")),
            Err(error) => Err(Error::Unreachable(format!("no greeting: {error}"))),
        };
        if ended.is_ok() {
            self.gone(&session);
        }
        self.let_go(&mut session);
        self.holds.closed(connection);
        ended
    }

    fn answer_all(&self, channel: &mut Channel, session: &mut Session) -> Result<(), Error> {
        while let Some(request) = receive::<Request>(channel, IDLE)? {
            let response = match self.answer(session, request) {
                Ok(response) => response,
                Err(why) => Response::Refused(why),
            };
            send(channel, &response)?;
        }
        Ok(())
    }

    /// The answer to a request, or why there is none.
    fn answer(&self, session: &mut Session, request: Request) -> Result<Response, String> {
        match request {
            Request::Begin(begin) => {
                self.let_go(session);
                let mut holds = self.holds.free(&begin.stream, &begin.boot)?;
                let run: Run =
                    random().map_err(|error| format!("it has no random numbers: {error}"))?;
                let (stream, boot) = (begin.stream.clone(), begin.boot.clone());
                self.apply(Command::Begin {
                    begin,
                    run,
                    at: now(),
                })?;
                let begun = self.ledger.read(0, |ledger| {
                    let found = ledger.stream(&stream).filter(|found| found.run() == run);
                    found.map(|found| found.promises().begun)
                });
                let begun = begun.ok_or("another run has begun on this stream")?;
                (self.options.tell)(&format!("{stream} begins"));
                let hold = Hold {
                    connection: session.connection,
                    run,
                    boot,
                };
                holds.insert(stream.clone(), hold);
                session.writes = Some((stream, run));
                Ok(Response::Begun { run, begun })
            }
            Request::Resume { stream, run } => self.resume(session, stream, run),
            Request::Acknowledge { write, checksum } => {
                let (stream, run) = self.held(session)?;
                let was_cut = self.was_cut(&stream, &run);
                match &self.cutter {
                    Some(cutter) => {
                        if let Err(why) = cutter.acknowledged(was_cut) {
                            self.apply(Command::NotCut { stream, run })?;
                            return Err(why);
                        }
                    }
                    // It was of a witness before this one, which cannot find that out any more.
                    None if was_cut => {
                        (self.options.tell)(&format!(
                            "{stream}: its power was to be cut, and it still writes: that was no cut"
                        ));
                        self.apply(Command::NotCut {
                            stream: stream.clone(),
                            run,
                        })?;
                    }
                    None => {}
                }
                self.apply(Command::Acknowledge {
                    stream,
                    run,
                    write,
                    at: now(),
                    checksum,
                })?;
                Ok(Response::Acknowledged { write })
            }
            Request::End => {
                let (stream, run) = self.held(session)?;
                self.apply(Command::End {
                    stream: stream.clone(),
                    run,
                })?;
                self.let_go(session);
                (self.options.tell)(&format!("{stream} ends"));
                Ok(Response::Ended)
            }
            Request::Ask { stream, boot } => {
                let _holds = self.holds.free(&stream, &boot)?;
                Ok(self.ledger.read(0, |ledger| match ledger.stream(&stream) {
                    Some(found) => Response::Promised(found.promises()),
                    None => Response::Unknown,
                }))
            }
            Request::Page { stream, run, from } => self.ledger.read(0, |ledger| {
                let found = ledger.stream(&stream).filter(|found| found.run() == run);
                let found = found.ok_or("another run has begun on this stream")?;
                Ok(Response::Page(found.page(from, PAGE)))
            }),
            Request::Report(report) => {
                let _holds = self.holds.free(&report.stream, &report.boot)?;
                let was_cut = self.was_cut(&report.stream, &report.run);
                let count = || {
                    let applied = self.apply(Command::Report { report, at: now() })?;
                    let verdict = match &applied {
                        Applied::Counted(witnessed) => witnessed.verdict.as_ref(),
                        Applied::Done | Applied::Refused(_) => None,
                    };
                    // Before the cutter can end, and somebody asks.
                    if verdict.is_some_and(is_loss) {
                        self.has_seen_loss.store(true, Ordering::SeqCst);
                    }
                    let was_none = was_cut && verdict.is_some_and(|one| one.cut == Cut::None);
                    Ok::<_, String>((applied, was_none))
                };
                let counted = match &self.cutter {
                    Some(cutter) => cutter.checked(count)?,
                    None => count()?.0,
                };
                match counted {
                    Applied::Counted(witnessed) => {
                        let verdict = witnessed.verdict.as_ref();
                        let text = verdict.map(|verdict| verdict.text()).unwrap_or_default();
                        (self.options.tell)(&format!("{}: {text}", witnessed.stream));
                        Ok(Response::Counted(*witnessed))
                    }
                    Applied::Done | Applied::Refused(_) => Err("it counted nothing".to_owned()),
                }
            }
            Request::Status { from } => {
                let from = usize::try_from(from).unwrap_or(usize::MAX);
                let (all, some) = self
                    .ledger
                    .read(0, |ledger| ledger.status(from, STREAMS_AT_ONCE));
                Ok(Response::Streams {
                    all: all as u64,
                    some,
                })
            }
        }
    }

    fn resume(&self, session: &mut Session, stream: String, run: Run) -> Result<Response, String> {
        self.let_go(session);
        let mut holds = self.holds.lock();
        let (acknowledged, boot) = self.ledger.read(0, |ledger| {
            let found = ledger.of_run(&stream, &run)?;
            Ok::<_, String>((found.acknowledged(), found.boot().to_owned()))
        })?;
        // Nobody but its writer knows the run: what holds it is a connection of the same that broke.
        if let Some(broken) = holds.get(&stream) {
            self.holds.end(broken.connection);
        }
        let hold = Hold {
            connection: session.connection,
            run,
            boot,
        };
        holds.insert(stream.clone(), hold);
        session.writes = Some((stream, run));
        Ok(Response::Resumed { acknowledged })
    }

    /// Whether the witness's command has cut the power of this run, as far as is known.
    fn was_cut(&self, stream: &str, run: &Run) -> bool {
        self.ledger.read(0, |ledger| {
            let found = ledger.of_run(stream, run);
            found.is_ok_and(|found| found.is_cut())
        })
    }

    /// Makes it durable.
    fn apply(&self, command: Command) -> Result<Applied, String> {
        if let Some(complaint) = self.ledger.read(0, |ledger| ledger.complaint(&command)) {
            return Err(complaint);
        }
        let cannot = |error: landfall::Error| {
            let text = format!("it cannot keep what it is told: {error}");
            (self.options.tell)(&text);
            text
        };
        let applied = self.ledger.apply(command).map_err(cannot)?;
        let commands = self.commands.fetch_add(1, Ordering::Relaxed) + 1;
        if commands.is_multiple_of(COMMANDS_BETWEEN_SNAPSHOTS) {
            self.ledger.snapshot().map_err(cannot)?;
        }
        match applied {
            Applied::Refused(why) => Err(why),
            applied => Ok(applied),
        }
    }

    /// What the connection writes, if nobody else has taken that since.
    fn held(&self, session: &Session) -> Result<(String, Run), String> {
        let (stream, run) = session
            .writes
            .clone()
            .ok_or("this connection writes nothing")?;
        if !self.holds.is_held(&stream, session.connection, &run) {
            return Err("another writer has taken this stream".to_owned());
        }
        Ok((stream, run))
    }

    /// A connection was closed in good order. That of a machine that lost its power is not: it says nothing any more.
    fn gone(&self, session: &Session) {
        let Some((stream, run)) = session.writes.clone() else {
            return;
        };
        // Who takes the stream, or stops this witness, closes the connection too: that says nothing of its writer.
        let holds = self.holds.lock();
        let is_own = holds
            .get(&stream)
            .is_some_and(|hold| hold.connection == session.connection);
        if !is_own || self.is_stopping.load(Ordering::SeqCst) {
            return;
        }
        if let Err(why) = self.apply(Command::Gone { stream, run }) {
            (self.options.tell)(&why);
        }
    }

    fn let_go(&self, session: &mut Session) {
        if let Some((stream, _)) = session.writes.take() {
            self.holds.let_go(&stream, session.connection);
        }
    }
}

/// Whether a check has found that something is missing which the disk had promised.
fn is_loss(verdict: &Verdict) -> bool {
    let is_missing = matches!(verdict.outcome, Outcome::Lost | Outcome::Suspicious);
    is_missing && verdict.uncounted != Some(Uncounted::Control)
}

impl Hit for Shared {
    type Runs = Vec<(String, Run)>;

    fn writing(&self) -> Vec<(String, Run)> {
        self.holds.runs()
    }

    fn was_cut(&self, runs: Vec<(String, Run)>) -> Result<(), Error> {
        for (stream, run) in runs {
            // One that has begun anew meanwhile was not hit; one that has ended may be, and is to be checked.
            if let Err(why) = self.apply(Command::Cut {
                stream,
                run,
                at: now(),
            }) {
                (self.options.tell)(&why);
            }
        }
        Ok(())
    }

    fn is_unchecked(&self) -> bool {
        self.ledger.read(0, |ledger| ledger.is_any_cut_unchecked())
    }

    fn tell(&self, what: &str) {
        (self.options.tell)(what);
    }
}

#[cfg(test)]
mod tests;
