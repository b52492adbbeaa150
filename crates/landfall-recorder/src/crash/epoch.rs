//! The stretches of a recording between two flushes.

use std::io;
use std::ops::Range;

use crate::event::{SECTOR, Span};
use crate::{EventKind, Recording};

/// The events between two flushes that the device honoured: all that was written in them may be lost
/// while they last, and none of it afterwards.
///
/// A flush that the device lied about ends no epoch, and neither does one that it refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// Its number, which is how many flushes were done before it.
    pub cut: u32,
    /// The places of its events; the flush that ends it comes after them.
    pub events: Range<usize>,
    /// The places of its writes.
    pub writes: Vec<usize>,
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
    };
    for (place, event) in recording.events().iter().enumerate() {
        match event.kind {
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
            }
            EventKind::Flush => {
                let next = Epoch {
                    cut: current.cut.checked_add(1).ok_or_else(too_many)?,
                    events: place + 1..place + 1,
                    writes: Vec::new(),
                };
                current.events.end = place;
                epochs.push(std::mem::replace(&mut current, next));
            }
            EventKind::LyingFlush | EventKind::Refused | EventKind::Mark(_) => {}
        }
    }
    current.events.end = recording.events().len();
    epochs.push(current);
    Ok(epochs)
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
