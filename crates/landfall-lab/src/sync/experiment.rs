//! The run: every strategy once a round, round after round.

use std::io;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::device_cost::FlushModel;
use super::files::Workbench;
use super::trial::{self, Measured, Task};
use super::{
    Operations, Pilot, Plan, Strategy, StrategyResult, SyncResults, Trial, claims, disturbance,
    drift, required_bytes, summary,
};
use crate::preparation::PrepareError;
use crate::schedule::Schedule;
use crate::{Error, Notice, Preparation, Progress, Site, Stop};
use landfall_results::left_out;

/// Operations of the pilot at most, and its time.
const PILOT_OPERATIONS: u64 = 512;
const PILOT_TIME: Duration = Duration::from_millis(200);

/// What makes a plan need less space.
const REMEDY: &str = "lower --ops";

/// Runs `plan` on `site`; returns what was found and what must be known about it.
pub fn run(
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
        records: plan.strategies.iter().map(Record::new).collect(),
        schedule: Schedule::new(
            plan.strategies.len(),
            plan.rounds,
            Duration::from_secs_f64(plan.seconds.min(3600.0)),
        ),
    };
    let pilot = run.pilot()?;
    run.rate = pilot.map_or(f64::INFINITY, |pilot| pilot.ops_per_second);
    site.require_space(required_bytes(plan, run.rate), REMEDY)?;
    run.rounds(progress)?;
    Ok(run.results(pilot))
}

/// A strategy and what was measured of it so far.
struct Record {
    strategy: Strategy,
    trials: Vec<Trial>,
    rest: Histogram<u64>,
    unsupported: Option<String>,
}

impl Record {
    fn new(strategy: &Strategy) -> Record {
        Record {
            strategy: *strategy,
            trials: Vec::new(),
            rest: trial::merging_histogram(),
            unsupported: None,
        }
    }

    fn into_result(mut self) -> StrategyResult {
        disturbance::mark(&mut self.trials, self.strategy.threads);
        StrategyResult {
            unsupported: self.unsupported,
            summary: summary::summary(&self.trials, &self.rest),
            trials: self.trials,
            ..StrategyResult::new(&self.strategy)
        }
    }
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
    records: Vec<Record>,
    schedule: Schedule,
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

    fn rounds(&mut self, progress: &mut dyn Progress) -> Result<(), Error> {
        let total = self.plan.trials();
        let mut done = 0;
        for round in 1..=self.plan.rounds {
            for index in 0..self.records.len() {
                if self.records[index].unsupported.is_none() {
                    let strategy = self.records[index].strategy;
                    let left = self.schedule.left(round, index..self.records.len());
                    progress.doing(&strategy.key(), done, total, left);
                    self.measure(index, round)?;
                    if let Some(trial) = self.records[index].trials.last() {
                        progress.measured(&trial.row(&strategy.key()));
                    }
                }
                done += 1;
            }
        }
        progress.doing("done", total, total, Duration::ZERO);
        Ok(())
    }

    fn measure(&mut self, index: usize, round: u32) -> Result<(), Error> {
        let strategy = self.records[index].strategy;
        let operations = self.plan.operations_of(&strategy, self.rate);
        let limit =
            Duration::try_from_secs_f64(self.plan.time_limit(&strategy)).unwrap_or(Duration::MAX);
        let begin = Instant::now();
        let attempt = self.attempt(&strategy, operations, limit)?;
        self.schedule.took(index, begin.elapsed());
        let record = &mut self.records[index];
        match attempt {
            Attempt::Unsupported(reason) => {
                self.schedule.drop(index);
                record.unsupported = Some(reason);
            }
            Attempt::Measured(measured, preparation) => {
                let cost = self.model.cost(&strategy, &measured);
                record
                    .trials
                    .push(summary::trial(round, &measured, cost, preparation));
                // It grows as needed: an error is not possible.
                let _ = record.rest.add(&measured.rest);
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

    fn results(self, pilot: Option<Pilot>) -> (SyncResults, Vec<Notice>) {
        let strategies: Vec<StrategyResult> =
            self.records.into_iter().map(Record::into_result).collect();
        let mut notices = disturbance::notices(&strategies);
        notices.extend(drift::notices(&strategies));
        let excluded = self.plan.excluded.iter();
        notices.extend(left_out(
            excluded.map(|one| (one.strategy.key(), one.reason.as_str())),
        ));
        let claims = claims::judge(self.site.filesystem(), &strategies);
        let results = SyncResults {
            plan: self.plan.kind,
            rounds: self.plan.rounds,
            seconds_per_trial: self.plan.seconds,
            operations: self.plan.operations,
            settle_seconds: self.plan.settle_seconds,
            pilot,
            preparation: self.bench.kept,
            strategies,
            claims,
        };
        (results, notices)
    }
}
