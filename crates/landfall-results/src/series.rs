//! A series: what was measured, round by round, of one combination of axes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::{METRICS, Metric, Rounds};
use crate::numbers::{NOTHING, two};
use crate::stats::{Estimate, FEWEST_ROUNDS, Spread};
use crate::{Axes, FilesystemSpec, Trial};

/// What was measured with one combination of axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Name, made from the axes: unique in the experiment and stable across runs.
    pub key: String,
    /// What its trials were made with.
    pub axes: Axes,
    /// Why it could not be measured here (any more).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsupported: Option<String>,
    /// Each metric over the rounds; empty when nothing was measured.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub summary: BTreeMap<Metric, Spread>,
    /// Latency in microseconds at each of these percentiles, over all rounds together, without first operations:
    /// pairs of percentile and latency.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub distribution: Vec<(f64, f64)>,
    /// Bytes of the database's files before anything was put into it: a server's own tables and logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_bytes: Option<u64>,
    /// Bytes of the database's files when it was loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded_bytes: Option<u64>,
    /// What became of it when the power was cut; absent when that was not tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<SeriesProof>,
    /// The rounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<Trial>,
}

/// What power cuts did to what a series wrote, on the recorder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesProof {
    /// The filesystem that was made for it.
    pub filesystem_spec: FilesystemSpec,
    /// Distinct crash states that were checked.
    pub states: u64,
    /// States in which an acknowledged write was not there, or the file or its filesystem was not as was promised.
    pub losing: u64,
    /// Acknowledged writes that were missing in the worst of them.
    pub worst_lost: u64,
    /// Why it was not proven, if it was not.
    pub not_proven: Option<String>,
}

impl SeriesProof {
    /// Whether it was proven, and all was always as was promised.
    pub fn lost_nothing(&self) -> bool {
        self.not_proven.is_none() && self.states > 0 && self.losing == 0
    }
}

impl Series {
    /// One of which nothing was measured yet.
    pub fn new(axes: Axes) -> Series {
        Series {
            key: axes.key(),
            axes,
            unsupported: None,
            summary: BTreeMap::new(),
            distribution: Vec::new(),
            empty_bytes: None,
            loaded_bytes: None,
            proof: None,
            trials: Vec::new(),
        }
    }

    /// Derives the summary from the trials.
    pub fn summarize(&mut self) {
        let over_the_rounds = METRICS.iter().filter_map(|one| {
            let values = self.values(one.metric);
            let enough = match one.rounds {
                Rounds::Apart => false,
                Rounds::Median => true,
                Rounds::MedianOfMost => values.len() * 2 > self.trials.len(),
            };
            Some((one.metric, Spread::of(&values).filter(|_| enough)?))
        });
        self.summary = over_the_rounds.collect();
    }

    /// Its name among those on the same site with as many clients; empty where it has none.
    pub fn name(&self) -> String {
        self.axes.name().unwrap_or_default()
    }

    /// Bytes of a database's files without those that it had when it was empty.
    pub fn data_bytes(&self, bytes: f64) -> f64 {
        (bytes - self.empty_bytes.unwrap_or(0) as f64).max(0.0)
    }

    /// Whether anything was measured.
    pub fn is_measured(&self) -> bool {
        !self.summary.is_empty()
    }

    /// What power cuts did to it, if it was proven.
    pub fn proven(&self) -> Option<&SeriesProof> {
        let proof = self.proof.as_ref();
        proof.filter(|proof| proof.not_proven.is_none())
    }

    /// Why no claim about it can be judged, if none can: it was not measured, or too seldom for an interval.
    pub fn obstacle(&self) -> Option<String> {
        if let Some(reason) = &self.unsupported {
            return Some(format!("{} could not be measured: {reason}", self.key));
        }
        (self.trials.len() < FEWEST_ROUNDS).then(|| {
            format!(
                "fewer than {FEWEST_ROUNDS} rounds give no interval to judge by; measure more with --rounds"
            )
        })
    }

    /// A figure of every trial that has it.
    pub fn values(&self, metric: Metric) -> Vec<f64> {
        self.trials
            .iter()
            .filter_map(|trial| trial.get(metric))
            .collect()
    }

    /// A metric over the rounds.
    pub fn spread(&self, metric: Metric) -> Option<Spread> {
        self.summary.get(&metric).copied()
    }

    /// A metric over the rounds: its median and interval.
    pub fn estimate(&self, metric: Metric) -> Option<Estimate> {
        self.summary.get(&metric).map(|spread| spread.estimate)
    }

    /// The median of a metric over the rounds.
    pub fn median(&self, metric: Metric) -> Option<f64> {
        self.estimate(metric).map(|estimate| estimate.median)
    }

    /// The median as it is printed for people.
    pub fn text(&self, metric: Metric) -> String {
        let print = metric.description().print;
        self.median(metric)
            .map_or_else(|| NOTHING.to_owned(), print)
    }

    /// Writes with data, to be read: at most as many as there were requests, where empty flushes cannot be told from
    /// writes.
    pub fn writes_text(&self) -> String {
        match (
            self.median(Metric::Writes),
            self.median(Metric::WriteRequests),
        ) {
            (None, Some(requests)) => format!("≤{}", two(requests)),
            _ => self.text(Metric::Writes),
        }
    }

    /// Pairs of a figure of this series and of another one, from the rounds that measured both.
    pub fn pairs(&self, other: &Series, metric: Metric) -> Vec<(f64, f64)> {
        self.pairs_of(metric, other, metric)
    }

    /// How many times as much of a metric this series has as another: formed round by round.
    pub fn ratio(&self, other: &Series, metric: Metric) -> Option<Estimate> {
        Estimate::of_ratio(&self.pairs(other, metric))
    }

    /// The same of two figures, each of its series.
    pub fn pairs_of(&self, metric: Metric, other: &Series, its: Metric) -> Vec<(f64, f64)> {
        let pair = |trial: &Trial| {
            let twin = other.trials.iter().find(|twin| twin.round == trial.round)?;
            Some((trial.get(metric)?, twin.get(its)?))
        };
        self.trials.iter().filter_map(pair).collect()
    }

    /// The metric that says how fast it is, over the rounds: the first by which runs are compared.
    pub fn headline(&self) -> Option<Estimate> {
        let first = METRICS.iter().filter(|one| one.is_compared);
        first.filter_map(|one| self.estimate(one.metric)).next()
    }
}

/// A trial with its name: a line of a spreadsheet.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The experiment.
    pub experiment: &'a str,
    /// Key of the series.
    pub series: &'a str,
    /// The trial.
    pub trial: &'a Trial,
}

impl Row<'_> {
    /// What a line has: names of its fields.
    pub fn header() -> impl Iterator<Item = &'static str> {
        let metrics = METRICS.iter().map(|one| one.name);
        ["experiment", "series", "round"]
            .into_iter()
            .chain(metrics)
            .chain(["cut", "steady"])
    }

    /// The fields; empty where something was not measured.
    pub fn fields(&self) -> impl Iterator<Item = String> {
        let name = [
            self.experiment.to_owned(),
            self.series.to_owned(),
            self.trial.round.to_string(),
        ];
        let figures = METRICS.iter().map(|one| {
            let value = self.trial.get(one.metric);
            value.map_or_else(String::new, |value| format!("{value:.*}", one.decimals))
        });
        let steadiness = self.trial.steadiness.as_ref();
        let steady = steadiness.map_or_else(String::new, |steady| steady.reached.to_string());
        name.into_iter()
            .chain(figures)
            .chain([self.trial.cut.to_string(), steady])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(figures: &[&[(Metric, f64)]]) -> Series {
        let mut series = Series::new(Axes::default());
        for (index, figures) in figures.iter().enumerate() {
            let mut trial = Trial {
                round: index as u32 + 1,
                ..Trial::default()
            };
            figures
                .iter()
                .for_each(|(metric, value)| trial.figures.set(*metric, *value));
            series.trials.push(trial);
        }
        series.summarize();
        series
    }

    #[test]
    fn a_summary_is_made_of_what_was_measured() {
        let three = series(&[
            &[
                (Metric::OpsPerSecond, 1.0),
                (Metric::Writes, 3.0),
                (Metric::Operations, 7.0),
            ],
            &[(Metric::OpsPerSecond, 3.0)],
            &[(Metric::OpsPerSecond, 2.0)],
        ]);
        assert_eq!(three.median(Metric::OpsPerSecond), Some(2.0));
        // Of one of three nothing is concluded, and single trials have no median.
        assert_eq!(three.estimate(Metric::Writes), None);
        assert_eq!(three.estimate(Metric::Operations), None);
        assert!(!series(&[]).is_measured());
    }

    #[test]
    fn writes_that_cannot_be_told_are_bounded() {
        let bounded = series(&[&[(Metric::WriteRequests, 2.0), (Metric::Flushes, 1.0)]]);
        assert_eq!(bounded.writes_text(), "≤2.00");
        assert_eq!(series(&[&[(Metric::Seconds, 1.0)]]).writes_text(), NOTHING);
    }

    #[test]
    fn only_rounds_that_both_have_are_paired() {
        let rate = |value| [(Metric::OpsPerSecond, value)];
        let (two, one) = (series(&[&rate(4.0), &rate(6.0)]), series(&[&rate(2.0)]));
        assert_eq!(two.pairs(&one, Metric::OpsPerSecond), [(4.0, 2.0)]);
    }

    #[test]
    fn a_line_has_a_field_for_every_name() {
        let one = series(&[&[(Metric::Seconds, 0.25), (Metric::Operations, 10.0)]]);
        let row = Row {
            experiment: "sync",
            series: "a",
            trial: &one.trials[0],
        };
        let fields: Vec<String> = row.fields().collect();
        assert_eq!(fields[..5], ["sync", "a", "1", "0.250000", "10"]);
        assert_eq!(fields.len(), Row::header().count());
    }
}
