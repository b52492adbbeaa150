//! What is copied of damaged states.

use super::fixtures::{Files, open, snapshot_of, with, with_snapshots};
use super::format::{self as state_format, Chunk, Found, Header};
use super::pipe::WRITE;
use super::salvage::{StateSalvage, copy};
use crate::environment::Environment;
use crate::log::format::{BlockHeader, CONTROL_NAME, FRAME, HEADER};
use crate::{Error, Lsn};

/// What is copied, and the sums of the even and of the odd numbers that it comes to; it opens, and changes nothing.
fn salvage(files: &Files) -> Result<(StateSalvage, [u64; 2]), Error> {
    let (from, to) = (with(files.clone()), with(Files::new()));
    let copied = copy(&from, &to);
    assert!(from.storage().files() == *files);
    let copied = copied.inspect_err(|_| assert!(to.storage().files().is_empty()))?;
    let state = open(&to)?;
    assert_eq!(state.shared.log.next_lsn(), copied.end);
    let sums = [0, 1].map(|part| state.read(part, |sum| sum.0));
    Ok((copied, sums))
}

/// The sums of the even and of the odd numbers up to this one.
fn sums(last: u64) -> [u64; 2] {
    let half = last / 2;
    let even = half * (half + 1);
    [even, last * (last + 1) / 2 - even]
}

fn segments(files: &Files) -> Vec<String> {
    let names = files.keys();
    names
        .filter(|name| name.starts_with("segment-"))
        .cloned()
        .collect()
}

#[test]
fn a_whole_state_is_copied_whole() {
    for snapshots in 0..3 {
        let files = with_snapshots(snapshots);
        let (copied, found) = salvage(&files).unwrap();
        let last = 10 * (snapshots + 1);
        assert!(copied.is_whole && copied.lost.is_none() && copied.skipped.is_empty());
        assert_eq!((copied.end, found), (Lsn(last + 1), sums(last)));
        assert_eq!(copied.snapshot.is_some(), snapshots > 0);
    }
}

#[test]
fn a_damaged_snapshot_is_passed_over() {
    let mut files = with_snapshots(2);
    files.get_mut("snapshot-000002").unwrap()[4096 + 50] ^= 1;
    let (copied, found) = salvage(&files).unwrap();
    assert_eq!(copied.snapshot.as_deref(), Some("snapshot-000001"));
    assert_eq!(copied.skipped.len(), 1);
    assert_eq!((copied.end, found), (Lsn(31), sums(30)));
}

#[test]
fn without_its_log_a_state_is_what_its_snapshot_was() {
    let mut files = with_snapshots(2);
    for name in segments(&files) {
        let bytes = files.get_mut(&name).unwrap();
        bytes[512..].fill(0);
    }
    let (copied, found) = salvage(&files).unwrap();
    assert_eq!((copied.end, found), (Lsn(21), sums(20)));
    assert_eq!(copied.lost, Some(Lsn(21)..Lsn(31)));
    assert!(!copied.is_whole);
    // Without any snapshot the commands from the eleventh on say nothing.
    let mut files = with_snapshots(2);
    files.retain(|name, _| !name.starts_with("snapshot"));
    // There are older ones in the segment of the eleventh, which were truncated away.
    assert!(matches!(
        salvage(&files),
        Err(Error::NoSnapshot { first: Lsn(11), .. })
    ));
}

#[test]
fn no_command_is_passed_over() {
    let files = with_snapshots(0);
    // Each command has a block of one granule.
    for damaged in 1..=10 {
        let mut files = files.clone();
        let place = 512 * damaged;
        let (name, at) = (&segments(&files)[place / 4096], place % 4096);
        let at = at + 512 * (place / 4096);
        files.get_mut(name).unwrap()[at + 70] ^= 1;
        let (copied, found) = salvage(&files).unwrap();
        let kept = copied.end.0 - 1;
        assert_eq!(found, sums(kept));
        assert!(
            kept < 10 && copied.lost == Some(copied.end..Lsn(11)),
            "{damaged}: {copied:?}"
        );
    }
}

#[test]
fn commands_behind_a_gap_are_copied_if_a_snapshot_has_the_gap() {
    let mut files = with_snapshots(2);
    let block = HEADER + FRAME;
    let mut damaged = 0;
    for name in segments(&files) {
        let bytes = files.get_mut(&name).unwrap();
        for at in (512..bytes.len()).step_by(512) {
            if bytes[at + block..at + block + 8] == 15u64.to_le_bytes() {
                bytes[at + 70] ^= 1;
                damaged += 1;
            }
        }
    }
    assert_eq!(damaged, 1);
    let (copied, found) = salvage(&files).unwrap();
    assert_eq!(copied.snapshot.as_deref(), Some("snapshot-000002"));
    assert_eq!((copied.end, copied.lost.clone()), (Lsn(31), None));
    assert_eq!(found, sums(30));
}

#[test]
fn without_a_control_file_its_segments_and_snapshots_are_enough() {
    let mut files = with_snapshots(1);
    files.remove(CONTROL_NAME);
    let (copied, found) = salvage(&files).unwrap();
    assert_eq!((copied.end, found), (Lsn(21), sums(20)));
    assert!(!copied.is_whole);
}

#[test]
fn a_number_that_comes_again_is_not_counted_again() {
    // One of the commands is damaged, nothing says how many there were, and behind the last is one with an older number.
    let mut files = with_snapshots(0);
    files.remove(CONTROL_NAME);
    let names = segments(&files);
    files.get_mut(&names[0]).unwrap()[1024 + 70] ^= 1;
    let last = files.get_mut(&names[1]).unwrap();
    let (block, payload) = (512 * 3, 512 * 4);
    assert!(BlockHeader::decode(&last[payload..]).is_none());
    let (mut header, _) = BlockHeader::decode(&last[block..]).unwrap();
    let copy = last[block..payload].to_vec();
    last[payload..payload + 512].copy_from_slice(&copy);
    (header.position, header.lsn) = (header.position + 512, 5);
    header.encode(&mut last[payload..payload + HEADER]);
    let (copied, found) = salvage(&files).unwrap();
    assert_eq!((copied.end, found), (Lsn(2), sums(1)));
    assert_eq!(copied.lost, Some(Lsn(2)..Lsn(11)));
}

#[test]
fn a_large_snapshot_is_copied_whole() {
    let mut files = with_snapshots(1);
    let Found::Header(header) = Header::decode(&files["snapshot-000001"]) else {
        panic!("no header");
    };
    // More than is copied at once, and more than once as much.
    let chunk = |part: u32, length: usize| Chunk {
        number: 1,
        index: 0,
        part,
        lsn: 11,
        length: length as u32,
        stored: length as u32,
        is_compressed: false,
        ends_part: true,
        ends_all: false,
    };
    let end = Chunk {
        ends_all: true,
        ..chunk(2, 0)
    };
    let snapshot = snapshot_of(header, &[chunk(0, 2 * WRITE), chunk(1, WRITE / 2), end]);
    files.insert("snapshot-000001".to_owned(), snapshot.clone());
    let (from, to) = (with(files), with(Files::new()));
    copy(&from, &to).unwrap();
    let copied = to.storage().files().remove("snapshot-000001").unwrap();
    // It is one of another log, and else the same.
    assert!(copied[state_format::HEADER..] == snapshot[state_format::HEADER..]);
}
