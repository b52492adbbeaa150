//! The run: every strategy once a round, round after round.

use std::io;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::device_cost::FlushModel;
use super::files::Workbench;
use super::trial::{self, Measured, Task, merging_histogram};
use super::{
    Operations, Pilot, Plan, Strategy, SyncResults, claims, disturbance, drift, notices, proof,
    required_bytes, summary,
};
use crate::preparation::PrepareError;
use crate::rounds::{Group, Rounds};
use crate::{Error, Experiment, Found, Notice, Preparation, Progress, Site, Stop};
use landfall_results::{Series, left_out};

/// Operations of the pilot at most, and its time.
const PILOT_OPERATIONS: u64 = 512;
const PILOT_TIME: Duration = Duration::from_millis(200);

/// What makes a plan need less space.
const REMEDY: &str = "lower --ops";

impl Experiment for Plan {
    fn name(&self) -> &'static str {
        "sync"
    }

    fn trials(&self) -> usize {
        Plan::trials(self)
    }

    fn expected(&self) -> Duration {
        let seconds = self.seconds * self.trials() as f64 * 1.2;
        Duration::try_from_secs_f64(seconds)
            .unwrap_or(Duration::MAX)
            .saturating_add(self.expected_of_proofs(self.proofs()))
    }

    fn required_bytes(&self) -> u64 {
        required_bytes(self, f64::INFINITY)
    }

    fn listing(&self) -> String {
        Plan::listing(self)
    }

    fn run(
        &self,
        site: &Site,
        stop: &Stop,
        progress: &mut dyn Progress,
    ) -> Result<(Found, Vec<Notice>), Error> {
        let proof = match self.proof_states {
            Some(states) => Some((crate::proof::filesystem_like(site)?, states)),
            None => None,
        };
        let (mut found, mut notices) = measure(site, self, stop, progress)?;
        if let Some((filesystem_spec, states)) = proof {
            let proofs = proof::Proofs {
                site,
                plan: self,
                filesystem_spec: &filesystem_spec,
                states,
                stop,
            };
            notices.extend(proofs.of(&mut found, progress)?);
        }
        notices.extend(notices::of_device(site, &found));
        Ok((found.into(), notices))
    }
}

/// Measures `plan` on `site`; returns what was found and what must be known about it.
fn measure(
    site: &Site,
    plan: &Plan,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<(SyncResults, Vec<Notice>), Error> {
    if plan.strategies.is_empty() {
        let reason = plan
            .excluded
            .first()
            .map_or("", |excluded| excluded.reason.as_str());
        return Err(Error::Usage(format!(
            "this plan leaves nothing to measure: {reason}"
        )));
    }
    let mut run = Run {
        site,
        plan,
        stop,
        bench: Workbench::new(site, stop, plan.settle_seconds),
        model: FlushModel::of(site),
        rate: f64::INFINITY,
        attempts: 0,
    };
    let pilot = run.pilot()?;
    run.rate = pilot.map_or(f64::INFINITY, |pilot| pilot.ops_per_second);
    site.require_space(required_bytes(plan, run.rate), REMEDY)?;
    let series = run.rounds(progress)?;
    Ok(run.results(pilot, series))
}

/// How one attempt at a trial ended.
enum Attempt {
    Measured(Box<Measured>, Preparation),
    Unsupported(String),
}

struct Run<'a> {
    site: &'a Site,
    plan: &'a Plan,
    stop: &'a Stop,
    bench: Workbench<'a>,
    model: FlushModel<'a>,
    rate: f64,
    attempts: u64,
}

impl Run<'_> {
    /// A short run of the plan's centre, to size the trials; none when the user gave their size.
    fn pilot(&mut self) -> Result<Option<Pilot>, Error> {
        if self.plan.operations != Operations::ByTime {
            return Ok(None);
        }
        let centre = Strategy::BASELINE;
        self.site
            .require_space(centre.span(PILOT_OPERATIONS) * 2, REMEDY)?;
        match self.attempt(&centre, PILOT_OPERATIONS, PILOT_TIME)? {
            Attempt::Measured(measured, _) => Ok(Some(Pilot {
                operations: measured.operations,
                ops_per_second: measured.operations as f64 / measured.elapsed.as_secs_f64(),
            })),
            Attempt::Unsupported(reason) => Err(Error::Refused(format!(
                "{} cannot even take a write with fdatasync: {reason}",
                self.site.directory().display()
            ))),
        }
    }

    fn rounds(&mut self, progress: &mut dyn Progress) -> Result<Vec<Series>, Error> {
        let strategies = &self.plan.strategies;
        let mut series: Vec<Series> = strategies
            .iter()
            .map(|strategy| Series::new((*strategy).into()))
            .collect();
        let mut latencies: Vec<_> = strategies.iter().map(|_| merging_histogram()).collect();
        let guess = Duration::from_secs_f64(self.plan.seconds.min(3600.0));
        let rounds = Rounds::each("sync", self.plan.rounds, &series, guess);
        let in_plan_order = |_| (0..strategies.len()).collect();
        rounds.run(
            &mut series,
            &disturbance::WATCH,
            progress,
            in_plan_order,
            |group| {
                for index in group.members.clone() {
                    self.measure(index, group, &mut latencies[index])?;
                }
                Ok(())
            },
        )?;
        progress.doing(
            "done",
            self.plan.trials(),
            self.plan.trials(),
            Duration::ZERO,
        );
        for (one, latencies) in series.iter_mut().zip(&latencies) {
            one.distribution = summary::distribution(latencies);
        }
        Ok(series)
    }

    fn measure(
        &mut self,
        index: usize,
        group: &mut Group<'_>,
        latencies: &mut Histogram<u64>,
    ) -> Result<(), Error> {
        let strategy = self.plan.strategies[index];
        let operations = self.plan.operations_of(&strategy, self.rate);
        let limit =
            Duration::try_from_secs_f64(self.plan.time_limit(&strategy)).unwrap_or(Duration::MAX);
        group.begin(index);
        match self.attempt(&strategy, operations, limit)? {
            Attempt::Unsupported(reason) => group.give_up(index, reason),
            Attempt::Measured(measured, preparation) => {
                let writes = self.model.writes(&strategy, &measured);
                let trial = summary::trial(group.round, &measured, writes, preparation);
                group.measured(index, trial);
                // It grows as needed: an error is not possible.
                let _ = latencies.add(&measured.rest);
            }
        }
        Ok(())
    }

    /// Prepares, runs and clears one trial.
    fn attempt(
        &mut self,
        strategy: &Strategy,
        operations: u64,
        time_limit: Duration,
    ) -> Result<Attempt, Error> {
        let failed = |error: io::Error| Error::io(format!("cannot measure {strategy}"))(error);
        let per_file = operations / u64::from(strategy.file_count());
        let prepared = match self.bench.prepare(strategy, per_file) {
            Ok(prepared) => prepared,
            Err(PrepareError::Unsupported(reason)) => {
                self.bench.discard(strategy).map_err(failed)?;
                return Ok(Attempt::Unsupported(reason));
            }
            Err(PrepareError::Io(error)) => return Err(failed(error)),
        };
        self.site.wait_until_quiet();
        self.attempts += 1;
        let outcome = trial::run(&Task {
            strategy,
            paths: &prepared.paths,
            operations,
            time_limit,
            number: self.attempts,
            site: self.site,
            stop: self.stop,
        });
        let preparation = prepared.preparation;
        let attempt = match outcome {
            Ok(measured) => Attempt::Measured(Box::new(measured), preparation),
            Err(error) => match strategy.unsupported(&error) {
                Some(reason) => Attempt::Unsupported(reason),
                None => return Err(failed(error)),
            },
        };
        self.bench
            .clear(prepared, strategy.allocation)
            .map_err(failed)?;
        Ok(attempt)
    }

    fn results(self, pilot: Option<Pilot>, series: Vec<Series>) -> (SyncResults, Vec<Notice>) {
        let mut notices = disturbance::notices(&series);
        notices.extend(drift::notices(&series));
        let excluded = self.plan.excluded.iter();
        notices.extend(left_out(
            excluded.map(|one| (one.strategy.key(), one.reason.as_str())),
        ));
        let claims = claims::judge(self.site.filesystem(), &series);
        let results = SyncResults {
            plan: self.plan.kind,
            rounds: self.plan.rounds,
            seconds_per_trial: self.plan.seconds,
            operations: self.plan.operations,
            settle_seconds: self.plan.settle_seconds,
            pilot,
            preparation: self.bench.kept,
            series,
            claims,
        };
        (results, notices)
    }
}
