//! Crash states made in the plainest way, to hold the others against.

use std::os::unix::fs::FileExt;

use super::{Piece, epochs};
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

/// Every sector written in an epoch, changed or not, in order.
pub(super) fn sector_writes(recording: &Recording, cut: u32) -> Vec<SectorWrite> {
    let epoch = &epochs(recording).unwrap()[cut as usize];
    let mut found = Vec::new();
    for (write, &event) in epoch.writes.iter().enumerate() {
        let EventKind::Write { offset, data } = recording.events()[event].kind else {
            panic!("event {event} is no write");
        };
        let bytes = recording.bytes(data).unwrap();
        for (sector, bytes) in (offset / 512..).zip(bytes.chunks(SECTOR)) {
            found.push(SectorWrite {
                write,
                sector,
                bytes: bytes.to_owned(),
            });
        }
    }
    found
}

/// The whole disk as it was durable when an epoch began.
pub(super) fn durable(recording: &Recording, cut: u32) -> Vec<u8> {
    let mut disk = vec![0; usize::try_from(recording.size()).unwrap()];
    recording.base().read_exact_at(&mut disk, 0).unwrap();
    for earlier in 0..cut {
        for write in sector_writes(recording, earlier) {
            put(&mut disk, write.sector * SECTOR as u64, &write.bytes);
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
