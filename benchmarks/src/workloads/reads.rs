//! Reads rows that were loaded and perhaps updated, by one thread: at random when nothing of them is in memory, once more, rows that are
//! not there, and scans.
//!
//! A process of its own writes them, so that what the store had then in memory, and left in pieces, is not counted while it is read.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use clap::Args;
use hdrhistogram::Histogram;

use super::{MEMORY, ROWS, read, scan};
use crate::Fallible;
use crate::contest::{Common, Turn, count, nanos, prepare, times};
use crate::engines::{Engine, Kind, Settings};
use crate::place;

/// Updates of a commit.
const BATCH: usize = 100;

#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Rows to load
    #[arg(long, default_value_t = 5_000_000, value_parser = count::<u64>)]
    rows: u64,
    /// Updates at random before, in commits of 100
    #[arg(long, default_value_t = 0, value_parser = count::<u64>)]
    updates: u64,
    /// Rows to read, cold and then warm
    #[arg(long, default_value_t = 200_000, value_parser = count::<u64>)]
    reads: u64,
    /// Scans of 100 rows
    #[arg(long, default_value_t = 20_000, value_parser = count::<u64>)]
    scans: u64,
    /// Empties the whole page cache before the cold reads; needs root
    #[arg(long)]
    drop_caches: bool,
}

/// What the process that writes is told.
#[derive(Args)]
pub struct Write {
    engine: String,
    directory: PathBuf,
    memory: u64,
    rows: u64,
    updates: u64,
}

/// Writes the rows, updates some, and waits until all is in its place.
pub fn write(options: &Write) -> Fallible<()> {
    let engine = (Kind::named(&options.engine)?.open)(&Settings {
        directory: options.directory.clone(),
        memory: options.memory,
        checkpoints: true,
    })?;
    prepare(&*engine, &ROWS, options.rows)?;
    let mut random = fastrand::Rng::with_seed(2);
    for first in (0..options.updates).step_by(BATCH) {
        let numbers = first..options.updates.min(first + BATCH as u64);
        let mut writes = numbers.map(|number| ROWS.write(random.u64(0..options.rows), number + 1));
        engine.commit(&mut writes, false)?;
    }
    engine.settle()
}

/// Reads rows at random, and tells how fast that was.
fn gets(turn: &mut Turn<'_>, engine: &dyn Engine, name: &str, options: &Options) -> Fallible<()> {
    let mut random = fastrand::Rng::with_seed(name.len() as u64);
    let mut times: Histogram<u64> = times()?;
    let begin = Instant::now();
    engine.read(&mut |view| {
        for _ in 0..options.reads {
            let begin = Instant::now();
            read(view, &ROWS, random.u64(0..options.rows))?;
            times.record(nanos(begin))?;
        }
        Ok(())
    })?;
    turn.tell_rate(name, options.reads, begin.elapsed());
    turn.tell_times(name, &times);
    Ok(())
}

/// Looks for keys that are not there.
fn gets_of_nothing(turn: &mut Turn<'_>, engine: &dyn Engine, options: &Options) -> Fallible<()> {
    let mut random = fastrand::Rng::with_seed(5);
    let begin = Instant::now();
    engine.read(&mut |view| {
        for _ in 0..options.reads {
            // Behind those that there are: their keys are anywhere between them.
            let row = options.rows + random.u64(0..options.rows);
            if view.get(&ROWS.key(row), &mut |_, _| Ok(()))? {
                return Err("there is a row that was never written".into());
            }
        }
        Ok(())
    })?;
    turn.tell_rate("gets of nothing", options.reads, begin.elapsed());
    Ok(())
}

pub fn run(options: &Options) -> Fallible<()> {
    options.common.compare("reads", MEMORY, &|turn| {
        let numbers = [turn.memory, options.rows, options.updates];
        let status = Command::new(std::env::current_exe()?)
            .args(["write", turn.contestant.kind.name])
            .arg(&turn.directory)
            .args(numbers.map(|number| number.to_string()))
            .status()?;
        if !status.success() {
            return Err(format!("the rows could not be written: {status}").into());
        }
        place::forget(turn.parent(), options.drop_caches)?;

        let engine = turn.open()?;
        gets(turn, &*engine, "cold gets", options)?;
        gets(turn, &*engine, "gets", options)?;
        gets_of_nothing(turn, &*engine, options)?;
        let mut random = fastrand::Rng::with_seed(3);
        let begin = Instant::now();
        engine.read(&mut |view| {
            for _ in 0..options.scans {
                scan(view, &ROWS, random.u64(0..options.rows), 100)?;
            }
            Ok(())
        })?;
        turn.tell_rate("scans of 100", options.scans, begin.elapsed());
        Ok(())
    })
}
