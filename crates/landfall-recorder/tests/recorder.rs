//! The device on a real kernel.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;

use landfall_recorder::{Counts, EventKind, Options, Recorder};

/// Why a device cannot be made here; `LANDFALL_NO_SKIP` makes that a failure.
fn recorder(size: u64) -> Option<Recorder> {
    match Recorder::start(&Options::new(size)) {
        Ok(recorder) => Some(recorder),
        Err(error) if std::env::var_os("LANDFALL_NO_SKIP").is_none() => {
            println!("skipped: no recorder can be made here: {error}");
            None
        }
        Err(error) => panic!("no recorder can be made here: {error}"),
    }
}

#[test]
fn writes_flushes_and_marks_are_recorded_in_order() {
    let Some(recorder) = recorder(16 << 20) else {
        return;
    };
    let path = recorder.device().path().to_owned();
    let mut device = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    recorder.record().unwrap();
    let before = recorder.counts();
    device.write_all_at(&[7; 4096], 8192).unwrap();
    device.sync_all().unwrap();
    recorder.mark(b"one");
    device.write_all_at(&[9; 4096], 4096).unwrap();
    device.sync_all().unwrap();
    File::options()
        .write(true)
        .open(recorder.mark_path())
        .unwrap()
        .write_all(b"two")
        .unwrap();
    let counted = recorder.counts() - before;
    let recording = recorder.finish().unwrap();
    let mut seen = Vec::new();
    for event in recording.events() {
        seen.push(match event.kind {
            EventKind::Write { offset, data } => {
                let bytes = recording.bytes(data).unwrap();
                format!("write {} at {offset} of {}", bytes.len(), bytes[0])
            }
            EventKind::Mark(data) => String::from_utf8(recording.bytes(data).unwrap()).unwrap(),
            other => format!("{other:?}"),
        });
    }
    assert_eq!(
        seen,
        [
            "write 4096 at 8192 of 7",
            "Flush",
            "one",
            "write 4096 at 4096 of 9",
            "Flush",
            "two"
        ]
    );
    assert_eq!(
        counted,
        Counts {
            reads: counted.reads,
            read_bytes: counted.read_bytes,
            ..recording.counts(0, recording.events().len())
        }
    );
    let mut first = [1; 1];
    device.read_exact(&mut first).unwrap();
    assert_eq!(first, [0]);
    drop(device);
    let mount = recorder.mark_path().parent().unwrap().to_owned();
    drop(recorder);
    assert!(fs::metadata(mount).is_err());
}
