//! The workload of redb's own benchmark: `crates/redb-bench` of its repository, without what other stores have no call for.
//!
//! Keys of 24 and values of 150 bytes, which do not compress. Transactions that redb makes at once are made at once, and by
//! 100,000 writes where a store keeps them in memory, as there.

use clap::Args;

use super::{read, scan};
use crate::Fallible;
use crate::contest::{Common, Turn, load, timed, together};
use crate::engines::{Engine, Write};
use crate::place;
use crate::rows::{Keys, Rows};

/// As there.
const MEMORY: u64 = 4 << 30;
const ROWS: Rows = Rows {
    keys: Keys::Wide,
    value: 150,
    random: 150,
};
const BULK: u64 = 5_000_000;
const SINGLE: u64 = 1_000;
const BATCHES: u64 = 100;
const BATCH: u64 = 1_000;
const UNSYNCED: u64 = 50_000;
const READS: u64 = 1_000_000;
const SCANS: u64 = 500_000;
const SCAN: usize = 10;
const THREADS: [usize; 4] = [4, 8, 16, 32];

#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Multiplies all counts
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
}

pub fn run(options: &Options) -> Fallible<()> {
    let scaled = |count: u64| ((count as f64 * options.scale) as u64).max(1);
    options.common.compare("redb", MEMORY, &|turn| {
        let engine = turn.open()?;
        let elements = writes(turn, &*engine, &scaled)?;
        reads(turn, &*engine, elements, &scaled)?;

        let removed = elements / 2;
        let key = |row| Write {
            key: ROWS.key(row),
            value: None,
        };
        phase(turn, "removals", || {
            load(&*engine, (0..removed).map(key), usize::MAX)
        })?;
        engine.read(&mut |view| {
            let found = view.get(&ROWS.key(removed - 1), &mut |_, _| Ok(()))?;
            if found {
                Err("a removed row is there".into())
            } else {
                read(view, &ROWS, removed)
            }
        })?;
        size(turn, "uncompacted size")?;
        let mut compacts = false;
        let took = timed(|| {
            compacts = engine.compact()?;
            Ok(())
        })?;
        if compacts {
            turn.tell("compaction", "s", took.as_secs_f64());
            size(turn, "compacted size")?;
        }
        Ok(())
    })
}

fn phase(turn: &mut Turn<'_>, name: &str, work: impl FnOnce() -> Fallible<()>) -> Fallible<()> {
    let took = timed(work)?;
    turn.tell(name, "s", took.as_secs_f64());
    Ok(())
}

fn size(turn: &mut Turn<'_>, name: &str) -> Fallible<()> {
    let bytes = place::size(&turn.directory)?;
    turn.tell(name, "MiB", bytes as f64 / f64::from(1 << 20));
    Ok(())
}

/// Returns how many rows there are then.
fn writes(turn: &mut Turn<'_>, engine: &dyn Engine, scaled: &dyn Fn(u64) -> u64) -> Fallible<u64> {
    let rows = |from: u64, count: u64| (from..from + count).map(|row| ROWS.write(row, 0));
    let mut next = scaled(BULK);
    phase(turn, "bulk load", || {
        load(engine, rows(0, next), usize::MAX)
    })?;
    let phases = [
        ("individual writes", scaled(SINGLE), 1, true),
        ("batch writes", scaled(BATCHES), BATCH, true),
        ("nosync writes", scaled(UNSYNCED), 1, false),
    ];
    for (name, commits, size, durable) in phases {
        phase(turn, name, || {
            for _ in 0..commits {
                engine.commit(&mut rows(next, size), durable)?;
                next += size;
            }
            Ok(())
        })?;
    }
    Ok(next)
}

fn reads(
    turn: &mut Turn<'_>,
    engine: &dyn Engine,
    elements: u64,
    scaled: &dyn Fn(u64) -> u64,
) -> Fallible<()> {
    phase(turn, "len()", || {
        engine.read(&mut |view| {
            if view.len()? == elements {
                Ok(())
            } else {
                Err("the number of rows is wrong".into())
            }
        })
    })?;
    for name in ["random reads", "random reads, again"] {
        phase(turn, name, || {
            engine.read(&mut |view| (0..scaled(READS)).try_for_each(|row| read(view, &ROWS, row)))
        })?;
    }
    for name in ["random range reads", "random range reads, again"] {
        phase(turn, name, || {
            engine.read(&mut |view| {
                (0..scaled(SCANS)).try_for_each(|row| scan(view, &ROWS, row, SCAN).map(drop))
            })
        })?;
    }
    for threads in THREADS {
        let name = format!("random reads, {threads} threads");
        let each = elements / threads as u64;
        let (_, took) = together(threads, |thread| {
            let first = thread as u64 * each;
            engine
                .read(&mut |view| (first..first + each).try_for_each(|row| read(view, &ROWS, row)))
        })?;
        turn.tell(&name, "s", took.as_secs_f64());
    }
    Ok(())
}
