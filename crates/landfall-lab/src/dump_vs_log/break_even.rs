//! How much must change between two saves before a dump of everything is cheaper than a log of the
//! changes.
//!
//! Costs are held against each other round by round, between a dump and a log that were measured seconds
//! apart. Both kinds of cost take it that a log costs the same per update however long it gets; what a
//! long log costs at the next restart is told by the replay, not here.

use landfall_results::{Metric, Saving, Series};

use super::{BreakEven, Cost, Plan};
use crate::stats::Estimate;

/// For each log and each cost; one that has no cost to compare by is left out.
pub(super) fn all(plan: &Plan, series: &[Series]) -> Vec<BreakEven> {
    let find = |saving| series.iter().find(|one| one.axes.saving == Some(saving));
    let Some(dump) = find(Saving::Dump) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for cost in [Cost::Bytes, Cost::Seconds] {
        let logs = Saving::LOGS.into_iter();
        all.extend(logs.filter_map(|saving| one(plan, cost, dump, saving, find(saving)?)));
    }
    all
}

fn one(plan: &Plan, cost: Cost, dump: &Series, saving: Saving, log: &Series) -> Option<BreakEven> {
    let scaled = |pairs: Vec<(f64, f64)>, of_dump: f64, of_update: f64| -> Vec<(f64, f64)> {
        let pairs = pairs.into_iter();
        pairs
            .map(|(dump, update)| (dump * of_dump, update * of_update))
            .collect()
    };
    let pairs = match cost {
        Cost::Seconds => scaled(
            dump.pairs_of(Metric::Seconds, log, Metric::UsPerUpdate),
            1.0,
            1e-6,
        ),
        // Of the device, or of the program where there is no device to ask. The two are never mixed.
        Cost::Bytes => {
            let device = dump.pairs_of(Metric::DeviceWrittenMib, log, Metric::Kib);
            if device.is_empty() {
                let program = log.values(Metric::ProgramKib);
                let state = plan.saved_bytes() as f64;
                let pairs = program.into_iter().map(|kib| (state, kib)).collect();
                scaled(pairs, 1.0, 1024.0)
            } else {
                scaled(device, f64::from(1 << 20), 1024.0)
            }
        }
    };
    // After any number of updates that cost nothing a dump is no cheaper: the other rounds alone would tell of too few.
    if pairs.iter().any(|(_, update)| *update <= 0.0) {
        return None;
    }
    let updates = Estimate::of_ratio(&pairs)?;
    let share_of_one = plan.record_bytes as f64 / plan.saved_bytes() as f64;
    Some(BreakEven {
        saving,
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

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_results::metric::Figures;
    use landfall_results::{Axes, Trial};

    /// A state of a million records of 100 bytes, of which 500 a second change.
    fn plan() -> Plan {
        Plan {
            state_bytes: 100_000_000,
            record_bytes: 100,
            updates_per_second: 500.0,
            ..Plan::short()
        }
    }

    fn series(saving: Saving, rounds: Vec<Figures>) -> Series {
        let mut series = Series::new(Axes {
            saving: Some(saving),
            ..Axes::default()
        });
        for (round, figures) in (1..).zip(rounds) {
            series.trials.push(Trial {
                round,
                figures,
                ..Trial::default()
            });
        }
        series
    }

    fn dump(seconds: f64, device_mib: Option<f64>) -> Figures {
        Figures::default()
            .with(Metric::Seconds, seconds)
            .with(Metric::DeviceWrittenMib, device_mib)
    }

    fn log(us_per_update: f64, kib: Option<f64>) -> Figures {
        Figures::default()
            .with(Metric::UsPerUpdate, us_per_update)
            .with(Metric::ProgramKib, 100.0 / 1024.0)
            .with(Metric::Kib, kib)
    }

    fn break_even(dumps: Vec<Figures>, logs: Vec<Figures>) -> Vec<BreakEven> {
        let dump = series(Saving::Dump, dumps);
        let log = series(Saving::LogEveryUpdate, logs);
        all(&plan(), &[dump, log])
    }

    #[test]
    fn costs_are_held_against_each_other_within_a_round() {
        // The second round is ten times as slow for both sides.
        let dumps = vec![dump(2.0, None), dump(20.0, None)];
        let logs = vec![log(10.0, None), log(100.0, None)];
        let found = break_even(dumps, logs);
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
        // 4 MiB a dump, 2 KiB an update.
        let told = break_even(vec![dump(2.0, Some(4.0))], vec![log(10.0, Some(2.0))]);
        assert_eq!(told[0].cost, Cost::Bytes);
        assert_eq!(told[0].updates.median, 2_048.0);
        // 100 MB a dump, 100 bytes an update.
        let untold = break_even(vec![dump(2.0, Some(4.0))], vec![log(10.0, None)]);
        assert!((untold[0].updates.median - 1_000_000.0).abs() < 1e-6);
        assert!((untold[0].share.median - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_log_that_costs_nothing_has_no_break_even() {
        let found = break_even(vec![dump(2.0, Some(4.0))], vec![log(0.0, Some(0.0))]);
        assert!(found.is_empty());
    }

    #[test]
    fn nor_has_one_that_costs_nothing_in_some_round() {
        let dumps = || vec![dump(2.0, Some(4.0)), dump(2.0, Some(4.0))];
        let found = break_even(dumps(), vec![log(10.0, Some(2.0)), log(10.0, Some(0.0))]);
        let costs: Vec<Cost> = found.iter().map(|one| one.cost).collect();
        assert_eq!(costs, [Cost::Seconds]);
        let found = break_even(dumps(), vec![log(0.0, Some(2.0)), log(10.0, Some(2.0))]);
        let costs: Vec<Cost> = found.iter().map(|one| one.cost).collect();
        assert_eq!(costs, [Cost::Bytes]);
    }
}
