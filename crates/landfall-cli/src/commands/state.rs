//! `landfall state`: a state of the engine's, looked at from outside. What is in it only its program knows.

use std::fmt::Write;

use landfall::{Block, Error, Lsn, SnapshotFile, StateInspection, StateSalvage};
use landfall_os::humanize::bytes_text;

use super::log;
use crate::args::{LogDirectory, LogSalvage, State, StateCommand};
use crate::commands::{counted, print_bytes};
use crate::exit::{Code, Failure};

pub fn run(arguments: &State) -> Result<Code, Failure> {
    match &arguments.command {
        StateCommand::Dump(state) => dump(state),
        StateCommand::Verify(state) => verify(state),
        StateCommand::Salvage(state) => salvage(state),
    }
}

fn dump(state: &LogDirectory) -> Result<Code, Failure> {
    let mut closed = Ok(Code::Measured);
    let inspection = read(state, &mut |block| {
        if closed.is_ok() {
            closed = print_bytes(log::text_of(block).as_bytes());
        }
    })?;
    closed?;
    print_bytes(summary(&inspection).as_bytes())
}

fn verify(state: &LogDirectory) -> Result<Code, Failure> {
    let inspection = read(state, &mut |_| {})?;
    print_bytes(summary(&inspection).as_bytes())?;
    match wrong(&inspection) {
        None => print_bytes(b"whole: every snapshot, and the log\n"),
        Some(text) => Err(Failure::new(Code::Failed, text)),
    }
}

/// Copies what can be had; that something is missing is what was asked for, and no failure.
fn salvage(state: &LogSalvage) -> Result<Code, Failure> {
    let found = log::copy(state, |dir, to| StateSalvage::copy(dir, to))?;
    let mut text = String::new();
    for (name, why) in &found.skipped {
        let _ = writeln!(text, "{name} cannot be used: {why}");
    }
    let begun = match &found.snapshot {
        Some(name) => format!("from {name}"),
        None => "without a snapshot".to_owned(),
    };
    let _ = writeln!(
        text,
        "copied to {}: the state before command {}, {begun}",
        state.to.display(),
        found.end
    );
    if let Some(lost) = &found.lost {
        let are = if log::is_one(lost) { "is" } else { "are" };
        let lost = log::numbered(lost, ["command", "commands"]);
        let _ = writeln!(text, "{lost} {are} lost");
    }
    text += match (&found.lost, found.is_whole) {
        (None, true) => "nothing is missing\n",
        (Some(_), _) => {
            "what can be read of that is copied by landfall log salvage, as records of a log\n"
        }
        (None, false) => {
            "the state was not closed cleanly, so commands may be missing at its end without a trace\n"
        }
    };
    print_bytes(text.as_bytes())
}

/// What keeps it from being opened, or from being opened if one snapshot more is lost.
fn wrong(found: &StateInspection) -> Option<String> {
    let damages = found.snapshots.iter().map(|one| one.damage.as_ref());
    let (all, damaged) = (found.snapshots.len(), damages.clone().flatten().count());
    let is_lost = damages
        .clone()
        .flatten()
        .any(|why| matches!(why, Error::LogLost { .. }));
    if is_lost {
        return Some(
            "the log is damaged at its end: a snapshot has commands that are not there any more"
                .into(),
        );
    }
    if damaged == all && found.log.first_lsn > Lsn(1) {
        let first = found.log.first_lsn;
        return Some(format!(
            "the state is lost: its log begins at command {first}, and no snapshot can be used"
        ));
    }
    let snapshots = counted(all as u64, "snapshot", "snapshots");
    match damaged {
        0 => None,
        damaged if damaged == all => Some("no snapshot can be used; the log is whole".into()),
        damaged => Some(format!(
            "of {snapshots} {damaged} cannot be used; the others and the log are whole"
        )),
    }
}

fn read(state: &LogDirectory, visit: &mut dyn FnMut(&Block)) -> Result<StateInspection, Failure> {
    log::look(state, |dir| StateInspection::read(dir, visit))
}

fn summary(found: &StateInspection) -> String {
    let mut text = String::new();
    for snapshot in &found.snapshots {
        let _ = match &snapshot.damage {
            Some(why) => writeln!(text, "{}  cannot be used: {why}", snapshot.name),
            None => writeln!(
                text,
                "{}  {} in {}, {} as {}; {}",
                snapshot.name,
                bytes_text(snapshot.raw_bytes),
                counted(snapshot.parts.into(), "part", "parts"),
                bytes_text(snapshot.bytes),
                snapshot.compression,
                rest(snapshot),
            ),
        };
    }
    if let Some(draft) = &found.draft {
        let _ = writeln!(text, "{draft}  was never finished");
    }
    text.push_str(&log::summary(&found.log));
    text
}

/// Which commands a restart applies behind it.
fn rest(snapshot: &SnapshotFile) -> String {
    let (first, end) = (snapshot.first, snapshot.end);
    if first == end {
        format!("commands from {first} on are applied behind it")
    } else {
        format!(
            "commands from {first} on are applied behind it, those before {end} to parts that lack them"
        )
    }
}
