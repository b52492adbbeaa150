//! The device on a real kernel.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::Duration;

use landfall_recorder::wear::{Drive, Wear};
use landfall_recorder::{Counts, EventKind, Fault, Options, Recorder};

/// Why a device cannot be made here; `LANDFALL_NO_SKIP` makes that a failure.
fn recorder(options: &Options) -> Option<Recorder> {
    match Recorder::start(options) {
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
    let Some(recorder) = recorder(&Options::new(16 << 20)) else {
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
            EventKind::Flush { in_flight } if in_flight.len == 0 => "Flush".to_owned(),
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

/// The write is answered after `HOLD`, unless this machine stands still for so long the flush finds it in flight.
#[test]
fn a_flush_says_which_writes_had_not_been_answered_when_it_arrived() {
    const HOLD: Duration = Duration::from_millis(100);
    for _ in 0..50 {
        let options = Options {
            hold: HOLD,
            ..Options::new(16 << 20)
        };
        let Some(recorder) = recorder(&options) else {
            return;
        };
        let path = recorder.device().path().to_owned();
        let write = |offset: u64| {
            let mut direct = OpenOptions::new();
            let direct = direct
                .write(true)
                .custom_flags(0o40000)
                .open(&path)
                .unwrap();
            #[repr(align(4096))]
            struct Page([u8; 4096]);
            direct.write_all_at(&Page([7; 4096]).0, offset).unwrap();
        };
        let other = OpenOptions::new().write(true).open(&path).unwrap();
        recorder.record().unwrap();
        let before = recorder.counts().writes;
        // Answered before the flush.
        write(0);
        std::thread::scope(|scope| {
            scope.spawn(|| write(8192));
            while recorder.counts().writes < before + 2 {
                std::thread::yield_now();
            }
            other.sync_all().unwrap();
        });
        other.sync_all().unwrap();
        let recording = recorder.finish().unwrap();
        let lists: Vec<Vec<usize>> = recording
            .events()
            .iter()
            .filter_map(|event| match event.kind {
                EventKind::Flush { in_flight } => Some(recording.list(in_flight).unwrap()),
                _ => None,
            })
            .collect();
        assert_eq!(lists.last().unwrap(), &[0; 0]);
        if lists.contains(&vec![1]) {
            return;
        }
    }
    panic!("no flush arrived while a write was in flight");
}

#[test]
fn where_was_written_is_kept_without_what_was_written() {
    let Some(recorder) = recorder(&Options::new(16 << 20)) else {
        return;
    };
    let device = File::options()
        .write(true)
        .open(recorder.device().path())
        .unwrap();
    let write = |offset: u64, len: usize| {
        device.write_all_at(&vec![7; len], offset).unwrap();
        device.sync_all().unwrap();
    };
    write(1 << 20, 8192);
    assert!(recorder.take_writes().is_none());
    recorder.keep_writes().unwrap();
    write(4096, 4096);
    recorder.set_faults(vec![Fault::WriteError(1)]);
    device.write_all_at(&[7; 4096], 65536).unwrap();
    assert!(device.sync_all().is_err());
    write(1 << 20, 4096);
    let writes = recorder.take_writes().unwrap();
    assert!(recorder.take_writes().is_none());
    let kept: Vec<_> = writes.iter().collect();
    assert_eq!(kept, [(4096, 4096), (1 << 20, 4096)]);
    // Where the holes end is for the filesystem that holds the contents to say.
    let held: u64 = writes.held().map(|(_, len)| len).sum();
    assert!((8192..1 << 20).contains(&held), "{held}");

    let wear = Wear::of_writes(&writes, &Drive::default()).unwrap();
    assert_eq!((wear.writes, wear.host_bytes), (2, 8192));
    assert_eq!(wear.pages_in_use, held / 4096 + 1);
    assert!(wear.steady);
}

#[test]
fn a_device_that_does_not_fit_into_memory_is_recorded_too() {
    let spill = tempfile::tempdir().unwrap();
    let options = Options {
        memory: 1 << 20,
        directory: spill.path().to_owned(),
        ..Options::new(16 << 20)
    };
    let Some(recorder) = recorder(&options) else {
        return;
    };
    recorder.record().unwrap();
    let device = OpenOptions::new()
        .write(true)
        .open(recorder.device().path())
        .unwrap();
    device.write_all_at(&vec![7; 2 << 20], 8192).unwrap();
    device.sync_all().unwrap();
    drop(device);
    assert!(recorder.spilled() > 0);
    let recording = recorder.finish().unwrap();
    let written = recording.counts(0, recording.events().len()).written_bytes;
    assert_eq!(written, 2 << 20);
    drop(recorder);
    assert_eq!(fs::read_dir(spill.path()).unwrap().count(), 0);
}

/// Who has mounts and serves a device below them waits for itself when it is killed.
#[test]
fn no_thread_that_serves_has_the_mounts_of_those_that_are_served() {
    let Some(recorder) = recorder(&Options::new(16 << 20)) else {
        return;
    };
    let ours = fs::read_link("/proc/thread-self/ns/mnt").unwrap();
    let mut serving = 0;
    for thread in fs::read_dir("/proc/self/task").unwrap() {
        let thread = thread.unwrap().path();
        // Other tests' threads may end meanwhile.
        let (Ok(name), Ok(mounts)) = (
            fs::read_to_string(thread.join("comm")),
            fs::read_link(thread.join("ns/mnt")),
        ) else {
            continue;
        };
        if ["landfall-device", "landfall-answer"].contains(&name.trim_end()) {
            serving += 1;
            assert_ne!(mounts, ours, "{name}");
        }
    }
    assert!(serving >= 2, "{serving}");
    drop(recorder);
}
