//! Everything that happened to a device from one moment on, and what was on it before.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::event::{HEADER, NUMBER, Span};
use crate::spill_file::SpillFile;
use crate::{AtomicUnit, Counts, Event, EventKind};

/// What was recorded: the device's contents when the recording began, and each event since.
#[derive(Debug)]
pub struct Recording {
    size: u64,
    atomic_unit: AtomicUnit,
    base: File,
    events: Vec<Event>,
    spill: SpillFile,
    note: String,
}

impl Recording {
    /// Reads the index of the events on `spill`.
    pub(crate) fn new(size: u64, base: File, spill: SpillFile) -> io::Result<Recording> {
        let mut events = Vec::new();
        let mut place = 0;
        while place < spill.len() {
            let mut header = [0; HEADER];
            spill.read(place, &mut header)?;
            let event = Event::parse(&header, place).ok_or(io::ErrorKind::InvalidData)?;
            place += HEADER as u64 + event.data_len();
            events.push(event);
        }
        if place != spill.len() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let recording = Recording {
            size,
            atomic_unit: AtomicUnit::default(),
            base,
            events,
            spill,
            note: String::new(),
        };
        recording.check_lists()?;
        Ok(recording)
    }

    /// Whether each list is of writes before it, in order.
    fn check_lists(&self) -> io::Result<()> {
        for (place, event) in self.events.iter().enumerate() {
            let (EventKind::Flush { in_flight: list } | EventKind::Forced { writes: list }) =
                event.kind
            else {
                continue;
            };
            let list = self.list(list)?;
            let is_write =
                |&number: &usize| matches!(self.events[number].kind, EventKind::Write { .. });
            let is_before = list.last().is_none_or(|&last| last < place);
            if !is_before || !list.is_sorted_by(|a, b| a < b) || !list.iter().all(is_write) {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        Ok(())
    }

    /// The recording with a note of its maker's, such as what was recorded, which is saved with it.
    pub fn with_note(self, note: impl Into<String>) -> Recording {
        Recording {
            note: note.into(),
            ..self
        }
    }

    /// The recording as of a device with this atomic unit. It is not saved with the recording: what
    /// was written would have been the same on another.
    pub fn with_atomic_unit(self, atomic_unit: AtomicUnit) -> Recording {
        Recording {
            atomic_unit,
            ..self
        }
    }

    /// What the device writes whole or not at all.
    pub fn atomic_unit(&self) -> AtomicUnit {
        self.atomic_unit
    }

    /// The note of the recording's maker.
    pub fn note(&self) -> &str {
        &self.note
    }

    /// The device's size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The device's contents when the recording began, with holes where nothing was ever written.
    pub fn base(&self) -> &File {
        &self.base
    }

    /// What happened since.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The bytes of a write or a mark.
    pub fn bytes(&self, span: Span) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; span.len as usize];
        self.spill.read(span.start, &mut bytes)?;
        Ok(bytes)
    }

    /// A list of events, by their places, in order.
    pub fn list(&self, span: Span) -> io::Result<Vec<usize>> {
        let bytes = self.bytes(span)?;
        let numbers = bytes.as_chunks::<NUMBER>().0;
        let place = |number: &[u8; NUMBER]| usize::try_from(u64::from_le_bytes(*number));
        let places: Result<Vec<usize>, _> = numbers.iter().map(place).collect();
        places.map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// The events as they were recorded.
    pub(crate) fn spill(&self) -> &SpillFile {
        &self.spill
    }

    /// Bytes of events that did not fit into memory and were written to disk.
    pub fn spilled(&self) -> u64 {
        self.spill.spilled()
    }

    /// Writes, bytes and flushes among `events[from..to]`. Reads are not recorded.
    pub fn counts(&self, from: usize, to: usize) -> Counts {
        let mut counts = Counts::default();
        for event in &self.events[from..to] {
            match event.kind {
                EventKind::Write { data, .. } => {
                    counts.writes += 1;
                    counts.written_bytes += u64::from(data.len);
                }
                EventKind::Flush { .. } | EventKind::LyingFlush => counts.flushes += 1,
                EventKind::Forced { .. } | EventKind::Refused | EventKind::Mark(_) => {}
            }
        }
        counts
    }

    /// Writes that were durable by themselves.
    pub fn forced_writes(&self) -> u64 {
        let forced = self.events.iter().filter_map(|event| match event.kind {
            EventKind::Forced { writes } => Some(u64::from(writes.len) / NUMBER as u64),
            _ => None,
        });
        forced.sum()
    }

    /// Copies what the device held when the recording began into `target`, a file of the device's size
    /// that has nothing but holes.
    pub fn copy_base(&self, target: &File) -> io::Result<()> {
        copy_written(&self.base, target, self.size)
    }
}

/// The next stretch of a file from `place` on that is no hole.
pub(crate) fn next_written(file: &File, place: u64, size: u64) -> io::Result<Option<Range<u64>>> {
    use rustix::fs::SeekFrom;
    if place >= size {
        return Ok(None);
    }
    let start = match rustix::fs::seek(file, SeekFrom::Data(place)) {
        Ok(start) => start,
        Err(rustix::io::Errno::NXIO) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let end = rustix::fs::seek(file, SeekFrom::Hole(start))?.min(size);
    Ok((start < end).then_some(start..end))
}

/// Copies what is no hole.
pub(crate) fn copy_written(from: &File, to: &File, size: u64) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 20];
    let mut place = 0;
    while let Some(range) = next_written(from, place, size)? {
        place = range.start;
        while place < range.end {
            let left = range.end - place;
            let len = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
            from.read_exact_at(&mut buffer[..len], place)?;
            to.write_all_at(&buffer[..len], place)?;
            place += len as u64;
        }
    }
    Ok(())
}
