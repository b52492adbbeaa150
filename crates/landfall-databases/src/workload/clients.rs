//! Clients that ask a database at the same time.
//!
//! **Threads.** Each client has a thread; they begin together at a gate. The caller's own thread takes the
//! readings when all are there, looks on while they work, and says when it is enough; each then ends its
//! request, so that what was counted belongs to whole requests.
//!
//! **Failure.** The first client that fails makes the others stop after their current request. A request
//! that was rolled back because of another one is counted, and the client goes on; its time is part of
//! the latency of the next that is done, because whoever wants something done waits for both.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::Client;
use crate::DatabaseError;
use landfall_os::StartBarrier;
use landfall_os::Stop;

/// Longest latency that is told apart, in nanoseconds: longer ones count as this.
const LONGEST_NS: u64 = 300_000_000_000;
/// How often the caller looks on.
const TICK: Duration = Duration::from_millis(5);

/// What clients did together.
#[derive(Debug)]
pub struct Worked {
    /// Latencies in nanoseconds, for each kind of request.
    pub latencies: Vec<Histogram<u64>>,
    /// Requests that were rolled back because of another one.
    pub conflicts: u64,
    /// From the first client's beginning to the last one's end.
    pub elapsed: Duration,
}

impl Worked {
    /// Requests done.
    pub fn requests(&self) -> u64 {
        self.latencies.iter().map(Histogram::len).sum()
    }

    /// Latencies of all requests.
    pub fn latency(&self) -> Histogram<u64> {
        let mut all = histogram();
        for kind in &self.latencies {
            // Equal bounds: an error is not possible.
            let _ = all.add(kind);
        }
        all
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, 2).expect("constant bounds are valid")
}

/// Lets `clients`, whose requests are of `kinds` kinds, work until `is_enough`, which is asked every few
/// milliseconds with the time passed and the requests done so far, or until `stop` is requested.
/// `begin` is called when all are about to begin.
pub fn work<T>(
    clients: &mut [Box<dyn Client>],
    kinds: usize,
    stop: &Stop,
    begin: impl FnOnce() -> T,
    is_enough: &mut dyn FnMut(Duration, u64) -> bool,
) -> Result<(T, Worked), DatabaseError> {
    let gate = StartBarrier::default();
    let over = AtomicBool::new(false);
    let done: Vec<AtomicU64> = clients.iter().map(|_| AtomicU64::new(0)).collect();
    let (told, outcomes) = thread::scope(|scope| {
        let mut handles = Vec::new();
        for (client, done) in clients.iter_mut().zip(&done) {
            let (gate, over) = (&gate, &over);
            let work = move || {
                if gate.pass() {
                    ask(client.as_mut(), kinds, over, done)
                } else {
                    Ok(Asked::new(kinds))
                }
            };
            match thread::Builder::new().spawn_scoped(scope, work) {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    gate.call_off();
                    let text = format!("the system gives no more threads for clients: {error}");
                    return Err(DatabaseError::Refused(text));
                }
            }
        }
        let told = gate.open(handles.len(), begin);
        let begin = Instant::now();
        let all = || done.iter().map(|one| one.load(Ordering::Relaxed)).sum();
        while !over.load(Ordering::Relaxed)
            && !stop.is_requested()
            && !is_enough(begin.elapsed(), all())
        {
            thread::sleep(TICK);
        }
        over.store(true, Ordering::Relaxed);
        let panicked = |_| Err(DatabaseError::Failed("a client panicked".into()));
        let outcomes: Vec<_> = handles
            .into_iter()
            .map(|handle| handle.join().unwrap_or_else(panicked))
            .collect();
        Ok((told, outcomes))
    })?;
    if stop.is_requested() {
        return Err(DatabaseError::Stopped);
    }
    let mut whole: Option<Asked> = None;
    for asked in outcomes {
        let asked = asked?;
        match &mut whole {
            Some(whole) => whole.merge(&asked),
            None => whole = Some(asked),
        }
    }
    let whole = whole.unwrap_or_else(|| Asked::new(kinds));
    let worked = Worked {
        latencies: whole.latencies,
        conflicts: whole.conflicts,
        elapsed: whole.end - whole.begin,
    };
    Ok((told, worked))
}

/// What one client did, or all together.
struct Asked {
    latencies: Vec<Histogram<u64>>,
    conflicts: u64,
    begin: Instant,
    end: Instant,
}

impl Asked {
    fn new(kinds: usize) -> Asked {
        let now = Instant::now();
        Asked {
            latencies: (0..kinds).map(|_| histogram()).collect(),
            conflicts: 0,
            begin: now,
            end: now,
        }
    }

    fn merge(&mut self, other: &Asked) {
        for (mine, theirs) in self.latencies.iter_mut().zip(&other.latencies) {
            let _ = mine.add(theirs);
        }
        self.conflicts += other.conflicts;
        self.begin = self.begin.min(other.begin);
        self.end = self.end.max(other.end);
    }
}

/// One client: one request after the other.
fn ask(
    client: &mut dyn Client,
    kinds: usize,
    over: &AtomicBool,
    done: &AtomicU64,
) -> Result<Asked, DatabaseError> {
    let mut asked = Asked::new(kinds);
    let mut last = asked.begin;
    while !over.load(Ordering::Relaxed) {
        let kind = match client.request() {
            Ok(kind) => kind,
            Err(DatabaseError::Conflict(_)) => {
                asked.conflicts += 1;
                continue;
            }
            Err(error) => {
                over.store(true, Ordering::Relaxed);
                return Err(error);
            }
        };
        let now = Instant::now();
        if let Some(latencies) = asked.latencies.get_mut(kind) {
            latencies.saturating_record((now - last).as_nanos() as u64);
        }
        done.fetch_add(1, Ordering::Relaxed);
        last = now;
    }
    asked.end = last;
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails at its last request; every third is rolled back.
    struct Counter {
        requests: u64,
        last: Option<u64>,
    }

    impl Client for Counter {
        fn request(&mut self) -> Result<usize, DatabaseError> {
            self.requests += 1;
            thread::sleep(Duration::from_micros(100));
            match self.requests {
                number if Some(number) == self.last => Err(DatabaseError::Failed("over".into())),
                number if number.is_multiple_of(3) => Err(DatabaseError::Conflict(String::new())),
                number => Ok((number % 2) as usize),
            }
        }
    }

    fn counters(last: Option<u64>) -> Vec<Box<dyn Client>> {
        let client = |_| Box::new(Counter { requests: 0, last }) as Box<dyn Client>;
        (0..4).map(client).collect()
    }

    #[test]
    fn all_requests_are_counted_by_kind() {
        let mut clients = counters(None);
        let mut seen = 0;
        let (told, worked) = work(&mut clients, 2, &Stop::default(), || 7, &mut |_, done| {
            seen = done;
            done >= 50
        })
        .unwrap();
        assert_eq!(told, 7);
        assert!(seen >= 50 && worked.requests() >= seen);
        assert_eq!(worked.latency().len(), worked.requests());
        assert!(worked.latencies.iter().all(|kind| !kind.is_empty()));
        assert!(worked.conflicts > 0 && worked.elapsed > Duration::ZERO);
    }

    #[test]
    fn one_that_fails_ends_it_and_so_does_a_wish_to_stop() {
        let stop = Stop::default();
        let failed = work(&mut counters(Some(5)), 2, &stop, || (), &mut |_, _| false);
        assert_eq!(failed.unwrap_err().to_string(), "over");
        stop.flag().store(true, Ordering::Relaxed);
        let stopped = work(&mut counters(None), 2, &stop, || (), &mut |_, _| false);
        assert_eq!(stopped.unwrap_err(), DatabaseError::Stopped);
    }
}
