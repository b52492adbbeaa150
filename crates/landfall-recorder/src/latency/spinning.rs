//! A disk that spins: one arm, and perhaps a write cache that is emptied in the background.
//!
//! Without a cache a write is answered when it is on the platter, and requests are done in the order in
//! which they come. With one it is answered as soon as it has crossed the interface; the arm writes it
//! whenever nothing else is to be done, in the order of an elevator, and starts at once. A volatile cache
//! is emptied by a flush. A battery keeps it: a flush has nothing to wait for. When the cache is full,
//! whether of sectors or of pieces, a write waits until there is room for it.
//!
//! All of this is worked out when a request comes: what the arm did in the background until then is
//! caught up with first. Each piece is written once, so that a request costs O(log pieces) on average,
//! and one that finds much to catch up with, or flushes it, pays for all of it.
//!
//! Causality: the arm never writes what has not crossed the interface yet, and never does anything before
//! it is done with what was promised. A promise, once given, is kept: later requests cannot overtake.

use super::arm::{Arm, Mechanics};
use super::cache::Dirty;
use super::profile::Setting;
use super::solid::transfer_time;
use super::{Request, SECTOR};
use crate::quantity::{AS_DEVICE, Unit};

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1000 * MILLISECOND;

/// What happens to a write before it is on the platter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cache {
    /// Nothing: the answer waits for the platter.
    Off,
    /// It is kept in memory that a power cut empties.
    Volatile,
    /// It is kept in memory that survives a power cut.
    Battery,
}

impl Cache {
    pub const ALL: [Cache; 3] = [Cache::Off, Cache::Volatile, Cache::Battery];

    pub fn name(self) -> &'static str {
        match self {
            Cache::Off => "off",
            Cache::Volatile => "volatile",
            Cache::Battery => "battery",
        }
    }
}

/// The numbers of such a disk: times in nanoseconds, rates in bytes per second, sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spinning {
    /// From a track to the next one.
    pub shortest_seek: u64,
    /// From the first track to the last one.
    pub longest_seek: u64,
    /// One revolution.
    pub rotation: u64,
    /// What passes under the head.
    pub transfer: u64,
    /// What the cable to the cache carries.
    pub interface: u64,
    /// What a read or write costs besides.
    pub command: u64,
    /// What a flush costs besides.
    pub flush: u64,
    pub cache: Cache,
    pub cache_size: u64,
    /// Pieces, apart from each other, that the cache holds and the elevator sorts.
    pub queue: u64,
    /// The whole disk, of which the device is the beginning.
    pub capacity: u64,
}

impl Spinning {
    /// The numbers by name.
    pub fn settings(&mut self) -> Vec<(&'static str, Setting<'_>)> {
        let time = |value| Setting::number(value, Unit::Time, 0..=10 * SECOND);
        let rate = |value| Setting::number(value, Unit::Rate, 1_000_000..=10_000_000_000);
        let rotation = MILLISECOND..=100 * MILLISECOND;
        vec![
            (
                "seek",
                Setting::Seek {
                    shortest: &mut self.shortest_seek,
                    longest: &mut self.longest_seek,
                },
            ),
            (
                "rotation",
                Setting::number(&mut self.rotation, Unit::Time, rotation),
            ),
            ("transfer", rate(&mut self.transfer)),
            ("interface", rate(&mut self.interface)),
            ("command", time(&mut self.command)),
            ("flush", time(&mut self.flush)),
            ("cache", Setting::Cache(&mut self.cache)),
            (
                "cache-size",
                Setting::number(&mut self.cache_size, Unit::Size, 64 << 10..=64 << 30),
            ),
            (
                "queue",
                // The limit keeps the memory of the model below some 10 MiB.
                Setting::number(&mut self.queue, Unit::Count, 1..=1 << 18),
            ),
            (
                "capacity",
                Setting::number(&mut self.capacity, Unit::Size, AS_DEVICE..=1 << 50),
            ),
        ]
    }
}

/// Such a disk at work. All times are nanoseconds since it began.
#[derive(Debug)]
pub(super) struct Disk {
    numbers: Spinning,
    arm: Arm,
    dirty: Dirty,
    /// When the interface is free.
    interface: u64,
    /// Until then a flush keeps everything else waiting: the commands of ATA for it are not queued.
    flushed: u64,
    /// Whether the last thing that the arm did was to read; then it reads on, into its buffer.
    reads_on: bool,
}

impl Disk {
    /// A disk of at least `size` bytes, at rest, with an empty cache.
    pub fn new(numbers: Spinning, size: u64) -> Disk {
        Disk {
            arm: Arm::new(Mechanics {
                rotation: numbers.rotation,
                transfer: numbers.transfer,
                shortest_seek: numbers.shortest_seek,
                longest_seek: numbers.longest_seek,
                sectors: size.max(numbers.capacity).div_ceil(SECTOR),
            }),
            numbers,
            dirty: Dirty::default(),
            interface: 0,
            flushed: 0,
            reads_on: false,
        }
    }

    /// When a request is done that arrives now.
    pub fn finish(&mut self, now: u64, request: Request) -> u64 {
        let now = now.max(self.flushed);
        match request {
            Request::Read { offset, len } => {
                let (start, end) = sectors(offset, len);
                self.read(now, start, end)
            }
            Request::Write { offset, len } => {
                let (start, end) = sectors(offset, len);
                match self.numbers.cache {
                    Cache::Off => self.put(now + self.numbers.command, start, end),
                    Cache::Volatile | Cache::Battery => self.keep(now, start, end),
                }
            }
            Request::Flush => self.flush(now),
        }
    }

    /// Reads go before what is in the cache, but do not interrupt what the arm is doing.
    fn read(&mut self, now: u64, start: u64, end: u64) -> u64 {
        self.write_behind(now);
        let from = now + self.numbers.command;
        if self.reads_on && self.arm.at == start {
            // The buffer holds what has passed since, up to one track of it.
            let begun = self.arm.free.max(now.saturating_sub(self.arm.rotation()));
            self.arm.free = begun + self.arm.passing(start, end);
            self.arm.at = end;
            let crossed = from + transfer_time((end - start) * SECTOR, self.numbers.interface);
            return self.arm.free.max(crossed);
        }
        self.reads_on = true;
        self.arm.pass(from, start, end)
    }

    /// Puts a write onto the platter.
    fn put(&mut self, from: u64, start: u64, end: u64) -> u64 {
        self.reads_on = false;
        self.arm.pass(from, start, end)
    }

    /// Puts a write into the cache; when it is there.
    fn keep(&mut self, now: u64, start: u64, end: u64) -> u64 {
        let crossing = transfer_time((end - start) * SECTOR, self.numbers.interface);
        let kept = now.max(self.interface) + self.numbers.command + crossing;
        self.interface = kept;
        self.write_behind(kept);
        self.arm.free = self.arm.free.max(kept);
        self.dirty.add(start, end);
        let room = self.numbers.cache_size / SECTOR;
        let mut done = kept;
        while self.dirty.sectors() > room || self.dirty.pieces() > self.numbers.queue {
            if !self.write_next() {
                break;
            }
            done = self.arm.free;
        }
        done
    }

    fn flush(&mut self, now: u64) -> u64 {
        let durable = match self.numbers.cache {
            Cache::Battery => now,
            Cache::Off | Cache::Volatile => {
                while self.write_next() {}
                // What is still crossing the interface is before the arm's next move.
                now.max(self.arm.free)
            }
        };
        self.flushed = durable + self.numbers.flush;
        self.flushed
    }

    /// Catches up with what the arm began in the background before `until`.
    fn write_behind(&mut self, until: u64) {
        while self.arm.free < until && self.write_next() {}
    }

    /// Writes the next piece of the cache, at most a track of it, so that reads come in between; whether
    /// there was one.
    fn write_next(&mut self) -> bool {
        let Some((start, end)) = self.dirty.take(self.arm.at, self.arm.per_track()) else {
            return false;
        };
        self.put(self.arm.free, start, end);
        true
    }
}

/// The sectors that hold `len` bytes from `offset`.
fn sectors(offset: u64, len: u64) -> (u64, u64) {
    let end = offset.saturating_add(len).div_ceil(SECTOR);
    (offset / SECTOR, end)
}
