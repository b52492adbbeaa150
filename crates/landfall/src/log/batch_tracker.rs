//! Which record and which batch each block and frame belongs to, and whether they follow each other.
//!
//! A record that was appended by itself is a batch of one: a batch is there whole or not at all. A record is one
//! frame, or several where it did not fit into a block. A batch that a power cut left unfinished stays in the log;
//! the next block is of a later epoch, begins a batch of its own, and takes the same LSNs again.

use std::ops::Range;

use super::format::{BlockHeader, FRAME, Frame};

/// Where a reader is among records and batches.
#[derive(Clone, Debug, Default)]
pub(crate) struct BatchTracker {
    /// Of the record that begins next.
    pub next_lsn: u64,
    /// Of the batch's first record, where one has begun.
    batch_first: u64,
    in_batch: bool,
    in_record: bool,
    epoch: u64,
    /// Before the first block.
    is_new: bool,
    /// Before the first frame: whether it is in a record shows only then.
    is_loose: bool,
}

impl BatchTracker {
    pub fn new() -> BatchTracker {
        BatchTracker {
            is_new: true,
            ..BatchTracker::default()
        }
    }

    /// LSN of the first record that is not there whole, with its batch.
    pub fn end(&self) -> u64 {
        if self.in_batch {
            self.batch_first
        } else {
            self.next_lsn
        }
    }

    /// LSN of the first record of the batch that is being read, or was read last.
    pub fn batch_first(&self) -> u64 {
        self.batch_first
    }

    /// Whether there was no block yet.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// For a mistake that tests must find.
    #[cfg(any(test, feature = "mistakes"))]
    pub fn in_batch(&self) -> bool {
        self.in_batch
    }

    /// Takes note of a block. `true`: the batch before was never finished, and nothing of it counts.
    pub fn enter(&mut self, header: &BlockHeader) -> Result<bool, &'static str> {
        let back = u64::from(header.batch_back);
        if back >= header.lsn {
            return Err("a batch begins before the first record");
        }
        if self.is_new {
            *self = BatchTracker {
                next_lsn: header.lsn,
                batch_first: header.lsn - back,
                in_batch: back > 0,
                in_record: false,
                epoch: header.epoch,
                is_new: false,
                is_loose: true,
            };
            return Ok(false);
        }
        let is_dropped = self.in_batch && back == 0;
        if is_dropped {
            if header.epoch == self.epoch {
                return Err("a batch does not end");
            }
            self.next_lsn = self.batch_first;
            (self.in_batch, self.in_record) = (false, false);
        }
        self.epoch = header.epoch;
        if header.lsn != self.next_lsn {
            return Err("a block's first record is not the next one");
        }
        let expected = self.next_lsn - self.end();
        if back != expected {
            return Err("a block does not continue the batch before it");
        }
        Ok(is_dropped)
    }

    /// Takes note of a frame.
    pub fn take(&mut self, frame: Frame) -> Result<(), &'static str> {
        if std::mem::replace(&mut self.is_loose, false) {
            self.in_record = self.in_batch && !frame.begins_record;
        }
        if frame.begins_batch {
            if self.in_batch || !frame.begins_record {
                return Err("a batch begins within another, or within a record");
            }
            self.batch_first = self.next_lsn;
            self.in_batch = true;
        }
        if !self.in_batch || frame.begins_record == self.in_record {
            return Err("a record begins within another, or goes on without having begun");
        }
        if frame.begins_record {
            self.next_lsn += 1;
        }
        self.in_record = !frame.ends_record;
        if frame.ends_batch {
            if self.in_record {
                return Err("a batch ends within a record");
            }
            self.in_batch = false;
        }
        Ok(())
    }
}

/// The frame at `at` in a block's records, and where its bytes are.
pub(crate) fn frame_at(payload: &[u8], at: usize) -> Result<(Frame, Range<usize>), &'static str> {
    let start = at + FRAME;
    let Some(word) = payload.get(at..start) else {
        return Err("a frame is cut off");
    };
    let frame = Frame::decode(word);
    let end = start + frame.length as usize;
    if end > payload.len() {
        return Err("a record is cut off");
    }
    Ok((frame, start..end))
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn frame(flags: &str) -> Frame {
        Frame {
            begins_batch: flags.contains('U'),
            begins_record: flags.contains('R'),
            ends_record: flags.contains('r'),
            ends_batch: flags.contains('u'),
            length: 0,
        }
    }

    /// Blocks as `lsn back epoch: frames`; what is complete at the end.
    fn run(blocks: &[(u64, u32, u64, &[&str])]) -> Result<u64, &'static str> {
        let mut tracker = BatchTracker::new();
        for (lsn, back, epoch, frames) in blocks {
            tracker.enter(&header(*lsn, *back, *epoch))?;
            for flags in *frames {
                tracker.take(frame(flags))?;
            }
        }
        Ok(tracker.end())
    }

    #[test]
    fn records_are_counted_when_their_batch_is_whole() {
        assert_eq!(run(&[(1, 0, 1, &["URru", "URru"])]), Ok(3));
        assert_eq!(run(&[(5, 0, 1, &["URr", "Rr", "Rru"])]), Ok(8));
        assert_eq!(run(&[(5, 0, 1, &["URr", "Rr"])]), Ok(5));
        // In pieces.
        assert_eq!(
            run(&[(5, 0, 1, &["UR"]), (6, 1, 1, &[""]), (6, 1, 1, &["ru"])]),
            Ok(6)
        );
        // One that is read from its middle.
        assert_eq!(run(&[(6, 1, 1, &["r", "Rru"])]), Ok(7));
        assert_eq!(run(&[(6, 1, 1, &["Rru"])]), Ok(7));
    }

    #[test]
    fn what_was_never_finished_is_forgotten_by_the_next_epoch_only() {
        let begun: &[&str] = &["URru", "URr"];
        assert_eq!(run(&[(1, 0, 1, begun), (2, 0, 2, &["URru"])]), Ok(3));
        assert!(run(&[(1, 0, 1, begun), (2, 0, 1, &["URru"])]).is_err());
        assert!(run(&[(1, 0, 1, begun), (3, 0, 2, &["URru"])]).is_err());
    }

    #[test]
    fn nonsense_is_refused() {
        for frames in [
            &["Rr"][..],
            &["ru"],
            &["UR", "UR"],
            &["URr", "r"],
            &["URr", "URru"],
            &["UR", "Rr"],
            &["URu"],
        ] {
            assert!(run(&[(1, 0, 1, frames)]).is_err(), "{frames:?}");
        }
        assert!(run(&[(1, 1, 1, &[])]).is_err());
        assert!(run(&[(1, 0, 1, &["URru"]), (3, 0, 1, &[])]).is_err());
    }

    #[test]
    fn frames_are_within_their_block() {
        let mut payload = frame("URru").encode().to_vec();
        payload[0] = 3;
        payload.extend(*b"abc");
        assert_eq!(frame_at(&payload, 0).unwrap().1, 4..7);
        assert!(frame_at(&payload[..6], 0).is_err());
        assert!(frame_at(&payload[..3], 0).is_err());
        assert!(frame_at(&payload, 5).is_err());
    }
}
