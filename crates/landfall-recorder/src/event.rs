//! What a device can be asked to do, and how that is written down.

use std::time::Duration;

/// Bytes of a sector: what a disk writes whole or not at all.
pub const SECTOR: usize = 512;

/// Where the bytes of an event lie in the spill file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first byte's place.
    pub start: u64,
    /// How many there are.
    pub len: u32,
}

impl Span {
    /// Of bytes that are being written down: only their length is; their place is known when they are read back.
    pub(crate) fn of(bytes: &[u8]) -> Span {
        Span {
            start: 0,
            len: bytes.len() as u32,
        }
    }
}

/// One thing that happened to the device, in the order in which it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What it was.
    pub kind: EventKind,
    /// When, since the recording began.
    pub at: Duration,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Data was written, into the device's cache at least.
    Write {
        /// The first byte written.
        offset: u64,
        /// The data.
        data: Span,
    },
    /// A flush was answered: everything written before this is on the medium from now on, but for the writes in flight.
    Flush {
        /// The writes that had not been answered when the flush arrived, and those that came before it was answered,
        /// as a list of [events](crate::Recording::list): a disk need not have counted them in.
        in_flight: Span,
    },
    /// These writes were answered, and are on the medium from now on, whatever became of others: writes that are durable
    /// by themselves (force unit access, FUA).
    Forced {
        /// A list of [events](crate::Recording::list).
        writes: Span,
    },
    /// A flush that the device said it had done, and had not: see
    /// [`Fault::LyingFlush`](crate::Fault::LyingFlush).
    LyingFlush,
    /// A write or flush that the device refused; nothing of it is on the medium.
    Refused,
    /// A client's remark, such as an acknowledgement.
    Mark(Span),
}

/// Bytes of an event in the spill file, without its data.
pub(crate) const HEADER: usize = 24;
/// Bytes of an event's number in a list.
pub(crate) const NUMBER: usize = 8;

impl EventKind {
    /// A flush that found no write in flight.
    pub const FLUSH: EventKind = EventKind::Flush {
        in_flight: Span { start: 0, len: 0 },
    };

    /// Whether something is durable from now on: then an [epoch](crate::crash::Epoch) ends.
    pub fn ends_epoch(&self) -> bool {
        matches!(self, EventKind::Flush { .. } | EventKind::Forced { .. })
    }
}

/// A list of events as it stands in the spill file.
pub(crate) fn list_bytes(events: &[u64]) -> Vec<u8> {
    events
        .iter()
        .flat_map(|event| event.to_le_bytes())
        .collect()
}

impl Event {
    /// The event as it stands in the spill file in front of its data: kind, three bytes of nothing, the
    /// data's length, the offset, the time in ns; little-endian.
    pub(crate) fn header(&self) -> [u8; HEADER] {
        let (kind, len, offset) = match self.kind {
            EventKind::Write { offset, data } => (1, data.len, offset),
            EventKind::Flush { in_flight } => (2, in_flight.len, 0),
            EventKind::LyingFlush => (3, 0, 0),
            EventKind::Refused => (4, 0, 0),
            EventKind::Mark(data) => (5, data.len, 0),
            EventKind::Forced { writes } => (6, writes.len, 0),
        };
        let mut header = [0; HEADER];
        header[0] = kind;
        header[4..8].copy_from_slice(&u32::to_le_bytes(len));
        header[8..16].copy_from_slice(&u64::to_le_bytes(offset));
        let nanos = u64::try_from(self.at.as_nanos()).unwrap_or(u64::MAX);
        header[16..24].copy_from_slice(&nanos.to_le_bytes());
        header
    }

    /// Reads a header that stood at `place`; `None` if it is none.
    pub(crate) fn parse(header: &[u8; HEADER], place: u64) -> Option<Event> {
        let number = |range: std::ops::Range<usize>| {
            let mut bytes = [0; 8];
            bytes[..range.len()].copy_from_slice(&header[range]);
            u64::from_le_bytes(bytes)
        };
        let data = Span {
            start: place + HEADER as u64,
            len: u32::try_from(number(4..8)).ok()?,
        };
        let kind = match header[0] {
            1 => EventKind::Write {
                offset: number(8..16),
                data,
            },
            2 => EventKind::Flush { in_flight: data },
            3 => EventKind::LyingFlush,
            4 => EventKind::Refused,
            5 => EventKind::Mark(data),
            6 => EventKind::Forced { writes: data },
            _ => return None,
        };
        let is_bare = matches!(kind, EventKind::LyingFlush | EventKind::Refused);
        let is_list = matches!(kind, EventKind::Flush { .. } | EventKind::Forced { .. });
        let len = data.len as usize;
        if header[1..4] != [0; 3]
            || (is_bare && len > 0)
            || (is_list && !len.is_multiple_of(NUMBER))
        {
            return None;
        }
        Some(Event {
            kind,
            at: Duration::from_nanos(number(16..24)),
        })
    }

    /// Bytes in the spill file after the header.
    pub(crate) fn data_len(&self) -> u64 {
        match self.kind {
            EventKind::Write { data, .. }
            | EventKind::Mark(data)
            | EventKind::Forced { writes: data }
            | EventKind::Flush { in_flight: data } => u64::from(data.len),
            EventKind::LyingFlush | EventKind::Refused => 0,
        }
    }
}
