//! Updates rows at random, and counts the bytes that are written for each byte of them, until all of it is where it stays.

use std::time::{Duration, Instant};

use clap::{ArgAction, Args};

use super::{MEMORY, ROWS};
use crate::Fallible;
use crate::contest::{Common, count, nanos, prepare, timed, times};
use crate::place::{self, Meter};
use crate::probe::{self, Slow};

#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Rows to load
    #[arg(long, default_value_t = 5_000_000, value_parser = count::<u64>)]
    rows: u64,
    /// Updates
    #[arg(long, default_value_t = 2_000_000, value_parser = count::<u64>)]
    updates: u64,
    /// Seconds after which it is enough, though fewer updates were made
    #[arg(long, value_parser = count::<u64>)]
    seconds: Option<u64>,
    /// Tell of the slowest commits whether the machine or the disk was slow, by two threads that look all the time
    #[arg(long)]
    probe: bool,
    /// Updates of a commit
    #[arg(long, default_value_t = 100, value_parser = count::<u64>)]
    batch: u64,
    /// Whether each commit is durable
    #[arg(long, default_value_t = true, action = ArgAction::Set)]
    durable: bool,
    /// Whether half of each value compresses
    #[arg(long, default_value_t = true, action = ArgAction::Set)]
    compressible: bool,
    /// Block device whose writes are counted, such as nvme0n1 [default: the one that --dir is on]
    #[arg(long)]
    device: Option<String>,
}

pub fn run(options: &Options) -> Fallible<()> {
    let mut rows = ROWS;
    if !options.compressible {
        rows.random = rows.value;
    }
    options.common.compare("updates", MEMORY, &|turn| {
        let engine = turn.open()?;
        prepare(&*engine, &rows, options.rows)?;
        place::write_out(turn.parent())?;
        let meter = Meter::new(options.device.as_deref(), turn.parent())?;
        let before = meter.bytes()?;

        let mut random = fastrand::Rng::with_seed(2);
        let mut commits = times()?;
        let mut updates = 0;
        let most = options.seconds.map(Duration::from_secs);
        let mut slow = Slow::default();
        let start = Instant::now();
        let mut update = || {
            timed(|| {
                while updates < options.updates && most.is_none_or(|most| start.elapsed() < most) {
                    let numbers = updates..options.updates.min(updates + options.batch);
                    updates = numbers.end;
                    let mut writes =
                        numbers.map(|number| rows.write(random.u64(0..options.rows), number + 1));
                    let begin = Instant::now();
                    engine.commit(&mut writes, options.durable)?;
                    commits.record(nanos(begin))?;
                    slow.note(begin, begin.elapsed());
                }
                engine.sync()
            })
        };
        let updated = if options.probe {
            let (updated, beside) = probe::beside(turn.parent(), update)?;
            beside.tell(start, &slow);
            updated
        } else {
            update()?
        };
        turn.tell_rate("updates", updates, updated);
        turn.tell_times("commit", &commits);
        turn.tell("commit max", "µs", commits.max() as f64 / 1e3);
        let settled = timed(|| {
            engine.settle()?;
            place::write_out(turn.parent())
        })?;
        turn.tell("settling", "s", settled.as_secs_f64());

        let logical = (updates * rows.bytes()) as f64;
        let name = format!("written by the {} / data", meter.name());
        let written = meter.bytes()?.saturating_sub(before);
        turn.tell(&name, "×", written as f64 / logical);
        drop(engine);
        let data = (options.rows * rows.bytes()) as f64;
        let space = place::size(&turn.directory)? as f64;
        turn.tell("file size / data", "×", space / data);
        Ok(())
    })
}
