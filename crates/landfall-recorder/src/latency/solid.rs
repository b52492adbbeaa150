//! A device without moving parts: channels that work side by side, a bandwidth that they share, and a
//! limit on operations per second.
//!
//! A flush takes a fixed time once the writes before it are done; what comes after it does not wait for
//! it. A device whose flush takes no time has nothing to flush, and answers at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Request;
use super::profile::Setting;
use crate::quantity::{UNLIMITED, Unit};

const SECOND: u64 = 1_000_000_000;

/// The numbers of such a device: times in nanoseconds, `transfer` in bytes per second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Solid {
    /// Time of a read besides the transfer.
    pub read: u64,
    /// Time of a write besides the transfer.
    pub write: u64,
    /// What reads and writes share.
    pub transfer: u64,
    /// Reads and writes a second, evenly spaced.
    pub iops: u64,
    /// Operations under way at once; others wait.
    pub queue: u64,
    /// Time of a flush.
    pub flush: u64,
}

impl Solid {
    /// The numbers by name.
    pub fn settings(&mut self) -> Vec<(&'static str, Setting<'_>)> {
        let time = |value| Setting::number(value, Unit::Time, 0..=10 * SECOND);
        vec![
            ("read", time(&mut self.read)),
            ("write", time(&mut self.write)),
            (
                "transfer",
                Setting::number(&mut self.transfer, Unit::Rate, 1_000_000..=UNLIMITED),
            ),
            (
                "iops",
                Setting::number(&mut self.iops, Unit::Count, 1..=UNLIMITED),
            ),
            (
                "queue",
                Setting::number(&mut self.queue, Unit::Count, 1..=1024),
            ),
            ("flush", time(&mut self.flush)),
        ]
    }
}

/// Such a device at work. All times are nanoseconds since it began.
#[derive(Debug)]
pub(super) struct Flash {
    numbers: Solid,
    /// When each channel is free, the first one on top.
    channels: BinaryHeap<Reverse<u64>>,
    /// When the next byte can be transferred.
    transferring: u64,
    /// When the next operation may begin.
    next: u64,
    /// When all writes so far are done.
    written: u64,
    /// When all flushes so far are done.
    flushed: u64,
}

impl Flash {
    /// A device at rest.
    pub fn new(numbers: Solid) -> Flash {
        Flash {
            channels: (0..numbers.queue).map(|_| Reverse(0)).collect(),
            numbers,
            transferring: 0,
            next: 0,
            written: 0,
            flushed: 0,
        }
    }

    /// When a request is done that arrives now.
    pub fn finish(&mut self, now: u64, request: Request) -> u64 {
        match request {
            Request::Read { len, .. } => self.operate(now, self.numbers.read, len),
            Request::Write { len, .. } => {
                let done = self.operate(now, self.numbers.write, len);
                self.written = self.written.max(done);
                done
            }
            Request::Flush if self.numbers.flush == 0 => now,
            Request::Flush => {
                self.flushed = now.max(self.written).max(self.flushed) + self.numbers.flush;
                self.flushed
            }
        }
    }

    fn operate(&mut self, now: u64, time: u64, len: u64) -> u64 {
        let Reverse(channel) = self.channels.pop().unwrap_or(Reverse(0));
        let begin = now.max(channel).max(self.next);
        if self.numbers.iops != UNLIMITED {
            self.next = begin + SECOND.div_ceil(self.numbers.iops);
        }
        self.transferring =
            begin.max(self.transferring) + transfer_time(len, self.numbers.transfer);
        let done = self.transferring + time;
        self.channels.push(Reverse(done));
        done
    }
}

/// The time that `len` bytes take at `rate` bytes per second.
pub(super) fn transfer_time(len: u64, rate: u64) -> u64 {
    if rate == UNLIMITED {
        return 0;
    }
    let time = (u128::from(len) * u128::from(SECOND)).div_ceil(u128::from(rate.max(1)));
    u64::try_from(time).unwrap_or(u64::MAX)
}
