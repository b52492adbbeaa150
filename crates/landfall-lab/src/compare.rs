//! Two runs side by side: is the difference real?
//!
//! The runs were made at different times, so their rounds are not paired: both samples are resampled
//! independently, and the interval of the ratio is wider than that of a ratio within one run.

use schemars::JsonSchema;
use serde::Serialize;

use crate::stats::{Estimate, FEWEST_ROUNDS};
use crate::sync::{Operations, StrategyResult};
use crate::{Experiment, Results, bytes_text};

/// Ratios closer to 1 than this are called equal even when the interval excludes 1: few rounds give
/// intervals that are too narrow, and nobody changes a setting for three percent.
const EQUAL: std::ops::RangeInclusive<f64> = 0.97..=1.03;

/// A word on the difference between two measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Difference {
    /// B is faster: the whole interval is above 1.
    Faster,
    /// B is slower: the whole interval is below 1.
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

/// One strategy in both runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// The strategy.
    pub key: String,
    /// Operations per second in A.
    pub a: Estimate,
    /// Operations per second in B.
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
    /// Strategies that both runs measured.
    pub rows: Vec<Row>,
    /// Strategies that only A measured.
    pub only_a: Vec<String>,
    /// Strategies that only B measured.
    pub only_b: Vec<String>,
}

/// Compares two runs; the error says why they cannot be compared.
pub fn compare(a: &Results, b: &Results) -> Result<Comparison, String> {
    let ([Experiment::Sync(sync_a)], [Experiment::Sync(sync_b)]) =
        (a.experiments.as_slice(), b.experiments.as_slice())
    else {
        return Err("they do not hold the same experiments".into());
    };
    let measured = |strategies: &[StrategyResult]| -> Vec<String> {
        strategies
            .iter()
            .filter(|s| s.summary.is_some())
            .map(|s| s.key.clone())
            .collect()
    };
    let (keys_a, keys_b) = (measured(&sync_a.strategies), measured(&sync_b.strategies));
    let rows: Vec<Row> = sync_a
        .strategies
        .iter()
        .filter_map(|of_a| {
            let of_b = sync_b.strategies.iter().find(|of_b| of_b.key == of_a.key)?;
            row(of_a, of_b)
        })
        .collect();
    if rows.is_empty() {
        return Err("no strategy was measured in both".into());
    }
    Ok(Comparison {
        differences: circumstances(a, b),
        rows,
        only_a: keys_a
            .iter()
            .filter(|key| !keys_b.contains(key))
            .cloned()
            .collect(),
        only_b: keys_b
            .iter()
            .filter(|key| !keys_a.contains(key))
            .cloned()
            .collect(),
    })
}

fn row(a: &StrategyResult, b: &StrategyResult) -> Option<Row> {
    let rates = |strategy: &StrategyResult| -> Vec<f64> {
        strategy
            .trials
            .iter()
            .map(|trial| trial.ops_per_second)
            .collect()
    };
    let ratio = Estimate::of_unpaired_ratio(&rates(b), &rates(a))?;
    let difference = if a.trials.len() < FEWEST_ROUNDS || b.trials.len() < FEWEST_ROUNDS {
        Difference::TooFewRounds
    } else if EQUAL.contains(&ratio.median) {
        Difference::NoneShown
    } else if ratio.low > 1.0 {
        Difference::Faster
    } else if ratio.high < 1.0 {
        Difference::Slower
    } else {
        Difference::NoneShown
    };
    Some(Row {
        key: a.key.clone(),
        a: a.summary.as_ref()?.ops_per_second,
        b: b.summary.as_ref()?.ops_per_second,
        ratio,
        difference,
    })
}

/// What else differs, so that a ratio is not blamed on the wrong thing.
fn circumstances(a: &Results, b: &Results) -> Vec<String> {
    let storage = |results: &Results| {
        let storage = results.filesystem.storage();
        let devices: Vec<&str> = storage
            .devices
            .iter()
            .map(|device| device.name.as_str())
            .collect();
        format!("{} on {}", storage.kind, devices.join(", "))
    };
    let options = |results: &Results| results.filesystem.storage().options.join(",");
    let trials = |results: &Results| {
        results
            .sync()
            .map_or(String::new(), |sync| match sync.operations {
                Operations::ByTime => format!("{} seconds", sync.seconds_per_trial),
                Operations::Exactly(number) => format!("{number} operations"),
            })
    };
    let size = |results: &Results| {
        let devices = &results.filesystem.storage().devices;
        bytes_text(devices.iter().map(|device| device.size_bytes).sum())
    };
    let settled = |results: &Results| match results.sync().and_then(|sync| sync.settle_seconds) {
        Some(seconds) => format!("waited {seconds} seconds"),
        None => "synced".to_owned(),
    };
    let pairs = [
        ("landfall's version", a.version.clone(), b.version.clone()),
        ("the kernel", a.host.kernel.clone(), b.host.kernel.clone()),
        (
            "the number of processors",
            a.host.cpus.to_string(),
            b.host.cpus.to_string(),
        ),
        ("the filesystem", storage(a), storage(b)),
        ("mount options", options(a), options(b)),
        ("the length of trials", trials(a), trials(b)),
        ("the size of the disk", size(a), size(b)),
        ("how zeros settled", settled(a), settled(b)),
    ];
    pairs
        .into_iter()
        .filter(|(_, a, b)| a != b)
        .map(|(what, a, b)| format!("{what}: {a} in A, {b} in B"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Strategy;
    use crate::sync::fixtures::measured;

    fn difference(a: &[f64], b: &[f64]) -> Difference {
        let of = |rates: &[f64]| measured(Strategy::BASELINE, rates, 1.0, 1.0);
        row(&of(a), &of(b)).unwrap().difference
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
