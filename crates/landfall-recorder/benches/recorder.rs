//! How many crash states a minute, and how many MB a second.
//!
//! `cargo bench -p landfall-recorder`, as root. For each filesystem a program appends records of 4 KiB
//! with fdatasync, crash states of what it left are mounted, the file is read and held against what was
//! acknowledged, and the rate is printed. Then the device alone is written from one end to the other.
//! Targets (on two processors): 5,000 states a minute on ext4, 1,000 on xfs, 400 MB/s recorded.

use std::error::Error;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use landfall_os::{Mount, Payload, sync_filesystem};
use landfall_recorder::crash::{CrashDisk, CrashState, Model, Survey, Walker};
use landfall_recorder::{EventKind, Options, Recorder, Recording};

const RECORD: usize = 4096;
const RECORDS: u64 = 100;
const STATES: usize = 2000;
const WORKERS: usize = 2;
const SEQUENTIAL_MIB: u64 = 1024;
const ROUNDS: usize = 3;

struct Kind {
    name: &'static str,
    mib: u64,
    mkfs: &'static [&'static str],
    mount: &'static str,
    target: Option<f64>,
}

const EXT: [&str; 4] = ["-q", "-F", "-E", "nodiscard,lazy_itable_init=0"];
const KINDS: [Kind; 5] = [
    Kind {
        name: "ext2",
        mib: 64,
        mkfs: &EXT,
        mount: "",
        target: None,
    },
    Kind {
        name: "ext3",
        mib: 64,
        mkfs: &EXT,
        mount: "",
        target: None,
    },
    Kind {
        name: "ext4",
        mib: 64,
        mkfs: &EXT,
        mount: "",
        target: Some(5000.0),
    },
    Kind {
        name: "xfs",
        mib: 304,
        mkfs: &["-q", "-f", "-K"],
        mount: "nouuid",
        target: Some(1000.0),
    },
    Kind {
        name: "btrfs",
        mib: 128,
        mkfs: &["-q", "-f", "-K"],
        mount: "",
        target: None,
    },
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("{STATES} crash states of {RECORDS} durable appends of 4 KiB, {WORKERS} workers:");
    for kind in &KINDS {
        let recording = record(kind)?;
        let survey = Survey::of(&recording, Model::Subset, 1, STATES)?;
        for _ in 0..ROUNDS {
            let begin = Instant::now();
            let failing = explore(kind, &recording, &survey.states)?;
            let rate = survey.states.len() as f64 / begin.elapsed().as_secs_f64() * 60.0;
            let target = kind.target.map_or(String::new(), |least| {
                format!(
                    ", target {least:.0}: {}",
                    if rate >= least { "met" } else { "missed" }
                )
            });
            println!(
                "  {:5} {rate:7.0} states a minute, {failing} failing{target}",
                kind.name
            );
        }
    }
    println!("{SEQUENTIAL_MIB} MiB written from one end of the device to the other, recorded:");
    for memory in [(2 * SEQUENTIAL_MIB) << 20, 64 << 20] {
        for _ in 0..ROUNDS {
            println!("  {}", sequential(memory)?);
        }
    }
    Ok(())
}

fn record(kind: &Kind) -> Result<Recording, Box<dyn Error>> {
    let recorder = Recorder::start(&Options {
        memory: 1 << 30,
        ..Options::new(kind.mib << 20)
    })?;
    let device = recorder.device().path();
    let made = Command::new(format!("mkfs.{}", kind.name))
        .args(kind.mkfs)
        .arg(device)
        .output()?;
    if !made.status.success() {
        return Err(String::from_utf8_lossy(&made.stderr).into());
    }
    let target = tempfile::tempdir()?;
    let mount = Mount::new(device, target.path(), kind.name, "")?;
    sync_filesystem(&File::open(target.path())?)?;
    recorder.record()?;
    let file = File::create(target.path().join("file"))?;
    File::open(target.path())?.sync_all()?;
    let mut payload = Payload::new(RECORD, 1);
    for number in 0..RECORDS {
        file.write_all_at(payload.stamped(number), number * RECORD as u64)?;
        file.sync_data()?;
        recorder.mark(b"acknowledged");
    }
    drop(file);
    let recording = recorder.finish()?;
    mount.unmount()?;
    Ok(recording)
}

/// Checks the states; returns how many lack something acknowledged.
fn explore(kind: &Kind, recording: &Recording, states: &[CrashState]) -> io::Result<usize> {
    let next = AtomicUsize::new(0);
    let failing = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| {
                scope.spawn(|| {
                    let directory = std::env::temp_dir();
                    let mut disk = CrashDisk::start(recording, 1 << 30, &directory)?;
                    let mut walker = Walker::new(recording)?;
                    let target = tempfile::tempdir()?;
                    while let Some(state) = states.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let composition = walker.composition(&state.name)?;
                        disk.load(recording, state.name.cut, &composition.pieces)?;
                        let device = disk.device().path();
                        let mount = Mount::new(device, target.path(), kind.name, kind.mount)?;
                        let expected = acknowledged(recording, state.position);
                        if there(&target.path().join("file")) < expected {
                            failing.fetch_add(1, Ordering::Relaxed);
                        }
                        mount.unmount()?;
                    }
                    io::Result::Ok(())
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| {
            worker
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("a worker panicked")))
        })
    })?;
    Ok(failing.into_inner())
}

fn acknowledged(recording: &Recording, position: usize) -> u64 {
    let events = &recording.events()[..position];
    let marks = events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::Mark(_)));
    marks.count() as u64
}

/// Records at the beginning of the file that are as they were written.
fn there(path: &Path) -> u64 {
    let Ok(bytes) = fs::read(path) else {
        return 0;
    };
    let mut payload = Payload::new(RECORD, 1);
    let whole = bytes
        .chunks_exact(RECORD)
        .zip(0..)
        .take_while(|(chunk, number)| payload.stamped(*number) == *chunk);
    whole.count() as u64
}

/// Writes the whole device once, directly, and says how fast that was recorded.
fn sequential(memory: u64) -> Result<String, Box<dyn Error>> {
    let recorder = Recorder::start(&Options {
        memory,
        ..Options::new(SEQUENTIAL_MIB << 20)
    })?;
    recorder.record()?;
    let device = File::options()
        .write(true)
        .custom_flags(rustix::fs::OFlags::DIRECT.bits() as i32)
        .open(recorder.device().path())?;
    let mut payload = Payload::new(1 << 20, 1);
    let begin = Instant::now();
    for number in 0..SEQUENTIAL_MIB {
        device.write_all_at(payload.stamped(number), number << 20)?;
    }
    device.sync_all()?;
    let rate = (SEQUENTIAL_MIB << 20) as f64 / begin.elapsed().as_secs_f64() / 1e6;
    drop(device);
    let recording = recorder.finish()?;
    let met = if rate >= 400.0 { "met" } else { "missed" };
    Ok(format!(
        "{rate:5.0} MB/s, {} MiB of the recording on disk, target 400: {met}",
        recording.spilled() >> 20
    ))
}
