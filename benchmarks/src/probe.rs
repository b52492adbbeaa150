//! What else took long while a commit did: the machine, which let no thread run, or the disk, which synced no other file.
//!
//! Two threads look, all the time: one sleeps, and sees how much too long; one overwrites a page of a file of its own beside
//! the store, and syncs it. What both did quickly while a commit was slow, the store was slow at.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::Fallible;
use crate::place::Scratch;

/// What took less is not kept.
const LONG: Duration = Duration::from_millis(10);
/// How long the one sleeps, and the other between two syncs.
const SLEEP: Duration = Duration::from_millis(1);
const BETWEEN: Duration = Duration::from_millis(10);
/// How many of the slowest are told.
const TOLD: usize = 10;

/// What took long, in the order of time.
#[derive(Default)]
pub struct Slow(Vec<(Instant, Duration)>);

impl Slow {
    /// Keeps what began then, if it took long.
    pub fn note(&mut self, begin: Instant, took: Duration) {
        if took >= LONG {
            self.0.push((begin, took));
        }
    }

    /// The longest time that any of these and that one have in common.
    fn in_common(&self, (begin, took): (Instant, Duration)) -> Duration {
        let shared = self.0.iter().map(|&(other, length)| {
            let end = (begin + took).min(other + length);
            end.saturating_duration_since(begin.max(other))
        });
        shared.max().unwrap_or_default()
    }
}

/// What was slow beside some work.
#[derive(Default)]
pub struct Beside {
    machine: Slow,
    disk: Slow,
}

/// Does some work, and looks what is slow beside it, on the filesystem of a directory.
pub fn beside<R>(directory: &Path, work: impl FnOnce() -> Fallible<R>) -> Fallible<(R, Beside)> {
    let scratch = Scratch::new(directory, "probe")?;
    let file = File::create(scratch.path().join("page"))?;
    let page = [7; 4096];
    file.write_all_at(&page, 0)?;
    file.sync_all()?;
    let stop = AtomicBool::new(false);
    let goes_on = || !stop.load(Ordering::Relaxed);
    thread::scope(|scope| {
        let machine = scope.spawn(|| {
            let mut slow = Slow::default();
            while goes_on() {
                let begin = Instant::now();
                thread::sleep(SLEEP);
                slow.note(begin + SLEEP, begin.elapsed().saturating_sub(SLEEP));
            }
            slow
        });
        let disk = scope.spawn(|| -> Fallible<Slow> {
            let mut slow = Slow::default();
            while goes_on() {
                let begin = Instant::now();
                file.write_all_at(&page, 0)?;
                file.sync_data()?;
                slow.note(begin, begin.elapsed());
                thread::sleep(BETWEEN);
            }
            Ok(slow)
        });
        let done = work();
        stop.store(true, Ordering::Relaxed);
        let panicked = |_| "a probe panicked";
        let machine = machine.join().map_err(panicked)?;
        let disk = disk.join().map_err(panicked)??;
        Ok((done?, Beside { machine, disk }))
    })
}

impl Beside {
    /// Tells the slowest of some commits, since then, and what else was slow at the time.
    pub fn tell(&self, since: Instant, commits: &Slow) {
        let mut slowest = commits.0.clone();
        slowest.sort_by_key(|&(_, took)| std::cmp::Reverse(took));
        for &slow in slowest.iter().take(TOLD) {
            let (begin, took) = slow;
            eprintln!(
                "a commit took {} ms, {} s after the start; meanwhile no thread ran for {} ms, and another file was synced for {} ms",
                took.as_millis(),
                begin.duration_since(since).as_secs(),
                self.machine.in_common(slow).as_millis(),
                self.disk.in_common(slow).as_millis(),
            );
        }
    }
}
