//! Wear of recordings, and of writes noted without one.

use std::io;

use super::*;
use crate::Recording;
use crate::fixtures::RecordingBuilder;

fn drive(text: &str) -> Drive {
    text.parse().unwrap()
}

/// Pages at random, all equally likely, of a device of so many.
fn uniform(pages: u32, count: u32) -> Writes {
    let mut random = fastrand::Rng::with_seed(5);
    let mut writes = Writes::new(u64::from(pages) * PAGE).unwrap();
    writes.hold(0, u64::from(pages) * PAGE);
    for _ in 0..count {
        writes.push(u64::from(random.u32(0..pages)) * PAGE, PAGE);
    }
    writes
}

fn recording() -> Recording {
    RecordingBuilder::new(1 << 20)
        .base(8 * PAGE, vec![1; 2 * PAGE as usize])
        .write(0, vec![2; PAGE as usize])
        .mark(b"begin")
        .sector(40, 3)
        .flush()
        .write(12 * PAGE, vec![4; 3 * PAGE as usize])
        .refused()
        .mark(b"end")
        .mark(b"begin")
        .sector(0, 5)
        .build()
}

#[test]
fn the_writes_between_two_marks_are_found() {
    let recording = recording();
    let begin = recording.find_mark(b"begin", 0).unwrap().unwrap();
    let end = recording.find_mark(b"end", begin).unwrap().unwrap();
    assert_eq!((begin, end), (1, 6));
    assert_eq!(recording.find_mark(b"begin", begin + 1).unwrap(), Some(7));
    assert_eq!(recording.find_mark(b"beg", 0).unwrap(), None);
    assert_eq!(recording.find_mark(b"begin", 1000).unwrap(), None);
    let between: Vec<_> = recording.writes(begin, end).collect();
    assert_eq!(between, [(40 * 512, 512), (12 * PAGE, 3 * PAGE)]);

    let writes = Writes::of(&recording, begin, end).unwrap();
    assert_eq!(writes.iter().collect::<Vec<_>>(), between);
    let held: Vec<_> = writes.held().collect();
    assert_eq!(held, [(8 * PAGE, 2 * PAGE), (0, PAGE)]);
    assert_eq!((writes.len(), writes.bytes()), (2, 512 + 3 * PAGE));

    let wear = Wear::between(&recording, begin, end, &Drive::default()).unwrap();
    // A sector is programmed as a page.
    assert_eq!(wear.page_bytes, 4 * PAGE);
    assert_eq!(wear.host_bytes, 512 + 3 * PAGE);
    assert_eq!((wear.writes, wear.pages_in_use), (2, 3 + 4));
    assert!(wear.steady);
}

#[test]
fn all_of_a_recording_is_played_if_nothing_else_is_said() {
    let wear = Wear::of(&recording(), &Drive::default()).unwrap();
    assert_eq!((wear.writes, wear.host_bytes), (4, 1024 + 4 * PAGE));
    assert_eq!(wear.pages_in_use, 2 + 1 + 1 + 3);
    assert!((wear.rounding() - 6.0 * 8.0 / 34.0).abs() < 1e-12);
}

#[test]
fn where_nothing_was_written_there_is_no_wear() {
    let recording = RecordingBuilder::new(1 << 20).flush().build();
    let error = Wear::of(&recording, &Drive::default()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert!(error.to_string().contains("take a longer recording"));
    assert!(Writes::new(2 << 40).is_err());
    assert!(Flash::new(&drive("page=512"), 3 << 40).is_err());
}

#[test]
fn a_long_run_comes_to_what_is_known() {
    let pages = 1 << 13;
    let wear = Wear::of_writes(&uniform(pages, 16 * pages), &drive("utilisation=80%")).unwrap();
    assert!(wear.steady);
    assert!((wear.rewrites - 16.0).abs() < 0.01);
    assert_eq!(wear.pages_in_use, u64::from(pages));
    assert_eq!(wear.blocks, 160);
    // 16 times is not for ever: the same pages come again in the same order.
    assert!((2.3..2.65).contains(&wear.amplification), "{wear:?}");
    assert_eq!(wear.passes, 1 + 8);
    let written = wear.erased_blocks * 64.0 * PAGE as f64;
    assert!((written / wear.nand_bytes as f64 - 1.0).abs() < 0.01);
}

#[test]
fn a_short_run_is_played_until_it_has_filled_the_flash() {
    let pages = 1 << 12;
    let writes = uniform(pages, 100);
    let wear = Wear::of_writes(&writes, &drive("utilisation=90%")).unwrap();
    assert!(wear.steady && wear.passes > 3 * 4096 / 90 * 100 / 100);
    // What comes again in the same order dies in the same order.
    assert!(wear.amplification < 1.2, "{wear:?}");
    assert!(wear.rewrites < 1.1);
}

#[test]
fn data_that_is_never_written_again_is_no_spare_flash() {
    let pages = 1 << 13;
    let alone = uniform(pages, 16 * pages);
    let mut beside = Writes::new(alone.size() * 2).unwrap();
    beside.hold(0, beside.size());
    for (offset, len) in alone.iter() {
        beside.push(offset, len);
    }
    let amplification = |writes, collector: &str| {
        let drive = drive(&format!("collector={collector},utilisation=90%"));
        let wear = Wear::of_writes(writes, &drive).unwrap();
        let blocks = writes.size() as f64 / PAGE as f64 / 64.0 / 0.9;
        assert!((wear.blocks as f64 - blocks).abs() <= 1.0);
        wear.amplification
    };
    // Greedy leaves blocks of cold data alone, so that their share of the spare flash serves the rest.
    let (greedy, greedy_beside) = (
        amplification(&alone, "greedy"),
        amplification(&beside, "greedy"),
    );
    assert!(greedy_beside < 0.75 * greedy, "{greedy_beside} {greedy}");
    // First in, first out moves them on and on.
    let (fifo, fifo_beside) = (
        amplification(&alone, "fifo"),
        amplification(&beside, "fifo"),
    );
    assert!(fifo_beside > 0.9 * fifo, "{fifo_beside} {fifo}");
}

/// As a file that is written on a filesystem with a journal: pages in order, four of a ring for each,
/// and one that is always the same; beside them data that rests.
fn journalled() -> Writes {
    const FILE: u64 = 15_000;
    const RING: u64 = 4096;
    let mut writes = Writes::new((FILE + RING + 2000) * PAGE).unwrap();
    writes.hold(0, writes.size());
    for page in 0..FILE {
        writes.push(page * PAGE, PAGE);
        writes.push((FILE + 4 * page % RING) * PAGE, 4 * PAGE);
        writes.push((FILE + RING) * PAGE, PAGE);
    }
    writes
}

#[test]
fn rounds_that_take_turns_count_as_their_mean() {
    let wear = Wear::of_writes(&journalled(), &drive("collector=fifo")).unwrap();
    // The second to fourth round come to 8.99, 8.96 and 8.93; then 6.5 and 9.04 take turns.
    assert!((7.6..8.0).contains(&wear.amplification), "{wear:?}");
    assert!(wear.steady);
    assert_eq!(wear.passes, 1 + 16);
}

#[test]
fn a_busier_host_wears_a_drive_out_sooner() {
    let wear = Wear::of_writes(&uniform(1 << 12, 1 << 15), &Drive::default()).unwrap();
    let drive = Drive::default();
    let slow = wear.years(&drive, 1e6);
    assert!((wear.years(&drive, 2e6) * 2.0 - slow).abs() < 1e-9 * slow);
    assert_eq!(slow, drive.years(1e6, wear.amplification));
    let each = wear.nand_bytes_per(1 << 15);
    assert!((each - wear.amplification * PAGE as f64).abs() < 1e-6);
}
