//! Two runs side by side: is the difference real?
//!
//! The runs were made at different times, so their rounds are not paired: both samples are resampled
//! independently, and the interval of the ratio is wider than that of a ratio within one run.

mod circumstances;

use landfall_results::Metric;
use landfall_results::metric::{Better, METRICS};
use schemars::JsonSchema;
use serde::Serialize;

use self::circumstances::circumstances;
use crate::Results;
use crate::stats::{Estimate, FEWEST_ROUNDS};

/// Ratios closer to 1 than this are called equal even when the interval excludes 1: few rounds give
/// intervals that are too narrow, and nobody changes a setting for three percent.
const EQUAL: std::ops::RangeInclusive<f64> = 0.97..=1.03;

/// A word on the difference between two measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Difference {
    /// B is faster: the whole interval is above 1, of a time below it.
    Faster,
    /// B is slower: the whole interval is below 1, of a time above it.
    Slower,
    /// The interval holds 1, or the ratio is next to it.
    NoneShown,
    /// A run has fewer than five rounds, so there is no interval to judge by.
    TooFewRounds,
}

impl Difference {
    /// The word, said of B.
    pub fn name(self) -> &'static str {
        match self {
            Difference::Faster => "faster",
            Difference::Slower => "slower",
            Difference::NoneShown => "no difference shown",
            Difference::TooFewRounds => "too few rounds to tell",
        }
    }
}

/// One figure of one series in both runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// The series.
    pub key: String,
    /// What is compared.
    pub metric: Metric,
    /// Its value in A.
    pub a: Estimate,
    /// Its value in B.
    pub b: Estimate,
    /// B over A.
    pub ratio: Estimate,
    /// The difference in a word.
    pub difference: Difference,
}

/// Two runs compared.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// What differs between the runs besides time, in sentences.
    pub differences: Vec<String>,
    /// What both runs measured.
    pub rows: Vec<Row>,
    /// Strategies that only A measured.
    pub only_a: Vec<String>,
    /// Strategies that only B measured.
    pub only_b: Vec<String>,
}

/// What a run measured of one figure of one strategy.
struct Sample<'a> {
    key: &'a str,
    metric: Metric,
    rounds: Vec<f64>,
}

/// Compares two runs; the error says why they cannot be compared.
pub fn compare(a: &Results, b: &Results) -> Result<Comparison, String> {
    let (samples_a, samples_b) = (samples(a), samples(b));
    let shared = |metric| samples_b.iter().any(|sample| sample.metric == metric);
    if !samples_a.iter().any(|sample| shared(sample.metric)) {
        return Err("they do not hold the same experiments".into());
    }
    let rows: Vec<Row> = samples_a
        .iter()
        .filter_map(|of_a| {
            let same = |of_b: &&Sample<'_>| (of_b.key, of_b.metric) == (of_a.key, of_a.metric);
            row(of_a, samples_b.iter().find(same)?)
        })
        .collect();
    if rows.is_empty() {
        return Err("no strategy was measured in both".into());
    }
    Ok(Comparison {
        differences: circumstances(a, b),
        only_a: only(&samples_a, &samples_b),
        only_b: only(&samples_b, &samples_a),
        rows,
    })
}

/// Whether two runs measured the same series, and neither of them any more.
pub fn measured_the_same(a: &Results, b: &Results) -> bool {
    let (a, b) = (samples(a), samples(b));
    only(&a, &b).is_empty() && only(&b, &a).is_empty()
}

/// The series of these that are not among those, each once.
fn only(these: &[Sample<'_>], those: &[Sample<'_>]) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for this in these {
        let is_shared = those.iter().any(|that| that.key == this.key);
        // Of each figure of a series there is a sample.
        if !is_shared && !keys.iter().any(|known| known == this.key) {
            keys.push(this.key.to_owned());
        }
    }
    keys
}

/// Everything that a run measured and that runs are compared by, the figures of one kind together.
fn samples(results: &Results) -> Vec<Sample<'_>> {
    let mut samples = Vec::new();
    for experiment in &results.experiments {
        for one in METRICS.iter().filter(|one| one.is_compared) {
            let measured = experiment.series().iter().filter(|one| one.is_measured());
            samples.extend(measured.filter_map(|series| {
                let rounds = series.values(one.metric);
                (!rounds.is_empty()).then_some(Sample {
                    key: &series.key,
                    metric: one.metric,
                    rounds,
                })
            }));
        }
    }
    samples
}

fn row(a: &Sample<'_>, b: &Sample<'_>) -> Option<Row> {
    let ratio = Estimate::of_unpaired_ratio(&b.rounds, &a.rounds)?;
    let difference = if a.rounds.len() < FEWEST_ROUNDS || b.rounds.len() < FEWEST_ROUNDS {
        Difference::TooFewRounds
    } else if EQUAL.contains(&ratio.median) {
        Difference::NoneShown
    } else {
        let (is_more, is_less) = (ratio.low > 1.0, ratio.high < 1.0);
        // Of a time more is worse.
        let (is_better, is_worse) = match a.metric.description().better {
            Better::Less => (is_less, is_more),
            Better::More | Better::Neither => (is_more, is_less),
        };
        match (is_better, is_worse) {
            (true, _) => Difference::Faster,
            (_, true) => Difference::Slower,
            _ => Difference::NoneShown,
        }
    };
    Some(Row {
        key: a.key.to_owned(),
        metric: a.metric,
        a: Estimate::of(&a.rounds)?,
        b: Estimate::of(&b.rounds)?,
        ratio,
        difference,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump_vs_log::DumpVsLogResults;
    use crate::dump_vs_log::fixtures::dump_vs_log_results;
    use crate::stream::StreamResults;
    use crate::stream::fixtures::stream_results;
    use crate::sync::fixtures::results;

    fn difference(a: &[f64], b: &[f64]) -> Difference {
        let of = |rates: &[f64]| Sample {
            key: "one",
            metric: Metric::OpsPerSecond,
            rounds: rates.to_vec(),
        };
        row(&of(a), &of(b)).unwrap().difference
    }

    #[test]
    fn states_are_compared_by_both_of_their_rates() {
        let mut a = results(Vec::new());
        a.experiments = vec![stream_results().into()];
        let mut b = a.clone();
        if let Some(stream) = b.experiments[0].of_mut::<StreamResults>() {
            for trial in stream.series.iter_mut().flat_map(|s| &mut s.trials) {
                let total = Metric::TotalMbPerS;
                let twice = trial.get(total).map(|rate| 2.0 * rate);
                trial.figures.set(total, twice);
            }
            stream.data = crate::stream::Data::Zeros;
        }
        let compared = compare(&a, &b).unwrap();
        for row in &compared.rows {
            let expected = match row.metric {
                Metric::TotalMbPerS => Difference::Faster,
                _ => Difference::NoneShown,
            };
            assert_eq!(row.difference, expected, "{}", row.key);
        }
        assert_eq!(compared.differences.len(), 1);
        assert!(compared.differences[0].contains("zeros in B"));
        let nothing = results(Vec::new());
        assert!(compare(&a, &nothing).is_err());
    }

    #[test]
    fn of_a_time_less_is_faster() {
        let mut a = results(Vec::new());
        a.experiments = vec![dump_vs_log_results().into()];
        let mut b = a.clone();
        if let Some(saved) = b.experiments[0].of_mut::<DumpVsLogResults>() {
            for trial in saved.series.iter_mut().flat_map(|s| &mut s.trials) {
                let time = Metric::UsPerUpdate;
                let twice = trial.get(time).map(|us| 2.0 * us);
                trial.figures.set(time, twice);
            }
            saved.record_bytes = 512;
        }
        let compared = compare(&a, &b).unwrap();
        let logs = compared.rows.iter();
        let logs = logs.filter(|row| row.metric == Metric::UsPerUpdate);
        assert_eq!(logs.clone().count(), 7, "five logs and two snapshots");
        assert!(logs.clone().all(|row| row.difference == Difference::Slower));
        let back = compare(&b, &a).unwrap();
        let faster = back.rows.iter();
        let faster = faster.filter(|row| row.difference == Difference::Faster);
        assert_eq!(faster.count(), 7);
        let differs = "the updates that are logged: 1000 of 256 bytes a second in A, 1000 of 512 bytes a second in B";
        assert_eq!(compared.differences, [differs]);
    }

    #[test]
    fn what_only_one_run_measured_is_named_once() {
        let mut a = results(Vec::new());
        a.experiments = vec![stream_results().into()];
        let mut b = a.clone();
        let mut missing = Vec::new();
        if let Some(stream) = b.experiments[0].of_mut::<StreamResults>() {
            let rest = stream.series.split_off(1);
            missing = rest.into_iter().filter(|one| one.is_measured()).collect();
        }
        let missing: Vec<String> = missing.into_iter().map(|one| one.key).collect();
        assert!(missing.len() > 1, "{missing:?}");
        let compared = compare(&a, &b).unwrap();
        assert_eq!(compared.only_a, missing);
        assert_eq!(compared.only_b, [""; 0]);
        assert_eq!(compare(&b, &a).unwrap().only_b, missing);
        assert!(measured_the_same(&a, &a) && measured_the_same(&b, &b));
        assert!(!measured_the_same(&a, &b) && !measured_the_same(&b, &a));
    }

    #[test]
    fn only_a_difference_beyond_the_noise_is_one() {
        let a = [100.0, 104.0, 98.0, 101.0, 99.0];
        assert_eq!(
            difference(&a, &a.map(|rate| rate * 1.5)),
            Difference::Faster
        );
        assert_eq!(
            difference(&a, &a.map(|rate| rate * 0.5)),
            Difference::Slower
        );
        assert_eq!(
            difference(&a, &a.map(|rate| rate * 1.02)),
            Difference::NoneShown
        );
        let noisy = [40.0, 250.0, 150.0, 90.0, 180.0];
        assert_eq!(difference(&a, &noisy), Difference::NoneShown);
        assert_eq!(difference(&a, &[150.0]), Difference::TooFewRounds);
    }
}
