//! The log on a real disk.

use std::fs::{self, OpenOptions};
use std::future::Future;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::pin::pin;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use landfall::{Error, Inspection, Log, Lsn, Options};

/// A directory on a disk: some systems keep temporary files in memory.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
}

fn small() -> Options {
    Options {
        segment_bytes: 64 << 10,
        buffer_bytes: 32 << 10,
        write_bytes: 16 << 10,
        ..Options::default()
    }
}

fn record(number: u64, len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (number as usize * 31 + at) as u8)
        .collect()
}

fn contents(log: &Log) -> Vec<(u64, Vec<u8>)> {
    let mut reader = log.read(log.first()).unwrap();
    let mut found = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        found.push((record.lsn.0, record.bytes.to_vec()));
    }
    found
}

#[test]
fn records_of_all_lengths_come_back_in_their_order() {
    let outside = directory();
    let place = outside.path().join("log");
    let lengths = [
        0,
        1,
        200,
        443,
        444,
        445,
        512,
        4096,
        20_000,
        64 << 10,
        200_000,
        3,
    ];
    let mut expected = Vec::new();
    for round in 0..3u64 {
        let log = Log::open(&place, small()).unwrap();
        assert_eq!(contents(&log), expected, "round {round}");
        for &len in &lengths {
            let number = expected.len() as u64 + 1;
            let lsn = log.append(&record(number, len)).unwrap();
            assert_eq!(lsn, Lsn(number));
            expected.push((number, record(number, len)));
        }
        let batch = [record(100, 10), record(101, 0), record(102, 50_000)];
        let slices: Vec<&[u8]> = batch.iter().map(Vec::as_slice).collect();
        let lsns = log.append_batch(&slices).unwrap();
        assert_eq!(lsns.start, expected.len() as u64 + 1);
        expected.extend(lsns.zip(batch));
        assert!(log.durable() < log.next());
        assert_eq!(log.commit().unwrap(), log.next());
        assert_eq!(log.durable(), log.next());
        assert_eq!(contents(&log), expected);
        log.close().unwrap();
    }
    let mut fragments = 0;
    let found = Inspection::read(&place, &mut |block| fragments += block.fragments.len()).unwrap();
    assert_eq!(
        (found.next, found.epoch),
        (Lsn(expected.len() as u64 + 1), 3)
    );
    assert!(fragments > expected.len());
}

#[test]
fn reading_begins_where_it_is_asked_to_and_ends_with_what_is_durable() {
    let outside = directory();
    let log = Log::open(outside.path(), small()).unwrap();
    for number in 1..=500 {
        log.append(&record(number, 600)).unwrap();
    }
    log.commit().unwrap();
    log.append(b"not durable").unwrap();
    for from in [1, 2, 250, 500, 501] {
        let mut reader = log.read(Lsn(from)).unwrap();
        for number in from..=500 {
            let found = reader.next().unwrap().unwrap();
            assert_eq!(
                (found.lsn, found.bytes),
                (Lsn(number), &record(number, 600)[..])
            );
        }
        assert_eq!(reader.next().unwrap(), None);
        if from == 501 {
            // It goes on when there is more.
            log.commit().unwrap();
            assert_eq!(reader.next().unwrap().unwrap().bytes, b"not durable");
            assert_eq!(reader.next().unwrap(), None);
        }
    }
    assert!(matches!(log.read(Lsn(600)), Err(Error::NotThereYet { .. })));
}

#[test]
fn what_is_truncated_is_gone_and_its_segments_are_used_again() {
    let outside = directory();
    let log = Log::open(outside.path(), small()).unwrap();
    let files = || {
        let names = fs::read_dir(outside.path()).unwrap();
        names
            .filter(|name| name.as_ref().unwrap().file_name() != *"landfall-log")
            .count()
    };
    for number in 1..=4000u64 {
        log.append_durable(&record(number, 200)).unwrap();
        if number % 50 == 0 {
            log.truncate_before(Lsn(number - 10)).unwrap();
        }
    }
    assert_eq!(log.first(), Lsn(3990));
    assert!(matches!(log.read(Lsn(1)), Err(Error::Truncated { .. })));
    assert!(matches!(
        log.truncate_before(Lsn(9999)),
        Err(Error::NotThereYet { .. })
    ));
    // 4,000 blocks of 512 bytes or more would be 31 segments.
    assert!(files() <= 8, "{} files", files());
    let last: Vec<u64> = contents(&log).into_iter().map(|(lsn, _)| lsn).collect();
    assert_eq!(last, (3990..=4000).collect::<Vec<_>>());
    log.close().unwrap();
    let log = Log::open(outside.path(), small()).unwrap();
    assert_eq!((log.first(), log.next()), (Lsn(3990), Lsn(4001)));
}

#[test]
fn many_threads_commit_at_once() {
    let outside = directory();
    let log = Log::open(outside.path(), Options::default()).unwrap();
    thread::scope(|scope| {
        for thread in 0..16u64 {
            let log = &log;
            scope.spawn(move || {
                for number in 0..100 {
                    let lsn = log
                        .append_durable(&record(thread * 1000 + number, 200))
                        .unwrap();
                    assert!(log.durable() > lsn);
                }
            });
        }
    });
    let mut found: Vec<Vec<u8>> = contents(&log).into_iter().map(|(_, bytes)| bytes).collect();
    let mut expected: Vec<Vec<u8>> = (0..16u64)
        .flat_map(|thread| (0..100).map(move |number| record(thread * 1000 + number, 200)))
        .collect();
    found.sort();
    expected.sort();
    assert!(found == expected);
    let counters = log.counters();
    assert!(counters.groups <= 1600 && counters.flushes >= counters.groups);
    assert_eq!(counters.record_bytes, 1600 * 204);
}

/// Waits for a future without any runtime.
fn wait_for<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn thousands_of_commits_are_in_flight_without_threads() {
    let outside = directory();
    let log = Log::open(outside.path(), Options::default()).unwrap();
    let commits: Vec<_> = (1..=5000)
        .map(|number| log.append_async(&record(number, 100)).unwrap())
        .collect();
    for (commit, number) in commits.into_iter().zip(1..) {
        assert_eq!(wait_for(commit).unwrap(), Lsn(number));
    }
    assert!(log.counters().groups < 2500, "{:?}", log.counters());
}

#[test]
fn a_tail_follows_what_becomes_durable() {
    let outside = directory();
    let log = Log::open(outside.path(), small()).unwrap();
    thread::scope(|scope| {
        let mut tail = log.tail(Lsn(1)).unwrap();
        let follower = scope.spawn(move || {
            let mut lsns = Vec::new();
            while lsns.len() < 300 {
                lsns.push(tail.next().unwrap().unwrap().lsn.0);
            }
            lsns
        });
        for number in 1..=300 {
            log.append(&record(number, 500)).unwrap();
            if number % 7 == 0 || number == 300 {
                log.commit().unwrap();
            }
        }
        assert_eq!(follower.join().unwrap(), (1..=300).collect::<Vec<_>>());
    });
    let mut tail = log.tail(Lsn(301)).unwrap();
    let waiting = thread::spawn(move || tail.next().unwrap().is_none());
    thread::sleep(Duration::from_millis(20));
    log.close().unwrap();
    assert!(waiting.join().unwrap(), "it ends when the log is closed");
}

#[test]
fn one_handle_at_a_time_has_a_log() {
    let outside = directory();
    let log = Log::open(outside.path(), small()).unwrap();
    assert!(matches!(
        Log::open(outside.path(), small()),
        Err(Error::Locked)
    ));
    assert!(matches!(
        Inspection::read(outside.path(), &mut |_| {}),
        Err(Error::Locked)
    ));
    log.close().unwrap();
    Log::open(outside.path(), small()).unwrap();
}

#[test]
fn another_thing_is_left_alone() {
    let outside = directory();
    fs::write(outside.path().join("letters"), "mine").unwrap();
    let refused = Log::open(outside.path(), small()).unwrap_err();
    assert!(
        matches!(refused, Error::NotALog { ref name } if name == "letters"),
        "{refused}"
    );
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    let missing = Log::open(outside.path().join("a/b"), small()).unwrap_err();
    assert!(
        missing.to_string().contains("cannot make the directory"),
        "{missing}"
    );
    for nonsense in [
        Options {
            segment_bytes: 1000,
            ..small()
        },
        Options {
            write_bytes: 1 << 30,
            ..small()
        },
        Options {
            buffer_bytes: 0,
            ..small()
        },
        Options {
            spare_segments: 0,
            ..small()
        },
        Options {
            waiting_commits: 0,
            ..small()
        },
    ] {
        let refused = Log::open(outside.path().join("log"), nonsense).unwrap_err();
        assert!(matches!(refused, Error::Options(_)), "{refused}");
    }
}

/// Every file with its bytes.
fn snapshot(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    files
}

fn overwrite(path: &Path, offset: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(bytes, offset).unwrap();
}

#[test]
fn another_version_and_a_damaged_log_are_refused_and_left_as_they_are() {
    let outside = directory();
    let log = Log::open(outside.path(), small()).unwrap();
    for number in 1..=600 {
        log.append_durable(&record(number, 700)).unwrap();
    }
    log.close().unwrap();
    let segment = outside.path().join("segment-000001");
    let control = outside.path().join("landfall-log");
    let (whole, record_of) = (fs::read(&segment).unwrap(), fs::read(&control).unwrap());

    overwrite(&segment, 3000, b"rot");
    // What is behind the last segments that promise anything is only read by who reads it.
    let log = Log::open(outside.path(), small()).unwrap();
    let mut reader = log.read(Lsn(1)).unwrap();
    let damage = loop {
        match reader.next() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it was not seen"),
            Err(error) => break error,
        }
    };
    let is_there = matches!(&damage, Error::Corrupt { file, offset, .. }
        if file.ends_with("segment-000001") && (2048..=3072).contains(offset));
    assert!(is_there, "{damage}");
    drop(reader);
    log.close().unwrap();
    assert!(matches!(
        Inspection::read(outside.path(), &mut |_| {}),
        Err(Error::Corrupt { .. })
    ));
    fs::write(&segment, whole).unwrap();

    fs::rename(&segment, outside.path().join("elsewhere")).unwrap();
    let before = snapshot(outside.path());
    let missing = Log::open(outside.path(), small()).unwrap_err();
    assert!(
        missing.to_string().contains("the first that is needed"),
        "{missing}"
    );
    assert!(snapshot(outside.path()) == before, "nothing is changed");
    fs::rename(outside.path().join("elsewhere"), &segment).unwrap();

    for at in [20, 4096 + 20] {
        // The version of both copies, with the checksum that it takes.
        let mut copy = fs::read(&control).unwrap()[at - 20..at - 20 + 96].to_vec();
        copy[20] = 9;
        let crc = crc32c::crc32c(&copy[4..]);
        copy[..4].copy_from_slice(&crc.to_le_bytes());
        overwrite(&control, at as u64 - 20, &copy);
    }
    let before = snapshot(outside.path());
    let other = Log::open(outside.path(), small()).unwrap_err();
    assert!(
        matches!(other, Error::Version { found: 9, known: 1 }),
        "{other}"
    );
    assert!(snapshot(outside.path()) == before, "nothing is changed");
    fs::write(&control, vec![0; record_of.len()]).unwrap();
    let damaged = Log::open(outside.path(), small()).unwrap_err();
    assert!(matches!(damaged, Error::Corrupt { .. }), "{damaged}");
}

#[test]
fn a_torn_end_is_cut_off() {
    let outside = directory();
    let log = Log::open(outside.path(), small()).unwrap();
    for number in 1..=10 {
        log.append_durable(&record(number, 700)).unwrap();
    }
    log.close().unwrap();
    // Ten blocks of two granules behind the header.
    let granule = 512;
    overwrite(
        &outside.path().join("segment-000001"),
        granule + 9 * 2 * granule + 600,
        &[1; 50],
    );
    let log = Log::open(outside.path(), small()).unwrap();
    if log.next() == Lsn(11) {
        println!("skipped: blocks are larger than 512 bytes here");
        return;
    }
    assert_eq!(log.next(), Lsn(10));
    assert_eq!(log.append_durable(b"again").unwrap(), Lsn(10));
    log.close().unwrap();
    let log = Log::open(outside.path(), small()).unwrap();
    assert_eq!(contents(&log).last().unwrap().1, b"again");
}

const CHILD: &str = "LANDFALL_LOG_CHILD";

/// The process that is killed: appends with four threads, and says which records are durable.
#[test]
fn child() {
    let Ok(place) = std::env::var(CHILD) else {
        return;
    };
    let log = Log::open(place, small()).unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let lsn = log.append_durable(&record(7, 300)).unwrap();
                    println!("durable {lsn}");
                    if lsn.0 % 64 == 0 {
                        log.truncate_before(Lsn(lsn.0 - 32)).unwrap();
                    }
                }
            });
        }
    });
}

#[test]
fn a_process_that_is_killed_loses_nothing_that_it_said_was_durable() {
    let outside = directory();
    let mut durable = 0;
    for round in 0..20u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture"])
            .env(CHILD, outside.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut left = 20 + round * 37 % 300;
        for line in lines {
            let line = line.unwrap();
            if let Some((_, lsn)) = line.split_once("durable ") {
                durable = durable.max(lsn.parse().unwrap_or(0));
                left = left.saturating_sub(1);
            }
            if left == 0 {
                child.kill().unwrap();
                left = u64::MAX;
            }
        }
        child.wait().unwrap();
        let log = Log::open(outside.path(), small()).unwrap();
        assert!(
            log.next().0 > durable,
            "round {round}: {durable} was durable, {} is next",
            log.next()
        );
        for (_, bytes) in contents(&log) {
            assert_eq!(bytes, record(7, 300));
        }
        log.close().unwrap();
    }
    assert!(durable > 100);
}
