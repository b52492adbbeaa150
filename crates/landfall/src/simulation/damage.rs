//! One damage to the directory of a log that was closed, killed or cut off.
//!
//! Then the log opens with everything that was acknowledged, or it is reported where it is damaged, and nothing in the
//! directory is changed, also by other attempts and some time later. Inspecting says the same as opening. Exactly this
//! may be lost without a word, since nothing that is left of the directory shows it: of a log that was not closed in
//! order, what was written behind all that is promised anywhere.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use fastrand::Rng;
use shuttle::thread;

use super::Fault;
use super::disk::{Disk, Failure, How, Loss};
use super::history::{Broken, History};
use super::oracle;
use super::scenario::{Kind, Outcome, Scene, end_of, live, lock, simulate, use_it};
use crate::log::directory::Directory;
use crate::log::{Inspection, salvage};
use crate::{Error, Lsn, Options};

/// The files of a directory.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// What happens to a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// A bit of a file is flipped.
    FlippedBit,
    /// A file is removed.
    Removed,
    /// A file ends early.
    Truncated,
    /// A file is zeros.
    Zeroed,
    /// A file is there twice.
    Duplicated,
    /// Two files have each other's names.
    Swapped,
    /// A file is as it was before.
    Older,
    /// A granule is where another one belongs.
    Misplaced,
    /// A file is another log's.
    Foreign,
}

impl Damage {
    pub const ALL: [Damage; 9] = [
        Damage::FlippedBit,
        Damage::Removed,
        Damage::Truncated,
        Damage::Zeroed,
        Damage::Duplicated,
        Damage::Swapped,
        Damage::Older,
        Damage::Misplaced,
        Damage::Foreign,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Damage::FlippedBit => "flipped bit",
            Damage::Removed => "file removed",
            Damage::Truncated => "file truncated",
            Damage::Zeroed => "file zeroed",
            Damage::Duplicated => "file duplicated",
            Damage::Swapped => "files swapped",
            Damage::Older => "older version of a file",
            Damage::Misplaced => "block misplaced",
            Damage::Foreign => "another log's file",
        }
    }

    /// Does it; what was done, or `None`: there is nothing to do it to.
    pub fn inflict(self, files: &mut Files, others: &Others, rng: &mut Rng) -> Option<String> {
        let names: Vec<String> = files.keys().cloned().collect();
        let any = |rng: &mut Rng| Some(names.get(rng.usize(0..names.len().max(1)))?.clone());
        let name = any(rng)?;
        let len = files[&name].len();
        match self {
            Damage::FlippedBit => {
                // Most of a file is zeros that mean nothing.
                let used: Vec<usize> = (0..len).filter(|&at| files[&name][at] != 0).collect();
                let at = match used.get(rng.usize(0..used.len().max(1))) {
                    Some(&at) if rng.u8(0..8) > 0 => at,
                    _ => rng.usize(0..len.max(1)),
                };
                let bit = rng.u8(0..8);
                *files.get_mut(&name)?.get_mut(at)? ^= 1 << bit;
                Some(format!("bit {bit} of byte {at} of {name} was flipped"))
            }
            Damage::Removed => {
                files.remove(&name);
                Some(format!("{name} was removed"))
            }
            Damage::Truncated => {
                let to = match rng.u8(0..4) {
                    0 => 0,
                    1 => rng.usize(0..len.max(1)),
                    _ => rng.usize(0..len.max(1)) / 512 * 512,
                };
                files.get_mut(&name)?.truncate(to);
                Some(format!("{name} was cut off at {to}"))
            }
            Damage::Zeroed => {
                files.get_mut(&name)?.fill(0);
                Some(format!("{name} was zeroed"))
            }
            Damage::Duplicated => {
                let bytes = files[&name].clone();
                let to = if rng.bool() {
                    any(rng)?
                } else {
                    const NAMES: [&str; 6] = [
                        "segment-000099",
                        "copy",
                        "segment-999999999",
                        "landfall-log.new",
                        // The last numbers that there are.
                        "segment-4611686018427387903",
                        "snapshot-4611686018427387903",
                    ];
                    NAMES[rng.usize(0..NAMES.len())].to_owned()
                };
                files.insert(to.clone(), bytes);
                Some(format!("{to} is a copy of {name}"))
            }
            Damage::Swapped => {
                let other = any(rng)?;
                let (one, two) = (files[&name].clone(), files[&other].clone());
                files.insert(name.clone(), two);
                files.insert(other.clone(), one);
                Some(format!("{name} and {other} were swapped"))
            }
            Damage::Older => {
                let older: Vec<&Vec<u8>> = others
                    .older
                    .iter()
                    .filter_map(|files| files.get(&name))
                    .filter(|older| **older != files[&name])
                    .collect();
                let older = older.get(rng.usize(0..older.len().max(1)))?;
                files.insert(name.clone(), (*older).clone());
                Some(format!("{name} is as it was before"))
            }
            Damage::Misplaced => {
                let (from, granule) = (any(rng)?, others.granule);
                let place =
                    |rng: &mut Rng, len: usize| rng.usize(0..(len / granule).max(1)) * granule;
                let source = place(rng, files[&from].len());
                let bytes = files[&from].get(source..source + granule)?.to_vec();
                let to = place(rng, len);
                let target = files.get_mut(&name)?.get_mut(to..to + granule)?;
                target.copy_from_slice(&bytes);
                Some(format!("byte {source} of {from} stands at {to} of {name}"))
            }
            Damage::Foreign => {
                let foreign: Vec<&String> = others.foreign.keys().collect();
                let from = (*foreign.get(rng.usize(0..foreign.len().max(1)))?).clone();
                let to = match rng.u8(0..4) {
                    0 => "segment-000099".to_owned(),
                    1 => from.clone(),
                    _ => any(rng)?,
                };
                files.insert(to.clone(), others.foreign[&from].clone());
                Some(format!("{to} is {from} of another log"))
            }
        }
    }
}

/// What a directory may get from elsewhere.
#[derive(Default)]
pub(crate) struct Others {
    /// The same directory, earlier.
    pub older: Vec<Files>,
    /// Another log's.
    pub foreign: Files,
    pub granule: usize,
}

/// How the log was left that is damaged then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Closed,
    Killed,
    CutOff,
}

/// Damages of each kind that are tried in a scenario.
const EACH: usize = 4;

/// Plays a scenario from its number.
pub(crate) fn play(seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, found| {
        let scene = Scene::new(Kind::PowerCut, planted, rng);
        let left = [Left::Closed, Left::Killed, Left::CutOff][rng.usize(0..3)];
        let (disk, history, mut others) = leave(&scene, left, rng)?;
        others.foreign = foreign(&scene, rng)?;
        let whole = disk.files();
        let promised = oracle::promised_in(&whole, None);
        for damage in Damage::ALL {
            let (mut tried, mut reported) = (0, 0);
            for _ in 0..EACH {
                let mut files = whole.clone();
                let Some(what) = damage.inflict(&mut files, &others, rng) else {
                    continue;
                };
                if files == whole {
                    continue;
                }
                let damaged = disk.with_files(&files);
                found.states.insert(damaged.digest());
                let promised = if damage == Damage::Older {
                    oracle::promised_in(&files, None)
                } else {
                    promised
                };
                let case = Case {
                    scene: &scene,
                    history: &history,
                    promised,
                    may_be_back: damage == Damage::Older,
                    it_opens: damage == Damage::FlippedBit
                        && what.ends_with("landfall-log was flipped"),
                };
                tried += 1;
                let is_reported = case.check(&damaged, rng);
                reported +=
                    u64::from(is_reported.map_err(|why| {
                        format!("{why}, after {what}, of a log that was {left:?}")
                    })?);
            }
            found.damages.push((damage.name(), tried, reported));
        }
        salvaged(&scene, &disk, &history, rng)?;
        misread(&scene, &disk, &history, promised, rng, found)
    })
}

/// Copies a log that is whole, and one of which a segment is missing.
fn salvaged(scene: &Scene, disk: &Disk, history: &History, rng: &mut Rng) -> Result<(), Broken> {
    let copy = |disk: &Disk, rng: &mut Rng| {
        let to = scene.disk(rng);
        let before = disk.files();
        let copied = salvage::copy(&scene.environment(disk, rng), &scene.environment(&to, rng));
        if disk.files() != before {
            return Err("salvage changed the damaged log".to_owned());
        }
        Ok((copied.map_err(|error| format!("salvage: {error}"))?, to))
    };
    let log = scene.open(&disk.copy(), rng);
    let log = log.map_err(|error| format!("an honest disk failed: {error}"))?;
    let there = log.next_lsn().0 - log.first_lsn().0;
    drop(log);
    let (whole, to) = copy(disk, rng)?;
    if whole.copied < there || !whole.missing.is_empty() {
        return Err(format!(
            "salvage copied {} of {there}: {whole:?}",
            whole.copied
        ));
    }
    if !history.is_closed() {
        // It may have found more than opening does, which cuts off what nobody was promised.
        let log = scene.open(&to, rng).map_err(|error| error.to_string())?;
        return if log.next_lsn().0 - log.first_lsn().0 == whole.copied {
            Ok(())
        } else {
            Err(format!("not all is in the new log: {whole:?}"))
        };
    }
    let log = scene.open(&to, rng).map_err(|error| error.to_string())?;
    history.clone().check(&Arc::new(log))?;
    let mut files = disk.files();
    let names: Vec<String> = files
        .keys()
        .filter(|name| name.starts_with("seg"))
        .cloned()
        .collect();
    files.remove(&names[rng.usize(0..names.len())]);
    if rng.bool() {
        files.remove("landfall-log");
    }
    let (part, _) = match copy(&disk.with_files(&files), rng) {
        Err(why) if why.contains("holds no log") => return Ok(()),
        part => part?,
    };
    // Without a control record nobody knows what was truncated away, nor where the end was.
    let gaps: u64 = part
        .missing
        .iter()
        .map(|gap| gap.lsns.end.0 - gap.lsns.start.0)
        .sum();
    if files.contains_key("landfall-log") && part.copied + gaps != there {
        return Err(format!("of {there} salvage says {part:?}"));
    }
    Ok(())
}

/// Uses a log until it is left; what is there then, and what was before.
fn leave(scene: &Scene, left: Left, rng: &mut Rng) -> Result<(Disk, History, Others), Broken> {
    let disk = scene.disk(rng);
    let history = Arc::new(Mutex::new(History::default()));
    let mut others = Others {
        granule: scene.way.granule as usize,
        ..Others::default()
    };
    let failed = |error: Error| format!("an honest disk failed: {error}");
    for _ in 0..rng.u8(0..3) {
        let log = Arc::new(scene.open(&disk, rng).map_err(failed)?);
        others.older.push(disk.files());
        live(&log, &history, rng)?;
        drop(log);
        others.older.push(disk.files());
    }
    let log = Arc::new(scene.open(&disk, rng).map_err(failed)?);
    others.older.push(disk.files());
    lock(&history).opened();
    lock(&history).check_if_readable(&log)?;
    if rng.u8(0..3) == 0 {
        // There may be no segment behind the last one.
        disk.set_space(rng.u64(0..3 * scene.options.segment_bytes));
    }
    for _ in 0..rng.u8(1..3) {
        use_it(&log, &history, rng, true)?;
        others.older.push(disk.files());
    }
    match left {
        Left::Closed => {
            let next = log.next_lsn().0;
            match log.close() {
                Ok(()) => lock(&history).closed(next),
                // For want of space.
                Err(Error::Poisoned { .. }) => lock(&history).forget_lsns(),
                Err(error) => return Err(failed(error)),
            }
        }
        Left::Killed => {
            disk.kill();
            lock(&history).forget_lsns();
        }
        Left::CutOff => disk.cut_power_now(),
    }
    drop(log);
    let disk = if left == Left::CutOff {
        disk.after_power_cut(Loss::ALL[rng.usize(0..Loss::ALL.len())], rng)
    } else {
        disk.with_files(&disk.files())
    };
    let history = lock(&history).clone();
    Ok((disk, history, others))
}

/// The files of another log of the same kind.
fn foreign(scene: &Scene, rng: &mut Rng) -> Result<Files, Broken> {
    let disk = scene.disk(rng);
    let history = Arc::new(Mutex::new(History::default()));
    let log = scene.open(&disk, rng);
    let log = Arc::new(log.map_err(|error| format!("cannot make a log: {error}"))?);
    use_it(&log, &history, rng, false)?;
    drop(log);
    Ok(disk.files())
}

/// A damaged directory.
struct Case<'a> {
    scene: &'a Scene,
    history: &'a History,
    /// What must be there unless damage is reported.
    promised: u64,
    /// What was lost before may be there again, and what was truncated.
    may_be_back: bool,
    /// There is another copy of what is damaged.
    it_opens: bool,
}

impl Case<'_> {
    /// Opens it; whether damage was reported.
    fn check(&self, disk: &Disk, rng: &mut Rng) -> Result<bool, Broken> {
        let before = disk.files();
        let inspected = {
            let directory = Directory::lock(&self.scene.environment(disk, rng));
            directory.and_then(|directory| Inspection::of(&directory, &mut |_| {}))
        };
        if disk.files() != before {
            return Err("inspecting it changed it".into());
        }
        match self.scene.open(disk, rng) {
            Err(error) if self.it_opens => Err(format!("it does not open: {error}")),
            Err(error) => {
                for _ in 0..8 {
                    thread::yield_now();
                }
                let again = self.scene.open(disk, rng).err();
                if disk.files() != before {
                    return Err(format!("it was changed and then reported: {error}"));
                }
                let said = [Some(error), again, inspected.err()].map(|error| {
                    error.map(|error| match error {
                        Error::Corrupt { file, offset, what } => {
                            format!("{}, {offset}: {what}", file.display())
                        }
                        Error::MissingSegment { segment, .. } => format!("segment {segment}"),
                        // Of a log that was being made there is nothing to lose.
                        Error::NotALog { .. } | Error::NoLog => String::new(),
                        other => format!("not as damage: {other}"),
                    })
                });
                let first = said[0].clone().unwrap_or_default();
                if first.starts_with("not as damage") {
                    return Err(first);
                }
                if !first.is_empty() && said.iter().any(|one| one.as_ref() != Some(&first)) {
                    return Err(format!("attempts say different things: {said:?}"));
                }
                Ok(true)
            }
            Ok(log) => {
                let is_empty = self.history.acknowledged <= 1;
                if let (Err(error), false) = (inspected, is_empty) {
                    return Err(format!("it opens, and inspecting it says: {error}"));
                }
                self.check_open(&Arc::new(log))?;
                Ok(false)
            }
        }
    }

    fn check_open(&self, log: &Arc<super::scenario::Log>) -> Result<(), Broken> {
        let mut history = self.history.clone();
        let end = end_of(log);
        if end < self.promised {
            return Err(format!(
                "it ends at {end}, and {} was promised",
                self.promised
            ));
        }
        if !history.is_closed() || self.may_be_back {
            history.forget_end();
        }
        if self.may_be_back {
            history.forgive_lost();
        }
        // The control record may be one from before it was truncated.
        history.forget_beginning();
        history.check(log)
    }
}

/// Reads that fail, once or from then on, or give what they should not: nothing is changed by who gives up, and nothing
/// lost by who does not.
fn misread(
    scene: &Scene,
    disk: &Disk,
    history: &History,
    promised: u64,
    rng: &mut Rng,
    found: &mut Outcome,
) -> Result<(), Broken> {
    for (how, name) in [
        (How::Io, "read fails"),
        (How::StaleRead, "read is stale"),
        (How::MisplacedRead, "read is misplaced"),
    ] {
        let (mut tried, mut reported) = (0, 0);
        for _ in 0..2 {
            let copy = disk.copy();
            copy.fail(Some(Failure {
                call: copy.calls() + rng.u64(1..30),
                stays: how == How::Io && rng.bool(),
                how,
            }));
            let opened = scene.open(&copy, rng);
            copy.fail(None);
            tried += 1;
            reported += u64::from(opened.is_err());
            drop(opened);
            let log = scene.open(&copy, rng);
            let log = log.map_err(|error| format!("{name}: then it does not open: {error}"))?;
            let end = end_of(&log);
            if end < promised {
                return Err(format!(
                    "{name}: it ends at {end}, and {promised} was promised"
                ));
            }
            let mut history = history.clone();
            if !history.is_closed() {
                history.forget_end();
            }
            history.check(&Arc::new(log))?;
        }
        found.damages.push((name, tried, reported));
    }
    Ok(())
}

/// Every call of a short life fails, one after the other, in every way: nothing that was acknowledged is lost, nobody
/// waits for ever, and what is reported is reported to whoever asked.
pub(crate) fn every_call(seed: u64, how: How, stays: bool, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, found| {
        let scene = Scene::new(Kind::Failing, planted, rng);
        let (life, after) = (rng.u64(..), rng.u64(..));
        let goes_on = rng.bool();
        for call in 1.. {
            let mut rng = Rng::with_seed(life);
            let disk = scene.disk(&mut rng);
            disk.fail(Some(Failure { call, stays, how }));
            let history = Arc::new(Mutex::new(History::default()));
            if let Ok(log) = scene.open(&disk, &mut rng) {
                let log = Arc::new(log);
                use_it(&log, &history, &mut rng, true)?;
                let next = log.next_lsn().0;
                if log.close().is_ok() {
                    lock(&history).acknowledge(next);
                }
            }
            let is_over = disk.calls() < call;
            disk.fail(None);
            if goes_on && let Ok(log) = scene.open(&disk, &mut rng) {
                // What failed may be seen, and gone after a power cut all the same.
                let log = Arc::new(log);
                lock(&history).forget_lsns();
                let read = lock(&history).check_if_readable(&log);
                read.map_err(|why| format!("{why}, since call {call} failed: {how:?}"))?;
                use_it(&log, &history, &mut rng, true)?;
            }
            let mut rng = Rng::with_seed(after);
            let left = disk.after_power_cut(Loss::ALL[rng.usize(0..Loss::ALL.len())], &mut rng);
            found.states.insert(left.digest());
            let log = scene.open(&left, &mut rng);
            let log = log.map_err(|error| format!("call {call}, {how:?}: {error}"))?;
            let mut history = lock(&history).clone();
            let checked = history.check(&Arc::new(log));
            checked.map_err(|why| format!("{why}, since call {call} failed: {how:?}"))?;
            if is_over {
                return Ok(());
            }
        }
        Ok(())
    })
}

/// A call fails while blocks of several segments are not durable. What was committed all the same is there after a power
/// cut, and so is what the next opening finds, which it promises.
pub(crate) fn every_call_of_a_stream(seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, _| {
        let mut scene = Scene::new(Kind::Failing, planted, rng);
        let granule = u64::from(scene.way.granule);
        scene.options = Options::default()
            .segment_bytes(4 * granule)
            .buffer_bytes(16 * granule)
            .max_unwritten_bytes(granule)
            .max_unsynced_bytes(1 << 20);
        let (life, goes_on) = (rng.u64(..), rng.bool());
        for call in 1.. {
            let mut rng = Rng::with_seed(life);
            let disk = scene.disk(&mut rng);
            disk.fail(Some(Failure {
                call,
                stays: false,
                how: How::Io,
            }));
            let mut durable = Lsn(1);
            if let Ok(log) = scene.open(&disk, &mut rng) {
                let record = vec![7; granule as usize - 100];
                for _ in 0..10 {
                    if log.append(&record).is_err() {
                        break;
                    }
                    (0..6).for_each(|_| thread::yield_now());
                }
                durable = log.commit().unwrap_or(durable);
            }
            let is_over = disk.calls() < call;
            disk.fail(None);
            let wrong = |error: Error| format!("since call {call} failed: {error}");
            if goes_on && let Ok(log) = scene.open(&disk, &mut rng) {
                durable = log
                    .append_durable(b"promises all before")
                    .map_err(wrong)?
                    .next();
            }
            disk.cut_power_now();
            let left = disk.after_power_cut(Loss::Everything, &mut rng);
            let log = scene.open(&left, &mut rng).map_err(wrong)?;
            if log.next_lsn() < durable {
                let next = log.next_lsn();
                return Err(format!(
                    "records from {next} to {durable} are lost, since call {call} failed"
                ));
            }
            if is_over {
                return Ok(());
            }
        }
        Ok(())
    })
}

/// Each of the threads that a log starts does not start: it is said, or done without.
pub(crate) fn every_thread(seed: u64) -> Outcome {
    simulate(seed, move |rng, _| {
        let scene = Scene::new(Kind::Failing, None, rng);
        for threads in 0..3 {
            let disk = scene.disk(rng);
            let environment = scene.environment(&disk, rng).fail_thread(threads);
            let history = Arc::new(Mutex::new(History::default()));
            match crate::log::Handle::open(&environment, scene.options.clone()) {
                Ok(log) => {
                    let log = Arc::new(log);
                    use_it(&log, &history, rng, false)?;
                    let called = Arc::new(Mutex::new(0));
                    for _ in 0..6 {
                        let counting = called.clone();
                        let done = move |_| *lock(&counting) += 1;
                        let appended = log.append_then(b"called back", done);
                        appended.map_err(|error| format!("without a thread: {error}"))?;
                    }
                    log.close().map_err(|error| error.to_string())?;
                    if *lock(&called) != 6 {
                        return Err(format!("{} of 6 were called back", lock(&called)));
                    }
                }
                Err(Error::Io { .. }) if threads == 0 => {}
                Err(error) => return Err(format!("without a thread: {error}")),
            }
        }
        Ok(())
    })
}

/// A callback is told of a log that is poisoned, also when nobody writes for it.
pub(crate) fn poisoned_callbacks(seed: u64) -> Outcome {
    simulate(seed, move |rng, _| {
        let scene = Scene::new(Kind::Failing, None, rng);
        let disk = scene.disk(rng);
        let environment = scene.environment(&disk, rng).fail_thread(1 + rng.u64(0..2));
        let log = crate::log::Handle::open(&environment, scene.options.clone());
        let log = log.map_err(|error| format!("cannot make a log: {error}"))?;
        disk.fail_after(rng.u64(1..4), true, How::Io);
        let called = Arc::new(Mutex::new(0));
        let mut sent = 0;
        for _ in 0..8 {
            let counting = called.clone();
            let done = move |_| *lock(&counting) += 1;
            match log.append_then(&[7; 300], done) {
                Ok(_) => sent += 1,
                Err(Error::Poisoned { .. }) => break,
                Err(error) => return Err(error.to_string()),
            }
        }
        let _ = log.close();
        drop(log);
        let called = *lock(&called);
        if called < sent {
            return Err(format!("{called} of {sent} were called back"));
        }
        Ok(())
    })
}
