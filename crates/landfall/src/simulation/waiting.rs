//! Who waits in a log, for what, and that he is woken.
//!
//! Nothing here is lost or broken if it goes wrong: a thread waits for ever, which the scheduler sees, or longer than
//! it must. All that happens is decided by a seed; what is not done soon by another thread is never done.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shuttle::sync::mpsc;
use shuttle::thread;

use super::disk::Disk;
use super::environment::{Simulated, Way};
use super::history::Broken;
use super::scenario::{Log, end_of, simulate};
use crate::log::Handle;
use crate::log::format::{FRAME, HEADER};
use crate::{Error, Options};

const GRANULE: usize = 512;

/// Moments in which other threads do what they have to do.
const SOON: usize = 3000;

fn options() -> Options {
    Options::default()
        .segment_bytes(4096)
        .spare_segments(1)
        .buffer_bytes(4096)
        .max_unwritten_bytes(1024)
        .max_unsynced_bytes(1 << 20)
        .max_pending_commits(4)
}

/// Plays this with a hundred seeds, on a log whose environment starts so many threads.
fn with_log(
    threads: u64,
    scene: impl Fn(Log, &Disk) -> Result<(), Broken> + Copy + Send + Sync + 'static,
) {
    with_log_of(4096, threads, scene);
}

/// As that, with segments of this size.
fn with_log_of(
    segment: u64,
    threads: u64,
    scene: impl Fn(Log, &Disk) -> Result<(), Broken> + Copy + Send + Sync + 'static,
) {
    for seed in 0..100 {
        let outcome = simulate(seed, move |rng, _| {
            let disk = Disk::new(GRANULE as u32, rng.u64(..));
            let environment = Simulated::new(&disk, Way::ALL[0], None, rng.u64(..));
            let log = Handle::open(
                &environment.fail_thread(threads),
                options().segment_bytes(segment),
            );
            let log = log.map_err(|error| format!("cannot make a log: {error}"))?;
            scene(log, &disk)
        });
        assert_eq!(outcome.broken, None, "seed {seed}");
    }
}

fn wrong(error: Error) -> Broken {
    error.to_string()
}

/// Whether something comes true before long.
fn soon(is_true: impl Fn() -> bool) -> bool {
    (0..SOON).any(|_| {
        thread::yield_now();
        is_true()
    })
}

fn must(is_true: bool, what: &str) -> Result<(), Broken> {
    if is_true {
        Ok(())
    } else {
        Err(what.to_owned())
    }
}

/// A record that fills so many granules with its block.
fn granules(count: usize) -> Vec<u8> {
    vec![7; count * GRANULE - HEADER - FRAME]
}

#[test]
fn a_callback_is_called_though_nobody_commits() {
    // The thread that makes segments, and the one that writes or not.
    for threads in [u64::MAX, 1] {
        with_log(threads, |log, _| {
            let log = Arc::new(log);
            let ask = |log: Arc<Log>| {
                let (called, calls) = mpsc::channel();
                for round in 0..3 {
                    let called = called.clone();
                    let done = move |result: Result<_, _>| called.send(result.is_ok()).unwrap();
                    log.append_then(&[round; 40], done).map_err(wrong)?;
                    must(calls.recv() == Ok(true), "it was told of a failure")?;
                }
                Ok(())
            };
            // The other's comes while this one's is written.
            let other = log.clone();
            let other = thread::spawn(move || ask(other));
            ask(log)?;
            other.join().map_err(|_| "it panicked".to_owned())?
        });
    }
}

#[test]
fn what_nobody_waits_for_is_written_when_it_is_much() {
    with_log(u64::MAX, |log, _| {
        log.append(&granules(1)).map_err(wrong)?;
        must(
            !soon(|| log.shared.counters().writes > 0),
            "little was written",
        )?;
        log.append(&granules(2)).map_err(wrong)?;
        must(soon(|| log.shared.counters().writes > 0), "much was not")
    });
}

#[test]
fn what_nobody_waits_for_is_synced_when_it_is_much() {
    for seed in 0..20 {
        let outcome = simulate(seed, |rng, _| {
            let disk = Disk::new(GRANULE as u32, rng.u64(..));
            let environment = Simulated::new(&disk, Way::ALL[0], None, rng.u64(..));
            // Whatever is written at once is more than may be left unsynced.
            let options = options().max_unwritten_bytes(1536).max_unsynced_bytes(1024);
            let log = Handle::open(&environment, options).map_err(wrong)?;
            for _ in 0..30 {
                log.append(&granules(3)).map_err(wrong)?;
            }
            let counters = log.shared.counters();
            must(counters.writes > 0, "nothing is written")?;
            must(
                counters.flushes == counters.writes,
                &format!("{counters:?}"),
            )
        });
        assert_eq!(outcome.broken, None, "seed {seed}");
    }
}

#[test]
fn what_may_stay_unsynced_stays() {
    for seed in 0..20 {
        let outcome = simulate(seed, |rng, _| {
            let disk = Disk::new(GRANULE as u32, rng.u64(..));
            let environment = Simulated::new(&disk, Way::ALL[0], None, rng.u64(..));
            let log = Handle::open(&environment, options().max_unsynced_bytes(2048));
            let log = log.map_err(wrong)?;
            let counters = || log.shared.counters();
            log.append(&granules(2)).map_err(wrong)?;
            must(
                soon(|| counters().bytes == 1024),
                "the first is not written",
            )?;
            log.append(&granules(2)).map_err(wrong)?;
            must(
                soon(|| counters().bytes == 2048),
                "the second is not written",
            )?;
            must(counters().flushes == 0, "it was synced too early")?;
            log.append(&granules(2)).map_err(wrong)?;
            must(
                soon(|| counters().flushes > 0),
                "too much was left unsynced",
            )
        });
        assert_eq!(outcome.broken, None, "seed {seed}");
    }
}

#[test]
fn few_segments_are_left_unsynced() {
    with_log(u64::MAX, |log, _| {
        let counters = || log.shared.counters();
        // Two of these are a segment's.
        for _ in 0..8 {
            log.append(&granules(3)).map_err(wrong)?;
        }
        must(
            soon(|| counters().bytes >= 7 * 1536),
            "they are not written",
        )?;
        must(counters().flushes == 0, "some were synced")?;
        for _ in 0..16 {
            log.append(&granules(3)).map_err(wrong)?;
        }
        must(soon(|| counters().flushes > 0), "each is an open file")
    });
}

#[test]
fn segments_are_written_ahead_of_commits_and_not_of_streams() {
    with_log(u64::MAX, |log, _| {
        let is_written = || {
            shuttle::sync::Mutex::lock(&log.shared.state)
                .unwrap()
                .segments
                .is_written_ahead()
        };
        for _ in 0..10 {
            log.append_durable(&granules(1)).map_err(wrong)?;
            must(soon(is_written), "zeros are not written ahead")?;
        }
        // Nobody waits for what is written now.
        for _ in 0..30 {
            log.append(&granules(3)).map_err(wrong)?;
        }
        must(!soon(is_written), "zeros are written ahead of a stream")?;
        log.commit().map_err(wrong)?;
        must(
            soon(is_written),
            "zeros are not written ahead after a stream",
        )
    });
}

#[test]
fn who_follows_the_end_is_woken() {
    with_log(u64::MAX, |log, _| {
        let tail = log.read(log.first_lsn()).map_err(wrong)?;
        let follower = thread::spawn(move || {
            let mut tail = tail;
            for expected in 1..=5 {
                match tail.next_or_wait() {
                    Ok(Some((lsn, _))) if lsn == expected => {}
                    other => return Err(format!("{other:?} and not {expected}")),
                }
            }
            Ok(())
        });
        for _ in 0..5 {
            log.append_durable(b"this").map_err(wrong)?;
            soon(|| false);
        }
        follower.join().map_err(|_| "it panicked".to_owned())?
    });
}

#[test]
fn segments_are_made_before_they_are_entered() {
    with_log(u64::MAX, |log, _| {
        let has_spare = || {
            let state = shuttle::sync::Mutex::lock(&log.shared.state).unwrap();
            // One that zeros are written to is waited for until it is told to stop.
            state.segments.has_spare() && state.segments.is_written_ahead()
        };
        for _ in 0..30 {
            log.append_durable(&granules(1)).map_err(wrong)?;
            must(soon(has_spare), "no segment is made ahead")?;
        }
        must(
            log.shared.counters().segment_waits == 0,
            "a segment was waited for",
        )
    });
}

#[test]
fn waits_for_segments_are_counted() {
    with_log(u64::MAX, |log, _| {
        for _ in 0..30 {
            log.append(&granules(4)).map_err(wrong)?;
        }
        let waits = log.shared.counters().segment_waits;
        must(
            (1..1000).contains(&waits),
            "it was quicker than making segments",
        )
    });
}

#[test]
fn promises_of_space_wait_for_each_other() {
    with_log(u64::MAX, |log, _| {
        let shared = log.shared.clone();
        let small = granules(1).len();
        let first = shared.reserve(small).map_err(wrong)?;
        let waiting = shared.clone();
        let second = thread::spawn(move || waiting.reserve(small).map(drop).map_err(wrong));
        soon(|| false);
        drop(first);
        second.join().map_err(|_| "it panicked".to_owned())?
    });
}

#[test]
fn a_promise_is_for_whole_granules_and_one_more() {
    with_log(u64::MAX, |log, _| {
        let promised = |bytes: usize| {
            let promise = log.shared.reserve(bytes).map_err(wrong)?;
            Ok::<u64, Broken>(promise.bytes)
        };
        // Half of what a segment has is 1,792.
        for (bytes, expected) in [
            (0, 1024),
            (granules(1).len(), 1024),
            (granules(1).len() + 1, 1536),
            (granules(2).len(), 1536),
            (granules(2).len() + 1, 0),
            (1 << 20, 0),
        ] {
            let promised = promised(bytes)?;
            must(promised == expected, &format!("{bytes}: {promised}"))?;
        }
        Ok(())
    });
}

#[test]
fn what_was_promised_space_finds_it_until_there_is_none() {
    with_log_of(8192, u64::MAX, |log, disk| {
        let commit = |bytes: usize| {
            let promise = match log.shared.reserve(bytes) {
                Err(Error::NoSpace { .. }) => return Ok(None),
                promise => promise.map_err(wrong)?,
            };
            log.append_durable(&vec![7; bytes]).map_err(wrong)?;
            Ok::<_, Broken>(Some(promise.bytes))
        };
        disk.set_space(0);
        let mut number = 0;
        while commit([1, 3000, 600, 1400, 2000][number % 5])?.is_some() {
            number += 1;
        }
        while commit(1)?.is_some() {}
        // Half of what was left was not enough for the last of them.
        let end = end_of(&log);
        let left = log.shared.geometry.room(end);
        must(left / 2 < 1024, &format!("{left} bytes are left"))?;
        must(number > 2, &format!("{number} found space"))
    });
}

#[test]
fn what_failed_before_it_was_asked_for_is_tried_again() {
    with_log(u64::MAX, |log, disk| {
        disk.set_space(0);
        for _ in 0..6 {
            log.append_durable(&granules(1)).map_err(wrong)?;
        }
        soon(|| false);
        disk.set_space(1 << 30);
        for _ in 0..30 {
            log.append_durable(&granules(1)).map_err(wrong)?;
        }
        Ok(())
    });
}

#[test]
fn a_batch_without_space_of_which_nothing_is_written_is_refused() {
    with_log(u64::MAX, |log, disk| {
        disk.set_space(0);
        let refused = loop {
            match log.append_durable(&granules(1)) {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        must(
            matches!(refused, Error::NoSpace { .. }),
            "one record was not",
        )?;
        let refused = log.append_batch(&[&granules(4), &granules(4)]);
        must(
            matches!(refused, Err(Error::NoSpace { .. })),
            "a batch was not",
        )?;
        disk.set_space(1 << 30);
        log.append_batch(&[&granules(4), &granules(4)])
            .map_err(wrong)?;
        log.commit().map(drop).map_err(wrong)
    });
}

#[test]
fn a_batch_that_the_disk_has_no_room_for_is_refused_before_it_is_begun() {
    with_log(u64::MAX, |log, disk| {
        let segment = log.shared.geometry.segment;
        let (mut refused, mut written) = (0, 0);
        for round in 0..60_usize {
            // From less than a segment to ten of them, where there is room for up to four.
            let records = vec![granules(1 + round % 5); 1 + round * 7 % 13];
            let records: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
            disk.set_space(segment * (round as u64 * 3 % 5));
            match log.append_batch(&records) {
                Ok(_) => written += 1,
                Err(Error::NoSpace { .. }) => refused += 1,
                Err(other) => return Err(wrong(other)),
            }
            disk.set_space(1 << 30);
            log.append_durable(&granules(1)).map_err(wrong)?;
        }
        must(
            refused > 5 && written > 5,
            &format!("{refused} were refused, {written} written"),
        )
    });
}

#[test]
fn records_fill_blocks_and_segments_to_their_ends() {
    with_log(u64::MAX, |log, _| {
        // A header, and seven blocks of a granule each.
        for number in 0..14 {
            log.append_durable(&granules(1)).map_err(wrong)?;
            let last = end_of(&log) - GRANULE as u64;
            let segment = log.shared.geometry.sequence(last);
            must(
                segment == 1 + number / 7,
                &format!("{number} is in {segment}"),
            )?;
        }
        must(
            log.shared.counters().padding() == 14 * HEADER as u64,
            "there are gaps",
        )
    });
}

#[test]
fn many_empty_records_are_a_batch() {
    with_log(u64::MAX, |log, _| {
        let lsns = log.append_batch(&[b"".as_slice(); 3000]).map_err(wrong)?;
        log.commit().map_err(wrong)?;
        must(lsns.end.0 - lsns.start.0 == 3000, "they are not all there")?;
        let bytes = log.shared.counters().record_bytes;
        must(
            bytes == (3000 * FRAME) as u64,
            &format!("they take {bytes} bytes"),
        )
    });
}

#[test]
fn a_record_is_parted_where_at_least_a_byte_finds_room() {
    // A block has 2,048 bytes here; so much is left of one, and so many parts are needed.
    for (left, parts) in [(FRAME, 1), (FRAME + 1, 2)] {
        with_log(u64::MAX, move |log, _| {
            let first = vec![7; 2048 - HEADER - FRAME - left];
            let second = granules(3);
            log.append_batch(&[&first, &second]).map_err(wrong)?;
            log.commit().map_err(wrong)?;
            let expected = (first.len() + second.len() + (1 + parts) * FRAME) as u64;
            let bytes = log.shared.counters().record_bytes;
            must(
                bytes == expected,
                &format!("{bytes} bytes and not {expected}"),
            )
        });
    }
}

#[test]
fn who_commits_at_the_same_time_shares_a_flush() {
    const SEEDS: u64 = 60;
    let flushes = Arc::new(AtomicU64::new(0));
    // Those with which nobody is left waiting.
    for seed in (0..SEEDS).map(|number| 2 * number) {
        let counting = flushes.clone();
        let outcome = simulate(seed, move |rng, _| {
            let disk = Disk::new(GRANULE as u32, rng.u64(..));
            let environment = Simulated::new(&disk, Way::ALL[0], None, rng.u64(..));
            let log = Handle::open(&environment, options().segment_bytes(1 << 20));
            let log = Arc::new(log.map_err(wrong)?);
            let commit = |log: Arc<Log>| {
                move || (0..20).try_for_each(|_| log.append_durable(b"this").map(drop))
            };
            let threads: Vec<_> = (0..4).map(|_| thread::spawn(commit(log.clone()))).collect();
            for thread in threads {
                let committed = thread.join().map_err(|_| "it panicked".to_owned())?;
                committed.map_err(wrong)?;
            }
            let commits = log.shared.counters().commits;
            must(commits == 80, &format!("{commits} commits are counted"))?;
            counting.fetch_add(log.shared.counters().flushes, Ordering::SeqCst);
            Ok(())
        });
        assert_eq!(outcome.broken, None, "seed {seed}");
    }
    // Were none waited for, it would be more than half.
    let flushes = flushes.load(Ordering::SeqCst);
    assert!(flushes < SEEDS * 80 / 2, "{flushes} flushes");
}
