//! A store that several threads use while checkpoints are made, until the power goes, and what is left of it.
//!
//! Every commit has a number, which is that of its record in the log, and values say which commit wrote them. So what is there
//! after a power cut must be what the commits up to one of them made of it, in their order, and that one comes behind all
//! that were said to be durable. What was read meanwhile is compared with the commits as of which it was read, and each
//! transaction with those that came between.
//!
//! `acts` is what threads do, `history` what was committed and read, and whether both are as was
//! promised; `readers`, `checkpoints`, `at_home`, `late`, `failing` and `full_disk` are scenes of their own.

mod acts;
pub(crate) mod at_home;
mod buffer;
pub(crate) mod checkpoints;
pub(crate) mod closing;
pub(crate) mod failing;
pub(crate) mod full_disk;
mod history;
pub(crate) mod late;
mod readers;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use shuttle::thread;

use self::acts::act;
use self::history::{Commit, History, KEYSPACES, Keyspace, Store, Writes, everything};
pub(crate) use self::readers::{older_readers, removed_while_read};
use super::Fault;
use super::disk::{Disk, How, Loss};
use super::environment::{Simulated, Way};
use super::history::Broken;
use super::scenario::{Kind, Outcome, end_of, lock, simulate};
use crate::environment::Method;
use crate::store::Handle;
use crate::store::checkpoint::Goal;
use crate::{Compression, Error, KeyspaceOptions, Lsn, Options, Policy, Protection, StoreOptions};

const STATES: usize = 8;
const DEPTH: usize = 3;

fn options(way: Way, rng: &mut Rng) -> StoreOptions {
    let scale = u64::from(way.granule) / 512;
    StoreOptions {
        memory_bytes: [4 << 10, 6 << 10, 1 << 20][rng.usize(0..3)],
        policy: [
            Policy::EveryCommit,
            Policy::Group,
            Policy::Interval(Duration::from_micros(100)),
        ][rng.usize(0..3)],
        protection: None,
        buffer: None,
        // Clocks go on by a microsecond when they are looked at.
        max_recovery_time: Duration::from_micros([30, 1 << 30][rng.usize(0..2)]),
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

/// Those that a power cut cannot tear, on such a disk.
fn safe_protections(way: Way) -> Vec<Protection> {
    let is_safe = |one: &Protection| match one {
        Protection::None => false,
        // Its homes are no smaller than a granule.
        Protection::Atomic => way.method != Method::Buffered && way.granule == 512,
        _ => true,
    };
    Protection::ALL.into_iter().filter(is_safe).collect()
}

/// A store with so many bytes of memory and segments of so many, of which no checkpoint is made unless it is asked for, or memory is full.
fn unasked(memory_bytes: usize, segment_bytes: u64) -> StoreOptions {
    StoreOptions {
        memory_bytes,
        policy: Policy::EveryCommit,
        max_recovery_time: Duration::from_secs(1 << 20),
        log: Options {
            segment_bytes,
            spare_segments: 1,
            buffer_bytes: 64 << 10,
            max_unwritten_bytes: 16 << 10,
            max_unsynced_bytes: 1 << 20,
            max_pending_commits: 4,
        },
        ..StoreOptions::default()
    }
}

/// A store on this disk of which no checkpoint is made unless it is asked for, whoever makes this mistake.
fn open_unasked(disk: &Disk, planted: Option<Fault>, rng: &mut Rng) -> Result<Store, Error> {
    let environment = Simulated::new(disk, Way::ALL[0], planted, rng.u64(..));
    Handle::open(&environment, unasked(1 << 20, 1 << 20)).map(Arc::new)
}

fn wrong(error: Error) -> Broken {
    error.to_string()
}

fn must(is_true: bool, what: impl FnOnce() -> String) -> Result<(), Broken> {
    if is_true { Ok(()) } else { Err(what()) }
}

/// Whether that is what a disk without power, or a closed store, says.
fn is_refusal(error: &Error) -> bool {
    matches!(
        error,
        Error::Poisoned { .. } | Error::Closed | Error::Io { .. } | Error::NoSpace { .. }
    )
}

struct Scene {
    kind: Kind,
    options: StoreOptions,
    keyspace: KeyspaceOptions,
    /// What a new store is given.
    protection: Option<Protection>,
    percent: u8,
    way: Way,
    planted: Option<Fault>,
}

impl Scene {
    fn new(kind: Kind, planted: Option<Fault>, rng: &mut Rng) -> Scene {
        let way = Way::any(rng);
        let options = options(way, rng);
        let is_in_place = rng.bool();
        let mut protection = None;
        let keyspace = if is_in_place {
            let safe = safe_protections(way);
            protection = Some(safe[rng.usize(0..safe.len())]);
            let leaf_bytes = if rng.u8(0..4) > 0 { 1024 } else { 512 };
            KeyspaceOptions::default()
                .leaf_bytes(leaf_bytes)
                .in_place(true)
        } else {
            KeyspaceOptions {
                leaf_bytes: [256, 400][rng.usize(0..2)],
                compression: [Compression::None, Compression::Lz4][rng.usize(0..2)],
                ..KeyspaceOptions::default()
            }
        };
        Scene {
            kind,
            options,
            keyspace: keyspace.whole_leaves(rng.u8(0..4) == 0),
            protection,
            percent: [0, 0, 50, 200][rng.usize(0..4)],
            way,
            planted,
        }
    }

    /// With leaves at home, and any protection that a power cut cannot tear; no checkpoint is made before memory is full.
    fn with_homes(kind: Kind, memory_bytes: usize, planted: Option<Fault>, rng: &mut Rng) -> Scene {
        let way = Way::ALL[rng.usize(0..2)];
        let mut homes = safe_protections(way);
        homes.retain(|one| *one != Protection::Shadow);
        Scene {
            options: StoreOptions {
                memory_bytes,
                policy: Policy::EveryCommit,
                max_recovery_time: Duration::from_secs(1 << 20),
                ..options(way, rng)
            },
            keyspace: KeyspaceOptions::default().leaf_bytes(1024).in_place(true),
            protection: Some(homes[rng.usize(0..homes.len())]),
            percent: 0,
            way,
            kind,
            planted,
        }
    }

    fn environment(&self, disk: &Disk, rng: &mut Rng) -> Simulated {
        Simulated::new(disk, self.way, self.planted, rng.u64(..))
    }

    fn open(&self, disk: &Disk, rng: &mut Rng) -> Result<Store, Error> {
        let environment = self.environment(disk, rng);
        let store = Arc::new(Handle::open(&environment, self.options.clone())?);
        // Not by opening it: that would take numbers of commits that were lost.
        if store.shared.log.next_lsn().0 == 1 {
            if let Some(protection) = self.protection {
                store.shared.set_protection(protection)?;
            }
            store.shared.set_buffer_percent(self.percent)?;
        }
        Ok(store)
    }

    /// Its keyspaces, which are made if they are not there.
    fn keyspaces(&self, store: &Store, history: &Mutex<History>) -> Result<Vec<Keyspace>, Error> {
        let mut keyspaces = Vec::new();
        for name in KEYSPACES {
            let is_there = existing(store).iter().any(|one| one.name == name);
            let next = store.shared.log.next_lsn().0;
            let made = store.shared.open_keyspace(name, &self.keyspace);
            let mut history = lock(history);
            // What a checkpoint logs meanwhile may not be durable.
            if store.shared.log.next_lsn().0 > next && !is_there {
                history
                    .commits
                    .insert(next, Commit::Writes(Writes::default()));
                history.durable = if made.is_ok() { next } else { history.durable };
            } else if made.is_err() {
                history.perhaps.push(Commit::Writes(Writes::default()));
            }
            keyspaces.push(made?);
        }
        Ok(keyspaces)
    }

    /// The lives of processes until the power goes.
    fn lives(
        &self,
        disk: &Disk,
        history: &Arc<Mutex<History>>,
        rng: &mut Rng,
    ) -> Result<(), Broken> {
        let made = self.open(disk, rng);
        drop(made.map_err(|error| format!("cannot make a store: {error}"))?);
        if self.kind != Kind::Failing && self.kind != Kind::NoSpace {
            disk.cut_power_after(rng.u64(50..1200));
        }
        for life in 0..rng.u8(1..4) {
            match self.kind {
                Kind::Failing if life > 0 => {
                    let how = [How::Io, How::NoSpace, How::Short, How::Interrupted];
                    disk.fail_after(rng.u64(1..300), false, how[rng.usize(0..4)]);
                }
                Kind::NoSpace => {
                    let most = if rng.bool() { 2048 } else { 32 << 10 };
                    disk.set_space(rng.u64(0..most));
                }
                _ => {}
            }
            let store = match self.open(disk, rng) {
                Ok(store) => store,
                Err(error) if is_refusal(&error) => return Ok(()),
                Err(error) => return Err(format!("cannot open the store: {error}")),
            };
            lock(history).reopen(&store)?;
            let keyspaces = match self.keyspaces(&store, history) {
                Ok(keyspaces) => keyspaces,
                Err(error) if is_refusal(&error) => return Ok(()),
                Err(error) => return Err(format!("cannot make keyspaces: {error}")),
            };
            if self.kind == Kind::PowerCut || self.kind == Kind::Killed {
                match everything(&store, &keyspaces) {
                    Ok(found) => lock(history).compare(&found)?,
                    Err(error) if is_refusal(&error) => return Ok(()),
                    Err(error) => return Err(format!("cannot be read: {error}")),
                }
            }
            let killed = (self.kind == Kind::Killed && rng.bool()).then_some(disk);
            self.use_it(&store, &keyspaces, history, killed, rng)?;
            if rng.bool() {
                disk.set_space(1 << 30);
                let again = self
                    .keyspaces(&store, history)
                    .and_then(|all| self.remove_one(&store, all, history, rng));
                let keyspaces = match again {
                    Ok(keyspaces) => keyspaces,
                    Err(error) if is_refusal(&error) => return Ok(()),
                    Err(error) => return Err(format!("cannot remove a keyspace: {error}")),
                };
                self.use_it(&store, &keyspaces, history, None, rng)?;
            }
            if self.kind == Kind::Killed {
                disk.kill();
            }
            // Once nobody makes checkpoints any more.
            let _ = store.shared.close();
            store.shared.require_counted();
            drop(store);
            if self.kind == Kind::Failing {
                // What failed may have left less than was appended: what is there next says what it was.
                lock(history).check_seen()?;
            }
        }
        Ok(())
    }

    /// Removes a keyspace, sometimes, and makes it again; the keyspaces that there are then.
    fn remove_one(
        &self,
        store: &Store,
        keyspaces: Vec<Keyspace>,
        history: &Mutex<History>,
        rng: &mut Rng,
    ) -> Result<Vec<Keyspace>, Error> {
        let index = rng.usize(0..4);
        let Some(keyspace) = keyspaces.get(index) else {
            return Ok(keyspaces);
        };
        match store.shared.forget_keyspace(keyspace) {
            Ok(lsn) => {
                lock(history).commits.insert(lsn.0, Commit::Removed(index));
                store.shared.log.commit_to(lsn)?;
                lock(history).durable = lsn.0;
            }
            Err(error) => {
                lock(history).perhaps.push(Commit::Removed(index));
                return Err(error);
            }
        }
        if rng.bool() {
            store.shared.checkpoint(Goal::Everything)?;
        }
        self.keyspaces(store, history)
    }

    /// Several threads commit, read and make checkpoints; one may kill the process.
    fn use_it(
        &self,
        store: &Store,
        keyspaces: &[Keyspace],
        history: &Arc<Mutex<History>>,
        killed: Option<&Disk>,
        rng: &mut Rng,
    ) -> Result<(), Broken> {
        let broken = Arc::new(Mutex::new(None));
        let threads: Vec<_> = (0..rng.u8(1..4))
            .map(|_| {
                let (store, history, broken) = (store.clone(), history.clone(), broken.clone());
                let (keyspaces, policy) = (keyspaces.to_vec(), self.options.policy);
                let mut rng = rng.fork();
                thread::spawn(move || {
                    for _ in 0..rng.u8(1..20) {
                        match act(&store, &keyspaces, policy, &history, &mut rng) {
                            Ok(()) | Err(Error::Conflict | Error::NoKeyspace) => {}
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
        if let Some(disk) = killed {
            for _ in 0..rng.u16(0..300) {
                thread::yield_now();
            }
            disk.kill();
        }
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked".to_owned())?;
        }
        lock(&broken).take().map_or(Ok(()), Err)?;
        lock(history).check_seen()
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
            let history = history.clone();
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
            let store = opened.map_err(|why| format!("cannot open it after a power cut: {why}"))?;
            let history = Arc::new(Mutex::new(history));
            lock(&history).reopen(&store)?;
            let existing = existing(&store);
            lock(&history).check(&store, &existing)?;
            if depth > 1 {
                left.cut_power_after(rng.u64(0..300));
                if let Ok(keyspaces) = self.keyspaces(&store, &history) {
                    self.use_it(&store, &keyspaces, &history, None, rng)?;
                }
                left.cut_power_now();
                drop(store);
                let history = lock(&history).clone();
                self.power_cuts(&left, &history, rng, depth - 1, found)?;
            }
        }
        Ok(())
    }

    /// Opens a damaged store, and reads all of it; whether damage was reported.
    fn check_damaged(
        &self,
        disk: &Disk,
        mut history: History,
        must: Must,
        rng: &mut Rng,
    ) -> Result<bool, Broken> {
        let before = disk.files();
        let is_damage = |error: &Error| {
            matches!(
                error,
                Error::Corrupt { .. }
                    | Error::MissingSegment { .. }
                    | Error::LogLost { .. }
                    | Error::NotALog { .. }
            )
        };
        let store = match self.open(disk, rng) {
            Ok(store) => store,
            Err(error) => {
                drop(self.open(disk, rng));
                if disk.files() != before {
                    return Err(format!("it was changed and then reported: {error}"));
                }
                if must.it_opens {
                    return Err(format!("the other copy was not taken: {error}"));
                }
                return if is_damage(&error) {
                    Ok(true)
                } else {
                    Err(format!("not as damage: {error}"))
                };
            }
        };
        let end = end_of(&store.shared.log);
        if end < must.promised {
            let promised = must.promised;
            return Err(format!(
                "its log ends at {end}, and {promised} was promised"
            ));
        }
        if !must.everything {
            history.durable = 0;
        }
        match everything(&store, &existing(&store)) {
            Ok(found) => history.compare(&found).map(|()| false),
            Err(error) if must.it_opens => Err(format!("the other copy was not taken: {error}")),
            Err(error) if is_damage(&error) => {
                // Nor is it written over by a checkpoint.
                let _ = store.shared.checkpoint(Goal::Everything);
                match everything(&store, &existing(&store)) {
                    Err(error) if is_damage(&error) => Ok(true),
                    Err(error) => Err(format!("not as damage: {error}")),
                    Ok(_) => Err("damage went by a checkpoint".to_owned()),
                }
            }
            Err(error) => Err(format!("not as damage: {error}")),
        }
    }
}

/// Commits these writes, durably.
fn commit(
    store: &Store,
    keyspaces: &[Keyspace],
    history: &Mutex<History>,
    writes: Writes,
) -> Result<(), Error> {
    let lsn = match store.shared.write(writes.of_store(keyspaces), None) {
        Ok(lsn) => lsn.unwrap_or(Lsn(0)),
        Err(error) => {
            lock(history).perhaps.push(Commit::Writes(writes));
            return Err(error);
        }
    };
    let mut known = lock(history);
    known.commits.insert(lsn.0, Commit::Writes(writes));
    drop(known);
    store.shared.log.commit_to(lsn)?;
    lock(history).durable = lsn.0;
    Ok(())
}

/// What a damaged store must have.
#[derive(Clone, Copy)]
struct Must {
    /// Where its log ends, at least.
    promised: u64,
    /// Every commit that was said to be durable.
    everything: bool,
    /// Another copy makes up for what is damaged.
    it_opens: bool,
}

/// The keyspaces that are there, in the order in which they are made.
fn existing(store: &Store) -> Vec<Keyspace> {
    let keyspaces = store.shared.keyspaces.read().unwrap();
    keyspaces.all.values().cloned().collect()
}

/// Plays a scenario from its number.
pub(crate) fn play(kind: Kind, seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, found| {
        let scene = Scene::new(kind, planted, rng);
        let disk = Disk::new(scene.way.block(), rng.u64(..));
        let history = Arc::new(Mutex::new(History::default()));
        scene.lives(&disk, &history, rng)?;
        let history = lock(&history).clone();
        scene.power_cuts(&disk, &history, rng, DEPTH, found)
    })
}

/// The same, with groups that have runs.
pub(crate) fn play_runs(seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, found| {
        let kind = [Kind::PowerCut, Kind::Killed][rng.usize(0..2)];
        let mut scene = Scene::new(kind, planted, rng);
        scene.percent = [100, 200][rng.usize(0..2)];
        scene.protection = None;
        scene.keyspace = KeyspaceOptions::default()
            .leaf_bytes([256, 400][rng.usize(0..2)])
            .compression([Compression::None, Compression::Lz4][rng.usize(0..2)]);
        let disk = Disk::new(scene.way.block(), rng.u64(..));
        let history = Arc::new(Mutex::new(History::default()));
        scene.lives(&disk, &history, rng)?;
        let history = lock(&history).clone();
        scene.power_cuts(&disk, &history, rng, DEPTH, found)
    })
}
