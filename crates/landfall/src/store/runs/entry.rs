//! What is written of a run besides its blocks: what the root knows of it, and its index.
//!
//! A run is one piece of the data file: its blocks, one behind the other, and behind them its index, which says where each
//! block begins, what its checksum is, and a *fingerprint* of the key of each of its entries.

use std::sync::Arc;

use crc32c::crc32c;

use super::super::bytes::{Cursor, put_bytes, put_number};
use super::super::page::Pointer;
use crate::log::format::MOST;

/// A run, as the root knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunEntry {
    /// Its index, with which it ends.
    pub index: Pointer,
    /// Bytes of the data file that it takes, the index too.
    pub bytes: u64,
    /// How often its entries were written in runs: 0, once.
    pub tier: u32,
    /// Entries, and those that are removals.
    pub entries: u64,
    pub removals: u64,
}

impl RunEntry {
    /// Where it begins.
    pub fn start(&self, granule: u64) -> u64 {
        self.index.offset + self.index.extent(granule) - self.bytes
    }

    pub fn put(&self, granule: u64, out: &mut Vec<u8>) {
        self.index.put(granule, out);
        put_number(out, self.bytes / granule);
        put_number(out, self.tier.into());
        put_number(out, self.entries);
        put_number(out, self.removals);
    }

    pub fn take(granule: u64, cursor: &mut Cursor<'_>) -> Option<RunEntry> {
        let index = Pointer::take(granule, cursor)?;
        let bytes = cursor.number()?.checked_mul(granule)?;
        let entry = RunEntry {
            index,
            bytes,
            tier: cursor.number_u32()?,
            entries: cursor.number()?,
            removals: cursor.number()?,
        };
        let own = index.extent(granule);
        let is_right = index.home.is_none()
            && bytes > own
            && bytes <= MOST
            && index.offset + own >= bytes
            && entry.removals <= entry.entries;
        is_right.then_some(entry)
    }
}

/// What a block of a run is, as the index knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockEntry {
    /// Its first key.
    pub low: Arc<[u8]>,
    pub pointer: Pointer,
    /// Of the keys of its entries.
    pub fingerprints: Box<[u16]>,
}

/// What a key is told by from most others.
pub(crate) fn fingerprint(key: &[u8]) -> u16 {
    (crc32c(key) >> 16) as u16
}

/// What an index holds of these blocks, which lie one behind the other. How long that is does not depend on where they are.
pub(crate) fn encode_index(blocks: &[BlockEntry]) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(&mut out, blocks.len() as u64);
    for block in blocks {
        put_bytes(&mut out, &block.low);
        put_number(&mut out, block.pointer.length.into());
        out.extend_from_slice(&block.pointer.crc.to_le_bytes());
        put_number(&mut out, block.fingerprints.len() as u64);
        for print in &block.fingerprints {
            out.extend_from_slice(&print.to_le_bytes());
        }
    }
    out
}

/// `None`: that is no index of this run.
pub(crate) fn decode_index(bytes: &[u8], granule: u64, run: &RunEntry) -> Option<Vec<BlockEntry>> {
    let mut cursor = Cursor::new(bytes);
    let mut blocks: Vec<BlockEntry> = Vec::new();
    let mut offset = run.start(granule);
    for _ in 0..cursor.count()? {
        let low = cursor.bytes()?;
        let pointer = Pointer {
            offset,
            length: cursor.number_u32()?,
            crc: u32::from_le_bytes(cursor.take(4)?.try_into().ok()?),
            home: None,
        };
        let count: usize = cursor.number()?.try_into().ok()?;
        let prints = cursor.take(count.checked_mul(2)?)?.chunks_exact(2);
        let fingerprints = prints.map(|print| u16::from_le_bytes([print[0], print[1]]));
        let is_behind = blocks.last().is_none_or(|before| *before.low < *low);
        if !is_behind || !pointer.makes_sense(granule) {
            return None;
        }
        offset += pointer.extent(granule);
        blocks.push(BlockEntry {
            low: low.into(),
            pointer,
            fingerprints: fingerprints.collect(),
        });
    }
    let entries: usize = blocks.iter().map(|block| block.fingerprints.len()).sum();
    let is_all = offset == run.index.offset && entries as u64 == run.entries;
    (cursor.is_empty() && is_all && !blocks.is_empty()).then_some(blocks)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pointer(offset: u64, length: u32) -> Pointer {
        Pointer {
            offset,
            length,
            crc: length * 7,
            home: None,
        }
    }

    fn blocks() -> Vec<BlockEntry> {
        let block = |low: &str, pointer, prints: &[u16]| BlockEntry {
            low: low.as_bytes().into(),
            pointer,
            fingerprints: prints.into(),
        };
        vec![
            block("a", pointer(1024, 513), &[1, 2, 3]),
            block("m", pointer(2048, 100), &[65535]),
        ]
    }

    fn run() -> RunEntry {
        RunEntry {
            index: pointer(2560, 600),
            bytes: 2560,
            tier: 1,
            entries: 4,
            removals: 1,
        }
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let mut out = Vec::new();
        run().put(512, &mut out);
        assert_eq!(RunEntry::take(512, &mut Cursor::new(&out)), Some(run()));
        assert_eq!(run().start(512), 1024);
        let index = encode_index(&blocks());
        assert_eq!(decode_index(&index, 512, &run()), Some(blocks()));
    }

    #[test]
    fn what_is_of_another_run_is_refused() {
        let refused = |blocks: &[BlockEntry], run: &RunEntry| {
            assert_eq!(decode_index(&encode_index(blocks), 512, run), None);
        };
        let (blocks, run) = (blocks(), run());
        refused(&blocks[1..], &run);
        refused(&[blocks[1].clone(), blocks[0].clone()], &run);
        refused(&[], &run);
        refused(&blocks, &RunEntry { entries: 5, ..run });
        refused(&blocks, &RunEntry { bytes: 3072, ..run });
        let mut long = encode_index(&blocks);
        long.push(0);
        assert_eq!(decode_index(&long, 512, &run), None);
        let wrong = |run: RunEntry| {
            let mut out = Vec::new();
            run.put(512, &mut out);
            assert_eq!(RunEntry::take(512, &mut Cursor::new(&out)), None, "{run:?}");
        };
        wrong(RunEntry { removals: 5, ..run });
        wrong(RunEntry { bytes: 1024, ..run });
        wrong(RunEntry { bytes: 4096, ..run });
    }

    proptest! {
        #[test]
        fn nothing_panics_on_anything(bytes: Vec<u8>) {
            let _ = RunEntry::take(512, &mut Cursor::new(&bytes));
            let _ = decode_index(&bytes, 512, &run());
        }
    }
}
