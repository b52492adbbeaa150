//! The log, and a state, on a disk that loses power, fails, lies and rots, with threads that a seed schedules.
//!
//! `cargo test -p landfall --lib simulation` plays a minute. For longer:
//!
//! ```sh
//! LANDFALL_SIMULATE_SECONDS=3600 cargo test --release -p landfall --lib simulation -- --nocapture
//! ```
//!
//! says how many crash states and damaged directories were tried, and with which seed a promise was broken, if one was;
//! `LANDFALL_SIMULATE_SEED=N` plays that one alone. `LANDFALL_SIMULATE_MISTAKE=SkipFlush` has one planted mistake looked
//! for instead of all.

mod damage;
mod disk;
mod environment;
mod history;
mod oracle;
mod reused;
mod scenario;
mod scheduler;
mod state;
mod store;
mod torn_over;
mod waiting;

use std::collections::{BTreeMap, HashSet};
use std::env;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use self::disk::How;
use self::scenario::{Kind, Outcome, Seeds};
use crate::Protection;

pub(crate) use crate::mistakes::Fault;

/// Plays a scenario from its number, with a mistake or without.
type Play = dyn Fn(u64, Option<Fault>) -> Outcome + Sync;

/// A way to play, and what it is called.
type Named<'a> = (&'a str, &'a Play);

const LOG: [Named<'static>; 8] = [
    ("power cut", &|seed, planted| {
        scenario::play(Kind::PowerCut, seed, planted)
    }),
    ("killed", &|seed, planted| {
        scenario::play(Kind::Killed, seed, planted)
    }),
    ("failing", &|seed, planted| {
        scenario::play(Kind::Failing, seed, planted)
    }),
    ("no space", &|seed, planted| {
        scenario::play(Kind::NoSpace, seed, planted)
    }),
    ("lying", &|seed, planted| {
        scenario::play(Kind::Lying, seed, planted)
    }),
    ("reopened", &|seed, planted| {
        scenario::play(Kind::Reopened, seed, planted)
    }),
    ("idle", &scenario::idle),
    ("reused", &reused::reused),
];

const STATE: [Named<'static>; 7] = [
    ("power cut", &|seed, planted| {
        state::play(Kind::PowerCut, seed, planted)
    }),
    ("killed", &|seed, planted| {
        state::play(Kind::Killed, seed, planted)
    }),
    ("failing", &|seed, planted| {
        state::play(Kind::Failing, seed, planted)
    }),
    ("no space", &|seed, planted| {
        state::play(Kind::NoSpace, seed, planted)
    }),
    ("damaged", &state::play_damage),
    ("no space left", &state::without_space),
    ("no promise", &state::without_promise),
];

const STORE: [Named<'static>; 12] = [
    ("older readers", &store::older_readers),
    ("runs", &store::play_runs),
    ("power cut", &|seed, planted| {
        store::play(Kind::PowerCut, seed, planted)
    }),
    ("killed", &|seed, planted| {
        store::play(Kind::Killed, seed, planted)
    }),
    ("failing", &|seed, planted| {
        store::play(Kind::Failing, seed, planted)
    }),
    ("no space", &|seed, planted| {
        store::play(Kind::NoSpace, seed, planted)
    }),
    (
        "killed in a checkpoint",
        &store::checkpoints::killed_in_checkpoint,
    ),
    (
        "removed before a checkpoint",
        &store::checkpoints::removed_before_checkpoint,
    ),
    ("torn at home", &store::at_home::torn_at_home),
    ("late helper", &store::late::late_helper),
    (
        "cut before an empty one",
        &store::at_home::cut_before_an_empty_one,
    ),
    ("damaged", &store::failing::play_damage),
];

const DAMAGE: [Named<'static>; 1] = [("damaged", &damage::play)];

fn number(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

#[test]
fn a_power_cut_at_any_moment_loses_nothing_that_was_acknowledged() {
    explore("log", &LOG);
}

#[test]
fn a_power_cut_at_any_moment_loses_nothing_of_a_state() {
    explore("state", &STATE);
}

#[test]
fn a_power_cut_at_any_moment_loses_nothing_of_a_store() {
    explore("store", &STORE);
}

/// Plays the first seeds, as many as are asked for.
fn keeps_its_promises(seeds: u64, play: impl Fn(u64) -> Outcome) {
    for seed in 0..seeds {
        assert_eq!(play(seed).broken, None, "seed {seed}");
    }
}

#[test]
fn a_store_on_a_full_disk_opens_and_can_be_emptied() {
    keeps_its_promises(16, |seed| store::full_disk::play(seed, None));
}

#[test]
fn a_store_on_a_full_disk_can_be_emptied_key_by_key() {
    keeps_its_promises(32, |seed| store::full_disk::emptied_key_by_key(seed, None));
}

#[test]
fn a_store_on_a_full_disk_can_be_emptied_in_batches() {
    keeps_its_promises(16, |seed| store::full_disk::emptied_in_batches(seed, None));
}

#[test]
fn what_a_range_removes_on_a_full_disk_makes_room_though_rows_wait() {
    keeps_its_promises(4, |seed| {
        store::full_disk::rows_wait_in_each_group(seed, None)
    });
}

#[test]
fn what_a_log_has_that_filled_the_disk_alone_can_be_removed() {
    keeps_its_promises(16, |seed| {
        store::full_disk::full_before_the_first_checkpoint(seed, None)
    });
}

#[test]
fn a_log_that_is_full_of_what_is_not_needed_asks_for_a_checkpoint() {
    keeps_its_promises(24, store::full_disk::log_fills);
}

#[test]
fn where_the_log_has_no_space_for_images_leaves_are_written_elsewhere() {
    keeps_its_promises(16, store::full_disk::images_lack_space);
}

#[test]
fn keyspaces_can_be_removed_where_the_log_is_full() {
    keeps_its_promises(8, store::full_disk::many_keyspaces_go);
}

#[test]
fn a_keyspace_that_is_removed_during_a_checkpoint_is_gone_or_whole() {
    keeps_its_promises(1000, |seed| store::full_disk::removed_meanwhile(seed, None));
}

#[test]
fn a_store_that_is_closed_while_others_write_opens_again() {
    keeps_its_promises(100, store::closing::closed_meanwhile);
}

#[test]
fn damage_is_reported_and_nothing_changed() {
    explore("damaged logs", &DAMAGE);
}

#[test]
fn every_call_may_fail() {
    for seed in 0..number("LANDFALL_SIMULATE_CALLS").unwrap_or(4) {
        for how in [How::Io, How::NoSpace, How::Short, How::Interrupted] {
            for stays in [false, true] {
                if stays && how == How::Interrupted {
                    // It would be tried for ever.
                    continue;
                }
                let broken = damage::every_call(seed, how, stays, None).broken;
                assert_eq!(broken, None, "seed {seed}, {how:?}, stays: {stays}");
            }
        }
    }
}

#[test]
fn every_call_of_a_store_may_fail() {
    for seed in 0..number("LANDFALL_SIMULATE_CALLS").unwrap_or(6) {
        for how in [How::Io, How::NoSpace, How::Short, How::Interrupted] {
            for stays in [false, true] {
                if stays && how == How::Interrupted {
                    // It would be tried for ever.
                    continue;
                }
                let broken = store::failing::every_call(seed, how, stays, None).broken;
                assert_eq!(broken, None, "seed {seed}, {how:?}, stays: {stays}");
            }
        }
    }
}

#[test]
fn every_call_may_fail_while_segments_are_streamed() {
    for seed in 0..12 {
        let broken = damage::every_call_of_a_stream(seed, None).broken;
        assert_eq!(broken, None, "seed {seed}");
    }
}

#[test]
fn names_that_a_failed_sync_gave_up_are_not_trusted() {
    let play = |seed, planted| damage::every_call(seed, How::Io, false, planted).broken;
    let seeds = number("LANDFALL_SIMULATE_CALLS").unwrap_or(12);
    assert!((0..seeds.max(40)).any(|seed| play(seed, Some(Fault::TrustNames)).is_some()));
    // It is the mistake that is seen.
    for seed in 0..seeds {
        assert_eq!(play(seed, None), None, "seed {seed}");
    }
}

#[test]
fn a_thread_that_does_not_start_is_done_without() {
    for seed in 0..60 {
        assert_eq!(damage::every_thread(seed).broken, None, "seed {seed}");
    }
}

#[test]
fn callbacks_are_told_when_the_log_is_poisoned() {
    for seed in 0..200 {
        assert_eq!(damage::poisoned_callbacks(seed).broken, None, "seed {seed}");
    }
}

#[test]
fn a_snapshot_without_space_leaves_what_was_there() {
    for seed in 0..200 {
        assert_eq!(state::without_space(seed, None).broken, None, "seed {seed}");
    }
}

#[test]
fn a_seed_plays_the_same_again() {
    for (name, play) in LOG.iter().chain(&STATE).chain(&STORE).chain(&DAMAGE) {
        let states = || play(7, None).states;
        assert_eq!(states(), states(), "{name}");
    }
}

#[test]
fn every_planted_mistake_is_caught() {
    // It takes longer than the others.
    let stream: Named<'_> = ("stream", &|seed, planted| match seed {
        0..50 => damage::every_call_of_a_stream(seed, planted),
        _ => Outcome::default(),
    });
    catch_all(&Fault::LOG, &[&LOG[..], &[stream]].concat());
}

#[test]
fn every_mistake_that_damage_shows_is_caught() {
    catch_all(&Fault::DAMAGE, &DAMAGE);
}

#[test]
fn every_mistake_planted_in_a_state_is_caught() {
    catch_all(&Fault::STATE, &STATE);
}

#[test]
fn every_mistake_planted_in_a_store_is_caught() {
    let mut plays = STORE.to_vec();
    plays.push(("removed while read", &store::removed_while_read));
    catch_all(&Fault::STORE, &plays);
}

#[test]
fn every_mistake_planted_where_there_is_no_space_is_caught() {
    let plays: [Named<'_>; 4] = [
        ("full disk", &store::full_disk::play),
        ("key by key", &store::full_disk::emptied_key_by_key),
        ("full log", &store::full_disk::rows_wait_in_each_group),
        (
            "before",
            &store::full_disk::full_before_the_first_checkpoint,
        ),
    ];
    catch_all(&Fault::NO_SPACE, &plays);
}

#[test]
fn a_mistake_planted_where_a_keyspace_is_removed_meanwhile_is_caught() {
    let plays: [Named<'_>; 1] = [("removed meanwhile", &store::full_disk::removed_meanwhile)];
    catch_all(&Fault::REMOVED_MEANWHILE, &plays);
}

#[test]
fn every_mistake_planted_in_leaves_at_home_is_caught() {
    catch_all(
        &Fault::HOMES,
        &[("torn at home", &store::at_home::torn_at_home)],
    );
}

#[test]
fn a_helper_that_comes_late_writes_nothing_of_what_has_failed() {
    keeps_its_promises(50, |seed| store::late::late_helper(seed, None));
}

#[test]
fn a_mistake_planted_where_a_helper_comes_late_is_caught() {
    catch_all(&Fault::LATE, &[("late", &store::late::late_helper)]);
}

#[test]
fn what_was_gone_stays_gone_though_others_like_it_are_torn() {
    keeps_its_promises(1000, |seed| torn_over::torn_over(seed, None));
}

#[test]
fn a_mistake_planted_where_records_are_alike_is_caught() {
    catch_all(&Fault::ALIKE, &[("torn over", &torn_over::torn_over)]);
}

#[test]
fn what_a_truncated_log_gives_up_is_durably_given_up_before_it_is_taken() {
    keeps_its_promises(200, |seed| reused::reused(seed, None));
}

#[test]
fn who_goes_through_a_keyspace_that_is_removed_is_told() {
    keeps_its_promises(50, |seed| store::removed_while_read(seed, None));
}

#[test]
fn a_range_that_comes_while_runs_are_chosen_is_removed() {
    keeps_its_promises(20, |seed| store::late::late_range(seed, None));
}

#[test]
fn a_group_that_is_cut_before_one_that_got_empty_gives_nothing_back() {
    keeps_its_promises(50, |seed| {
        store::at_home::cut_before_an_empty_one(seed, None)
    });
}

#[test]
fn a_mistake_planted_where_a_group_is_cut_before_an_empty_one_is_caught() {
    let plays: [Named<'_>; 1] = [("cut", &store::at_home::cut_before_an_empty_one)];
    catch_all(&Fault::CUT_AND_WIDENED, &plays);
}

#[test]
fn every_mistake_planted_in_runs_is_caught() {
    let plays: [Named<'_>; 3] = [
        ("runs", &store::play_runs),
        ("removed", &store::checkpoints::removed_before_checkpoint),
        ("late range", &store::late::late_range),
    ];
    catch_all(&Fault::RUNS, &plays);
}

/// What all protections share is seen with each of them, so that none is held by the mistakes of another.
#[test]
fn mistakes_of_leaves_at_home_are_caught_with_each_protection() {
    let shared = [Fault::HomeAheadOfLog, Fault::HomeOfCutLeaf];
    for protection in [
        Protection::Doublewrite,
        Protection::Image,
        Protection::Atomic,
    ] {
        let play =
            move |seed, planted| store::at_home::torn_at_home_with(Some(protection), seed, planted);
        catch_all(&shared, &[(&protection.to_string(), &play)]);
    }
}

/// Seeds that are played however slow the machine is.
const FEWEST_SEEDS: u64 = 8;

/// A promise was broken, and whoever else explores may end.
static IS_BROKEN: AtomicBool = AtomicBool::new(false);

/// Plays one seed after the other, on all processors, for as long as is asked.
fn explore(what: &str, plays: &[Named<'_>]) {
    if let Some(seed) = number("LANDFALL_SIMULATE_SEED") {
        for (name, play) in plays {
            let broken = play(seed, None).broken;
            assert_eq!(broken, None, "{what}, seed {seed}, {name}");
        }
        return;
    }
    let seconds = env::var("LANDFALL_SIMULATE_SECONDS").ok();
    let seconds = seconds.map_or(20.0, |text| text.parse().expect("seconds"));
    let first = number("LANDFALL_SIMULATE_FROM").unwrap_or(0);
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let (seeds, begin) = (Seeds::from(first), Instant::now());
    let states = Mutex::new(HashSet::new());
    let damages: Mutex<BTreeMap<&str, (u64, u64)>> = Mutex::default();
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                let until = Duration::from_secs_f64(seconds);
                while !IS_BROKEN.load(Ordering::Relaxed) {
                    let seed = seeds.next();
                    if begin.elapsed() >= until && seed - first >= FEWEST_SEEDS {
                        break;
                    }
                    for (name, play) in plays {
                        let outcome = play(seed, None);
                        if outcome.broken.is_some() {
                            IS_BROKEN.store(true, Ordering::Relaxed);
                        }
                        assert_eq!(outcome.broken, None, "{what}, seed {seed}, {name}");
                        states.lock().unwrap().extend(outcome.states);
                        for (damage, tried, reported) in outcome.damages {
                            let mut damages = damages.lock().unwrap();
                            let counts = damages.entry(damage).or_default();
                            *counts = (counts.0 + tried, counts.1 + reported);
                        }
                    }
                }
            });
        }
    });
    let states = states.into_inner().unwrap().len();
    let hours = begin.elapsed().as_secs_f64() / 3600.0;
    println!(
        "{what}: {states} distinct states of {} seeds, {:.0} an hour",
        seeds.next() - first,
        states as f64 / hours
    );
    let damages = damages.into_inner().unwrap();
    if !damages.is_empty() {
        println!("{:24} {:>9} {:>9}", "damage", "tried", "reported");
        for (damage, (tried, reported)) in &damages {
            println!("{damage:24} {tried:>9} {reported:>9}");
        }
        let tried: u64 = damages.values().map(|(tried, _)| tried).sum();
        println!("{tried} in all, {:.0} an hour", tried as f64 / hours);
    }
    assert!(states > 100 || IS_BROKEN.load(Ordering::Relaxed));
}

/// What shows those mistakes that take many seeds, and the seed to begin with, which has shown it: to play everything else, and
/// all seeds before, takes a hundred times as long. Where that seed plays something else by now, those after it and before it follow.
const SHOWN_BY: [(Fault, &str, u64); 19] = [
    (Fault::ReuseBeforeTruncate, "reused", 0),
    (Fault::EpochBeforeDurable, "killed", 133),
    (Fault::ReadTruncated, "killed", 207),
    (Fault::UnchainedChecksum, "killed", 87),
    (Fault::EnterLastSegment, "damaged", 253),
    (Fault::ReadRemoved, "removed while read", 0),
    (Fault::TrustControl, "killed in a checkpoint", 255),
    (Fault::SplitForgets, "killed in a checkpoint", 40),
    (Fault::ThawRemoved, "no space", 84),
    (Fault::SnapshotsBeforeFreeze, "failing", 0),
    (Fault::GapUnseen, "no space", 38),
    (Fault::SkipPageChecksum, "damaged", 0),
    (Fault::TierForgetsOlder, "runs", 467),
    (Fault::TierBehindOlder, "runs", 467),
    (Fault::KeptForKeys, "key by key", 24),
    (Fault::LetKeyspacesGo, "removed meanwhile", 1867),
    (Fault::FlushEmptied, "torn at home", 927),
    (Fault::CopiesBeforeRoot, "torn at home", 439),
    (Fault::HomeOfWidened, "torn at home", 147),
];

/// Plants each mistake, and plays until a promise is broken by it.
fn catch_all(faults: &[Fault], plays: &[Named<'_>]) {
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
        let begin = Instant::now();
        let by = SHOWN_BY.iter().find(|(one, ..)| *one == fault);
        let plays = plays
            .iter()
            .filter(|(name, _)| by.is_none_or(|(_, by, _)| by == name));
        let first = by.map_or(0, |(.., first)| *first);
        let seeds = (first..SEEDS).chain(0..first);
        let seeds = seeds.zip(1..);
        let mut all = seeds.flat_map(|seed| plays.clone().map(move |named| (seed, named)));
        let caught = all.find_map(|((seed, tried), (name, play))| {
            let broken = play(seed, Some(fault)).broken?;
            Some((tried, name, broken))
        });
        match caught {
            Some((seeds, name, broken)) => {
                let fault = format!("{fault:?}");
                let ms = begin.elapsed().as_millis();
                println!("{fault:24} {seeds:>6} {ms:>6} ms  {name:10} {broken}");
            }
            None => missed.push(fault),
        }
    }
    assert_eq!(missed, [], "these were not seen in {SEEDS} seeds");
}
