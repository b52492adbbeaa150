//! What else went on during the trials.
//!
//! Device traffic and CPU of others cannot be told from our own by one look at a counter, since the
//! kernel works for us on its own threads. But our own share is the same in every round, so whatever
//! a round has beyond the quietest round of the same strategy is somebody else's.

use super::{Disturbance, StrategyResult, Trial};
use crate::stats::median;
use crate::{Notice, Weight};

/// Processors that others may take before a trial counts as disturbed.
const CPU_SLACK: f64 = 0.25;
/// Share of a trial's writes and flushes that may be foreign.
const TRAFFIC_SLACK: f64 = 0.05;
/// Writes and flushes that any trial may have beyond its own: a superblock, a timestamp.
const TRAFFIC_FLOOR: f64 = 8.0;

/// Marks the disturbed trials of one strategy.
///
/// Several threads share flushes and requests as chance has it, so of theirs only the bytes are
/// compared.
pub(super) fn mark(trials: &mut [Trial], threads: u32) {
    let least = |pick: &dyn Fn(&Trial) -> Option<f64>| {
        trials
            .iter()
            .filter_map(pick)
            .min_by(f64::total_cmp)
            .unwrap_or(0.0)
    };
    let quiet_cpu = least(&|t| Some(t.foreign_cpus));
    let writes = least(&|t| t.device.map(|d| d.write_requests));
    let flushes = least(&|t| t.device.map(|d| d.flushes));
    let kib = least(&|t| t.device.map(|d| d.kib));
    for trial in trials {
        let operations = trial.operations as f64;
        let foreign = |value: f64, own: f64| {
            let extra = (value - own) * operations;
            extra > TRAFFIC_FLOOR && extra > TRAFFIC_SLACK * own * operations
        };
        let mut found = Vec::new();
        if trial.foreign_cpus > quiet_cpu + CPU_SLACK {
            found.push(Disturbance::ForeignCpu);
        }
        if trial.stolen_cpus > CPU_SLACK {
            found.push(Disturbance::StolenCpu);
        }
        if trial.device.is_some_and(|device| match threads {
            1 => foreign(device.write_requests, writes) || foreign(device.flushes, flushes),
            _ => foreign(device.kib, kib),
        }) {
            found.push(Disturbance::ForeignTraffic);
        }
        trial.disturbances = found;
    }
}

/// What the whole run has to say about disturbances.
pub(super) fn notices(strategies: &[StrategyResult]) -> Vec<Notice> {
    let trials: Vec<&Trial> = strategies
        .iter()
        .flat_map(|strategy| &strategy.trials)
        .collect();
    let mut notices = Vec::new();
    let mut count = |kind: Disturbance, code: &str, what: &str| {
        let hit = trials
            .iter()
            .filter(|trial| trial.disturbances.contains(&kind))
            .count();
        if hit > 0 {
            let weight = if hit * 5 > trials.len() {
                Weight::Warning
            } else {
                Weight::Note
            };
            let text = format!("{hit} of {} trials were disturbed: {what}.", trials.len());
            notices.push(Notice::new(code, weight, text));
        }
    };
    count(
        Disturbance::ForeignCpu,
        "foreign-cpu",
        "other programs used the CPU",
    );
    count(
        Disturbance::StolenCpu,
        "stolen-cpu",
        "the hypervisor gave this machine's CPU to others",
    );
    count(
        Disturbance::ForeignTraffic,
        "foreign-traffic",
        "the device wrote or flushed for others meanwhile",
    );
    let single: Vec<f64> = strategies
        .iter()
        .filter(|strategy| strategy.threads == 1)
        .flat_map(|strategy| strategy.trials.iter().map(|trial| trial.foreign_cpus))
        .collect();
    if let Some(constant) = median(&single).filter(|cpus| *cpus > 2.0 * CPU_SLACK) {
        let text = format!(
            "During a typical trial {constant:.1} processors were busy with something else (other programs, or the kernel's own threads): figures would be better on an idle machine."
        );
        notices.push(Notice::new("busy-machine", Weight::Warning, text));
    }
    let cut = trials.iter().filter(|trial| trial.cut).count();
    if cut > 0 {
        let text = format!(
            "{cut} of {} trials were stopped by the clock before all operations were done; give --seconds or --ops for longer ones.",
            trials.len()
        );
        notices.push(Notice::new("cut", Weight::Note, text));
    }
    notices
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::fixtures::trial;

    #[test]
    fn a_round_with_more_than_the_quietest_is_disturbed() {
        let mut trials: Vec<Trial> = [1.0, 1.001, 1.4, 1.0]
            .into_iter()
            .map(|flushes| trial(1, 10_000.0, 1.0, flushes))
            .collect();
        trials[1].stolen_cpus = 0.5;
        trials[3].foreign_cpus = 1.2;
        let mut shared = trials.clone();
        mark(&mut trials, 1);
        let found: Vec<_> = trials
            .iter()
            .map(|trial| trial.disturbances.as_slice())
            .collect();
        assert_eq!(
            found,
            [
                &[][..],
                &[Disturbance::StolenCpu],
                &[Disturbance::ForeignTraffic],
                &[Disturbance::ForeignCpu],
            ]
        );
        // What threads share by chance is nobody else's.
        mark(&mut shared, 4);
        assert!(shared[2].disturbances.is_empty());
    }
}
