//! Times of durable commits by one thread, while the store writes out what it has in memory again and again.
//!
//! Landfall has another turn without checkpoints. What they cost is the ratio of the two.

use std::time::Instant;

use clap::Args;

use super::{read, scan};
use crate::Fallible;
use crate::contest::{Common, Contestant, count, nanos, prepare, times};
use crate::rows::{Keys, Rows};

/// Small, so that there are checkpoints.
const MEMORY: u64 = 16 << 20;
/// 100 bytes.
const ROWS: Rows = Rows::new(Keys::Random, 92);
const UNDISTURBED: &str = "landfall, no checkpoint";
const TAIL: &str = "commit p99.9";

#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Rows to load
    #[arg(long, default_value_t = 1_000_000, value_parser = count::<u64>)]
    rows: u64,
    /// Commits of one row
    #[arg(long, default_value_t = 200_000, value_parser = count::<u64>)]
    commits: u64,
}

pub fn run(options: &Options) -> Fallible<()> {
    let mut contestants = options.common.contestants()?;
    let own = contestants.iter().position(|one| one.name == "landfall");
    if let Some(at) = own {
        let undisturbed = Contestant {
            name: UNDISTURBED.into(),
            version: String::new(),
            checkpoints: false,
            ..contestants[at].clone()
        };
        contestants.insert(at + 1, undisturbed);
    }
    let mut results = options
        .common
        .contest("stalls", MEMORY, &contestants, &|turn| {
            let engine = turn.open()?;
            prepare(&*engine, &ROWS, options.rows)?;
            let mut random = fastrand::Rng::with_seed(2);
            let mut times = times()?;
            let begin = Instant::now();
            for number in 0..options.commits {
                let write = ROWS.write(random.u64(0..options.rows), number + 1);
                let begin = Instant::now();
                engine.commit(&mut std::iter::once(write), true)?;
                times.record(nanos(begin))?;
            }
            turn.tell_rate("commits", options.commits, begin.elapsed());
            turn.tell_times("commit", &times);
            turn.tell("commit max", "µs", times.max() as f64 / 1e3);
            engine.read(&mut |view| {
                read(view, &ROWS, 0)?;
                scan(view, &ROWS, 0, 100).map(drop)
            })
        })?;
    let tail = results.phases.iter().find(|phase| phase.name == TAIL);
    let tails = tail.and_then(|tail| tail.of("landfall").zip(tail.of(UNDISTURBED)));
    if let Some((own, undisturbed)) = tails {
        let pairs = own.rounds.iter().zip(&undisturbed.rounds);
        let ratios: Vec<f64> = pairs.map(|(own, undisturbed)| own / undisturbed).collect();
        for ratio in ratios {
            results.add("landfall", "p99.9 / without a checkpoint", "×", ratio);
        }
    }
    results.tell(options.common.json.as_deref())
}
