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

use landfall::{Block, Error, Inspection, Log, Lsn, Options};

/// A directory on a disk: some systems keep temporary files in memory.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
}

fn small() -> Options {
    Options::default()
        .segment_bytes(64 << 10)
        .buffer_bytes(32 << 10)
        .max_unwritten_bytes(16 << 10)
}

fn record(number: u64, len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (number as usize * 31 + at) as u8)
        .collect()
}

fn contents(log: &Log) -> Vec<(u64, Vec<u8>)> {
    let mut reader = log.read(log.first_lsn()).unwrap();
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
        let first = expected.len() as u64 + 1;
        assert_eq!(lsns, Lsn(first)..Lsn(first + 3));
        expected.extend((first..).zip(batch));
        assert!(log.durable_end() < log.next_lsn());
        assert_eq!(log.commit().unwrap(), log.next_lsn());
        assert_eq!(log.durable_end(), log.next_lsn());
        assert_eq!(contents(&log), expected);
        log.close().unwrap();
    }
    let mut fragments = 0;
    let found = Inspection::read(&place, &mut |block| fragments += block.fragments.len()).unwrap();
    assert_eq!(
        (found.next_lsn, found.epoch, found.is_closed),
        (Lsn(expected.len() as u64 + 1), 3, true)
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
    assert_eq!(log.first_lsn(), Lsn(3990));
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
    assert_eq!((log.first_lsn(), log.next_lsn()), (Lsn(3990), Lsn(4001)));
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
                    assert!(log.durable_end() > lsn);
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
        small().segment_bytes(1000),
        // Some disks would take it.
        small().segment_bytes((16 << 10) + 512),
        small().max_unwritten_bytes(1 << 30),
        small().buffer_bytes(0),
        small().spare_segments(0),
        small().max_pending_commits(0),
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

/// A closed log of 120 records in more than six segments, with one of which every commit was waited for.
fn in_segments(place: &Path) -> Vec<(u64, Vec<u8>)> {
    let log = Log::open(place, small()).unwrap();
    for number in 1..=120 {
        log.append_durable(&record(number, 4000)).unwrap();
    }
    let expected = contents(&log);
    assert_eq!(expected.len(), 120);
    log.close().unwrap();
    let found = Inspection::read(place, &mut |_| {}).unwrap();
    assert!(found.segments.iter().filter(|one| one.is_used).count() > 6);
    expected
}

/// What opening a damaged log says. `Inspection::read` says the same, at every attempt, and no file is changed, then or
/// a while later.
fn damage(place: &Path) -> Error {
    let before = snapshot(place);
    let seen = Inspection::read(place, &mut |_| {}).unwrap_err();
    for pause in [0, 300, 0] {
        thread::sleep(Duration::from_millis(pause));
        assert!(snapshot(place) == before, "nothing is changed");
        let found = Log::open(place, small()).unwrap_err();
        let is_damage = matches!(found, Error::Corrupt { .. } | Error::MissingSegment { .. });
        assert!(is_damage, "{found}");
        assert_eq!(found.to_string(), seen.to_string());
    }
    assert!(snapshot(place) == before, "nothing is changed");
    seen
}

/// Waits until a thread of the log's has made all segments ahead that it makes; returns every file with its bytes.
fn settled(place: &Path) -> Vec<(String, Vec<u8>)> {
    let mut before = snapshot(place);
    loop {
        thread::sleep(Duration::from_millis(100));
        let now = snapshot(place);
        if now == before {
            return now;
        }
        before = now;
    }
}

/// A copy of a log that somebody has open: what a killed process leaves.
fn copy_of_open(place: &Path, to: &Path) {
    restore(to, &settled(place));
}

/// Makes a directory that has these files.
fn restore(place: &Path, files: &[(String, Vec<u8>)]) {
    let _ = fs::remove_dir_all(place);
    fs::create_dir(place).unwrap();
    for (name, bytes) in files {
        fs::write(place.join(name), bytes).unwrap();
    }
}

#[test]
fn a_missing_segment_is_reported_and_nothing_is_changed() {
    let outside = directory();
    let place = outside.path().join("log");
    let expected = in_segments(&place);
    for number in [1, 4] {
        let segment = place.join(format!("segment-{number:06}"));
        fs::rename(&segment, outside.path().join("elsewhere")).unwrap();
        let missing = damage(&place);
        let text = format!("no file holds segment {number} of the log;");
        assert!(missing.to_string().starts_with(&text), "{missing}");
        fs::rename(outside.path().join("elsewhere"), &segment).unwrap();
    }
    let log = Log::open(&place, small()).unwrap();
    assert!(contents(&log) == expected, "everything is there again");
}

#[test]
fn an_emptied_or_zeroed_segment_is_reported_and_nothing_is_changed() {
    let outside = directory();
    let place = outside.path().join("log");
    let expected = in_segments(&place);
    let segment = place.join("segment-000004");
    let whole = fs::read(&segment).unwrap();
    for bytes in [0, 1, 4096, 40_000] {
        fs::write(&segment, &whole[..bytes]).unwrap();
        let cut = damage(&place);
        assert!(cut.to_string().contains('4'), "{cut}");
    }
    for bytes in [4096, whole.len()] {
        let mut zeroed = whole.clone();
        zeroed[..bytes].fill(0);
        fs::write(&segment, zeroed).unwrap();
        let zeroed = damage(&place);
        assert!(zeroed.to_string().contains('4'), "{zeroed}");
    }
    fs::write(&segment, whole).unwrap();
    let log = Log::open(&place, small()).unwrap();
    assert!(contents(&log) == expected, "everything is there again");
}

#[test]
fn an_emptied_last_segment_of_a_killed_process_is_reported() {
    let outside = directory();
    let (place, copy) = (outside.path().join("log"), outside.path().join("copy"));
    let log = Log::open(&place, small()).unwrap();
    for number in 1..=120 {
        log.append_durable(&record(number, 4000)).unwrap();
    }
    copy_of_open(&place, &copy);
    let found = Inspection::read(&copy, &mut |_| {}).unwrap();
    assert!(!found.is_closed);
    let used = found.segments.iter().rposition(|one| one.is_used).unwrap();
    assert!(found.segments.len() > used + 1, "{:?}", found.segments);
    let name = &found.segments[used].name;
    let whole = fs::read(copy.join(name)).unwrap();
    fs::write(copy.join(name), []).unwrap();
    let emptied = damage(&copy);
    let sequence = found.segments[used].sequence.unwrap();
    let text = format!("no file holds segment {sequence} of the log ({name} is empty);");
    assert!(emptied.to_string().starts_with(&text), "{emptied}");
    fs::write(copy.join(name), whole).unwrap();
    let reopened = Log::open(&copy, small()).unwrap();
    assert!(contents(&reopened) == contents(&log));
}

#[test]
fn one_flipped_bit_of_the_control_file_loses_nothing() {
    let outside = directory();
    let (place, copy) = (outside.path().join("log"), outside.path().join("copy"));
    let log = Log::open(&place, small()).unwrap();
    for number in 1..=120 {
        log.append_durable(&record(number, 1500)).unwrap();
        if number == 60 {
            log.truncate_before(Lsn(50)).unwrap();
        }
    }
    copy_of_open(&place, &copy);
    let (killed, expected) = (snapshot(&copy), contents(&log));
    assert_eq!(expected.len(), 71);
    log.close().unwrap();
    for files in [killed, snapshot(&place)] {
        for bit in (0..128 * 8).step_by(23) {
            for at in [0, 4096] {
                restore(&copy, &files);
                let control = copy.join("landfall-log");
                let mut bytes = fs::read(&control).unwrap();
                bytes[at + bit / 8] ^= 1 << (bit % 8);
                fs::write(&control, bytes).unwrap();
                let seen = Inspection::read(&copy, &mut |_| {}).unwrap();
                assert_eq!((seen.first_lsn, seen.next_lsn), (Lsn(50), Lsn(121)));
                let log = Log::open(&copy, small()).unwrap();
                assert!(contents(&log) == expected, "bit {bit} of the copy at {at}");
            }
        }
    }
}

#[test]
fn a_missing_control_file_is_reported_and_nothing_is_changed() {
    let outside = directory();
    let place = outside.path().join("log");
    let expected = in_segments(&place);
    let control = place.join("landfall-log");
    fs::rename(&control, outside.path().join("elsewhere")).unwrap();
    let missing = damage(&place);
    assert!(
        missing.to_string().starts_with("landfall-log is damaged"),
        "{missing}"
    );
    let whole = fs::read(outside.path().join("elsewhere")).unwrap();
    for bytes in [0, 4096, 12_287] {
        fs::write(&control, &whole[..bytes]).unwrap();
        damage(&place);
    }
    fs::write(&control, vec![0; whole.len()]).unwrap();
    damage(&place);
    fs::rename(outside.path().join("elsewhere"), &control).unwrap();
    let log = Log::open(&place, small()).unwrap();
    assert!(contents(&log) == expected, "everything is there again");
}

#[test]
fn a_damaged_record_is_reported_and_nothing_is_changed() {
    let outside = directory();
    let place = outside.path().join("log");
    let expected = in_segments(&place);
    let mut blocks = Vec::new();
    Inspection::read(&place, &mut |block| blocks.push(block.clone())).unwrap();
    let is_inside = |block: &&Block| block.file == "segment-000004" && block.offset > 16_384;
    let middle = blocks.iter().find(is_inside).unwrap();
    // The last one too: where a log ends is noted when it is closed.
    for block in [&blocks[0], middle, &blocks[blocks.len() - 1]] {
        let segment = place.join(&block.file);
        let whole = fs::read(&segment).unwrap();
        for at in [0, 70, block.size - 600] {
            let mut bytes = whole.clone();
            bytes[(block.offset + at) as usize] ^= 4;
            fs::write(&segment, bytes).unwrap();
            let found = damage(&place);
            let is_there = matches!(&found, Error::Corrupt { file, offset, .. }
                if file.ends_with(&block.file) && *offset == block.offset);
            assert!(is_there, "{found}");
        }
        fs::write(&segment, whole).unwrap();
    }
    let log = Log::open(&place, small()).unwrap();
    assert!(contents(&log) == expected, "everything is there again");
}

#[test]
fn another_version_is_refused_and_left_as_it_is() {
    let outside = directory();
    let log = Log::open(outside.path(), small()).unwrap();
    log.append_durable(b"of this version").unwrap();
    log.close().unwrap();
    let control = outside.path().join("landfall-log");
    let whole = fs::read(&control).unwrap();
    assert_eq!(whole.len(), 12_288);
    for at in [0, 4096] {
        // The version of both copies, with the checksum that it takes.
        let mut copy = whole[at..at + 128].to_vec();
        copy[20] = 9;
        let crc = crc32c::crc32c(&copy[4..]);
        copy[..4].copy_from_slice(&crc.to_le_bytes());
        overwrite(&control, at as u64, &copy);
    }
    let before = snapshot(outside.path());
    let other = Log::open(outside.path(), small()).unwrap_err();
    assert!(
        matches!(other, Error::Version { found: 9, known: 2 }),
        "{other}"
    );
    assert!(snapshot(outside.path()) == before, "nothing is changed");
}

#[test]
fn a_torn_end_of_a_killed_process_is_cut_off() {
    let outside = directory();
    let (place, copy) = (outside.path().join("log"), outside.path().join("copy"));
    let log = Log::open(&place, small()).unwrap();
    // A segment that is made later says what was durable then.
    settled(&place);
    for number in 1..=10 {
        log.append_durable(&record(number, 700)).unwrap();
    }
    copy_of_open(&place, &copy);
    let mut last = None;
    Inspection::read(&copy, &mut |block| last = Some(block.clone())).unwrap();
    let last = last.unwrap();
    // Its second sector.
    overwrite(&copy.join(&last.file), last.offset + 600, &[1; 50]);
    let log = Log::open(&copy, small()).unwrap();
    assert_eq!(log.next_lsn(), Lsn(10));
    assert_eq!(log.append_durable(b"again").unwrap(), Lsn(10));
    log.close().unwrap();
    let log = Log::open(&copy, small()).unwrap();
    assert_eq!(contents(&log).last().unwrap().1, b"again");
}

#[test]
fn a_reader_is_told_that_its_records_were_truncated_away() {
    let outside = directory();
    let log = Log::open(outside.path(), small()).unwrap();
    for number in 1..=60 {
        log.append_durable(&record(number, 100)).unwrap();
    }
    let mut late = log.read(Lsn(5)).unwrap();
    let mut early = log.read(Lsn(40)).unwrap();
    log.truncate_before(Lsn(40)).unwrap();
    let gone = late.next().unwrap_err();
    let is_said = matches!(
        gone,
        Error::Truncated {
            asked: Lsn(5),
            first: Lsn(40)
        }
    );
    assert!(is_said, "{gone}");
    assert_eq!(early.next().unwrap().unwrap().lsn, Lsn(40));
}

const CHILD: &str = "LANDFALL_LOG_CHILD";
const MANY_CHILD: &str = "LANDFALL_LOG_MANY_CHILD";
/// Segments of the log that has more of them than a process may have open files.
const MANY: u64 = 2_000;

/// The process that may have few files open: makes a log of many segments, and reads it.
#[test]
fn child_with_few_descriptors() {
    let Ok(place) = std::env::var(MANY_CHILD) else {
        return;
    };
    let limit = fs::read_to_string("/proc/self/limits").unwrap();
    let limit = limit
        .lines()
        .find(|line| line.starts_with("Max open files"));
    assert!(limit.unwrap().contains(" 128 "), "{limit:?}");
    let options = Options::default()
        .segment_bytes(16 << 10)
        .buffer_bytes(32 << 10)
        .max_unwritten_bytes(16 << 10);
    let begin = std::time::Instant::now();
    let log = Log::open(&place, options.clone()).unwrap();
    // One takes most of a segment, so the next one goes to another.
    for number in 1..=MANY {
        log.append(&record(number, 11_000)).unwrap();
    }
    log.close().unwrap();
    println!("written in {:?}", begin.elapsed());
    let begin = std::time::Instant::now();
    let log = Log::open(&place, options).unwrap();
    println!("opened in {:?}", begin.elapsed());
    let mut reader = log.read(Lsn(1)).unwrap();
    for number in 1..=MANY {
        let found = reader.next().unwrap().unwrap();
        assert_eq!((found.lsn, found.bytes.len()), (Lsn(number), 11_000));
        assert!(found.bytes == record(number, 11_000), "{number}");
    }
    assert!(reader.next().unwrap().is_none());
    log.close().unwrap();
}

#[test]
fn a_log_may_have_more_segments_than_a_process_may_have_open_files() {
    let outside = directory();
    let place = outside.path().join("log");
    let child = Command::new("sh")
        .args(["-c", "ulimit -n 128; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "child_with_few_descriptors", "--nocapture"])
        .env(MANY_CHILD, &place)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&child.stderr)
    );
    println!("{said}");
    let found = Inspection::read(&place, &mut |_| {}).unwrap();
    let used = found.segments.iter().filter(|one| one.is_used).count() as u64;
    assert!(used >= MANY, "{used} segments");
}

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
                    if lsn.0.is_multiple_of(64) {
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
            log.next_lsn().0 > durable,
            "round {round}: {durable} was durable, {} is next",
            log.next_lsn()
        );
        for (_, bytes) in contents(&log) {
            assert_eq!(bytes, record(7, 300));
        }
        log.close().unwrap();
    }
    assert!(durable > 100);
}

#[test]
fn what_is_no_file_of_a_log_is_not_waited_for() {
    let outside = directory();
    let place = outside.path().join("log");
    Log::open(&place, small()).unwrap().close().unwrap();
    let pipe = place.join("segment-000099");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let refused = Log::open(&place, small()).unwrap_err();
    assert!(refused.to_string().contains("no regular file"), "{refused}");
    assert!(Inspection::read(&place, &mut |_| {}).is_err());
    fs::remove_file(&pipe).unwrap();

    // A number behind which no other can be counted.
    let last = place.join("segment-4611686018427387903");
    fs::copy(place.join("segment-000002"), &last).unwrap();
    let refused = Log::open(&place, small()).unwrap_err();
    assert!(matches!(refused, Error::Corrupt { .. }), "{refused}");
}

#[test]
fn what_was_cut_off_does_not_come_back_with_an_older_file() {
    let outside = directory();
    let [place, cut, again] = ["log", "cut", "again"].map(|name| outside.path().join(name));
    let log = Log::open(&place, small()).unwrap();
    log.append_durable(b"first").unwrap();
    // What a power cut leaves that takes the next record.
    copy_of_open(&place, &cut);
    log.append_durable(b"never acknowledged").unwrap();
    let older = fs::read(place.join("segment-000001")).unwrap();
    restore(&again, &snapshot(&cut));
    let log = Log::open(&again, small()).unwrap();
    log.append_durable(b"this one has been ").unwrap();
    log.close().unwrap();
    // A block of the same size ends where the log did when it was closed; but it is another one.
    fs::write(again.join("segment-000001"), older).unwrap();
    damage(&again);
}

#[test]
fn a_link_to_a_file_of_a_log_is_not_taken_for_another_file() {
    let outside = directory();
    let place = outside.path().join("log");
    Log::open(&place, small()).unwrap().close().unwrap();
    if !cfg!(feature = "portable") {
        for link in [
            fs::hard_link::<std::path::PathBuf, std::path::PathBuf>,
            std::os::unix::fs::symlink,
        ] {
            let other = place.join("segment-000099");
            link(place.join("segment-000002"), other.clone()).unwrap();
            Log::open(&place, small()).unwrap_err();
            fs::remove_file(other).unwrap();
        }
    }
    Log::open(&place, small()).unwrap();
}
