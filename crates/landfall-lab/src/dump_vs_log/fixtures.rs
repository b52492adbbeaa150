//! Made-up results for tests.

use super::{
    BreakEven, Cost, DumpResult, DumpTrial, DumpVsLogResults, LogResult, LogTrial, Policy, Replay,
};
use crate::PlanKind;
use crate::stats::Estimate;

const MIB: f64 = 1048576.0;

/// The same, with one dump and one trial of each policy.
pub(crate) fn with_trials(mut results: DumpVsLogResults) -> DumpVsLogResults {
    results.dump.trials = vec![DumpTrial {
        round: 1,
        hand_over_seconds: 0.1,
        seconds: 0.4,
        longest_call_ms: 2.0,
        device_kib: Some(131_080.0),
        flushes: Some(3.0),
        restart_seconds: 0.15,
    }];
    for log in &mut results.logs {
        log.trials = vec![LogTrial {
            round: 1,
            updates: 2_000,
            seconds: 2.0,
            longest_stall_ms: log.longest_stall_ms.median,
            p99_stall_ms: log.p99_stall_ms.median,
            us_per_update: log.us_per_update.median,
            syncs: 0,
            bytes: 512_000,
            device_kib: Some(600.0),
            flushes: Some(0.0),
            restart_seconds: 0.2,
        }];
    }
    results
}

fn estimate(median: f64) -> Estimate {
    Estimate {
        median,
        low: median * 0.9,
        high: median * 1.1,
    }
}

/// A state of 128 MiB, dumped and logged.
pub(crate) fn dump_vs_log_results() -> DumpVsLogResults {
    let logs = Policy::ALL.map(|policy| {
        let us = match policy {
            Policy::Never => 1.0,
            Policy::EverySecond => 2.0,
            Policy::Group => 60.0,
            Policy::EveryUpdate => 150.0,
        };
        LogResult {
            policy,
            accepted_per_second: estimate(1_000.0),
            kept_up: true,
            longest_stall_ms: estimate(us / 10.0),
            p99_stall_ms: estimate(us / 50.0),
            us_per_update: estimate(us),
            bytes_per_update: 256.0,
            device_bytes_per_update: Some(if us > 50.0 { 8_192.0 } else { 280.0 }),
            flushes_per_update: Some(if us > 50.0 { 1.0 } else { 0.0 }),
            restart_seconds: estimate(0.2),
            trials: Vec::new(),
        }
    });
    let break_even = |cost: Cost, dump: f64, each: fn(&LogResult) -> f64| {
        logs.clone().map(|log| {
            let updates = dump / each(&log);
            BreakEven {
                policy: log.policy,
                cost,
                updates: estimate(updates),
                share: estimate(updates * 256.0 / (128.0 * MIB)),
                seconds: updates / 1_000.0,
            }
        })
    };
    let by_bytes = break_even(Cost::Bytes, 128.0 * MIB, |log| {
        log.device_bytes_per_update.unwrap_or(log.bytes_per_update)
    });
    let by_seconds = break_even(Cost::Seconds, 0.4, |log| log.us_per_update.median / 1e6);
    DumpVsLogResults {
        plan: PlanKind::Standard,
        state_bytes: 128 << 20,
        record_bytes: 256,
        updates_per_second: 1_000.0,
        log_seconds: 2.0,
        rounds: 5,
        cold: true,
        dump: DumpResult {
            hand_over_seconds: estimate(0.1),
            seconds: estimate(0.4),
            longest_call_ms: estimate(2.0),
            device_kib: Some(131_080.0),
            flushes: Some(3.0),
            restart_seconds: estimate(0.15),
            trials: Vec::new(),
        },
        break_even: by_bytes.into_iter().chain(by_seconds).collect(),
        logs: logs.to_vec(),
        replay: Replay {
            records: 524_288,
            seconds: estimate(0.3),
        },
        claims: Vec::new(),
    }
}
