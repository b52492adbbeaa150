//! One trial: a number of durable writes, timed one by one.
//!
//! **Threads.** Files are opened before the workers start, so that no worker can fail before the
//! barrier at which all begin together. The caller is one of the workers: it reads the counters when
//! all are there, and again when the last one is done; nothing else of this process runs meanwhile.
//! When it works alone a system call finds its file more cheaply, because no other thread can close
//! it meanwhile: 0.1 µs an operation.
//!
//! **Cost.** Around the system calls of an operation there is one clock read (the end of one
//! operation is the start of the next), one histogram entry, one store per 4 KiB of payload and a
//! few predictable branches. `cargo bench` compares that with a bare loop in C.
//!
//! **Failure.** The first worker that fails makes the others stop after their current operation.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use landfall_os::{CpuTimes, DeviceCounters, Payload, SyncedFile, process_cpu, zero_fill};

use super::{Files, Strategy};
use crate::{Site, Stop};

/// Longest latency that is told apart, in nanoseconds: longer ones count as this.
const LONGEST_NS: u64 = 300_000_000_000;
/// With fewer operations than this the first third cannot be compared with the last.
const FEWEST_FOR_DRIFT: u64 = 48;

/// Latencies in nanoseconds, to three significant digits.
pub(super) fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("constant bounds are valid")
}

/// What is to be done.
pub(super) struct Task<'a> {
    pub strategy: &'a Strategy,
    pub paths: &'a [PathBuf],
    pub operations: u64,
    pub time_limit: Duration,
    pub site: &'a Site,
    pub stop: &'a Stop,
}

/// What happened.
pub(super) struct Measured {
    pub operations: u64,
    pub elapsed: Duration,
    pub first: Duration,
    /// All operations but the first.
    pub rest: Histogram<u64>,
    pub cpu: Duration,
    pub device: Option<DeviceCounters>,
    /// Journal commits meanwhile.
    pub commits: Option<u64>,
    /// `fdatasync` calls for extensions; each operation's own are not among them.
    pub extension_syncs: u64,
    pub extending: Duration,
    pub drift: Option<f64>,
    pub cut: bool,
    pub everybody: CpuTimes,
}

/// Runs the operations.
pub(super) fn run(task: &Task<'_>) -> io::Result<Measured> {
    let strategy = task.strategy;
    let per_file = task.operations / u64::from(strategy.file_count());
    let span = strategy.span(per_file);
    let tracks = task
        .paths
        .iter()
        .map(|path| Track::open(strategy, path, per_file))
        .collect::<io::Result<Vec<Track>>>()?;
    let shared = Shared {
        task,
        barrier: Barrier::new(strategy.threads as usize),
        failed: AtomicBool::new(false),
    };
    let mut workers = Vec::new();
    for thread in 0..strategy.threads as usize {
        let index = match strategy.files {
            Files::Shared => 0,
            Files::Each => thread,
        };
        let file = SyncedFile::open(&task.paths[index], strategy.method, span)?;
        // Seeds differ so that no two threads write equal blocks.
        let payload = Payload::new(strategy.size as usize, thread as u64 + 2);
        workers.push(Worker {
            file,
            payload,
            track: &tracks[index],
        });
    }

    let Some(mine) = workers.pop() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };

    let (outcomes, ran) = std::thread::scope(|scope| {
        let shared = &shared;
        let handles: Vec<_> = workers
            .into_iter()
            .map(|worker| scope.spawn(move || shared.work(worker, || ()).0))
            .collect();
        let (outcome, before) = shared.work(mine, || Readings::take(task.site));
        let mut outcomes = vec![outcome];
        outcomes.extend(handles.into_iter().map(|handle| {
            handle
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("a worker panicked")))
        }));
        (outcomes, Readings::take(task.site).since(&before))
    });

    let mut whole = Worked::default();
    for outcome in outcomes {
        whole.merge(outcome?);
    }
    let (Some(begin), Some(end)) = (whole.begin, whole.end) else {
        return Err(io::Error::other("no operation was done"));
    };
    Ok(Measured {
        operations: whole.operations,
        elapsed: end - begin,
        first: whole.first,
        drift: whole.drift(per_file),
        rest: whole.rest,
        cpu: ran.cpu,
        device: ran.device,
        commits: ran.commits,
        extension_syncs: tracks
            .iter()
            .map(|track| track.syncs.load(Ordering::Relaxed))
            .sum(),
        extending: Duration::from_nanos(
            tracks
                .iter()
                .map(|track| track.extending_ns.load(Ordering::Relaxed))
                .sum(),
        ),
        cut: whole.operations < task.operations,
        everybody: ran.everybody,
    })
}

/// The next position in a file, and how far the file has been extended.
struct Track {
    next: AtomicU64,
    writes: u64,
    /// Where the written part of the file ends; beyond any write unless it grows in steps.
    extended_to: AtomicU64,
    growth: Option<Mutex<Growth>>,
    extending_ns: AtomicU64,
    syncs: AtomicU64,
}

struct Growth {
    file: File,
    step: u64,
    durable: bool,
}

impl Track {
    fn open(strategy: &Strategy, path: &PathBuf, writes: u64) -> io::Result<Track> {
        let growth = match strategy.allocation.step_bytes() {
            Some(step) => Some(Mutex::new(Growth {
                file: OpenOptions::new().write(true).open(path)?,
                step,
                durable: strategy.method.is_durable(),
            })),
            None => None,
        };
        Ok(Track {
            next: AtomicU64::new(0),
            writes,
            extended_to: AtomicU64::new(if growth.is_some() { 0 } else { u64::MAX }),
            growth,
            extending_ns: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
        })
    }

    /// Makes sure that the file has written blocks up to `end`: what an autoextending tablespace
    /// does, zeros through the page cache and one sync, while whoever needs the space waits.
    #[inline]
    fn extend(&self, end: u64, stop: &Stop) -> io::Result<()> {
        if end <= self.extended_to.load(Ordering::Acquire) {
            return Ok(());
        }
        let Some(growth) = &self.growth else {
            return Ok(());
        };
        let growth = growth.lock().unwrap_or_else(PoisonError::into_inner);
        let mut extended_to = self.extended_to.load(Ordering::Acquire);
        let begin = Instant::now();
        while extended_to < end {
            zero_fill(
                &growth.file,
                extended_to,
                extended_to + growth.step,
                &|| stop.is_requested(),
            )?;
            if growth.durable {
                growth.file.sync_data()?;
                self.syncs.fetch_add(1, Ordering::Relaxed);
            }
            extended_to += growth.step;
            self.extended_to.store(extended_to, Ordering::Release);
        }
        self.extending_ns
            .fetch_add(begin.elapsed().as_nanos() as u64, Ordering::Relaxed);
        Ok(())
    }
}

/// What one worker has.
struct Worker<'a> {
    file: SyncedFile,
    payload: Payload,
    track: &'a Track,
}

/// What all workers of a trial share.
struct Shared<'a> {
    task: &'a Task<'a>,
    barrier: Barrier,
    failed: AtomicBool,
}

impl Shared<'_> {
    /// Does `ready` when all workers are there, and the operations when all have done that: starting
    /// the others is not in what `ready` reads.
    fn work<T>(
        &self,
        mut worker: Worker<'_>,
        ready: impl FnOnce() -> T,
    ) -> (io::Result<Worked>, T) {
        let mut worked = Worked::default();
        self.barrier.wait();
        let told = ready();
        self.barrier.wait();
        let result = self.operate(&mut worker, &mut worked);
        if result.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        (result.map(|()| worked), told)
    }

    fn operate(&self, worker: &mut Worker<'_>, worked: &mut Worked) -> io::Result<()> {
        let Worker {
            file,
            payload,
            track,
        } = worker;
        let strategy = self.task.strategy;
        let third = track.writes / 3;
        let begin = Instant::now();
        let deadline = begin.checked_add(self.task.time_limit);
        let mut last = begin;
        worked.begin = Some(begin);
        loop {
            let number = track.next.fetch_add(1, Ordering::Relaxed);
            if number >= track.writes {
                break;
            }
            let offset = strategy.offset(number);
            track.extend(offset + strategy.size, self.task.stop)?;
            file.write(payload.stamped(number), offset)?;
            let now = Instant::now();
            let latency = now - last;
            last = now;
            worked.operations += 1;
            if number == 0 {
                worked.first = worked.first.max(latency);
                worked.marks[0] = Some(now);
            } else {
                worked.rest.saturating_record(latency.as_nanos() as u64);
                if number == third {
                    worked.marks[1] = Some(now);
                } else if number == track.writes - 1 - third {
                    worked.marks[2] = Some(now);
                } else if number == track.writes - 1 {
                    worked.marks[3] = Some(now);
                }
            }
            if self.task.stop.is_requested() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if deadline.is_some_and(|deadline| now >= deadline)
                || self.failed.load(Ordering::Relaxed)
            {
                break;
            }
        }
        worked.end = Some(last);
        Ok(())
    }
}

/// What one worker, or all together, did.
struct Worked {
    begin: Option<Instant>,
    end: Option<Instant>,
    operations: u64,
    first: Duration,
    rest: Histogram<u64>,
    /// When write 0, the last of the first third, the one before the last third, and the last of a
    /// file were done.
    marks: [Option<Instant>; 4],
}

impl Default for Worked {
    fn default() -> Self {
        Worked {
            begin: None,
            end: None,
            operations: 0,
            first: Duration::ZERO,
            rest: new_histogram(),
            marks: [None; 4],
        }
    }
}

impl Worked {
    fn merge(&mut self, other: Worked) {
        self.begin = self.begin.into_iter().chain(other.begin).min();
        self.end = self.end.into_iter().chain(other.end).max();
        self.operations += other.operations;
        self.first = self.first.max(other.first);
        // Equal bounds: an error is not possible.
        let _ = self.rest.add(&other.rest);
        for (mine, theirs) in self.marks.iter_mut().zip(other.marks) {
            *mine = mine.or(theirs);
        }
    }

    /// Rate of the last third of a file's writes over that of the first third.
    fn drift(&self, writes: u64) -> Option<f64> {
        let [Some(first), Some(early), Some(late), Some(end)] = self.marks else {
            return None;
        };
        if writes < FEWEST_FOR_DRIFT || end <= late {
            return None;
        }
        Some((early - first).as_secs_f64() / (end - late).as_secs_f64())
    }
}

/// Counters at one moment.
struct Readings {
    device: Option<DeviceCounters>,
    commits: Option<u64>,
    everybody: CpuTimes,
    cpu: Duration,
}

impl Readings {
    fn take(site: &Site) -> Readings {
        Readings {
            device: site.counters(),
            commits: site.journal().commits(),
            everybody: CpuTimes::now().unwrap_or_default(),
            cpu: process_cpu(),
        }
    }

    fn since(&self, earlier: &Readings) -> Readings {
        Readings {
            device: self
                .device
                .zip(earlier.device)
                .map(|(now, then)| now.since(&then)),
            commits: self
                .commits
                .zip(earlier.commits)
                .map(|(now, then)| now.saturating_sub(then)),
            everybody: self.everybody.since(&earlier.everybody),
            cpu: self.cpu.saturating_sub(earlier.cpu),
        }
    }
}
