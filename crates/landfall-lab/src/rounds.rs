//! The rounds of an experiment: every series once a round, round after round.
//!
//! Series that are compared are measured close together in time, and what a round disturbs it disturbs for all of
//! them. A *group* is measured on one start of whatever must be started for it; most groups have one series. What
//! turns out not to be possible here is not tried again.

use std::time::{Duration, Instant};

use landfall_results::{Row, Series, Trial};

use crate::schedule::Schedule;
use crate::watch::{self, Watch};
use crate::{Error, Progress};

/// What there is to do.
pub(crate) struct Rounds {
    /// Whose trials they are.
    pub experiment: &'static str,
    /// How many.
    pub rounds: u32,
    /// The series that are measured together, by index.
    pub groups: Vec<Vec<usize>>,
    /// What a group takes as long as nothing is known.
    pub guess: Duration,
    /// Trials of the whole experiment.
    pub trials: usize,
}

/// A group in one round, to whom its trials are told.
pub(crate) struct Group<'a> {
    /// The round, from 1.
    pub round: u32,
    /// The series that are still measured, by index.
    pub members: Vec<usize>,
    series: &'a mut [Series],
    experiment: &'static str,
    progress: &'a mut dyn Progress,
    done: usize,
    total: usize,
    left: Duration,
}

impl Rounds {
    /// Every series of one plan by itself.
    pub fn each(
        experiment: &'static str,
        rounds: u32,
        series: &[Series],
        guess: Duration,
    ) -> Rounds {
        Rounds {
            experiment,
            rounds,
            groups: (0..series.len()).map(|index| vec![index]).collect(),
            guess,
            trials: series.len() * rounds as usize,
        }
    }

    /// Runs them: in each round `order` says in which order the groups come, and `measure` tells a group's trials.
    /// Then what disturbed them is marked, and summaries are made.
    pub fn run(
        self,
        series: &mut [Series],
        watch: &Watch,
        progress: &mut dyn Progress,
        order: impl Fn(u32) -> Vec<usize>,
        mut measure: impl FnMut(&mut Group<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut schedule = Schedule::new(self.groups.len(), self.rounds, self.guess);
        let mut done = 0;
        for round in 1..=self.rounds {
            let order = order(round);
            for (place, &index) in order.iter().enumerate() {
                let group = &self.groups[index];
                let members = waiting(group, series);
                if !members.is_empty() {
                    let begin = Instant::now();
                    let left = schedule.left(round, order[place..].iter().copied());
                    measure(&mut Group {
                        round,
                        members,
                        series: &mut *series,
                        experiment: self.experiment,
                        progress: &mut *progress,
                        done,
                        total: self.trials,
                        left,
                    })?;
                    if waiting(group, series).is_empty() {
                        schedule.drop(index);
                    } else {
                        schedule.took(index, begin.elapsed());
                    }
                }
                done += group.len();
            }
        }
        for one in series {
            watch::mark(one, watch);
            one.summarize();
        }
        Ok(())
    }
}

fn waiting(group: &[usize], series: &[Series]) -> Vec<usize> {
    let members = group.iter().copied();
    members
        .filter(|&index| series[index].unsupported.is_none())
        .collect()
}

impl Group<'_> {
    /// What is known of a series.
    pub fn series(&mut self, index: usize) -> &mut Series {
        &mut self.series[index]
    }

    /// A trial of this series begins.
    pub fn begin(&mut self, index: usize) {
        let key = &self.series[index].key;
        self.progress.doing(key, self.done, self.total, self.left);
    }

    /// It was measured.
    pub fn measured(&mut self, index: usize, trial: Trial) {
        let series = &mut self.series[index];
        self.done += 1;
        self.progress.measured(&Row {
            experiment: self.experiment,
            series: &series.key,
            trial: &trial,
        });
        series.trials.push(trial);
    }

    /// It cannot be measured here (any more).
    pub fn give_up(&mut self, index: usize, reason: String) {
        self.series[index].unsupported = Some(reason);
    }
}
