//! A state that several threads change while snapshots are taken, until the power goes, and what is left of it.
//!
//! Each part keeps the numbers of the commands that it was given, in their order. A number says who sent it, and
//! how many that one had sent before: so a part tells by itself what is missing, doubled or invented.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use shuttle::thread;

use super::Fault;
use super::damage::{Damage, Files, Others};
use super::disk::{Disk, How, Loss};
use super::environment::{Simulated, Way};
use super::history::Broken;
use super::oracle;
use super::scenario::{Kind, Outcome, end_of, lock, simulate};
use crate::state::{Handle, inspect, salvage};
use crate::{BoxedError, Compression, Error, Options, Policy, State, StateOptions};

const STATES: usize = 8;
const DEPTH: usize = 3;

/// Who sent a command, and how many before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Id {
    sender: u32,
    index: u32,
}

impl Id {
    fn number(self) -> u64 {
        u64::from(self.sender) << 32 | u64::from(self.index)
    }

    fn of(number: u64) -> Id {
        Id {
            sender: (number >> 32) as u32,
            index: number as u32,
        }
    }

    fn bytes(self) -> Vec<u8> {
        let mut rng = Rng::with_seed(self.number());
        let mut bytes = self.number().to_le_bytes().to_vec();
        // Few are larger than any promise of space; the first sender's never are.
        let more = match rng.u8(0..64) {
            0..10 if self.sender > 0 => 1900,
            other => [0, 40, 300][usize::from(other % 3)],
        };
        bytes.extend((0..more).map(|_| rng.u8(..)));
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Id> {
        let number = bytes.get(..8)?.try_into().ok()?;
        let id = Id::of(u64::from_le_bytes(number));
        (id.bytes() == bytes).then_some(id)
    }
}

#[derive(Clone, Default)]
struct Cells(Vec<Id>);

impl State for Cells {
    type Command = Id;
    /// How many the part had before.
    type Output = usize;
    type Capture = Vec<Id>;

    const PARTS: u32 = 3;

    fn part(id: &Id) -> u64 {
        crate::part_of(&id.number().to_le_bytes())
    }

    fn apply(&mut self, id: Id) -> usize {
        self.0.push(id);
        self.0.len() - 1
    }

    fn encode(id: &Id, out: &mut Vec<u8>) -> Result<(), BoxedError> {
        out.extend(id.bytes());
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Id, BoxedError> {
        Id::read(bytes).ok_or_else(|| "nobody sent that".into())
    }

    fn capture(&self) -> Vec<Id> {
        self.0.clone()
    }

    fn write(capture: Vec<Id>, out: &mut dyn Write) -> io::Result<()> {
        for id in capture {
            // Others go on meanwhile.
            thread::yield_now();
            out.write_all(&id.number().to_le_bytes())?;
        }
        Ok(())
    }

    fn read(input: &mut dyn Read) -> io::Result<Cells> {
        let mut bytes = Vec::new();
        input.read_to_end(&mut bytes)?;
        let numbers = bytes.chunks(8).map(|number| {
            let number = number.try_into().map_err(|_| io::ErrorKind::InvalidData)?;
            Ok(Id::of(u64::from_le_bytes(number)))
        });
        numbers.collect::<io::Result<_>>().map(Cells)
    }
}

type Cell = Handle<Cells, Simulated>;

/// What was sent, and what was promised of it.
#[derive(Clone, Default)]
struct History {
    /// By sender: how many were sent, were applied, and were said to be durable, or found.
    senders: Vec<Sent>,
    /// What was said of a command when it was applied: how many its part had before.
    places: BTreeMap<Id, usize>,
}

#[derive(Clone, Copy, Default)]
struct Sent {
    sent: u32,
    applied: u32,
    durable: u32,
}

impl History {
    /// Everybody's commands that were applied are durable.
    fn all_durable(&mut self, applied: &[u32]) {
        for (sent, &applied) in self.senders.iter_mut().zip(applied) {
            sent.durable = sent.durable.max(applied);
        }
    }

    fn applied(&self) -> Vec<u32> {
        self.senders.iter().map(|sent| sent.applied).collect()
    }

    /// Compares a state with what was promised. What is there is durable from now on.
    fn check(&mut self, state: &Cell) -> Result<(), Broken> {
        let mut found: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let mut wrong = None;
        for part in 0..Cells::PARTS {
            let mut last = BTreeMap::new();
            state.read(part.into(), |cells| {
                for (place, id) in cells.0.iter().enumerate() {
                    if self.places.get(id).is_some_and(|said| *said != place) {
                        let said = self.places[id];
                        wrong = Some(format!("{id:?} is the {place}th, and was the {said}th"));
                    }
                    if Cells::part(id) % u64::from(Cells::PARTS) != u64::from(part) {
                        wrong = Some(format!("{id:?} is in another's part"));
                    }
                    if last
                        .insert(id.sender, id.index)
                        .is_some_and(|last| last >= id.index)
                    {
                        wrong = Some(format!("{id:?} is there twice, or too late"));
                    }
                    found.entry(id.sender).or_default().push(id.index);
                }
            });
        }
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
        for (sender, sent) in self.senders.iter_mut().enumerate() {
            let mut indices = found.remove(&(sender as u32)).unwrap_or_default();
            indices.sort_unstable();
            let count = indices.len() as u32;
            if indices
                .iter()
                .zip(0..)
                .any(|(index, expected)| *index != expected)
            {
                return Err(format!("of sender {sender} there are {indices:?}"));
            }
            if count > sent.sent {
                return Err(format!("sender {sender} has sent {} of {count}", sent.sent));
            }
            if count < sent.durable {
                return Err(format!(
                    "of sender {sender} {count} are there, {} were durable",
                    sent.durable
                ));
            }
            // It sends no more: who goes on is another one.
            *sent = Sent {
                sent: count,
                applied: count,
                durable: count,
            };
        }
        if found.is_empty() {
            Ok(())
        } else {
            Err(format!("nobody is {:?}", found.keys()))
        }
    }
}

fn options(way: Way, rng: &mut Rng) -> StateOptions {
    let scale = u64::from(way.granule) / 512;
    StateOptions {
        policy: [
            Policy::EveryCommit,
            Policy::Group,
            Policy::Interval(Duration::from_micros(100)),
        ][rng.usize(0..3)],
        // Clocks go on by a microsecond when they are looked at.
        max_recovery_time: Duration::from_micros([1, 30, 1 << 30][rng.usize(0..3)]),
        keep_snapshots: rng.u32(1..3),
        compression: [Compression::None, Compression::Lz4][rng.usize(0..2)],
        chunk_bytes: [64, 100, 2048][rng.usize(0..3)],
        log: Options {
            segment_bytes: [4096, 8192][rng.usize(0..2)] * scale,
            spare_segments: 1,
            buffer_bytes: 4096 * scale,
            max_unwritten_bytes: 1024 * scale,
            max_unsynced_bytes: [1024, 1 << 20][rng.usize(0..2)],
            max_pending_commits: rng.u32(1..5),
        },
    }
}

/// Whether that is what a disk without power, or a closed state, says.
fn is_refusal(error: &Error) -> bool {
    if let Error::NoSnapshot { why: Some(why), .. } = error {
        return matches!(**why, Error::Io { .. });
    }
    matches!(
        error,
        Error::Poisoned { .. }
            | Error::Closed
            | Error::Io { .. }
            | Error::NoSpace { .. }
            | Error::Unlogged
            | Error::Unpublished(_)
    )
}

/// A snapshot for which there is no space leaves the one before, and commands go on; later there is another.
pub(crate) fn without_space(seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, _| {
        let mut scene = Scene::new(Kind::NoSpace, planted, rng);
        scene.options.policy = Policy::EveryCommit;
        scene.options.max_recovery_time = Duration::MAX;
        let disk = Disk::new(scene.way.block(), rng.u64(..));
        let wrong = |why: Error| why.to_string();
        let state = scene.open(&disk, rng).map_err(wrong)?;
        let apply = |index| {
            let applied = state.shared.apply(Id { sender: 0, index });
            applied.map(drop).map_err(wrong)
        };
        (0..4).try_for_each(apply)?;
        state.shared.snapshot().map_err(wrong)?;
        // The log has segments ahead, a snapshot needs a new file.
        disk.set_space(rng.u64(0..4096));
        match state.shared.snapshot() {
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::StorageFull => {}
            other => return Err(format!("without space: {other:?}")),
        }
        // Nor is there any for the log at last: a command for which there is none was not applied.
        let mut next = 4;
        loop {
            match state.shared.apply(Id {
                sender: 0,
                index: next,
            }) {
                Ok(_) => next += 1,
                Err(Error::NoSpace { .. }) => break,
                Err(error) => return Err(format!("without space: {error}")),
            }
        }
        disk.set_space(1 << 30);
        (next..next + 4).try_for_each(apply)?;
        next += 4;
        state.shared.snapshot().map_err(wrong)?;
        disk.cut_power_now();
        drop(state);
        let left = disk.after_power_cut(Loss::Everything, rng);
        let state = scene.open(&left, rng).map_err(wrong)?;
        let mut history = History::default();
        history.senders.push(Sent {
            sent: next,
            applied: next,
            durable: next,
        });
        history.check(&state)?;
        match state.restart.snapshot.as_deref() {
            Some("snapshot-000002") => Ok(()),
            other => Err(format!("it began from {other:?}")),
        }
    })
}

/// A command that was promised no space may find none once it is applied: its part takes no more until a restart.
pub(crate) fn without_promise(seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, _| {
        let mut scene = Scene::new(Kind::NoSpace, planted, rng);
        scene.options.policy = Policy::EveryCommit;
        scene.options.max_recovery_time = Duration::MAX;
        let disk = Disk::new(scene.way.block(), rng.u64(..));
        let wrong = |why: Error| why.to_string();
        let state = scene.open(&disk, rng).map_err(wrong)?;
        let mut history = History::default();
        let mut lost = None;
        disk.set_space(0);
        while history.senders.len() < 200 {
            let id = Id {
                sender: history.senders.len() as u32,
                index: 0,
            };
            let part = Cells::part(&id) % u64::from(Cells::PARTS);
            let mut sent = Sent {
                sent: 1,
                ..Sent::default()
            };
            match (state.shared.apply(id), lost) {
                (Ok(_), Some(lost)) if lost == part => {
                    return Err(format!("part {part} took {id:?} and had lost one"));
                }
                (Ok(place), _) => {
                    (sent.applied, sent.durable) = (1, 1);
                    history.places.insert(id, place);
                }
                // It was not applied.
                (Err(Error::NoSpace { .. }), None) => sent.sent = 0,
                (Err(Error::Unlogged), None) => {
                    lost = Some(part);
                    disk.set_space(1 << 30);
                }
                (Err(Error::Unlogged), Some(lost)) if lost == part => sent.sent = 0,
                (Err(error), _) => return Err(format!("without a promise: {error}")),
            }
            history.senders.push(sent);
        }
        disk.cut_power_now();
        drop(state);
        let left = disk.after_power_cut(Loss::Everything, rng);
        history.check(&scene.open(&left, rng).map_err(wrong)?)
    })
}

/// Plays a scenario from its number.
pub fn play(kind: Kind, seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, found| {
        let scene = Scene::new(kind, planted, rng);
        let disk = Disk::new(scene.way.block(), rng.u64(..));
        let history = Arc::new(Mutex::new(History::default()));
        scene.lives(&disk, &history, rng)?;
        let history = lock(&history).clone();
        scene.power_cuts(&disk, &history, rng, DEPTH, found)
    })
}

struct Scene {
    kind: Kind,
    options: StateOptions,
    way: Way,
    planted: Option<Fault>,
}

impl Scene {
    fn new(kind: Kind, planted: Option<Fault>, rng: &mut Rng) -> Scene {
        let way = Way::any(rng);
        Scene {
            kind,
            options: options(way, rng),
            way,
            planted,
        }
    }

    fn environment(&self, disk: &Disk, rng: &mut Rng) -> Simulated {
        Simulated::new(disk, self.way, self.planted, rng.u64(..))
    }

    fn open(&self, disk: &Disk, rng: &mut Rng) -> Result<Cell, Error> {
        Cell::open(&self.environment(disk, rng), self.options.clone())
    }

    /// The lives of processes until the power goes.
    fn lives(
        &self,
        disk: &Disk,
        history: &Arc<Mutex<History>>,
        rng: &mut Rng,
    ) -> Result<(), Broken> {
        drop(
            self.open(disk, rng)
                .map_err(|error| format!("cannot make a state: {error}"))?,
        );
        if self.kind != Kind::Failing && self.kind != Kind::NoSpace {
            disk.cut_power_after(rng.u64(50..900));
        }
        for life in 0..rng.u8(1..4) {
            match self.kind {
                Kind::Failing if life > 0 => {
                    let how = [How::Io, How::NoSpace, How::Short, How::Interrupted];
                    disk.fail_after(rng.u64(1..200), false, how[rng.usize(0..4)]);
                }
                Kind::NoSpace => {
                    let most = if rng.bool() { 512 } else { 24 << 10 };
                    disk.set_space(rng.u64(0..most));
                }
                _ => {}
            }
            let state = match self.open(disk, rng) {
                Ok(state) => Arc::new(state),
                Err(error) if is_refusal(&error) => return Ok(()),
                Err(error) => return Err(format!("cannot open the state: {error}")),
            };
            lock(history).check(&state)?;
            self.use_it(&state, history, rng)?;
            if rng.bool() {
                disk.set_space(1 << 30);
                self.use_it(&state, history, rng)?;
            }
            if self.kind == Kind::Killed {
                disk.kill();
            }
            drop(state);
        }
        Ok(())
    }

    /// Several threads apply, commit and take snapshots.
    fn use_it(
        &self,
        state: &Arc<Cell>,
        history: &Arc<Mutex<History>>,
        rng: &mut Rng,
    ) -> Result<(), Broken> {
        let broken = Arc::new(Mutex::new(None));
        let threads: Vec<_> = (0..rng.u8(1..4))
            .map(|_| {
                let (state, history, broken) = (state.clone(), history.clone(), broken.clone());
                let (policy, mut rng) = (self.options.policy, rng.fork());
                let sender = {
                    let mut history = lock(&history);
                    history.senders.push(Sent::default());
                    history.senders.len() as u32 - 1
                };
                thread::spawn(move || {
                    for _ in 0..rng.u8(1..16) {
                        match act(&state, policy, &history, sender, &mut rng) {
                            Ok(()) => {}
                            Err(error) if is_refusal(&error) => return,
                            Err(error) => {
                                lock(&broken).get_or_insert(format!("something failed: {error}"));
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

    /// Cuts the power, recovers, checks, goes on a little, and cuts it again.
    fn power_cuts(
        &self,
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
            if depth > 1 && rng.u8(0..4) == 0 {
                left.cut_power_after(rng.u64(0..40));
                drop(self.open(&left, rng));
                self.power_cuts(&left, &history, rng, depth - 1, found)?;
                continue;
            }
            let opened = self.open(&left, rng);
            let state = opened.map_err(|why| format!("cannot open it after a power cut: {why}"))?;
            history.check(&state)?;
            if depth > 1 {
                let (state, history) = (Arc::new(state), Arc::new(Mutex::new(history)));
                left.cut_power_after(rng.u64(0..300));
                self.use_it(&state, &history, rng)?;
                left.cut_power_now();
                drop(state);
                let history = lock(&history).clone();
                self.power_cuts(&left, &history, rng, depth - 1, found)?;
            }
        }
        Ok(())
    }

    /// What is copied of a damaged state opens, and is what its commands made of it up to one of them.
    fn check_salvage(
        &self,
        disk: &Disk,
        mut history: History,
        rng: &mut Rng,
    ) -> Result<(), Broken> {
        let to = Disk::new(self.way.block(), rng.u64(..));
        let from = self.environment(disk, rng);
        let copied = match salvage::copy(&from, &self.environment(&to, rng)) {
            Ok(copied) => copied,
            Err(Error::NoSnapshot { .. } | Error::NoLog) => {
                return if to.files().is_empty() {
                    Ok(())
                } else {
                    Err("salvage failed and left files".to_owned())
                };
            }
            Err(error) => return Err(format!("salvage: {error}")),
        };
        let state = self.open(&to, rng);
        let state = state.map_err(|error| format!("what was salvaged does not open: {error}"))?;
        let end = state.shared.log.next_lsn();
        if end != copied.end {
            return Err(format!("salvage said {copied:?}, and it ends at {end}"));
        }
        if !copied.is_whole {
            history.senders.iter_mut().for_each(|sent| sent.durable = 0);
        }
        history.check(&state)
    }

    /// Opens a damaged state; whether damage was reported.
    fn check_damaged(
        &self,
        disk: &Disk,
        mut history: History,
        what_must_be: Must,
        rng: &mut Rng,
    ) -> Result<bool, Broken> {
        let before = disk.files();
        let inspected = inspect::read(&self.environment(disk, rng), &mut |_| {});
        let opened = self.open(disk, rng);
        let state = match opened {
            Ok(state) => state,
            Err(error) => {
                for _ in 0..8 {
                    thread::yield_now();
                }
                let is_well = inspected
                    .as_ref()
                    .is_ok_and(|found| found.snapshots.iter().all(|one| one.damage.is_none()));
                if is_well && !matches!(error, Error::NoSnapshot { .. }) {
                    return Err(format!("inspecting it finds nothing, and opening: {error}"));
                }
                drop(self.open(disk, rng));
                if disk.files() != before {
                    return Err(format!("it was changed and then reported: {error}"));
                }
                self.check_salvage(disk, history.clone(), rng)
                    .map_err(|why| format!("{why}; reported was: {error}"))?;
                if disk.files() != before {
                    return Err("salvage changed the damaged state".to_owned());
                }
                if what_must_be.it_opens {
                    return Err(format!("the snapshot before was not taken: {error}"));
                }
                return match error {
                    Error::Corrupt { .. }
                    | Error::MissingSegment { .. }
                    | Error::Snapshot { .. }
                    | Error::NoSnapshot { .. }
                    | Error::LogLost { .. }
                    | Error::NotALog { .. } => Ok(true),
                    error => Err(format!("not as damage: {error}")),
                };
            }
        };
        if let Err(error) = inspected {
            return Err(format!("it opens, and inspecting it says: {error}"));
        }
        let end = end_of(&state.shared.log);
        if end < what_must_be.promised {
            let promised = what_must_be.promised;
            return Err(format!(
                "its log ends at {end}, and {promised} was promised"
            ));
        }
        if !what_must_be.everything {
            history.senders.iter_mut().for_each(|sent| sent.durable = 0);
        }
        history.check(&state)?;
        Ok(false)
    }
}

/// What a damaged state must have.
#[derive(Clone, Copy)]
struct Must {
    /// Where its log ends, at least.
    promised: u64,
    /// Every command that was said to be durable.
    everything: bool,
    /// Another snapshot makes up for what is damaged.
    it_opens: bool,
}

/// Damages the directory of a state that was closed, killed or cut off, in every way.
pub(crate) fn play_damage(seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, found| {
        let scene = Scene::new(Kind::PowerCut, planted, rng);
        let disk = Disk::new(scene.way.block(), rng.u64(..));
        let history = Arc::new(Mutex::new(History::default()));
        let mut others = Others {
            granule: scene.way.granule as usize,
            ..Others::default()
        };
        let wrong = |why: Error| format!("an honest disk failed: {why}");
        let is_closed = rng.bool();
        for life in 0..rng.u8(1..4) {
            let state = Arc::new(scene.open(&disk, rng).map_err(wrong)?);
            lock(&history).check(&state)?;
            others.older.push(disk.files());
            scene.use_it(&state, &history, rng)?;
            others.older.push(disk.files());
            if life > 0 && !is_closed {
                disk.kill();
            } else {
                let applied = lock(&history).applied();
                state.shared.close().map_err(wrong)?;
                lock(&history).all_durable(&applied);
            }
            drop(state);
        }
        let foreign = Disk::new(scene.way.block(), rng.u64(..));
        drop(scene.open(&foreign, rng).map_err(wrong)?.shared.snapshot());
        others.foreign = foreign.files();
        let disk = disk.with_files(&disk.files());
        let history = lock(&history).clone();
        let whole = disk.files();
        let is_of_log = |files: &Files| -> Files {
            let all = files
                .iter()
                .filter(|(name, _)| !name.starts_with("snapshot"));
            all.map(|(name, bytes)| (name.clone(), bytes.clone()))
                .collect()
        };
        let log = is_of_log(&whole);
        for damage in Damage::ALL {
            let (mut tried, mut reported) = (0, 0);
            for _ in 0..3 {
                let mut files = whole.clone();
                let Some(what) = damage.inflict(&mut files, &others, rng) else {
                    continue;
                };
                let damaged = disk.with_files(&files);
                found.states.insert(damaged.digest());
                let seen = if damage == Damage::Older {
                    &files
                } else {
                    &whole
                };
                let everything = is_of_log(&files) == log;
                let is_lost = matches!(
                    damage,
                    Damage::FlippedBit | Damage::Removed | Damage::Truncated | Damage::Zeroed
                );
                let must = Must {
                    promised: oracle::promised_in(seen, None),
                    everything,
                    it_opens: everything && is_lost && scene.options.keep_snapshots > 1,
                };
                tried += 1;
                let checked = scene.check_damaged(&damaged, history.clone(), must, rng);
                let is_reported = checked.map_err(|why| format!("{why}, after {what}"))?;
                reported += u64::from(is_reported);
            }
            found.damages.push((damage.name(), tried, reported));
        }
        Ok(())
    })
}

fn act(
    state: &Arc<Cell>,
    policy: Policy,
    history: &Arc<Mutex<History>>,
    sender: u32,
    rng: &mut Rng,
) -> Result<(), Error> {
    match rng.u8(0..10) {
        0 => {
            let applied = lock(history).applied();
            state.commit()?;
            lock(history).all_durable(&applied);
        }
        1 => drop(state.shared.snapshot()?),
        _ => {
            let index = {
                let mut history = lock(history);
                let sent = &mut history.senders[sender as usize];
                sent.sent += 1;
                sent.sent - 1
            };
            let id = Id { sender, index };
            let place = state.shared.apply(id)?;
            let mut history = lock(history);
            history.places.insert(id, place);
            let sent = &mut history.senders[sender as usize];
            sent.applied = index + 1;
            if policy == Policy::EveryCommit {
                sent.durable = index + 1;
            }
        }
    }
    Ok(())
}
