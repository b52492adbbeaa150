//! A log, and a salvage of it, on a disk that reads wrong, or not at all; and a salvage from one disk to another.

use std::sync::atomic::Ordering::Relaxed;

use super::Handle;
use super::format::{CONTROL, CONTROL_NAME};
use super::salvage::copy as salvage;
use super::salvaging::{Files, World, check, closed, log, open, record, salvaged, segment, with};
use crate::environment::Environment;
use crate::{Error, Lsn, Options};

/// How often a salvage of this log reads.
fn reads(files: &Files) -> u64 {
    let from = with(files.clone());
    salvage(&from, &with(Files::new())).unwrap();
    from.storage().device().reads.load(Relaxed)
}

#[test]
fn what_is_read_wrong_once_is_not_copied() {
    let files = closed(3);
    for wrong in 1..=reads(&files) {
        let from = with(files.clone());
        from.storage().device().wrong_read.store(wrong, Relaxed);
        let to = with(Files::new());
        salvage(&from, &to).unwrap();
        let log = open(&to);
        let mut reader = log.read(log.first_lsn()).unwrap();
        while let Some((lsn, bytes)) = reader.next().unwrap() {
            assert!(bytes.iter().all(|byte| *byte == bytes[0]), "{wrong}: {lsn}");
        }
    }
}

#[test]
fn a_read_that_fails_once_ends_nothing() {
    let files = closed(3);
    // The last read is of a block that was whole before.
    let from = with(files.clone());
    from.storage()
        .device()
        .failing_read
        .store(reads(&files), Relaxed);
    let copied = salvage(&from, &with(Files::new())).unwrap();
    assert_eq!(copied.copied, 3);
}

#[test]
fn a_bad_sector_costs_one_block_and_is_asked_for_seldom() {
    let from = with(closed(5));
    let device = from.storage().device();
    device.bad_byte.store(512 * 3 + 10, Relaxed);
    let copied = salvage(&from, &with(Files::new())).unwrap();
    assert_eq!(copied.copied, 4);

    let world = with(Files::new());
    let options = Options::default()
        .segment_bytes(1 << 20)
        .buffer_bytes(4096)
        .max_unwritten_bytes(1024)
        .max_unsynced_bytes(1024);
    let log = Handle::open(&world, options).unwrap();
    log.append_durable(&record(1)).unwrap();
    log.close().unwrap();
    let files = world.storage().files();
    let segments = files
        .keys()
        .filter(|name| name.starts_with("segment"))
        .count() as u64;
    let from = with(files);
    let device = from.storage().device();
    device.bad_byte.store((1 << 20) - 100, Relaxed);
    assert_eq!(salvage(&from, &with(Files::new())).unwrap().copied, 1);
    // When the log is looked at, read ahead, and by itself.
    let failed = device.bad_reads.load(Relaxed);
    assert!(failed <= 4 * segments, "{failed}");
}

#[test]
fn a_control_file_of_another_log_decides_nothing() {
    let mut files = closed(16);
    files.insert(CONTROL_NAME.to_owned(), closed(3)[CONTROL_NAME].clone());
    assert_eq!(salvaged(files).unwrap().0.copied, 16);
}

#[test]
fn a_segment_that_has_the_control_files_name_is_read() {
    let mut files = closed(16);
    let control = files.remove(CONTROL_NAME).unwrap();
    let one = files.insert(segment(1), control).unwrap();
    files.insert(CONTROL_NAME.to_owned(), one);
    assert_eq!(salvaged(files).unwrap().0.copied, 16);
}

#[test]
fn the_smallest_segments_are_known_without_a_control_file() {
    let world = with(Files::new());
    let options = Options::default()
        .segment_bytes(2048)
        .buffer_bytes(4096)
        .max_unwritten_bytes(1024)
        .max_unsynced_bytes(1024);
    let log = Handle::open(&world, options).unwrap();
    for lsn in 1..=5 {
        log.append_durable(&record(lsn)).unwrap();
    }
    log.close().unwrap();
    let mut files = world.storage().files();
    files.remove(CONTROL_NAME);
    check(files, 1, &[1, 2, 3, 4, 5], &[], false);
}

#[test]
fn a_log_is_copied_to_a_disk_of_larger_blocks() {
    let to = with(Files::new());
    to.storage().device().granule.store(4096, Relaxed);
    let copied = salvage(&with(closed(5)), &to).unwrap();
    assert_eq!(copied.copied, 5);
}

#[test]
fn a_number_that_leaves_none_for_the_next_file_is_refused() {
    for number in [(1u64 << 32) + 9, (1 << 40) - 1, (1 << 62) - 1] {
        let mut files = log(3, |_| ());
        files.insert(segment(number), Vec::new());
        let world: World = with(files.clone());
        let opened = Handle::open(&world, Options::default());
        assert!(matches!(opened, Err(Error::Corrupt { .. })), "{number}");
        assert!(world.storage().files() == files);
    }
}

#[test]
fn one_copy_of_the_control_record_is_enough() {
    let files = closed(3);
    for copy in [0, CONTROL] {
        for byte in [copy, copy + CONTROL - 1] {
            let world = with(files.clone());
            let device = world.storage().device();
            *device.bad_files.lock().unwrap() = Some(CONTROL_NAME.to_owned());
            device.bad_byte.store(byte as u64, Relaxed);
            let log = open(&world);
            assert_eq!((log.first_lsn(), log.next_lsn()), (Lsn(1), Lsn(4)));
            log.append_durable(&record(4)).unwrap();
        }
        // Of the other one nothing is right.
        let mut files = files.clone();
        files.get_mut(CONTROL_NAME).unwrap()[CONTROL - copy..][..CONTROL].fill(0);
        let world = with(files.clone());
        let device = world.storage().device();
        *device.bad_files.lock().unwrap() = Some(CONTROL_NAME.to_owned());
        device.bad_byte.store(copy as u64, Relaxed);
        let opened = Handle::open(&world, Options::default());
        assert!(matches!(opened, Err(Error::Io { .. })));
        assert!(world.storage().files() == files);
    }
}
