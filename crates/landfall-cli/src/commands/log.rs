//! `landfall log`: a durable log of the engine's, looked at from outside.

use std::fmt::Write;
use std::ops::Range;
use std::path::Path;

use landfall::{Block, Error, Fragment, Inspection, Lsn, Salvage};
use landfall_os::humanize::bytes_text;

use crate::args::{Log, LogCommand, LogDirectory, LogSalvage};
use crate::commands::{counted, print_bytes};
use crate::exit::{Code, Failure};

/// Bytes of a record that are shown.
const SHOWN: usize = 48;

pub fn run(arguments: &Log) -> Result<Code, Failure> {
    match &arguments.command {
        LogCommand::Dump(log) => dump(log),
        LogCommand::Verify(log) => verify(log),
        LogCommand::Salvage(log) => salvage(log),
    }
}

fn dump(log: &LogDirectory) -> Result<Code, Failure> {
    let mut closed = Ok(Code::Measured);
    let inspection = read(log, &mut |block| {
        if closed.is_ok() {
            closed = print_bytes(text_of(block).as_bytes());
        }
    })?;
    closed?;
    print_bytes(summary(&inspection).as_bytes())
}

fn verify(log: &LogDirectory) -> Result<Code, Failure> {
    let (mut blocks, mut records, mut bytes, mut padding) = (0u64, 0u64, 0u64, 0u64);
    let inspection = read(log, &mut |block| {
        let payload: usize = block.fragments.iter().map(|one| one.bytes.len()).sum();
        blocks += 1;
        records += block.fragments.iter().filter(|one| one.ends_record).count() as u64;
        bytes += payload as u64;
        padding += block.size - payload as u64;
    })?;
    let text = format!(
        "whole: {} of {} in {}, with {} of headers and padding\n{}",
        counted(records, "record", "records"),
        bytes_text(bytes),
        counted(blocks, "block", "blocks"),
        bytes_text(padding),
        summary(&inspection)
    );
    print_bytes(text.as_bytes())
}

/// Copies what can be read; that something is missing is what was asked for, and no failure.
fn salvage(log: &LogSalvage) -> Result<Code, Failure> {
    let found = copy(log, |dir, to| Salvage::copy(dir, to))?;
    let mut text = format!(
        "copied {} to {}, numbered from {} on\n",
        counted(found.copied, "record", "records"),
        log.to.display(),
        found.first_lsn
    );
    for missing in &found.missing {
        let lost = numbered(&missing.lsns, ["record", "records"]);
        let are = if is_one(&missing.lsns) { "is" } else { "are" };
        let lost = format!("{lost} {are} missing");
        let _ = if missing.new_lsn.0 == found.first_lsn.0 + found.copied {
            writeln!(text, "{lost}, at the end")
        } else {
            writeln!(
                text,
                "{lost}; the one behind is {} in the new log",
                missing.new_lsn
            )
        };
    }
    text += match (found.missing.is_empty(), found.ends_cleanly) {
        (true, true) => "nothing is missing\n",
        (false, true) => "",
        (_, false) => {
            "the log was not closed cleanly, so records may be missing at its end without a trace\n"
        }
    };
    print_bytes(text.as_bytes())
}

/// Copies from one directory to another; why that cannot be done is said in a sentence.
pub(super) fn copy<R>(
    log: &LogSalvage,
    copy: impl FnOnce(&Path, &Path) -> Result<R, Error>,
) -> Result<R, Failure> {
    let copied = look(&log.from, |dir| match copy(dir, &log.to) {
        // It is the other directory that is meant.
        Err(Error::NotEmpty { name }) => Ok(Err(name)),
        copied => copied.map(Ok),
    })?;
    copied.map_err(|name| {
        let to = log.to.display();
        let text = format!("{to} holds '{name}': name a directory that is empty, or not there yet");
        Failure::new(Code::Usage, text)
    })
}

fn read(log: &LogDirectory, visit: &mut dyn FnMut(&Block)) -> Result<Inspection, Failure> {
    look(log, |dir| Inspection::read(dir, visit))
}

/// Looks at what a directory holds; why that cannot be done is said in a sentence.
pub(super) fn look<R>(
    log: &LogDirectory,
    read: impl FnOnce(&Path) -> Result<R, Error>,
) -> Result<R, Failure> {
    look_in(&log.dir, "log", read)
}

/// Looks at a directory, which is to hold such a thing.
pub(super) fn look_in<R>(
    directory: &Path,
    what: &str,
    read: impl FnOnce(&Path) -> Result<R, Error>,
) -> Result<R, Failure> {
    let dir = directory.display();
    if !directory.is_dir() {
        return Err(Failure::new(
            Code::Usage,
            format!("there is no directory {dir}"),
        ));
    }
    read(directory).map_err(|error| {
        let code = match error {
            Error::NoLog | Error::NotALog { .. } => {
                let text = format!("{dir} holds no {what}: it has no file 'landfall-log'");
                return Failure::new(Code::Usage, text);
            }
            Error::OtherKind { .. } => Code::Usage,
            Error::Locked => Code::Refused,
            _ => Code::Failed,
        };
        Failure::new(code, format!("{dir}: {error}"))
    })
}

/// `record 3`, `records 3 to 5`, `no records`.
pub(super) fn numbered(lsns: &Range<Lsn>, [one, several]: [&str; 2]) -> String {
    let (first, end) = (lsns.start.0, lsns.end.0);
    if end <= first {
        format!("no {several}")
    } else if is_one(lsns) {
        format!("{one} {first}")
    } else {
        format!("{several} {first} to {}", end - 1)
    }
}

/// Whether that is a single one.
pub(super) fn is_one(lsns: &Range<Lsn>) -> bool {
    lsns.end == lsns.start.next()
}

pub(super) fn summary(found: &Inspection) -> String {
    let records = found.first_lsn..found.next_lsn;
    let mut text = format!(
        "log {:016x}, opened {}, {}; {}; blocks of {} bytes, segments of {}; written by {}\n",
        found.log,
        counted(found.epoch, "time", "times"),
        if found.is_closed {
            "closed cleanly"
        } else {
            "not closed cleanly (its program was killed, or the power was cut)"
        },
        numbered(&records, ["record", "records"]),
        found.granule,
        bytes_text(found.segment_bytes),
        found.method,
    );
    for segment in &found.segments {
        let what = match (segment.sequence, segment.is_used) {
            (Some(sequence), true) => format!("segment {sequence}"),
            (Some(sequence), false) => format!("segment {sequence}, made ahead"),
            (None, _) => "not used".to_owned(),
        };
        let _ = writeln!(text, "  {}  {what}", segment.name);
    }
    text
}

pub(super) fn text_of(block: &Block) -> String {
    let mut text = format!(
        "{} {:>10}  {:>7} bytes, epoch {}\n",
        block.file, block.offset, block.size, block.epoch
    );
    for fragment in &block.fragments {
        let _ = writeln!(
            text,
            "  {:>12}  {:>7} bytes  {}{}",
            fragment.lsn.to_string(),
            fragment.bytes.len(),
            place(fragment),
            shown(&fragment.bytes)
        );
    }
    text
}

/// What it is of its record and its batch, where that is not all of both.
fn place(fragment: &Fragment) -> String {
    let of_record = match (fragment.begins_record, fragment.ends_record) {
        (true, true) => "",
        (true, false) => "[begins] ",
        (false, false) => "[goes on] ",
        (false, true) => "[ends] ",
    };
    let of_batch = match (fragment.begins_batch, fragment.ends_batch) {
        (true, true) => "",
        (true, false) if fragment.ends_record => "[batch begins] ",
        (false, true) if fragment.begins_record => "[batch ends] ",
        (false, false) if fragment.begins_record => "[of a batch] ",
        _ => "",
    };
    format!("{of_record}{of_batch}")
}

/// The beginning of a record, as text where it is such.
fn shown(bytes: &[u8]) -> String {
    let begin = &bytes[..bytes.len().min(SHOWN)];
    let more = if bytes.len() > SHOWN { "…" } else { "" };
    format!("{}{more}", begin.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_numbered_as_many_as_there_are() {
        let said = |first, end| numbered(&(Lsn(first)..Lsn(end)), ["record", "records"]);
        assert_eq!(said(3, 6), "records 3 to 5");
        assert_eq!(said(3, 4), "record 3");
        assert_eq!(said(1, 1), "no records");
    }
}
