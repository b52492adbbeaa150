//! `landfall log`: a durable log of the engine's, looked at from outside.

use std::fmt::Write;
use std::path::Path;

use landfall::{Block, Error, Fragment, Inspection, Salvage};
use landfall_os::humanize::bytes_text;

use crate::args::{Log, LogCommand, LogDirectory, LogSalvage};
use crate::commands::print_bytes;
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
        "whole: {records} records of {} in {blocks} blocks, with {} of headers and padding\n{}",
        bytes_text(bytes),
        bytes_text(padding),
        summary(&inspection)
    );
    print_bytes(text.as_bytes())
}

/// Copies what can be read; that something is missing is what was asked for, and no failure.
fn salvage(log: &LogSalvage) -> Result<Code, Failure> {
    let found = copy(log, |dir, to| Salvage::copy(dir, to))?;
    let mut text = format!(
        "copied {} records to {}, numbered from {} on\n",
        found.copied,
        log.to.display(),
        found.first_lsn
    );
    for missing in &found.missing {
        let (first, end) = (missing.lsns.start.0, missing.lsns.end.0);
        let lost = if end - first == 1 {
            format!("record {first} is missing")
        } else {
            format!("records {first} to {} are missing", end - 1)
        };
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
            Error::Locked => Code::Refused,
            _ => Code::Failed,
        };
        Failure::new(code, format!("{dir}: {error}"))
    })
}

pub(super) fn summary(found: &Inspection) -> String {
    let mut text = format!(
        "log {:016x}, opened {} times, {}; records {} to {}; blocks of {} bytes, segments of {}; written by {}\n",
        found.log,
        found.epoch,
        if found.is_closed {
            "closed cleanly"
        } else {
            "not closed cleanly (its program was killed, or the power was cut)"
        },
        found.first_lsn,
        found.next_lsn.0.saturating_sub(1),
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
