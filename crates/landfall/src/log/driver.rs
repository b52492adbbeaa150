//! Writing groups of blocks, one after the other.
//!
//! Whoever has the driver writes; there is one, so blocks are written in their order and never two groups
//! at a time. It needs no lock while it does so.

use std::io;
use std::sync::Arc;

use super::format::Geometry;
use super::group::Group;
use super::scan::Place;
use crate::environment::{Durability, Environment, Fault, File};

pub(crate) struct Driver<E: Environment> {
    environment: E,
    geometry: Geometry,
    log: u64,
    epoch: u64,
    /// The checksum of the last block's header.
    chain: u32,
    /// Where the last block ends.
    pub written: u64,
    /// Everything before is durable.
    pub durable: u64,
    /// Files that were written and not synced since.
    unsynced: Vec<(u64, Arc<E::File>)>,
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
pub(crate) struct Asked {
    pub writes: u64,
    pub flushes: u64,
    /// Bytes of whole granules.
    pub bytes: u64,
}

impl<E: Environment> Driver<E> {
    pub fn new(
        environment: &E,
        geometry: Geometry,
        log: u64,
        epoch: u64,
        tail: Place,
        spare: Group<E>,
    ) -> Driver<E> {
        Driver {
            environment: environment.clone(),
            geometry,
            log,
            epoch,
            chain: tail.chain.unwrap_or(0),
            written: tail.position,
            durable: tail.position,
            unsynced: Vec::new(),
            spare: Some(spare),
        }
    }

    /// Bytes that are written and not durable.
    pub fn unsynced_bytes(&self) -> u64 {
        self.written - self.durable
    }

    /// Writes a group, and makes it durable with everything before it if `sync` says so.
    pub fn write(&mut self, group: &mut Group<E>, sync: bool) -> Result<Asked, Failed> {
        self.seal(group);
        let sync = sync && !self.environment.is_planted(Fault::SkipFlush);
        let runs = self.runs(group);
        let is_alone = runs.len() == 1
            && (self.unsynced.is_empty() || self.environment.is_planted(Fault::ForgetUnsynced));
        let durability = match sync && is_alone {
            true => Durability::OnReturn,
            false => Durability::Later,
        };
        let mut asked = Asked::default();
        for (from, to) in runs {
            let block = &group.blocks[from];
            let bytes = group.bytes_of(from, to, self.geometry.granule);
            let offset = self.geometry.offset(block.position);
            let written = block.file.write(bytes, offset, durability);
            written.map_err(|error| Failed {
                doing: "writing",
                error,
            })?;
            asked.writes += 1;
            asked.bytes += bytes.len() as u64;
            let sequence = self.geometry.sequence(block.position);
            let is_known = self
                .unsynced
                .last()
                .is_some_and(|(last, _)| *last == sequence);
            if durability == Durability::Later && !is_known {
                self.unsynced.push((sequence, block.file.clone()));
            }
        }
        if let Some(last) = group.blocks.last() {
            self.written = last.position + last.size(self.geometry.granule);
        }
        match durability {
            Durability::OnReturn => asked.flushes += 1,
            Durability::Later if sync => asked.flushes += self.sync()?,
            Durability::Later => {}
        }
        if sync || self.environment.is_planted(Fault::SkipFlush) {
            self.durable = self.written;
        }
        Ok(asked)
    }

    fn sync(&mut self) -> Result<u64, Failed> {
        if self.environment.is_planted(Fault::SyncLastSegmentOnly) {
            let last = self.unsynced.pop();
            self.unsynced = last.into_iter().collect();
        }
        for (_, file) in &self.unsynced {
            let synced = file.sync();
            let synced = match synced {
                Err(_) if self.environment.is_planted(Fault::RetryFlush) => file.sync(),
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
                before.position + before.size(self.geometry.granule) == block.position
                    && self.geometry.sequence(before.position)
                        == self.geometry.sequence(block.position)
            });
            match runs.last_mut().filter(|_| follows) {
                Some((_, last)) => *last = index,
                None => runs.push((index, index)),
            }
        }
        runs
    }
}
