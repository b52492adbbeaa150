//! YCSB's workloads A to F, as its core package defines them, run in its order: A, B, C, F, D, E.
//!
//! A record is one value of 1,000 bytes, and an update writes all of it. In C each thread reads as of its beginning, in the
//! others as of each operation.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use clap::{ArgAction, Args};
use hdrhistogram::Histogram;

use super::{MEMORY, read, scan};
use crate::Fallible;
use crate::contest::{Common, count, load, nanos, timed, times, together};
use crate::engines::{Engine, View};
use crate::rows::{Keys, Rows};
use crate::zipf::Zipf;

const ROWS: Rows = Rows::new(Keys::User, 1_000);
/// Rows of a scan, at most.
const SCAN: usize = 100;

#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Records to load
    #[arg(long, default_value_t = 1_000_000, value_parser = count::<u64>)]
    records: u64,
    /// Operations of each workload
    #[arg(long, default_value_t = 100_000, value_parser = count::<u64>)]
    operations: u64,
    /// Threads
    #[arg(long, default_value_t = 4, value_parser = count::<usize>)]
    threads: usize,
    /// Whether each write is durable before it is acknowledged
    #[arg(long, default_value_t = true, action = ArgAction::Set)]
    durable: bool,
    /// Workloads to run
    #[arg(long, value_delimiter = ',', default_value = "A,B,C,F,D,E")]
    workloads: Vec<char>,
}

#[derive(Clone, Copy)]
enum Operation {
    Read,
    Update,
    Insert,
    Scan,
    ReadModifyWrite,
}

/// The operation that most are, the other one, and its share.
fn mixture(workload: char) -> Fallible<(Operation, Operation, f64)> {
    Ok(match workload {
        'A' => (Operation::Read, Operation::Update, 0.5),
        'B' => (Operation::Read, Operation::Update, 0.05),
        'C' => (Operation::Read, Operation::Read, 0.0),
        'D' => (Operation::Read, Operation::Insert, 0.05),
        'E' => (Operation::Scan, Operation::Insert, 0.05),
        'F' => (Operation::Read, Operation::ReadModifyWrite, 0.5),
        _ => return Err(format!("YCSB has workloads A to F, and no '{workload}'").into()),
    })
}

/// Rows that there are, and those that are being inserted.
#[derive(Default)]
struct Inserted {
    next: u64,
    flying: BTreeSet<u64>,
}

struct Records(Mutex<Inserted>);

impl Records {
    fn lock(&self) -> MutexGuard<'_, Inserted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of rows that are all there, from the first on.
    fn count(&self) -> u64 {
        let inserted = self.lock();
        inserted.flying.first().copied().unwrap_or(inserted.next)
    }

    /// Inserts the next row.
    fn insert(&self, insert: impl FnOnce(u64) -> Fallible<()>) -> Fallible<()> {
        let mut inserted = self.lock();
        let row = inserted.next;
        inserted.next += 1;
        inserted.flying.insert(row);
        drop(inserted);
        insert(row)?;
        self.lock().flying.remove(&row);
        Ok(())
    }
}

/// What the threads of a workload have in common.
struct Shared<'a> {
    engine: &'a dyn Engine,
    records: &'a Records,
    popular: Zipf,
    latest: Zipf,
    workload: char,
    durable: bool,
}

pub fn run(options: &Options) -> Fallible<()> {
    for &workload in &options.workloads {
        mixture(workload)?;
    }
    options.common.compare("ycsb", MEMORY, &|turn| {
        let engine = turn.open()?;
        let writes = (0..options.records).map(|row| ROWS.write(row, 0));
        let loaded = timed(|| load(&*engine, writes, 1_000))?;
        turn.tell_rate("load", options.records, loaded);
        engine.settle()?;
        let records = Records(Mutex::new(Inserted {
            next: options.records,
            ..Inserted::default()
        }));
        for &workload in &options.workloads {
            let shared = Shared {
                engine: &*engine,
                records: &records,
                popular: Zipf::of_ycsb(),
                latest: Zipf::new(options.records),
                workload,
                durable: options.durable,
            };
            let each = options.operations / options.threads as u64;
            let (all, took) = together(options.threads, |thread| shared.thread(thread, each))?;
            let mut times = times()?;
            for own in all {
                times.add(own)?;
            }
            turn.tell_rate(&workload.to_string(), times.len(), took);
            turn.tell_times(&workload.to_string(), &times);
        }
        Ok(())
    })
}

impl Shared<'_> {
    fn thread(&self, thread: usize, operations: u64) -> Fallible<Histogram<u64>> {
        let seed = u64::from(self.workload) << 32 | thread as u64;
        let mut random = fastrand::Rng::with_seed(seed);
        let mut times = times()?;
        let (usual, other, share) = mixture(self.workload)?;
        if share == 0.0 {
            self.engine.read(&mut |view| {
                for _ in 0..operations {
                    let row = self.row(&mut random);
                    let begin = Instant::now();
                    read(view, &ROWS, row)?;
                    times.record(nanos(begin))?;
                }
                Ok(())
            })?;
            return Ok(times);
        }
        for _ in 0..operations {
            let operation = if random.f64() < share { other } else { usual };
            let row = self.row(&mut random);
            let version = random.u64(..);
            let rows = random.usize(1..=SCAN);
            let begin = Instant::now();
            match operation {
                Operation::Read => self.view(&mut |view| read(view, &ROWS, row))?,
                Operation::Scan => self.view(&mut |view| scan(view, &ROWS, row, rows).map(drop))?,
                Operation::Update => self.write(row, version)?,
                Operation::Insert => self.records.insert(|row| self.write(row, version))?,
                Operation::ReadModifyWrite => {
                    self.view(&mut |view| read(view, &ROWS, row))?;
                    self.write(row, version)?;
                }
            }
            times.record(nanos(begin))?;
        }
        Ok(times)
    }

    /// Which row an operation is about.
    fn row(&self, random: &mut fastrand::Rng) -> u64 {
        let count = self.records.count();
        match self.workload {
            'D' => count - 1 - self.latest.next(random).min(count - 1),
            _ => self.popular.scrambled(count, random),
        }
    }

    fn view(&self, work: &mut dyn FnMut(&mut dyn View) -> Fallible<()>) -> Fallible<()> {
        self.engine.read(work)
    }

    fn write(&self, row: u64, version: u64) -> Fallible<()> {
        let write = ROWS.write(row, version);
        self.engine
            .commit(&mut std::iter::once(write), self.durable)
    }
}
