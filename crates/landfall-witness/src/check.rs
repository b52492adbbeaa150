//! Holds what a disk has against what it promised.
//!
//! Blocks are read past the page cache: what the kernel remembers is not what the disk has.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;

use landfall_os::{Payload, boot_id, evict, resident_share};
use landfall_results::witness::{Found, Loss, Strategy, Verdict, Witnessed};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::block::{Promise, Run};
use crate::client::Client;
use crate::message::{Acknowledgement, Declared, KEPT_LOSSES, Promises, Report, Request, Response};
use crate::note::is_left;
use crate::schedule::{block_of, promised};
use crate::{Error, Place};

/// Losses that a verdict lists.
const LISTED: usize = 1000;

/// What came of a check.
#[derive(Clone, Debug, PartialEq)]
pub enum Checked {
    /// The witness knows of no write to this target.
    NothingWritten,
    /// A verdict, with the cuts of this disk so far.
    Found(Witnessed),
    /// The verdict of an earlier check of the same writes, which counts no more.
    Repeated(Witnessed),
}

impl Checked {
    /// The verdict, if there is one.
    pub fn verdict(&self) -> Option<&Verdict> {
        match self {
            Checked::NothingWritten => None,
            Checked::Found(witnessed) | Checked::Repeated(witnessed) => witnessed.verdict.as_ref(),
        }
    }
}

/// Checks what is there against what the witness knows, and has the witness count the cut.
///
/// A run that was checked after a known cut is not counted again: the verdict is the same one.
pub fn check(
    client: &mut Client,
    place: &Place,
    declared: Option<Declared>,
) -> Result<Checked, Error> {
    let stream = place.stream().to_owned();
    let boot = this_boot()?;
    let request = Request::Ask {
        stream: stream.clone(),
        boot: boot.clone(),
    };
    let promises = match client.ask(&request)? {
        Response::Unknown => return Ok(Checked::NothingWritten),
        Response::Promised(promises) => promises,
        other => return Err(Client::unexpected(&other)),
    };
    if let Some(difference) = promises.target.difference(place.target()) {
        let text = format!(
            "{} is not what was written to: {difference}; nothing is said of either",
            place.target().path
        );
        return Err(Error::Refused(text));
    }
    let acknowledgements = acknowledgements(client, &stream, &promises)?;
    let compared = compare(place, &promises, &acknowledgements)?;
    if let Some(verdict) = promises.checked {
        // Counted already. Somebody may have written there since: only the losses of then are listed.
        return repeated(client, &stream, verdict, compared);
    }
    // How long ago that was only the operator knows, and he says that there was a cut.
    let gave_up = declared.is_some()
        && place
            .note_at(&promises.strategy)
            .is_some_and(|at| is_left(place.path(), at, &promises.run));
    if gave_up {
        end(client, &stream, promises.run)?;
    }
    let report = Report {
        stream,
        run: promises.run,
        boot,
        declared,
        promised: acknowledgements.len() as u64,
        lost: compared.lost,
        foreign: compared.foreign,
        losses: compared.losses.iter().take(KEPT_LOSSES).cloned().collect(),
    };
    match client.ask(&Request::Report(report))? {
        Response::Counted(witnessed) => Ok(Checked::Found(with_all(witnessed, compared.losses))),
        other => Err(Client::unexpected(&other)),
    }
}

/// Says in the place of a run's writer, which could not any more, that it has ended.
pub(crate) fn end(client: &mut Client, stream: &str, run: Run) -> Result<(), Error> {
    let resume = Request::Resume {
        stream: stream.to_owned(),
        run,
    };
    match client.ask(&resume)? {
        Response::Resumed { .. } => {}
        other => return Err(Client::unexpected(&other)),
    }
    match client.ask(&Request::End)? {
        Response::Ended => Ok(()),
        other => Err(Client::unexpected(&other)),
    }
}

/// The verdict of before.
fn repeated(
    client: &mut Client,
    stream: &str,
    verdict: Verdict,
    compared: Compared,
) -> Result<Checked, Error> {
    let own = crate::status(client)?;
    let own = own.into_iter().find(|one| one.stream == stream);
    let Some(witnessed) = own else {
        return Ok(Checked::NothingWritten);
    };
    let is_same = verdict.lost == compared.lost;
    let witnessed = Witnessed {
        verdict: Some(verdict),
        ..witnessed
    };
    Ok(Checked::Repeated(if is_same {
        with_all(witnessed, compared.losses)
    } else {
        witnessed
    }))
}

/// With all the losses that were found, not only those that the witness keeps.
fn with_all(witnessed: Witnessed, losses: Vec<Loss>) -> Witnessed {
    let verdict = witnessed
        .verdict
        .map(|verdict| Verdict { losses, ..verdict });
    Witnessed {
        verdict,
        ..witnessed
    }
}

/// All acknowledgements that are promised, in order.
fn acknowledgements(
    client: &mut Client,
    stream: &str,
    promises: &Promises,
) -> Result<Vec<Acknowledgement>, Error> {
    let writes = promised(&promises.strategy, promises.acknowledged);
    let mut all: Vec<Acknowledgement> = Vec::new();
    let wanted = writes.clone().count();
    while all.len() < wanted {
        let from = writes.start() + all.len() as u64;
        let request = Request::Page {
            stream: stream.to_owned(),
            run: promises.run,
            from,
        };
        match client.ask(&request)? {
            Response::Page(page) if page.is_empty() || all.len() + page.len() > wanted => {
                return Err(Error::Forged("the witness knows other writes than it said"));
            }
            Response::Page(page) => all.extend(page),
            other => return Err(Client::unexpected(&other)),
        }
    }
    Ok(all)
}

/// What was found.
#[derive(Debug, Default)]
struct Compared {
    lost: u64,
    foreign: u64,
    /// The last acknowledged first.
    losses: Vec<Loss>,
}

fn compare(
    place: &Place,
    promises: &Promises,
    acknowledgements: &[Acknowledgement],
) -> Result<Compared, Error> {
    let strategy = &promises.strategy;
    let size = u64::from(strategy.block_bytes);
    let mut compared = Compared::default();
    let Some(last) = acknowledgements.last() else {
        return Ok(compared);
    };
    let reader = Reader::open(place.path(), strategy)?;
    let mut buffer = Payload::zeros(strategy.block_bytes as usize);
    let first = *promised(strategy, promises.acknowledged).start();
    let mut unreadable = 0;
    for (place, acknowledgement) in acknowledgements.iter().enumerate().rev() {
        let write = first + place as u64;
        let block = block_of(strategy, write);
        let promise = Promise {
            run: promises.run,
            write,
            block,
            begun: promises.begun,
            checksum: acknowledgement.checksum,
        };
        let offset = u64::from(block) * size;
        let found = match reader.read(buffer.bytes_mut(), offset)? {
            Read::Whole => promise.compare(buffer.bytes_mut()),
            Read::Short => Found::Missing,
            Read::Unreadable => Found::Unreadable,
        };
        unreadable += usize::from(found == Found::Unreadable);
        match found {
            Found::Kept => continue,
            Found::Foreign => compared.foreign += 1,
            _ => compared.lost += 1,
        }
        if compared.losses.len() < LISTED {
            compared.losses.push(Loss {
                block,
                offset,
                promised: write,
                found,
                acknowledged: time_text(acknowledgement.at),
                seconds_before_last: last.at.saturating_sub(acknowledgement.at) as f64 / 1e6,
            });
        }
    }
    if unreadable == acknowledgements.len() {
        let text = format!(
            "nothing can be read of {}: the disk does not answer, which is no loss of writes; bring it back and check again",
            place.path().display()
        );
        return Err(Error::Refused(text));
    }
    Ok(compared)
}

/// A file or a device, read past the page cache.
struct Reader(Option<File>);

enum Read {
    Whole,
    /// It ends before.
    Short,
    Unreadable,
}

impl Reader {
    /// A file that is gone is one of which nothing can be read.
    fn open(path: &Path, strategy: &Strategy) -> Result<Reader, Error> {
        let doing = || format!("read {}", path.display());
        let direct = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::DIRECT.bits() as i32)
            .open(path);
        match direct {
            Ok(file) => Ok(Reader(Some(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Reader(None)),
            Err(error) if Errno::from_io_error(&error) == Some(Errno::INVAL) => {
                let bytes = u64::from(strategy.block_bytes) * u64::from(strategy.blocks);
                Reader::evicted(path, bytes).map(|file| Reader(Some(file)))
            }
            Err(error) => Err(Error::io(doing())(error)),
        }
    }

    /// Where there is no direct I/O: with nothing of it left in the page cache.
    fn evicted(path: &Path, bytes: u64) -> Result<File, Error> {
        let cannot = || format!("drop {} from the page cache", path.display());
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(Error::io(cannot()))?;
        let is_device = file
            .metadata()
            .is_ok_and(|it| it.file_type().is_block_device());
        evict(&file).map_err(Error::io(cannot()))?;
        if is_device || resident_share(&file, bytes).map_err(Error::io(cannot()))? > 0.0 {
            let text = format!(
                "{} stays in the page cache, so what the disk has cannot be seen; unmount its filesystem, mount it again, and check then",
                path.display()
            );
            return Err(Error::Refused(text));
        }
        Ok(file)
    }

    fn read(&self, into: &mut [u8], offset: u64) -> Result<Read, Error> {
        let Some(file) = &self.0 else {
            return Ok(Read::Short);
        };
        match file.read_exact_at(into, offset) {
            Ok(()) => Ok(Read::Whole),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Read::Short),
            Err(error) => match Errno::from_io_error(&error) {
                // What a disk says of a block that it cannot read, and filesystems of one with a wrong checksum.
                Some(Errno::IO | Errno::NODATA | Errno::ILSEQ | Errno::BADMSG) => {
                    Ok(Read::Unreadable)
                }
                _ => Err(Error::io("read what was written")(error)),
            },
        }
    }
}

/// The start of this machine.
pub(crate) fn this_boot() -> Result<String, Error> {
    boot_id().ok_or_else(|| {
        let text = "the kernel does not tell one start from another: /proc/sys/kernel/random/boot_id cannot be read";
        Error::Refused(text.to_owned())
    })
}

/// A time in microseconds since 1970, in RFC 3339.
pub(crate) fn time_text(at: u64) -> String {
    let at = i64::try_from(at).unwrap_or(i64::MAX);
    // Beyond the year 9999 there are no words for it.
    jiff::Timestamp::from_microsecond(at)
        .map_or_else(|_| format!("{at} µs"), |time| time.to_string())
}

/// A run's number.
pub(crate) fn hexadecimal(run: &Run) -> String {
    run.iter().map(|byte| format!("{byte:02x}")).collect()
}
