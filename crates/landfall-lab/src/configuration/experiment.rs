//! The run: sites are made and databases loaded; then every configuration once a round, round after round.
//!
//! Within a round sites come one after the other, and on a site its configurations, each time in another
//! order: what is compared lies close together in time, and none is always the first.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::loaded::{Loads, failed};
use super::trial::{self, Task};
use super::{Configuration, Measurements, Plan, disturbance};
use crate::rounds::{Group, Rounds};
use crate::site::Sites;
use crate::{Error, Notice, Preparation, Progress, Site, SiteKind, SiteSpec, Stop, left_behind};
use landfall_databases::{DatabaseError, Running, workload};
use landfall_results::{Series, Trial};

/// What makes a plan need less space.
const REMEDY: &str = "measure on fewer sites, or fewer rows or ids";

/// Runs `plan` in the directory of `directory`, which is itself a site if the plan has it; `experiment` is
/// whose trials they are. Returns what was found and what must be known about it.
///
/// Refused where there is not enough space, or none of the plan's sites can be had.
pub fn run(
    directory: &Site,
    plan: &Plan,
    experiment: &'static str,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<(Measurements, Vec<Notice>), Error> {
    if plan.configurations.is_empty() {
        return Err(Error::Usage("this plan leaves nothing to measure".into()));
    }
    directory.require_space(plan.required_bytes(), REMEDY)?;
    let mut run = Run {
        directory,
        plan,
        experiment,
        stop,
        sites: Sites::of(directory),
        used: Vec::new(),
        loads: Loads::new(directory, stop)?,
    };
    let mut series: Vec<Series> = plan
        .configurations
        .iter()
        .map(|one| Series::new(one.into()))
        .collect();
    run.make_sites(progress)?;
    run.load(&mut series, progress)?;
    let rounds = run.rounds(&mut series, progress);
    let loads = run.loads.results();
    let (sites, closed) = run.sites.close();
    rounds?;
    let mut notices = disturbance::notices(&series);
    notices.extend(left_behind::notice(closed)?);
    let measurements = Measurements {
        rounds: plan.rounds,
        warm_up_seconds: plan.warm_up_seconds,
        seconds_per_trial: plan.seconds,
        sites,
        loads,
        series,
    };
    Ok((measurements, notices))
}

struct Run<'a> {
    directory: &'a Site,
    plan: &'a Plan,
    experiment: &'static str,
    stop: &'a Stop,
    sites: Sites<'a>,
    /// Those on which a database was.
    used: Vec<SiteSpec>,
    loads: Loads<'a>,
}

impl Run<'_> {
    fn make_sites(&mut self, progress: &mut dyn Progress) -> Result<(), Error> {
        let plan = self.plan;
        let mut tell = |what: &str| progress.doing(what, 0, plan.trials(), plan.expected());
        self.sites
            .make(&plan.sites(), plan.site_bytes(), self.stop, &mut tell)
    }

    fn load(&mut self, series: &mut [Series], progress: &mut dyn Progress) -> Result<(), Error> {
        let early = if self.plan.loads_in_place {
            Vec::new()
        } else {
            self.plan.loads()
        };
        for configuration in &early {
            let what = format!("loading {}", configuration.database);
            progress.doing(&what, 0, self.plan.trials(), self.plan.expected());
            self.loads.load(configuration)?;
        }
        for (configuration, one) in self.plan.configurations.iter().zip(series) {
            if !early.is_empty() {
                self.tell_load(configuration, one);
            }
            if let Some(refused) = self.sites.refusal(&configuration.site) {
                one.unsupported = Some(refused.to_owned());
            }
        }
        Ok(())
    }

    /// Puts what loading its database came to into the result of a configuration.
    fn tell_load(&self, configuration: &Configuration, series: &mut Series) {
        match self.loads.result(configuration) {
            Ok(load) => {
                series.empty_bytes = Some(load.empty_bytes);
                series.loaded_bytes = Some(load.bytes);
                series.axes.workload = Some(load.workload.clone());
            }
            Err(error) => series.unsupported = Some(error.to_string()),
        }
    }

    /// The site of a configuration, and the one that its image is on.
    fn site(&self, configuration: &Configuration) -> Option<(&Site, Option<&Site>)> {
        let site = self.sites.get(&configuration.site)?;
        let is_image = site.description().kind == SiteKind::Loop;
        let is_made = configuration.site != SiteSpec::Directory;
        Some((site, (is_made && is_image).then_some(self.directory)))
    }

    fn rounds(&mut self, series: &mut [Series], progress: &mut dyn Progress) -> Result<(), Error> {
        let plan = self.plan;
        let starts = plan.starts();
        let rounds = Rounds {
            experiment: self.experiment,
            rounds: plan.rounds,
            groups: starts.clone(),
            guess: Duration::from_secs_f64(plan.trial_seconds().min(86_400.0) + 1.5),
            trials: plan.trials(),
        };
        let shuffled = |round| order(plan, &starts, round);
        rounds.run(series, &disturbance::WATCH, progress, shuffled, |group| {
            self.start(group)
        })?;
        progress.doing("done", plan.trials(), plan.trials(), Duration::ZERO);
        Ok(())
    }

    /// Starts a database and measures the configurations that it serves.
    fn start(&mut self, group: &mut Group<'_>) -> Result<(), Error> {
        let mut waiting = group.members.clone();
        let first = waiting[0];
        fastrand::Rng::with_seed(u64::from(group.round)).shuffle(&mut waiting);
        group.begin(first);
        let plan = self.plan;
        let begun = self
            .renew(&plan.configurations[first].site)
            .and_then(|()| self.begin(&plan.configurations[first]));
        let (directory, running, mut preparation) = match begun {
            Ok(begun) => begun,
            Err(error) => return self.give_up(group, &waiting, error),
        };
        if self.plan.loads_in_place {
            for &index in &waiting {
                self.tell_load(&plan.configurations[index], group.series(index));
            }
        }
        let mut failure = None;
        for (place, &index) in waiting.iter().enumerate() {
            group.begin(index);
            let outcome = match self.trial(
                &plan.configurations[index],
                group.round,
                place,
                &directory,
                running.as_ref(),
                preparation,
            ) {
                Ok((trial, aftermath)) => {
                    group.measured(index, trial);
                    aftermath
                }
                Err(error) => Err(error),
            };
            if let Err(error) = outcome {
                failure = Some((place..waiting.len(), error));
                break;
            }
            preparation = Preparation::default();
        }
        // Not in order: what it would still have to write is of no use to anybody.
        drop(running);
        // What was measured is not lost with a database that stays; but none can take its place.
        let removed = fs::remove_dir_all(&directory).map_err(failed("remove a database"));
        match (failure, removed) {
            (Some((places, error)), _) => self.give_up(group, &waiting[places], error),
            (None, Err(error)) => self.give_up(group, &waiting, error),
            (None, Ok(())) => Ok(()),
        }
    }

    /// Makes the site anew, where wear is reckoned and another database was on it.
    fn renew(&mut self, spec: &SiteSpec) -> Result<(), DatabaseError> {
        let is_worn = self.plan.drive.is_some() && matches!(spec, SiteSpec::Recorder(..));
        if !self.used.contains(spec) {
            self.used.push(spec.clone());
            return Ok(());
        }
        if !is_worn {
            return Ok(());
        }
        self.sites
            .renew(spec, self.plan.site_bytes(), self.stop)
            .map_err(|error| DatabaseError::Refused(error.to_string()))
    }

    /// Copies the database, or loads it, and starts it.
    fn begin(
        &mut self,
        configuration: &Configuration,
    ) -> Result<(PathBuf, Box<dyn Running>, Preparation), DatabaseError> {
        let begin = Instant::now();
        // Not by `site`, which would hold all of this run.
        let Some(site) = self.sites.get(&configuration.site) else {
            return Err(DatabaseError::Failed("its site is not there".into()));
        };
        let directory = site
            .open_directory("database")
            .map_err(|error| DatabaseError::Refused(error.to_string()))?;
        let prepared = if self.plan.loads_in_place {
            self.loads.load_in_place(configuration, &directory)
        } else {
            self.loads.copy(configuration, &directory)
        };
        let started = prepared.and_then(|copied| {
            site.drain()
                .map_err(failed("write out a copied database"))?;
            let settings = configuration.all_settings();
            let database = landfall_databases::named(&configuration.database, &settings)
                .map_err(|error| DatabaseError::Setting(error.to_string()))?;
            Ok((database.start(&directory, self.stop)?, copied.bytes))
        });
        match started {
            Ok((running, bytes)) => {
                let seconds = begin.elapsed().as_secs_f64();
                Ok((directory, running, Preparation { seconds, bytes }))
            }
            Err(error) => {
                // What was copied before the error is of no use to the next one.
                let _ = fs::remove_dir_all(&directory);
                Err(error)
            }
        }
    }

    fn trial(
        &self,
        configuration: &Configuration,
        round: u32,
        place: usize,
        directory: &Path,
        running: &dyn Running,
        preparation: Preparation,
    ) -> Result<(Trial, Result<(), DatabaseError>), DatabaseError> {
        let settings = &configuration.workload_settings;
        let workload = workload::named(&configuration.workload, settings)
            .map_err(|error| DatabaseError::Setting(error.to_string()))?;
        let Some((site, below)) = self.site(configuration) else {
            return Err(DatabaseError::Failed("its site is not there".into()));
        };
        let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let plan = self.plan;
        let task = Task {
            round,
            site,
            below,
            running,
            directory,
            workload: workload.as_ref(),
            clients: configuration.clients,
            busy: configuration.busy,
            // The same for all configurations of a round, which are asked the same; another one for each
            // trial on one database.
            seed: (u64::from(round) << 16) + place as u64,
            warm_up: seconds(plan.warm_up_seconds),
            steady: plan.steady,
            duration: seconds(plan.seconds),
            drive: plan.drive.as_ref(),
            settles: plan.settles,
            stop: self.stop,
        };
        trial::run(&task, preparation)
    }

    /// These configurations cannot be measured (any more), unless the user asked to stop.
    fn give_up(
        &self,
        group: &mut Group<'_>,
        indices: &[usize],
        error: DatabaseError,
    ) -> Result<(), Error> {
        if self.stop.is_requested() || error == DatabaseError::Stopped {
            return Err(Error::Stopped);
        }
        for &index in indices {
            group.give_up(index, error.to_string());
        }
        Ok(())
    }
}

/// The starts of a round, site by site, each time in another order.
fn order(plan: &Plan, starts: &[Vec<usize>], round: u32) -> Vec<usize> {
    let mut random = fastrand::Rng::with_seed(u64::from(round));
    let mut sites = plan.sites();
    random.shuffle(&mut sites);
    let site_of = |start: usize| &plan.configurations[starts[start][0]].site;
    let mut order = Vec::new();
    for site in sites {
        let mut here: Vec<usize> = (0..starts.len())
            .filter(|&start| site_of(start) == site)
            .collect();
        random.shuffle(&mut here);
        order.extend(here);
    }
    order
}
