//! A file as several workers write it: its next position, and how far it has been extended.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use landfall_os::zero_fill;

use super::Strategy;
use crate::Stop;

/// The next position in a file, and how far the file has been extended.
pub(crate) struct Track {
    next: AtomicU64,
    /// Writes that the file takes.
    pub writes: u64,
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
    pub fn open(strategy: &Strategy, path: &Path, writes: u64) -> io::Result<Track> {
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

    /// The number of the next write, for whoever asks first.
    #[inline]
    pub fn next(&self) -> Option<u64> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number < self.writes).then_some(number)
    }

    /// Makes sure that the file has written blocks up to `end`: what an autoextending tablespace
    /// does, zeros through the page cache and one sync, while whoever needs the space waits.
    #[inline]
    pub fn extend(&self, end: u64, stop: &Stop) -> io::Result<()> {
        if end <= self.extended_to.load(Ordering::Acquire) {
            return Ok(());
        }
        match &self.growth {
            Some(growth) => self.grow(growth, end, stop),
            None => Ok(()),
        }
    }

    #[cold]
    fn grow(&self, growth: &Mutex<Growth>, end: u64, stop: &Stop) -> io::Result<()> {
        let growth = growth.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever held the lock before may have done it.
        let mut extended_to = self.extended_to.load(Ordering::Acquire);
        let begin = Instant::now();
        while extended_to < end {
            let to = extended_to + growth.step;
            zero_fill(&growth.file, extended_to, to, &|| stop.is_requested())?;
            if growth.durable {
                growth.file.sync_data()?;
                self.syncs.fetch_add(1, Ordering::Relaxed);
            }
            extended_to = to;
            self.extended_to.store(extended_to, Ordering::Release);
        }
        let took = begin.elapsed().as_nanos() as u64;
        self.extending_ns.fetch_add(took, Ordering::Relaxed);
        Ok(())
    }

    /// How often, and for how long, the file was extended so far.
    pub fn extensions(&self) -> (u64, Duration) {
        (
            self.syncs.load(Ordering::Relaxed),
            Duration::from_nanos(self.extending_ns.load(Ordering::Relaxed)),
        )
    }
}
