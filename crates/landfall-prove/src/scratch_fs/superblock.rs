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

/// Whether the superblock is torn once these writes, in their order, have arrived as far as they have: a sector is as one of them
/// left it, and another is as it was before that one.
pub(crate) fn is_torn(kind: Kind, recording: &Recording, fates: &[WriteFate]) -> bool {
    let place = place(kind);
    // Of each write the sectors of the superblock, and whether they arrived.
    let sectors = |fate: &WriteFate| -> Vec<(u64, bool)> {
        let EventKind::Write { offset, .. } = recording.events()[fate.event].kind else {
            return Vec::new();
        };
        let sectors = fate.places.iter().zip(&fate.arrived);
        let sectors = sectors
            .map(|(sector, arrived)| (offset + u64::from(*sector) * SECTOR as u64, *arrived));
        sectors.filter(|(at, _)| place.contains(at)).collect()
    };
    let writes: Vec<Vec<(u64, bool)>> = fates.iter().map(sectors).collect();
    is_mixed(&writes)
}

/// Whether what is there is of one of these writes in part, and in part of what was there before it. Of each the sectors that it changes,
/// and whether they arrived.
fn is_mixed(writes: &[Vec<(u64, bool)>]) -> bool {
    let last = |at: u64| writes.iter().rposition(|write| write.contains(&(at, true)));
    writes.iter().enumerate().any(|(index, write)| {
        let is_seen = write.iter().any(|(at, _)| last(*at) == Some(index));
        let is_older = |at: u64| last(at).is_none_or(|last| last < index);
        is_seen && write.iter().any(|(at, _)| is_older(*at))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_torn_is_whole_again_once_all_of_it_is_written_over() {
        let write = |sectors: [bool; 2]| vec![(1024, sectors[0]), (1536, sectors[1])];
        let [whole, first, none] = [[true, true], [true, false], [false, false]].map(write);
        for (writes, is_torn) in [
            (vec![], false),
            (vec![&whole], false),
            (vec![&none], false),
            (vec![&first], true),
            (vec![&first, &whole], false),
            (vec![&whole, &first], true),
            (vec![&whole, &none], false),
            (vec![&first, &none], true),
            (vec![&first, &first], true),
        ] {
            let writes: Vec<_> = writes.into_iter().cloned().collect();
            assert_eq!(is_mixed(&writes), is_torn, "{writes:?}");
        }
        // One that changes the other sector alone.
        assert!(!is_mixed(&[write([true, false]), vec![(1536, true)]]));
        assert!(is_mixed(&[write([true, true]), write([false, true])]));
    }
}
