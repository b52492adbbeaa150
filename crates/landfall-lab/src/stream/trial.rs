//! One trial: a state handed over chunk after chunk, then synced.
//!
//! Around each chunk there is one clock read. Between the phases, outside both, the kernel is asked how
//! much is still dirty; the device works on meanwhile, for some tens of microseconds.

use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use landfall_os::{
    Content, DeviceCounters, Medium, StreamFile, dirty_bytes, dirty_bytes_of, peak_resident,
    reset_peak_resident,
};

use landfall_results::metric::Figures;
use landfall_results::{Metric, Trial};

use super::files::Prepared;
use super::{Data, Strategy};
use crate::readings::Readings;
use crate::{Site, Stop};

/// Parts of a state whose times are kept, to see where in it the pace breaks; of few chunks, each.
pub(super) const PARTS: u64 = 64;
/// Of a state, a sync that finds less than this left has nothing to do whose rate could be told.
const NOTHING_LEFT: f64 = 0.05;

const MIB: f64 = 1048576.0;
const GIB: f64 = 1073741824.0;

/// What is to be done.
pub(super) struct Task<'a> {
    pub strategy: &'a Strategy,
    pub prepared: &'a Prepared,
    pub round: u32,
    /// Makes the bytes of each trial unlike those of the others.
    pub seed: u64,
    pub site: &'a Site,
    pub stop: &'a Stop,
}

/// What the bytes of a trial are.
pub(super) fn content(data: Data, seed: u64) -> Content {
    match data {
        Data::Incompressible => Content::Random { seed },
        Data::Zeros => Content::Zeros,
    }
}

/// Hands the state over and syncs it.
pub(super) fn run(task: &Task<'_>) -> io::Result<Trial> {
    let strategy = task.strategy;
    let mut file = StreamFile::open(
        &task.prepared.path,
        strategy.method,
        strategy.size,
        strategy.chunk,
        content(strategy.data, task.seed),
    )?;
    let has_peak = reset_peak_resident().is_ok();
    let before = Readings::take(task.site);
    let handed = hand_over(&mut file, strategy, task.stop)?;
    let left = left(task);
    let begin = Instant::now();
    file.sync()?;
    let sync = begin.elapsed();
    let ran = Readings::take(task.site).since(&before);
    let peak = peak_resident().ok().filter(|_| has_peak);

    let (hand_over, sync) = (handed.elapsed.as_secs_f64(), sync.as_secs_f64());
    let megabytes = strategy.size as f64 / 1e6;
    let left = left.min(strategy.size) as f64;
    let (foreign_cpus, stolen_cpus) = ran.foreign(hand_over + sync);
    let device = |count: fn(&DeviceCounters) -> f64| ran.device.as_ref().map(count);
    let preparation = task.prepared.preparation;
    Ok(Trial {
        round: task.round,
        figures: Figures::default()
            .with(Metric::Seconds, hand_over + sync)
            .with(Metric::HandOverSeconds, hand_over)
            .with(Metric::SyncSeconds, sync)
            .with(Metric::HandOverMbPerS, megabytes / hand_over)
            .with(
                Metric::SyncMbPerS,
                (left > NOTHING_LEFT * strategy.size as f64).then(|| left / 1e6 / sync),
            )
            .with(Metric::TotalMbPerS, megabytes / (hand_over + sync))
            .with(Metric::LongestStallMs, handed.longest.as_secs_f64() * 1e3)
            .with(Metric::LeftMib, left / MIB)
            .with(
                Metric::DirtyBeforeMib,
                task.prepared.dirty_before as f64 / MIB,
            )
            .with(
                Metric::PeakResidentMib,
                peak.map(|bytes| bytes as f64 / MIB),
            )
            .with(
                Metric::CpuSPerGib,
                ran.cpu.as_secs_f64() / (strategy.size as f64 / GIB),
            )
            .with(
                Metric::DeviceWrittenMib,
                device(|counted| counted.write_bytes as f64 / MIB),
            )
            .with(
                Metric::DeviceReadMib,
                device(|counted| counted.read_bytes as f64 / MIB),
            )
            .with(
                Metric::DeviceWriteRequests,
                device(|counted| counted.write_requests as f64),
            )
            .with(
                Metric::DeviceFlushes,
                device(|counted| counted.flushes as f64),
            )
            .with(Metric::PreparationSeconds, preparation.seconds)
            .with(Metric::PreparationBytes, preparation.bytes as f64)
            .with(Metric::ForeignCpus, foreign_cpus)
            .with(Metric::StolenCpus, stolen_cpus),
        pace: handed.pace,
        ..Trial::default()
    })
}

/// Bytes that the hand-over left for the sync: of this file, or where the kernel does not tell that
/// (before Linux 6.5), of the whole machine beyond those before. In main memory there is nothing to sync.
fn left(task: &Task<'_>) -> u64 {
    if task.site.filesystem().storage().medium == Medium::Memory {
        return 0;
    }
    let of_file = File::open(&task.prepared.path).and_then(|file| dirty_bytes_of(&file));
    let of_machine =
        || dirty_bytes().map_or(0, |dirty| dirty.saturating_sub(task.prepared.dirty_before));
    of_file.unwrap_or_else(|_| of_machine())
}

/// A hand-over.
pub(super) struct Handed {
    pub elapsed: Duration,
    /// The longest single call.
    pub longest: Duration,
    /// Seconds at which each of equal parts had been handed over.
    pub pace: Vec<f64>,
}

/// Hands over all chunks, and waits for those in flight.
pub(super) fn hand_over(
    file: &mut StreamFile,
    strategy: &Strategy,
    stop: &Stop,
) -> io::Result<Handed> {
    let chunks = strategy.size.div_ceil(strategy.chunk);
    // Equal parts, or as good as equal.
    let parts = if chunks < 4 * PARTS { chunks } else { PARTS };
    let mut pace = Vec::with_capacity(parts as usize);
    let mut longest = Duration::ZERO;
    let begin = Instant::now();
    let mut last = begin;
    for number in 0..chunks {
        let len = (strategy.size - number * strategy.chunk).min(strategy.chunk);
        file.hand_over(number, len as usize)?;
        let now = Instant::now();
        longest = longest.max(now - last);
        last = now;
        if (number + 1) * parts / chunks > number * parts / chunks {
            pace.push((now - begin).as_secs_f64());
        }
        if stop.is_requested() {
            return Err(io::ErrorKind::Interrupted.into());
        }
    }
    file.finish()?;
    let now = Instant::now();
    longest = longest.max(now - last);
    Ok(Handed {
        elapsed: now - begin,
        longest,
        pace,
    })
}
