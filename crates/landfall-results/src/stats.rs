//! Medians, their bootstrap intervals, and ratios.
//!
//! Times on a shared machine have long tails, so the middle is the median. Its interval is the
//! percentile bootstrap (Efron 1979): resample the rounds with replacement, take the median of each
//! resample, and keep the middle 95%. With five rounds or fewer it runs from the smallest round to the
//! largest, which holds the true median in 94% of cases with five, 88 with four, 75 with three, 50 with
//! two: so no verdict is given on fewer than five.
//!
//! Ratios are formed within a round, between trials that ran seconds apart, and the median of those
//! is quoted: what disturbs a round disturbs both sides of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Fewer rounds than this give an interval that is no 95% interval.
pub const FEWEST_ROUNDS: usize = 5;

const RESAMPLES: usize = 2_000;
/// Fixed, so that the same document always gives the same intervals.
const SEED: u64 = 0x6c61_6e64_6661_6c6c;

/// A median with its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Median of the rounds.
    pub median: f64,
    /// Lower end of the 95% bootstrap interval of the median.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
}

impl Estimate {
    /// Of one over it: of what is held against this, where this was held against that. `None`: it may be 0.
    pub fn inverse(&self) -> Option<Estimate> {
        (self.low > 0.0).then(|| Estimate {
            median: 1.0 / self.median,
            low: 1.0 / self.high,
            high: 1.0 / self.low,
        })
    }

    /// The median of `values` and its interval; `None` of nothing.
    pub fn of(values: &[f64]) -> Option<Estimate> {
        let middle = median(values)?;
        if values.len() == 1 {
            return Some(Estimate {
                median: middle,
                low: middle,
                high: middle,
            });
        }
        let mut random = fastrand::Rng::with_seed(SEED);
        let mut sample = vec![0.0; values.len()];
        let mut medians: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                sample.fill_with(|| values[random.usize(..values.len())]);
                median_in_place(&mut sample)
            })
            .collect();
        medians.sort_by(f64::total_cmp);
        Some(Estimate {
            median: middle,
            low: quantile(&medians, 0.025),
            high: quantile(&medians, 0.975),
        })
    }

    /// The median of `a/b`, formed within each pair, and its interval.
    pub fn of_ratio(pairs: &[(f64, f64)]) -> Option<Estimate> {
        let ratios: Vec<f64> = pairs
            .iter()
            .filter(|(_, b)| *b > 0.0)
            .map(|(a, b)| a / b)
            .collect();
        Estimate::of(&ratios)
    }

    /// The ratio of the medians of two samples that are not paired, and its interval: both samples
    /// are resampled independently.
    pub fn of_unpaired_ratio(a: &[f64], b: &[f64]) -> Option<Estimate> {
        Self::of_unpaired(a, b, median_in_place)
    }

    /// How many times as many bytes a request of one sample cost as one of another, from stretches of each with
    /// their bytes and requests: the ratio of sums over sums, which resamples stretches. For bytes that come in
    /// bursts.
    pub fn of_unpaired_rates(a: &[(f64, f64)], b: &[(f64, f64)]) -> Option<Estimate> {
        Self::of_unpaired(a, b, |stretches| {
            let (bytes, requests) = stretches
                .iter()
                .fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            bytes / f64::max(requests, 1.0)
        })
    }

    /// The ratio of what `middle` makes of two samples, which are resampled independently. `None`: so much of `b` is 0 that
    /// the interval would have no upper end.
    fn of_unpaired<T: Copy>(a: &[T], b: &[T], middle: fn(&mut [T]) -> f64) -> Option<Estimate> {
        if a.is_empty() || b.is_empty() {
            return None;
        }
        let of_b = Some(middle(&mut b.to_vec())).filter(|b| *b > 0.0)?;
        let mut random = fastrand::Rng::with_seed(SEED);
        let mut resampled = |values: &[T]| {
            let mut sample: Vec<T> = values
                .iter()
                .map(|_| values[random.usize(..values.len())])
                .collect();
            middle(&mut sample)
        };
        let mut ratios: Vec<f64> = (0..RESAMPLES)
            .map(|_| match (resampled(a), resampled(b)) {
                (a, b) if b > 0.0 => a / b,
                _ => f64::INFINITY,
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        let ends = [quantile(&ratios, 0.025), quantile(&ratios, 0.975)];
        let [low, high] = Some(ends).filter(|ends| ends.iter().all(|end| end.is_finite()))?;
        Some(Estimate {
            median: middle(&mut a.to_vec()) / of_b,
            low,
            high,
        })
    }

    /// Width of the interval as a share of the median.
    pub fn relative_width(&self) -> f64 {
        if self.median == 0.0 {
            0.0
        } else {
            (self.high - self.low) / self.median.abs()
        }
    }
}

/// A sample as it was measured: mean and standard deviation beside the median, for figures that have
/// two humps, where one number says little.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the sample (n - 1); 0 of a single value.
    pub standard_deviation: f64,
    /// Median and its interval.
    #[serde(flatten)]
    pub estimate: Estimate,
}

impl Spread {
    /// The spread of `values`; `None` of nothing.
    pub fn of(values: &[f64]) -> Option<Spread> {
        let estimate = Estimate::of(values)?;
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Spread {
            mean,
            standard_deviation: (squares / (count - 1.0).max(1.0)).sqrt(),
            estimate,
        })
    }
}

/// The middle value, or the mean of the two middle ones; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    Some(median_in_place(&mut values.to_vec()))
}

fn median_in_place(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len().is_multiple_of(2) {
        (values[half - 1] + values[half]) / 2.0
    } else {
        values[half]
    }
}

/// The `q`-quantile of sorted values, interpolated linearly between neighbours.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let position = q * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = position.ceil() as usize;
    sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Normal deviates by Box and Muller.
    fn normal(random: &mut fastrand::Rng, mean: f64, deviation: f64) -> f64 {
        let (u, v) = (1.0 - random.f64(), random.f64());
        mean + deviation * (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn spreads_are_those_of_a_sample() {
        let spread = Spread::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!(spread.mean, 5.0);
        assert!((spread.standard_deviation - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!(Spread::of(&[3.0]).unwrap().standard_deviation, 0.0);
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn one_round_has_no_width() {
        let estimate = Estimate::of(&[7.0]).unwrap();
        assert_eq!(
            (estimate.low, estimate.median, estimate.high),
            (7.0, 7.0, 7.0)
        );
    }

    #[test]
    fn five_rounds_span_their_extremes() {
        let estimate = Estimate::of(&[5.0, 1.0, 2.0, 9.0, 4.0]).unwrap();
        assert_eq!(
            (estimate.low, estimate.median, estimate.high),
            (1.0, 4.0, 9.0)
        );
    }

    /// The interval must hold the true median in about 95% of repetitions, for a symmetric and for
    /// a skewed distribution.
    #[test]
    fn intervals_cover_the_true_median_as_often_as_they_say() {
        let mut random = fastrand::Rng::with_seed(5);
        let repetitions = 300;
        let lognormal = |x: f64| x.exp();
        let normal_itself = |x: f64| x;
        let transforms: [&dyn Fn(f64) -> f64; 2] = [&normal_itself, &lognormal];
        for transform in transforms {
            let truth = transform(10.0);
            let covered = (0..repetitions)
                .filter(|_| {
                    let sample: Vec<f64> = (0..25)
                        .map(|_| transform(normal(&mut random, 10.0, 1.0)))
                        .collect();
                    let estimate = Estimate::of(&sample).unwrap();
                    estimate.low <= truth && truth <= estimate.high
                })
                .count();
            let share = covered as f64 / f64::from(repetitions);
            assert!(
                (0.90..=0.99).contains(&share),
                "true median {truth}: {share}"
            );
        }
    }

    #[test]
    fn pairing_removes_what_disturbs_a_whole_round() {
        // A round is up to ten times slower than another, and A is always twice as fast as B.
        let pairs = [(20.0, 10.0), (200.0, 100.0), (60.0, 30.0), (24.0, 12.0)];
        let ratio = Estimate::of_ratio(&pairs).unwrap();
        assert_eq!((ratio.low, ratio.median, ratio.high), (2.0, 2.0, 2.0));
    }

    #[test]
    fn unpaired_samples_of_one_distribution_do_not_differ() {
        let mut random = fastrand::Rng::with_seed(9);
        let mut sample =
            || -> Vec<f64> { (0..15).map(|_| normal(&mut random, 100.0, 10.0)).collect() };
        let ratio = Estimate::of_unpaired_ratio(&sample(), &sample()).unwrap();
        assert!(ratio.low < 1.0 && 1.0 < ratio.high, "{ratio:?}");
    }

    #[test]
    fn an_interval_without_an_upper_end_is_none() {
        let even = [(4096.0, 1.0); 4];
        // All bytes came in one of four stretches: a third of all resamples have none.
        let burst = [(0.0, 1.0), (0.0, 1.0), (4096.0, 1.0), (0.0, 0.0)];
        assert_eq!(Estimate::of_unpaired_rates(&even, &burst), None);
        let ratio = Estimate::of_unpaired_rates(&burst, &even).unwrap();
        assert!(ratio.low == 0.0 && ratio.high.is_finite(), "{ratio:?}");
        assert_eq!(ratio.inverse(), None);
    }

    proptest! {
        #[test]
        fn an_interval_holds_its_median(values in prop::collection::vec(0.1f64..1e6, 1..20)) {
            let estimate = Estimate::of(&values).unwrap();
            prop_assert!(estimate.low <= estimate.median && estimate.median <= estimate.high);
        }
    }
}
