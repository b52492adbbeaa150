//! How much is read of a log, how often, and what is made of a read that is wrong, late or in vain.

use std::sync::atomic::Ordering::Relaxed;

use super::Handle;
use super::directory::Directory;
use super::format::{Geometry, segment_name};
use super::opening::crafted;
use super::reader::Reader;
use super::salvaging::{Files, World, closed, open, record, settle, with};
use super::scan::{Place, Scanner};
use crate::environment::{Environment, FileOf, Storage};
use crate::{Error, Lsn, Options};

/// With segments so large that not all of one is read at once where less is asked for.
const LARGE: Geometry = Geometry {
    granule: 512,
    segment: 512 << 10,
};

fn open_large(world: &World) -> Handle<World> {
    let options = Options::default()
        .segment_bytes(LARGE.segment)
        .buffer_bytes(16 << 10)
        .max_unwritten_bytes(1024)
        .max_unsynced_bytes(256 << 10);
    Handle::open(world, options).unwrap()
}

#[test]
fn what_is_there_is_not_read_again() {
    // Blocks of three granules: some begin in what is read at once, and end behind it.
    const BLOCKS: u64 = 100;
    let world = with(Files::new());
    let log = open_large(&world);
    for _ in 0..BLOCKS {
        log.append_durable(&[7; 1400]).unwrap();
    }
    let shared = &log.shared;
    let still = with(world.storage().files());
    let mut open = |sequence: u64| -> std::io::Result<Option<FileOf<World>>> {
        still.storage().open(&segment_name(sequence)).map(Some)
    };
    let first = Place::at(LARGE.first_block(1));
    let mut scanner = Scanner::new(&still, LARGE, shared.log, shared.epoch, first);
    scanner.read_ahead(4096);
    for _ in 0..BLOCKS {
        scanner.next(u64::MAX, &mut open).unwrap().unwrap();
    }
    let device = still.storage().device();
    let (reads, read) = (device.reads.load(Relaxed), device.read.load(Relaxed));
    // Each time there are two whole blocks at least of which nothing is there yet.
    assert!(reads <= BLOCKS / 2, "{reads} reads");
    assert!(read <= BLOCKS * 1536 + 4096, "{read} bytes");
}

#[test]
fn behind_the_end_much_is_read_at_once() {
    let world = with(Files::new());
    let log = open_large(&world);
    log.append_durable(&record(1)).unwrap();
    settle(&log);
    let left = with(world.storage().files());
    let directory = Directory::lock(&left).unwrap();
    let device = left.storage().device();
    let before = device.reads.load(Relaxed);
    directory.examine(&mut |_| Ok(())).unwrap();
    // Of each file its head, twice where the end seems to be, and what may have been in flight: some seven hundred blocks.
    let reads = device.reads.load(Relaxed) - before;
    assert!(reads <= 30, "{reads} reads");
}

#[test]
fn one_read_that_is_wrong_is_not_the_end() {
    let files = closed(16);
    let examined = |wrong: u64| {
        let world = with(files.clone());
        let device = world.storage().device();
        device.wrong_read.store(wrong, Relaxed);
        let directory = Directory::lock(&world).unwrap();
        let examined = directory.examine(&mut |_| Ok(())).unwrap();
        assert_eq!(examined.end.next_lsn, 17, "{wrong}");
        world.storage().device().reads.load(Relaxed)
    };
    for wrong in 1..=examined(0) {
        examined(wrong);
    }
}

/// Of segments that are not read at once the next part is read while this one is looked at.
#[test]
fn what_is_read_ahead_is_what_is_there() {
    const RECORDS: u64 = 150;
    let options = Options::default().segment_bytes(4 << 20);
    let world = with(Files::new());
    let log = Handle::open(&world, options).unwrap();
    for number in 1..=RECORDS {
        log.append(&vec![number as u8; 60_000]).unwrap();
    }
    log.close().unwrap();
    let files = world.storage().files();
    let examined = |wrong: u64| {
        let world = with(files.clone());
        let device = world.storage().device();
        device.wrong_read.store(wrong, Relaxed);
        let directory = Directory::lock(&world).unwrap();
        let mut bytes = 0;
        let examined = directory.examine(&mut |visited| {
            bytes += visited.payload.len();
            Ok(())
        });
        assert_eq!(examined.unwrap().end.next_lsn, RECORDS + 1, "{wrong}");
        assert!(bytes >= RECORDS as usize * 60_000);
        device.reads.load(Relaxed)
    };
    let reads = examined(0);
    assert!(reads < 40, "{reads} reads");
    // Also one that is wrong is not the end.
    for wrong in 1..=reads {
        examined(wrong);
    }
}

#[test]
fn a_reader_tells_of_a_record_that_is_not_there() {
    let world = with(Files::new());
    let log = open(&world);
    for lsn in 1..=16 {
        log.append_durable(&record(lsn)).unwrap();
    }
    settle(&log);
    // Another block than the eighth record's, of a record that comes later, and as right as that.
    let mut files = world.storage().files();
    crafted(&mut files, 512, |_| ());
    world.storage().replace(files);
    let found = log
        .read(Lsn(8))
        .unwrap()
        .next()
        .map(|found| found.is_some());
    assert!(
        matches!(&found, Err(Error::Corrupt { what, .. }) if what == "a record is missing"),
        "{found:?}"
    );
}

#[test]
fn a_reader_tells_of_a_file_that_is_not_there() {
    let world = with(Files::new());
    let log = open(&world);
    for lsn in 1..=16 {
        log.append_durable(&record(lsn)).unwrap();
    }
    world.storage().remove(&segment_name(2)).unwrap();
    let mut reader = log.read(Lsn(7)).unwrap();
    assert_eq!(reader.next().unwrap().map(|(lsn, _)| lsn), Some(7));
    match reader.next() {
        Err(Error::Corrupt { file, offset, .. }) => {
            assert_eq!((file.to_str(), offset), (Some("segment-000002"), 512));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_has_followed_the_end_is_not_followed_any_more() {
    let world = with(Files::new());
    let log = open(&world);
    for lsn in 1..=2 {
        let mut reader = log.read(Lsn(lsn)).unwrap();
        let follower =
            std::thread::spawn(move || reader.next_or_wait().unwrap().map(|(lsn, _)| lsn));
        while World::lock(&log.shared.state).followers == 0 {
            std::thread::yield_now();
        }
        log.append_durable(&record(lsn)).unwrap();
        assert_eq!(follower.join().unwrap(), Some(lsn));
        assert_eq!(World::lock(&log.shared.state).followers, 0);
    }
}

#[test]
fn a_file_without_a_header_is_searched_to_its_end() {
    // It is not searched in whole parts, and holds nothing.
    let world = with(Files::new());
    let options = Options::default().segment_bytes(96 << 10);
    let log = Handle::open(&world, options.clone()).unwrap();
    log.append_durable(&record(1)).unwrap();
    log.close().unwrap();
    let name = segment_name(9);
    let mut files = world.storage().files();
    files.insert(name.clone(), vec![0; 96 << 10]);
    let again = with(files);
    let log = Handle::open(&again, options).unwrap();
    assert_eq!(log.next_lsn(), Lsn(2));
    assert!(!again.storage().files().contains_key(&name));
}

/// It began before the record was durable, and waits at the end of a segment that nobody needs any more when it is.
#[test]
fn a_reader_finds_its_record_when_what_is_before_it_was_truncated() {
    for fill in [0, 200, 3000] {
        let world = with(Files::new());
        let options = Options::default()
            .segment_bytes(4096)
            .buffer_bytes(64 << 10)
            .max_unwritten_bytes(64 << 10)
            .max_unsynced_bytes(1 << 20);
        let log = Handle::open(&world, options).unwrap();
        log.append_durable(&record(1)).unwrap();
        log.append(&vec![9; 12_000 - fill]).unwrap();
        let mut reader = Reader::new(&log.shared, 3).unwrap();
        assert!(reader.next().unwrap().is_none());
        log.append_durable(&record(3)).unwrap();
        log.truncate_before(Lsn(3)).unwrap();
        let (lsn, bytes) = reader.next().unwrap().unwrap();
        assert_eq!((lsn, bytes), (3, &record(3)[..]), "{fill}");
        assert!(reader.next().unwrap().is_none());
    }
}
