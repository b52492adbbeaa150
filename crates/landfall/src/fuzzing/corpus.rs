//! What fuzzing has kept, and what it begins from: `corpus`, with a directory for each target.
//!
//! Tests change it at random for a second or two, without looking at which code is reached. `LANDFALL_FUZZ_SECONDS=3600` has
//! them go on for longer, and `LANDFALL_FUZZ_FROM=N` begins from that seed.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::checksums::{Checksum, correct};
use super::memory::{GRANULE, Memory};

/// Waits until all segments are made that are made ahead: the same files each time.
pub(super) fn settle(memory: &Memory) {
    let mut files = memory.files();
    let mut since = Instant::now();
    while since.elapsed() < Duration::from_millis(20) {
        std::thread::yield_now();
        let now = memory.files();
        if now != files {
            (files, since) = (now, Instant::now());
        }
    }
}

/// Changes a row of bytes and makes its checksums right again.
pub(super) fn forged(
    bytes: &[u8],
    right_checksums: fn(&[u8]) -> Vec<Checksum>,
    change: impl FnOnce(&mut Vec<u8>),
) -> Vec<u8> {
    let mut forged = bytes.to_vec();
    change(&mut forged);
    correct(&mut forged, &right_checksums(bytes));
    forged
}

/// Puts a number into a row of bytes.
pub(super) fn put(bytes: &mut [u8], at: usize, number: u64) {
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

fn directory(target: &str) -> PathBuf {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    corpus.join(target)
}

/// All that is kept for a target, in the order of names.
fn kept(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(directory(target)).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).unwrap();
        (path, bytes)
    };
    paths.into_iter().map(read).collect()
}

/// Whether the seeds are to be written.
fn is_written() -> bool {
    std::env::var_os("LANDFALL_UPDATE").is_some()
}

/// Does what the target does with all that is kept for it, after writing the seeds if that is asked for.
pub(super) fn replay(target: &str, seeds: &[(&str, Vec<u8>)], exercise: fn(&[u8])) {
    let directory = directory(target);
    if is_written() {
        fs::create_dir_all(&directory).unwrap();
        for (name, bytes) in seeds {
            fs::write(directory.join(name), bytes).unwrap();
        }
    }
    let kept = kept(target);
    for (path, bytes) in &kept {
        println!("{}", path.display());
        exercise(bytes);
    }
    assert!(
        kept.len() >= seeds.len(),
        "no corpus in {}",
        directory.display()
    );
}

/// Does what the target does with what is kept for it, after changing something of it, as often as there is time.
pub(super) fn change(
    target: &str,
    right_checksums: fn(&[u8]) -> Vec<Checksum>,
    exercise: fn(&[u8]),
) {
    let number = |name| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse().expect("a number"))
    };
    let seconds = number("LANDFALL_FUZZ_SECONDS").unwrap_or(2);
    let first = number("LANDFALL_FUZZ_FROM").unwrap_or(0);
    if is_written() {
        // By another test, which may be at it.
        return;
    }
    let kept = kept(target);
    let begin = Instant::now();
    let mut seed = first;
    while begin.elapsed() < Duration::from_secs(seconds) {
        let mut rng = Rng::with_seed(seed);
        let (path, bytes) = &kept[rng.usize(0..kept.len())];
        let right = right_checksums(bytes);
        let mut bytes = bytes.clone();
        for _ in 0..rng.u8(1..5) {
            change_one(&mut bytes, &right, &mut rng);
        }
        if rng.u8(0..8) > 0 {
            correct(&mut bytes, &right);
        }
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| exercise(&bytes))) {
            println!("LANDFALL_FUZZ_FROM={seed}, of {}", path.display());
            resume_unwind(panic);
        }
        seed += 1;
    }
    println!("{} changed inputs of {target}", seed - first);
}

/// Changes something, mostly of what has a checksum.
fn change_one(bytes: &mut Vec<u8>, right: &[Checksum], rng: &mut Rng) {
    let place = |rng: &mut Rng| {
        let checked = rng.usize(0..right.len().max(1));
        let range = match right.get(checked).filter(|_| rng.u8(0..4) > 0) {
            Some(one) => one.at..one.at + one.len,
            None => 0..bytes.len(),
        };
        rng.usize(range.start.min(bytes.len() - 1)..range.end.min(bytes.len()))
    };
    let (at, other) = (place(rng), place(rng));
    let rest = bytes.len() - at.max(other);
    match rng.u8(0..9) {
        0 => bytes[at] ^= 1 << rng.u8(0..8),
        1 => bytes[at] = [0, 1, 2, 0x7f, 0x80, 0xff][rng.usize(0..6)],
        2 => bytes[at] = rng.u8(..),
        3 => bytes[at] = bytes[at].wrapping_add(1),
        4 => bytes[at] = bytes[at].wrapping_sub(1),
        5 => {
            let number = [0, 1, u64::MAX, 1 << 62, rng.u64(..)][rng.usize(0..5)];
            let len = rest.min([2, 4, 8][rng.usize(0..3)]);
            bytes[at..at + len].copy_from_slice(&number.to_le_bytes()[..len]);
        }
        6 => {
            let len = rest.min(rng.usize(1..32));
            bytes.copy_within(other..other + len, at);
        }
        7 => {
            let end = bytes.len().min(at + rng.usize(1..GRANULE as usize));
            let by = rng.usize(0..end - at);
            if rng.bool() {
                bytes[at..end].rotate_left(by);
            } else {
                bytes[at..end].rotate_right(by.min(4));
            }
        }
        _ if rng.u8(0..4) == 0 => bytes.truncate(at.max(1)),
        _ => {
            let len = rest.min(rng.usize(1..GRANULE as usize));
            bytes[at..at + len].fill(0);
        }
    }
}
