//! Commits of the log that are in no checkpoint are applied again, while the log is examined.

use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::backlog::Backlog;
use super::changes::Version;
use super::control::Control;
use super::data_file::DataFile;
use super::rebuild;
use super::record::{RangeRef, Record, WriteRef};
use super::removed::KeyRange;
use super::repair::Repairs;
use super::restart::Loaded;
use super::root::MOST_KEYSPACES;
use super::tree::{Keyspace, parts_of};
use crate::environment::Environment;
use crate::log::batch_assembler::{BatchAssembler, Place};
use crate::log::examine::Visited;
use crate::{Error, Lsn};

/// Bytes of writes that are sorted together.
const SORTED: usize = if cfg!(test) { 1 << 10 } else { 16 << 20 };
/// Bytes from which on a thread of its own sorts them.
const LARGE: usize = 1 << 20;

/// A backlog that is full, and sorted, or about to be by a thread of its own.
struct Full {
    backlog: Arc<Mutex<Backlog>>,
    sorting: Option<JoinHandle<()>>,
}

impl Full {
    fn new(backlog: Backlog) -> Full {
        let is_large = backlog.memory() >= LARGE;
        let backlog = Arc::new(Mutex::new(backlog));
        let sort = |backlog: &Mutex<Backlog>| {
            backlog
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .sort()
        };
        let theirs = backlog.clone();
        let sorting = is_large.then(|| thread::Builder::new().spawn(move || sort(&theirs)));
        let sorting = sorting.and_then(Result::ok);
        if sorting.is_none() {
            sort(&backlog);
        }
        Full { backlog, sorting }
    }

    /// Waits until it is.
    fn wait(&mut self) {
        let sorted = self.sorting.take().map_or(Ok(()), JoinHandle::join);
        sorted.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }

    /// The one that comes when this one is sorted, with so many bytes of memory at most.
    fn next(&mut self, most: usize) -> Backlog {
        self.wait();
        let mut sorted = self.backlog.lock().unwrap_or_else(PoisonError::into_inner);
        Backlog::behind(&mut sorted, most)
    }

    fn sorted(mut self) -> Backlog {
        self.wait();
        mem::take(&mut self.backlog.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What is done wrong on purpose.
#[derive(Clone, Copy)]
pub(super) struct Mistakes {
    /// The newest backlog is applied first.
    pub is_backwards: bool,
    /// Ranges are not removed.
    pub forgets_ranges: bool,
}

/// Removes a range of the groups that do not know of it from their pages. It hides what is older, so that it need not wait for what was
/// written before. How many bytes more they take.
fn remove_range<E: Environment>(keyspace: &Keyspace<E>, range: &RangeRef<'_>, lsn: u64) -> isize {
    let range = KeyRange {
        low: range.low.to_vec(),
        high: range.high.map(<[u8]>::to_vec),
    };
    let groups = E::share(&keyspace.groups);
    let mut more = 0;
    for (index, part) in parts_of(&groups, &range) {
        let mut group = E::exclude(&groups[index].group);
        if lsn >= group.watermark {
            let before = group.active.bytes;
            group.active.remove_range(&part, lsn, &[]);
            // It may make one of several.
            more += group.active.bytes as isize - before as isize;
        }
    }
    more
}

/// Applies the records of the log that are in no checkpoint, as it is examined.
pub(super) struct Replay<'a, E: Environment> {
    assembler: BatchAssembler,
    loaded: &'a mut Loaded<E>,
    /// Writes that are not applied yet: those that come, and before them those that are full.
    backlog: Backlog,
    full: Vec<Full>,
    /// Bytes that those take.
    waiting: usize,
    /// Bytes that they take at most, about.
    most: usize,
    mistakes: Mistakes,
    /// Where leaves are of which the log has images, and what came of looking at them.
    data: Option<(&'a DataFile<E>, &'a Control)>,
    repairs: &'a mut Repairs,
}

impl<'a, E: Environment> Replay<'a, E> {
    /// `memory`: bytes that writes may take which are not applied yet.
    pub fn new(
        loaded: &'a mut Loaded<E>,
        memory: usize,
        mistakes: Mistakes,
        data: Option<(&'a DataFile<E>, &'a Control)>,
        repairs: &'a mut Repairs,
    ) -> Replay<'a, E> {
        Replay {
            data,
            repairs,
            mistakes,
            assembler: BatchAssembler::new(),
            loaded,
            backlog: Backlog::default(),
            full: Vec::new(),
            waiting: 0,
            most: memory,
        }
    }

    pub fn take(&mut self, visited: &Visited<'_>) -> Result<(), Error> {
        let entered = self.assembler.enter(visited.header, visited.payload.len());
        entered.map_err(Error::broken)?;
        while let Some((lsn, place)) = self
            .assembler
            .next(visited.payload)
            .map_err(Error::broken)?
        {
            if lsn < self.loaded.first {
                continue;
            }
            let bytes = match place {
                Place::Payload(range) => &visited.payload[range],
                Place::Kept(range) => self.assembler.kept(range),
            };
            let wrong = |what: &str| Error::Command {
                lsn: Lsn(lsn),
                what: what.to_owned(),
            };
            let record = Record::decode(bytes);
            let record = record.ok_or_else(|| wrong("it is no record of a store"))?;
            let keyspaces = &mut self.loaded.keyspaces;
            match record {
                Record::Writes { ranges, writes } => {
                    self.loaded.commits += 1;
                    for range in &ranges {
                        if range.keyspace >= keyspaces.next {
                            return Err(wrong("its keyspace was never made"));
                        }
                        if let Some(keyspace) = keyspaces.all.get(&range.keyspace)
                            && !self.mistakes.forgets_ranges
                        {
                            let more = remove_range(keyspace, range, lsn);
                            self.loaded.changes = self.loaded.changes.wrapping_add_signed(more);
                        }
                    }
                    for WriteRef {
                        keyspace,
                        key,
                        value,
                    } in writes
                    {
                        if keyspace >= keyspaces.next {
                            return Err(wrong("its keyspace was never made"));
                        }
                        self.backlog.push(keyspace, key, Version { lsn, value });
                    }
                }
                Record::Make {
                    keyspace,
                    name,
                    options,
                } => {
                    // They have their numbers one after the other.
                    if keyspace > keyspaces.next || keyspace >= MOST_KEYSPACES {
                        return Err(wrong("its keyspace has a number that none has"));
                    }
                    // Or it is in the root, which is newer.
                    if keyspace == keyspaces.next {
                        let made = Keyspace::empty(keyspace, name.to_owned(), options);
                        keyspaces.all.insert(keyspace, made);
                        keyspaces.next = keyspace + 1;
                    }
                }
                Record::Protect(choice) => keyspaces.protection = choice,
                Record::Buffer(percent) => keyspaces.buffer_percent = percent,
                Record::Images(images) => {
                    if let Some((data, control)) = self.data {
                        for image in &images {
                            self.repairs
                                .look_at_image(data, control, image, keyspaces)?;
                        }
                    }
                }
                Record::Remove { keyspace } => {
                    if let Some(removed) = keyspaces.all.remove(&keyspace) {
                        // No root is without it yet.
                        keyspaces.changed = lsn;
                        let groups = E::share(&removed.groups);
                        let bytes = groups
                            .iter()
                            .map(|place| E::share(&place.group).active.bytes);
                        self.loaded.changes -= bytes.sum::<usize>();
                    }
                }
            }
            // Where there is little memory, less of it.
            if self.backlog.memory() > SORTED.min(self.most.max(LARGE)) {
                self.fill();
            }
        }
        Ok(())
    }

    /// What came is full.
    fn fill(&mut self) {
        // One is sorted at a time, while the next one comes.
        let most = 2 * SORTED.max(LARGE);
        let next = self.full.last_mut().map(|last| last.next(most));
        let backlog = mem::replace(&mut self.backlog, next.unwrap_or_default());
        self.waiting += backlog.memory();
        self.full.push(Full::new(backlog));
        if self.waiting > self.most {
            self.apply();
        }
    }

    /// Applies what waits. What is of a keyspace that was removed is forgotten.
    pub fn apply(&mut self) {
        let last = mem::take(&mut self.backlog);
        let full = mem::take(&mut self.full).into_iter().map(Full::sorted);
        let mut backlogs: Vec<Backlog> = full.collect();
        backlogs.push(Full::new(last).sorted());
        if self.mistakes.is_backwards {
            backlogs.reverse();
        }
        self.waiting = 0;
        for keyspace in self.loaded.keyspaces.all.values() {
            let more = rebuild::apply(keyspace, &backlogs);
            self.loaded.changes = self.loaded.changes.wrapping_add_signed(more);
        }
    }
}
