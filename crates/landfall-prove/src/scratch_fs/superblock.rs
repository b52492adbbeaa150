//! Superblocks that a disk may tear.
//!
//! The superblocks of ext2 to ext4 and of btrfs are larger than a sector, and are checksummed as a whole: neither can be
//! mounted when it is torn. That is a fault of the filesystem, whatever the subject, and every recovery writes one.

use std::ops::Range;

use landfall_recorder::crash::WriteFate;
use landfall_recorder::{EventKind, Recording, SECTOR};

use super::Kind;

/// Where the superblock lies that is read first.
fn place(kind: Kind) -> Range<u64> {
    match kind {
        Kind::Ext2 | Kind::Ext3 | Kind::Ext4 => 1024..2048,
        Kind::Btrfs => 64 << 10..68 << 10,
        Kind::Xfs => 0..512,
    }
}

/// Whether a part of the superblock arrived of any of these writes, and a part did not.
pub(crate) fn is_torn(kind: Kind, recording: &Recording, fates: &[WriteFate]) -> bool {
    let place = place(kind);
    fates.iter().any(|fate| {
        let EventKind::Write { offset, .. } = recording.events()[fate.event].kind else {
            return false;
        };
        let is_there = |sector: u32| place.contains(&(offset + u64::from(sector) * SECTOR as u64));
        let sectors = fate.places.iter().zip(&fate.arrived);
        let mut arrived = sectors
            .filter(|(sector, _)| is_there(**sector))
            .map(|(_, arrived)| *arrived);
        arrived
            .next()
            .is_some_and(|first| arrived.any(|other| other != first))
    })
}
