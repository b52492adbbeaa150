//! A directory may hold anything: nothing in it makes the log panic, take memory without bound, or give out
//! what nobody appended.
//!
//! A log is made, and then changed in every way that a seed thinks of: bits, whole files, and numbers with the
//! right checksum, which are the ones that are believed. `LANDFALL_HOSTILE_SEEDS=N` tries more of them.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use landfall::{Error, Inspection, Log, Options};

/// Where there may be blocks: at every sector at the most.
const SECTOR: usize = 512;
/// Bytes of the headers: of the control file's copies, of a segment, of a block.
const CONTROL: usize = 128;
const SEGMENT: usize = 48;
const BLOCK: usize = 64;

fn options() -> Options {
    Options::default()
        .segment_bytes(16 << 10)
        .buffer_bytes(16 << 10)
        .max_unwritten_bytes(4 << 10)
}

fn files(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Numbers that are far from any that is there, or next to one.
fn number(rng: &mut fastrand::Rng) -> u64 {
    match rng.u8(0..6) {
        0 => 0,
        1 => u64::MAX,
        2 => 1 << rng.u32(0..64),
        3 => (1 << 62) - 1,
        4 => rng.u64(0..100_000),
        _ => rng.u64(..),
    }
}

/// Changes a number of a header and gives it the right checksum.
fn forge(bytes: &mut [u8], name: &str, rng: &mut fastrand::Rng) {
    let (at, size) = match name {
        "landfall-log" => (rng.usize(0..2) * 4096, CONTROL),
        _ if rng.u8(0..4) == 0 => (0, SEGMENT),
        _ => (rng.usize(1..(bytes.len() / SECTOR).max(2)) * SECTOR, BLOCK),
    };
    let Some(header) = bytes.get_mut(at..at + size) else {
        return;
    };
    for _ in 0..rng.u8(1..3) {
        let field = 4 * rng.usize(1..size / 4 - 1);
        let value = number(rng).to_le_bytes();
        if rng.bool() {
            header[field..field + 4].copy_from_slice(&value[..4])
        } else {
            header[field..field + 8].copy_from_slice(&value)
        }
    }
    let crc = crc32c::crc32c(&header[4..]);
    header[..4].copy_from_slice(&crc.to_le_bytes());
}

fn change(directory: &Path, rng: &mut fastrand::Rng) {
    let names = files(directory);
    let name = &names[rng.usize(0..names.len())];
    let path = directory.join(name);
    let mut bytes = fs::read(&path).unwrap();
    if bytes.is_empty() {
        return;
    }
    match rng.u8(0..10) {
        0 => fs::remove_file(&path).unwrap(),
        1 => {
            let others = [
                "segment-000009",
                "segment-18446744073709551615",
                "segment-4611686018427387904",
            ];
            fs::copy(&path, directory.join(others[rng.usize(0..others.len())])).unwrap();
        }
        2 => fs::write(&path, &bytes[..rng.usize(0..bytes.len())]).unwrap(),
        3..6 => {
            for _ in 0..rng.u8(1..5) {
                let at = rng.usize(0..bytes.len());
                bytes[at] ^= 1 << rng.u8(0..8);
            }
            fs::write(&path, bytes).unwrap();
        }
        _ => {
            forge(&mut bytes, name, rng);
            fs::write(&path, bytes).unwrap();
        }
    }
}

#[test]
fn nothing_that_a_directory_holds_makes_it_panic() {
    let seeds = std::env::var("LANDFALL_HOSTILE_SEEDS").ok();
    let seeds: u64 = seeds.and_then(|text| text.parse().ok()).unwrap_or(150);
    let outside = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let original = outside.path().join("original");
    let mut appended = HashSet::new();
    for round in 0..3u8 {
        let log = Log::open(&original, options()).unwrap();
        for number in 0..40u8 {
            let record = vec![number ^ (round << 6); usize::from(number) * 40];
            appended.insert(record.clone());
            match number % 3 {
                0 => drop(log.append_durable(&record).unwrap()),
                1 => drop(log.append(&record).unwrap()),
                _ => drop(log.append_batch(&[&record, &record]).unwrap()),
            }
        }
        let large = vec![round; 30_000];
        log.append_durable(&large).unwrap();
        appended.insert(large);
        log.close().unwrap();
    }
    let (mut damaged, mut whole) = (0, 0);
    for seed in 0..seeds {
        let mut rng = fastrand::Rng::with_seed(seed);
        let place = outside.path().join("log");
        fs::create_dir(&place).unwrap();
        for name in files(&original) {
            fs::copy(original.join(&name), place.join(&name)).unwrap();
        }
        for _ in 0..rng.u8(1..4) {
            change(&place, &mut rng);
        }
        let seen = Inspection::read(&place, &mut |_| {});
        let found = read(&place);
        match (&seen, &found) {
            (Ok(_), Err(Error::Corrupt { .. })) | (Err(Error::Corrupt { .. }), Ok(_)) => {
                panic!("seed {seed}: {seen:?} and {found:?}")
            }
            (Err(seen), Err(found)) => {
                assert_eq!(seen.to_string(), found.to_string(), "seed {seed}")
            }
            _ => {}
        }
        match found {
            Ok(records) => {
                whole += 1;
                for record in records {
                    assert!(
                        appended.contains(&record),
                        "seed {seed}: what nobody appended"
                    );
                }
            }
            Err(error) => {
                damaged += 1;
                assert!(!error.to_string().is_empty());
            }
        }
        fs::remove_dir_all(&place).unwrap();
    }
    println!("{whole} were read to an end, {damaged} were refused");
    assert!(whole > 0 && damaged > 0);
}

fn read(place: &Path) -> Result<Vec<Vec<u8>>, Error> {
    let log = Log::open(place, options())?;
    let mut reader = log.read(log.first_lsn())?;
    let mut records = Vec::new();
    while let Some(record) = reader.next()? {
        records.push(record.bytes.to_vec());
    }
    log.append_durable(&[])?;
    Ok(records)
}
