//! What else went on during the trials.
//!
//! Our own writes and flushes are the same in every round, so whatever a round has beyond the quietest
//! round of the same strategy is somebody else's.

use landfall_results::{Metric, Series, Trial};

use crate::watch::{self, Watch};
use crate::{Notice, Weight};

/// Share of a trial's writes and flushes that may be foreign.
const TRAFFIC_SLACK: f64 = 0.05;
/// Writes and flushes that any trial may have beyond its own: a superblock, a timestamp.
const TRAFFIC_FLOOR: f64 = 8.0;

/// What is disturbed.
///
/// Several threads share flushes and requests as chance has it, so of theirs only the bytes are
/// compared.
pub(super) const WATCH: Watch = Watch {
    counted_late: 0.0,
    is_foreign: |series, trial| {
        let compared: &[Metric] = if series.axes.threads == Some(1) {
            &[Metric::WriteRequests, Metric::Flushes]
        } else {
            &[Metric::Kib]
        };
        compared.iter().any(|&metric| {
            let (Some(value), Some(operations)) =
                (trial.get(metric), trial.get(Metric::Operations))
            else {
                return false;
            };
            let own = watch::least(series, metric);
            let extra = (value - own) * operations;
            extra > TRAFFIC_FLOOR && extra > TRAFFIC_SLACK * own * operations
        })
    },
};

/// What the whole run has to say about disturbances.
pub(super) fn notices(series: &[Series]) -> Vec<Notice> {
    let trials: Vec<&Trial> = series.iter().flat_map(|one| &one.trials).collect();
    let mut notices = watch::notices(series);
    let single = series.iter().filter(|one| one.axes.threads == Some(1));
    notices.extend(watch::busy_machine(single));
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
    use crate::sync::Strategy;
    use crate::sync::fixtures::trial;
    use landfall_results::Disturbance;

    #[test]
    fn a_round_with_more_than_the_quietest_is_disturbed() {
        let mut one = Series::new(Strategy::BASELINE.into());
        let flushes = [1.0, 1.001, 1.4, 1.0].into_iter();
        one.trials = flushes
            .map(|flushes| trial(1, 10_000.0, 1.0, flushes))
            .collect();
        one.trials[1].figures.set(Metric::StolenCpus, 0.5);
        one.trials[3].figures.set(Metric::ForeignCpus, 1.2);
        let mut shared = one.clone();
        shared.axes.threads = Some(4);
        watch::mark(&mut one, &WATCH);
        let found: Vec<_> = one
            .trials
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
        watch::mark(&mut shared, &WATCH);
        assert!(shared.trials[2].disturbances.is_empty());
    }
}
