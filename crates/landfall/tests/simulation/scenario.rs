//! A log that is used by several threads until the power goes, and what is left of it then.
//!
//! One number decides everything: what the threads do, who goes on when, when the power goes, what of the
//! unsynced writes is lost. A number that shows a broken promise shows it again.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fastrand::Rng;
use landfall::environment::Fault;
use landfall::{Error, Log, Lsn, Options};
use shuttle::scheduler::RandomScheduler;
use shuttle::{Config, FailurePersistence, Runner, thread};

use crate::disk::{Disk, Loss};
use crate::environment::Simulated;
use crate::history::{Broken, History, is_refusal, record};

/// What the seeds are to find: a scenario of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The power goes at some moment.
    PowerCut,
    /// The process dies first, goes on, and then the power goes.
    Killed,
    /// A write or a flush fails first.
    Failing,
    /// There is no space for segments for a while.
    NoSpace,
    /// Bits flip while the power is off.
    Flipped,
    /// Flushes say that they were done, and were not.
    Lying,
}

impl Kind {
    pub const ALL: [Kind; 6] = [
        Kind::PowerCut,
        Kind::Killed,
        Kind::Failing,
        Kind::NoSpace,
        Kind::Flipped,
        Kind::Lying,
    ];

    /// Whether the disk keeps its word.
    fn is_honest(self) -> bool {
        !matches!(self, Kind::Flipped | Kind::Lying)
    }
}

/// What a seed came to.
#[derive(Default)]
pub struct Outcome {
    /// What promise was broken, if one was.
    pub broken: Option<Broken>,
    /// Crash states that were recovered, in one number each.
    pub states: HashSet<u64>,
    /// Recoveries that found damage.
    pub corrupt: u64,
}

/// Crash states that are made of each power cut.
const STATES: usize = 12;
/// Power cuts in a row, each of what the one before has left.
const DEPTH: usize = 3;

fn options(rng: &mut Rng) -> Options {
    Options {
        segment_bytes: [4096, 8192, 16384][rng.usize(0..3)],
        spare_segments: rng.u32(1..3),
        buffer_bytes: [2048, 4096, 8192][rng.usize(0..3)],
        write_bytes: [512, 1024, 2048][rng.usize(0..3)],
        unsynced_bytes: [1024, 4096, 1 << 20][rng.usize(0..3)],
        waiting_commits: rng.u32(1..5),
    }
}

/// Plays a scenario from its number.
pub fn play(kind: Kind, seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, found| {
        let options = options(rng);
        let disk = Disk::new();
        let history = Arc::new(Mutex::new(History::default()));
        lives(kind, &disk, &options, &history, planted, rng)?;
        let history = lock(&history).clone();
        power_cuts(kind, &disk, &options, &history, planted, rng, DEPTH, found)
    })
}

/// Plays something of which one number decides everything.
pub fn simulate(
    seed: u64,
    scene: impl Fn(&mut Rng, &mut Outcome) -> Result<(), Broken> + Send + Sync + 'static,
) -> Outcome {
    let outcome = Arc::new(Mutex::new(Outcome::default()));
    let shared = outcome.clone();
    let mut config = Config::new();
    config.stack_size = 1 << 18;
    config.silence_warnings = true;
    config.failure_persistence = FailurePersistence::None;
    let scheduler = RandomScheduler::new_from_seed(seed, 1);
    let run = || {
        Runner::new(scheduler, config).run(move || {
            let mut rng = Rng::with_seed(seed);
            let mut found = Outcome::default();
            found.broken = scene(&mut rng, &mut found).err();
            *lock(&shared) = found;
        });
    };
    // What panics, or waits for ever, breaks promises as well.
    let ended = catch_unwind(AssertUnwindSafe(run));
    let mut outcome = std::mem::take(&mut *lock(&outcome));
    if let Err(panic) = ended {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        outcome.broken = Some(format!("panicked: {}", text.unwrap_or_default()));
    }
    outcome
}

pub fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lives of processes until the power goes.
fn lives(
    kind: Kind,
    disk: &Disk,
    options: &Options,
    history: &Arc<Mutex<History>>,
    planted: Option<Fault>,
    rng: &mut Rng,
) -> Result<(), Broken> {
    let open = |seed: u64| Log::open_in(&Simulated::new(disk, planted, seed), options.clone());
    if rng.u8(0..4) == 0 {
        // While it is made.
        disk.cut_power_after(rng.u64(0..40));
    } else {
        let log = open(rng.u64(..)).map_err(|error| format!("cannot make a log: {error}"))?;
        drop(log);
        disk.cut_power_after(rng.u64(0..400));
    }
    if kind == Kind::Killed {
        disk.cut_power_after(rng.u64(100..600));
        for _ in 0..rng.u8(1..4) {
            if let Ok(log) = open(rng.u64(..)) {
                let log = Arc::new(log);
                lock(history).check_if_readable(&log)?;
                use_it(&log, history, rng, false)?;
                // What was not committed stays with the kernel, and may or may not be there.
                disk.kill();
                lock(history).forget_lsns();
                drop(log);
            } else {
                disk.kill();
            }
        }
    }
    if kind == Kind::Failing {
        match rng.bool() {
            true => disk.fail_write_after(rng.u64(1..20)),
            false => disk.fail_sync_after(rng.u64(1..20)),
        }
    }
    if kind == Kind::Lying {
        disk.lie();
    }
    if kind == Kind::NoSpace {
        disk.set_space(rng.u64(0..3 * options.segment_bytes));
    }
    let log = match open(rng.u64(..)) {
        Ok(log) => Arc::new(log),
        Err(error) if is_refusal(&error) => return Ok(()),
        Err(error) => return Err(format!("cannot open the log: {error}")),
    };
    lock(history).check_if_readable(&log)?;
    use_it(&log, history, rng, kind == Kind::NoSpace)?;
    if kind == Kind::NoSpace && rng.bool() {
        disk.set_space(1 << 30);
        use_it(&log, history, rng, true)?;
    }
    // Also while it is closed.
    if rng.bool() {
        disk.cut_power_now();
    }
    drop(log);
    if kind == Kind::Failing && rng.bool() {
        // What a flush has given up is still to be read, by who opens the log again as he is told to.
        if let Ok(log) = open(rng.u64(..)) {
            let log = Arc::new(log);
            lock(history).forget_lsns();
            lock(history).check_if_readable(&log)?;
            use_it(&log, history, rng, false)?;
        }
    }
    Ok(())
}

/// Several threads append, commit and truncate.
fn use_it(
    log: &Arc<Log<Simulated>>,
    history: &Arc<Mutex<History>>,
    rng: &mut Rng,
    refusals_end_it: bool,
) -> Result<(), Broken> {
    let broken = Arc::new(Mutex::new(None));
    let threads: Vec<_> = (0..rng.u8(1..4))
        .map(|_| {
            let (log, history, broken) = (log.clone(), history.clone(), broken.clone());
            let mut rng = rng.fork();
            thread::spawn(move || {
                for _ in 0..rng.u8(1..10) {
                    match act(&log, &history, &mut rng) {
                        Ok(()) => {}
                        Err(Error::NoSpace { .. }) if refusals_end_it => {}
                        Err(error) if is_refusal(&error) => return,
                        Err(error) => {
                            lock(&broken).get_or_insert(format!("an operation failed: {error}"));
                            return;
                        }
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().map_err(|_| "a thread panicked".to_owned())?;
    }
    lock(&broken).take().map_or(Ok(()), Err)
}

/// Lengths of records: small ones, empty ones, some that fill a block exactly or nearly, some larger than a
/// block, few larger than a segment.
fn length(rng: &mut Rng) -> usize {
    match rng.u8(0..20) {
        0..10 => rng.usize(0..200),
        10..14 => 420 - rng.usize(0..8),
        14..18 => rng.usize(0..1500),
        18 => rng.usize(1000..6000),
        _ => rng.usize(4000..20000),
    }
}

fn act(
    log: &Arc<Log<Simulated>>,
    history: &Arc<Mutex<History>>,
    rng: &mut Rng,
) -> Result<(), Error> {
    let choice = rng.u8(0..18);
    match choice {
        0..6 => {
            let id = lock(history).send(1);
            let lsn = log.append_durable(&record(id, id, 0, 1, length(rng)))?;
            lock(history).appended(id, 1, lsn.0);
            lock(history).acknowledge(lsn.0 + 1);
        }
        6..9 => {
            let id = lock(history).send(1);
            let lsn = log.append(&record(id, id, 0, 1, length(rng)))?;
            lock(history).appended(id, 1, lsn.0);
        }
        9..12 => {
            let count = rng.u32(1..5);
            let id = lock(history).send(count);
            let records: Vec<Vec<u8>> = (0..count)
                .map(|place| record(id + u64::from(place), id, place, count, length(rng)))
                .collect();
            let slices: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
            let lsns = log.append_batch(&slices)?;
            lock(history).appended(id, count, lsns.start);
            if rng.bool() {
                log.commit_to(Lsn(lsns.end - 1))?;
                lock(history).acknowledge(lsns.end);
            }
        }
        12 | 13 => {
            let id = lock(history).send(1);
            let bytes = record(id, id, 0, 1, length(rng));
            let acknowledging = history.clone();
            let lsn = log.append_then(&bytes, move |done| {
                if let Ok(lsn) = done {
                    lock(&acknowledging).acknowledge(lsn.0 + 1);
                }
            })?;
            lock(history).appended(id, 1, lsn.0);
        }
        14 => {
            let next = log.commit()?;
            lock(history).acknowledge(next.0);
        }
        _ => {
            let (first, durable) = (log.first().0, log.durable().0);
            let lsn = rng.u64(first..=durable);
            lock(history).truncating(lsn);
            log.truncate_before(Lsn(lsn))?;
            lock(history).truncated(lsn);
        }
    }
    Ok(())
}

/// Cuts the power, recovers, checks, goes on a little, and cuts it again.
#[expect(
    clippy::too_many_arguments,
    reason = "it calls itself with most of them"
)]
fn power_cuts(
    kind: Kind,
    disk: &Disk,
    options: &Options,
    history: &History,
    planted: Option<Fault>,
    rng: &mut Rng,
    depth: usize,
    found: &mut Outcome,
) -> Result<(), Broken> {
    let states = if depth == DEPTH { STATES } else { 2 };
    for _ in 0..states {
        let losses = [
            Loss::Everything,
            Loss::Nothing,
            Loss::Suffix,
            Loss::Sectors,
            Loss::Few,
        ];
        let left = disk.after_power_cut(losses[rng.usize(0..losses.len())], rng);
        let mut history = history.clone();
        let flipped = (kind == Kind::Flipped)
            .then(|| left.flip_a_bit(rng))
            .flatten();
        if !found.states.insert(left.digest()) {
            continue;
        }
        // A power cut during recovery changes nothing that another one could not.
        if depth > 1 && rng.u8(0..4) == 0 {
            left.cut_power_after(rng.u64(0..12));
            let _ = Log::open_in(
                &Simulated::new(&left, planted, rng.u64(..)),
                options.clone(),
            );
            power_cuts(
                kind,
                &left,
                options,
                &history,
                planted,
                rng,
                depth - 1,
                found,
            )?;
            continue;
        }
        let environment = Simulated::new(&left, planted, rng.u64(..));
        let log = match Log::open_in(&environment, options.clone()) {
            Ok(log) => Arc::new(log),
            Err(Error::Corrupt { .. }) if !kind.is_honest() => {
                found.corrupt += 1;
                continue;
            }
            Err(error) => return Err(format!("cannot open the log after a power cut: {error}")),
        };
        if !kind.is_honest() {
            check_dishonest(&log, &mut history, found).map_err(|why| match flipped {
                Some((file, offset)) => {
                    format!("{why}, after a bit of {file} was flipped at {offset}")
                }
                None => why,
            })?;
            continue;
        }
        history.check(&log)?;
        if depth > 1 {
            let history = Arc::new(Mutex::new(history));
            left.cut_power_after(rng.u64(0..150));
            use_it(&log, &history, rng, false)?;
            left.cut_power_now();
            drop(log);
            let history = lock(&history).clone();
            power_cuts(
                kind,
                &left,
                options,
                &history,
                planted,
                rng,
                depth - 1,
                found,
            )?;
        }
    }
    Ok(())
}

/// What a disk has lost that did not keep its word must be reported, or be where nothing was promised by anything that is left; nothing that was not
/// appended is ever read.
fn check_dishonest(
    log: &Arc<Log<Simulated>>,
    history: &mut History,
    found: &mut Outcome,
) -> Result<(), Broken> {
    history.acknowledged = 0;
    // The older copy of the control record has what came before the last truncation.
    history.truncated = 0;
    match history.check(log) {
        Ok(()) => Ok(()),
        Err(why) if why.contains("is damaged") => {
            found.corrupt += 1;
            Ok(())
        }
        Err(why) => Err(why),
    }
}

/// Numbers of seeds that nobody has had yet.
pub struct Seeds(AtomicU64);

impl Seeds {
    pub fn from(first: u64) -> Seeds {
        Seeds(AtomicU64::new(first))
    }

    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}
