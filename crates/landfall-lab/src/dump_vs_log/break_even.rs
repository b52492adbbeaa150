//! How much must change between two saves before a dump of everything is cheaper than a log of the
//! changes.
//!
//! Costs are held against each other round by round, between a dump and a log that were measured seconds
//! apart. Both kinds of cost take it that a log costs the same per update however long it gets; what a
//! long log costs at the next restart is told by the replay, not here.

use super::{BreakEven, Cost, DumpTrial, LogResult, LogTrial, Plan};
use crate::stats::Estimate;

/// For each policy and each cost; one that has no cost to compare by is left out.
pub(super) fn all(plan: &Plan, dumps: &[DumpTrial], logs: &[LogResult]) -> Vec<BreakEven> {
    [Cost::Bytes, Cost::Seconds]
        .into_iter()
        .flat_map(|cost| {
            logs.iter()
                .filter_map(move |log| one(plan, cost, dumps, log))
        })
        .collect()
}

fn one(plan: &Plan, cost: Cost, dumps: &[DumpTrial], log: &LogResult) -> Option<BreakEven> {
    let pairs: Vec<(f64, f64)> = dumps
        .iter()
        .filter_map(|dump| {
            let log = log.trials.iter().find(|log| log.round == dump.round)?;
            match cost {
                Cost::Bytes => bytes(plan, dump, log),
                Cost::Seconds => Some((dump.seconds, log.us_per_update / 1e6)),
            }
        })
        .collect();
    let updates = Estimate::of_ratio(&pairs)?;
    let share_of_one = plan.record_bytes as f64 / plan.saved_bytes() as f64;
    Some(BreakEven {
        policy: log.policy,
        cost,
        updates,
        share: Estimate {
            median: updates.median * share_of_one,
            low: updates.low * share_of_one,
            high: updates.high * share_of_one,
        },
        seconds: updates.median / plan.updates_per_second,
    })
}

/// Bytes of the dump and of one update: those of the device, or of the program where there is no device
/// to ask. The two are never mixed.
fn bytes(plan: &Plan, dump: &DumpTrial, log: &LogTrial) -> Option<(f64, f64)> {
    let (dump, log_bytes) = match dump.device_kib.zip(log.device_kib) {
        Some((dump, log)) => (dump * 1024.0, log * 1024.0),
        None => (plan.saved_bytes() as f64, log.bytes as f64),
    };
    (log.updates > 0).then(|| (dump, log_bytes / log.updates as f64))
}

#[cfg(test)]
mod tests {
    use super::super::Policy;
    use super::super::summary::log_result;
    use super::*;

    /// A state of a million records of 100 bytes, of which 500 a second change.
    fn plan() -> Plan {
        Plan {
            state_bytes: 100_000_000,
            record_bytes: 100,
            updates_per_second: 500.0,
            ..Plan::short()
        }
    }

    fn dump(round: u32, seconds: f64, device_kib: Option<f64>) -> DumpTrial {
        DumpTrial {
            round,
            hand_over_seconds: seconds / 2.0,
            seconds,
            longest_call_ms: 1.0,
            device_kib,
            flushes: None,
            restart_seconds: 1.0,
        }
    }

    fn log(round: u32, us_per_update: f64, device_kib: Option<f64>) -> LogTrial {
        LogTrial {
            round,
            updates: 1_000,
            seconds: 2.0,
            longest_stall_ms: 1.0,
            p99_stall_ms: 1.0,
            us_per_update,
            syncs: 1_000,
            bytes: 100_000,
            device_kib,
            flushes: None,
            restart_seconds: 1.0,
        }
    }

    fn break_even(dumps: &[DumpTrial], logs: Vec<LogTrial>) -> Vec<BreakEven> {
        let log = log_result(&plan(), Policy::EveryUpdate, logs).unwrap();
        all(&plan(), dumps, &[log])
    }

    #[test]
    fn costs_are_held_against_each_other_within_a_round() {
        // The second round is ten times as slow for both sides.
        let dumps = [dump(1, 2.0, None), dump(2, 20.0, None)];
        let logs = vec![log(1, 10.0, None), log(2, 100.0, None)];
        let found = break_even(&dumps, logs);
        assert_eq!(found.len(), 2);
        let seconds = found[1];
        assert_eq!(seconds.cost, Cost::Seconds);
        let Estimate { median, low, high } = seconds.updates;
        for value in [median, low, high] {
            assert!((value - 200_000.0).abs() < 1e-6, "{value}");
        }
        assert!((seconds.share.median - 0.2).abs() < 1e-12);
        assert!((seconds.seconds - 400.0).abs() < 1e-9);
    }

    #[test]
    fn bytes_are_those_of_the_device_if_it_tells_of_both_sides() {
        // 4 KiB a dump, 2 KiB for a thousand updates.
        let told = break_even(&[dump(1, 2.0, Some(4.0))], vec![log(1, 10.0, Some(2.0))]);
        assert_eq!(told[0].cost, Cost::Bytes);
        assert_eq!(told[0].updates.median, 2_000.0);
        // 100 MB a dump, 100 bytes an update.
        let untold = break_even(&[dump(1, 2.0, Some(4.0))], vec![log(1, 10.0, None)]);
        assert_eq!(untold[0].updates.median, 1_000_000.0);
        assert_eq!(untold[0].share.median, 1.0);
    }

    #[test]
    fn a_log_that_costs_nothing_has_no_break_even() {
        let found = break_even(&[dump(1, 2.0, Some(4.0))], vec![log(1, 0.0, Some(0.0))]);
        assert!(found.is_empty());
    }
}
