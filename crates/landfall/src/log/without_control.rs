//! What is salvaged of a log whose control file is lost, or makes no sense: its segments say what it is.

use super::Handle;
use super::damage::recorded;
use super::format::{BlockHeader, CONTROL_NAME, MOST, SegmentHeader};
use super::opening::crafted;
use super::salvaging::{
    Files, check, closed, flip, log, place, range, record, salvaged, segment, settle, with,
};
use crate::Options;
use crate::environment::Environment;

/// A log of 16 records without a control file, and with so many bytes of its first segment.
fn cut(bytes: usize) -> Files {
    let mut files = closed(16);
    files.remove(CONTROL_NAME);
    files.get_mut(&segment(1)).unwrap().truncate(bytes);
    files
}

#[test]
fn a_control_record_that_makes_no_sense_decides_nothing() {
    let mut files = closed(16);
    recorded(&mut files, |record| record.granule = 100);
    check(files, 1, &range(1, 17), &[], false);
}

#[test]
fn a_segment_that_is_cut_off_says_how_long_segments_are() {
    // A header and a block, or more of each granule.
    for bytes in [1024, 1536, 2048, 2500] {
        let kept = bytes as u64 / 512;
        let copied = [range(1, kept), range(8, 17)].concat();
        check(cut(bytes), 1, &copied, &[(kept, 8, kept)], false);
        // There may be no other.
        let mut alone = cut(bytes);
        alone.retain(|name, _| *name == segment(1));
        check(alone, 1, &range(1, kept), &[], false);
    }
}

#[test]
fn blocks_are_looked_for_where_the_first_of_a_segment_is_damaged() {
    // The second says that granules may be twice as large, and others that they are not.
    for damaged in [&[1][..], &[8], &[1, 8, 15], &[1, 3, 5, 7]] {
        let mut files = closed(16);
        files.remove(CONTROL_NAME);
        for lsn in damaged {
            let (name, offset) = place(*lsn);
            files.get_mut(&name).unwrap()[offset + 20] ^= 1;
        }
        let copied: Vec<u64> = range(1, 17)
            .into_iter()
            .filter(|lsn| !damaged.contains(lsn))
            .collect();
        let (salvage, records) = salvaged(files).unwrap();
        assert_eq!(salvage.copied as usize, copied.len(), "{damaged:?}");
        let found = records.iter().map(|(_, bytes)| u64::from(bytes[0]));
        assert_eq!(found.collect::<Vec<_>>(), copied);
    }
}

#[test]
fn a_segment_without_a_first_block_says_nothing() {
    let mut files = cut(2048);
    for offset in [512, 1024, 1536] {
        files.get_mut(&segment(1)).unwrap()[offset + 20] ^= 1;
    }
    check(files, 8, &range(8, 17), &[], false);
}

#[test]
fn a_segment_that_is_used_again_says_how_long_it_is() {
    // Its header is that of a later one, and its first block still the one that it had before.
    let mut files = closed(16);
    files.remove(CONTROL_NAME);
    let first = files.get_mut(&segment(1)).unwrap();
    let header = SegmentHeader::decode(first).unwrap();
    let sequence = 9;
    SegmentHeader { sequence, ..header }.encode(first);
    check(files, 1, &range(1, 17), &[], false);
}

#[test]
fn segments_have_a_size_that_a_log_can_have() {
    // Of three granules, and of eight and a half.
    for (segment_bytes, sequence) in [(1536, 3), (4352, 2)] {
        let mut files = cut(1024);
        let first = files.get_mut(&segment(1)).unwrap();
        let (block, _) = BlockHeader::decode(&first[512..]).unwrap();
        let header = SegmentHeader::decode(first).unwrap();
        SegmentHeader { sequence, ..header }.encode(first);
        BlockHeader {
            position: sequence * segment_bytes + 512,
            ..block
        }
        .encode(&mut first[512..]);
        check(files, 8, &range(8, 17), &[], false);
    }
}

#[test]
fn a_gap_between_segments_is_seen_wherever_it_is() {
    // A batch from the end of the fourth segment into the fifth; the fourth was given up, or is lost.
    let mut files = log(26, |log| {
        log.append_batch(&[&[27; 1500], &record(28), &record(29)])
            .unwrap();
        log.commit().unwrap();
        log.append_durable(&record(30)).unwrap();
        settle(log);
        log.close().unwrap();
    });
    files.remove(CONTROL_NAME);
    files.remove(&segment(4));
    let copied = [range(1, 22), range(28, 31)].concat();
    check(files, 1, &copied, &[(22, 28, 22)], false);
}

#[test]
fn a_block_behind_all_places_is_none() {
    // Of these segments the first position that is too large is within one, and not at its beginning.
    let segment_bytes = 9 * 512;
    let offset = (MOST % segment_bytes) as usize;
    let world = with(Files::new());
    let options = Options::default()
        .segment_bytes(segment_bytes)
        .buffer_bytes(4096)
        .max_unwritten_bytes(1024)
        .max_unsynced_bytes(1024);
    let log = Handle::open(&world, options).unwrap();
    for lsn in 1..=10 {
        log.append_durable(&record(lsn)).unwrap();
    }
    log.close().unwrap();
    let mut files = world.storage().files();
    flip(&mut files, 2);
    // Two blocks are before it.
    assert!(offset >= 512 * 3);
    crafted(&mut files, offset, |header| header.position = MOST);
    assert_eq!(salvaged(files).unwrap().0.copied, 9);
}
