//! One trial: a number of durable writes, timed one by one.
//!
//! **Threads.** Files are opened before the workers start, so that no worker can fail before the
//! gate at which all begin together. The caller is one of the workers: it reads the counters when
//! all are there, and again when the last one is done; nothing else of this process runs meanwhile.
//! When it works alone a system call finds its file more cheaply, because no other thread can close
//! it meanwhile: 0.1 µs an operation.
//!
//! **Cost.** Around the system calls of an operation there is one clock read (the end of one
//! operation is the start of the next), one histogram entry, one store per sector of payload and a
//! few predictable branches. `cargo bench` compares that with a bare loop in C.
//!
//! **Failure.** The first worker that fails makes the others stop after their current operation.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use landfall_os::{DeviceCounters, OneProcessor, Payload, SyncedFile};

use super::track::Track;
use super::{Files, Strategy};
use crate::readings::Readings;
use crate::{Site, Stop};
use landfall_os::StartBarrier;

/// Longest latency that is told apart, in nanoseconds: longer ones count as this.
const LONGEST_NS: u64 = 300_000_000_000;
/// With fewer operations than this the first third cannot be compared with the last.
const FEWEST_FOR_DRIFT: u64 = 48;

/// Latencies in nanoseconds, to three significant digits.
pub(super) fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("constant bounds are valid")
}

/// Latencies of several trials, to two digits: the full plan keeps thousands of these.
pub(super) fn merging_histogram() -> Histogram<u64> {
    Histogram::new(2).expect("two digits are valid")
}

/// What is to be done.
pub(super) struct Task<'a> {
    pub strategy: &'a Strategy,
    pub paths: &'a [PathBuf],
    pub operations: u64,
    pub time_limit: Duration,
    /// Number of the trial in the run, so that no two write the same bytes to the same place.
    pub number: u64,
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
    /// Processors that others used, and that a hypervisor took away.
    pub foreign: (f64, f64),
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
        gate: StartBarrier::default(),
        failed: AtomicBool::new(false),
    };
    let mut workers = Vec::new();
    for thread in 0..strategy.threads as usize {
        let index = match strategy.files {
            Files::Shared => 0,
            Files::Each => thread,
        };
        let file = SyncedFile::open(&task.paths[index], strategy.method, span)?;
        // Seeds differ so that no two threads, and no two trials, write equal blocks.
        let seed = (task.number << 16) + thread as u64;
        let payload = Payload::new(strategy.size as usize, seed);
        workers.push(Worker {
            file,
            payload,
            track: &tracks[index],
        });
    }

    let Some(mine) = workers.pop() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };

    // Where counts are exact they are to be the same every time. ext4 has space at hand for each processor:
    // a thread that is moved scatters the file, and pays for more metadata from then on.
    let _staying = (strategy.threads == 1 && task.site.recorder().is_some())
        .then(|| OneProcessor::stay().ok());

    let (outcomes, ran) = std::thread::scope(|scope| {
        let shared = &shared;
        let mut handles = Vec::new();
        for worker in workers {
            let work = move || {
                if shared.gate.pass() {
                    shared.work(worker)
                } else {
                    Ok(Worked::default())
                }
            };
            match std::thread::Builder::new().spawn_scoped(scope, work) {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    shared.gate.call_off();
                    return Err(error);
                }
            }
        }
        let before = shared
            .gate
            .open(handles.len(), || Readings::take(task.site));
        let mut outcomes = vec![shared.work(mine)];
        outcomes.extend(handles.into_iter().map(|handle| {
            let panicked = |_| Err(io::Error::other("a worker panicked"));
            handle.join().unwrap_or_else(panicked)
        }));
        Ok((outcomes, Readings::take(task.site).since(&before)))
    })?;

    let mut whole = Worked::default();
    for outcome in outcomes {
        whole.merge(outcome?);
    }
    let (Some(begin), Some(end)) = (whole.begin, whole.end) else {
        return Err(io::Error::other("no operation was done"));
    };
    let elapsed = end - begin;
    Ok(Measured {
        operations: whole.operations,
        elapsed,
        first: whole.first,
        drift: whole.drift(per_file),
        rest: whole.rest,
        cpu: ran.cpu,
        device: ran.device,
        commits: ran.commits,
        extension_syncs: tracks.iter().map(|track| track.extensions().0).sum(),
        extending: tracks.iter().map(|track| track.extensions().1).sum(),
        cut: whole.operations < task.operations,
        foreign: ran.foreign(elapsed.as_secs_f64()),
    })
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
    gate: StartBarrier,
    failed: AtomicBool,
}

impl Shared<'_> {
    fn work(&self, mut worker: Worker<'_>) -> io::Result<Worked> {
        let mut worked = Worked::default();
        let result = self.operate(&mut worker, &mut worked);
        if result.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        result.map(|()| worked)
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
        while let Some(number) = track.next() {
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
