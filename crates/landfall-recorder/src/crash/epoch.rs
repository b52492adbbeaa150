//! The stretches of a recording between two moments at which something became durable.

use std::io;
use std::ops::Range;

use super::Piece;
use crate::event::{SECTOR, Span};
use crate::{EventKind, Recording};

/// The events between two flushes that the device honoured: all that was written in them may be lost
/// while they last, and none of it afterwards, but for what the flush did not count in.
///
/// A flush is done when it is answered. It counts in no write that was in flight when it arrived, or that came since. Those are *carried* into the next
/// epoch: in it they are lost or not like what is written there. A sector of theirs that was written
/// over by a write that did count is what that one made it, and stays so.
///
/// A write that is durable by itself ends an epoch too, when it is answered: all other writes are carried.
///
/// A flush that the device lied about ends no epoch, and neither does one that it refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// Its number, which is how many flushes, and writes that are durable by themselves, were done before it.
    pub cut: u32,
    /// The places of its events; the flush that ends it comes after them.
    pub events: Range<usize>,
    /// The places of its writes, in order; those that are carried come before `events`.
    pub writes: Vec<usize>,
    /// Of each carried write the sectors that count no more, by their place in it, in order.
    overwritten: Vec<Vec<Range<u32>>>,
    /// The place of the last write that is durable when it begins, if any is.
    last_durable: Option<usize>,
}

/// All epochs of a recording, at least one: the last is what follows the last flush, be it nothing.
///
/// Fails with [`InvalidData`](io::ErrorKind::InvalidData) on writes that are not whole sectors of the
/// device, which no device of ours records.
pub fn epochs(recording: &Recording) -> io::Result<Vec<Epoch>> {
    let mut epochs = Vec::new();
    let mut current = Epoch {
        cut: 0,
        events: 0..0,
        writes: Vec::new(),
        overwritten: Vec::new(),
        last_durable: None,
    };
    for (place, event) in recording.events().iter().enumerate() {
        let carried = match event.kind {
            EventKind::Write { offset, data } => {
                if !is_whole_sectors(offset, data, recording.size()) {
                    let text = format!(
                        "event {place} of the recording writes {} bytes at {offset}, which are not \
                         whole sectors of the device",
                        data.len
                    );
                    return Err(io::Error::new(io::ErrorKind::InvalidData, text));
                }
                current.writes.push(place);
                continue;
            }
            EventKind::Flush { in_flight } if in_flight.len == 0 => Vec::new(),
            EventKind::Flush { in_flight } => {
                let in_flight = recording.list(in_flight)?;
                current.select(|event| in_flight.binary_search(&event).is_ok())
            }
            EventKind::Forced { writes } => {
                let forced = recording.list(writes)?;
                current.select(|event| forced.binary_search(&event).is_err())
            }
            EventKind::LyingFlush | EventKind::Refused | EventKind::Mark(_) => continue,
        };
        current.events.end = place;
        let next = current.next(recording, &carried)?;
        epochs.push(std::mem::replace(&mut current, next));
    }
    current.events.end = recording.events().len();
    epochs.push(current);
    Ok(epochs)
}

impl Epoch {
    /// The writes of whose events this is true.
    fn select(&self, is_chosen: impl Fn(usize) -> bool) -> Vec<usize> {
        let writes = 0..self.writes.len();
        writes
            .filter(|&write| is_chosen(self.writes[write]))
            .collect()
    }

    /// The epoch after this one, into which these of its writes are carried.
    fn next(&self, recording: &Recording, carried: &[usize]) -> io::Result<Epoch> {
        let begin = self.events.end + 1;
        let mut writes = (0..self.writes.len()).rev();
        let last_settled = writes.find(|write| carried.binary_search(write).is_err());
        let mut next = Epoch {
            cut: self.cut.checked_add(1).ok_or_else(too_many)?,
            events: begin..begin,
            writes: carried.iter().map(|&write| self.writes[write]).collect(),
            overwritten: Vec::new(),
            last_durable: last_settled
                .map(|write| self.writes[write])
                .max(self.last_durable),
        };
        for &write in carried {
            let own = sectors(recording, self.writes[write]);
            let mut overwritten = self.overwritten(write).to_vec();
            for later in write + 1..self.writes.len() {
                if carried.binary_search(&later).is_err() {
                    let other = sectors(recording, self.writes[later]);
                    // Where the later one was itself overwritten something later still counts.
                    let both = own.start.max(other.start)..own.end.min(other.end);
                    if !both.is_empty() {
                        let place = |sector: u64| (sector - own.start) as u32;
                        overwritten.push(place(both.start)..place(both.end));
                    }
                }
            }
            overwritten.sort_unstable_by_key(|range| range.start);
            overwritten.dedup();
            next.overwritten.push(overwritten);
        }
        Ok(next)
    }

    /// How many of the writes are carried: the first ones.
    pub fn carried(&self) -> usize {
        self.overwritten.len()
    }

    /// How many of the writes came before one that is durable: the first ones. A disk that writes in order has written
    /// them.
    pub(super) fn overtaken(&self) -> usize {
        let before = |&write: &usize| Some(write) < self.last_durable;
        self.writes.partition_point(before)
    }

    /// The sectors of a write that make no difference any more, by their place in it.
    fn overwritten(&self, write: usize) -> &[Range<u32>] {
        self.overwritten.get(write).map_or(&[], Vec::as_slice)
    }

    /// Whether a sector of a write may make a difference.
    pub(super) fn counts(&self, write: usize, place: u32) -> bool {
        let mut overwritten = self.overwritten(write).iter();
        !overwritten.any(|range| range.contains(&place))
    }

    /// Whether a write is durable when `next` begins, which follows this epoch.
    pub(super) fn settles(&self, write: usize, next: &Epoch) -> bool {
        let carried = &next.writes[..next.carried()];
        carried.binary_search(&self.writes[write]).is_err()
    }

    /// What is durable when `next` begins, which follows this epoch, and was not when this one did.
    pub(super) fn settled(&self, recording: &Recording, next: &Epoch) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let settled = (0..self.writes.len()).filter(|&write| self.settles(write, next));
        for write in settled {
            let Some((offset, data)) = write_of(recording, self.writes[write]) else {
                continue;
            };
            let mut push = |from: u32, to: u32| {
                let skipped = u64::from(from) * SECTOR as u64;
                pieces.push(Piece {
                    offset: offset + skipped,
                    data: Span {
                        start: data.start + skipped,
                        len: (to - from) * SECTOR as u32,
                    },
                });
            };
            let mut from = 0;
            for range in self.overwritten(write) {
                if from < range.start {
                    push(from, range.start);
                }
                from = from.max(range.end);
            }
            let end = data.len / SECTOR as u32;
            if from < end {
                push(from, end);
            }
        }
        pieces
    }
}

/// Where on the device a write goes, and its data in the spill file.
pub(super) fn write_of(recording: &Recording, event: usize) -> Option<(u64, Span)> {
    match recording.events()[event].kind {
        EventKind::Write { offset, data } => Some((offset, data)),
        _ => None,
    }
}

/// The sectors of the device that a write goes to.
fn sectors(recording: &Recording, event: usize) -> Range<u64> {
    let (offset, data) = write_of(recording, event).unwrap_or((0, Span { start: 0, len: 0 }));
    let first = offset / SECTOR as u64;
    first..first + u64::from(data.len) / SECTOR as u64
}

fn is_whole_sectors(offset: u64, data: Span, size: u64) -> bool {
    let len = u64::from(data.len);
    let inside = offset.checked_add(len).is_some_and(|end| end <= size);
    inside && offset.is_multiple_of(SECTOR as u64) && len.is_multiple_of(SECTOR as u64)
}

fn too_many() -> io::Error {
    let text = "the recording has more flushes than crash states can be numbered by";
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::RecordingBuilder;

    #[test]
    fn honoured_flushes_end_epochs_and_nothing_else_does() {
        let recording = RecordingBuilder::new(4096)
            .sector(0, 1)
            .mark(b"a")
            .flush()
            .flush()
            .sector(1, 1)
            .lying_flush()
            .refused()
            .sector(2, 1)
            .flush()
            .build();
        let found: Vec<_> = epochs(&recording)
            .unwrap()
            .into_iter()
            .map(|epoch| (epoch.cut, epoch.events, epoch.writes))
            .collect();
        let expected = [
            (0, 0..2, vec![0]),
            (1, 3..3, vec![]),
            (2, 4..8, vec![4, 7]),
            (3, 9..9, vec![]),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_a_flush_does_not_count_in_is_carried_until_one_does() {
        let recording = RecordingBuilder::new(8192)
            .sectors(0, &[1; 8])
            .sector(1, 2)
            .sectors(10, &[1; 2])
            // The first and the last are in flight.
            .flush_but(&[0, 2])
            .sector(4, 3)
            .sector(10, 4)
            // All but the last are in flight, the first still.
            .flush_but(&[0, 2, 4])
            .flush()
            .build();
        let epochs = epochs(&recording).unwrap();
        let found: Vec<_> = epochs
            .iter()
            .map(|epoch| (epoch.writes.clone(), epoch.overwritten.clone()))
            .collect();
        let once = |range: Range<u32>| vec![range];
        let expected = [
            (vec![0, 1, 2], vec![]),
            (vec![0, 2, 4, 5], vec![once(1..2), vec![]]),
            (vec![0, 2, 4], vec![once(1..2), once(0..1), vec![]]),
            (vec![], vec![]),
        ];
        assert_eq!(found, expected);
        let settled = |epoch: usize| {
            let pieces = epochs[epoch].settled(&recording, &epochs[epoch + 1]);
            let sectors = pieces
                .iter()
                .map(|piece| (piece.offset / 512, piece.data.len / 512));
            sectors.collect::<Vec<_>>()
        };
        assert_eq!(settled(0), [(1, 1)]);
        assert_eq!(settled(1), [(10, 1)]);
        assert_eq!(settled(2), [(0, 1), (2, 6), (11, 1), (4, 1)]);
    }

    #[test]
    fn a_write_that_is_durable_by_itself_leaves_all_others_as_they_were() {
        let recording = RecordingBuilder::new(8192)
            .sectors(0, &[1; 4])
            .sector(1, 2)
            .forced(&[1])
            .sector(8, 3)
            .forced(&[3])
            .flush()
            .build();
        let epochs = epochs(&recording).unwrap();
        let found: Vec<_> = epochs
            .iter()
            .map(|epoch| (epoch.writes.clone(), epoch.overwritten.clone()))
            .collect();
        // What was written over by it stays so.
        let once: Vec<Range<u32>> = std::iter::once(1..2).collect();
        let expected = [
            (vec![0, 1], vec![]),
            (vec![0, 3], vec![once.clone()]),
            (vec![0], vec![once]),
            (vec![], vec![]),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_recording_without_events_has_one_epoch() {
        let epochs = epochs(&RecordingBuilder::new(4096).build()).unwrap();
        assert_eq!(epochs.len(), 1);
        assert_eq!(epochs[0].events, 0..0);
    }

    #[test]
    fn writes_that_are_not_whole_sectors_are_refused() {
        for (offset, len) in [(1, 512), (512, 511), (512, 513), (4096, 512), (3584, 1024)] {
            let recording = RecordingBuilder::new(4096)
                .write(offset, vec![1; len])
                .build();
            let error = epochs(&recording).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
        }
    }
}
