//! What can still be read of damaged logs.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use super::Handle;
use super::format::{BlockHeader, CONTROL, CONTROL_NAME, FRAME, Geometry, HEADER, Kind, MOST};
use super::opening::{Change, crafted};
use super::salvage::{Copy, Salvage, copy as salvage, with_source};
use crate::environment::{Environment, Storage, System};
use crate::fuzzing::memory::Memory;
use crate::{Error, Lsn, Options};

pub(super) type World = System<Memory>;
pub(super) type Files = BTreeMap<String, Vec<u8>>;

pub(super) const GEOMETRY: Geometry = Geometry {
    granule: 512,
    segment: 4096,
};
/// Blocks of a granule that a segment has behind its header.
const BLOCKS: u64 = 7;

pub(super) fn with(files: Files) -> World {
    System::new(Memory::new(files))
}

pub(super) fn open(world: &World) -> Handle<World> {
    let options = Options::default()
        .segment_bytes(GEOMETRY.segment)
        .buffer_bytes(4096)
        .max_unwritten_bytes(1024)
        .max_unsynced_bytes(1024);
    Handle::open(world, options).unwrap()
}

/// Waits until the thread that makes segments has nothing to do.
pub(super) fn settle(log: &Handle<World>) {
    loop {
        let state = World::lock(&log.shared.state);
        assert!(!state.is_poisoned(), "it will not do anything");
        if state.segments.is_settled() {
            return;
        }
        drop(state);
        std::thread::yield_now();
    }
}

/// Record number `lsn`, which fills a block of a granule.
pub(super) fn record(lsn: u64) -> Vec<u8> {
    vec![lsn as u8; 512 - HEADER - FRAME]
}

/// A log with records from 1 to `last`, and what is done with it then.
pub(super) fn log(last: u64, then: impl FnOnce(&Handle<World>)) -> Files {
    let world = with(Files::new());
    let log = open(&world);
    // What is promised by the control record does not depend on when the next segment is ready.
    settle(&log);
    for lsn in 1..=last {
        log.append_durable(&record(lsn)).unwrap();
    }
    then(&log);
    world.storage().files()
}

pub(super) fn closed(last: u64) -> Files {
    log(last, |log| log.close().unwrap())
}

pub(super) fn segment(number: u64) -> String {
    format!("segment-{number:06}")
}

/// Where the block of a record is.
pub(super) fn place(lsn: u64) -> (String, usize) {
    let block = lsn - 1;
    (
        segment(1 + block / BLOCKS),
        512 * (1 + block % BLOCKS) as usize,
    )
}

pub(super) fn flip(files: &mut Files, lsn: u64) {
    let (name, offset) = place(lsn);
    files.get_mut(&name).unwrap()[offset + 100] ^= 1;
}

pub(super) type Records = Vec<(u64, Vec<u8>)>;

/// What is copied, and the records of the new log by their numbers there.
pub(super) fn salvaged(files: Files) -> Result<(Salvage, Records), Error> {
    let to = with(Files::new());
    let salvaged = salvage(&with(files), &to)?;
    let log = open(&to);
    let mut reader = log.read(log.first_lsn()).unwrap();
    let mut records = Vec::new();
    while let Some((lsn, bytes)) = reader.next().unwrap() {
        records.push((lsn, bytes.to_vec()));
    }
    Ok((salvaged, records))
}

/// Checks that these records are copied, with numbers from `first` on, and others are missing: from, to, and the number
/// in the new log of what comes next.
#[track_caller]
pub(super) fn check(
    files: Files,
    first: u64,
    copied: &[u64],
    missing: &[(u64, u64, u64)],
    is_clean: bool,
) {
    let (salvage, records) = salvaged(files).unwrap();
    let expected = (first..).zip(copied.iter().map(|&lsn| record(lsn)));
    let brief = |(lsn, bytes): (u64, Vec<u8>)| (lsn, bytes.first().copied(), bytes.len());
    let found = records.into_iter().map(brief).collect::<Vec<_>>();
    assert_eq!(found, expected.map(brief).collect::<Vec<_>>());
    assert_eq!(salvage.first_lsn, Lsn(first));
    assert_eq!(salvage.copied, copied.len() as u64);
    let found = salvage.missing.iter();
    let found = found.map(|one| (one.lsns.start.0, one.lsns.end.0, one.new_lsn.0));
    assert_eq!(found.collect::<Vec<_>>(), missing);
    assert_eq!(salvage.ends_cleanly, is_clean);
}

pub(super) fn range(from: u64, to: u64) -> Vec<u64> {
    (from..to).collect()
}

#[test]
fn what_is_whole_is_copied_whole() {
    check(closed(16), 1, &range(1, 17), &[], true);
    check(log(16, |_| ()), 1, &range(1, 17), &[], false);
    check(closed(0), 1, &[], &[], true);
    let truncated = log(16, |log| {
        log.truncate_before(Lsn(5)).unwrap();
        log.close().unwrap();
    });
    check(truncated, 5, &range(5, 17), &[], true);
}

#[test]
fn a_block_that_is_not_whole_is_missing() {
    for lsn in 1..=16 {
        let mut files = closed(16);
        flip(&mut files, lsn);
        let kept = range(1, 17).into_iter().filter(|one| *one != lsn);
        let kept: Vec<u64> = kept.collect();
        let first = if lsn == 1 { 2 } else { 1 };
        let next = if lsn == 1 { 2 } else { lsn };
        check(files, first, &kept, &[(lsn, lsn + 1, next)], lsn < 16);
    }
}

#[test]
fn a_segment_that_is_gone_is_missing() {
    let mut files = closed(20);
    files.remove(&segment(2));
    let kept = [range(1, 8), range(15, 21)].concat();
    check(files, 1, &kept, &[(8, 15, 8)], true);
}

#[test]
fn without_a_control_file_the_segments_say_what_they_are() {
    let mut files = closed(16);
    files.remove(CONTROL_NAME);
    check(files.clone(), 1, &range(1, 17), &[], false);
    // By the next one, where the first is not whole either.
    files.get_mut(&segment(1)).unwrap().fill(0);
    check(files, 8, &range(8, 17), &[], false);
    // One copy of its record is enough.
    let mut files = closed(16);
    files.get_mut(CONTROL_NAME).unwrap()[..CONTROL].fill(0);
    check(files, 1, &range(1, 17), &[], true);
}

#[test]
fn larger_granules_are_found_out() {
    for granule in [1024, 2048, 4096] {
        let world = with(Files::new());
        world.storage().device().granule.store(granule, Relaxed);
        let options = Options::default()
            .segment_bytes(16 << 10)
            .buffer_bytes(16 << 10)
            .max_unwritten_bytes(1024)
            .max_unsynced_bytes(1024);
        let log = Handle::open(&world, options).unwrap();
        for lsn in 1..=9 {
            log.append_durable(&record(lsn)).unwrap();
        }
        log.close().unwrap();
        let mut files = world.storage().files();
        check(files.clone(), 1, &range(1, 10), &[], true);
        files.remove(CONTROL_NAME);
        check(files, 1, &range(1, 10), &[], false);
    }
}

#[test]
fn a_batch_is_copied_whole_or_not() {
    // Two blocks and a half, behind a record.
    let batch: [&[u8]; 2] = [&[8; 2000], &[9; 2000]];
    let files = log(1, |log| {
        log.append_batch(&batch).unwrap();
        log.commit().unwrap();
        log.append_durable(&record(4)).unwrap();
        log.close().unwrap();
    });
    let (salvage, records) = salvaged(files.clone()).unwrap();
    assert_eq!((salvage.copied, salvage.missing.len()), (4, 0));
    assert_eq!(records[1].1, batch[0]);
    assert_eq!(records[2].1, batch[1]);
    for offset in [1024, 3072] {
        let mut files = files.clone();
        files.get_mut(&segment(1)).unwrap()[offset + 80] ^= 1;
        check(files, 1, &[1, 4], &[(2, 4, 2)], true);
    }
}

#[test]
fn a_batch_that_was_begun_again_is_not_the_one_whose_beginning_is_missing() {
    // Of a batch of three blocks the first is damaged and the last was never written.
    let mut files = log(2, |log| {
        log.append_batch(&[&[8; 1500], &[9; 1100]]).unwrap();
        log.commit().unwrap();
    });
    files.get_mut(&segment(2)).unwrap()[512..].fill(0);
    // What was made ahead may have been made when the batch was durable, and would say so.
    files.retain(|name, _| name == CONTROL_NAME || *name <= segment(2));
    let world = with(files);
    let again = open(&world);
    assert_eq!(again.append_durable(&record(3)).unwrap(), Lsn(3));
    again.append_durable(&record(4)).unwrap();
    again.close().unwrap();
    let mut files = world.storage().files();
    files.get_mut(&segment(1)).unwrap()[1536 + 80] ^= 1;
    check(files, 1, &[1, 2, 3, 4], &[], true);
}

#[test]
fn a_copy_that_cannot_be_begun_leaves_nothing() {
    let to = with(Files::new());
    to.storage().device().no_sync.store(true, Relaxed);
    let failed = salvage(&with(closed(3)), &to);
    assert!(matches!(failed, Err(Error::Io { .. })), "{failed:?}");
    assert!(to.storage().files().is_empty());
}

#[test]
fn a_batch_whose_beginning_was_truncated_away_is_not_missing_anything() {
    // Two records of a block each, and one in two segments: its end is where the second segment begins.
    let files = log(2, |log| {
        log.append_batch(&[&[3; 2000], &record(4), &record(5)])
            .unwrap();
        log.commit().unwrap();
        log.append_durable(&record(6)).unwrap();
        log.truncate_before(Lsn(5)).unwrap();
        log.close().unwrap();
    });
    let first = &files[&segment(2)][512..];
    assert_eq!(BlockHeader::decode(first).unwrap().0.batch_back, 2);
    check(files.clone(), 5, &[5, 6], &[], true);
    let mut without = files;
    without.remove(CONTROL_NAME);
    without.remove(&segment(1));
    check(without, 5, &[5, 6], &[], false);
}

#[test]
fn what_was_never_promised_is_not_copied() {
    // The next process cut off what the one before had written behind the end.
    let mut older = log(3, |_| ());
    let (name, offset) = place(3);
    let mut torn = older.clone();
    torn.get_mut(&name).unwrap()[offset..offset + 512].fill(0);
    let world = with(torn);
    let log = open(&world);
    log.append_durable(&record(33)).unwrap();
    log.append_durable(&record(4)).unwrap();
    log.close().unwrap();
    check(world.storage().files(), 1, &[1, 2, 33, 4], &[], true);
    // Of two blocks for one place the one counts that the one before leads to.
    let files = world.storage().files();
    let (name, offset) = place(3);
    let first = older.get_mut(&name).unwrap()[offset..offset + 512].to_vec();
    let mut both = files.clone();
    let mut copy = files[&name].clone();
    copy[offset..offset + 512].copy_from_slice(&first);
    both.insert(segment(9), copy);
    check(both, 1, &[1, 2, 33, 4], &[], true);
}

#[test]
fn a_block_that_cannot_be_of_the_log_is_left_out() {
    // It is damaged, so that its end is not known; the last places of its second segment are free.
    let mut files = closed(10);
    flip(&mut files, 2);
    let copied = |change: Change| {
        let mut files = files.clone();
        crafted(&mut files, 3072, change);
        let (salvage, _) = salvaged(files).unwrap();
        salvage.copied
    };
    assert_eq!(copied(|_| ()), 10, "what could be");
    let foreign: [(&str, Change); 7] = [
        ("log", |header| header.log ^= 1),
        ("position", |header| header.position += 512),
        ("segment", |header| header.position -= 2 * 4096),
        ("lsn", |header| header.lsn = MOST),
        ("epoch", |header| header.epoch = MOST),
        // Of a later opening, which would have all others forgotten.
        ("batch", |header| {
            (header.batch_back, header.epoch) = (99, header.epoch + 1)
        }),
        ("length", |header| header.length = 1024),
    ];
    for (what, change) in foreign {
        assert_eq!(copied(change), 9, "{what}");
    }
}

#[test]
fn what_is_no_log_is_not_salvaged() {
    assert!(matches!(salvaged(Files::new()), Err(Error::NoLog)));
    let mut other = closed(3);
    for copy in [0, CONTROL] {
        // Another version, with the checksum that it takes.
        let copy = &mut other.get_mut(CONTROL_NAME).unwrap()[copy..copy + 128];
        copy[20] = 9;
        let crc = crc32c::crc32c(&copy[4..]);
        copy[..4].copy_from_slice(&crc.to_le_bytes());
        // One of them may be damaged.
        let found = salvaged(other.clone());
        let opened = Handle::open(&with(other.clone()), Options::default());
        match (found, opened) {
            (Ok((salvage, _)), Ok(_)) => assert_eq!(salvage.copied, 3),
            (Err(Error::Version { found: 9, .. }), Err(Error::Version { found: 9, .. })) => {}
            other => panic!("{other:?}"),
        }
    }
    let to = with(Files::from([("letter".to_owned(), Vec::new())]));
    let refused = salvage(&with(closed(3)), &to);
    assert!(matches!(refused, Err(Error::NotEmpty { name }) if name == "letter"));
}

#[test]
fn half_a_copy_is_taken_away_and_nothing_that_others_put_there() {
    let (from, to) = (with(closed(3)), with(Files::new()));
    let copied = with_source(&from, |source| {
        let mut copy = Copy::new(source, &to, Kind::Log, None);
        copy.append(1, b"half")?;
        to.storage().create("letter").unwrap();
        copy.remove(|_| false);
        Ok(())
    });
    copied.unwrap();
    assert!(to.storage().files().keys().eq(["letter"]));
}
