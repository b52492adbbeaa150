//! What a log has done since it was opened.

use std::time::Duration;

/// Counts of what a log did since it was opened.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Counters {
    /// Commits that waited for a group: of threads, callbacks and futures.
    pub commits: u64,
    /// Groups of records that were made durable together.
    pub groups: u64,
    /// Calls that wrote blocks.
    pub writes: u64,
    /// Flushes: writes that were durable on return, and syncs of files.
    pub flushes: u64,
    /// Bytes written, in whole granules.
    pub bytes: u64,
    /// Bytes of records among them, with the four bytes before each.
    pub record_bytes: u64,
    /// Bytes of zeros written ahead, besides: of each segment once, so that what comes overwrites. Where the filesystem cannot
    /// allocate space (ext3), making a segment costs as many again, which are not counted.
    pub zero_bytes: u64,
    /// Bytes of control records and of headers of segments, besides.
    pub control_bytes: u64,
    /// How often a thread waited for a segment to be made.
    pub segment_waits: u64,
    /// How long groups took to become durable.
    pub flush_times: FlushTimes,
}

impl Counters {
    /// Bytes written that were not records: block headers and padding.
    pub fn padding(&self) -> u64 {
        self.bytes - self.record_bytes
    }

    /// All bytes written.
    pub fn all_bytes(&self) -> u64 {
        self.bytes + self.zero_bytes + self.control_bytes
    }
}

/// How long groups took to become durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlushTimes {
    /// Median.
    pub p50: Duration,
    /// 99th percentile.
    pub p99: Duration,
    /// 99.9th percentile.
    pub p999: Duration,
    /// The longest.
    pub max: Duration,
}

#[derive(Default)]
pub(crate) struct Tally {
    pub commits: u64,
    pub groups: u64,
    pub writes: u64,
    pub flushes: u64,
    pub bytes: u64,
    pub record_bytes: u64,
    pub zero_bytes: u64,
    pub control_bytes: u64,
    pub segment_waits: u64,
    flush_times: Times,
}

impl Tally {
    pub fn record_flush(&mut self, time: Duration) {
        self.flush_times.record(time);
    }

    pub fn counters(&self) -> Counters {
        Counters {
            commits: self.commits,
            groups: self.groups,
            writes: self.writes,
            flushes: self.flushes,
            bytes: self.bytes,
            record_bytes: self.record_bytes,
            zero_bytes: self.zero_bytes,
            control_bytes: self.control_bytes,
            segment_waits: self.segment_waits,
            flush_times: FlushTimes {
                p50: self.flush_times.quantile(0.5),
                p99: self.flush_times.quantile(0.99),
                p999: self.flush_times.quantile(0.999),
                max: self.flush_times.max,
            },
        }
    }
}

/// Times by their nanoseconds' first seven binary digits: each is known within 1%.
#[derive(Default)]
struct Times {
    counts: Vec<u64>,
    max: Duration,
}

impl Times {
    /// Slots for each power of two.
    const SLOTS: u64 = 64;

    fn slot(nanoseconds: u64) -> u64 {
        let shift = (nanoseconds / (2 * Self::SLOTS))
            .checked_ilog2()
            .map_or(0, |log| log + 1);
        u64::from(shift) * Self::SLOTS + (nanoseconds >> shift)
    }

    /// The greatest that is in a slot.
    fn upper(slot: u64) -> u64 {
        let shift = (slot / Self::SLOTS).saturating_sub(1);
        ((slot - shift * Self::SLOTS + 1) << shift) - 1
    }

    fn record(&mut self, time: Duration) {
        let slot = Self::slot(time.as_nanos().min(1 << 62) as u64) as usize;
        if slot >= self.counts.len() {
            self.counts.resize(slot + 1, 0);
        }
        self.counts[slot] += 1;
        self.max = self.max.max(time);
    }

    fn quantile(&self, quantile: f64) -> Duration {
        let wanted = (self.counts.iter().sum::<u64>() as f64 * quantile).ceil() as u64;
        let mut before = 0;
        let slot = self.counts.iter().position(|count| {
            before += count;
            before >= wanted.max(1)
        });
        let upper = slot.map_or(0, |slot| Self::upper(slot as u64));
        Duration::from_nanos(upper).min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::environment::System;
    use crate::fuzzing::memory::Memory;
    use crate::log::Handle;
    use crate::log::format::CONTROL;

    #[test]
    fn everything_is_counted() {
        let world = System::new(Memory::default());
        let options = Options::default().segment_bytes(4096);
        let log = Handle::open(&world, options).unwrap();
        log.append_durable(&[7; 100]).unwrap();
        log.append(&[7; 500]).unwrap();
        log.append_durable(&[7; 10]).unwrap();
        let found = log.shared.counters();
        let times = found.flush_times;
        assert!(times.p50 <= times.p99 && times.p99 <= times.p999 && times.p999 <= times.max);
        assert!(times.max > Duration::ZERO);
        let expected = Counters {
            commits: 2,
            groups: 2,
            writes: 2,
            flushes: 2,
            bytes: 512 + 1024,
            record_bytes: 3 * 4 + 610,
            // Both depend on what the thread that makes segments has come to.
            zero_bytes: found.zero_bytes,
            control_bytes: found.control_bytes,
            segment_waits: 0,
            flush_times: times,
        };
        assert_eq!(found, expected);
        assert_eq!(found.padding(), 1536 - 622);
        let control = found.control_bytes;
        log.close().unwrap();
        // The record of a clean end, in two copies.
        let more = log.shared.counters().control_bytes - control;
        assert!(more >= 2 * CONTROL as u64);
        assert_eq!(more % 512, 0);
    }

    #[test]
    fn times_are_known_within_a_hundredth() {
        for nanoseconds in (0..5000).chain([1 << 20, (1 << 40) + 12345, 1 << 62]) {
            let upper = Times::upper(Times::slot(nanoseconds));
            assert!(upper >= nanoseconds, "{nanoseconds}: {upper}");
            assert!(
                upper - nanoseconds <= nanoseconds / 64,
                "{nanoseconds}: {upper}"
            );
        }
    }

    #[test]
    fn quantiles_are_of_all_times() {
        let mut times = Times::default();
        assert_eq!(times.quantile(0.5), Duration::ZERO);
        (1..=1000).for_each(|number| times.record(Duration::from_micros(number)));
        for (quantile, micros) in [(0.5, 500), (0.99, 990), (1.0, 1000)] {
            let found = times.quantile(quantile).as_nanos();
            assert!(
                (micros * 1000..micros * 1016).contains(&found),
                "{quantile}: {found}"
            );
        }
    }
}
