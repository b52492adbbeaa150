//! What else went on during the trials.
//!
//! On a filesystem of our own nobody else writes; but the disk below its image is everybody's, and what it
//! wrote beyond the image is somebody else's. In a directory whatever a round has beyond the quietest round
//! of the same configuration is.

use landfall_results::{Metric, Series};

use crate::watch::{self, Watch};
use crate::{Notice, SiteSpec};

/// What is disturbed. Where the filesystem is not ours alone, a round is held against the quietest.
pub(super) const WATCH: Watch = Watch {
    counted_late: 0.0,
    is_foreign: |series, trial| {
        let is_shared = series.axes.site == Some(SiteSpec::Directory.key());
        let foreign = trial.get(Metric::ForeignKib);
        (is_shared || foreign.is_some())
            && watch::wrote_for_others(series, trial, foreign, Metric::RequestsPerSecond)
    },
};

/// What the whole run has to say about disturbances.
pub(super) fn notices(series: &[Series]) -> Vec<Notice> {
    let mut notices = watch::notices(series);
    notices.extend(watch::busy_machine(series.iter()));
    notices
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{measured, trial};
    use super::*;
    use landfall_results::Disturbance;

    #[test]
    fn what_the_disk_wrote_for_others_is_a_disturbance() {
        let mut series = measured("loop:ext4", "one", 1, &[1_000.0; 3], 16.0, 2.0);
        for (trial, foreign) in series.trials.iter_mut().zip([0.0, 9.0, 1.0]) {
            trial.figures.set(Metric::ForeignKib, foreign);
        }
        series.trials[0].figures.set(Metric::StolenCpus, 0.5);
        watch::mark(&mut series, &WATCH);
        let trials = series.trials.iter();
        let found: Vec<_> = trials.map(|t| t.disturbances.as_slice()).collect();
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
        let hit = |site: &str| -> Vec<bool> {
            let mut series = measured(site, "one", 1, &[], 16.0, 2.0);
            let trials = [16.0, 30.0, 17.0].map(|kib| trial(1, 1_000.0, kib, 2.0));
            series.trials = trials.to_vec();
            watch::mark(&mut series, &WATCH);
            let trials = series.trials.iter();
            trials.map(|t| !t.disturbances.is_empty()).collect()
        };
        assert_eq!(hit("dir"), [false, true, false]);
        assert_eq!(hit("loop:ext4"), [false; 3]);
    }
}
