//! What else went on during the trials.
//!
//! Our own writes and flushes are the same in every round, so whatever a round has beyond the quietest
//! round of the same strategy is somebody else's.

use super::{StrategyResult, Trial};
use crate::disturbance::{self, CPU_SLACK, Disturbance, Disturbed, least};
use crate::stats::median;
use crate::{Notice, Weight};

/// Share of a trial's writes and flushes that may be foreign.
const TRAFFIC_SLACK: f64 = 0.05;
/// Writes and flushes that any trial may have beyond its own: a superblock, a timestamp.
const TRAFFIC_FLOOR: f64 = 8.0;

impl Disturbed for Trial {
    fn foreign_cpus(&self) -> f64 {
        self.foreign_cpus
    }

    fn stolen_cpus(&self) -> f64 {
        self.stolen_cpus
    }

    fn disturbances(&mut self) -> &mut Vec<Disturbance> {
        &mut self.disturbances
    }
}

/// Marks the disturbed trials of one strategy.
///
/// Several threads share flushes and requests as chance has it, so of theirs only the bytes are
/// compared.
pub(super) fn mark(trials: &mut [Trial], threads: u32) {
    let writes = least(trials, |t| t.device.map(|d| d.write_requests));
    let flushes = least(trials, |t| t.device.map(|d| d.flushes));
    let kib = least(trials, |t| t.device.map(|d| d.kib));
    disturbance::mark(trials, |trial| {
        let operations = trial.operations as f64;
        let foreign = |value: f64, own: f64| {
            let extra = (value - own) * operations;
            extra > TRAFFIC_FLOOR && extra > TRAFFIC_SLACK * own * operations
        };
        trial.device.is_some_and(|device| match threads {
            1 => foreign(device.write_requests, writes) || foreign(device.flushes, flushes),
            _ => foreign(device.kib, kib),
        })
    });
}

/// What the whole run has to say about disturbances.
pub(super) fn notices(strategies: &[StrategyResult]) -> Vec<Notice> {
    let trials: Vec<&Trial> = strategies
        .iter()
        .flat_map(|strategy| &strategy.trials)
        .collect();
    let found: Vec<&[Disturbance]> = trials.iter().map(|t| t.disturbances.as_slice()).collect();
    let mut notices = disturbance::notices(&found);
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
