//! Writes block after block, and reports each to the witness when the disk has said that it is durable, before the next.
//!
//! **Invariant.** Write n + 1 begins after the witness has answered that it keeps write n. So what the witness knows was
//! acknowledged by the disk, and all but one write that the disk acknowledged is known to the witness.
//!
//! If the connection goes, nothing is written until there is one again: the same write is reported again, and the witness
//! keeps it once. One that has forgotten a write refuses the next. A writer that gives up leaves a [note](crate::note).

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use landfall_os::{Payload, Stop, SyncedFile};
use landfall_results::witness::Strategy;

use crate::block::{Run, Stamp};
use crate::check::this_boot;
use crate::client::{Address, Client};
use crate::message::{Begin, Request, Response, complaint};
use crate::note::Note;
use crate::schedule::block_of;
use crate::{Error, Place, Token};

/// How often a witness that does not answer is tried.
const RETRY: Duration = Duration::from_millis(200);

/// What to write, and until when.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// How.
    pub strategy: Strategy,
    /// Writes after which it ends by itself; `None`: never.
    pub writes: Option<u64>,
    /// How long a witness that does not answer is waited for.
    pub patience: Duration,
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Writes that the disk and then the witness acknowledged.
    pub acknowledged: u64,
}

/// Who writes.
struct Writer<'a> {
    client: Client,
    address: &'a Address,
    token: &'a Token,
    options: &'a WriteOptions,
    stop: &'a Stop,
    stream: &'a str,
    run: Run,
}

/// Writes until it is told to stop, or has written enough; `progress` is called with the number of acknowledged writes.
///
/// # Errors
///
/// A write that fails is not tried again, and ends the run as a power cut would: what was acknowledged before is still
/// promised.
pub fn write(
    address: &Address,
    token: &Token,
    place: &Place,
    options: &WriteOptions,
    stop: &Stop,
    progress: &mut dyn FnMut(u64),
) -> Result<Written, Error> {
    let strategy = options.strategy;
    if let Some(complaint) = complaint(strategy.block_bytes, strategy.blocks) {
        return Err(Error::Usage(complaint));
    }
    let _claim = place.examine(&strategy)?;
    let mut client = Client::connect(address, token)?;
    let begin = Begin {
        stream: place.stream().to_owned(),
        target: place.target().clone(),
        strategy,
        boot: this_boot()?,
    };
    let (run, begun) = match client.ask(&Request::Begin(begin))? {
        Response::Begun { run, begun } => (run, begun),
        other => return Err(Client::unexpected(&other)),
    };
    // Not before the witness has said that what is there may go.
    place.make(&strategy)?;
    let bytes = u64::from(strategy.block_bytes) * u64::from(strategy.blocks);
    let opened = SyncedFile::open(place.path(), strategy.method, bytes);
    let doing = format!("open {} for {}", place.path().display(), strategy.method);
    let mut file = opened.map_err(Error::io(doing))?;
    let note = place
        .note_at(&strategy)
        .map(|at| Note::open(place.path(), at, run));
    let doing = format!("open {}", place.path().display());
    let note = note.transpose().map_err(Error::io(doing))?;
    let gives_up = |error: Error| {
        // A witness that refuses knows. Where no note can be left it is as with a writer that is killed.
        if matches!(error, Error::Unreachable(_) | Error::Stopped) {
            let _ = note.as_ref().map(Note::leave);
        }
        error
    };
    let mut writer = Writer {
        client,
        address,
        token,
        options,
        stop,
        stream: place.stream(),
        run,
    };
    let mut payload = Payload::zeros(strategy.block_bytes as usize);
    let mut acknowledged = 0;
    while !stop.is_requested() && options.writes.is_none_or(|most| acknowledged < most) {
        let write = acknowledged + 1;
        let block = block_of(&strategy, write);
        let stamp = Stamp {
            run,
            write,
            block,
            begun,
            at: now(),
        };
        let checksum = stamp.fill(&mut payload);
        let offset = u64::from(block) * u64::from(strategy.block_bytes);
        let written = file.write(payload.bytes_mut(), offset);
        let doing = || {
            format!(
                "write to {}, and this is where it ends",
                place.path().display()
            )
        };
        written.map_err(|source| Error::Io {
            doing: doing(),
            source,
        })?;
        writer.report(write, checksum).map_err(gives_up)?;
        acknowledged = write;
        progress(acknowledged);
    }
    writer.end().map_err(gives_up)?;
    Ok(Written { acknowledged })
}

impl Writer<'_> {
    /// Returns when the witness keeps it.
    fn report(&mut self, write: u64, checksum: u32) -> Result<(), Error> {
        let request = Request::Acknowledge { write, checksum };
        let answer = loop {
            match self.client.ask(&request) {
                Err(Error::Unreachable(_)) => self.connect_again(write)?,
                answer => break answer,
            }
        };
        match answer? {
            Response::Acknowledged { write: kept } if kept == write => Ok(()),
            other => Err(Client::unexpected(&other)),
        }
    }

    /// Waits for the witness, and makes sure that it has forgotten nothing.
    fn connect_again(&mut self, write: u64) -> Result<(), Error> {
        let deadline = Instant::now() + self.options.patience;
        let request = Request::Resume {
            stream: self.stream.to_owned(),
            run: self.run,
        };
        loop {
            let resumed = Client::connect(self.address, self.token).and_then(|mut client| {
                let response = client.ask(&request)?;
                self.client = client;
                Ok(response)
            });
            match resumed {
                Ok(Response::Resumed { acknowledged })
                    if acknowledged == write || acknowledged + 1 == write =>
                {
                    return Ok(());
                }
                Ok(Response::Resumed { acknowledged }) => {
                    let text = format!(
                        "it knows of {acknowledged} writes, and had answered for {}: its own disk has lost them",
                        write - 1
                    );
                    return Err(Error::Witness(text));
                }
                Ok(other) => return Err(Client::unexpected(&other)),
                Err(Error::Unreachable(_)) if self.stop.is_requested() => {
                    return Err(Error::Stopped);
                }
                Err(error @ Error::Unreachable(_)) if Instant::now() >= deadline => {
                    return Err(error);
                }
                Err(Error::Unreachable(_)) => thread::sleep(RETRY),
                Err(error) => return Err(error),
            }
        }
    }

    /// Says that no write is under way any more.
    fn end(&mut self) -> Result<(), Error> {
        match self.client.ask(&Request::End)? {
            Response::Ended => Ok(()),
            other => Err(Client::unexpected(&other)),
        }
    }
}

/// The time by this machine's clock, in microseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    })
}
