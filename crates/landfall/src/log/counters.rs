//! What a log has done since it was opened.

use std::time::Duration;

use hdrhistogram::Histogram;

/// What a log has done since it was opened.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Counters {
    /// Commits that a group made durable: of threads that waited, of callbacks and of futures.
    pub commits: u64,
    /// Groups of records that were made durable together.
    pub groups: u64,
    /// Writes.
    pub writes: u64,
    /// Flushes: of writes that were durable when they returned, and of files.
    pub flushes: u64,
    /// Bytes written: whole granules.
    pub bytes: u64,
    /// Bytes of them that were records, with what stands before each.
    pub record_bytes: u64,
    /// How often somebody had to wait for a segment to be made.
    pub segment_waits: u64,
    /// How long groups took to become durable.
    pub flush_times: FlushTimes,
}

impl Counters {
    /// Bytes written that were no records: headers of blocks, and what fills their last granules.
    pub fn padding(&self) -> u64 {
        self.bytes - self.record_bytes
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
    pub segment_waits: u64,
    /// In nanoseconds.
    flush_times: Option<Histogram<u64>>,
}

impl Tally {
    pub fn record_flush(&mut self, time: Duration) {
        if self.flush_times.is_none() {
            self.flush_times = Histogram::new(2).ok();
        }
        if let Some(times) = &mut self.flush_times {
            // It grows as far as it must.
            let _ = times.record(time.as_nanos().try_into().unwrap_or(u64::MAX));
        }
    }

    pub fn counters(&self) -> Counters {
        let at = |quantile: f64| {
            let times = self.flush_times.as_ref();
            Duration::from_nanos(times.map_or(0, |times| times.value_at_quantile(quantile)))
        };
        Counters {
            commits: self.commits,
            groups: self.groups,
            writes: self.writes,
            flushes: self.flushes,
            bytes: self.bytes,
            record_bytes: self.record_bytes,
            segment_waits: self.segment_waits,
            flush_times: FlushTimes {
                p50: at(0.5),
                p99: at(0.99),
                p999: at(0.999),
                max: at(1.0),
            },
        }
    }
}
