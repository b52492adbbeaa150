//! Damage that is more than a bit: that it is told from an end, and where it is said to be.

use super::Handle;
use super::control::ControlFile;
use super::directory::Directory;
use super::format::{
    BlockHeader, CONTROL, CONTROL_NAME, Control, HEADER, SegmentHeader, Shutdown, segment_name,
};
use super::salvaging::{Files, closed, log, open, place, record, settle, with};
use crate::{Error, Options};

/// How many records there are, and how many blocks behind the end seem to have been in flight.
fn examined(files: Files) -> Result<(u64, u64), Error> {
    let directory = Directory::lock(&with(files))?;
    let end = directory.examine(&mut |_| Ok(()))?.end;
    Ok((end.next_lsn - 1, end.cut_off))
}

/// Where it is damaged, and how.
fn damage(files: Files) -> (String, u64, String) {
    match examined(files) {
        Err(Error::Corrupt { file, offset, what }) => {
            (file.to_str().unwrap().to_owned(), offset, what)
        }
        other => panic!("{other:?}"),
    }
}

/// Puts a control record there that was changed, both copies of it.
pub(super) fn recorded(files: &mut Files, change: impl FnOnce(&mut Control)) {
    let mut record = ControlFile::open(&with(files.clone())).unwrap().record;
    change(&mut record);
    let file = files.get_mut(CONTROL_NAME).unwrap();
    for copy in [0, CONTROL] {
        record.encode(&mut file[copy..copy + CONTROL]);
    }
}

/// The headers of segments promise nothing.
pub(super) fn headers_say_nothing(files: &mut Files) {
    for (_, bytes) in files.iter_mut().filter(|(name, _)| *name != CONTROL_NAME) {
        let header = SegmentHeader::decode(bytes).unwrap();
        SegmentHeader {
            durable: 0,
            ..header
        }
        .encode(bytes);
    }
}

#[test]
fn a_block_of_which_nothing_is_left_is_where_it_was() {
    let whole = closed(16);
    for lsn in 1..=16 {
        let (name, offset) = place(lsn);
        let mut files = whole.clone();
        files.get_mut(&name).unwrap()[offset..offset + 512].fill(0);
        let (file, found, _) = damage(files);
        assert_eq!((file, found), (name, offset as u64), "{lsn}");
    }
}

#[test]
fn a_block_that_did_not_fit_is_looked_for_in_the_next_segment() {
    // Five blocks, and two places: the sixth has four granules. It is damaged, and its header is not.
    let mut files = log(5, |log| {
        log.append_durable(&[6; 1600]).unwrap();
        log.append_durable(&record(7)).unwrap();
        log.close().unwrap();
    });
    files.get_mut(&segment_name(2)).unwrap()[512 + 900] ^= 1;
    let (file, offset, _) = damage(files);
    assert_eq!((file, offset), (segment_name(2), 512));
}

#[test]
fn the_first_block_of_a_segment_far_ahead_tells_of_what_was_durable() {
    let mut files = log(64, settle);
    // All that is left behind the first block is one that is further away than what can have been in flight; and the
    // headers of segments say nothing.
    headers_say_nothing(&mut files);
    for (name, bytes) in files.iter_mut().filter(|(name, _)| *name != CONTROL_NAME) {
        let kept = match &**name {
            "segment-000001" | "segment-000010" => 1024,
            _ => 512,
        };
        bytes[kept..].fill(0);
    }
    recorded(&mut files, |record| {
        assert!(record.end + record.window < 10 * 4096);
        (record.end, record.end_lsn, record.end_chain) = (4096 + 512, 1, 0);
    });
    let last = &files["segment-000010"][512..];
    assert!(BlockHeader::decode(last).unwrap().0.durable > 4096 + 1024);
    let (file, offset, what) = damage(files.clone());
    assert_eq!((file, offset), (segment_name(1), 1024));
    assert_eq!(what, "a block that was durable is not valid");
    // Without it nothing tells of the others.
    files.get_mut("segment-000010").unwrap()[512..].fill(0);
    assert_eq!(examined(files).unwrap(), (1, 0));
}

#[test]
fn a_log_has_the_records_that_its_control_record_knows() {
    let (left, closed) = (log(3, |_| ()), closed(3));
    for (files, next, what) in [
        (&left, 5, "records that were durable are missing"),
        (&closed, 5, "records that were durable are missing"),
        (
            &closed,
            3,
            "the log does not end as it did when it was closed",
        ),
    ] {
        let mut files = files.clone();
        recorded(&mut files, |record| record.end_lsn = next);
        assert_eq!(damage(files).2, what, "{next}");
    }
}

#[test]
fn a_closed_log_ends_at_the_place_where_it_was_closed() {
    // It was killed with one more record than when this was noted.
    let mut files = log(3, |_| ());
    recorded(&mut files, |record| {
        record.shutdown = Shutdown::Closed;
        assert_eq!(record.end_lsn, 1);
    });
    let what = damage(files).2;
    assert_eq!(what, "the log does not end as it did when it was closed");
}

#[test]
fn a_bit_of_what_never_counted_is_no_damage() {
    // What is where the log ends belongs there, and follows another block than the one before it.
    let mut files = log(3, |_| ());
    let (name, offset) = place(3);
    let block = &mut files.get_mut(&name).unwrap()[offset..offset + HEADER];
    let (mut header, _) = BlockHeader::decode(block).unwrap();
    header.previous ^= 1;
    header.encode(block);
    assert_eq!(examined(files.clone()).unwrap(), (2, 1));
    files.get_mut(&name).unwrap()[offset + 20] ^= 1;
    assert_eq!(examined(files).unwrap(), (2, 0));
}

#[test]
fn blocks_that_are_cut_off_are_counted() {
    // Of the last five the first is lost; one of the others begins a segment.
    let mut files = log(12, settle);
    for lsn in 6..=12 {
        // Nothing says that any of them was durable.
        let (name, offset) = place(lsn);
        let block = &mut files.get_mut(&name).unwrap()[offset..offset + 512];
        let (header, _) = BlockHeader::decode(block).unwrap();
        BlockHeader {
            durable: 4096 + 512,
            ..header
        }
        .encode(block);
    }
    headers_say_nothing(&mut files);
    let (name, offset) = place(6);
    files.get_mut(&name).unwrap()[offset..offset + 512].fill(0);
    recorded(&mut files, |record| {
        (record.end, record.end_lsn, record.end_chain) = (4096 + 512, 1, 0);
    });
    // The first block of the second segment is seen as one of what was in flight, and as the first of a segment ahead.
    assert_eq!(examined(files).unwrap(), (5, 7));
}

#[test]
fn a_control_file_of_another_version_may_be_shorter() {
    let mut files = closed(3);
    let file = files.get_mut(CONTROL_NAME).unwrap();
    for copy in [0, CONTROL] {
        file[copy + 20] = 9;
    }
    file.truncate(2 * CONTROL);
    let opened = Handle::open(&with(files), Options::default()).map(drop);
    assert!(matches!(opened, Err(Error::Version { found: 9, .. })));
}

#[test]
fn nothing_is_cut_off_of_a_log_that_was_killed() {
    for records in [0, 1, 6, 7, 8, 20] {
        let files = log(records, |_| ());
        assert_eq!(examined(files.clone()).unwrap(), (records, 0));
        // Nor changed but by who opens it.
        assert_eq!(open(&with(files)).next_lsn().0, records + 1);
    }
}
