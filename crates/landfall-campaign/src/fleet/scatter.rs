//! How far from its peers a disk may be before it is called an outlier.
//!
//! Values are logarithms of slowness. Their middle is the median and their scale Qn, neither of which a few outliers move.
//! The limit is a quantile of Student's t, since the scale of few disks is itself uncertain; its degrees of freedom are fitted to
//! simulations (`false_rates.rs`). Where the bulk of the disks has longer tails than normal ones, the limit goes out to where an
//! exponential tail through their median and 90th percentile would end. That holds for Laplace's distribution; of longer tails
//! more are called outliers than is stated.

use super::robust::{median, qn, quantile};
use super::student::exceeded_with;

/// No disks are so much alike that less scatter than this is believed.
const LEAST_SCALE: f64 = 0.01;
/// With fewer, the 90th percentile of their distances says nothing about their tails.
const FEWEST_FOR_TAILS: usize = 40;
/// Over the median distance, the 90th percentile of distances: of normal values, and of Laplace's.
const NORMAL_TAIL: f64 = 2.438_6;
const EXPONENTIAL_TAIL: f64 = std::f64::consts::LOG2_10;

/// The middle of some values, and how they scatter about it.
#[derive(Clone, Debug)]
pub(super) struct Scatter {
    /// The median.
    pub middle: f64,
    count: usize,
    scale: f64,
    /// Median and 90th percentile of the distances from the middle.
    distances: (f64, f64),
}

impl Scatter {
    /// That of some values.
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Scatter {
        let mut sorted: Vec<f64> = values.collect();
        sorted.sort_by(f64::total_cmp);
        let middle = median(&sorted);
        let scale = qn(&sorted).max(LEAST_SCALE);
        let mut distances: Vec<f64> = sorted.iter().map(|one| (one - middle).abs()).collect();
        distances.sort_by(f64::total_cmp);
        Scatter {
            middle,
            count: sorted.len(),
            scale,
            distances: (median(&distances), quantile(&distances, 0.9)),
        }
    }

    /// The distance that normal values exceed with this probability, however long the tails are.
    pub(super) fn normal_limit(&self, probability: f64) -> f64 {
        self.scale * quantile_of(self.count, probability)
    }

    /// The distance from the middle that one of them exceeds by chance, with this probability.
    pub(super) fn limit(&self, probability: f64) -> f64 {
        self.limit_of(probability, quantile_of(self.count, probability))
    }

    /// The same, with [`quantile_of`] this number of disks and this probability.
    pub(super) fn limit_of(&self, probability: f64, quantile: f64) -> f64 {
        let normal = self.scale * quantile;
        if self.count < FEWEST_FOR_TAILS {
            return normal;
        }
        let (half, most) = self.distances;
        let heaviness =
            (most / half.max(LEAST_SCALE / 2.0) - NORMAL_TAIL) / (EXPONENTIAL_TAIL - NORMAL_TAIL);
        // From the median to the 90th percentile an exponential tail falls by a factor of five.
        let slope = (most - half) / 5.0_f64.ln();
        let exponential = most + slope * (0.1 / probability).ln();
        normal + heaviness.clamp(0.0, 1.0) * (exponential - normal).max(0.0)
    }
}

/// How many times the scale of so many values one of them exceeds by chance, with this probability.
pub(super) fn quantile_of(count: usize, probability: f64) -> f64 {
    exceeded_with(probability, freedom(count))
}

/// Degrees of freedom of a distance over the scale of as many values: those of Qn among many, and fewer among few.
fn freedom(count: usize) -> f64 {
    let count = count as f64;
    0.82 * (count - 1.0) * count / (count + 2.0)
}
