//! Crash states made in the plainest way, to hold the others against.

use std::collections::HashMap;
use std::os::unix::fs::FileExt;

use super::{Epoch, Piece, epochs};
use crate::event::SECTOR;
use crate::{EventKind, Recording};

/// A sector that was written in an epoch.
pub(super) struct SectorWrite {
    /// Which of the epoch's writes.
    pub write: usize,
    /// Which sector of the device.
    pub sector: u64,
    pub bytes: Vec<u8>,
}

/// Every sector written in an epoch, changed or not, in order, that may make a difference.
pub(super) fn sector_writes(recording: &Recording, cut: u32) -> Vec<SectorWrite> {
    let epoch = &epochs(recording).unwrap()[cut as usize];
    let mut found = Vec::new();
    for (write, &event) in epoch.writes.iter().enumerate() {
        let EventKind::Write { offset, data } = recording.events()[event].kind else {
            panic!("event {event} is no write");
        };
        let bytes = recording.bytes(data).unwrap();
        for (place, (sector, bytes)) in (0..).zip((offset / 512..).zip(bytes.chunks(SECTOR))) {
            if !epoch.counts(write, place) {
                continue;
            }
            found.push(SectorWrite {
                write,
                sector,
                bytes: bytes.to_owned(),
            });
        }
    }
    found
}

/// How many of an epoch's first writes came before one that was durable when it began.
pub(super) fn overtaken(recording: &Recording, epoch: &Epoch) -> usize {
    let is_write = |event: usize| matches!(recording.events()[event].kind, EventKind::Write { .. });
    let mut before = (0..epoch.events.start).rev();
    let durable = before.find(|event| is_write(*event) && !epoch.writes.contains(event));
    let writes = epoch.writes.iter();
    writes.filter(|write| Some(**write) < durable).count()
}

/// The whole disk as it was durable when an epoch began.
pub(super) fn durable(recording: &Recording, cut: u32) -> Vec<u8> {
    let mut disk = vec![0; usize::try_from(recording.size()).unwrap()];
    recording.base().read_exact_at(&mut disk, 0).unwrap();
    // Of each sector the last write that counts, by its place in the recording.
    let mut last: HashMap<u64, usize> = HashMap::new();
    let epochs = epochs(recording).unwrap();
    for pair in epochs[..=cut as usize].windows(2) {
        let carried = |event| pair[1].events.start > event && pair[1].writes.contains(&event);
        for &event in &pair[0].writes {
            let EventKind::Write { offset, data } = recording.events()[event].kind else {
                panic!("event {event} is no write");
            };
            let bytes = recording.bytes(data).unwrap();
            for (sector, bytes) in (offset / 512..).zip(bytes.chunks(SECTOR)) {
                if !carried(event) && last.get(&sector).is_none_or(|&last| last < event) {
                    last.insert(sector, event);
                    put(&mut disk, sector * SECTOR as u64, bytes);
                }
            }
        }
    }
    disk
}

/// The whole disk as these pieces make it.
pub(super) fn image_of(recording: &Recording, cut: u32, pieces: &[Piece]) -> Vec<u8> {
    let mut disk = durable(recording, cut);
    for piece in pieces {
        let bytes = recording.bytes(piece.data).unwrap();
        put(&mut disk, piece.offset, &bytes);
    }
    disk
}

pub(super) fn put(disk: &mut [u8], offset: u64, bytes: &[u8]) {
    let place = usize::try_from(offset).unwrap();
    disk[place..place + bytes.len()].copy_from_slice(bytes);
}
