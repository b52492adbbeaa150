//! What else went on during the trials.
//!
//! On a filesystem of our own nobody else writes; but the disk below its image is everybody's, and what it
//! wrote beyond the image is somebody else's. In a directory whatever a round has beyond the quietest round
//! of the same configuration is.

use super::{ConfigurationResult, Trial};
use crate::disturbance::{self, CPU_SLACK, Disturbance, Disturbed, least};
use crate::stats::median;
use crate::{Notice, Weight};

/// Share of the bytes that may be foreign: when a database writes its pages is partly chance.
const TRAFFIC_SLACK: f64 = 0.25;
/// KiB per second that any disk may write for others: a log line, a timestamp.
const TRAFFIC_FLOOR: f64 = 256.0;

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

/// Marks the disturbed trials of one configuration; `is_shared`: its filesystem is not ours alone.
pub(super) fn mark(trials: &mut [Trial], is_shared: bool) {
    let quietest = least(trials, |trial| trial.device.map(|device| device.kib));
    disturbance::mark(trials, |trial| {
        let Some(device) = trial.device else {
            return false;
        };
        let foreign = match (trial.foreign_kib, is_shared) {
            (Some(foreign), _) => foreign,
            (None, true) => device.kib - quietest,
            (None, false) => 0.0,
        };
        foreign > TRAFFIC_SLACK * device.kib && foreign * trial.requests_per_second > TRAFFIC_FLOOR
    });
}

/// What the whole run has to say about disturbances.
pub(super) fn notices(configurations: &[ConfigurationResult]) -> Vec<Notice> {
    let trials = || configurations.iter().flat_map(|one| &one.trials);
    let found: Vec<&[Disturbance]> = trials().map(|t| t.disturbances.as_slice()).collect();
    let mut notices = disturbance::notices(&found);
    let foreign: Vec<f64> = trials().map(|trial| trial.foreign_cpus).collect();
    if let Some(constant) = median(&foreign).filter(|cpus| *cpus > 2.0 * CPU_SLACK) {
        let text = format!(
            "During a typical trial {constant:.1} processors were busy with something else (other programs, or the kernel's own threads): figures would be better on an idle machine."
        );
        notices.push(Notice::new("busy-machine", Weight::Warning, text));
    }
    notices
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::trial;
    use super::*;

    #[test]
    fn what_the_disk_wrote_for_others_is_a_disturbance() {
        let mut trials: Vec<Trial> = [0.0, 9.0, 1.0]
            .into_iter()
            .map(|foreign| Trial {
                foreign_kib: Some(foreign),
                ..trial(1, 1_000.0, 16.0, 2.0)
            })
            .collect();
        trials[0].stolen_cpus = 0.5;
        mark(&mut trials, false);
        let found: Vec<_> = trials.iter().map(|t| t.disturbances.as_slice()).collect();
        assert_eq!(
            found,
            [
                &[Disturbance::StolenCpu][..],
                &[Disturbance::ForeignTraffic],
                &[]
            ]
        );
    }

    #[test]
    fn in_a_directory_a_round_is_held_against_the_quietest() {
        let mut trials = [16.0, 30.0, 17.0].map(|kib| trial(1, 1_000.0, kib, 2.0));
        let mut own = trials.clone();
        mark(&mut trials, true);
        let hit = |trials: &[Trial]| -> Vec<bool> {
            trials.iter().map(|t| !t.disturbances.is_empty()).collect()
        };
        assert_eq!(hit(&trials), [false, true, false]);
        mark(&mut own, false);
        assert_eq!(hit(&own), [false; 3]);
    }
}
