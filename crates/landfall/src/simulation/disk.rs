//! A directory that loses power, fails, lies and rots.
//!
//! Every sector of a file has a durable content and the contents that were written since. A power cut
//! leaves any of them, in every block of the device by itself: what was written is lost, torn and reordered. Names are
//! like that too, and so is the directory in its parent. What was made durable stays: by a write that is durable when it
//! returns, those sectors and no others; by a sync, the file's; by a sync of the directory, the names.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use fastrand::Rng;

pub(crate) const SECTOR: usize = 512;

/// What a sector was given since it was durable.
#[derive(Clone)]
struct Version {
    time: u64,
    bytes: [u8; SECTOR],
    /// A sync that failed has given it up: later ones do not try again.
    is_given_up: bool,
    /// The first block of a write that is not torn: all of it is there or nothing.
    whole: Option<u64>,
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

#[derive(Clone)]
struct Renaming {
    time: u64,
    change: NameChange,
    is_given_up: bool,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// `EIO`. Of a write nobody knows what is there; a sync gives up what it was to make durable.
    Io,
    /// There is no space. Calls that need none go well.
    NoSpace,
    /// A read or a write does a part of it. Other calls go well.
    Short,
    /// A read or a write is interrupted, and has to be tried again. Other calls go well.
    Interrupted,
    /// A write says that it was done, and was not. Other calls go well.
    LostWrite,
    /// A write lands elsewhere in the same file. Other calls go well.
    MisplacedWrite,
    /// A read gives what was there before. Other calls go well.
    StaleRead,
    /// A read gives what is elsewhere in the same file. Other calls go well.
    MisplacedRead,
}

/// Calls that fail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure {
    /// The number of the first.
    pub call: u64,
    /// All that come after it fail as well.
    pub stays: bool,
    pub how: How,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Read,
    Write,
    Sync,
    /// That takes space.
    Grow,
    Other,
}

#[derive(Clone)]
struct State {
    inodes: Vec<Inode>,
    exists: bool,
    exists_durably: bool,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    changes: Vec<Renaming>,
    time: u64,
    /// Operations after which the power goes.
    power_until: Option<u64>,
    /// Operations after which the process dies.
    kill_until: Option<u64>,
    /// Processes are numbered; only the last one lives.
    process: u64,
    is_locked: bool,
    failure: Option<Failure>,
    calls: u64,
    /// Bytes that are left.
    space: u64,
    /// Syncs say that they were done, and were not.
    lies: bool,
    /// Sectors that the device writes whole, or not at all.
    block: u64,
    rng: Rng,
}

/// How unsynced writes are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// All of them.
    Everything,
    /// None.
    Nothing,
    /// Those after some moment.
    Suffix,
    /// Any block by itself.
    Sectors,
    /// Mostly none, or mostly all.
    Few,
}

impl Loss {
    pub const ALL: [Loss; 5] = [
        Loss::Everything,
        Loss::Nothing,
        Loss::Suffix,
        Loss::Sectors,
        Loss::Few,
    ];
}

#[derive(Clone)]
pub(crate) struct Disk(Arc<Mutex<State>>);

fn dead() -> io::Error {
    io::Error::other("there is no power")
}

fn planned() -> io::Error {
    io::Error::other("a call failed, as was planned")
}

impl Disk {
    /// Whose blocks have so many bytes.
    pub fn new(block: u32, seed: u64) -> Disk {
        Disk(Arc::new(Mutex::new(State {
            inodes: Vec::new(),
            exists: false,
            exists_durably: false,
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            changes: Vec::new(),
            time: 0,
            power_until: None,
            kill_until: None,
            process: 0,
            is_locked: false,
            failure: None,
            calls: 0,
            space: 1 << 30,
            lies: false,
            block: u64::from(block) / SECTOR as u64,
            rng: Rng::with_seed(seed),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Another disk with the same on it, and in its cache.
    pub fn copy(&self) -> Disk {
        let mut state = self.state().clone();
        state.is_locked = false;
        Disk(Arc::new(Mutex::new(state)))
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
    pub fn kill(&self) {
        self.state().kill();
    }

    /// So many operations from now on the process dies.
    pub fn kill_after(&self, operations: u64) {
        let mut state = self.state();
        state.kill_until = Some(state.time + operations);
    }

    pub fn process(&self) -> u64 {
        self.state().process
    }

    /// Calls that were made.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    pub fn fail(&self, failure: Option<Failure>) {
        self.state().failure = failure;
    }

    /// So many calls from now on one fails.
    pub fn fail_after(&self, calls: u64, stays: bool, how: How) {
        let call = self.calls() + calls;
        self.fail(Some(Failure { call, stays, how }));
    }

    /// From now on syncs say that they were done, and are not.
    pub fn lie(&self) {
        self.state().lies = true;
    }

    /// Bytes that files may grow by.
    pub fn space(&self) -> u64 {
        self.state().space
    }

    pub fn set_space(&self, bytes: u64) {
        self.state().space = bytes;
    }

    /// A tick of the disk's clock, unless the process or the power is gone; and how this call fails.
    fn tick(&self, process: u64, call: Call) -> io::Result<(MutexGuard<'_, State>, Option<How>)> {
        let mut state = self.state();
        if state.kill_until.is_some_and(|until| state.time >= until) {
            state.kill();
        }
        if state.process != process {
            return Err(io::Error::other("the process was killed"));
        }
        if state.power_until.is_some_and(|until| state.time >= until) {
            return Err(dead());
        }
        state.time += 1;
        state.calls += 1;
        let number = state.calls;
        let how = state
            .failure
            .filter(|failure| number == failure.call || (failure.stays && number > failure.call));
        let how = how.map(|failure| failure.how);
        match (how, call) {
            (Some(How::Io), Call::Write | Call::Sync) => Ok((state, how)),
            (Some(How::Io), _) => Err(planned()),
            (Some(How::NoSpace), Call::Grow) => Err(io::ErrorKind::StorageFull.into()),
            (Some(How::Interrupted), Call::Read | Call::Write) => {
                Err(io::ErrorKind::Interrupted.into())
            }
            (Some(How::Short | How::StaleRead | How::MisplacedRead), Call::Read) => {
                Ok((state, how))
            }
            (Some(How::Short | How::LostWrite | How::MisplacedWrite), Call::Write) => {
                Ok((state, how))
            }
            _ => Ok((state, None)),
        }
    }

    pub fn make(&self, process: u64) -> io::Result<()> {
        let (mut state, _) = self.tick(process, Call::Grow)?;
        state.exists = true;
        Ok(())
    }

    pub fn sync_parent(&self, process: u64) -> io::Result<()> {
        let (mut state, how) = self.tick(process, Call::Sync)?;
        if how.is_some() {
            return Err(planned());
        }
        if !state.lies {
            state.exists_durably = state.exists;
        }
        Ok(())
    }

    pub fn names(&self, process: u64) -> io::Result<Vec<String>> {
        let (state, _) = self.tick(process, Call::Other)?;
        Ok(state.names.keys().cloned().collect())
    }

    pub fn lock(&self, process: u64) -> io::Result<bool> {
        let (mut state, _) = self.tick(process, Call::Other)?;
        if !state.exists {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(!std::mem::replace(&mut state.is_locked, true))
    }

    pub fn unlock(&self, process: u64) {
        let mut state = self.state();
        if state.process == process {
            state.is_locked = false;
        }
    }

    pub fn create(&self, process: u64, name: &str) -> io::Result<usize> {
        let (mut state, _) = self.tick(process, Call::Grow)?;
        if state.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.inodes.push(Inode::default());
        let inode = state.inodes.len() - 1;
        state.change(NameChange::Set(name.to_owned(), inode));
        Ok(inode)
    }

    pub fn open(&self, process: u64, name: &str) -> io::Result<usize> {
        let (state, _) = self.tick(process, Call::Other)?;
        let inode = state.names.get(name).copied();
        inode.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub fn rename(&self, process: u64, from: &str, to: &str) -> io::Result<()> {
        let (mut state, _) = self.tick(process, Call::Other)?;
        let inode = state.names.get(from).copied();
        let inode = inode.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        // One change: a filesystem's rename is atomic.
        state.change(NameChange::Set(to.to_owned(), inode));
        state.change(NameChange::Remove(from.to_owned()));
        Ok(())
    }

    pub fn remove(&self, process: u64, name: &str) -> io::Result<()> {
        let (mut state, _) = self.tick(process, Call::Other)?;
        if !state.names.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.change(NameChange::Remove(name.to_owned()));
        Ok(())
    }

    pub fn sync_names(&self, process: u64) -> io::Result<()> {
        let (mut state, how) = self.tick(process, Call::Sync)?;
        if how.is_some() {
            for renaming in &mut state.changes {
                renaming.is_given_up = true;
            }
            return Err(planned());
        }
        if !state.lies {
            let changes = std::mem::take(&mut state.changes);
            let mut names = std::mem::take(&mut state.durable_names);
            for renaming in changes {
                if renaming.is_given_up {
                    state.changes.push(renaming);
                } else {
                    // What came before of the same name is over.
                    let name = renaming.change.name();
                    state.changes.retain(|before| before.change.name() != name);
                    renaming.change.apply(&mut names);
                }
            }
            state.durable_names = names;
        }
        Ok(())
    }

    pub fn len(&self, process: u64, inode: usize) -> io::Result<u64> {
        Ok(self.tick(process, Call::Other)?.0.inodes[inode].len)
    }

    pub fn allocate(&self, process: u64, inode: usize, len: u64) -> io::Result<()> {
        let (mut state, _) = self.tick(process, Call::Grow)?;
        let more = len.saturating_sub(state.inodes[inode].len);
        if more > state.space {
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.space -= more;
        let file = &mut state.inodes[inode];
        file.len = file.len.max(len);
        Ok(())
    }

    pub fn read(
        &self,
        process: u64,
        inode: usize,
        buffer: &mut [u8],
        offset: u64,
    ) -> io::Result<usize> {
        let (mut state, how) = self.tick(process, Call::Read)?;
        assert_eq!((offset % SECTOR as u64, buffer.len() % SECTOR), (0, 0));
        let len = state.inodes[inode].len;
        let there = len.saturating_sub(offset).min(buffer.len() as u64) as usize / SECTOR * SECTOR;
        let mut count = there;
        if how == Some(How::Short) {
            count = state.half(there);
        }
        let first = offset / SECTOR as u64;
        let sectors = (count / SECTOR) as u64;
        let from = if how == Some(How::MisplacedRead) {
            state
                .rng
                .u64(0..=(len / SECTOR as u64).saturating_sub(sectors))
        } else {
            first
        };
        let file = &state.inodes[inode];
        for (sector, chunk) in (from..).zip(buffer[..count].chunks_mut(SECTOR)) {
            let bytes = if how == Some(How::StaleRead) {
                file.durable.get(&sector).copied().unwrap_or([0; SECTOR])
            } else {
                file.sector(sector)
            };
            chunk.copy_from_slice(&bytes);
        }
        Ok(count)
    }

    /// Begins a write: what is written may be there from now on.
    pub fn write(
        &self,
        process: u64,
        inode: usize,
        bytes: &[u8],
        offset: u64,
    ) -> io::Result<usize> {
        self.write_as(process, inode, bytes, offset, false)
    }

    /// Begins a write of which all may be there from now on, and never a part.
    pub fn write_whole(
        &self,
        process: u64,
        inode: usize,
        bytes: &[u8],
        offset: u64,
    ) -> io::Result<()> {
        self.write_as(process, inode, bytes, offset, true).map(drop)
    }

    fn write_as(
        &self,
        process: u64,
        inode: usize,
        bytes: &[u8],
        offset: u64,
        is_whole: bool,
    ) -> io::Result<usize> {
        let (mut state, how) = self.tick(process, Call::Write)?;
        assert_eq!((offset % SECTOR as u64, bytes.len() % SECTOR), (0, 0));
        let end = offset + bytes.len() as u64;
        if state.inodes[inode].len < end {
            let more = end - state.inodes[inode].len;
            if more > state.space {
                return Err(io::ErrorKind::StorageFull.into());
            }
            state.space -= more;
            state.inodes[inode].len = end;
        }
        let mut count = bytes.len();
        if how == Some(How::Short) {
            if is_whole {
                return Err(planned());
            }
            count = state.half(count);
        }
        let mut first = offset / SECTOR as u64;
        if how == Some(How::MisplacedWrite) {
            let sectors = (count / SECTOR) as u64;
            let most = (state.inodes[inode].len / SECTOR as u64).saturating_sub(sectors);
            first = state.rng.u64(0..=most) / state.block * state.block;
        }
        let fails = how == Some(How::Io);
        let (time, block) = (state.time, state.block);
        let whole = is_whole.then_some(first / block);
        let mut is_there = HashMap::new();
        for (sector, chunk) in (first..).zip(bytes[..count].chunks(SECTOR)) {
            let rng = &mut state.rng;
            let part = whole.unwrap_or(sector / block);
            if fails && *is_there.entry(part).or_insert_with(|| rng.bool()) {
                continue;
            }
            if how == Some(How::LostWrite) {
                continue;
            }
            let version = Version {
                time,
                bytes: chunk.try_into().unwrap(),
                is_given_up: fails,
                whole,
            };
            let newer = state.inodes[inode].newer.entry(sector).or_default();
            newer.push(version);
        }
        if fails { Err(planned()) } else { Ok(count) }
    }

    /// Ends a write that is durable when it returns.
    pub fn settle(&self, process: u64, inode: usize, offset: u64, len: usize) -> io::Result<()> {
        let (mut state, how) = self.tick(process, Call::Sync)?;
        let first = offset / SECTOR as u64;
        let sectors = first..first + (len / SECTOR) as u64;
        if how.is_some() {
            state.inodes[inode].give_up(sectors);
            return Err(planned());
        }
        if !state.lies {
            state.inodes[inode].settle(sectors);
        }
        Ok(())
    }

    pub fn sync(&self, process: u64, inode: usize) -> io::Result<()> {
        let (mut state, how) = self.tick(process, Call::Sync)?;
        if how.is_some() {
            state.inodes[inode].give_up(0..u64::MAX);
            return Err(planned());
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
        // A block of the device is there as one write left it, or is not.
        let mut kept = HashMap::new();
        let mut keeps = |time: u64, block: (usize, u64)| match loss {
            Loss::Everything => false,
            Loss::Nothing => true,
            Loss::Suffix => time <= moment,
            Loss::Sectors => *kept.entry((time, block)).or_insert_with(|| rng.bool()),
            Loss::Few => *kept
                .entry((time, block))
                .or_insert_with(|| (rng.u8(0..8) > 0) == keep_most),
        };
        let names_block = (usize::MAX, 0);
        if !state.exists_durably && !keeps(0, names_block) {
            return Disk::new((state.block * SECTOR as u64) as u32, state.time);
        }
        let mut names = state.durable_names.clone();
        for renaming in &state.changes {
            if keeps(renaming.time, names_block) {
                renaming.change.apply(&mut names);
            }
        }
        let mut inodes = Vec::new();
        for (index, file) in state.inodes.iter().enumerate() {
            let mut left = Inode {
                durable: file.durable.clone(),
                durable_len: file.durable_len,
                ..Inode::default()
            };
            if file.len != file.durable_len && keeps(state.time, (index, u64::MAX)) {
                left.durable_len = file.len;
            }
            for (sector, newer) in &file.newer {
                // Any that is kept, and none that came before one that is.
                let block = |one: &Version| (index, one.whole.unwrap_or(sector / state.block));
                let newest = newer.iter().rev().find(|one| keeps(one.time, block(one)));
                if let Some(version) = newest {
                    left.durable.insert(*sector, version.bytes);
                }
            }
            left.len = left.durable_len;
            inodes.push(left);
        }
        Disk(Arc::new(Mutex::new(State {
            inodes,
            exists: true,
            exists_durably: true,
            durable_names: names.clone(),
            names,
            changes: Vec::new(),
            power_until: None,
            kill_until: None,
            process: 0,
            is_locked: false,
            failure: None,
            space: 1 << 30,
            lies: false,
            ..state.clone()
        })))
    }

    /// What a fresh process finds, in one number.
    pub fn digest(&self) -> u64 {
        let state = self.state();
        let mut hasher = DefaultHasher::new();
        for (name, inode) in &state.names {
            let file = &state.inodes[*inode];
            (name, file.len).hash(&mut hasher);
            for sector in file.sectors() {
                let bytes = file.sector(sector);
                if bytes != [0; SECTOR] {
                    (sector, bytes).hash(&mut hasher);
                }
            }
        }
        hasher.finish()
    }

    /// What a fresh process finds, by name.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let state = self.state();
        let read = |(name, inode): (&String, &usize)| {
            let file = &state.inodes[*inode];
            let mut bytes = vec![0; file.len as usize];
            for sector in file.sectors() {
                let at = sector as usize * SECTOR;
                if let Some(to) = bytes.get_mut(at..) {
                    let len = to.len().min(SECTOR);
                    to[..len].copy_from_slice(&file.sector(sector)[..len]);
                }
            }
            (name.clone(), bytes)
        };
        state.names.iter().map(read).collect()
    }

    /// A disk that holds these files, and nothing else.
    pub fn with_files(&self, files: &BTreeMap<String, Vec<u8>>) -> Disk {
        let disk = self.copy();
        let mut state = disk.state();
        state.inodes.clear();
        state.names.clear();
        for (name, bytes) in files {
            let sectors = bytes.chunks(SECTOR).map(|chunk| {
                let mut sector = [0; SECTOR];
                sector[..chunk.len()].copy_from_slice(chunk);
                sector
            });
            let sectors = (0..)
                .zip(sectors)
                .filter(|(_, bytes)| *bytes != [0; SECTOR]);
            let inode = Inode {
                len: bytes.len() as u64,
                durable_len: bytes.len() as u64,
                durable: sectors.collect(),
                newer: BTreeMap::new(),
            };
            state.inodes.push(inode);
            let last = state.inodes.len() - 1;
            state.names.insert(name.clone(), last);
        }
        state.durable_names = state.names.clone();
        state.changes.clear();
        (state.exists, state.exists_durably) = (true, true);
        (state.failure, state.power_until, state.lies) = (None, None, false);
        drop(state);
        disk
    }
}

impl State {
    fn kill(&mut self) {
        self.process += 1;
        self.is_locked = false;
        self.kill_until = None;
    }

    /// About half of it, in whole blocks, and at least one.
    fn half(&self, len: usize) -> usize {
        let block = self.block as usize * SECTOR;
        (len / block / 2 * block).max(block.min(len))
    }

    fn change(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.changes.push(Renaming {
            time: self.time,
            change,
            is_given_up: false,
        });
    }
}

impl NameChange {
    fn name(&self) -> &str {
        match self {
            NameChange::Set(name, _) | NameChange::Remove(name) => name,
        }
    }

    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            NameChange::Set(name, inode) => names.insert(name.clone(), *inode),
            NameChange::Remove(name) => names.remove(name),
        };
    }
}

impl Inode {
    /// Those that were ever written.
    fn sectors(&self) -> Vec<u64> {
        let mut sectors: Vec<u64> = self
            .durable
            .keys()
            .chain(self.newer.keys())
            .copied()
            .collect();
        sectors.sort_unstable();
        sectors.dedup();
        sectors.retain(|sector| sector * (SECTOR as u64) < self.len);
        sectors
    }

    fn sector(&self, sector: u64) -> [u8; SECTOR] {
        let newest = self.newer.get(&sector).and_then(|newer| newer.last());
        match newest {
            Some(version) => version.bytes,
            None => self.durable.get(&sector).copied().unwrap_or([0; SECTOR]),
        }
    }

    fn give_up(&mut self, sectors: std::ops::Range<u64>) {
        let newer = self.newer.range_mut(sectors);
        for version in newer.flat_map(|(_, newer)| newer) {
            version.is_given_up = true;
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
