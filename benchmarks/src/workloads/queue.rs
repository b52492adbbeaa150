//! A queue: jobs are put in behind the last, and taken out from the first on. How long it takes to find the first job when the queue
//! is new, after many jobs have passed, and once it is empty again; how fast jobs pass; and the space that is left of them.
//!
//! What was removed before the first job must not be skipped again by each who looks for it.

use std::time::Instant;

use clap::{ArgAction, Args};
use hdrhistogram::Histogram;

use super::MEMORY;
use crate::Fallible;
use crate::contest::{Common, Turn, count, nanos, prepare, times};
use crate::engines::{Engine, Write};
use crate::place;
use crate::rows::{Keys, Rows};

/// Jobs of 116 bytes, their number included.
const JOBS: Rows = Rows::new(Keys::Sorted, 108);
/// How often the first job is looked for.
const LOOKS: usize = 10_000;

#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Jobs that wait
    #[arg(long, default_value_t = 1_000_000, value_parser = count::<u64>)]
    waiting: u64,
    /// Jobs that are put in and taken out while so many wait
    #[arg(long, default_value_t = 5_000_000, value_parser = count::<u64>)]
    passed: u64,
    /// Jobs that are put in by one commit, which takes out as many
    #[arg(long, default_value_t = 100, value_parser = count::<u64>)]
    batch: u64,
    /// Whether each commit is durable
    #[arg(long, default_value_t = true, action = ArgAction::Set)]
    durable: bool,
}

pub fn run(options: &Options) -> Fallible<()> {
    options.common.compare("queue", MEMORY, &|turn| {
        let engine = turn.open()?;
        look(turn, &*engine, "first of nothing, new", None)?;
        prepare(&*engine, &JOBS, options.waiting)?;
        look(turn, &*engine, "first, new", Some(0))?;
        tell_space(turn, "space, new", options.waiting)?;

        pass(turn, &*engine, options)?;
        look(turn, &*engine, "first, used", Some(options.passed))?;
        engine.settle()?;
        look(turn, &*engine, "first, settled", Some(options.passed))?;
        tell_space(turn, "space, used", options.waiting)?;

        let last = options.passed + options.waiting;
        for first in (options.passed..last).step_by(options.batch as usize) {
            let numbers = first..last.min(first + options.batch);
            engine.commit(&mut numbers.map(removed), false)?;
        }
        engine.sync()?;
        look(turn, &*engine, "first of nothing, used", None)?;
        engine.settle()?;
        look(turn, &*engine, "first of nothing, settled", None)
    })
}

/// Takes out the first jobs and puts in as many, again and again.
fn pass(turn: &mut Turn<'_>, engine: &dyn Engine, options: &Options) -> Fallible<()> {
    let (mut takes, mut commits) = (times()?, times()?);
    let begin = Instant::now();
    for first in (0..options.passed).step_by(options.batch as usize) {
        let numbers = first..options.passed.min(first + options.batch);
        let begin = Instant::now();
        engine.read(&mut |view| {
            let mut expected = numbers.clone();
            view.scan(&[], numbers.clone().count(), &mut |key, value| {
                let next = expected.next().ok_or("more jobs than were asked for")?;
                if *key != *JOBS.key(next) {
                    return Err("the first job is not the one that is due".into());
                }
                JOBS.check(key, value)
            })?;
            match expected.next() {
                None => Ok(()),
                Some(_) => Err("a job is missing".into()),
            }
        })?;
        takes.record(nanos(begin))?;

        let put = numbers
            .clone()
            .map(|number| JOBS.write(options.waiting + number, 0));
        let begin = Instant::now();
        engine.commit(&mut numbers.map(removed).chain(put), options.durable)?;
        commits.record(nanos(begin))?;
    }
    engine.sync()?;
    turn.tell_rate("passed", options.passed, begin.elapsed());
    turn.tell_times("take", &takes);
    turn.tell_times("commit", &commits);
    Ok(())
}

fn removed(number: u64) -> Write {
    Write {
        key: JOBS.key(number),
        value: None,
    }
}

/// Looks for the first job many times, each time as of then, and tells how long the median took.
fn look(
    turn: &mut Turn<'_>,
    engine: &dyn Engine,
    phase: &str,
    expected: Option<u64>,
) -> Fallible<()> {
    let mut times: Histogram<u64> = times()?;
    for _ in 0..LOOKS {
        let mut found = None;
        let begin = Instant::now();
        engine.read(&mut |view| {
            view.scan(&[], 1, &mut |key, _| {
                found = Some(key.to_vec());
                Ok(())
            })
        })?;
        times.record(nanos(begin))?;
        if found != expected.map(|number| JOBS.key(number)) {
            return Err("the first job is another one".into());
        }
    }
    let median = times.value_at_quantile(0.5) as f64 / 1e3;
    turn.tell(phase, "µs", median);
    Ok(())
}

/// Tells how much more the files take than the jobs that wait.
fn tell_space(turn: &mut Turn<'_>, phase: &str, waiting: u64) -> Fallible<()> {
    place::write_out(turn.parent())?;
    let data = (waiting * JOBS.bytes()) as f64;
    let space = place::size(&turn.directory)? as f64;
    turn.tell(phase, "× data", space / data);
    Ok(())
}
