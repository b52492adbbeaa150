//! A directory that loses power.
//!
//! Every sector of a file has a durable content and the contents that were written since. A power cut
//! leaves any of them, in every sector by itself: what was written is lost, torn and reordered. Names are
//! like that too. What was made durable stays: by a write that is durable when it returns, those sectors and
//! no others; by a sync, the file's; by a sync of the directory, the names.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use fastrand::Rng;

pub const SECTOR: usize = 512;

/// What a sector was given since it was durable.
#[derive(Clone)]
struct Version {
    time: u64,
    bytes: [u8; SECTOR],
    /// A sync that failed has given it up: later ones do not try again.
    is_given_up: bool,
}

#[derive(Clone, Default)]
struct Inode {
    len: u64,
    durable_len: u64,
    durable: BTreeMap<u64, [u8; SECTOR]>,
    newer: BTreeMap<u64, Vec<Version>>,
}

#[derive(Clone)]
enum NameChange {
    Set(String, usize),
    Remove(String),
}

#[derive(Clone, Default)]
struct State {
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    changes: Vec<(u64, NameChange)>,
    time: u64,
    /// Operations after which the power goes.
    power_until: Option<u64>,
    /// Processes are numbered; only the last one lives.
    process: u64,
    is_locked: bool,
    /// The write or sync of this number fails.
    fail_write: Option<u64>,
    fail_sync: Option<u64>,
    writes: u64,
    syncs: u64,
    /// Bytes that are left.
    space: u64,
    /// Syncs say that they were done, and were not.
    lies: bool,
}

/// How unsynced writes are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// All of them.
    Everything,
    /// None.
    Nothing,
    /// Those after some moment.
    Suffix,
    /// Any sector by itself.
    Sectors,
    /// Mostly none, or mostly all.
    Few,
}

#[derive(Clone)]
pub struct Disk(Arc<Mutex<State>>);

fn dead() -> io::Error {
    io::Error::other("there is no power")
}

impl Disk {
    pub fn new() -> Disk {
        Disk(Arc::new(Mutex::new(State {
            space: 1 << 30,
            ..State::default()
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// So many operations from now on the power goes.
    pub fn cut_power_after(&self, operations: u64) {
        let mut state = self.state();
        state.power_until = Some(state.time + operations);
    }

    pub fn cut_power_now(&self) {
        self.cut_power_after(0);
    }

    /// The process dies; the next one finds everything that was written.
    pub fn kill(&self) -> u64 {
        let mut state = self.state();
        state.process += 1;
        state.is_locked = false;
        state.process
    }

    pub fn process(&self) -> u64 {
        self.state().process
    }

    pub fn fail_write_after(&self, count: u64) {
        let mut state = self.state();
        state.fail_write = Some(state.writes + count);
    }

    pub fn fail_sync_after(&self, count: u64) {
        let mut state = self.state();
        state.fail_sync = Some(state.syncs + count);
    }

    /// From now on syncs say that they were done, and are not.
    pub fn lie(&self) {
        self.state().lies = true;
    }

    pub fn set_space(&self, bytes: u64) {
        self.state().space = bytes;
    }

    /// A tick of the disk's clock, unless the process or the power is gone.
    fn tick(&self, process: u64) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        if state.process != process {
            return Err(io::Error::other("the process was killed"));
        }
        if state.power_until.is_some_and(|until| state.time >= until) {
            return Err(dead());
        }
        state.time += 1;
        Ok(state)
    }

    pub fn names(&self, process: u64) -> io::Result<Vec<String>> {
        Ok(self.tick(process)?.names.keys().cloned().collect())
    }

    pub fn lock(&self, process: u64) -> io::Result<bool> {
        let mut state = self.tick(process)?;
        Ok(!std::mem::replace(&mut state.is_locked, true))
    }

    pub fn unlock(&self, process: u64) {
        let mut state = self.state();
        if state.process == process {
            state.is_locked = false;
        }
    }

    pub fn create(&self, process: u64, name: &str) -> io::Result<usize> {
        let mut state = self.tick(process)?;
        if state.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.inodes.push(Inode::default());
        let inode = state.inodes.len() - 1;
        state.change(NameChange::Set(name.to_owned(), inode));
        Ok(inode)
    }

    pub fn open(&self, process: u64, name: &str) -> io::Result<usize> {
        let state = self.tick(process)?;
        let inode = state.names.get(name).copied();
        inode.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub fn rename(&self, process: u64, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.tick(process)?;
        let inode = state.names.get(from).copied();
        let inode = inode.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        // One change: a filesystem's rename is atomic.
        state.change(NameChange::Set(to.to_owned(), inode));
        state.change(NameChange::Remove(from.to_owned()));
        Ok(())
    }

    pub fn remove(&self, process: u64, name: &str) -> io::Result<()> {
        let mut state = self.tick(process)?;
        if !state.names.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.change(NameChange::Remove(name.to_owned()));
        Ok(())
    }

    pub fn sync_names(&self, process: u64) -> io::Result<()> {
        let mut state = self.tick(process)?;
        state.begin_sync()?;
        if !state.lies {
            state.durable_names = state.names.clone();
            state.changes.clear();
        }
        Ok(())
    }

    pub fn len(&self, process: u64, inode: usize) -> io::Result<u64> {
        Ok(self.tick(process)?.inodes[inode].len)
    }

    pub fn allocate(&self, process: u64, inode: usize, len: u64) -> io::Result<()> {
        let mut state = self.tick(process)?;
        let more = len.saturating_sub(state.inodes[inode].len);
        if more > state.space {
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.space -= more;
        state.inodes[inode].len = len;
        Ok(())
    }

    pub fn read(
        &self,
        process: u64,
        inode: usize,
        buffer: &mut [u8],
        offset: u64,
    ) -> io::Result<()> {
        let state = self.tick(process)?;
        let file = &state.inodes[inode];
        if offset + buffer.len() as u64 > file.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        assert_eq!((offset % SECTOR as u64, buffer.len() % SECTOR), (0, 0));
        for (index, chunk) in buffer.chunks_mut(SECTOR).enumerate() {
            chunk.copy_from_slice(&file.sector(offset / SECTOR as u64 + index as u64));
        }
        Ok(())
    }

    /// Begins a write: what is written may be there from now on.
    pub fn write(
        &self,
        process: u64,
        inode: usize,
        bytes: &[u8],
        offset: u64,
        rng: &mut Rng,
    ) -> io::Result<()> {
        let mut state = self.tick(process)?;
        assert_eq!((offset % SECTOR as u64, bytes.len() % SECTOR), (0, 0));
        assert!(offset + bytes.len() as u64 <= state.inodes[inode].len);
        state.writes += 1;
        let fails = state.fail_write == Some(state.writes);
        let time = state.time;
        for (index, chunk) in bytes.chunks(SECTOR).enumerate() {
            if fails && rng.bool() {
                continue;
            }
            let version = Version {
                time,
                bytes: chunk.try_into().unwrap(),
                is_given_up: fails,
            };
            let sector = offset / SECTOR as u64 + index as u64;
            let newer = state.inodes[inode].newer.entry(sector).or_default();
            newer.push(version);
        }
        match fails {
            true => Err(io::Error::other("a write failed, as was planned")),
            false => Ok(()),
        }
    }

    /// Ends a write that is durable when it returns.
    pub fn settle(&self, process: u64, inode: usize, offset: u64, len: usize) -> io::Result<()> {
        let mut state = self.tick(process)?;
        state.begin_sync()?;
        if !state.lies {
            let first = offset / SECTOR as u64;
            state.inodes[inode].settle(first..first + (len / SECTOR) as u64);
        }
        Ok(())
    }

    pub fn sync(&self, process: u64, inode: usize) -> io::Result<()> {
        let mut state = self.tick(process)?;
        if let Err(error) = state.begin_sync() {
            let newer = state.inodes[inode].newer.values_mut().flatten();
            newer.for_each(|version| version.is_given_up = true);
            return Err(error);
        }
        if !state.lies {
            let file = &mut state.inodes[inode];
            file.settle(0..u64::MAX);
            file.durable_len = file.len;
        }
        Ok(())
    }

    /// What a power cut leaves, as a disk of its own.
    pub fn after_power_cut(&self, loss: Loss, rng: &mut Rng) -> Disk {
        let state = self.state();
        let moment = rng.u64(0..=state.time);
        let keep_most = rng.bool();
        let mut keeps = |time: u64| match loss {
            Loss::Everything => false,
            Loss::Nothing => true,
            Loss::Suffix => time <= moment,
            Loss::Sectors => rng.bool(),
            Loss::Few => (rng.u8(0..8) > 0) == keep_most,
        };
        let mut names = state.durable_names.clone();
        for (time, change) in &state.changes {
            if keeps(*time) {
                change.apply(&mut names);
            }
        }
        let mut inodes = Vec::new();
        for file in &state.inodes {
            let mut left = Inode {
                durable: file.durable.clone(),
                durable_len: file.durable_len,
                ..Inode::default()
            };
            if file.len != file.durable_len && keeps(state.time) {
                left.durable_len = file.len;
            }
            for (sector, newer) in &file.newer {
                // Any that is kept, and none that came before one that is.
                if let Some(version) = newer.iter().rev().find(|version| keeps(version.time)) {
                    left.durable.insert(*sector, version.bytes);
                }
            }
            left.len = left.durable_len;
            inodes.push(left);
        }
        Disk(Arc::new(Mutex::new(State {
            inodes,
            durable_names: names.clone(),
            names,
            time: state.time,
            space: 1 << 30,
            ..State::default()
        })))
    }

    /// What a fresh process finds, in one number.
    pub fn digest(&self) -> u64 {
        let state = self.state();
        let mut hasher = DefaultHasher::new();
        for (name, inode) in &state.names {
            let file = &state.inodes[*inode];
            (name, file.len).hash(&mut hasher);
            for sector in 0..file.len / SECTOR as u64 {
                let bytes = file.sector(sector);
                if bytes != [0; SECTOR] {
                    (sector, bytes).hash(&mut hasher);
                }
            }
        }
        hasher.finish()
    }

    /// Flips a bit of what is there.
    pub fn flip_a_bit(&self, rng: &mut Rng) -> Option<(String, u64)> {
        let mut state = self.state();
        let names: Vec<(String, usize)> = state.names.clone().into_iter().collect();
        let (name, inode) = names.get(rng.usize(0..names.len().max(1)))?.clone();
        let file = &mut state.inodes[inode];
        let sectors: Vec<u64> = file.durable.keys().copied().collect();
        let sector = *sectors.get(rng.usize(0..sectors.len().max(1)))?;
        let bytes = file.durable.get_mut(&sector)?;
        let bit = rng.usize(0..SECTOR * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        Some((name, sector * SECTOR as u64 + (bit / 8) as u64))
    }
}

impl State {
    fn change(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        let time = self.time;
        self.changes.push((time, change));
    }

    fn begin_sync(&mut self) -> io::Result<()> {
        self.syncs += 1;
        match self.fail_sync == Some(self.syncs) {
            true => Err(io::Error::other("a flush failed, as was planned")),
            false => Ok(()),
        }
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            NameChange::Set(name, inode) => names.insert(name.clone(), *inode),
            NameChange::Remove(name) => names.remove(name),
        };
    }
}

impl Inode {
    fn sector(&self, sector: u64) -> [u8; SECTOR] {
        let newest = self.newer.get(&sector).and_then(|newer| newer.last());
        match newest {
            Some(version) => version.bytes,
            None => self.durable.get(&sector).copied().unwrap_or([0; SECTOR]),
        }
    }

    fn settle(&mut self, sectors: std::ops::Range<u64>) {
        let settled: Vec<u64> = self
            .newer
            .range(sectors)
            .map(|(sector, _)| *sector)
            .collect();
        for sector in settled {
            let Some(newer) = self.newer.get_mut(&sector) else {
                continue;
            };
            let last = newer.iter().rposition(|version| !version.is_given_up);
            if let Some(last) = last {
                self.durable.insert(sector, newer[last].bytes);
                newer.drain(..=last);
            }
            if newer.is_empty() {
                self.newer.remove(&sector);
            }
        }
    }
}
