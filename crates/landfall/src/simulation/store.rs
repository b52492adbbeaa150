//! A store that several threads use while checkpoints are made, until the power goes, and what is left of it.
//!
//! Every commit has a number, which is that of its record in the log, and values say which commit wrote them. So what is there
//! after a power cut must be what the commits up to one of them made of it, in their order, and that one comes behind all
//! that were said to be durable. What was read meanwhile is compared with the commits as of which it was read, and each
//! transaction with those that came between.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use shuttle::thread;

use super::Fault;
use super::damage::{Damage, Others};
use super::disk::{Disk, How, Loss};
use super::environment::{Simulated, Way};
use super::history::Broken;
use super::oracle;
use super::scenario::{Kind, Outcome, end_of, lock, simulate};
use crate::store::Handle;
use crate::store::checkpoint::Goal;
use crate::store::control::CONTROL_NAME;
use crate::store::iterate::{Bounds, Range};
use crate::store::record::Write;
use crate::store::snapshots::View;
use crate::store::transaction::Transaction;
use crate::{Compression, Error, KeyspaceOptions, Lsn, Options, Policy, StoreOptions};

const STATES: usize = 8;
const DEPTH: usize = 3;
const KEYSPACES: [&str; 2] = ["first", "second"];
const KEYS: u8 = 40;

type Store = Arc<Handle<Simulated>>;
type Keyspace = Arc<crate::store::tree::Keyspace<Simulated>>;
/// By keyspace and key.
type Contents = BTreeMap<(usize, Vec<u8>), Vec<u8>>;
type Writes = Vec<(usize, Vec<u8>, Option<Vec<u8>>)>;

/// What a commit did.
#[derive(Clone)]
enum Commit {
    Writes(Writes),
    /// A keyspace was removed, with everything in it.
    Removed(usize),
}

/// What somebody read, as of which commit.
#[derive(Clone)]
struct Seen {
    at: u64,
    contents: Contents,
    /// What of it was looked for; everything else may be there or not.
    keys: Vec<(usize, Vec<u8>)>,
    is_everything: bool,
}

/// A transaction that was committed.
#[derive(Clone)]
struct Committed {
    at: u64,
    lsn: u64,
    is_serialisable: bool,
    reads: Seen,
}

/// What was committed, and what was promised of it.
#[derive(Clone, Default)]
struct History {
    commits: BTreeMap<u64, Commit>,
    /// Of which nobody knows whether they were.
    perhaps: Vec<Commit>,
    /// All commits up to this one are durable.
    durable: u64,
    seen: Vec<Seen>,
    transactions: Vec<Committed>,
}

fn apply(contents: &mut Contents, commit: &Commit) {
    let writes = match commit {
        Commit::Writes(writes) => writes,
        Commit::Removed(removed) => {
            contents.retain(|(keyspace, _), _| keyspace != removed);
            return;
        }
    };
    for (keyspace, key, value) in writes {
        match value {
            Some(value) => contents.insert((*keyspace, key.clone()), value.clone()),
            None => contents.remove(&(*keyspace, key.clone())),
        };
    }
}

impl History {
    fn contents(&self, at: u64) -> Contents {
        let mut contents = Contents::new();
        for commit in self.commits.range(..=at).map(|(_, commit)| commit) {
            apply(&mut contents, commit);
        }
        contents
    }

    /// Compares what was read meanwhile, and transactions, with the commits.
    fn check_seen(&mut self) -> Result<(), Broken> {
        for seen in std::mem::take(&mut self.seen) {
            self.check_one(&seen)?;
        }
        for transaction in std::mem::take(&mut self.transactions) {
            let Committed { at, lsn, reads, .. } = &transaction;
            self.check_one(reads)?;
            let Some(Commit::Writes(own)) = self.commits.get(lsn) else {
                continue;
            };
            for (other, commit) in self.commits.range(at + 1..*lsn) {
                let writes = match commit {
                    Commit::Writes(writes) => writes,
                    Commit::Removed(removed) => {
                        let is_read = reads.is_everything
                            || reads.keys.iter().any(|(keyspace, _)| keyspace == removed);
                        if transaction.is_serialisable && is_read {
                            return Err(format!("{lsn}, begun at {at}, read what {other} removed"));
                        }
                        continue;
                    }
                };
                for (keyspace, key, _) in writes {
                    let is_same = |(of, name, _): &(usize, Vec<u8>, Option<Vec<u8>>)| {
                        (of, name) == (keyspace, key)
                    };
                    if own.iter().any(is_same) {
                        return Err(format!("{lsn}, begun at {at}, and {other} wrote {key:?}"));
                    }
                    let is_read =
                        reads.is_everything || reads.keys.contains(&(*keyspace, key.clone()));
                    if transaction.is_serialisable && is_read {
                        return Err(format!(
                            "{lsn}, begun at {at}, read {key:?}, and {other} wrote it"
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    fn check_one(&self, seen: &Seen) -> Result<(), Broken> {
        let contents = self.contents(seen.at);
        if seen.is_everything && seen.contents != contents {
            return Err(format!(
                "as of {} there was {}",
                seen.at,
                difference(&contents, &seen.contents)
            ));
        }
        for name in &seen.keys {
            if seen.contents.get(name) != contents.get(name) {
                return Err(format!("as of {} {name:?} had another value", seen.at));
            }
        }
        Ok(())
    }

    /// Compares a store with what was promised. What is there is durable from now on.
    fn check(&mut self, store: &Store, keyspaces: &[Keyspace]) -> Result<(), Broken> {
        let found = everything(store, keyspaces).map_err(|why| format!("cannot be read: {why}"))?;
        self.compare(&found)
    }

    fn compare(&mut self, found: &Seen) -> Result<(), Broken> {
        let at = found.at;
        if at < self.durable {
            return Err(format!("it ends at {at}, and {} was durable", self.durable));
        }
        self.commits.retain(|lsn, _| *lsn <= at);
        // Those of which nobody knows took the numbers that nobody knows.
        let unknown: Vec<u64> = (1..=at)
            .filter(|lsn| !self.commits.contains_key(lsn))
            .collect();
        if unknown.len() > self.perhaps.len() {
            return Err(format!("nobody made the commits {unknown:?} of {at}"));
        }
        let perhaps = std::mem::take(&mut self.perhaps);
        if !self.explain(&unknown, &perhaps, found) {
            for lsn in &unknown {
                self.commits.remove(lsn);
            }
            let contents = self.contents(at);
            let difference = difference(&contents, &found.contents);
            return Err(format!("after {at} there is {difference}"));
        }
        self.durable = at;
        Ok(())
    }

    /// Finds which of those that are perhaps there have made the commits of which nobody knows.
    fn explain(&mut self, unknown: &[u64], perhaps: &[Commit], found: &Seen) -> bool {
        let Some((first, rest)) = unknown.split_first() else {
            return self.contents(found.at) == found.contents;
        };
        for index in 0..perhaps.len() {
            self.commits.insert(*first, perhaps[index].clone());
            let mut others = perhaps.to_vec();
            others.remove(index);
            if self.explain(rest, &others, found) {
                return true;
            }
        }
        self.commits.remove(first);
        false
    }
}

fn difference(expected: &Contents, found: &Contents) -> String {
    let brief = |value: Option<&Vec<u8>>| match value {
        Some(value) => format!("{:?}", &value[..value.len().min(8)]),
        None => "nothing".to_owned(),
    };
    let keys = expected.keys().chain(found.keys());
    let mut wrong = keys.filter(|key| expected.get(*key) != found.get(*key));
    match wrong.next() {
        Some(key) => format!(
            "{} under {key:?}, where {} belongs",
            brief(found.get(key)),
            brief(expected.get(key))
        ),
        None => "what belongs there".to_owned(),
    }
}

/// Everything that there is, as of now.
fn everything(store: &Store, keyspaces: &[Keyspace]) -> Result<Seen, Error> {
    let view = Arc::new(View::new(store));
    let mut contents = Contents::new();
    for keyspace in keyspaces {
        let index = KEYSPACES.iter().position(|name| *name == keyspace.name);
        let index = index.ok_or(Error::NoKeyspace)?;
        let bounds = Bounds::of::<&[u8]>(&..);
        let own = BTreeMap::new();
        let mut range = Range::new(view.clone(), keyspace.clone(), bounds, own);
        let mut backwards = index > 0;
        loop {
            backwards = !backwards;
            let next = if backwards {
                range.next_back()
            } else {
                range.next()
            };
            let Some(pair) = next else { break };
            let (key, value) = pair?;
            contents.insert((index, key), value);
        }
    }
    Ok(Seen {
        at: view.at,
        contents,
        keys: Vec::new(),
        is_everything: true,
    })
}

fn options(way: Way, rng: &mut Rng) -> StoreOptions {
    let scale = u64::from(way.granule) / 512;
    StoreOptions {
        memory_bytes: [4 << 10, 6 << 10, 1 << 20][rng.usize(0..3)],
        policy: [
            Policy::EveryCommit,
            Policy::Group,
            Policy::Interval(Duration::from_micros(100)),
        ][rng.usize(0..3)],
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
    way: Way,
    planted: Option<Fault>,
}

impl Scene {
    fn new(kind: Kind, planted: Option<Fault>, rng: &mut Rng) -> Scene {
        let way = Way::any(rng);
        Scene {
            kind,
            options: options(way, rng),
            keyspace: KeyspaceOptions {
                leaf_bytes: [256, 400][rng.usize(0..2)],
                compression: [Compression::None, Compression::Lz4][rng.usize(0..2)],
            },
            way,
            planted,
        }
    }

    fn environment(&self, disk: &Disk, rng: &mut Rng) -> Simulated {
        Simulated::new(disk, self.way, self.planted, rng.u64(..))
    }

    fn open(&self, disk: &Disk, rng: &mut Rng) -> Result<Store, Error> {
        let environment = self.environment(disk, rng);
        Ok(Arc::new(Handle::open(&environment, self.options.clone())?))
    }

    /// Its keyspaces, which are made if they are not there.
    fn keyspaces(&self, store: &Store, history: &Mutex<History>) -> Result<Vec<Keyspace>, Error> {
        let mut keyspaces = Vec::new();
        for name in KEYSPACES {
            let next = store.shared.log.next_lsn().0;
            let made = store.shared.open_keyspace(name, &self.keyspace);
            let mut history = lock(history);
            if store.shared.log.next_lsn().0 > next {
                history.commits.insert(next, Commit::Writes(Vec::new()));
                history.durable = if made.is_ok() { next } else { history.durable };
            } else if made.is_err() {
                history.perhaps.push(Commit::Writes(Vec::new()));
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
        drop(
            self.open(disk, rng)
                .map_err(|error| format!("cannot make a store: {error}"))?,
        );
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
        let next = store.shared.log.next_lsn().0;
        let removed = store.shared.remove_keyspace(keyspace);
        {
            let mut history = lock(history);
            if store.shared.log.next_lsn().0 > next {
                history.commits.insert(next, Commit::Removed(index));
                history.durable = if removed.is_ok() {
                    next
                } else {
                    history.durable
                };
            } else if removed.is_err() {
                history.perhaps.push(Commit::Removed(index));
            }
        }
        removed?;
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

/// A process dies while it makes a checkpoint, and the power goes while the next one makes another: what the first has left
/// to the kernel may not be there then.
pub(crate) fn killed_in_checkpoint(seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, found| {
        let mut scene = Scene::new(Kind::Killed, planted, rng);
        scene.options.policy = Policy::EveryCommit;
        let disk = Disk::new(scene.way.block(), rng.u64(..));
        let history = Arc::new(Mutex::new(History::default()));
        let wrong = |error: Error| format!("an honest disk failed: {error}");
        let live = |disk: &Disk, history: &Arc<Mutex<History>>, rng: &mut Rng| {
            let store = scene.open(disk, rng)?;
            let keyspaces = scene.keyspaces(&store, history)?;
            for _ in 0..rng.u8(4..24) {
                match act(&store, &keyspaces, Policy::EveryCommit, history, rng) {
                    Ok(()) | Err(Error::Conflict | Error::NoKeyspace) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(store)
        };
        for is_killed in [false, true] {
            let store = live(&disk, &history, rng).map_err(wrong)?;
            if is_killed {
                disk.kill_after(rng.u64(0..40));
            }
            match store.shared.checkpoint(Goal::Everything) {
                Err(error) if is_killed && is_refusal(&error) => {}
                made => made.map_err(wrong)?,
            }
            disk.kill();
        }
        for moment in (0..40).step_by(2) {
            let (disk, history) = (disk.copy(), lock(&history).clone());
            let history = Arc::new(Mutex::new(history));
            let store = live(&disk, &history, rng).map_err(wrong)?;
            disk.cut_power_after(moment + rng.u64(0..2));
            match store.shared.checkpoint(Goal::Everything) {
                Err(error) if is_refusal(&error) => {}
                made => made.map_err(wrong)?,
            }
            drop(store);
            let history = lock(&history).clone();
            scene.power_cuts(&disk, &history, rng, 1, found)?;
        }
        Ok(())
    })
}

/// A key is moved from one keyspace to another, and the first is removed; nothing of that is durable when a checkpoint is made that
/// has neither, and the power goes.
pub(crate) fn removed_before_checkpoint(seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, found| {
        let mut scene = Scene::new(Kind::PowerCut, planted, rng);
        scene.options.policy = Policy::Interval(Duration::from_secs(1000));
        scene.options.memory_bytes = 8 << 10;
        scene.options.max_recovery_time = Duration::from_secs(1000);
        scene.options.log.max_unwritten_bytes = 1 << 20;
        scene.options.log.buffer_bytes = 1 << 20;
        let disk = Disk::new(scene.way.block(), rng.u64(..));
        let wrong = |error: Error| format!("an honest disk failed: {error}");
        let store = scene.open(&disk, rng).map_err(wrong)?;
        let open = |name| store.shared.open_keyspace(name, &scene.keyspace);
        let (old, new, other) = (open("old"), open("new"), open("other"));
        let (old, new, other) = (
            old.map_err(wrong)?,
            new.map_err(wrong)?,
            other.map_err(wrong)?,
        );
        let put = |keyspace: &Keyspace, key: u8, len: usize| {
            let write = Write {
                keyspace: keyspace.id,
                key: vec![key],
                value: Some(vec![1; len]),
            };
            store.shared.commit(vec![write], None).map_err(wrong)
        };
        put(&old, 7, 20)?;
        store.shared.checkpoint(Goal::Everything).map_err(wrong)?;
        for key in 0..5 {
            put(&other, key, 400)?;
        }
        store.shared.log.commit().map_err(wrong)?;
        put(&new, 7, 20)?;
        store.shared.forget_keyspace(&old).map_err(wrong)?;
        disk.cut_power_after(rng.u64(0..30));
        match store.shared.checkpoint(Goal::Due) {
            Err(error) if is_refusal(&error) => {}
            made => made.map_err(wrong)?,
        }
        disk.cut_power_now();
        drop((old, new, other, store));
        for _ in 0..STATES {
            let left = disk.after_power_cut(Loss::ALL[rng.usize(0..Loss::ALL.len())], rng);
            if !found.states.insert(left.digest()) {
                continue;
            }
            let store = scene.open(&left, rng).map_err(wrong)?;
            let mut is_there = false;
            for keyspace in existing(&store) {
                is_there |= keyspace.name != "other"
                    && store
                        .shared
                        .get(&keyspace, &[7], None)
                        .map_err(wrong)?
                        .is_some();
            }
            if !is_there {
                return Err("what was moved is in neither keyspace".to_owned());
            }
        }
        Ok(())
    })
}

/// Each call of a life fails once, or from then on, and nothing is lost by it: neither for who goes on, nor after a power
/// cut. Where there was no space the store can be used again as soon as there is some.
pub(crate) fn every_call(seed: u64, how: How, stays: bool, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, found| {
        let mut scene = Scene::new(Kind::Failing, planted, rng);
        scene.options.policy = Policy::EveryCommit;
        let disk = Disk::new(scene.way.block(), rng.u64(..));
        let history = Arc::new(Mutex::new(History::default()));
        let wrong = |error: Error| format!("an honest disk failed: {error}");
        let live = |store: &Store, history: &Arc<Mutex<History>>, rng: &mut Rng| {
            let keyspaces = scene.keyspaces(store, history)?;
            for _ in 0..12 {
                match act(store, &keyspaces, Policy::EveryCommit, history, rng) {
                    Ok(()) | Err(Error::Conflict | Error::NoKeyspace) => {}
                    Err(error) => return Err(error),
                }
            }
            store.shared.checkpoint(Goal::Everything)?;
            Ok(keyspaces)
        };
        let store = scene.open(&disk, rng).map_err(wrong)?;
        live(&store, &history, rng).map_err(wrong)?;
        store.shared.close().map_err(wrong)?;
        drop(store);
        let mut call = 0;
        loop {
            call += rng.u64(1..4);
            let (disk, history) = (disk.copy(), lock(&history).clone());
            let history = Arc::new(Mutex::new(history));
            let before = disk.calls();
            disk.fail_after(call, stays, how);
            let store = match scene.open(&disk, rng) {
                Ok(store) => store,
                Err(error) if is_refusal(&error) => {
                    disk.fail(None);
                    scene.open(&disk, rng).map_err(wrong)?
                }
                Err(error) => return Err(format!("cannot open it: {error}")),
            };
            match live(&store, &history, rng) {
                Ok(_) => {}
                Err(error) if is_refusal(&error) => {}
                Err(error) => return Err(format!("something failed: {error}")),
            }
            let is_over = disk.calls() < before + call;
            disk.fail(None);
            let keyspaces = existing(&store);
            lock(&history)
                .seen
                .push(everything(&store, &keyspaces).map_err(wrong)?);
            lock(&history).check_seen()?;
            if how == How::NoSpace {
                live(&store, &history, rng).map_err(|why| format!("not usable again: {why}"))?;
            }
            disk.cut_power_now();
            drop(store);
            let history = lock(&history).clone();
            scene.power_cuts(&disk, &history, rng, 1, found)?;
            if is_over {
                return Ok(());
            }
        }
    })
}

/// Damages the directory of a store that was closed or killed, in every way.
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
            let store = scene.open(&disk, rng).map_err(wrong)?;
            let keyspaces = scene.keyspaces(&store, &history).map_err(wrong)?;
            lock(&history).check(&store, &keyspaces)?;
            others.older.push(disk.files());
            scene.use_it(&store, &keyspaces, &history, None, rng)?;
            if rng.bool() {
                store.shared.checkpoint(Goal::Everything).map_err(wrong)?;
            }
            others.older.push(disk.files());
            if life > 0 && !is_closed {
                disk.kill();
            } else {
                store.shared.close().map_err(wrong)?;
                let mut history = lock(&history);
                history.durable = store.shared.log.next_lsn().0 - 1;
            }
            drop(store);
        }
        let foreign = Disk::new(scene.way.block(), rng.u64(..));
        let other = scene.open(&foreign, rng).map_err(wrong)?;
        let keyspaces = scene.keyspaces(&other, &Mutex::default()).map_err(wrong)?;
        let write = Write {
            keyspace: keyspaces[0].id,
            key: b"foreign".to_vec(),
            value: Some(vec![7; 40]),
        };
        other.shared.commit(vec![write], None).map_err(wrong)?;
        other.shared.checkpoint(Goal::Everything).map_err(wrong)?;
        drop((other, keyspaces));
        others.foreign = foreign.files();
        let disk = disk.with_files(&disk.files());
        let history = lock(&history).clone();
        let whole = disk.files();
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
                let is_of_log = |name: &&String| {
                    name.starts_with("segment") || name.starts_with("landfall-log")
                };
                let is_same = |name: &&String| files.get(*name) == whole.get(*name);
                let names = || whole.keys().chain(files.keys());
                let mut others = names().filter(|name| *name != CONTROL_NAME);
                let must = Must {
                    promised: oracle::promised_in(seen, None),
                    everything: names().filter(is_of_log).all(|name| is_same(&name)),
                    it_opens: damage == Damage::FlippedBit && others.all(|name| is_same(&name)),
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

fn key(rng: &mut Rng) -> Vec<u8> {
    let number = rng.u8(0..KEYS);
    vec![number; 1 + usize::from(number % 5) * 3]
}

/// A value that nobody else writes; few are larger than a leaf.
fn value(rng: &mut Rng) -> Vec<u8> {
    let len = match rng.u8(0..40) {
        0 => rng.usize(300..1200),
        _ => rng.usize(0..60),
    };
    let mut value = rng.u64(..).to_le_bytes().to_vec();
    value.resize(8 + len, rng.u8(..));
    value
}

fn writes(rng: &mut Rng) -> Writes {
    let count = if rng.bool() { 1 } else { rng.u8(1..6) };
    let mut writes = Writes::new();
    for _ in 0..count {
        let (keyspace, key) = (rng.usize(0..2), key(rng));
        if writes
            .iter()
            .any(|(of, name, _)| (of, name) == (&keyspace, &key))
        {
            continue;
        }
        let value = (rng.u8(0..3) > 0).then(|| value(rng));
        writes.push((keyspace, key, value));
    }
    writes
}

fn act(
    store: &Store,
    keyspaces: &[Keyspace],
    policy: Policy,
    history: &Arc<Mutex<History>>,
    rng: &mut Rng,
) -> Result<(), Error> {
    let shared = &store.shared;
    let committed = |lsn: Option<Lsn>, writes: Writes, is_durable: bool| {
        let mut history = lock(history);
        if let Some(Lsn(lsn)) = lsn {
            history.commits.insert(lsn, Commit::Writes(writes));
            if is_durable {
                history.durable = history.durable.max(lsn);
            }
        }
    };
    let make_durable = |lsn: Option<Lsn>| -> Result<(), Error> {
        let Some(lsn) = lsn.filter(|_| policy == Policy::EveryCommit) else {
            return Ok(());
        };
        shared.log.commit_to(lsn)?;
        let mut history = lock(history);
        history.durable = history.durable.max(lsn.0);
        Ok(())
    };
    let of_store = |writes: &Writes| -> Vec<Write> {
        let writes = writes.iter();
        let write = |(keyspace, key, value): &(usize, Vec<u8>, Option<Vec<u8>>)| Write {
            keyspace: keyspaces[*keyspace].id,
            key: key.clone(),
            value: value.clone(),
        };
        writes.map(write).collect()
    };
    match rng.u8(0..20) {
        0 => {
            let next = shared.log.commit()?.0;
            let mut history = lock(history);
            history.durable = history.durable.max(next - 1);
        }
        1 | 2 => shared.checkpoint(Goal::Everything)?,
        3 => shared.ask(),
        4 | 5 => {
            let seen = everything(store, keyspaces)?;
            lock(history).seen.push(seen);
        }
        6..10 => {
            let is_serialisable = rng.bool();
            let mut transaction = Transaction::new(store, is_serialisable);
            let at = transaction.at();
            let mut reads = Seen {
                at,
                contents: Contents::new(),
                keys: Vec::new(),
                is_everything: rng.u8(0..4) == 0,
            };
            if reads.is_everything {
                for (index, keyspace) in keyspaces.iter().enumerate() {
                    let mut range = transaction.range(keyspace, Bounds::of::<&[u8]>(&..));
                    while let Some(pair) = range.next() {
                        let (key, value) = pair?;
                        reads.contents.insert((index, key), value);
                    }
                }
            }
            for _ in 0..rng.u8(0..4) {
                let (keyspace, key) = (rng.usize(0..2), key(rng));
                thread::yield_now();
                if let Some(value) = transaction.get(&keyspaces[keyspace], &key)? {
                    reads.contents.insert((keyspace, key.clone()), value);
                }
                reads.keys.push((keyspace, key));
            }
            let writes = writes(rng);
            for (keyspace, key, value) in &writes {
                transaction.write(keyspaces[*keyspace].id, key, value.as_deref());
            }
            let (view, of_transaction, checks) = transaction.finish();
            let lsn = match shared.write(of_transaction, Some(&checks)) {
                Err(Error::Conflict) => return Err(Error::Conflict),
                Err(error) => {
                    lock(history).perhaps.push(Commit::Writes(writes));
                    return Err(error);
                }
                Ok(lsn) => lsn,
            };
            committed(lsn, writes, false);
            drop(view);
            if let Some(Lsn(lsn)) = lsn {
                lock(history).transactions.push(Committed {
                    at,
                    lsn,
                    is_serialisable,
                    reads,
                });
            }
            make_durable(lsn)?;
        }
        10 if rng.u8(0..6) == 0 => {
            let index = rng.usize(0..2);
            let lsn = match shared.forget_keyspace(&keyspaces[index]) {
                Err(error) => {
                    if !matches!(error, Error::NoSpace { .. } | Error::NoKeyspace) {
                        lock(history).perhaps.push(Commit::Removed(index));
                    }
                    return Err(error);
                }
                Ok(lsn) => lsn,
            };
            lock(history).commits.insert(lsn.0, Commit::Removed(index));
            shared.log.commit_to(lsn)?;
            let mut history = lock(history);
            history.durable = history.durable.max(lsn.0);
        }
        _ => {
            let writes = writes(rng);
            let lsn = match shared.write(of_store(&writes), None) {
                Err(error) => {
                    if !matches!(error, Error::NoSpace { .. }) {
                        lock(history).perhaps.push(Commit::Writes(writes));
                    }
                    return Err(error);
                }
                Ok(lsn) => lsn,
            };
            committed(lsn, writes, false);
            make_durable(lsn)?;
        }
    }
    Ok(())
}
