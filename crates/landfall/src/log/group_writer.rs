//! Writing groups of blocks, one after the other.
//!
//! Whoever has the writer writes; there is one, so blocks are written in their order and never two groups
//! at a time. It needs no lock while it does so.
//!
//! What is written and what recovery relies on is compared here before it reaches the disk: each block follows the one
//! before, within its segment, and none is further behind what is durable than recovery looks.

use std::io;
use std::sync::Arc;

use super::format::{Geometry, MOST_BLOCK};
use super::group::{Group, MOST_SEGMENTS};
use super::scan::Place;
use super::shared::Durable;
use crate::environment::{Durability, Environment, File, FileOf, planted};

pub(crate) struct GroupWriter<E: Environment> {
    #[cfg(any(test, feature = "mistakes"))]
    environment: E,
    geometry: Geometry,
    log: u64,
    epoch: u64,
    window: u64,
    /// The checksum of the last block's header.
    chain: u32,
    /// Where the last block ends.
    pub written: u64,
    /// Everything before is durable.
    pub durable: u64,
    /// Files that were written and not synced since.
    unsynced: Vec<(u64, Arc<FileOf<E>>)>,
    /// The other group.
    pub spare: Option<Group<E>>,
}

/// What failed.
pub(crate) struct Failed {
    pub doing: &'static str,
    pub error: io::Error,
}

/// What was asked of the device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IoCounts {
    pub writes: u64,
    pub flushes: u64,
    /// Bytes of whole granules.
    pub bytes: u64,
}

/// Where a log's writer begins.
pub(crate) struct WriteFrom {
    pub geometry: Geometry,
    pub log: u64,
    pub epoch: u64,
    /// Bytes that may be written behind what is durable.
    pub window: u64,
    pub tail: Place,
}

impl<E: Environment> GroupWriter<E> {
    pub fn new(environment: &E, from: WriteFrom, spare: Group<E>) -> GroupWriter<E> {
        #[cfg(not(any(test, feature = "mistakes")))]
        let _ = environment;
        GroupWriter {
            #[cfg(any(test, feature = "mistakes"))]
            environment: environment.clone(),
            geometry: from.geometry,
            log: from.log,
            epoch: from.epoch,
            window: from.window,
            chain: from.tail.chain.unwrap_or(0),
            written: from.tail.position,
            durable: from.tail.position,
            unsynced: Vec::new(),
            spare: Some(spare),
        }
    }

    /// What is durable, when all records before this LSN are in it.
    pub fn durable_with(&self, lsn: u64) -> Durable {
        Durable {
            lsn,
            position: self.durable,
            chain: self.chain,
        }
    }

    /// Bytes that are written and not durable.
    pub fn unsynced_bytes(&self) -> u64 {
        self.written - self.durable
    }

    /// Writes a group, and makes it durable with everything before it if `sync` says so.
    pub fn write(&mut self, group: &mut Group<E>, sync: bool) -> Result<IoCounts, Failed> {
        self.check(group)?;
        self.seal(group);
        let sync = sync && !planted!(self.environment, SkipFlush);
        let runs = self.runs(group);
        let is_alone = runs.len() == 1
            && (self.unsynced.is_empty() || planted!(self.environment, ForgetUnsynced));
        let durability = if sync && is_alone {
            Durability::OnReturn
        } else {
            Durability::Later
        };
        let mut counts = IoCounts::default();
        for (from, to) in runs {
            let block = &group.blocks[from];
            let sequence = self.geometry.sequence(block.position);
            let is_known = self
                .unsynced
                .last()
                .is_some_and(|(last, _)| *last == sequence);
            if durability == Durability::Later && !is_known {
                if self.unsynced.len() >= MOST_SEGMENTS as usize {
                    // Each is an open file.
                    counts.flushes += self.sync()?;
                }
                self.unsynced.push((sequence, block.file.clone()));
            }
            let bytes = group.bytes_of(from, to, self.geometry.granule);
            let offset = self.geometry.offset(block.position);
            let written = block.file.write(bytes, offset, durability);
            written.map_err(|error| Failed {
                doing: "writing",
                error,
            })?;
            counts.writes += 1;
            counts.bytes += bytes.len() as u64;
        }
        if let Some(last) = group.blocks.last() {
            self.written = last.position + last.size(self.geometry.granule);
        }
        match durability {
            Durability::OnReturn => counts.flushes += 1,
            Durability::Later if sync => counts.flushes += self.sync()?,
            Durability::Later => {}
        }
        if sync || planted!(self.environment, SkipFlush) {
            self.durable = self.written;
        }
        Ok(counts)
    }

    /// Whether recovery will find what is written, and look for it.
    fn check(&self, group: &Group<E>) -> Result<(), Failed> {
        let broken = |what: &str| {
            Err(Failed {
                doing: "checking what is to be written",
                error: io::Error::other(what),
            })
        };
        let mut end = self.written;
        for block in &group.blocks {
            let size = block.size(self.geometry.granule);
            let follows = block.position == end || block.position == self.geometry.behind(end);
            if !follows || size > self.geometry.room(block.position).min(MOST_BLOCK) {
                return broken("a block does not follow the one before");
            }
            end = block.position + size;
        }
        if end - self.durable > self.window {
            return broken("more is written at once than recovery looks for");
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<u64, Failed> {
        if planted!(self.environment, SyncLastSegmentOnly) {
            let last = self.unsynced.pop();
            self.unsynced = last.into_iter().collect();
        }
        for (_, file) in &self.unsynced {
            let synced = match file.sync() {
                Err(_) if planted!(self.environment, RetryFlush) => file.sync(),
                synced => synced,
            };
            synced.map_err(|error| Failed {
                doing: "a flush",
                error,
            })?;
        }
        Ok(self.unsynced.drain(..).count() as u64)
    }

    fn seal(&mut self, group: &mut Group<E>) {
        for index in 0..group.blocks.len() {
            let (chain, log, epoch, durable) = (self.chain, self.log, self.epoch, self.durable);
            self.chain = group.seal(index, self.geometry.granule, |header| {
                header.previous = chain;
                header.log = log;
                header.epoch = epoch;
                header.durable = durable;
            });
        }
    }

    /// Blocks that can be written by one call: the first and the last of each such row.
    fn runs(&self, group: &Group<E>) -> Vec<(usize, usize)> {
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for (index, block) in group.blocks.iter().enumerate() {
            let follows = runs.last().is_some_and(|&(_, last)| {
                let before = &group.blocks[last];
                // Between segments there is always a header.
                before.position + before.size(self.geometry.granule) == block.position
            });
            match runs.last_mut() {
                Some((_, last)) if follows => *last = index,
                _ => runs.push((index, index)),
            }
        }
        runs
    }
}
