//! The blocks of a damaged log that are whole, and their records.

use std::collections::BTreeMap;

use super::clues;
use super::window::Window;
use crate::Error;
use crate::environment::{Buffer, Environment, File, Storage};
use crate::log::batch_assembler::{BatchAssembler, Place};
use crate::log::format::{
    BlockHeader, CONTROL_NAME, Control, Geometry, HEADER, MOST, MOST_BLOCK, payload_crc,
    segment_number,
};

/// A block that is whole.
struct Found {
    file: String,
    offset: u64,
    header: BlockHeader,
    chain: u32,
}

/// Sees a record and its number.
pub(crate) type Visit<'a> = dyn FnMut(u64, &[u8]) -> Result<(), Error> + 'a;

/// A damaged log, and everything in it that is whole.
pub(crate) struct Source<'a, E: Environment> {
    environment: &'a E,
    pub geometry: Geometry,
    pub log: u64,
    pub control: Option<Control>,
    /// The blocks of a log that is not damaged, by position, with their epochs: no other ever counted.
    whole: Option<BTreeMap<u64, u64>>,
    /// By position, and at the same position by epoch.
    blocks: BTreeMap<(u64, u64), Found>,
}

impl<'a, E: Environment> Source<'a, E> {
    /// Finds the blocks of a log.
    pub fn open(environment: &'a E) -> Result<Source<'a, E>, Error> {
        let storage = environment.storage();
        let names = storage
            .names()
            .map_err(Error::io("read the directory of the damaged log"))?;
        let control = clues::control(environment)?;
        let mut names: Vec<String> = names
            .into_iter()
            .filter(|name| segment_number(name).is_some())
            .collect();
        names.sort_unstable();
        if control.is_none() {
            // A segment may have its name.
            names.push(CONTROL_NAME.to_owned());
        }
        // One that was put there from another log says nothing of this one.
        let control = control.filter(|control| {
            let ids: Vec<u64> = names
                .iter()
                .filter_map(|name| clues::log_of(environment, name))
                .collect();
            ids.is_empty() || ids.contains(&control.log)
        });
        let (log, geometry) = match control {
            Some(control) => (control.log, control.geometry()),
            None => clues::guess(environment, &names)?,
        };
        let mut source = Source {
            environment,
            geometry,
            log,
            control,
            whole: clues::whole(environment),
            blocks: BTreeMap::new(),
        };
        for name in names {
            if let Err(error) = source.index(&name) {
                tracing::warn!(%error, name, "a file cannot be read");
            }
        }
        Ok(source)
    }

    /// Takes note of every block in a file that is whole.
    fn index(&mut self, name: &str) -> std::io::Result<()> {
        let granule = self.geometry.granule;
        let file = self.environment.storage().open(name)?;
        let size = file.size()? / granule * granule;
        let mut window = Window::new(size);
        let mut at = granule;
        while at < size {
            let mut next = at + granule;
            // What cannot be read is passed over.
            let head = window.bytes(&file, at, HEADER as u64, granule);
            let decoded = head.ok().flatten().and_then(BlockHeader::decode);
            if let Some((header, chain)) = decoded
                && self.is_plausible(&header, at)
            {
                let len = header.size(granule);
                let block = window.bytes(&file, at, len, granule).ok().flatten();
                let end = HEADER + header.length as usize;
                if block.is_some_and(|block| payload_crc(&block[HEADER..end]) == header.payload_crc)
                {
                    let found = Found {
                        file: name.to_owned(),
                        offset: at,
                        header,
                        chain,
                    };
                    self.blocks.insert((header.position, header.epoch), found);
                    next = at + len;
                }
            }
            at = next;
        }
        Ok(())
    }

    fn is_plausible(&self, header: &BlockHeader, offset: u64) -> bool {
        let room = self.geometry.room(header.position);
        let first = self.control.map_or(0, |control| control.first_segment);
        header.log == self.log
            && header.position < MOST
            && header.lsn.max(header.epoch) < MOST
            && u64::from(header.batch_back) < header.lsn
            && self.geometry.offset(header.position) == offset
            && self.geometry.sequence(header.position) >= first
            && self.is_of_its_time(header)
            && header.size(self.geometry.granule) <= room.min(MOST_BLOCK)
    }

    /// Whether a block at its place counts, by its epoch.
    fn is_of_its_time(&self, header: &BlockHeader) -> bool {
        let is_whole =
            |whole: &BTreeMap<u64, u64>| whole.get(&header.position) == Some(&header.epoch);
        // What is behind the end that the last opening found was written since then, or cut off by it.
        let is_since =
            |control: Control| header.position < control.end || header.epoch >= control.epoch;
        self.whole.as_ref().is_none_or(is_whole) && self.control.is_none_or(is_since)
    }

    /// The blocks to be read, in their order: of those that cannot all have been part of the log the ones that follow
    /// each other, or were written last.
    fn in_order(&self) -> Vec<&Found> {
        let mut order: Vec<&Found> = Vec::new();
        let (mut end, mut epoch) = (0, 0);
        let mut positions = self.blocks.values().peekable();
        while let Some(first) = positions.next() {
            let mut candidates = vec![first];
            while let Some(other) =
                positions.next_if(|other| other.header.position == first.header.position)
            {
                candidates.push(other);
            }
            let chain = order.last().map(|last| last.chain);
            // Who wrote there later had found the log to end before it.
            let best = candidates
                .iter()
                .rev()
                .find(|found| Some(found.header.previous) == chain)
                .or(candidates.last());
            if let Some(best) = best
                && best.header.position >= end
                && best.header.epoch >= epoch
            {
                end = best.header.position + best.header.size(self.geometry.granule);
                epoch = best.header.epoch;
                order.push(best);
            }
        }
        without_replaced(order)
    }

    /// Shows every record that can be read, in the order of the log. Some may have a number that one before had.
    pub fn records(&self, visit: &mut Visit<'_>) -> Result<(), Error> {
        let order = self.in_order();
        if order.is_empty() && self.control.is_none() {
            return Err(Error::NoLog);
        }
        let mut assembler = BatchAssembler::new();
        let mut chain = None;
        // Where the log begins: of a batch that goes on there the beginning was truncated away, and is not missing.
        let first = self.control.map(|control| control.first_segment);
        let first = first.or_else(|| self.first_of_last_run(&order));
        let beginning = self.geometry.first_block(first.unwrap_or(1));
        // The first record of a batch of which the beginning is missing.
        let mut begun_before = None;
        for found in order {
            if chain.is_some_and(|chain| chain != found.header.previous) {
                assembler = BatchAssembler::new();
            }
            let Some(payload) = self.payload(found) else {
                assembler = BatchAssembler::new();
                chain = None;
                continue;
            };
            let mut is_first = assembler.tracker.is_new();
            if assembler.enter(&found.header, payload.len()).is_err() {
                // It does not go on from the one before, whatever its checksum says.
                (assembler, is_first) = (BatchAssembler::new(), true);
                if assembler.enter(&found.header, payload.len()).is_err() {
                    continue;
                }
            }
            chain = Some(found.chain);
            let back = u64::from(found.header.batch_back);
            if is_first || back == 0 {
                let is_missing = back > 0 && found.header.position != beginning;
                begun_before = is_missing.then(|| found.header.lsn - back);
            }
            // What makes no sense ends the block, and the next one begins anew.
            loop {
                let Ok(next) = assembler.next(&payload) else {
                    assembler = BatchAssembler::new();
                    break;
                };
                let Some((lsn, place)) = next else { break };
                if begun_before == Some(assembler.tracker.batch_first()) {
                    continue;
                }
                let bytes = match place {
                    Place::Payload(range) => &payload[range],
                    Place::Kept(range) => assembler.kept(range),
                };
                visit(lsn, bytes)?;
            }
        }
        Ok(())
    }

    /// The first of the segments up to the last without a gap: those before a gap were given up.
    fn first_of_last_run(&self, order: &[&Found]) -> Option<u64> {
        let sequences = order.iter().rev();
        let mut sequences = sequences.map(|found| self.geometry.sequence(found.header.position));
        let mut first = sequences.next()?;
        for sequence in sequences {
            if first - sequence > 1 {
                break;
            }
            first = sequence;
        }
        Some(first)
    }

    /// The records of a block, as they were when it was found; `None`: they cannot be read again.
    fn payload(&self, found: &Found) -> Option<Vec<u8>> {
        let size = found.header.size(self.geometry.granule) as usize;
        let mut buffer = Buffer::new(size);
        // What is wrong once may be right the next time.
        for _ in 0..2 {
            let file = self.environment.storage().open(&found.file);
            let read = file.and_then(|file| file.read(buffer.bytes_mut(0..size), found.offset));
            if let Err(error) = read {
                tracing::warn!(%error, name = found.file, "a block cannot be read again");
                continue;
            }
            let payload = buffer.bytes(HEADER..HEADER + found.header.length as usize);
            let is_same =
                BlockHeader::decode(buffer.bytes(0..size)) == Some((found.header, found.chain));
            if is_same && payload_crc(payload) == found.header.payload_crc {
                return Some(payload.to_vec());
            }
        }
        None
    }
}

/// Without the blocks of an earlier epoch that have numbers which a later one gave again: that one had found the log to end
/// before them.
fn without_replaced(order: Vec<&Found>) -> Vec<&Found> {
    let start = |found: &Found| found.header.lsn - u64::from(found.header.batch_back);
    let (mut least, mut of_epoch, mut epoch) = (u64::MAX, u64::MAX, u64::MAX);
    let mut kept = Vec::new();
    for found in order.into_iter().rev() {
        if found.header.epoch != epoch {
            least = least.min(of_epoch);
            (of_epoch, epoch) = (u64::MAX, found.header.epoch);
        }
        of_epoch = of_epoch.min(start(found));
        if start(found) < least {
            kept.push(found);
        }
    }
    kept.reverse();
    kept
}
