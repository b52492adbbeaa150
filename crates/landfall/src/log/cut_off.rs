//! Blocks that were cut off, and do not come back: neither when the log is opened nor in a salvage of it.

use super::Handle;
use super::damage::headers_say_nothing;
use super::format::{BlockHeader, CONTROL_NAME};
use super::salvaging::{
    Files, GEOMETRY, World, check, flip, log, open, place, record, salvaged, segment, settle, with,
};
use crate::environment::Environment;
use crate::{Error, Lsn, Options};

/// One that writes each record by itself, and leaves it unsynced.
fn open_eager(world: &World) -> Handle<World> {
    let options = Options::default()
        .segment_bytes(GEOMETRY.segment)
        .buffer_bytes(4096)
        .max_unwritten_bytes(512)
        .max_unsynced_bytes(4096);
    Handle::open(world, options).unwrap()
}

/// Four durable records, then two that are written and never synced; of these a power cut takes the first.
fn torn() -> Files {
    let world = with(Files::new());
    let log = open_eager(&world);
    for lsn in 1..=4 {
        log.append_durable(&record(lsn)).unwrap();
    }
    for (lsn, offset) in [(5, 2560), (6, 3072)] {
        log.append(&record(lsn)).unwrap();
        let is_written =
            || BlockHeader::decode(&world.storage().files()[&segment(1)][offset..]).is_some();
        while !is_written() {
            std::thread::yield_now();
        }
    }
    let mut files = world.storage().files();
    files.get_mut(&segment(1)).unwrap()[2560..3072].fill(0);
    files
}

/// What a salvage has: numbers, and a byte and the length of each record.
fn contents(files: Files) -> Vec<(u64, u8, usize)> {
    let (_, records) = salvaged(files).unwrap();
    let content = |(lsn, bytes): &(u64, Vec<u8>)| (*lsn, bytes[0], bytes.len());
    records.iter().map(content).collect()
}

#[test]
fn nothing_is_behind_the_end_of_a_whole_log() {
    let world = with(torn());
    open(&world).close().unwrap();
    check(world.storage().files(), 1, &[1, 2, 3, 4], &[], true);
}

#[test]
fn nothing_is_behind_the_end_of_one_that_was_not_opened_again() {
    // It is not damaged, and its next opening would cut off the sixth.
    check(torn(), 1, &[1, 2, 3, 4], &[], false);
}

#[test]
fn what_was_left_in_a_tail_that_was_skipped_does_not_count() {
    // The next record does not fit before the block that was cut off, and goes to the next segment.
    let world = with(torn());
    let log = open_eager(&world);
    assert_eq!(log.append_durable(&[55; 1600]).unwrap(), Lsn(5));
    log.append_durable(&record(66)).unwrap();
    log.close().unwrap();
    let found = contents(world.storage().files());
    assert_eq!(found[4..], [(5, 55, 1600), (6, 66, record(66).len())]);

    let world = with(torn());
    for lsn in [5, 6] {
        let log = open(&world);
        log.append_durable(&[lsn as u8 * 11; 1600]).unwrap();
        log.close().unwrap();
    }
    let mut files = world.storage().files();
    flip(&mut files, 2);
    let one = record(1).len();
    let expected = [
        (1, 1, one),
        (2, 3, one),
        (3, 4, one),
        (4, 55, 1600),
        (5, 66, 1600),
    ];
    assert_eq!(contents(files), expected);
}

#[test]
fn a_damaged_block_is_not_made_up_for_by_one_that_was_cut_off() {
    let world = with(torn());
    let log = open_eager(&world);
    log.append_batch(&[&[55; 100][..], &[66; 100]]).unwrap();
    log.commit().unwrap();
    log.close().unwrap();
    let mut files = world.storage().files();
    files.get_mut(&segment(1)).unwrap()[2560 + 100] ^= 1;
    assert_eq!(contents(files).len(), 4);
}

#[test]
fn an_earlier_epoch_does_not_go_on_behind_a_later_one() {
    let world = with(torn());
    let log = open(&world);
    log.append_durable(&record(55)).unwrap();
    log.close().unwrap();
    let mut files = world.storage().files();
    flip(&mut files, 2);
    check(files, 1, &[1, 3, 4, 55], &[(2, 3, 2)], true);
}

#[test]
fn of_two_that_nothing_leads_to_the_later_one_counts() {
    let before = torn();
    let world = with(before.clone());
    let log = open(&world);
    log.append_durable(&record(55)).unwrap();
    log.append_durable(&record(66)).unwrap();
    log.close().unwrap();
    let mut files = world.storage().files();
    files.insert(segment(99), before[&segment(1)].clone());
    flip(&mut files, 5);
    check(files, 1, &[1, 2, 3, 4, 66], &[(5, 6, 5)], true);
}

/// A log of six records that lost some, from one on; and what is left of the first segment when it had them.
fn begun_again(from: u64, then: impl FnOnce(&Handle<World>)) -> (Files, Vec<u8>) {
    let mut files = log(6, settle);
    headers_say_nothing(&mut files);
    let before = files[&segment(1)].clone();
    for lsn in from..=6 {
        let (name, offset) = place(lsn);
        files.get_mut(&name).unwrap()[offset..offset + 512].fill(0);
    }
    let world = with(files);
    let log = open(&world);
    then(&log);
    log.close().unwrap();
    (world.storage().files(), before)
}

#[test]
fn of_two_the_one_counts_that_the_one_before_leads_to() {
    let (mut files, before) = begun_again(5, |log| {
        log.append_durable(&record(55)).unwrap();
        log.append_durable(&record(66)).unwrap();
    });
    files.insert(segment(99), before);
    // Of the later ones only the second is whole.
    flip(&mut files, 5);
    check(files, 1, &[1, 2, 3, 4, 5, 6], &[], true);
}

#[test]
fn nothing_begins_within_a_block() {
    // Before they were lost there was one block where there are three now, of which the first is damaged.
    let mut lost = log(4, |log| {
        log.append_durable(&[5; 1300]).unwrap();
        settle(log);
    });
    headers_say_nothing(&mut lost);
    let before = lost[&segment(1)].clone();
    lost.get_mut(&segment(1)).unwrap()[2560..].fill(0);
    let world = with(lost);
    let log = open(&world);
    for lsn in [55, 66, 77] {
        log.append_durable(&record(lsn)).unwrap();
    }
    log.close().unwrap();
    let mut files = world.storage().files();
    files.insert(segment(99), before);
    flip(&mut files, 5);
    let found = contents(files);
    assert_eq!(found.len(), 5);
    assert_eq!(found[4], (5, 5, 1300));
}

#[test]
fn a_number_that_was_given_again_is_that_of_the_later_record() {
    // The other one with the number 5 is in the next segment, for which it is too large.
    let (mut files, before) = begun_again(5, |log| {
        log.append_durable(&[55; 1600]).unwrap();
    });
    files.insert(segment(99), before);
    let found = contents(files);
    assert_eq!(found.len(), 5);
    assert_eq!(found[4], (5, 55, 1600));
}

#[test]
fn a_record_is_not_copied_without_its_middle() {
    let mut files = log(1, |log| {
        log.append_batch(&[&[8; 5000]]).unwrap();
        log.commit().unwrap();
        log.append_durable(&record(3)).unwrap();
        log.close().unwrap();
    });
    // Its second block: it has three, the last of them in the next segment.
    files.get_mut(&segment(1)).unwrap()[3072 + 80] ^= 1;
    check(files, 1, &[1, 3], &[(2, 3, 2)], true);
}

#[test]
fn records_of_a_batch_that_was_truncated_stay_without_the_control_file() {
    let world = with(Files::new());
    let log = open(&world);
    for lsn in 1..=12 {
        log.append_durable(&record(lsn)).unwrap();
    }
    // From the end of the second segment into the third.
    log.append_batch(&[&[13; 1500], &record(14), &record(15)])
        .unwrap();
    log.commit().unwrap();
    log.append_durable(&record(16)).unwrap();
    log.truncate_before(Lsn(14)).unwrap();
    // Until a file of a segment that was given up is one of the next ones.
    let mut lsn = 17;
    while World::lock(&log.shared.state).durable.position < 6 * 4096 - 512 {
        log.append_durable(&record(lsn)).unwrap();
        lsn += 1;
    }
    settle(&log);
    log.close().unwrap();
    let mut files = world.storage().files();
    files.remove(CONTROL_NAME);
    let (_, records) = salvaged(files).unwrap();
    for wanted in [14, 15] {
        assert!(
            records.iter().any(|(_, bytes)| bytes[0] == wanted),
            "{wanted}"
        );
    }
}

#[test]
fn an_older_segment_that_ends_with_another_block_is_told() {
    // Record 5 was written, and lost by a power cut; another one has its number now.
    let mut older = log(5, settle);
    headers_say_nothing(&mut older);
    let before = older[&segment(1)].clone();
    older.get_mut(&segment(1)).unwrap()[2560..3072].fill(0);
    let world = with(older);
    let log = open(&world);
    assert_eq!(log.append_durable(&record(55)).unwrap(), Lsn(5));
    log.close().unwrap();
    let mut files = world.storage().files();
    files.insert(segment(1), before);
    let opened = Handle::open(&with(files), Options::default());
    assert!(matches!(opened, Err(Error::Corrupt { .. })));
}

/// Appends a record and waits until it is written at this offset of the first segment, unsynced.
fn write_at(log: &Handle<World>, world: &World, record: &[u8], offset: usize) {
    let epoch = log.shared.epoch;
    log.append(record).unwrap();
    let is_written = || {
        let header = BlockHeader::decode(&world.storage().files()[&segment(1)][offset..]);
        header.is_some_and(|(header, _)| header.epoch == epoch)
    };
    while !is_written() {
        std::thread::yield_now();
    }
}

/// Of three granules.
const LARGE: [u8; 1300] = [5; 1300];

/// Two durable records, and one behind them of which the middle is lost; a whole one follows it.
fn torn_in_the_middle() -> Files {
    let world = with(Files::new());
    let log = open_eager(&world);
    for lsn in [1, 2] {
        log.append_durable(&record(lsn)).unwrap();
    }
    write_at(&log, &world, &LARGE, 1536);
    write_at(&log, &world, &record(4), 3072);
    let mut files = world.storage().files();
    drop(log);
    files.get_mut(&segment(1)).unwrap()[2048..2560].fill(0);
    files
}

/// A torn block of the next epoch must not leave the header of one that was cut off, and give it back what it lacked.
#[test]
fn a_block_that_was_cut_off_is_not_completed_by_what_is_torn_over_it() {
    let world = with(torn_in_the_middle());
    let log = open_eager(&world);
    assert_eq!(log.shared.appended(), 3);
    let before = world.storage().files();
    // As it was, but for its beginning: of that nothing reaches the disk.
    let mut again = LARGE;
    again[..100].fill(6);
    write_at(&log, &world, &again, 1536);
    let after = world.storage().files();
    drop(log);
    let mut torn = before;
    let middle = &after[&segment(1)][2048..2560];
    torn.get_mut(&segment(1)).unwrap()[2048..2560].copy_from_slice(middle);
    check(torn.clone(), 1, &[1, 2], &[], false);
    let log = open_eager(&with(torn));
    assert_eq!(log.shared.appended(), 3, "what was gone is there again");
}

/// Nor is it in the way where the next block does not fit, and goes to another segment.
#[test]
fn a_torn_block_that_is_passed_over_stays_gone() {
    let world = with(torn_in_the_middle());
    for lsn in 3..6 {
        let log = open_eager(&world);
        // There are less than five granules behind the second.
        let appended = log.append_durable(&[lsn as u8; 2000]).unwrap();
        assert_eq!(appended, Lsn(lsn));
        let first = log.first_lsn();
        let mut reader = log.read(first).unwrap();
        for expected in first.0..=lsn {
            assert_eq!(reader.next().unwrap().unwrap().0, expected);
        }
        if lsn == 4 {
            log.truncate_before(Lsn(2)).unwrap();
            log.close().unwrap();
        }
    }
    assert_eq!(open(&world).shared.appended(), 6);
}
