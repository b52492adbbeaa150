//! The log, and a state, on a disk that loses power, with threads that a seed schedules.
//!
//! `cargo test -p landfall --test simulation` plays a minute of each. For longer:
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
mod state;

use std::collections::HashSet;
use std::env;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use landfall::environment::Fault;

use scenario::{Kind, Outcome, Seeds};

/// Plays a scenario of a kind from its number, with a mistake or without.
type Play = fn(Kind, u64, Option<Fault>) -> Outcome;

fn number(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

#[test]
fn a_power_cut_at_any_moment_loses_nothing_that_was_acknowledged() {
    explore("log", &Kind::ALL, scenario::play);
}

#[test]
fn a_power_cut_at_any_moment_loses_nothing_of_a_state() {
    explore("state", &state::KINDS, state::play);
}

#[test]
fn a_snapshot_without_space_leaves_what_was_there() {
    for seed in 0..200 {
        assert_eq!(state::without_space(seed).broken, None, "seed {seed}");
    }
}

#[test]
fn a_seed_plays_the_same_again() {
    for kind in Kind::ALL {
        let states = || scenario::play(kind, 7, None).states;
        assert_eq!(states(), states(), "{kind:?}");
    }
    for kind in state::KINDS {
        let states = || state::play(kind, 7, None).states;
        assert_eq!(states(), states(), "a state, {kind:?}");
    }
}

#[test]
fn every_planted_mistake_is_caught() {
    catch_all(&Fault::LOG, &Kind::ALL, scenario::play);
}

#[test]
fn every_mistake_planted_in_a_state_is_caught() {
    catch_all(&Fault::STATE, &state::KINDS, state::play);
}

/// Plays one seed after the other, on all processors, for as long as is asked.
fn explore(what: &str, kinds: &[Kind], play: Play) {
    if let Some(seed) = number("LANDFALL_SIMULATE_SEED") {
        for &kind in kinds {
            let broken = play(kind, seed, None).broken;
            assert_eq!(broken, None, "{what}, seed {seed}, {kind:?}");
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
                        for &kind in kinds {
                            let outcome = play(kind, seed, None);
                            assert_eq!(outcome.broken, None, "{what}, seed {seed}, {kind:?}");
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
        "{what}: {tried} crash states of {} seeds, {states} of them distinct: {per_hour:.0} distinct an hour",
        seeds.next() - first,
    );
    assert!(states > 100);
}

/// Plants each mistake, and plays until a promise is broken by it.
fn catch_all(faults: &[Fault], kinds: &[Kind], play: Play) {
    const SEEDS: u64 = 3000;
    let mut missed = Vec::new();
    println!(
        "{:24} {:>6}  {:10} what was seen",
        "mistake", "seeds", "scenario"
    );
    let only = env::var("LANDFALL_SIMULATE_MISTAKE").ok();
    let wanted = |fault: &&Fault| {
        only.as_ref()
            .is_none_or(|only| *only == format!("{fault:?}"))
    };
    for &fault in faults.iter().filter(wanted) {
        let mut all = (0..SEEDS).flat_map(|seed| kinds.iter().map(move |&kind| (seed, kind)));
        let caught = all.find_map(|(seed, kind)| {
            let broken = play(kind, seed, Some(fault)).broken?;
            Some((seed + 1, kind, broken))
        });
        match caught {
            Some((seeds, kind, broken)) => {
                let (fault, kind) = (format!("{fault:?}"), format!("{kind:?}"));
                println!("{fault:24} {seeds:>6}  {kind:10} {broken}");
            }
            None => missed.push(fault),
        }
    }
    assert_eq!(missed, [], "these were not seen in {SEEDS} seeds");
}
