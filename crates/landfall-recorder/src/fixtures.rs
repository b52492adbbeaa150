//! Recordings for tests, made without a device.

use std::os::unix::fs::FileExt;
use std::time::Duration;

use crate::event::{SECTOR, Span, list_bytes};
use crate::spill_file::{SpillFile, nameless};
use crate::{Event, EventKind, Recording};

/// What goes into a recording, in order. Each event happens a microsecond after the one before.
pub(crate) struct RecordingBuilder {
    size: u64,
    base: Vec<(u64, Vec<u8>)>,
    events: Vec<(EventKind, Vec<u8>)>,
}

impl RecordingBuilder {
    /// A device of `size` bytes, all zeros.
    pub fn new(size: u64) -> RecordingBuilder {
        RecordingBuilder {
            size,
            base: Vec::new(),
            events: Vec::new(),
        }
    }

    /// The device holds these bytes when the recording begins.
    pub fn base(mut self, offset: u64, bytes: impl Into<Vec<u8>>) -> RecordingBuilder {
        self.base.push((offset, bytes.into()));
        self
    }

    pub fn write(self, offset: u64, bytes: impl Into<Vec<u8>>) -> RecordingBuilder {
        let data = Span { start: 0, len: 0 };
        self.event(EventKind::Write { offset, data }, bytes.into())
    }

    /// Writes one sector full of `fill`.
    pub fn sector(self, sector: u64, fill: u8) -> RecordingBuilder {
        self.sectors(sector, &[fill])
    }

    /// One write of several sectors from `first`, each full of its own byte.
    pub fn sectors(self, first: u64, fills: &[u8]) -> RecordingBuilder {
        let bytes: Vec<u8> = fills.iter().flat_map(|&fill| [fill; SECTOR]).collect();
        self.write(first * SECTOR as u64, bytes)
    }

    pub fn flush(self) -> RecordingBuilder {
        self.flush_but(&[])
    }

    /// A flush that arrives while these writes are in flight: the places of their events.
    pub fn flush_but(self, in_flight: &[u64]) -> RecordingBuilder {
        self.event(EventKind::FLUSH, list_bytes(in_flight))
    }

    /// These writes are answered, and durable by themselves: the places of their events.
    pub fn forced(self, writes: &[u64]) -> RecordingBuilder {
        let nowhere = Span { start: 0, len: 0 };
        self.event(EventKind::Forced { writes: nowhere }, list_bytes(writes))
    }

    /// How many events there are so far.
    pub fn len(&self) -> u64 {
        self.events.len() as u64
    }

    pub fn lying_flush(self) -> RecordingBuilder {
        self.event(EventKind::LyingFlush, Vec::new())
    }

    pub fn refused(self) -> RecordingBuilder {
        self.event(EventKind::Refused, Vec::new())
    }

    pub fn mark(self, bytes: &[u8]) -> RecordingBuilder {
        let data = Span { start: 0, len: 0 };
        self.event(EventKind::Mark(data), bytes.to_owned())
    }

    fn event(mut self, kind: EventKind, bytes: Vec<u8>) -> RecordingBuilder {
        self.events.push((kind, bytes));
        self
    }

    pub fn build(self) -> Recording {
        let directory = std::env::temp_dir();
        let base = nameless(true, &directory).unwrap();
        base.set_len(self.size).unwrap();
        for (offset, bytes) in self.base {
            base.write_all_at(&bytes, offset).unwrap();
        }
        let mut spill = SpillFile::new(1 << 40, &directory).unwrap();
        for (number, (kind, bytes)) in (0..).zip(self.events) {
            let data = Span {
                start: 0,
                len: u32::try_from(bytes.len()).unwrap(),
            };
            let kind = match kind {
                EventKind::Write { offset, .. } => EventKind::Write { offset, data },
                EventKind::Mark(_) => EventKind::Mark(data),
                EventKind::Flush { .. } => EventKind::Flush { in_flight: data },
                EventKind::Forced { .. } => EventKind::Forced { writes: data },
                other => other,
            };
            let at = Duration::from_micros(number);
            spill.append(&Event { kind, at }.header()).unwrap();
            spill.append(&bytes).unwrap();
        }
        Recording::new(self.size, base, spill).unwrap()
    }
}
