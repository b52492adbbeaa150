//! Everything that fuzzing has kept is tried again: `fuzz/corpus/reader`, and whatever once went wrong.
//!
//! `LANDFALL_UPDATE=1` writes the logs from which fuzzing begins.

mod directory;
mod memory;

use std::fs;
use std::path::Path;

use landfall::{Log, Lsn};
use memory::Memory;

fn corpus() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/reader")
}

/// Logs of all that a log can have in it.
fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let make = |work: &dyn Fn(&Memory)| {
        let memory = Memory::default();
        work(&memory);
        directory::bytes(&memory.files())
    };
    let open = |memory: &Memory| Log::open_in(memory, directory::options()).unwrap();
    let empty = make(&|memory| open(memory).close().unwrap());
    let records = make(&|memory| {
        let log = open(memory);
        for size in [0, 1, 200, 447, 448, 449, 1000] {
            log.append_durable(&vec![size as u8; size]).unwrap();
        }
        log.close().unwrap();
    });
    let batches = make(&|memory| {
        let log = open(memory);
        log.append_batch(&[b"a", b"", b"batch"]).unwrap();
        log.append_batch(&[&[1; 3000], &[2; 3000]]).unwrap();
        log.append_durable(&[3; 9000]).unwrap();
        log.close().unwrap();
    });
    let reopened = make(&|memory| {
        for epoch in 0..4u8 {
            let log = open(memory);
            log.append_durable(&[epoch; 700]).unwrap();
            log.close().unwrap();
        }
    });
    let truncated = make(&|memory| {
        let log = open(memory);
        for number in 0..30u8 {
            log.append_durable(&[number; 400]).unwrap();
        }
        log.truncate_before(Lsn(20)).unwrap();
        log.append_durable(&[30; 4000]).unwrap();
        log.close().unwrap();
    });
    vec![
        ("empty", empty),
        ("records", records),
        ("batches", batches),
        ("reopened", reopened),
        ("truncated", truncated),
    ]
}

#[test]
fn what_fuzzing_has_kept_does_no_harm() {
    let directory = corpus();
    if std::env::var_os("LANDFALL_UPDATE").is_some() {
        fs::create_dir_all(&directory).unwrap();
        for (name, bytes) in seeds() {
            fs::write(directory.join(name), bytes).unwrap();
        }
    }
    let mut tried = 0;
    for entry in fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        directory::exercise(&fs::read(&path).unwrap());
        tried += 1;
    }
    assert!(
        tried >= seeds().len(),
        "no corpus in {}",
        directory.display()
    );
}

#[test]
fn logs_to_begin_with_are_read_whole() {
    for (name, bytes) in seeds() {
        let right = directory::right_checksums(&bytes);
        assert!(right.len() >= 2, "{name}: {right:?}");
        directory::exercise(&bytes);
        // Another program's log of the same bytes is the same log.
        assert_eq!(directory::bytes(&directory::files(&bytes)), bytes, "{name}");
    }
}
