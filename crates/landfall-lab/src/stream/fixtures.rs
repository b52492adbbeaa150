//! Made-up results for tests.

use landfall_os::{Allocation, DirtyLimits, StreamMethod};

use super::{Ceiling, Data, Plan, Strategy, StreamResults, Wall};
use crate::PlanKind;
use crate::stats::Estimate;
use landfall_results::metric::Figures;
use landfall_results::{Metric, Series, Trial};

const MIB: f64 = 1048576.0;

/// A trial of `strategy` that handed over and synced at these rates, in MB/s.
pub(crate) fn trial(strategy: &Strategy, round: u32, hand_over: f64, total: f64) -> Trial {
    let megabytes = strategy.size as f64 / 1e6;
    let hand_over_seconds = megabytes / hand_over;
    let sync_seconds = megabytes / total - hand_over_seconds;
    let mib = strategy.size as f64 / MIB;
    let buffered = strategy.is_buffered();
    Trial {
        round,
        figures: Figures::default()
            .with(Metric::Seconds, hand_over_seconds + sync_seconds)
            .with(Metric::HandOverSeconds, hand_over_seconds)
            .with(Metric::SyncSeconds, sync_seconds)
            .with(Metric::HandOverMbPerS, hand_over)
            .with(
                Metric::SyncMbPerS,
                buffered.then(|| megabytes / sync_seconds),
            )
            .with(Metric::TotalMbPerS, total)
            .with(Metric::LongestStallMs, 3.0)
            .with(Metric::LeftMib, if buffered { mib } else { 0.0 })
            .with(Metric::DirtyBeforeMib, 0.0)
            .with(Metric::PeakResidentMib, 12.0)
            .with(Metric::CpuSPerGib, 0.3)
            .with(Metric::DeviceWrittenMib, mib)
            .with(Metric::DeviceReadMib, 0.0)
            .with(Metric::DeviceWriteRequests, 900.0)
            .with(Metric::DeviceFlushes, 1.0)
            .with(Metric::PreparationSeconds, 0.0)
            .with(Metric::PreparationBytes, 0.0)
            .with(Metric::ForeignCpus, 0.1)
            .with(Metric::StolenCpus, 0.0),
        pace: (1..=32)
            .map(|part| hand_over_seconds * f64::from(part) / 32.0)
            .collect(),
        ..Trial::default()
    }
}

/// A strategy measured in one round for each pair of rates.
pub(crate) fn measured(strategy: Strategy, rates: &[(f64, f64)]) -> Series {
    let mut series = Series::new(strategy.into());
    series.trials = (1..)
        .zip(rates)
        .map(|(round, (hand_over, total))| trial(&strategy, round, *hand_over, *total))
        .collect();
    series.summarize();
    series
}

/// A strategy that could not be measured.
pub(crate) fn unmeasured(strategy: Strategy) -> Series {
    Series {
        unsupported: Some("not supported here".to_owned()),
        ..Series::new(strategy.into())
    }
}

/// Three methods at four sizes with two humps in their hand-over, and a wall.
pub(crate) fn stream_results() -> StreamResults {
    let data = Data::Incompressible;
    let mut strategies = Vec::new();
    for (index, method) in [StreamMethod::WRITE, StreamMethod::MMAP]
        .into_iter()
        .enumerate()
    {
        for mib in [128_u64, 256, 512, 1024] {
            let strategy = Strategy::usual(method, mib << 20, data);
            let fast = if mib > 512 { 300.0 } else { 1_300.0 } / (1.0 + index as f64);
            let rates: Vec<(f64, f64)> = (0..5)
                .map(|round| (fast * (1.0 + 0.5 * f64::from(round % 2)), 110.0))
                .collect();
            strategies.push(measured(strategy, &rates));
        }
    }
    for method in StreamMethod::all() {
        if method != StreamMethod::WRITE && method != StreamMethod::MMAP {
            let strategy = Strategy::usual(method, 128 << 20, data);
            strategies.push(measured(strategy, &[(500.0, 105.0); 5]));
        }
    }
    StreamResults {
        plan: PlanKind::Standard,
        rounds: 5,
        data,
        dirty_limits: Some(DirtyLimits {
            background_bytes: 400 << 20,
            limit_bytes: 800 << 20,
            throttle_bytes: 600 << 20,
            device_limit_bytes: None,
            expire_seconds: 30.0,
        }),
        sizes_left_out: vec![4096 << 20],
        ceilings: vec![
            Ceiling {
                method: None,
                chunk: 1 << 20,
                mb_per_s: 20_000.0,
                slowest_mb_per_s: 20_000.0 / 1.5,
            },
            Ceiling {
                method: Some(StreamMethod::WRITE),
                chunk: 1 << 20,
                mb_per_s: 4_000.0,
                slowest_mb_per_s: 4_000.0 / 1.5,
            },
        ],
        series: strategies,
        walls: vec![Wall {
            method: StreamMethod::WRITE,
            allocation: Allocation::Append,
            size_before: 512 << 20,
            size_after: 1024 << 20,
            before_mb_per_s: estimate(1_300.0),
            after_mb_per_s: estimate(300.0),
            at_mib: Some(estimate(610.0)),
            share_of_limit: Some(1.02),
        }],
        claims: Vec::new(),
    }
}

/// The standard plan with figures as a disk of 520 MB/s would give them: hand-over at memory's pace in
/// two humps until 1 GiB, and at the disk's from there on.
pub(crate) fn standard_results() -> StreamResults {
    let (strategies, _) =
        Plan::standard().strategies(&Plan::standard().sizes_within(2048 << 20, 1.0));
    let measured = |(index, strategy): (usize, Strategy)| {
        let rates: Vec<(f64, f64)> = (0..5)
            .map(|round| standard_rates(&strategy, index, round))
            .collect();
        let mut result = measured(strategy, &rates);
        for (trial, (hand_over, _)) in result.trials.iter_mut().zip(&rates) {
            let figures = &mut trial.figures;
            figures.set(Metric::LongestStallMs, 2e4 / hand_over);
            figures.set(Metric::CpuSPerGib, 0.2 + 300.0 / hand_over);
            if strategy.method.is_mapped() {
                figures.set(Metric::PeakResidentMib, 12.0 + strategy.size as f64 / MIB);
            }
        }
        result.summarize();
        result
    };
    let mut strategies: Vec<Series> = strategies.into_iter().enumerate().map(measured).collect();
    if let Some(last) = strategies
        .iter_mut()
        .find(|strategy| strategy.axes.allocation == Some(Allocation::WriteZeroes))
    {
        last.trials.clear();
        last.summarize();
        last.unsupported = Some("the filesystem does not support it".to_owned());
    }
    StreamResults {
        series: strategies,
        ..stream_results()
    }
}

/// Hand-over and total in MB/s.
fn standard_rates(strategy: &Strategy, index: usize, round: u32) -> (f64, f64) {
    let chance = f64::from((index as u32 * 7 + round * 5) % 11) / 11.0;
    let disk = 520.0 * (0.9 + 0.15 * chance);
    if !strategy.is_buffered() {
        return (disk * 1.02, disk);
    }
    let memory = match strategy.allocation {
        Allocation::Overwrite => 5_200.0,
        _ if strategy.method.is_mapped() => 1_100.0,
        _ => 2_900.0,
    };
    let hump = if chance > 0.45 { 1.0 } else { 0.45 };
    let beyond = strategy.size >= 1024 << 20;
    let hand_over = if beyond && strategy.method == StreamMethod::WRITE {
        disk * 1.6
    } else {
        memory * hump * (0.95 + 0.1 * chance)
    };
    (hand_over, disk * 0.93)
}

fn estimate(median: f64) -> Estimate {
    Estimate {
        median,
        low: median * 0.9,
        high: median * 1.1,
    }
}
