//! The log on a disk that loses power, with threads that a seed schedules.
//!
//! `cargo test -p landfall --test simulation` plays a minute of it. For longer:
//!
//! ```sh
//! LANDFALL_SIMULATE_SECONDS=3600 cargo test --release -p landfall --test simulation -- --nocapture
//! ```
//!
//! says how many crash states were tried, and with which seed a promise was broken, if one was;
//! `LANDFALL_SIMULATE_SEED=N` plays that one alone. `LANDFALL_SIMULATE_MISTAKE=SkipFlush` has one planted mistake looked
//! for instead of all.

mod disk;
mod environment;
mod history;
mod scenario;

use std::collections::HashSet;
use std::env;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use landfall::environment::Fault;

use scenario::{Kind, Seeds, catch, play};

fn number(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

#[test]
fn a_power_cut_at_any_moment_loses_nothing_that_was_acknowledged() {
    if let Some(seed) = number("LANDFALL_SIMULATE_SEED") {
        for kind in Kind::ALL {
            let broken = play(kind, seed, None).broken;
            assert_eq!(broken, None, "seed {seed}, {kind:?}");
        }
        return;
    }
    let seconds = number("LANDFALL_SIMULATE_SECONDS").unwrap_or(20);
    let first = number("LANDFALL_SIMULATE_FROM").unwrap_or(0);
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let (seeds, begin) = (Seeds::from(first), Instant::now());
    let states = Mutex::new(HashSet::new());
    let (seeds, states) = (&seeds, &states);
    let tried: u64 = thread::scope(|scope| {
        let workers: Vec<_> = (0..workers)
            .map(|_| {
                scope.spawn(move || {
                    let mut tried = 0;
                    while begin.elapsed() < Duration::from_secs(seconds) {
                        let seed = seeds.next();
                        for kind in Kind::ALL {
                            let outcome = play(kind, seed, None);
                            assert_eq!(outcome.broken, None, "seed {seed}, {kind:?}");
                            tried += outcome.states.len() as u64;
                            states.lock().unwrap().extend(outcome.states);
                        }
                    }
                    tried
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .sum()
    });
    let states = states.lock().unwrap().len();
    let per_hour = states as f64 / begin.elapsed().as_secs_f64() * 3600.0;
    println!(
        "{tried} crash states of {} seeds, {states} of them distinct: {per_hour:.0} distinct an hour",
        seeds.next() - first,
    );
    assert!(states > 100);
}

#[test]
fn a_seed_plays_the_same_again() {
    for kind in Kind::ALL {
        let states = || play(kind, 7, None).states;
        assert_eq!(states(), states(), "{kind:?}");
    }
}

#[test]
fn every_planted_mistake_is_caught() {
    const SEEDS: u64 = 3000;
    let mut missed = Vec::new();
    println!(
        "{:24} {:>6}  {:10} what was seen",
        "mistake", "seeds", "scenario"
    );
    let only = env::var("LANDFALL_SIMULATE_MISTAKE").ok();
    let wanted = |fault: &Fault| {
        only.as_ref()
            .is_none_or(|only| *only == format!("{fault:?}"))
    };
    for fault in Fault::ALL.into_iter().filter(wanted) {
        match catch(&Kind::ALL, fault, SEEDS) {
            Some((seeds, kind, broken)) => {
                let (fault, kind) = (format!("{fault:?}"), format!("{kind:?}"));
                println!("{fault:24} {seeds:>6}  {kind:10} {broken}");
            }
            None => missed.push(fault),
        }
    }
    assert_eq!(missed, [], "these were not seen in {SEEDS} seeds");
}
