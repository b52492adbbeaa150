//! Opens a store whose process was killed, with a log that no checkpoint has cut, and gets a row.
//!
//! A process of its own writes the rows, makes them durable, and is killed by SIGKILL. The files are in the page cache.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use clap::Args;

use super::{ROWS, read};
use crate::Fallible;
use crate::contest::{Common, count, load};
use crate::engines::{Kind, Settings};

/// Bytes of memory for a row that waits to be written: more than any store needs.
const MEMORY_OF_ROW: u64 = 400;

#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Rows to write, of 116 bytes
    #[arg(long, default_value_t = 8_000_000, value_parser = count::<u64>)]
    rows: u64,
    /// Rows of a commit
    #[arg(long, default_value_t = 100, value_parser = count::<usize>)]
    batch: usize,
}

/// What the process that is killed is told.
#[derive(Args)]
pub struct Fill {
    engine: String,
    directory: PathBuf,
    memory: u64,
    rows: u64,
    batch: usize,
}

pub fn run(options: &Options) -> Fallible<()> {
    let mut contestants = options.common.contestants()?;
    for one in &mut contestants {
        one.checkpoints = false;
    }
    let memory = options.rows * MEMORY_OF_ROW + (64 << 20);
    let results = options
        .common
        .contest("open", memory, &contestants, &|turn| {
            let begin = Instant::now();
            let mut child = Command::new(std::env::current_exe()?)
                .args(["fill", turn.contestant.kind.name])
                .arg(&turn.directory)
                .args(
                    [turn.memory, options.rows, options.batch as u64].map(|word| word.to_string()),
                )
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            let mut line = String::new();
            let said = child.stdout.take().map(BufReader::new);
            let said = said.map_or(Ok(0), |mut said| said.read_line(&mut line));
            let wrote = begin.elapsed();
            child.kill()?;
            child.wait()?;
            said?;
            if line != "filled\n" {
                return Err("the rows could not be written".into());
            }
            turn.tell("write", "s", wrote.as_secs_f64());

            let begin = Instant::now();
            let engine = turn.open()?;
            engine.read(&mut |view| read(view, &ROWS, 0))?;
            turn.tell("open after SIGKILL", "s", begin.elapsed().as_secs_f64());
            engine.read(&mut |view| {
                (0..options.rows)
                    .rev()
                    .step_by(1009)
                    .try_for_each(|row| read(view, &ROWS, row))
            })
        })?;
    results.tell(options.common.json.as_deref())
}

/// Writes the rows, says so, and waits to be killed.
pub fn fill(fill: &Fill) -> Fallible<()> {
    let engine = (Kind::named(&fill.engine)?.open)(&Settings {
        directory: fill.directory.clone(),
        memory: fill.memory,
        checkpoints: false,
    })?;
    let writes = (0..fill.rows).map(|row| ROWS.write(row, 0));
    load(&*engine, writes, fill.batch)?;
    println!("filled");
    // Ends when the other process does, if that has not killed this one.
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}
