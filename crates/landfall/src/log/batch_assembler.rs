//! From blocks to records: each is given out once its batch is there whole.
//!
//! Takes one block at a time, and gives out the records that become whole by it; all have to be taken before the next
//! block comes. A record that is in one block, and a batch by itself, stays where it was read; others are copied.

use std::collections::VecDeque;
use std::ops::Range;

use super::batch_tracker::{BatchTracker, frame_at};
use super::format::BlockHeader;

/// Where the bytes of a record are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the payload of the block.
    Payload(Range<usize>),
    /// In [`BatchAssembler::kept`].
    Kept(Range<usize>),
}

#[derive(Debug)]
pub(crate) struct BatchAssembler {
    pub tracker: BatchTracker,
    /// Bytes of records that are in several frames, or in a batch with others.
    kept: Vec<u8>,
    /// Of the batch that has not ended.
    unfinished: Vec<(u64, Range<usize>)>,
    /// Of the one that has.
    ready: VecDeque<(u64, Range<usize>)>,
    /// How far the block was gone through, and its end.
    at: usize,
    end: usize,
}

impl BatchAssembler {
    pub fn new() -> BatchAssembler {
        BatchAssembler {
            tracker: BatchTracker::new(),
            kept: Vec::new(),
            unfinished: Vec::new(),
            ready: VecDeque::new(),
            at: 0,
            end: 0,
        }
    }

    pub fn kept(&self, range: Range<usize>) -> &[u8] {
        &self.kept[range]
    }

    /// Goes on to the next block, whose records have so many bytes; those of the one before were taken.
    pub fn enter(&mut self, header: &BlockHeader, payload: usize) -> Result<(), &'static str> {
        if self.at < self.end || !self.ready.is_empty() {
            return Err("records of the block before were not taken");
        }
        if self.tracker.enter(header)? {
            self.unfinished.clear();
        }
        (self.at, self.end) = (0, payload);
        // What is kept of batches that have ended was given out.
        let from = self.unfinished.first().map(|(_, range)| range.start);
        self.kept.drain(..from.unwrap_or(self.kept.len()));
        for (_, range) in &mut self.unfinished {
            let from = from.unwrap_or(0);
            *range = range.start - from..range.end - from;
        }
        Ok(())
    }

    /// The next record that is whole by what the block has, with its LSN.
    #[inline]
    pub fn next(&mut self, payload: &[u8]) -> Result<Option<(u64, Place)>, &'static str> {
        loop {
            if let Some((lsn, range)) = self.ready.pop_front() {
                return Ok(Some((lsn, Place::Kept(range))));
            }
            if self.at >= self.end {
                return Ok(None);
            }
            let (frame, range) = frame_at(payload, self.at)?;
            self.at = range.end;
            self.tracker.take(frame)?;
            let lsn = self.tracker.next_lsn - 1;
            let is_alone =
                frame.begins_batch && frame.ends_batch && frame.begins_record && frame.ends_record;
            if is_alone {
                return Ok(Some((lsn, Place::Payload(range))));
            }
            if frame.begins_record {
                let end = self.kept.len();
                self.unfinished.push((lsn, end..end));
            }
            // One that began before the reader did is not wanted.
            if let Some((_, record)) = self.unfinished.last_mut() {
                self.kept.extend_from_slice(&payload[range]);
                record.end = self.kept.len();
            }
            if frame.ends_batch {
                self.ready.extend(self.unfinished.drain(..));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::Frame;
    use super::*;

    const FLAGS: [&str; 4] = ["begins_record", "ends_record", "begins_batch", "ends_batch"];

    fn payload(frames: &[([bool; 4], &[u8])]) -> Vec<u8> {
        assert_eq!(FLAGS.len(), 4);
        let encode = |(flags, bytes): &([bool; 4], &[u8])| {
            let frame = Frame {
                begins_record: flags[0],
                ends_record: flags[1],
                begins_batch: flags[2],
                ends_batch: flags[3],
                length: bytes.len() as u32,
            };
            [&frame.encode()[..], bytes].concat()
        };
        frames.iter().flat_map(encode).collect()
    }

    fn header(lsn: u64, batch_back: u32, epoch: u64) -> BlockHeader {
        BlockHeader {
            payload_crc: 0,
            previous: 0,
            length: 0,
            log: 0,
            epoch,
            position: 0,
            lsn,
            durable: 0,
            batch_back,
        }
    }

    /// The records that are ready after each block.
    fn records(blocks: &[(BlockHeader, Vec<u8>)]) -> Vec<Vec<(u64, Vec<u8>)>> {
        let mut assembler = BatchAssembler::new();
        let mut found = Vec::new();
        for (header, payload) in blocks {
            assembler.enter(header, payload.len()).unwrap();
            let mut ready = Vec::new();
            while let Some((lsn, place)) = assembler.next(payload).unwrap() {
                let bytes = match place {
                    Place::Payload(range) => &payload[range],
                    Place::Kept(range) => assembler.kept(range),
                };
                ready.push((lsn, bytes.to_vec()));
            }
            found.push(ready);
        }
        found
    }

    const ALL: [bool; 4] = [true; 4];

    #[test]
    fn a_batch_is_ready_with_its_last_frame() {
        let blocks = [
            (
                header(1, 0, 1),
                payload(&[
                    (ALL, b"a"),
                    ([true, true, true, false], b"b"),
                    ([true, false, false, false], b"c"),
                ]),
            ),
            (
                header(4, 2, 1),
                payload(&[
                    ([false, true, false, true], b"d"),
                    (ALL, b"e"),
                    ([true, false, true, false], b"f"),
                ]),
            ),
            (
                header(6, 1, 1),
                payload(&[([false, true, false, true], b"g")]),
            ),
        ];
        let expected = [
            vec![(1, b"a".to_vec())],
            vec![(2, b"b".to_vec()), (3, b"cd".to_vec()), (4, b"e".to_vec())],
            vec![(5, b"fg".to_vec())],
        ];
        assert_eq!(records(&blocks), expected);
    }

    #[test]
    fn a_block_is_taken_whole_before_the_next_one_is_entered() {
        let first = payload(&[
            ([true, true, true, false], b"a"),
            ([true, true, false, true], b"b"),
        ]);
        let mut assembler = BatchAssembler::new();
        assembler.enter(&header(1, 0, 1), first.len()).unwrap();
        let enter = |assembler: &mut BatchAssembler| assembler.enter(&header(3, 0, 1), 0);
        let too_early = Err("records of the block before were not taken");
        assert_eq!(enter(&mut assembler), too_early, "nothing was taken");
        assert!(assembler.next(&first).unwrap().is_some());
        assert_eq!(enter(&mut assembler), too_early, "there is another record");
        assert!(assembler.next(&first).unwrap().is_some());
        assert!(enter(&mut assembler).is_ok());
    }

    #[test]
    fn a_batch_that_was_given_up_is_never_ready() {
        let blocks = [
            (
                header(1, 0, 1),
                payload(&[([true, true, true, false], b"lost")]),
            ),
            (header(1, 0, 2), payload(&[(ALL, b"kept")])),
        ];
        assert_eq!(records(&blocks), [vec![], vec![(1, b"kept".to_vec())]]);
    }

    #[test]
    fn what_began_before_the_reader_did_is_passed_over() {
        let blocks = [(
            header(8, 3, 1),
            payload(&[
                ([false, true, false, false], b"rest"),
                ([true, true, false, true], b"whole"),
                (ALL, b"next"),
            ]),
        )];
        let expected = [vec![(8, b"whole".to_vec()), (9, b"next".to_vec())]];
        assert_eq!(records(&blocks), expected);
    }
}
