//! A log that is used by several threads until the power goes, and what is left of it then.
//!
//! One number decides everything: what the threads do, who goes on when, when the power goes, what of the
//! unsynced writes is lost. A number that shows a broken promise shows it again.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fastrand::Rng;
use shuttle::{Config, FailurePersistence, Runner, thread};

use super::Fault;
use super::disk::{Disk, How, Loss};
use super::environment::{Simulated, Way};
use super::history::{Broken, History, is_refusal, record};
use super::oracle;
use super::scheduler::scheduler;
use crate::log::Handle;
use crate::{Error, Lsn, Options};

/// What the seeds are to find: a scenario of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The power goes at some moment.
    PowerCut,
    /// The process dies first, goes on, and then the power goes.
    Killed,
    /// A call fails first, or all from then on.
    Failing,
    /// There is no space for segments for a while.
    NoSpace,
    /// Flushes say that they were done, and were not, or a write is lost or lands elsewhere.
    Lying,
    /// The log is closed or dropped, and opened again; its end is followed meanwhile.
    Reopened,
}

impl Kind {
    /// Whether the disk keeps its word.
    fn is_honest(self) -> bool {
        self != Kind::Lying
    }
}

/// What a seed came to.
#[derive(Default)]
pub(crate) struct Outcome {
    /// What promise was broken, if one was.
    pub broken: Option<Broken>,
    /// Crash states that were recovered, in one number each.
    pub states: HashSet<u64>,
    /// Damaged directories that were tried, and how many of them were reported as such, by kind.
    pub damages: Vec<(&'static str, u64, u64)>,
}

/// Crash states that are made of each power cut.
const STATES: usize = 12;
/// Power cuts in a row, each of what the one before has left.
const DEPTH: usize = 3;

/// What is tried, and where.
#[derive(Clone)]
pub(crate) struct Scene {
    pub kind: Kind,
    pub options: Options,
    pub way: Way,
    pub planted: Option<Fault>,
}

pub(crate) type Log = Handle<Simulated>;

impl Scene {
    pub fn new(kind: Kind, planted: Option<Fault>, rng: &mut Rng) -> Scene {
        let way = Way::any(rng);
        let scale = u64::from(way.granule) / 512;
        let options = Options {
            segment_bytes: [4096, 8192, 16384][rng.usize(0..3)] * scale,
            spare_segments: rng.u32(1..3),
            buffer_bytes: [2048, 4096, 8192][rng.usize(0..3)] * scale,
            max_unwritten_bytes: [512, 1024, 2048][rng.usize(0..3)] * scale,
            max_unsynced_bytes: [1024, 4096, 1 << 20][rng.usize(0..3)] * scale,
            max_pending_commits: rng.u32(1..5),
        };
        Scene {
            kind,
            options,
            way,
            planted,
        }
    }

    pub fn environment(&self, disk: &Disk, rng: &mut Rng) -> Simulated {
        Simulated::new(disk, self.way, self.planted, rng.u64(..))
    }

    pub fn open(&self, disk: &Disk, rng: &mut Rng) -> Result<Log, Error> {
        Handle::open(&self.environment(disk, rng), self.options.clone())
    }

    pub fn disk(&self, rng: &mut Rng) -> Disk {
        Disk::new(self.way.block(), rng.u64(..))
    }
}

/// Plays a scenario from its number.
pub(crate) fn play(kind: Kind, seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, found| {
        let scene = Scene::new(kind, planted, rng);
        let disk = scene.disk(rng);
        let history = Arc::new(Mutex::new(History::default()));
        lives(&scene, &disk, &history, rng)?;
        let history = lock(&history).clone();
        power_cuts(&scene, &disk, &history, rng, DEPTH, found)
    })
}

/// Moments in which a thread of the log does what it has to do, while nobody asks anything of it.
const QUIET: usize = 3000;

/// A log of which nobody asks anything any more says before long what is durable: all but a segment of it.
pub(crate) fn idle(seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, _| {
        let scene = Scene::new(Kind::PowerCut, planted, rng);
        let disk = scene.disk(rng);
        let wrong = |error: Error| error.to_string();
        let log = scene.open(&disk, rng).map_err(wrong)?;
        for _ in 0..rng.usize(1..4) {
            for _ in 0..rng.usize(1..40) {
                let record = vec![1; rng.usize(0..scene.options.segment_bytes as usize)];
                log.append(&record).map_err(wrong)?;
            }
            log.commit().map_err(wrong)?;
        }
        let end = end_of(&log);
        let owed = || {
            let promised = oracle::promised_in(&disk.files(), None);
            end.saturating_sub(promised)
        };
        // Looking at the whole disk takes longer than what is waited for.
        let is_kept = (0..QUIET / 100).any(|_| {
            (0..100).for_each(|_| thread::yield_now());
            owed() < scene.options.segment_bytes
        });
        if is_kept {
            Ok(())
        } else {
            Err(format!("{} bytes are durable and nothing says so", owed()))
        }
    })
}

/// Plays something of which one number decides everything.
pub(crate) fn simulate(
    seed: u64,
    scene: impl Fn(&mut Rng, &mut Outcome) -> Result<(), Broken> + Send + Sync + 'static,
) -> Outcome {
    let outcome = Arc::new(Mutex::new(Outcome::default()));
    let shared = outcome.clone();
    let mut config = Config::new();
    config.stack_size = 1 << 18;
    config.silence_warnings = true;
    config.failure_persistence = FailurePersistence::None;
    let run = || {
        Runner::new(scheduler(seed), config).run(move || {
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

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lives of processes until the power goes.
pub(crate) fn lives(
    scene: &Scene,
    disk: &Disk,
    history: &Arc<Mutex<History>>,
    rng: &mut Rng,
) -> Result<(), Broken> {
    let kind = scene.kind;
    if rng.u8(0..4) == 0 {
        // While it is made.
        disk.cut_power_after(rng.u64(0..60));
    } else {
        let log = scene
            .open(disk, rng)
            .map_err(|error| format!("cannot make a log: {error}"))?;
        drop(log);
        disk.cut_power_after(rng.u64(0..400));
    }
    if kind == Kind::Killed {
        disk.cut_power_after(rng.u64(100..600));
        for life in 0..rng.u8(1..4) {
            if life > 0 && rng.u8(0..3) == 0 {
                // While what the kernel has is made durable.
                disk.cut_power_after(rng.u64(0..60));
            }
            if let Ok(log) = scene.open(disk, rng) {
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
    if kind == Kind::Reopened {
        disk.cut_power_after(rng.u64(100..900));
        for _ in 0..rng.u8(1..4) {
            let Ok(log) = scene.open(disk, rng) else {
                break;
            };
            live(&Arc::new(log), history, rng)?;
        }
    }
    match kind {
        Kind::Failing => {
            let how = [How::Io, How::NoSpace, How::Short, How::Interrupted][rng.usize(0..4)];
            let stays = matches!(how, How::Io | How::NoSpace) && rng.bool();
            disk.fail_after(rng.u64(1..120), stays, how);
        }
        Kind::Lying => match rng.u8(0..3) {
            0 => disk.lie(),
            1 => disk.fail_after(rng.u64(1..120), rng.bool(), How::LostWrite),
            _ => disk.fail_after(rng.u64(1..120), false, How::MisplacedWrite),
        },
        Kind::NoSpace => disk.set_space(rng.u64(0..3 * scene.options.segment_bytes)),
        _ => {}
    }
    let log = match scene.open(disk, rng) {
        Ok(log) => Arc::new(log),
        Err(error) if is_refusal(&error) => return Ok(()),
        // What it wrote before is not what it reads now.
        Err(Error::Corrupt { .. } | Error::MissingSegment { .. }) if !kind.is_honest() => {
            return Ok(());
        }
        Err(error) => return Err(format!("cannot open the log: {error}")),
    };
    lock(history).opened();
    if kind.is_honest() {
        lock(history).check_if_readable(&log)?;
    }
    let used = use_it(&log, history, rng, kind == Kind::NoSpace);
    match used {
        Err(why) if !kind.is_honest() && is_damage(&why) => {}
        used => used?,
    }
    if kind == Kind::NoSpace && rng.bool() {
        disk.set_space(1 << 30);
        use_it(&log, history, rng, true)?;
    }
    // Also while it is closed.
    if rng.bool() {
        disk.cut_power_now();
    }
    if rng.u8(0..4) > 0 {
        close(&log, history)?;
    }
    drop(log);
    if kind == Kind::Failing && rng.bool() {
        disk.fail(None);
        // What a flush has given up is still to be read, by who opens the log again as he is told to.
        if let Ok(log) = scene.open(disk, rng) {
            let log = Arc::new(log);
            lock(history).forget_lsns();
            lock(history).check_if_readable(&log)?;
            use_it(&log, history, rng, false)?;
        }
    }
    Ok(())
}

/// Whether a text is that of an error that tells of damage.
fn is_damage(why: &str) -> bool {
    why.contains("is damaged") || why.contains("no file holds")
}

/// Uses a log, with somebody who follows its end, and closes it.
pub(crate) fn live(
    log: &Arc<Log>,
    history: &Arc<Mutex<History>>,
    rng: &mut Rng,
) -> Result<(), Broken> {
    lock(history).opened();
    lock(history).check_if_readable(log)?;
    let tail = log.read(log.first_lsn());
    let tail = tail.map_err(|error| format!("cannot follow the log: {error}"))?;
    let mut expected = log.first_lsn().0;
    // Where it ends, unless the power goes or what it wants is truncated.
    let follower = thread::spawn(move || {
        let mut tail = tail;
        loop {
            match tail.next_or_wait() {
                Ok(Some((lsn, _))) if lsn != expected => {
                    return Err(format!("who follows the end got {lsn}, not {expected}"));
                }
                Ok(Some(_)) => expected += 1,
                Ok(None) => return Ok(Some(expected)),
                Err(Error::Truncated { asked, first }) if asked.0 == expected && first > asked => {
                    return Ok(None);
                }
                Err(error) if is_refusal(&error) => return Ok(None),
                Err(error) => return Err(format!("who follows the end got an error: {error}")),
            }
        }
    });
    let used = use_it(log, history, rng, false);
    let closed = close(log, history);
    let followed = follower.join();
    used.and(closed)?;
    let followed = followed.map_err(|_| "a follower panicked".to_owned())??;
    let next = log.next_lsn().0;
    match followed {
        Some(end) if lock(history).is_closed() && end != next => Err(format!(
            "who follows the end got all before {end}, and {next} is the next"
        )),
        _ => Ok(()),
    }
}

/// Closes a log: whatever was appended is there then.
fn close(log: &Arc<Log>, history: &Arc<Mutex<History>>) -> Result<(), Broken> {
    let next = log.next_lsn().0;
    match log.close() {
        Ok(()) => lock(history).closed(next),
        Err(error) if is_refusal(&error) => {}
        Err(error) => return Err(format!("cannot close the log: {error}")),
    }
    Ok(())
}

/// Several threads append, commit, truncate and read.
pub(crate) fn use_it(
    log: &Arc<Log>,
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

fn act(log: &Arc<Log>, history: &Arc<Mutex<History>>, rng: &mut Rng) -> Result<(), Error> {
    let choice = rng.u8(0..20);
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
            lock(history).appended(id, count, lsns.start.0);
            if rng.bool() {
                log.commit_to(Lsn(lsns.end.0 - 1))?;
                lock(history).acknowledge(lsns.end.0);
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
        15 | 16 => {
            let (first, durable) = (log.first_lsn().0, log.durable_end().0);
            read_some(log, rng.u64(first..=durable), rng)?;
        }
        _ => {
            let (first, durable) = (log.first_lsn().0, log.durable_end().0);
            // Often as far as is allowed: what is kept then may begin where nothing is durable yet.
            let durable = durable.max(first);
            let lsn = if rng.u8(0..3) == 0 {
                durable
            } else {
                rng.u64(first..=durable)
            };
            lock(history).truncating(lsn);
            log.truncate_before(Lsn(lsn))?;
            lock(history).truncated(lsn);
        }
    }
    Ok(())
}

/// Reads a few records while others append and truncate: each is the next, or was truncated, which is said.
fn read_some(log: &Arc<Log>, from: u64, rng: &mut Rng) -> Result<(), Error> {
    let wrong = |what: String| Err(Error::Options(what));
    let mut reader = match log.read(Lsn(from)) {
        Err(Error::Truncated { asked, first }) if asked.0 == from && first > asked => return Ok(()),
        reader => reader?,
    };
    for expected in from..from + rng.u64(1..8) {
        thread::yield_now();
        match reader.next() {
            Ok(Some((lsn, _))) if lsn != expected => {
                return wrong(format!("record {lsn} was read, and {expected} comes next"));
            }
            Ok(Some(_)) => {}
            Ok(None) => return Ok(()),
            Err(Error::Truncated { asked, first }) => {
                if asked.0 != expected || first <= asked {
                    return wrong(format!("{asked} of {expected} was truncated by {first}"));
                }
                return Ok(());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Cuts the power, recovers, checks, goes on a little, and cuts it again.
pub(crate) fn power_cuts(
    scene: &Scene,
    disk: &Disk,
    history: &History,
    rng: &mut Rng,
    depth: usize,
    found: &mut Outcome,
) -> Result<(), Broken> {
    let states = if depth == DEPTH { STATES } else { 2 };
    for _ in 0..states {
        let left = disk.after_power_cut(Loss::ALL[rng.usize(0..Loss::ALL.len())], rng);
        let mut history = history.clone();
        if !found.states.insert(left.digest()) {
            continue;
        }
        // A power cut during recovery changes nothing that another one could not.
        if depth > 1 && rng.u8(0..4) == 0 && scene.kind.is_honest() {
            left.cut_power_after(rng.u64(0..30));
            let _ = scene.open(&left, rng);
            power_cuts(scene, &left, &history, rng, depth - 1, found)?;
            continue;
        }
        let before = (!scene.kind.is_honest()).then(|| left.files());
        let log = match scene.open(&left, rng) {
            Ok(log) => Arc::new(log),
            Err(Error::Corrupt { .. } | Error::MissingSegment { .. })
                if !scene.kind.is_honest() =>
            {
                continue;
            }
            Err(error) => return Err(format!("cannot open the log after a power cut: {error}")),
        };
        if let Some(files) = before {
            // What it has lost must be where nothing that is left promises anything.
            let end = end_of(&log);
            let promised = oracle::promised_in(&files, Some(end));
            if end < promised {
                return Err(format!("it ends at {end}, and {promised} was promised"));
            }
            history.forget_end();
            history.forget_beginning();
            history.forgive_lost();
            history.check(&log)?;
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
            power_cuts(scene, &left, &history, rng, depth - 1, found)?;
        }
    }
    Ok(())
}

/// Where a log ends that was just opened.
pub(crate) fn end_of(log: &Log) -> u64 {
    shuttle::sync::Mutex::lock(&log.shared.state)
        .unwrap()
        .durable
        .position
}

/// Numbers of seeds that nobody has had yet.
pub(crate) struct Seeds(AtomicU64);

impl Seeds {
    pub fn from(first: u64) -> Seeds {
        Seeds(AtomicU64::new(first))
    }

    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}
