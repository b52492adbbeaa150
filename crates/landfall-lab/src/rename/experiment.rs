//! The run: sites are made; then every way on every site once a round, round after round.

use std::time::Duration;

use landfall_results::{Metric, Series};

use super::trial::{self, Task};
use super::{Plan, RenameResults};
use crate::rounds::Rounds;
use crate::scratch_fs::FilesystemSpec;
use crate::site::Sites;
use crate::watch::{self, Watch};
use crate::{
    Error, Experiment, Found, Notice, Progress, Site, SiteSpec, Stop, Weight, left_behind, proof,
};

/// What makes a plan need less space.
const REMEDY: &str = "measure on fewer sites";

/// In a directory that is not ours alone, a round is held against the quietest.
const WATCH: Watch = Watch {
    counted_late: 0.0,
    is_foreign: |series, trial| {
        let is_shared = series.axes.site == Some(SiteSpec::Directory.key());
        is_shared && watch::wrote_for_others(series, trial, None, Metric::OpsPerSecond)
    },
};

impl Experiment for Plan {
    fn name(&self) -> &'static str {
        "rename"
    }

    fn trials(&self) -> usize {
        self.all_trials()
    }

    fn expected(&self) -> Duration {
        self.expected_time()
    }

    fn required_bytes(&self) -> u64 {
        self.needed_bytes()
    }

    fn listing(&self) -> String {
        self.list()
    }

    fn run(
        &self,
        site: &Site,
        stop: &Stop,
        progress: &mut dyn Progress,
    ) -> Result<(Found, Vec<Notice>), Error> {
        if self.proof_states.is_some() {
            // Found out before anything is measured, not after it. What is made is proven as it is made.
            if self.has_directory() {
                proof::filesystem_like(site)?;
            } else {
                proof::require_recorder(site)?;
            }
        }
        let (found, notices) = match measure(self, site, stop, progress) {
            Err(Error::Refused(reason)) if !self.sites_are_chosen => {
                let (found, mut notices) = measure(&self.in_directory(), site, stop, progress)?;
                let text = format!(
                    "Only the directory was measured, because no filesystem could be made ({reason}): with root, and room for its images, this experiment compares ext4, xfs and btrfs."
                );
                notices.push(Notice::new("directory-only", Weight::Warning, text));
                (found, notices)
            }
            measured => measured?,
        };
        Ok((found.into(), notices))
    }
}

fn measure(
    plan: &Plan,
    directory: &Site,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<(RenameResults, Vec<Notice>), Error> {
    directory.require_space(plan.needed_bytes(), REMEDY)?;
    let mut sites = Sites::of(directory);
    let specs: Vec<&SiteSpec> = plan.sites.iter().collect();
    let mut tell = |what: &str| progress.doing(what, 0, plan.all_trials(), plan.expected_time());
    sites.make(&specs, plan.site_bytes(), stop, &mut tell)?;
    let mut notices = Vec::new();
    let measured = rounds(plan, &sites, stop, progress, &mut notices);
    let (results, closed) = sites.close();
    let series = measured?;
    notices.extend(watch::notices(&series));
    notices.extend(watch::busy_machine(series.iter()));
    notices.extend(left_behind::notice(closed)?);
    let found = RenameResults {
        plan: plan.kind,
        rounds: plan.rounds,
        seconds_per_trial: plan.seconds,
        size: plan.size,
        sites: results,
        series,
        claims: Vec::new(),
    };
    Ok((found, notices))
}

fn rounds(
    plan: &Plan,
    sites: &Sites<'_>,
    stop: &Stop,
    progress: &mut dyn Progress,
    notices: &mut Vec<Notice>,
) -> Result<Vec<Series>, Error> {
    let cases = plan.cases();
    let filesystems = filesystems(plan, sites)?;
    let mut series: Vec<Series> = cases
        .iter()
        .map(|(site, way)| Series {
            unsupported: sites.refusal(site).map(str::to_owned),
            ..Series::new(way.axes(site.key(), plan.size))
        })
        .collect();
    let duration = Duration::try_from_secs_f64(plan.seconds).unwrap_or(Duration::MAX);
    let rounds = Rounds::each("rename", plan.rounds, &series, duration);
    // In another order each time: none is always the first.
    let shuffled = |round: u32| {
        let mut order: Vec<usize> = (0..cases.len()).collect();
        fastrand::Rng::with_seed(u64::from(round)).shuffle(&mut order);
        order
    };
    rounds.run(&mut series, &WATCH, progress, shuffled, |group| {
        for index in group.members.clone() {
            let (spec, way) = cases[index];
            let Some(site) = sites.get(spec) else {
                continue;
            };
            group.begin(index);
            let task = Task {
                way,
                size: plan.size,
                round: group.round,
                duration,
                site,
                stop,
            };
            let doing = || format!("cannot measure {} on {}", way.name(), spec.key());
            let trial = trial::run(&task).map_err(Error::io(doing()))?;
            group.measured(index, trial);
        }
        Ok(())
    })?;
    let Some(states) = plan.proof_states else {
        return Ok(series);
    };
    for (index, ((spec, way), one)) in cases.iter().zip(&mut series).enumerate() {
        let Some(site) = sites.get(spec).filter(|_| one.is_measured()) else {
            continue;
        };
        let what = format!("cutting the power on {}", one.key);
        progress.doing(&what, index, cases.len(), Duration::ZERO);
        // As large a file as the subject has, which writes whole sectors.
        let size = plan.size.max(1).next_multiple_of(512);
        let mut settings = way.settings();
        settings.push(("size".to_owned(), size.to_string()));
        let found = filesystems.iter().find(|(known, _)| known == spec);
        let Some((_, filesystem)) = found else {
            continue;
        };
        let proven = proof::of(
            "replace",
            &settings,
            site,
            filesystem,
            proof::TRANSACTIONS,
            states,
            stop,
        );
        let proof = proof::or_not_proven(proven, filesystem, &one.key, stop, notices)?;
        one.proof = Some(proof);
    }
    Ok(series)
}

/// The filesystem that is proven for each site, if anything is: found out before anything is measured, not after it.
fn filesystems<'a>(
    plan: &'a Plan,
    sites: &Sites<'_>,
) -> Result<Vec<(&'a SiteSpec, FilesystemSpec)>, Error> {
    let mut all = Vec::new();
    if plan.proof_states.is_some() {
        for spec in &plan.sites {
            if let Some(site) = sites.get(spec) {
                all.push((spec, proof::filesystem_like(site)?));
            }
        }
    }
    Ok(all)
}
