//! The run: every strategy once a round, round after round.
//!
//! Whatever does not fit is left out or refused before the first byte is written: a filesystem that
//! fills up half-way would disturb everybody on it.

use std::io;
use std::time::Duration;

use landfall_os::{DirtyLimits, StreamCall, StreamMethod};

use super::files::Workbench;
use super::plan::required_bytes;
use super::trial::{self, Task};
use super::{Plan, Strategy, StreamResults, ceiling, claims, notices, wall};
use crate::preparation::{Call, PrepareError};
use crate::room::Room;
use crate::rounds::Rounds;
use crate::{Error, Experiment, Found, Notice, PlanKind, Progress, Site, Stop};
use landfall_os::humanize::bytes_text;
use landfall_results::{Metric, Series, Trial};

/// Bytes of the pilot at most.
const PILOT_BYTES: u64 = 64 << 20;
const PILOTS: usize = 2;

impl Experiment for Plan {
    fn name(&self) -> &'static str {
        "stream"
    }

    fn trials(&self) -> usize {
        Plan::trials(self)
    }

    fn expected(&self) -> Duration {
        let seconds = self.most_seconds.unwrap_or(600.0) * 0.6;
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    fn required_bytes(&self) -> u64 {
        Plan::required_bytes(self)
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
        let (found, notices) = measure(site, self, stop, progress)?;
        Ok((found.into(), notices))
    }
}

/// Measures `plan` on `site`; returns what was found and what must be known about it.
fn measure(
    site: &Site,
    plan: &Plan,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<(StreamResults, Vec<Notice>), Error> {
    let mut run = Run {
        site,
        plan,
        stop,
        bench: Workbench { site, stop },
        trials_done: 0,
    };
    let room = Room::of(site)?;
    let sizes = run.sizes(&room)?;
    let (strategies, excluded) = plan.strategies(&sizes);
    if let (true, Some(excluded)) = (strategies.is_empty(), excluded.first()) {
        return Err(Error::Usage(format!(
            "this plan leaves nothing to measure: {}",
            excluded.reason
        )));
    }
    let limits = DirtyLimits::now(site.device());
    progress.doing("memory", 0, plan.trials(), Duration::ZERO);
    let ceilings = ceiling::measure(&strategies, room.largest_in_memory(), stop)
        .map_err(Error::io("cannot measure what memory can do"))?;
    let results = run.rounds(&strategies, progress)?;
    let mut noticed = notices::of_plan(plan, &sizes, &excluded, &room);
    progress.doing("done", plan.trials(), plan.trials(), Duration::ZERO);
    noticed.extend(notices::of_results(&results, &ceilings));
    let walls = wall::find(&results, limits.as_ref());
    let claims = claims::judge(
        site.filesystem(),
        &results,
        plan.data,
        &walls,
        limits.as_ref(),
    );
    let all_sizes = plan.sizes();
    let results = StreamResults {
        plan: plan.kind,
        rounds: plan.rounds,
        data: plan.data,
        dirty_limits: limits,
        sizes_left_out: all_sizes
            .into_iter()
            .filter(|size| !sizes.contains(size))
            .collect(),
        ceilings,
        series: results,
        walls,
        claims,
    };
    Ok((results, noticed))
}

/// How one attempt at a trial ended.
enum Attempt {
    Measured(Box<Trial>),
    Unsupported(String),
}

struct Run<'a> {
    site: &'a Site,
    plan: &'a Plan,
    stop: &'a Stop,
    bench: Workbench<'a>,
    trials_done: u64,
}

impl Run<'_> {
    /// The sizes that there is room and time for; refuses what the user chose and what leaves none.
    fn sizes(&mut self, room: &Room) -> Result<Vec<u64>, Error> {
        let remedy = "name a smaller --size";
        let sizes = self.plan.sizes();
        if self.plan.sizes_are_chosen() {
            let largest = sizes.last().copied().unwrap_or(0);
            self.site.require_space(required_bytes(largest), remedy)?;
            room.check_memory(largest)?;
            return Ok(sizes);
        }
        let rate = match self.plan.most_seconds {
            Some(_) => self.pilot(room)?,
            None => f64::INFINITY,
        };
        let fitting = self.plan.sizes_within(room.largest(), rate);
        let smallest = match (self.plan.kind, fitting.last()) {
            // The short plan shrinks, but not for ever.
            (PlanKind::Short, Some(largest)) => *largest,
            (_, Some(_)) => return Ok(fitting),
            (_, None) => sizes.first().copied().unwrap_or(0),
        };
        self.site.require_space(required_bytes(smallest), remedy)?;
        if fitting.is_empty() {
            return Err(Error::Refused(format!(
                "the smallest state of this plan, {}, is more than three quarters of the {} of memory that is available: {remedy}",
                bytes_text(smallest),
                bytes_text(room.memory)
            )));
        }
        Ok(fitting)
    }

    /// Bytes per second that this disk makes durable, from short trials: the best of them, since memory
    /// may be slow to be had the first time.
    fn pilot(&mut self, room: &Room) -> Result<f64, Error> {
        let chunks = PILOT_BYTES.min(room.largest()) / Strategy::CHUNK;
        let size = chunks.max(1) * Strategy::CHUNK;
        self.site
            .require_space(required_bytes(size), "name a smaller --size")?;
        let strategy = Strategy::usual(StreamMethod::WRITE, size, self.plan.data);
        let mut rate = 0.0_f64;
        for _ in 0..PILOTS {
            match self.attempt(&strategy, 0)? {
                Attempt::Measured(trial) => {
                    let reached = trial.get(Metric::TotalMbPerS).unwrap_or(0.0);
                    rate = rate.max(reached * 1e6);
                }
                Attempt::Unsupported(reason) => {
                    return Err(Error::Refused(format!(
                        "{} cannot even take a state by write and fdatasync: {reason}",
                        self.site.directory().display()
                    )));
                }
            }
        }
        Ok(rate)
    }

    fn rounds(
        &mut self,
        strategies: &[Strategy],
        progress: &mut dyn Progress,
    ) -> Result<Vec<Series>, Error> {
        let mut series: Vec<Series> = strategies
            .iter()
            .map(|strategy| Series::new((*strategy).into()))
            .collect();
        let rounds = Rounds {
            trials: self.plan.trials(),
            ..Rounds::each("stream", self.plan.rounds, &series, Duration::from_secs(1))
        };
        // In another order each time: what a trial finds of free memory is what the one before it
        // gave back, and a large one before a small one must not be the rule.
        let shuffled = |round: u32| {
            let mut order: Vec<usize> = (0..strategies.len()).collect();
            fastrand::Rng::with_seed(u64::from(round)).shuffle(&mut order);
            order
        };
        rounds.run(&mut series, &notices::WATCH, progress, shuffled, |group| {
            for index in group.members.clone() {
                group.begin(index);
                match self.attempt(&strategies[index], group.round)? {
                    Attempt::Measured(trial) => group.measured(index, *trial),
                    Attempt::Unsupported(reason) => group.give_up(index, reason),
                }
            }
            Ok(())
        })?;
        Ok(series)
    }

    /// Prepares, runs and clears one trial.
    fn attempt(&mut self, strategy: &Strategy, round: u32) -> Result<Attempt, Error> {
        let failed = |error: io::Error| Error::io(format!("cannot measure {strategy}"))(error);
        self.trials_done += 1;
        let seed = self.trials_done << 16;
        let attempt = match self.bench.prepare(strategy, seed + 1) {
            Ok(prepared) => {
                let task = Task {
                    strategy,
                    prepared: &prepared,
                    round,
                    seed,
                    site: self.site,
                    stop: self.stop,
                };
                match trial::run(&task) {
                    Ok(trial) => Ok(Attempt::Measured(Box::new(trial))),
                    Err(error) => match unsupported(strategy, &error) {
                        Some(reason) => Ok(Attempt::Unsupported(reason)),
                        None => Err(error),
                    },
                }
            }
            Err(PrepareError::Unsupported(reason)) => Ok(Attempt::Unsupported(reason)),
            Err(PrepareError::Io(error)) => Err(error),
        };
        let removed = self.bench.remove();
        let attempt = attempt.map_err(failed)?;
        removed.map_err(failed)?;
        Ok(attempt)
    }
}

/// Whether a failure means that this system cannot do what the strategy asks for.
fn unsupported(strategy: &Strategy, error: &io::Error) -> Option<String> {
    let method = strategy.method;
    let call = Call {
        name: method.to_string(),
        direct: method.direct.then(|| bytes_text(strategy.chunk)),
        mapped: method.is_mapped(),
        ring: method.call == StreamCall::IoUring,
    };
    call.unsupported(error)
}
