//! `landfall store`: a key-value store of the engine's, looked at from outside.

use std::fmt::Write;
use std::ops::Bound;
use std::path::Path;

use landfall::{DamagedLeaf, Error, StoreInspection};
use landfall_os::humanize::bytes_text;

use super::log;
use crate::args::{Store, StoreCommand, StoreDirectory, StoreDump, StoreStat};
use crate::commands::{counted, print_bytes};
use crate::exit::{Code, Failure};

/// Bytes of a key or a value that are shown.
const SHOWN: usize = 64;

pub fn run(arguments: &Store) -> Result<Code, Failure> {
    match &arguments.command {
        StoreCommand::Stat(store) => stat(store),
        StoreCommand::Dump(store) => dump(store),
        StoreCommand::Verify(store) => verify(store),
    }
}

fn stat(arguments: &StoreStat) -> Result<Code, Failure> {
    let found = look(&arguments.store, |dir| StoreInspection::read(dir))?;
    let mut text = summary(&found);
    if let Some(expected) = found.expected_writes(arguments.memory) {
        let memory = bytes_text(arguments.memory as u64);
        let _ = writeln!(
            text,
            "expected with {memory} of memory: leaves and runs, for each byte updated at random, {expected}"
        );
    }
    print_bytes(text.as_bytes())
}

fn dump(arguments: &StoreDump) -> Result<Code, Failure> {
    let mut printed = Ok(Code::Measured);
    let wanted = arguments.keyspace.as_deref();
    let (found, damage) = look(&arguments.store, |dir| {
        StoreInspection::dump(dir, |keyspace, key, value| {
            if printed.is_ok() && wanted.is_none_or(|wanted| wanted == keyspace) {
                let line = format!("{keyspace}  {}  {}\n", text_of(key), text_of(value));
                printed = print_bytes(line.as_bytes());
            }
        })
    })?;
    if let Some(wanted) = wanted
        && !found.keyspaces.iter().any(|one| one.name == wanted)
    {
        let names: Vec<&str> = found.keyspaces.iter().map(|one| &*one.name).collect();
        let text = format!(
            "the store has no keyspace '{wanted}'; it has: {}",
            names.join(", ")
        );
        return Err(Failure::new(Code::Usage, text));
    }
    let of_wanted = |one: &&DamagedLeaf| wanted.is_none_or(|wanted| wanted == one.keyspace);
    let damage: Vec<String> = damage.iter().filter(of_wanted).map(damage_text).collect();
    if damage.is_empty() {
        return printed;
    }
    printed?;
    Err(Failure::new(Code::Failed, damage.join("\n")))
}

fn verify(store: &StoreDirectory) -> Result<Code, Failure> {
    let (found, verified) = look(store, |dir| StoreInspection::verify(dir))?;
    let mut text = summary(&found);
    for damage in &verified.damage {
        let _ = writeln!(text, "{}", damage_text(damage));
    }
    let leaves = counted(verified.leaves, "leaf", "leaves");
    let entries = counted(verified.entries, "entry", "entries");
    if verified.damage.is_empty() {
        let _ = writeln!(text, "whole: the log, and {leaves} with {entries}");
        return print_bytes(text.as_bytes());
    }
    print_bytes(text.as_bytes())?;
    let damaged = verified.damage.len();
    let text =
        format!("of {leaves} {damaged} cannot be read; all other keys, and the log, are whole");
    Err(Failure::new(Code::Failed, text))
}

fn damage_text(damage: &DamagedLeaf) -> String {
    let from = match &damage.keys.0 {
        Bound::Included(key) | Bound::Excluded(key) => format!("from {}", text_of(key)),
        Bound::Unbounded => "from the first".to_owned(),
    };
    let to = match &damage.keys.1 {
        Bound::Included(key) | Bound::Excluded(key) => format!("before {}", text_of(key)),
        Bound::Unbounded => "to the last".to_owned(),
    };
    let DamagedLeaf {
        keyspace,
        offset,
        error,
        ..
    } = damage;
    let why = match error {
        Error::Corrupt { what, .. } => what.clone(),
        error => error.to_string(),
    };
    format!(
        "{keyspace}: keys {from} {to} are in a leaf at byte {offset} that cannot be read: {why}"
    )
}

fn summary(found: &StoreInspection) -> String {
    let mut text = String::new();
    for keyspace in &found.keyspaces {
        let in_place = if keyspace.options.in_place {
            ", in place"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "{}: {} in {}, {} of pages; leaves of {}{in_place}, compression {}",
            keyspace.name,
            counted(keyspace.leaves, "leaf", "leaves"),
            counted(keyspace.groups, "group", "groups"),
            bytes_text(keyspace.leaf_bytes),
            bytes_text(keyspace.options.leaf_bytes.into()),
            keyspace.options.compression.name(),
        );
        if keyspace.runs > 0 {
            let share = 100.0 * keyspace.run_bytes as f64 / keyspace.leaf_bytes.max(1) as f64;
            let _ = writeln!(
                text,
                "{}: {} of changes, still to be merged into leaves, {} ({share:.1}% of them)",
                keyspace.name,
                counted(keyspace.runs, "run", "runs"),
                bytes_text(keyspace.run_bytes),
            );
        }
    }
    if found.keyspaces.iter().any(|one| one.options.in_place) {
        let _ = writeln!(text, "protection of leaves in place: {}", found.protection);
    }
    if found.buffer_percent > 0 {
        let percent = found.buffer_percent;
        let _ = writeln!(text, "buffer: runs may take {percent}% of what leaves take");
    }
    if found.torn_leaves > 0 {
        let torn = counted(found.torn_leaves, "torn leaf", "torn leaves");
        let _ = writeln!(text, "{torn}, to be restored when the store is opened");
    }
    let _ = match found.checkpoint {
        0 => writeln!(text, "no checkpoint yet: everything is in the log"),
        number => writeln!(
            text,
            "checkpoint {number}; data file of {}, {} of it free",
            bytes_text(found.file_bytes),
            bytes_text(found.free_bytes)
        ),
    };
    let closed = if found.is_closed {
        "closed"
    } else {
        "not closed cleanly"
    };
    let commits = found.first_lsn..found.next_lsn;
    let _ = writeln!(
        text,
        "log of {}, {} to apply again ({} of changes); {closed}",
        log::numbered(&commits, ["commit", "commits"]),
        found.commits,
        bytes_text(found.waiting_bytes)
    );
    text
}

/// Printable, and not too long.
fn text_of(bytes: &[u8]) -> String {
    let shown = bytes[..bytes.len().min(SHOWN)].escape_ascii();
    if bytes.len() > SHOWN {
        format!("{shown}… ({} bytes)", bytes.len())
    } else {
        format!("\"{shown}\"")
    }
}

/// Looks at what a directory holds; why that cannot be done is said in a sentence.
fn look<R>(
    store: &StoreDirectory,
    read: impl FnOnce(&Path) -> Result<R, Error>,
) -> Result<R, Failure> {
    log::look_in(&store.dir, "store", read)
}
